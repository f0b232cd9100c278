"""`SQLiteStore` and `SQLiteBackend`: journals, and files of tool output, each in one SQLite file."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import partial
from math import inf
from sqlite3 import Connection
from typing import Final, NamedTuple, TypeAlias, TypeVar

from suture._text import quote
from suture.stores.protocols import (
    DamagedJournalError,
    Entry,
    Lease,
    LeaseError,
    PathNotFoundError,
    PathTakenError,
    StoreConflictError,
    StoreError,
    check_append,
    check_fork,
    check_lease,
    check_run,
    check_seconds,
    check_text,
    compute_checksum,
    find_stale_runs,
    verify_records,
)
from suture.stores.sqlite_file import PAGE, SQLiteFile
from suture.stores.uploads import BLOCK, DAY, Upload, UploadBackend, check_path, check_prefix, check_range

T = TypeVar("T")

_LAST_NUMBER: Final = 0xFFFF_FFFF
_LENGTH: Final = """
    SELECT id, coalesce((SELECT max(key) FROM records WHERE key BETWEEN id << 32 AND id << 32 | 4294967295)
        - (id << 32) + 1, base) FROM runs WHERE run = ?
"""
# Nothing is inserted where the record before is missing, where the record is there already, and where somebody else
# holds the lease.
_INSERT_ONE: Final = """
    INSERT OR IGNORE INTO records SELECT id << 32 | ?1, ?2, ?3, ?4 FROM runs
    WHERE run = ?5 AND EXISTS (SELECT 1 FROM records WHERE key = (id << 32 | ?1) - 1)
    AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.run = ?5 AND owner <> ?6 AND until > ?2)
"""
# Where the records of a run are, the newest first: those of the run itself, then those that it shares with others.
_SEGMENTS: Final = """
    WITH RECURSIVE segments (id, low, high, parent) AS (
        SELECT id, base, 4294967296, parent FROM runs WHERE run = ?1
        UNION ALL
        SELECT runs.id, runs.base, low, runs.parent FROM segments JOIN runs ON runs.id = segments.parent
        WHERE low > ?2 AND runs.base < low
    )
    SELECT id, low, high FROM segments
"""
_READ: Final = "SELECT key & 4294967295, checksum, body FROM records WHERE key BETWEEN ? AND ? ORDER BY key"
_CHANGES: Final = """
    SELECT run, coalesce(records.changed, runs.changed) AS last, id FROM runs LEFT JOIN records
    ON key = (SELECT max(key) FROM records WHERE key BETWEEN id << 32 AND id << 32 | 4294967295)
    WHERE run IS NOT NULL ORDER BY last DESC
"""
_ACQUIRE: Final = """
    INSERT INTO leases VALUES (?1, ?2, ?3 + ?4) ON CONFLICT (run)
    DO UPDATE SET owner = excluded.owner, until = excluded.until WHERE owner = excluded.owner OR until <= ?3
"""
_RENEW: Final = "UPDATE leases SET until = ?3 + ?4 WHERE run = ?1 AND owner = ?2 AND until > ?3"


class SQLiteStore(SQLiteFile):
    """A store in a SQLite file. Records outlive the process, also one that is killed.

    The file is opened at the first use, and made if it is not there, readable by the user alone. It may be
    shared by tasks, event loops and threads, and by processes on one machine; not over a network file system.
    A process that is forked must not have used it before. With `synchronous` at "full" records also outlive a
    loss of power, and each append waits for the disk, in a thread. An append waits for other processes for up
    to `busy_timeout` seconds, while the event loop goes on. `clock` gives the seconds by which runs expire and
    leases run out; it is the machine's, so that all its processes agree.

    >>> import asyncio, tempfile
    >>> from suture.stores import SQLiteStore
    >>> directory = tempfile.TemporaryDirectory()
    >>> with SQLiteStore(directory.name + "/runs.db") as store:
    ...     asyncio.run(store.append("run-1", 0, [b"started"]))
    >>> with SQLiteStore(directory.name + "/runs.db") as store:
    ...     asyncio.run(store.load("run-1"))
    [b'started']
    >>> directory.cleanup()
    """

    _kind = "journals"
    _in_memory = "MemoryStore"

    async def append(self, run: str, first: int, records: Sequence[bytes], *, owner: str | None = None) -> None:
        """Write `records` as number `first`, `first` + 1, … of `run`: all of them, or none.

        Raises `StoreConflictError` unless `first` is the next number of the run, `LeaseError` if somebody else than
        `owner` holds the lease, `StoreError` if they cannot be written. If it is cancelled before they are written,
        none is.
        """
        check_append(run, first, records, owner)
        if not records:
            return
        records = tuple(records)  # the caller's list may change while this waits

        def undone() -> str:
            last = first + len(records) - 1
            what = (
                f"record {first} of run {run!r} was"
                if first == last
                else f"records {first} to {last} of run {run!r} were"
            )
            return f"{what} not written"

        await self._write(lambda connection: _append(connection, run, first, records, owner, self._clock()), undone)
        self._database.log_grew(sum(map(len, records)) + (len(records) + 1) * PAGE)

    async def claim(self, run: str, key: str, record: bytes) -> Entry:
        """Write a record under a key as the next one of `run`, unless there is one; return what is under the key."""
        check_append(run, 0, [record])
        check_text("the key of a record", key)
        entry = await self._write(
            lambda connection: _claim(connection, run, key, record, self._clock()),
            lambda: f"record {key!r} of run {run!r} was not written",
        )
        self._database.log_grew(len(record) + 3 * PAGE)
        return entry

    async def load(self, run: str, first: int = 0) -> list[bytes]:
        """Return the records of `run` from number `first` on, in order; none if there is no such run."""
        check_append(run, first, ())
        return await self._read(lambda connection: _load(connection, run, first), f"run {run!r} was not read")

    async def fork(self, run: str, position: int, new_run: str) -> None:
        """Let `new_run` begin with the records of `run` below `position`, without copying them."""
        check_append(run, position, ())
        check_run(new_run)
        await self._write(
            lambda connection: _fork(connection, run, position, new_run, self._clock()),
            lambda: f"run {run!r} was not forked",
        )
        self._database.log_grew(3 * PAGE)

    async def delete(self, run: str) -> None:
        """Delete `run`, the runs nested in it, and their leases."""
        check_run(run)
        records = await self._read(lambda connection: _delete(connection, run), f"run {run!r} was not deleted")
        self._database.log_grew(records * PAGE)

    async def runs(self) -> list[str]:
        """Return the ids of all runs, the one that changed last first."""
        return await self._read(
            lambda connection: [str(run) for run, _, _ in connection.execute(_CHANGES).fetchall()],
            "the runs were not read",
        )

    async def expire(self, seconds: float) -> int:
        """Delete the runs that, with all those nested in them, have not changed for `seconds`; return how many."""
        check_seconds("seconds", seconds)
        now = self._clock()
        runs, records = await self._read(
            lambda connection: _expire_runs(connection, now, seconds), "no run was expired"
        )
        self._database.log_grew(records * PAGE)
        return runs

    async def acquire(self, run: str, owner: str, seconds: float) -> bool:
        """Take the lease of `run` for `seconds`; return whether it is `owner`'s now."""
        return await self._lease(_ACQUIRE, run, owner, seconds)

    async def renew(self, run: str, owner: str, seconds: float) -> bool:
        """Hold a lease for `seconds` from now on; return `False` if it is not `owner`'s any more."""
        return await self._lease(_RENEW, run, owner, seconds)

    async def release(self, run: str, owner: str) -> None:
        """Give the lease of `run` back, if it is `owner`'s."""
        await self._lease("DELETE FROM leases WHERE run = ?1 AND owner = ?2 AND ?3 + ?4 > 0", run, owner, 0)

    async def lease(self, run: str) -> Lease | None:
        """Return who holds the lease of `run`, if anybody does."""
        check_run(run)
        return await self._read(
            lambda connection: _find_lease(connection, run, self._clock()), f"the lease of run {run!r} was not read"
        )

    async def _lease(self, statement: str, run: str, owner: str, seconds: float) -> bool:
        check_lease(run, owner, seconds)
        changed = await self._write(
            lambda connection: connection.execute(statement, (run, owner, self._clock(), seconds)).rowcount,
            lambda: f"the lease of run {run!r} was not changed",
        )
        self._database.log_grew(PAGE)
        return changed == 1

    async def _write(self, work: Callable[[Connection], T], undone: Callable[[], str]) -> T:
        return await self._patiently(self._at_once if self._quick else self._to_its_end, work, undone)

    async def _read(self, work: Callable[[Connection], T], undone: str) -> T:
        return await self._patiently(self._in_thread, work, lambda: undone)


def _append(
    connection: Connection, run: str, first: int, records: Sequence[bytes], owner: str | None, now: float
) -> None:
    if first and len(records) == 1:
        # One statement is its own transaction. If it does nothing, the reason is found out below.
        row = (first, now, compute_checksum(first, records[0]), records[0], run, owner)
        if connection.execute(_INSERT_ONE, row).rowcount == 1:
            return
    connection.execute("BEGIN IMMEDIATE")
    lease = None if owner is None else _find_lease(connection, run, now)
    if owner is not None and lease is not None and lease.owner != owner:
        raise LeaseError(run, owner, lease.owner)
    _insert(connection, run, first, records, now)
    connection.execute("COMMIT")


def _insert(connection: Connection, run: str, first: int, records: Sequence[bytes], now: float) -> int:
    """Insert records in a transaction; return the id of the run."""
    number, length = _find_run(connection, run)
    if length != first:
        raise StoreConflictError(run, given=first, expected=length)
    if not number:
        number = connection.execute("INSERT INTO runs (run) VALUES (?)", (run,)).lastrowid or 0
    rows = ((number << 32 | at, now, compute_checksum(at, each), each) for at, each in enumerate(records, first))
    connection.executemany("INSERT INTO records VALUES (?, ?, ?, ?)", rows)
    return number


def _find_run(connection: Connection, run: str) -> tuple[int, int]:
    """Return the id and the length of a run, 0 and 0 if there is none."""
    rows = connection.execute(_LENGTH, (run,)).fetchall()
    return rows[0] if rows else (0, 0)


def _load(connection: Connection, run: str, first: int) -> list[bytes]:
    connection.execute("BEGIN")  # so that all is read at one moment
    records: list[bytes] = []
    for number, low, high in reversed(connection.execute(_SEGMENTS, (run, first)).fetchall()):
        start = first + len(records)
        if low > start:
            raise DamagedJournalError(f"record {start} is missing")
        rows = connection.execute(_READ, (number << 32 | start, (number << 32) + high - 1)).fetchall()
        records += verify_records(start, rows)
    return records


def _claim(connection: Connection, run: str, key: str, record: bytes, now: float) -> Entry:
    connection.execute("BEGIN IMMEDIATE")
    find = "SELECT number FROM claims WHERE run = ? AND name = ? AND number < ?"
    for number, _, high in connection.execute(_SEGMENTS, (run, 0)).fetchall():
        for (at,) in connection.execute(find, (number, key, high)).fetchall():
            rows = connection.execute(_READ, (number << 32 | at, number << 32 | at)).fetchall()
            if stored := verify_records(at, rows):
                return Entry(at, stored[0])
            raise DamagedJournalError(f"record {at} is missing")
    length = _find_run(connection, run)[1]
    number = _insert(connection, run, length, [record], now)
    connection.execute("INSERT INTO claims VALUES (?, ?, ?)", (number, key, length))
    connection.execute("COMMIT")
    return Entry(length, record)


def _fork(connection: Connection, run: str, position: int, new_run: str, now: float) -> None:
    connection.execute("BEGIN IMMEDIATE")
    check_fork(run, position, _find_run(connection, run)[1])
    if length := _find_run(connection, new_run)[1]:
        raise StoreConflictError(new_run, given=0, expected=length)
    insert = "INSERT INTO runs (run, parent, base, changed) VALUES (?, ?, ?, ?)"
    for number, low, high in connection.execute(_SEGMENTS, (run, 0)).fetchall():
        # Its parent is whoever has the last of these records, so that the way back is never longer than it must be.
        if low < position <= high:
            connection.execute(insert, (new_run, number, position, now))
    connection.execute("COMMIT")


def _find_lease(connection: Connection, run: str, now: float) -> Lease | None:
    query = "SELECT owner, until - ?2 FROM leases WHERE run = ?1 AND until > ?2"
    rows = connection.execute(query, (run, now)).fetchall()
    return Lease(*rows[0]) if rows else None


def _delete(connection: Connection, run: str) -> int:
    connection.execute("BEGIN IMMEDIATE")
    # In the order of SQLite, which is that of the bytes, "0" is what comes right after "/".
    within = (run, run + "/", run + "0")
    connection.execute("DELETE FROM leases WHERE run = ? OR run >= ? AND run < ?", within)
    nested = "SELECT id FROM runs WHERE run = ? UNION ALL SELECT id FROM runs WHERE run >= ? AND run < ?"
    records = _remove_runs(connection, [number for (number,) in connection.execute(nested, within).fetchall()])
    connection.execute("COMMIT")
    return records


def _expire_runs(connection: Connection, now: float, seconds: float) -> tuple[int, int]:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("DELETE FROM leases WHERE until <= ?", (now,))
    leased = {run for (run,) in connection.execute("SELECT run FROM leases")}
    rows = connection.execute(_CHANGES).fetchall()
    stale = find_stale_runs({run: inf if run in leased else last for run, last, _ in rows}, now - seconds)
    numbers = {run: number for run, _, number in rows}
    records = _remove_runs(connection, [numbers[run] for run in stale])
    connection.execute("COMMIT")
    return len(stale), records


def _remove_runs(connection: Connection, numbers: list[int]) -> int:
    """Remove runs, except for records that forks share; return how many records were removed."""
    records = 0
    connection.executemany("UPDATE runs SET run = NULL WHERE id = ?", [(number,) for number in numbers])
    while numbers:
        number = numbers.pop()
        # Forks need what is below the highest of their bases.
        ((shared,),) = connection.execute("SELECT coalesce(max(base), 0) FROM runs WHERE parent = ?", (number,))
        span = number << 32 | shared, number << 32 | _LAST_NUMBER
        records += connection.execute("DELETE FROM records WHERE key BETWEEN ? AND ?", span).rowcount
        connection.execute("DELETE FROM claims WHERE run = ? AND number >= ?", (number, shared))
        if not shared:
            parents = "SELECT id FROM runs WHERE id = (SELECT parent FROM runs WHERE id = ?) AND run IS NULL"
            numbers += [parent for (parent,) in connection.execute(parents, (number,)).fetchall()]
            connection.execute("DELETE FROM runs WHERE id = ?", (number,))
    return records


# --- files of tool output ---------------------------------------------------------------------

_PART: Final = 1 << 18
_LAST_PART: Final = 0xFFFF_FFFF
_PARTS: Final = "SELECT body FROM parts WHERE key BETWEEN ? AND ? ORDER BY key"
_GROW: Final = "UPDATE files SET size = size + ?, written = ?, path = ? WHERE id = ? AND path IS NULL"
_NEW_FILE: Final = "INSERT INTO files (path, size, written) VALUES (?, ?, ?)"
_STALE: Final = "SELECT id, path FROM files WHERE written <= CASE WHEN path IS NULL THEN ? ELSE ? END"


_Do: TypeAlias = Callable[[Callable[[Connection], int]], Awaitable[int]]


class _File(NamedTuple):
    number: int
    size: int


class SQLiteBackend(SQLiteFile, UploadBackend):
    """A backend in a SQLite file of its own. It cannot be the file of a `SQLiteStore`.

    The file is opened at the first use, and made if it is not there, readable by the user alone. It may be shared
    by tasks, event loops and threads, and by processes on one machine; not over a network file system. A process
    that is forked must not have used it before. With `synchronous` at "full" what was written also outlives a loss
    of power. A write waits for other processes for up to `busy_timeout` seconds, while the event loop goes on.

    >>> import asyncio, tempfile
    >>> from suture.stores import SQLiteBackend
    >>> directory = tempfile.TemporaryDirectory()
    >>> with SQLiteBackend(directory.name + "/outputs.db") as backend:
    ...     asyncio.run(backend.write("/run-1/trunc/call_1", "what the tool said"))
    >>> with SQLiteBackend(directory.name + "/outputs.db") as backend:
    ...     asyncio.run(backend.paths())
    ['/run-1/trunc/call_1']
    >>> directory.cleanup()
    """

    _kind = "files"
    _in_memory = "MemoryBackend"

    def _upload(self, path: str) -> Upload:
        return _Upload(path, lambda work: self._do(work, path, "written"), self._database.log_grew, self._clock)

    async def read(self, path: str, start: int = 0, stop: int | None = None) -> AsyncGenerator[bytes, None]:
        """Yield the bytes from `start` up to `stop`, as a slice would, in pieces of 1 MiB at most."""
        name = check_path(path)
        check_range(start, stop)
        file, piece = await self._do(lambda connection: _read_first(connection, name, start, stop), path, "read")
        if file is None:
            raise PathNotFoundError(path)
        end = file.size if stop is None else min(stop, file.size)
        while piece:
            yield piece
            start += len(piece)
            if start >= end:
                return
            piece = await self._do(partial(_read_block, number=file.number, start=start, end=end), path, "read")
            if not piece:  # deleted meanwhile
                raise PathNotFoundError(path)

    async def size(self, path: str) -> int:
        """Return how many bytes a file has."""
        name = check_path(path)
        file = await self._do(lambda connection: _find_file(connection, name), path, "read")
        if file is None:
            raise PathNotFoundError(path)
        return file.size

    async def delete(self, path: str) -> None:
        """Delete a file, if it is there. The SQLite file does not shrink; its room is used again."""
        name = check_path(path)

        def delete(connection: Connection) -> int:
            file = _find_file(connection, name)
            return _remove_files(connection, [file.number]) if file is not None else 0

        self._database.log_grew(await self._do(delete, path, "deleted") * PAGE)

    async def paths(self, prefix: str = "") -> list[str]:
        """Return the paths of all files in order; only those at or below `prefix`."""
        within = check_prefix(prefix)
        names = await self._do(lambda connection: _list_names(connection, within), prefix, "listed")
        return sorted(f"/{name}" for name in names)

    async def expire(self, seconds: float) -> int:
        """Delete the files that were written `seconds` ago or earlier; return how many.

        What has been unfinished for a day goes, too: its writer was killed.
        """
        check_seconds("seconds", seconds)
        now = self._clock()

        def expire(connection: Connection) -> tuple[int, int]:
            connection.execute("BEGIN IMMEDIATE")
            stale = connection.execute(_STALE, (now - max(seconds, DAY), now - seconds)).fetchall()
            parts = _remove_files(connection, [number for number, _ in stale])
            return sum(name is not None for _, name in stale), parts

        files, parts = await self._do(expire, "", "expired")
        self._database.log_grew(parts * PAGE)
        return files

    async def _do(self, work: Callable[[Connection], T], path: str, action: str) -> T:
        subject = quote(path, 80) if path else "what is in it"
        return await self._patiently(self._to_its_end, work, lambda: f"{subject} was not {action}")


class _Upload:
    """A stream on its way into the parts of a file that has no path yet. Each step can be repeated."""

    def __init__(self, path: str, do: _Do, log_grew: Callable[[int], None], clock: Callable[[], float]) -> None:
        self._path, self._name = path, ""
        self._do, self._log_grew, self._clock = do, log_grew, clock
        self._number = self._size = 0

    async def begin(self, *, look: bool) -> None:
        self._name = check_path(self._path)
        if look and await self._do(lambda connection: _find_file(connection, self._name) is not None):
            raise PathTakenError(self._path)

    async def add(self, block: bytearray) -> None:
        self._number = await self._do(lambda connection: self._grow(connection, block, None))
        self._size += len(block)
        self._log_grew(len(block) + 2 * PAGE)

    async def commit(self, last: bytearray) -> None:
        if not await self._do(lambda connection: self._grow(connection, last, self._name)):
            raise PathTakenError(self._path)
        self._number = 0
        self._log_grew(len(last) + 2 * PAGE)

    async def abort(self) -> None:
        if self._number:
            await self._do(lambda connection: _remove_files(connection, [self._number]))

    def _grow(self, connection: Connection, block: bytearray, name: str | None) -> int:
        """Add a block, and the path if it is the last one; return the file's number, or 0 if the path is taken."""
        connection.execute("BEGIN IMMEDIATE")
        if name is not None and _find_file(connection, name) is not None:
            return 0
        number = self._number
        if not number:
            number = connection.execute(_NEW_FILE, (name, len(block), self._clock())).lastrowid or 0
        elif connection.execute(_GROW, (len(block), self._clock(), name, number)).rowcount != 1:
            raise StoreError(f"{quote(self._path, 80)} was not written: it paused for so long that it was expired")
        key, view = number << 32 | self._size // _PART, memoryview(block)
        parts = ((key + place // _PART, view[place : place + _PART]) for place in range(0, len(view), _PART))
        connection.executemany("INSERT INTO parts VALUES (?, ?)", parts)
        connection.execute("COMMIT")
        return number


def _find_file(connection: Connection, name: str) -> _File | None:
    rows = connection.execute("SELECT id, size FROM files WHERE path = ?", (name,)).fetchall()
    return _File(*rows[0]) if rows else None


def _list_names(connection: Connection, prefix: str) -> list[str]:
    if not prefix:
        return [name for (name,) in connection.execute("SELECT path FROM files WHERE path IS NOT NULL")]
    # In the order of SQLite, which is that of the bytes, "0" is what comes right after "/".
    within = "SELECT path FROM files WHERE path = ? OR path >= ? AND path < ?"
    return [name for (name,) in connection.execute(within, (prefix, prefix + "/", prefix + "0"))]


def _read_first(connection: Connection, name: str, start: int, stop: int | None) -> tuple[_File | None, bytes]:
    """Return a file, if there is one, and the first piece of it."""
    file = _find_file(connection, name)
    if file is None:
        return None, b""
    end = file.size if stop is None else min(stop, file.size)
    piece = _read_block(connection, file.number, start, end)
    return (file, piece) if piece or start >= end else (None, b"")


def _read_block(connection: Connection, number: int, start: int, end: int) -> bytes:
    """Read at most `BLOCK` bytes of a file; none if it has been deleted."""
    end = min(end, start + BLOCK)
    if start >= end:
        return b""
    key, skip = number << 32, start // _PART
    rows = connection.execute(_PARTS, (key + skip, key + (end - 1) // _PART)).fetchall()
    skip *= _PART
    return b"".join([body for (body,) in rows])[start - skip : end - skip]


def _remove_files(connection: Connection, numbers: list[int]) -> int:
    """Remove files, and return how many parts they had."""
    if not connection.in_transaction:
        connection.execute("BEGIN IMMEDIATE")
    spans = [(number << 32, number << 32 | _LAST_PART) for number in numbers]
    parts = connection.executemany("DELETE FROM parts WHERE key BETWEEN ? AND ?", spans).rowcount
    connection.executemany("DELETE FROM files WHERE id = ?", [(number,) for number in numbers])
    connection.execute("COMMIT")
    return max(parts, 0)
