"""Processes that talk in the same sessions, run something until they are killed, or recover what was left.

Started with `python -m tests.agent.durability.talkers WHAT DIRECTORY|STORE [ARGUMENT…]`.
"""

import asyncio
import random
import sys
from pathlib import Path
from typing import Any

from suture import ChatModelAgent
from suture.sessions import recover
from suture.stores import PostgresStore, SQLiteStore
from suture.testing import ScriptedModel
from tests.integrations.temporal.crew import make_agent


def open_store(place: str, **options: Any) -> Any:
    """Return the store at a place: the path of a SQLite file, or the address of a PostgreSQL server."""
    if place.startswith("postgresql:"):
        return PostgresStore(place, schema="talk", **options)
    return SQLiteStore(place, busy_timeout=60, **options)


def make_talker(store: Any) -> ChatModelAgent[str]:
    """Return an agent that repeats what it hears."""
    model = ScriptedModel(lambda messages: f"heard {messages[-1].content}")
    return ChatModelAgent(name="talker", model=model, checkpoint_store=store)


async def talk(place: str, progress: Path, number: int, processes: int, sessions: int, turns: int) -> None:
    """Say every line of this process in its session, in any order; whoever was killed goes on with the line it said."""
    lines = [(session, turn) for session in range(sessions) for turn in range(number, turns, processes)]
    random.Random(number).shuffle(lines)
    with open_store(place) as store, progress.open("ab", buffering=0) as noted:
        agent = make_talker(store)
        for session, turn in lines[noted.tell() :]:
            await agent.session(f"session {session}").run(f"{session}.{turn}", key=f"{turn}")
            noted.write(b".")


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
        asyncio.run(talk(directory, Path(rest[0]), *map(int, rest[1:])))
    elif what == "run":
        asyncio.run(run(Path(directory), *rest))
    else:
        asyncio.run(resume(Path(directory)))
