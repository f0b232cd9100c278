"""The writing half of a journal: facts are noted as they become true, and written before the next step relies on them.

Messages are written by comparing the history with what was written last, so hooks need not tell what they did.
"""

import asyncio
from collections.abc import Sequence
from threading import Lock
from typing import Any

import msgspec

from suture.kernel._records import (
    Answered,
    Ended,
    Infos,
    Record,
    Replied,
    Spliced,
    Started,
    ValueDropped,
    ValueKept,
    encode_record,
)
from suture.kernel._spec import JournalStore, Spec
from suture.messages import History, TokenUsage, ToolInfo, ToolResult

__all__ = ["Journal", "plain"]


def plain(value: Any) -> Any:
    """Return one of our own values as plain data."""
    return msgspec.to_builtins(value)


class Journal:
    """Writes one run."""

    def __init__(self, spec: Spec, store: JournalStore, run: str, count: int = 0) -> None:
        self.store, self.run, self.wire = store, run, spec.wire
        self._shown = spec.shown
        self._next = count
        self._noted: list[bytes] = []
        self._written: History[Any] = History()
        self._lock = asyncio.Lock()
        self._guard = Lock()
        self._unsure: list[bytes] = []
        """What is being written; after a cancellation, what may or may not have been."""
        self.broken: Exception | None = None
        """The error that kept something from being written; nothing more is written then."""

    def note(self, record: Record) -> None:
        """Remember a fact until the next `flush`. Tools that run in threads may do so, too."""
        data = encode_record(record)
        with self._guard:
            self._noted.append(data)

    async def flush(self) -> None:
        """Write what was noted. When this returns it is safe."""
        async with self._lock:
            if self.broken is not None:
                return
            try:
                if self._unsure:
                    await self._look_again()
                with self._guard:
                    self._unsure, self._noted = [*self._unsure, *self._noted], []
                if self._unsure:
                    await self.store.append(self.run, self._next, self._unsure)
            except Exception as error:
                self.broken = error
                raise
            self._next += len(self._unsure)
            self._unsure = []

    async def _look_again(self) -> None:
        """After a write that was cancelled, see whether it was done: a store writes all of it or nothing."""
        count = len(self._unsure)
        stored = await self.store.load(self.run)
        if stored[self._next : self._next + count] == self._unsure:
            self._next += count
            self._unsure = []

    def take_over(self, history: History[Any]) -> None:
        """Regard `history` as written."""
        self._written = history

    def note_history(self, history: History[Any]) -> None:
        """Note how the history differs from what was noted last."""
        old = self._written
        if history.follows(old):
            start, stop, new = len(old), len(old), history[len(old) :]
        else:
            start, stop, new = _difference(old, history)
        if new or stop > start:
            self.note(Spliced(start, stop, [self.wire.dump(self._shown(message)) for message in new]))
        self._written = history

    def note_reply(
        self, history: History[Any], turn: int, message_id: str, usage: TokenUsage | None, *, is_last: bool
    ) -> None:
        """Note the history with the reply of a turn at its end."""
        self.note_history(history)
        self.note(Replied(turn, message_id, plain(usage) if usage is not None else {}, is_last))

    def note_infos(self, tool_infos: Sequence[ToolInfo], deferred: Sequence[ToolInfo]) -> None:
        """Note what the model is told about tools."""
        self.note(Infos(plain(tool_infos), plain(deferred)))

    async def start(self, calls: list[int]) -> None:
        """Write that these calls are about to run."""
        self.note(Started(calls))
        await self.flush()

    async def end(self, call: int, result: ToolResult, *, refused: bool) -> None:
        """Write the result of a call."""
        self.note(Ended(call, plain(self._shown(result)), refused))
        await self.flush()

    def note_answers(self, history: History[Any], directly: int | None, *, ends: bool) -> None:
        """Note that the results of a turn, which are written already, are in the history."""
        self.note(Answered(directly, ends))
        self._written = history

    def keep_value(self, kind: str, key: str, value: Any) -> None:
        """Note a value."""
        self.note(ValueKept(kind, key, value))

    def drop_value(self, key: str) -> None:
        """Note that a value is gone."""
        self.note(ValueDropped(key))


def _difference(old: History[Any], new: History[Any]) -> tuple[int, int, list[Any]]:
    """Return which slice of `old` became which messages: what both begin and end with stays."""
    shorter = min(len(old), len(new))
    start = 0
    while start < shorter and old[start] is new[start]:
        start += 1
    end = 0
    while end < shorter - start and old[-1 - end] is new[-1 - end]:
        end += 1
    return start, len(old) - end, new[start : len(new) - end]
