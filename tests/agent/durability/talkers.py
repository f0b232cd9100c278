"""Processes that talk in the same sessions, run something until they are killed, or recover what was left.

Started with `python -m tests.agent.durability.talkers WHAT DIRECTORY [ARGUMENT…]`.
"""

import asyncio
import random
import sys
from pathlib import Path

from suture import ChatModelAgent
from suture.sessions import recover
from suture.stores import SQLiteStore
from suture.testing import ScriptedModel
from tests.integrations.temporal.crew import make_agent


def make_talker(store: SQLiteStore) -> ChatModelAgent[str]:
    """Return an agent that repeats what it hears."""
    model = ScriptedModel(lambda messages: f"heard {messages[-1].content}")
    return ChatModelAgent(name="talker", model=model, checkpoint_store=store)


async def talk(directory: Path, number: int, processes: int, sessions: int, turns: int) -> None:
    """Say every line of this process in its session, in any order."""
    lines = [(session, turn) for session in range(sessions) for turn in range(number, turns, processes)]
    random.Random(number).shuffle(lines)
    with SQLiteStore(directory / "talk.db", busy_timeout=60) as store:
        agent = make_talker(store)
        for session, turn in lines:
            await agent.session(f"session {session}").run(f"{session}.{turn}", key=f"{turn}")


async def run(directory: Path, script: str) -> None:
    """Run a script; its tools hang, and the process is killed."""
    await make_agent(directory).run(script, checkpoint_id="job")


async def resume(directory: Path) -> None:
    """Recover what dead processes left."""
    agent = make_agent(directory)
    for result in await recover([agent], agent.checkpoint_store):
        print(result.checkpoint_id, result.outcome.value, result.output, flush=True)


if __name__ == "__main__":
    what, directory, *rest = sys.argv[1:]
    if what == "talk":
        asyncio.run(talk(Path(directory), *map(int, rest)))
    elif what == "run":
        asyncio.run(run(Path(directory), *rest))
    else:
        asyncio.run(resume(Path(directory)))
