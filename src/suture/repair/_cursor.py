"""Following a history as it grows: what was found in order is not looked at again."""

from collections.abc import Sequence
from typing import Any

from suture.messages import History
from suture.pairing import is_whole
from suture.wires import Wire

__all__ = ["Cursor"]


class Cursor:
    """How far a history was found in order. Tied to its log: another history starts from the beginning.

    >>> from suture.messages import Message
    >>> from suture.wires import get_wire
    >>> cursor = Cursor(get_wire("message"))
    >>> cursor.is_whole(History([Message.user("hi")])), cursor.place
    (True, 1)
    """

    __slots__ = ("_log", "place", "wire")

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.place = 0
        self._log: Sequence[Any] | None = None

    def is_whole(self, history: History[Any]) -> bool:
        """Tell whether each turn has just its results, right behind it; only what is new is looked at."""
        if history.log is not self._log or len(history) < self.place:
            self._log, self.place = history.log, 0
        messages = history.log if len(history.log) == history.length else history
        if not is_whole(self.wire, messages, self.place, set_like=self.wire.set_like):
            return False
        self.place = len(history)
        return True

    def settle(self, history: History[Any]) -> None:
        """Take it that `history` is in order, whatever a glance would say."""
        self._log, self.place = history.log, len(history)
