"""`agent.advance`: a run over a store, one step at a time, by whoever comes; and what resuming costs."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

import suture
from suture import ChatModelAgent, ChatModelAgentMiddleware, Message, Outcome, ResumeError, tool
from suture.stores import MemoryStore
from suture.testing import ScriptedModel
from tests.agent.durability.scenes import WIRES, acceptable, make, play, results, turn
from tests.agent.durability.small_tools import ask, look
from tests.agent.durability.victim import Cast, Counted, Snapshots


async def step_through(agent: ChatModelAgent[Any], name: str) -> list[str]:
    """Advance a run that has begun until it ends; return the phases that it came through."""
    phases: list[str] = []
    while not phases or phases[-1] != "end":
        standing = await agent.advance(name)
        assert len(msgspec.msgpack.encode(standing)) < 100
        assert len(msgspec.json.encode(standing)) < 100
        phases.append(standing.phase)
    return phases


@pytest.mark.parametrize("wire", WIRES)
def test_a_whole_run_goes_step_by_step_through_processes_of_one_step_each(wire: str):
    async def scene():
        effects, store = Counted(), MemoryStore()
        assert (await Cast("long", wire, store, effects).agent.advance("k", "go")).phase == "after"
        phases: list[str] = []
        while not phases or phases[-1] != "end":
            moved = MemoryStore()  # each step is another process's
            await moved.append("k", 0, await store.load("k"))
            store = moved
            phases.append((await Cast("long", wire, store, effects).agent.advance("k")).phase)
        assert phases == ["tools", "gathered", "model", "after", "tools", "gathered", "model", "after", "end"]
        assert effects.all() == ["post 1", "post 2", "post 3", "post 4"]
        done = await Cast("long", wire, store, effects).agent.run("next", checkpoint_id="k")
        assert [text for _, text in results(done.messages)] == ["posted 1", "posted 2", "posted 3", "posted 4"]
        assert acceptable(done.messages, wire)

    play(scene())


@pytest.mark.parametrize("scene_name", ["long", "deep"])
def test_a_run_that_is_killed_between_any_two_writes_goes_on_step_by_step(scene_name: str):
    async def scene():
        effects = Counted()
        store = Snapshots(effects)
        agent = Cast(scene_name, "message", store, effects).agent
        await agent.advance("k", "go")
        await step_through(agent, "k")
        assert len(store.taken) > 8
        for journals, before in store.taken[:-1]:
            again = Counted(before)
            left = await store.restore(journals)
            cast = Cast(scene_name, "message", left, again)
            await step_through(cast.agent, "k")
            assert len(again.all()) == len(set(again.all())), "something ran twice"
            assert set(before) <= set(again.all())
            with pytest.raises(ResumeError, match="finished"):
                await cast.agent.advance("k")

    play(scene())


@pytest.mark.parametrize("repeated", ["by the same process", "by another one"])
def test_calls_of_the_last_turn_do_not_lose_what_it_said(repeated: str):
    async def scene():
        store = MemoryStore()
        replies = [turn(("c1", "look")), turn(("c1", "look"), text="half of it")]
        agent, _ = make(replies, look, max_iterations=1, on_max_iterations="answer", checkpoint_store=store)
        standing = await agent.advance("k", "go")
        while standing.phase != "end":
            if repeated == "by another one":
                moved = MemoryStore()
                await moved.append("k", 0, await store.load("k"))
                store, agent = moved, suture.replace(agent, checkpoint_store=moved)
            standing = await agent.advance("k")
        result = await agent.session("k").result()
        assert (result.outcome, result.output, len(result.messages)) == (Outcome.FINISHED, "half of it", 5)

    play(scene())


def test_a_step_that_waits_for_an_answer_stays_where_it_is():
    async def scene():
        agent, _ = make([turn(("c1", "ask")), "done"], ask, checkpoint_store=MemoryStore())
        await agent.advance("k", "go")
        assert (await agent.advance("k")).phase == "tools"
        for _ in range(2):
            standing = await agent.advance("k")
            assert (standing.phase, standing.turn) == ("tools", 1)
        assert (await agent.advance("k", answers={"c1": "yes"})).phase == "gathered"
        assert (await step_through(agent, "k"))[-1] == "end"

    play(scene())


def test_a_step_that_fails_raises_and_can_be_tried_again():
    async def scene():
        agent, _ = make([ConnectionError("down"), "done"], checkpoint_store=MemoryStore())
        with pytest.raises(ConnectionError):
            await agent.advance("k", "go")
        assert (await agent.advance("k")).phase == "after"

    play(scene())


# --- what resuming costs --------------------------------------------------------------------------


class Counting(MemoryStore):
    """A store that says from which record on it was read, and how much that was."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[tuple[int, int]] = []

    async def load(self, run: str, first: int = 0) -> list[bytes]:
        found = await super().load(run, first)
        self.loads.append((first, len(found)))
        return found


def talker(store: Any, **settings: Any) -> ChatModelAgent[Any]:
    model = ScriptedModel(lambda messages: f"answer {len(messages)}")
    return ChatModelAgent(model=model, checkpoint_store=store, **settings)


def test_a_conversation_in_one_process_is_not_read_again_but_for_what_is_new():
    async def scene():
        store = Counting()
        agent = talker(store)
        for number in range(20):
            await agent.run(f"question {number}", checkpoint_id="k")
        assert store.loads[0] == (0, 0)
        assert [count for _, count in store.loads[1:]] == [1] * 19, "the last record alone shows that nobody wrote"
        starts = [first for first, _ in store.loads[1:]]
        assert starts == sorted(starts)
        assert starts[0] > 0
        fresh = talker(await copy(store))
        whole = await fresh.run("and now?", checkpoint_id="k")
        near = await agent.run("and now?", checkpoint_id="k")
        assert whole.messages == near.messages

    play(scene())


async def copy(store: MemoryStore) -> Counting:
    """Return the same journals in a store that no process has seen."""
    other = Counting()
    for run in await store.runs():
        await other.append(run, 0, await store.load(run))
    other.loads.clear()
    return other


def test_what_another_process_wrote_meanwhile_is_read_and_nothing_else():
    async def scene():
        store = Counting()
        mine, theirs = talker(store), talker(store)
        await mine.run("one", checkpoint_id="k")
        elsewhere = await copy(store)
        await talker(elsewhere).run("two", checkpoint_id="k")
        written = (await elsewhere.load("k"))[len(await store.load("k")) :]
        await store.append("k", len(await store.load("k")), written)
        store.loads.clear()
        done = await theirs.run("three", checkpoint_id="k")
        assert store.loads == [(store.loads[0][0], len(written) + 1)]
        assert [message.content for message in done.messages[::2]] == ["one", "two", "three"]

    play(scene())


@pytest.mark.parametrize("change", ["deleted", "replaced", "shortened"])
def test_a_journal_that_was_changed_under_a_remembered_run_is_noticed(change: str):
    async def scene():
        store = MemoryStore()
        agent = talker(store)
        await agent.run("one", checkpoint_id="k")
        first = await store.load("k")
        await agent.run("two", checkpoint_id="k")
        await store.delete("k")
        if change == "replaced":
            other = MemoryStore()
            for question in ("other one", "other two"):
                await talker(other).run(question, checkpoint_id="k")
            await store.append("k", 0, await other.load("k"))
        if change == "shortened":
            await store.append("k", 0, first)
        done = await agent.run("three", checkpoint_id="k")
        said = [message.content for message in done.messages[::2]]
        assert (
            said
            == {
                "deleted": ["three"],
                "replaced": ["other one", "other two", "three"],
                "shortened": ["one", "three"],
            }[change]
        )

    play(scene())


def test_where_what_is_stored_is_redacted_the_journal_is_read_whole():
    def redact(value: Any) -> Any:
        return (
            suture.replace(value, content=value.content.replace("secret", "***"))
            if isinstance(value, Message)
            else value
        )

    async def scene():
        store = Counting()
        agent = talker(store, redact=redact)
        await agent.run("my secret", checkpoint_id="k")
        done = await agent.run("and now?", checkpoint_id="k")
        assert [first for first, _ in store.loads] == [0, 0]
        assert done.messages[0].content == "my ***"

    play(scene())


def test_what_is_remembered_is_not_what_somebody_changes_in_place():
    class Keeps(ChatModelAgentMiddleware[Any]):
        def before_agent(self, context: Any) -> None:
            suture.current_run().session.setdefault("list", [])

    @tool
    async def grow() -> str:
        """Grow the list, and keep it."""
        run = suture.current_run()
        run.session["list"] = [*run.session["list"], len(run.session["list"])]
        return str(await suture.interrupt("?"))

    async def scene():
        agent, _ = make([turn(("c1", "grow")), "done"], grow, middlewares=[Keeps()], checkpoint_store=MemoryStore())
        paused = await agent.run("go", checkpoint_id="k")
        paused.session["list"].append("mine")
        done = await agent.resume("k", "yes")
        assert done.outcome is Outcome.FINISHED
        assert done.session["list"] == [0, 1]

    play(scene())


def test_a_store_that_cannot_be_referred_to_weakly_is_read_whole():
    class Slotted:
        __slots__ = ("inner",)

        def __init__(self) -> None:
            self.inner = MemoryStore()

        async def append(self, run: str, first: int, records: Sequence[bytes], **_: Any) -> None:
            await self.inner.append(run, first, records)

        async def load(self, run: str, first: int = 0) -> list[bytes]:
            return await self.inner.load(run, first)

    async def scene():
        agent = talker(Slotted())
        await agent.run("one", checkpoint_id="k")
        assert len((await agent.run("two", checkpoint_id="k")).messages) == 4

    play(scene())


def test_a_step_whose_caller_is_cancelled_ends_and_can_be_done_again():
    begun, cleaned = asyncio.Event(), list[str]()

    @tool
    async def wait() -> str:
        """Wait."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append("up")
        raise AssertionError

    async def scene():
        store = MemoryStore()
        agent, _ = make([turn(("c1", "wait")), "done"], wait, checkpoint_store=store)
        await agent.advance("k", "go")
        await agent.advance("k")
        step = asyncio.create_task(agent.advance("k"))
        await begun.wait()
        step.cancel()
        with pytest.raises(asyncio.CancelledError):
            await step
        assert cleaned == ["up"]
        assert await store.lease("k") is None
        assert (await agent.resume("k")).output == "done"

    play(scene())
