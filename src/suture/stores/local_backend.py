"""`LocalBackend`: files in a directory, private to the user."""

import errno
import os
import time
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from suture.errors import ConfigError
from suture.stores._backend import BLOCK, check_path, check_prefix, check_range, encode_content
from suture.stores._errors import PathNotFoundError, PathTakenError, StoreError, shown
from suture.stores._store import check_seconds
from suture.stores._threads import in_thread, to_its_end
from suture.stores._upload import send

if TYPE_CHECKING:
    from io import FileIO

    from suture.stores._files import Files, Unfinished

__all__ = ["LocalBackend"]

_Result = TypeVar("_Result")

_REASONS: Final = {
    errno.ENOSPC: "the disk is full; make room on it",
    errno.EDQUOT: "the quota of the user is used up; make room",
    errno.EFBIG: "the file would be larger than the system lets this process write",
    errno.EACCES: "this process has no permission; give it a directory of its own",
    errno.EPERM: "this process has no permission; give it a directory of its own",
    errno.EROFS: "the file system is read-only; give another directory",
    errno.ENAMETOOLONG: "a name is too long for this file system; choose a shorter path",
    errno.EMFILE: "this process has too many files open",
    errno.EIO: "the disk did not take or give it; it may be broken",
}


class LocalBackend:
    """A backend in a directory, which is made at the first write. Only the user can read what is in it.

    Directories that it makes have the permissions 0700, and files 0600, whatever the umask. No symbolic link is
    followed, be it the directory itself or anything in it. The directory may be shared by tasks, threads and
    processes. With `fsync` a file that was written also outlives a loss of power. Needs a system that can open
    files relative to a directory, which Windows cannot.

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
        given = os.fspath(directory)
        if not isinstance(given, str) or not given or "\0" in given:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"the directory of a LocalBackend is the text of a path, not {given!r}")
        if not {os.open, os.link, os.mkdir, os.unlink} <= os.supports_dir_fd or os.scandir not in os.supports_fd:
            raise ConfigError("a LocalBackend cannot keep symbolic links out on this system; use a SQLiteBackend")
        # There is no `fcntl` where there are no such systems.
        from suture.stores._files import Files  # noqa: PLC0415

        self._files = Files(str(Path(given).absolute()), fsync=fsync)

    @property
    def directory(self) -> str:
        """The absolute path of the directory."""
        return self._files.path

    async def write(self, path: str, content: str | bytes) -> None:
        """Write a file; text as UTF-8. It appears at once, whole, and is never overwritten."""
        name = check_path(path)
        body = content if isinstance(content, str) else encode_content(content)
        with _explained(self.directory, path, "written"):
            await _done(partial(self._files.write, name, body))

    async def write_stream(self, path: str, chunks: AsyncIterable[bytes]) -> int:
        r"""Write a file piece by piece; return how many bytes it has. It appears when it is whole.

        >>> import asyncio, tempfile
        >>> from suture.stores import LocalBackend
        >>> async def lines():
        ...     for number in range(100_000):
        ...         yield f"line {number}\n".encode()
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     asyncio.run(LocalBackend(directory).write_stream("/run-1/log", lines()))
        1088890
        """
        return await send(chunks, _Upload(self._files, path), BLOCK)

    async def read(self, path: str, start: int = 0, stop: int | None = None) -> AsyncGenerator[bytes, None]:
        """Yield the bytes from `start` up to `stop`, as a slice would, in pieces of 1 MiB at most."""
        name = check_path(path)
        check_range(start, stop)
        with _explained(self.directory, path, "read"):
            file, piece = await _done(partial(_begin, self._files, name, start, stop))
        with file:
            while piece:
                yield piece
                start += len(piece)
                with _explained(self.directory, path, "read"):
                    piece = await _done(partial(_next, file, start, stop))

    async def size(self, path: str) -> int:
        """Return how many bytes a file has."""
        name = check_path(path)
        with _explained(self.directory, path, "read"):
            return await _done(partial(_size, self._files, name))

    async def delete(self, path: str) -> None:
        """Delete a file, if it is there."""
        name = check_path(path)
        with _explained(self.directory, path, "deleted"):
            await _done(partial(self._files.delete, name))

    async def paths(self, prefix: str = "") -> list[str]:
        """Return the paths of all files in order; only those at or below `prefix`."""
        within = check_prefix(prefix)
        with _explained(self.directory, prefix, "listed"):
            return sorted(f"/{name}" for name in await _done(partial(self._files.names, within)))

    async def expire(self, seconds: float) -> int:
        """Delete the files that were written `seconds` ago or earlier; return how many.

        What processes that were killed have left unfinished goes, too.
        """
        check_seconds("seconds", seconds)
        with _explained(self.directory, "", "expired"):
            return await _done(partial(self._files.expire, time.time() - seconds))

    def __repr__(self) -> str:
        return f"LocalBackend({self.directory!r})"


class _Upload:
    """A stream on its way into a file."""

    def __init__(self, files: "Files", path: str) -> None:
        self._files = files
        self._path = path
        self._name = ""
        self._unfinished: Unfinished | None = None

    async def begin(self) -> None:
        self._name = check_path(self._path)
        await self._do(partial(self._files.check_free, self._name))

    async def add(self, block: bytearray) -> None:
        await self._do(partial(self._write, block))

    async def commit(self, last: bytearray) -> None:
        await self._do(partial(self._finish, last))

    async def abort(self) -> None:
        if self._unfinished is not None:
            await _done(partial(self._files.discard, self._name, self._unfinished))

    async def _do(self, work: Callable[[], None]) -> None:
        with _explained(self._files.path, self._path, "written"):
            await _done(work)

    def _write(self, block: bytearray) -> None:
        if self._unfinished is None:
            self._unfinished = self._files.begin(self._name)
        self._unfinished.add(block)

    def _finish(self, last: bytearray) -> None:
        self._write(last)
        if self._unfinished is not None:
            self._files.publish(self._name, self._unfinished)
            self._unfinished = None


async def _done(work: Callable[[], _Result]) -> _Result:
    return await to_its_end(in_thread(work))


def _begin(files: "Files", name: str, start: int, stop: int | None) -> "tuple[FileIO, bytes]":
    file = files.open(name)
    try:
        return file, _next(file, start, stop)
    except BaseException:
        file.close()
        raise


def _next(file: "FileIO", start: int, stop: int | None) -> bytes:
    count = BLOCK if stop is None else min(BLOCK, stop - start)
    return os.pread(file.fileno(), count, start) if count > 0 else b""


def _size(files: "Files", name: str) -> int:
    with files.open(name) as file:
        return os.fstat(file.fileno()).st_size


@contextmanager
def _explained(directory: str, path: str, done: str) -> Generator[None, None, None]:
    """Say in words what the system says of a file that was to be `done`: read, written, …."""
    try:
        yield
    except FileExistsError as error:
        raise PathTakenError(path) from error
    except NotADirectoryError as error:
        if done == "written":
            raise PathTakenError(path, "a file stands where it needs a directory") from error
        raise PathNotFoundError(path) from error
    except OSError as error:
        if done == "read" and isinstance(error, FileNotFoundError):
            raise PathNotFoundError(path) from error
        reason = _REASONS.get(error.errno or 0) or f"the system says {error.strerror or error}"
        what = shown(path) if path else "what is in it"
        raise StoreError(f"{directory}: {what} was not {done}: {reason}") from error
