"""A workflow's history does not depend on what is said: its bytes are counted on a real server."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from suture.integrations.temporal import DurableAgent, make_worker
from tests.integrations.temporal.crew import SIZE, make_agent


def measure(target: str, directory: Path, turns: int) -> tuple[Any, list[tuple[int, int]]]:
    """Run so many turns with a call of 20 kB each; return the result, and events and bytes of each execution."""

    async def scene() -> Any:
        client = await Client.connect(target)
        agent, name = make_agent(directory), f"job-{turns}"
        async with make_worker(agent, client):
            result = await DurableAgent(agent, client).run(f"{turns}*read", id=name)
        sizes: list[tuple[int, int]] = []
        run_id = (await client.get_workflow_handle(name).describe()).raw_info.first_run_id
        while run_id:
            history = await client.get_workflow_handle(name, run_id=run_id).fetch_history()
            sizes.append((len(history.events), sum(event.ByteSize() for event in history.events)))
            last = history.events[-1].workflow_execution_continued_as_new_event_attributes
            run_id = last.new_execution_run_id
        return result, sizes

    return asyncio.run(scene())


def check(result: Any, sizes: list[tuple[int, int]], turns: int) -> str:
    said = sum(len(str(message.content)) for message in result.messages)
    assert result.output == "done"
    assert said >= turns * SIZE
    assert max(size for _, size in sizes) < 1_000_000
    a_turn = sum(size for _, size in sizes) / turns
    assert a_turn <= 1_500
    events = sum(count for count, _ in sizes) / turns
    return f"{turns} calls of 20 kB: {a_turn:.0f} bytes and {events:.1f} events a turn, executions of {sizes}"


def test_a_turn_takes_at_most_1500_bytes_of_history(target: str, tmp_path: Path, covered: Callable[[str], None]):
    covered(check(*measure(target, tmp_path, 25), 25))


@pytest.mark.soak
def test_a_thousand_calls_of_20_kb_stay_small(target: str, tmp_path: Path, covered: Callable[[str], None]):
    covered(check(*measure(target, tmp_path, 1000), 1000))
