"""Events are complete enough to draw a run: its messages and calls can be told from them alone."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from suture import (
    Budget,
    ChatModelAgent,
    ModelFailoverConfig,
    ModelRetryConfig,
    RetryContext,
    RetryDecision,
    interrupt,
    send_event,
    tool,
)
from suture.events import Custom, Interrupted, MessageFinished, ModelStarted, RetryScheduled, RunFinished
from suture.stores import MemoryStore
from suture.testing import ScriptedModel
from tests.agent.lifecycle.drawing import Drawing, draw
from tests.agent.lifecycle.recording import collect
from tests.agent.lifecycle.speech import MESSAGE, WIRES, Speech, wire_name

every_wire = pytest.mark.parametrize("speech", WIRES, ids=wire_name)
streamed_or_not = pytest.mark.parametrize("streaming", [True, False], ids=["streaming", "not-streaming"])


@tool
async def look(place: str) -> str:
    """Look."""
    return f"seen {place}"


@tool
async def tail(lines: int) -> AsyncIterator[str]:
    """Tail a file."""
    for number in range(lines):
        yield f"line {number}\n"


@tool
async def fail() -> str:
    """Fail."""
    raise OSError("disk full")


def drawn(agent: ChatModelAgent[Any], speech: Speech, *, streaming: bool = True) -> tuple[Drawing, Any, list[Any]]:
    """Run an agent, draw the run from its events and compare the drawing with the result."""
    events, result = asyncio.run(collect(agent.stream("go", streaming=streaming)))
    drawing = draw(events, speech)[(agent.name,)]
    assert [speech.user("go"), *drawing.messages] == result.messages
    assert ("", *drawing.ids) == result.message_ids
    assert (drawing.output, drawing.outcome) == (result.output, result.outcome)
    assert {event.run_id for event in events if event.run_path == (agent.name,)} == {result.run_id}
    assert all(history == ["started", "finished"] for history in drawing.calls.values())
    return drawing, result, events


@every_wire
@streamed_or_not
def test_a_run_with_parallel_calls_is_drawn_with_each_start_and_end(speech: Speech, streaming: bool):
    calls = (
        ("c1", "look", '{"place": "here"}'),
        ("c2", "tail", '{"lines": 2}'),
        ("c3", "fail", "{}"),
        ("c4", "nothing", "{}"),
        ("c5", "look", '{"where": "?"}'),
        ("c6", "look", '{"place": "there"}'),
    )
    model = ScriptedModel([speech.calls(*calls, text="let me see"), "that is all"], speech.wire, chunk_size=3)
    drawing, result, _ = drawn(ChatModelAgent(model=model, tools=[look, tail, fail]), speech, streaming=streaming)
    assert sorted(drawing.calls) == [(1, index) for index in range(6)]
    assert len(result.messages) == 9
    assert drawing.pieces == ({"c2": "line 0\nline 1\n"} if streaming else {})
    said = ["let me see", "that is all"] if streaming else ["", ""]
    assert list(drawing.texts.values()) == said


def test_calls_that_end_in_another_order_are_drawn_in_the_order_of_the_calls():
    async def main() -> None:
        second_is_done = asyncio.Event()

        @tool
        async def slow() -> str:
            """Wait for the other."""
            await second_is_done.wait()
            return "slow"

        @tool
        async def quick() -> str:
            """Go first."""
            second_is_done.set()
            return "quick"

        model = ScriptedModel([MESSAGE.calls(("c1", "slow", "{}"), ("c2", "quick", "{}")), "done"])
        events, result = await collect(ChatModelAgent(model=model, tools=[slow, quick]).stream("go"))
        names = [event.name for event in events if type(event).__name__ == "ToolFinished"]
        assert names == ["quick", "slow"]
        drawing = draw(events, MESSAGE)["agent",]
        assert [MESSAGE.user("go"), *drawing.messages] == result.messages
        assert ("", *drawing.ids) == result.message_ids

    asyncio.run(main())


@every_wire
@streamed_or_not
def test_a_run_with_retries_is_drawn_without_what_was_discarded(speech: Speech, streaming: bool):
    def judge(context: RetryContext[Any]) -> RetryDecision[Any] | None:
        if context.attempt < 3:
            return RetryDecision(retry=True, reject_reason="too short", backoff=0)
        return None

    model = ScriptedModel([TimeoutError("slow"), "no", "a long answer"], speech.wire, chunk_size=2)
    agent = ChatModelAgent(model=model, model_retry_config=ModelRetryConfig(should_retry=judge))
    drawing, result, events = drawn(agent, speech, streaming=streaming)
    assert result.output == "a long answer"
    assert list(drawing.texts.values()) == (["a long answer"] if streaming else [""])
    retries = [event for event in events if isinstance(event, RetryScheduled)]
    assert [(event.attempt, event.error, event.reason) for event in retries] == [
        (1, "TimeoutError: slow", "too short"),
        (2, "", "too short"),
    ]


@every_wire
def test_a_run_with_a_failover_is_drawn_without_what_was_discarded(speech: Speech):
    cut = ScriptedModel(["a long answer"], speech.wire, chunk_size=2, cut_after=3)
    second = ScriptedModel(["from the other"], speech.wire, chunk_size=4)
    agent = ChatModelAgent(model=cut, failover=ModelFailoverConfig(models=[second]))
    drawing, result, events = drawn(agent, speech)
    assert result.output == "from the other"
    assert list(drawing.texts.values()) == ["from the other"]
    (retry,) = [event for event in events if isinstance(event, RetryScheduled)]
    assert retry.failover == "ScriptedModel"
    assert retry.error == "ConnectionError: the stream was cut"


@every_wire
@streamed_or_not
def test_a_nested_run_is_drawn_beside_the_outer_one(speech: Speech, streaming: bool):
    inner = ChatModelAgent(
        name="inner",
        description="Looks closely.",
        model=ScriptedModel([speech.calls(("i1", "look", '{"place": "inside"}')), "inside is well"], speech.wire),
        tools=[look],
    )
    calls = (("o1", "inner", '{"request": "look inside"}'), ("o2", "look", '{"place": "outside"}'))
    model = ScriptedModel([speech.calls(*calls), "all is well"], speech.wire)
    agent = ChatModelAgent(name="outer", model=model, tools=[inner.as_tool(), look])
    _, result, events = drawn(agent, speech, streaming=streaming)
    assert result.messages[2] == speech.result("o1", "inner", "inside is well")
    nested = draw(events, speech)["outer", "inner"]
    assert nested.messages == [
        speech.calls(("i1", "look", '{"place": "inside"}')),
        speech.result("i1", "look", "seen inside"),
        speech.says("inside is well"),
    ]
    assert nested.calls == {(1, 0): ["started", "finished"]}
    assert (nested.outcome, nested.output) == ("finished", "inside is well")


@pytest.mark.parametrize("outer", WIRES, ids=wire_name)
@pytest.mark.parametrize("within", WIRES, ids=wire_name)
def test_an_agent_inside_may_speak_another_wire(outer: Speech, within: Speech):
    inner = ChatModelAgent(
        name="inner",
        description="Looks closely.",
        model=ScriptedModel([within.calls(("i1", "look", '{"place": "inside"}')), "well"], within.wire),
        tools=[look],
    )
    model = ScriptedModel([outer.calls(("o1", "inner", '{"request": "look"}')), "done"], outer.wire)
    _, result, events = drawn(ChatModelAgent(name="outer", model=model, tools=[inner.as_tool()]), outer)
    assert result.messages[2] == outer.result("o1", "inner", "well")
    assert draw(events, within)["outer", "inner"].messages[1] == within.result("i1", "look", "seen inside")


@every_wire
def test_calls_that_a_budget_does_not_pay_for_are_drawn_as_well(speech: Speech):
    calls = (("c1", "look", '{"place": "here"}'), ("c2", "look", '{"place": "there"}'))
    model = ScriptedModel([speech.calls(*calls), "that is all"], speech.wire)
    agent = ChatModelAgent(model=model, tools=[look], budget=Budget(tool_calls=1), on_max_iterations="answer")
    drawing, result, _ = drawn(agent, speech)
    assert result.messages[2] == speech.result("c1", "look", "seen here")
    assert len(result.messages) == 5
    assert sorted(drawing.calls) == [(1, 0), (1, 1)]


@every_wire
def test_a_run_that_fails_says_so_last(speech: Speech):
    model = ScriptedModel([speech.calls(("c1", "look", '{"place": "here"}')), TimeoutError("slow")], speech.wire)
    run = ChatModelAgent(model=model, tools=[look]).stream("go")
    events: list[Any] = []

    async def main() -> None:
        with pytest.raises(TimeoutError):  # noqa: PT012 - it may be told while reading, or when awaited
            async for event in run:
                events.append(event)  # noqa: PERF401 - what came before the error counts
            await run.result()

    asyncio.run(main())
    drawing = draw(events, speech)["agent",]
    assert run.final_result is not None
    assert [speech.user("go"), *drawing.messages] == run.final_result.messages
    assert isinstance(events[-1], RunFinished)
    assert (events[-1].outcome, events[-1].error) == ("failed", "TimeoutError: slow")


def test_a_run_that_waits_says_for_what_before_it_ends_and_goes_on_with_the_same_ids():
    @tool
    async def ask() -> str:
        """Ask."""
        return await interrupt("may I?")

    model = ScriptedModel([MESSAGE.calls(("c1", "ask", "{}"), ("c2", "look", '{"place": "here"}')), "done"])
    agent = ChatModelAgent(model=model, tools=[ask, look], checkpoint_store=MemoryStore())

    async def main() -> None:
        events, first = await collect(agent.stream("go", checkpoint_id="one"))
        assert [type(event) for event in events[-2:]] == [Interrupted, RunFinished]
        assert events[-2].interrupts == first.interrupts
        assert events[-1].outcome == "interrupted"
        more, result = await collect(agent.stream(resume="one", answers={first.interrupts[0].id: "yes"}))
        drawing = Drawing()
        for event in [*events[:-1], *more]:
            drawing.see(event, MESSAGE)
        assert [MESSAGE.user("go"), *drawing.messages] == result.messages
        assert ("", *drawing.ids) == result.message_ids
        assert drawing.calls[1, 1] == ["started", "finished"]
        assert drawing.calls[1, 0] == ["started", "started", "finished"]

    asyncio.run(main())


def test_a_reader_sees_what_a_lone_tool_sends_while_it_runs():
    async def main() -> list[Any]:
        heard = asyncio.Event()

        @tool
        async def work() -> str:
            """Work until somebody has heard of it."""
            send_event(Custom("progress", {"done": 1}))
            await heard.wait()
            return "worked"

        model = ScriptedModel([MESSAGE.calls(("c1", "work", "{}")), "done"])
        seen: list[Any] = []
        async with asyncio.timeout(60):
            async for event in ChatModelAgent(model=model, tools=[work]).stream("go"):
                seen.append(event)
                if isinstance(event, Custom):
                    heard.set()
        return seen

    events = asyncio.run(main())
    (custom,) = [event for event in events if isinstance(event, Custom)]
    assert (custom.name, custom.data, custom.agent, custom.run_path) == ("progress", {"done": 1}, "agent", ("agent",))
    assert custom.time > 0


def test_an_agent_as_a_tool_that_forwards_nothing_is_seen_only_as_a_tool():
    inner = ChatModelAgent(name="inner", description="Helps.", model=ScriptedModel(["well"]))
    model = ScriptedModel([MESSAGE.calls(("c1", "inner", '{"request": "help"}')), "done"])
    agent = ChatModelAgent(name="outer", model=model, tools=[inner.as_tool(forward_events=False)])
    drawing, _, events = drawn(agent, MESSAGE)
    assert {event.run_path for event in events} == {("outer",)}
    assert drawing.calls == {(1, 0): ["started", "finished"]}


@every_wire
def test_the_message_of_an_event_is_the_very_object_of_the_history(speech: Speech):
    model = ScriptedModel([speech.calls(("c1", "look", '{"place": "here"}')), "done"], speech.wire, chunk_size=2)
    events, result = asyncio.run(collect(ChatModelAgent(model=model, tools=[look]).stream("go")))
    said = [event.message for event in events if isinstance(event, MessageFinished)]
    assert said[0] is result.messages[1]
    assert said[1] is result.messages[3]


def test_text_gives_what_the_model_says_as_it_says_it():
    async def main() -> list[str]:
        model = ScriptedModel([MESSAGE.calls(("c1", "look", '{"place": "here"}'), text="hm. "), "done"], chunk_size=2)
        run = ChatModelAgent(model=model, tools=[look]).stream("go")
        return [text async for text in run.text()]

    assert asyncio.run(main()) == ["hm", ". ", "do", "ne"]


def test_started_events_say_which_attempt_and_which_model():
    model = ScriptedModel([TimeoutError("slow"), "done"])
    agent = ChatModelAgent(model=model, model_retry_config=ModelRetryConfig(backoff=lambda _attempt: 0))
    events, _ = asyncio.run(collect(agent.stream("go")))
    started = [event for event in events if isinstance(event, ModelStarted)]
    assert [(event.turn, event.attempt, event.model) for event in started] == [
        (1, 1, "ScriptedModel"),
        (1, 2, "ScriptedModel"),
    ]
