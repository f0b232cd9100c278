"""All backends keep the contract, and the contract bites. `test_s3.py` has the one with a server."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable
from pathlib import Path

import pytest
from obstore.store import LocalStore, MemoryStore

from suture.stores import FileBackend, LocalBackend, MemoryBackend, ObjectBackend, PathTakenError, SQLiteBackend
from suture.testing import BackendContract


class TestMemoryBackend(BackendContract):
    def make_backend(self) -> FileBackend:
        return MemoryBackend()


class TestLocalBackend(BackendContract):
    fsync = False

    @pytest.fixture(autouse=True)
    def _directory(self, tmp_path: Path):
        self.directory, self.made = tmp_path, 0

    def make_backend(self) -> FileBackend:
        self.made += 1
        return LocalBackend(self.directory / f"{self.made}", fsync=self.fsync)

    def make_another(self, backend: FileBackend) -> FileBackend:
        assert isinstance(backend, LocalBackend)
        return LocalBackend(backend.directory)


class TestLocalBackendThatWaitsForTheDisk(TestLocalBackend):
    fsync = True


class TestSQLiteBackend(BackendContract):
    @pytest.fixture(autouse=True)
    def _directory(self, tmp_path: Path):
        self.directory, self.backends = tmp_path, list[SQLiteBackend]()
        yield
        for backend in self.backends:
            backend.close()

    def make_backend(self) -> FileBackend:
        return self.opened(self.directory / f"{len(self.backends)}.db")

    def make_another(self, backend: FileBackend) -> FileBackend:
        assert isinstance(backend, SQLiteBackend)
        return self.opened(Path(backend.path))

    def opened(self, path: Path) -> SQLiteBackend:
        self.backends.append(SQLiteBackend(path, busy_timeout=60))
        return self.backends[-1]


class TestObjectBackendInMemory(BackendContract):
    def make_backend(self) -> FileBackend:
        self.store = MemoryStore()
        return ObjectBackend(self.store)

    def make_another(self, backend: FileBackend) -> FileBackend:
        return ObjectBackend(self.store)


class TestObjectBackendInADirectory(BackendContract):
    @pytest.fixture(autouse=True)
    def _directory(self, tmp_path: Path):
        self.directory, self.made = tmp_path, 0

    def make_backend(self) -> FileBackend:
        self.made += 1
        return self.make_another(MemoryBackend())

    def make_another(self, backend: FileBackend) -> FileBackend:
        return ObjectBackend(LocalStore(self.directory), prefix=f"{self.made}")


@pytest.mark.parametrize(
    "backend", [MemoryBackend(), ObjectBackend(MemoryStore()), None], ids=["memory", "object", "sqlite"]
)
def test_case_and_nesting_are_no_limits_but_to_file_systems(backend: FileBackend | None, tmp_path: Path):
    async def use(backend: FileBackend):
        for path in ("/a", "/A", "/a/b", "/a/B/c"):
            await backend.write(path, path)
        assert await backend.paths() == ["/A", "/a", "/a/B/c", "/a/b"]
        assert await backend.paths("/a") == ["/a", "/a/B/c", "/a/b"]

    with SQLiteBackend(tmp_path / "files.db") as sqlite:
        asyncio.run(use(backend or sqlite))


# --- the contract bites -----------------------------------------------------------------------


class Overwriting(MemoryBackend):
    async def write(self, path: str, content: str | bytes) -> None:
        await self.delete(path)
        await super().write(path, content)


class Racing(MemoryBackend):
    """Looks first, and writes then."""

    async def write(self, path: str, content: str | bytes) -> None:
        before = await self.paths(path)
        await asyncio.sleep(0)
        if not before:
            await self.delete(path)
        await super().write(path, content)


class Leaving(MemoryBackend):
    """Writes what has come so far, whatever happens."""

    async def write_stream(self, path: str, chunks: AsyncIterable[bytes]) -> int:
        if await self.paths(path):
            raise PathTakenError(path)
        content = b""
        try:
            async for chunk in chunks:
                content += chunk
        finally:
            await self.write(path, content)
        return len(content)


class Clumsy(MemoryBackend):
    """Reads all at once, and takes the end for part of a range."""

    async def read(self, path: str, start: int = 0, stop: int | None = None) -> AsyncGenerator[bytes, None]:
        yield self._file(path).content[start : None if stop is None else stop + 1]


class Trusting(MemoryBackend):
    async def delete(self, path: str) -> None:
        self._shelf.files.pop(path, None)


BROKEN = [
    (Overwriting, "test_it_does_what_a_memory_backend_does"),
    (Overwriting, "test_of_writers_of_one_path_one_wins"),
    (Racing, "test_of_writers_of_one_path_one_wins"),
    (Leaving, "test_a_stream_that_fails_or_is_cancelled_leaves_nothing"),
    (Leaving, "test_a_path_that_is_taken_while_a_stream_goes_on_stays_as_it_is"),
    (Clumsy, "test_it_does_what_a_memory_backend_does"),
    (Trusting, "test_what_cannot_be_a_path_is_refused"),
    (Trusting, "test_it_does_what_a_memory_backend_does"),
]


@pytest.mark.parametrize(("kind", "test"), BROKEN, ids=lambda value: getattr(value, "__name__", value))
def test_a_backend_that_breaks_the_contract_is_found(kind: type[MemoryBackend], test: str):
    class Broken(BackendContract):
        def make_backend(self) -> FileBackend:
            return kind()

    with pytest.raises(AssertionError):
        getattr(Broken(), test)()
    getattr(TestMemoryBackend(), test)()
