"""The reference's checklist, rows L: the loop."""

import asyncio
from typing import Any

import pytest

from suture import ChatModelAgent, MaxIterationsExceeded, interrupt, tool
from suture.events import ToolFinished
from suture.middleware import PatchToolCalls
from suture.stores import MemoryStore
from suture.testing import ScriptedModel
from tests.agent.lifecycle.recording import collect
from tests.agent.lifecycle.speech import MESSAGE, WIRES, Speech, wire_name

every_wire = pytest.mark.parametrize("speech", WIRES, ids=wire_name)
streamed_or_not = pytest.mark.parametrize("streaming", [True, False], ids=["streaming", "not-streaming"])


@tool
async def look() -> str:
    """Look."""
    return "seen"


@tool
async def ask() -> str:
    """Ask."""
    return await interrupt("may I?")


async def ends(agent: ChatModelAgent[Any]) -> Any:
    """Return the result of a run that takes too many turns."""
    run = agent.stream("go")
    with pytest.raises(MaxIterationsExceeded) as raised:
        await run.result()
    assert raised.value.result is run.final_result
    return run.final_result


@every_wire
@pytest.mark.parametrize("limit", [1, 3, 20])
def test_l1_so_many_turns_are_taken_and_the_tools_of_the_last_still_run(limit: int, speech: Speech):
    ran: list[int] = []

    @tool
    async def work() -> str:
        """Work."""
        ran.append(len(ran))
        return "worked"

    model = ScriptedModel(lambda messages: speech.calls((f"c{len(messages)}", "work", "{}")), speech.wire)
    choices: dict[str, Any] = {} if limit == 20 else {"max_iterations": limit}
    result = asyncio.run(ends(ChatModelAgent(model=model, tools=[work], **choices)))
    assert len(model.requests) == limit
    assert len(ran) == limit
    assert result.messages[-1] == speech.result(f"c{2 * limit - 1}", "work", "worked")


@every_wire
def test_l1_an_answer_in_the_last_turn_is_in_time(speech: Speech):
    model = ScriptedModel([speech.calls(("c1", "look", "{}")), "done"], speech.wire)
    _, result = asyncio.run(collect(ChatModelAgent(model=model, tools=[look], max_iterations=2).stream("go")))
    assert result.output == "done"


@every_wire
def test_l1_or_one_more_turn_without_tools_gives_an_answer(speech: Speech):
    model = ScriptedModel([speech.calls(("c1", "look", "{}")), "as far as I can see"], speech.wire)
    agent = ChatModelAgent(model=model, tools=[look], max_iterations=1, on_max_iterations="answer")
    _, result = asyncio.run(collect(agent.stream("go")))
    assert [len(request.tool_infos) for request in model.requests] == [1, 0]
    assert result.output == "as far as I can see"


@every_wire
def test_l1_a_model_that_calls_tools_even_in_the_turn_without_tools_ends_the_run(speech: Speech):
    ran: list[int] = []

    @tool
    async def work() -> str:
        """Work."""
        ran.append(len(ran))
        return "worked"

    model = ScriptedModel(lambda messages: speech.calls((f"c{len(messages)}", "work", "{}")), speech.wire)
    agent = ChatModelAgent(model=model, tools=[work], max_iterations=1, on_max_iterations="answer")

    async def main() -> Any:
        run = agent.stream("go")
        await asyncio.gather(collect(run), return_exceptions=True)
        return run.final_result

    result = asyncio.run(main())
    assert result is not None
    assert len(model.requests) == 2
    assert len(ran) == 1
    assert len(result.messages) == 5


@every_wire
def test_l2_calls_of_one_turn_run_beside_each_other_and_their_results_keep_the_order(speech: Speech):
    async def main() -> Any:
        begun = [asyncio.Event() for _ in range(3)]
        over = [asyncio.Event() for _ in range(4)]
        ended: list[int] = []
        over[3].set()

        @tool
        async def meet(number: int) -> str:
            """Wait for all the others, and end in the opposite order."""
            begun[number].set()
            for other in begun:
                await other.wait()
            await over[number + 1].wait()
            ended.append(number)
            over[number].set()
            return f"met {number}"

        calls = [(f"c{number}", "meet", f'{{"number": {number}}}') for number in range(3)]
        model = ScriptedModel([speech.calls(*calls), "done"], speech.wire)
        _, result = await collect(ChatModelAgent(model=model, tools=[meet]).stream("go"))
        return ended, result

    ended, result = asyncio.run(main())
    assert ended == [2, 1, 0]
    assert result.messages[2:5] == [speech.result(f"c{number}", "meet", f"met {number}") for number in range(3)]


@every_wire
def test_l2_calls_of_one_turn_run_one_after_another_if_asked(speech: Speech):
    steps: list[str] = []

    @tool
    async def work(number: int) -> str:
        """Work, with pauses."""
        steps.append(f"begin {number}")
        for _ in range(3):
            await asyncio.sleep(0)
        steps.append(f"end {number}")
        return "worked"

    calls = [(f"c{number}", "work", f'{{"number": {number}}}') for number in range(3)]
    model = ScriptedModel([speech.calls(*calls), "done"], speech.wire)
    asyncio.run(collect(ChatModelAgent(model=model, tools=[work], sequential=True).stream("go")))
    assert steps == [f"{what} {number}" for number in range(3) for what in ("begin", "end")]


@every_wire
@streamed_or_not
@pytest.mark.parametrize("how", ["agent", "tool"])
def test_l3_return_directly_all_calls_run_its_event_is_last_and_its_message_ends_the_run(
    how: str, streaming: bool, speech: Speech
):
    async def main() -> Any:
        final_is_done = asyncio.Event()

        @tool(return_directly=how == "tool")
        async def final() -> str:
            """End."""
            final_is_done.set()
            return "the end"

        @tool
        async def other() -> str:
            """End later."""
            await final_is_done.wait()
            return "on the way"

        asked = speech.calls(("c1", "final", "{}"), ("c2", "other", "{}"))
        agent = ChatModelAgent(
            model=ScriptedModel([asked], speech.wire),
            tools=[final, other],
            return_directly=["final"] if how == "agent" else [],
        )
        return asked, *await collect(agent.stream("go", streaming=streaming))

    asked, events, result = asyncio.run(main())
    told = [(event.name, event.return_directly) for event in events if isinstance(event, ToolFinished)]
    assert told == [("other", False), ("final", True)]
    assert result.output == "the end"
    assert result.messages == [
        speech.user("go"),
        asked,
        speech.result("c1", "final", "the end"),
        speech.result("c2", "other", "on the way"),
    ]


@every_wire
def test_l3_return_directly_survives_the_interrupt_of_a_sibling(speech: Speech):
    ran: list[str] = []

    @tool(return_directly=True)
    async def final() -> str:
        """End."""
        ran.append("final")
        return "the end"

    model = ScriptedModel([speech.calls(("c1", "final", "{}"), ("c2", "ask", "{}"))], speech.wire)
    agent = ChatModelAgent(model=model, tools=[final, ask], checkpoint_store=MemoryStore())

    async def main() -> Any:
        events, first = await collect(agent.stream("go", checkpoint_id="one"))
        more, result = await collect(agent.stream(resume="one", answers={first.interrupts[0].id: "yes"}))
        return [*events, *more], result

    events, result = asyncio.run(main())
    assert ran == ["final"]
    assert result.output == "the end"
    assert len(model.requests) == 1
    assert [event.name for event in events if isinstance(event, ToolFinished)] == ["ask", "final"]


@every_wire
@pytest.mark.parametrize("middlewares", [[], [PatchToolCalls()]], ids=["alone", "patched"])
def test_l5_every_call_has_one_result_also_after_interrupts_one_by_one(middlewares: list[Any], speech: Speech):
    asked = speech.calls(("c1", "look", "{}"), ("c2", "ask", "{}"), ("c3", "ask", "{}"))
    agent = ChatModelAgent(
        model=ScriptedModel([asked, "done"], speech.wire),
        tools=[look, ask],
        middlewares=middlewares,
        checkpoint_store=MemoryStore(),
    )

    async def main() -> Any:
        _, result = await collect(agent.stream("go", checkpoint_id="one"))
        assert [each.call_id for each in result.interrupts] == ["c2", "c3"]
        _, result = await collect(agent.stream(resume="one", answers={result.interrupts[0].id: "first"}))
        assert [each.call_id for each in result.interrupts] == ["c3"]
        return (await collect(agent.stream(resume="one", answers={result.interrupts[0].id: "second"})))[1]

    assert asyncio.run(main()).messages == [
        speech.user("go"),
        asked,
        speech.result("c1", "look", "seen"),
        speech.result("c2", "ask", "first"),
        speech.result("c3", "ask", "second"),
        speech.says("done"),
    ]


@every_wire
@streamed_or_not
@pytest.mark.parametrize("directly", [True, False], ids=["tool", "model"])
def test_l6_the_output_key_holds_the_final_text(directly: bool, streaming: bool, speech: Speech):
    model = ScriptedModel([speech.calls(("c1", "look", "{}")), "done"], speech.wire, chunk_size=2)
    agent = ChatModelAgent(model=model, tools=[look], output_key="answer", return_directly=["look"] if directly else [])
    _, result = asyncio.run(collect(agent.stream("go", streaming=streaming, session={"user": "ada"})))
    assert result.session == {"user": "ada", "answer": "seen" if directly else "done"}


def test_l6_a_run_that_fails_leaves_no_output():
    agent = ChatModelAgent(model=ScriptedModel([OSError("no")]), output_key="answer")
    run = agent.stream("go")

    async def main() -> None:
        with pytest.raises(OSError, match="no"):
            await run.result()

    asyncio.run(main())
    assert run.final_result is not None
    assert run.final_result.session == {}
    assert MESSAGE.user("go") in run.final_result.messages
