"""Wrappers around tool calls can interrupt; each has an address of its own, apart from the tool's."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

import suture
from suture import AgentMiddleware, ChatModelAgentMiddleware, Outcome, ToolArgument, ToolResult, ToolsConfig, tool
from suture.events import ToolFinished
from suture.messages import TextPart
from tests.agent.durability.scenes import AnyStore, make, names, play, results, seen, turn


def text(content: str) -> ToolResult:
    """Return a result of one part."""
    return ToolResult((TextPart(content),))


class Gate(ChatModelAgentMiddleware[Any]):
    """Asks before any call, keeps state of its own, and says in the result what it was answered."""

    def __init__(self, name: str = "gate") -> None:
        self.name = name
        self.states: list[Any] = []

    async def wrap_tool_call(self, call, proceed):
        state, found = suture.interrupt_state()
        self.states.append(state if found else "none")
        answer = await suture.interrupt(f"{self.name} of {call.call_id}", state=f"{self.name}'s")
        return text(f"{(await proceed(call)).text} [{self.name}: {answer}]")


class PlainGate(ChatModelAgentMiddleware[Any]):
    """Asks before a plain tool."""

    async def wrap_invokable_tool_call(self, endpoint, context):
        async def call(arguments: str, **options: Any) -> str:
            answer = await suture.interrupt("plain")
            return f"{await endpoint(arguments, **options)} [plain: {answer}]"

        return call


class EveryGate(ChatModelAgentMiddleware[Any]):
    """Asks in the wrapper of each kind of tool."""

    async def wrap_invokable_tool_call(self, endpoint, context):
        async def call(arguments: str, **options: Any) -> str:
            return f"{await suture.interrupt('invokable')} {await endpoint(arguments, **options)}"

        return call

    async def wrap_streamable_tool_call(self, endpoint, context):
        async def call(arguments: str, **options: Any) -> AsyncIterator[str]:
            yield f"{await suture.interrupt('streamable')} "
            async for piece in endpoint(arguments, **options):
                yield piece

        return call

    async def wrap_enhanced_invokable_tool_call(self, endpoint, context):
        async def call(argument: ToolArgument, **options: Any) -> ToolResult:
            answer = await suture.interrupt("enhanced_invokable")
            inner = await endpoint(argument, **options)
            assert inner == text("text")
            return text(f"{answer} text")

        return call

    async def wrap_enhanced_streamable_tool_call(self, endpoint, context):
        async def call(argument: ToolArgument, **options: Any) -> AsyncIterator[ToolResult]:
            yield text(f"{await suture.interrupt('enhanced_streamable')} ")
            async for piece in endpoint(argument, **options):
                yield piece

        return call


@tool
async def invokable() -> str:
    """Give a text."""
    return "text"


@tool
async def streamable() -> AsyncIterator[str]:
    """Give pieces."""
    yield "text"


@tool(kind="enhanced_invokable", schema={"type": "object"}, description="Give parts.")
async def enhanced_invokable(argument: ToolArgument) -> ToolResult:
    assert argument.text == "{}"
    return text("text")


@tool(kind="enhanced_streamable", schema={"type": "object"}, description="Give pieces of parts.")
async def enhanced_streamable(argument: ToolArgument) -> AsyncIterator[ToolResult]:
    assert argument.text == "{}"
    yield text("text")


KINDS = [invokable, streamable, enhanced_invokable, enhanced_streamable]


@pytest.mark.parametrize("made", KINDS, ids=lambda made: made.kind)
def test_a_wrapper_for_its_kind_interrupts(store: AnyStore, made: Any):
    agent, _ = make([turn(("c1", made.name)), "done"], made, middlewares=[EveryGate()], checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        (waiting,) = paused.interrupts
        assert (waiting.info, waiting.call_id, waiting.name) == (made.kind, "c1", made.name)
        done = await agent.resume("k", answers={waiting.id: "yes"})
        assert results(done.messages) == [("c1", "yes text")]

    play(scene())


def test_a_streaming_hook_that_runs_again_for_a_changed_result_does_not_ask_again(store: AnyStore):
    class Louder(ChatModelAgentMiddleware[Any]):
        async def wrap_tool_call(self, call, proceed):
            return text((await proceed(call)).text.upper())

    middlewares = [EveryGate(), Louder()]
    agent, _ = make([turn(("c1", "streamable")), "done"], streamable, middlewares=middlewares, checkpoint_store=store)

    async def scene():
        await agent.run("go", checkpoint_id="k")
        assert results((await agent.resume("k", "yes")).messages) == [("c1", "yes TEXT")]

    play(scene())


@pytest.mark.parametrize("made", KINDS, ids=lambda made: made.kind)
def test_a_wrapper_of_any_call_interrupts_for_every_kind(store: AnyStore, made: Any):
    gate = Gate()
    agent, _ = make([turn(("c1", made.name)), "done"], made, middlewares=[gate], checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        (waiting,) = paused.interrupts
        assert (waiting.info, waiting.call_id) == ("gate of c1", "c1")
        done = await agent.resume("k", answers={waiting.id: "yes"})
        assert results(done.messages) == [("c1", "text [gate: yes]")]
        assert gate.states == ["none", "gate's"]

    play(scene())


def test_wrapper_and_tool_both_interrupt_in_one_call_and_keep_apart(store: AnyStore):
    states: list[Any] = []

    @tool
    async def send() -> str:
        """Send."""
        state, found = suture.interrupt_state()
        states.append(state if found else "none")
        return f"sent {await suture.interrupt('tool', state='the tool' + chr(39) + 's')}"

    outer, inner = Gate("outer"), Gate("inner")
    middlewares = [outer, inner, PlainGate()]
    agent, _ = make([turn(("c1", "send")), "done"], send, middlewares=middlewares, checkpoint_store=store)

    async def scene():
        ids: list[str] = []
        result = await agent.run("go", checkpoint_id="k")
        for info, answer in [("outer of c1", "A"), ("inner of c1", "B"), ("plain", "C"), ("tool", "D")]:
            (waiting,) = result.interrupts
            assert waiting.info == info
            ids.append(waiting.id)
            result = await agent.resume("k", answers={waiting.id: answer})
        assert len(set(ids)) == 4
        assert results(result.messages) == [("c1", "sent D [plain: C] [inner: B] [outer: A]")]
        # Nobody reads what another one kept.
        assert set(outer.states) == {"none", "outer's"}
        assert set(inner.states) == {"none", "inner's"}
        assert set(states) == {"none", "the tool's"}
        assert (outer.states[0], inner.states[0], states[0]) == ("none", "none", "none")

    play(scene())


def test_two_wrappers_of_the_same_class_have_addresses_of_their_own(store: AnyStore):
    agent, _ = make(
        [turn(("c1", "invokable")), "done"], invokable, middlewares=[Gate("x"), Gate("x")], checkpoint_store=store
    )

    async def scene():
        first = await agent.run("go", checkpoint_id="k")
        second = await agent.resume("k", answers={first.interrupts[0].id: 1})
        assert second.outcome is Outcome.INTERRUPTED
        assert second.interrupts[0].id != first.interrupts[0].id
        done = await agent.resume("k", answers={second.interrupts[0].id: 2})
        assert results(done.messages) == [("c1", "text [x: 2] [x: 1]")]

    play(scene())


def test_a_wrapper_that_interrupts_behind_the_tool_runs_the_call_again_from_the_top(store: AnyStore):
    ran: list[str] = []

    @tool
    async def work() -> str:
        """Work."""
        ran.append("work")
        return "worked"

    class Review(ChatModelAgentMiddleware[Any]):
        async def wrap_invokable_tool_call(self, endpoint, context):
            async def call(arguments: str, **options: Any) -> str:
                result = await endpoint(arguments, **options)
                return f"{result}, {await suture.interrupt(result)}"

            return call

    agent, _ = make([turn(("c1", "work")), "done"], work, middlewares=[Review()], checkpoint_store=store)

    async def scene():
        events, paused = await seen(agent.stream("go", checkpoint_id="k"))
        assert paused.interrupts[0].info == "worked"
        # The call as a whole has no result yet, so none is told.
        assert names(events, ToolFinished) == []
        done = await agent.resume("k", answers={paused.interrupts[0].id: "good"})
        assert results(done.messages) == [("c1", "worked, good")]
        assert ran == ["work", "work"]

    play(scene())


def test_except_exception_in_a_wrapper_does_not_swallow_the_tools_interrupt(store: AnyStore):
    @tool
    async def ask() -> str:
        """Ask."""
        return str(await suture.interrupt("?"))

    class Careless(ChatModelAgentMiddleware[Any]):
        async def wrap_invokable_tool_call(self, endpoint, context):
            async def call(arguments: str, **options: Any) -> str:
                try:
                    return await endpoint(arguments, **options)
                except Exception:  # noqa: BLE001 - that is the point
                    return "swallowed"

            return call

    agent, _ = make([turn(("c1", "ask")), "done"], ask, middlewares=[Careless()], checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        assert paused.outcome is Outcome.INTERRUPTED
        done = await agent.resume("k", answers={paused.interrupts[0].id: "yes"})
        assert results(done.messages) == [("c1", "yes")]

    play(scene())


def test_the_wrappers_of_a_tools_config_and_of_the_older_form_interrupt_too(store: AnyStore):
    def gate(name: str) -> Any:
        async def wrap(call: Any, proceed: Any) -> ToolResult:
            answer = await suture.interrupt(name)
            return text(f"{(await proceed(call)).text} [{name}: {answer}]")

        return wrap

    agent, _ = make(
        [turn(("c1", "invokable")), "done"],
        tools=ToolsConfig(tools=[invokable], tool_call_middlewares=[gate("config")]),
        middlewares=[AgentMiddleware(wrap_tool_call=gate("older"))],
        checkpoint_store=store,
    )

    async def scene():
        first = await agent.run("go", checkpoint_id="k")
        assert first.interrupts[0].info == "config"
        second = await agent.resume("k", answers={first.interrupts[0].id: 1})
        assert second.interrupts[0].info == "older"
        done = await agent.resume("k", answers={second.interrupts[0].id: 2})
        assert results(done.messages) == [("c1", "text [older: 2] [config: 1]")]

    play(scene())


def test_an_approval_and_a_wrapper_are_answered_one_after_the_other(store: AnyStore):
    @tool(requires_approval=True)
    async def delete() -> str:
        """Delete."""
        return "deleted"

    agent, _ = make([turn(("c1", "delete")), "done"], delete, middlewares=[Gate()], checkpoint_store=store)

    async def scene():
        result = await agent.run("go", checkpoint_id="k")
        ids: list[str] = []
        while result.outcome is Outcome.INTERRUPTED:
            (waiting,) = result.interrupts
            ids.append(waiting.id)
            result = await agent.resume("k", answers={waiting.id: True})
        assert len(set(ids)) == 2
        assert results(result.messages) == [("c1", "deleted [gate: True]")]

    play(scene())


def test_several_parallel_calls_interrupt_in_one_wrapper_each_at_its_own_address(store: AnyStore):
    calls = [(f"c{n}", "invokable") for n in range(4)]
    agent, _ = make([turn(*calls), "done"], invokable, middlewares=[Gate()], checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        assert [waiting.info for waiting in paused.interrupts] == [f"gate of c{n}" for n in range(4)]
        answers = {waiting.id: waiting.call_id.upper() for waiting in paused.interrupts}
        assert len(answers) == 4
        done = await agent.resume("k", answers=answers)
        assert results(done.messages) == [(f"c{n}", f"text [gate: C{n}]") for n in range(4)]

    play(scene())
