"""The new list, written from left to right: what is untouched is copied as it is."""

from collections.abc import Mapping, Sequence
from typing import Any

from suture.wires import Piece, Wire

__all__ = ["Builder"]


class Builder:
    """The output so far, and where each of its messages came from.

    >>> from suture.wires import get_wire
    >>> builder = Builder(get_wire("openai-chat"), ["a", "b"], 0)
    >>> builder.copy_to(2)
    >>> builder.built, builder.origins
    (['a', 'b'], [0, 1])
    """

    def __init__(self, wire: Wire, messages: Sequence[Any], start: int) -> None:
        self.wire, self.messages, self.cursor = wire, messages, start
        self.built: list[Any] = []
        self.origins: list[int] = []

    def copy_to(self, index: int) -> None:
        """Copy what is untouched, up to `index`."""
        if index > self.cursor:
            self.built += self.messages[self.cursor : index]
            self.origins += range(self.cursor, index)
            self.cursor = index

    def rebuild(self, index: int, texts: Mapping[int, str] | None, pieces: Sequence[Piece] | None) -> None:
        """Write message `index` without the results that move away, then those that move here."""
        self.copy_to(index)
        message = self.messages[index]
        remainder = message if texts is None else self.wire.rest(message, texts)
        if remainder is not None:
            self._add(remainder, index)
        if pieces:
            for carrier in self.wire.carry(pieces):
                self._add(carrier, index)
        self.cursor = index + 1

    def _add(self, message: Any, origin: int) -> None:
        self.built.append(message)
        self.origins.append(origin)
