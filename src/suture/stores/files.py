"""`LocalBackend`: files in a directory, private to the user, and never reached through a symbolic link.

A file is written under a name that no path can have. Once complete it gets its own name, which fails if that is taken.
Directories are opened step by step, each relative to the one before, so that nobody can put a link in between.
"""

import errno
import io
import os
import stat
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from suture._text import quote
from suture.errors import ConfigError
from suture.stores.protocols import PathNotFoundError, PathTakenError, StoreError
from suture.stores.uploads import BLOCK, DAY, Files, Upload, is_segment, label, run_whole

if sys.platform != "win32":
    import fcntl

T = TypeVar("T")

_DIRECTORY: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_NEW_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_READ_FLAGS: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # a pipe would keep the reader waiting

_UNFINISHED: Final = "\\unfinished"
"""The ending of a file's name while it is being written. No path can contain a backslash."""

_NO_LINKS: Final = frozenset((errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP))
"""The errors of file systems that have no hard links."""

_ATTEMPTS: Final = 100
"""How often a directory is made again if another process keeps removing it because it is empty."""

_REASONS: Final = {
    errno.ENOSPC: "the disk is full; make room on it",
    getattr(errno, "EDQUOT", -1): "the quota of the user is used up; make room",
    errno.EFBIG: "the file would be larger than the system lets this process write",
    errno.EACCES: "this process has no permission; give it a directory of its own",
    errno.EPERM: "this process has no permission; give it a directory of its own",
    errno.EROFS: "the file system is read-only; give another directory",
    errno.ENAMETOOLONG: "a name is too long for this file system; choose a shorter path",
    errno.EMFILE: "this process has too many files open",
    errno.EIO: "the disk did not take or give it; it may be broken",
}


class LocalBackend(Files):
    """A backend in a directory, which is made at the first write. Only the user can read its files.

    Directories that it makes have the permissions 0700, and files 0600, whatever the umask. No symbolic link is
    followed, neither the directory itself nor anything in it. Tasks, threads and processes may share the directory.
    With `fsync` a written file also survives a loss of power. Needs a system that can open files relative to a
    directory, which Windows cannot.

    >>> import asyncio, tempfile
    >>> from suture.stores import LocalBackend
    >>> directory = tempfile.TemporaryDirectory()
    >>> backend = LocalBackend(directory.name + "/outputs")
    >>> asyncio.run(backend.write("/run-1/trunc/call_1", "what the tool said"))
    >>> asyncio.run(backend.paths())
    ['/run-1/trunc/call_1']
    >>> directory.cleanup()
    """

    def __init__(self, directory: str | os.PathLike[str], *, fsync: bool = False) -> None:
        path = os.fspath(directory)
        if not isinstance(path, str) or not path or "\0" in path:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"the directory of a LocalBackend is the text of a path, not {path!r}")
        if not {os.open, os.link, os.mkdir, os.unlink} <= os.supports_dir_fd or os.scandir not in os.supports_fd:
            raise ConfigError("a LocalBackend cannot keep symbolic links out on this system; use a SQLiteBackend")
        self._shelf = _Shelf(str(Path(path).absolute()), fsync=fsync)

    @property
    def directory(self) -> str:
        """The absolute path of the directory."""
        return self._shelf.path

    def __repr__(self) -> str:
        return f"LocalBackend({self.directory!r})"

    async def _do(self, work: Callable[["_Shelf"], T], path: str, action: str) -> T:
        try:
            return await run_whole(partial(work, self._shelf))
        except FileExistsError as error:
            raise PathTakenError(path) from error
        except NotADirectoryError as error:
            if action == "written":
                raise PathTakenError(path, "a file stands where it needs a directory") from error
            raise PathNotFoundError(path) from error
        except OSError as error:
            if action == "read" and isinstance(error, FileNotFoundError):
                raise PathNotFoundError(path) from error
            reason = _REASONS.get(error.errno or 0) or f"the system says {error.strerror or error}"
            raise StoreError(f"{self.directory}: {label(path)} was not {action}: {reason}") from error


class _Part(NamedTuple):
    """A file that is being written: the open directory, a name that no path can have, the open file."""

    directory: int
    name: str
    file: int


class _File(io.FileIO):
    """A file that is open for reading, and closes with its last reference, however reading ended."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        self.size = os.fstat(descriptor).st_size

    def __del__(self) -> None:
        self.close()


class _Shelf:
    """Synchronous access to the files below a directory. Names are checked paths without a leading slash."""

    def __init__(self, path: str, *, fsync: bool) -> None:
        self.path, self.fsync = path, fsync

    def add(self, upload: Upload, block: bytearray) -> None:
        if upload.place is None:
            upload.place = self._begin(upload.name)
        with memoryview(block) as view:
            start = 0
            while start < len(view):
                start += os.write(upload.place.file, view[start:])

    def commit(self, upload: Upload, block: bytearray) -> None:
        self.add(upload, block)
        (directory, part, file), name = upload.place, _split(upload.name)[1]
        os.close(os.dup(file))  # some network file systems report only here that they are full
        if self.fsync:
            os.fsync(file)
        try:
            os.link(part, name, src_dir_fd=directory, dst_dir_fd=directory)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            # A rename would replace an existing file, so writers lock the directory until they close it.
            fcntl.flock(directory, fcntl.LOCK_EX)
            self._check_free(directory, upload.name)
            os.rename(part, name, src_dir_fd=directory, dst_dir_fd=directory)
        if self.fsync:
            try:
                os.fsync(directory)
            except OSError:
                os.unlink(name, dir_fd=directory)
                raise
        _close(upload)

    def abort(self, upload: Upload) -> None:
        if upload.place is not None:
            _close(upload)
            self._tidy(_split(upload.name)[0])

    def _begin(self, name: str) -> _Part:
        """Make a private file under a temporary name, in the directory of the file that it will become."""
        folders = _split(name)[0]
        for _ in range(_ATTEMPTS):
            directory = -1
            try:
                directory = self._open_directory(folders, make=True)
                self._check_free(directory, name)
                part = f".{os.urandom(8).hex()}{_UNFINISHED}"
                file = os.open(part, _NEW_FLAGS, 0o600, dir_fd=directory)
                if stat.S_IMODE(os.fstat(file).st_mode) != 0o600:
                    with suppress(OSError):  # not every file system has permissions
                        os.fchmod(file, 0o600)
                return _Part(directory, part, file)
            except BaseException as error:
                if directory >= 0:
                    os.close(directory)
                if not isinstance(error, FileNotFoundError):
                    self._tidy(folders)
                    raise
        raise StoreError(f"{self.path}: the directory of {quote(name, 80)} was removed each time it was made")

    def find(self, name: str) -> _File:
        folders, last = _split(name)
        try:
            with self._directory(folders) as directory:
                if stat.S_ISREG(self._mode(directory, name)):
                    return _File(os.open(last, os.O_RDONLY | _READ_FLAGS, dir_fd=directory))
        except (FileNotFoundError, NotADirectoryError):
            pass
        raise PathNotFoundError(f"/{name}")

    def get(self, file: _File, start: int, end: int) -> bytes:
        return os.pread(file.fileno(), min(BLOCK, end - start), start)

    def delete(self, name: str) -> None:
        """Delete a file, if it exists, and the directories that it leaves empty."""
        folders, last = _split(name)
        with suppress(FileNotFoundError, NotADirectoryError):
            with self._directory(folders) as directory:
                if not stat.S_ISREG(self._mode(directory, name)):
                    return
                self._remove(directory, last)
            self._tidy(folders)

    def names(self, prefix: str) -> list[str]:
        names: list[str] = []
        if prefix:
            with suppress(PathNotFoundError):
                self.find(prefix)
                names.append(prefix)
        for folders, entries in self._walk(tuple(prefix.split("/")) if prefix else ()):
            files = (entry.name for entry in entries if entry.is_file(follow_symlinks=False))
            names += ("/".join((*folders, file)) for file in files if is_segment(file))
        return names

    def expire(self, seconds: float) -> int:
        count, limit = 0, time.time() - seconds
        for folders, entries in self._walk(()):
            with suppress(FileNotFoundError), self._directory(folders) as directory:
                for entry in entries:
                    with suppress(FileNotFoundError):
                        count += self._expire(directory, entry.name, limit)
            self._tidy(folders)
        return count

    def _expire(self, directory: int, name: str, limit: float) -> bool:
        unfinished = name.endswith(_UNFINISHED)
        info = os.stat(name, dir_fd=directory, follow_symlinks=False)
        oldest = min(limit, time.time() - DAY) if unfinished else limit
        if not stat.S_ISREG(info.st_mode) or info.st_mtime > oldest or not (unfinished or is_segment(name)):
            return False
        self._remove(directory, name)
        return not unfinished

    def _remove(self, directory: int, name: str) -> None:
        os.unlink(name, dir_fd=directory)
        if self.fsync:
            os.fsync(directory)

    def _check_free(self, directory: int, name: str) -> None:
        """Raise `FileExistsError` if the directory has something of this name."""
        with suppress(FileNotFoundError):
            self._mode(directory, name)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)

    def _walk(self, start: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], list["os.DirEntry[str]"]]]:
        """Yield the directories from `start` on with their entries, outer ones first."""
        waiting = [start]
        while waiting:
            folders = waiting.pop()
            with suppress(FileNotFoundError, NotADirectoryError), self._directory(folders) as directory:
                with os.scandir(directory) as scan:
                    entries = list(scan)
                inner = (entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
                waiting += ((*folders, name) for name in inner if is_segment(name))
                yield folders, entries

    def _tidy(self, folders: Sequence[str]) -> None:
        """Remove a directory if it is empty, and then the one above it, and so on."""
        with suppress(OSError, StoreError):
            for depth in range(len(folders) - 1, -1, -1):
                with self._directory(folders[:depth]) as directory:
                    os.rmdir(folders[depth], dir_fd=directory)

    @contextmanager
    def _directory(self, folders: Sequence[str]) -> Generator[int, None, None]:
        directory = self._open_directory(folders, make=False)
        try:
            yield directory
        finally:
            os.close(directory)

    def _open_directory(self, folders: Sequence[str], *, make: bool) -> int:
        directory = self._open_outermost(make=make)
        for depth, folder in enumerate(folders):
            outer = directory
            try:
                try:
                    directory = os.open(folder, _DIRECTORY, dir_fd=outer)
                except FileNotFoundError:
                    if not make:
                        raise
                    with suppress(FileExistsError):
                        os.mkdir(folder, 0o700, dir_fd=outer)
                    directory = os.open(folder, _DIRECTORY, dir_fd=outer)
                    os.fchmod(directory, 0o700)
                    if self.fsync:
                        os.fsync(outer)
            except OSError:
                with suppress(FileNotFoundError):
                    self._mode(outer, "/".join(folders[: depth + 1]))
                raise
            finally:
                os.close(outer)
        return directory

    def _open_outermost(self, *, make: bool) -> int:
        try:
            try:
                return os.open(self.path, _DIRECTORY)
            except FileNotFoundError:
                if not make:
                    raise
            new = make_directory(Path(self.path))
            directory = os.open(self.path, _DIRECTORY)
        except OSError as error:
            if Path(self.path).is_symlink():
                raise StoreError(f"{self.path} is a symbolic link, and none is followed; give its target") from error
            if isinstance(error, NotADirectoryError):
                raise StoreError(f"{self.path} is not a directory, or not in one; give another one") from error
            raise
        for path in new if self.fsync else []:
            outer = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(outer)
            finally:
                os.close(outer)
        return directory

    def _mode(self, directory: int, name: str) -> int:
        """Return the mode of a name in its directory; raise `StoreError` if it is a symbolic link."""
        mode = os.stat(_split(name)[1], dir_fd=directory, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            link = quote(name, 80)
            raise StoreError(f"{self.path}: {link} is a symbolic link there, and none is followed; remove it")
        return mode


def make_directory(path: Path) -> list[Path]:
    """Make a private directory and the missing ones above it; return all that were missing, the outermost first.

    >>> make_directory(Path("/"))
    []
    """
    if path.is_dir():
        return []
    missing = [*make_directory(path.parent), path]
    with suppress(FileExistsError):
        path.mkdir(0o700)
        if stat.S_IMODE(path.lstat().st_mode) != 0o700:  # the umask takes rights from the user as well
            path.chmod(0o700)
    return missing


def _split(name: str) -> tuple[list[str], str]:
    *folders, last = name.split("/")
    return folders, last


def _close(upload: Upload) -> None:
    """Remove the temporary name of a file, and close it."""
    part, upload.place = upload.place, None
    with suppress(OSError):
        os.unlink(part.name, dir_fd=part.directory)
    for descriptor in (part.file, part.directory):
        with suppress(OSError):
            os.close(descriptor)
