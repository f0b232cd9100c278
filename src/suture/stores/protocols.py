"""The interfaces of stores and backends, their errors, and the checks that all stores share."""

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from math import isfinite
from typing import Final, NamedTuple, Protocol, runtime_checkable
from zlib import crc32

from suture._text import plural, quote
from suture.errors import ConfigError, SutureError

MAX_RECORDS: Final = 2**32
"""How many records one run may have."""


# --- errors -----------------------------------------------------------------------------------


class StoreError(SutureError):
    """A store cannot be opened, read or written. After a failed write nothing was stored, not even a part.

    >>> from suture.stores import StoreError
    >>> raise StoreError("/data/runs.db: record 3 of run 'a' was not written: the disk is full")
    Traceback (most recent call last):
        ...
    suture.stores.protocols.StoreError: /data/runs.db: record 3 of run 'a' was not written: the disk is full
    """


class StoreConflictError(StoreError):
    """Another writer changed the same run: the next record of `run` is number `expected`, not `given`.

    >>> from suture.stores import StoreConflictError
    >>> StoreConflictError("a", given=3, expected=5).expected
    5
    """

    def __init__(self, run: str, *, given: int, expected: int, reason: str = "") -> None:
        self.run = run
        self.given = given
        self.expected = expected
        fault = "is taken" if given < expected else "would leave a gap"
        super().__init__(
            reason
            or f"record {given} of run {run!r} {fault}: the next one is {expected}. "
            "Something else has written or deleted this run; load it again, or give each writer a run of its own"
        )


class LeaseError(StoreError):
    """Another owner holds the lease of `run`, so this one may not write to it.

    >>> from suture.stores import LeaseError
    >>> raise LeaseError("a", "worker-1", "worker-2")
    Traceback (most recent call last):
        ...
    suture.stores.protocols.LeaseError: 'worker-1' may not write run 'a': its lease is held by 'worker-2'
    """

    def __init__(self, run: str, owner: str, holder: str) -> None:
        self.run, self.owner, self.holder = run, owner, holder
        super().__init__(f"{owner!r} may not write run {run!r}: its lease is held by {holder!r}")


class DamagedJournalError(StoreError):
    """A record is not what was written: another program or the disk has changed it.

    >>> from suture.stores import DamagedJournalError
    >>> raise DamagedJournalError("/data/runs.db: record 3 of run 'a' is damaged; bring back a copy")
    Traceback (most recent call last):
        ...
    suture.stores.protocols.DamagedJournalError: /data/runs.db: record 3 of run 'a' is damaged; bring back a copy
    """


class PathTakenError(StoreError):
    """A backend has another file at `path` already, and left it unchanged: a saved file is never overwritten.

    The path begins with a slash, as it does in `FileBackend.paths`.

    >>> from suture.stores import PathTakenError
    >>> PathTakenError("/run-1/trunc/call_1").path
    '/run-1/trunc/call_1'
    """

    def __init__(self, path: str, reason: str = "a saved file is never overwritten") -> None:
        self.path = f"/{path.removeprefix('/')}"
        super().__init__(f"{quote(path, 80)} is taken: {reason}; choose another path")


class PathNotFoundError(StoreError):
    """A backend has no file at `path`, which begins with a slash.

    >>> from suture.stores import PathNotFoundError
    >>> raise PathNotFoundError("/run-1/a")
    Traceback (most recent call last):
        ...
    suture.stores.protocols.PathNotFoundError: there is no file at '/run-1/a'; it was never written, or is deleted
    """

    def __init__(self, path: str) -> None:
        self.path = f"/{path.removeprefix('/')}"
        super().__init__(f"there is no file at {quote(path, 80)}; it was never written, or is deleted")


# --- journals ---------------------------------------------------------------------------------


class Entry(NamedTuple):
    """A record and its number in the run."""

    number: int
    record: bytes


class Lease(NamedTuple):
    """Who holds the lease of a run, and for how many seconds more."""

    owner: str
    seconds: float


class Store(Protocol):
    """Keeps journals: bytes under the id of a run and a sequence number, which starts at 0 and has no gaps.

    A store does not know what the bytes mean. Nested agents have runs of their own, whose ids begin with the
    outer run's id and a slash. A write happens completely or not at all, and when it returns the records outlive
    the process (unless the store is in memory). Reading a damaged record raises `DamagedJournalError`.

    >>> import asyncio
    >>> from suture.stores import MemoryStore, Store
    >>> async def journal(store: Store) -> list[bytes]:
    ...     await store.append("run-1", 0, [b"started"])
    ...     await store.append("run-1", 1, [b"called", b"answered"])
    ...     return await store.load("run-1")
    >>> asyncio.run(journal(MemoryStore()))
    [b'started', b'called', b'answered']
    """

    async def append(self, run: str, first: int, records: Sequence[bytes], *, owner: str | None = None) -> None:
        """Write `records` as number `first`, `first` + 1, … of `run`: all of them, or none.

        It returns once they are written. If it raises, even because it was cancelled, none is. Raises
        `StoreConflictError` unless `first` is the next number of the run, `LeaseError` if an `owner` is given and
        another one holds the lease, `StoreError` if they cannot be written.

        >>> import asyncio
        >>> from suture.stores import MemoryStore
        >>> store = MemoryStore()
        >>> asyncio.run(store.append("run-1", 0, [b"started", b"called"]))
        >>> asyncio.run(store.append("run-1", 2, [b"answered"]))
        >>> len(asyncio.run(store.load("run-1")))
        3
        """
        ...

    async def claim(self, run: str, key: str, record: bytes) -> Entry:
        """Write a record under a key as the next one of `run`, unless the key has one; return the record of the key.

        If several writers claim a key, in any processes, the first wins and the others get its record.

        >>> import asyncio
        >>> from suture.stores import MemoryStore
        >>> store = MemoryStore()
        >>> asyncio.run(store.claim("run-1", "turn/0", b"mine"))
        Entry(number=0, record=b'mine')
        >>> asyncio.run(store.claim("run-1", "turn/0", b"yours"))
        Entry(number=0, record=b'mine')
        """
        ...

    async def load(self, run: str, first: int = 0) -> list[bytes]:
        """Return the records of `run` from number `first` on, in order; none if there is no such run."""
        ...

    async def fork(self, run: str, position: int, new_run: str) -> None:
        """Make `new_run` from the records of `run` below `position` and their keys, without copying them.

        Both runs are independent from then on, and one survives the deletion of the other. Runs nested in `run` are
        not forked. Raises `StoreConflictError` if `run` has fewer records, or `new_run` has any.
        """
        ...

    async def replace(self, run: str, length: int, records: Sequence[bytes], *, owner: str | None = None) -> None:
        """Replace all records of `run`, of which there are `length`, and remove their keys, in one step.

        Runs nested in it, and forks, stay as they are. Raises what `append` raises.
        """
        ...

    async def delete(self, run: str) -> None:
        """Delete `run`, the runs nested in it (whose ids start with `run` and a slash), and their leases.

        Records that a fork shares are kept for the fork, until it is deleted as well.
        """
        ...

    async def runs(self) -> list[str]:
        """Return the ids of all runs, the most recently changed first."""
        ...

    async def expire(self, seconds: float) -> int:
        """Delete the runs that have not changed for `seconds`, and return how many were deleted.

        A run and those nested in it are kept or deleted together, by the one that changed last. A run whose lease is
        held is kept.

        >>> import asyncio
        >>> from suture.stores import MemoryStore
        >>> store = MemoryStore()
        >>> asyncio.run(store.append("run-1", 0, [b"started"]))
        >>> asyncio.run(store.expire(3600))
        0
        """
        ...

    async def acquire(self, run: str, owner: str, seconds: float, *, queue: bool = False) -> bool:
        """Take the lease of `run` for `seconds`, by the store's clock; return whether `owner` holds it now.

        It is taken if nobody holds it or waits for it, if the time of all who did has run out, or if `owner` holds it
        already. Otherwise, with `queue`, `owner` gets the last place in the queue, for `seconds`, and holds the lease
        once those before it have released their places or run out of time. Asking again keeps the place.

        >>> import asyncio
        >>> from suture.stores import MemoryStore
        >>> store = MemoryStore()
        >>> asyncio.run(store.acquire("run-1", "worker-1", 60)), asyncio.run(store.acquire("run-1", "worker-2", 60))
        (True, False)
        """
        ...

    async def renew(self, run: str, owner: str, seconds: float) -> bool:
        """Keep a lease, or a place in the queue, for `seconds` from now on; return `False` if it was lost."""
        ...

    async def release(self, run: str, owner: str) -> None:
        """Release the lease of `run`, or the place in the queue, if `owner` has it."""
        ...

    async def lease(self, run: str) -> Lease | None:
        """Return who holds the lease of `run`, if anybody does."""
        ...


def check_append(run: str, first: int, records: Sequence[bytes], owner: str | None = None) -> None:
    """Raise `ConfigError` for arguments that every store refuses.

    >>> check_append("run-1", 0, ["text"])
    Traceback (most recent call last):
        ...
    suture.errors.ConfigError: a record is bytes, not str
    """
    check_text("the id of a run", run)
    if owner is not None:
        check_text("the owner of a lease", owner)
    if type(first) is not int or first < 0:
        raise ConfigError(f"records are counted from 0, so the first one cannot be {first!r}")
    if first + len(records) > MAX_RECORDS:
        raise ConfigError(f"a run has at most {MAX_RECORDS} records")
    for record in records:
        if type(record) is not bytes:
            raise ConfigError(f"a record is bytes, not {type(record).__name__}")


def check_text(name: str, text: str) -> None:
    """Raise `ConfigError` unless `text` can be stored."""
    if not isinstance(text, str) or not text:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"{name} is a text that is not empty, not {text!r}")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ConfigError(f"{name} cannot have a lone surrogate: {text!r}") from None


def check_lease(run: str, owner: str, seconds: float = 0) -> None:
    """Raise `ConfigError` for a wrong run, owner or time of a lease."""
    check_text("the id of a run", run)
    check_text("the owner of a lease", owner)
    check_seconds("seconds", seconds)


def check_fork(run: str, position: int, length: int) -> None:
    """Raise `StoreConflictError` if a run of this length cannot be forked at `position`.

    >>> check_fork("a", 3, 2)
    Traceback (most recent call last):
        ...
    suture.stores.protocols.StoreConflictError: run 'a' cannot be forked at record 3: it has 2 records
    """
    if position > length:
        raise StoreConflictError(
            run,
            given=position,
            expected=length,
            reason=f"run {run!r} cannot be forked at record {position}: it has {plural(length, 'record')}",
        )


def compute_checksum(number: int, record: bytes) -> int:
    """Return a signed 32-bit checksum of a record and its number, which shows damaged and exchanged records.

    >>> compute_checksum(0, b"started"), compute_checksum(1, b"started")
    (882284250, -1830707858)
    """
    return crc32(record, number) - (1 << 31)


def verify_records(first: int, rows: Iterable[tuple[int, int, bytes]]) -> list[bytes]:
    """Return the records of rows (number, checksum, record) that begin at `first`, or raise `DamagedJournalError`.

    >>> verify_records(3, [(3, compute_checksum(3, b"called"), b"Called")])
    Traceback (most recent call last):
        ...
    suture.stores.protocols.DamagedJournalError: record 3 is damaged
    """
    records: list[bytes] = []
    for expected, (number, checksum, record) in enumerate(rows, first):
        if number != expected:
            raise DamagedJournalError(f"record {expected} is missing")
        if type(record) is not bytes or checksum != compute_checksum(number, record):
            raise DamagedJournalError(f"record {number} is damaged")
        records.append(record)
    return records


def check_seconds(name: str, seconds: float) -> None:
    """Raise `ConfigError` unless `seconds` is a length of time.

    >>> check_seconds("busy_timeout", -1)
    Traceback (most recent call last):
        ...
    suture.errors.ConfigError: busy_timeout is a number of seconds, 0 or more, not -1
    """
    if not isinstance(seconds, int | float) or not isfinite(seconds) or seconds < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"{name} is a number of seconds, 0 or more, not {seconds!r}")


def find_stale_runs(changed: Mapping[str, float], limit: float) -> list[str]:
    """Return the runs that have not changed since `limit`, nor any run nested with them; `changed` has their times.

    >>> find_stale_runs({"a": 1.0, "a/b": 9.0, "c": 2.0, "c/d": 1.0, "e/f": 3.0}, 5.0)
    ['c', 'c/d', 'e/f']
    """
    outermost: dict[str, str] = {}
    for run in changed:
        # A slash in a user's own id does not mean nesting: only a run that exists can have others in it.
        ends = [at for at, letter in enumerate(run) if letter == "/"]
        outermost[run] = next((run[:end] for end in ends if run[:end] in changed), run)
    newest: dict[str, float] = {}
    for run, head in outermost.items():
        newest[head] = max(changed[run], newest.get(head, changed[run]))
    return [run for run, head in outermost.items() if newest[head] <= limit]


# --- files of tool output ---------------------------------------------------------------------


class Backend(Protocol):
    """The least that can keep tool output: a method `write`, plain or async.

    >>> class Folder:
    ...     def __init__(self):
    ...         self.files = {}
    ...     def write(self, path, content):
    ...         self.files[path] = content
    >>> backend: Backend = Folder()
    """

    def write(self, path: str, content: str) -> Awaitable[None] | None:
        """Keep `content` under `path`."""
        ...


@runtime_checkable
class FileBackend(Protocol):
    """Keeps files: bytes under a path such as `/run-1/trunc/call_1`.

    A saved file is never overwritten, and a reader sees all of it or nothing. A leading slash has no meaning. A bad
    path is a `StoreError`, and so is everything else that goes wrong.

    >>> import asyncio
    >>> from suture.stores import FileBackend, MemoryBackend
    >>> async def keep(backend: FileBackend) -> list[str]:
    ...     await backend.write("/run-1/trunc/call_1", "what the tool said")
    ...     return await backend.paths("/run-1")
    >>> asyncio.run(keep(MemoryBackend()))
    ['/run-1/trunc/call_1']
    """

    async def write(self, path: str, content: str | bytes) -> None:
        """Write a file; text as UTF-8.

        If it raises, the file was not written. Raises `PathTakenError` if the path has a file with other bytes; with
        the same bytes it does nothing, so a write may be tried again.

        >>> import asyncio
        >>> from suture.stores import MemoryBackend
        >>> backend = MemoryBackend()
        >>> asyncio.run(backend.write("/a", "one"))
        >>> asyncio.run(backend.write("/a", "two"))
        Traceback (most recent call last):
            ...
        suture.stores.protocols.PathTakenError: '/a' is taken: a saved file is never overwritten; choose another path
        """
        ...

    async def write_stream(self, path: str, chunks: AsyncIterable[bytes]) -> int:
        r"""Write a file piece by piece, holding little of it in memory; return how many bytes it has.

        If it raises, even because `chunks` does or because it was cancelled, nothing was written. `chunks` is closed
        in any case. Raises `PathTakenError` if the path has a file, whatever is in it.

        >>> import asyncio, tempfile
        >>> from suture.stores import LocalBackend
        >>> async def lines():
        ...     for number in range(100_000):
        ...         yield f"line {number}\n".encode()
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     asyncio.run(LocalBackend(directory).write_stream("/run-1/log", lines()))
        1088890
        """
        ...

    def read(self, path: str, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        """Yield the bytes from `start` up to `stop`, as a slice would, in pieces of 1 MiB at most.

        Raises `PathNotFoundError` if there is no such file.

        >>> import asyncio
        >>> from suture.stores import MemoryBackend
        >>> async def main():
        ...     backend = MemoryBackend()
        ...     await backend.write("/a", "what the tool said")
        ...     return [piece async for piece in backend.read("/a", 5, 13)]
        >>> asyncio.run(main())
        [b'the tool']
        """
        ...

    async def size(self, path: str) -> int:
        """Return how many bytes a file has. Raises `PathNotFoundError` if there is none."""
        ...

    async def delete(self, path: str) -> None:
        """Delete a file, if it exists."""
        ...

    async def paths(self, prefix: str = "") -> list[str]:
        """Return the paths of all files in order, each with a leading slash; only those at or below `prefix`."""
        ...

    async def expire(self, seconds: float) -> int:
        """Delete the files that were written `seconds` ago or earlier, and return how many were deleted.

        Unfinished files of killed processes are deleted, too, after a day.

        >>> import asyncio
        >>> from suture.stores import MemoryBackend
        >>> backend = MemoryBackend()
        >>> asyncio.run(backend.write("/a", "one"))
        >>> asyncio.run(backend.expire(3600)), asyncio.run(backend.expire(0))
        (0, 1)
        """
        ...
