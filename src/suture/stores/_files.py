"""The files of a `LocalBackend`: reached from their directory step by step, and never through a symbolic link.

Imported only when a `LocalBackend` is made, because there is no `fcntl` everywhere. Everything here is synchronous,
and raises what the system raises, or `StoreError` where that would not say enough.

A file is written under a name that no path can have, and is locked meanwhile: what a process that was killed has
left is locked by nobody. Once it is whole it gets its name, which fails if that is taken.
"""

import errno
import fcntl
import io
import os
import stat
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from suture.stores._backend import encode_text, is_segment
from suture.stores._directories import make_directory
from suture.stores._errors import StoreError, shown

__all__ = ["Files", "Unfinished"]

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD: Final = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe would keep the reader waiting

_UNFINISHED: Final = "\\unfinished"
"""How the name of a file ends that is being written. No path has a backslash in it."""

_NO_LINKS: Final = frozenset((errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP))
"""How a file system says that it has no hard links."""

_SLICE: Final = 1 << 18
"""How many characters of a text are encoded at once."""

_ATTEMPTS: Final = 100
"""How often a directory is made again that somebody else has removed because it was empty."""


class Unfinished:
    """A file that nobody sees yet, in a directory that is open as `directory`, which it closes in the end."""

    def __init__(self, directory: int, *, fsync: bool) -> None:
        self._directory = directory
        self._fsync = fsync
        self._name, self._file = _made(directory)

    def add(self, content: bytes | bytearray) -> None:
        """Write some more."""
        with memoryview(content) as view:
            start = 0
            while start < len(view):
                start += os.write(self._file, view[start:])

    def publish(self, name: str) -> None:
        """Give the file its name; raises `FileExistsError` where that is taken."""
        os.close(os.dup(self._file))  # a network file system may not say before that it is full
        if self._fsync:
            os.fsync(self._file)
        try:
            os.link(self._name, name, src_dir_fd=self._directory, dst_dir_fd=self._directory)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            self._rename(name)
        if self._fsync:
            self._synchronise(name)

    def discard(self) -> None:
        """Remove the name that it had while it was written, and close it; once."""
        if self._file >= 0:
            with suppress(OSError):
                os.unlink(self._name, dir_fd=self._directory)
            file, self._file = self._file, -1
            for descriptor in (file, self._directory):
                with suppress(OSError):
                    os.close(descriptor)

    def _synchronise(self, name: str) -> None:
        try:
            os.fsync(self._directory)
        except OSError:
            os.unlink(name, dir_fd=self._directory)
            raise

    def _rename(self, name: str) -> None:
        # It would replace what is there. So all who do it wait for each other, until the directory is closed.
        fcntl.flock(self._directory, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            os.stat(name, dir_fd=self._directory, follow_symlinks=False)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
        os.rename(self._name, name, src_dir_fd=self._directory, dst_dir_fd=self._directory)


class Files:
    """The files below a directory. Names are checked paths without a leading slash."""

    def __init__(self, path: str, *, fsync: bool) -> None:
        self.path = path
        self._fsync = fsync

    def write(self, name: str, content: str | bytes) -> None:
        """Write a file at once, text as UTF-8; raises `FileExistsError` where another one is."""
        try:
            unfinished = self.begin(name)
            try:
                for piece in _pieces(content):
                    unfinished.add(piece)
                self.publish(name, unfinished)
            except BaseException:
                self.discard(name, unfinished)
                raise
        except FileExistsError:
            if not self._has(name, content):
                raise

    def begin(self, name: str) -> Unfinished:
        """Return a new file that is to get this name, for which directories are made.

        Raises `FileExistsError` if there is something at this path.
        """
        folders = _split(name)[0]
        for _ in range(_ATTEMPTS):
            directory = -1
            try:
                directory = self._open_directory(folders, make=True)
                self._check_free(directory, name)
                return Unfinished(directory, fsync=self._fsync)
            except BaseException as error:
                if directory >= 0:
                    os.close(directory)
                if not isinstance(error, FileNotFoundError):
                    self._tidy(folders)
                    raise
        raise StoreError(f"{self.path}: the directory of {shown(name)} was removed each time it was made")

    def publish(self, name: str, unfinished: Unfinished) -> None:
        """Give a file its name, now that it is whole; raises `FileExistsError` where that is taken."""
        unfinished.publish(_split(name)[1])
        unfinished.discard()

    def discard(self, name: str, unfinished: Unfinished) -> None:
        """Remove a file that did not get its name, and the directories that were made for it."""
        unfinished.discard()
        self._tidy(_split(name)[0])

    def check_free(self, name: str) -> None:
        """Raise `FileExistsError` if there is something at this path."""
        with suppress(FileNotFoundError), self._opened(_split(name)[0]) as directory:
            self._check_free(directory, name)

    def open(self, name: str) -> io.FileIO:
        """Open a file for reading; raises `FileNotFoundError` if there is none."""
        folders, last = _split(name)
        with self._opened(folders) as directory:
            if not stat.S_ISREG(self._mode(directory, name)):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
            return io.FileIO(os.open(last, os.O_RDONLY | _OLD, dir_fd=directory))

    def delete(self, name: str) -> None:
        """Delete a file, if it is there, and the directories that are empty without it."""
        folders, last = _split(name)
        with suppress(FileNotFoundError, NotADirectoryError):
            with self._opened(folders) as directory:
                if not stat.S_ISREG(self._mode(directory, name)):
                    return
                self._remove(directory, last)
            self._tidy(folders)

    def names(self, prefix: str) -> list[str]:
        """Return the names of all files at or below `prefix`, in no order."""
        found: list[str] = []
        if prefix:
            with suppress(FileNotFoundError, NotADirectoryError):
                self.open(prefix).close()
                found.append(prefix)
        for folders, entries in self._walk(tuple(prefix.split("/")) if prefix else ()):
            files = (entry.name for entry in entries if entry.is_file(follow_symlinks=False))
            found += ("/".join((*folders, file)) for file in files if is_segment(file))
        return found

    def expire(self, limit: float) -> int:
        """Delete the files written at `limit` or before, and what dead writers left; return how many files."""
        count = 0
        for folders, entries in self._walk(()):
            with suppress(FileNotFoundError), self._opened(folders) as directory:
                for entry in entries:
                    with suppress(FileNotFoundError):
                        count += self._expire(directory, entry.name, limit)
            self._tidy(folders)
        return count

    def _expire(self, directory: int, name: str, limit: float) -> bool:
        info = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if not stat.S_ISREG(info.st_mode) or info.st_mtime > limit:
            return False
        if is_segment(name):
            self._remove(directory, name)
            return True
        if name.endswith(_UNFINISHED):
            with io.FileIO(os.open(name, os.O_RDWR | _OLD, dir_fd=directory)) as file, suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(name, dir_fd=directory)
        return False

    def _remove(self, directory: int, name: str) -> None:
        os.unlink(name, dir_fd=directory)
        if self._fsync:
            os.fsync(directory)

    def _has(self, name: str, content: str | bytes) -> bool:
        """Tell whether a file is there that has just this content."""
        try:
            file = io.BufferedReader(self.open(name))
        except FileNotFoundError:
            return False
        with file:
            return all(file.read(len(piece)) == piece for piece in _pieces(content)) and not file.read(1)

    def _check_free(self, directory: int, name: str) -> None:
        with suppress(FileNotFoundError):
            self._mode(directory, name)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)

    def _walk(self, start: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], list["os.DirEntry[str]"]]]:
        """Yield the directories from `start` on, each before those in it, with what is in them."""
        waiting = [start]
        while waiting:
            folders = waiting.pop()
            with suppress(FileNotFoundError, NotADirectoryError), self._opened(folders) as directory:
                with os.scandir(directory) as scanned:
                    entries = list(scanned)
                inner = (entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
                waiting += ((*folders, name) for name in inner if is_segment(name))
                yield folders, entries

    def _tidy(self, folders: Sequence[str]) -> None:
        """Remove a directory if it is empty, and then the one above it, and so on."""
        with suppress(OSError, StoreError):
            for depth in range(len(folders) - 1, -1, -1):
                with self._opened(folders[:depth]) as directory:
                    os.rmdir(folders[depth], dir_fd=directory)

    @contextmanager
    def _opened(self, folders: Sequence[str]) -> Generator[int, None, None]:
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
                directory = self._open_inner(outer, folder, make=make)
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
            made = make_directory(Path(self.path))
            directory = os.open(self.path, _DIRECTORY)
        except OSError as error:
            if Path(self.path).is_symlink():
                raise StoreError(f"{self.path} is a symbolic link, and none is followed; give its target") from error
            if isinstance(error, NotADirectoryError):
                raise StoreError(f"{self.path} is no directory, or is in none; give another one") from error
            raise
        for path in made if self._fsync else []:
            _synchronise(path.parent)
        return directory

    def _open_inner(self, outer: int, name: str, *, make: bool) -> int:
        try:
            return os.open(name, _DIRECTORY, dir_fd=outer)
        except FileNotFoundError:
            if not make:
                raise
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=outer)
        directory = os.open(name, _DIRECTORY, dir_fd=outer)
        os.fchmod(directory, 0o700)
        if self._fsync:
            os.fsync(outer)
        return directory

    def _mode(self, directory: int, name: str) -> int:
        """Return the mode of what has this name in its directory; raises `StoreError` if it is a symbolic link."""
        mode = os.stat(_split(name)[1], dir_fd=directory, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            raise StoreError(f"{self.path}: {shown(name)} is a symbolic link there, and none is followed; remove it")
        return mode


def _pieces(content: str | bytes) -> Iterator[bytes]:
    """Yield content as bytes; a text is never held a second time as a whole."""
    if isinstance(content, bytes):
        yield content
        return
    for start in range(0, len(content), _SLICE):
        yield encode_text(content[start : start + _SLICE])


def _split(name: str) -> tuple[list[str], str]:
    *folders, last = name.split("/")
    return folders, last


def _made(directory: int) -> tuple[str, int]:
    """Make a file under a name of its own, private and locked; return the name and the descriptor."""
    while True:
        name = f".{os.urandom(8).hex()}{_UNFINISHED}"
        file = os.open(name, _NEW, 0o600, dir_fd=directory)
        with suppress(OSError):  # not every file system has locks
            fcntl.flock(file, fcntl.LOCK_EX)
        info = os.fstat(file)
        if stat.S_IMODE(info.st_mode) != 0o600:
            with suppress(OSError):  # nor permissions
                os.fchmod(file, 0o600)
        if info.st_nlink:
            return name, file
        os.close(file)  # somebody took it for a dead one before it was locked


def _synchronise(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
