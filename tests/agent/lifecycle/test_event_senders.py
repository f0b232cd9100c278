"""Event senders stand outermost; placed in the list of middlewares, they send what they see there, and only there."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, cast

import pytest

from suture import (
    AgentMiddleware,
    ChatModelAgent,
    ChatModelAgentMiddleware,
    Delta,
    ModelFailoverConfig,
    ModelRequest,
    ModelRetryConfig,
    ModelWrapper,
    RetryContext,
    ToolCallRequest,
    ToolContext,
    ToolResult,
    replace,
    tool,
)
from suture.events import (
    MessageDelta,
    MessageFinished,
    ModelStarted,
    RetryScheduled,
    ToolDelta,
    ToolFinished,
    ToolStarted,
)
from suture.messages import TextPart
from suture.middleware import CallTool, EventSenderModelWrapper, EventSenderToolWrapper
from suture.testing import ScriptedModel
from tests.agent.lifecycle.recording import KINDS, Plain, collect, steps, tool_of_kind
from tests.agent.lifecycle.speech import MESSAGE, WIRES, Speech, wire_name

every_wire = pytest.mark.parametrize("speech", WIRES, ids=wire_name)
streamed_or_not = pytest.mark.parametrize("streaming", [True, False], ids=["streaming", "not-streaming"])


class Shouting(ModelWrapper[Any]):
    """A model in capital letters, its pieces too."""

    shout: Any

    async def stream(self, request: ModelRequest[Any], /) -> AsyncIterator[Any]:
        async with aclosing(cast("Any", self.inner).stream(request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Delta):
                    yield replace(piece, text=piece.text.upper())
                else:
                    yield self.shout


class ShoutingModel(ChatModelAgentMiddleware[Any]):
    def __init__(self, speech: Speech) -> None:
        self._speech = speech

    def wrap_model(self, model: Any, model_context: Any) -> Any:
        wrapper = Shouting(model)
        wrapper.shout = self._speech.says("DONE")
        return wrapper


class ShoutingTools(ChatModelAgentMiddleware[Any]):
    """Makes the results that calls return loud; the pieces on their way stay as they are."""

    async def wrap_tool_call(self, call: ToolCallRequest, proceed: CallTool) -> ToolResult:
        return ToolResult((TextPart((await proceed(call)).text.upper()),))


def of(events: list[Any], *kinds: type) -> list[Any]:
    return [event for event in events if isinstance(event, kinds)]


@every_wire
@streamed_or_not
@pytest.mark.parametrize(
    ("place", "said", "pieces"),
    [(None, "DONE", ["DO", "NE"]), (0, "DONE", ["DO", "NE"]), (1, "done", ["do", "ne"])],
    ids=["default", "outside", "inside"],
)
def test_the_model_event_shows_the_reply_at_the_place_of_its_sender(
    place: int | None, said: str, pieces: list[str], streaming: bool, speech: Speech
):
    middlewares: list[Any] = [ShoutingModel(speech)]
    if place is not None:
        middlewares.insert(place, EventSenderModelWrapper())
    agent = ChatModelAgent(model=ScriptedModel(["done"], speech.wire, chunk_size=2), middlewares=middlewares)
    events, result = asyncio.run(collect(agent.stream("go", streaming=streaming)))
    assert len(of(events, ModelStarted)) == 1
    assert [event.message for event in of(events, MessageFinished)] == [speech.says(said)]
    assert [event.text for event in of(events, MessageDelta)] == (pieces if streaming else [])
    assert result.messages == [speech.user("go"), speech.says("DONE")]


@streamed_or_not
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("place", "said"), [(None, "WORKED"), (0, "WORKED"), (1, "worked")], ids=["default", "outside", "inside"]
)
def test_the_tool_event_shows_the_result_at_the_place_of_its_sender(
    place: int | None, said: str, kind: str, streaming: bool
):
    middlewares: list[Any] = [ShoutingTools()]
    if place is not None:
        middlewares.insert(place, EventSenderToolWrapper())
    model = ScriptedModel([MESSAGE.calls(("c1", "work", "{}")), "done"])
    agent = ChatModelAgent(model=model, tools=[tool_of_kind(kind)], middlewares=middlewares)
    events, result = asyncio.run(collect(agent.stream("go", streaming=streaming)))
    assert len(of(events, ToolStarted)) == 1
    assert [event.text for event in of(events, ToolFinished)] == [said]
    pieces = "".join(part.text for event in of(events, ToolDelta) for part in event.result.parts)
    assert pieces == ("worked" if streaming and kind.endswith("streamable") else "")
    assert result.messages[2] == MESSAGE.result("c1", "work", "WORKED")


@every_wire
def test_placed_senders_stand_where_they_are_placed(speech: Speech):
    agent = ChatModelAgent(
        model=ScriptedModel([speech.calls(("c1", "work", "{}")), "done"], speech.wire),
        tools=[tool_of_kind("invokable")],
        middlewares=[Plain("A"), EventSenderModelWrapper(), EventSenderToolWrapper(), Plain("B")],
    )
    events, _ = asyncio.run(collect(agent.stream("go")))
    around_models = [
        each for each in steps(events) if each.endswith(("model: in", "model: out")) or each == "model event: finished"
    ]
    turn = ["A model: in", "B model: in", "B model: out", "model event: finished", "A model: out"]
    assert around_models == turn + turn
    around_calls = [each for each in steps(events) if "wrap_tool_call" in each or each.startswith("tool event")]
    assert around_calls == [
        "A wrap_tool_call: in",
        "tool event: started",
        "B wrap_tool_call: in",
        "B wrap_tool_call: out",
        "A wrap_tool_call: out",
        "tool event: finished",  # what was seen at its place, told once it is stored
    ]


@every_wire
@streamed_or_not
def test_a_placed_sender_keeps_its_place_when_outputs_are_judged(speech: Speech, streaming: bool):
    def too_short(context: RetryContext[Any]) -> bool:
        return context.attempt == 1

    agent = ChatModelAgent(
        model=ScriptedModel(["one", "two"], speech.wire, chunk_size=2),
        middlewares=[ShoutingModel(speech), EventSenderModelWrapper()],
        model_retry_config=ModelRetryConfig(should_retry=too_short, backoff=lambda _attempt: 0),
    )
    events, result = asyncio.run(collect(agent.stream("go", streaming=streaming)))
    assert of(events, MessageFinished)[-1].message == speech.says("two")
    (retry,) = of(events, RetryScheduled)
    discarded = {event.message_id for event in of(events, MessageFinished)[:-1]}
    assert discarded <= {retry.message_id}
    assert result.messages == [speech.user("go"), speech.says("DONE")]


@every_wire
@pytest.mark.parametrize("placed", [True, False])
def test_a_failed_attempt_before_a_failover_is_marked_as_one_to_discard(speech: Speech, placed: bool):
    broken = ScriptedModel(["never whole"], speech.wire, chunk_size=3, cut_after=2)
    agent = ChatModelAgent(
        model=broken,
        failover=ModelFailoverConfig(models=[ScriptedModel(["done"], speech.wire, chunk_size=2)]),
        middlewares=[EventSenderModelWrapper()] if placed else [],
    )
    events, result = asyncio.run(collect(agent.stream("go")))
    (retry,) = of(events, RetryScheduled)
    started = of(events, ModelStarted)
    assert len(started) == 2
    assert retry.message_id == started[0].message_id != started[1].message_id
    assert retry.failover
    assert [event.text for event in of(events, MessageDelta) if event.message_id == retry.message_id] == ["nev", "er "]
    assert [event.message_id for event in of(events, MessageFinished)] == [started[1].message_id]
    assert result.messages == [speech.user("go"), speech.says("done")]


def test_a_placed_tool_sender_is_outside_what_follows_it_and_the_older_form_outside_of_it():
    async def older(call: ToolCallRequest, proceed: CallTool) -> ToolResult:
        return ToolResult((TextPart((await proceed(call)).text + " outside"),))

    class Specific(ChatModelAgentMiddleware[Any]):
        def wrap_invokable_tool_call(self, endpoint: Any, context: ToolContext) -> Any:
            async def around(arguments: str, **options: Any) -> str:
                return await endpoint(arguments, **options) + " inside"

            return around

    agent = ChatModelAgent(
        model=ScriptedModel([MESSAGE.calls(("c1", "work", "{}")), "done"]),
        tools=[tool_of_kind("invokable")],
        middlewares=[EventSenderToolWrapper(), Specific(), AgentMiddleware(wrap_tool_call=older)],
    )
    events, result = asyncio.run(collect(agent.stream("go")))
    assert [event.text for event in of(events, ToolFinished)] == ["worked inside"]
    assert result.messages[2] == MESSAGE.result("c1", "work", "worked inside outside")


@pytest.mark.parametrize("placed", [True, False])
def test_a_call_that_failed_has_an_end_wherever_its_sender_stands(placed: bool):
    @tool
    async def work() -> str:
        """Fail."""
        raise OSError("disk full")

    agent = ChatModelAgent(
        model=ScriptedModel([MESSAGE.calls(("c1", "work", "{}")), "done"]),
        tools=[work],
        middlewares=[EventSenderToolWrapper()] if placed else [],
    )
    events, result = asyncio.run(collect(agent.stream("go")))
    assert result.messages[2] == MESSAGE.result("c1", "work", "OSError: disk full", is_error=True)
    assert [type(event) for event in of(events, ToolStarted, ToolFinished)] == [ToolStarted, ToolFinished]
    assert of(events, ToolFinished)[0].result.is_error


@pytest.mark.parametrize("placed", [True, False])
def test_the_result_that_ends_the_run_is_marked_and_told_last_wherever_the_sender_stands(placed: bool):
    async def main() -> list[Any]:
        beside = asyncio.Event()

        @tool
        async def final() -> str:
            """End the run."""
            beside.set()
            return "the end"

        @tool
        async def other() -> str:
            """Take longer."""
            await beside.wait()
            return "on the way"

        agent = ChatModelAgent(
            model=ScriptedModel([MESSAGE.calls(("c1", "final", "{}"), ("c2", "other", "{}"))]),
            tools=[final, other],
            return_directly=["final"],
            middlewares=[EventSenderToolWrapper()] if placed else [],
        )
        events, result = await collect(agent.stream("go"))
        assert result.output == "the end"
        return [(event.name, event.return_directly) for event in of(events, ToolFinished)]

    assert asyncio.run(main()) == [("other", False), ("final", True)]
