"""Streams that do not come to their end: a consumer that leaves, a run that is cancelled, a tool that hangs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from suture import ChatModelAgent, ChatModelAgentMiddleware, Outcome, ToolResult, tool
from suture.messages import TextPart
from suture.middleware import ToolReduction, ToolReductionConfig, TruncResult
from suture.stores import LocalBackend, MemoryBackend, SQLiteBackend
from suture.testing import ScriptedModel
from tests.agent.reduction._backends import AsyncShelf, Shelf, tree
from tests.agent.reduction._tooling import asks, drive, each_stream, on_each_wire, results, said

LIMIT = 100
MEGABYTE = "m" * 1_000_000


class Source:
    """A tool that streams so many pieces, then waits for ever; it knows how far it came and whether it was closed."""

    def __init__(self, kind: str, *pieces: str) -> None:
        self.pieces = pieces
        self.given = 0
        self.waits = asyncio.Event()
        self.closed = 0
        function = self._streamable if kind == "streamable" else self._enhanced
        self.tool = tool(name="dump", description="Dump.")(function)

    async def _streamable(self) -> AsyncIterator[str]:
        try:
            for piece in self.pieces:
                self.given += 1
                yield piece
            self.waits.set()
            await asyncio.Event().wait()
        finally:
            self.closed += 1

    async def _enhanced(self) -> AsyncIterator[ToolResult]:
        try:
            for piece in self.pieces:
                self.given += 1
                yield ToolResult([TextPart(piece)])
            self.waits.set()
            await asyncio.Event().wait()
        finally:
            self.closed += 1


def backends(directory: Path) -> dict[str, Any]:
    return {
        "local": LocalBackend(directory / "files"),
        "memory": MemoryBackend(),
        "sqlite": SQLiteBackend(directory / "files.db"),
        "plain": Shelf(),
        "async": AsyncShelf(),
    }


each_backend = pytest.mark.parametrize("where", ["local", "memory", "sqlite", "plain", "async"])


async def assert_nothing_is_left(backend: Any, directory: Path) -> None:
    """Fail if a file, or a temporary one, was left behind."""
    if isinstance(backend, Shelf):
        assert backend.files == {}
    else:
        assert await backend.paths() == []
    assert [name for name in tree(directory) if not name.startswith("files.db")] == []


@each_stream
@each_backend
@on_each_wire
def test_a_run_that_is_cancelled_while_it_streams_to_the_backend_leaves_no_file(
    tmp_path: Path, wire: str, where: str, kind: str
):
    async def use() -> None:
        source = Source(kind, "begin", MEGABYTE, MEGABYTE)
        backend = backends(tmp_path)[where]
        model: ScriptedModel[Any] = ScriptedModel([asks(wire, ("c0", "dump")), "ok"], wire)
        reduction = ToolReduction(backend, max_length_for_trunc=LIMIT)
        run = ChatModelAgent(model=model, tools=[source.tool], middlewares=[reduction]).stream("go")
        waiting = asyncio.ensure_future(run.__aiter__().__anext__())
        await source.waits.wait()
        result = await run.cancel()
        with suppress(StopAsyncIteration):
            await waiting
        assert result.outcome == Outcome.CANCELLED
        assert source.closed == 1
        ((call_id, text, _),) = results(wire, result.messages)
        assert call_id == "c0"
        assert "persisted-output" not in text  # there is no file that it could name
        await assert_nothing_is_left(backend, tmp_path)

    asyncio.run(use())


class Leaves(ChatModelAgentMiddleware[Any]):
    """Stands outside of ToolReduction; gives the call up once the tool hangs, and says so."""

    def __init__(self, source: Source) -> None:
        self.source = source

    async def wrap_tool_call(self, call: Any, proceed: Any) -> ToolResult:
        work = asyncio.ensure_future(proceed(call))
        await self.source.waits.wait()
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work
        return ToolResult([TextPart("left")])


@each_stream
@each_backend
@pytest.mark.parametrize("pieces", [("begin", MEGABYTE, MEGABYTE), ("begin",)], ids=["past the limit", "before it"])
def test_a_wrapper_that_gives_a_stream_up_closes_the_source_and_leaves_no_file(
    tmp_path: Path, where: str, kind: str, pieces: tuple[str, ...]
):
    async def use() -> None:
        source = Source(kind, *pieces)
        backend = backends(tmp_path)[where]
        reduction = ToolReduction(backend, max_length_for_trunc=LIMIT)
        seen = await drive([Leaves(source), reduction], [source.tool], [("c0", "dump")])
        assert seen.text.endswith("left")
        assert "persisted-output" not in seen.text
        assert source.closed == 1
        await assert_nothing_is_left(backend, tmp_path)

    asyncio.run(use())


@each_stream
def test_a_consumer_that_leaves_while_text_is_held_back_closes_the_source(kind: str):
    async def use() -> None:
        source = Source(kind, "b" * LIMIT, "held")
        backend = MemoryBackend()
        reduction = ToolReduction(backend, max_length_for_trunc=LIMIT)
        seen = await drive([Leaves(source), reduction], [source.tool], [("c0", "dump")])
        assert seen.text.endswith("left")
        assert source.closed == 1
        assert await backend.paths() == []

    asyncio.run(use())


@each_stream
@each_backend
def test_a_tool_that_hangs_after_the_limit_is_given_up_and_what_came_is_there(tmp_path: Path, where: str, kind: str):
    """A timeout is an error of the source: what came is saved."""

    async def use() -> None:
        source = Source(kind, "begin", MEGABYTE)
        source.tool = tool(name="dump", description="Dump.", timeout=0.5)(
            source._streamable if kind == "streamable" else source._enhanced
        )
        backend = backends(tmp_path)[where]
        reduction = ToolReduction(backend, root_dir="/r", max_length_for_trunc=LIMIT)
        seen = await drive(reduction, [source.tool], [("c0", "dump")])
        assert "TimeoutError" in seen.text
        assert len(seen.text) < 1_000
        assert source.closed == 1
        if isinstance(backend, Shelf):
            assert backend.files == {"/r/trunc/c0": "begin" + MEGABYTE}
        else:
            assert await backend.size("/r/trunc/c0") == 5 + len(MEGABYTE)

    asyncio.run(use())


class HandlerError(Exception):
    pass


@each_stream
@pytest.mark.parametrize("drained", [0, 1])
def test_a_handler_that_fails_on_a_stream_leaves_no_source_open(kind: str, drained: int):
    async def use() -> None:
        source = Source(kind, "begin", "more", "more")

        async def handler(detail: Any) -> TruncResult:
            for _ in range(drained):
                await anext(detail.stream_tool_result)
            raise HandlerError("no idea")

        entry = ToolReductionConfig(trunc_handler=handler)
        reduction = ToolReduction(MemoryBackend(), tool_config={"dump": entry})
        seen = await drive(reduction, [source.tool], [("c0", "dump")])
        assert "HandlerError: no idea" in seen.text
        # A generator that was never asked has nothing to close.
        assert source.closed == (1 if source.given else 0)
        assert source.given <= drained + 1

    asyncio.run(use())


@each_stream
def test_a_handler_that_shows_something_else_without_reading_leaves_no_source_open(kind: str):
    async def use() -> None:
        source = Source(kind, "begin", "more", "more")

        async def other() -> AsyncIterator[ToolResult]:
            yield ToolResult([TextPart("other")])

        async def handler(detail: Any) -> TruncResult:
            assert said(await anext(detail.stream_tool_result)) == "begin"
            return TruncResult(need_trunc=True, stream_tool_result=other())

        entry = ToolReductionConfig(trunc_handler=handler)
        reduction = ToolReduction(MemoryBackend(), tool_config={"dump": entry})
        seen = await drive(reduction, [source.tool], [("c0", "dump")])
        assert seen.text == "other"
        assert source.closed == 1

    asyncio.run(use())


@each_stream
def test_a_cancelled_sibling_does_not_take_a_finished_file_with_it(kind: str, tmp_path: Path):
    async def use() -> None:
        hanging, done = Source(kind, "begin", MEGABYTE), asyncio.Event()

        @tool
        async def quick() -> AsyncIterator[str]:
            """Dump a lot and end."""
            yield MEGABYTE
            done.set()

        backend = LocalBackend(tmp_path / "files")
        model: ScriptedModel[Any] = ScriptedModel([asks("message", ("a", "quick"), ("b", "dump")), "ok"])
        reduction = ToolReduction(backend, root_dir="/r", max_length_for_trunc=LIMIT)
        agent = ChatModelAgent(model=model, tools=[quick, hanging.tool], middlewares=[reduction])
        finished = asyncio.Event()
        run = agent.stream("go")

        async def listen() -> None:
            async for event in run:
                if type(event).__name__ == "ToolFinished":
                    finished.set()

        listener = asyncio.ensure_future(listen())
        await done.wait()
        await finished.wait()
        await hanging.waits.wait()
        result = await run.cancel()
        await listener
        (first, second) = results("message", result.messages)
        assert "Full output saved to: /r/trunc/a." in first[1]
        assert "persisted-output" not in second[1]
        assert await backend.paths() == ["/r/trunc/a"]
        assert tree(tmp_path) == ["files/r/trunc/a"]

    asyncio.run(use())
