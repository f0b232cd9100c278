"""Sessions that many processes talk in, and runs whose process was killed: real processes, one SQLite file."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from suture.stores import SQLiteStore
from tests.agent.durability.talkers import make_talker
from tests.agent.durability.victim import Effects

ROOT = Path(__file__).parents[3]


def start(*arguments: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.agent.durability.talkers", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def talk(directory: Path, processes: int, sessions: int, turns: int) -> None:
    """Let processes talk in the same sessions, and check that nothing is lost, doubled or interleaved."""
    talkers = [start("talk", directory, number, processes, sessions, turns) for number in range(processes)]
    assert [talker.communicate()[1] or talker.returncode for talker in talkers] == [0] * processes
    with SQLiteStore(directory / "talk.db") as store:
        agent = make_talker(store)
        for session in range(sessions):
            result = asyncio.run(agent.session(f"session {session}").result())
            words = [str(message.content) for message in result.messages]
            said = words[::2]
            assert sorted(said) == sorted(f"{session}.{turn}" for turn in range(turns))
            assert words[1::2] == [f"heard {line}" for line in said]


def test_processes_talk_in_the_same_sessions_and_nothing_is_lost_or_interleaved(tmp_path: Path):
    talk(tmp_path, processes=3, sessions=4, turns=9)


@pytest.mark.soak
def test_eight_processes_talk_in_200_sessions_of_50_turns(tmp_path: Path, covered: Callable[[str], None]):
    talk(tmp_path, processes=8, sessions=200, turns=50)
    covered("200 sessions of 50 turns, from 8 processes on one SQLite file: nothing lost, doubled or interleaved")


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
