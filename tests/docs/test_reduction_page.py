"""What the page on reduction says is what the code has: settings, defaults, fields, tools, counters and texts."""

import ast
import dataclasses
import re
from typing import Any

import pytest
from msgspec.structs import fields

from suture import ChatModelAgent, reduction, tokens
from suture.middleware import ToolReduction
from suture.reduction import ClearResult, Plan, Save, ToolDetail, ToolReductionConfig, TruncResult
from suture.reduction.draft import PROCESSED
from suture.stores import MemoryBackend
from suture.testing import ScriptedModel
from tests.docs.pages import DOCS, prose, table

PAGE, EINO = DOCS / "reduction.md", DOCS / "from-eino.md"


def codes(cell: str) -> list[str]:
    return re.findall("`([^`]+)`", cell)


def settings() -> dict[str, Any]:
    """Return every setting with its default."""
    known = [field for field in dataclasses.fields(ToolReduction) if field.init]
    return {field.name: made() if callable(made := field.default_factory) else field.default for field in known}


def test_every_setting_has_its_row_and_its_default():
    told = {codes(row[0])[0]: ast.literal_eval(codes(row[1])[0]) for row in table(PAGE, "setting")}
    assert told == settings()
    assert next(iter(told)) == "backend"


@pytest.mark.parametrize(
    "value", [ToolReductionConfig, ToolDetail, TruncResult, ClearResult, Plan, reduction.Change, Save]
)
def test_every_field_of_a_value_is_explained(value: Any):
    rows = table(PAGE, f"field of `{value.__name__}`")
    assert sorted(name for row in rows for name in codes(row[0])) == sorted(field.name for field in fields(value))


def test_every_reading_tool_is_explained_with_its_arguments():
    model = ScriptedModel(["Done."])
    ChatModelAgent(model=model, middlewares=[ToolReduction(MemoryBackend())]).run_sync("Go on.")
    offered = {info.name: list((info.parameters or {})["properties"]) for info in model.requests[0].tool_infos}
    assert {codes(row[0])[0]: codes(row[1]) for row in table(PAGE, "tool")} == offered


def test_every_counter_has_its_row():
    told = {re.match(r"\w+", codes(row[0])[0])[0] for row in table(PAGE, "counter in `suture.tokens`")}  # pyright: ignore[reportOptionalSubscript]
    assert told == {name for name in tokens.__all__ if name.endswith("Counter")} - {"Counter", "WholeCounter"}


def test_every_name_of_the_tokens_is_on_the_page():
    assert [name for name in tokens.__all__ if not re.search(rf"`{name}\b", prose(PAGE))] == []


def test_the_number_that_media_count_is_the_one_that_the_page_says():
    assert f"{tokens.MEDIA_TOKENS:,} for each image" in prose(PAGE)


@pytest.mark.parametrize("row", table(PAGE, "set"), ids=lambda row: row[0])
def test_what_the_prompt_cache_asks_for_are_settings(row: list[str]):
    assert codes(row[0])[0] in settings()


def test_every_setting_is_beside_one_of_the_reference_or_said_to_be_ours_alone():
    ours = {word for row in table(EINO, "Eino") for word in re.findall(r"`(\w+)", row[1])}
    assert sorted(settings().keys() - ours) == []
    assert sorted({field.name for field in fields(ToolReductionConfig)} - ours) == []


def test_what_marks_a_round_is_called_as_the_page_calls_it():
    assert f"`{PROCESSED}`" in prose(PAGE)
