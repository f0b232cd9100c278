"""The reference's known defects, one by one: none of them is here.

Left out, because what they are about does not exist here:

| defect | about |
|---|---|
| A9 | name aliases: a tool has one name |
| B3, B4 | races of nested streaming graphs and of immediate cancel: the rows I and C of the checklist hold those |
| B7 | workflows |
| D, graphs | graphs compiled for each run: there is no graph |
| D, DeepAgent | its clone lacks retry: there is no DeepAgent |
| C, transfer | transfer, workflows, supervisor, plan-execute, history modifier |
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from suture import (
    AgentMiddleware,
    ChatModelAgent,
    ChatModelAgentMiddleware,
    ModelFailoverConfig,
    ModelRetryConfig,
    Outcome,
    RetryContext,
    ToolResult,
    current_run,
    exit_tool,
    get_run_local_value,
    replace,
    send_event,
    set_run_local_value,
    tool,
)
from suture.events import Custom, MessageFinished, ModelStarted, RetryScheduled, RunFinished, ToolFinished, ToolStarted
from suture.messages import ImagePart, TextPart
from suture.middleware import EventSenderModelWrapper, EventSenderToolWrapper
from suture.testing import ScriptedModel
from tests.agent.lifecycle.recording import KINDS, Plain, collect, steps, tool_of_kind
from tests.agent.lifecycle.speech import AGENTIC, MESSAGE, WIRES, Speech, wire_name

every_wire = pytest.mark.parametrize("speech", WIRES, ids=wire_name)


@tool
async def look() -> str:
    """Look."""
    return "seen"


@tool
async def fail() -> str:
    """Fail."""
    raise OSError("disk full")


def middleware(**hooks: Callable[..., Any]) -> ChatModelAgentMiddleware[Any]:
    """Return a middleware of plain functions."""
    return type("Made", (ChatModelAgentMiddleware,), {name: staticmethod(hook) for name, hook in hooks.items()})()


def of(events: list[Any], *kinds: type) -> list[Any]:
    return [event for event in events if isinstance(event, kinds)]


def test_a1_to_cancel_one_of_several_runs_of_an_agent_does_not_touch_the_others():
    async def main() -> list[Any]:
        waiting = [asyncio.Event() for _ in range(3)]
        go_on = asyncio.Event()

        @tool
        async def wait(number: int) -> str:
            """Wait."""
            waiting[number].set()
            await go_on.wait()
            return f"waited {number}"

        def reply(messages: Any) -> Any:
            if len(messages) > 1:
                return "done"
            return MESSAGE.calls(("c1", "wait", f'{{"number": {messages[0].content}}}'))

        agent = ChatModelAgent(model=ScriptedModel(reply), tools=[wait])
        runs = [agent.stream(str(number)) for number in range(3)]
        reading = [asyncio.create_task(collect(run)) for run in runs]
        for each in waiting:
            await each.wait()
        await runs[1].cancel()
        go_on.set()
        return [result for _, result in await asyncio.gather(*reading)]

    results = asyncio.run(main())
    assert [result.outcome for result in results] == [Outcome.FINISHED, Outcome.CANCELLED, Outcome.FINISHED]
    for number in (0, 2):
        assert results[number].messages[2] == MESSAGE.result("c1", "wait", f"waited {number}")


def test_a2_a_first_run_that_failed_does_not_make_the_next_one_fail():
    attempts: list[int] = []

    def flaky(context: Any) -> Any:
        attempts.append(1)
        if len(attempts) == 1:
            raise LookupError("not yet")
        return replace(context, tools=(look,))

    agent = ChatModelAgent(model=ScriptedModel(["done"]), middlewares=[middleware(before_agent=flaky)])

    async def main() -> Any:
        with pytest.raises(LookupError):
            await agent.run("go")
        return await agent.run("go")

    assert asyncio.run(main()).output == "done"


@every_wire
def test_a3_a_placed_model_sender_is_told_about_failover(speech: Speech):
    cut = ScriptedModel(["a long answer"], speech.wire, chunk_size=2, cut_after=2)
    agent = ChatModelAgent(
        model=cut,
        failover=ModelFailoverConfig(models=[ScriptedModel(["done"], speech.wire)]),
        middlewares=[EventSenderModelWrapper()],
    )
    events, result = asyncio.run(collect(agent.stream("go")))
    assert [event.message_id for event in of(events, RetryScheduled)] == [of(events, ModelStarted)[0].message_id]
    assert [event.message for event in of(events, MessageFinished)] == [speech.says("done")]
    assert result.output == "done"


@every_wire
def test_a4_judging_outputs_without_streaming_leaves_the_model_sender_at_its_place(speech: Speech):
    def judge(context: RetryContext[Any]) -> bool:
        return context.attempt == 1

    agent = ChatModelAgent(
        model=ScriptedModel(["one", "two"], speech.wire),
        model_retry_config=ModelRetryConfig(should_retry=judge, backoff=lambda _attempt: 0),
        middlewares=[Plain("A"), EventSenderModelWrapper(), Plain("B")],
    )
    events, _ = asyncio.run(collect(agent.stream("go", streaming=False)))
    seen = [each for each in steps(events) if each.endswith("model: out") or each == "model event: finished"]
    assert seen[-3:] == ["B model: out", "model event: finished", "A model: out"]


@every_wire
def test_a5_before_agent_can_remove_the_last_tool_and_clear_return_directly(speech: Speech):
    clear = middleware(before_agent=lambda context: replace(context, tools=(), return_directly=frozenset()))
    model = ScriptedModel(["done"], speech.wire)
    asyncio.run(collect(ChatModelAgent(model=model, tools=[look], middlewares=[clear]).stream("go")))
    assert model.requests[0].tool_infos == ()
    undo = middleware(before_agent=lambda context: replace(context, return_directly=frozenset()))
    model = ScriptedModel([speech.calls(("c1", "look", "{}")), "done"], speech.wire)
    agent = ChatModelAgent(model=model, tools=[look], return_directly=["look"], middlewares=[undo])
    assert asyncio.run(collect(agent.stream("go")))[1].output == "done"


def test_a6_there_is_a_hook_after_tools_and_one_for_cleaning_up_after_an_error():
    called: list[Any] = []
    model = ScriptedModel([MESSAGE.calls(("c1", "look", "{}")), OSError("disk full")])
    cleaning = middleware(after_agent=lambda _state, outcome: called.append(outcome))
    run = ChatModelAgent(model=model, tools=[look], middlewares=[cleaning]).stream(
        "go", after_tool_calls=lambda state: called.append(len(state.messages))
    )

    async def main() -> None:
        with pytest.raises(OSError, match="disk full"):
            await run.result()

    asyncio.run(main())
    assert called == [3, Outcome.FAILED]


@pytest.mark.parametrize("kind", KINDS)
def test_a7_one_wrapper_is_enough_for_every_kind_of_tool_and_every_kind_has_events(kind: str):
    wrapped: list[str] = []

    async def wrap(call: Any, proceed: Any) -> ToolResult:
        wrapped.append(call.name)
        return await proceed(call)

    model = ScriptedModel([MESSAGE.calls(("c1", "work", "{}")), "done"])
    agent = ChatModelAgent(model=model, tools=[tool_of_kind(kind)], middlewares=[middleware(wrap_tool_call=wrap)])
    events, _ = asyncio.run(collect(agent.stream("go")))
    assert wrapped == ["work"]
    assert [event.text for event in of(events, ToolFinished)] == ["worked"]
    assert len(of(events, ToolStarted)) == 1


@every_wire
def test_a8_an_unknown_tool_passes_the_middlewares_and_has_events_and_stops_no_sibling(speech: Speech):
    wrapped: list[str] = []

    async def wrap(call: Any, proceed: Any) -> ToolResult:
        result = await proceed(call)
        wrapped.append(f"{call.name} {result.is_error}")
        return result

    model = ScriptedModel([speech.calls(("c1", "nothing", "{}"), ("c2", "look", "{}")), "done"], speech.wire)
    agent = ChatModelAgent(model=model, tools=[look], middlewares=[middleware(wrap_tool_call=wrap)])
    events, result = asyncio.run(collect(agent.stream("go")))
    assert sorted(wrapped) == ["look False", "nothing True"]
    told = {event.name: event for event in of(events, ToolFinished)}
    assert told["nothing"].result.is_error
    assert "nothing" in told["nothing"].text
    assert result.messages[2] == speech.result("c1", "nothing", told["nothing"].text, is_error=True)
    assert result.messages[3] == speech.result("c2", "look", "seen")
    assert len(of(events, ToolStarted)) == 2


@every_wire
def test_a10_a_tool_that_fails_does_not_end_the_run(speech: Speech):
    model = ScriptedModel([speech.calls(("c1", "fail", "{}"), ("c2", "look", "{}")), "done"], speech.wire)
    _, result = asyncio.run(collect(ChatModelAgent(model=model, tools=[fail, look]).stream("go")))
    assert result.messages[2] == speech.result("c1", "fail", "OSError: disk full", is_error=True)
    assert result.messages[3] == speech.result("c2", "look", "seen")
    assert result.output == "done"


@every_wire
def test_a11_an_event_of_ones_own_never_cancels_an_exit(speech: Speech):
    model = ScriptedModel([speech.calls(("c1", "exit", '{"final_result": "bye"}'))], speech.wire)
    tell = middleware(after_agent=lambda _state, _outcome: send_event(Custom("last")))
    agent = ChatModelAgent(model=model, tools=[exit_tool()], middlewares=[tell])
    run = agent.stream("go", after_tool_calls=lambda _state: send_event(Custom("after tools")))
    events, result = asyncio.run(collect(run))
    assert [event.name for event in of(events, Custom)] == ["after tools", "last"]
    assert result.output == "bye"
    assert len(model.requests) == 1


@every_wire
def test_a11_run_local_values_can_be_set_in_before_agent_and_do_not_leak_to_the_agent_outside(speech: Speech):
    seen: list[Any] = []

    def begin(_context: Any) -> None:
        seen.append(("inner begins with", get_run_local_value("who")))
        set_run_local_value("who", "inner")

    def check(_state: Any, _context: Any) -> None:
        seen.append(("outer has", get_run_local_value("who")))

    inner = ChatModelAgent(
        name="inner",
        description="x",
        model=ScriptedModel(["well"], speech.wire),
        middlewares=[middleware(before_agent=begin)],
    )
    agent = ChatModelAgent(
        name="outer",
        model=ScriptedModel([speech.calls(("c1", "inner", '{"request": "?"}')), "done"], speech.wire),
        tools=[inner.as_tool()],
        middlewares=[
            middleware(
                before_agent=lambda _context: set_run_local_value("who", "outer"), before_model_rewrite_state=check
            )
        ],
    )
    asyncio.run(collect(agent.stream("go")))
    assert seen == [
        ("outer has", ("outer", True)),
        ("inner begins with", (None, False)),
        ("outer has", ("outer", True)),
    ]


@every_wire
def test_a12_an_instruction_with_braces_is_sent_as_it_is_also_with_session_values(speech: Speech):
    instruction = 'Answer as {"name": {name}} and {}; 100 % of {0!r}'
    model = ScriptedModel(["done"], speech.wire)
    agent = ChatModelAgent(model=model, instruction=instruction)
    asyncio.run(collect(agent.stream("go", session={"name": "ada"})))
    assert model.requests[0].instruction == instruction


def test_c_an_agentic_agent_has_an_exit_tool_whose_text_is_under_the_output_key():
    model = ScriptedModel([AGENTIC.calls(("c1", "exit", '{"final_result": "bye"}'))], "agentic")
    agent = ChatModelAgent(model=model, tools=[exit_tool()], output_key="answer")
    events, result = asyncio.run(collect(agent.stream("go")))
    assert result.output == "bye"
    assert result.session == {"answer": "bye"}
    assert [event.return_directly for event in of(events, ToolFinished)] == [True]


def test_c_an_agentic_agent_takes_event_senders_older_hooks_and_run_local_values():
    called: list[str] = []

    def before(_state: Any) -> None:
        set_run_local_value("turns", get_run_local_value("turns")[0] or 0)
        called.append("before")

    agent = ChatModelAgent(
        model=ScriptedModel([AGENTIC.calls(("c1", "look", "{}")), "done"], "agentic"),
        tools=[look],
        middlewares=[
            AgentMiddleware(
                before_chat_model=before,
                after_chat_model=lambda _state: called.append("after"),
                additional_instruction="be brief",
            ),
            EventSenderModelWrapper(),
            EventSenderToolWrapper(),
        ],
    )
    events, result = asyncio.run(collect(agent.stream("go")))
    assert called == ["before", "after"] * 2
    assert len(of(events, MessageFinished)) == 2
    assert len(of(events, ToolFinished)) == 1
    assert result.output == "done"


@every_wire
def test_c_parts_and_session_values_are_the_same_on_every_wire(speech: Speech):
    cat = ImagePart(url="https://example.com/cat.png")

    @tool
    async def show() -> ToolResult:
        """Show a cat."""
        session = current_run().session
        session["shown"] = [*session.get("shown", []), "cat"]
        return ToolResult(
            (
                TextPart("a cat"),
                cat,
            )
        )

    model = ScriptedModel([speech.calls(("c1", "show", "{}")), "done"], speech.wire)
    events, result = asyncio.run(collect(ChatModelAgent(model=model, tools=[show]).stream("go")))
    assert [event.result.parts for event in of(events, ToolFinished)] == [(TextPart("a cat"), cat)]
    assert result.session == {"shown": ["cat"]}


def test_d_events_have_ids_times_and_numbers_and_nothing_is_logged(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.DEBUG):
        agent = ChatModelAgent(
            model=ScriptedModel([OSError("no")]),
            failover=ModelFailoverConfig(models=[ScriptedModel([MESSAGE.calls(("c1", "fail", "{}")), "done"])]),
            tools=[fail],
        )
        events, result = asyncio.run(collect(agent.stream("go")))
    assert [record for record in caplog.records if record.name != "asyncio"] == []
    assert [event.sequence for event in events] == list(range(len(events)))
    assert {event.run_id for event in events} == {result.run_id}
    assert all(event.time > 0 for event in events)


def test_d_the_events_of_an_agent_inside_come_once():
    inner = ChatModelAgent(name="inner", description="x", model=ScriptedModel(["well"], chunk_size=2))
    model = ScriptedModel([MESSAGE.calls(("c1", "inner", '{"request": "?"}')), "done"])
    agent = ChatModelAgent(name="outer", model=model, tools=[inner.as_tool()])
    events, _ = asyncio.run(collect(agent.stream("go")))
    assert [type(event).__name__ for event in events if event.run_path == ("outer", "inner")] == [
        "RunStarted",
        "ModelStarted",
        "MessageDelta",
        "MessageDelta",
        "MessageFinished",
        "RunFinished",
    ]
    assert len(of(events, RunFinished)) == 2
