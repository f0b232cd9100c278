"""`ToolReduction`: tool output that cannot overflow the context; truncated when it comes, cleared when it is old."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Collection
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any, Literal, cast

from msgspec.structs import replace

from suture._aio import close, closing, settle, wait_to_the_end
from suture.errors import ConfigError, OffloadError
from suture.events import Custom
from suture.kernel import (
    ChatModelAgentContext,
    ChatModelAgentMiddleware,
    ChatModelAgentState,
    ModelContext,
    Sink,
    ToolCallRequest,
)
from suture.messages import TextPart, ToolArgument, ToolContext, ToolResult
from suture.middleware.offload import ATTEMPTS, Pipe, Upload, check_saving, claim, release, unsaved
from suture.middleware.reading_tools import reading_tools
from suture.middleware.record import InRun, Outside, Question, Record
from suture.reduction import Save, Saved, Settings, ToolDetail, Writer
from suture.reduction.draft import SAVED
from suture.reduction.texts import LONGEST_NOTICE, is_truncated_text, streamed_text
from suture.reduction.truncate import decide_truncation, name_file, text_length
from suture.repair.texts import is_builtin_text
from suture.stores import FileBackend, PathTakenError
from suture.tools import Tool

_STREAMING = ("streamable", "enhanced_streamable")


@dataclass(frozen=True, eq=False, repr=False)
class ToolReduction(Settings, InRun, ChatModelAgentMiddleware[Any]):
    """Keeps tool output from overflowing the context, in two phases.

    *Truncation*, when a tool returns: text longer than `max_length_for_trunc` is saved in the backend, and a notice
    with its beginning, its end and its path takes its place. *Clear*, before a model turn: when the history has more
    than `max_tokens_for_clear` tokens, old results are saved and replaced by their paths, oldest first. The model
    gets tools that read what was saved.

    Args:
        backend: where output is saved; `suture.stores` has several, and anything with `write(path, content)` will
            do. It may be left out only together with `skip_truncation`.

    >>> from suture.stores import MemoryBackend
    >>> ToolReduction(MemoryBackend(), max_tokens_for_clear=100_000).clear_retention_suffix_limit
    1
    """

    backend: Writer | None = None
    _: KW_ONLY
    max_length_for_read: int = 20_000
    """How many characters the reading tools give at once."""
    add_reading_tools: bool = True
    """Whether the model gets `read_file`, `ls` and `grep` for what was saved, if the backend can be read."""
    clear_after_idle: float | None = None
    """Clear old results, however few tokens there are, when the model was not asked for so many seconds: by then
    the prompt cache is cold, and clearing breaks nothing."""
    on_backend_error: Literal["raise", "continue"] = "raise"
    """What happens when output cannot be saved: nothing is changed, and the run stops before the next model turn, or
    goes on and sends a `Custom` event."""

    outside: Outside = field(default_factory=Outside, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        idle: Any = self.clear_after_idle
        if idle is not None and not (type(idle) in (int, float) and idle >= 0):
            raise ConfigError(f"clear_after_idle is a number of seconds, found {idle!r}")
        for each in self._backends:
            if not callable(getattr(each, "write", None)):
                raise ConfigError(f"a backend has write(path, content); {type(each).__name__} has none")
        check_saving(self)

    @property
    def _backends(self) -> list[Writer]:
        backends = [self.backend, *[config.backend for config in self.tool_config.values()]]
        return [each for each in backends if each is not None]

    def backend_of(self, name: str) -> Writer | None:
        """Return where output of the tool `name` is saved."""
        own = self.config_of(name).backend
        return self.backend if own is None else own

    @cached_property
    def tools(self) -> tuple[Tool[..., Any], ...]:
        """The tools that read what was saved."""
        if not self.add_reading_tools or not any(isinstance(each, FileBackend) for each in self._backends):
            return ()
        return reading_tools(self._record, self.backend_of, self.read_file_tool_name, self.max_length_for_read)

    def _record(self) -> Record:
        """Return what the run knows of its output."""
        return self._record_of(self)

    def _report(self, record: Record, error: OffloadError) -> None:
        """Do what is to be done when output could not be saved."""
        run = self._run()
        if self.on_backend_error == "continue":
            if not record.reported.issuperset(error.calls):
                record.reported.update(error.calls)
                run.send(Custom("tool_output_not_saved", {"calls": error.calls, "error": str(error)}))
        elif run is self.outside:
            raise error
        else:  # raised before the next model turn: here it would be taken for the tool's
            record.failure = error if record.failure is None else record.failure.joined(error)

    # Before the agent: tools that read what was saved

    def before_agent(self, context: ChatModelAgentContext[Any], /) -> ChatModelAgentContext[Any]:
        """Add the tools that read what was saved, but none whose name is taken."""
        if context.messages:
            self._record().see(context.messages)
        new = self.added_tools({tool.name for tool in context.tools})
        return replace(context, tools=(*context.tools, *new)) if new else context

    def added_tools(self, taken: Collection[str]) -> tuple[Tool[..., Any], ...]:
        """Return the tools that an agent gets whose own have these names."""
        return tuple([tool for tool in self.tools if tool.name not in taken])

    # Before the model: what is too long is truncated, what is old is cleared

    async def before_model_rewrite_state(
        self, state: ChatModelAgentState[Any], model_context: ModelContext, /
    ) -> ChatModelAgentState[Any] | None:
        """Look at what is new; reduce the history only if there is too much of it."""
        if not (self.truncates_any or self.clears_any):
            return None
        record = self._record()
        if record.failure is not None:
            failure, record.failure = record.failure, None
            raise failure
        wire, history = record.see(state.messages, model_context.wire)
        before, was_idle = state, False
        if self.clear_after_idle is not None:
            session, key, now = self._run().session, f"{record.key}/asked_at", time.time()
            last = session.get(key)
            session[key] = now
            was_idle = last is not None and now - last >= self.clear_after_idle
        question = Question(wire, history, state.tool_infos, force=was_idle)
        record.judge(question, model_context.last_usage)
        tokens = question.tokens
        if question.clears or question.shorten is not None:
            try:
                reduced = await record.reduce(question, self.backend_of)
            except OffloadError as error:
                if self.on_backend_error == "raise":
                    raise
                self._report(record, error)
            else:
                tokens = reduced.tokens
                if reduced.history is not history:
                    record.see(reduced.history)
                    state = replace(state, messages=reduced.history, report=reduced.plan.to_dict())
                if reduced.cleared and self.clear_post_process is not None:
                    await settle(self.clear_post_process(state))
        if self.clears_any and tokens > self.max_tokens_for_clear:
            self._run().send(Custom("suture.over_limit", {"tokens": tokens, "limit": self.max_tokens_for_clear}))
        return None if state is before else state

    # When a tool returns: what is too long is truncated, and no tool may claim that something was saved

    async def wrap_tool_call(self, call: ToolCallRequest, proceed: Any, /) -> ToolResult:
        """Truncate what a tool gives: while it streams, and what comes back otherwise."""
        if not self.truncates(call.name):
            return _without_mark(await proceed(call))
        if call.kind not in _STREAMING:
            return await self._shorten(call, _without_mark(await proceed(call)))
        if self.config_of(call.name).trunc_handler is not None:
            return await self._handle_stream(call, proceed)
        sink = TruncatingSink(self, self._record(), call)
        try:
            result = await proceed(replace(call, sink=sink))
        except Exception as error:
            await sink.fail(error)
            raise
        except BaseException:
            await sink.abort()
            raise
        if result is sink.whole or sink.is_made_of(result):
            return result
        await sink.abort()
        return await self._shorten(call, _without_mark(result))

    async def _shorten(self, call: ToolCallRequest, result: ToolResult) -> ToolResult:
        """Return a whole result, no longer than may be."""
        handled = self.config_of(call.name).trunc_handler is not None
        if not handled and text_length(result.parts) <= self.max_length_for_trunc:
            return result
        if result.is_error and is_builtin_text(_text_of(result), call.name, call.call_id) is not None:
            return result  # it stands for output that there is none of
        record, detail = self._record(), replace(_detail_of(call), tool_result=result)
        try:
            return await record.truncate(detail, self.backend_of) or result
        except OffloadError as error:
            self._report(record, error)
            return result

    async def _handle_stream(self, call: ToolCallRequest, proceed: Any) -> ToolResult:
        """Give what the tool's own handler makes of a stream; it may read all of the output first."""
        source = _Source(call, proceed)
        try:
            stream, extra = await self._choose_stream(call, source)
            sink = cast("Sink", call.sink)
            await sink.open()
            async with closing(stream) as pieces:
                async for piece in pieces:
                    await sink.write(piece)
            whole = await sink.close()
            return replace(whole, extra={**whole.extra, **extra}) if extra else whole
        finally:
            await source.stop()

    async def _choose_stream(
        self, call: ToolCallRequest, source: "_Source"
    ) -> tuple[AsyncIterator[ToolResult], dict[str, Any]]:
        """Ask the tool's handler; return the stream to give, and what is to be noted on the result."""
        record, detail = self._record(), replace(_detail_of(call), stream_tool_result=source.look())
        decided = await decide_truncation(detail, record.terms(self.backend_of))
        if not decided.need_trunc or decided.stream_tool_result is None:
            return source.read(), {}
        extra: dict[str, Any] = {}
        if decided.need_offload:
            save = Save(decided.offload_file_path, decided.offload_content, call.call_id, call.name)
            try:
                extra = await record.save(save, self.backend_of)
            except PathTakenError as error:
                raise ConfigError(f"the trunc_handler of {call.name} named a path that is taken: {error}") from error
            except OffloadError as error:
                self._report(record, error)
                return source.read(), {}
        return decided.stream_tool_result, extra


class TruncatingSink:
    """Passes on the first characters of a stream and all that is no text; saves the whole if there is more.

    A little past the limit is held back: an output that ends there passes whole, because a notice is no shorter.
    Nothing but the beginning and one notice's length is ever held in memory.
    """

    def __init__(self, by: ToolReduction, record: Record, call: ToolCallRequest) -> None:
        self._by, self._record, self._call = by, record, call
        self._outer = cast("Sink", call.sink)
        self.whole: ToolResult | None = None
        """What came of it, so that it is known when it comes back."""
        self._upload: Upload | None = None
        self._claimed = ""
        """A path that no other stream may go to until this one has ended."""
        self._begin()

    def _begin(self) -> None:
        self._head: list[str] = []
        self._held: list[str] = []
        self._passed = self._held_length = 0
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
        piece = _without_mark(piece)
        passed = self._split(piece)
        if passed is piece or passed != ToolResult():  # any piece's word holds for the whole
            await self._outer.write(passed)
        if self._is_over and self._upload is not None:
            await self._upload.write(_text_of(piece))
        elif not self._is_over and self._held and self._held_length > await self._notice_length():
            self._is_over = True
            backend = self._by.backend_of(self._call.name)
            if backend is not None and not self._error:
                self._upload = Upload(backend, self._path)
                await self._upload.write("".join([*self._head, *self._held]))
            self._head, self._held = [], []

    async def close(self) -> ToolResult:
        """End: say where the whole is, or pass on what was held back."""
        await self._finish("")
        self.whole = cast("ToolResult", await self._outer.close())
        return self.whole

    async def fail(self, error: Exception) -> None:
        """End because the tool failed: what came of it is saved."""
        await self._finish(f"{type(error).__name__}: {error}")

    async def abort(self) -> None:
        """Leave no file: nobody will know of it."""
        upload, self._upload = self._upload, None
        try:
            if upload is not None:
                await upload.abort()
        finally:
            self._release()

    def _release(self) -> None:
        claimed, self._claimed = self._claimed, ""
        if claimed:
            release(self._by.backend_of(self._call.name), claimed)

    def is_made_of(self, result: ToolResult) -> bool:
        """Tell whether a result is our whole, changed a little by a wrapper in between."""
        fits = text_length(result.parts) <= self._by.max_length_for_trunc + LONGEST_NOTICE
        return self._is_over and self.whole is not None and fits and is_truncated_text(_text_of(result))

    async def _finish(self, failure: str) -> None:
        if self._is_over:
            if self._upload is not None:
                await self._close_upload(self._upload)
            await self._outer.write(ToolResult((TextPart(self._notice(failure)),), extra=self._extra))
        elif self._held:
            await self._outer.write(ToolResult((TextPart("".join(self._held)),)))
        self._release()

    async def _close_upload(self, upload: Upload) -> None:
        self._upload = None
        try:
            await upload.close()
        except Exception as error:  # noqa: BLE001 - told in the notice
            self._note_error(error)
        except BaseException:
            await upload.abort()
            raise
        else:
            call = self._call
            self._extra = self._record.note_saved(Saved(self._path, call.call_id, call.name, "trunc", upload.length))

    def _split(self, piece: ToolResult) -> ToolResult:
        """Return what of `piece` may pass; text beyond the limit is held back until there is too much of it."""
        passed: list[Any] = []
        for part in piece.parts:
            if not isinstance(part, TextPart):
                passed.append(part)
            elif not self._is_over:
                room = self._by.max_length_for_trunc - self._passed
                text, rest = part.text[:room], part.text[room:]
                self._held += [rest] if rest else []
                self._held_length += len(rest)
                if text or not part.text:
                    self._head.append(text)
                    self._passed += len(text)
                    passed.append(replace(part, text=text) if rest else part)
        return replace(piece, parts=tuple(passed)) if self._held or self._is_over else piece

    def _notice(self, failure: str) -> str:
        by = self._by
        return streamed_text(
            by.max_length_for_trunc,
            self._path,
            by.read_file_tool_name,
            cast("Any", self._record.run().language),
            unsaved=self._error,
            failed=failure,
        )

    async def _notice_length(self) -> int:
        """Return how long the notice will be: the path is decided here, once."""
        if not self._path and not self._error:
            try:
                self._path = await self._free_path()
            except Exception as error:  # noqa: BLE001 - told in the notice
                self._note_error(error)
        return len(self._notice(""))

    async def _free_path(self) -> str:
        by, record, call = self._by, self._record, self._call
        backend = by.backend_of(call.name)
        if backend is None:
            raise OffloadError([(call.name, call.call_id)], "truncation: no backend for offload")
        head = ToolResult((TextPart("".join(self._head)),))
        for _ in range(ATTEMPTS):
            terms = record.terms(by.backend_of)
            path = await name_file("trunc", replace(_detail_of(call), tool_result=head), terms)
            record.reserve(path)
            if await claim(backend, path):
                self._claimed = path
                return path
        raise OffloadError([(call.name, call.call_id)], "each path that was tried is taken")

    def _note_error(self, error: Exception) -> None:
        self._error = error.reason if isinstance(error, OffloadError) else str(error) or type(error).__name__
        self._by._report(self._record, unsaved(self._call.name, self._call.call_id, error))  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001 - its other half


class _Source:
    """A tool's stream for two readers: a handler looks first; afterwards all can be read from the beginning."""

    def __init__(self, call: ToolCallRequest, proceed: Any) -> None:
        self._pipe: Pipe[ToolResult] = Pipe()
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
        """Take a piece of the tool's."""
        await self._pipe.put(_without_mark(piece))

    async def close(self) -> ToolResult:
        """End; the whole is what the handler makes of it."""
        return self._whole

    async def _read_pieces(self) -> AsyncIterator[ToolResult]:
        async with closing(self._pipe) as pieces:
            async for piece in pieces:
                yield piece
        result = await self._work
        if result is not self._whole:  # a wrapper in between answered by itself
            yield _without_mark(result)

    async def look(self) -> AsyncIterator[ToolResult]:
        """Yield the stream, remembering it."""
        while (piece := await anext(self._pieces, None)) is not None:
            self._seen.append(piece)
            yield piece

    async def read(self) -> AsyncIterator[ToolResult]:
        """Yield the stream from its beginning, forgetting it on the way."""
        while self._seen:
            yield self._seen.popleft()
        while (piece := await anext(self._pieces, None)) is not None:
            yield piece
        await self._work  # an error that was looked at is raised again

    async def stop(self) -> None:
        """Let the tool come to its end."""
        await close(self._pieces)
        self._work.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await wait_to_the_end(self._work)


def _detail_of(call: ToolCallRequest) -> ToolDetail:
    return ToolDetail(tool_context=ToolContext(call.name, call.call_id), tool_argument=ToolArgument(call.arguments))


def _text_of(result: ToolResult) -> str:
    return "".join([part.text for part in result.parts if isinstance(part, TextPart)])


def _without_mark(result: ToolResult) -> ToolResult:
    """Return what a tool gave without a mark that is not its to give."""
    if SAVED not in result.extra:
        return result
    return replace(result, extra={key: value for key, value in result.extra.items() if key != SAVED})
