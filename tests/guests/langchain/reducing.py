"""What the tests of reduction share: agents with long tools, run both ways, and what their models were sent."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import BaseMessage, ToolMessage, convert_to_openai_messages
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from suture.integrations.langchain import ToolReductionMiddleware
from suture.stores import FileBackend, MemoryBackend
from tests.guests.langchain.recording import RecordingModel, asks, call

WAYS = ("sync", "async")
MOSTLY_SYNC = ("sync", pytest.param("async", marks=pytest.mark.soak))
MOSTLY_ASYNC = ("async", pytest.param("sync", marks=pytest.mark.soak))


@tool
def log(lines: int, day: int = 1) -> str:
    """Read the harbour's log of a day."""
    return log_of(lines, day)


def log_of(lines: int, day: int = 1) -> str:
    return "\n".join(f"{line:05d} day {day}: ship {line % 97} passed" for line in range(1, lines + 1))


def config(thread: str = "thread-1") -> Any:
    return {"configurable": {"thread_id": thread}}


def say(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def reads(lines: int, number: int = 1) -> Any:
    """Return a turn that reads the log of a day."""
    return asks(call(f"call_{number}", "log", lines=lines, day=number))


ROUNDS = [reads(100, number) for number in range(1, 6)]
"""Five rounds of about 700 tokens each."""
LIMIT = 3_700
"""More tokens than four such rounds and the tools have, fewer than five have."""


def shown(messages: Sequence[BaseMessage]) -> list[str]:
    """Return what has become of each result: cleared, or the day that it is of."""
    return [
        "cleared" if text_of(result).startswith("<persisted-output>Tool result") else text_of(result).split()[2][0]
        for result in results(messages)
    ]


def agent(replies: Sequence[Any], middleware: Sequence[Any], **options: Any) -> tuple[Any, RecordingModel]:
    """Return an agent with a checkpointer, and its model."""
    model = RecordingModel(replies=list(replies))
    given = {"tools": [log], "checkpointer": InMemorySaver(), **options}
    return create_agent(model, middleware=list(middleware), **given), model


def invoke(way: str, made: Any, given: Any, thread: str = "thread-1") -> list[BaseMessage]:
    """Run an agent and return its messages."""
    if way == "sync":
        return made.invoke(given, config(thread))["messages"]
    return asyncio.run(made.ainvoke(given, config(thread)))["messages"]


def without_thread(way: str, made: Any, given: Any) -> list[BaseMessage]:
    """Run an agent that has no checkpointer, and return its messages."""
    if way == "sync":
        return made.invoke(given)["messages"]
    return asyncio.run(made.ainvoke(given))["messages"]


def run(way: str, replies: Sequence[Any], backend: Any = None, **settings: Any) -> list[BaseMessage]:
    """Run an agent with reduction once, and return its messages."""
    middleware = ToolReductionMiddleware(MemoryBackend() if backend is None else backend, **settings)
    return invoke(way, agent(replies, [middleware])[0], say("go"))


def results(messages: Sequence[BaseMessage]) -> list[ToolMessage]:
    return [message for message in messages if isinstance(message, ToolMessage)]


def text_of(message: BaseMessage) -> str:
    return str(message.content)


def saved_in(backend: FileBackend) -> dict[str, str]:
    """Return all that a backend holds."""

    async def read() -> dict[str, str]:
        found: dict[str, str] = {}
        for path in await backend.paths():
            found[path] = b"".join([chunk async for chunk in backend.read(path)]).decode()
        return found

    return asyncio.run(read())


def payload(messages: Sequence[BaseMessage]) -> list[str]:
    """Return what a provider is sent, message by message."""
    return [json.dumps(each) for each in convert_to_openai_messages(list(messages))]


def path_in(message: BaseMessage) -> str:
    """Return the path that a notice names."""
    return text_of(message).split("saved to: ")[1].split("\n")[0]


def reads_back(name: str = "read_file", key: str = "path", **arguments: Any) -> Callable[[Sequence[BaseMessage]], Any]:
    """Return a turn that reads what the first notice in the history names."""

    def turn(messages: Sequence[BaseMessage]) -> Any:
        notice = next(message for message in results(messages) if "saved to: " in text_of(message))
        return asks(call(f"read_{len(messages)}", name, **{key: path_in(notice)}, **arguments))

    return turn
