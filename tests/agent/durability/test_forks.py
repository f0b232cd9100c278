"""A stored run can go on from any of its checkpoints, under another name; the run itself stays as it was."""

from pathlib import Path
from typing import Any

import pytest

from suture import ChatModelAgent, RunContext, tool
from suture.errors import ConfigError, ResumeError, RunBusyError, SchemaVersionError
from suture.stores import MemoryStore, SQLiteStore, StoreError
from suture.testing import ScriptedModel
from tests.agent.durability.scenes import play, turn


def make(store: MemoryStore | SQLiteStore, keys: list[str]) -> ChatModelAgent[str]:
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


def test_agents_inside_go_on_in_a_fork_where_they_stood(tmp_path: Path):
    keys: list[str] = []

    @tool
    async def post(ctx: RunContext[Any]) -> str:
        """Have an effect, then ask, then have another."""
        keys.append(f"{ctx.idempotency_key} {ctx.turn}")
        return str(await ctx.interrupt("and now?")) if ctx.turn == 2 else "posted"

    def inside(messages: Any) -> Any:
        return turn((f"i{len(messages)}", "post", {})) if len(messages) < 5 else f"said {messages[-1].content}"

    def outside(name: str) -> Any:
        return lambda messages: turn(("c1", name, {"request": "go"})) if len(messages) == 1 else messages[-1].content

    inner = ChatModelAgent(name="inner", description="posts", model=ScriptedModel(inside), tools=[post])
    middle = ChatModelAgent(
        name="middle", description="asks", model=ScriptedModel(outside("inner")), tools=[inner.as_tool()]
    )

    async def scene() -> None:
        agent = ChatModelAgent(model=ScriptedModel(outside("middle")), tools=[middle.as_tool()], checkpoint_store=store)
        paused = await agent.run("go", checkpoint_id="run")
        before = list(keys)
        place = (await agent.checkpoints("run"))[-1].position
        for old, fork in (("run", "one"), ("run", "two"), ("two", "three")):
            await agent.fork(old, place, fork)
            done = await agent.resume(fork, answers={paused.interrupts[0].id: fork})
            assert done.output == f"said {fork}"
        assert (await agent.resume("run", "none")).output == "said none"
        assert [key for key in keys if key.endswith(" 1")] == before[:1]  # what had ended is not done again
        again = [key for key in keys[len(before) :] if key.endswith(" 2")]
        assert len(set(again)) == len(again) == 4  # each is a run of its own

    with SQLiteStore(tmp_path / "runs.db") as store:
        play(scene())


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


def test_a_conversation_that_was_compacted_goes_on_as_before(tmp_path: Path):
    async def scene() -> Any:
        agent = make(store, [])
        outer = ChatModelAgent(
            name="outer",
            model=ScriptedModel(
                lambda messages: "done" if messages[-1].role == "tool" else turn(("o1", "helper", {"request": "go"}))
            ),
            tools=[agent.as_tool(name="helper", description="Helps.")],
            checkpoint_store=store,
        )
        for number in range(5):
            await outer.session("run").run(f"go {number}", key=f"{number}", session={"number": number})
        before, size = await outer.session("run").result(), sum(map(len, await store.load("run")))
        await outer.compact("run")
        after, records = await outer.session("run").result(), await store.load("run")
        again = await outer.session("run").run("go 4", key="4")
        more = await outer.session("run").run("more")
        return before, after, again, more, (size, records), await store.runs()

    with SQLiteStore(tmp_path / "runs.db") as store:
        before, after, again, more, (size, records), runs = play(scene())
    assert (after.output, after.usage, after.session, after.run_id) == (
        before.output,
        before.usage,
        before.session,
        before.run_id,
    )
    assert list(after.messages) == list(before.messages) == list(again.messages) == list(more.messages)[:-4]
    assert (more.session["number"], more.output) == (4, "done")
    assert len(records) == 1
    assert len(records[0]) < size * 0.6
    assert len(runs) == 2  # with the agent that ran inside the last one


def test_what_has_not_finished_is_not_compacted(tmp_path: Path):
    async def scene() -> None:
        @tool(requires_approval=True)
        async def pay() -> str:
            """Pay."""
            return "paid"

        replies = ScriptedModel([turn(("c1", "pay", {})), "done"])
        agent = ChatModelAgent(model=replies, tools=[pay], checkpoint_store=store)
        await agent.run("go", checkpoint_id="run")
        for name in ("run", "never"):
            with pytest.raises(ResumeError, match="has not finished"):
                await agent.compact(name)
        await store.acquire("run", "somebody", 60)
        with pytest.raises(RunBusyError):
            await agent.compact("run")
        await store.release("run", "somebody")
        assert (await agent.resume("run", True)).output == "done"

    with SQLiteStore(tmp_path / "runs.db") as store:
        play(scene())


@pytest.mark.parametrize("position", [0, 1.5])
def test_a_run_is_not_forked_before_it_has_begun(tmp_path: Path, position: Any):
    with SQLiteStore(tmp_path / "runs.db") as store, pytest.raises(ConfigError, match="1 or more"):
        play(make(store, []).fork("run", position, "fork"))


def test_to_compact_a_conversation_leaves_those_alone_whose_ids_begin_like_its_own(tmp_path: Path):
    async def scene() -> None:
        agent = make(store, [])
        await agent.run("go", checkpoint_id="talk")
        await agent.fork("talk", (await agent.checkpoints("talk"))[-1].position, "talk/another way")
        await agent.run("on", checkpoint_id="talk/another way")
        await agent.compact("talk")
        stored = await agent.session("talk/another way").result()
        assert [message.content for message in stored.messages if message.role == "user"] == ["go", "on"]

    with SQLiteStore(tmp_path / "runs.db") as store:
        play(scene())


def test_a_run_that_cannot_be_read_is_named_when_it_is_forked_or_listed(tmp_path: Path):
    async def scene() -> None:
        agent = make(store, [])
        await agent.run("go", checkpoint_id="run")
        count = len(await store.load("run"))
        await store.append("run", count, [b"no record"])
        for work in (agent.fork("run", count + 1, "fork"), agent.checkpoints("run"), agent.resume("run")):
            with pytest.raises(SchemaVersionError, match=f"checkpoint 'run' cannot be read at record {count} "):
                await work

    with SQLiteStore(tmp_path / "runs.db") as store:
        play(scene())


@pytest.mark.parametrize("fails", [1, 2])
def test_a_fork_that_fails_leaves_nothing_that_could_be_resumed(fails: int):
    class Full(MemoryStore):
        fails = -1

        async def append(self, run: str, first: int, records: Any, **options: Any) -> None:
            self.fails -= 1
            if self.fails == 0:
                raise StoreError("the disk is full")
            await super().append(run, first, records, **options)

    async def scene() -> None:
        store = Full()
        agent = make(store, [])
        outer = ChatModelAgent(
            name="outer",
            model=ScriptedModel(
                lambda messages: "done" if messages[-1].role == "tool" else turn(("o1", "helper", {"request": "go"}))
            ),
            tools=[agent.as_tool(name="helper", description="Helps.")],
            checkpoint_store=store,
        )
        await outer.run("go", checkpoint_id="run")
        place = next(at for at, _, phase, *_ in await outer.checkpoints("run") if phase == "tools")
        store.fails = fails
        with pytest.raises(StoreError, match="the disk is full"):
            await outer.fork("run", place, "fork")
        assert await outer.session("fork").status() == "new"
        await outer.fork("run", place, "fork")
        assert (await outer.resume("fork")).output == "done"

    play(scene())
