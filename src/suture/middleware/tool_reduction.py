"""`ToolReduction`: tool output that cannot overflow the context; truncated when it comes, cleared when it is old."""

import time
from collections.abc import AsyncIterator, Awaitable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, cast

from msgspec.structs import replace

from suture.errors import ConfigError, OffloadError
from suture.events import Custom
from suture.kernel import (
    ChatModelAgentContext,
    ChatModelAgentMiddleware,
    ChatModelAgentState,
    EnhancedInvokableEndpoint,
    EnhancedStreamableEndpoint,
    InvokableEndpoint,
    ModelContext,
    StreamableEndpoint,
    closing,
    get_session_value,
    run_scratch,
    send_event,
    set_session_value,
    settled,
)
from suture.messages import History, TextPart, ToolArgument, ToolContext, ToolResult
from suture.middleware._clearing import Question, judge, reduce_history
from suture.middleware._notebook import Notebook, scope_at_hand
from suture.middleware._reading import reading_tools
from suture.middleware._truncating import Truncating
from suture.reduction import SAVED, Settings, Writer, text_length
from suture.stores import FileBackend

__all__ = ["ToolReduction"]


@dataclass(frozen=True, eq=False, repr=False)
class ToolReduction(Settings, ChatModelAgentMiddleware[Any]):
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

    _outside: Notebook | None = field(default=None, init=False)
    """What is known where there is no run."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check()
        hooks: dict[str, Any] = {}
        if self.truncates_any:
            hooks["wrap_invokable_tool_call"] = self._wrap_invokable
            hooks["wrap_streamable_tool_call"] = self._wrap_streamable
        if self.truncates_any or self.clears_any:
            hooks["before_model_rewrite_state"] = self._rewrite_state
        if self.add_reading_tools and any(isinstance(each, FileBackend) for each in self._backends()):
            hooks["before_agent"] = self._add_tools
        for name, hook in hooks.items():  # what is not needed is not there, and costs nothing
            object.__setattr__(self, name, hook)

    def _check(self) -> None:
        if self.on_backend_error not in {"raise", "continue"}:
            raise ConfigError(f"unknown on_backend_error {self.on_backend_error!r}; known: raise, continue")
        if type(self.max_length_for_read) is not int or self.max_length_for_read <= 0:
            raise ConfigError(f"max_length_for_read must be more than 0, found {self.max_length_for_read!r}")
        idle = self.clear_after_idle
        if idle is not None and (isinstance(idle, bool) or not isinstance(idle, int | float) or not idle >= 0):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"clear_after_idle is a number of seconds, found {self.clear_after_idle!r}")
        for each in self._backends():
            if not callable(getattr(each, "write", None)):
                raise ConfigError(f"a backend has write(path, content); {type(each).__name__} has none")
        if not self.skip_truncation and self.backend is None:
            raise ConfigError("backend must be set when not skipping truncation; or pass skip_truncation=True")
        for name, config in self.tool_config.items():
            if config.skip_truncation is False and config.trunc_handler is None and self._backend_of(name) is None:
                raise ConfigError(f"tool_config[{name!r}]: backend must be set when not skipping truncation")

    def _backends(self) -> list[Writer]:
        given = [self.backend, *[config.backend for config in self.tool_config.values()]]
        return [each for each in given if each is not None]

    def _backend_of(self, name: str) -> Writer | None:
        """Return where output of the tool `name` is saved."""
        own = self.config_of(name).backend
        return self.backend if own is None else own

    def _book(self) -> Notebook:
        """Return what the run at hand knows; outside of any, what this middleware knows."""
        if scope_at_hand() is not None:
            return run_scratch(self._start)
        if self._outside is None:
            object.__setattr__(self, "_outside", self._start())
        return cast("Notebook", self._outside)

    def _start(self) -> Notebook:
        return Notebook(self)

    def _fail(self, book: Notebook, error: OffloadError) -> None:
        """Do what is to be done when output could not be saved."""
        if self.on_backend_error == "continue":
            if book.scope is not None and not book.told.issuperset(error.calls):
                book.told.update(error.calls)
                send_event(Custom("tool_output_not_saved", {"calls": error.calls, "error": str(error)}))
        elif book.scope is None:
            raise error
        else:
            earlier = book.failure
            book.failure = error if earlier is None else earlier.joined(error)

    # Before the agent: tools that read what was saved

    def _add_tools(self, context: ChatModelAgentContext[Any], /) -> ChatModelAgentContext[Any]:
        names = {tool.name for tool in context.tools}
        tools = reading_tools(self._book, self._backend_of, self.read_file_tool_name, self.max_length_for_read)
        return replace(context, tools=(*context.tools, *[tool for tool in tools if tool.name not in names]))

    # Before the model: what is too long is truncated, what is old is cleared

    def _rewrite_state(
        self, state: ChatModelAgentState[Any], model_context: ModelContext, /
    ) -> Awaitable[ChatModelAgentState[Any] | None] | None:
        """Look at what is new; reduce the history only if there is too much of it."""
        book = self._book()
        if book.failure is not None:
            failure, book.failure = book.failure, None
            raise failure
        history: History[Any] = History.of(state.messages)
        wire = book.wire_of(model_context.wire, history)
        question = Question(wire, history, state.tool_infos)
        question.force = self.clear_after_idle is not None and self._was_idle(book, self.clear_after_idle)
        judge(question, self, book, model_context.last_usage)
        if not question.clears and question.shorten is None:
            return None
        return self._reduce(state, question, book)

    async def _reduce(
        self, state: ChatModelAgentState[Any], question: Question, book: Notebook
    ) -> ChatModelAgentState[Any] | None:
        try:
            reduced = await reduce_history(question, self, book, self._backend_of)
        except OffloadError as error:
            if self.on_backend_error == "raise":
                raise
            self._fail(book, error)
            return None
        if reduced is None:
            return None
        state = replace(state, messages=reduced.history, report=reduced.plan.to_dict())
        if reduced.cleared and self.clear_post_process is not None:
            await settled(self.clear_post_process(state))
        return state

    def _was_idle(self, book: Notebook, seconds: float) -> bool:
        """Tell whether the model was not asked for so long; it will be now."""
        last, now = book.asked_at, time.time()
        if book.scope is not None:
            last = last if last is not None else get_session_value(f"{book.key}/asked_at")[0]
            set_session_value(f"{book.key}/asked_at", now)
        book.asked_at = now
        return last is not None and now - last >= seconds

    # When a tool returns: what is too long is truncated, and no tool may claim that something was saved

    def _wrap_invokable(self, endpoint: InvokableEndpoint, context: ToolContext, /) -> InvokableEndpoint:
        if not self.truncates(context.name):
            return endpoint

        async def call(arguments: str, /, **options: Any) -> str:
            text = await endpoint(arguments, **options)
            if self._may_pass(context, len(text)):
                return text
            result = ToolResult((TextPart(text),))
            shorter = await self._truncating().whole(context, ToolArgument(arguments), result)
            return text if shorter is None else _text(shorter)

        return call

    def wrap_enhanced_invokable_tool_call(
        self, endpoint: EnhancedInvokableEndpoint, context: ToolContext, /
    ) -> EnhancedInvokableEndpoint:
        """Truncate what a multimodal tool gives."""
        truncates = self.truncates(context.name)

        async def call(argument: ToolArgument, /, **options: Any) -> ToolResult:
            result = _unmarked(await endpoint(argument, **options))
            if not truncates or self._may_pass(context, text_length(result.parts)):
                return result
            return await self._truncating().whole(context, argument, result) or result

        return call

    def _wrap_streamable(self, endpoint: StreamableEndpoint, context: ToolContext, /) -> StreamableEndpoint:
        if not self.truncates(context.name):
            return endpoint

        async def call(arguments: str, /, **options: Any) -> AsyncIterator[str]:
            source = _as_results(endpoint(arguments, **options))
            async with closing(self._truncating().stream(context, ToolArgument(arguments), source)) as pieces:
                async for piece in pieces:
                    yield _text(piece)

        return call

    def wrap_enhanced_streamable_tool_call(
        self, endpoint: EnhancedStreamableEndpoint, context: ToolContext, /
    ) -> EnhancedStreamableEndpoint:
        """Truncate what a multimodal tool streams."""
        truncates = self.truncates(context.name)

        async def call(argument: ToolArgument, /, **options: Any) -> AsyncIterator[ToolResult]:
            stream = endpoint(argument, **options)
            if truncates:
                stream = self._truncating().stream(context, argument, stream)
            async with closing(stream) as pieces:
                async for piece in pieces:
                    yield _unmarked(piece)

        return call

    def _may_pass(self, context: ToolContext, length: int) -> bool:
        """Tell at a glance that output is not too long; a handler of the tool's own is always asked."""
        return length <= self.max_length_for_trunc and self.config_of(context.name).trunc_handler is None

    def _truncating(self) -> Truncating:
        return Truncating(self, self._book(), self._backend_of, self._fail)


async def _as_results(texts: AsyncIterator[str]) -> AsyncIterator[ToolResult]:
    async with closing(texts) as coming:
        async for text in coming:
            yield ToolResult((TextPart(text),))


def _text(result: ToolResult) -> str:
    """Return the text of a plain tool's result."""
    return "".join([part.text for part in result.parts if isinstance(part, TextPart)])


def _unmarked(result: ToolResult) -> ToolResult:
    """Return what a tool gave without a mark that is not its to give."""
    if SAVED not in result.extra:
        return result
    return replace(result, extra={key: value for key, value in result.extra.items() if key != SAVED})
