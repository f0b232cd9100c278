"""`ToolReduction`: keeps tool output from overflowing the context, by truncating new and clearing old output."""

import time
from collections.abc import AsyncIterator, Collection
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any, Literal, cast

from msgspec.structs import replace

from suture import kernel
from suture._aio import closing, settle
from suture.errors import ConfigError, OffloadError
from suture.events import Custom
from suture.messages import ToolResult
from suture.middleware.reading_tools import reading_tools
from suture.middleware.record import InRun, Outside, Question, Record, check_saving
from suture.middleware.streams import Source, TruncatingSink, detail_of, text_of, without_mark
from suture.reduction import Save, Settings, Writer
from suture.reduction.phases import decide_truncation, text_length
from suture.repair.texts import is_builtin_text
from suture.stores import FileBackend, PathTakenError
from suture.tools import Tool

_STREAMING = ("streamable", "enhanced_streamable")


@dataclass(frozen=True, eq=False, repr=False)
class ToolReduction(Settings, InRun, kernel.ChatModelAgentMiddleware[Any]):
    """Keeps tool output from overflowing the context, in two phases.

    *Truncation*, when a tool returns: text longer than `max_length_for_trunc` is saved in the backend, and a notice
    with its beginning, its end and its path replaces it. *Clear*, before a model turn: when the history has more
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
    """How many characters the reading tools return at once."""
    add_reading_tools: bool = True
    """Whether the model gets `read_file`, `ls` and `grep` for what was saved, if the backend can be read."""
    clear_after_idle: float | None = None
    """If the model was not asked for this many seconds, clear old results however few tokens there are: by then
    the prompt cache is cold, so clearing costs nothing."""
    on_backend_error: Literal["raise", "continue"] = "raise"
    """What to do if output cannot be saved. Nothing is changed, and the run either stops before the next model turn, or
    continues and sends a `Custom` event."""

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
        """Return the backend for output of the tool `name`."""
        own = self.config_of(name).backend
        return self.backend if own is None else own

    @cached_property
    def tools(self) -> tuple[Tool[..., Any], ...]:
        """The tools that read saved output."""
        if not self.add_reading_tools or not any(isinstance(each, FileBackend) for each in self._backends):
            return ()
        return reading_tools(self._record, self.backend_of, self.read_file_tool_name, self.max_length_for_read)

    def _record(self) -> Record:
        """Return the record of the run."""
        return self._record_of(self, self.backend_of)

    def report(self, record: Record, error: OffloadError) -> None:
        """Handle output that could not be saved."""
        run = self._run()
        if self.on_backend_error == "continue":
            if not record.reported.issuperset(error.calls):
                record.reported.update(error.calls)
                run.send(Custom("tool_output_not_saved", {"calls": error.calls, "error": str(error)}))
        elif run is self.outside:
            raise error
        else:  # raised before the next model turn: here it would count as the tool's error
            record.failure = error if record.failure is None else record.failure.joined(error)

    # Before the agent: tools that read what was saved

    def before_agent(self, context: kernel.ChatModelAgentContext[Any]) -> kernel.ChatModelAgentContext[Any]:
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
        self, state: kernel.ChatModelAgentState[Any], model_context: kernel.ModelContext
    ) -> kernel.ChatModelAgentState[Any] | None:
        """Look at the new messages; reduce the history only if there is too much of it."""
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
                self.report(record, error)
            else:
                tokens = reduced.plan.tokens_after
                if reduced.history is not history:
                    record.see(reduced.history)
                    state = replace(state, messages=reduced.history, report=reduced.plan.to_dict())
                if reduced.cleared and self.clear_post_process is not None:
                    await settle(self.clear_post_process(state))
        if self.clears_any and tokens > self.max_tokens_for_clear:
            self._run().send(Custom("suture.over_limit", {"tokens": tokens, "limit": self.max_tokens_for_clear}))
        return None if state is before else state

    # When a tool returns: what is too long is truncated, and no tool may claim that something was saved

    async def wrap_tool_call(self, call: kernel.ToolCallRequest, proceed: Any) -> ToolResult:
        """Truncate the output of a tool, while it streams or when it returns."""
        if not self.truncates(call.name):
            return without_mark(await proceed(call))
        if call.kind not in _STREAMING:
            return await self._shorten(call, without_mark(await proceed(call)))
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
        return await self._shorten(call, without_mark(result))

    async def _shorten(self, call: kernel.ToolCallRequest, result: ToolResult) -> ToolResult:
        """Return a whole result, truncated if it is too long."""
        handled = self.config_of(call.name).trunc_handler is not None
        if not handled and text_length(result.parts) <= self.max_length_for_trunc:
            return result
        if result.is_error and is_builtin_text(text_of(result), call.name, call.call_id) is not None:
            return result  # it is a placeholder, not output
        record, detail = self._record(), replace(detail_of(call), tool_result=result)
        try:
            return await record.truncate(detail, self.backend_of) or result
        except OffloadError as error:
            self.report(record, error)
            return result

    async def _handle_stream(self, call: kernel.ToolCallRequest, proceed: Any) -> ToolResult:
        """Return what the tool's own handler makes of a stream; it may read the whole output first."""
        source = Source(call, proceed)
        try:
            stream, extra = await self._choose_stream(call, source)
            sink = cast("kernel.Sink", call.sink)
            await sink.open()
            async with closing(stream) as pieces:
                async for piece in pieces:
                    await sink.write(piece)
            whole = await sink.close()
            return replace(whole, extra={**whole.extra, **extra}) if extra else whole
        finally:
            await source.stop()

    async def _choose_stream(
        self, call: kernel.ToolCallRequest, source: Source
    ) -> tuple[AsyncIterator[ToolResult], dict[str, Any]]:
        """Ask the tool's handler; return the stream to use, and the mark for the result."""
        record, detail = self._record(), replace(detail_of(call), stream_tool_result=source.look())
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
                self.report(record, error)
                return source.read(), {}
        return decided.stream_tool_result, extra
