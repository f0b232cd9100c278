"""Files expire by the time they were written, and reading or failing to write them is no writing."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from suture.stores import FileBackend, MemoryBackend, PathTakenError, SQLiteBackend, memory_backend, sqlite_backend


class Clock:
    """A clock that stands still unless it is set."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (memory_backend, sqlite_backend):
        monkeypatch.setattr(module, "time", SimpleNamespace(time=clock.time))
    return clock


@pytest.fixture(params=["memory", "sqlite"])
def backend(request: pytest.FixtureRequest, tmp_path: Path):
    if request.param == "memory":
        yield MemoryBackend()
    else:
        with SQLiteBackend(tmp_path / "outputs.db") as backend:
            yield backend


def test_a_file_expires_once_it_was_written_so_long_ago(backend: FileBackend, clock: Clock):
    asyncio.run(backend.write("/old", "x"))
    clock.now += 10
    asyncio.run(backend.write("/new", "x"))
    clock.now += 5
    assert asyncio.run(backend.expire(15.5)) == 0
    assert asyncio.run(backend.expire(15)) == 1
    assert asyncio.run(backend.paths()) == ["/new"]
    assert asyncio.run(backend.expire(5.5)) == 0
    assert asyncio.run(backend.expire(5)) == 1


def test_to_read_a_file_or_to_fail_to_write_it_keeps_nothing(backend: FileBackend, clock: Clock):
    async def use():
        await backend.write("/a", "x")
        clock.now += 10
        assert [piece async for piece in backend.read("/a")] == [b"x"]
        with pytest.raises(PathTakenError):
            await backend.write("/a", "y")
        await backend.write("/a", "x")
        assert await backend.expire(10) == 1

    asyncio.run(use())


def test_a_stream_is_as_old_as_its_end(backend: FileBackend, clock: Clock):
    async def slow() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"x" * 1_500_000
            clock.now += 10

    asyncio.run(backend.write_stream("/a", slow()))
    clock.now += 5
    assert asyncio.run(backend.expire(10)) == 0
    assert asyncio.run(backend.expire(5)) == 1
