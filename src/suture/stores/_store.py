"""`Store`, what the kernel asks of a journal, and what every store checks and decides alike."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Protocol

from suture.errors import ConfigError

__all__ = ["Store", "check_append", "check_run", "check_seconds", "stale_runs"]

MAX_RECORDS = 2**32
"""How many records one run may have."""


class Store(Protocol):
    """Keeps journals: bytes under the id of a run and a sequence number, which starts at 0 and has no gaps.

    A store does not know what the bytes mean. Nested agents have runs of their own, whose ids begin with the
    outer run's id and a slash. An append is whole or not at all, and when it returns the records outlive the
    process (in a store that keeps them outside of it).

    >>> import asyncio
    >>> from suture.stores import MemoryStore, Store
    >>> async def journal(store: Store) -> list[bytes]:
    ...     await store.append("run-1", 0, [b"started"])
    ...     await store.append("run-1", 1, [b"called", b"answered"])
    ...     return await store.load("run-1")
    >>> asyncio.run(journal(MemoryStore()))
    [b'started', b'called', b'answered']
    """

    async def append(self, run: str, first: int, records: Sequence[bytes]) -> None:
        """Write `records` as number `first`, `first` + 1, … of `run`: all of them, or none.

        It returns once they are written. If it raises, also because it was cancelled, none is. Raises
        `StoreConflictError` unless `first` is the next number of the run, `StoreError` if they cannot be written.
        """
        ...

    async def load(self, run: str) -> list[bytes]:
        """Return all records of `run` in order; none if there is no such run."""
        ...

    async def delete(self, run: str) -> None:
        """Delete `run` and the runs nested in it (whose ids start with `run` and a slash), if there are any."""
        ...

    async def runs(self) -> list[str]:
        """Return the ids of all runs, the one that changed last first."""
        ...

    async def expire(self, seconds: float) -> int:
        """Delete the runs that have not changed for `seconds`, and return how many these were.

        A run and those nested in it stay or go together: they are as old as the one that changed last.
        """
        ...


def check_append(run: str, first: int, records: Sequence[bytes]) -> None:
    """Raise `ConfigError` for what no store takes.

    >>> check_append("run-1", 0, ["text"])
    Traceback (most recent call last):
        ...
    suture.errors.ConfigError: a record is bytes, not str
    """
    check_run(run)
    if type(first) is not int or first < 0:
        raise ConfigError(f"records are counted from 0, so the first one cannot be {first!r}")
    if first + len(records) > MAX_RECORDS:
        raise ConfigError(f"a run has at most {MAX_RECORDS} records")
    for record in records:
        if type(record) is not bytes:
            raise ConfigError(f"a record is bytes, not {type(record).__name__}")


def check_run(run: str) -> None:
    """Raise `ConfigError` if `run` cannot be the id of a run.

    >>> check_run("")
    Traceback (most recent call last):
        ...
    suture.errors.ConfigError: the id of a run is a text that is not empty, not ''
    """
    if not isinstance(run, str) or not run:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"the id of a run is a text that is not empty, not {run!r}")
    if not run.isascii():
        try:
            run.encode()
        except UnicodeEncodeError:
            raise ConfigError(f"the id of a run cannot have a lone surrogate: {run!r}") from None


def check_seconds(name: str, seconds: float) -> None:
    """Raise `ConfigError` unless `seconds` is a length of time.

    >>> check_seconds("busy_timeout", -1)
    Traceback (most recent call last):
        ...
    suture.errors.ConfigError: busy_timeout is a number of seconds from 0 on, not -1
    """
    if not isinstance(seconds, int | float) or not isfinite(seconds) or seconds < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"{name} is a number of seconds from 0 on, not {seconds!r}")


def stale_runs(changed: Mapping[str, float], limit: float) -> list[str]:
    """Return the runs whose families have not changed since `limit`; `changed` says when each run last did.

    >>> stale_runs({"a": 1.0, "a/b": 9.0, "c": 2.0, "c/d": 1.0, "e/f": 3.0}, 5.0)
    ['c', 'c/d', 'e/f']
    """
    outermost = {run: _outermost(run, changed) for run in changed}
    newest: dict[str, float] = {}
    for run, head in outermost.items():
        newest[head] = max(changed[run], newest.get(head, changed[run]))
    return [run for run, head in outermost.items() if newest[head] <= limit]


def _outermost(run: str, known: Mapping[str, float]) -> str:
    # A slash in an id of the user's own is no nesting: only a run that is there can have others in it.
    end = run.find("/")
    while end >= 0:
        if run[:end] in known:
            return run[:end]
        end = run.find("/", end + 1)
    return run
