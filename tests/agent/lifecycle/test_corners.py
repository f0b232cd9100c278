"""Corners of the lifecycles: threads, options, awaiters that go away, and every change of the history that is told."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from suture import (
    AgentMiddleware,
    Callbacks,
    ChatModelAgent,
    ChatModelAgentMiddleware,
    ConfigError,
    ModelFailoverConfig,
    ModelRetryConfig,
    Outcome,
    RetryDecision,
    Tool,
    ToolCallRequest,
    ToolInfo,
    ToolResult,
    get_run_local_value,
    interrupt,
    replace,
    send_event,
    set_run_local_value,
    tool,
)
from suture.events import Custom, HistoryRewritten, ToolDelta
from suture.stores import MemoryStore
from suture.testing import ScriptedModel
from tests.agent.lifecycle.recording import collect
from tests.agent.lifecycle.speech import MESSAGE, WIRES, Speech, wire_name

every_wire = pytest.mark.parametrize("speech", WIRES, ids=wire_name)


@tool
async def look() -> str:
    """Look."""
    return "seen"


def middleware(**hooks: Callable[..., Any]) -> ChatModelAgentMiddleware[Any]:
    """Return a middleware of plain functions."""
    return type("Made", (ChatModelAgentMiddleware,), {name: staticmethod(hook) for name, hook in hooks.items()})()


def looking(speech: Speech = MESSAGE) -> ScriptedModel:
    return ScriptedModel([speech.calls(("c1", "look", "{}")), "done"], speech.wire)


def test_a_tool_in_a_thread_sends_events_that_are_read_while_it_runs_and_keeps_values():
    heard = threading.Event()

    @tool
    def work() -> str:
        """Work until somebody has heard of it."""
        send_event(Custom("progress"))
        set_run_local_value("progress", 1)
        return f"heard: {heard.wait(5)}, kept: {get_run_local_value('progress')}"

    async def main() -> Any:
        model = ScriptedModel([MESSAGE.calls(("c1", "work", "{}")), "done"])
        run = ChatModelAgent(model=model, tools=[work]).stream("go")
        async for event in run:
            if isinstance(event, Custom):
                heard.set()
        return await run.result()

    assert asyncio.run(main()).messages[2].content == "heard: True, kept: (1, True)"


def test_a_generator_in_a_thread_is_read_piece_by_piece():
    heard = [threading.Event(), threading.Event()]

    @tool
    def count() -> Iterator[str]:
        """Count, each number when the one before was heard."""
        yield "one "
        yield f"two {heard[0].wait(5)} "
        yield f"three {heard[1].wait(5)}"

    async def main() -> Any:
        model = ScriptedModel([MESSAGE.calls(("c1", "count", "{}")), "done"])
        run = ChatModelAgent(model=model, tools=[count]).stream("go")
        waiting = iter(heard)
        async for event in run:
            if isinstance(event, ToolDelta) and (each := next(waiting, None)):
                each.set()
        return await run.result()

    assert asyncio.run(main()).messages[2].content == "one two True three True"


def test_options_for_tools_pass_every_wrapper_and_may_be_changed_there():
    seen: list[Any] = []

    async def endpoint(arguments: str, **options: Any) -> str:
        seen.append(("tool", arguments, options["region"]))
        return "worked"

    async def wrap(call: ToolCallRequest, proceed: Any) -> ToolResult:
        seen.append((call.name, call.arguments, call.options["region"]))
        return await proceed(replace(call, options={**call.options, "region": "north"}))

    work = Tool(ToolInfo("work"), "invokable", endpoint)
    model = ScriptedModel([MESSAGE.calls(("c1", "work", '{"a": 1}')), "done"])
    agent = ChatModelAgent(model=model, tools=[work], middlewares=[middleware(wrap_tool_call=wrap)])
    asyncio.run(collect(agent.stream("go", tool_options={"region": "south"})))
    assert seen == [("work", '{"a": 1}', "south"), ("tool", '{"a": 1}', "north")]


def test_callbacks_are_told_of_a_tools_own_exception():
    told: list[Any] = []

    @tool
    async def fail() -> str:
        """Fail."""
        raise OSError("disk full")

    model = ScriptedModel([MESSAGE.calls(("c1", "fail", "{}")), "done"])
    callbacks = Callbacks(on_error=lambda component, error: told.append((component.kind, component.name, str(error))))
    asyncio.run(collect(ChatModelAgent(model=model, tools=[fail], callbacks=callbacks).stream("go")))
    assert told == [("tool", "fail", "disk full")]


def test_there_may_be_several_callbacks_and_more_for_one_run():
    told: list[tuple[str, str]] = []

    def named(name: str) -> Callbacks:
        return Callbacks(on_start=lambda component, _: told.append((name, component.kind)))

    agent = ChatModelAgent(model=ScriptedModel(["one", "two"]), callbacks=[named("a"), named("b")])

    async def main() -> None:
        await agent.run("go", callbacks=[named("c")])
        await agent.run("go")

    asyncio.run(main())
    assert told == [(name, kind) for names in ("abc", "ab") for kind in ("agent", "model") for name in names]


def test_an_agent_that_a_hook_runs_is_cancelled_with_the_run_around_it():
    async def main() -> None:
        asked, stopped = asyncio.Event(), asyncio.Event()

        async def hang(_messages: Any) -> str:
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()
            return "never"

        inner = ChatModelAgent(model=ScriptedModel([hang]))

        async def think(_state: Any, _context: Any) -> None:
            await inner.run("think")

        outer = ChatModelAgent(
            model=ScriptedModel(["done"]), middlewares=[middleware(before_model_rewrite_state=think)]
        )
        run = outer.stream("go")
        reading = asyncio.create_task(collect(run))
        await asked.wait()
        assert (await run.cancel()).outcome is Outcome.CANCELLED
        assert stopped.is_set()
        await reading

    asyncio.run(main())


def test_to_cancel_who_awaits_a_run_stops_the_run_before_the_cancellation_goes_on():
    async def main() -> None:
        asked = asyncio.Event()

        async def hang(_messages: Any) -> str:
            asked.set()
            await asyncio.Event().wait()
            return "never"

        run = ChatModelAgent(model=ScriptedModel([hang])).stream("go")

        async def impatient() -> Any:
            return await run.result()

        awaiting = asyncio.create_task(impatient())
        await asked.wait()
        awaiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await awaiting
        assert run.final_result is not None
        assert run.final_result.outcome is Outcome.CANCELLED
        assert await run.result() is run.final_result

    asyncio.run(main())


def test_a_run_of_nobody_that_is_given_up_with_its_awaiter_is_stopped():
    async def main() -> None:
        asked, stopped = asyncio.Event(), asyncio.Event()

        async def hang(_messages: Any) -> str:
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()
            return "never"

        agent = ChatModelAgent(model=ScriptedModel([hang]))

        async def give_up() -> None:
            async with asyncio.timeout(60):
                await agent.run("go")

        giving_up = asyncio.create_task(give_up())
        await asked.wait()
        giving_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await giving_up
        async with asyncio.timeout(60):
            await stopped.wait()

    asyncio.run(main())


@every_wire
def test_an_error_after_a_reply_with_calls_leaves_each_of_them_answered(speech: Speech):
    def fail(_state: Any, _context: Any) -> Any:
        raise LookupError("no")

    model = looking(speech)
    run = ChatModelAgent(model=model, tools=[look], middlewares=[middleware(after_model_rewrite_state=fail)]).stream(
        "go"
    )

    async def main() -> None:
        with pytest.raises(LookupError):
            await run.result()

    asyncio.run(main())
    assert run.final_result is not None
    assert run.final_result.messages[:2] == [speech.user("go"), speech.calls(("c1", "look", "{}"))]
    assert len(run.final_result.messages) == 3


@every_wire
def test_an_error_before_the_second_turn_keeps_the_results_of_the_first(speech: Speech):
    def fail(_state: Any, context: Any) -> Any:
        if context.turn == 2:
            raise LookupError("no")

    run = ChatModelAgent(
        model=looking(speech), tools=[look], middlewares=[middleware(before_model_rewrite_state=fail)]
    ).stream("go")

    async def main() -> None:
        with pytest.raises(LookupError):
            await run.result()

    asyncio.run(main())
    assert run.final_result is not None
    assert run.final_result.messages[2:] == [speech.result("c1", "look", "seen")]


def test_models_of_another_wire_are_refused_as_failover_at_construction():
    with pytest.raises(ConfigError, match="openai-chat"):
        ChatModelAgent(
            model=ScriptedModel(["done"]), failover=ModelFailoverConfig(models=[ScriptedModel(["done"], "openai-chat")])
        )


def test_before_agent_is_called_again_on_resume_and_its_changes_hold():
    @tool
    async def ask() -> str:
        """Ask."""
        return await interrupt("may I?")

    seen: list[tuple[bool, int]] = []

    def begin(context: Any) -> Any:
        seen.append((context.resumed, len(context.messages)))
        return replace(context, instruction=f"begun {len(seen)}", tools=(*context.tools, look))

    model = ScriptedModel([MESSAGE.calls(("c1", "ask", "{}")), MESSAGE.calls(("c2", "look", "{}")), "done"])
    agent = ChatModelAgent(
        model=model, tools=[ask], middlewares=[middleware(before_agent=begin)], checkpoint_store=MemoryStore()
    )

    async def main() -> Any:
        _, first = await collect(agent.stream("go", checkpoint_id="one"))
        return await agent.resume("one", answers={first.interrupts[0].id: "yes"})

    result = asyncio.run(main())
    assert seen == [(False, 1), (True, 2)]
    assert [request.instruction for request in model.requests] == ["begun 1", "begun 2", "begun 2"]
    assert result.messages[4] == MESSAGE.result("c2", "look", "seen")


def test_deferred_tools_that_the_hook_after_tools_changes_last():
    rarely = ToolInfo("rarely", "Seldom needed.")
    model = looking()
    agent = ChatModelAgent(model=model, tools=[look])
    run = agent.stream("go", after_tool_calls=lambda state: replace(state, deferred_tool_infos=(rarely,)))
    asyncio.run(collect(run))
    assert [request.deferred_tool_infos for request in model.requests] == [(), (rarely,)]


SHORT = [MESSAGE.user("in short")]


@pytest.mark.parametrize(
    "author", ["before_chat_model", "before_model_rewrite_state", "after_tool_calls", "should_retry"]
)
def test_every_change_of_the_history_is_told(author: str):
    def shorten(state: Any, *_: Any) -> Any:
        return replace(state, messages=[*SHORT, *state.messages[1:]]) if state.messages[0] not in SHORT else None

    def judge(context: Any) -> RetryDecision[Any] | None:
        if context.error is None:
            return None
        return RetryDecision(retry=True, modified_input_messages=SHORT, persist_modified_input_messages=True, backoff=0)

    middlewares: list[Any] = []
    if author == "before_chat_model":
        middlewares.append(AgentMiddleware(before_chat_model=shorten))
    elif author == "before_model_rewrite_state":
        middlewares.append(middleware(before_model_rewrite_state=shorten))
    model = looking()
    if author == "should_retry":
        model = ScriptedModel([TimeoutError("too long"), "done"])
    agent = ChatModelAgent(
        model=model,
        tools=[look],
        middlewares=middlewares,
        model_retry_config=ModelRetryConfig(should_retry=judge) if author == "should_retry" else None,
    )
    after = shorten if author == "after_tool_calls" else None
    events, result = asyncio.run(collect(agent.stream("go", after_tool_calls=after)))
    assert result.messages[0] == SHORT[0]
    assert result.outcome is Outcome.FINISHED
    assert len([event for event in events if isinstance(event, HistoryRewritten)]) == 1


@every_wire
@pytest.mark.parametrize("hook", ["wrap_model", "wrap_invokable_tool_call"])
def test_a_wrapping_hook_that_returns_nothing_changes_nothing(hook: str, speech: Speech):
    called: list[str] = []
    nothing = middleware(**{hook: lambda *_: called.append(hook)})
    agent = ChatModelAgent(model=looking(speech), tools=[look], middlewares=[nothing])
    _, result = asyncio.run(collect(agent.stream("go")))
    assert called
    assert result.messages[2:] == [speech.result("c1", "look", "seen"), speech.says("done")]
