"""A new question on an old checkpoint goes on with that conversation, however its last run ended."""

import asyncio
from typing import Any

import pytest

import suture
from suture import ChatModelAgentMiddleware, Outcome, tool
from suture.events import RunStarted
from tests.agent.durability.scenes import (
    CANCELED,
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
from tests.agent.durability.small_tools import ask, work


@pytest.mark.parametrize("wire", WIRES)
def test_after_a_finished_run(store: AnyStore, wire: str):
    agent, model = make([turn(("c1", "work"), wire=wire), "first", "second"], work, wire=wire, checkpoint_store=store)

    async def scene():
        await agent.run("one", checkpoint_id="k")
        before = await journals(store)
        events, done = await seen(agent.stream("two", checkpoint_id="k"))
        assert isinstance(events[0], RunStarted)
        assert events[0].messages == 5
        assert [said(message) for message in model.requests[2].messages if not results([message])] == [
            "one", "", "first", "two"
        ]  # fmt: skip
        assert roles(done.messages) == ["user", "assistant", "tool", "assistant", "user", "assistant"]
        assert (done.output, acceptable(done.messages, wire)) == ("second", True)
        # What was written stays as it was: the journal only grows.
        after = await store.load("k")
        assert after[: len(before["k"])] == before["k"]

    play(scene())


@pytest.mark.parametrize("wire", WIRES)
def test_after_an_interrupt_the_waiting_calls_are_told_to_be_overtaken(store: AnyStore, wire: str):
    ran: list[str] = []

    @tool
    async def act() -> str:
        """Act."""
        ran.append("act")
        return "acted"

    replies = [turn(("c1", "ask"), ("c2", "act"), wire=wire), "done"]
    agent, model = make(replies, ask, act, wire=wire, checkpoint_store=store)

    async def scene():
        paused = await agent.run("one", checkpoint_id="k")
        done = await agent.run("never mind", checkpoint_id="k")
        told = [("c1", CANCELED.format("ask", "c1")), ("c2", "acted")]
        assert results(model.requests[1].messages) == told
        assert roles(model.requests[1].messages) == ["user", "assistant", "tool", "tool", "user"]
        assert (done.outcome, results(done.messages), ran) == (Outcome.FINISHED, told, ["act"])
        assert acceptable(done.messages, wire)
        # The question is gone, so it cannot be answered any more.
        before = await journals(store)
        with pytest.raises(suture.ResumeError):
            await agent.resume("k", answers={paused.interrupts[0].id: "yes"})
        assert await journals(store) == before

    play(scene())


def test_after_an_interrupt_in_before_agent_the_first_question_is_still_there(store: AnyStore):
    class Asks(ChatModelAgentMiddleware[Any]):
        async def before_agent(self, context):
            answer = await suture.interrupt(f"{len(context.messages)} messages")
            return suture.replace(context, instruction=str(answer))

    agent, model = make(["done"], middlewares=[Asks()], checkpoint_store=store)

    async def scene():
        first = await agent.run("one", checkpoint_id="k")
        second = await agent.run("two", checkpoint_id="k")
        assert [waiting.info for waiting in (*first.interrupts, *second.interrupts)] == ["1 messages", "2 messages"]
        with pytest.raises(suture.ResumeError):
            await agent.resume("k", answers={first.interrupts[0].id: "to the first"})
        done = await agent.resume("k", answers={second.interrupts[0].id: "to the second"})
        assert [said(message) for message in done.messages] == ["one", "two", "done"]
        assert [request.instruction for request in model.requests] == ["to the second"]

    play(scene())


@pytest.mark.parametrize("wire", WIRES)
def test_after_a_failure_the_calls_that_finished_keep_their_results(store: AnyStore, wire: str):
    ran: list[str] = []
    finished = asyncio.Event()

    @tool
    async def good() -> str:
        """Work."""
        ran.append("good")
        finished.set()
        return "good result"

    @tool
    async def bad() -> str:
        """Fail."""
        await finished.wait()
        ran.append("bad")
        raise ValueError("broken")

    replies = [turn(("c1", "good"), ("c2", "bad"), wire=wire), "done"]
    agent, model = make(replies, good, bad, wire=wire, tool_errors="raise", checkpoint_store=store)

    async def scene():
        run = agent.stream("one", checkpoint_id="k")
        with pytest.raises(ValueError, match="broken"):
            await run.result()
        assert run.final_result is not None
        assert run.final_result.outcome is Outcome.FAILED
        assert results(run.final_result.messages)[0] == ("c1", "good result")
        assert acceptable(run.final_result.messages, wire)
        done = await agent.run("and now?", checkpoint_id="k")
        told = results(model.requests[1].messages)
        assert told[0] == ("c1", "good result")
        assert [call for call, _ in told] == ["c1", "c2"]
        assert roles(model.requests[1].messages) == ["user", "assistant", "tool", "tool", "user"]
        assert (done.output, sorted(ran)) == ("done", ["bad", "good"])
        assert acceptable(done.messages, wire)

    play(scene())


def test_after_a_failed_model_turn_the_question_is_still_there(store: AnyStore):
    agent, model = make([ValueError("overloaded"), "done"], checkpoint_store=store)

    async def scene():
        with pytest.raises(ValueError, match="overloaded"):
            await agent.run("one", checkpoint_id="k")
        done = await agent.run("two", checkpoint_id="k")
        assert [said(message) for message in model.requests[1].messages] == ["one", "two"]
        assert done.output == "done"

    play(scene())


def test_a_failed_model_turn_is_tried_again_by_a_resume(store: AnyStore):
    ran: list[str] = []

    @tool
    async def act() -> str:
        """Act."""
        ran.append("act")
        return "acted"

    agent, model = make([turn(("c1", "act")), ValueError("overloaded"), "done"], act, checkpoint_store=store)

    async def scene():
        with pytest.raises(ValueError, match="overloaded"):
            await agent.run("one", checkpoint_id="k")
        done = await agent.resume("k")
        assert (done.output, ran, len(model.requests)) == ("done", ["act"], 3)
        assert roles(model.requests[2].messages) == ["user", "assistant", "tool"]

    play(scene())


def test_after_too_many_turns_the_next_question_has_turns_of_its_own(store: AnyStore):
    replies = [turn(("c1", "work")), turn(("c2", "work")), turn(("c3", "work")), "done"]
    agent, model = make(replies, work, max_iterations=2, checkpoint_store=store)

    async def scene():
        with pytest.raises(suture.MaxIterationsExceeded):
            await agent.run("one", checkpoint_id="k")
        done = await agent.run("two", checkpoint_id="k")
        assert (done.output, len(model.requests)) == ("done", 4)
        assert results(done.messages) == [("c1", "worked"), ("c2", "worked"), ("c3", "worked")]
        assert acceptable(done.messages)

    play(scene())


def test_after_a_cancel(store: AnyStore):
    began = asyncio.Event()

    @tool
    async def slow() -> str:
        """Wait."""
        began.set()
        await asyncio.Event().wait()
        return "never"

    agent, model = make([turn(("c1", "slow")), "done", "also done"], slow, checkpoint_store=store)

    async def scene():
        run = agent.stream("one", checkpoint_id="k")
        waiting = start(run)
        await began.wait()
        await run.cancel()
        await waiting
        await agent.run("two", checkpoint_id="k")
        done = await agent.run("three", checkpoint_id="k")
        told = [("c1", STOPPED.format("slow", "c1"))]
        assert [results(request.messages) for request in model.requests[1:]] == [told, told]
        # It is said once, and stays where it was said.
        assert roles(done.messages) == ["user", "assistant", "tool", "user", "assistant", "user", "assistant"]
        assert done.output == "also done"

    play(scene())
