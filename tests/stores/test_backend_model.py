"""Whatever is done to a backend, it holds what a plain dict would hold."""

import asyncio
import tempfile
from collections.abc import AsyncIterator

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from obstore.store import MemoryStore

from suture.stores import (
    FileBackend,
    LocalBackend,
    MemoryBackend,
    ObjectBackend,
    PathNotFoundError,
    PathTakenError,
    SQLiteBackend,
)

PATHS = st.sampled_from(["/a/b", "/a/c", "/a/d/e", "/a0", "/A/b", "/b", "/c/d", "/é"])  # none of them is above another
SIZES = st.lists(st.sampled_from([0, 1, 86, 5000, 1_500_000]), max_size=4)


def piece(size: int) -> bytes:
    """Return the piece of this size: always the same, so that files are sometimes alike."""
    return bytes([size % 251]) * size


class Machine(RuleBasedStateMachine):
    """A backend beside a dict of files."""

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, bytes] = {}
        self.runner = asyncio.Runner()
        self.directory = tempfile.TemporaryDirectory()
        self.backend = self.make_backend()

    def make_backend(self) -> FileBackend:
        raise NotImplementedError

    def teardown(self) -> None:
        if isinstance(self.backend, SQLiteBackend):
            self.backend.close()
        self.runner.close()
        self.directory.cleanup()

    @rule(path=PATHS, sizes=SIZES)
    def write(self, path: str, sizes: list[int]) -> None:
        content = b"".join(map(piece, sizes))
        if self.files.setdefault(path, content) == content:
            self.runner.run(self.backend.write(path, content))
        else:
            with pytest.raises(PathTakenError):
                self.runner.run(self.backend.write(path, content))

    @rule(path=PATHS, sizes=SIZES, fails=st.booleans())
    def write_stream(self, path: str, sizes: list[int], fails: bool) -> None:
        async def chunks() -> AsyncIterator[bytes]:
            for size in sizes:
                yield piece(size)
            if fails:
                raise LookupError

        if path in self.files:
            with pytest.raises(PathTakenError):
                self.runner.run(self.backend.write_stream(path, chunks()))
        elif fails:
            with pytest.raises(LookupError):
                self.runner.run(self.backend.write_stream(path, chunks()))
        else:
            self.files[path] = b"".join(map(piece, sizes))
            assert self.runner.run(self.backend.write_stream(path, chunks())) == len(self.files[path])

    @rule(path=PATHS, start=st.integers(0, 9) | st.integers(0, 3_000_000), length=st.none() | st.integers(0, 2_000_000))
    def read(self, path: str, start: int, length: int | None) -> None:
        stop = None if length is None else start + length

        async def read() -> bytes:
            return b"".join([read async for read in self.backend.read(path, start, stop)])

        if path in self.files:
            assert self.runner.run(read()) == self.files[path][start:stop]
            assert self.runner.run(self.backend.size(path)) == len(self.files[path])
        else:
            with pytest.raises(PathNotFoundError):
                self.runner.run(read())

    @rule(path=PATHS)
    def delete(self, path: str) -> None:
        self.runner.run(self.backend.delete(path))
        self.files.pop(path, None)

    @rule(seconds=st.sampled_from([0, 3600]))
    def expire(self, seconds: int) -> None:
        gone = {} if seconds else dict(self.files)
        assert self.runner.run(self.backend.expire(seconds)) == len(gone)
        self.files = {path: content for path, content in self.files.items() if path not in gone}

    @invariant()
    def the_paths_are_those_of_the_model(self) -> None:
        assert self.runner.run(self.backend.paths()) == sorted(self.files)
        below = [path for path in sorted(self.files) if path.startswith("/a/")]
        assert self.runner.run(self.backend.paths("/a")) == below


class MemoryMachine(Machine):
    def make_backend(self) -> FileBackend:
        return MemoryBackend()


class LocalMachine(Machine):
    def make_backend(self) -> FileBackend:
        return LocalBackend(f"{self.directory.name}/outputs")


class SQLiteMachine(Machine):
    def make_backend(self) -> FileBackend:
        return SQLiteBackend(f"{self.directory.name}/outputs.db")

    @rule()
    def open_again(self) -> None:
        assert isinstance(self.backend, SQLiteBackend)
        self.backend.close()
        self.backend = self.make_backend()


class ObjectMachine(Machine):
    def make_backend(self) -> FileBackend:
        return ObjectBackend(MemoryStore())


LIMITS = settings(deadline=None, stateful_step_count=15)
TestMemoryBackendAsADict = MemoryMachine.TestCase
TestMemoryBackendAsADict.settings = LIMITS
TestLocalBackendAsADict = LocalMachine.TestCase
TestLocalBackendAsADict.settings = LIMITS
TestSQLiteBackendAsADict = SQLiteMachine.TestCase
TestSQLiteBackendAsADict.settings = LIMITS
TestObjectBackendAsADict = ObjectMachine.TestCase
TestObjectBackendAsADict.settings = LIMITS
