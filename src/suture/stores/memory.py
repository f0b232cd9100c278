"""`MemoryStore` and `MemoryBackend`: for tests, and for runs and output that need not survive the process."""

import time
from collections.abc import Callable, Iterable, Sequence
from math import inf
from threading import Lock
from typing import NamedTuple, TypeVar

from suture.stores.journals import Journals
from suture.stores.protocols import (
    Entry,
    Lease,
    LeaseError,
    PathNotFoundError,
    PathTakenError,
    StoreConflictError,
    check_fork,
    find_stale_runs,
)
from suture.stores.uploads import BLOCK, Files, check_path, encode_content

T = TypeVar("T")


class _Journal(list[bytes]):
    """The records of a run."""

    def __init__(self, records: Iterable[bytes] = ()) -> None:
        super().__init__(records)
        self.keys: dict[str, int] = {}
        self.changed = 0.0


class MemoryStore(Journals):
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
        self._tables = _Tables(clock)

    async def _do(self, work: Callable[["_Tables"], T], undone: str, *, reads: bool = False) -> T:
        with self._lock:
            return work(self._tables)


class _Tables:
    """Journals in memory, for whoever has the lock."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.journals: dict[str, _Journal] = {}
        """In the order of their last change."""
        self.queues: dict[str, dict[str, float]] = {}
        """Until when each has its place in the queue of a run; the first holds the lease."""

    def append(self, run: str, first: int, records: Sequence[bytes], owner: str | None) -> None:
        self._check_owner(run, owner)
        self._check_length(run, first)
        self._change(run).extend(records)

    def claim(self, run: str, key: str, record: bytes) -> Entry:
        journal = self.journals.get(run)
        if journal is None or key not in journal.keys:
            journal = self._change(run)
            journal.keys[key] = len(journal)
            journal.append(record)
        return Entry(journal.keys[key], journal[journal.keys[key]])

    def load(self, run: str, first: int) -> list[bytes]:
        return self.journals.get(run, [])[first:]

    def fork(self, run: str, position: int, new_run: str) -> None:
        check_fork(run, position, self._length(run))
        self._check_length(new_run, 0)
        if position:
            old = self.journals[run]
            new = self._change(new_run, _Journal(old[:position]))  # the records themselves are shared
            new.keys = {key: number for key, number in old.keys.items() if number < position}

    def replace(self, run: str, length: int, records: Sequence[bytes], owner: str | None) -> None:
        self._check_owner(run, owner)
        self._check_length(run, length)
        self._change(run, _Journal()).extend(records)

    def delete(self, run: str) -> None:
        for kept in (self.journals, self.queues):
            for each in [each for each in kept if f"{each}/".startswith(f"{run}/")]:
                del kept[each]

    def runs(self) -> list[str]:
        return list(reversed(self.journals))

    def expire(self, seconds: float) -> int:
        changed = {run: inf if self.lease(run) else each.changed for run, each in self.journals.items()}
        stale = find_stale_runs(changed, self.clock() - seconds)
        for run in stale:
            del self.journals[run]
        return len(stale)

    def acquire(self, run: str, owner: str, seconds: float, *, queue: bool) -> bool:
        if not self.renew(run, owner, seconds):
            self.release(run, owner)
            if not queue and self.lease(run) is not None:
                return False
            self.queues.setdefault(run, {})[owner] = self.clock() + seconds
        lease = self.lease(run)
        return lease is None or lease.owner == owner

    def renew(self, run: str, owner: str, seconds: float) -> bool:
        now, queue = self.clock(), self.queues.get(run, {})
        is_held = queue.get(owner, now) > now
        if is_held:
            queue[owner] = now + seconds
        return is_held

    def release(self, run: str, owner: str) -> None:
        now, queue = self.clock(), self.queues.pop(run, {})
        if left := {each: until for each, until in queue.items() if each != owner and until > now}:
            self.queues[run] = left

    def lease(self, run: str) -> Lease | None:
        now = self.clock()
        for owner, until in self.queues.get(run, {}).items():
            if until > now:
                return Lease(owner, until - now)
        return None

    def _length(self, run: str) -> int:
        return len(self.journals.get(run, ()))

    def _check_owner(self, run: str, owner: str | None) -> None:
        lease = self.lease(run)
        if owner is not None and lease is not None and lease.owner != owner:
            raise LeaseError(run, owner, lease.owner)

    def _check_length(self, run: str, length: int) -> None:
        expected = self._length(run)
        if length != expected:
            raise StoreConflictError(run, given=length, expected=expected)

    def _change(self, run: str, new: _Journal | None = None) -> _Journal:
        """Return the journal of a run, which changes now and so becomes the last one."""
        journal = self.journals.pop(run, None)
        journal = self.journals[run] = new if new is not None else _Journal() if journal is None else journal
        journal.changed = self.clock()
        return journal


class _File(NamedTuple):
    content: bytes
    written: float

    @property
    def size(self) -> int:
        return len(self.content)


class MemoryBackend(Files):
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
        self._shelf = _Shelf(clock)

    async def write(self, path: str, content: str | bytes) -> None:
        """Write a file; text as UTF-8. What is at hand needs no blocks."""
        name, file = check_path(path), _File(encode_content(content), self._shelf.clock())
        with self._lock:
            if self._shelf.files.setdefault(name, file).content != file.content:
                raise PathTakenError(path)

    def fill(self, path: str, content: str | bytes) -> None:
        """Put a file there that was written before."""
        self._shelf.files[check_path(path)] = _File(encode_content(content), self._shelf.clock())

    def __repr__(self) -> str:
        return f"<MemoryBackend: {len(self._shelf.files)} files>"

    def _file(self, path: str) -> _File:
        return self._shelf.find(check_path(path))

    async def _do(self, work: Callable[["_Shelf"], T], path: str, action: str) -> T:
        with self._lock:
            return work(self._shelf)

    def _upload(self, name: str) -> "_Upload":
        return _Upload(name)


class _Shelf:
    """Files in memory by their names, for whoever has the lock."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.files: dict[str, _File] = {}

    def find(self, name: str) -> _File:
        if name not in self.files:
            raise PathNotFoundError(f"/{name}")
        return self.files[name]

    def get(self, file: _File, start: int, end: int) -> bytes:
        return file.content[start : min(end, start + BLOCK)]

    def names(self, prefix: str) -> list[str]:
        return [name for name in self.files if not prefix or f"{name}/".startswith(f"{prefix}/")]

    def delete(self, name: str) -> None:
        self.files.pop(name, None)

    def expire(self, seconds: float) -> int:
        stale = [name for name, file in self.files.items() if file.written <= self.clock() - seconds]
        for name in stale:
            del self.files[name]
        return len(stale)


class _Upload:
    """A stream on its way into a file."""

    def __init__(self, name: str) -> None:
        self._name, self._blocks = name, list[bytes]()

    def add(self, shelf: _Shelf, block: bytearray) -> None:
        self._blocks.append(bytes(block))

    def commit(self, shelf: _Shelf, block: bytearray) -> None:
        file = _File(b"".join([*self._blocks, block]), shelf.clock())
        if shelf.files.setdefault(self._name, file) is not file:
            raise PathTakenError(f"/{self._name}")

    def abort(self, shelf: _Shelf) -> None:
        self._blocks.clear()
