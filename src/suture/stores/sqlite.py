"""`SQLiteStore` and `SQLiteBackend`: journals, and files of tool output, each in one SQLite file."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from sqlite3 import Connection
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from suture._text import quote
from suture.stores.journals import MAY_WRITE, SEGMENTS, Journals, SQLTables
from suture.stores.protocols import (
    DamagedJournalError,
    Entry,
    PathNotFoundError,
    PathTakenError,
    StoreConflictError,
    StoreError,
    check_seconds,
    compute_checksum,
    verify_records,
)
from suture.stores.sqlite_file import PAGE, SQLiteFile
from suture.stores.uploads import BLOCK, DAY, Upload, UploadBackend, check_path, check_prefix, check_range

T = TypeVar("T")

_LAST_NUMBER: Final = 0xFFFF_FFFF
_OWN: Final = "key BETWEEN id << 32 AND id << 32 | 4294967295"
_RUN: Final = f"""
    SELECT id, coalesce((SELECT max(key) FROM records WHERE {_OWN}) - (id << 32) + 1, base) FROM runs WHERE run = :run
"""
# Nothing is inserted where the record before is missing, where the record is there already, and where somebody else
# holds the lease.
_INSERT_ONE: Final = f"""
    INSERT OR IGNORE INTO records SELECT id << 32 | :first, :now, :checksum, :body FROM runs
    WHERE run = :run AND EXISTS (SELECT 1 FROM records WHERE key = (id << 32 | :first) - 1) AND {MAY_WRITE}
"""
_READ: Final = """
    SELECT key & 4294967295, checksum, body FROM records WHERE key BETWEEN :low AND :high ORDER BY key
"""
_CHANGES: Final = f"""
    SELECT run, coalesce(records.changed, runs.changed) AS last, id FROM runs
    LEFT JOIN records ON key = (SELECT max(key) FROM records WHERE {_OWN}) WHERE run IS NOT NULL ORDER BY last DESC
"""
_ADD_FORK: Final = "INSERT INTO runs (run, parent, base, changed) VALUES (:run, :parent, :base, :now)"
_FIND_KEY: Final = "SELECT number FROM claims WHERE run = :id AND name = :key AND number < :high"


class SQLiteStore(SQLiteFile, Journals):
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

    async def _do(self, work: Callable[["_Tables"], T], undone: Callable[[], str], *, reads: bool = False) -> T:
        grown = 0

        def do(connection: Connection) -> T:
            nonlocal grown
            tables, before = _Tables(connection, self._clock()), connection.total_changes
            result = work(tables)
            changes = connection.total_changes - before
            grown = tables.size + (changes + 1) * PAGE if changes else 0
            return result

        way = self._in_thread if reads else self._at_once if self._quick else self._to_its_end
        result = await self._patiently(way, do, undone)
        if grown:
            self._database.log_grew(grown)
        return result


class _Tables(SQLTables):
    """The journals in a file, through its connection; what was begun and not committed is undone by the caller."""

    def __init__(self, connection: Connection, now: float) -> None:
        self._connection, self._now = connection, now
        self.size = 0
        """The bytes of the records that were written."""

    def execute(self, statement: str, **asked: Any) -> int:
        return self._connection.execute(_compose(statement), {"now": self._now, **asked}).rowcount

    def query(self, statement: str, **asked: Any) -> list[Any]:
        return self._connection.execute(_compose(statement), {"now": self._now, **asked}).fetchall()

    @contextmanager
    def changing(self, run: str = "") -> Generator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        yield
        self._connection.execute("COMMIT")

    def text(self, text: str) -> str:
        return text

    def read(self, text: Any) -> str:
        return str(text)

    def now(self) -> float:
        return self._now

    def append(self, run: str, first: int, records: Sequence[bytes], owner: str | None) -> None:
        if first and len(records) == 1:
            # One statement is its own transaction. If it does nothing, the reason is found out below.
            (body,) = records
            self.size = len(body)
            asked = {
                "run": run,
                "first": first,
                "owner": owner,
                "checksum": compute_checksum(first, body),
                "body": body,
            }
            if self.execute(_INSERT_ONE, **asked) == 1:
                return
        with self.changing():
            self.check_lease(run, owner)
            self._insert(run, first, records)

    def _insert(self, run: str, first: int, records: Sequence[bytes]) -> int:
        """Insert records in a transaction; return the number of the run."""
        number, length = self._find(run)
        if length != first:
            raise StoreConflictError(run, given=first, expected=length)
        if not number:
            number = self._connection.execute("INSERT INTO runs (run) VALUES (?)", (run,)).lastrowid or 0
        self.size = sum(map(len, records))
        rows = (
            (number << 32 | at, self._now, compute_checksum(at, each), each) for at, each in enumerate(records, first)
        )
        self._connection.executemany("INSERT INTO records VALUES (?, ?, ?, ?)", rows)
        return number

    def _find(self, run: str) -> tuple[int, int]:
        """Return the number and the length of a run, 0 and 0 if there is none."""
        rows = self.query(_RUN, run=run)
        return rows[0] if rows else (0, 0)

    def length(self, run: str) -> int:
        return self._find(run)[1]

    def load(self, run: str, first: int) -> list[bytes]:
        self._connection.execute("BEGIN")  # so that all is read at one moment
        records: list[bytes] = []
        for number, low, high in reversed(self._segments(run, first)):
            start = first + len(records)
            if low > start:
                raise DamagedJournalError(f"record {start} is missing")
            records += verify_records(start, self._read(number, start, high - 1))
        return records

    def _segments(self, run: str, first: int) -> list[tuple[int, int, int]]:
        return self.query(f"{SEGMENTS} SELECT id, low, high FROM segments", run=run, first=first)

    def _read(self, number: int, first: int, last: int) -> list[Any]:
        return self.query(_READ, low=number << 32 | first, high=(number << 32) + last)

    def claim(self, run: str, key: str, record: bytes) -> Entry:
        with self.changing():
            for number, _, high in self._segments(run, 0):
                for (at,) in self.query(_FIND_KEY, id=number, key=key, high=high):
                    if stored := verify_records(at, self._read(number, at, at)):
                        return Entry(at, stored[0])
                    raise DamagedJournalError(f"record {at} is missing")
            length = self.length(run)
            number = self._insert(run, length, [record])
            self.execute("INSERT INTO claims VALUES (:id, :key, :at)", id=number, key=key, at=length)
        return Entry(length, record)

    def add_run(self, run: str, records: Sequence[bytes]) -> None:
        self._insert(run, 0, records)

    def add_fork(self, parent: int, position: int, new_run: str) -> None:
        self.execute(_ADD_FORK, run=new_run, parent=parent, base=position)

    def changes(self) -> list[tuple[Any, float, int]]:
        return self.query(_CHANGES)

    def drop_records(self, number: int, first: int) -> None:
        span = {"low": number << 32 | first, "high": number << 32 | _LAST_NUMBER}
        self.execute("DELETE FROM records WHERE key BETWEEN :low AND :high", **span)
        self.execute("DELETE FROM claims WHERE run = :id AND number >= :first", id=number, first=first)


@cache
def _compose(statement: str) -> str:
    return statement.replace("{schema}", "").replace("{now}", ":now").replace("{length}", "4294967296")


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
