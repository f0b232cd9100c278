"""Runs expire by the time of their last change, with those nested in them; files by the time they were written."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from suture.stores import (
    FileBackend,
    MemoryBackend,
    MemoryStore,
    PathTakenError,
    SQLiteBackend,
    SQLiteStore,
    Store,
)


class Clock:
    """A clock that stands still unless it is set."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock):
    if request.param == "memory":
        yield MemoryStore(clock=clock)
    else:
        with SQLiteStore(tmp_path / "runs.db", clock=clock) as store:
            yield store


def write(store: Store, run: str, first: int = 0) -> None:
    asyncio.run(store.append(run, first, [b"record"]))


def test_a_run_expires_once_it_has_not_changed_for_so_long(store: Store, clock: Clock):
    write(store, "old")
    clock.now += 10
    write(store, "new")
    clock.now += 5
    assert asyncio.run(store.expire(15.5)) == 0
    assert asyncio.run(store.expire(15)) == 1
    assert asyncio.run(store.runs()) == ["new"]
    assert asyncio.run(store.expire(5.5)) == 0
    assert asyncio.run(store.expire(5)) == 1
    assert asyncio.run(store.runs()) == []


def test_an_append_keeps_a_run(store: Store, clock: Clock):
    write(store, "run")
    clock.now += 10
    write(store, "run", 1)
    assert asyncio.run(store.expire(10)) == 0
    assert len(asyncio.run(store.load("run"))) == 2


def test_a_nested_run_that_changes_keeps_the_outer_one_and_its_siblings(store: Store, clock: Clock):
    for run in ("a", "a/b", "a/b/c", "ab", "d", "d/e"):
        write(store, run)
    clock.now += 10
    write(store, "a/b/c", 1)
    write(store, "d", 1)
    assert asyncio.run(store.expire(10)) == 1
    assert sorted(asyncio.run(store.runs())) == ["a", "a/b", "a/b/c", "d", "d/e"]
    clock.now += 10
    assert asyncio.run(store.expire(10)) == 5


def test_a_slash_in_an_id_nests_only_in_a_run_that_is_there(store: Store, clock: Clock):
    write(store, "2024/05/first")
    clock.now += 10
    write(store, "2024/05/second")
    assert asyncio.run(store.expire(10)) == 1
    assert asyncio.run(store.runs()) == ["2024/05/second"]


# --- files of tool output ---------------------------------------------------------------------


@pytest.fixture(params=["memory", "sqlite"])
def backend(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock):
    if request.param == "memory":
        yield MemoryBackend(clock=clock)
    else:
        with SQLiteBackend(tmp_path / "outputs.db", clock=clock) as backend:
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
