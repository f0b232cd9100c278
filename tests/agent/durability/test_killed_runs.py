"""A process is killed in a run: what was finished is kept, the rest is told as it is, nothing runs twice."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from suture import Outcome
from suture.stores import SQLiteStore
from tests.agent.durability.scenes import CANCELED, UNKNOWN, acceptable, play, results, roles
from tests.agent.durability.victim import Cast, Effects

ROOT = Path(__file__).parents[3]


def kill(scene: str, wire: str, directory: Path, *awaited: str) -> list[str]:
    """Start a victim, wait until it has said all that is awaited, and kill it. Return what it said."""
    command = [sys.executable, "-W", "error", "-m", "tests.agent.durability.victim", scene, wire, str(directory)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines: list[str] = []
        watchdog = threading.Timer(30, process.kill)
        watchdog.start()
        try:
            while not all(any(line.startswith(word) for line in lines) for word in awaited):
                line = process.stdout.readline()
                assert line, f"the victim ended: {process.stderr.read()}"
                lines.append(line.strip())
        finally:
            watchdog.cancel()
            os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        return lines


def go_on(scene: str, wire: str, directory: Path, way: str, answers: dict[str, str] | None = None):
    """Go on in this process, by a resume or with the next question. Return the cast and the result."""
    with SQLiteStore(directory / "runs.db") as store:
        cast = Cast(scene, wire, store, Effects(directory / "effects"))

        async def scene_of_it():
            if way == "resume":
                return await cast.agent.resume("k", answers=answers)
            return await cast.agent.run("next", checkpoint_id="k")

        result = play(scene_of_it())
    assert result.outcome is Outcome.FINISHED
    assert result.output == ("done" if way == "resume" else "answered")
    for request in [*cast.model.requests, *cast.inner_model.requests]:
        assert acceptable(request.messages, wire)
    assert acceptable(result.messages, wire)
    return cast, result


def effects(directory: Path) -> list[str]:
    return Effects(directory / "effects").all()


@pytest.mark.parametrize(
    ("way", "wire"), [("resume", "message"), ("next", "agentic"), ("next", "openai-chat"), ("resume", "openai-chat")]
)
def test_one_of_two_parallel_tools_has_finished(tmp_path: Path, way: str, wire: str):
    kill("parallel", wire, tmp_path, "finished c1", "slow")
    assert effects(tmp_path) == ["post 1", "slow 2"]
    cast, result = go_on("parallel", wire, tmp_path, way)
    assert effects(tmp_path) == ["post 1", "slow 2"]
    truth = [("c1", "posted 1"), ("c2", UNKNOWN.format("slow", "c2"))]
    assert [results(request.messages) for request in cast.model.requests] == [truth]
    question = ["user"] if way == "next" else []
    assert roles(result.messages) == ["user", "assistant", "tool", "tool", *question, "assistant"]


def test_an_idempotent_call_that_did_not_end_is_run_again(tmp_path: Path):
    kill("idempotent", "message", tmp_path, "finished c1", "slow")
    assert effects(tmp_path) == ["fetch 2", "post 1"]
    cast, _ = go_on("idempotent", "message", tmp_path, "resume")
    assert effects(tmp_path) == ["fetch 2", "fetch 2", "post 1"]
    truth = [("c1", "posted 1"), ("c2", "fetched 2")]
    assert [results(request.messages) for request in cast.model.requests] == [truth]


@pytest.mark.parametrize("way", ["resume", "next"])
def test_the_model_was_being_asked(tmp_path: Path, way: str):
    kill("model", "message", tmp_path, "asked")
    cast, result = go_on("model", "message", tmp_path, way)
    assert effects(tmp_path) == ["post 1"]
    assert [results(request.messages) for request in cast.model.requests] == [[("c1", "posted 1")]]
    question = ["user"] if way == "next" else []
    assert roles(result.messages) == ["user", "assistant", "tool", *question, "assistant"]


def test_the_tools_had_ended_and_the_next_turn_had_not_begun(tmp_path: Path):
    kill("between", "message", tmp_path, "between")
    cast, _ = go_on("between", "message", tmp_path, "resume")
    assert effects(tmp_path) == ["post 1", "post 2"]
    truth = [("c1", "posted 1"), ("c2", "posted 2")]
    assert [results(request.messages) for request in cast.model.requests] == [truth]


@pytest.mark.parametrize("way", ["resume", "next"])
def test_an_agent_inside_was_at_work(tmp_path: Path, way: str):
    kill("nested", "message", tmp_path, "finished c1", "slow")
    cast, result = go_on("nested", "message", tmp_path, way)
    assert effects(tmp_path) == ["post 1", "slow 2"]
    if way == "resume":
        truth = [("c1", "posted 1"), ("c2", UNKNOWN.format("slow", "c2"))]
        assert [results(request.messages) for request in cast.inner_model.requests] == [truth]
        assert results(result.messages) == [("o1", "done")]
    else:
        assert cast.inner_model.requests == []
        assert results(result.messages) == [("o1", UNKNOWN.format("inner", "o1"))]


@pytest.mark.parametrize("way", ["resume", "next"])
def test_the_run_was_waiting_for_an_answer(tmp_path: Path, way: str):
    lines = kill("paused", "message", tmp_path, "waits")
    waiting = lines[-1].removeprefix("waits ")
    assert effects(tmp_path) == ["post 1"]
    cast, result = go_on("paused", "message", tmp_path, way, {waiting: "yes"})
    if way == "resume":
        assert effects(tmp_path) == ["ask 2 yes", "post 1"]
        assert results(result.messages) == [("c1", "posted 1"), ("c2", "asked 2 yes")]
    else:
        assert effects(tmp_path) == ["post 1"]
        assert results(result.messages) == [("c1", "posted 1"), ("c2", CANCELED.format("ask", "c2"))]
    assert len(cast.model.requests) == 1


def test_a_second_crash_after_a_resume_is_survived_as_well(tmp_path: Path):
    """The first process dies in its tools, the second while it is resumed, the third goes on."""
    kill("idempotent", "message", tmp_path, "finished c1", "slow")
    script = (
        "import asyncio, sys; from pathlib import Path; from suture.stores import SQLiteStore\n"
        "from tests.agent.durability.victim import Cast, Effects\n"
        "directory = Path(sys.argv[1])\n"
        "cast = Cast('idempotent', 'message', SQLiteStore(directory / 'runs.db'),\n"
        "    Effects(directory / 'effects'), ['slow'])\n"
        "async def main(): await cast.agent.resume('k')\n"
        "asyncio.run(main())"
    )
    command = [sys.executable, "-W", "error", "-c", script, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().strip() == "slow", process.stderr.read() if process.stderr else ""
        finally:
            process.kill()
    cast, _ = go_on("idempotent", "message", tmp_path, "resume")
    assert effects(tmp_path) == ["fetch 2", "fetch 2", "fetch 2", "post 1"]
    assert results(cast.model.requests[0].messages) == [("c1", "posted 1"), ("c2", "fetched 2")]
