"""Suture inside the OpenAI Agents SDK (package `agents`): runs and sessions whose histories never break.

`PatchToolCalls` is a model input filter: `RunConfig(call_model_input_filter=PatchToolCalls())`. `PatchedSession` stands
around a session: `PatchedSession(SQLiteSession("…"))`. Each does its work alone; together they leave nothing out.

Which model the items go to, neither is told: a run may replace the agent's. So they suit both kinds: Responses takes
them as they are, and for Chat Completions the SDK makes messages of them, where results must stand right behind their
calls. And no two calls have one id, for the SDK itself would keep only one of them.
"""

from collections.abc import Awaitable, Callable, Mapping
from copy import copy
from dataclasses import replace as with_fields
from functools import partial, partialmethod
from inspect import signature
from typing import Any, Unpack, cast

from msgspec.structs import replace

from suture._aio import settle
from suture._extras import import_extra
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
except ModuleNotFoundError:
    import_extra("agents", "openai-agents>=0.22.1")  # says how to install it
    raise

__all__ = ["PatchToolCalls", "PatchedSession"]

_OF_ITEMS = {"repeated-item", "illegal-item-id", "lone-reasoning"}
"""What is left to the SDK: it gives all items of a Chat Completions model one id, and takes that from them again."""
_METHODS = ("get_items", "add_items", "pop_item", "clear_session")
_SNAPSHOT = "_get_compaction_snapshot"
_LOCAL_SHELL = "local_shell_call_output"


class _ItemWire(OpenAIResponsesWire):
    """Items as the SDK stores them: models leave arguments blank, and its compaction goes by the very text."""

    def arguments_ok(self, call: Call) -> bool:
        """Return whether the arguments of `call` are the text of an object, or blank."""
        return call.arguments == "" or super().arguments_ok(call)


_WIRE, _CHAT_WIRE = _ItemWire(), OpenAIResponsesWire()
_ANY = profile_for(_WIRE.name, get_profile(_WIRE.name), profile_of(""))
_PROFILE = replace(
    _ANY, adjacent=True, rules=tuple([rule for rule in _ANY.rules if not _OF_ITEMS.intersection(rule.problems)])
)


def _wanted(profile: Profile) -> Profile:
    """Return `profile` for items of the SDK: results behind their calls, and no id for two of them."""
    wanted = profile_for(_WIRE.name, _PROFILE, profile)
    known = {problem for rule in wanted.rules for problem in rule.problems}
    more = [rule for rule in _PROFILE.rules if "id" in rule.id and not known.issuperset(rule.problems)]
    ids = replace(wanted.ids or cast("Any", _PROFILE.ids), scope="history")
    return replace(wanted, adjacent=True, rules=(*wanted.rules, *more), ids=ids)


def _trace(name: str, attributes: Mapping[str, Any]) -> None:
    """Add a span to the trace of the run at hand."""
    if get_current_trace() is not None:
        with custom_span(name, dict(attributes)):
            pass


def _make_repair(options: Options) -> Callable[..., list[Any]]:
    """Return what repairs lists of items by these options; it can be pickled, as can whatever has it."""
    chosen = replace(GuestOptions.of(__name__, **options), trace=_trace)
    return partial(_repair_items, chosen, _PROFILE if chosen.profile is None else _wanted(chosen.profile))


def _repair_items(
    options: GuestOptions, profile: Profile, items: list[Any], *, kept: bool | None = False, chat: bool = False
) -> list[Any]:
    """Return `items` in good order; where they need nothing, or cannot be read, as the same list.

    `kept`: the service keeps what came before, so results may speak of calls that are not in the list; `None` takes it
    so where the list holds nothing that a model made. `chat`: Chat Completions will be made of the items.
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
    except ValueError:  # it cannot be read: the repair will say so
        return True


def _with_other(item: Any, name: str, other: str) -> Any:
    """Return a result of the local shell that says under `name` what it says under `other`."""
    said = get(item, other)
    same = word(item, "type") != _LOCAL_SHELL or said is None or get(item, name) == said
    return item if same else put(item, **{name: said})


class PatchToolCalls:
    """A `call_model_input_filter`: whatever a run would send, each of its tool calls has its result.

    It looks at all that is sent, with every step, and stores nothing: the run's items and its session stay as they are.

    Args:
        after: another filter, which goes first; what it leaves is repaired.
        stateful: whether the service keeps the conversation (`previous_response_id`, `conversation_id`). Then results
            may answer calls that are not sent again, and stay as they are. Not given, it is taken to do so where
            nothing that is sent was made by a model.
        options: those of every guest, see `suture.integrations.guest.Options`. Without a `profile` the items suit
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
        """Return what to send in the place of `data.model_data`; the very same if that is acceptable."""
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
    """Return whether a model is known to speak Chat Completions, as far as its name or its class says so."""
    name = model if isinstance(model, str) else " ".join([kind.__name__ for kind in type(model).__mro__])
    return any(part in name.lower() for part in ("chatcompletions", "litellm", "any-llm", "anyllm"))


def _of_inner(name: str, about: str) -> Any:
    """Return a property that is the inner session's."""

    def change(self: "PatchedSession", value: Any) -> None:
        setattr(self.session, name, value)

    return property(lambda self: getattr(self.session, name, None), change, doc=about)


class PatchedSession(Session):
    """A session over another one: what is read from it is in good order, what is stored stays as the run left it.

    A run that is given a session drops each call in it that has no result, and keeps one of two calls with the same id.
    Read through this session, each call has a result and an id of its own, so nothing is dropped. A call that waits for
    approval still does: a run that is resumed goes on from its state, and finds in the store what it put there.

    Around a session that compacts, this one also stands around the store in it: what is compacted is what is read.

    Args:
        session: the session that keeps the items. Let no other session stand around this one, unless it compacts.
        options: those of every guest, see `suture.integrations.guest.Options`.

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

    session_id: str = _of_inner("session_id", "The id of the session.")
    session_settings: agents.SessionSettings | None = _of_inner("session_settings", "The settings of the session.")

    async def get_items(
        self, limit: int | None = None, *, wrapper: RunContextWrapper[Any] | None = None
    ) -> list[TResponseInputItem]:
        """Return the history in good order, or the last `limit` items of it."""
        asked = {} if limit is None else {"limit": limit}
        stored: list[TResponseInputItem] = await self._call("get_items", wrapper=wrapper, **asked)
        if limit is not None and _is_under_way(wrapper):
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
        """Return what else the session has: compaction, `close`, and so on."""
        if name == "session":
            raise AttributeError(name)
        found = getattr(self.session, name)
        return found if name != _SNAPSHOT else self._snapshot_by(found)

    def _snapshot_by(self, read: Any) -> Any:
        """Return what reads a snapshot for compaction: none if the items are not as they are read from here."""

        async def read_snapshot(*arguments: Any, **named: Any) -> Any:
            snapshot = await read(*arguments, **named)
            stored = None if snapshot is None else list(snapshot.items)
            return snapshot if stored is None or self._repair(stored) is stored else None

        return read_snapshot

    def __repr__(self) -> str:
        return f"PatchedSession({self.session!r})"


def _is_under_way(wrapper: RunContextWrapper[Any] | None) -> bool:
    """Return whether the run that reads has begun: at its start no model was asked, and nobody decided anything."""
    if wrapper is None:
        return False
    decided: bool = bool(getattr(wrapper, "_approvals", None))
    return decided or wrapper.usage.requests > 0 or bool(wrapper.turn_input)
