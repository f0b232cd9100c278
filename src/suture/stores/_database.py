"""The file behind a `SQLiteFile`: opened with care, used under a lock, its errors put into words.

Imported only when a `SQLiteFile` is made, because `sqlite3` is not free. Everything here is synchronous.

The key of a record, or of a part of a file, is the number of its run or file in the upper half of 64 bits and its
own in the lower. So to add one touches one b-tree, whose inner pages hold nothing but keys, however large they are.
"""

import os
import sqlite3
import stat
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from typing import Final, NamedTuple, TypeVar

from suture.errors import ConfigError
from suture.stores._directories import make_directory
from suture.stores._errors import StoreError

__all__ = ["KINDS", "Busy", "Database", "Kind", "Occupied"]

Result = TypeVar("Result")


class Kind(NamedTuple):
    """A kind of file: who owns it, the id that marks it, the version of its tables that is known here, the tables."""

    owner: str
    application_id: int
    version: int
    tables: tuple[str, ...]


KINDS: Final = {
    "journals": Kind(
        "SQLiteStore",
        0x53757475,  # "Sutu"
        1,
        (
            "CREATE TABLE runs (id INTEGER PRIMARY KEY, run TEXT NOT NULL UNIQUE)",
            "CREATE TABLE records (key INTEGER PRIMARY KEY, changed REAL NOT NULL, body BLOB NOT NULL)",
        ),
    ),
    "files": Kind(
        "SQLiteBackend",
        0x53757446,  # "SutF"
        1,
        (
            # A file without a path is not finished. No number is given twice, so a reader has its file or none.
            "CREATE TABLE files (id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT UNIQUE, size INTEGER, written REAL)",
            "CREATE TABLE parts (key INTEGER PRIMARY KEY, body BLOB NOT NULL)",
        ),
    ),
}
"""The kinds of files, by what they hold."""

_LONGEST_LOG: Final = 4_000_000
_SMALLEST: Final = 512
_RETRY: Final = frozenset((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL))
_REASONS: Final = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "the disk did not take or give it (full, over a limit, or broken)",
    sqlite3.SQLITE_READONLY: "the file or its directory is read-only for this process",
    sqlite3.SQLITE_PERM: "this process has no permission for the file",
    sqlite3.SQLITE_CANTOPEN: "this process may not open the file, or not make files beside it",
    sqlite3.SQLITE_CORRUPT: "the file is damaged; move it away, or bring back a copy",
    sqlite3.SQLITE_NOTADB: "the file is no SQLite database",
    sqlite3.SQLITE_TOOBIG: "it is too large for SQLite",
}

# Files that are open here, as (device, inode, process). Guarded by the lock, which also keeps two stores from
# making the same file at once: to close a file that another connection has open would drop its locks.
_opening: Final = Lock()
_open_files: Final[list[tuple[int, int, int]]] = []


class Busy(Exception):
    """Another process holds the lock of the file; nothing was done."""


class Occupied(Exception):
    """Another thread uses the database; nothing was done."""


class Database:
    """One connection, opened when it is first needed; one piece of work at a time."""

    def __init__(self, path: str, synchronous: str, kind: Kind) -> None:
        self.path = path
        self._kind = kind
        self._synchronous = synchronous
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        self._file = (0, 0, 0)
        self._closed = False
        self._log = 0
        self._finalizer: weakref.finalize[..., Database] | None = None

    @property
    def opened(self) -> bool:
        """Whether the next piece of work can do without opening the file."""
        return self._connection is not None

    def perform(self, work: Callable[[sqlite3.Connection], Result], undone: Callable[[], str], *, wait: bool) -> Result:
        """Do `work` on the connection; what it began but did not commit is undone.

        Raises `Busy` or, unless it is to `wait`, `Occupied`. `undone` says what has not been done, for an error.
        """
        self._check_process(undone)
        if not self._lock.acquire(blocking=wait):
            raise Occupied
        connection = self._connection
        try:
            if connection is None:
                connection = self._opened()
            else:
                self._check_file(undone)
            return work(connection)
        except (sqlite3.Error, OverflowError, OSError) as error:
            raise _explained(error, self.path, undone()) from error
        finally:
            if connection is not None and connection.in_transaction:
                _roll_back(connection)
            self._lock.release()

    def log_grew(self, size: int) -> None:
        """Note that the log has grown by about `size` bytes; once it is long, work it into the file."""
        self._log += size
        if self._log > _LONGEST_LOG:
            self._log = 0
            # Nobody waits for it: what is in the log is safe. Without a thread to be had, the next one will do.
            with suppress(RuntimeError):
                Thread(target=self._checkpoint, name="suture-checkpoint").start()

    def close(self) -> None:
        """Close the file, for good."""
        if self._connection is not None and self._file[2] != os.getpid():
            # Only inherited, and so may the lock be.
            self._closed, self._connection = True, None
            return
        with self._lock:
            self._closed = True
            self._connection = None
            if self._finalizer is not None:
                self._finalizer()

    def _opened(self) -> sqlite3.Connection:
        if self._closed:
            raise StoreError(f"{self.path} has been closed; make another {self._kind.owner}")
        with _opening:
            file = _prepared(self.path)
            connection = sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)
            try:
                _set_up(connection, self.path, self._kind, self._synchronous)
            except BaseException:
                connection.close()
                raise
            _open_files.append(file)
        self._finalizer = weakref.finalize(self, _shut, connection, file)
        with suppress(OSError):
            # Processes that were killed may have left a long one.
            self._log = Path(f"{self.path}-wal").stat().st_size
        self._file = file
        self._connection = connection
        return connection

    def _checkpoint(self) -> None:
        # Keeps other writers out if it can: next to some that never pause, the log would grow for ever.
        with self._lock, suppress(sqlite3.Error):
            if self._connection is not None:
                self._connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()

    def _check_process(self, undone: Callable[[], str]) -> None:
        if self._connection is not None and self._file[2] != os.getpid():
            raise StoreError(f"{self.path}: {undone()}: {_FORKED}")

    def _check_file(self, undone: Callable[[], str]) -> None:
        # SQLite would go on with a file that has no name any more, and all would be gone in the end.
        try:
            info = os.lstat(self.path)
        except FileNotFoundError:
            info = None
        if info is None or (info.st_dev, info.st_ino) != self._file[:2]:
            raise StoreError(f"{self.path}: {undone()}: the file was moved or deleted while it was open")


_FORKED = (
    "this process was forked while the file was open, which SQLite cannot bear; "
    "use the store first after the fork, or start processes with 'spawn'"
)


def _prepared(path: str) -> tuple[int, int, int]:
    """Make the file and its directory if need be, private to the user; return what identifies it."""
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        make_directory(Path(path).parent)
        # Not through SQLite, which would let others read it until it was told otherwise.
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        info = os.lstat(path)
    if stat.S_ISLNK(info.st_mode):
        raise ConfigError(f"{path} is a symbolic link; give the path of the file itself")
    if not stat.S_ISREG(info.st_mode):
        raise ConfigError(f"{path} is no regular file; give the path of a file, which is made if it is not there")
    if 0 < info.st_size < _SMALLEST:
        # SQLite takes a file of one byte for an empty one.
        raise StoreError(f"{path} is no SQLite database")
    file = (info.st_dev, info.st_ino, os.getpid())
    if any(other[:2] == file[:2] and other[2] != file[2] for other in _open_files):
        raise StoreError(f"{path}: {_FORKED}")
    return file


def _set_up(connection: sqlite3.Connection, path: str, kind: Kind, synchronous: str) -> None:
    # Nothing is written before the file is known to be ours. All that tells is read at one moment: another process
    # may be making the file just now.
    connection.execute("BEGIN")
    is_new = _is_new(connection, path, kind)
    connection.execute("COMMIT")
    if is_new:
        _pragma(connection, "journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        if _is_new(connection, path, kind):
            for statement in kind.tables:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {kind.application_id}")
            connection.execute(f"PRAGMA user_version = {kind.version}")
        connection.execute("COMMIT")
    mode = _pragma(connection, "journal_mode = WAL")
    if mode != "wal":
        raise StoreError(f"{path}: SQLite cannot keep a write-ahead log here (it says {mode!r}); use a local disk")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    # A checkpoint waits for the disk, so it is asked for where that holds nobody up.
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute(f"PRAGMA journal_size_limit = {2 * _LONGEST_LOG}")


def _is_new(connection: sqlite3.Connection, path: str, kind: Kind) -> bool:
    application, version = _pragma(connection, "application_id"), _pragma(connection, "user_version")
    if application == kind.application_id and version == kind.version:
        return False
    if application == kind.application_id:
        raise StoreError(f"{path} has version {version}, and this release of Suture knows version {kind.version} only")
    for other in KINDS.values():
        if application == other.application_id:
            raise StoreError(f"{path} is the file of a {other.owner}; give the {kind.owner} a path of its own")
    tables: int = connection.execute("SELECT count(*) FROM sqlite_master").fetchall()[0][0]
    if application or version or tables:
        raise StoreError(f"{path} is the SQLite database of another program; give a path of its own")
    return True


def _pragma(connection: sqlite3.Connection, text: str) -> object:
    return connection.execute(f"PRAGMA {text}").fetchall()[0][0]


def _roll_back(connection: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):
        connection.execute("ROLLBACK")


def _shut(connection: sqlite3.Connection, file: tuple[int, int, int]) -> None:
    # A child process has only inherited the connection: closing it there would be the parent's loss.
    if os.getpid() == file[2]:
        _open_files.remove(file)
        with suppress(sqlite3.Error):
            connection.close()


def _explained(error: Exception, path: str, undone: str) -> Exception:
    if isinstance(error, OSError):
        return StoreError(f"{path}: {undone}: the file cannot be made or seen: {error.strerror or error}")
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_TOOBIG if isinstance(error, OverflowError) else 0)
    if code & 0xFF in _RETRY:
        return Busy()
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    reason = _REASONS.get(code & 0xFF)
    return StoreError(f"{path}: {undone}: {f'{reason} ({name})' if reason else f'{name}, {error}'}")
