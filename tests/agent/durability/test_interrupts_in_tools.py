"""A tool can stop the run, wait for an answer of any kind, and go on with it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

import suture
from suture import Outcome, ToolArgument, ToolResult, tool
from suture.events import Interrupted, RunFinished, ToolDelta
from suture.messages import TextPart
from tests.agent.durability.scenes import WIRES, AnyStore, acceptable, journals, make, play, results, roles, seen, turn


@pytest.mark.parametrize("wire", WIRES)
def test_a_tool_waits_for_an_answer_and_goes_on_with_it(store: AnyStore, wire: str):
    effects: list[Any] = []

    @tool
    async def send(to: str) -> str:
        """Send."""
        answer = await suture.interrupt({"to": to})
        effects.append((to, answer))
        return f"sent to {to}: {answer}"

    agent, model = make(
        [turn(("c1", "send", {"to": "ada"}), wire=wire), "done"], send, wire=wire, checkpoint_store=store
    )

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        assert paused.outcome is Outcome.INTERRUPTED
        assert (paused.output, effects) == (None, [])
        (waiting,) = paused.interrupts
        assert (waiting.info, waiting.call_id, waiting.name) == ({"to": "ada"}, "c1", "send")
        assert waiting.run_path == ("a",)
        # The call stays open: it is neither answered nor given up.
        assert roles(paused.messages) == ["user", "assistant"]
        done = await agent.resume("k", answers={waiting.id: {"any": ["thing", 3, None, True]}})
        assert (done.outcome, done.output) == (Outcome.FINISHED, "done")
        assert effects == [("ada", {"any": ["thing", 3, None, True]})]
        assert results(done.messages) == [("c1", "sent to ada: {'any': ['thing', 3, None, True]}")]
        assert roles(done.messages) == ["user", "assistant", "tool", "assistant"]
        assert acceptable(done.messages, wire)
        assert len(model.requests) == 2
        assert roles(model.requests[1].messages) == ["user", "assistant", "tool"]

    play(scene())


def test_the_id_of_an_interrupt_is_its_address():
    @tool
    async def wait() -> str:
        """Wait."""
        return str([await suture.interrupt("first"), await suture.interrupt("second")])

    @tool
    async def quick() -> str:
        """Do not wait."""
        return "quick"

    agent, _ = make([turn(("q", "quick")), turn(("x", "quick"), ("y", "wait"))], quick, wait)

    async def scene():
        (waiting,) = (await agent.run("go")).interrupts
        # agent / turn / call / frame / occurrence
        assert waiting.id == "a/2/1/tool/0"

    play(scene())


def test_a_tool_interrupts_twice_in_one_call(store: AnyStore):
    passes: list[Any] = []

    @tool
    async def travel() -> str:
        """Travel."""
        passes.append("top")
        where = await suture.interrupt("where?")
        passes.append(where)
        when = await suture.interrupt("when?")
        passes.append(when)
        return f"{where} {when}"

    agent, model = make([turn(("c1", "travel")), "done"], travel, checkpoint_store=store)

    async def scene():
        first = await agent.run("go", checkpoint_id="k")
        assert [waiting.info for waiting in first.interrupts] == ["where?"]
        second = await agent.resume("k", answers={first.interrupts[0].id: "Rome"})
        assert second.outcome is Outcome.INTERRUPTED
        assert [waiting.info for waiting in second.interrupts] == ["when?"]
        assert second.interrupts[0].id != first.interrupts[0].id
        done = await agent.resume("k", answers={second.interrupts[0].id: "May"})
        assert results(done.messages) == [("c1", "Rome May")]
        # It runs again from the top each time, and what was answered stays answered.
        assert passes == ["top", "top", "Rome", "top", "Rome", "May"]
        assert len(model.requests) == 2

    play(scene())


def test_state_is_kept_with_an_interrupt_and_read_when_it_is_answered(store: AnyStore):
    read: list[tuple[Any, bool]] = []

    @tool
    async def count() -> str:
        """Count."""
        state, found = suture.interrupt_state()
        read.append((state, found))
        await suture.interrupt("go on?", state={"seen": [1, 2], "who": ("x", b"\0")})
        return "counted"

    agent, _ = make([turn(("c1", "count")), turn(("c2", "count")), "done"], count, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        assert read == [(None, False)]
        again = await agent.resume("k", answers={paused.interrupts[0].id: "yes"})
        assert read[1][1] is True
        assert read[1][0]["seen"] == [1, 2]
        assert tuple(read[1][0]["who"]) == ("x", b"\0")
        # The next call of the same tool is another one.
        assert again.outcome is Outcome.INTERRUPTED
        assert read[2:] == [(None, False)]

    play(scene())


def test_state_is_kept_for_one_that_is_not_answered_yet(store: AnyStore):
    read: list[tuple[str, Any]] = []

    @tool
    async def count(who: str) -> str:
        """Count."""
        state, found = suture.interrupt_state()
        read.append((who, state if found else "none"))
        await suture.interrupt("go on?", state=f"state of {who}" if not found else state)
        return f"counted {who}"

    both = turn(("c1", "count", {"who": "x"}), ("c2", "count", {"who": "y"}))
    agent, _ = make([both, "done"], count, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        x, y = paused.interrupts
        half = await agent.resume("k", answers={y.id: 1})
        assert [waiting.id for waiting in half.interrupts] == [x.id]
        done = await agent.resume("k", answers={x.id: 1})
        assert results(done.messages) == [("c1", "counted x"), ("c2", "counted y")]
        assert ("x", "state of x") in read
        assert ("y", "state of y") in read
        assert {state for who, state in read if who == "x"} == {"none", "state of x"}

    play(scene())


def test_except_exception_does_not_swallow_an_interrupt(store: AnyStore):
    swallowed: list[BaseException] = []
    cleaned: list[str] = []

    @tool
    async def careless() -> str:
        """Catch everything."""
        try:
            answer = await suture.interrupt("?")
        except Exception as error:  # noqa: BLE001 - that is the point
            swallowed.append(error)
            return "swallowed"
        finally:
            cleaned.append("finally")
        return f"answered {answer}"

    agent, _ = make([turn(("c1", "careless")), "done"], careless, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        assert paused.outcome is Outcome.INTERRUPTED
        done = await agent.resume("k", answers={paused.interrupts[0].id: 1})
        assert results(done.messages) == [("c1", "answered 1")]
        assert swallowed == []
        assert cleaned == ["finally", "finally"]

    play(scene())


def test_a_retrying_tool_with_a_timeout_does_not_retry_its_interrupt(store: AnyStore):
    passes: list[int] = []

    @tool(retry=3, timeout=30)
    async def ask() -> str:
        """Ask."""
        passes.append(1)
        return str(await suture.interrupt("?"))

    agent, _ = make([turn(("c1", "ask")), "done"], ask, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        assert (paused.outcome, len(passes)) == (Outcome.INTERRUPTED, 1)
        done = await agent.resume("k", answers={paused.interrupts[0].id: "yes"})
        assert (results(done.messages), len(passes)) == ([("c1", "yes")], 2)

    play(scene())


def test_an_interrupt_in_a_streaming_tool_loses_what_it_said_before_and_gives_the_stream_of_the_resumed_call(
    store: AnyStore,
):
    @tool
    async def tail() -> AsyncIterator[str]:
        """Tail."""
        yield "before "
        answer = await suture.interrupt("go on?")
        yield f"after {answer}"

    agent, _ = make([turn(("c1", "tail")), "done"], tail, checkpoint_store=store)

    async def scene():
        _, paused = await seen(agent.stream("go", checkpoint_id="k"))
        assert paused.outcome is Outcome.INTERRUPTED
        events, done = await seen(agent.stream(resume="k", answers={paused.interrupts[0].id: 7}))
        assert results(done.messages) == [("c1", "before after 7")]
        pieces = [event.result.parts for event in events if isinstance(event, ToolDelta)]
        assert pieces == [(TextPart("before "),), (TextPart("after 7"),)]

    play(scene())


def test_an_interrupt_in_a_multimodal_tool_is_answered_like_any_other(store: AnyStore):
    @tool(kind="enhanced_invokable", schema={"type": "object"}, description="Draw.")
    async def draw(argument: ToolArgument) -> ToolResult:
        answer = await suture.interrupt("what?")
        return ToolResult((TextPart(f"drew {answer} {argument.text}"),))

    agent, _ = make([turn(("c1", "draw")), "done"], draw, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        done = await agent.resume("k", answers={paused.interrupts[0].id: "a cat"})
        assert results(done.messages) == [("c1", "drew a cat {}")]

    play(scene())


def test_e4_the_checkpoint_is_written_before_the_interrupt_is_seen(store: AnyStore):
    @tool
    async def ask() -> str:
        """Ask."""
        return str(await suture.interrupt("?"))

    agent, _ = make([turn(("c1", "ask")), "done"], ask, checkpoint_store=store)

    async def scene():
        written = None
        async for event in agent.stream("go", checkpoint_id="k"):
            if isinstance(event, Interrupted):
                assert event.checkpoint_id == "k"
                written = await journals(store)
                # Whoever sees it can answer at once.
                done = await agent.resume("k", answers={event.interrupts[0].id: "at once"})
                assert results(done.messages) == [("c1", "at once")]
        assert written is not None
        assert list(written) == ["k"]

    play(scene())


def test_without_a_checkpoint_the_interrupt_is_still_told():
    @tool
    async def ask() -> str:
        """Ask."""
        return str(await suture.interrupt("?"))

    agent, _ = make([turn(("c1", "ask"))], ask)

    async def scene():
        events, paused = await seen(agent.stream("go"))
        assert paused.outcome is Outcome.INTERRUPTED
        assert [type(event) for event in events[-2:]] == [Interrupted, RunFinished]
        assert paused.checkpoint_id is None

    play(scene())


def test_an_interrupt_whose_info_or_state_cannot_be_stored_is_an_error_that_says_how_to_register_it(store: AnyStore):
    class Odd:
        pass

    @tool
    async def ask() -> str:
        """Ask."""
        return str(await suture.interrupt("?", state=Odd()))

    agent, _ = make([turn(("c1", "ask")), "done"], ask, tool_errors="raise", checkpoint_store=store)

    async def scene():
        with pytest.raises(suture.UnregisteredTypeError, match="register_type"):
            await agent.run("go", checkpoint_id="k")

    play(scene())
