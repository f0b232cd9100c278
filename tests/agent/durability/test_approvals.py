"""A call that needs an approval is run or rejected, and covers no other call."""

from typing import Any

import pytest

import suture
from suture import ChatModelAgentMiddleware, Message, Outcome, ResumeError, tool
from suture.stores import DamagedJournalError, EncryptedStore, MemoryStore
from tests.agent.durability.scenes import REJECTED, WIRES, AnyStore, acceptable, make, play, results, turn
from tests.agent.durability.small_tools import pay


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


def test_an_approval_of_other_arguments_does_not_hold_however_the_run_is_resumed(store: AnyStore):
    paid: list[str] = []
    price = ["5"]

    class Prices(ChatModelAgentMiddleware[Any]):
        async def wrap_tool_call(self, call: Any, proceed: Any) -> Any:
            return await proceed(suture.replace(call, arguments=f'{{"amount": {price[0]}}}'))

    @tool(requires_approval=True)
    async def pay(amount: int) -> str:
        """Pay."""
        paid.append(str(amount))
        return f"paid {amount}"

    agent, _ = make([turn(("c1", "pay", {"amount": 1})), "done"], pay, middlewares=[Prices()], checkpoint_store=store)

    async def scene():
        await agent.run("go", checkpoint_id="k")
        price[0] = "5000"
        for answers in ({"c1": True}, None, None):
            asked = await agent.resume("k", answers=answers)
            assert asked.outcome is Outcome.INTERRUPTED
            assert asked.interrupts[0].info["arguments"] == '{"amount": 5000}'
            assert paid == []
        done = await agent.resume("k", False)
        assert (done.output, paid) == ("done", [])

    play(scene())


def test_an_answer_with_more_in_it_than_an_approval_is_refused():
    """Whoever writes other arguments into it must not learn from the bank that they were not heard."""
    agent, _ = make([turn(("c1", "pay")), "done"], pay, checkpoint_store=MemoryStore())

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        with pytest.raises(ResumeError, match=r"and nothing else; this is a mapping of \['approved', 'arguments'\]"):
            await agent.resume(paused, {"approved": True, "arguments": {"amount": 1}})
        assert (await agent.resume(paused, {"approved": True, "reason": "fine"})).output == "done"

    play(scene())


@pytest.mark.parametrize("again", [True, False])
def test_an_answer_to_an_old_result_is_not_taken_for_one_to_a_new_question(store: AnyStore, again: bool):
    replies = [turn(("c1", "pay")), turn(("c1", "pay")), "done"]
    agent, _ = make(replies, pay, checkpoint_store=store)

    async def scene():
        first = await agent.run("go", checkpoint_id="k")
        second = await agent.resume(first, True)
        assert second.outcome is Outcome.INTERRUPTED
        if again:  # as somebody does who pressed the button twice
            third = await agent.resume(first, True)
            assert (third.outcome, third.interrupts) == (Outcome.INTERRUPTED, second.interrupts)
        else:
            with pytest.raises(ResumeError, match="already answered differently"):
                await agent.resume(first, False)
        assert len(results((await agent.session("k").result()).messages)) == 1
        assert (await agent.resume(second, True)).output == "done"

    play(scene())
