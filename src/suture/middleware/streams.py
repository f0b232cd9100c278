"""Streamed output: passed on up to the limit, saved while it arrives, or shown to a tool's own handler first."""

import asyncio
import tempfile
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, TypeVar, cast

from msgspec.structs import replace

from suture._aio import close, closing, settle, wait_to_the_end
from suture.errors import OffloadError
from suture.kernel import Sink, ToolCallRequest
from suture.messages import TextPart, ToolArgument, ToolContext, ToolResult
from suture.middleware.record import ATTEMPTS, Record, is_taken, unsaved, until_done
from suture.reduction import Saved, ToolDetail, Writer
from suture.reduction.draft import SAVED
from suture.reduction.phases import name_file, text_length
from suture.reduction.texts import LONGEST_NOTICE, folded, is_truncated_text, streamed_text
from suture.stores import FileBackend, encode_text

T = TypeVar("T")
_CHUNK = 64 * 1024
"""How many characters of a stream are collected before they are written."""
_CLAIMS: set[tuple[int, str]] = set()
"""Backends and paths that streams of this process use; their files do not exist before the streams end."""


def detail_of(call: ToolCallRequest) -> ToolDetail:
    """Return a call in the form for handlers."""
    return ToolDetail(tool_context=ToolContext(call.name, call.call_id), tool_argument=ToolArgument(call.arguments))


def text_of(result: ToolResult) -> str:
    """Return the text of a result."""
    return "".join([part.text for part in result.parts if isinstance(part, TextPart)])


def without_mark(result: ToolResult) -> ToolResult:
    """Return a result of a tool without a mark of ours, which a tool must not set."""
    if SAVED not in result.extra:
        return result
    return replace(result, extra={key: value for key, value in result.extra.items() if key != SAVED})


class _Pipe(asyncio.Queue[T | None]):
    """Carries items from one task to another; the writer waits while the reader is behind."""

    async def write(self, item: T) -> None:
        """Write an item, once the one before was read."""
        await self.join()
        self.put_nowait(item)

    def end(self) -> None:
        """Mark the end of the items."""
        self.put_nowait(None)

    def clear(self, _: object = None) -> None:
        """Drop what was not read."""
        while not self.empty():
            self.get_nowait()
            self.task_done()

    async def read(self) -> AsyncIterator[T]:
        """Yield the items."""
        while (item := await self.get()) is not None:
            self.task_done()
            yield item


class _Upload:
    """Writes a text while it arrives, in its own task. A backend that takes only whole texts gets it from a spool."""

    def __init__(self, backend: Writer, path: str) -> None:
        self.length = self._size = 0
        self._pipe: _Pipe[bytes] = _Pipe()
        self._held: list[str] = []
        self._task = asyncio.ensure_future(self._write(backend, path))
        self._task.add_done_callback(self._pipe.clear)

    async def write(self, text: str) -> None:
        """Take more of the text."""
        self.length += len(text)
        self._held.append(text)
        self._size += len(text)
        if self._size >= _CHUNK:
            await self._flush()

    async def close(self) -> None:
        """Wait until everything is written; raise the error if writing failed."""
        if self._held:
            await self._flush()
        self._pipe.end()
        await until_done(self._task)

    async def abort(self) -> None:
        """Stop, and leave nothing behind."""
        self._task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await wait_to_the_end(self._task)

    async def _flush(self) -> None:
        data = encode_text("".join(self._held))
        self._held, self._size = [], 0
        if not self._task.done():  # otherwise nobody reads it
            await self._pipe.write(data)

    async def _write(self, backend: Any, path: str) -> None:
        if isinstance(backend, FileBackend):
            await backend.write_stream(path, self._pipe.read())
            return
        with tempfile.TemporaryFile() as spool:
            async with closing(self._pipe.read()) as chunks:
                async for data in chunks:
                    spool.write(data)
            spool.seek(0)
            await settle(backend.write(path, spool.read().decode("utf-8", "surrogatepass")))


class TruncatingSink:
    """Passes on the first characters of a stream and everything that is not text; saves the whole if there is more.

    It holds back a little more than the limit, and media in between: an output that ends there passes completely and in
    order, because a notice would not be shorter. Of the text, only the beginning and the length of one notice are held.
    """

    def __init__(self, by: Any, record: Record, call: ToolCallRequest) -> None:
        self._by, self._record, self._call = by, record, call
        self._outer = cast("Sink", call.sink)
        self.whole: ToolResult | None = None
        """The whole result, to recognise it when it comes back."""
        self._upload: _Upload | None = None
        self._claimed = (0, "")
        """A path that no other stream may use until this one has ended."""
        self._begin()

    def _begin(self) -> None:
        self._head: list[str] = []
        self._held: list[ToolResult] = []
        self._passed = self._waiting = 0
        self._is_over = False
        self._path = self._error = ""
        self._extra: dict[str, Any] = {}

    async def open(self) -> None:
        """Begin; what was written before is discarded."""
        await self.abort()
        self._begin()
        await self._outer.open()

    async def write(self, piece: ToolResult, /) -> None:
        """Take a piece: what is within the limit passes."""
        piece = without_mark(piece)
        passed = self._split(piece)
        if passed is piece or passed != ToolResult():  # the flags of any piece apply to the whole
            await self._outer.write(passed)
        if self._is_over and self._upload is not None:
            await self._upload.write(text_of(piece))
        elif not self._is_over and self._held:
            if not self._path and not self._error:  # only once: the notice has it
                try:
                    self._path = await self._free_path()
                except Exception as error:  # noqa: BLE001 - told in the notice
                    self._note_error(error)
            if self._waiting > len(self._notice("")):
                await self._go_over()

    async def _go_over(self) -> None:
        """Begin to save; of what was held back, only the media pass."""
        held, self._held, self._is_over = self._held, [], True
        head, self._head = [*self._head, *map(text_of, held)], []
        media = [part for piece in held for part in piece.parts if not isinstance(part, TextPart)]
        if media:
            await self._outer.write(ToolResult(tuple(media)))
        if not self._error:
            self._upload = _Upload(self._by.backend_of(self._call.name), self._path)
            await self._upload.write("".join(head))

    async def close(self) -> ToolResult:
        """End with a notice that says where the whole is, or pass on what was held back."""
        await self._finish("")
        self.whole = cast("ToolResult", await self._outer.close())
        return self.whole

    async def fail(self, error: Exception) -> None:
        """End because the tool failed, and save the output so far."""
        await self._finish(f"{type(error).__name__}: {error}")

    async def abort(self) -> None:
        """Leave no file, because no message would name it."""
        upload, self._upload = self._upload, None
        try:
            if upload is not None:
                await upload.abort()
        finally:
            self._release()

    def _release(self) -> None:
        _CLAIMS.discard(self._claimed)
        self._claimed = (0, "")

    def is_made_of(self, result: ToolResult) -> bool:
        """Return whether a result is our whole one, perhaps changed a little by a wrapper in between."""
        fits = text_length(result.parts) <= self._by.max_length_for_trunc + LONGEST_NOTICE
        return self._is_over and self.whole is not None and fits and is_truncated_text(text_of(result))

    async def _finish(self, failure: str) -> None:
        upload, self._upload, call = self._upload, None, self._call
        if upload is not None:
            try:
                await upload.close()
            except Exception as error:  # noqa: BLE001 - told in the notice
                self._note_error(error)
            except BaseException:
                await upload.abort()
                raise
            else:
                saved = Saved(self._path, call.call_id, call.name, "trunc", upload.length)
                self._extra = self._record.note_saved(saved)
        if self._is_over:
            await self._outer.write(ToolResult((TextPart(self._notice(failure)),), extra=self._extra))
        for piece in self._held:
            await self._outer.write(piece)
        self._release()

    def _split(self, piece: ToolResult) -> ToolResult:
        """Return what of `piece` may pass; from the limit on all is held back until there is too much text of it."""
        passed: list[Any] = []
        held: list[Any] = []
        for part in piece.parts:
            if not isinstance(part, TextPart):
                (held if held or self._held else passed).append(part)
            elif not self._is_over:
                room = self._by.max_length_for_trunc - self._passed
                text, rest = part.text[:room], part.text[room:]
                if text or not part.text:
                    self._head.append(text)
                    self._passed += len(text)
                    passed.append(replace(part, text=text) if rest else part)
                if rest:
                    self._waiting += len(rest)
                    held.append(replace(part, text=rest))
        if held:
            self._held.append(ToolResult(tuple(held)))
        return replace(piece, parts=tuple(passed)) if self._held or self._is_over else piece

    def _notice(self, failure: str) -> str:
        by, language = self._by, cast("Any", self._record.run().language)
        limit, reader = by.max_length_for_trunc, by.read_file_tool_name
        return streamed_text(limit, self._path, reader, language, unsaved=self._error, failed=failure)

    async def _free_path(self) -> str:
        by, record, call = self._by, self._record, self._call
        backend = by.backend_of(call.name)
        if backend is None:
            raise OffloadError([(call.name, call.call_id)], "truncation: no backend for offload")
        head = ToolResult((TextPart("".join(self._head)),))
        for _ in range(ATTEMPTS):
            terms = record.terms(by.backend_of)
            path = await name_file("trunc", replace(detail_of(call), tool_result=head), terms)
            record.reserve(path)
            claimed = (id(backend), folded(path))
            if claimed not in _CLAIMS:
                self._claimed = claimed
                _CLAIMS.add(claimed)
                if not await is_taken(backend, path):
                    return path
                self._release()
        raise OffloadError([(call.name, call.call_id)], "each path that was tried is taken")

    def _note_error(self, error: Exception) -> None:
        self._error = error.reason if isinstance(error, OffloadError) else str(error) or type(error).__name__
        self._by.report(self._record, unsaved(self._call.name, self._call.call_id, error))


class Source:
    """A tool's stream for two readers: a handler looks first; afterwards it can be read from the beginning."""

    def __init__(self, call: ToolCallRequest, proceed: Any) -> None:
        self._pipe: _Pipe[ToolResult] = _Pipe()
        self._whole = ToolResult()
        self._seen: deque[ToolResult] = deque()
        self._pieces = self._read_pieces()
        self._work = asyncio.ensure_future(self._run(replace(call, sink=self), proceed))

    async def _run(self, call: ToolCallRequest, proceed: Any) -> ToolResult:
        try:
            return await proceed(call)
        finally:
            self._pipe.end()

    async def open(self) -> None:
        """Begin; what nobody has read is discarded."""
        self._pipe.clear()

    async def write(self, piece: ToolResult, /) -> None:
        """Take a piece from the tool."""
        await self._pipe.write(without_mark(piece))

    async def close(self) -> ToolResult:
        """End, and return the result that the handler makes."""
        return self._whole

    async def _read_pieces(self) -> AsyncIterator[ToolResult]:
        async with closing(self._pipe.read()) as pieces:
            async for piece in pieces:
                yield piece
        result = await self._work
        if result is not self._whole:  # a wrapper in between answered instead
            yield without_mark(result)

    async def look(self) -> AsyncIterator[ToolResult]:
        """Yield the stream, remembering it."""
        while (piece := await anext(self._pieces, None)) is not None:
            self._seen.append(piece)
            yield piece

    async def read(self) -> AsyncIterator[ToolResult]:
        """Yield the stream from its beginning, without keeping it any longer."""
        while self._seen:
            yield self._seen.popleft()
        while (piece := await anext(self._pieces, None)) is not None:
            yield piece
        await self._work  # raises an error again that the handler has seen

    async def stop(self) -> None:
        """Let the tool come to its end."""
        await close(self._pieces)
        self._work.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await wait_to_the_end(self._work)
