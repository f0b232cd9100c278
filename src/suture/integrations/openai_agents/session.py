"""`PatchedSession`: a session of the OpenAI Agents SDK that is read in good order."""

from copy import copy
from inspect import isawaitable, signature
from typing import Any, Unpack

from agents import (
    OpenAIConversationsSession,
    RunContextWrapper,
    Session,
    SessionABC,
    SessionSettings,
    TResponseInputItem,
)
from agents.memory import OpenAIResponsesCompactionSession

from suture.errors import ConfigError
from suture.integrations.guest import Options
from suture.integrations.openai_agents.items import Items

_METHODS = ("get_items", "add_items", "pop_item", "clear_session")
_SNAPSHOT = "_get_compaction_snapshot"


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

    def __init__(self, session: Session | SessionABC, **options: Unpack[Options]) -> None:
        if isinstance(session, OpenAIConversationsSession):
            raise ConfigError(
                "OpenAIConversationsSession cannot be patched: the SDK treats it by its class; "
                "give it to the run as it is, and PatchToolCalls() as call_model_input_filter"
            )
        missing = [name for name in _METHODS if not callable(getattr(session, name, None))]
        if missing:
            raise ConfigError(f"expected a session, found {type(session).__name__}, which has no {missing[0]}")
        if isinstance(session, OpenAIResponsesCompactionSession):
            session, store = copy(session), session.underlying_session
            session.underlying_session = (
                store if isinstance(store, PatchedSession) else PatchedSession(store, **options)
            )
        self.session = session
        """The session that keeps the items."""
        self._passes_wrapper = all(_takes_wrapper(getattr(session, name)) for name in _METHODS)
        self._items = Items(__name__, **options)

    @property
    def session_id(self) -> str:
        """The id of the session."""
        return self.session.session_id

    @session_id.setter
    def session_id(self, value: str) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        self.session.session_id = value

    @property
    def session_settings(self) -> SessionSettings | None:
        """The settings of the session."""
        return getattr(self.session, "session_settings", None)

    @session_settings.setter
    def session_settings(self, value: SessionSettings | None) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        self.session.session_settings = value

    async def get_items(
        self, limit: int | None = None, *, wrapper: RunContextWrapper[Any] | None = None
    ) -> list[TResponseInputItem]:
        """Return the history in good order, or the last `limit` items of it."""
        asked = {} if limit is None else {"limit": limit}
        stored: list[TResponseInputItem] = await self._call("get_items", wrapper=wrapper, **asked)
        if limit is not None and _is_under_way(wrapper):
            return stored  # the SDK compares the end of the store with what it wrote there
        repaired = self._items.repair(stored)
        if limit is not None and 0 < limit < len(repaired):
            repaired = self._items.repair(repaired[-limit:])
        return repaired

    async def add_items(
        self, items: list[TResponseInputItem], *, wrapper: RunContextWrapper[Any] | None = None
    ) -> None:
        """Store items, as they are."""
        await self._call("add_items", items, wrapper=wrapper)

    async def pop_item(self, *, wrapper: RunContextWrapper[Any] | None = None) -> TResponseInputItem | None:
        """Remove the last item that is stored, and return it."""
        return await self._call("pop_item", wrapper=wrapper)

    async def clear_session(self, *, wrapper: RunContextWrapper[Any] | None = None) -> None:
        """Remove all items."""
        await self._call("clear_session", wrapper=wrapper)

    async def _call(self, name: str, *arguments: Any, wrapper: Any, **named: Any) -> Any:
        if wrapper is not None and self._passes_wrapper:
            named["wrapper"] = wrapper
        given = getattr(self.session, name)(*arguments, **named)
        return await given if isawaitable(given) else given

    def __getattr__(self, name: str) -> Any:
        """Return what else the session has: compaction, `close`, and so on."""
        if name == "session":
            raise AttributeError(name)
        found = getattr(self.session, name)
        return found if name != _SNAPSHOT else self._snapshot_by(found)

    def _snapshot_by(self, read: Any) -> Any:
        """Return what reads a snapshot for compaction: none where the items are not as they are read from here."""

        async def read_snapshot(*arguments: Any, **named: Any) -> Any:
            snapshot = await read(*arguments, **named)
            stored = None if snapshot is None else list(snapshot.items)
            return snapshot if stored is None or self._items.repair(stored) is stored else None

        return read_snapshot

    def __repr__(self) -> str:
        return f"PatchedSession({self.session!r})"


def _takes_wrapper(method: Any) -> bool:
    try:
        return "wrapper" in signature(method).parameters
    except (TypeError, ValueError):
        return False


def _is_under_way(wrapper: RunContextWrapper[Any] | None) -> bool:
    """Tell whether the run that reads has begun: at its start no model was asked, and nobody decided anything."""
    if wrapper is None:
        return False
    decided: bool = bool(getattr(wrapper, "_approvals", None))
    return decided or wrapper.usage.requests > 0 or bool(wrapper.turn_input)
