"""A tool can stop the run, wait for an answer of any kind, and go on with it; its siblings are not disturbed."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

import suture
from suture import Message, Outcome, ToolArgument, ToolResult, tool
from suture.events import Interrupted, ModelStarted, RunFinished, ToolDelta, ToolFinished, ToolStarted
from suture.messages import TextPart
from tests.agent.durability.scenes import (
    REJECTED,
    WIRES,
    AnyStore,
    acceptable,
    journals,
    make,
    names,
    play,
    results,
    roles,
    seen,
    turn,
)


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
        done = await agent.resume("k", {waiting.id: {"any": ["thing", 3, None, True]}})
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
        second = await agent.resume("k", {first.interrupts[0].id: "Rome"})
        assert second.outcome is Outcome.INTERRUPTED
        assert [waiting.info for waiting in second.interrupts] == ["when?"]
        assert second.interrupts[0].id != first.interrupts[0].id
        done = await agent.resume("k", {second.interrupts[0].id: "May"})
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
        again = await agent.resume("k", {paused.interrupts[0].id: "yes"})
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
        half = await agent.resume("k", {y.id: 1})
        assert [waiting.id for waiting in half.interrupts] == [x.id]
        done = await agent.resume("k", {x.id: 1})
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
        done = await agent.resume("k", {paused.interrupts[0].id: 1})
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
        done = await agent.resume("k", {paused.interrupts[0].id: "yes"})
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
        _, paused = await seen(agent.run("go", checkpoint_id="k"))
        assert paused.outcome is Outcome.INTERRUPTED
        events, done = await seen(agent.resume("k", {paused.interrupts[0].id: 7}))
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
        done = await agent.resume("k", {paused.interrupts[0].id: "a cat"})
        assert results(done.messages) == [("c1", "drew a cat {}")]

    play(scene())


@pytest.mark.parametrize("wire", WIRES)
def test_i1_finished_siblings_are_not_run_again_and_send_no_second_event(store: AnyStore, wire: str):
    ran: list[str] = []
    finished = asyncio.Event()

    @tool
    async def work(n: int) -> str:
        """Work."""
        ran.append(f"work {n}")
        finished.set()
        return f"worked {n}"

    @tool
    async def ask(n: int) -> str:
        """Ask."""
        await finished.wait()
        answer = await suture.interrupt(n)
        ran.append(f"ask {n}")
        return f"{answer} {n}"

    calls = [("c0", "ask", {"n": 0}), ("c1", "work", {"n": 1}), ("c2", "ask", {"n": 2}), ("c3", "work", {"n": 3})]
    agent, model = make([turn(*calls, wire=wire), "done"], work, ask, wire=wire, checkpoint_store=store)

    async def scene():
        first, paused = await seen(agent.run("go", checkpoint_id="k"))
        assert ran == ["work 1", "work 3"]
        assert [waiting.call_id for waiting in paused.interrupts] == ["c0", "c2"]
        assert sorted(names(first, ToolFinished)) == [("ToolFinished", "c1"), ("ToolFinished", "c3")]
        assert sorted(names(first, ToolStarted)) == [("ToolStarted", f"c{n}") for n in range(4)]
        assert [type(event) for event in first[-2:]] == [Interrupted, RunFinished]
        second, done = await seen(agent.resume("k", {waiting.id: "yes" for waiting in paused.interrupts}))
        assert sorted(ran) == ["ask 0", "ask 2", "work 1", "work 3"]
        assert sorted(names(second, ToolFinished)) == [("ToolFinished", "c0"), ("ToolFinished", "c2")]
        assert {name[1] for name in names(second, ToolStarted)} == {"c0", "c2"}
        # Results stand in call order, whenever each of them came.
        assert results(done.messages) == [("c0", "yes 0"), ("c1", "worked 1"), ("c2", "yes 2"), ("c3", "worked 3")]
        assert acceptable(done.messages, wire)
        assert len(model.requests) == 2
        # The model is asked once in each of the two.
        assert len(names([*first, *second], ModelStarted)) == 2

    play(scene())


def test_i1_a_slow_sibling_finishes_before_the_run_stops(store: AnyStore):
    asked, ran = asyncio.Event(), list[str]()

    @tool
    async def ask() -> str:
        """Ask."""
        asked.set()
        return str(await suture.interrupt("?"))

    @tool
    async def slow() -> str:
        """Work on while the other one waits."""
        await asked.wait()
        for _ in range(5):
            await asyncio.sleep(0)
        ran.append("slow")
        return "slow result"

    agent, _ = make([turn(("c1", "ask"), ("c2", "slow")), "done"], ask, slow, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        assert (ran, len(paused.interrupts)) == (["slow"], 1)
        done = await agent.resume("k", {paused.interrupts[0].id: "yes"})
        assert ran == ["slow"]
        assert results(done.messages) == [("c1", "yes"), ("c2", "slow result")]

    play(scene())


def test_a_sibling_that_raises_beside_an_interrupt_keeps_its_error_and_is_not_run_again(store: AnyStore):
    ran: list[str] = []

    @tool
    async def ask() -> str:
        """Ask."""
        return str(await suture.interrupt("?"))

    @tool
    async def fail() -> str:
        """Fail."""
        ran.append("fail")
        raise ValueError("out of paper")

    agent, _ = make([turn(("c1", "ask"), ("c2", "fail")), "done"], ask, fail, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        done = await agent.resume("k", {paused.interrupts[0].id: "yes"})
        assert ran == ["fail"]
        (_, first), (_, second) = results(done.messages)
        assert first == "yes"
        assert "ValueError" in second
        assert "out of paper" in second

    play(scene())


def test_sequential_calls_behind_an_interrupt_have_not_begun(store: AnyStore):
    ran: list[str] = []

    @tool
    async def work(n: int) -> str:
        """Work."""
        ran.append(f"work {n}")
        return f"worked {n}"

    @tool
    async def ask() -> str:
        """Ask."""
        return str(await suture.interrupt("?"))

    calls = [("c1", "work", {"n": 1}), ("c2", "ask"), ("c3", "work", {"n": 3})]
    agent, _ = make([turn(*calls), "done"], work, ask, sequential=True, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        assert ran == ["work 1"]
        done = await agent.resume("k", {paused.interrupts[0].id: "yes"})
        assert ran == ["work 1", "work 3"]
        assert results(done.messages) == [("c1", "worked 1"), ("c2", "yes"), ("c3", "worked 3")]

    play(scene())


@pytest.mark.parametrize(
    ("answer", "text", "runs"),
    [
        (True, "deleted", 1),
        ({"approved": True}, "deleted", 1),
        (suture.Approval(approved=True), "deleted", 1),
        (False, REJECTED.format("delete", "c1"), 0),
        ({"approved": False}, REJECTED.format("delete", "c1"), 0),
        (suture.Approval(approved=False), REJECTED.format("delete", "c1"), 0),
    ],
)
def test_an_approval_runs_the_tool_or_rejects_the_call(store: AnyStore, answer: Any, text: str, runs: int):
    ran: list[str] = []

    @tool(requires_approval=True)
    async def delete(path: str) -> str:
        """Delete."""
        ran.append(path)
        return "deleted"

    agent, model = make([turn(("c1", "delete", {"path": "/x"})), "done"], delete, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        assert (paused.outcome, ran) == (Outcome.INTERRUPTED, [])
        done = await agent.resume("k", {paused.interrupts[0].id: answer})
        assert results(done.messages) == [("c1", text)]
        assert results(model.requests[1].messages) == [("c1", text)]
        assert len(ran) == runs

    play(scene())


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "answer", [{"approved": False, "reason": "too dear"}, suture.Approval(approved=False, reason="too dear")]
)
def test_a_rejection_tells_the_model_the_reason(store: AnyStore, wire: str, answer: Any):
    @tool(requires_approval=True)
    async def buy() -> str:
        """Buy."""
        raise AssertionError("never approved")

    agent, model = make([turn(("c1", "buy"), wire=wire), "done"], buy, wire=wire, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        done = await agent.resume("k", {paused.interrupts[0].id: answer})
        ((_, text),) = results(model.requests[1].messages)
        assert "too dear" in text
        assert "rejected" in text
        assert done.outcome is Outcome.FINISHED
        assert acceptable(done.messages, wire)

    play(scene())


def test_a_rejection_is_marked_as_an_error_and_told_in_the_language_of_the_run(store: AnyStore):
    @tool(requires_approval=True)
    async def buy() -> str:
        """Buy."""
        raise AssertionError("never approved")

    agent, _ = make([turn(("c1", "buy")), "done"], buy, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k", language="zh")
        done = await agent.resume("k", {paused.interrupts[0].id: False})
        result = done.messages[2]
        assert isinstance(result, Message)
        assert (result.content, result.is_error) == ("工具调用 buy(ID 为 c1)未执行——已被拒绝。", True)

    play(scene())


def test_an_approval_covers_one_call_only(store: AnyStore):
    ran: list[int] = []

    @tool(requires_approval=True)
    async def delete(n: int) -> str:
        """Delete."""
        ran.append(n)
        return f"deleted {n}"

    both = turn(("c1", "delete", {"n": 1}), ("c2", "delete", {"n": 2}))
    agent, _ = make([both, turn(("c3", "delete", {"n": 3})), "done"], delete, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        one, two = paused.interrupts
        paused = await agent.resume("k", {one.id: True, two.id: False})
        assert ran == [1]
        (three,) = paused.interrupts
        assert three.call_id == "c3"
        done = await agent.resume("k", {three.id: True})
        assert ran == [1, 3]
        assert done.output == "done"

    play(scene())


def test_invalid_arguments_never_ask_for_approval(store: AnyStore):
    @tool(requires_approval=True)
    async def delete(path: str) -> str:
        """Delete."""
        raise AssertionError(f"never approved {path}")

    agent, _ = make([turn(("c1", "delete", {"path": 7})), "done"], delete, checkpoint_store=store)

    async def scene():
        done = await agent.run("go", checkpoint_id="k")
        assert done.outcome is Outcome.FINISHED
        assert "path" in results(done.messages)[0][1]

    play(scene())


def test_e4_the_checkpoint_is_written_before_the_interrupt_is_seen(store: AnyStore):
    @tool
    async def ask() -> str:
        """Ask."""
        return str(await suture.interrupt("?"))

    agent, _ = make([turn(("c1", "ask")), "done"], ask, checkpoint_store=store)

    async def scene():
        written = None
        async for event in agent.run("go", checkpoint_id="k"):
            if isinstance(event, Interrupted):
                assert event.checkpoint_id == "k"
                written = await journals(store)
                # Whoever sees it can answer at once.
                done = await agent.resume("k", {event.interrupts[0].id: "at once"})
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
        events, paused = await seen(agent.run("go"))
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
