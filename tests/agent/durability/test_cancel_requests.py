"""Cancels that meet each other, that come before a run or after its end, and points that are never reached."""

import asyncio
from typing import Any

import pytest

import suture
from suture import Outcome, tool
from suture.events import RunFinished, RunStarted
from tests.agent.durability.bench import Bench, both
from tests.agent.durability.scenes import (
    STOPPED,
    AnyStore,
    acceptable,
    journals,
    make,
    play,
    results,
    said,
    seen,
    start,
    turn,
)


@pytest.mark.parametrize("points", [("after_tools", "now"), ("now", "after_tools"), ("after_model", "now")])
def test_c3_now_dominates_whenever_it_is_said(points: Any):
    bench = Bench()
    agent, _ = make([both(), "done"], bench.quick, bench.slow)

    async def scene():
        run = agent.stream("go")
        waiting = start(run)
        await bench.under_way()
        first, second = await asyncio.gather(run.cancel(points[0]), run.cancel(points[1]))
        await waiting
        assert first is second
        assert (first.outcome, bench.cleaned) == (Outcome.CANCELLED, ["slow"])
        assert results(first.messages)[1] == ("c2", STOPPED.format("slow", "c2"))

    play(scene())


@pytest.mark.parametrize("points", [("after_tools", "after_model"), ("after_model", "after_tools")])
def test_c3_of_two_points_the_first_that_is_reached_counts(points: Any):
    bench = Bench()
    bench.go.set()
    asked, go = asyncio.Event(), asyncio.Event()

    async def reply(_: Any) -> Any:
        asked.set()
        await go.wait()
        return both()

    agent, model = make([reply, "done"], bench.quick, bench.slow)

    async def scene():
        run = agent.stream("go")
        waiting = start(run)
        await asked.wait()
        cancelling = asyncio.gather(run.cancel(points[0]), run.cancel(points[1]))
        await asyncio.sleep(0)
        go.set()
        first, second = await cancelling
        await waiting
        assert first is second
        assert (first.outcome, bench.ran, len(model.requests)) == (Outcome.CANCELLED, [], 1)

    play(scene())


@pytest.mark.parametrize("timeouts", [(60, 0.01), (0.01, 60), (None, 0.01), (0.01, None)])
def test_c3_the_earliest_deadline_counts(timeouts: tuple[float | None, float | None]):
    bench = Bench()
    agent, _ = make([both(), "done"], bench.quick, bench.slow)

    async def scene():
        run = agent.stream("go")
        waiting = start(run)
        await bench.under_way()
        first, second = timeouts
        await asyncio.gather(run.cancel("after_tools", timeout=first), run.cancel("after_tools", timeout=second))
        result = await waiting
        assert (result.outcome, result.escalated) == (Outcome.CANCELLED, True)

    play(scene())


@pytest.mark.parametrize("at", ["now", "after_model", "after_tools"])
def test_a_run_cancelled_before_it_starts_does_nothing(store: AnyStore, at: Any):
    bench = Bench()
    bench.go.set()
    agent, model = make([both(), "done"], bench.quick, bench.slow, checkpoint_store=store)

    async def scene():
        run = agent.stream("go", checkpoint_id="k")
        result = await run.cancel(at)
        assert (await run.result()) is result
        assert result.outcome is Outcome.CANCELLED
        assert (bench.ran, model.requests, result.interrupts) == ([], [], ())
        assert acceptable(result.messages)

    play(scene())


def test_a_resume_cancelled_before_it_starts_leaves_the_checkpoint_as_it_was(store: AnyStore):
    @tool
    async def ask() -> str:
        """Ask."""
        return str(await suture.interrupt("?"))

    agent, _ = make([turn(("c1", "ask")), "done"], ask, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        before = await journals(store)
        answers = {paused.interrupts[0].id: "yes"}
        cancelled = await agent.stream(resume="k", answers=answers).cancel()
        assert cancelled.outcome is Outcome.CANCELLED
        assert await journals(store) == before
        assert (await agent.resume("k", answers=answers)).output == "done"

    play(scene())


@pytest.mark.parametrize("at", ["now", "after_model", "after_tools"])
def test_cancelling_a_run_that_has_ended_gives_its_result(at: Any):
    agent, _ = make(["done"])

    async def scene():
        run = agent.stream("go")
        result = await run.result()
        assert await run.cancel(at) is result
        assert (result.outcome, result.output) == (Outcome.FINISHED, "done")

    play(scene())


def test_cancelling_a_run_that_has_failed_gives_what_there_is():
    agent, _ = make([ValueError("overloaded")])

    async def scene():
        run = agent.stream("go")
        with pytest.raises(ValueError, match="overloaded"):
            await run.result()
        result = await run.cancel()
        assert result is run.final_result
        assert result.outcome is Outcome.FAILED

    play(scene())


def test_a_point_that_does_not_exist_is_refused_and_the_run_goes_on():
    bench = Bench()
    agent, _ = make([both(), "done"], bench.quick, bench.slow)

    async def scene():
        run = agent.stream("go")
        waiting = start(run)
        await bench.under_way()
        with pytest.raises(suture.ConfigError, match="after_lunch"):
            await run.cancel("after_lunch")  # pyright: ignore[reportArgumentType]
        bench.go.set()
        assert (await waiting).output == "done"

    play(scene())


def test_c6_a_point_that_is_never_reached_lets_the_run_end():
    began, go = asyncio.Event(), asyncio.Event()

    async def reply(_: Any) -> str:
        began.set()
        await go.wait()
        return "no tools needed"

    agent, _ = make([reply])

    async def scene():
        run = agent.stream("go")
        waiting = start(run)
        await began.wait()
        cancelling = asyncio.ensure_future(run.cancel("after_tools", timeout=60))
        await asyncio.sleep(0)
        go.set()
        result = await cancelling
        assert (result.outcome, result.output, result.escalated) == (Outcome.FINISHED, "no tools needed", False)
        assert await waiting is result

    play(scene())


def test_c6_a_run_that_fails_before_its_point_fails():
    began, go = asyncio.Event(), asyncio.Event()

    async def reply(_: Any) -> Any:
        began.set()
        await go.wait()
        return ValueError("broken")

    agent, _ = make([reply])

    async def scene():
        run = agent.stream("go")
        waiting = start(run)
        await began.wait()
        cancelling = asyncio.ensure_future(run.cancel("after_tools"))
        await asyncio.sleep(0)
        go.set()
        with pytest.raises(ValueError, match="broken"):
            await waiting
        outcome = await asyncio.gather(cancelling, return_exceptions=True)
        assert run.final_result is not None
        assert run.final_result.outcome is Outcome.FAILED
        assert outcome[0] is run.final_result or isinstance(outcome[0], ValueError)

    play(scene())


def test_a_run_cancelled_twice_in_a_row_ends_once(store: AnyStore):
    bench = Bench()
    agent, _ = make([both(), "done"], bench.quick, bench.slow, checkpoint_store=store)

    async def scene():
        run = agent.stream("go", checkpoint_id="k")
        reading = asyncio.ensure_future(seen(run))
        await bench.under_way()
        first = await run.cancel()
        second = await run.cancel("after_tools")
        assert first is second
        events, _ = await reading
        assert [type(event) for event in events].count(RunFinished) == 1
        assert [type(event) for event in events].count(RunStarted) == 1
        assert [said(message) for message in first.messages if results([message]) == []] == ["go", ""]

    play(scene())
