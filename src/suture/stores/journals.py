"""Code that stores share, a store in memory, one that encrypts, and the SQL of the two database stores."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from math import inf
from os import urandom
from threading import Lock
from typing import Any, ClassVar, Final, TypeVar

from suture._extras import import_extra
from suture.errors import ConfigError
from suture.stores import protocols
from suture.stores.protocols import Entry, Lease, LeaseError, Store, StoreConflictError, check_append, check_text

T = TypeVar("T")


class Journals(Store, ABC):
    """A store that checks its arguments and does the work on its tables; see `Store` for the guarantees."""

    @abstractmethod
    async def _do(self, work: Callable[[Any], T], undone: str, *, reads: bool = False) -> T:
        """Do `work` on the tables; an error says what is `undone`. Work that `reads` may take longer."""

    async def append(self, run: str, first: int, records: Sequence[bytes], *, owner: str | None = None) -> None:
        check_append(run, first, records, owner)
        if not records:
            return
        records = tuple(records)  # the caller's list may change while this waits
        which = f"record {first}" if len(records) == 1 else f"records {first} to {first + len(records) - 1}"
        undone = f"{which} of run {run!r} {'was' if len(records) == 1 else 'were'} not written"
        await self._do(lambda tables: tables.append(run, first, records, owner), undone)

    async def claim(self, run: str, key: str, record: bytes) -> Entry:
        check_append(run, 0, [record])
        check_text("the key of a record", key)
        undone = f"record {key!r} of run {run!r} was not written"
        return await self._do(lambda tables: tables.claim(run, key, record), undone)

    async def load(self, run: str, first: int = 0) -> list[bytes]:
        check_append(run, first, ())
        return await self._do(lambda tables: tables.load(run, first), f"run {run!r} was not read", reads=True)

    async def fork(self, run: str, position: int, new_run: str) -> None:
        check_append(run, position, ())
        check_text("the id of a run", new_run)
        await self._do(lambda tables: tables.fork(run, position, new_run), f"run {run!r} was not forked")

    async def replace(self, run: str, length: int, records: Sequence[bytes], *, owner: str | None = None) -> None:
        check_append(run, length, records, owner)
        given = tuple(records)
        await self._do(lambda tables: tables.replace(run, length, given, owner), f"run {run!r} was not replaced")

    async def delete(self, run: str) -> None:
        check_text("the id of a run", run)
        await self._do(lambda tables: tables.delete(run), f"run {run!r} was not deleted", reads=True)

    async def runs(self) -> list[str]:
        return await self._do(lambda tables: tables.runs(), "the runs were not read", reads=True)

    async def expire(self, seconds: float) -> int:
        protocols.check_seconds("seconds", seconds)
        return await self._do(lambda tables: tables.expire(seconds), "no run was expired", reads=True)

    async def acquire(self, run: str, owner: str, seconds: float, *, queue: bool = False) -> bool:
        protocols.check_lease(run, owner, seconds)
        undone = f"the lease of run {run!r} was not changed"
        return await self._do(lambda tables: tables.acquire(run, owner, seconds, queue=queue), undone)

    async def renew(self, run: str, owner: str, seconds: float) -> bool:
        protocols.check_lease(run, owner, seconds)
        undone = f"the lease of run {run!r} was not changed"
        return await self._do(lambda tables: tables.renew(run, owner, seconds), undone)

    async def release(self, run: str, owner: str) -> None:
        protocols.check_lease(run, owner)
        await self._do(lambda tables: tables.release(run, owner), f"the lease of run {run!r} was not changed")

    async def lease(self, run: str) -> Lease | None:
        check_text("the id of a run", run)
        return await self._do(lambda tables: tables.lease(run), f"the lease of run {run!r} was not read", reads=True)


# --- in memory --------------------------------------------------------------------------------


class _Journal(list[bytes]):
    """The records of a run."""

    def __init__(self, records: Iterable[bytes] = ()) -> None:
        super().__init__(records)
        self.keys: dict[str, int] = {}
        self.changed = 0.0


class MemoryStore(Journals):
    """A store in memory, which ends with the process.

    Tasks, event loops and threads can share it. `clock` returns the seconds by which runs expire and leases run out.

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
    """Journals in memory; the caller holds the lock."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.journals: dict[str, _Journal] = {}
        """In the order of their last change."""
        self.queues: dict[str, dict[str, float]] = {}
        """For each run, its queue: until when each owner has a place. The first one holds the lease."""

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
        protocols.check_fork(run, position, self._length(run))
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
        stale = protocols.find_stale_runs(changed, self.clock() - seconds)
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
        """Return the journal of a run (or its replacement), and mark it as changed now."""
        journal = self.journals.pop(run, None)
        journal = self.journals[run] = new if new is not None else _Journal() if journal is None else journal
        journal.changed = self.clock()
        return journal


# --- encryption -------------------------------------------------------------------------------

_NONCE = 12
_APPENDED, _CLAIMED = b"a", b"c"


class EncryptedStore(Store):
    """A store that encrypts each record (AES-GCM) before another store keeps it.

    Reading a changed record raises `DamagedJournalError`, and so does a record that was moved to another number. A
    record of another run at the same number is not noticed, because forks share records. The ids of runs, the keys of
    records, their number and their lengths are not hidden.

    Args:
        store: keeps the records.
        keys: of 16, 24 or 32 bytes. The first one encrypts; older ones after it can still decrypt.

    >>> import asyncio
    >>> from suture.stores import EncryptedStore, MemoryStore
    >>> inner = MemoryStore()
    >>> store = EncryptedStore(inner, b"0123456789abcdef")
    >>> asyncio.run(store.append("run-1", 0, [b"started"]))
    >>> asyncio.run(store.load("run-1")), b"started" in asyncio.run(inner.load("run-1"))[0]
    ([b'started'], False)
    """

    def __init__(self, store: Store, *keys: bytes) -> None:
        aead: Any = import_extra("cryptography.hazmat.primitives.ciphers.aead", "encryption")
        if not keys or any(len(key) not in (16, 24, 32) for key in keys):
            raise ConfigError("an EncryptedStore takes keys of 16, 24 or 32 bytes; os.urandom(32) makes one")
        self.store = store
        self._ciphers = [aead.AESGCM(key) for key in keys]
        # Methods that handle no record's bytes are the inner store's.
        self.fork, self.delete, self.runs, self.expire = store.fork, store.delete, store.runs, store.expire
        self.acquire, self.renew, self.release, self.lease = store.acquire, store.renew, store.release, store.lease

    async def append(self, run: str, first: int, records: Sequence[bytes], *, owner: str | None = None) -> None:
        check_append(run, first, records, owner)
        await self.store.append(run, first, self._seal_all(records, first), owner=owner)

    async def replace(self, run: str, length: int, records: Sequence[bytes], *, owner: str | None = None) -> None:
        check_append(run, length, records, owner)
        await self.store.replace(run, length, self._seal_all(records, 0), owner=owner)

    async def claim(self, run: str, key: str, record: bytes) -> Entry:
        check_append(run, 0, [record])
        number, sealed = await self.store.claim(run, key, self._seal(_CLAIMED, record, 0))
        return Entry(number, self._open(run, sealed, number))

    async def load(self, run: str, first: int = 0) -> list[bytes]:
        return [self._open(run, sealed, first + at) for at, sealed in enumerate(await self.store.load(run, first))]

    def _seal_all(self, records: Sequence[bytes], first: int) -> list[bytes]:
        return [self._seal(_APPENDED, record, first + at) for at, record in enumerate(records)]

    def _seal(self, kind: bytes, record: bytes, number: int) -> bytes:
        nonce = urandom(_NONCE)
        return kind + nonce + self._ciphers[0].encrypt(nonce, record, kind + number.to_bytes(8, "big"))

    def _open(self, run: str, sealed: bytes, number: int) -> bytes:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - an extra

        kind, nonce, body = sealed[:1], sealed[1 : 1 + _NONCE], sealed[1 + _NONCE :]
        about = kind + (number if kind == _APPENDED else 0).to_bytes(8, "big")
        for cipher in self._ciphers:
            try:
                return cipher.decrypt(nonce, body, about)
            except (InvalidTag, ValueError):
                continue
        raise protocols.DamagedJournalError(
            f"record {number} of run {run!r} was changed, or encrypted with another key"
        )


# --- SQL --------------------------------------------------------------------------------------

MAY_WRITE: Final = """
    NOT coalesce((SELECT owner FROM {schema}leases AS line WHERE line.run = :run AND line.until > {now}
        ORDER BY place LIMIT 1) <> :owner, FALSE)
"""
"""Whether `owner` may append: if it is null, or if no other owner is the first in the queue."""

SEGMENTS: Final = """
    WITH RECURSIVE segments (id, low, high, parent) AS (
        SELECT id, base, {length}, parent FROM {schema}runs WHERE run = :run
        UNION ALL
        SELECT runs.id, runs.base, low, runs.parent FROM segments JOIN {schema}runs ON runs.id = segments.parent
        WHERE low > :first AND runs.base < low
    )
"""
"""Where the records of a run are, the newest first: in the run itself, then in the runs it was forked from."""

_LEASE: Final = """
    SELECT owner, until - {now} FROM {schema}leases WHERE run = :run AND until > {now} ORDER BY place LIMIT 1
"""
_RENEW: Final = (
    "UPDATE {schema}leases SET until = {now} + :seconds WHERE run = :run AND owner = :owner AND until > {now}"
)
_LEAVE: Final = "DELETE FROM {schema}leases WHERE run = :run AND (owner = :owner OR until <= {now})"
_ENTER: Final = """
    INSERT INTO {schema}leases SELECT :run, coalesce(max(place), 0) + 1, :owner, {now} + :seconds
    FROM {schema}leases WHERE run = :run
"""
_FORK: Final = f"""
    {SEGMENTS} SELECT id FROM segments WHERE low < :position AND :position <= high
"""
# In the order of the bytes, "0" comes right after "/".
_WITHIN: Final = "(run = :run OR run >= :low AND run < :high)"
_SHARED: Final = "SELECT coalesce(max(base), 0) FROM {schema}runs WHERE parent = :id"
_PARENT: Final = """
    SELECT id FROM {schema}runs WHERE id = (SELECT parent FROM {schema}runs WHERE id = :id) AND run IS NULL
"""


class SQLTables(ABC):
    """The work that is the same in all databases; `text` and `read` convert texts to and from the database's form."""

    changes: ClassVar[str]
    """Selects all runs, each with the time of its last change and its number, the most recently changed first."""
    add_fork: ClassVar[str]
    """Adds the run `:run`, which begins with the records of `:parent` below `:base`."""
    drop_records: ClassVar[Sequence[str]]
    """Remove the records of the run `:id` from `:first` on, and their keys."""

    @abstractmethod
    def execute(self, statement: str, **asked: Any) -> int:
        """Execute a statement, and return how many rows it changed."""

    @abstractmethod
    def query(self, statement: str, **asked: Any) -> list[Any]:
        """Execute a statement, and return its rows."""

    @abstractmethod
    def changing(self, run: str = "") -> AbstractContextManager[Any]:
        """Return a transaction, during which nobody else changes the lease of `run`, or without it any run."""

    @abstractmethod
    def length(self, run: str) -> int:
        """Return how many records a run has."""

    @abstractmethod
    def append(self, run: str, first: int, records: Sequence[bytes], owner: str | None) -> None:
        """Append records to a run."""

    def text(self, text: str) -> Any:
        """Return a text as the database keeps it."""
        return text

    def read(self, text: Any) -> str:
        """Return a text from the database's form."""
        return str(text)

    def fork(self, run: str, position: int, new_run: str) -> None:
        """Make a run that begins with the records of another one."""
        with self.changing():
            protocols.check_fork(run, position, self.length(run))
            if length := self.length(new_run):
                raise StoreConflictError(new_run, given=0, expected=length)
            # The parent is the run that holds the last of these records, which keeps the chain of parents short.
            for (parent,) in self.query(_FORK, run=self.text(run), first=0, position=position):
                self.execute(self.add_fork, run=self.text(new_run), parent=parent, base=position)

    def replace(self, run: str, length: int, records: Sequence[bytes], owner: str | None) -> None:
        """Replace all records of a run."""
        with self.changing():
            self.check_lease(run, owner)
            if (known := self.length(run)) != length:
                raise StoreConflictError(run, given=length, expected=known)
            rows = self.query("SELECT id FROM {schema}runs WHERE run = :run", run=self.text(run))
            self._remove([number for (number,) in rows])
            self.append(run, 0, records, None)

    def delete(self, run: str) -> None:
        """Delete a run, and all runs nested in it."""
        within = {"run": self.text(run), "low": self.text(f"{run}/"), "high": self.text(f"{run}0")}
        with self.changing():
            self.execute(f"DELETE FROM {{schema}}leases WHERE {_WITHIN}", **within)
            rows = self.query(f"SELECT id FROM {{schema}}runs WHERE {_WITHIN}", **within)
            self._remove([number for (number,) in rows])

    def runs(self) -> list[str]:
        """Return all runs, the most recently changed first."""
        return [self.read(run) for run, _, _ in self.query(self.changes)]

    def expire(self, seconds: float) -> int:
        """Delete runs that have not changed for `seconds`."""
        with self.changing():
            ((now,),) = self.query("SELECT {now}")
            self.execute("DELETE FROM {schema}leases WHERE until <= :limit", limit=now)
            held = {run for (run,) in self.query("SELECT DISTINCT run FROM {schema}leases")}
            rows = self.query(self.changes)
            changed = {self.read(run): inf if run in held else last for run, last, _ in rows}
            stale = set(protocols.find_stale_runs(changed, now - seconds))
            self._remove([number for run, _, number in rows if self.read(run) in stale])
            return len(stale)

    def acquire(self, run: str, owner: str, seconds: float, *, queue: bool) -> bool:
        """Take the lease if nobody else is first; otherwise, with `queue`, a place in the queue."""
        asked = {"run": self.text(run), "owner": self.text(owner)}
        with self.changing(run):
            if not self.execute(_RENEW, seconds=seconds, **asked):
                self.execute(_LEAVE, **asked)
                if not queue and self.lease(run) is not None:
                    return False
                self.execute(_ENTER, seconds=seconds, **asked)
            lease = self.lease(run)
            return lease is None or lease.owner == owner

    def renew(self, run: str, owner: str, seconds: float) -> bool:
        """Keep the place in the queue."""
        return self.execute(_RENEW, run=self.text(run), owner=self.text(owner), seconds=seconds) == 1

    def release(self, run: str, owner: str) -> None:
        """Remove an owner from the queue, and everybody whose time is over."""
        self.execute(_LEAVE, run=self.text(run), owner=self.text(owner))

    def lease(self, run: str) -> Lease | None:
        """Return who is the first in the queue."""
        for owner, left in self.query(_LEASE, run=self.text(run)):
            return Lease(self.read(owner), left)
        return None

    def check_lease(self, run: str, owner: str | None) -> None:
        """Raise `LeaseError` if another owner holds the lease."""
        lease = None if owner is None else self.lease(run)
        if owner is not None and lease is not None and lease.owner != owner:
            raise LeaseError(run, owner, lease.owner)

    def _remove(self, numbers: list[int]) -> None:
        """Remove runs, except for records that forks share."""
        for number in numbers:
            self.execute("UPDATE {schema}runs SET run = NULL WHERE id = :id", id=number)
        while numbers:
            number = numbers.pop()
            # Forks need the records below the highest of their bases.
            ((shared,),) = self.query(_SHARED, id=number)
            for statement in self.drop_records:
                self.execute(statement, id=number, first=shared)
            if not shared:
                numbers += [parent for (parent,) in self.query(_PARENT, id=number)]
                self.execute("DELETE FROM {schema}runs WHERE id = :id", id=number)
