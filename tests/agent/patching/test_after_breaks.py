"""After an interrupt, a cancel, an exception or a refused approval the next run just works, and tells the truth."""

import asyncio
import threading
from typing import Any

import pytest

import suture
from suture import Approval, ChatModelAgent, RunResult, interrupt, tool
from suture.events import ToolFinished
from suture.middleware import PatchToolCalls
from suture.stores import MemoryStore
from suture.testing import ScriptedModel
from tests.agent.patching.wiring import assert_acceptable, assert_says, assert_sent, history, on_each_wire, one, sent
from tests.shapes.notation import call, result, says, turn, user
from tests.shapes.texts import answered
from tests.shapes.wires import read

ASK, MORE = user("When is high tide?"), user("And now?")
TWO = turn(call("a", "tides", {}), call("b", "moon", {}), text="I look.")
TIDE = result("a", "06:12", "tides")
each_patch = pytest.mark.parametrize("patch", [[PatchToolCalls()], []], ids=["patched", "fit alone"])


@tool
async def tides() -> str:
    """Tell the tides."""
    return "06:12"


def agent_of(model: ScriptedModel, patch: list[Any], *tools: Any, **options: Any) -> ChatModelAgent[Any]:
    return ChatModelAgent(model=model, tools=[tides, *tools], middlewares=patch, **options)


async def goes_on(agent: ChatModelAgent[Any], wire: str, stopped: RunResult[Any]) -> None:
    """Start the next run on what the first left, without a checkpoint."""
    await agent.run([*stopped.messages, one(wire, MORE)])


# An interrupt


@tool(name="moon")
async def asking() -> str:
    """Ask before telling the moon."""
    return f"full, {await interrupt('May I?')}"


@each_patch
@on_each_wire
def test_after_an_interrupt_the_finished_call_keeps_its_result_and_the_waiting_one_was_canceled(
    wire: str, patch: list[Any]
):
    async def use() -> None:
        model = ScriptedModel([one(wire, TWO), "ok"], wire)
        agent = agent_of(model, patch, asking)
        stopped = await agent.run("When is high tide?")
        assert stopped.outcome == "interrupted"
        assert_says(wire, stopped.messages, ASK, TWO, TIDE)
        assert suture.check(list(stopped.messages), wire=wire, tail="keep").acceptable
        await goes_on(agent, wire, stopped)
        assert_sent(model, ASK, TWO, TIDE, answered("interrupted", "b", "moon"), MORE)

    asyncio.run(use())


@each_patch
@on_each_wire
def test_after_an_interrupt_the_conversation_can_go_on_by_its_checkpoint(wire: str, patch: list[Any]):
    async def use() -> None:
        model = ScriptedModel([one(wire, TWO), "ok"], wire)
        agent = agent_of(model, patch, asking, checkpoint_store=MemoryStore())
        await agent.run("When is high tide?", checkpoint_id="c")
        finished = await agent.run("And now?", checkpoint_id="c")
        wanted = [ASK, TWO, TIDE, answered("interrupted", "b", "moon"), MORE]
        assert_sent(model, *wanted)
        assert_says(wire, finished.messages, *wanted, says("ok"))

    asyncio.run(use())


@on_each_wire
def test_an_interrupt_that_is_resumed_gives_the_real_results(wire: str):
    async def use() -> None:
        model = ScriptedModel([one(wire, TWO), "ok"], wire)
        agent = agent_of(model, [PatchToolCalls()], asking, checkpoint_store=MemoryStore())
        stopped = await agent.run("When is high tide?", checkpoint_id="c")
        await agent.resume("c", answers={stopped.interrupts[0].id: "yes"})
        assert_sent(model, ASK, TWO, TIDE, result("b", "full, yes", "moon"))

    asyncio.run(use())


# A refused approval


@tool(name="moon", requires_approval=True)
async def guarded() -> str:
    """Tell the moon if allowed."""
    raise AssertionError("a refused tool does not run")


@pytest.mark.parametrize("answer", [False, {"approved": False}, Approval(approved=False)])
@each_patch
@on_each_wire
def test_a_refused_call_was_rejected(wire: str, patch: list[Any], answer: Any):
    async def use() -> None:
        model = ScriptedModel([one(wire, TWO), "ok", "fine"], wire)
        agent = agent_of(model, patch, guarded, checkpoint_store=MemoryStore())
        stopped = await agent.run("When is high tide?", checkpoint_id="c")
        finished = await agent.resume("c", answers={stopped.interrupts[0].id: answer})
        wanted = [ASK, TWO, TIDE, answered("rejected", "b", "moon")]
        assert_sent(model, *wanted)
        await goes_on(agent, wire, finished)
        assert_sent(model, *wanted, says("ok"), MORE)

    asyncio.run(use())


@on_each_wire
def test_the_reason_of_a_refusal_reaches_the_model(wire: str):
    async def use() -> None:
        model = ScriptedModel([one(wire, TWO), "ok"], wire)
        agent = agent_of(model, [], guarded, checkpoint_store=MemoryStore())
        stopped = await agent.run("When is high tide?", checkpoint_id="c")
        await agent.resume("c", answers={stopped.interrupts[0].id: Approval(approved=False, reason="too cloudy")})
        text = read(wire, sent(model))[3][1][0][2]
        assert "was not run" in text
        assert "too cloudy" in text

    asyncio.run(use())


# A cancel


def waiting(started: asyncio.Event) -> Any:
    @tool(name="moon")
    async def moon() -> str:
        """Tell the moon, sometime."""
        started.set()
        await asyncio.Event().wait()
        return "never"

    return moon


async def cancelled(agent: ChatModelAgent[Any], started: asyncio.Event, **choices: Any) -> RunResult[Any]:
    run = agent.stream("When is high tide?", **choices)
    work = asyncio.ensure_future(run.result())  # started by the first use
    await started.wait()
    for _ in range(3):  # the finished sibling is journalled
        await asyncio.sleep(0)
    stopped = await run.cancel()
    await asyncio.wait([work])
    return stopped


@each_patch
@on_each_wire
def test_after_a_cancel_the_finished_call_keeps_its_result_and_the_other_was_stopped(wire: str, patch: list[Any]):
    async def use() -> None:
        started = asyncio.Event()
        model = ScriptedModel([one(wire, TWO), "ok"], wire)
        agent = agent_of(model, patch, waiting(started))
        stopped = await cancelled(agent, started)
        assert stopped.outcome == "cancelled"
        kept = [ASK, TWO, TIDE, answered("stopped", "b", "moon")]
        assert_says(wire, stopped.messages, *kept)
        assert_acceptable(wire, stopped.messages)
        await goes_on(agent, wire, stopped)
        assert_sent(model, *kept, MORE)

    asyncio.run(use())


@each_patch
@on_each_wire
def test_after_a_cancel_the_conversation_can_go_on_by_its_checkpoint(wire: str, patch: list[Any]):
    async def use() -> None:
        started = asyncio.Event()
        model = ScriptedModel([one(wire, TWO), "ok"], wire)
        agent = agent_of(model, patch, waiting(started), checkpoint_store=MemoryStore())
        await cancelled(agent, started, checkpoint_id="c")
        finished = await agent.run("And now?", checkpoint_id="c")
        wanted = [ASK, TWO, TIDE, answered("stopped", "b", "moon"), MORE]
        assert_sent(model, *wanted)
        assert_says(wire, finished.messages, *wanted, says("ok"))

    asyncio.run(use())


@on_each_wire
def test_after_a_cancel_of_the_surrounding_task_it_is_the_same(wire: str):
    async def use() -> None:
        started, finished = asyncio.Event(), asyncio.Event()
        model = ScriptedModel([one(wire, TWO), "ok"], wire)
        agent = agent_of(model, [], waiting(started))
        run = agent.stream("When is high tide?")

        async def reads() -> None:
            async for event in run:
                if isinstance(event, ToolFinished):
                    finished.set()

        reader = asyncio.ensure_future(reads())
        await finished.wait()
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        stopped = await run.cancel()
        kept = [ASK, TWO, TIDE, answered("stopped", "b", "moon")]
        assert_says(wire, stopped.messages, *kept)
        await goes_on(agent, wire, stopped)
        assert_sent(model, *kept, MORE)

    asyncio.run(use())


@on_each_wire
def test_a_thread_that_could_not_be_stopped_has_an_unknown_outcome(wire: str):
    async def use() -> None:
        release, started = threading.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        @tool
        def moon() -> str:
            """Tell the moon, sometime."""
            loop.call_soon_threadsafe(started.set)
            release.wait(10)
            return "full"

        model = ScriptedModel([one(wire, TWO), "ok"], wire)
        agent = agent_of(model, [], moon)
        try:
            stopped = await cancelled(agent, started)
        finally:
            release.set()
        kept = [ASK, TWO, TIDE, answered("unknown", "b", "moon")]
        assert_says(wire, stopped.messages, *kept)
        await goes_on(agent, wire, stopped)
        assert_sent(model, *kept, MORE)

    asyncio.run(use())


@on_each_wire
def test_calls_that_a_cancel_kept_from_starting_were_stopped(wire: str):
    """One after another: the second had not begun."""

    async def use() -> None:
        started = asyncio.Event()
        model = ScriptedModel([one(wire, turn(call("b", "moon", {}), call("a", "tides", {}))), "ok"], wire)
        agent = agent_of(model, [], waiting(started), sequential=True)
        stopped = await cancelled(agent, started)
        asks = turn(call("b", "moon", {}), call("a", "tides", {}))
        kept = [ASK, asks, answered("stopped", "b", "moon"), answered("stopped", "a", "tides")]
        assert_says(wire, stopped.messages, *kept)
        await goes_on(agent, wire, stopped)
        assert_sent(model, *kept, MORE)

    asyncio.run(use())


@on_each_wire
def test_a_cancel_after_the_model_leaves_no_open_call(wire: str):
    async def use() -> None:
        asked, go_on = asyncio.Event(), asyncio.Event()

        async def replies(_: Any) -> Any:
            if asked.is_set():
                return "ok"
            asked.set()
            await go_on.wait()
            return one(wire, TWO)

        model = ScriptedModel(replies, wire)
        agent = agent_of(model, [], waiting(asyncio.Event()))
        run = agent.stream("When is high tide?")
        work = asyncio.ensure_future(run.result())
        await asked.wait()
        ending = asyncio.ensure_future(run.cancel(at="after_model"))
        await asyncio.sleep(0)
        go_on.set()
        stopped = await ending
        await asyncio.wait([work])
        kept = [ASK, TWO, answered("stopped", "a", "tides"), answered("stopped", "b", "moon")]
        assert_says(wire, stopped.messages, *kept)
        await goes_on(agent, wire, stopped)
        assert_sent(model, *kept, MORE)

    asyncio.run(use())


# An exception that ends the run


@tool(name="moon")
async def failing() -> str:
    """Fail."""
    raise LookupError("clouds")


@on_each_wire
def test_after_a_tools_exception_that_ended_the_run_the_history_is_whole(wire: str):
    async def use() -> None:
        model = ScriptedModel([one(wire, TWO), "ok"], wire)
        agent = agent_of(model, [], failing, tool_errors="raise")
        run = agent.stream("When is high tide?")
        with pytest.raises(LookupError, match="clouds"):
            await run.result()
        assert run.final_result is not None
        assert_acceptable(wire, run.final_result.messages)
        assert read(wire, run.final_result.messages)[:2] == read(wire, history(wire, ASK, TWO))
        assert read(wire, run.final_result.messages)[2] == read(wire, history(wire, TIDE))[0]
        await goes_on(agent, wire, run.final_result)
        assert_acceptable(wire, sent(model))
        assert sent(model)[:-1] == list(run.final_result.messages)

    asyncio.run(use())
