"""Workers are killed while they run calls: every run comes to its end, and no effect happens twice."""

import asyncio
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from temporalio.client import Client

from suture import Outcome
from suture.integrations.temporal import DurableAgent, DurableRun
from tests.agent.durability.victim import Effects
from tests.integrations.temporal.crew import make_agent

UNKNOWN = "may or may not have run"
Start = Callable[[], "subprocess.Popen[str]"]


def hear(process: "subprocess.Popen[str]", word: str) -> None:
    """Wait until a worker says a word."""
    assert process.stdout is not None
    while process.stdout.readline().strip() != word:
        pass


async def connect(target: str, directory: Path) -> DurableAgent:
    return DurableAgent(make_agent(directory), await Client.connect(target), heartbeat=1)


class Case(NamedTuple):
    """How a worker is lost, and what is left of the call that it ran."""

    calls: str
    word: str
    """What the worker says when it is time."""
    end: signal.Signals
    reply: str
    effects: int


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(Case("post hang", "hangs", signal.SIGKILL, UNKNOWN, 3), id="killed"),
        pytest.param(Case("post fetch", "fetches", signal.SIGKILL, "fetched", 4), id="killed, idempotent"),
        pytest.param(Case("post hang", "hangs", signal.SIGTERM, UNKNOWN, 3), id="told to end"),
        pytest.param(
            Case("post pause", "pauses", signal.SIGSTOP, UNKNOWN, 3), id="stopped for a while", marks=pytest.mark.soak
        ),
    ],
)
def test_a_worker_that_is_gone_in_the_middle_of_a_call_is_followed_by_another(
    target: str, start_worker: Start, tmp_path: Path, case: Case
):
    async def scene() -> Any:
        durable = await connect(target, tmp_path)
        victim = start_worker()
        run = await durable.start(f"{case.calls} / post", id=f"gone-{tmp_path.name}")
        await asyncio.to_thread(hear, victim, case.word)
        victim.send_signal(case.end)
        start_worker()
        result = await run.result()
        if case.end is signal.SIGSTOP:  # it wakes up, and what it has to say comes too late
            (tmp_path / "go on").touch()
            victim.send_signal(signal.SIGCONT)
            await asyncio.to_thread(hear, victim, "woke up")
        return result, await run.result()

    result, later = asyncio.run(scene())
    assert (result.outcome, result.output) == (Outcome.FINISHED, "done")
    assert later.messages == result.messages
    answers = [str(message.content) for message in result.messages if message.role == "tool"]
    assert case.reply in answers[1]
    assert answers[2] == "posted"
    assert len(Effects(tmp_path / "effects").all()) == case.effects


@pytest.mark.soak
def test_of_three_workers_one_is_killed_every_two_seconds_and_nothing_happens_twice(
    target: str, start_worker: Start, tmp_path: Path, covered: Callable[[str], None]
):
    runs, turns, calls, kills = 40, 15, 3, 0

    async def scene() -> list[Any]:
        nonlocal kills
        durable = await connect(target, tmp_path)
        workers = [start_worker() for _ in range(3)]
        script = f"{turns}*" + " ".join(["linger"] * calls)
        started: list[DurableRun] = [await durable.start(script, id=f"soak-{number}") for number in range(runs)]
        ends = asyncio.gather(*(run.result() for run in started))
        chance = random.Random(7)
        while not ends.done():
            await asyncio.wait([ends], timeout=2)
            if not ends.done():
                workers.pop(chance.randrange(3)).kill()
                workers.append(await asyncio.to_thread(start_worker))
                kills += 1
        return await ends

    results = asyncio.run(scene())
    effects = Counter(Effects(tmp_path / "effects").all())
    answers = [str(message.content) for result in results for message in result.messages if message.role == "tool"]
    unknown = sum("may or may not" in answer for answer in answers)
    assert {result.output for result in results} == {"done"}
    assert len(answers) == runs * turns * calls
    assert [key for key, count in effects.items() if count > 1] == []
    assert answers.count("posted") + unknown == len(answers)
    assert len(effects) >= answers.count("posted")
    covered(f"{kills} workers killed in {runs} runs with {len(answers)} calls: 0 double effects, {unknown} unknown")
