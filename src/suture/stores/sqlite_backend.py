"""`SQLiteBackend`: files in one SQLite file, in parts, so that a large one is never in memory as a whole."""

import time
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypeVar

from suture.stores._backend import BLOCK, DAY, check_path, check_prefix, check_range, encode_content
from suture.stores._errors import PathNotFoundError, PathTakenError, StoreError, shown
from suture.stores._sqlite_file import PAGE, SQLiteFile
from suture.stores._store import check_seconds
from suture.stores._upload import send

if TYPE_CHECKING:
    from sqlite3 import Connection

__all__ = ["SQLiteBackend"]

_Result = TypeVar("_Result")
_Do: TypeAlias = "Callable[[Callable[[Connection], int]], Awaitable[int]]"

_PART: Final = 1 << 18
_LAST: Final = 0xFFFF_FFFF
_PARTS: Final = "SELECT body FROM parts WHERE key BETWEEN ? AND ? ORDER BY key"
_ADD: Final = "UPDATE files SET size = size + ?, written = ?, path = ? WHERE id = ? AND path IS NULL"
_STALE: Final = "SELECT id, path FROM files WHERE written <= CASE WHEN path IS NULL THEN ? ELSE ? END"


class _File(NamedTuple):
    number: int
    size: int


class SQLiteBackend(SQLiteFile):
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

    async def write(self, path: str, content: str | bytes) -> None:
        """Write a file; text as UTF-8. It appears at once, whole, and is never overwritten."""
        name, body = check_path(path), encode_content(content)
        if not await self._do(lambda connection: _write(connection, name, body), path, "written"):
            raise PathTakenError(path)
        self._log_grew(len(body))

    async def write_stream(self, path: str, chunks: AsyncIterable[bytes]) -> int:
        """Write a file piece by piece; return how many bytes it has. It appears when it is whole."""
        return await send(chunks, _Upload(path, lambda work: self._do(work, path, "written"), self._log_grew), BLOCK)

    async def read(self, path: str, start: int = 0, stop: int | None = None) -> AsyncGenerator[bytes, None]:
        """Yield the bytes from `start` up to `stop`, as a slice would, in pieces of 1 MiB at most."""
        name = check_path(path)
        check_range(start, stop)
        file, piece = await self._do(lambda connection: _first(connection, name, start, stop), path, "read")
        if file is None:
            raise PathNotFoundError(path)
        end = file.size if stop is None else min(stop, file.size)
        while piece:
            yield piece
            start += len(piece)
            if start >= end:
                return
            piece = await self._do(partial(_slice, number=file.number, start=start, end=end), path, "read")
            if not piece:  # deleted meanwhile
                raise PathNotFoundError(path)

    async def size(self, path: str) -> int:
        """Return how many bytes a file has."""
        name = check_path(path)
        file = await self._do(lambda connection: _find(connection, name), path, "read")
        if file is None:
            raise PathNotFoundError(path)
        return file.size

    async def delete(self, path: str) -> None:
        """Delete a file, if it is there. The SQLite file does not shrink; its room is used again."""
        name = check_path(path)
        parts = await self._do(lambda connection: _delete(connection, name), path, "deleted")
        self._database.log_grew(parts * PAGE)

    async def paths(self, prefix: str = "") -> list[str]:
        """Return the paths of all files in order; only those at or below `prefix`."""
        within = check_prefix(prefix)
        names = await self._do(lambda connection: _names(connection, within), prefix, "listed")
        return sorted(f"/{name}" for name in names)

    async def expire(self, seconds: float) -> int:
        """Delete the files that were written `seconds` ago or earlier; return how many.

        What has been unfinished for a day goes, too: its writer was killed.
        """
        check_seconds("seconds", seconds)
        now = time.time()
        limits = now - max(seconds, DAY), now - seconds
        files, parts = await self._do(lambda connection: _expire(connection, limits), "", "expired")
        self._database.log_grew(parts * PAGE)
        return files

    async def _do(self, work: "Callable[[Connection], _Result]", path: str, done: str) -> _Result:
        what = shown(path) if path else "what is in it"
        return await self._patiently(self._to_its_end, work, lambda: f"{what} was not {done}")

    def _log_grew(self, size: int) -> None:
        self._database.log_grew(size + 2 * PAGE)


class _Upload:
    """A stream on its way into the parts of a file that has no path yet. What is done may be done again: it is pure."""

    def __init__(self, path: str, do: _Do, log_grew: Callable[[int], None]) -> None:
        self._path = path
        self._name = ""
        self._do = do
        self._log_grew = log_grew
        self._number = self._size = 0

    async def begin(self) -> None:
        self._name = check_path(self._path)
        if await self._do(lambda connection: _find(connection, self._name) is not None):
            raise PathTakenError(self._path)

    async def add(self, block: bytearray) -> None:
        self._number = await self._do(lambda connection: self._grow(connection, block, None))
        self._size += len(block)
        self._log_grew(len(block))

    async def commit(self, last: bytearray) -> None:
        if not await self._do(lambda connection: self._grow(connection, last, self._name)):
            raise PathTakenError(self._path)
        self._number = 0
        self._log_grew(len(last))

    async def abort(self) -> None:
        if self._number:
            await self._do(lambda connection: _remove(connection, [self._number]))

    def _grow(self, connection: "Connection", block: bytearray, name: str | None) -> int:
        """Add a block, and the path if it is the last one; return the file's number, or 0 if the path is taken."""
        connection.execute("BEGIN IMMEDIATE")
        if name is not None and _find(connection, name) is not None:
            return 0
        number = self._number
        if not number:
            number = _new(connection, name, len(block))
        elif connection.execute(_ADD, (len(block), time.time(), name, number)).rowcount != 1:
            raise StoreError(f"{shown(self._path)} was not written: it paused for so long that it was expired")
        _add_parts(connection, number, self._size, block)
        connection.execute("COMMIT")
        return number


def _find(connection: "Connection", name: str) -> _File | None:
    found = connection.execute("SELECT id, size FROM files WHERE path = ?", (name,)).fetchall()
    return _File(*found[0]) if found else None


def _names(connection: "Connection", prefix: str) -> list[str]:
    if not prefix:
        return [name for (name,) in connection.execute("SELECT path FROM files WHERE path IS NOT NULL")]
    # In the order of SQLite, which is that of the bytes, "0" is what comes right after "/".
    within = "SELECT path FROM files WHERE path = ? OR path >= ? AND path < ?"
    return [name for (name,) in connection.execute(within, (prefix, prefix + "/", prefix + "0"))]


def _write(connection: "Connection", name: str, content: bytes) -> bool:
    """Write a file, or tell whether the one that is there is the same."""
    connection.execute("BEGIN IMMEDIATE")
    file = _find(connection, name)
    if file is not None:
        return _is_same(connection, file, content)
    _add_parts(connection, _new(connection, name, len(content)), 0, content)
    connection.execute("COMMIT")
    return True


def _new(connection: "Connection", name: str | None, size: int) -> int:
    insert = "INSERT INTO files (path, size, written) VALUES (?, ?, ?)"
    return connection.execute(insert, (name, size, time.time())).lastrowid or 0


def _add_parts(connection: "Connection", number: int, size: int, content: bytes | bytearray) -> None:
    """Add to a file that has so many bytes, which fill its parts."""
    key = number << 32 | size // _PART
    view = memoryview(content)
    parts = ((key + place // _PART, view[place : place + _PART]) for place in range(0, len(view), _PART))
    connection.executemany("INSERT INTO parts VALUES (?, ?)", parts)


def _is_same(connection: "Connection", file: _File, content: bytes) -> bool:
    if file.size != len(content):
        return False
    places = range(0, file.size, BLOCK)
    return all(content[at : at + BLOCK] == _slice(connection, file.number, at, file.size) for at in places)


def _first(connection: "Connection", name: str, start: int, stop: int | None) -> tuple[_File | None, bytes]:
    """Return a file, if there is one, and the first piece of it."""
    file = _find(connection, name)
    if file is None:
        return None, b""
    end = file.size if stop is None else min(stop, file.size)
    piece = _slice(connection, file.number, start, end)
    return (file, piece) if piece or start >= end else (None, b"")


def _slice(connection: "Connection", number: int, start: int, end: int) -> bytes:
    """Return bytes of a file, not too many; none if it has been deleted."""
    end = min(end, start + BLOCK)
    if start >= end:
        return b""
    key, skipped = number << 32, start // _PART
    rows = connection.execute(_PARTS, (key + skipped, key + (end - 1) // _PART)).fetchall()
    skipped *= _PART
    return b"".join([body for (body,) in rows])[start - skipped : end - skipped]


def _delete(connection: "Connection", name: str) -> int:
    file = _find(connection, name)
    return _remove(connection, [file.number]) if file is not None else 0


def _expire(connection: "Connection", limits: tuple[float, float]) -> tuple[int, int]:
    connection.execute("BEGIN IMMEDIATE")
    stale = connection.execute(_STALE, limits).fetchall()
    parts = _remove(connection, [number for number, _ in stale])
    return sum(name is not None for _, name in stale), parts


def _remove(connection: "Connection", numbers: list[int]) -> int:
    if not connection.in_transaction:
        connection.execute("BEGIN IMMEDIATE")
    spans = [(number << 32, number << 32 | _LAST) for number in numbers]
    removed = connection.executemany("DELETE FROM parts WHERE key BETWEEN ? AND ?", spans)
    connection.executemany("DELETE FROM files WHERE id = ?", [(number,) for number in numbers])
    connection.execute("COMMIT")
    return max(removed.rowcount, 0)
