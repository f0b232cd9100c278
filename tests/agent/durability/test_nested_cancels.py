"""A cancel meets an interrupt, or an agent inside a tool."""

import asyncio
import threading
from typing import Any

import pytest

import suture
from suture import ChatModelAgent, ChatModelAgentMiddleware, Outcome, tool
from suture.testing import ScriptedModel
from tests.agent.durability.bench import Bench, both
from tests.agent.durability.scenes import STOPPED, UNKNOWN, AnyStore, acceptable, make, play, results, seen, start, turn


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
        run = agent.stream("go", checkpoint_id="k")
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
        done = await agent.resume("k", answers={again.interrupts[0].id: "yes"})
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

            async def after_agent(self, state, outcome):
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
        run = self.agent.stream("go", checkpoint_id="k")
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
        run = family.agent.stream("go", checkpoint_id="k")
        waiting = start(run)
        await family.bench.under_way()
        asked = asyncio.gather(run.cancel("after_tools"), run.cancel("after_tools", recursive=True))
        await asyncio.sleep(0)
        family.bench.go.set()
        await asked
        assert (await waiting).outcome is Outcome.CANCELLED
        assert len(family.inner_model.requests) == 1

    play(scene())


@pytest.mark.parametrize("depth", [1, 2])
def test_an_agent_inside_whose_tool_is_in_a_thread_is_unknown_as_that_is(store: AnyStore, depth: int):
    began, go = threading.Event(), threading.Event()

    @tool
    def pay() -> str:
        """Pay, which nothing stops."""
        began.set()
        go.wait(30)
        return "paid"

    inside = pay
    for level in range(depth):
        call = ("i1", inside.name, {"request": "pay"} if level else {})
        model = ScriptedModel([turn(call), "paid"])
        inside = ChatModelAgent(name=f"agent{level}", description="Pays.", model=model, tools=[inside]).as_tool()
    agent, _ = make([turn(("c1", inside.name, {"request": "pay"})), "done"], inside, checkpoint_store=store)

    async def scene():
        run = agent.stream("go", checkpoint_id="k")
        waiting = start(run)
        await asyncio.to_thread(began.wait, 30)
        result = await run.cancel()
        await waiting
        go.set()
        assert results(result.messages) == [("c1", UNKNOWN.format(inside.name, "c1"))]

    play(scene())


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_agents_inside_one_tool_one_in_a_thread_is_enough(store: AnyStore, order: int):
    began, go = asyncio.Event(), threading.Event()

    @tool
    def pay() -> str:
        """Pay, which nothing stops."""
        loop.call_soon_threadsafe(began.set)
        go.wait(30)
        return "paid"

    @tool
    async def look() -> str:
        """Look, until it is stopped."""
        await asyncio.Event().wait()
        return "seen"

    models = {each.name: ScriptedModel([turn(("i1", each.name, {})), "done"]) for each in (pay, look)}
    inside = [
        ChatModelAgent(name=f"{each.name}er", description="Does it.", model=models[each.name], tools=[each]).as_tool()
        for each in (pay, look)
    ]

    @tool
    async def do_both() -> str:
        """Have both done; a group waits for both to end."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each.endpoint('{"request": "go"}')) for each in inside[::order]]
        return " ".join(task.result() for task in tasks)

    agent, _ = make([turn(("c1", "do_both", {})), "done"], do_both, checkpoint_store=store)

    async def scene():
        nonlocal loop
        loop = asyncio.get_running_loop()
        run = agent.stream("go", checkpoint_id="k")
        waiting = start(run)
        await asyncio.wait_for(began.wait(), 30)
        result = await run.cancel()
        await waiting
        go.set()
        assert results(result.messages) == [("c1", UNKNOWN.format("do_both", "c1"))]

    loop: asyncio.AbstractEventLoop
    play(scene())


def test_a_tool_that_ends_before_an_agent_inside_it_is_unknown(store: AnyStore):
    began, go = [asyncio.Event(), asyncio.Event()], asyncio.Event()

    class Lingers(ChatModelAgentMiddleware[Any]):
        async def after_agent(self, state: Any, outcome: Outcome) -> None:
            await go.wait()

    def agent_that_waits(place: int, *middlewares: Any) -> Any:
        @tool
        async def wait() -> str:
            """Wait until it is stopped."""
            began[place].set()
            await asyncio.Event().wait()
            return "waited"

        model = ScriptedModel([turn(("i1", "wait")), "done"])
        name = f"waiter{place}"
        return ChatModelAgent(
            name=name, description="Waits.", model=model, tools=[wait], middlewares=middlewares
        ).as_tool()

    inside = [agent_that_waits(0), agent_that_waits(1, Lingers())]

    @tool
    async def do_both() -> str:
        """Have both wait; `gather` raises as soon as one is cancelled."""
        return " ".join(await asyncio.gather(*(each.endpoint('{"request": "go"}') for each in inside)))

    agent, _ = make([turn(("c1", "do_both", {})), "done"], do_both, checkpoint_store=store)

    async def scene():
        run = agent.stream("go", checkpoint_id="k")
        waiting = start(run)
        for each in began:
            await each.wait()
        result = await run.cancel()
        await waiting
        assert results(result.messages) == [("c1", UNKNOWN.format("do_both", "c1"))]
        go.set()
        await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})

    play(scene())
