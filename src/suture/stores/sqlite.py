"""`SQLiteStore` and `SQLiteBackend`: journals, and files of tool output, each in one SQLite file."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, Final, TypeVar

from suture.stores import protocols
from suture.stores.journals import MAY_WRITE, SEGMENTS, Journals, SQLTables
from suture.stores.sqlite_file import KINDS, SQLiteFile, Tables
from suture.stores.uploads import BLOCK, DAY, Files, Upload, label

T = TypeVar("T")

_LAST_NUMBER: Final = 0xFFFF_FFFF
_OWN: Final = "key BETWEEN id << 32 AND id << 32 | 4294967295"
_RUN: Final = f"""
    SELECT id, coalesce((SELECT max(key) FROM records WHERE {_OWN}) - (id << 32) + 1, base) FROM runs WHERE run = :run
"""
# Nothing is inserted if the record before is missing, if the record exists already, or if another owner holds the
# lease.
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
_ADD_KEY: Final = "INSERT INTO claims SELECT id, :key, :at FROM runs WHERE run = :run"
_FIND_KEY: Final = "SELECT number FROM claims WHERE run = :id AND name = :key AND number < :high"


class _Journals(Tables, SQLTables):
    """The journals in a file."""

    changes = _CHANGES
    add_fork = "INSERT INTO runs (run, parent, base, changed) VALUES (:run, :parent, :base, :now)"
    drop_records = (
        "DELETE FROM records WHERE key BETWEEN :id << 32 | :first AND :id << 32 | 4294967295",
        "DELETE FROM claims WHERE run = :id AND number >= :first",
    )

    def execute(self, statement: str, **asked: Any) -> int:
        return self._connection.execute(_compose(statement), {"now": self._now, **asked}).rowcount

    def query(self, statement: str, **asked: Any) -> list[Any]:
        return self._connection.execute(_compose(statement), {"now": self._now, **asked}).fetchall()

    @contextmanager
    def changing(self, run: str = "") -> Generator[None]:
        is_outermost = not self._connection.in_transaction
        if is_outermost:
            self._connection.execute("BEGIN IMMEDIATE")
        yield
        if is_outermost:
            self._connection.execute("COMMIT")

    def append(self, run: str, first: int, records: Sequence[bytes], owner: str | None) -> None:
        self.size = sum(map(len, records))
        if first and len(records) == 1:
            # One statement is its own transaction. If it inserts nothing, the code below finds out why.
            (body,) = records
            asked = {"run": run, "first": first, "owner": owner, "body": body}
            if self.execute(_INSERT_ONE, checksum=protocols.compute_checksum(first, body), **asked) == 1:
                return
        with self.changing():
            self.check_lease(run, owner)
            number, length = self._find(run)
            if length != first:
                raise protocols.StoreConflictError(run, given=first, expected=length)
            if not number:
                number = self._connection.execute("INSERT INTO runs (run) VALUES (?)", (run,)).lastrowid or 0
            rows = (
                (number << 32 | at, self._now, protocols.compute_checksum(at, body), body)
                for at, body in enumerate(records, first)
            )
            self._connection.executemany("INSERT INTO records VALUES (?, ?, ?, ?)", rows)

    def _find(self, run: str) -> tuple[int, int]:
        """Return the number and the length of a run, 0 and 0 if there is none."""
        rows = self.query(_RUN, run=run)
        return rows[0] if rows else (0, 0)

    def length(self, run: str) -> int:
        return self._find(run)[1]

    def load(self, run: str, first: int) -> list[bytes]:
        self._connection.execute("BEGIN")  # all reads below see the same moment
        records: list[bytes] = []
        for number, low, high in reversed(self._segments(run, first)):
            start = first + len(records)
            if low > start:
                raise protocols.DamagedJournalError(f"record {start} is missing")
            records += protocols.verify_records(start, self._read(number, start, high - 1))
        return records

    def _segments(self, run: str, first: int) -> list[tuple[int, int, int]]:
        return self.query(f"{SEGMENTS} SELECT id, low, high FROM segments", run=run, first=first)

    def _read(self, number: int, first: int, last: int) -> list[Any]:
        return self.query(_READ, low=number << 32 | first, high=(number << 32) + last)

    def claim(self, run: str, key: str, record: bytes) -> protocols.Entry:
        with self.changing():
            for number, _, high in self._segments(run, 0):
                for (at,) in self.query(_FIND_KEY, id=number, key=key, high=high):
                    if stored := protocols.verify_records(at, self._read(number, at, at)):
                        return protocols.Entry(at, stored[0])
                    raise protocols.DamagedJournalError(f"record {at} is missing")
            length = self.length(run)
            self.append(run, length, [record], None)
            self.execute(_ADD_KEY, run=run, key=key, at=length)
        return protocols.Entry(length, record)


@cache
def _compose(statement: str) -> str:
    return statement.replace("{schema}", "").replace("{now}", ":now").replace("{length}", "4294967296")


class SQLiteStore(SQLiteFile, Journals):
    """A store in a SQLite file. Records survive the process, even if it is killed.

    The file is opened at the first use, and created if it does not exist, readable by the user alone. Tasks, event
    loops, threads and processes on one machine may share it; it must not be on a network file system. Do not use it
    before a fork. With `synchronous` at "full" records also survive a loss of power, and each append waits for the
    disk, in a thread. An append waits for other processes for up to `busy_timeout` seconds, while the event loop
    goes on. `clock` returns the seconds by which runs expire and leases run out; by default it is the machine's
    clock, on which all its processes agree.

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

    _kind = KINDS["journals"]
    _tables = _Journals

    async def _do(self, work: Callable[[Any], T], undone: str, *, reads: bool = False) -> T:
        way = "thread" if reads else "here" if self._synchronous == "normal" else "whole"
        return await self._perform(way, work, undone)


# --- files of tool output ---------------------------------------------------------------------

_PART: Final = 1 << 18
_ALL: Final = "SELECT path FROM files WHERE path IS NOT NULL"
# In SQLite's order, which is that of the bytes, "0" comes right after "/".
_WITHIN: Final = "SELECT path FROM files WHERE path = :prefix OR path >= :low AND path < :high"
_PARTS: Final = "SELECT body FROM parts WHERE key BETWEEN ? AND ? ORDER BY key"
_GROW: Final = "UPDATE files SET size = size + ?, written = ?, path = ? WHERE id = ? AND path IS NULL"
_NEW_FILE: Final = "INSERT INTO files (size, written, path) VALUES (?, ?, ?)"
_STALE: Final = "SELECT id, path FROM files WHERE written <= CASE WHEN path IS NULL THEN ? ELSE ? END"


class _Files(Tables):
    """The files of tool output in a SQLite file."""

    def find(self, name: str) -> Upload:
        for number, size in self._connection.execute("SELECT id, size FROM files WHERE path = ?", (name,)).fetchall():
            file = Upload(name)
            file.place, file.size = number, size
            return file
        raise protocols.PathNotFoundError(f"/{name}")

    def get(self, file: Upload, start: int, end: int) -> bytes:
        end = min(end, start + BLOCK)
        key, skip = file.place << 32, start // _PART
        rows = self._connection.execute(_PARTS, (key + skip, key + (end - 1) // _PART)).fetchall()
        if not rows:  # deleted meanwhile
            raise protocols.PathNotFoundError(f"/{file.name}")
        skip *= _PART
        return b"".join([body for (body,) in rows])[start - skip : end - skip]

    def names(self, prefix: str) -> list[str]:
        within = {"prefix": prefix, "low": f"{prefix}/", "high": f"{prefix}0"}
        return [name for (name,) in self._connection.execute(_WITHIN if prefix else _ALL, within)]

    def delete(self, name: str) -> None:
        with suppress(protocols.PathNotFoundError):
            self._remove([self.find(name).place])

    def expire(self, seconds: float) -> int:
        self._connection.execute("BEGIN IMMEDIATE")
        limits = (self._now - max(seconds, DAY), self._now - seconds)
        stale = self._connection.execute(_STALE, limits).fetchall()
        self._remove([number for number, _ in stale])
        return sum(name is not None for _, name in stale)

    def _remove(self, numbers: list[int]) -> None:
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN IMMEDIATE")
        spans = [(number << 32, number << 32 | _LAST_NUMBER) for number in numbers]
        self._connection.executemany("DELETE FROM parts WHERE key BETWEEN ? AND ?", spans)
        self._connection.executemany("DELETE FROM files WHERE id = ?", [(number,) for number in numbers])
        self._connection.execute("COMMIT")

    def add(self, upload: Upload, block: bytearray, *, is_last: bool = False) -> None:
        name, number = upload.name, upload.place
        self._connection.execute("BEGIN IMMEDIATE")
        if is_last and self._connection.execute("SELECT 1 FROM files WHERE path = ?", (name,)).fetchall():
            raise protocols.PathTakenError(f"/{name}")
        about = (len(block), self._now, name if is_last else None)
        if not number:
            number = self._connection.execute(_NEW_FILE, about).lastrowid or 0
        elif self._connection.execute(_GROW, (*about, number)).rowcount != 1:
            raise protocols.StoreError(
                f"{label(f'/{name}')} was not written: it paused for so long that it was expired"
            )
        key, view = number << 32 | upload.size // _PART, memoryview(block)
        parts = ((key + place // _PART, view[place : place + _PART]) for place in range(0, len(view), _PART))
        self._connection.executemany("INSERT INTO parts VALUES (?, ?)", parts)
        self._connection.execute("COMMIT")
        self.size, upload.place = len(block), number

    def commit(self, upload: Upload, block: bytearray) -> None:
        self.add(upload, block, is_last=True)
        upload.place = None

    def abort(self, upload: Upload) -> None:
        if upload.place:
            self._remove([upload.place])


class SQLiteBackend(SQLiteFile, Files):
    """A backend in a SQLite file of its own. It cannot be the file of a `SQLiteStore`.

    The file is opened at the first use, and created if it does not exist, readable by the user alone. Tasks, event
    loops, threads and processes on one machine may share it; it must not be on a network file system. Do not use it
    before a fork. With `synchronous` at "full" written files also survive a loss of power. A write waits for other
    processes for up to `busy_timeout` seconds, while the event loop goes on.

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

    _kind = KINDS["files"]
    _tables = _Files

    async def _do(self, work: Callable[[Any], T], path: str, action: str) -> T:
        return await self._perform("whole", work, f"{label(path)} was not {action}")
