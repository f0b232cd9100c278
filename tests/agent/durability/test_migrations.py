"""A journal of an earlier version is read by what makes the next version of it, and goes on in this one."""

from typing import Any

import msgspec
import pytest

from suture import ChatModelAgent, SchemaVersionError, tool
from suture.kernel import journal
from suture.kernel.run_state import VERSION
from suture.stores import MemoryStore
from suture.testing import ScriptedModel
from tests.agent.durability.scenes import play, turn


@tool(requires_approval=True)
async def post() -> str:
    """Post."""
    return "posted"


def make(store: MemoryStore) -> ChatModelAgent[str]:
    def reply(messages: Any) -> Any:
        return turn(("c1", "post", {})) if messages[-1].role == "user" else "done"

    return ChatModelAgent(model=ScriptedModel(reply), tools=[post], checkpoint_store=store)


def age(record: bytes) -> bytes:
    """Write a record as an earlier version had it: the phase had another name."""
    changes = msgspec.msgpack.decode(record)
    for change in changes:
        if change[0] == "began":
            change[1] = VERSION - 1
        if change[0] == "set" and "phase" in change[1]:
            change[1]["stage"] = change[1].pop("phase")
    return msgspec.msgpack.encode(changes)


def migrate(changes: list[Any]) -> list[Any]:
    for change in changes:
        if change[0] == "set" and "stage" in change[1]:
            change[1]["phase"] = change[1].pop("stage")
    return changes


async def stop_in_an_older_release() -> MemoryStore:
    new, old = MemoryStore(), MemoryStore()
    await make(new).run("go", checkpoint_id="k")
    await old.append("k", 0, [age(record) for record in await new.load("k")])
    return old


def test_a_run_of_an_earlier_version_is_resumed_and_goes_on_in_this_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(journal.MIGRATIONS, VERSION - 1, migrate)

    async def scene() -> Any:
        store = await stop_in_an_older_release()
        result = await make(store).resume("k", True)
        fresh = MemoryStore()
        await fresh.append("k", 0, await store.load("k"))  # so that nothing is remembered of it
        return result, await make(fresh).session("k").result()

    result, stored = play(scene())
    assert [message.content for message in result.messages] == ["go", "", "posted", "done"]
    assert list(stored.messages) == list(result.messages)


def test_a_version_that_nothing_migrates_is_an_error_that_names_it():
    async def scene() -> None:
        with pytest.raises(SchemaVersionError, match=f"has version {VERSION - 1}"):
            await make(await stop_in_an_older_release()).resume("k", True)

    play(scene())


@pytest.mark.parametrize("record", [[["version", VERSION + 1], ["new", 7]], [["by", "x"], ["version", VERSION + 1]]])
def test_a_run_that_a_newer_release_went_on_with_is_an_error_that_names_the_version(record: list[Any]):
    async def scene() -> None:
        store = MemoryStore()
        await make(store).run("go", checkpoint_id="k")
        await store.append("k", len(await store.load("k")), [msgspec.msgpack.encode(record)])
        with pytest.raises(SchemaVersionError, match=f"has version {VERSION + 1}; this release reads"):
            await make(store).resume("k", True)

    play(scene())
