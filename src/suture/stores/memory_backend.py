"""`MemoryBackend`: files that live as long as the process. For tests, and for output that need not survive it."""

import time
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from threading import Lock
from typing import NamedTuple

from suture.stores._backend import BLOCK, check_path, check_prefix, check_range, encode_content, is_below
from suture.stores._errors import PathNotFoundError, PathTakenError
from suture.stores._store import check_seconds
from suture.stores._upload import send

__all__ = ["MemoryBackend"]


class _File(NamedTuple):
    content: bytes
    written: float


class MemoryBackend:
    """A backend in memory: nothing is left of it when the process ends.

    It can be shared by tasks, event loops and threads.

    >>> import asyncio
    >>> from suture.stores import MemoryBackend
    >>> backend = MemoryBackend()
    >>> asyncio.run(backend.write("/run-1/trunc/call_1", "what the tool said"))
    >>> asyncio.run(backend.size("/run-1/trunc/call_1"))
    18
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._files: dict[str, _File] = {}

    async def write(self, path: str, content: str | bytes) -> None:
        """Write a file; text as UTF-8.

        >>> import asyncio
        >>> from suture.stores import MemoryBackend
        >>> backend = MemoryBackend()
        >>> asyncio.run(backend.write("/a", "one"))
        >>> asyncio.run(backend.write("/a", "two"))
        Traceback (most recent call last):
            ...
        suture.stores._errors.PathTakenError: '/a' is taken: a saved file is never overwritten; choose another path
        """
        name, body = check_path(path), encode_content(content)
        with self._lock:
            if self._files.setdefault(name, _File(body, time.time())).content != body:
                raise PathTakenError(path)

    async def write_stream(self, path: str, chunks: AsyncIterable[bytes]) -> int:
        """Write a file piece by piece; return how many bytes it has."""
        return await send(chunks, _Upload(path, self._check_free, self._create), BLOCK)

    async def read(self, path: str, start: int = 0, stop: int | None = None) -> AsyncGenerator[bytes, None]:
        """Yield the bytes from `start` up to `stop`, as a slice would, in pieces of 1 MiB at most.

        >>> import asyncio
        >>> from suture.stores import MemoryBackend
        >>> async def main():
        ...     backend = MemoryBackend()
        ...     await backend.write("/a", "what the tool said")
        ...     return [piece async for piece in backend.read("/a", 5, 13)]
        >>> asyncio.run(main())
        [b'the tool']
        """
        check_range(start, stop)
        content = self._file(path).content
        end = len(content) if stop is None else min(stop, len(content))
        for at in range(start, end, BLOCK):
            yield content[at : min(at + BLOCK, end)]

    async def size(self, path: str) -> int:
        """Return how many bytes a file has."""
        return len(self._file(path).content)

    async def delete(self, path: str) -> None:
        """Delete a file, if it is there."""
        name = check_path(path)
        with self._lock:
            self._files.pop(name, None)

    async def paths(self, prefix: str = "") -> list[str]:
        """Return the paths of all files in order; only those at or below `prefix`."""
        within = check_prefix(prefix)
        with self._lock:
            return sorted(f"/{name}" for name in self._files if is_below(name, within))

    async def expire(self, seconds: float) -> int:
        """Delete the files that were written `seconds` ago or earlier; return how many.

        >>> import asyncio
        >>> from suture.stores import MemoryBackend
        >>> backend = MemoryBackend()
        >>> asyncio.run(backend.write("/a", "one"))
        >>> asyncio.run(backend.expire(3600)), asyncio.run(backend.expire(0))
        (0, 1)
        """
        check_seconds("seconds", seconds)
        limit = time.time() - seconds
        with self._lock:
            stale = [name for name, file in self._files.items() if file.written <= limit]
            for name in stale:
                del self._files[name]
        return len(stale)

    def __repr__(self) -> str:
        return f"<MemoryBackend: {len(self._files)} files>"

    def _file(self, path: str) -> _File:
        file = self._files.get(check_path(path))
        if file is None:
            raise PathNotFoundError(path)
        return file

    def _create(self, path: str, content: bytes) -> None:
        with self._lock:
            if self._files.setdefault(check_path(path), file := _File(content, time.time())) is not file:
                raise PathTakenError(path)

    def _check_free(self, path: str) -> None:
        if check_path(path) in self._files:
            raise PathTakenError(path)


class _Upload:
    """A stream on its way into memory."""

    def __init__(self, path: str, check_free: Callable[[str], None], create: Callable[[str, bytes], None]) -> None:
        self._path = path
        self._check_free = check_free
        self._create = create
        self._blocks: list[bytes] = []

    async def begin(self) -> None:
        self._check_free(self._path)

    async def add(self, block: bytearray) -> None:
        self._blocks.append(bytes(block))

    async def commit(self, last: bytearray) -> None:
        self._create(self._path, b"".join([*self._blocks, last]))

    async def abort(self) -> None:
        self._blocks.clear()
