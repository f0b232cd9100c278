"""`MemoryStore`: journals that live as long as the process. For tests, and for runs that need not survive it."""

import time
from collections.abc import Sequence
from threading import Lock

from suture.stores._errors import StoreConflictError
from suture.stores._store import check_append, check_run, check_seconds, stale_runs

__all__ = ["MemoryStore"]


class MemoryStore:
    """A store in memory: nothing is left of it when the process ends.

    It can be shared by tasks, event loops and threads.

    >>> import asyncio
    >>> from suture.stores import MemoryStore
    >>> store = MemoryStore()
    >>> asyncio.run(store.append("run-1", 0, [b"started"]))
    >>> asyncio.run(store.load("run-1"))
    [b'started']
    """

    def __init__(self) -> None:
        self._lock = Lock()
        # In the order of their last change.
        self._journals: dict[str, list[bytes]] = {}
        self._changed: dict[str, float] = {}

    async def append(self, run: str, first: int, records: Sequence[bytes]) -> None:
        """Write `records` as number `first`, `first` + 1, … of `run`: all of them, or none.

        >>> import asyncio
        >>> from suture.stores import MemoryStore
        >>> store = MemoryStore()
        >>> asyncio.run(store.append("run-1", 0, [b"started", b"called"]))
        >>> asyncio.run(store.append("run-1", 2, [b"answered"]))
        >>> len(asyncio.run(store.load("run-1")))
        3
        """
        check_append(run, first, records)
        if not records:
            return
        with self._lock:
            journal = self._journals.get(run, [])
            if first != len(journal):
                raise StoreConflictError(run, given=first, expected=len(journal))
            self._journals.pop(run, None)
            self._journals[run] = journal
            journal.extend(records)
            self._changed[run] = time.time()

    async def load(self, run: str) -> list[bytes]:
        """Return all records of `run` in order; none if there is no such run."""
        check_run(run)
        with self._lock:
            return list(self._journals.get(run, ()))

    async def delete(self, run: str) -> None:
        """Delete `run` and the runs nested in it, if there are any."""
        check_run(run)
        with self._lock:
            self._forget([each for each in self._journals if each == run or each.startswith(run + "/")])

    async def runs(self) -> list[str]:
        """Return the ids of all runs, the one that changed last first."""
        with self._lock:
            return list(reversed(self._journals))

    async def expire(self, seconds: float) -> int:
        """Delete the runs that, with all those nested in them, have not changed for `seconds`; return how many.

        >>> import asyncio
        >>> from suture.stores import MemoryStore
        >>> store = MemoryStore()
        >>> asyncio.run(store.append("run-1", 0, [b"started"]))
        >>> asyncio.run(store.expire(3600))
        0
        """
        check_seconds("seconds", seconds)
        with self._lock:
            stale = stale_runs(self._changed, time.time() - seconds)
            self._forget(stale)
            return len(stale)

    def _forget(self, runs: list[str]) -> None:
        for run in runs:
            del self._journals[run], self._changed[run]
