"""A stored run can go on from any of its checkpoints, under another name; the run itself stays as it was."""

from pathlib import Path
from typing import Any

import pytest

from suture import ChatModelAgent, RunContext, tool
from suture.errors import ConfigError
from suture.stores import SQLiteStore
from suture.testing import ScriptedModel
from tests.agent.durability.scenes import play, turn


def make(store: SQLiteStore, keys: list[str]) -> ChatModelAgent[str]:
    @tool
    async def post(ctx: RunContext[Any]) -> str:
        """Have an effect."""
        keys.append(ctx.idempotency_key)
        return f"posted {len(keys)}"

    def reply(messages: Any) -> Any:
        last = messages[-1]
        return turn(("c1", "post", {})) if last.role == "user" else f"it said: {last.content}"

    return ChatModelAgent(model=ScriptedModel(reply), tools=[post], checkpoint_store=store)


def test_every_checkpoint_of_a_run_can_be_gone_on_from(tmp_path: Path):
    async def scene() -> Any:
        keys: list[str] = []
        agent = make(store, keys)
        await agent.run("go", checkpoint_id="run")
        before = await store.load("run")
        places = await agent.checkpoints("run")
        ends: list[Any] = []
        for place in places[:-1]:
            await agent.fork("run", place.position, f"fork {place.position}")
            ends.append(await agent.resume(f"fork {place.position}"))
        return keys, places, ends, before == await store.load("run")

    with SQLiteStore(tmp_path / "runs.db") as store:
        keys, places, ends, unchanged = play(scene())
    assert unchanged
    assert places[-1].outcome == "finished"
    assert [len(end.messages) for end in ends] == [4] * len(ends)
    assert len(set(keys)) == len(keys)  # a fork is a run of its own: what it does again has another key


def test_a_conversation_is_rolled_back_by_a_fork_before_its_last_run(tmp_path: Path):
    async def scene() -> Any:
        agent = make(store, [])
        await agent.run("go", checkpoint_id="run")
        end = (await agent.checkpoints("run"))[-1]
        await agent.run("wrong way", checkpoint_id="run")
        await agent.fork("run", end.position, "again")
        return await agent.run("another way", checkpoint_id="again")

    with SQLiteStore(tmp_path / "runs.db") as store:
        result = play(scene())
    assert [message.content for message in result.messages if message.role == "user"] == ["go", "another way"]


def test_a_run_is_not_forked_before_it_has_begun(tmp_path: Path):
    with SQLiteStore(tmp_path / "runs.db") as store, pytest.raises(ConfigError, match="1 or more"):
        play(make(store, []).fork("run", 0, "fork"))
