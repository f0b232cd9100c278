"""Wires on which a result is a message of its own: it moves as a whole, or not at all."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from suture.wires._wire import Piece, Wire

__all__ = ["ItemWire"]


class ItemWire(Wire):
    """A wire whose results are messages.

    >>> from suture.wires import get_wire
    >>> get_wire("openai-chat").rest({"role": "tool", "tool_call_id": "a", "content": "42"}, {}) is None
    True
    """

    @abstractmethod
    def placeholder(self, piece: Piece) -> Any:
        """Return a new message with a result for the call of `piece`, saying its text."""

    def carry(self, pieces: Sequence[Piece]) -> list[Any]:
        """Return the messages of these results."""
        return [self.placeholder(piece) if piece.message is None else piece.message for piece in pieces]

    def rest(self, message: Any, texts: Mapping[int, str]) -> Any | None:
        """Return a result kept as user text, or nothing."""
        del message
        return self.speak("user", texts[0]) if 0 in texts else None
