"""A run is cancelled at once or at the next safe point, and says truly what became of each call."""

import asyncio
from typing import Any

import pytest

import suture
from suture import ChatModelAgent, ChatModelAgentMiddleware, Outcome, tool
from suture.events import RunFinished, RunStarted
from suture.testing import ScriptedModel
from tests.agent.durability.scenes import (
    STOPPED,
    WIRES,
    AnyStore,
    acceptable,
    journals,
    make,
    play,
    results,
    roles,
    said,
    seen,
    start,
    turn,
)


class Bench:
    """Tools that say when they are under way, and wait to be let go."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.cleaned: list[str] = []
        self.began, self.go, self.first = asyncio.Event(), asyncio.Event(), asyncio.Event()
        bench = self

        @tool
        async def quick() -> str:
            """End at once."""
            bench.ran.append("quick")
            bench.first.set()
            return "quick result"

        @tool
        async def slow() -> str:
            """Wait."""
            bench.ran.append("slow")
            bench.began.set()
            try:
                await bench.go.wait()
            finally:
                bench.cleaned.append("slow")
            bench.ran.append("slow's effect")
            return "slow result"

        self.quick, self.slow = quick, slow

    async def under_way(self) -> None:
        await self.began.wait()
        await self.first.wait()


def both(wire: str = "message") -> Any:
    return turn(("c1", "quick"), ("c2", "slow"), wire=wire)


@pytest.mark.parametrize("wire", WIRES)
def test_now_stops_a_running_tool_and_keeps_the_finished_one(store: AnyStore, wire: str):
    bench = Bench()
    agent, model = make([both(wire), "done"], bench.quick, bench.slow, wire=wire, checkpoint_store=store)

    async def scene():
        run = agent.run("go", checkpoint_id="k")
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
        assert run.result is result

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
        run = agent.run("go")
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
        run = agent.run("go", checkpoint_id="k")
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
        run = agent.run("go", checkpoint_id="k")
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
        run = agent.run("go")
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
        run = agent.run("go", checkpoint_id="k")
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
        run = agent.run("go")
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
        run = agent.run("go", checkpoint_id="k")
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
        run = agent.run("go")
        waiting = start(run)
        await bench.under_way()
        cancelling = asyncio.ensure_future(run.cancel("after_tools", timeout=60))
        await asyncio.sleep(0)
        bench.go.set()
        result = await cancelling
        await waiting
        assert (result.outcome, result.escalated) == (Outcome.CANCELLED, False)

    play(scene())


@pytest.mark.parametrize("points", [("after_tools", "now"), ("now", "after_tools"), ("after_model", "now")])
def test_c3_now_dominates_whenever_it_is_said(points: Any):
    bench = Bench()
    agent, _ = make([both(), "done"], bench.quick, bench.slow)

    async def scene():
        run = agent.run("go")
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
        run = agent.run("go")
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
        run = agent.run("go")
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
        run = agent.run("go", checkpoint_id="k")
        result = await run.cancel(at)
        assert (await run) is result
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
        cancelled = await agent.resume("k", answers).cancel()
        assert cancelled.outcome is Outcome.CANCELLED
        assert await journals(store) == before
        assert (await agent.resume("k", answers)).output == "done"

    play(scene())


@pytest.mark.parametrize("at", ["now", "after_model", "after_tools"])
def test_cancelling_a_run_that_has_ended_gives_its_result(at: Any):
    agent, _ = make(["done"])

    async def scene():
        run = agent.run("go")
        result = await run
        assert await run.cancel(at) is result
        assert (result.outcome, result.output) == (Outcome.FINISHED, "done")

    play(scene())


def test_cancelling_a_run_that_has_failed_gives_what_there_is():
    agent, _ = make([ValueError("overloaded")])

    async def scene():
        run = agent.run("go")
        with pytest.raises(ValueError, match="overloaded"):
            await run
        result = await run.cancel()
        assert result is run.result
        assert result.outcome is Outcome.FAILED

    play(scene())


def test_a_point_that_does_not_exist_is_refused_and_the_run_goes_on():
    bench = Bench()
    agent, _ = make([both(), "done"], bench.quick, bench.slow)

    async def scene():
        run = agent.run("go")
        waiting = start(run)
        await bench.under_way()
        with pytest.raises(suture.ConfigError, match="after_lunch"):
            await run.cancel("after_lunch")  # pyright: ignore[reportArgumentType]
        bench.go.set()
        assert (await waiting).output == "done"

    play(scene())


def test_c4_an_interrupt_while_a_cancel_is_pending_is_absorbed_and_comes_again_on_resume(store: AnyStore):
    began, go = asyncio.Event(), asyncio.Event()

    @tool
    async def ask() -> str:
        """Ask."""
        began.set()
        await go.wait()
        return f"answered {await suture.interrupt('sure?')}"

    agent, _ = make([turn(("c1", "ask")), "done"], ask, checkpoint_store=store)

    async def scene():
        run = agent.run("go", checkpoint_id="k")
        reading = asyncio.ensure_future(seen(run))
        await began.wait()
        cancelling = asyncio.ensure_future(run.cancel("after_tools"))
        await asyncio.sleep(0)
        go.set()
        result = await cancelling
        events, _ = await reading
        assert (result.outcome, events[-1].outcome) == (Outcome.CANCELLED, "cancelled")  # pyright: ignore[reportAttributeAccessIssue]
        assert acceptable(result.messages)
        again = await agent.resume("k")
        assert [waiting.info for waiting in again.interrupts] == ["sure?"]
        done = await agent.resume("k", {again.interrupts[0].id: "yes"})
        assert results(done.messages) == [("c1", "answered yes")]
        assert done.output == "done"

    play(scene())


class Family:
    """An agent inside an agent, whose tools wait."""

    def __init__(self, store: Any) -> None:
        self.bench = Bench()
        self.ended: list[str] = []
        family = self

        class Ends(ChatModelAgentMiddleware[Any]):
            def __init__(self, name: str) -> None:
                self.name = name

            async def after_agent(self, state, outcome, /):
                for _ in range(10):
                    await asyncio.sleep(0)
                family.ended.append(f"{self.name} {outcome.value}")

        self.inner_model = ScriptedModel([both(), turn(("c3", "quick")), "inner done"])
        inner = ChatModelAgent(
            name="inner",
            description="Inner.",
            model=self.inner_model,
            tools=[self.bench.quick, self.bench.slow],
            middlewares=[Ends("inner")],
        )
        self.agent, self.model = make(
            [turn(("o1", "inner", {"request": "go"})), "done"],
            inner.as_tool(),
            middlewares=[Ends("outer")],
            checkpoint_store=store,
        )

    async def cancel(self, at: Any, *, recursive: bool) -> suture.RunResult[Any]:
        run = self.agent.run("go", checkpoint_id="k")
        waiting = start(run)
        await self.bench.under_way()
        cancelling = asyncio.ensure_future(run.cancel(at, recursive=recursive))
        if at != "now":
            await asyncio.sleep(0)
            self.bench.go.set()
        result = await cancelling
        assert await waiting is result
        return result


def test_c5_without_recursion_a_nested_agent_runs_to_its_end_before_a_safe_point(store: AnyStore):
    async def scene():
        family = Family(store)
        result = await family.cancel("after_tools", recursive=False)
        assert result.outcome is Outcome.CANCELLED
        assert results(result.messages) == [("o1", "inner done")]
        assert (len(family.inner_model.requests), len(family.model.requests)) == (3, 1)
        assert family.ended == ["inner finished", "outer cancelled"]

    play(scene())


def test_c5_with_recursion_a_nested_agent_stops_at_its_own_point_and_both_resume(store: AnyStore):
    async def scene():
        family = Family(store)
        result = await family.cancel("after_tools", recursive=True)
        assert result.outcome is Outcome.CANCELLED
        assert len(family.inner_model.requests) == 1
        assert family.ended == ["inner cancelled", "outer cancelled"]
        assert acceptable(result.messages)
        done = await family.agent.resume("k")
        assert (done.output, results(done.messages)) == ("done", [("o1", "inner done")])
        # What was done is not done again: the second `quick` is the inner agent's second turn.
        assert family.bench.ran == ["quick", "slow", "slow's effect", "quick"]
        assert len(family.inner_model.requests) == 3
        assert results(family.inner_model.requests[1].messages) == [("c1", "quick result"), ("c2", "slow result")]

    play(scene())


@pytest.mark.parametrize("recursive", [True, False])
def test_c5_now_waits_for_the_clean_up_of_nested_agents(store: AnyStore, recursive: bool):
    async def scene():
        family = Family(store)
        result = await family.cancel("now", recursive=recursive)
        assert result.outcome is Outcome.CANCELLED
        assert family.bench.cleaned == ["slow"]
        assert family.ended == ["inner cancelled", "outer cancelled"]
        assert results(result.messages) == [("o1", STOPPED.format("inner", "o1"))]
        family.bench.go.set()
        done = await family.agent.resume("k")
        assert done.output == "done"
        # Nothing inside is run again; the second `quick` is the inner agent's second turn.
        assert family.bench.ran == ["quick", "slow", "quick"]
        told = [("c1", "quick result"), ("c2", STOPPED.format("slow", "c2"))]
        assert results(family.inner_model.requests[1].messages) == told

    play(scene())


def test_c5_recursion_asked_for_later_is_turned_on(store: AnyStore):
    async def scene():
        family = Family(store)
        run = family.agent.run("go", checkpoint_id="k")
        waiting = start(run)
        await family.bench.under_way()
        asked = asyncio.gather(run.cancel("after_tools"), run.cancel("after_tools", recursive=True))
        await asyncio.sleep(0)
        family.bench.go.set()
        await asked
        assert (await waiting).outcome is Outcome.CANCELLED
        assert len(family.inner_model.requests) == 1

    play(scene())


def test_c6_a_point_that_is_never_reached_lets_the_run_end():
    began, go = asyncio.Event(), asyncio.Event()

    async def reply(_: Any) -> str:
        began.set()
        await go.wait()
        return "no tools needed"

    agent, _ = make([reply])

    async def scene():
        run = agent.run("go")
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
        run = agent.run("go")
        waiting = start(run)
        await began.wait()
        cancelling = asyncio.ensure_future(run.cancel("after_tools"))
        await asyncio.sleep(0)
        go.set()
        with pytest.raises(ValueError, match="broken"):
            await waiting
        outcome = await asyncio.gather(cancelling, return_exceptions=True)
        assert run.result is not None
        assert run.result.outcome is Outcome.FAILED
        assert outcome[0] is run.result or isinstance(outcome[0], ValueError)

    play(scene())


def test_a_run_cancelled_twice_in_a_row_ends_once(store: AnyStore):
    bench = Bench()
    agent, _ = make([both(), "done"], bench.quick, bench.slow, checkpoint_store=store)

    async def scene():
        run = agent.run("go", checkpoint_id="k")
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
