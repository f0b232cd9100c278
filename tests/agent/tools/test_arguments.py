"""Wrong arguments and unknown tools go back to the model, which is told what to mend; the run passes in its own."""

import asyncio
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from suture import ChatModelAgent, ChatModelAgentMiddleware, RunContext, ToolCallRequest, ToolContext, ToolResult, tool
from suture.events import ToolFinished, ToolStarted
from suture.messages import TextPart
from tests.agent.tools.calling import calls, message, model_that, on_each_wire, run, texts, told

RAN: list[Any] = []


@tool
async def search(query: str, limit: int = 5, order: Literal["new", "old"] = "new") -> str:
    """Search the docs."""
    RAN.append((query, limit, order))
    return f"{limit} of {query}, {order}"


@pytest.fixture(autouse=True)
def _nothing_ran():
    RAN.clear()


WRONG = [
    ({"limit": 3}, ["query"]),
    ({"query": "tides", "limit": "three"}, ["limit", "int", "str"]),
    ({"query": "tides", "order": "up"}, ["order", "up"]),
    ({"query": "tides", "colour": "red"}, ["colour"]),
    ("[1]", ["object"]),
    ('{"query": "ti', []),
    ("", ["query"]),
]


@pytest.mark.parametrize(("arguments", "words"), WRONG, ids=[str(row[0]) for row in WRONG])
@on_each_wire
def test_wrong_arguments_are_an_error_result_that_says_what_to_mend(wire: str, arguments: Any, words: list[str]):
    model = model_that(("search", arguments), wire=wire)
    finished = run(model, search)
    ((kind, call_id, text),) = told(wire, list(finished.messages))
    assert (kind, call_id) == ("result" if wire == "openai-chat" else "failed", "c0")
    assert [word for word in words if word not in text] == []
    assert "Traceback" not in text
    assert RAN == []


@on_each_wire
def test_a_model_that_mends_its_call_gets_the_result(wire: str):
    again = message(wire, calls(("search", {"query": "tides", "limit": 3})))
    model = model_that(("search", {"query": "tides", "limit": "three"}), wire=wire, then=[again, "ok"])
    run(model, search)
    assert texts(model)[1] == "3 of tides, new"
    assert RAN == [("tides", 3, "new")]


@on_each_wire
def test_a_wrong_call_does_not_keep_its_siblings_from_running(wire: str):
    model = model_that(("search", {"limit": 1}), ("search", {"query": "tides"}), ("serach", {"query": "x"}), wire=wire)
    run(model, search)
    first, second, third = texts(model)
    assert "query" in first
    assert second == "5 of tides, new"
    assert "serach" in third


@on_each_wire
def test_an_unknown_tool_is_an_error_result_with_a_suggestion(wire: str):
    model = model_that(("serach", {"query": "tides"}), wire=wire)
    finished = run(model, search)
    ((kind, _, text),) = told(wire, list(finished.messages))
    assert kind == ("result" if wire == "openai-chat" else "failed")
    assert "serach" in text
    assert "search" in text.replace("serach", "")
    assert RAN == []


def test_an_unknown_tool_that_is_like_none_names_those_there_are():
    model = model_that(("weather", {}))
    run(model, search)
    assert "search" in texts(model)[0]


class Watches(ChatModelAgentMiddleware[Any]):
    def __init__(self) -> None:
        self.seen: list[Any] = []

    async def wrap_tool_call(self, call: ToolCallRequest, proceed: Any) -> ToolResult:
        result = await proceed(call)
        self.seen.append((call.name, call.call_id, call.arguments, result.is_error))
        return result


def test_wrong_calls_pass_through_the_middlewares_like_any_other():
    watches = Watches()
    model = model_that(("search", {"limit": 1}), ("serach", {}))
    run(model, search, middlewares=[watches], sequential=True)
    assert watches.seen == [
        ("search", "c0", '{"limit": 1}', True),
        ("serach", "c1", "{}", True),
    ]


def test_a_middleware_may_answer_for_an_unknown_tool():
    class Answers(ChatModelAgentMiddleware[Any]):
        async def wrap_tool_call(self, call: ToolCallRequest, proceed: Any) -> ToolResult:
            del proceed
            return ToolResult((TextPart(f"{call.name} is out of order: {call.arguments}"),))

    model = model_that(("serach", {}))
    run(model, search, middlewares=[Answers()])
    assert texts(model) == ["serach is out of order: {}"]


def test_wrong_calls_emit_events_like_any_other():
    async def use() -> None:
        model = model_that(("search", {"limit": 1}), ("serach", {}))
        events = [event async for event in ChatModelAgent(model=model, tools=[search]).stream("hi")]
        assert sorted(e.call_id for e in events if isinstance(e, ToolStarted)) == ["c0", "c1"]
        ended = {e.call_id: e.result.is_error for e in events if isinstance(e, ToolFinished)}
        assert ended == {"c0": True, "c1": True}

    asyncio.run(use())


# Injection


@dataclass(frozen=True)
class Database:
    url: str


@tool
async def count(table: str, ctx: RunContext[Database], context: ToolContext) -> str:
    """Count the rows."""
    return f"{table} at {ctx.deps.url} for {context.name} {context.call_id} {ctx.call_id}"


@on_each_wire
def test_the_dependencies_of_the_run_are_passed_in_and_never_shown(wire: str):
    model = model_that(("count", {"table": "tides"}), wire=wire)
    run(model, count, deps=Database("db://one"))
    assert texts(model) == ["tides at db://one for count c0 c0"]
    (info,) = model.requests[0].tool_infos
    assert list((info.parameters or {})["properties"]) == ["table"]


def test_the_model_cannot_fill_in_what_is_injected():
    model = model_that(("count", {"table": "tides", "ctx": {"deps": {"url": "evil"}}}))
    run(model, count, deps=Database("db://one"))
    assert "evil" not in texts(model)[0]
