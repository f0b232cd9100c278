"""Several processes share one file: their own runs side by side, and one run never twice."""

import asyncio
import os
import sqlite3
from contextlib import ExitStack
from pathlib import Path

import pytest

from suture.stores import SQLiteStore, StoreConflictError, StoreError
from tests.stores.processes import finished, hear, program, run, tell

# Writes 300 appends to a run of its own as soon as it is told to.
OWN_RUN = """
async def main():
    store = SQLiteStore(path, busy_timeout=60)
    say("ready")
    run = hear()
    first = 0
    for number in range(300):
        records = batch(run, first, number)
        await store.append(run, first, records)
        first += len(records)
    assert await store.load(run) == journal(run)
    store.close()

def journal(run):
    records = []
    for number in range(300):
        records += batch(run, len(records), number)
    return records

asyncio.run(main())
"""

# Adds to one run wherever that has got to, and says what it added.
SHARED_RUN = """
async def main():
    store = SQLiteStore(path, busy_timeout=60)
    say("ready")
    name = hear()
    conflicts = done = 0
    first = len(await store.load("shared"))
    while done < 100:
        record = f"{name} {done}".encode()
        try:
            await store.append("shared", first, [record])
        except StoreConflictError as conflict:
            assert conflict.expected > first, conflict
            conflicts, first = conflicts + 1, conflict.expected
        else:
            say(first, record.decode())
            done, first = done + 1, first + 1
asyncio.run(main())
"""

FORKING = """
def attempt(store):
    try:
        asyncio.run(store.append("child", 0, [b"0"]))
    except StoreError as error:
        return str(error)

store = SQLiteStore(path)
asyncio.run(store.append("parent", 0, [b"0"]))
child = os.fork()
if not child:
    for error in (attempt(store), attempt(SQLiteStore(path))):
        say(error)
    store.close()
    os._exit(0)
os.waitpid(child, 0)
asyncio.run(store.append("parent", 1, [b"1"]))
store.close()
child = os.fork()
if not child:
    say(attempt(SQLiteStore(path)))
    os._exit(0)
os.waitpid(child, 0)
with SQLiteStore(path) as store:
    say(asyncio.run(store.load("parent")), asyncio.run(store.load("child")))
"""


@pytest.mark.parametrize("made", [True, False], ids=["a file that is there", "a file that they make"])
def test_processes_write_their_own_runs_at_once(tmp_path: Path, made: bool):
    path = tmp_path / "runs.db"
    if made:
        with SQLiteStore(path) as store:
            assert asyncio.run(store.runs()) == []
    with ExitStack() as stack:
        processes = [stack.enter_context(program(OWN_RUN, path)) for _ in range(3)]
        for process in processes:
            assert hear(process) == "ready"
        for number, process in enumerate(processes):
            tell(process, f"run-{number}")
        for process in processes:
            assert finished(process) == []
    with SQLiteStore(path) as store:
        assert sorted(asyncio.run(store.runs())) == ["run-0", "run-1", "run-2"]
        assert {len(asyncio.run(store.load(f"run-{number}"))) for number in range(3)} == {600}


def test_of_processes_that_write_one_run_each_number_is_written_by_one(tmp_path: Path):
    path = tmp_path / "runs.db"
    with ExitStack() as stack:
        processes = [stack.enter_context(program(SHARED_RUN, path)) for _ in range(3)]
        for process in processes:
            assert hear(process) == "ready"
        for name, process in zip("abc", processes, strict=True):
            tell(process, name)
        said = [line.split(maxsplit=1) for process in processes for line in finished(process)]
    claimed = {int(number): record.encode() for number, record in said}
    assert len(said) == len(claimed) == 300
    with SQLiteStore(path) as store:
        assert dict(enumerate(asyncio.run(store.load("shared")))) == claimed


def test_a_process_that_was_overtaken_is_told(tmp_path: Path):
    overtaken = """
async def main():
    store = SQLiteStore(path)
    await store.append("run", 0, [b"mine"])
    say("written")
    hear()
    for records in ([b"mine"], [b"mine", b"mine"]):
        try:
            await store.append("run", 1, records)
        except StoreConflictError as conflict:
            say(conflict.given, conflict.expected)
asyncio.run(main())
"""
    path = tmp_path / "runs.db"
    with program(overtaken, path) as process, SQLiteStore(path) as store:
        assert hear(process) == "written"
        asyncio.run(store.append("run", 1, [b"yours"]))
        tell(process)
        assert finished(process) == ["1 2", "1 2"]
        assert asyncio.run(store.load("run")) == [b"mine", b"yours"]
        with pytest.raises(StoreConflictError, match="record 1 of run 'run' is taken: the next one is 2"):
            asyncio.run(store.append("run", 1, [b"again"]))


def test_a_lock_that_stays_held_ends_in_an_error_that_says_what_was_not_written(tmp_path: Path):
    holder = """
async def main():
    store = SQLiteStore(path)
    def hold(connection):
        connection.execute("BEGIN IMMEDIATE")
        say("holding")
        hear()
    await asyncio.to_thread(store._use, hold, "", wait=True)
asyncio.run(main())
"""
    path = tmp_path / "runs.db"

    async def use():
        with SQLiteStore(path, busy_timeout=0.05) as store, program(holder, path) as process:
            assert hear(process) == "holding"
            with pytest.raises(StoreError) as caught:
                await store.append("run", 0, [b"0", b"1"])
            assert str(caught.value) == (
                f"{path}: records 0 to 1 of run 'run' were not written: "
                "another writer has held the lock of the file for 0.05 s"
            )
            with pytest.raises(StoreError, match="run 'run' was not deleted"):
                await store.delete("run")
            tell(process)
            assert finished(process) == []
            await store.append("run", 0, [b"0", b"1"])

    asyncio.run(use())


def test_a_wait_for_the_lock_can_be_cancelled_and_then_nothing_is_written(tmp_path: Path):
    holder = """
store = SQLiteStore(path)
def hold(connection):
    connection.execute("BEGIN IMMEDIATE")
    say("holding")
    hear()
store._use(hold, "", wait=True)
"""
    path = tmp_path / "runs.db"

    async def use():
        with SQLiteStore(path, busy_timeout=600) as store, program(holder, path) as process:
            assert hear(process) == "holding"
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await store.append("run", 0, [b"0"])
            tell(process)
            assert finished(process) == []
            assert await store.load("run") == []

    asyncio.run(use())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_store_that_was_open_before_a_fork_is_refused_in_the_child(tmp_path: Path):
    *refusals, allowed, journals = run(FORKING, tmp_path / "runs.db")
    assert len(refusals) == 2
    assert all("this process was forked while the file was open" in refusal for refusal in refusals)
    assert allowed == "None"
    assert journals == "[b'0', b'1'] [b'0']"


class Overtaken(sqlite3.Connection):
    """Between two looks at a new file, another process makes it."""

    made = False

    def execute(self, sql, *parameters):
        found = super().execute(sql, *parameters)
        if sql != "PRAGMA user_version" or Overtaken.made:
            return found
        Overtaken.made, [(version,)] = True, found.fetchall()
        [(_, _, path)] = super().execute("PRAGMA database_list").fetchall()
        run(MAKING, Path(path))
        return super().execute("SELECT ?", (version,))


MAKING = """
try:
    asyncio.run(SQLiteStore(path, busy_timeout=0).append("other", 0, [b"0"]))
except StoreError:
    pass  # it must wait until the file is known to be new
"""


def test_a_file_that_another_process_is_making_is_not_taken_for_another_program_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *where, **how: connect(*where, factory=Overtaken, **how))
    with SQLiteStore(tmp_path / "runs.db") as store:
        assert asyncio.run(store.load("shared")) == []
    assert Overtaken.made
