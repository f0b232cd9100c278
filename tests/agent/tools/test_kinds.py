"""The four kinds of tools, on each wire: what the model is told, and what the events and the history hold."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import suture
from suture import ChatModelAgent, ChatModelAgentMiddleware, ToolResult, tool
from suture.events import ToolDelta, ToolFinished, ToolStarted
from suture.messages import (
    FunctionToolResult,
    ImagePart,
    Message,
    TextPart,
    UserInputImage,
    UserInputText,
)
from tests.agent.tools.calling import WIRES, message, model_that, on_each_wire, run, told
from tests.shapes.notation import says

IMAGE = ImagePart(url="https://example.com/cat.png")


@tool(name="look")
async def invokable(at: str) -> str:
    """Look."""
    return f"saw {at}"


@tool(name="look")
def in_a_thread(at: str) -> str:
    """Look."""
    return f"saw {at}"


@tool(name="look")
async def streamable(at: str) -> AsyncIterator[str]:
    """Look."""
    yield "saw "
    yield at


@tool(name="look")
def streamable_in_a_thread(at: str) -> Iterator[str]:
    """Look."""
    yield "saw "
    yield at


@tool(name="look")
async def enhanced(at: str) -> ToolResult:
    """Look."""
    return ToolResult((TextPart(f"saw {at}"),))


@tool(name="look")
async def enhanced_streamable(at: str) -> AsyncIterator[ToolResult]:
    """Look."""
    yield ToolResult((TextPart("saw "),))
    yield ToolResult((TextPart(at),))


KINDS = {
    "invokable": invokable,
    "invokable in a thread": in_a_thread,
    "streamable": streamable,
    "streamable in a thread": streamable_in_a_thread,
    "enhanced_invokable": enhanced,
    "enhanced_streamable": enhanced_streamable,
}
each_kind = pytest.mark.parametrize("kind", KINDS)


def test_the_tools_are_of_all_four_kinds():
    assert {each.kind for each in KINDS.values()} == {
        "invokable",
        "streamable",
        "enhanced_invokable",
        "enhanced_streamable",
    }
    assert all(each.kind == name.split()[0] for name, each in KINDS.items())


@each_kind
@on_each_wire
def test_the_model_is_told_what_the_tool_gave(wire: str, kind: str):
    model = model_that(("look", {"at": "a cat"}), wire=wire)
    finished = run(model, KINDS[kind])
    assert told(wire, list(model.requests[1].messages)) == [("result", "c0", "saw a cat")]
    assert suture.check(list(finished.messages), wire=wire).acceptable
    assert list(finished.messages)[:-1] == list(model.requests[1].messages)
    assert list(finished.messages)[-1] == message(wire, says("ok"))
    assert finished.output == "ok"


@each_kind
@on_each_wire
def test_the_events_tell_of_the_call(wire: str, kind: str):
    async def use() -> None:
        model = model_that(("look", {"at": "a cat"}), wire=wire)
        agent = ChatModelAgent(model=model, tools=[KINDS[kind]])
        events = [event async for event in agent.stream("hi")]
        seen = [event for event in events if isinstance(event, ToolStarted | ToolDelta | ToolFinished)]
        assert {(event.call_id, event.name, event.index, event.turn) for event in seen} == {("c0", "look", 0, 1)}
        (started,) = [event for event in seen if isinstance(event, ToolStarted)]
        assert started.arguments == '{"at": "a cat"}'
        (finished,) = [event for event in seen if isinstance(event, ToolFinished)]
        assert (finished.text, finished.result.is_error) == ("saw a cat", False)
        assert (seen[0], seen[-1]) == (started, finished)
        pieces = ["".join(part.text for part in e.result.parts) for e in seen if isinstance(e, ToolDelta)]  # pyright: ignore[reportAttributeAccessIssue] - text parts
        assert pieces == (["saw ", "a cat"] if "streamable" in kind else [])

    asyncio.run(use())


@on_each_wire
def test_tools_of_all_kinds_answer_one_turn_in_call_order(wire: str):
    made = [
        suture.replace(each, info=suture.replace(each.info, name=f"look{n}")) for n, each in enumerate(KINDS.values())
    ]
    model = model_that(*((f"look{number}", {"at": str(number)}) for number in range(6)), wire=wire)
    run(model, *made)
    assert told(wire, list(model.requests[1].messages)) == [
        ("result", f"c{number}", f"saw {number}") for number in range(6)
    ]


# Multimodal results


@tool(name="look")
async def shown() -> ToolResult:
    """Look."""
    return ToolResult((TextPart("a cat:"), IMAGE))


@tool(name="look")
async def shown_in_pieces() -> AsyncIterator[ToolResult]:
    """Look."""
    yield ToolResult((TextPart("a cat:"),))
    yield ToolResult((IMAGE,))


class Passes(ChatModelAgentMiddleware[Any]):
    """Looks at every part that comes by, in the ring for all kinds of tools."""

    def __init__(self) -> None:
        self.parts: list[Any] = []

    async def wrap_tool_call(self, call: Any, proceed: Any) -> ToolResult:
        result = await proceed(call)
        self.parts += result.parts
        return result


def parts_sent(wire: str, messages: list[Any]) -> Any:
    """Return what the model was sent of the result, in the wire's own form."""
    match wire:
        case "message":
            held: Message = messages[2]
            return held.user_input_multi_content
        case "agentic":
            (block,) = messages[2].content_blocks
            assert isinstance(block, FunctionToolResult)
            return block.content
        case _:
            return [part for m in messages[2:] if isinstance(m["content"], list) for part in m["content"]]


@pytest.mark.parametrize("wrapped", [True, False])
@pytest.mark.parametrize("one_tool", [shown, shown_in_pieces], ids=["invokable", "streamable"])
@on_each_wire
def test_every_part_of_a_result_reaches_the_model_through_a_wrapper(wire: str, one_tool: Any, wrapped: bool):
    model = model_that(("look", {}), wire=wire)
    passes = Passes()
    run(model, one_tool, middlewares=[passes] if wrapped else [])
    sent = list(model.requests[1].messages)
    assert passes.parts == ([TextPart("a cat:"), IMAGE] if wrapped else [])
    held = parts_sent(wire, sent)
    if wire == "message":
        assert held == (TextPart("a cat:"), IMAGE)
    elif wire == "agentic":
        assert held == (UserInputText("a cat:"), UserInputImage(url="https://example.com/cat.png"))
    else:
        # Chat Completions takes no images in tool messages: it goes into a user message behind them.
        image = {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}}
        assert image in held
        assert sent[2]["role"] == "tool"
        assert "a cat:" in str(sent[2]["content"])
        assert suture.check(sent, wire=wire).acceptable


def test_the_wires_here_are_all_that_an_agent_runs_on():
    from suture.wires import WIRES as ALL
    from suture.wires import ChatWire, get_wire

    assert [name for name in ALL if isinstance(get_wire(name), ChatWire)] == list(WIRES)
