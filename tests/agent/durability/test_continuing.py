"""A new question on an old checkpoint goes on with that conversation, however its last run ended."""

import asyncio
from typing import Any

import pytest

import suture
from suture import ChatModelAgent, ChatModelAgentMiddleware, Message, Outcome, tool
from suture.events import RunStarted
from suture.stores import MemoryStore
from suture.testing import ScriptedModel
from suture.wires import get_chat_wire
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


@tool
async def ask() -> str:
    """Ask."""
    return str(await suture.interrupt("?"))


@tool
async def work() -> str:
    """Work."""
    return "worked"


@pytest.mark.parametrize("wire", WIRES)
def test_after_a_finished_run(store: AnyStore, wire: str):
    agent, model = make([turn(("c1", "work"), wire=wire), "first", "second"], work, wire=wire, checkpoint_store=store)

    async def scene():
        await agent.run("one", checkpoint_id="k")
        before = await journals(store)
        events, done = await seen(agent.run("two", checkpoint_id="k"))
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
            await agent.resume("k", {paused.interrupts[0].id: "yes"})
        assert await journals(store) == before

    play(scene())


def test_after_an_interrupt_in_before_agent_the_first_question_is_still_there(store: AnyStore):
    class Asks(ChatModelAgentMiddleware[Any]):
        async def before_agent(self, context, /):
            answer = await suture.interrupt(f"{len(context.messages)} messages")
            return suture.replace(context, instruction=str(answer))

    agent, model = make(["done"], middlewares=[Asks()], checkpoint_store=store)

    async def scene():
        first = await agent.run("one", checkpoint_id="k")
        second = await agent.run("two", checkpoint_id="k")
        assert [waiting.info for waiting in (*first.interrupts, *second.interrupts)] == ["1 messages", "2 messages"]
        with pytest.raises(suture.ResumeError):
            await agent.resume("k", {first.interrupts[0].id: "to the first"})
        done = await agent.resume("k", {second.interrupts[0].id: "to the second"})
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
        run = agent.run("one", checkpoint_id="k")
        with pytest.raises(ValueError, match="broken"):
            await run
        assert run.result is not None
        assert run.result.outcome is Outcome.FAILED
        assert results(run.result.messages)[0] == ("c1", "good result")
        assert acceptable(run.result.messages, wire)
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
        run = agent.run("one", checkpoint_id="k")
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


def test_a_question_can_interrupt_and_be_resumed_on_a_conversation_that_went_on(store: AnyStore):
    replies = [turn(("c1", "ask")), "one done", turn(("c1", "ask")), "two done"]
    agent, _ = make(replies, ask, checkpoint_store=store)

    async def scene():
        first = await agent.run("one", checkpoint_id="k")
        await agent.resume("k", {first.interrupts[0].id: "yes"})
        second = await agent.run("two", checkpoint_id="k")
        assert second.outcome is Outcome.INTERRUPTED
        # An answer from before is for another question, also where call ids start again.
        assert second.interrupts[0].id != first.interrupts[0].id
        with pytest.raises(suture.ResumeError):
            await agent.resume("k", {first.interrupts[0].id: "yes"})
        done = await agent.resume("k", {second.interrupts[0].id: "no"})
        assert (done.output, results(done.messages)) == ("two done", [("c1", "yes"), ("c1", "no")])

    play(scene())


def test_values_of_the_conversation(store: AnyStore):
    found: list[Any] = []

    class Counts(ChatModelAgentMiddleware[Any]):
        def before_model_rewrite_state(self, state, model_context, /):
            value, known = suture.get_session_value("count")
            found.append((value, known, suture.get_run_local_value("mine")))
            suture.set_session_value("count", (value or 0) + 1)
            suture.set_run_local_value("mine", "x")

    agent, _ = make(["one", "two"], middlewares=[Counts()], checkpoint_store=store)

    async def scene():
        await agent.run("one", checkpoint_id="k")
        done = await agent.run("two", checkpoint_id="k")
        # Session values are the conversation's.
        assert found[0] == (None, False, (None, False))
        assert found[1][:2] == (1, True)
        assert done.session["count"] == 2

    play(scene())


@pytest.mark.parametrize("ended", ["finished", "interrupted", "cancelled"])
def test_an_agent_inside_begins_anew_with_each_question(store: AnyStore, ended: str):
    began = asyncio.Event()

    @tool
    async def act() -> str:
        """Act, in the first question only."""
        if ended == "interrupted":
            await suture.interrupt("?")
        if ended == "cancelled":
            began.set()
            await asyncio.Event().wait()
        return "acted"

    inner_model = ScriptedModel(lambda messages: turn(("i1", "act")) if said(messages[-1]) == "old" else "inner answer")
    inner = ChatModelAgent(name="inner", description="Inner.", model=inner_model, tools=[act])
    old, new = turn(("o1", "inner", {"request": "old"})), turn(("o1", "inner", {"request": "new"}))
    replies = [old, "first", new, "second"] if ended == "finished" else [old, new, "second"]
    agent, _ = make(replies, inner.as_tool(), checkpoint_store=store)

    async def scene():
        run = agent.run("one", checkpoint_id="k")
        waiting = start(run)
        if ended == "cancelled":
            await began.wait()
            await run.cancel()
        assert (await waiting).outcome == ended
        asked = len(inner_model.requests)
        done = await agent.run("two", checkpoint_id="k")
        assert (done.output, results(done.messages)[-1]) == ("second", ("o1", "inner answer"))
        assert [[said(message) for message in request.messages] for request in inner_model.requests[asked:]] == [
            ["new"]
        ]

    play(scene())


def test_ids_of_messages_are_unique_in_a_conversation(store: AnyStore):
    agent, _ = make([turn(("c1", "work")), "one", turn(("c1", "work")), "two"], work, checkpoint_store=store)

    async def scene():
        first = await agent.run("one", checkpoint_id="k")
        second = await agent.run("two", checkpoint_id="k")
        assert second.message_ids[: len(first.message_ids)] == first.message_ids
        ids = [message_id for message_id in second.message_ids if message_id]
        assert len(ids) == 6
        assert len(set(ids)) == 6

    play(scene())


def test_several_messages_and_a_broken_history_can_be_appended(store: AnyStore):
    agent, model = make(["one", "two"], work, checkpoint_store=store)

    async def scene():
        await agent.run("hello", checkpoint_id="k")
        more = [turn(("x1", "work"), text="imported"), Message.user("and?")]
        done = await agent.run(more, checkpoint_id="k")
        assert results(model.requests[1].messages) == [("x1", CANCELED.format("work", "x1"))]
        assert roles(model.requests[1].messages) == ["user", "assistant", "assistant", "tool", "user"]
        assert acceptable(model.requests[1].messages)
        assert done.output == "two"

    play(scene())


def test_conversations_do_not_see_each_other(store: AnyStore):
    agent, model = make(lambda messages: f"{len(messages)} seen", checkpoint_store=store)

    async def scene():
        for name in ("k", "k2", "k/nested", "K"):
            assert (await agent.run("hello", checkpoint_id=name)).output == "1 seen"
        assert (await agent.run("again", checkpoint_id="k")).output == "3 seen"
        assert len(model.requests) == 5

    play(scene())


@pytest.mark.parametrize("wire", WIRES)
def test_the_journal_and_the_messages_tell_the_same(wire: str):
    store = MemoryStore()
    replies = [turn(("c1", "work"), wire=wire), turn(("c2", "ask"), wire=wire), "done"]
    agent, _ = make(replies, work, ask, wire=wire, checkpoint_store=store)
    reader, model = make(["read"], work, ask, wire=wire, checkpoint_store=store)

    async def scene():
        paused = await agent.run("one", checkpoint_id="k")
        done = await agent.resume("k", {paused.interrupts[0].id: "yes"})
        read = await reader.run("two", checkpoint_id="k")
        assert list(read.messages[: len(done.messages)]) == list(done.messages)
        assert list(model.requests[0].messages) == [*done.messages, get_chat_wire(wire).user("two")]
        assert read.message_ids[: len(done.message_ids)] == done.message_ids

    play(scene())


def test_two_runs_of_one_conversation_at_once_cannot_both_be_written(store: AnyStore):
    go, asked = asyncio.Event(), asyncio.Event()

    async def reply(_: Any) -> str:
        if len(model.requests) == 3:
            asked.set()
        await go.wait()
        return "done"

    agent, model = make(reply, checkpoint_store=store)

    async def scene():
        go.set()
        await agent.run("zero", checkpoint_id="k")
        go.clear()
        one, two = start(agent.run("one", checkpoint_id="k")), start(agent.run("two", checkpoint_id="k"))
        # Both have begun: each asks the model, or one has been turned away.
        both_asked = asyncio.ensure_future(asked.wait())
        await asyncio.wait([one, two, both_asked], return_when=asyncio.FIRST_COMPLETED)
        both_asked.cancel()
        go.set()
        both = await asyncio.gather(one, two, return_exceptions=True)
        won = [each for each in both if isinstance(each, suture.RunResult)]
        lost = [each for each in both if isinstance(each, BaseException)]
        assert (len(won), len(lost)) == (1, 1)
        assert isinstance(lost[0], suture.SutureError)
        after = await agent.run("three", checkpoint_id="k")
        assert [said(message) for message in after.messages][-4:-2] == [said(won[0].messages[-2]), "done"]
        assert acceptable(after.messages)

    play(scene())


def test_a_checkpoint_id_without_a_store_is_an_error_that_says_so():
    agent, model = make(["done"])

    async def scene():
        with pytest.raises(suture.ConfigError, match="checkpoint_store"):
            await agent.run("go", checkpoint_id="k")
        assert model.requests == []

    play(scene())
