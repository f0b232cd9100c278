"""Suture inside the OpenAI Agents SDK (package `agents`): runs and sessions whose histories never break.

`PatchToolCalls` is a model input filter: `RunConfig(call_model_input_filter=PatchToolCalls())`. `PatchedSession` wraps
a session: `PatchedSession(SQLiteSession("…"))`. Each can be used alone; together they cover everything.

Neither knows which model the items will go to, since a run may replace the agent's. So the items suit both kinds:
Responses takes them as they are, and for Chat Completions the SDK converts them to messages, where results must come
right after their calls. And no two calls have the same id, because the SDK would keep only one of them.
"""

from collections.abc import Awaitable, Callable, Mapping
from copy import copy
from dataclasses import replace as with_fields
from functools import partial, partialmethod
from inspect import signature
from typing import Any, Unpack, cast

from msgspec.structs import replace

from suture._aio import settle
from suture._extras import check_extra
from suture.errors import ConfigError
from suture.integrations.guest import GuestOptions, Options, repair_request
from suture.profiles import Profile, get_profile, profile_for, profile_of
from suture.providers import KEPT
from suture.providers.openai_responses.wire import OpenAIResponsesWire
from suture.wires import Call
from suture.wires.fields import get, put, word

try:
    import agents
    from agents import RunContextWrapper, Session, TResponseInputItem
    from agents.memory import OpenAIResponsesCompactionSession
    from agents.run import CallModelData, CallModelInputFilter, ModelInputData
    from agents.tracing import custom_span, get_current_trace
finally:  # an old release may lack some of these: its version says more than the ImportError
    check_extra("openai-agents", "agents")

__all__ = ["PatchToolCalls", "PatchedSession"]

_OF_ITEMS = {"repeated-item", "illegal-item-id", "lone-reasoning"}
"""Problems left to the SDK: it gives all items of a Chat Completions model one id, and removes that again."""
_METHODS = ("get_items", "add_items", "pop_item", "clear_session")
_SNAPSHOT = "_get_compaction_snapshot"
_LOCAL_SHELL = "local_shell_call_output"


class _ItemWire(OpenAIResponsesWire):
    """Items as the SDK stores them: blank arguments stay, because its compaction compares the exact text."""

    def arguments_ok(self, call: Call) -> bool:
        """Return whether the arguments of `call` are the text of an object, or blank."""
        return call.arguments == "" or super().arguments_ok(call)


_WIRE, _CHAT_WIRE = _ItemWire(), OpenAIResponsesWire()
_ANY = profile_for(_WIRE.name, get_profile(_WIRE.name), profile_of(""))
_PROFILE = replace(
    _ANY, adjacent=True, rules=tuple([rule for rule in _ANY.rules if not _OF_ITEMS.intersection(rule.problems)])
)


def _for_items(profile: Profile) -> Profile:
    """Return `profile` for items of the SDK: results follow their calls, and each call has its own id."""
    wanted = profile_for(_WIRE.name, _PROFILE, profile)
    known = {problem for rule in wanted.rules for problem in rule.problems}
    more = [rule for rule in _PROFILE.rules if "id" in rule.id and not known.issuperset(rule.problems)]
    ids = replace(wanted.ids or cast("Any", _PROFILE.ids), scope="history")
    return replace(wanted, adjacent=True, rules=(*wanted.rules, *more), ids=ids)


def _trace(name: str, attributes: Mapping[str, Any]) -> None:
    """Add a span to the trace of the current run."""
    if get_current_trace() is not None:
        with custom_span(name, dict(attributes)):
            pass


def _make_repair(options: Options) -> Callable[..., list[Any]]:
    """Return a function that repairs lists of items with these options, and can be pickled."""
    chosen = replace(GuestOptions.of(__name__, **options), trace=_trace)
    return partial(_repair_items, chosen, _PROFILE if chosen.profile is None else _for_items(chosen.profile))


def _repair_items(
    options: GuestOptions, profile: Profile, items: list[Any], *, kept: bool | None = False, chat: bool = False
) -> list[Any]:
    """Return repaired `items`, or the same list if they need no repair or cannot be read.

    `kept`: the service keeps earlier items, so results may answer calls that are not in the list; `None` assumes that
    if the list has nothing that a model made. `chat`: the items will be converted to Chat Completions.
    """
    if kept is None:
        kept = not any(map(_is_made_by_model, items))
    known = items
    if any(word(item, "type") == _LOCAL_SHELL for item in items):  # its `id` is what the SDK calls `call_id`
        known = [_with_other(item, "id", "call_id") for item in items]
    wire, before = _CHAT_WIRE if chat else _WIRE, (KEPT,) if kept else ()
    repaired = repair_request(known, wire, options, profile=profile, kept=before)
    return items if repaired is known else [_with_other(item, "call_id", "id") for item in repaired]


def _is_made_by_model(item: Any) -> bool:
    try:
        return _WIRE.made_by_model(item)
    except ValueError:  # unreadable items are for the repair to report
        return True


def _with_other(item: Any, name: str, other: str) -> Any:
    """Return a result of the local shell with the field `other` copied to `name`."""
    said = get(item, other)
    same = word(item, "type") != _LOCAL_SHELL or said is None or get(item, name) == said
    return item if same else put(item, **{name: said})


class PatchToolCalls:
    """A `call_model_input_filter` that gives each tool call in a run's requests its result.

    It repairs each request and stores nothing: the run's items and its session do not change.

    Args:
        after: another filter, which runs first; its output is repaired.
        stateful: whether the service keeps the conversation (`previous_response_id`, `conversation_id`). Then results
            may answer calls that are not sent again, and stay as they are. By default this is assumed if a request has
            nothing that a model made.
        options: the options of every guest, see `suture.integrations.guest.Options`. Without a `profile` the items suit
            Responses and Chat Completions alike, and ids nearly every provider.

    >>> from agents import RunConfig
    >>> config = RunConfig(call_model_input_filter=PatchToolCalls())
    """

    def __init__(
        self, *, after: CallModelInputFilter | None = None, stateful: bool | None = None, **options: Unpack[Options]
    ) -> None:
        if after is not None and not callable(after):
            raise ConfigError(f"after must be a model input filter, found {type(after).__name__}")
        self._after, self._stateful = after, stateful
        self._repair = _make_repair(options)

    def __call__(self, data: CallModelData[Any]) -> ModelInputData | Awaitable[ModelInputData]:
        """Return the input to send: `data.model_data` itself if that is acceptable."""
        if self._after is not None:
            return self._repaired_after(self._after, data)
        return self._repaired(data.model_data, data)

    async def _repaired_after(self, after: CallModelInputFilter, data: CallModelData[Any]) -> ModelInputData:
        return self._repaired(await settle(after(data)), data)

    def _repaired(self, sent: ModelInputData, data: CallModelData[Any]) -> ModelInputData:
        if not isinstance(sent, ModelInputData) or not isinstance(sent.input, list):  # pyright: ignore[reportUnnecessaryIsInstance] - of another filter
            return sent  # the SDK says what is wrong with it
        repaired = self._repair(sent.input, kept=self._stateful, chat=_speaks_chat(data.agent.model))
        return sent if repaired is sent.input else with_fields(sent, input=repaired)


def _speaks_chat(model: Any) -> bool:
    """Return whether the name or the class of a model says that it speaks Chat Completions."""
    name = model if isinstance(model, str) else " ".join([kind.__name__ for kind in type(model).__mro__])
    return any(part in name.lower() for part in ("chatcompletions", "litellm", "any-llm", "anyllm"))


def _inner_property(name: str, about: str) -> Any:
    """Return a property that reads and sets that of the inner session."""

    def change(self: "PatchedSession", value: Any) -> None:
        setattr(self.session, name, value)

    return property(lambda self: getattr(self.session, name, None), change, doc=about)


class PatchedSession(Session):
    """A session that wraps another one: its items are repaired when they are read, and stored as the run left them.

    A run with a session drops each call that has no result, and keeps only one of two calls with the same id. Read
    through this session, each call has a result and its own id, so nothing is dropped. A call that waits for approval
    still waits: a resumed run continues from its state, and finds in the store what it put there.

    If the session compacts, this one also wraps the store inside it, so that the repaired items are compacted.

    Args:
        session: the session that keeps the items. Do not wrap this one in another session, unless that compacts.
        options: the options of every guest, see `suture.integrations.guest.Options`.

    >>> from agents import SQLiteSession
    >>> PatchedSession(SQLiteSession("conversation")).session_id
    'conversation'
    """

    def __init__(self, session: Session | agents.SessionABC, **options: Unpack[Options]) -> None:
        if isinstance(session, agents.OpenAIConversationsSession):
            raise ConfigError(
                "OpenAIConversationsSession cannot be patched: the SDK treats it by its class; "
                "give it to the run as it is, and PatchToolCalls() as call_model_input_filter"
            )
        missing = [name for name in _METHODS if not callable(getattr(session, name, None))]
        if missing:
            raise ConfigError(f"expected a session, found {type(session).__name__}, which has no {missing[0]}")
        if isinstance(session, OpenAIResponsesCompactionSession):
            session, store = copy(session), session.underlying_session
            is_patched = isinstance(store, PatchedSession)
            session.underlying_session = store if is_patched else PatchedSession(store, **options)
        self.session = session
        """The session that keeps the items."""
        self._passes_wrapper = all("wrapper" in signature(getattr(session, name)).parameters for name in _METHODS)
        self._repair = _make_repair(options)

    session_id: str = _inner_property("session_id", "The id of the session.")
    session_settings: agents.SessionSettings | None = _inner_property(
        "session_settings", "The settings of the session."
    )

    async def get_items(
        self, limit: int | None = None, *, wrapper: RunContextWrapper[Any] | None = None
    ) -> list[TResponseInputItem]:
        """Return the repaired history, or its last `limit` items."""
        asked = {} if limit is None else {"limit": limit}
        stored: list[TResponseInputItem] = await self._call("get_items", wrapper=wrapper, **asked)
        if limit is not None and _has_begun(wrapper):
            return stored  # the SDK compares the end of the store with what it wrote there
        repaired = self._repair(stored)
        return self._repair(repaired[-limit:]) if limit is not None and 0 < limit < len(repaired) else repaired

    async def _call(self, name: str, *arguments: Any, wrapper: Any = None, **named: Any) -> Any:
        if wrapper is not None and self._passes_wrapper:
            named["wrapper"] = wrapper
        return await settle(getattr(self.session, name)(*arguments, **named))

    add_items: Any = partialmethod(_call, "add_items")
    pop_item: Any = partialmethod(_call, "pop_item")
    clear_session: Any = partialmethod(_call, "clear_session")

    def __getattr__(self, name: str) -> Any:
        """Return other attributes of the inner session, such as compaction and `close`."""
        if name == "session":
            raise AttributeError(name)
        found = getattr(self.session, name)
        return found if name != _SNAPSHOT else self._snapshot_by(found)

    def _snapshot_by(self, read: Any) -> Any:
        """Return a function that reads a snapshot for compaction, or `None` if its items would need a repair."""

        async def read_snapshot(*arguments: Any, **named: Any) -> Any:
            snapshot = await read(*arguments, **named)
            stored = None if snapshot is None else list(snapshot.items)
            return snapshot if stored is None or self._repair(stored) is stored else None

        return read_snapshot

    def __repr__(self) -> str:
        return f"PatchedSession({self.session!r})"


def _has_begun(wrapper: RunContextWrapper[Any] | None) -> bool:
    """Return whether the reading run has begun, by its requests, its input, or decisions about its approvals."""
    if wrapper is None:
        return False
    decided: bool = bool(getattr(wrapper, "_approvals", None))
    return decided or wrapper.usage.requests > 0 or bool(wrapper.turn_input)
