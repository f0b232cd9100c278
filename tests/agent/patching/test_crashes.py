"""After a crash a finished call keeps its result, and one that began and did not end says that nobody knows."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest

from suture import ChatModelAgent, ToolContext, tool
from suture.middleware import PatchToolCalls
from suture.stores import SQLiteStore
from suture.testing import ScriptedModel
from tests.agent.patching.wiring import assert_acceptable, assert_says, assert_sent, on_each_wire, sent
from tests.shapes.notation import call, result, turn, user
from tests.shapes.texts import answered
from tests.shapes.wires import read

ASK, MORE = user("When is high tide?"), user("And now?")
TIDE = result("a", "06:12", "tides")
CRASHING = """
import asyncio, os, sys
from suture import ChatModelAgent, tool
from suture.stores import SQLiteStore
from suture.testing import ScriptedModel
from tests.agent.patching.test_crashes import THREE
from tests.agent.patching.wiring import one

@tool
async def tides() -> str: return "06:12"
@tool
async def moon() -> str: os._exit(7)

wire, path = sys.argv[1:]
model = ScriptedModel([one(wire, THREE)], wire)
agent = ChatModelAgent(model=model, tools=[tides, moon], sequential=True, checkpoint_store=SQLiteStore(path))
agent.run_sync("When is high tide?", checkpoint_id="c")
"""
THREE = turn(call("a", "tides", {}), call("b", "moon", {}), call("c", "tides", {}))


def crashed(wire: str, path: Path, use: Callable[[SQLiteStore], Awaitable[None]]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CRASHING, wire, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 7, done.stderr
    with closing(SQLiteStore(path)) as store:

        async def at_once() -> None:
            await use(store)

        asyncio.run(at_once())


@on_each_wire
def test_after_a_crash_a_new_message_finds_the_finished_result_and_the_unknown_one(wire: str, tmp_path: Path):
    async def use(store: SQLiteStore) -> None:
        model = ScriptedModel(["ok"], wire)
        agent = ChatModelAgent(model=model, middlewares=[PatchToolCalls()], checkpoint_store=store)
        finished = await agent.run("And now?", checkpoint_id="c")
        messages = sent(model)
        assert_acceptable(wire, messages)
        # The third call never began: whatever it is told, it is not that it may have run.
        third = read(wire, messages)[4][1][0][2]
        assert third in {answered(cause, "c", "tides").text for cause in ("interrupted", "stopped")}
        del messages[4]
        assert_says(wire, messages, ASK, THREE, TIDE, answered("unknown", "b", "moon"), MORE)
        assert list(finished.messages)[:-1] == sent(model)

    crashed(wire, tmp_path / "runs.db", use)


@pytest.mark.parametrize("idempotent", [False, True])
def test_a_crash_that_is_resumed_runs_what_may_run(tmp_path: Path, idempotent: bool):
    ran: list[str] = []

    @tool(name="tides")
    async def counted(context: ToolContext) -> str:
        """Tell the tides."""
        ran.append(context.call_id)
        return "07:01"

    @tool(idempotent=idempotent)
    async def moon(context: ToolContext) -> str:
        """Tell the moon."""
        ran.append(context.call_id)
        return "full"

    async def use(store: SQLiteStore) -> None:
        model = ScriptedModel(["ok"])
        agent = ChatModelAgent(model=model, tools=[counted, moon], sequential=True, checkpoint_store=store)
        await agent.resume("c")
        second = result("b", "full", "moon") if idempotent else answered("unknown", "b", "moon")
        assert_sent(model, ASK, THREE, TIDE, second, result("c", "07:01", "tides"))
        assert ran == (["b", "c"] if idempotent else ["c"])

    crashed("message", tmp_path / "runs.db", use)
