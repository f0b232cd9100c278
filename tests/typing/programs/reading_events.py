"""Events: matched, narrowed, and sent."""

import asyncio
from collections.abc import Mapping
from typing import Any, assert_never, assert_type

import msgspec

from suture import ChatModelAgent, Delta, Message, TokenUsage, ToolCall, ToolContext, ToolResult, send_event, tool
from suture.events import (
    AnyEvent,
    Custom,
    Event,
    HistoryRewritten,
    Interrupted,
    MessageDelta,
    MessageFinished,
    ModelStarted,
    RetryScheduled,
    RunFinished,
    RunStarted,
    ToolDelta,
    ToolFinished,
    ToolRetried,
    ToolStarted,
    ToolWaiting,
)
from suture.testing import ScriptedModel


def tell(event: AnyEvent) -> str:  # noqa: C901, PLR0911, PLR0912 - one for each event
    match event:
        case RunStarted(messages=count, resumed=True):
            assert_type(count, int)
            return f"again, with {count}"
        case RunStarted():
            return f"{event.agent} starts"
        case ModelStarted(turn=turn, attempt=attempt):
            return f"turn {turn}, attempt {attempt}"
        case MessageDelta(text=text, delta=delta):
            assert_type(text, str)
            assert_type(delta, Delta)
            return text
        case MessageFinished():
            assert_type(event.usage, TokenUsage | None)
            return event.text
        case ToolStarted(name=name, arguments=arguments):
            return name + arguments
        case ToolWaiting(name=name):
            return f"may {name} run?"
        case ToolRetried():
            return "anew"
        case ToolDelta() | ToolFinished():
            assert_type(event.result, ToolResult)
            return event.call_id
        case HistoryRewritten(by=who, report=report):
            assert_type(report, Mapping[str, Any] | None)
            return who
        case RetryScheduled(error=error, delay=delay):
            return f"{error} in {delay:.1f} s"
        case Interrupted(interrupts=(first, *_)):
            return first.id
        case Interrupted():
            return "nobody is asked"
        case RunFinished(outcome="finished", text=text):
            return text
        case RunFinished():
            return event.outcome
        case Custom("progress", data):
            return f"{data:.0%}"
        case Custom(name=name):
            return name
        case _:
            assert_never(event)


def place(event: Event) -> tuple[str, int]:
    assert_type(event.run_path, tuple[str, ...])
    assert_type(event.time, float)
    return event.run_id, event.sequence


def tool_of(event: AnyEvent) -> str | None:
    if isinstance(event, ToolStarted | ToolFinished):
        return event.name
    return None


@tool
async def dig(depth: int, context: ToolContext) -> str:
    """Dig."""
    for done in range(depth):
        send_event(Custom("progress", done / depth))
    send_event(Custom(name=context.name))
    return "dug"


async def main() -> None:
    agent = ChatModelAgent(
        name="digger",
        model=ScriptedModel(
            [Message.assistant(tool_calls=[ToolCall("1", "dig", '{"depth": 2}')]), "done"], chunk_size=3
        ),
        tools=[dig],
    )
    told: list[str] = []
    tools: set[str] = set()
    last: Event = Event()
    async for event in agent.stream("dig"):
        told.append(tell(event))
        if (name := tool_of(event)) is not None:
            tools.add(name)
        if isinstance(event, MessageFinished):
            message: Message = event.message
            assert message.role == "assistant"
        assert msgspec.json.encode(event)
        last = event
    assert place(last)[1] == len(told) - 1
    assert told[-1] == "done"
    assert {"0%", "50%", "dig"} <= set(told)
    assert tools == {"dig"}


if __name__ == "__main__":
    asyncio.run(main())
