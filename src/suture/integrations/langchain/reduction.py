"""`ToolReductionMiddleware`: tool output that cannot overflow the context, in LangChain's agents and in deepagents.

The plan is that of `suture.reduction`; this module connects it to LangChain's hooks, to a backend and to an agent's
state. Between requests it only keeps the token count of each message, as long as the message lives.
"""

import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, Literal, NoReturn, cast
from weakref import ref

from langchain.agents.middleware import AgentMiddleware, ModelRequest, types
from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.types import Command

from suture._aio import settle
from suture._loops import run_blocking
from suture.errors import ConfigError, NotInRunError, OffloadError
from suture.integrations.langchain.backends import RUN_STORE, Backends, Conversation, adapt
from suture.integrations.langchain.wire import WIRE
from suture.messages import TextPart, ToolArgument, ToolContext, ToolInfo, ToolResult
from suture.middleware.reading_tools import reading_tools
from suture.middleware.record import Question, check_saving
from suture.reduction import Settings, ToolDetail
from suture.reduction.draft import SAVED
from suture.reduction.phases import text_length
from suture.reduction.texts import folded
from suture.tokens import CharacterCounter, Tally, UsageCounter, is_incremental
from suture.tools import Tool, ToolArgumentsError
from suture.wires import ResultEdit, argument_json
from suture.wires.fields import get

__all__ = ["ToolReductionMiddleware"]

_LOG = logging.getLogger("suture.integrations.langchain")
_KEY = "messages"
_DEEP, _DEEP_LIMIT, _DEEP_PREVIEW = "deepagents.middleware.filesystem", 80_000, 500
"""The module of deepagents' file tools, how many characters of a result it leaves as they are, and how many it keeps of
a longer one."""
_Work = Coroutine[Any, Any, Any]


@dataclass(frozen=True, eq=False, repr=False)
class ToolReductionMiddleware(Settings, AgentMiddleware[Any, Any, Any]):
    """Keeps tool output from overflowing the context, in `create_agent` and in `create_deep_agent`.

    *Truncation*, when a tool returns: text longer than `max_length_for_trunc` is saved in the backend, and a notice
    with its beginning, its end and its path takes its place. *Clear*, before a model call: when the history has more
    than `max_tokens_for_clear` tokens, old results are saved and replaced by their paths, oldest first. What was
    replaced stays so in the agent's state: the next call begins with the same bytes. The model gets tools that read
    what was saved.

    A conversation can only read its own output, which is at `/suture/{thread}/trunc/{call_id}` and
    `/suture/{thread}/clear/{call_id}`, or at `{root_dir}/{thread}/…`. In a run without a thread the id of the first
    message replaces the thread's: whoever knows that id can continue the conversation, and read. Paths that your own
    functions or handlers choose can be read as long as this middleware, in this process, remembers that the
    conversation wrote them, because a mark in a message could name anybody's path.

    Args:
        backend: where output is saved: one of `suture.stores`, a store of LangGraph, a key-value store of LangChain,
            a backend of deepagents or a function `runtime -> backend`, anything with `write(path, content)`; or
            `"store"`, the store that the agent was made with. It may only be left out with `skip_truncation`.

    >>> from suture.stores import MemoryBackend
    >>> ToolReductionMiddleware(MemoryBackend(), max_tokens_for_clear=100_000).clear_retention_suffix_limit
    1
    """

    backend: Any = None
    _: KW_ONLY
    max_length_for_read: int = 20_000
    """How many characters the reading tools return at once."""
    add_reading_tools: bool = True
    """Whether the model gets `read_file`, `ls` and `grep` for saved output, if the backend can be read. The agent's own
    tools with these names are kept; its `read_file` also reads saved output, for paths of this conversation."""
    on_backend_error: Literal["raise", "continue"] = "raise"
    """What happens when output that is too long cannot be saved: nothing is changed, and the run stops before the next
    model call, or goes on and a warning is logged. Output that only your own handler wants saved stays, with a
    warning."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.add_reading_tools) is not bool:
            raise ConfigError(f"add_reading_tools must be True or False, found {self.add_reading_tools!r}")
        check_saving(
            self,
            ": a backend of suture.stores, a store, a backend of deepagents, or "
            '"store" for the one that the agent was made with',
        )
        _ = self._backends  # refuses wrong backends

    @cached_property
    def _backends(self) -> Backends:
        return Backends(self, self.backend)

    @cached_property
    def _counts(self) -> "Counts":
        return Counts(self)

    @cached_property
    def _readers(self) -> dict[str, StructuredTool]:
        """The tools that read saved output, as the model sees them, by name."""
        can_read = self.add_reading_tools and self._backends.can_read
        infos = [tool.info for tool in self._reading_tools(_refuse_outside_run).values()] if can_read else []
        return {
            info.name: StructuredTool(
                name=info.name,
                description=info.description,
                args_schema=dict(info.parameters or {}),
                func=_refuse_outside_run,
            )
            for info in infos
        }

    def _reading_tools(self, book: Callable[[], Conversation]) -> dict[str, Tool[..., Any]]:
        name, limit = self.read_file_tool_name, self.max_length_for_read
        return {tool.name: tool for tool in reading_tools(book, lambda name: book().backend_of(name), name, limit)}

    def _open(self, request: Any, messages: Sequence[Any], *, waits: bool) -> Conversation:
        """Return the conversation that a request belongs to."""
        backend_of = self._backends.in_run(request.runtime, waits=waits)
        held = messages_of(request.state)
        return Conversation(self, messages, held, (backend_of, self._backends.memory, self._counts))

    # Before the model: long output is truncated, old output is cleared

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

        It is a plain function that returns an awaitable: LangChain traces coroutine functions in other threads.
        """
        request, work = self._look(request, waits=True)
        return handler(request) if work is None else self._send(work, handler)

    async def _send(self, work: Awaitable[Any], handler: Callable[..., Awaitable[Any]]) -> Any:
        request, update = await work
        return with_update(await handler(request), update)

    def _look(self, request: ModelRequest[Any], *, waits: bool) -> tuple[ModelRequest[Any], _Work | None]:
        """Return a request with the reading tools, and work that reduces its history if that is too long."""
        if self.backend == RUN_STORE:
            adapt(getattr(request.runtime, "store", None), self._backends.memory)  # raises if there is none
        if self._readers:
            taken = {get(tool, "name") or get(get(tool, "function"), "name") for tool in request.tools}
            new = [tool for name, tool in self._readers.items() if name not in taken]
            own, request = request, copy(request)  # `override` would repair the messages again, and warn
            request.__dict__["tools"] = [*own.tools, *new]
        if not request.messages or not (self.truncates_any or self.clears_any):
            return request, None
        book = self._open(request, request.messages, waits=waits)
        infos = self._counts.infos_of(request.tools) if self.clears_any else []
        question = book.judge(Question(WIRE, book.history, infos), None)
        due = question.clears or question.shorten is not None
        return request, self._reduce(request, book, question) if due else None

    async def _reduce(
        self, request: ModelRequest[Any], book: Conversation, question: Question
    ) -> tuple[ModelRequest[Any], list[BaseMessage]]:
        """Reduce a history and save its output; return the request, and the update of the state for after the call."""
        try:
            reduced = await book.reduce(question, book.backend_of)
        except OffloadError as error:
            if self.on_backend_error == "raise":
                raise
            _LOG.warning("%s; the history stays as it is", error)
            return request, []
        for save in reduced.plan.saves:
            book.own(save.path)
        if not reduced.cells:
            return request, []
        made = reduced.history[:]
        if self.clear_post_process is not None and reduced.cleared:
            await settle(self.clear_post_process({**cast("Any", request.state), _KEY: made}))
        update = state_update(request.messages, reduced.cells, messages_of(request.state))
        return request.override(messages=made), update

    # When a tool returns: long output is truncated

    def wrap_tool_call(self, request: types.ToolCallRequest, handler: Callable[[types.ToolCallRequest], Any]) -> Any:
        """Return the result of a tool, truncated if it is too long."""
        reading = self._reading(request, waits=False)
        if reading is not None:
            return run_blocking(reading)
        given = handler(request)
        work = self._truncate_long(given, request, waits=False)
        return given if work is None else run_blocking(work)

    async def awrap_tool_call(
        self, request: types.ToolCallRequest, handler: Callable[[types.ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """Return the result of a tool, truncated if it is too long."""
        reading = self._reading(request, waits=True)
        if reading is not None:
            return await reading
        given = await handler(request)
        work = self._truncate_long(given, request, waits=True)
        return given if work is None else await work

    def _reading(self, request: types.ToolCallRequest, *, waits: bool) -> _Work | None:
        """Return work that answers a call of our reading tools, or of the agent's own `read_file` for saved output."""
        call = request.tool_call
        if call["name"] not in self._readers:
            return None
        arguments, book = call["args"], self._open(request, messages_of(request.state), waits=waits)
        if request.tool is not None:
            path = arguments.get("path", arguments.get("file_path"))
            if call["name"] != self.read_file_tool_name or not isinstance(path, str) or not book.may_read(path):
                return None
            if _is_deep(request) and folded(path) not in book.recorded():
                return None  # deepagents' own tool reads what is in deepagents' own files
            arguments = {**arguments, "path": path}
        return self._read(call, arguments, book)

    async def _read(self, call: Mapping[str, Any], arguments: Mapping[str, Any], book: Conversation) -> ToolMessage:
        """Return the result of a reading tool."""
        await book.look(arguments.get("path"))
        tool = self._reading_tools(lambda: book)[call["name"]]
        schema: Any = tool.info.parameters
        known = {key: value for key, value in arguments.items() if key in schema["properties"]}
        try:
            result = await tool.endpoint(ToolArgument(argument_json(known)))
            text = "".join([part.text for part in result.parts if isinstance(part, TextPart)])
        except ToolArgumentsError as error:
            result, text = None, str(error)
        status = "error" if result is None or result.is_error else "success"
        return ToolMessage(text, name=call["name"], tool_call_id=call["id"], status=status)

    def _truncate_long(self, given: Any, request: types.ToolCallRequest, *, waits: bool) -> _Work | None:
        """Return work that truncates the long messages in the result of a call; `None` if none looks too long."""
        long = [message for message in result_messages(given) if self._is_long(message, request.tool_call)]
        if not long:
            return None

        async def work() -> Any:
            book = self._open(request, messages_of(request.state), waits=waits)
            return with_messages(given, {id(message): await self._shorten(message, request, book) for message in long})

        return work()

    def _is_long(self, message: ToolMessage, call: Mapping[str, Any]) -> bool:
        name = _name_of(message, call)
        if SAVED in message.response_metadata:
            return True  # a tool must not set this mark
        if not self.truncates(name) or self.config_of(name).trunc_handler is not None:
            return self.truncates(name)
        return text_length(WIRE.result_parts(WIRE.view(message).results[0]) or ()) > self.max_length_for_trunc

    async def _shorten(self, message: ToolMessage, request: types.ToolCallRequest, book: Conversation) -> ToolMessage:
        """Return a message truncated, or whole if it cannot be saved."""
        call = request.tool_call
        marks = {key: value for key, value in message.response_metadata.items() if key != SAVED}
        message = message.model_copy(update={"response_metadata": marks})
        name, parts = _name_of(message, call), WIRE.result_parts(WIRE.view(message).results[0])
        if parts is None or not self.truncates(name):
            return message
        mine = message.tool_call_id == call["id"]
        detail = ToolDetail(
            tool_context=ToolContext(name, message.tool_call_id),
            tool_argument=ToolArgument(argument_json(call.get("args") or {}) if mine else "{}"),
            tool_result=ToolResult(tuple(parts), is_error=message.status == "error"),
        )
        if text_length(parts) > _DEEP_LIMIT and _is_deep(request):
            # deepagents would leave very little of so much, so we leave no more.
            book = copy(book)
            book.settings = replace(self, max_length_for_trunc=min(_DEEP_PREVIEW, self.max_length_for_trunc))
        try:
            shorter = await book.truncate(detail, book.backend_of)
        except OffloadError as failure:  # `wrap_model_call` will raise it if the output is too long
            if self.config_of(name).trunc_handler is not None:
                _LOG.warning("%s; it stays as it is", failure)
            return message
        if shorter is None:
            return message
        extra = {key: value for key, value in shorter.extra.items() if key == SAVED}
        return cast("ToolMessage", WIRE.edit(message, {}, {0: ResultEdit(parts=shorter.parts, extra=extra)}))


class _Memo:
    """Remembers the result of a function for an object, as long as the object lives."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make, self._known = make, dict[int, tuple[Any, Any]]()

    def __call__(self, thing: Any) -> Any:
        key = id(thing)
        known = self._known.get(key)
        if known is not None and known[0]() is thing:
            return known[1]
        made = self._make(thing)
        with suppress(TypeError):  # a dict has no weak references, so it is not remembered
            self._known[key] = ref(thing, lambda _: self._known.pop(key, None)), made
        return made


class Counts:
    """Counts the tokens of messages and tools; each message is counted once, as long as it lives."""

    def __init__(self, settings: Settings) -> None:
        counter = settings.token_counter
        known: Any = counter if counter is not None and is_incremental(counter) else CharacterCounter()
        self._reports = isinstance(counter, UsageCounter)
        self._tools = Tally(WIRE, known)
        self.of = _Memo(lambda message: Tally(WIRE, known).of(message))
        self._info_of = _Memo(_read_info)

    def infos_of(self, tools: Sequence[Any]) -> list[Any]:
        """Return the description of each tool for the model; for a known tool the same object."""
        return [*map(self._info_of, tools)]

    def total(self, messages: Sequence[Any], infos: Sequence[Any], _: None = None) -> int:
        """Return how many tokens a request has, based on the provider's last report if the counter uses that."""
        places = range(len(messages) - 1, -1, -1) if self._reports else ()
        last = next((place for place in places if isinstance(messages[place], AIMessage)), None)
        usage = None if last is None else messages[last].usage_metadata
        reported = 0 if usage is None else usage["input_tokens"] + usage["output_tokens"]
        if last is not None and reported:
            return reported + sum(map(self.of, messages[last + 1 :]))
        return sum(map(self.of, messages)) + self._tools.of_rest(infos)


def _read_info(tool: Any) -> Any:
    if isinstance(tool, dict):
        return cast("Any", tool)
    try:
        function = convert_to_openai_tool(tool)["function"]
    except Exception:  # noqa: BLE001 - a tool that cannot be described counts by its name
        return ToolInfo(str(getattr(tool, "name", "")), str(getattr(tool, "description", "")))
    return ToolInfo(function["name"], function.get("description", ""), function.get("parameters", {}))


def _is_deep(request: Any) -> bool:
    """Return whether the agent is one of deepagents'."""
    tools = getattr(request.runtime, "tools", None) or ()
    return any(getattr(getattr(tool, "func", None), "__module__", "") == _DEEP for tool in tools)


def _name_of(message: ToolMessage, call: Mapping[str, Any]) -> str:
    """Return the tool that a message is from: that of `call`, unless the message answers another call."""
    return str(call["name"]) if message.tool_call_id == call["id"] else message.name or ""


def _refuse_outside_run(**_: Any) -> NoReturn:
    raise NotInRunError("this tool reads what an agent's conversation has saved; it works inside an agent alone")


# Messages on their way into an agent's state: results of tools, and replacements


def messages_of(state: Any) -> Sequence[Any]:
    """Return the messages in an agent's state."""
    return state.get(_KEY) or ()


def result_messages(given: Any) -> list[ToolMessage]:
    """Return the tool messages in the result of a call: a message, a command with messages, or a list of these.

    >>> given = Command(update={"messages": [ToolMessage("42", tool_call_id="a")], "n": 1})
    >>> [message.content for message in result_messages(given)]
    ['42']
    """
    if isinstance(given, Command):
        update = cast("Command[Any]", given).update
        return result_messages(cast("dict[str, Any]", update).get(_KEY)) if isinstance(update, dict) else []
    if isinstance(given, list):
        return [message for each in cast("list[Any]", given) for message in result_messages(each)]
    return [given] if isinstance(given, ToolMessage) else []


def with_messages(given: Any, made: Mapping[int, ToolMessage]) -> Any:
    """Return the result of a call with messages replaced: `made` has the new ones by the old ones' `id()`."""
    if isinstance(given, list):
        return [with_messages(each, made) for each in cast("list[Any]", given)]
    if not result_messages(given) or not isinstance(given, Command):
        return made.get(id(given), given)
    command = cast("Any", given)
    return replace(command, update={**command.update, _KEY: with_messages(command.update[_KEY], made)})


def state_update(before: Sequence[Any], cells: Mapping[int, Sequence[Any]], state: Sequence[Any]) -> list[BaseMessage]:
    """Return the update that puts `cells` in the places of messages of `before` in a state, by their ids.

    A message that is different in the state is left alone: another middleware changed it for this request, or it has no
    id. A round whose messages cannot all be replaced stays as a whole.

    >>> old, new = ToolMessage("a long text", tool_call_id="a", id="1"), ToolMessage("…", tool_call_id="a", id="1")
    >>> [message.content for message in state_update([old], {0: [new]}, [old])], state_update([old], {0: [new]}, [])
    (['…'], [])
    """
    held = {getattr(message, "id", None): message for message in state}
    rounds: list[list[int]] = [[]]
    for place, message in enumerate(before):
        if isinstance(message, AIMessage):
            rounds.append([])
        if place in cells:
            rounds[-1].append(place)
    update: list[BaseMessage] = []
    for places in rounds:
        old = [before[place] for place in places]
        if all(getattr(each, "id", None) and _is_same(held.get(each.id), each) for each in old):
            update += replacements(old, [message for place in places for message in cells[place]])
    return update


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two messages are equal; if their contents cannot be compared (arrays, say), they are not."""
    try:
        return one is other or bool(one == other)
    except Exception:  # noqa: BLE001 - an artifact may raise anything
        return False


def with_update(response: Any, update: list[BaseMessage]) -> Any:
    """Return the model's response together with an update of the state."""
    if not update:
        return response
    whole: Any = types.ModelResponse(result=[response]) if isinstance(response, AIMessage) else response
    return types.ExtendedModelResponse(model_response=whole, command=Command(update={_KEY: update}))


def replacements(old: Sequence[Any], new: Sequence[Any]) -> list[BaseMessage]:
    """Return messages that take the places of `old`, and removals for the rest of the places."""
    if len(new) > len(old):
        raise ConfigError(
            f"clear_message_rewriter gave {len(new)} messages in the place of {len(old)}; in LangChain a round can be "
            "replaced by as many messages as it has, or by fewer"
        )
    made = [message.model_copy(update={"id": place.id}) for message, place in zip(new, old, strict=False)]
    return [*made, *[RemoveMessage(id=place.id) for place in old[len(new) :]]]
