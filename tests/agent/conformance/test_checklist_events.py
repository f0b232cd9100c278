"""The reference's checklist, rows E: events and ids."""

import asyncio
from typing import Any

import pytest

from suture import ChatModelAgent, Outcome, ToolResult, exit_tool, interrupt, tool
from suture.events import Interrupted, MessageDelta, MessageFinished, ModelStarted, ToolFinished
from suture.messages import TextPart
from suture.stores import MemoryStore, SQLiteStore
from suture.testing import ScriptedModel
from tests.agent.lifecycle.recording import collect
from tests.agent.lifecycle.speech import MESSAGE, WIRES, Speech, wire_name

every_wire = pytest.mark.parametrize("speech", WIRES, ids=wire_name)
streamed_or_not = pytest.mark.parametrize("streaming", [True, False], ids=["streaming", "not-streaming"])


@tool
async def look(place: str = "here") -> str:
    """Look."""
    return f"seen {place}"


@every_wire
@streamed_or_not
def test_e1_events_of_a_model_share_the_id_of_the_message_in_the_history_and_input_has_none(
    speech: Speech, streaming: bool
):
    asked = speech.calls(("c1", "look", "{}"), text="let me see")
    model = ScriptedModel([asked, "done"], speech.wire, chunk_size=2)
    agent = ChatModelAgent(model=model, tools=[look])
    given = [speech.user("one"), speech.says("two"), speech.user("three")]
    events, result = asyncio.run(collect(agent.stream(given, streaming=streaming)))
    assert result.messages[:3] == given
    assert result.message_ids[:3] == ("", "", "")
    first, second = result.message_ids[3], result.message_ids[5]
    assert len({first, second, ""}) == 3
    for kind in (ModelStarted, MessageFinished):
        assert [event.message_id for event in events if isinstance(event, kind)] == [first, second]
    pieces = [event for event in events if isinstance(event, MessageDelta)]
    assert {event.message_id for event in pieces} == ({first, second} if streaming else set())
    assert "".join(event.text for event in pieces if event.message_id == second) == ("done" if streaming else "")
    assert [request.message_id for request in model.requests] == [first, second]


@every_wire
def test_e2_the_event_of_a_result_has_the_id_of_its_message_also_for_several_calls_of_one_tool(speech: Speech):
    places = ["here", "there", "anywhere"]
    calls = [(f"c{number}", "look", f'{{"place": "{place}"}}') for number, place in enumerate(places)]
    model = ScriptedModel([speech.calls(*calls), "done"], speech.wire)
    events, result = asyncio.run(collect(ChatModelAgent(model=model, tools=[look]).stream("go")))
    ids = {event.call_id: event.message_id for event in events if isinstance(event, ToolFinished)}
    assert [ids[f"c{number}"] for number in range(3)] == list(result.message_ids[2:5])
    assert len({*result.message_ids}) == len(result.message_ids)
    for number, place in enumerate(places):
        assert result.messages[2 + number] == speech.result(f"c{number}", "look", f"seen {place}")


@every_wire
def test_e3_events_of_an_agent_inside_have_their_own_path_and_are_not_the_history_of_the_outer_one(speech: Speech):
    innermost = ChatModelAgent(name="third", description="x", model=ScriptedModel(["deep"], speech.wire))
    inner = ChatModelAgent(
        name="second",
        description="x",
        model=ScriptedModel([speech.calls(("c1", "third", '{"request": "?"}')), "middle"], speech.wire),
        tools=[innermost.as_tool()],
    )
    model = ScriptedModel([speech.calls(("c1", "second", '{"request": "?"}')), "top"], speech.wire)
    agent = ChatModelAgent(name="first", model=model, tools=[inner.as_tool()])
    events, result = asyncio.run(collect(agent.stream("go")))
    said = [(event.run_path, event.text) for event in events if isinstance(event, MessageFinished) and event.text]
    assert said == [(("first", "second", "third"), "deep"), (("first", "second"), "middle"), (("first",), "top")]
    assert result.messages == [
        speech.user("go"),
        speech.calls(("c1", "second", '{"request": "?"}')),
        speech.result("c1", "second", "middle"),
        speech.says("top"),
    ]
    assert len({event.message_id for event in events if isinstance(event, MessageFinished)}) == 5


@every_wire
@pytest.mark.parametrize("how", ["exit", "return_directly", "result"])
def test_e3_what_ends_an_agent_inside_does_not_end_the_outer_one(how: str, speech: Speech):
    @tool
    async def final() -> ToolResult:
        """End."""
        return ToolResult((TextPart("inner end"),), return_directly=how == "result")

    name, arguments = ("exit", '{"final_result": "inner end"}') if how == "exit" else ("final", "{}")
    inner = ChatModelAgent(
        name="inner",
        description="x",
        model=ScriptedModel([speech.calls(("i1", name, arguments))], speech.wire),
        tools=[final, exit_tool()],
        return_directly=["final"] if how == "return_directly" else [],
    )
    model = ScriptedModel([speech.calls(("o1", "inner", '{"request": "?"}')), "outer end"], speech.wire)
    events, result = asyncio.run(
        collect(ChatModelAgent(name="outer", model=model, tools=[inner.as_tool()]).stream("go"))
    )
    ends = [(event.run_path, event.return_directly) for event in events if isinstance(event, ToolFinished)]
    assert ends == [(("outer", "inner"), True), (("outer",), False)]
    assert result.messages[2] == speech.result("o1", "inner", "inner end")
    assert result.output == "outer end"


@every_wire
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_e4_the_checkpoint_is_written_before_the_interrupt_is_seen(kind: str, speech: Speech, tmp_path: Any):
    def open_store() -> Any:
        return SQLiteStore(tmp_path / "runs.db")

    @tool
    async def ask() -> str:
        """Ask."""
        return await interrupt("may I?")

    async def main() -> Any:
        shared = MemoryStore()

        def another() -> ChatModelAgent[Any]:
            replies = [speech.calls(("c1", "ask", "{}"))] if not made else ["done"]
            made.append(1)
            store = shared if kind == "memory" else open_store()
            return ChatModelAgent(model=ScriptedModel(replies, speech.wire), tools=[ask], checkpoint_store=store)

        made: list[int] = []
        result = None
        async for event in another().stream("go", checkpoint_id="one"):
            if isinstance(event, Interrupted):
                assert event.checkpoint_id == "one"
                result = await another().resume("one", answers={event.interrupts[0].id: "yes"})
        return result

    result = asyncio.run(main())
    assert result is not None
    assert result.outcome is Outcome.FINISHED
    assert result.messages[2] == speech.result("c1", "ask", "yes")


def test_e4_a_checkpoint_that_cannot_be_written_shows_no_interrupt():
    class Full(MemoryStore):
        async def append(self, run: str, first: int, records: Any, *, owner: str | None = None) -> None:
            if first > 0:
                raise OSError("disk full")
            await super().append(run, first, records, owner=owner)

    @tool
    async def ask() -> str:
        """Ask."""
        return await interrupt("may I?")

    agent = ChatModelAgent(
        model=ScriptedModel([MESSAGE.calls(("c1", "ask", "{}"))]), tools=[ask], checkpoint_store=Full()
    )
    run, events = agent.stream("go", checkpoint_id="one"), []

    async def main() -> None:
        with pytest.raises(OSError, match="disk full"):  # noqa: PT012 - reading or awaiting may raise
            async for event in run:
                events.append(event)  # noqa: PERF401 - what came before the error counts
            await run.result()

    asyncio.run(main())
    assert not [event for event in events if isinstance(event, Interrupted)]
    assert run.final_result is not None
    assert run.final_result.outcome is Outcome.FAILED
