"""What the durability tests share: turns and results on every wire, and runs read to their end."""

import asyncio
import json
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any

import suture
from suture import AgenticMessage, ChatModelAgent, Message, Run, RunResult, ToolCall
from suture.events import Event, RunFinished, RunStarted
from suture.messages import AssistantGenText, ContentBlock, FunctionToolCall, FunctionToolResult
from suture.stores import MemoryStore, SQLiteStore
from suture.testing import ScriptedModel

WIRES = ("message", "agentic", "openai-chat")

CANCELED = "Tool call {} with id {} was canceled - another message came in before it could be completed."
MALFORMED = "Tool call {} with id {} was not run - its arguments were malformed or cut off."
REJECTED = "Tool call {} with id {} was not run - it was rejected."
STOPPED = "Tool call {} with id {} was stopped before it finished - the run was canceled."
UNKNOWN = "Tool call {} with id {} has no recorded result - it may or may not have run. Check before running it again."

AnyStore = MemoryStore | SQLiteStore


def turn(*calls: tuple[Any, ...], text: str = "", wire: str = "message") -> Any:
    """Return an assistant's message with calls of the form (id, name) or (id, name, arguments)."""
    whole = [(call[0], call[1], _json(call[2] if len(call) > 2 else {})) for call in calls]
    if wire == "message":
        return Message.assistant(text, [ToolCall(*call) for call in whole])
    if wire == "agentic":
        said: list[ContentBlock] = [AssistantGenText(text)] if text else []
        return AgenticMessage.assistant([*said, *(FunctionToolCall(*call) for call in whole)])
    made = [
        {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for id, name, arguments in whole  # noqa: A001 - the word for it
    ]
    return {"role": "assistant", "content": text or None, "tool_calls": made}


def _json(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def results(messages: Iterable[Any]) -> list[tuple[str, str]]:
    """Return all results in these messages, as (id, text)."""
    found: list[tuple[str, str]] = []
    for message in messages:
        if isinstance(message, Message):
            if message.role == "tool":
                found.append((message.tool_call_id, message.content))
        elif isinstance(message, AgenticMessage):
            blocks = [block for block in message.content_blocks if isinstance(block, FunctionToolResult)]
            found += [(block.call_id, "".join(getattr(part, "text", "") for part in block.content)) for block in blocks]
        elif message["role"] == "tool":
            found.append((message["tool_call_id"], message["content"]))
    return found


def said(message: Any) -> str:
    """Return the text of a message."""
    if isinstance(message, Message):
        return message.content
    if isinstance(message, AgenticMessage):
        return "".join(getattr(block, "text", "") for block in message.content_blocks)
    return message["content"] or ""


def roles(messages: Iterable[Any]) -> list[str]:
    """Return who speaks, message by message; a result speaks as the tool."""
    found: list[str] = []
    for message in messages:
        role = message["role"] if isinstance(message, dict) else message.role
        found.append("tool" if results([message]) else role)
    return found


def acceptable(messages: Sequence[Any], wire: str = "message") -> bool:
    """Tell whether the wire's own provider would take these messages."""
    return suture.check(list(messages), wire=wire).acceptable


def make(
    replies: Any, *tools: Any, wire: str = "message", **settings: Any
) -> tuple[ChatModelAgent[Any], ScriptedModel]:
    """Return an agent called `a`, and its scripted model."""
    model = ScriptedModel(replies, wire=wire, chunk_size=settings.pop("chunk_size", None))
    return ChatModelAgent(**{"name": "a", "model": model, "tools": tools, **settings}), model


async def seen(run: Run[Any]) -> tuple[list[Event], RunResult[Any]]:
    """Read all events of a run that does not fail; return them and its result."""
    events: list[Event] = [event async for event in run]
    check_stream(events)
    return events, await run.result()


def start(run: Run[Any]) -> asyncio.Task[RunResult[Any]]:
    """Let a run begin; the task gives its result."""

    async def ended() -> RunResult[Any]:
        return await run.result()

    return asyncio.ensure_future(ended())


def check_stream(events: Sequence[Event]) -> None:
    """Check that no event is missing."""
    assert [event.sequence for event in events] == list(range(len(events)))
    assert isinstance(events[0], RunStarted)
    assert isinstance(events[-1], RunFinished)


def names(events: Iterable[Event], *kinds: type[Event]) -> list[tuple[str, str]]:
    """Return kind and call id of the events of these kinds."""
    return [(type(event).__name__, getattr(event, "call_id", "")) for event in events if isinstance(event, kinds)]


async def journals(store: AnyStore) -> Mapping[str, list[bytes]]:
    """Return everything in the store."""
    return {run: await store.load(run) for run in await store.runs()}


def play(scene: Coroutine[Any, Any, Any], *, patience: float = 20) -> Any:
    """Run a scene, for so many seconds at most, and check that it leaves no task behind."""

    async def watched() -> Any:
        async with asyncio.timeout(patience):
            value = await scene
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert left == set()
        return value

    return asyncio.run(watched())
