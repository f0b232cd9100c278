"""What each step of a tool call is for, from the outermost to the tool."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from suture import (
    AgentMiddleware,
    Callbacks,
    ChatModelAgent,
    ChatModelAgentMiddleware,
    Tool,
    ToolArgument,
    ToolCallRequest,
    ToolContext,
    ToolResult,
    ToolsConfig,
    replace,
    tool,
)
from suture.events import ToolDelta, ToolFinished, ToolStarted
from suture.messages import TextPart
from suture.middleware import CallTool
from suture.testing import ScriptedModel
from tests.agent.lifecycle.recording import KINDS, collect
from tests.agent.lifecycle.speech import MESSAGE, WIRES, Speech, wire_name

every_wire = pytest.mark.parametrize("speech", WIRES, ids=wire_name)
every_kind = pytest.mark.parametrize("kind", KINDS)


def echo(kind: str) -> Tool[..., Any]:
    """Return a tool of a kind that gives back what it was asked, behind a `>`."""

    async def invokable(text: str) -> str:
        return f">{text}"

    async def streamable(text: str) -> AsyncIterator[str]:
        yield ">"
        yield text

    async def enhanced_invokable(text: str) -> ToolResult:
        return ToolResult((TextPart(f">{text}"),))

    async def enhanced_streamable(text: str) -> AsyncIterator[ToolResult]:
        yield ToolResult((TextPart(">"),))
        yield ToolResult((TextPart(text),))

    functions = (invokable, streamable, enhanced_invokable, enhanced_streamable)
    return tool(next(function for function in functions if function.__name__ == kind), name="echo")


def sandwich(before: str, after: str) -> Any:
    """Return a wrapper of a call of any tool that puts a text before and one behind its result."""

    async def wrap(call: ToolCallRequest, proceed: CallTool) -> ToolResult:
        return ToolResult((TextPart(before + (await proceed(call)).text + after),))

    return wrap


class EveryCall(ChatModelAgentMiddleware[Any]):
    """A middleware with a given `wrap_tool_call`."""

    def __init__(self, wrap: Any) -> None:
        self._wrap = wrap

    async def wrap_tool_call(self, call: ToolCallRequest, proceed: CallTool) -> ToolResult:
        return await self._wrap(call, proceed)


class PerKind(ChatModelAgentMiddleware[Any]):
    """A middleware with all four specific wrappers; each notes its own name, and writes two signs around a text."""

    def __init__(self, before: str, after: str) -> None:
        self.asked: list[tuple[str, str, str]] = []
        self._signs = before, after

    def wrap_invokable_tool_call(self, endpoint: Any, context: ToolContext) -> Any:
        async def around(arguments: str, **options: Any) -> str:
            self.asked.append(("invokable", context.name, context.call_id))
            assert isinstance(arguments, str)
            before, after = self._signs
            return before + await endpoint(arguments, **options) + after

        return around

    def wrap_streamable_tool_call(self, endpoint: Any, context: ToolContext) -> Any:
        async def around(arguments: str, **options: Any) -> AsyncIterator[str]:
            self.asked.append(("streamable", context.name, context.call_id))
            assert isinstance(arguments, str)
            yield self._signs[0]
            async with aclosing(endpoint(arguments, **options)) as pieces:
                async for piece in pieces:
                    assert isinstance(piece, str)
                    yield piece
            yield self._signs[1]

        return around

    def wrap_enhanced_invokable_tool_call(self, endpoint: Any, context: ToolContext) -> Any:
        async def around(argument: ToolArgument, **options: Any) -> ToolResult:
            self.asked.append(("enhanced_invokable", context.name, context.call_id))
            assert isinstance(argument, ToolArgument)
            result = await endpoint(argument, **options)
            before, after = self._signs
            return ToolResult((TextPart(before + result.text + after),))

        return around

    def wrap_enhanced_streamable_tool_call(self, endpoint: Any, context: ToolContext) -> Any:
        async def around(argument: ToolArgument, **options: Any) -> AsyncIterator[ToolResult]:
            self.asked.append(("enhanced_streamable", context.name, context.call_id))
            assert isinstance(argument, ToolArgument)
            yield ToolResult((TextPart(self._signs[0]),))
            async with aclosing(endpoint(argument, **options)) as pieces:
                async for piece in pieces:
                    yield piece
            yield ToolResult((TextPart(self._signs[1]),))

        return around


def call(speech: Speech, tools: Any, *, name: str = "echo", arguments: str = '{"text": "x"}', **choices: Any) -> Any:
    """Run an agent that makes one call; return its events, its result and the request of the second turn."""
    model = ScriptedModel([speech.calls(("c1", name, arguments)), "done"], speech.wire)
    events, result = asyncio.run(collect(ChatModelAgent(model=model, tools=tools, **choices).stream("go")))
    return events, result, model.requests[1]


def finished(events: list[Any]) -> ToolFinished:
    (event,) = [event for event in events if isinstance(event, ToolFinished)]
    return event


@every_wire
@every_kind
def test_step_1_the_event_sender_tells_the_result_after_all_processing(speech: Speech, kind: str):
    events, result, _ = call(
        speech,
        ToolsConfig(tools=[echo(kind)], tool_call_middlewares=[sandwich("1", "8")]),
        middlewares=[
            EveryCall(sandwich("3", "6")),
            PerKind("4", "5"),
            AgentMiddleware(wrap_tool_call=sandwich("2", "7")),
        ],
    )
    started = [event for event in events if isinstance(event, ToolStarted)]
    assert [(e.name, e.call_id, e.arguments, e.index, e.turn) for e in started] == [
        ("echo", "c1", '{"text": "x"}', 0, 1)
    ]
    assert finished(events).result.text == "1234>x5678"
    assert finished(events).text == "1234>x5678"
    assert result.messages[2] == speech.result("c1", "echo", "1234>x5678")


@every_wire
@every_kind
def test_steps_2_and_3_are_for_every_kind_of_tool_and_see_results_whole(speech: Speech, kind: str):
    seen: list[tuple[str, ...]] = []

    async def note(call: ToolCallRequest, proceed: CallTool) -> ToolResult:
        result = await proceed(call)
        seen.append((call.name, call.call_id, call.arguments, call.kind, result.text))
        return result

    call(
        speech,
        ToolsConfig(tools=[echo(kind)], tool_call_middlewares=[note]),
        middlewares=[AgentMiddleware(wrap_tool_call=note), EveryCall(note)],
    )
    assert seen == [("echo", "c1", '{"text": "x"}', kind, ">x")] * 3


@every_wire
@every_kind
def test_step_4_only_the_wrapper_for_the_kind_of_the_tool_is_called(speech: Speech, kind: str):
    outer, inner = PerKind("(", ")"), PerKind("[", "]")
    _, result, _ = call(speech, [echo(kind)], middlewares=[outer, inner])
    assert outer.asked == [(kind, "echo", "c1")]
    assert inner.asked == [(kind, "echo", "c1")]
    assert result.messages[2] == speech.result("c1", "echo", "([>x])")


@every_kind
def test_all_wrappers_of_a_call_are_one_ring_in_which_the_general_one_is_outside_the_specific_one(kind: str):
    class Both(PerKind):
        def __init__(self, *signs: str) -> None:
            super().__init__(signs[1], signs[2])
            self._outer = sandwich(signs[0], signs[3])

        async def wrap_tool_call(self, call: ToolCallRequest, proceed: CallTool) -> ToolResult:
            return await self._outer(call, proceed)

    _, result, _ = call(MESSAGE, [echo(kind)], middlewares=[Both(*"1278"), Both(*"3456")])
    assert result.messages[2] == MESSAGE.result("c1", "echo", "1234>x5678")


@every_wire
@every_kind
def test_step_5_the_tool_gets_the_arguments_that_the_wrappers_made(speech: Speech, kind: str):
    async def rewrite(call: ToolCallRequest, proceed: CallTool) -> ToolResult:
        return await proceed(replace(call, arguments='{"text": "rewritten"}'))

    started: list[Any] = []
    _, result, _ = call(
        speech,
        [echo(kind)],
        middlewares=[EveryCall(rewrite)],
        callbacks=Callbacks(
            on_start=lambda component, value: started.append((component.name, value)), kinds=frozenset({"tool"})
        ),
    )
    assert result.messages[2] == speech.result("c1", "echo", ">rewritten")
    assert started == [("echo", ToolArgument('{"text": "rewritten"}'))]


@every_kind
def test_callbacks_see_what_the_tool_itself_gave(kind: str):
    ended: list[Any] = []
    call(
        MESSAGE,
        [echo(kind)],
        middlewares=[PerKind("(", ")")],
        callbacks=Callbacks(on_end=lambda _component, value: ended.append(value), kinds=frozenset({"tool"})),
    )
    assert [result.text for result in ended] == [">x"]


def test_a_wrapper_may_answer_without_the_tool():
    async def answer(_call: ToolCallRequest, _proceed: CallTool) -> ToolResult:
        return ToolResult((TextPart("from the cache"),))

    ran: list[str] = []

    @tool
    async def work() -> str:
        """Work."""
        ran.append("work")
        return "worked"

    events, result, _ = call(MESSAGE, [work], name="work", arguments="{}", middlewares=[EveryCall(answer)])
    assert ran == []
    assert finished(events).text == "from the cache"
    assert result.messages[2] == MESSAGE.result("c1", "work", "from the cache")


def test_a_wrapper_may_call_the_tool_again():
    ran: list[str] = []

    @tool
    async def work() -> str:
        """Work, the second time."""
        ran.append("work")
        if len(ran) == 1:
            raise TimeoutError("not yet")
        return "worked"

    class Again(ChatModelAgentMiddleware[Any]):
        def wrap_invokable_tool_call(self, endpoint: Any, context: ToolContext) -> Any:
            async def twice(arguments: str, **options: Any) -> str:
                try:
                    return await endpoint(arguments, **options)
                except TimeoutError:
                    return await endpoint(arguments, **options)

            return twice

    events, result, _ = call(MESSAGE, [work], name="work", arguments="{}", middlewares=[Again()])
    assert ran == ["work", "work"]
    assert [type(event) for event in events if isinstance(event, ToolStarted | ToolFinished)] == [
        ToolStarted,
        ToolFinished,
    ]
    assert result.messages[2] == MESSAGE.result("c1", "work", "worked")


@pytest.mark.parametrize("streaming", [True, False])
@every_kind
def test_only_streaming_tools_in_a_streaming_run_send_pieces(kind: str, streaming: bool):
    model = ScriptedModel([MESSAGE.calls(("c1", "echo", '{"text": "x"}')), "done"])
    agent = ChatModelAgent(model=model, tools=[echo(kind)])
    events, _ = asyncio.run(collect(agent.stream("go", streaming=streaming)))
    pieces = [event.result.text for event in events if isinstance(event, ToolDelta)]
    assert pieces == ([">", "x"] if streaming and kind.endswith("streamable") else [])
    assert finished(events).text == ">x"
