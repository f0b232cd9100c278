"""The file behind `SQLiteStore` and `SQLiteBackend`: opens it with care, uses it under a lock, and explains its errors.

The key of a record, or of a part of a file, has the number of its run or file in the upper half of its 64 bits and its
own number in the lower. So adding one touches a single b-tree, whose inner pages hold only keys.
"""

import asyncio
import os
import sqlite3
import stat
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from sqlite3 import Connection
from threading import Lock, Thread
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self, TypeAlias, TypeVar

from suture._aio import run_in_thread
from suture.errors import ConfigError, SutureError
from suture.stores.files import make_directory
from suture.stores.protocols import DamagedJournalError, StoreError, check_seconds
from suture.stores.uploads import run_whole

T = TypeVar("T")

_Way: TypeAlias = Literal["here", "thread", "whole"]
"""Where work is done: in the event loop, in a thread, or in a thread to its end even if the caller is cancelled."""

_PAGE: Final = 4096
"""The bytes of a page, the smallest unit that changes in the file."""

_PAUSES: Final = (0.001, 0.002, 0.005, 0.01, 0.015, 0.025)


class Kind(NamedTuple):
    """A kind of file: its word, class, class for memory, id and version, tables, and error for damage."""

    noun: str
    owner: str
    in_memory: str
    application_id: int
    version: int
    tables: str
    damage: type[StoreError]


# A run without a name was deleted, but forks share its records. `changed` is the time at which a fork was made.
_JOURNALS: Final = """
    CREATE TABLE runs (id INTEGER PRIMARY KEY, run TEXT UNIQUE, parent INTEGER, base INTEGER DEFAULT 0, changed REAL);
    CREATE INDEX forks ON runs (parent) WHERE parent IS NOT NULL;
    CREATE TABLE records (key INTEGER PRIMARY KEY, changed REAL, checksum INTEGER, body BLOB NOT NULL);
    CREATE TABLE claims (run INTEGER, name TEXT, number INTEGER, PRIMARY KEY (run, name)) WITHOUT ROWID;
    CREATE TABLE leases (run TEXT, place INTEGER, owner TEXT, until REAL, PRIMARY KEY (run, place)) WITHOUT ROWID
"""
# A file without a path is not finished. No number is used twice, so a reader has its own file or none.
_FILES: Final = """
    CREATE TABLE files (id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT UNIQUE, size INTEGER, written REAL);
    CREATE TABLE parts (key INTEGER PRIMARY KEY, body BLOB NOT NULL)
"""
KINDS: Final = {
    "journals": Kind("store", "SQLiteStore", "MemoryStore", 0x53757475, 3, _JOURNALS, DamagedJournalError),  # "Sutu"
    "files": Kind("backend", "SQLiteBackend", "MemoryBackend", 0x53757446, 1, _FILES, StoreError),  # "SutF"
}

_LONGEST_LOG: Final = 4_000_000
_SMALLEST: Final = 512
_RETRY: Final = frozenset((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL))
_WRITABLE: Final = "give a path where this process may write files"
_ANOTHER: Final = "give a path of its own"
_REASONS: Final = {
    sqlite3.SQLITE_FULL: "the disk is full; make room on it",
    sqlite3.SQLITE_IOERR: "the disk did not take or give it (full, over a limit, or broken); make room, or use another",
    sqlite3.SQLITE_READONLY: f"the file or its directory is read-only for this process; {_WRITABLE}",
    sqlite3.SQLITE_PERM: f"this process has no permission for the file; {_WRITABLE}",
    sqlite3.SQLITE_CANTOPEN: f"this process may not open the file, or not make files beside it; {_WRITABLE}",
    sqlite3.SQLITE_TOOBIG: "it is too large for SQLite",
}
_DAMAGE: Final = {
    sqlite3.SQLITE_CORRUPT: "the file is damaged; move it away, or bring back a copy",
    sqlite3.SQLITE_NOTADB: f"it is not a SQLite database; {_ANOTHER}",
    # The statements are right, so a table is missing, or a text is not valid.
    sqlite3.SQLITE_ERROR: "the file is damaged; move it away, or bring back a copy",
}

# Files that are open here, as (device, inode, process). The lock guards them, and keeps two stores from making the
# same file at once: closing a file that another connection has open would drop that one's locks.
_opening: Final = Lock()
_open_files: Final[list[tuple[int, int, int]]] = []


class _Busy(Exception):
    """Another process holds the lock of the file; nothing was changed."""


class _Occupied(Exception):
    """Another thread is using the connection; nothing was changed."""


class SQLiteFile:
    """A SQLite file of one kind, with one connection that is opened at the first use and does one thing at a time."""

    _kind: ClassVar[Kind]
    _tables: ClassVar[type["Tables"]]
    """The class of the tables on which work is done."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: Literal["normal", "full"] = "normal",
        busy_timeout: float = 5.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if synchronous not in ("normal", "full"):
            raise ConfigError(f"synchronous is 'normal' or 'full', not {synchronous!r}")
        check_seconds("busy_timeout", busy_timeout)
        file, kind = os.fspath(path), type(self).__name__
        if not isinstance(file, str) or not file or "\0" in file:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"the path of a {kind} is the text of a file's path, not {file!r}")
        if file == ":memory:":
            raise ConfigError(f"a {kind} keeps a file; in memory use {self._kind.in_memory}()")
        self.path = str(Path(file).absolute())
        """The absolute path of the file."""
        self._synchronous, self._busy_timeout, self._clock = synchronous, busy_timeout, clock
        self._lock = Lock()
        self._connection: Connection | None = None
        self._file = (0, 0, 0)
        self._closed = False
        self._log = 0
        self._finalizer: weakref.finalize[..., SQLiteFile] | None = None

    def close(self) -> None:
        """Close the file. It cannot be used after that; closing it again does nothing."""
        if self._connection is not None and self._file[2] != os.getpid():
            # A forked process has only inherited the connection, perhaps with the lock held.
            self._closed, self._connection = True, None
            return
        with self._lock:
            self._closed = True
            self._connection = None
            if self._finalizer is not None:
                self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.path!r})"

    async def _perform(self, way: _Way, work: Callable[[Any], T], undone: str) -> T:
        """Do `work`, and repeat it while another thread or, up to the timeout, another process is using the file."""
        attempt, deadline, grown = 0, 0.0, 0

        def do(connection: Connection) -> T:
            nonlocal grown
            tables, before = self._tables(connection, self._clock()), connection.total_changes
            result = work(tables)
            changes = connection.total_changes - before
            grown = tables.size + (changes + 1) * _PAGE if changes else 0
            return result

        while True:
            try:
                result = await self._run(way, do, undone)
            except _Occupied:
                pass
            except _Busy:
                now = time.monotonic()
                deadline = deadline or now + self._busy_timeout
                if now >= deadline:
                    held = f"another writer has held the lock of the file for {self._busy_timeout:g} s"
                    raise StoreError(f"{self.path}: {undone}: {held}") from None
            else:
                self._log += grown
                if self._log > _LONGEST_LOG:
                    self._log = 0
                    # Nobody waits for this, since the log is safe. If no thread can be started, a later write tries.
                    with suppress(RuntimeError):
                        Thread(target=self._checkpoint, name="suture-checkpoint").start()
                return result
            await asyncio.sleep(_PAUSES[min(attempt, len(_PAUSES) - 1)])
            attempt += 1

    async def _run(self, way: _Way, work: Callable[[Connection], T], undone: str) -> T:
        """Do `work` here or in a thread; "whole" goes on to its end even if this task is cancelled."""
        if way == "here":
            if self._connection is None:
                await self._run("thread", lambda _: None, undone)
            return self._use(work, undone, wait=False)
        return await (run_whole if way == "whole" else run_in_thread)(partial(self._use, work, undone, wait=True))

    def _use(self, work: Callable[[Connection], T], undone: str, *, wait: bool) -> T:
        """Do `work` on the connection, and roll back what it did not commit.

        Raises `_Busy` or, unless it may `wait`, `_Occupied`. `undone` says in an error what was not done.
        """
        if self._connection is not None and self._file[2] != os.getpid():
            raise StoreError(f"{self.path}: {undone}: {_FORKED}")
        if not self._lock.acquire(blocking=wait):
            raise _Occupied
        connection = None
        try:
            connection = self._connection or self._open()
            return self._work(connection, work, f"{self.path}: {undone}")
        finally:
            if connection is not None and connection.in_transaction:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            self._lock.release()

    def _work(self, connection: Connection, work: Callable[[Connection], T], what: str) -> T:
        try:
            if _identify(self.path) != self._file[:2]:
                # SQLite would go on writing to a file without a name, and everything would be lost in the end.
                raise StoreError(f"{what}: the file was moved or deleted while it was open")
            return work(connection)
        except DamagedJournalError as error:
            raise DamagedJournalError(f"{what}: {error}; bring back a copy of the file") from None
        except (sqlite3.Error, OverflowError, OSError) as error:
            raise _explain(error, what, self._kind) from error
        except (TypeError, ValueError) as error:
            if isinstance(error, SutureError):
                raise
            # A value in the file does not have the type that was written.
            raise self._kind.damage(f"{what}: {_DAMAGE[sqlite3.SQLITE_CORRUPT]}") from error

    def _open(self) -> sqlite3.Connection:
        if self._closed:
            raise StoreError(f"{self.path} has been closed; make another {self._kind.owner}")
        what = f"cannot open the {self._kind.noun} {self.path}"
        try:
            file, connection = self._connect()
        except SutureError as error:
            raise type(error)(f"{what}: {error}") from None
        except (sqlite3.Error, OSError) as error:
            raise _explain(error, what, self._kind) from None
        self._finalizer = weakref.finalize(self, _close, connection, file)
        with suppress(OSError):
            # Killed processes may have left a long one.
            self._log = Path(f"{self.path}-wal").stat().st_size
        self._file = file
        self._connection = connection
        return connection

    def _connect(self) -> tuple[tuple[int, int, int], sqlite3.Connection]:
        """Return the identity of the file, and a connection to it; errors do not say which file it is."""
        with _opening:
            file = _prepare(self.path)
            connection = sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)
            try:
                _set_up(connection, self._kind, self._synchronous)
            except BaseException:
                connection.close()
                raise
            _open_files.append(file)
        return file, connection

    def _checkpoint(self) -> None:
        """Move the log, which has become long, into the file."""
        # RESTART keeps other writers out: beside some that never pause, the log would grow for ever.
        with self._lock, suppress(sqlite3.Error):
            if self._connection is not None:
                self._connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()


class Tables:
    """The tables of a file, through its connection; the caller rolls back what was not committed."""

    def __init__(self, connection: Connection, now: float) -> None:
        self._connection, self._now = connection, now
        self.size = 0
        """How many bytes were written, without the keys."""


_FORKED = (
    "this process was forked while the file was open, which SQLite cannot bear; "
    "use the store first after the fork, or start processes with 'spawn'"
)


def _identify(path: str) -> tuple[int, int] | None:
    with suppress(FileNotFoundError):
        info = os.lstat(path)
        return info.st_dev, info.st_ino
    return None


def _prepare(path: str) -> tuple[int, int, int]:
    """Make the file and its directory if necessary, private to the user; return the identity of the file."""
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        make_directory(Path(path).parent)
        # SQLite would create a file that others can read.
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        info = os.lstat(path)
    if stat.S_ISLNK(info.st_mode):
        raise ConfigError("it is a symbolic link; give the path of the file itself")
    if not stat.S_ISREG(info.st_mode):
        raise ConfigError("it is not a regular file; give the path of a file, which may be new")
    if 0 < info.st_size < _SMALLEST:
        # SQLite takes a file of one byte for an empty one.
        raise StoreError(f"it is not a SQLite database; {_ANOTHER}")
    file = (info.st_dev, info.st_ino, os.getpid())
    if any(other[:2] == file[:2] and other[2] != file[2] for other in _open_files):
        raise StoreError(_FORKED)
    return file


def _set_up(connection: sqlite3.Connection, kind: Kind, synchronous: str) -> None:
    # Nothing is written before the file is known to be ours. The transaction reads everything at one moment, because
    # another process may be making the file just now.
    connection.execute("BEGIN")
    is_new = _is_new(connection, kind)
    connection.execute("COMMIT")
    if is_new:
        _pragma(connection, "journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        if _is_new(connection, kind):
            marks = (f"PRAGMA application_id = {kind.application_id}", f"PRAGMA user_version = {kind.version}")
            for statement in (*kind.tables.split(";"), *marks):
                connection.execute(statement)
        connection.execute("COMMIT")
    mode = _pragma(connection, "journal_mode = WAL")
    if mode != "wal":
        raise StoreError(f"SQLite cannot keep a write-ahead log here (it says {mode!r}); use a local disk")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    # A checkpoint waits for the disk, so `_checkpoint` does it in a thread.
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute(f"PRAGMA journal_size_limit = {2 * _LONGEST_LOG}")


def _is_new(connection: sqlite3.Connection, kind: Kind) -> bool:
    """Return whether a file is still empty; raise `StoreError` if its content is not ours."""
    application, version = _pragma(connection, "application_id"), _pragma(connection, "user_version")
    if application == kind.application_id:
        if version != kind.version:
            known = f"this release of Suture knows version {kind.version} only"
            raise StoreError(f"it has version {version}, and {known}; use the release that made it, or another path")
        return False
    for other in KINDS.values():
        if application == other.application_id:
            raise StoreError(f"it is the file of a {other.owner}; give the {kind.owner} a path of its own")
    tables: int = connection.execute("SELECT count(*) FROM sqlite_master").fetchall()[0][0]
    if application or version or tables:
        raise StoreError(f"it is the SQLite database of another program; {_ANOTHER}")
    return True


def _pragma(connection: sqlite3.Connection, text: str) -> Any:
    return connection.execute(f"PRAGMA {text}").fetchall()[0][0]


def _close(connection: sqlite3.Connection, file: tuple[int, int, int]) -> None:
    # A forked process has only inherited the connection; closing it there would damage the parent's.
    if os.getpid() == file[2]:
        _open_files.remove(file)
        with suppress(sqlite3.Error):
            connection.close()


def _explain(error: Exception, what: str, kind: Kind) -> Exception:
    if isinstance(error, OSError):
        return StoreError(f"{what}: {error.strerror or error} ({error.filename}); {_WRITABLE}")
    too_big = sqlite3.SQLITE_TOOBIG if isinstance(error, OverflowError) else sqlite3.SQLITE_ERROR
    code = getattr(error, "sqlite_errorcode", too_big)
    if code & 0xFF in _RETRY:
        return _Busy()
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    if damage := _DAMAGE.get(code & 0xFF):
        return kind.damage(f"{what}: {damage} ({name})")
    reason = _REASONS.get(code & 0xFF)
    return StoreError(f"{what}: {f'{reason} ({name})' if reason else f'{name}, {error}'}")
