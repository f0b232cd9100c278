"""The reference's checklist, rows H: hooks."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, cast

import pytest

from suture import (
    ChatModelAgent,
    ChatModelAgentMiddleware,
    ChatModelAgentState,
    ModelRequest,
    ModelRetryConfig,
    ModelWrapper,
    ToolCallRequest,
    ToolResult,
    interrupt,
    replace,
    tool,
)
from suture.events import MessageFinished, RunFinished, RunStarted, ToolFinished
from suture.messages import TextPart
from suture.middleware import EventSenderToolWrapper
from suture.stores import MemoryStore
from suture.testing import ScriptedModel
from tests.agent.lifecycle.recording import collect
from tests.agent.lifecycle.speech import WIRES, Speech, wire_name

every_wire = pytest.mark.parametrize("speech", WIRES, ids=wire_name)


@tool
async def look() -> str:
    """Look."""
    return "seen"


@tool
async def listen() -> str:
    """Listen."""
    return "heard"


@tool
async def ask() -> str:
    """Ask."""
    return await interrupt("may I?")


def middleware(**hooks: Callable[..., Any]) -> ChatModelAgentMiddleware[Any]:
    """Return a middleware of plain functions."""
    return type("Made", (ChatModelAgentMiddleware,), {name: staticmethod(hook) for name, hook in hooks.items()})()


def names(infos: Any) -> list[str]:
    return [info.name for info in infos]


@every_wire
def test_h1_before_agent_runs_in_order_each_with_what_the_one_before_made(speech: Speech):
    def adding(text: str) -> ChatModelAgentMiddleware[Any]:
        return middleware(before_agent=lambda context: replace(context, instruction=f"{context.instruction} {text}"))

    model = ScriptedModel(["done"], speech.wire)
    agent = ChatModelAgent(model=model, instruction="zero", middlewares=[adding("one"), adding("two"), adding("three")])
    asyncio.run(collect(agent.stream("go")))
    assert model.requests[0].instruction == "zero one two three"


@every_wire
def test_h1_an_error_in_before_agent_is_one_event_and_nothing_else_runs(speech: Speech):
    def fail(_context: Any) -> Any:
        raise LookupError("no such user")

    ran: list[str] = []
    model = ScriptedModel(["done"], speech.wire)
    agent = ChatModelAgent(
        model=model,
        middlewares=[
            middleware(before_agent=fail),
            middleware(
                before_agent=lambda _context: ran.append("before_agent"),
                before_model_rewrite_state=lambda _state, _context: ran.append("before_model"),
            ),
        ],
    )
    run, events = agent.stream("go"), []

    async def main() -> None:
        with pytest.raises(LookupError, match="no such user"):  # noqa: PT012 - reading or awaiting may raise
            async for event in run:
                events.append(event)  # noqa: PERF401 - what came before the error counts
            await run.result()

    asyncio.run(main())
    assert ran == []
    assert model.requests == []
    told = [event for event in events if not isinstance(event, RunStarted)]
    assert [type(event) for event in told] == [RunFinished]
    assert (told[0].outcome, told[0].error) == ("failed", "LookupError: no such user")


@every_wire
def test_h2_hooks_on_the_state_run_once_per_turn_however_often_it_is_retried(speech: Speech):
    calls: list[str] = []
    note = speech.user("noted")

    def before(state: ChatModelAgentState[Any], context: Any) -> Any:
        calls.append(f"before {context.turn}")
        return replace(state, messages=[*state.messages, note]) if context.turn == 1 else None

    slow = TimeoutError("slow")
    model = ScriptedModel([slow, slow, speech.calls(("c1", "look", "{}")), slow, "done"], speech.wire)
    agent = ChatModelAgent(
        model=model,
        tools=[look],
        model_retry_config=ModelRetryConfig(max_retries=2, backoff=lambda _attempt: 0),
        middlewares=[
            middleware(
                before_model_rewrite_state=before,
                after_model_rewrite_state=lambda _state, context: calls.append(f"after {context.turn}"),
            )
        ],
    )
    asyncio.run(collect(agent.stream("go")))
    assert calls == ["before 1", "after 1", "before 2", "after 2"]
    assert all(request.messages[1] == note for request in model.requests)
    assert [len(request.messages) for request in model.requests] == [2, 2, 2, 4, 4]


@every_wire
def test_h3_after_hooks_run_in_registration_order(speech: Speech):
    def saying(text: str) -> ChatModelAgentMiddleware[Any]:
        def after(state: Any, _context: Any) -> Any:
            seen.append(state.messages[-1])
            return replace(state, messages=[*state.messages[:-1], speech.says(text)])

        return middleware(after_model_rewrite_state=after)

    seen: list[Any] = []
    agent = ChatModelAgent(model=ScriptedModel(["zero"], speech.wire), middlewares=[saying("one"), saying("two")])
    _, result = asyncio.run(collect(agent.stream("go")))
    assert seen == [speech.says("zero"), speech.says("one")]
    assert result.output == "two"


@every_wire
def test_h3_after_hooks_that_strip_the_calls_end_the_run_although_the_event_shows_them(speech: Speech):
    ran: list[str] = []

    @tool
    async def work() -> str:
        """Work."""
        ran.append("work")
        return "worked"

    asked = speech.calls(("c1", "work", "{}"))

    def strip(state: Any, _context: Any) -> Any:
        return replace(state, messages=[*state.messages[:-1], speech.says("not allowed")])

    agent = ChatModelAgent(
        model=ScriptedModel([asked], speech.wire),
        tools=[work],
        middlewares=[middleware(after_model_rewrite_state=strip)],
    )
    events, result = asyncio.run(collect(agent.stream("go")))
    assert ran == []
    assert [event.message for event in events if isinstance(event, MessageFinished)] == [asked]
    assert result.messages == [speech.user("go"), speech.says("not allowed")]


@every_wire
def test_h3_after_hooks_that_add_a_call_make_it_run_although_the_event_does_not_show_it(speech: Speech):
    asked = speech.calls(("c1", "look", "{}"))

    def add(state: Any, context: Any) -> Any:
        return replace(state, messages=[*state.messages[:-1], asked]) if context.turn == 1 else None

    agent = ChatModelAgent(
        model=ScriptedModel(["I know", "done"], speech.wire),
        tools=[look],
        middlewares=[middleware(after_model_rewrite_state=add)],
    )
    events, result = asyncio.run(collect(agent.stream("go")))
    shown = [event.message for event in events if isinstance(event, MessageFinished)]
    assert shown == [speech.says("I know"), speech.says("done")]
    assert result.messages == [speech.user("go"), asked, speech.result("c1", "look", "seen"), speech.says("done")]


class Noting(ModelWrapper[Any]):
    """Adds a message to the request, and notes it with its id."""

    note: Any
    seen: list[Any]

    async def stream(self, request: ModelRequest[Any], /) -> AsyncIterator[Any]:
        self.seen.append((request.message_id, list(request.messages)))
        async with aclosing(
            cast("Any", self.inner).stream(replace(request, messages=[*request.messages, self.note]))
        ) as pieces:
            async for piece in pieces:
                yield piece


@every_wire
def test_h4_wrap_model_is_outermost_first_sees_message_ids_and_its_edits_are_not_kept(speech: Speech):
    seen: list[tuple[str, list[Any]]] = []

    def adding(text: str) -> ChatModelAgentMiddleware[Any]:
        def wrap(model: Any, _context: Any) -> Any:
            wrapper = Noting(model)
            wrapper.note, wrapper.seen = speech.user(text), seen
            return wrapper

        return middleware(wrap_model=wrap)

    model = ScriptedModel(["done"], speech.wire)
    agent = ChatModelAgent(model=model, middlewares=[adding("one"), adding("two")])
    events, result = asyncio.run(collect(agent.stream("go")))
    go, one, two = speech.user("go"), speech.user("one"), speech.user("two")
    (finished,) = [event for event in events if isinstance(event, MessageFinished)]
    assert seen == [(finished.message_id, [go]), (finished.message_id, [go, one])]
    assert finished.message_id
    assert result.message_ids == ("", finished.message_id)
    assert model.requests[0].messages == [go, one, two]
    assert result.messages == [go, speech.says("done")]


@every_wire
@pytest.mark.parametrize(
    ("place", "told"), [(None, ["seen", "one", "two"]), (1, ["seen", "one"]), (0, ["seen", "one", "two"])]
)
def test_h5_tool_wrappers_are_outermost_first_and_the_event_shows_what_its_sender_sees(
    place: int | None, told: list[str], speech: Speech
):
    def adding(text: str) -> ChatModelAgentMiddleware[Any]:
        async def wrap(call: ToolCallRequest, proceed: Any) -> ToolResult:
            return ToolResult((TextPart(f"{(await proceed(call)).text} {text}"),))

        return middleware(wrap_tool_call=wrap)

    middlewares: list[Any] = [adding("two"), adding("one")]
    if place is not None:
        middlewares.insert(place, EventSenderToolWrapper())
    model = ScriptedModel([speech.calls(("c1", "look", "{}")), "done"], speech.wire)
    events, result = asyncio.run(
        collect(ChatModelAgent(model=model, tools=[look], middlewares=middlewares).stream("go"))
    )
    (finished,) = [event for event in events if isinstance(event, ToolFinished)]
    assert finished.text.split() == told
    assert result.messages[2] == speech.result("c1", "look", "seen one two")


@every_wire
def test_h7_the_hook_after_tools_is_called_once_per_batch_with_the_results_in_the_state(speech: Speech):
    seen: list[list[Any]] = []
    asked = speech.calls(("c1", "look", "{}"), ("c2", "listen", "{}"))
    model = ScriptedModel([asked, speech.calls(("c3", "look", "{}")), "done"], speech.wire)
    agent = ChatModelAgent(model=model, tools=[look, listen])

    def after(state: Any) -> None:
        seen.append(list(state.messages))
        assert len(model.requests) == len(seen)

    _, result = asyncio.run(collect(agent.stream("go", after_tool_calls=after)))
    assert seen == [list(result.messages[:4]), list(result.messages[:6])]
    assert seen[0][2:] == [speech.result("c1", "look", "seen"), speech.result("c2", "listen", "heard")]


@every_wire
def test_h7_what_the_hook_after_tools_returns_is_the_state_from_then_on(speech: Speech):
    model = ScriptedModel([speech.calls(("c1", "look", "{}")), "done"], speech.wire)
    hint = speech.user("enough")

    async def after(state: Any) -> Any:
        return replace(state, messages=[*state.messages, hint], tool_infos=())

    _, result = asyncio.run(collect(ChatModelAgent(model=model, tools=[look]).stream("go", after_tool_calls=after)))
    assert model.requests[1].messages[-1] == hint
    assert model.requests[1].tool_infos == ()
    assert result.messages[3] == hint


def test_h7_the_hook_after_tools_is_not_called_without_calls():
    called: list[Any] = []
    agent = ChatModelAgent(model=ScriptedModel(["done"]), tools=[look])
    asyncio.run(collect(agent.stream("go", after_tool_calls=called.append)))
    assert called == []


@every_wire
def test_h7_an_error_of_the_hook_after_tools_ends_the_run_and_keeps_the_results(speech: Speech):
    def fail(_state: Any) -> Any:
        raise LookupError("enough")

    model = ScriptedModel([speech.calls(("c1", "look", "{}")), "done"], speech.wire)
    run = ChatModelAgent(model=model, tools=[look]).stream("go", after_tool_calls=fail)

    async def main() -> None:
        with pytest.raises(LookupError, match="enough"):
            await run.result()

    asyncio.run(main())
    assert len(model.requests) == 1
    assert run.final_result is not None
    assert run.final_result.messages[2] == speech.result("c1", "look", "seen")


@every_wire
def test_h8_tool_infos_that_a_hook_changed_last_over_turns_and_over_a_resume(speech: Speech):
    def before(state: Any, context: Any) -> Any:
        if context.turn > 1:
            return None
        return replace(state, tool_infos=tuple(info for info in state.tool_infos if info.name != "listen"))

    looked = speech.calls(("c1", "look", "{}"))
    model = ScriptedModel([looked, speech.calls(("c2", "ask", "{}")), "done"], speech.wire)
    agent = ChatModelAgent(
        model=model,
        tools=[look, listen, ask],
        middlewares=[middleware(before_model_rewrite_state=before)],
        checkpoint_store=MemoryStore(),
    )

    async def main() -> None:
        _, first = await collect(agent.stream("go", checkpoint_id="one"))
        await collect(agent.stream(resume="one", answers={first.interrupts[0].id: "yes"}))

    asyncio.run(main())
    assert [names(request.tool_infos) for request in model.requests] == [["look", "ask"]] * 3


@every_wire
def test_h8_options_of_the_caller_lose_against_the_state(speech: Speech):
    model = ScriptedModel(["done"], speech.wire)
    agent = ChatModelAgent(
        model=model,
        tools=[look, listen],
        middlewares=[
            middleware(
                before_model_rewrite_state=lambda state, _context: replace(state, tool_infos=state.tool_infos[:1])
            )
        ],
    )
    asyncio.run(collect(agent.stream("go", options={"tool_infos": (), "messages": [], "temperature": 0})))
    assert names(model.requests[0].tool_infos) == ["look"]
    assert model.requests[0].messages == [speech.user("go")]
    assert model.requests[0].options["temperature"] == 0
