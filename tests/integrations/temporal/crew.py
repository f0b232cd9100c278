"""An agent for tests of engines: what its model does stands in the input, and its tools leave lines in a file.

`python -m tests.integrations.temporal.crew TARGET DIRECTORY` is a worker for it, to be killed.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from suture import ChatModelAgent, Message, RunContext, ToolCall, tool
from suture.events import Custom
from suture.stores import SQLiteStore
from suture.testing import ScriptedModel
from tests.agent.durability.victim import Effects

ROOT = Path(__file__).parents[3]
SIZE = 20_000


def reply(messages: Sequence[Message]) -> Any:
    """Say what the input asks for: `post post / ask` is a turn with two calls, then one with one."""
    said = next(str(message.content) for message in reversed(messages) if message.role == "user")
    times, _, words = said.rpartition("*")
    turns = [turn.split() for turn in words.split("/")] * int(times or 1)
    taken = 0
    for message in reversed(messages):
        if message.role == "user":
            break
        taken += message.role == "assistant"
    if taken >= len(turns):
        return "done"
    calls = [ToolCall(f"c{taken}.{index}", name, "{}") for index, name in enumerate(turns[taken])]
    return Message.assistant(tool_calls=calls)


@tool
async def ask(ctx: RunContext[Any]) -> str:
    """Ask somebody."""
    return await ctx.interrupt("May I?", expects=str)


@tool
async def read() -> str:
    """Return a page."""
    return "x" * SIZE


@tool
async def fail() -> str:
    """Fail."""
    raise ValueError("no such page")


def make_agent(directory: Path, **settings: Any) -> ChatModelAgent[str]:
    """Return the agent with its store in `directory`."""
    effects = Effects(directory / "effects")

    @tool
    async def post(ctx: RunContext[Any]) -> str:
        """Have an effect that must not happen twice."""
        effects.add(ctx.idempotency_key)
        return "posted"

    @tool
    async def linger(ctx: RunContext[Any]) -> str:
        """Have an effect that must not happen twice, and take a while."""
        effects.add(ctx.idempotency_key)
        await asyncio.sleep(0.3)
        return "posted"

    @tool
    async def hang(ctx: RunContext[Any]) -> str:
        """Have an effect, and never end."""
        effects.add(ctx.idempotency_key)
        ctx.send(Custom("hangs"))
        print("hangs", flush=True)
        await asyncio.Event().wait()
        return "never"

    @tool
    async def pause(ctx: RunContext[Any]) -> str:
        """Have an effect, and end once there is a file that says so."""
        effects.add(ctx.idempotency_key)
        print("pauses", flush=True)
        try:
            while not (directory / "go on").exists():  # noqa: ASYNC110 - another process makes it
                await asyncio.sleep(0.05)
        finally:
            print("woke up", flush=True)
        return "late"

    @tool(idempotent=True)
    async def fetch(ctx: RunContext[Any]) -> str:
        """Hang when it is called first; another time, return something."""
        effects.add(ctx.idempotency_key)
        if effects.all().count(ctx.idempotency_key) == 1:
            print("fetches", flush=True)
            await asyncio.Event().wait()
        return "fetched"

    store = settings.pop("store", None) or SQLiteStore(directory / "runs.db")
    known = [post, linger, hang, pause, fetch, ask, read, fail, *settings.pop("tools", [])]
    model = settings.pop("model", None) or ScriptedModel(reply, chunk_size=2)
    return ChatModelAgent(
        name="crew", model=model, tools=known, checkpoint_store=store, max_iterations=5000, **settings
    )


async def work(target: str, directory: Path) -> None:
    """Be a worker until the process is killed."""
    from temporalio.client import Client

    from suture.integrations.temporal import make_worker

    worker = make_worker(make_agent(directory), await Client.connect(target), graceful_shutdown_timeout=timedelta())
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, lambda: stopping.append(loop.create_task(worker.shutdown())))
    stopping: list[Any] = []
    print("ready", os.getpid(), flush=True)
    await worker.run()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], Path(sys.argv[2])))
