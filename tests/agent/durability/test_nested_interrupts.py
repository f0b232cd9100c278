"""An agent inside an agent inside an agent can interrupt; it is answered through the outermost checkpoint."""

import asyncio
from typing import Any

import pytest

import suture
from suture import ChatModelAgent, ChatModelAgentMiddleware, Outcome, tool
from suture.events import Interrupted, MessageFinished, ModelStarted, ToolFinished, ToolStarted
from suture.stores import MemoryStore
from suture.testing import ScriptedModel
from tests.agent.durability.scenes import (
    CANCELED,
    WIRES,
    AnyStore,
    acceptable,
    journals,
    make,
    names,
    play,
    results,
    roles,
    said,
    seen,
    start,
    turn,
)


class Trail:
    """What happened, and a tool that asks before it has an effect."""

    def __init__(self) -> None:
        self.effects: list[Any] = []
        self.states: list[Any] = []
        trail = self

        @tool
        async def ask(what: str) -> str:
            """Ask."""
            state, found = suture.interrupt_state()
            trail.states.append((what, state if found else "none"))
            answer = await suture.interrupt(what, state=f"state of {what}")
            trail.effects.append((what, answer))
            return f"{what}: {answer}"

        @tool
        async def work(what: str) -> str:
            """Work."""
            trail.effects.append((what, "worked"))
            return f"{what} done"

        self.ask, self.work = ask, work


def child(name: str, replies: Any, *tools: Any, wire: str = "message", **settings: Any) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(replies, wire=wire)
    agent = ChatModelAgent(name=name, description=f"{name}.", model=model, tools=tools, **settings)
    return agent, model


def request(call_id: str, name: str, text: str = "do it") -> tuple[str, str, dict[str, str]]:
    return (call_id, name, {"request": text})


@pytest.mark.parametrize("wire", WIRES)
def test_i3_two_levels_deep(store: AnyStore, wire: str):
    trail = Trail()
    inner, inner_model = child(
        "inner",
        [turn(("i1", "work", {"what": "w"}), ("i2", "ask", {"what": "q"}), wire=wire), "inner done"],
        trail.work,
        trail.ask,
        wire=wire,
    )
    agent, model = make(
        [turn(request("o1", "inner"), wire=wire), "done"], inner.as_tool(), wire=wire, checkpoint_store=store
    )

    async def scene():
        first, paused = await seen(agent.stream("go", checkpoint_id="k"))
        (waiting,) = paused.interrupts
        assert (waiting.info, waiting.run_path, waiting.call_id, waiting.name) == ("q", ("a", "inner"), "i2", "ask")
        assert roles(paused.messages) == ["user", "assistant"]
        assert trail.effects == [("w", "worked")]
        assert [event.checkpoint_id for event in first if isinstance(event, Interrupted)][-1] == "k"
        second, done = await seen(agent.stream(resume="k", answers={waiting.id: "yes"}))
        assert done.output == "done"
        assert trail.effects == [("w", "worked"), ("q", "yes")]
        assert trail.states == [("q", "none"), ("q", "state of q")]
        assert results(done.messages) == [("o1", "inner done")]
        assert results(inner_model.requests[1].messages) == [("i1", "w done"), ("i2", "q: yes")]
        assert (len(inner_model.requests), len(model.requests)) == (2, 2)
        # No event of the first part comes a second time.
        told = names([*first, *second], ToolFinished)
        assert sorted(told) == [("ToolFinished", "i1"), ("ToolFinished", "i2"), ("ToolFinished", "o1")]
        assert len(names([*first, *second], ModelStarted)) == 4
        assert acceptable(done.messages, wire)
        assert acceptable(inner_model.requests[1].messages, wire)

    play(scene())


@pytest.mark.parametrize("wire", WIRES)
def test_i3_three_levels_deep_with_interrupts_on_each(store: AnyStore, wire: str):
    trail = Trail()
    third, third_model = child(
        "third", [turn(("t1", "ask", {"what": "third"}), wire=wire), "third done"], trail.ask, wire=wire
    )
    second, second_model = child(
        "second",
        [turn(request("s1", "third"), ("s2", "ask", {"what": "second"}), wire=wire), "second done"],
        third.as_tool(),
        trail.ask,
        wire=wire,
    )
    agent, model = make(
        [turn(request("f1", "second"), ("f2", "ask", {"what": "first"}), wire=wire), "done"],
        second.as_tool(),
        trail.ask,
        wire=wire,
        checkpoint_store=store,
    )

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        waiting = {interrupt.info: interrupt for interrupt in paused.interrupts}
        assert {info: interrupt.run_path for info, interrupt in waiting.items()} == {
            "first": ("a",),
            "second": ("a", "second"),
            "third": ("a", "second", "third"),
        }
        # From the inside, one by one.
        paused = await agent.resume("k", answers={waiting["third"].id: 3})
        assert {interrupt.id for interrupt in paused.interrupts} == {waiting["first"].id, waiting["second"].id}
        assert (len(third_model.requests), len(second_model.requests)) == (2, 1)
        paused = await agent.resume("k", answers={waiting["first"].id: 1})
        assert {interrupt.id for interrupt in paused.interrupts} == {waiting["second"].id}
        done = await agent.resume("k", answers={waiting["second"].id: 2})
        assert done.output == "done"
        assert trail.effects == [("third", 3), ("first", 1), ("second", 2)]
        assert results(done.messages) == [("f1", "second done"), ("f2", "first: 1")]
        assert results(second_model.requests[1].messages) == [("s1", "third done"), ("s2", "second: 2")]
        assert [len(each.requests) for each in (model, second_model, third_model)] == [2, 2, 2]
        for what in ("first", "second", "third"):
            assert {state for asked, state in trail.states if asked == what} == {"none", f"state of {what}"}

    play(scene())


def test_two_parallel_children_of_the_same_agent_are_two(store: AnyStore):
    trail = Trail()

    def reply(messages: Any) -> Any:
        asked = said(messages[0])
        return turn((f"i-{asked}", "ask", {"what": asked})) if len(messages) == 1 else f"{asked} done"

    inner, inner_model = child("inner", reply, trail.ask)
    agent, _ = make(
        [turn(request("o1", "inner", "x"), request("o2", "inner", "y")), "done"],
        inner.as_tool(),
        checkpoint_store=store,
    )

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        waiting = {interrupt.info: interrupt.id for interrupt in paused.interrupts}
        assert set(waiting) == {"x", "y"}
        assert waiting["x"] != waiting["y"]
        half = await agent.resume("k", answers={waiting["y"]: "why"})
        assert [interrupt.id for interrupt in half.interrupts] == [waiting["x"]]
        assert trail.effects == [("y", "why")]
        done = await agent.resume("k", answers={waiting["x"]: "ex"})
        assert results(done.messages) == [("o1", "x done"), ("o2", "y done")]
        assert trail.effects == [("y", "why"), ("x", "ex")]
        # Each of the two children was asked twice, for its own conversation.
        assert sorted(said(request.messages[0]) for request in inner_model.requests) == ["x", "x", "y", "y"]
        finals = {said(request.messages[0]): results(request.messages) for request in inner_model.requests[2:]}
        assert finals == {"x": [("i-x", "x: ex")], "y": [("i-y", "y: why")]}

    play(scene())


def test_the_same_child_called_in_two_turns_is_two(store: AnyStore):
    trail = Trail()

    def reply(messages: Any) -> Any:
        asked = said(messages[0])
        return turn(("i", "ask", {"what": asked})) if len(messages) == 1 else f"{asked} done"

    inner, _ = child("inner", reply, trail.ask)
    agent, _ = make(
        [turn(request("o", "inner", "x")), turn(request("o", "inner", "y")), "done"],
        inner.as_tool(),
        checkpoint_store=store,
    )

    async def scene():
        first = await agent.run("go", checkpoint_id="k")
        second = await agent.resume("k", answers={first.interrupts[0].id: 1})
        assert [waiting.info for waiting in second.interrupts] == ["y"]
        assert second.interrupts[0].id != first.interrupts[0].id
        done = await agent.resume("k", answers={second.interrupts[0].id: 2})
        assert [text for _, text in results(done.messages)] == ["x done", "y done"]
        assert trail.states == [("x", "none"), ("x", "state of x"), ("y", "none"), ("y", "state of y")]

    play(scene())


@pytest.mark.parametrize("hook", ["before_agent", "before_model_rewrite_state", "after_model_rewrite_state"])
def test_a_hook_of_a_nested_agent_interrupts(store: AnyStore, hook: str):
    async def ask(*_: Any) -> None:
        await suture.interrupt(hook)

    asking = type("Asking", (ChatModelAgentMiddleware,), {hook: ask})()
    inner, inner_model = child("inner", ["inner done"], middlewares=[asking])
    agent, model = make([turn(request("o1", "inner")), "done"], inner.as_tool(), checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        (waiting,) = paused.interrupts
        assert (waiting.info, waiting.run_path) == (hook, ("a", "inner"))
        done = await agent.resume("k", answers={waiting.id: "yes"})
        assert results(done.messages) == [("o1", "inner done")]
        assert (len(inner_model.requests), len(model.requests)) == (1, 2)

    play(scene())


def test_an_approval_in_a_nested_agent_is_given_from_outside(store: AnyStore):
    ran: list[str] = []

    @tool(requires_approval=True)
    async def delete() -> str:
        """Delete."""
        ran.append("delete")
        return "deleted"

    inner, inner_model = child("inner", [turn(("i1", "delete"), ("i2", "delete")), "inner done"], delete)
    agent, _ = make([turn(request("o1", "inner")), "done"], inner.as_tool(), checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        one, two = paused.interrupts
        done = await agent.resume("k", answers={one.id: True, two.id: {"approved": False, "reason": "enough"}})
        assert (done.output, ran) == ("done", ["delete"])
        (_, first), (_, second) = results(inner_model.requests[1].messages)
        assert first == "deleted"
        assert "enough" in second

    play(scene())


def test_i5_values_of_nested_agents_survive_and_stay_their_own(store: AnyStore):
    seen_values: list[Any] = []

    class Keeps(ChatModelAgentMiddleware[Any]):
        def __init__(self, mine: str) -> None:
            self.mine = mine

        def before_model_rewrite_state(self, state, model_context):
            if model_context.turn == 1:
                suture.set_run_local_value("mine", self.mine)
                suture.current_run().session[self.mine] = True

    @tool
    async def look() -> str:
        """Look."""
        await suture.interrupt("?")
        shared = [name for name in ("outer", "inner") if name in suture.current_run().session]
        seen_values.append((suture.get_run_local_value("mine"), shared))
        return "looked"

    inner, _ = child("inner", [turn(("i1", "look")), "inner done"], look, middlewares=[Keeps("inner")])
    agent, _ = make(
        [turn(request("o1", "inner")), turn(("o2", "look")), "done"],
        inner.as_tool(),
        look,
        middlewares=[Keeps("outer")],
        checkpoint_store=store,
    )

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        paused = await agent.resume("k", answers={paused.interrupts[0].id: 1})
        assert paused.outcome is Outcome.INTERRUPTED
        done = await agent.resume("k", answers={paused.interrupts[0].id: 1})
        assert done.output == "done"
        assert seen_values == [(("inner", True), ["outer", "inner"]), (("outer", True), ["outer", "inner"])]
        assert dict(done.session) == {"outer": True, "inner": True}

    play(scene())


def test_a_wrong_answer_to_a_nested_interrupt_changes_nothing(store: AnyStore):
    trail = Trail()

    @tool
    async def strict() -> str:
        """Want a number."""
        return str(await suture.interrupt("how many?", expects=int))

    inner, _ = child("inner", [turn(("i1", "strict")), "inner done"], strict, trail.work)
    agent, _ = make([turn(request("o1", "inner")), "done"], inner.as_tool(), checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        before = await journals(store)
        with pytest.raises(suture.ResumeError):
            await agent.resume("k", answers={paused.interrupts[0].id: "many"})
        assert await journals(store) == before
        done = await agent.resume("k", answers={paused.interrupts[0].id: 3})
        assert done.output == "done"

    play(scene())


def test_a_child_whose_events_are_not_forwarded_still_interrupts_and_resumes(store: AnyStore):
    trail = Trail()
    inner, _ = child("inner", [turn(("i1", "ask", {"what": "q"})), "inner done"], trail.ask)
    agent, _ = make([turn(request("o1", "inner")), "done"], inner.as_tool(forward_events=False), checkpoint_store=store)

    async def scene():
        events, paused = await seen(agent.stream("go", checkpoint_id="k"))
        assert names(events, ToolStarted, MessageFinished) == [("MessageFinished", ""), ("ToolStarted", "o1")]
        assert [waiting.info for waiting in paused.interrupts] == ["q"]
        events, done = await seen(agent.stream(resume="k", answers={paused.interrupts[0].id: "yes"}))
        assert done.output == "done"
        assert trail.effects == [("q", "yes")]
        assert {event.run_path for event in events} == {("a",)}

    play(scene())


def test_a_tool_of_a_nested_agent_that_finished_is_not_run_again_when_the_outer_one_waits(store: AnyStore):
    trail = Trail()
    inner, inner_model = child("inner", [turn(("i1", "work", {"what": "w"})), "inner done"], trail.work)
    agent, _ = make(
        [turn(request("o1", "inner"), ("o2", "ask", {"what": "q"})), "done"],
        inner.as_tool(),
        trail.ask,
        checkpoint_store=store,
    )

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        done = await agent.resume("k", answers={paused.interrupts[0].id: "yes"})
        assert trail.effects == [("w", "worked"), ("q", "yes")]
        assert len(inner_model.requests) == 2
        assert results(done.messages) == [("o1", "inner done"), ("o2", "q: yes")]

    play(scene())


def test_an_agent_inside_that_was_stopped_and_waits_after_a_resume_is_stored_as_waiting(store: AnyStore):
    trail, stuck, goes_on = Trail(), asyncio.Event(), asyncio.Event()

    @tool(idempotent=True)
    async def wait() -> str:
        """Wait, the first time."""
        stuck.set()
        await goes_on.wait()
        return "waited"

    inner, _ = child("inner", [turn(("i1", "wait")), turn(("i2", "ask", {"what": "q"})), "said"], wait, trail.ask)
    agent, _ = make([turn(request("o1", "inner")), "done"], inner.as_tool(), checkpoint_store=store)

    async def scene():
        run = agent.stream("go", checkpoint_id="k")
        waiting = start(run)
        await stuck.wait()
        await run.cancel()
        await waiting
        goes_on.set()
        paused = await agent.resume("k")
        assert (paused.outcome, results(paused.messages)) == (Outcome.INTERRUPTED, [])
        elsewhere = MemoryStore()
        for name, records in (await journals(store)).items():
            await elsewhere.append(name, 0, records)
        other, _ = make(["done"], inner.as_tool(), checkpoint_store=elsewhere)
        assert results((await other.session("k").result()).messages) == []
        done = await other.run("never mind", checkpoint_id="k")
        assert results(done.messages) == [("o1", CANCELED.format("inner", "o1"))]

    play(scene())
