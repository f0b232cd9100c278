"""What a killed process was told is written is there, in order and without gaps, and others can go on."""

import asyncio
import random
import signal
from pathlib import Path

import pytest

from suture.stores import SQLiteStore, StoreError
from tests.stores.processes import hear, program, tell

# Appends without end to the runs it is told, and says each time what is now safe.
WRITER = """
async def main():
    store = SQLiteStore(path)
    runs = hear().split()
    lengths = {run: len(await store.load(run)) for run in runs}
    numbers = {run: number_of(await store.load(run)) for run in runs}
    say("ready")
    while True:
        for run in runs:
            records = batch(run, lengths[run], numbers[run])
            await store.append(run, lengths[run], records)
            lengths[run] += len(records)
            numbers[run] += 1
            say(run, lengths[run])

def number_of(records):
    return int(records[-1].split()[2]) + 1 if records else 0

asyncio.run(main())
"""

# Takes the lock of the file and keeps it.
HOLDER = """
async def main():
    store = SQLiteStore(path)
    await store.append("held", 0, [b"0"])
    def hold(connection):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO records VALUES (1 << 32 | 1, 0, 0, x'00')")
        say("holding")
        hear()
        connection.execute("ROLLBACK")
    store._use(hold, "", wait=True)
    say("released")
asyncio.run(main())
"""


def whole(run: str, journal: list[bytes]) -> bool:
    """Tell whether the journal consists of whole appends, each record in its place."""
    first, number = 0, 0
    while first < len(journal):
        size = number % 3 + 1
        times = number % 5 * 40 + 1
        expected = [f"{run} {first + part} {number} {part}/{size}".encode() * times for part in range(size)]
        if journal[first : first + size] != expected:
            return False
        first, number = first + size, number + 1
    return True


@pytest.mark.parametrize("seed", [0, 3, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (1, 2, 4, 5, 6, 7))])
def test_what_was_acknowledged_before_a_kill_is_there(tmp_path: Path, seed: int):
    chance = random.Random(seed)
    path = tmp_path / "runs.db"
    runs = ["a", "a/b", "c"]
    acknowledged = dict.fromkeys(runs, 0)
    for _ in range(4):
        with program(WRITER, path) as process:
            tell(process, " ".join(runs))
            assert hear(process) == "ready"
            for _ in range(chance.choice([0, 1, 7, 50, 400])):
                run, length = hear(process).split()
                acknowledged[run] = int(length)
            process.send_signal(signal.SIGKILL)
            # What it had said by then counts, too.
            assert process.stdout is not None
            for line in process.stdout.read().split("\n")[:-1]:
                run, length = line.split()
                acknowledged[run] = int(length)
            assert process.wait() == -signal.SIGKILL
        with SQLiteStore(path) as store:
            for run in runs:
                journal = asyncio.run(store.load(run))
                assert whole(run, journal)
                assert acknowledged[run] <= len(journal) <= acknowledged[run] + 3
                acknowledged[run] = len(journal)
    with SQLiteStore(path) as store:
        for run in runs:
            asyncio.run(store.append(run, acknowledged[run], [b"the next one"]))
            assert asyncio.run(store.load(run))[-1] == b"the next one"


def test_the_check_for_whole_appends_bites():
    journal = [b"a 0 0 0/1", b"a 1 1 0/2" * 41, b"a 2 1 1/2" * 41]
    assert whole("a", journal)
    assert not whole("a", journal[:2])
    assert not whole("a", journal[1:])
    assert not whole("a", [*journal, b"a 3 2 0/3"])


def test_a_process_killed_while_it_holds_the_lock_leaves_it_and_nothing_else(tmp_path: Path):
    path = tmp_path / "runs.db"

    async def use():
        with SQLiteStore(path, busy_timeout=0) as impatient, SQLiteStore(path, busy_timeout=60) as patient:
            with program(HOLDER, path) as holder:
                assert hear(holder) == "holding"
                with pytest.raises(StoreError, match="another writer has held the lock of the file for 0 s"):
                    await impatient.append("run", 0, [b"0"])
                waiting = asyncio.ensure_future(patient.append("run", 0, [b"0"]))
                # Reading needs no lock, and the event loop goes on.
                assert await patient.load("held") == [b"0"]
                assert await patient.load("run") == []
                assert not waiting.done()
                holder.kill()
                holder.wait()
                await waiting
            assert await impatient.load("run") == [b"0"]
            assert await impatient.load("held") == [b"0"]
            await impatient.append("held", 1, [b"1"])

    asyncio.run(use())
