"""`SQLiteStore`: journals in one SQLite file, which outlive the process however it ends."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from suture.stores._errors import StoreConflictError
from suture.stores._sqlite_file import PAGE, SQLiteFile
from suture.stores._store import check_append, check_run, check_seconds, stale_runs

if TYPE_CHECKING:
    from sqlite3 import Connection

__all__ = ["SQLiteStore"]

# Nothing is inserted where the record before is missing, and nothing where the record is there already.
_INSERT_ONE: Final = """
    INSERT OR IGNORE INTO records SELECT id << 32 | ?, ?, ? FROM runs
    WHERE run = ? AND EXISTS (SELECT 1 FROM records WHERE key = (id << 32 | ?) - 1)
"""
_INSERT: Final = "INSERT INTO records VALUES (?, ?, ?)"
_LOAD: Final = """
    SELECT body FROM runs JOIN records ON key BETWEEN id << 32 AND id << 32 | 4294967295 WHERE run = ? ORDER BY key
"""
_LAST: Final = """
    SELECT run, key, changed FROM runs JOIN records
    ON key = (SELECT max(key) FROM records WHERE key BETWEEN id << 32 AND id << 32 | 4294967295)
"""
_LAST_OF_RUN: Final = _LAST + "WHERE run = ?"
_NEWEST_FIRST: Final = _LAST + "ORDER BY changed DESC"
_SEQUENCE: Final = 0xFFFF_FFFF


class SQLiteStore(SQLiteFile):
    """A store in a SQLite file. Records outlive the process, also one that is killed.

    The file is opened at the first use, and made if it is not there, readable by the user alone. It may be
    shared by tasks, event loops and threads, and by processes on one machine; not over a network file system.
    A process that is forked must not have used it before. With `synchronous` at "full" records also outlive a
    loss of power, and each append waits for the disk, in a thread. An append waits for other processes for up
    to `busy_timeout` seconds, while the event loop goes on.

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

    async def append(self, run: str, first: int, records: Sequence[bytes]) -> None:
        """Write `records` as number `first`, `first` + 1, … of `run`: all of them, or none.

        Raises `StoreConflictError` unless `first` is the next number of the run, `StoreError` if they cannot be
        written. If it is cancelled before they are written, none is.
        """
        check_append(run, first, records)
        if not records:
            return
        records = tuple(records)  # the caller's list may change while this waits

        def work(connection: "Connection") -> None:
            _append(connection, run, first, records)

        def undone() -> str:
            return (
                f"{_numbered(first, len(records))} of run {run!r} {'was' if len(records) == 1 else 'were'} not written"
            )

        await self._patiently(self._at_once if self._quick else self._to_its_end, work, undone)
        self._database.log_grew(sum(map(len, records)) + (len(records) + 1) * PAGE)

    async def load(self, run: str) -> list[bytes]:
        """Return all records of `run` in order; none if there is no such run."""
        check_run(run)
        return await self._patiently(
            self._in_thread,
            lambda connection: [body for (body,) in connection.execute(_LOAD, (run,))],
            lambda: f"run {run!r} was not read",
        )

    async def delete(self, run: str) -> None:
        """Delete `run` and the runs nested in it, if there are any."""
        check_run(run)
        records = await self._patiently(
            self._in_thread,
            lambda connection: _delete(connection, run),
            lambda: f"run {run!r} was not deleted",
        )
        self._database.log_grew(records * PAGE)

    async def runs(self) -> list[str]:
        """Return the ids of all runs, the one that changed last first."""
        return await self._patiently(
            self._in_thread,
            lambda connection: [run for run, _, _ in connection.execute(_NEWEST_FIRST)],
            lambda: "the runs were not read",
        )

    async def expire(self, seconds: float) -> int:
        """Delete the runs that, with all those nested in them, have not changed for `seconds`; return how many."""
        check_seconds("seconds", seconds)
        runs, records = await self._patiently(
            self._in_thread,
            lambda connection: _expire(connection, time.time() - seconds),
            lambda: "no run was expired",
        )
        self._database.log_grew(records * PAGE)
        return runs


def _numbered(first: int, count: int) -> str:
    return f"record {first}" if count == 1 else f"records {first} to {first + count - 1}"


def _append(connection: "Connection", run: str, first: int, records: Sequence[bytes]) -> None:
    changed = time.time()
    if first and len(records) == 1:
        # One statement is its own transaction.
        if connection.execute(_INSERT_ONE, (first, changed, records[0], run, first)).rowcount != 1:
            raise StoreConflictError(run, given=first, expected=_next_key(connection, run) & _SEQUENCE)
        return
    connection.execute("BEGIN IMMEDIATE")
    key = _next_key(connection, run)
    if key & _SEQUENCE != first:
        raise StoreConflictError(run, given=first, expected=key & _SEQUENCE)
    if not key:
        key = (connection.execute("INSERT INTO runs (run) VALUES (?)", (run,)).lastrowid or 0) << 32
    connection.executemany(_INSERT, [(key + place, changed, record) for place, record in enumerate(records)])
    connection.execute("COMMIT")


def _next_key(connection: "Connection", run: str) -> int:
    """Return the key of the next record of `run`, 0 if there is no such run."""
    found = connection.execute(_LAST_OF_RUN, (run,)).fetchall()
    return found[0][1] + 1 if found else 0


def _delete(connection: "Connection", run: str) -> int:
    connection.execute("BEGIN IMMEDIATE")
    # In the order of SQLite, which is that of the bytes, "0" is what comes right after "/".
    nested = "SELECT id FROM runs WHERE run = ? UNION ALL SELECT id FROM runs WHERE run >= ? AND run < ?"
    records = _remove(connection, connection.execute(nested, (run, run + "/", run + "0")).fetchall())
    connection.execute("COMMIT")
    return records


def _expire(connection: "Connection", limit: float) -> tuple[int, int]:
    connection.execute("BEGIN IMMEDIATE")
    stale = stale_runs({run: changed for run, _, changed in connection.execute(_LAST)}, limit)
    ids = [connection.execute("SELECT id FROM runs WHERE run = ?", (run,)).fetchall()[0] for run in stale]
    records = _remove(connection, ids)
    connection.execute("COMMIT")
    return len(stale), records


def _remove(connection: "Connection", ids: list[tuple[int]]) -> int:
    spans = [(number << 32, number << 32 | _SEQUENCE) for (number,) in ids]
    removed = connection.executemany("DELETE FROM records WHERE key BETWEEN ? AND ?", spans)
    connection.executemany("DELETE FROM runs WHERE id = ?", ids)
    return max(removed.rowcount, 0)
