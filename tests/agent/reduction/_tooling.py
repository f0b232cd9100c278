"""What the tests of truncation share: tools of every kind, a run of them, and what was seen of it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pytest

from suture import ChatModelAgent, Message, RunResult, ToolResult, tool
from suture.events import Custom, ToolDelta, ToolFinished
from suture.messages import AgenticMessage, FunctionToolResult, Part, TextPart, UserInputText
from suture.middleware import ToolReduction
from suture.testing import ScriptedModel
from tests.shapes.notation import call, turn
from tests.shapes.wires import render

WIRES = ("message", "agentic", "openai-chat")
WHOLE = ("invokable", "enhanced_invokable")
STREAMS = ("streamable", "enhanced_streamable")
KINDS = WHOLE + STREAMS
THREADS = ("invokable in a thread", "streamable in a thread")

on_each_wire = pytest.mark.parametrize("wire", WIRES)
each_kind = pytest.mark.parametrize("kind", KINDS)
each_whole = pytest.mark.parametrize("kind", WHOLE)
each_stream = pytest.mark.parametrize("kind", STREAMS)

FEW = "0123456789abcdefghijklmnopqrstuvwxyz"


def text_of(length: int) -> str:
    """Return a text in which every place looks different from its neighbours."""
    return "".join(f"{number:05d} {FEW[number % 36]}\n" for number in range(length // 8 + 1))[:length]


def made(kind: str, *pieces: str, name: str = "dump", error: Exception | None = None) -> Any:
    """Return a tool of a kind that gives these texts, streamed or together, and then perhaps fails."""

    def fail() -> None:
        if error is not None:
            raise error

    async def invokable() -> str:
        fail()
        return "".join(pieces)

    def in_a_thread() -> str:
        fail()
        return "".join(pieces)

    async def streamable() -> AsyncIterator[str]:
        for piece in pieces:
            yield piece
        fail()

    def streamable_in_a_thread() -> Iterator[str]:
        yield from pieces
        fail()

    async def enhanced_invokable() -> ToolResult:
        fail()
        return ToolResult([TextPart("".join(pieces))])

    async def enhanced_streamable() -> AsyncIterator[ToolResult]:
        for piece in pieces:
            yield ToolResult([TextPart(piece)])
        fail()

    functions: dict[str, Callable[..., Any]] = {
        "invokable": invokable,
        "invokable in a thread": in_a_thread,
        "streamable": streamable,
        "streamable in a thread": streamable_in_a_thread,
        "enhanced_invokable": enhanced_invokable,
        "enhanced_streamable": enhanced_streamable,
    }
    return tool(name=name, description="Dump.")(functions[kind])


def giving(*parts: Part, name: str = "dump") -> Any:
    """Return a tool that gives these parts at once."""

    async def give() -> ToolResult:
        return ToolResult(parts)

    return tool(name=name, description="Dump.")(give)


def streaming(*results: Sequence[Part] | Exception, name: str = "dump") -> Any:
    """Return a tool that gives one result after another."""

    async def give() -> AsyncIterator[ToolResult]:
        for each in results:
            if isinstance(each, Exception):
                raise each
            yield ToolResult(each)

    return tool(name=name, description="Dump.")(give)


def asks(wire: str, *made_calls: tuple[str, str]) -> Any:
    """Return a turn of a model with these calls, each (id, tool)."""
    (message,) = render(wire, [turn(*(call(id_, name, {}) for id_, name in made_calls))]).messages
    return message


def _of_message(message: Message) -> list[tuple[str, str, bool]]:
    if message.role != "tool":
        return []
    parts = [part.text for part in message.user_input_multi_content if isinstance(part, TextPart)]
    return [(message.tool_call_id, message.content or "".join(parts), message.is_error)]


def _of_agentic(message: AgenticMessage) -> list[tuple[str, str, bool]]:
    return [
        (block.call_id, "".join(p.text for p in block.content if isinstance(p, UserInputText)), block.is_error)
        for block in message.content_blocks
        if isinstance(block, FunctionToolResult)
    ]


def _of_chat(message: dict[str, Any]) -> list[tuple[str, str, bool]]:
    if message["role"] != "tool":
        return []
    content = message["content"]
    text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    return [(message["tool_call_id"], text, False)]  # this wire does not tell


_RESULTS: dict[str, Callable[[Any], list[tuple[str, str, bool]]]] = {
    "message": _of_message,
    "agentic": _of_agentic,
    "openai-chat": _of_chat,
}


def results(wire: str, messages: Sequence[Any]) -> list[tuple[str, str, bool]]:
    """Return every result of a history: call id, text, whether it is told as a failure."""
    return [each for message in messages for each in _RESULTS[wire](message)]


@dataclass
class Seen:
    """What was seen of a run."""

    wire: str
    model: ScriptedModel[Any]
    events: list[Any]
    run: Any
    error: Exception | None

    @property
    def result(self) -> RunResult[Any]:
        """What there is of the run, also if it failed."""
        assert self.run.final_result is not None
        return self.run.final_result

    @property
    def kept(self) -> list[str]:
        """The texts of the results in the history."""
        return [text for _, text, _ in results(self.wire, self.result.messages)]

    def sent(self, number: int = -1) -> list[str]:
        """Return the texts of the results that the model was sent."""
        return [text for _, text, _ in results(self.wire, self.model.requests[number].messages)]

    @property
    def text(self) -> str:
        """The text of the one result, the same in the history and in what the model was sent."""
        self.unharmed()
        (kept,) = self.kept
        assert self.sent() == [kept]
        return kept

    def unharmed(self) -> None:
        """Fail unless the run came to its end."""
        if self.error is not None:
            raise self.error
        assert self.result.outcome == "finished"
        assert self.result.output == "ok"

    def deltas(self, call_id: str | None = None) -> list[str]:
        """Return the texts of the pieces that were told as they came."""
        events = [event for event in self.events if isinstance(event, ToolDelta)]
        return [said(event.result) for event in events if call_id in {None, event.call_id}]

    def finished(self, number: int = 0) -> ToolResult:
        """Return what a tool gave, as the events tell it."""
        return [event for event in self.events if isinstance(event, ToolFinished)][number].result

    def custom(self) -> list[Custom]:
        """Return the events that the middleware sent of output that was not saved."""
        return [event for event in self.events if isinstance(event, Custom) and event.name == "tool_output_not_saved"]


def said(result: ToolResult) -> str:
    """Return the text in a result."""
    return "".join(part.text for part in result.parts if isinstance(part, TextPart))


async def drive(
    reduction: ToolReduction | Sequence[Any],
    tools: Sequence[Any],
    *rounds: Sequence[tuple[str, str]],
    wire: str = "message",
    choices: dict[str, Any] | None = None,
    **options: Any,
) -> Seen:
    """Run an agent whose model makes these calls, round after round, then says ok."""
    model: ScriptedModel[Any] = ScriptedModel([*(asks(wire, *each) for each in rounds), "ok"], wire)
    middlewares = reduction if isinstance(reduction, Sequence) else [reduction]
    agent = ChatModelAgent(model=model, tools=tools, middlewares=middlewares, **options)
    run: Any = cast("Any", agent.stream)("go", **(choices or {}))
    events: list[Any] = []
    error: Exception | None = None
    try:
        async for event in run:
            events.append(event)  # noqa: PERF401 - those before an error, too
    except Exception as raised:  # noqa: BLE001 - the test looks at it
        error = raised
    return Seen(wire, model, events, run, error)


def play(
    reduction: ToolReduction | Sequence[Any],
    tools: Any,
    *rounds: Sequence[tuple[str, str]],
    **options: Any,
) -> Seen:
    """Run it to its end; without rounds, one call c0 of the one tool."""
    given = tools if isinstance(tools, Sequence) else [tools]
    calls = rounds or [[("c0", "dump")]]
    return asyncio.run(drive(reduction, given, *calls, **options))
