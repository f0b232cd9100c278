"""Sessions that many processes talk in, and runs whose process was killed: real processes, one store."""

import asyncio
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from tests.agent.durability.talkers import make_talker, open_store
from tests.agent.durability.victim import Effects

ROOT = Path(__file__).parents[3]


def start(*arguments: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.agent.durability.talkers", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return where the sessions are: the path of a file, or the address of a server."""
    if request.param == "SQLite":
        yield str(tmp_path / "talk.db")
        return
    yield (conninfo := request.getfixturevalue("postgres").conninfo)
    with psycopg.connect(conninfo) as connection:
        connection.execute("DROP SCHEMA talk CASCADE")


def talk(place: str, directory: Path, processes: int, sessions: int, turns: int, kills: int) -> str:
    """Let processes talk in the same sessions, of which some are killed, and check what is left; tell how it went."""
    begun, chance = time.monotonic(), random.Random(7)
    noted = [directory / f"said {number}" for number in range(processes)]

    def begin(number: int) -> "subprocess.Popen[str]":
        return start("talk", place, noted[number], number, processes, sessions, turns)

    def count() -> int:
        return sum(path.stat().st_size for path in noted if path.exists())

    talkers = [begin(number) for number in range(processes)]
    for kill in range(1, kills + 1):
        while count() < kill * sessions * turns // (kills + 1):
            time.sleep(0.01)  # between two looks; nothing relies on it
        victim = chance.randrange(processes)
        talkers[victim].kill()
        talkers[victim].communicate()
        talkers[victim] = begin(victim)
    assert [talker.communicate()[1] or talker.returncode for talker in talkers] == [0] * processes
    seconds = time.monotonic() - begun
    with open_store(place) as store:
        agent = make_talker(store)
        for session in range(sessions):
            result = asyncio.run(agent.session(f"session {session}").result())
            words = [str(message.content) for message in result.messages]
            said = words[::2]
            assert sorted(said) == sorted(f"{session}.{turn}" for turn in range(turns))
            assert words[1::2] == [f"heard {line}" for line in said]
    return (
        f"{sessions} sessions of {turns} turns, from {processes} processes, {kills} killed: nothing lost, doubled or \
interleaved, {sessions * turns / seconds:.0f} turns a second on {place.partition(':')[0][-10:]}"
    )


def test_processes_talk_in_the_same_sessions_and_nothing_is_lost_or_interleaved(place: str, tmp_path: Path):
    talk(place, tmp_path, processes=2, sessions=3, turns=6, kills=2)


@pytest.mark.soak
def test_eight_processes_talk_in_200_sessions_of_50_turns(place: str, tmp_path: Path, covered: Callable[[str], None]):
    covered(talk(place, tmp_path, processes=8, sessions=200, turns=50, kills=40))


@pytest.mark.parametrize(
    ("script", "word", "effects"), [("post hang / post", "hangs", 3), ("post fetch / post", "fetches", 4)]
)
def test_what_a_killed_process_left_is_recovered_by_another_one_alone(
    tmp_path: Path, script: str, word: str, effects: int
):
    with start("run", tmp_path, script) as victim:
        assert victim.stdout is not None
        while victim.stdout.readline().strip() != word:
            pass
        victim.kill()
    rescuers = [start("recover", tmp_path) for _ in range(2)]
    said = sorted(rescuer.communicate()[0] for rescuer in rescuers)
    assert said == ["", "job finished done\n"]
    lines = Effects(tmp_path / "effects").all()
    assert len(lines) == effects
    assert len(set(lines)) == 3
