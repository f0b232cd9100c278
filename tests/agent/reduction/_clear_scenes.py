"""What the tests of the clear phase share: an agent that looks things up, and what its model was sent."""

from collections.abc import AsyncIterable, AsyncIterator, Sequence
from typing import Any

import pytest

from suture import ChatModelAgent, tool
from suture.events import HistoryRewritten
from suture.middleware import ToolReduction
from suture.stores import MemoryBackend
from suture.testing import ScriptedModel
from tests.reduction.rounds import long, read, saved_at
from tests.shapes.notation import Step, call, result, turn, user
from tests.shapes.wires import render

WIRES = ("message", "agentic", "openai-chat")
on_each_wire = pytest.mark.parametrize("wire", WIRES)


@tool
async def look(label: str) -> str:
    """Look something up."""
    return long(label)


@tool
async def peek(label: str) -> str:
    """Look at something that is soon forgotten."""
    return f"ok {label}"


def steps_of(*labels: str) -> list[Step]:
    """Return a history in which all of these were looked up."""
    rounds = [[turn(call(label, "look", {"label": label})), result(label, long(label), "look")] for label in labels]
    return [user("go"), *(step for one in rounds for step in one)]


def history(wire: str, *labels: str) -> list[Any]:
    """Return the same on a wire."""
    return render(wire, steps_of(*labels)).messages


def message(wire: str, step: Step) -> Any:
    (made,) = render(wire, [step]).messages
    return made


def asks(wire: str, *labels: str, name: str = "look") -> Any:
    """Return a model's turn that looks all of these up at once; a call's id is its label."""
    return message(wire, turn(*(call(label, name, {"label": label}) for label in labels)))


def reads(wire: str, path: str) -> Any:
    """Return a model's turn that reads a file; the call's id is `reader`."""
    return message(wire, turn(call("reader", "read_file", {"path": path})))


def reducing(backend: Any = None, **choices: Any) -> ToolReduction:
    """Return a reduction that clears everything but the last round, to files below `/r`."""
    settings = {"root_dir": "/r", "max_tokens_for_clear": 0, "skip_truncation": True, **choices}
    return ToolReduction(backend, **settings)


def make(
    wire: str, replies: Any, *middlewares: Any, tools: Sequence[Any] = (), **settings: Any
) -> tuple[ChatModelAgent[Any], ScriptedModel[Any]]:
    """Return an agent with `look`, and its model."""
    model: ScriptedModel[Any] = ScriptedModel(replies, wire=wire)
    made = {"name": "a", "tools": [look, peek, *tools], "middlewares": middlewares, **settings}
    return ChatModelAgent(model=model, **made), model


def sent(model: ScriptedModel[Any], number: int = -1) -> list[Any]:
    return list(model.requests[number].messages)


def said(wire: str, messages: Sequence[Any]) -> dict[str, str]:
    """Return each result's text by its call's id."""
    return {one.id: one.text for one in read(wire, messages)}


def placed(*labels: str) -> dict[str, str]:
    """Return what stands in place of these results."""
    return {label: saved_at(f"/r/clear/{label}") for label in labels}


def whole(*labels: str) -> dict[str, str]:
    return {label: long(label) for label in labels}


async def files(backend: Any) -> dict[str, str]:
    """Return everything that a backend keeps, each path with its leading slash."""
    found: dict[str, str] = {}
    for path in await backend.paths():
        content = b"".join([chunk async for chunk in backend.read(path)])
        found[f"/{path.lstrip('/')}"] = content.decode("utf-8", "surrogatepass")
    return found


def filed(*labels: str) -> dict[str, str]:
    """Return the files of these results."""
    return {f"/r/clear/{label}": long(label) for label in labels}


def rewrites(events: Sequence[Any]) -> list[HistoryRewritten]:
    return [event for event in events if isinstance(event, HistoryRewritten)]


class Counting(MemoryBackend):
    """Keeps a list of all that was written, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[str] = []

    async def write(self, path: str, content: str | bytes) -> None:
        self.written.append(path)
        await super().write(path, content)


class Faulty:
    """A backend around another one: one of its effects fails, counted from 1."""

    def __init__(self, inner: Any, fails_at: int | None = None, *, deletes: bool = True) -> None:
        self.inner, self.fails_at, self.deletes = inner, fails_at, deletes
        self.effects = 0

    def effect(self) -> None:
        self.effects += 1
        if self.effects == self.fails_at:
            raise OSError("no space left on device")

    async def write(self, path: str, content: str | bytes) -> None:
        self.effect()
        await self.inner.write(path, content)

    async def write_stream(self, path: str, chunks: AsyncIterable[bytes]) -> int:
        self.effect()
        return await self.inner.write_stream(path, chunks)

    def read(self, path: str, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        return self.inner.read(path, start, stop)

    async def size(self, path: str) -> int:
        return await self.inner.size(path)

    async def delete(self, path: str) -> None:
        if not self.deletes:
            raise OSError("read-only file system")
        await self.inner.delete(path)

    async def paths(self, prefix: str = "") -> list[str]:
        return await self.inner.paths(prefix)

    async def expire(self, seconds: float) -> int:
        return await self.inner.expire(seconds)
