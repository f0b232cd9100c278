"""Runs expire by the time of their last change, and a run goes with those nested in it or not at all."""

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest

from suture.stores import MemoryStore, SQLiteStore, Store, memory, sqlite


class Clock:
    """A clock that stands still unless it is set."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (memory, sqlite):
        monkeypatch.setattr(module, "time", SimpleNamespace(time=clock.time, monotonic=clock.time))
    return clock


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path):
    if request.param == "memory":
        yield MemoryStore()
    else:
        with SQLiteStore(tmp_path / "runs.db") as store:
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
