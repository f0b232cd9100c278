"""A slow store, a store that fails, a cancel in the middle of a write: still nothing runs twice or is made up."""

import asyncio
from collections.abc import Sequence
from contextvars import Context
from typing import Any

import pytest

import suture
from suture import Outcome, RunContext, tool
from suture.stores import MemoryStore, StoreError
from tests.agent.durability.scenes import STOPPED, UNKNOWN, WIRES, acceptable, make, play, results, seen, turn
from tests.agent.durability.victim import SCRIPTS, Cast, Counted

SCENES = ["long", "deep", "paused"]


class Faulty(MemoryStore):
    """A store in which something happens at one append."""

    def __init__(self, at: int = 0, fault: str = "") -> None:
        super().__init__()
        self.at, self.fault = at, fault
        self.count = 0
        self.run: suture.Run[Any] | None = None
        self.cancelling: asyncio.Task[suture.RunResult[Any]] | None = None

    async def append(self, run: str, first: int, records: Sequence[bytes], **options: Any) -> None:
        """Append, or fail, or cancel the run before or behind it."""
        self.count += 1
        fault = self.fault if self.count == self.at else ""
        if fault == "full" or (self.fault == "broken" and self.count >= self.at):
            raise StoreError("the disk is full")
        if fault == "cancel before":
            await self._cancel()
        await super().append(run, first, records, **options)
        if fault == "cancel behind":
            await self._cancel()

    async def _cancel(self) -> None:
        assert self.run is not None
        loop, outside = asyncio.get_running_loop(), Context()  # a run that cancels itself does not wait for its end
        self.cancelling = loop.create_task(self.run.cancel(), context=outside)
        for _ in range(5):
            await asyncio.sleep(0)


async def appends(scene: str, wire: str) -> int:
    """Return how many appends the scene takes."""
    store = Faulty()
    await Cast(scene, wire, store, Counted()).agent.run("go", checkpoint_id="k")
    return store.count


def check_result(scene: str, wire: str, result: suture.RunResult[Any], effects: Counted) -> None:
    """Check that what is told has happened, once, and that what is told to have been stopped has not."""
    happened = effects.all()
    assert len(happened) == len(set(happened)), "something ran twice"
    if result.outcome is Outcome.INTERRUPTED:
        return
    assert acceptable(result.messages, wire)
    calls = [call for calls in SCRIPTS[scene] for call in calls]
    for (told_id, text), (call_id, name, arguments) in zip(results(result.messages), calls, strict=False):
        assert told_id == call_id
        if name == "post":
            # It ends where it has its effect, so it is never stopped in between.
            effect = f"post {arguments['n']}" in happened
            told = {"posted": f"posted {arguments['n']}", "stopped": STOPPED.format(name, call_id)}
            unknown = UNKNOWN.format(name, call_id)
            assert text in ({told["posted"], unknown} if effect else {told["stopped"], unknown})
        else:
            causes = {cause.format(name, call_id) for cause in (STOPPED, UNKNOWN)}
            assert text.startswith(("done", "asked", "StoreError")) or text in causes


async def see_through(scene: str, wire: str, store: Faulty, effects: Counted) -> None:
    """Resume until the end, and then ask the next question."""
    store.fault = ""
    cast = Cast(scene, wire, store, effects)
    result = None
    if await store.load("k"):
        try:
            result = await cast.agent.resume("k")
            while result.outcome is Outcome.INTERRUPTED:
                result = await cast.agent.resume("k", answers={waiting.id: "yes" for waiting in result.interrupts})
        except suture.ResumeError as error:
            assert "finished" in str(error)  # noqa: PT017 - only a run that had its end
        else:
            assert (result.outcome, result.output) == (Outcome.FINISHED, "done")
            check_result(scene, wire, result, effects)
    done = await cast.agent.run("next", checkpoint_id="k")
    assert done.output == "answered"
    check_result(scene, wire, done, effects)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("fault", ["cancel before", "cancel behind"])
def test_a_cancel_in_the_middle_of_any_write(scene: str, wire: str, fault: str):
    async def at(place: int) -> str:
        store, effects = Faulty(place, fault), Counted()
        cast = Cast(scene, wire, store, effects)
        store.run = cast.agent.stream("go", checkpoint_id="k")
        _, result = await seen(store.run)
        assert store.cancelling is not None
        assert await store.cancelling is result
        assert result.outcome in {Outcome.CANCELLED, Outcome.FINISHED, Outcome.INTERRUPTED}
        check_result(scene, wire, result, effects)
        told = dict(results(result.messages))
        await see_through(scene, wire, store, effects)
        return "kept" if any(text.startswith("posted") for text in told.values()) else "none"

    async def sweep():
        met = [await at(place) for place in range(1, await appends(scene, wire) + 1)]
        assert set(met) == {"kept", "none"}

    play(sweep())


@pytest.mark.parametrize("wire", WIRES)
def test_a_tool_that_finished_before_the_cancel_keeps_its_result_however_slow_the_store_is(wire: str):
    """The effect has happened and the result is being written when the cancel comes."""
    finished: list[str] = []

    class Slow(MemoryStore):
        def __init__(self) -> None:
            super().__init__()
            self.writing, self.go = asyncio.Event(), asyncio.Event()

        async def append(self, run: str, first: int, records: Sequence[bytes], **options: Any) -> None:
            if finished:
                self.writing.set()
                await self.go.wait()
            await super().append(run, first, records, **options)

    @suture.tool
    async def act() -> str:
        """Act."""
        finished.append("act")
        return "acted"

    store = Slow()
    agent, model = make([turn(("c1", "act"), wire=wire), "done"], act, wire=wire, checkpoint_store=store)

    async def scene():
        run = agent.stream("go", checkpoint_id="k")
        reading = asyncio.ensure_future(seen(run))
        await store.writing.wait()
        cancelling = asyncio.ensure_future(run.cancel())
        for _ in range(5):
            await asyncio.sleep(0)
        store.go.set()
        result = await cancelling
        await reading
        assert results(result.messages) == [("c1", "acted")]
        assert (result.outcome, len(model.requests)) == (Outcome.CANCELLED, 1)
        done = await agent.resume("k")
        assert (done.output, results(done.messages), finished) == ("done", [("c1", "acted")], ["act"])

    play(scene())


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("fault", ["full", "broken"])
def test_a_store_that_fails_at_any_write_ends_the_run_with_its_error(scene: str, fault: str):
    async def at(place: int) -> None:
        store, effects = Faulty(place, fault), Counted()
        cast = Cast(scene, "message", store, effects)
        run = cast.agent.stream("go", checkpoint_id="k")
        try:
            await run.result()
        except StoreError as error:
            assert str(error) == "the disk is full"  # noqa: PT017 - both are checked
        else:
            # An agent inside failed with it, like any tool; only that one is told.
            assert dict(results((await run.result()).messages))["o1"] == "StoreError: the disk is full"
            assert (scene, fault) == ("deep", "full")
        assert run.final_result is not None
        check_result(scene, "message", run.final_result, effects)
        await see_through(scene, "message", store, effects)

    async def sweep():
        for place in range(1, await appends(scene, "message") + 1):
            await at(place)

    play(sweep())


@pytest.mark.parametrize("calls", [2, 5])
def test_an_approved_call_whose_beginning_is_not_stored_does_not_run(calls: int):
    """Also if it is the write of the call beside it that failed: no later one is made."""
    ran: list[str] = []

    @tool(requires_approval=True)
    async def pay(ctx: RunContext[Any]) -> str:
        """Pay."""
        ran.append(ctx.call_id)
        return "paid"

    ids = [f"c{number}" for number in range(calls)]
    store = Faulty()
    agent, _ = make([turn(*[(call_id, "pay") for call_id in ids]), "done"], pay, checkpoint_store=store)

    async def scene():
        await agent.run("go", checkpoint_id="k")
        store.at, store.fault = store.count + 2, "full"  # after the answers
        with pytest.raises(StoreError, match="the disk is full"):
            await agent.resume("k", answers=dict.fromkeys(ids, True))
        assert ran == []
        assert (await agent.resume("k")).output == "done"
        assert sorted(ran) == ids

    play(scene())
