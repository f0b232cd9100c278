"""A call that needs an approval is run or rejected, and covers no other call."""

from typing import Any

import pytest

import suture
from suture import Message, Outcome, tool
from suture.stores import DamagedJournalError, EncryptedStore, MemoryStore
from tests.agent.durability.scenes import REJECTED, WIRES, AnyStore, acceptable, make, play, results, turn


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
        async with agent.stream(resume="k", answers={paused.interrupts[0].id: answer}) as run:
            sent = [type(event).__name__ async for event in run]
            done = await run.result()
        assert results(done.messages) == [("c1", text)]
        assert results(model.requests[1].messages) == [("c1", text)]
        assert (len(ran), sent.count("ToolStarted"), sent.count("ToolFinished")) == (runs, runs, 1)

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
        done = await agent.resume("k", answers={paused.interrupts[0].id: answer})
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
        done = await agent.resume("k", answers={paused.interrupts[0].id: False})
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
        paused = await agent.resume("k", answers={one.id: True, two.id: False})
        assert ran == [1]
        (three,) = paused.interrupts
        assert three.call_id == "c3"
        done = await agent.resume("k", answers={three.id: True})
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


def test_a_call_whose_record_was_tampered_with_is_not_run():
    ran: list[str] = []

    @tool(requires_approval=True)
    async def delete(path: str) -> str:
        """Delete."""
        ran.append(path)
        return "deleted"

    async def scene():
        reply = turn(("c1", "delete", {"path": "/x"}))
        before = EncryptedStore(inner := MemoryStore(), b"k" * 32)
        await make([reply], delete, checkpoint_store=before)[0].run("go", checkpoint_id="k")
        records = await inner.load("k")
        for number, record in enumerate(records):
            for changed in (record[:-1] + bytes([record[-1] ^ 1]), records[number - 1]):
                other = MemoryStore()  # nothing is remembered of it
                await other.append("k", 0, [*records[:number], changed, *records[number + 1 :]])
                agent, _ = make([reply, "done"], delete, checkpoint_store=EncryptedStore(other, b"k" * 32))
                with pytest.raises(DamagedJournalError):
                    await agent.resume("k", True)
        assert len(records) > 1
        assert ran == []

    play(scene())
