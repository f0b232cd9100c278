"""Whose turn it is at a local model, and whether what was called off keeps it busy all the same."""

from collections.abc import Callable
from time import monotonic

__all__ = ["PATIENCE", "Turns"]

PATIENCE = 10.0
"""How many seconds the model may go on with what was called off; it looks between any two tokens."""


class Turns:
    """The requests that were sent and not served yet: they are served one after another, as they came.

    >>> now = 0.0
    >>> turns = Turns(clock=lambda: now)
    >>> turns.begin()
    >>> turns.ask(1)
    >>> turns.call_off(1)
    >>> now = 9.0
    >>> turns.is_stuck, turns.is_watched
    (False, True)
    >>> now = 10.0
    >>> turns.is_stuck
    True
    >>> turns.end(1)
    >>> turns.is_stuck, turns.is_watched
    (False, False)
    """

    def __init__(self, *, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._began: float | None = None
        """When the turn of the first request began; before the model is loaded, no turn has."""
        self._asked: dict[int, float | None] = {}
        """The requests, and when they were called off."""

    def begin(self) -> None:
        """Note that the model is loaded."""
        self._began = self._clock()

    def ask(self, number: int) -> None:
        """Note what was sent."""
        if not self._asked and self._began is not None:
            self._began = self._clock()
        self._asked[number] = None

    def call_off(self, number: int) -> None:
        """Note what nobody waits for any more."""
        if number in self._asked:
            self._asked[number] = self._clock()

    def end(self, number: int) -> None:
        """Note what was served: the turn of the next begins."""
        if self._asked.pop(number, self) is not self:
            self._began = self._clock()

    @property
    def is_watched(self) -> bool:
        """Whether something was called off that has not ended."""
        return any(off is not None for off in self._asked.values())

    @property
    def is_stuck(self) -> bool:
        """Whether the model goes on, out of patience, with what was called off."""
        off = next(iter(self._asked.values()), None)
        return off is not None and self._began is not None and self._clock() - max(off, self._began) >= PATIENCE
