"""The reference's known defects of persistence, one by one: none of them is here."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from suture import (
    Approval,
    ChatModelAgent,
    Outcome,
    ResumeError,
    SchemaVersionError,
    SutureError,
    UnregisteredTypeError,
    get_run_local_value,
    interrupt,
    set_run_local_value,
    tool,
)
from suture.events import ToolFinished
from suture.kernel.journal import VERSION
from suture.stores import MemoryStore
from suture.testing import ScriptedModel
from tests.agent.lifecycle.recording import collect
from tests.agent.lifecycle.speech import MESSAGE, WIRES, Speech, wire_name

every_wire = pytest.mark.parametrize("speech", WIRES, ids=wire_name)


@tool
async def ask() -> str:
    """Ask."""
    return str(await interrupt("may I?"))


@tool
async def silent() -> AsyncIterator[str]:
    """Stream nothing."""
    for piece in ():
        yield piece


def asking(*replies: Any, store: MemoryStore, **choices: Any) -> ChatModelAgent[Any]:
    tools = [ask, silent, *choices.pop("tools", ())]
    return ChatModelAgent(model=ScriptedModel(replies), tools=tools, checkpoint_store=store, **choices)


@every_wire
def test_b1_an_interrupt_after_an_agent_inside_failed_can_be_stored_and_resumed(speech: Speech):
    inner = ChatModelAgent(name="inner", description="x", model=ScriptedModel([OSError("disk full")], speech.wire))
    replies = [speech.calls(("c1", "inner", '{"request": "?"}')), speech.calls(("c2", "ask", "{}")), "done"]
    agent = ChatModelAgent(
        name="outer",
        model=ScriptedModel(replies, speech.wire),
        tools=[inner.as_tool(), ask],
        checkpoint_store=MemoryStore(),
    )

    async def main() -> Any:
        events, first = await collect(agent.stream("go", checkpoint_id="one"))
        (failed,) = [event for event in events if isinstance(event, ToolFinished)]
        assert failed.result.is_error
        assert "disk full" in failed.text
        assert first.outcome is Outcome.INTERRUPTED
        return first, await agent.resume("one", answers={first.interrupts[0].id: "yes"})

    first, result = asyncio.run(main())
    assert result.messages[: len(first.messages)] == first.messages
    assert result.messages[-2:] == [speech.result("c2", "ask", "yes"), speech.says("done")]


@every_wire
def test_b2_a_stream_that_gave_nothing_neither_fails_nor_prevents_a_checkpoint(speech: Speech):
    replies = [speech.calls(("c1", "silent", "{}"), ("c2", "ask", "{}")), speech.says(""), "unused"]
    agent = ChatModelAgent(
        model=ScriptedModel(replies, speech.wire, chunk_size=2), tools=[silent, ask], checkpoint_store=MemoryStore()
    )

    async def main() -> Any:
        _, first = await collect(agent.stream("go", checkpoint_id="one"))
        assert first.outcome is Outcome.INTERRUPTED
        return await agent.resume("one", answers={first.interrupts[0].id: "yes"})

    result = asyncio.run(main())
    assert result.outcome is Outcome.FINISHED
    assert result.output == ""
    assert len(result.messages) == 5
    assert result.messages[3] == speech.result("c2", "ask", "yes")


@dataclass
class Unregistered:
    number: int


def test_b5_plain_values_need_no_registration_and_others_are_refused_where_they_are_set():
    value = {"list": [1, 2.5, None, True, "x", b"bytes"], "nested": {"a": ("tuple", {"set"})}}
    seen: list[Any] = []

    @tool
    async def keep() -> str:
        """Keep values."""
        with pytest.raises(UnregisteredTypeError, match="register_type"):
            set_run_local_value("bad", Unregistered(1))
        set_run_local_value("good", value)
        answer = await interrupt("may I?")
        seen.append(get_run_local_value("good"))
        seen.append(get_run_local_value("bad"))
        return answer

    agent = asking(MESSAGE.calls(("c1", "keep", "{}")), "done", store=MemoryStore(), tools=[keep])

    async def main() -> None:
        _, first = await collect(agent.stream("go", checkpoint_id="one"))
        await agent.resume("one", answers={first.interrupts[0].id: "yes"})

    asyncio.run(main())
    assert seen == [(value, True), (None, False)]


def test_b5_a_checkpoint_of_an_unknown_version_is_refused_as_such():
    store = MemoryStore()

    async def main() -> None:
        await collect(asking(MESSAGE.calls(("c1", "ask", "{}")), store=store).stream("go", checkpoint_id="one"))
        records = await store.load("one")
        (tag, version, *rest), *others = msgspec.msgpack.decode(records[0])
        assert (tag, version) == ("began", VERSION)
        await store.append("two", 0, [msgspec.msgpack.encode([[tag, 999, *rest], *others]), *records[1:]])
        with pytest.raises(SchemaVersionError):
            await asking("done", store=store).resume("two", answers={})

    asyncio.run(main())


def test_b5_checkpoints_expire_and_one_id_has_room_for_several_interrupts():
    store = MemoryStore()

    async def main() -> None:
        agent = asking(MESSAGE.calls(("c1", "ask", "{}")), MESSAGE.calls(("c2", "ask", "{}")), "done", store=store)
        _, result = await collect(agent.stream("go", checkpoint_id="one"))
        for answer in ("first", "second"):
            assert result.outcome is Outcome.INTERRUPTED
            _, result = await collect(agent.stream(resume="one", answers={result.interrupts[0].id: answer}))
        assert result.outcome is Outcome.FINISHED
        assert [result.messages[at].content for at in (2, 4)] == ["first", "second"]
        assert await store.expire(0) == 1
        with pytest.raises(ResumeError):
            await agent.resume("one", answers={})

    asyncio.run(main())


def test_b6_answers_to_what_is_not_waited_for_are_an_error_that_says_what_is():
    store = MemoryStore()

    async def main() -> None:
        agent = asking(MESSAGE.calls(("c1", "ask", "{}")), "done", store=store)
        _, first = await collect(agent.stream("go", checkpoint_id="one"))
        waiting = first.interrupts[0].id
        with pytest.raises(ResumeError, match=waiting):
            await agent.resume("one", answers={"nobody": "yes"})
        with pytest.raises(ResumeError, match="nowhere"):
            await agent.resume("nowhere", answers={})
        _, result = await collect(agent.stream(resume="one", answers={waiting: "yes"}))
        assert result.output == "done"
        with pytest.raises(ResumeError):
            await agent.resume("one", answers={waiting: "yes"})

    asyncio.run(main())


@pytest.mark.parametrize("answers", [None, {}])
def test_b6_without_answers_the_same_is_waited_for_again(answers: Any):
    store = MemoryStore()

    async def main() -> None:
        agent = asking(MESSAGE.calls(("c1", "ask", "{}")), "done", store=store)
        _, first = await collect(agent.stream("go", checkpoint_id="one"))
        _, again = await collect(agent.stream(resume="one", answers=answers))
        assert again.outcome is Outcome.INTERRUPTED
        assert again.interrupts == first.interrupts
        _, result = await collect(agent.stream(resume="one", answers={first.interrupts[0].id: "yes"}))
        assert result.output == "done"

    asyncio.run(main())


def test_b6_data_of_the_wrong_type_is_an_error_before_anything_runs():
    ran: list[str] = []

    @tool(requires_approval=True)
    async def delete() -> str:
        """Delete."""
        ran.append("delete")
        return "deleted"

    @tool
    async def count() -> str:
        """Ask for a number."""
        return str(await interrupt("how many?", expects=int))

    async def main() -> None:
        replies = [MESSAGE.calls(("c1", "delete", "{}"), ("c2", "count", "{}")), "done"]
        agent = asking(*replies, store=MemoryStore(), tools=[delete, count])
        _, first = await collect(agent.stream("go", checkpoint_id="one"))
        approval, number = (each.id for each in first.interrupts)
        for wrong in ({approval: "sure"}, {approval: True, number: "many"}):
            with pytest.raises(SutureError):
                await agent.resume("one", answers=wrong)
        assert ran == []
        _, result = await collect(agent.stream(resume="one", answers={approval: Approval(approved=True), number: 3}))
        assert ran == ["delete"]
        assert [message.content for message in result.messages[2:]] == ["deleted", "3", "done"]

    asyncio.run(main())
