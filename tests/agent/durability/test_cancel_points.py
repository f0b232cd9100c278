"""A run is cancelled at once or at the next safe point, and says truly what became of each call."""

import asyncio
from typing import Any

import pytest

from suture import Outcome, tool
from suture.events import RunFinished
from tests.agent.durability.bench import Bench, both
from tests.agent.durability.scenes import (
    STOPPED,
    WIRES,
    AnyStore,
    acceptable,
    make,
    play,
    results,
    roles,
    seen,
    start,
    turn,
)


@pytest.mark.parametrize("wire", WIRES)
def test_now_stops_a_running_tool_and_keeps_the_finished_one(store: AnyStore, wire: str):
    bench = Bench()
    agent, model = make([both(wire), "done"], bench.quick, bench.slow, wire=wire, checkpoint_store=store)

    async def scene():
        run = agent.stream("go", checkpoint_id="k")
        waiting = start(run)
        await bench.under_way()
        result = await run.cancel()
        assert (result.outcome, result.output, result.escalated) == (Outcome.CANCELLED, None, False)
        assert results(result.messages) == [("c1", "quick result"), ("c2", STOPPED.format("slow", "c2"))]
        assert roles(result.messages) == ["user", "assistant", "tool", "tool"]
        assert acceptable(result.messages, wire)
        assert (bench.ran, bench.cleaned, len(model.requests)) == (["quick", "slow"], ["slow"], 1)
        # Whoever waited for it gets the same.
        assert await waiting is result
        assert run.final_result is result

    play(scene())


@pytest.mark.parametrize("number", [1, 3])
def test_a_cancel_waits_for_the_clean_up_of_every_tool(number: int):
    began, cleaned = asyncio.Event(), list[int]()

    @tool
    async def tidy(n: int) -> str:
        """Take time to stop."""
        if n == number - 1:
            began.set()
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(20):
                await asyncio.sleep(0)
            cleaned.append(n)
        return "never"

    agent, _ = make([turn(*[(f"c{n}", "tidy", {"n": n}) for n in range(number)])], tidy)

    async def scene():
        run = agent.stream("go")
        waiting = start(run)
        await began.wait()
        result = await run.cancel()
        assert sorted(cleaned) == list(range(number))
        assert await waiting is result
        assert results(result.messages) == [(f"c{n}", STOPPED.format("tidy", f"c{n}")) for n in range(number)]

    play(scene())


def test_the_events_of_a_cancelled_run_are_whole(store: AnyStore):
    bench = Bench()
    agent, _ = make([both()], bench.quick, bench.slow, checkpoint_store=store)

    async def scene():
        run = agent.stream("go", checkpoint_id="k")
        reading = asyncio.ensure_future(seen(run))
        await bench.under_way()
        await run.cancel()
        events, result = await reading
        last = events[-1]
        assert isinstance(last, RunFinished)
        assert (last.outcome, result.outcome) == ("cancelled", Outcome.CANCELLED)

    play(scene())


@pytest.mark.parametrize("wire", WIRES)
def test_c1_after_model_stops_before_the_tools_that_were_asked_for(store: AnyStore, wire: str):
    bench = Bench()
    asked = asyncio.Event()

    async def reply(_: Any) -> Any:
        asked.set()
        await bench.go.wait()
        return both(wire)

    agent, _ = make([reply, "done"], bench.quick, bench.slow, wire=wire, checkpoint_store=store)

    async def scene():
        run = agent.stream("go", checkpoint_id="k")
        waiting = start(run)
        await asked.wait()
        cancelling = asyncio.ensure_future(run.cancel("after_model"))
        await asyncio.sleep(0)
        assert not cancelling.done()
        bench.go.set()
        result = await cancelling
        assert (result.outcome, bench.ran) == (Outcome.CANCELLED, [])
        assert [call for call, _ in results(result.messages)] == ["c1", "c2"]
        assert acceptable(result.messages, wire)
        await waiting
        # They had not begun, so a resume runs them: once.
        done = await agent.resume("k")
        assert done.output == "done"
        assert results(done.messages) == [("c1", "quick result"), ("c2", "slow result")]
        assert sorted(bench.ran) == ["quick", "slow", "slow's effect"]

    play(scene())


@pytest.mark.parametrize("at", ["after_model", "after_tools"])
def test_c1_a_final_answer_is_never_cancelled(at: Any):
    asked, go = asyncio.Event(), asyncio.Event()

    async def reply(_: Any) -> Any:
        asked.set()
        await go.wait()
        return "the answer"

    agent, _ = make([reply])

    async def scene():
        run = agent.stream("go")
        waiting = start(run)
        await asked.wait()
        cancelling = asyncio.ensure_future(run.cancel(at))
        await asyncio.sleep(0)
        go.set()
        result = await cancelling
        assert (result.outcome, result.output) == (Outcome.FINISHED, "the answer")
        assert await waiting is result

    play(scene())


def test_c1_after_tools_waits_for_the_whole_batch(store: AnyStore):
    bench = Bench()
    agent, model = make([both(), "done"], bench.quick, bench.slow, checkpoint_store=store)

    async def scene():
        run = agent.stream("go", checkpoint_id="k")
        waiting = start(run)
        await bench.under_way()
        cancelling = asyncio.ensure_future(run.cancel("after_tools"))
        await asyncio.sleep(0)
        bench.go.set()
        result = await cancelling
        await waiting
        assert (result.outcome, len(model.requests)) == (Outcome.CANCELLED, 1)
        assert results(result.messages) == [("c1", "quick result"), ("c2", "slow result")]
        done = await agent.resume("k")
        assert (done.output, bench.ran) == ("done", ["quick", "slow", "slow's effect"])
        assert results(model.requests[1].messages) == results(result.messages)

    play(scene())


def test_c1_after_model_asked_for_during_the_tools_lets_them_end_and_stops_behind_the_next_turn_with_calls():
    bench = Bench()
    agent, model = make([both(), turn(("c3", "quick")), "done"], bench.quick, bench.slow)

    async def scene():
        run = agent.stream("go")
        waiting = start(run)
        await bench.under_way()
        cancelling = asyncio.ensure_future(run.cancel("after_model"))
        await asyncio.sleep(0)
        bench.go.set()
        result = await cancelling
        await waiting
        assert (result.outcome, len(model.requests)) == (Outcome.CANCELLED, 2)
        assert results(result.messages)[:2] == [("c1", "quick result"), ("c2", "slow result")]
        assert bench.ran == ["quick", "slow", "slow's effect"]
        assert acceptable(result.messages)

    play(scene())


@pytest.mark.parametrize("at", ["after_model", "after_tools"])
def test_c2_a_timeout_escalates_and_the_checkpoint_is_still_saved(store: AnyStore, at: Any):
    bench = Bench()
    agent, _ = make([both(), "done"], bench.quick, bench.slow, checkpoint_store=store)

    async def scene():
        run = agent.stream("go", checkpoint_id="k")
        waiting = start(run)
        await bench.under_way()
        result = await run.cancel(at, timeout=0.01)
        await waiting
        assert (result.outcome, result.escalated) == (Outcome.CANCELLED, True)
        assert results(result.messages) == [("c1", "quick result"), ("c2", STOPPED.format("slow", "c2"))]
        assert bench.cleaned == ["slow"]
        done = await agent.resume("k")
        assert (done.output, bench.ran.count("quick")) == ("done", 1)

    play(scene())


def test_c2_a_point_that_is_reached_in_time_is_no_escalation():
    bench = Bench()
    agent, _ = make([both(), "done"], bench.quick, bench.slow)

    async def scene():
        run = agent.stream("go")
        waiting = start(run)
        await bench.under_way()
        cancelling = asyncio.ensure_future(run.cancel("after_tools", timeout=60))
        await asyncio.sleep(0)
        bench.go.set()
        result = await cancelling
        await waiting
        assert (result.outcome, result.escalated) == (Outcome.CANCELLED, False)

    play(scene())
