"""`PatchToolCallsMiddleware` for LangChain's agents, and for deepagents, where it replaces the class of that name.

It repairs the thread permanently before the agent runs, and each request at the last moment before the model is called,
so that it also repairs what other middlewares break.
"""

import logging
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, Unpack, cast

from langchain.agents import middleware as _middleware
from langchain.agents.middleware import AgentMiddleware, ModelRequest
from langchain_core.messages import AIMessage, RemoveMessage, ToolMessage
from langgraph.config import get_config
from langgraph.graph.message import REMOVE_ALL_MESSAGES  # pyright: ignore[reportMissingTypeStubs]
from msgspec.structs import replace

from suture.errors import ConfigError, InputError
from suture.integrations.guest import GuestOptions, Options, repair_history, repair_request
from suture.integrations.langchain.wire import WIRE
from suture.profiles import IdForm, Profile, get_profile, profile_of, rules
from suture.reduction.plan import complete
from suture.repair import Cause, Finding, is_whole, label, run_repair
from suture.wires import MARK, ResultEdit

__all__ = ["PatchToolCallsMiddleware"]

_LOG = logging.getLogger("suture.integrations.langchain")
_SUMMARY, _PLACES = "_summarization_event", ("cutoff_index", "created_at_index")
_PAIRING = get_profile("pairing")
_BY_ID = "langchain-google-genai gives a call the first result in the list that has its id"
_THREAD = replace(
    _PAIRING,
    name="thread",
    rules=(*_PAIRING.rules, *rules("thread", id_form="", not_empty="")),
    ids=IdForm(pattern="(?s).+"),
)
"""Only the structure, and some id for every call, because in a thread a call without one could never be answered."""
_GEMINI = get_profile("gemini")
_LANGCHAIN_GEMINI = replace(
    _GEMINI,
    rules=(
        *_GEMINI.rules,
        *rules("gemini", id_form=("A call has an id.", _BY_ID), id_unique=("An id is used once in a request.", _BY_ID)),
    ),
    ids=IdForm(pattern="(?s).+", scope="history"),
)
"""Gemini demands nothing of ids, but LangChain's own model for it does."""

_FARTHEST = 32
"""How many checkpoints are searched."""
_INTERRUPT, _MESSAGES = "__interrupt__", "messages"
_OF_THE_GRAPH = ("__", "branch:", _MESSAGES, "jump_to")
"""The beginnings of channels that do not show what a tool did to the state."""

Text = Literal["cancelled", "neutral", "cause"]
"""The texts of placeholders: the reference's for interrupted calls, one that names no cause, or Suture's own."""

_CANCELLED = "Tool call {name} with id {id} was cancelled - another message came in before it could be completed."
_NEUTRAL = (
    "Tool call {name} with id {id} did not complete - no result was recorded. "
    "It may have been cancelled or interrupted."
)
_MALFORMED = "Tool call {name} with id {id} could not be executed - arguments were malformed or truncated."
_TEXTS: dict[str, dict[Cause, str]] = {
    "cancelled": {Cause.INTERRUPTED: _CANCELLED, Cause.MALFORMED: _MALFORMED},
    "neutral": {**dict.fromkeys(Cause, _NEUTRAL), Cause.MALFORMED: _MALFORMED},
    "cause": {},
}
_ENDINGS = tuple(
    text.partition("{id}")[2]
    for text in (_CANCELLED, _CANCELLED.replace("cancelled", "canceled"), _NEUTRAL, _MALFORMED)
)
_LONGEST = 600
"""The most characters of a placeholder, since names and ids are short."""


def is_known_placeholder(text: str) -> bool:
    """Return whether `text` is a placeholder of LangChain or deepagents, old or new.

    >>> is_known_placeholder("Tool call f with id a did not complete - no result was recorded. "
    ...     "It may have been cancelled or interrupted.")
    True
    >>> is_known_placeholder("42")
    False
    """
    is_one = len(text) <= _LONGEST and text.startswith("Tool call ") and text.endswith(_ENDINGS)
    return is_one and " with id " in text


def _with_text(options: GuestOptions, text: Text) -> GuestOptions:
    """Return options whose placeholders have the text of the caller's generator, or of `text` if that is empty."""
    is_reference = text == "cancelled" and options.choices.language != "en"  # then Suture's own is the reference's
    ask, fixed = options.choices.generator, {} if is_reference else _TEXTS[text]

    def say(name: str, call_id: str, cause: Cause, place: tuple[int, int]) -> str:
        said = "" if ask is None else ask(name, call_id, cause, place)
        return said or fixed.get(cause, "").format(name=label(name or "unknown"), id=label(call_id))

    return replace(options, choices=replace(options.choices, generator=say))


def _trace_policy() -> Any:
    """Return a policy that keeps the messages out of traces, as in deepagents; older releases have none."""
    policy, omit = getattr(_middleware, "TracePolicy", None), getattr(_middleware, "omit_payload", None)
    return policy(process_inputs=omit) if policy is not None and omit is not None else None


def _trace(name: str, attributes: Mapping[str, Any]) -> None:
    """Add an event to LangSmith's current run, if the program uses that."""
    helpers: Any = sys.modules.get("langsmith.run_helpers")
    run = helpers.get_current_run_tree() if helpers is not None else None
    if run is not None:
        run.add_event({"name": name, "time": datetime.now(UTC).isoformat(), "kwargs": dict(attributes)})


class PatchToolCallsMiddleware(AgentMiddleware[Any, Any, Any]):
    """Repairs every history before a model sees it: placeholders, moves, duplicates, orphans, ids.

    Before the agent runs, the thread is repaired permanently. Results that tools returned before a run broke off, and
    that LangGraph dropped, are restored. Before each model call the request is repaired for that model's provider; any
    place in the stack is right. Calls that a run leaves open at its end are answered when the next one begins, so that
    the last message of a run does not change.

    In `create_deep_agent(middleware=[PatchToolCallsMiddleware()])` it replaces deepagents' own.

    Args:
        text: the texts of placeholders. `cancelled` is the reference's text if a human message follows, and the
            checkpointer does not show that the tool began; `neutral` names no cause (deepagents' newest); `cause`
            has Suture's own texts. In Chinese the first is Suture's own, too; the second is only in English.
        options: the options of every guest, see `suture.integrations.guest.Options`. An error of a `generator` ends the
            run before anything has changed.

    >>> PatchToolCallsMiddleware(text="cause").name
    'PatchToolCallsMiddleware'
    """

    trace_policy = _trace_policy()

    def __init__(self, *, text: Text = "cancelled", **options: Unpack[Options]) -> None:
        super().__init__()
        if text not in _TEXTS:
            raise ConfigError(f"unknown text {text!r}; known: {', '.join(_TEXTS)}")
        checked = GuestOptions.of(__name__, infers_cause=True, **options).treating(is_known_placeholder)
        self._options = replace(_with_text(checked, text), trace=_trace)
        self._known: tuple[Any, Profile] = None, profile_of("")
        """The last model and its profile."""
        self._request_class = _make_request_class(self._repaired)

    # Permanently

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Repair the thread, if it needs it."""
        del runtime
        return complete(_patch(state, self._options, waits=False))

    async def abefore_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Repair the thread, if it needs it."""
        del runtime
        return await _patch(state, self._options, waits=True)

    # For one model call

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Let the model see only what its provider accepts."""
        return handler(self._guard(request))

    def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Let the model see only what its provider accepts.

        It is a plain function that returns an awaitable: LangChain traces coroutine functions in other threads.
        """
        return handler(self._guard(request))

    def _guard(self, request: Any) -> Any:
        """Return a copy of `request` whose messages are repaired whenever they are read."""
        made = object.__new__(self._request_class)
        made.__dict__.update(request.__dict__)  # its constructor would take longer than the repair
        return made

    def _repaired(self, messages: Any, model: Any, system: Any) -> Any:
        """Return `messages`, which follow the system message, repaired for `model`."""
        if self._known[0] is not model:
            self._known = None if _is_chosen_in_run(model) else model, model_profile(model)
        profile = self._options.profile or self._known[1]
        profile = _LANGCHAIN_GEMINI if profile is _GEMINI else profile
        kept = () if system is None or not isinstance(messages[0], AIMessage) else (system,)
        return repair_request(messages, WIRE, self._options, profile=profile, kept=kept)


_SEEN = "_suture_seen"
"""The attribute with the last acceptable messages of a request: the list, its model, its length, its last message."""


def _make_request_class(repair: Callable[[Any, Any, Any], Any]) -> Any:
    """Return a class of requests whose messages `repair` repairs for the model when they are read.

    A middleware that changes a request makes a new one of the same class. So this class stays until the model is
    called, and whatever a middleware trims, adds or edits on the way is repaired before anyone sees it.
    """

    def read(request: Any) -> Any:
        own: dict[str, Any] = request.__dict__
        messages, model = own["messages"], own.get("model")
        if not messages:
            return messages
        known, of, length, last = own.get(_SEEN, (None, None, 0, None))
        if known is messages and of is model and length == len(messages) and last is messages[-1]:
            return messages
        own["messages"] = repaired = repair(messages, model, own.get("system_message"))
        own[_SEEN] = repaired, model, len(repaired), repaired[-1] if repaired else None
        return repaired

    def write(request: Any, messages: Any) -> None:
        request.__dict__["messages"] = messages

    kind = ModelRequest
    named = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return type(kind.__name__, (kind,), {"messages": property(read, write), **named})


# The profile of a model


def model_profile(model: Any) -> Profile:
    """Return the profile of a model by its provider, or by the name of its class.

    >>> class ChatMistralAI:
    ...     pass
    >>> model_profile(ChatMistralAI()).name
    'mistral'
    """
    if _is_chosen_in_run(model):
        model = _ask(model, "_model") or model
    provider: Any = _ask(model, "_get_ls_params")
    named = provider.get("ls_provider") if isinstance(provider, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    # A server with OpenAI's API has its own rules.
    profile = profile_of(f"{_ask(model, 'openai_api_base') or ''} {named or type(model).__name__}")
    if profile.name == "openai-chat" and _ask(model, "_use_responses_api", {}) is True:
        return get_profile("openai-responses")
    return profile


def _is_chosen_in_run(model: Any) -> bool:
    """Return whether a model stands for one that each run chooses."""
    return getattr(model, "__dict__", {}).keys() >= {"_default_config", "_queued_declarative_operations"}


def _ask(model: Any, name: str, *arguments: Any) -> Any:
    """Return an attribute of the model, or the result of a method; `None` if it has none, or if that fails."""
    try:
        found = getattr(model, name, None)
        return found(*arguments) if callable(found) else found
    except Exception:  # noqa: BLE001 - a failed guess must not end a run
        return None


# Repairing a thread permanently. When one of several calls fails, or the run is cancelled, the results of the others
# are already with the checkpointer, as pending writes of the last checkpoint. The next input makes a new checkpoint
# beside them, and they are lost: the conversation then says that a payment was not made although it was. This code
# finds them again, and also whether a person was asked before the tools began (then the call was interrupted), or
# whether they began (then nobody knows what they did).
#
# A result is used only if it certainly belongs to the call: the turn that the tools ran for must be the very message
# whose call has no result, and the call must not have changed since. A program may have corrected it.


class Lost(NamedTuple):
    """The result of a tool for one call, and its other writes to the state: channel and value."""

    result: ToolMessage
    writes: tuple[tuple[str, Any], ...] = ()


class LostTurn(NamedTuple):
    """A turn at which a run broke off, as it was then; its results by call; and whether a person was asked."""

    message: AIMessage
    results: Mapping[str, Lost]
    is_interrupt: bool


def _mark_unknown(turns: Collection[str]) -> dict[str, LostTurn]:
    """Return entries for turns of whose calls nothing is known."""
    return dict.fromkeys(turns, LostTurn(AIMessage(""), {}, is_interrupt=False))


async def _patch(state: Mapping[str, Any], options: GuestOptions, *, waits: bool) -> dict[str, Any] | None:
    """Return the update that repairs the messages of `state`, or `None` if they need no repair.

    With `waits` the checkpointer's async methods are used.
    """
    messages = state[_MESSAGES]
    try:
        if not messages or is_whole(WIRE, messages):
            return None
        found = run_repair(messages, WIRE, _PAIRING, replace(options.choices, generator=None))
    except InputError:  # unreadable; the reducer or the provider will say why
        return None
    if not found.changed:
        return None
    open_calls = _open_calls(messages, found.report.findings)
    turns = {messages[index].id for index in open_calls}
    try:
        lost = await _search(turns, waits=waits)
    except Exception:  # noqa: BLE001 - a checkpointer of any make must not end the run
        lost = _mark_unknown(turns)
        _LOG.warning(
            "a checkpointer cannot be read; what tools gave before a run broke off is not known", exc_info=True
        )
    messages, update, causes = _recover(messages, open_calls, lost, options)
    old = {id(message) for message in messages}
    whole = repair_history(messages, WIRE, options, profile=_THREAD, causes=causes, generator=None)
    if whole is None:
        return None
    made = [message if id(message) in old else _with_final_text(message, options) for message in whole.messages]
    everything = [RemoveMessage(id=REMOVE_ALL_MESSAGES), *made]
    return {**update, **_move_summary(state, made), _MESSAGES: everything}


def _with_final_text(message: Any, options: GuestOptions) -> Any:
    """Return a new message, a placeholder with its final text, since its call has an id and a name by now."""
    say = options.choices.generator
    if say is None or not isinstance(message, ToolMessage) or MARK not in message.response_metadata:
        return message
    cause, name = Cause(message.response_metadata[MARK]), message.name or ""
    text: Any = say(name, message.tool_call_id, cause, (0, 0))
    if not isinstance(text, str):
        raise ConfigError(f"generator returned {type(text).__name__}; it must return text")
    return WIRE.edit(message, {}, {0: ResultEdit(name=name or "unknown", text=text or None)})


def _single_calls(turn: AIMessage) -> dict[str, tuple[str, Any]]:
    """Return name and arguments of the calls of `turn` by id, without those that share an id."""
    calls = WIRE.view(turn).calls
    counts = Counter(call.id for call in calls)
    return {call.id: (call.name, call.arguments) for call in calls if call.id and counts[call.id] == 1}


def _open_calls(messages: Sequence[Any], findings: Sequence[Finding]) -> dict[int, list[str]]:
    """Return the ids of the calls without a result, by the place of their turn; only ids that are unique in it."""
    found: dict[int, list[str]] = {}
    for finding in findings:
        turn = messages[finding.index]
        dangles = finding.problem == "dangling" and isinstance(turn, AIMessage) and turn.id
        if dangles and finding.call_id in _single_calls(turn):
            found.setdefault(finding.index, []).append(finding.call_id)
    return found


def _recover(
    messages: Sequence[Any], open_calls: Mapping[int, list[str]], lost: Mapping[str, LostTurn], options: GuestOptions
) -> tuple[list[Any], dict[str, Any], dict[tuple[int, int], Cause]]:
    """Return `messages` with the results that LangGraph lost, the other writes of their tools, and causes.

    A call must be as it was when the tools ran. If a tool also wrote to the state, its result counts only together with
    that. The causes are for the other calls without a result, if the checkpointer shows that no person was asked.
    """
    last = max((index for index, message in enumerate(messages) if isinstance(message, AIMessage)), default=-1)
    made: list[Any] = []
    update: dict[str, Any] | None = None
    causes: dict[tuple[int, int], Cause] = {}
    for index, message in enumerate(messages):
        made.append(message)
        turn = lost.get(message.id) if index in open_calls else None
        if turn is None:
            continue
        place, now, then = len(made) - 1, _single_calls(message), _single_calls(turn.message)
        same = [call_id for call_id in open_calls[index] if now[call_id] == then.get(call_id)]
        found = [turn.results[call_id] for call_id in same if call_id in turn.results]
        found = [each for each in found if not _is_only_placeholder(each.result, options)]
        if index == last:
            tasks = {id(each.writes): each.writes for each in found if each.writes}
            update = combined([write for writes in tasks.values() for write in writes])
        fit = [each.result for each in found if not each.writes or (index == last and update is not None)]
        made += fit
        if not turn.is_interrupt and options.choices.cause is None:
            missing = {*open_calls[index]} - {result.tool_call_id for result in fit}
            for position, call in enumerate(WIRE.view(message).calls):
                if call.id in missing and not WIRE.is_malformed(call):
                    causes[place, position] = Cause.UNKNOWN
    return made, update or {}, causes


def _is_only_placeholder(result: ToolMessage, options: GuestOptions) -> bool:
    """Return whether a lost result is only a placeholder."""
    (text, is_all), test = WIRE.result_text(WIRE.view(result).results[0]), options.choices.is_placeholder
    return is_all and test is not None and test(text)


def combined(writes: Sequence[tuple[str, Any]]) -> dict[str, Any] | None:
    """Return the writes of tools to the state as one update; `None` if only the graph could combine them.

    >>> combined([("files", {"a": 1}), ("files", {"b": 2})]), combined([("files", {"a": 1}), ("files", {"a": 2})])
    ({'files': {'a': 1, 'b': 2}}, None)
    """
    update: dict[str, Any] = {}
    for channel, value in writes:
        held: Any = update.get(channel)
        if channel not in update:
            update[channel] = value
        elif isinstance(held, list) and isinstance(value, list):
            update[channel] = held + value
        elif isinstance(held, dict) and isinstance(value, dict) and not {*held} & {*value}:
            update[channel] = {**held, **value}
        else:
            return None
    return update


def _move_summary(state: Mapping[str, Any], made: Sequence[Any]) -> dict[str, Any]:
    """Return the update of the state's summary, whose indices must follow the messages to their new places."""
    event: Any = state.get(_SUMMARY)
    if not isinstance(event, dict):
        return {}
    old = [*map(_identity, state[_MESSAGES])]
    new = [*map(_identity, made)]
    known, places = {*old}, {key: place for place, key in enumerate(new)}
    moved: dict[str, Any] = {**event}
    for name in _PLACES:
        place = moved.get(name)
        if isinstance(place, int) and not isinstance(place, bool):
            now = max([places[key] for key in old[:place] if key in places], default=-1) + 1
            while now < len(made) and isinstance(made[now], ToolMessage) and new[now] not in known:
                now += 1  # a placeholder stays with its call
            moved[name] = now if place <= len(old) else len(made) + place - len(old)
    return {_SUMMARY: moved} if moved != event else {}


def _identity(message: Any) -> Any:
    return getattr(message, "id", None) or id(message)


# Reading the checkpointer


async def _checkpoints(*, waits: bool) -> AsyncGenerator[Any, None]:
    """Yield the checkpoints of the current run, newest first, and `None` at the end if older ones were not read."""
    try:
        settings: Mapping[str, Any] = get_config().get("configurable") or {}
    except RuntimeError:  # no run
        return
    checkpointer: Any = settings.get("__pregel_checkpointer")
    if not hasattr(checkpointer, "get_tuple") or "thread_id" not in settings:
        return
    graph = str(settings.get("checkpoint_ns") or "").rpartition("|")[0]  # without the node in it
    place = {"thread_id": settings["thread_id"], "checkpoint_ns": graph}
    newest: Any = dict(settings.get("checkpoint_map") or {}).get(graph)

    async def read(place: Mapping[str, Any]) -> Any:
        config = {"configurable": place}
        return await checkpointer.aget_tuple(config) if waits else checkpointer.get_tuple(config)

    saved = await read({**place, "checkpoint_id": newest}) if newest else None
    if saved is None:  # it is not stored yet: begin with the newest that is
        saved = await read(place)
    if saved is None:
        return
    for _ in range(_FARTHEST):
        yield saved
        if saved is None or not saved.parent_config:
            return
        saved = await read(saved.parent_config["configurable"])
    yield None


async def _search(turns: Collection[str], *, waits: bool) -> dict[str, LostTurn]:
    """Find the turns with these ids at which runs broke off, from the newest checkpoint of the current run back."""
    found: dict[str, LostTurn] = {}
    wanted = set(turns)
    # `loose` are lost results whose turn is not known yet. The flags say whether that turn may be open, whether a
    # person was asked, and whether tools began; then whether the next older checkpoint was abandoned (its writes never
    # came into the state), and whether it is the current run's own.
    loose, is_open, asked, began, left, is_own = dict[str, Lost](), False, False, False, True, True
    if not wanted:
        return found
    async with aclosing(_checkpoints(waits=waits)) as trail:
        async for saved in trail:
            if saved is None:
                return _mark_unknown(wanted) | found
            tasks, state = _tasks(saved.pending_writes or ()), _state(saved)
            applied = [] if left else [message for task in tasks for message in _messages(task)]
            is_step = dict(saved.metadata or {}).get("source") == "loop"
            if left:
                loose, asked = {**_results(tasks), **loose}, asked or _is_question(saved)
                began = began or (is_step and _has_tools_next(saved))
                may_be_open = not (state or is_own) or _last_turn(state, at_end=True) is not None
                is_open = is_open or began or (is_step and may_be_open)
            turn = _last_turn(applied) or _last_turn(state)
            if turn is not None and (loose or is_open):
                if turn.id in wanted:
                    asked = asked or (turn.id in found and found[turn.id].is_interrupt)
                    found[turn.id] = LostTurn(turn, loose, asked and not began)
                    if loose:  # else older checkpoints may have some, from before a program updated the state
                        wanted.discard(turn.id)
                loose, is_open, asked, began = {}, False, False, False
            if not any(isinstance(message, RemoveMessage) for message in applied):
                wanted.difference_update(message.id for message in applied if isinstance(message, AIMessage))
            left, is_own = not is_step, False
            if not wanted:
                break
    return found


_Task = list[tuple[str, Any]]
"""The writes of one task: channel and value."""


def _tasks(writes: Sequence[Any]) -> list[_Task]:
    tasks: dict[Any, _Task] = {}
    for task, channel, value in writes:
        tasks.setdefault(task, []).append((channel, value))
    return [*tasks.values()]


def _messages(task: _Task) -> list[Any]:
    return [message for channel, value in task if channel == _MESSAGES for message in _as_list(value)]


def _is_question(saved: Any) -> bool:
    """Return whether a run waited for a person before its tools began.

    If a tool itself asked, that is unknown: LangGraph keeps an answer only when the tool has ended.
    """
    asks = any(channel == _INTERRUPT for _, channel, _ in saved.pending_writes or ())
    return asks and not _has_tools_next(saved)


def _has_tools_next(saved: Any) -> bool:
    values: Mapping[str, Any] = saved.checkpoint.get("channel_values") or {}
    return bool(values.get("__pregel_tasks")) or "branch:to:tools" in values


def _results(tasks: Sequence[_Task]) -> dict[str, Lost]:
    """Return the results among the writes of tasks, by the id of the call."""
    found: dict[str, Lost] = {}
    for task in tasks:
        others = tuple([write for write in task if not write[0].startswith(_OF_THE_GRAPH)])
        for message in _messages(task):
            if isinstance(message, ToolMessage) and MARK not in message.response_metadata:
                found[message.tool_call_id] = Lost(message, others)
    return found


def _state(saved: Any) -> list[Any]:
    """Return the messages of a checkpoint; none if it keeps only new ones."""
    held: Any = dict(saved.checkpoint.get("channel_values") or {}).get(_MESSAGES)
    return _as_list(getattr(held, "value", held))


def _as_list(value: Any) -> list[Any]:
    if isinstance(value, list):
        return cast("list[Any]", value)
    return [] if value is None else [value]


def _last_turn(messages: Sequence[Any], *, at_end: bool = False) -> AIMessage | None:
    """Return the last message with calls; with `at_end` only if nothing but results follows it."""
    for message in reversed(messages):
        if isinstance(message, AIMessage) and (message.tool_calls or message.invalid_tool_calls):
            return message
        if at_end and not isinstance(message, ToolMessage):
            break
    return None
