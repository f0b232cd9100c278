"""`MemoryStore` and `MemoryBackend`: for tests, and for runs and output that need not survive the process."""

import time
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from itertools import chain
from math import inf
from threading import Lock
from typing import NamedTuple

from suture.stores.protocols import (
    Entry,
    Lease,
    LeaseError,
    PathNotFoundError,
    PathTakenError,
    StoreConflictError,
    check_append,
    check_fork,
    check_lease,
    check_run,
    check_seconds,
    check_text,
    find_stale_runs,
)
from suture.stores.uploads import BLOCK, check_path, check_prefix, check_range, cut_blocks, encode_content


class _Journal(list[bytes]):
    """The records of a run from number `base` on; those below are its parent's."""

    def __init__(self, parent: "_Journal | None" = None, base: int = 0) -> None:
        super().__init__()
        self.parent, self.base = parent, base
        self.keys: dict[str, int] = {}
        self.changed = 0.0

    @property
    def length(self) -> int:
        return self.base + len(self)

    def read(self, first: int, stop: int) -> list[bytes]:
        """Return the records from `first` up to `stop`."""
        pieces: list[list[bytes]] = []
        journal: _Journal | None = self
        while journal is not None:
            pieces.append(journal[max(first - journal.base, 0) : max(stop - journal.base, 0)])
            journal, stop = journal.parent if journal.base > first else None, min(stop, journal.base)
        return list(chain.from_iterable(reversed(pieces)))

    def find(self, key: str) -> int | None:
        """Return the number of the record under a key."""
        journal, stop = self, self.length
        while (number := journal.keys.get(key, stop)) >= stop:
            if journal.parent is None:
                return None
            journal, stop = journal.parent, journal.base
        return number


class MemoryStore:
    """A store in memory: nothing is left of it when the process ends.

    It can be shared by tasks, event loops and threads. `clock` gives the seconds by which runs expire and leases
    run out.

    >>> import asyncio
    >>> from suture.stores import MemoryStore
    >>> store = MemoryStore()
    >>> asyncio.run(store.append("run-1", 0, [b"started"]))
    >>> asyncio.run(store.load("run-1"))
    [b'started']
    """

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._lock = Lock()
        self._clock = clock
        # In the order of their last change.
        self._journals: dict[str, _Journal] = {}
        self._leases: dict[str, tuple[str, float]] = {}

    async def append(self, run: str, first: int, records: Sequence[bytes], *, owner: str | None = None) -> None:
        """Write `records` as number `first`, `first` + 1, … of `run`: all of them, or none.

        >>> import asyncio
        >>> from suture.stores import MemoryStore
        >>> store = MemoryStore()
        >>> asyncio.run(store.append("run-1", 0, [b"started", b"called"]))
        >>> asyncio.run(store.append("run-1", 2, [b"answered"]))
        >>> len(asyncio.run(store.load("run-1")))
        3
        """
        check_append(run, first, records, owner)
        if not records:
            return
        with self._lock:
            lease = self._find_lease(run)
            if owner is not None and lease is not None and lease.owner != owner:
                raise LeaseError(run, owner, lease.owner)
            self._check_length(run, first)
            self._change(run).extend(records)

    async def claim(self, run: str, key: str, record: bytes) -> Entry:
        """Write a record under a key as the next one of `run`, unless there is one; return what is under the key.

        >>> import asyncio
        >>> from suture.stores import MemoryStore
        >>> store = MemoryStore()
        >>> asyncio.run(store.claim("run-1", "turn/0", b"mine"))
        Entry(number=0, record=b'mine')
        >>> asyncio.run(store.claim("run-1", "turn/0", b"yours"))
        Entry(number=0, record=b'mine')
        """
        check_append(run, 0, [record])
        check_text("the key of a record", key)
        with self._lock:
            journal = self._journals.get(run)
            number = None if journal is None else journal.find(key)
            if journal is None or number is None:
                journal = self._change(run)
                number = journal.keys[key] = journal.length
                journal.append(record)
            return Entry(number, *journal.read(number, number + 1))

    async def load(self, run: str, first: int = 0) -> list[bytes]:
        """Return the records of `run` from number `first` on, in order; none if there is no such run."""
        check_append(run, first, ())
        with self._lock:
            journal = self._journals.get(run)
            return [] if journal is None else journal.read(first, journal.length)

    async def fork(self, run: str, position: int, new_run: str) -> None:
        """Let `new_run` begin with the records of `run` below `position`, without copying them."""
        check_append(run, position, ())
        check_run(new_run)
        with self._lock:
            check_fork(run, position, self._length(run))
            self._check_length(new_run, 0)
            parent = self._journals.get(run)
            while parent is not None and position <= parent.base:
                parent = parent.parent
            if parent is not None:
                self._change(new_run, _Journal(parent, position))

    async def delete(self, run: str) -> None:
        """Delete `run`, the runs nested in it, and their leases."""
        check_run(run)
        with self._lock:
            for each in [each for each in {**self._journals, **self._leases} if f"{each}/".startswith(f"{run}/")]:
                self._journals.pop(each, None)
                self._leases.pop(each, None)

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
            now = self._clock()
            self._leases = {run: lease for run, lease in self._leases.items() if lease[1] > now}
            changed = {run: inf if run in self._leases else each.changed for run, each in self._journals.items()}
            stale = find_stale_runs(changed, now - seconds)
            for run in stale:
                del self._journals[run]
            return len(stale)

    async def acquire(self, run: str, owner: str, seconds: float) -> bool:
        """Take the lease of `run` for `seconds`; return whether it is `owner`'s now.

        >>> import asyncio
        >>> from suture.stores import MemoryStore
        >>> store = MemoryStore()
        >>> asyncio.run(store.acquire("run-1", "worker-1", 60)), asyncio.run(store.acquire("run-1", "worker-2", 60))
        (True, False)
        """
        return self._lease(run, owner, seconds, new=True)

    async def renew(self, run: str, owner: str, seconds: float) -> bool:
        """Hold a lease for `seconds` from now on; return `False` if it is not `owner`'s any more."""
        return self._lease(run, owner, seconds, new=False)

    async def release(self, run: str, owner: str) -> None:
        """Give the lease of `run` back, if it is `owner`'s."""
        check_lease(run, owner)
        with self._lock:
            if self._leases.get(run, ("", 0))[0] == owner:
                del self._leases[run]

    async def lease(self, run: str) -> Lease | None:
        """Return who holds the lease of `run`, if anybody does."""
        check_run(run)
        with self._lock:
            return self._find_lease(run)

    def _lease(self, run: str, owner: str, seconds: float, *, new: bool) -> bool:
        check_lease(run, owner, seconds)
        with self._lock:
            lease = self._find_lease(run)
            if not new if lease is None else lease.owner != owner:
                return False
            self._leases[run] = owner, self._clock() + seconds
            return True

    def _find_lease(self, run: str) -> Lease | None:
        owner, until = self._leases.get(run, ("", 0.0))
        left = until - self._clock()
        return Lease(owner, left) if owner and left > 0 else None

    def _length(self, run: str) -> int:
        return self._journals[run].length if run in self._journals else 0

    def _check_length(self, run: str, length: int) -> None:
        expected = self._length(run)
        if length != expected:
            raise StoreConflictError(run, given=length, expected=expected)

    def _change(self, run: str, new: _Journal | None = None) -> _Journal:
        """Return the journal of a run, which changes now and so becomes the last one."""
        journal = self._journals.pop(run, None)
        journal = self._journals[run] = new if new is not None else _Journal() if journal is None else journal
        journal.changed = self._clock()
        return journal


class _File(NamedTuple):
    content: bytes
    written: float


class MemoryBackend:
    """A backend in memory: nothing is left of it when the process ends.

    It can be shared by tasks, event loops and threads.

    >>> import asyncio
    >>> from suture.stores import MemoryBackend
    >>> backend = MemoryBackend()
    >>> asyncio.run(backend.write("/run-1/trunc/call_1", "what the tool said"))
    >>> asyncio.run(backend.size("/run-1/trunc/call_1"))
    18
    """

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._lock = Lock()
        self._clock = clock
        self._files: dict[str, _File] = {}

    async def write(self, path: str, content: str | bytes) -> None:
        """Write a file; text as UTF-8.

        >>> import asyncio
        >>> from suture.stores import MemoryBackend
        >>> backend = MemoryBackend()
        >>> asyncio.run(backend.write("/a", "one"))
        >>> asyncio.run(backend.write("/a", "two"))
        Traceback (most recent call last):
            ...
        suture.stores.protocols.PathTakenError: '/a' is taken: a saved file is never overwritten; choose another path
        """
        name, body = check_path(path), encode_content(content)
        with self._lock:
            if self._files.setdefault(name, _File(body, self._clock())).content != body:
                raise PathTakenError(path)

    def fill(self, path: str, content: str | bytes) -> None:
        """Put a file there that was written before."""
        self._files[check_path(path)] = _File(encode_content(content), self._clock())

    async def write_stream(self, path: str, chunks: AsyncIterable[bytes]) -> int:
        """Write a file piece by piece; return how many bytes it has."""
        async with aclosing(cut_blocks(chunks, BLOCK, partial(self._check_free, path))) as blocks:
            content = b"".join([bytes(block) async for block in blocks])
        with self._lock:
            if self._files.setdefault(check_path(path), file := _File(content, self._clock())) is not file:
                raise PathTakenError(path)
        return len(content)

    async def read(self, path: str, start: int = 0, stop: int | None = None) -> AsyncGenerator[bytes, None]:
        """Yield the bytes from `start` up to `stop`, as a slice would, in pieces of 1 MiB at most.

        >>> import asyncio
        >>> from suture.stores import MemoryBackend
        >>> async def main():
        ...     backend = MemoryBackend()
        ...     await backend.write("/a", "what the tool said")
        ...     return [piece async for piece in backend.read("/a", 5, 13)]
        >>> asyncio.run(main())
        [b'the tool']
        """
        check_range(start, stop)
        content = self._file(path).content
        end = len(content) if stop is None else min(stop, len(content))
        for at in range(start, end, BLOCK):
            yield content[at : min(at + BLOCK, end)]

    async def size(self, path: str) -> int:
        """Return how many bytes a file has."""
        return len(self._file(path).content)

    async def delete(self, path: str) -> None:
        """Delete a file, if it is there."""
        name = check_path(path)
        with self._lock:
            self._files.pop(name, None)

    async def paths(self, prefix: str = "") -> list[str]:
        """Return the paths of all files in order; only those at or below `prefix`."""
        within = check_prefix(prefix)
        with self._lock:
            return sorted(f"/{name}" for name in self._files if not within or f"{name}/".startswith(f"{within}/"))

    async def expire(self, seconds: float) -> int:
        """Delete the files that were written `seconds` ago or earlier; return how many.

        >>> import asyncio
        >>> from suture.stores import MemoryBackend
        >>> backend = MemoryBackend()
        >>> asyncio.run(backend.write("/a", "one"))
        >>> asyncio.run(backend.expire(3600)), asyncio.run(backend.expire(0))
        (0, 1)
        """
        check_seconds("seconds", seconds)
        limit = self._clock() - seconds
        with self._lock:
            stale = [name for name, file in self._files.items() if file.written <= limit]
            for name in stale:
                del self._files[name]
        return len(stale)

    def __repr__(self) -> str:
        return f"<MemoryBackend: {len(self._files)} files>"

    def _file(self, path: str) -> _File:
        file = self._files.get(check_path(path))
        if file is None:
            raise PathNotFoundError(path)
        return file

    async def _check_free(self, path: str) -> None:
        if check_path(path) in self._files:
            raise PathTakenError(path)
