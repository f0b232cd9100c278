"""What becomes of a tool that fails: an error result by default, of type and message, never a traceback."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import suture
from suture import ChatModelAgent, ToolResult, tool
from suture.events import ToolFinished
from suture.messages import TextPart
from tests.agent.tools.calling import model_that, on_each_wire, run, texts, told


class CloudsError(Exception):
    pass


@tool(name="look")
async def failing() -> str:
    """Fail."""
    raise CloudsError("too cloudy")


@tool(name="look")
def failing_in_a_thread() -> str:
    """Fail."""
    raise CloudsError("too cloudy")


@tool(name="look")
async def failing_stream() -> AsyncIterator[str]:
    """Fail."""
    raise CloudsError("too cloudy")
    yield ""


@tool(name="look")
async def failing_enhanced() -> ToolResult:
    """Fail."""
    raise CloudsError("too cloudy")


@tool(name="look")
async def failing_enhanced_stream() -> AsyncIterator[ToolResult]:
    """Fail."""
    raise CloudsError("too cloudy")
    yield ToolResult()


FAILING = [failing, failing_in_a_thread, failing_stream, failing_enhanced, failing_enhanced_stream]
each_failing = pytest.mark.parametrize("one_tool", FAILING, ids=lambda each: each.function.__name__)


@each_failing
@on_each_wire
def test_an_exception_becomes_an_error_result_of_its_type_and_message(wire: str, one_tool: Any):
    model = model_that(("look", {}), wire=wire)
    finished = run(model, one_tool)
    ((kind, _, text),) = told(wire, list(finished.messages))
    assert kind == ("result" if wire == "openai-chat" else "failed")
    assert "CloudsError" in text
    assert "too cloudy" in text
    assert "Traceback" not in text
    assert "test_failures.py" not in text


@each_failing
def test_an_exception_ends_the_run_if_asked_for(one_tool: Any):
    async def use() -> None:
        model = model_that(("look", {}), ("look", {}))
        agent = ChatModelAgent(model=model, tools=[one_tool], tool_errors="raise")
        agent_run = agent.stream("hi")
        with pytest.raises(CloudsError, match="too cloudy"):
            await agent_run.result()
        assert agent_run.final_result is not None
        assert suture.check(list(agent_run.final_result.messages), wire="message").acceptable
        assert len(model.requests) == 1

    asyncio.run(use())


@each_failing
def test_what_the_model_is_told_can_be_said_otherwise(one_tool: Any):
    model = model_that(("look", {}))
    run(model, one_tool, format_tool_error=lambda error: f"sorry: {error.args[0]}")
    assert texts(model) == ["sorry: too cloudy"]


def test_an_exception_without_a_message_is_told_by_its_type():
    @tool
    async def look() -> str:
        """Fail."""
        raise CloudsError

    model = model_that(("look", {}))
    run(model, look)
    assert "CloudsError" in texts(model)[0]


def test_a_failing_tool_does_not_touch_its_siblings():
    @tool
    async def fine() -> str:
        """Work."""
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return "fine"

    model = model_that(("look", {}), ("fine", {}))
    run(model, failing, fine)
    assert texts(model)[1] == "fine"


# Streams


@tool(name="look")
async def half() -> AsyncIterator[str]:
    """Fail midway."""
    yield "a cat, "
    yield "a dog, "
    raise CloudsError("too cloudy")


@tool(name="look")
def half_in_a_thread() -> Iterator[str]:
    """Fail midway."""
    yield "a cat, "
    yield "a dog, "
    raise CloudsError("too cloudy")


@tool(name="look")
async def half_enhanced() -> AsyncIterator[ToolResult]:
    """Fail midway."""
    yield ToolResult((TextPart("a cat, "),))
    yield ToolResult((TextPart("a dog, "),))
    raise CloudsError("too cloudy")


@pytest.mark.parametrize("one_tool", [half, half_in_a_thread, half_enhanced], ids=["async", "sync", "enhanced"])
@on_each_wire
def test_a_stream_that_fails_midway_keeps_what_came_and_tells_the_error(wire: str, one_tool: Any):
    model = model_that(("look", {}), wire=wire)
    finished = run(model, one_tool)
    ((kind, _, text),) = told(wire, list(finished.messages))
    assert kind == ("result" if wire == "openai-chat" else "failed")
    assert text.startswith("a cat, a dog, ")
    assert "CloudsError" in text
    assert "too cloudy" in text


@tool(name="look")
async def silent() -> AsyncIterator[str]:
    """Say nothing."""
    for piece in ():
        yield piece


@tool(name="look")
def silent_in_a_thread() -> Iterator[str]:
    """Say nothing."""
    yield from ()


@tool(name="look")
async def silent_enhanced() -> AsyncIterator[ToolResult]:
    """Say nothing."""
    for piece in ():
        yield piece


@pytest.mark.parametrize("one_tool", [silent, silent_in_a_thread, silent_enhanced], ids=["async", "sync", "enhanced"])
@on_each_wire
def test_a_stream_of_nothing_is_an_empty_result(wire: str, one_tool: Any):
    async def use() -> None:
        model = model_that(("look", {}), wire=wire)
        agent = ChatModelAgent(model=model, tools=[one_tool])
        events = [event async for event in agent.stream("hi")]
        (ended,) = [event for event in events if isinstance(event, ToolFinished)]
        assert (ended.text, ended.result.is_error) == ("", False)
        sent = list(model.requests[1].messages)
        assert [(kind, text) for kind, _, text in told(wire, sent)] == [("result", "")]
        assert suture.check(sent, wire=wire).acceptable

    asyncio.run(use())
