"""Backends of the tests' own, small and real, and how they and ours are read."""

import asyncio
from collections.abc import AsyncIterable
from pathlib import Path
from typing import Any

from suture.stores import MemoryBackend


async def fetch(backend: Any, path: str) -> bytes:
    """Return a file."""
    return b"".join([chunk async for chunk in backend.read(path)])


def saved(backend: Any, path: str) -> bytes:
    """Return a file, outside of a loop."""
    return asyncio.run(fetch(backend, path))


def paths(backend: Any) -> list[str]:
    """Return what a backend holds, each path with its leading slash."""
    return ["/" + path.lstrip("/") for path in asyncio.run(backend.paths())]


def as_bytes(text: str) -> bytes:
    """Return a text as a file holds it."""
    return text.encode("utf-8", "surrogatepass")


def tree(root: Path) -> list[str]:
    """Return every file and link below a directory, also hidden ones."""
    return sorted(str(each.relative_to(root)) for each in root.rglob("*") if each.is_symlink() or not each.is_dir())


class Shelf:
    """The least that a backend may be: it can write, and nothing else."""

    def __init__(self) -> None:
        self.files: dict[str, Any] = {}

    def write(self, path: str, content: str) -> Any:
        assert path not in self.files
        self.files[path] = content


class AsyncShelf(Shelf):
    """The same, async."""

    async def write(self, path: str, content: str) -> None:
        await asyncio.sleep(0)
        super().write(path, content)


class BrokenShelf(Shelf):
    """It can only write, and does not."""

    def write(self, path: str, content: str) -> None:
        raise OSError("shelf fell down")


class BrokenAsyncShelf(Shelf):
    """It can only write, and does not, a little later."""

    async def write(self, path: str, content: str) -> None:
        await asyncio.sleep(0)
        raise OSError("shelf fell down")


class Dying(MemoryBackend):
    """Reads and streams; dies after so many pieces of a stream, and at every write."""

    def __init__(self, after: int = 0) -> None:
        super().__init__()
        self.after = after
        self.taken = 0

    async def write(self, path: str, content: str | bytes) -> None:
        raise OSError("the backend died")

    async def write_stream(self, path: str, chunks: AsyncIterable[bytes]) -> int:
        if self.after == 0:
            raise OSError("the backend died")
        async for _ in chunks:
            self.taken += 1
            if self.taken == self.after:
                raise OSError("the backend died")
        raise OSError("the backend died at the end")
