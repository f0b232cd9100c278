"""Who waits for what in a `SQLiteStore`: an append does not leave its thread, and the event loop goes on."""

import asyncio
import threading
from pathlib import Path

import pytest

from suture.stores import SQLiteStore, StoreError


@pytest.fixture
def store(tmp_path: Path):
    with SQLiteStore(tmp_path / "runs.db") as store:
        yield store


def threads_used(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which each piece of work adds the thread it is done in."""
    used: list[int] = []
    perform = store._use

    def noting(*arguments, **options):
        used.append(threading.get_ident())
        return perform(*arguments, **options)

    monkeypatch.setattr(store, "_use", noting)
    return used


def test_an_append_to_an_open_file_is_done_where_it_is_asked_for(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch):
    async def use():
        await store.append("run", 0, [b"0"])
        used = threads_used(store, monkeypatch)
        await store.append("run", 1, [b"1"])
        await store.append("run", 2, [b"2", b"3"])
        await store.append("other", 0, [b"0"])
        assert used == [threading.get_ident()] * 3
        await store.load("run")
        assert used[-1] != threading.get_ident()

    asyncio.run(use())


def test_to_open_the_file_and_to_wait_for_the_disk_is_done_in_a_thread(
    tmp_path: Path, store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
):
    async def use():
        used = threads_used(store, monkeypatch)
        await store.append("run", 0, [b"0"])
        assert len(used) == 2
        assert used[0] != threading.get_ident() == used[1]
        with SQLiteStore(tmp_path / "full.db", synchronous="full") as full:
            used = threads_used(full, monkeypatch)
            await full.append("run", 0, [b"0"])
            await full.append("run", 1, [b"1"])
            assert threading.get_ident() not in used

    asyncio.run(use())


def test_an_append_waits_for_another_thread_while_the_event_loop_goes_on(store: SQLiteStore):
    working, finish = threading.Event(), threading.Event()

    def long_work(_):
        working.set()
        assert finish.wait(60)

    async def use():
        await store.append("run", 0, [b"0"])
        busy = asyncio.ensure_future(store._run("thread", long_work, ""))
        await asyncio.to_thread(working.wait)
        append = asyncio.ensure_future(store.append("run", 1, [b"1"]))
        cancelled = asyncio.ensure_future(store.append("other", 0, [b"0"]))
        for _ in range(5):
            await asyncio.sleep(0.001)  # the loop turns
        assert not append.done()
        cancelled.cancel()
        await asyncio.wait([cancelled])
        assert cancelled.cancelled()
        finish.set()
        await append
        await busy
        assert await store.load("run") == [b"0", b"1"]
        assert await store.runs() == ["run"]

    asyncio.run(use())


def test_a_cancellation_while_the_disk_is_waited_for_takes_effect_once_the_records_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    started, finish = threading.Event(), threading.Event()
    steps: list[str] = []

    async def write(store: SQLiteStore):
        await store.append("run", 0, [b"0"])
        steps.append("append returned")
        await asyncio.sleep(0)
        steps.append("never")

    async def use():
        with SQLiteStore(tmp_path / "runs.db", synchronous="full") as store:
            perform = store._use

            def slow(*arguments, **options):
                started.set()
                assert finish.wait(60)
                return perform(*arguments, **options)

            monkeypatch.setattr(store, "_use", slow)
            task = asyncio.ensure_future(write(store))
            await asyncio.to_thread(started.wait)
            for _ in range(3):
                task.cancel()
                await asyncio.sleep(0)
            assert not task.done()
            finish.set()
            await asyncio.wait([task])
            assert task.cancelled()
            assert await store.load("run") == [b"0"]

    asyncio.run(use())
    assert steps == ["append returned"]


def test_a_timeout_that_strikes_while_the_disk_is_waited_for_is_a_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def append_in_time(store: SQLiteStore, expired: threading.Event):
        async with asyncio.timeout(0.01) as timeout:
            asyncio.get_running_loop().call_at(timeout.when() or 0, expired.set)
            await store.append("run", 0, [b"0"])
            await asyncio.sleep(60)

    async def use():
        with SQLiteStore(tmp_path / "runs.db", synchronous="full") as store:
            perform, expired = store._use, threading.Event()

            def slow(*arguments, **options):
                assert expired.wait(60)
                return perform(*arguments, **options)

            monkeypatch.setattr(store, "_use", slow)
            with pytest.raises(TimeoutError):
                await append_in_time(store, expired)
            monkeypatch.undo()
            assert await store.load("run") == [b"0"]

    asyncio.run(use())


@pytest.mark.parametrize("replaced", [True, False])
def test_a_file_that_is_deleted_while_it_is_open_is_noticed(tmp_path: Path, store: SQLiteStore, replaced: bool):
    path = tmp_path / "runs.db"
    asyncio.run(store.append("run", 0, [b"0"]))
    path.rename(tmp_path / "moved.db")
    if replaced:
        path.write_bytes(b"")
    for call in (store.append("run", 1, [b"1"]), store.load("run"), store.runs()):
        with pytest.raises(StoreError, match="the file was moved or deleted while it was open"):
            asyncio.run(call)
    (tmp_path / "moved.db").rename(path)
    asyncio.run(store.append("run", 1, [b"1"]))


def test_work_that_fails_leaves_no_transaction_behind(store: SQLiteStore):
    def fail(connection):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO runs (run) VALUES ('half')")
        raise KeyError("half done")

    async def use():
        with pytest.raises(KeyError):
            await store._run("thread", fail, "")
        await store.append("run", 0, [b"0"])
        assert await store.runs() == ["run"]

    asyncio.run(use())


def test_two_stores_of_one_process_share_a_file(tmp_path: Path, store: SQLiteStore):
    async def use():
        with SQLiteStore(tmp_path / "runs.db") as other:
            for number in range(0, 100, 2):
                await asyncio.gather(store.append(f"a{number}", 0, [b"0"]), other.append(f"b{number}", 0, [b"0"]))
                await store.append("run", number, [b"%d" % number])
                await other.append("run", number + 1, [b"%d" % (number + 1)])
        assert await store.load("run") == [b"%d" % number for number in range(100)]

    asyncio.run(use())
