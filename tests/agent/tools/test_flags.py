"""What a tool asks for beyond being called: a timeout, another try, approval, the last word."""

import asyncio
from typing import Any

import pytest

import suture
from suture import Approval, ChatModelAgent, RunResult, ToolResult, ToolsConfig, exit_tool, tool
from suture.events import ToolFinished
from suture.messages import TextPart
from suture.stores import MemoryStore
from tests.agent.tools.calling import calls, message, model_that, on_each_wire, run, texts, told
from tests.shapes.notation import user
from tests.shapes.wires import read, render

# timeout and retry


@on_each_wire
def test_a_tool_that_takes_too_long_is_given_up_and_the_model_is_told(wire: str):
    ended: list[str] = []

    @tool(timeout=0.01)
    async def look() -> str:
        """Look forever."""
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("stopped")
        return "never"

    model = model_that(("look", {}), wire=wire)
    finished = run(model, look)
    ((kind, _, text),) = told(wire, list(finished.messages))
    assert kind == ("result" if wire == "openai-chat" else "failed")
    assert "0.01" in text
    assert "time" in text.lower()
    assert ended == ["stopped"]


def failing(times: int, **flags: Any) -> tuple[Any, list[int]]:
    tries: list[int] = []

    @tool(**flags)
    async def look() -> str:
        """Look, and fail at first."""
        tries.append(len(tries) + 1)
        if len(tries) <= times:
            raise ConnectionError(f"try {len(tries)}")
        return f"seen at try {len(tries)}"

    return look, tries


def test_a_tool_is_tried_again_as_often_as_it_says():
    look, tries = failing(2, retry=2)
    model = model_that(("look", {}))
    run(model, look)
    assert (texts(model), tries) == (["seen at try 3"], [1, 2, 3])


def test_a_tool_that_fails_each_time_tells_its_last_error():
    look, tries = failing(5, retry=2)
    model = model_that(("look", {}))
    run(model, look)
    assert tries == [1, 2, 3]
    assert "try 3" in texts(model)[0]


def test_a_tool_is_tried_once_unless_it_says_more():
    look, tries = failing(1)
    model = model_that(("look", {}))
    run(model, look)
    assert tries == [1]
    assert "try 1" in texts(model)[0]


def test_wrong_arguments_are_not_tried_again():
    tries: list[int] = []

    @tool(retry=3)
    async def look(at: int) -> str:
        """Look."""
        tries.append(at)
        return "seen"

    model = model_that(("look", {"at": "x"}))
    run(model, look)
    assert tries == []


def test_the_timeout_holds_for_each_try():
    tries: list[int] = []

    @tool(timeout=0.01, retry=1)
    async def look() -> str:
        """Look, too long at first."""
        tries.append(1)
        if len(tries) == 1:
            await asyncio.Event().wait()
        return "seen"

    model = model_that(("look", {}))
    run(model, look)
    assert texts(model) == ["seen"]


# Approval

SENT: list[str] = []


@tool(requires_approval=True)
async def send(text: str) -> str:
    """Send a mail."""
    SENT.append(text)
    return f"sent {text}"


@pytest.mark.parametrize("answer", [True, {"approved": True}, Approval(approved=True)])
@on_each_wire
def test_a_tool_that_wants_approval_waits_and_runs_once_it_has_it(wire: str, answer: Any):
    SENT.clear()

    async def use() -> None:
        model = model_that(("send", {"text": "hi"}), wire=wire)
        agent = ChatModelAgent(model=model, tools=[send], checkpoint_store=MemoryStore())
        stopped = await agent.run("hi", checkpoint_id="c")
        (asked,) = stopped.interrupts
        assert (stopped.outcome, asked.call_id, asked.name, SENT) == ("interrupted", "c0", "send", [])
        assert "hi" in str(asked.info)
        finished = await agent.resume("c", answers={asked.id: answer})
        assert (finished.output, SENT, texts(model)) == ("ok", ["hi"], ["sent hi"])

    asyncio.run(use())


def test_of_two_calls_each_has_its_own_approval():
    SENT.clear()

    async def use() -> None:
        model = model_that(("send", {"text": "one"}), ("send", {"text": "two"}))
        agent = ChatModelAgent(model=model, tools=[send], checkpoint_store=MemoryStore())
        stopped = await agent.run("hi", checkpoint_id="c")
        first, second = sorted(stopped.interrupts, key=lambda asked: asked.call_id)
        stopped = await agent.resume("c", answers={first.id: True})
        assert [asked.id for asked in stopped.interrupts] == [second.id]
        assert SENT == ["one"]
        await agent.resume("c", answers={second.id: False})
        assert SENT == ["one"]
        assert texts(model) == ["sent one", "Tool call send with id c1 was not run - it was rejected."]

    asyncio.run(use())


def test_nobody_is_asked_about_a_call_that_cannot_run():
    model = model_that(("send", {}))
    finished = run(model, send)
    assert finished.outcome == "finished"
    assert "text" in texts(model)[0]


# Returning directly

ORDER: list[str] = []


@tool
async def slow() -> str:
    """Be slow."""
    for _ in range(5):
        await asyncio.sleep(0)
    ORDER.append("slow")
    return "slowly"


@tool(return_directly=True)
async def flagged() -> str:
    """Have the last word."""
    ORDER.append("direct")
    return "the last word"


@tool
async def unflagged() -> str:
    """Have the last word if told so."""
    ORDER.append("direct")
    return "the last word"


@tool
async def deciding() -> ToolResult:
    """Have the last word by decision."""
    ORDER.append("direct")
    return ToolResult((TextPart("the last word"),), return_directly=True)


WAYS: dict[str, dict[str, Any]] = {
    "the tool's flag": {"tools": [slow, flagged]},
    "the agent's names": {"tools": [slow, unflagged], "return_directly": ["unflagged"]},
    "the names of the tools' configuration": {
        "tools": ToolsConfig(tools=[slow, unflagged], return_directly=["unflagged"])
    },
    "the result's flag": {"tools": [slow, deciding]},
}


@pytest.mark.parametrize("way", WAYS)
@on_each_wire
def test_a_result_that_is_returned_directly_ends_the_run_after_all_siblings(wire: str, way: str):
    ORDER.clear()
    name = {"the tool's flag": "flagged", "the result's flag": "deciding"}.get(way, "unflagged")

    async def use() -> None:
        model = model_that((name, {}), ("slow", {}), wire=wire, then=[])
        agent_run = ChatModelAgent(model=model, **WAYS[way]).stream("hi")
        events = [event async for event in agent_run]
        finished = await agent_run.result()
        assert (finished.output, ORDER, len(model.requests)) == ("the last word", ["direct", "slow"], 1)
        ended = [(e.name, e.return_directly) for e in events if isinstance(e, ToolFinished)]
        assert ended == [("slow", False), (name, True)], "its event comes last"
        results = [(call_id, text) for _, call_id, text in told(wire, list(finished.messages))]
        assert results == [("c0", "the last word"), ("c1", "slowly")]
        assert suture.check(list(finished.messages), wire=wire).acceptable

    asyncio.run(use())


def test_an_error_is_not_returned_directly():
    @tool(return_directly=True)
    async def look(at: int) -> str:
        """Look."""
        return str(at)

    again = message("message", calls(("look", {"at": 3})))
    model = model_that(("look", {"at": "x"}), then=[again])
    finished = run(model, look)
    assert finished.output == "3"
    assert len(model.requests) == 2


@on_each_wire
def test_the_exit_tool_ends_the_run_with_the_final_result(wire: str):
    model = model_that(("exit", {"final_result": "42"}), wire=wire, then=[])
    finished = run(model, exit_tool())
    assert (finished.output, finished.outcome, len(model.requests)) == ("42", "finished", 1)
    assert suture.check(list(finished.messages), wire=wire).acceptable


@on_each_wire
def test_a_history_that_ended_directly_is_good_for_the_next_run(wire: str):
    async def use() -> None:
        model = model_that(("exit", {"final_result": "42"}), wire=wire)
        agent: ChatModelAgent[Any] = ChatModelAgent(model=model, tools=[exit_tool()])
        first: RunResult[Any] = await agent.run("hi")
        again = await agent.run([*first.messages, *render(wire, [user("and?")]).messages])
        assert again.output == "ok"
        assert len(read(wire, list(model.requests[1].messages))) == 4

    asyncio.run(use())
