"""`ToolReductionMiddleware`: tool output that cannot overflow the context, in LangChain's agents and in deepagents.

The plan is that of `suture.reduction`; here is where LangChain asks for it, and what it does to an agent's state.
Nothing of a conversation is kept between requests but how many tokens a message has, as long as the message lives.
"""

import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import Any, Literal, cast
from weakref import ref

from langchain.agents.middleware.types import AgentMiddleware, ModelRequest, ToolCallRequest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from suture._aio import run_blocking, settle
from suture.errors import ConfigError, OffloadError
from suture.integrations.langchain.backends import RUN_STORE, Backends, check_backend, is_readable
from suture.integrations.langchain.saved import Conversation, Reader
from suture.integrations.langchain.state import messages_of, result_messages, state_update, with_messages, with_update
from suture.integrations.langchain.wire import WIRE
from suture.messages import History, ToolArgument, ToolContext, ToolInfo, ToolResult
from suture.middleware.offload import check_saving
from suture.middleware.record import Question
from suture.reduction import Settings, ToolDetail
from suture.reduction.draft import SAVED
from suture.reduction.texts import folded
from suture.reduction.truncate import text_length
from suture.tokens import CharacterCounter, Tally, UsageCounter, is_incremental
from suture.wires import Call, ResultEdit, argument_json

__all__ = ["ToolReductionMiddleware"]

_LOG = logging.getLogger("suture.integrations.langchain")
_UNSAVED = "_reduction_mw_unsaved"
"""The key in `response_metadata` of a result whose handler wants it saved, which has not worked so far."""
_DEEP, _DEEP_LIMIT, _DEEP_PREVIEW = "deepagents.middleware.filesystem", 80_000, 500
"""Where deepagents' tools for files come from, how many characters of a result it leaves as they are, and how many of a
longer one."""


@dataclass(frozen=True, eq=False, repr=False)
class ToolReductionMiddleware(Settings, AgentMiddleware[Any, Any, Any]):
    """Keeps tool output from overflowing the context, in `create_agent` and in `create_deep_agent`.

    *Truncation*, when a tool returns: text longer than `max_length_for_trunc` is saved in the backend, and a notice
    with its beginning, its end and its path takes its place. *Clear*, before a model call: when the history has more
    than `max_tokens_for_clear` tokens, old results are saved and replaced by their paths, oldest first. What was
    replaced stays so in the agent's state: the next call begins with the same bytes. The model gets tools that read
    what was saved.

    A conversation reads its own output alone, which is at `/suture/{thread}/trunc/{call_id}` and
    `/suture/{thread}/clear/{call_id}`, or at `{root_dir}/{thread}/…`. In a run without a thread the id of its first
    message takes the thread's place: whoever knows that id can go on with the conversation, and read. Paths that
    your own functions or handlers choose can be read as long as this middleware, in this process, remembers that the
    conversation wrote them, and no longer: a mark in a message could name anybody's.

    Args:
        backend: where output is saved: one of `suture.stores`, a store of LangGraph, a key-value store of LangChain,
            a backend of deepagents or a function `runtime -> backend`, anything with `write(path, content)`; or
            `"store"`, the store that the agent was made with. It may be left out only together with `skip_truncation`.

    >>> from suture.stores import MemoryBackend
    >>> ToolReductionMiddleware(MemoryBackend(), max_tokens_for_clear=100_000).clear_retention_suffix_limit
    1
    """

    backend: Any = None
    _: KW_ONLY
    max_length_for_read: int = 20_000
    """How many characters the reading tools give at once."""
    add_reading_tools: bool = True
    """Whether the model gets `read_file`, `ls` and `grep` for what was saved, if the backend can be read. A tool of
    the agent's own with such a name is kept; asked for a path of this conversation, its `read_file` reads what was
    saved there."""
    on_backend_error: Literal["raise", "continue"] = "raise"
    """What happens when output cannot be saved: nothing is changed, and the run stops before the next model call, or
    goes on and a warning is logged."""

    _backends: Backends = field(default=cast("Any", None), init=False)
    _counts: "_Counts" = field(default=cast("Any", None), init=False)
    _reader: Reader | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.add_reading_tools) is not bool:
            raise ConfigError(f"add_reading_tools must be True or False, found {self.add_reading_tools!r}")
        check_saving(
            self,
            ": a backend of suture.stores, a store, a backend of deepagents, or "
            '"store" for the one that the agent was made with',
        )
        backends = Backends(self, self.backend)
        reads = self.add_reading_tools and any(map(is_readable, backends.all))
        made = {
            "_backends": backends,
            "_counts": _Counts(self),
            "_reader": Reader(self.read_file_tool_name, self.max_length_for_read) if reads else None,
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)

    # Before the model: what is too long is truncated, what is old is cleared

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> Any:
        """Send a history that is not too long."""
        request, work = self._look(request, waits=False)
        if work is None:
            return handler(request)
        request, update = run_blocking(work)
        return with_update(handler(request), update)

    def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[Any]]
    ) -> Any:
        """Send a history that is not too long.

        It gives what is to be awaited: around a coroutine function LangChain hops to other threads, for its traces.
        """
        request, work = self._look(request, waits=True)
        return handler(request) if work is None else self._send(work, handler)

    async def _send(self, work: "Coroutine[Any, Any, _Ready]", handler: Callable[..., Awaitable[Any]]) -> Any:
        request, update = await work
        return with_update(await handler(request), update)

    def _equipped(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        """Return a request with the tools that read what was saved, but none whose name is taken."""
        if self.backend == RUN_STORE and getattr(request.runtime, "store", None) is None:
            check_backend(None)
        if self._reader is None:
            return request
        taken = {*map(_tool_name, request.tools)}
        new = [tool for tool in self._reader.tools if tool.name not in taken]
        return request.override(tools=[*request.tools, *new]) if new else request

    def _open(self, messages: Sequence[Any], state: Any, runtime: Any, *, waits: bool) -> Conversation:
        """Return a conversation, and its backends."""
        book = Conversation(self, messages, messages_of(state), self._backends.memory, self._counts)
        book.backend_of = self._backends.in_run(runtime, waits=waits)
        return book

    def _look(
        self, request: ModelRequest[Any], *, waits: bool
    ) -> "tuple[ModelRequest[Any], Coroutine[Any, Any, _Ready] | None]":
        """Return a request with the reading tools, and what reduces its history; nothing if that is not too long."""
        request = self._equipped(request)
        if not request.messages or not (self.truncates_any or self.clears_any):
            return request, None
        book = self._open(request.messages, request.state, request.runtime, waits=waits)
        question = self._question(request, book)
        unsaved = any(_UNSAVED in message.response_metadata for _, message in _last_results(request.messages))
        due = question.clears or question.shorten is not None or unsaved
        return request, self._reduced(request, book, question) if due else None

    def _question(self, request: ModelRequest[Any], book: Conversation) -> Question:
        infos = self._counts.infos_of(request.tools) if self.clears_any else []
        return book.judge(Question(WIRE, book.history, infos), None)

    async def _reduced(self, request: ModelRequest[Any], book: Conversation, question: Question) -> "_Ready":
        """Reduce a history, and save what that takes out of it; return what changes in the state once it was sent.

        Nothing has changed if saving fails.
        """
        try:
            late = await self._save_late(book)
            reduced = await book.reduce(self._question(request, book) if late else question, book.backend_of)
        except OffloadError as error:
            if self.on_backend_error == "raise":
                raise
            _LOG.warning("%s; the history stays as it is", error)
            return request, []
        for save in reduced.plan.saves:
            book.own(save.path)
        cells = {**late, **reduced.cells}
        if not cells:
            return request, []
        made = reduced.history[:]
        if self.clear_post_process is not None and reduced.cleared:
            await settle(self.clear_post_process({**cast("Any", request.state), "messages": made}))
        update = state_update(request.messages, cells, messages_of(request.state))
        return request.override(messages=made), update

    # When a tool returns: what is too long is truncated

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """Give what a tool gave, not too long."""
        request = self._bound(request)
        given = handler(request)
        if not self._is_due(given, request.tool_call):
            return given
        return run_blocking(self._shortened(given, request.tool_call, self._book(request, waits=False)))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """Give what a tool gave, not too long."""
        request = self._bound(request)
        given = await handler(request)
        if not self._is_due(given, request.tool_call):
            return given
        return await self._shortened(given, request.tool_call, self._book(request, waits=True))

    def _book(self, request: ToolCallRequest, *, waits: bool) -> Conversation:
        """Return the conversation that a call belongs to."""
        runtime: Any = cast("Any", request).runtime
        book = self._open(messages_of(request.state), request.state, runtime, waits=waits)
        tools = getattr(runtime, "tools", None) or ()
        book.is_deep = any(getattr(getattr(tool, "func", None), "__module__", "") == _DEEP for tool in tools)
        return book

    def _bound(self, request: ToolCallRequest) -> ToolCallRequest:
        """Return a request that calls our tool for this conversation, where it is ours that was called."""
        reader, name = self._reader, request.tool_call["name"]
        if reader is None or name not in reader.names:
            return request
        tool = reader.bound(name, lambda waits: self._book(request, waits=waits))
        if request.tool is None:
            return request.override(tool=tool)
        arguments = request.tool_call["args"]
        path = arguments.get("path", arguments.get("file_path"))
        if name != self.read_file_tool_name or not isinstance(path, str):
            return request
        book = self._book(request, waits=False)
        if not book.may_read(path) or (folded(path) not in book.recorded() and book.is_deep):
            return request  # deepagents' own tool reads what is in deepagents' own files
        call: Any = {**request.tool_call, "args": {**arguments, "path": path}}
        return request.override(tool=tool, tool_call=call)

    def _is_due(self, given: Any, call: Mapping[str, Any]) -> bool:
        """Tell at a glance whether anything is to be done to what a call gave; a tool's own handler is always asked."""
        found = [given] if isinstance(given, ToolMessage) else result_messages(given)
        return any(self._is_long(message, call) for message in found)

    def _is_long(self, message: ToolMessage, call: Mapping[str, Any]) -> bool:
        if SAVED in message.response_metadata:
            return True  # a mark that is not a tool's to give
        name = _name_of(message, call)
        if not self.truncates(name):
            return False
        if self.config_of(name).trunc_handler is not None:
            return True
        content: Any = message.content
        if not isinstance(content, str):
            return text_length(WIRE.result_parts(WIRE.view(message).results[0]) or ()) > self.max_length_for_trunc
        return len(content) > self.max_length_for_trunc

    async def _shortened(self, given: Any, call: Mapping[str, Any], book: Conversation) -> Any:
        """Return what a call gave with all that is too long in it replaced; what cannot be saved stays whole."""
        made: dict[int, ToolMessage] = {}
        for message in result_messages(given):
            if self._is_long(message, call):
                made[id(message)], _ = await self._shorten(_unmarked(message), call, book)
        return with_messages(given, made)

    async def _save_late(self, book: Conversation) -> dict[int, list[ToolMessage]]:
        """Save the results that their handlers want saved, if there are any; return what takes their places."""
        made: dict[int, list[ToolMessage]] = {}
        for place, message in _last_results(book.history):
            if _UNSAVED in message.response_metadata:
                turn = next((each for each in reversed(book.history) if isinstance(each, AIMessage)), None)
                calls = {call.id: call for call in WIRE.view(turn).calls} if turn is not None else {}
                found = calls.get(message.tool_call_id, Call(message.tool_call_id, message.name or ""))
                call = {"id": found.id, "name": found.name, "args": found.arguments}
                shorter, failure = await self._shorten(_unmarked(message), call, book)
                if failure is not None:
                    raise failure
                made[place] = [shorter]
        if made:
            book.history = History([made.get(place, [each])[0] for place, each in enumerate(book.history)])
        return made

    async def _shorten(
        self, message: ToolMessage, call: Mapping[str, Any], book: Conversation
    ) -> tuple[ToolMessage, OffloadError | None]:
        """Return what takes the place of a message, and what kept it from being saved."""
        name = _name_of(message, call)
        parts = WIRE.result_parts(WIRE.view(message).results[0])
        if parts is None or not self.truncates(name):
            return message, None
        mine = message.tool_call_id == call["id"]
        detail = ToolDetail(
            tool_context=ToolContext(name, message.tool_call_id),
            tool_argument=ToolArgument(argument_json(call.get("args") or {}) if mine else "{}"),
            tool_result=ToolResult(tuple(parts), is_error=message.status == "error"),
        )
        if book.is_deep and text_length(parts) > _DEEP_LIMIT:
            # Of so much deepagents would leave very little: nor do we leave more.
            own: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(Settings)}
            own["max_length_for_trunc"] = min(_DEEP_PREVIEW, self.max_length_for_trunc)
            book = copy(book)
            book.settings = Settings(**own)
        try:
            shorter = await book.truncate(detail, book.backend_of)
        except OffloadError as failure:
            if self.config_of(name).trunc_handler is not None:
                message = cast("ToolMessage", WIRE.with_extra(message, {_UNSAVED: True}))
            return message, failure
        if shorter is None:
            return message, None
        extra = {key: value for key, value in shorter.extra.items() if key == SAVED}
        return cast("ToolMessage", WIRE.edit(message, {}, {0: ResultEdit(parts=shorter.parts, extra=extra)})), None


_Ready = tuple[ModelRequest[Any], list[BaseMessage]]
"""A request that can be sent, and what is to change in the state once it was."""


class _Memo:
    """Remembers what a function gives for a thing, as long as the thing lives."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make, self._known = make, dict[int, tuple[Any, Any]]()

    def __call__(self, thing: Any) -> Any:
        key = id(thing)
        known = self._known.get(key)
        if known is not None and known[0]() is thing:
            return known[1]
        made = self._make(thing)
        with suppress(TypeError):  # a dict is looked at anew
            self._known[key] = ref(thing, lambda _: self._known.pop(key, None)), made
        return made


class _Counts:
    """How many tokens messages and tools have: each message is counted once, as long as it lives."""

    def __init__(self, settings: Settings) -> None:
        counter = settings.token_counter
        self._reports = isinstance(counter, UsageCounter)
        found = counter.estimate if isinstance(counter, UsageCounter) else counter
        known: Any = found if found is not None and is_incremental(found) else CharacterCounter()
        self._tools = Tally(WIRE, known)
        self.of = _Memo(lambda message: Tally(WIRE, known).of(message))
        self._info_of = _Memo(_read_info)

    def infos_of(self, tools: Sequence[Any]) -> list[Any]:
        """Return what a model is told of each tool; of one that was met before the very same object."""
        return [*map(self._info_of, tools)]

    def total(self, messages: Sequence[Any], infos: Sequence[Any], _: None = None) -> int:
        """Return how many tokens a request has, by what the provider last reported if that is to be taken."""
        usage, behind = _last_usage(messages) if self._reports else (0, 0)
        if usage:
            return usage + sum(map(self.of, messages[behind:]))
        return sum(map(self.of, messages)) + self._tools.total((), infos)


def _read_info(tool: Any) -> Any:
    if isinstance(tool, dict):
        return cast("Any", tool)
    try:
        told = convert_to_openai_tool(tool)["function"]
    except Exception:  # noqa: BLE001 - a tool that cannot be described counts by its name
        return ToolInfo(str(getattr(tool, "name", "")), str(getattr(tool, "description", "")))
    return ToolInfo(told["name"], told.get("description", ""), told.get("parameters", {}))


def _last_usage(messages: Sequence[Any]) -> tuple[int, int]:
    """Return what the provider reported with its last reply, and how many messages that covers."""
    for place in range(len(messages) - 1, -1, -1):
        if isinstance(messages[place], AIMessage):
            usage = messages[place].usage_metadata
            return (0, 0) if usage is None else (usage["input_tokens"] + usage["output_tokens"], place + 1)
    return 0, 0


def _tool_name(tool: Any) -> str:
    if not isinstance(tool, dict):
        return str(getattr(tool, "name", ""))
    told = cast("dict[str, Any]", tool)
    return str(told.get("name") or cast("dict[str, Any]", told.get("function") or {}).get("name", ""))


def _name_of(message: ToolMessage, call: Mapping[str, Any]) -> str:
    """Return which tool a message is of: of the call at hand, unless it answers another."""
    return str(call["name"]) if message.tool_call_id == call["id"] else message.name or ""


def _unmarked(message: ToolMessage) -> ToolMessage:
    """Return a message without marks that are not a tool's to give."""
    marks: dict[str, Any] = message.response_metadata
    if SAVED not in marks and _UNSAVED not in marks:
        return message
    kept = {key: value for key, value in marks.items() if key not in {SAVED, _UNSAVED}}
    return message.model_copy(update={"response_metadata": kept})


def _last_results(messages: Sequence[Any]) -> list[tuple[int, ToolMessage]]:
    """Return the results behind the last turn, each with its place."""
    found: list[tuple[int, ToolMessage]] = []
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if isinstance(message, AIMessage):
            break
        if isinstance(message, ToolMessage):
            found.append((place, message))
    return found[::-1]
