"""`PatchedSession`: a session of the OpenAI Agents SDK that is read in good order."""

from collections.abc import Callable
from inspect import isawaitable, signature
from typing import Any

from agents import (
    OpenAIConversationsSession,
    RunContextWrapper,
    Session,
    SessionABC,
    SessionSettings,
    TResponseInputItem,
)

from suture.errors import ConfigError
from suture.integrations._openai_agents_items import Generator, Items, Orphans

__all__ = ["PatchedSession"]

_METHODS = ("get_items", "add_items", "pop_item", "clear_session")
_NEXT: Any = {"role": "user", "content": "the message that came in"}


class PatchedSession(Session):
    """A session over another one: what is read from it is in good order, what is stored stays as the run left it.

    A run that is given a session drops each call in it that has no result, and keeps one of two calls with the same id.
    Read through this session, each call has a result and an id of its own, so nothing is dropped. A call that waits for
    approval still does: a run that is resumed goes on from its state, and finds in the store what it put there.

    Args:
        session: the session that keeps the items. Let no other session stand around this one.
        orphans: `text` keeps a result without a call as user text; `drop` removes it.
        generator: `(name, call_id)` or `(name, call_id, cause=…)` to the text that stands for a missing result; an
            empty text means the built-in one. It may be asked for the same call again.
        is_placeholder: tells from a result's text whether it only stands for a real one.
        language: of the texts, `en` or `zh`; the one in force if not given.

    >>> from agents import SQLiteSession
    >>> PatchedSession(SQLiteSession("conversation")).session_id
    'conversation'
    """

    def __init__(
        self,
        session: Session | SessionABC,
        *,
        orphans: Orphans = "text",
        generator: Generator | None = None,
        is_placeholder: Callable[[str], bool] | None = None,
        language: str | None = None,
    ) -> None:
        if isinstance(session, OpenAIConversationsSession):
            raise ConfigError(
                "OpenAIConversationsSession cannot be patched: the SDK treats it by its class; "
                "give it to the run as it is, and PatchToolCalls() as call_model_input_filter"
            )
        missing = [name for name in _METHODS if not callable(getattr(session, name, None))]
        if missing:
            raise ConfigError(f"expected a session, found {type(session).__name__}, which has no {missing[0]}")
        self.session = session
        """The session that keeps the items."""
        self._passes_wrapper = all(_takes_wrapper(getattr(session, name)) for name in _METHODS)
        self._items = Items(orphans=orphans, generator=generator, is_placeholder=is_placeholder, language=language)

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
        mended = self._mend(stored)
        if limit is not None and 0 < limit < len(mended):
            mended = self._mend(mended[-limit:])
        return mended

    def _mend(self, items: list[TResponseInputItem]) -> list[TResponseInputItem]:
        """Return what is acceptable in the place of `items`, which are read because a message came in."""
        known = [*items, _NEXT]
        mended = self._items.mend(known)
        return items if mended is known else mended[:-1]

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
        return getattr(self.session, name)

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
