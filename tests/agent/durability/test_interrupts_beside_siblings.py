"""The siblings of a tool that interrupts are not disturbed."""

import asyncio

import pytest

import suture
from suture import tool
from suture.events import Interrupted, ModelStarted, RunFinished, ToolFinished, ToolStarted
from tests.agent.durability.scenes import WIRES, AnyStore, acceptable, make, names, play, results, seen, turn


@pytest.mark.parametrize("wire", WIRES)
def test_i1_finished_siblings_are_not_run_again_and_send_no_second_event(store: AnyStore, wire: str):
    ran: list[str] = []
    finished = asyncio.Event()

    @tool
    async def work(n: int) -> str:
        """Work."""
        ran.append(f"work {n}")
        finished.set()
        return f"worked {n}"

    @tool
    async def ask(n: int) -> str:
        """Ask."""
        await finished.wait()
        answer = await suture.interrupt(n)
        ran.append(f"ask {n}")
        return f"{answer} {n}"

    calls = [("c0", "ask", {"n": 0}), ("c1", "work", {"n": 1}), ("c2", "ask", {"n": 2}), ("c3", "work", {"n": 3})]
    agent, model = make([turn(*calls, wire=wire), "done"], work, ask, wire=wire, checkpoint_store=store)

    async def scene():
        first, paused = await seen(agent.stream("go", checkpoint_id="k"))
        assert ran == ["work 1", "work 3"]
        assert [waiting.call_id for waiting in paused.interrupts] == ["c0", "c2"]
        assert sorted(names(first, ToolFinished)) == [("ToolFinished", "c1"), ("ToolFinished", "c3")]
        assert sorted(names(first, ToolStarted)) == [("ToolStarted", f"c{n}") for n in range(4)]
        assert [type(event) for event in first[-2:]] == [Interrupted, RunFinished]
        second, done = await seen(
            agent.stream(resume="k", answers={waiting.id: "yes" for waiting in paused.interrupts})
        )
        assert sorted(ran) == ["ask 0", "ask 2", "work 1", "work 3"]
        assert sorted(names(second, ToolFinished)) == [("ToolFinished", "c0"), ("ToolFinished", "c2")]
        assert {name[1] for name in names(second, ToolStarted)} == {"c0", "c2"}
        # Results stand in call order, whenever each of them came.
        assert results(done.messages) == [("c0", "yes 0"), ("c1", "worked 1"), ("c2", "yes 2"), ("c3", "worked 3")]
        assert acceptable(done.messages, wire)
        assert len(model.requests) == 2
        # The model is asked once in each of the two.
        assert len(names([*first, *second], ModelStarted)) == 2

    play(scene())


def test_i1_a_slow_sibling_finishes_before_the_run_stops(store: AnyStore):
    asked, ran = asyncio.Event(), list[str]()

    @tool
    async def ask() -> str:
        """Ask."""
        asked.set()
        return str(await suture.interrupt("?"))

    @tool
    async def slow() -> str:
        """Work on while the other one waits."""
        await asked.wait()
        for _ in range(5):
            await asyncio.sleep(0)
        ran.append("slow")
        return "slow result"

    agent, _ = make([turn(("c1", "ask"), ("c2", "slow")), "done"], ask, slow, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        assert (ran, len(paused.interrupts)) == (["slow"], 1)
        done = await agent.resume("k", answers={paused.interrupts[0].id: "yes"})
        assert ran == ["slow"]
        assert results(done.messages) == [("c1", "yes"), ("c2", "slow result")]

    play(scene())


def test_a_sibling_that_raises_beside_an_interrupt_keeps_its_error_and_is_not_run_again(store: AnyStore):
    ran: list[str] = []

    @tool
    async def ask() -> str:
        """Ask."""
        return str(await suture.interrupt("?"))

    @tool
    async def fail() -> str:
        """Fail."""
        ran.append("fail")
        raise ValueError("out of paper")

    agent, _ = make([turn(("c1", "ask"), ("c2", "fail")), "done"], ask, fail, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        done = await agent.resume("k", answers={paused.interrupts[0].id: "yes"})
        assert ran == ["fail"]
        (_, first), (_, second) = results(done.messages)
        assert first == "yes"
        assert "ValueError" in second
        assert "out of paper" in second

    play(scene())


def test_sequential_calls_behind_an_interrupt_have_not_begun(store: AnyStore):
    ran: list[str] = []

    @tool
    async def work(n: int) -> str:
        """Work."""
        ran.append(f"work {n}")
        return f"worked {n}"

    @tool
    async def ask() -> str:
        """Ask."""
        return str(await suture.interrupt("?"))

    calls = [("c1", "work", {"n": 1}), ("c2", "ask"), ("c3", "work", {"n": 3})]
    agent, _ = make([turn(*calls), "done"], work, ask, sequential=True, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        assert ran == ["work 1"]
        done = await agent.resume("k", answers={paused.interrupts[0].id: "yes"})
        assert ran == ["work 1", "work 3"]
        assert results(done.messages) == [("c1", "worked 1"), ("c2", "yes"), ("c3", "worked 3")]

    play(scene())
