"""Conversations of several questions keep their values, ids and journal, and do not see each other."""

import asyncio
from typing import Any

import pytest

import suture
from suture import ChatModelAgent, ChatModelAgentMiddleware, Message, Outcome, tool
from suture.stores import MemoryStore
from suture.testing import ScriptedModel
from suture.wires import get_chat_wire
from tests.agent.durability.scenes import (
    CANCELED,
    WIRES,
    AnyStore,
    acceptable,
    make,
    play,
    results,
    roles,
    said,
    start,
    turn,
)
from tests.agent.durability.small_tools import ask, pay, work


def test_a_question_can_interrupt_and_be_resumed_on_a_conversation_that_went_on(store: AnyStore):
    replies = [turn(("c1", "ask")), "one done", turn(("c1", "ask")), "two done"]
    agent, _ = make(replies, ask, checkpoint_store=store)

    async def scene():
        first = await agent.run("one", checkpoint_id="k")
        await agent.resume("k", answers={first.interrupts[0].id: "yes"})
        second = await agent.run("two", checkpoint_id="k")
        assert second.outcome is Outcome.INTERRUPTED
        # An answer from before is for another question, also where call ids start again.
        assert second.interrupts[0].id != first.interrupts[0].id
        with pytest.raises(suture.ResumeError):
            await agent.resume("k", answers={first.interrupts[0].id: "yes"})
        done = await agent.resume("k", answers={second.interrupts[0].id: "no"})
        assert (done.output, results(done.messages)) == ("two done", [("c1", "yes"), ("c1", "no")])

    play(scene())


def test_values_of_the_conversation(store: AnyStore):
    found: list[Any] = []

    class Counts(ChatModelAgentMiddleware[Any]):
        def before_model_rewrite_state(self, state, model_context):
            session = suture.current_run().session
            found.append((session.get("count"), suture.get_run_local_value("mine")))
            session["count"] = session.get("count", 0) + 1
            suture.set_run_local_value("mine", "x")

    agent, _ = make(["one", "two"], middlewares=[Counts()], checkpoint_store=store)

    async def scene():
        await agent.run("one", checkpoint_id="k")
        done = await agent.run("two", checkpoint_id="k")
        # Session values are the conversation's.
        assert found[0] == (None, (None, False))
        assert found[1][0] == 1
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
        run = agent.stream("one", checkpoint_id="k")
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
        done = await agent.resume("k", answers={paused.interrupts[0].id: "yes"})
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
        one, two = start(agent.stream("one", checkpoint_id="k")), start(agent.stream("two", checkpoint_id="k"))
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


def test_an_agent_that_goes_on_with_the_conversation_of_another_is_answered_once(store: AnyStore):
    first, _ = make(["hello"], checkpoint_store=store)
    second, _ = make([turn(("c1", "pay")), "done"], pay, name="b", checkpoint_store=store)

    async def scene():
        await first.run("hi", checkpoint_id="k")
        paused = await second.run("pay", checkpoint_id="k")
        assert [asked.id for asked in paused.interrupts] == ["b#2/1/0/approval/0"]
        done = await second.resume(paused, True)
        assert (done.output, results(done.messages)) == ("done", [("c1", "paid")])

    play(scene())
