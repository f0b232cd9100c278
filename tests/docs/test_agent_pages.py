"""What the pages on agents say is what the code has: arguments, fields, events, hooks, and every public name."""

import inspect
import re
from typing import Any

import pytest
from msgspec.structs import fields

import suture
from suture import (
    codecs,
    events,
    kernel,
    messages,
    middleware,
    models,
    reduction,
    stores,
    testing,
    tokens,
    tools,
)
from suture.agent import RunOptions
from suture.codecs import OPTIONS
from suture.integrations.mcp import MCPServer
from suture.middleware import PatchToolCalls, ToolReduction
from suture.models.provider import Settings
from suture.testing import ScriptedModel
from suture.wires import get_chat_wire
from tests.docs.pages import DOCS, ROOT, RUN, blocks, named, prose, table

AGENT, TOOLS, MODELS = DOCS / "agent.md", DOCS / "tools.md", DOCS / "models.md"
HOOKS, STAYS, EINO = DOCS / "middleware.md", DOCS / "durability.md", DOCS / "from-eino.md"
ROOMS = (suture, codecs, events, kernel, messages, middleware, models, reduction, stores, testing, tokens, tools)


def parameters(function: Any) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name not in {"self", "input"}]


def struct_fields(struct: Any) -> list[str]:
    return [field.name for field in fields(struct)]


# --- agent.md ---------------------------------------------------------------------------------


def test_every_setting_of_an_agent_is_explained():
    settings = suture.ChatModelAgent.__struct_fields__
    assert sorted(named(AGENT, "argument")) == sorted(settings)


def test_every_default_of_an_agent_is_as_the_page_says():
    agent = suture.ChatModelAgent(model=ScriptedModel([]))
    for row in table(AGENT, "argument"):
        for setting in re.findall("`([^`]+)`", row[0]):
            if row[1]:
                value = getattr(agent, setting)
                said = value.__name__ if isinstance(value, type) else repr(value).replace("'", '"')
                assert said == row[1].strip("`"), setting


def test_every_argument_of_a_run_is_explained():
    assert sorted(named(AGENT, "argument of `run`")) == sorted(RunOptions.__annotations__)


def test_every_event_is_explained_with_its_fields():
    rows = {re.findall("`([^`]+)`", row[0])[0]: row for row in table(AGENT, "event")}
    shared = set(struct_fields(events.Event))
    known = {one.__name__: one for one in events.AnyEvent.__args__}
    assert set(rows) == set(known)
    for event, row in rows.items():
        told = set(re.findall("`([^`]+)`", row[2]))
        if event == "MessageDelta":
            told.remove("text")  # a property
        assert told == set(struct_fields(known[event])) - shared, event


def test_every_field_of_a_result_is_explained():
    assert sorted(named(AGENT, "field")) == sorted(struct_fields(suture.RunResult))


def test_every_argument_of_an_agent_as_a_tool_is_explained():
    assert named(AGENT, "argument of `as_tool`") == parameters(suture.ChatModelAgent.as_tool)


# --- tools.md, models.md ----------------------------------------------------------------------


def test_every_argument_of_tool_is_explained():
    choices = tools.tool.__globals__["_Choices"].__annotations__
    assert named(TOOLS, "argument of `tool`") == list(choices)


@pytest.mark.parametrize(
    ("heading", "value"),
    [
        ("field of `ModelRequest`", suture.ModelRequest),
        ("field of `Delta`", suture.Delta),
        ("field of `RetryDecision`", suture.RetryDecision),
        ("field", suture.ModelFailoverConfig),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_field_that_a_model_meets_is_explained(heading: str, value: Any):
    assert sorted(named(MODELS, heading)) == sorted(struct_fields(value))


@pytest.mark.parametrize("value", [suture.RetryContext, suture.FailoverContext])
def test_every_field_of_a_judgement_is_named(value: Any):
    said = re.search(rf"`{value.__name__}` has ([^;.]*)", prose(MODELS))
    assert said
    assert set(re.findall("`([^`]+)`", said[1])) == set(struct_fields(value))


def test_every_argument_of_the_scripted_model_is_explained():
    assert named(MODELS, "argument") == parameters(ScriptedModel)


# --- middleware.md, durability.md -------------------------------------------------------------


def test_every_hook_is_explained():
    hooks = [hook for hook in vars(suture.ChatModelAgentMiddleware) if not hook.startswith("_")]
    assert sorted(set(named(HOOKS, "hook"))) == sorted(hooks)


@pytest.mark.parametrize("value", ["ChatModelAgentContext", "ChatModelAgentState", "ModelContext", "ToolContext"])
def test_every_field_that_a_hook_gets_is_named(value: str):
    row = next(row for row in table(HOOKS, "value") if row[0] == f"`{value}`")
    assert re.findall("`([^`]+)`", row[1]) == struct_fields(getattr(suture, value))


@pytest.mark.parametrize("wire", ["message", "agentic", "openai-chat"])
def test_the_middleware_to_start_from_works_on_every_wire_that_an_agent_runs_on(wire: str):
    namespace: dict[str, Any] = {}
    exec(next(block.body for block in blocks(ROOT / "CONTRIBUTING.md") if "class Reminder" in block.body), namespace)
    speaker = get_chat_wire(wire)
    model = ScriptedModel([speaker.join([suture.Delta("At 06:12.")])], wire=wire)
    result = suture.ChatModelAgent(model=model, middlewares=[namespace["Reminder"]("Be brief.")]).run_sync("When?")
    assert [speaker.text(message) for message in result.messages] == ["When?", "Be brief.", "At 06:12."]


def test_every_argument_of_patch_tool_calls_is_explained():
    assert named(HOOKS, "argument") == parameters(PatchToolCalls)


def test_every_argument_of_compaction_is_explained():
    assert sorted(named(DOCS / "compaction.md", "argument")) == sorted(parameters(suture.Compaction))


def test_every_method_of_a_store_is_explained_with_its_signature():
    told = [signature.removeprefix("async ").replace("\\|", "|") for signature in named(STAYS, "method")]
    methods = {name: method for name, method in vars(stores.Store).items() if inspect.iscoroutinefunction(method)}
    assert told == [
        re.sub(r"self, |self|collections\.abc\.|suture\.stores\.protocols\.", "", f"{name}{inspect.signature(method)}")
        for name, method in methods.items()
    ]


def test_every_store_has_a_row():
    known = {store for store in stores.__all__ if store.endswith("Store")} - {"Store"}
    assert {re.match(r"\w+", store)[0] for store in named(STAYS, "store")} == known  # pyright: ignore[reportOptionalSubscript]


# --- all of them ------------------------------------------------------------------------------


def test_every_public_name_is_on_some_page():
    told = "\n".join(page.read_text(encoding="utf-8") for page in RUN)
    assert [one for one in vars(suture)["__all__"] if not re.search(rf"\b{one}\b", told)] == []


NO_NAMES = {"agent", "async", "await", "cls", "context", "data", "endpoint", "event", "factory", "for", "info", "input"}
NO_NAMES |= {
    "agents",
    "call",
    "codecs",
    "middleware",
    "model_context",
    "proceed",
    "reduction",
    "request",
    "store",
    "stores",
}
"""What stands in the examples beside names: Python's words, and variables."""


def test_every_hook_of_the_reference_has_its_row():
    ours = {word for row in table(EINO, "Eino") for word in re.findall(r"`(\w+)", row[1])}
    hooks = {hook for hook in vars(suture.ChatModelAgentMiddleware) if not hook.startswith("_")}
    assert hooks <= ours


def known_names() -> set[str]:
    """Return every name that Suture offers: of values, their fields and methods, and of arguments."""
    known = {"suture", "lambda", "True", *("invoke", "enhanced_invoke", "enhanced_stream")}
    known |= {"MCPServer", *dir(MCPServer), *Settings.__annotations__, *OPTIONS}
    for room in ROOMS:
        for offered in room.__all__:
            value = getattr(room, offered)
            known |= {offered, *dir(value)} if isinstance(value, type) else {offered}
    agent, run = suture.ChatModelAgent, suture.Run
    for function in (agent, agent.resume, agent.as_tool, run.cancel, suture.interrupt, PatchToolCalls, ToolReduction):
        known |= set(inspect.signature(function).parameters)
    known |= {*RunOptions.__annotations__, *dir(suture.Run), *suture.RunContext.__annotations__}
    return known | set(tools.tool.__globals__["_Choices"].__annotations__)


def test_every_name_of_ours_beside_one_of_the_reference_exists():
    cells = [code for row in table(EINO, "Eino") for code in re.findall("`([^`]+)`", row[1])]
    words = {word for cell in cells for word in re.findall(r"[A-Za-z_]{3,}", re.sub('".*?"', "", cell))}
    assert len(words) > 100
    assert sorted(words - known_names() - NO_NAMES) == []
