"""Output when it comes: what is too long is saved, and a notice goes on in its place."""

from collections.abc import AsyncIterator, Callable
from typing import Any

from suture.errors import ConfigError, OffloadError
from suture.kernel import closing
from suture.messages import TextPart, ToolArgument, ToolContext, ToolResult
from suture.middleware._notebook import Notebook
from suture.middleware._offloading import ATTEMPTS, is_taken, save_all, save_stream, unsaved
from suture.middleware._streaming import Tee, stream_truncated
from suture.reduction import (
    Save,
    Saved,
    Settings,
    ToolDetail,
    TruncResult,
    Writer,
    carry_through_async,
    offload_place,
    streamed_text,
    truncate_one,
)
from suture.stores import PathTakenError

__all__ = ["Truncating"]


class Truncating:
    """Truncates the output of one tool call."""

    def __init__(
        self,
        settings: Settings,
        book: Notebook,
        backend_of: Callable[[str], Writer | None],
        fail: Callable[[Notebook, OffloadError], None],
    ) -> None:
        self.settings, self.book, self.backend_of, self.fail = settings, book, backend_of, fail

    async def whole(self, context: ToolContext, argument: ToolArgument, result: ToolResult) -> ToolResult | None:
        """Return what takes the place of a result; `None` where it may stay, or could not be saved."""
        detail = ToolDetail(tool_context=context, tool_argument=argument, tool_result=result)
        taken = PathTakenError("")
        for _ in range(ATTEMPTS):
            decided = await self._decided(detail)
            if decided is None or not decided.need_trunc:
                return None
            save = Save(decided.offload_file_path, decided.offload_content, context.call_id, context.name)
            try:
                if decided.need_offload and not await self._saved(save):
                    return None
            except PathTakenError as error:
                taken = error
                continue
            return decided.tool_result
        self.fail(self.book, unsaved(context, taken))
        return None

    async def _decided(self, detail: ToolDetail) -> TruncResult | None:
        """Ask what becomes of a result; `None` where nobody can say where it is to be saved."""
        try:
            return await carry_through_async(truncate_one(detail, self.book.terms(self.backend_of)))
        except OffloadError as error:
            self.fail(self.book, error)
            return None

    async def stream(
        self, context: ToolContext, argument: ToolArgument, source: AsyncIterator[ToolResult]
    ) -> AsyncIterator[ToolResult]:
        """Yield the output of a streaming tool, no more of it than may be."""
        if self.settings.config_of(context.name).trunc_handler is None:
            sink = _StreamSink(self, context, argument)
            pieces = stream_truncated(source, self.settings.max_length_for_trunc, sink)
        else:
            pieces = await self._handled(context, argument, source)
        async with closing(pieces) as coming:
            async for piece in coming:
                yield piece

    async def _handled(
        self, context: ToolContext, argument: ToolArgument, source: AsyncIterator[ToolResult]
    ) -> AsyncIterator[ToolResult]:
        """Return the stream that the tool's own handler decides on; it may read all of the output first."""
        tee = Tee(source)
        detail = ToolDetail(tool_context=context, tool_argument=argument, stream_tool_result=tee.look())
        try:
            decided = await carry_through_async(truncate_one(detail, self.book.terms(self.backend_of)))
            if not decided.need_trunc or decided.stream_tool_result is None:
                return tee.read()
            save = Save(decided.offload_file_path, decided.offload_content, context.call_id, context.name)
            if decided.need_offload and not await self._saved(save):
                return tee.read()
        except BaseException as error:
            await tee.close()
            if isinstance(error, PathTakenError):
                raise ConfigError(f"the trunc_handler of {context.name} named a path that is taken: {error}") from error
            raise
        return _followed(decided.stream_tool_result, tee)

    async def _saved(self, save: Save) -> bool:
        """Save output; tell whether that worked. Raises `PathTakenError` where another path is to be tried."""
        book = self.book
        book.reserve(save.path)
        try:
            await save_all([save], self.backend_of)
        except OffloadError as error:
            book.release(save.path)
            self.fail(book, error)
            return False
        book.note_saved(Saved(save.path, save.call_id, save.name, "trunc", len(save.content)))
        return True


class _StreamSink:
    """Where the output of one streaming call goes once it is too long."""

    def __init__(self, truncating: Truncating, context: ToolContext, argument: ToolArgument) -> None:
        self._by, self._context, self._argument = truncating, context, argument
        self._path = ""
        self._error = ""

    async def notice_length(self, head: str) -> int:
        """Return how long the notice will be: the path is decided here, once."""
        if not self._path and not self._error:
            try:
                self._path = await self._free_place(head)
            except Exception as error:  # noqa: BLE001 - told in the notice
                self._failed(error)
        return len(self.notice(None))

    async def save(self, texts: AsyncIterator[str]) -> None:
        """Save the output as it comes."""
        if self._error:
            return
        context, book = self._context, self._by.book
        backend: Any = self._by.backend_of(context.name)
        try:
            length = await save_stream(backend, self._path, texts)
        except Exception as error:  # noqa: BLE001 - told in the notice
            self._failed(error)
        else:
            book.note_saved(Saved(self._path, context.call_id, context.name, "trunc", length))

    def notice(self, failure: Exception | None) -> str:
        """Return what is said in the place of the rest."""
        return streamed_text(
            self._by.settings.max_length_for_trunc,
            self._path,
            self._by.settings.read_file_tool_name,
            self._by.book.language,
            unsaved=self._error,
            failed=f"{type(failure).__name__}: {failure}" if failure is not None else "",
        )

    async def _free_place(self, head: str) -> str:
        by, context = self._by, self._context
        backend = by.backend_of(context.name)
        if backend is None:
            raise OffloadError([(context.name, context.call_id)], "truncation: no backend for offload")
        detail = ToolDetail(
            tool_context=context, tool_argument=self._argument, tool_result=ToolResult((TextPart(head),))
        )
        for _ in range(ATTEMPTS):
            path = await carry_through_async(offload_place("trunc", detail, by.book.terms(by.backend_of)))
            by.book.reserve(path)
            if not await is_taken(backend, path):
                return path
        raise OffloadError([(context.name, context.call_id)], "each path that was tried is taken")

    def _failed(self, error: Exception) -> None:
        self._error = error.reason if isinstance(error, OffloadError) else str(error) or type(error).__name__
        self._by.fail(self._by.book, unsaved(self._context, error))


async def _followed(stream: AsyncIterator[ToolResult], tee: Tee) -> AsyncIterator[ToolResult]:
    """Yield a stream that may read from another one, and close both."""
    try:
        async with closing(stream) as pieces:
            async for piece in pieces:
                yield piece
    finally:
        await tee.close()
