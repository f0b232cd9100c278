"""Whoever waits for a run and is cancelled, leaves or forgets it, ends it."""

import asyncio
import gc
from typing import Any

import pytest

import suture
from suture import ChatModelAgentMiddleware, Outcome, tool
from tests.agent.durability.scenes import STOPPED, AnyStore, make, play, results, start, turn


class Stuck:
    """An agent that hangs in its tool, and what became of it."""

    def __init__(self, **settings: Any) -> None:
        self.began = asyncio.Event()
        self.ended: list[str] = []
        stuck = self

        @tool
        async def hang() -> str:
            """Hang."""
            stuck.began.set()
            try:
                await asyncio.Event().wait()
            finally:
                stuck.ended.append("tool")
            return "never"

        class Ends(ChatModelAgentMiddleware[Any]):
            async def after_agent(self, state, outcome):
                await asyncio.sleep(0)
                stuck.ended.append(outcome.value)

        self.agent, self.model = make([turn(("c1", "hang")), "done"], hang, middlewares=[Ends()], **settings)


def test_a_timeout_around_await_cancels_the_run_and_raises(store: AnyStore):
    async def scene():
        stuck = Stuck(checkpoint_store=store)
        run = stuck.agent.stream("go", checkpoint_id="k")
        waiting = start(run)
        await stuck.began.wait()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(waiting, 0.01)
        assert stuck.ended == ["tool", "cancelled"]
        assert run.final_result is not None
        assert run.final_result.outcome is Outcome.CANCELLED
        assert results(run.final_result.messages) == [("c1", STOPPED.format("hang", "c1"))]
        done = await stuck.agent.run("next", checkpoint_id="k")
        assert results(stuck.model.requests[1].messages) == [("c1", STOPPED.format("hang", "c1"))]
        assert done.output == "done"

    play(scene())


def test_a_timeout_block_around_await_cancels_the_run_and_raises():
    async def scene():
        stuck = Stuck()
        run = stuck.agent.stream("go")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await run.result()
        assert stuck.ended == ["tool", "cancelled"]
        assert run.final_result is not None
        assert run.final_result.outcome is Outcome.CANCELLED

    play(scene())


def test_cancelling_the_task_that_waits_cancels_the_run_and_raises():
    async def scene():
        stuck = Stuck()
        run = stuck.agent.stream("go")
        waiting = start(run)
        await stuck.began.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert stuck.ended == ["tool", "cancelled"]
        assert run.final_result is not None
        assert results(run.final_result.messages) == [("c1", STOPPED.format("hang", "c1"))]

    play(scene())


def test_leaving_the_block_ends_the_run():
    async def scene():
        stuck = Stuck()
        async with stuck.agent.stream("go") as run:
            async for _ in run:
                if stuck.began.is_set():
                    break
            await stuck.began.wait()
        assert stuck.ended == ["tool", "cancelled"]
        assert run.final_result is not None
        assert run.final_result.outcome is Outcome.CANCELLED

    play(scene())


async def fail_inside(run: suture.Run[Any]) -> None:
    async with run:
        async for _ in run:
            raise ZeroDivisionError


def test_an_error_in_the_block_ends_the_run_and_is_not_replaced():
    async def scene():
        stuck = Stuck()
        run = stuck.agent.stream("go")
        with pytest.raises(ZeroDivisionError):
            await fail_inside(run)
        assert run.final_result is not None
        assert run.final_result.outcome is Outcome.CANCELLED

    play(scene())


def test_a_run_that_nobody_refers_to_is_cancelled():
    async def scene():
        stuck = Stuck()
        reading = asyncio.ensure_future(first_events(stuck.agent.stream("go"), stuck.began))
        await reading
        del reading
        gc.collect()
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}), return_exceptions=True)
        assert stuck.ended == ["tool", "cancelled"]

    async def first_events(run: suture.Run[Any], began: asyncio.Event) -> None:
        async for _ in run:
            break
        await began.wait()

    play(scene())


def test_cancelling_whoever_cancels_does_not_lose_the_cancel():
    release = asyncio.Event()

    @tool
    async def lingering() -> str:
        """Take a while to stop."""
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            await release.wait()
        return "never"

    began = asyncio.Event()
    agent, _ = make([turn(("c1", "lingering"))], lingering)

    async def scene():
        run = agent.stream("go")
        waiting = start(run)
        await began.wait()
        impatient = asyncio.ensure_future(run.cancel())
        await asyncio.sleep(0)
        impatient.cancel()
        await asyncio.sleep(0)
        release.set()
        result = await waiting
        with pytest.raises(asyncio.CancelledError):
            await impatient
        assert (result.outcome, results(result.messages)) == (
            Outcome.CANCELLED,
            [("c1", STOPPED.format("lingering", "c1"))],
        )

    play(scene())
