"""Functions whose annotations are pydantic's: the same schema, read by pydantic."""

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Annotated, Any, cast

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, PositiveInt, field_validator
from pydantic.dataclasses import dataclass as pydantic_dataclass
from typing_extensions import TypedDict

from suture.errors import ConfigError
from suture.messages import ToolContext
from suture.tools import RunContext, tool
from tests.tools.running import Context, run


class Range(BaseModel):
    first: int
    last: int = 9

    @field_validator("last")
    @classmethod
    def in_order(cls, last: int) -> int:
        if last < 0:
            raise ValueError("must not be negative")
        return last


class Node(BaseModel):
    value: int
    below: "list[Node]" = []


@pydantic_dataclass
class Checked:
    x: PositiveInt


@dataclasses.dataclass
class Holder:
    range: Range


class Page(TypedDict):
    ranges: list[Range]


@tool
def search(
    query: str,
    range: Range,  # noqa: A002
    limit: Annotated[int, Field(ge=1, description="How many.")] = 3,
    tags: list[str] = Field(default_factory=list, description="Which."),  # noqa: B008 - pydantic's way
    *,
    context: ToolContext | None = None,  # noqa: ARG001 - hidden, and nothing else
) -> list[Any]:
    """Search.

    Args:
        query: What to look for.
        limit: Not this text.
    """
    return [query, range, limit, tags]


def test_the_schema_is_that_of_a_plain_tool():
    assert search.info.parameters is not None
    assert json.loads(json.dumps(search.info.parameters)) == {
        "type": "object",
        "properties": {
            "query": {"description": "What to look for.", "type": "string"},
            "range": {
                "title": "Range",
                "type": "object",
                "properties": {"first": {"type": "integer"}, "last": {"type": "integer", "default": 9}},
                "required": ["first"],
            },
            "limit": {"description": "How many.", "type": "integer", "minimum": 1, "default": 3},
            "tags": {"description": "Which.", "type": "array", "items": {"type": "string"}},
        },
        "required": ["query", "range"],
        "additionalProperties": False,
    }


def test_models_reach_the_function_as_models():
    given_ = json.loads(run(search, '{"query": "a", "range": {"first": "1"}, "tags": ["b"]}'))
    assert given_ == ["a", {"first": 1, "last": 9}, 3, ["b"]]
    assert json.loads(run(search, '{"query": "a", "range": {"first": 1}}')) == ["a", {"first": 1, "last": 9}, 3, []]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("", "arguments.query: missing; arguments.range: missing"),
        (" \n", "arguments.query: missing; arguments.range: missing"),
        ("{", "the arguments are not valid JSON: input data was truncated"),
        ("[]", "the arguments must be one JSON object, got array"),
        ("[" * 100_000, "the arguments are not valid JSON: nested too deeply"),
        (
            '{"query": 1, "range": {"first": 1}, "limit": 0, "size": 3}',
            (
                "arguments.size: unknown; known: query, range, limit, tags; "
                "arguments.query: expected str, got int; "
                "arguments.limit: expected int >= 1"
            ),
        ),
        (
            '{"query": "a", "range": {"first": [], "last": -1}, "limit": "0", "tags": ["a", 1]}',
            (
                "arguments.range.first: input should be a valid integer; "
                "arguments.range.last: value error, must not be negative; "
                "arguments.limit: expected int >= 1; "
                "arguments.tags[1]: expected str, got int"
            ),
        ),
        ('{"query": "a", "range": {}}', "arguments.range.first: field required"),
    ],
    ids=lambda text: text[:40],
)
def test_what_is_wrong_with_a_model_is_told_in_the_words_of_pydantic(arguments, says):
    assert search.validate(arguments) == says


class Picky(BaseModel):
    x: int

    @field_validator("x")
    @classmethod
    def known(cls, x: int) -> int:
        return {1: 1}[x]


def test_a_check_that_fails_in_its_own_way_refuses_the_arguments_too():
    made = one(Picky)
    assert made.validate('{"value": {"x": 1}}') == ""
    assert made.validate('{"value": {"x": 2}}') == "arguments.value: KeyError: 2"


def test_text_that_is_no_unicode_is_refused():
    assert search.validate('{"query": "\ud800"}').startswith("the arguments are not valid JSON: ")


def one(hint: Any) -> Any:
    def take(value) -> str:
        return repr(value)

    take.__annotations__["value"] = hint
    return tool(take)


@pytest.mark.parametrize(
    ("hint", "fits", "wrong"),
    [
        (Range | None, '{"first": 1}', "3"),
        (list[Range], '[{"first": 1}]', '[{"first": 1, "last": -1}]'),
        (dict[str, Range], '{"a": {"first": 1}}', '{"a": {}}'),
        (PositiveInt, "1", "0"),
        (Checked, '{"x": 1}', '{"x": 0}'),
        (Holder, '{"range": {"first": 1}}', '{"range": {"first": 1, "last": -1}}'),
        (Page, '{"ranges": [{"first": 1}]}', '{"ranges": [{}]}'),
        (Node, '{"value": 1, "below": [{"value": 2}]}', '{"value": 1, "below": [{}]}'),
    ],
    ids=repr,
)
def test_what_only_pydantic_knows_is_checked_by_pydantic_wherever_it_stands(hint, fits, wrong):
    made = one(hint)
    assert made.validate(f'{{"value": {fits}}}') == ""
    assert made.validate(f'{{"value": {wrong}}}').startswith("arguments.value")
    jsonschema.Draft202012Validator(made.info.parameters).validate({"value": json.loads(fits)})


@pytest.mark.parametrize("name", ["model_dump", "json", "schema", "copy", "_hidden", "at0", "model_config"])
def test_no_name_of_a_parameter_means_anything_to_pydantic(name):
    namespace: dict[str, Any] = {"Range": Range}
    exec(f"def echo({name}: Range, other: int = 1): return {name}.first", namespace)
    made = tool(namespace["echo"])
    assert list(made.info.parameters["properties"]) == [name, "other"]
    assert run(made, json.dumps({name: {"first": 3}})) == "3"


def test_hidden_parameters_are_no_business_of_pydantics():
    def take(range: Range, ctx: RunContext[Holder]) -> int:  # noqa: A002
        return range.first + ctx.deps.range.first

    assert run(tool(take), '{"range": {"first": 1}}', context=Context(Holder(Range(first=2)))) == "3"


def test_what_pydantic_cannot_read_is_refused():
    class Odd:
        pass

    def take(range: Range, odd: Odd) -> None: ...  # noqa: A002

    with pytest.raises(ConfigError, match="tool 'take', parameter 'odd': a model cannot write Odd as JSON"):
        tool(take)


def test_a_model_that_a_tool_gives_becomes_json():
    @tool
    def make() -> list[Range]:
        return [Range(first=1)]

    assert run(make) == '[{"first":1,"last":9}]'


@given(st.integers(), st.text(), st.lists(st.text()))
def test_arguments_that_fit_reach_the_function_as_the_same_values(first, query, tags):
    arguments = {"query": query, "range": {"first": first}, "tags": tags}
    assert json.loads(run(PLAIN_SEARCH, json.dumps(arguments))) == [query, {"first": first, "last": 9}, 3, tags]


PLAIN_SEARCH = tool(cast("Callable[..., Any]", search.function), name="search", thread=False)

ALONE = """
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated
from msgspec import Meta
from suture.tools import as_tools, exit_tool, tool

@dataclass
class Port:
    name: str

@dataclass
class Ship:
    length: int

@tool
def search(
    query: str,
    when: datetime | str,
    what: Port | Ship,
    names: Iterable[str],
    file: Path = Path("."),
    limit: Annotated[int, Meta(ge=1)] = 3,
    within: timedelta | None = None,
) -> str:
    return query

assert "missing" in search.validate("{}")
assert search.validate('{"query": "", "when": "2026-01-01", "what": {"length": "9"}, "names": [], "within": "9"}') == ""
exit_tool()
print(sorted({name.partition(".")[0] for name in sys.modules} & {"pydantic", "pydantic_core"}))
"""


def test_without_an_annotation_of_its_own_pydantic_is_not_imported():
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
