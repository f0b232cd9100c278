"""What a message weighs, the same for all policies."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from suture.tokens import CharacterCounter
from suture.wires import get_wire

__all__ = ["Scale"]


class _Known(NamedTuple):
    message: Any
    """Held, so that no other object gets its identity."""
    tokens: int
    key: int


class Scale:
    """Counts each message once, however often it is sent: characters / 4."""

    def __init__(self) -> None:
        self._counter = CharacterCounter()
        self._wire = get_wire("openai-chat")
        self._known: dict[int, _Known] = {}

    def of(self, message: Any) -> int:
        """Return the tokens of a message."""
        return (self._known.get(id(message)) or self._weigh(message)).tokens

    def key(self, message: Any) -> int:
        """Return a number that equal messages have in common."""
        return (self._known.get(id(message)) or self._weigh(message)).key

    def total(self, messages: Iterable[Any]) -> int:
        """Return the tokens of some messages."""
        return sum(map(self.of, messages))

    def _weigh(self, message: Any) -> _Known:
        known = _Known(message, self._counter.count(message, self._wire), hash(repr(message)))
        self._known[id(message)] = known
        return known
