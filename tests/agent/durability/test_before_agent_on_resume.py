"""What `before_agent` may add and change when a run is resumed."""

from typing import Any

import pytest

import suture
from suture import ChatModelAgentMiddleware, Message, Outcome, tool
from suture.events import ToolFinished
from tests.agent.durability.scenes import AnyStore, make, play, results, roles, said, seen, turn
from tests.agent.durability.small_tools import ask, work


def test_an_input_builder_and_before_agent_add_to_the_input_once(store: AnyStore):
    class Greets(ChatModelAgentMiddleware[Any]):
        async def before_agent(self, context):
            if not context.resumed:
                return suture.replace(context, messages=[*context.messages, Message.user("added")])
            return None

    agent, _ = make(
        [turn(("c1", "ask")), "done"],
        ask,
        middlewares=[Greets()],
        input_builder=lambda _, messages: [*messages, Message.user("built")],
        checkpoint_store=store,
    )

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        done = await agent.resume("k", answers={paused.interrupts[0].id: "yes"})
        assert [said(message) for message in done.messages] == ["go", "added", "built", "", "yes", "done"]

    play(scene())


class Arms(ChatModelAgentMiddleware[Any]):
    """Adds a tool and a line to the instruction, and notes how it was called."""

    def __init__(self) -> None:
        self.calls: list[tuple[bool, int]] = []

    async def before_agent(self, context):
        self.calls.append((context.resumed, len(context.messages)))
        return suture.replace(context, instruction=f"{context.instruction} Armed.", tools=[*context.tools, ask, work])


def test_before_agent_runs_again_on_resume_and_its_changes_hold(store: AnyStore):
    arms = Arms()
    agent, model = make(
        [turn(("c1", "ask")), turn(("c2", "work")), "done"],
        middlewares=[arms],
        instruction="Help.",
        checkpoint_store=store,
    )

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        done = await agent.resume("k", answers={paused.interrupts[0].id: "yes"})
        assert arms.calls == [(False, 1), (True, 2)]
        assert results(done.messages) == [("c1", "yes"), ("c2", "worked")]
        assert [request.instruction for request in model.requests] == ["Help. Armed."] * 3
        assert [[info.name for info in request.tool_infos] for request in model.requests] == [["ask", "work"]] * 3

    play(scene())


def test_an_instruction_that_before_agent_changes_on_resume_holds_from_there(store: AnyStore):
    class Tells(ChatModelAgentMiddleware[Any]):
        async def before_agent(self, context):
            return suture.replace(context, instruction="resumed" if context.resumed else "begun")

    agent, model = make([turn(("c1", "ask")), "done"], ask, middlewares=[Tells()], checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        await agent.resume("k", answers={paused.interrupts[0].id: "yes"})
        assert [request.instruction for request in model.requests] == ["begun", "resumed"]

    play(scene())


def test_a_tool_that_before_agent_adds_on_resume_can_be_seen_and_called(store: AnyStore):
    class Grows(ChatModelAgentMiddleware[Any]):
        async def before_agent(self, context):
            return suture.replace(context, tools=[*context.tools, work]) if context.resumed else None

    agent, model = make(
        [turn(("c1", "ask")), turn(("c2", "work")), "done"], ask, middlewares=[Grows()], checkpoint_store=store
    )

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        done = await agent.resume("k", answers={paused.interrupts[0].id: "yes"})
        assert [info.name for info in model.requests[1].tool_infos] == ["ask", "work"]
        assert results(done.messages)[1] == ("c2", "worked")

    play(scene())


def test_return_directly_that_before_agent_sets_holds_on_resume(store: AnyStore):
    class Direct(ChatModelAgentMiddleware[Any]):
        async def before_agent(self, context):
            return suture.replace(context, return_directly={"ask"})

    agent, model = make(
        [turn(("c1", "ask"), ("c2", "work"))], ask, work, middlewares=[Direct()], checkpoint_store=store
    )

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        done = await agent.resume("k", answers={paused.interrupts[0].id: "straight"})
        assert (done.outcome, done.output, len(model.requests)) == (Outcome.FINISHED, "straight", 1)

    play(scene())


def test_a_return_directly_result_survives_a_siblings_interrupt(store: AnyStore):
    ran: list[str] = []

    @tool(return_directly=True)
    async def answer() -> str:
        """Answer."""
        ran.append("answer")
        return "the answer"

    agent, model = make([turn(("c1", "answer"), ("c2", "ask"))], answer, ask, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        events, done = await seen(agent.stream(resume="k", answers={paused.interrupts[0].id: "yes"}))
        assert (done.outcome, done.output, ran, len(model.requests)) == (Outcome.FINISHED, "the answer", ["answer"], 1)
        assert results(done.messages) == [("c1", "the answer"), ("c2", "yes")]
        assert [event.call_id for event in events if isinstance(event, ToolFinished)][-1] in {"c1", "c2"}

    play(scene())


def test_messages_changed_by_before_agent_on_resume_are_an_error(store: AnyStore):
    class Edits(ChatModelAgentMiddleware[Any]):
        def __init__(self) -> None:
            self.on = False

        async def before_agent(self, context):
            if context.resumed and self.on:
                return suture.replace(context, messages=[*context.messages, Message.user("psst")])
            return context

    edits = Edits()
    agent, model = make([turn(("c1", "ask")), "done"], ask, middlewares=[edits], checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        edits.on = True
        with pytest.raises(suture.SutureError, match="messages"):
            await agent.resume("k", answers={paused.interrupts[0].id: "yes"})
        assert len(model.requests) == 1
        # The answer was given, and is not lost by it.
        edits.on = False
        done = await agent.resume("k")
        assert (done.output, roles(done.messages)) == ("done", ["user", "assistant", "tool", "assistant"])
        assert results(done.messages) == [("c1", "yes")]

    play(scene())
