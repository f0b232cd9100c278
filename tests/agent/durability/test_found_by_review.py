"""What a careful reader of the kernel found, each kept from coming back."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from suture import (
    Budget,
    ChatModelAgent,
    ChatModelAgentMiddleware,
    Message,
    ModelFailoverConfig,
    ModelRetryConfig,
    OutputError,
    ResumeError,
    RetryDecision,
    TokenUsage,
    ToolCall,
    interrupt,
    replace,
    set_session_value,
    tool,
)
from suture.events import MessageDelta, RunFinished, ToolFinished
from suture.messages import ResponseMeta
from suture.middleware import PatchToolCalls
from suture.stores import MemoryStore
from suture.testing import ScriptedModel


def calls(*wanted: tuple[str, str, str]) -> Message:
    return Message.assistant("", [ToolCall(*call) for call in wanted])


@tool
async def look() -> str:
    """Look."""
    return "seen"


@tool(requires_approval=True)
async def pay() -> str:
    """Pay."""
    return "paid"


def test_two_inner_streams_that_wait_for_the_reader_both_go_on():
    def inner(name: str) -> Any:
        model = ScriptedModel(["x" * 1000], chunk_size=1)
        return ChatModelAgent(name=name, description="Talks.", model=model).as_tool()

    async def scene() -> int:
        asked = calls(("1", "a", '{"request":"q"}'), ("2", "b", '{"request":"q"}'))
        agent = ChatModelAgent(model=ScriptedModel([asked, "done"]), tools=[inner("a"), inner("b")])
        async with agent.run("go") as run:
            for _ in range(3000):
                await asyncio.sleep(0)
            return len([event async for event in run if isinstance(event, MessageDelta)])

    assert asyncio.run(asyncio.wait_for(scene(), 20)) == 2000


@pytest.mark.parametrize("checkpoint", [None, "c"])
def test_a_wrapper_that_calls_an_inner_agent_twice_gets_two_answers(checkpoint: str | None):
    class Twice(ChatModelAgentMiddleware[Any]):
        def wrap_invokable_tool_call(self, endpoint: Any, context: Any) -> Any:
            async def call(_: str, **options: Any) -> str:
                first = await endpoint('{"request":"one"}', **options)
                second = await endpoint('{"request":"two"}', **options)
                return f"{first} | {second}"

            return call

    echo = ChatModelAgent(
        name="echo", description="Echoes.", model=ScriptedModel(lambda said: f"echo {said[-1].content}")
    )
    agent = ChatModelAgent(
        model=ScriptedModel([calls(("1", "echo", '{"request":"x"}')), "done"]),
        tools=[echo.as_tool()],
        middlewares=[Twice()],
        checkpoint_store=MemoryStore(),
    )
    assert agent.run_sync("go", checkpoint_id=checkpoint).messages[2].content == "echo one | echo two"


def test_an_approved_call_is_run_whatever_the_budget_refused_beside_it():
    store = MemoryStore()

    def agent(*replies: Any) -> ChatModelAgent[Message]:
        return ChatModelAgent(
            model=ScriptedModel(list(replies)),
            tools=[look, pay],
            budget=Budget(tool_calls=1),
            on_max_iterations="answer",
            checkpoint_store=store,
        )

    first = agent(calls(("1", "pay", "{}"), ("2", "look", "{}"))).run_sync("go", checkpoint_id="c")

    async def go_on() -> Any:
        return await agent("fine").resume("c", {first.interrupts[0].id: True})

    result = asyncio.run(go_on())
    assert [message.content for message in result.messages[2:4]] == [
        "paid",
        "Not run: the budget of 1 tool calls is used up.",
    ]


class Point(msgspec.Struct):
    x: int


class Hooked(ChatModelAgentMiddleware[Any]):
    def after_model_rewrite_state(self, state: Any, model_context: Any) -> None:
        return None


@pytest.mark.parametrize("middlewares", [[], [Hooked()]], ids=["plain", "hooked"])
def test_a_correction_that_was_asked_for_is_waited_for_after_a_failure(middlewares: list[Any]):
    store = MemoryStore()

    def agent(*replies: Any) -> ChatModelAgent[Message]:
        model = ScriptedModel(list(replies))
        return ChatModelAgent(model=model, output_type=Point, middlewares=middlewares, checkpoint_store=store)

    async def scene() -> Any:
        with pytest.raises(ConnectionError):
            await agent("no json", ConnectionError("gone")).run("go", checkpoint_id="c")
        return await agent('{"x": 1}').resume("c")

    result = asyncio.run(scene())
    assert result.output == Point(1)
    assert [message.role for message in result.messages] == ["user", "assistant", "user", "assistant"]


def test_an_answer_of_the_wrong_form_is_not_taken_by_resuming():
    store = MemoryStore()

    def agent(*replies: Any) -> ChatModelAgent[Message]:
        model = ScriptedModel(list(replies))
        return ChatModelAgent(model=model, output_type=Point, middlewares=[Hooked()], checkpoint_store=store)

    async def scene() -> None:
        with pytest.raises(OutputError):
            await agent("a", "b", "c").run("go", checkpoint_id="c")
        with pytest.raises(OutputError):
            await agent().resume("c")

    asyncio.run(scene())


def test_the_hook_after_tools_is_run_again_where_it_failed_and_can_be_interrupted():
    store, seen = MemoryStore(), list[Any]()

    async def after(_: Any) -> None:
        seen.append(await interrupt("Go on?"))

    @tool(return_directly=True)
    async def answer() -> str:
        """Answer."""
        return "the answer"

    def agent(*replies: Any) -> ChatModelAgent[Message]:
        return ChatModelAgent(model=ScriptedModel(list(replies)), tools=[answer], checkpoint_store=store)

    async def scene() -> Any:
        first = await agent(calls(("1", "answer", "{}"))).run("go", checkpoint_id="c", after_tool_calls=after)
        assert first.interrupts[0].id == "agent/1/after_tools/after_tool_calls/0"
        return await agent().resume("c", {first.interrupts[0].id: "yes"}, after_tool_calls=after)

    result = asyncio.run(scene())
    assert (result.output, seen) == ("the answer", ["yes"])


def stubborn(error: type[Exception]) -> Any:
    """A model that makes an error of its cancellation."""

    class Stubborn:
        wire, profile = "message", "pairing"
        asked = 0

        def __init__(self) -> None:
            self.begun = asyncio.Event()

        async def stream(self, request: Any) -> AsyncIterator[Any]:
            del request
            self.asked += 1
            self.begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise error("stopped") from None
            yield Message.assistant("never")

    return Stubborn()


def test_after_a_cancel_no_model_is_asked_again():
    first, second = stubborn(ConnectionError), stubborn(ConnectionError)
    agent: Any = ChatModelAgent(
        model=first,
        model_retry_config=ModelRetryConfig(backoff=lambda _: 0),
        failover=ModelFailoverConfig(models=[second]),
    )

    async def scene() -> Any:
        async with agent.run("go") as run:
            await first.begun.wait()
            return await run.cancel()

    assert asyncio.run(asyncio.wait_for(scene(), 20)).outcome.value == "cancelled"
    assert (first.asked, second.asked) == (1, 0)


def test_after_a_cancel_no_tool_is_run_again_and_no_other_begins():
    ran: list[str] = []
    begun = asyncio.Event()

    @tool(retry=1)
    async def swallows() -> str:
        """Swallow the cancellation."""
        ran.append("swallows")
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ConnectionError("stopped") from None
        return ""

    @tool
    async def other() -> str:
        """Come later."""
        ran.append("other")
        return ""

    asked = calls(("1", "swallows", "{}"), ("2", "other", "{}"))
    agent = ChatModelAgent(model=ScriptedModel([asked]), tools=[swallows, other], sequential=True)

    async def scene() -> Any:
        async with agent.run("go") as run:
            await begun.wait()
            return await run.cancel()

    assert asyncio.run(asyncio.wait_for(scene(), 20)).outcome.value == "cancelled"
    assert ran == ["swallows"]


def test_what_the_hooks_of_a_failed_turn_changed_is_not_applied_twice():
    class Reminds(ChatModelAgentMiddleware[Any]):
        def before_model_rewrite_state(self, state: Any, model_context: Any) -> Any:
            return replace(state, messages=[*state.messages, Message.user("remember")])

    store = MemoryStore()

    def agent(*replies: Any) -> ChatModelAgent[Message]:
        return ChatModelAgent(model=ScriptedModel(list(replies)), middlewares=[Reminds()], checkpoint_store=store)

    async def scene() -> Any:
        with pytest.raises(ConnectionError):
            await agent(ConnectionError("gone")).run("go", checkpoint_id="c")
        return await agent("done").resume("c")

    assert [message.content for message in asyncio.run(scene()).messages] == ["go", "remember", "done"]


def test_the_last_turn_stays_the_last_one_after_a_resume():
    ran: list[str] = []

    @tool
    async def work() -> str:
        """Work."""
        ran.append("work")
        return "done"

    class Asks(ChatModelAgentMiddleware[Any]):
        async def after_model_rewrite_state(self, state: Any, model_context: Any) -> None:
            if model_context.turn == 2:
                await interrupt("Go on?")

    store = MemoryStore()

    def agent(*replies: Any) -> ChatModelAgent[Message]:
        return ChatModelAgent(
            model=ScriptedModel(list(replies)),
            tools=[work],
            middlewares=[Asks()],
            max_iterations=1,
            on_max_iterations="answer",
            checkpoint_store=store,
        )

    async def scene() -> Any:
        asked = calls(("1", "work", "{}"))
        first = await agent(asked, calls(("2", "work", "{}"))).run("go", checkpoint_id="c")
        return await agent().resume("c", {first.interrupts[0].id: True})

    result = asyncio.run(scene())
    assert ran == ["work"]
    assert result.messages[-1].content == "Not run: the run may take no more turns."


def test_an_answer_may_be_given_again_but_not_otherwise():
    store = MemoryStore()

    class Fails(ChatModelAgentMiddleware[Any]):
        def before_agent(self, context: Any) -> None:
            if context.resumed:
                raise ConnectionError("not yet")

    def agent(middlewares: list[Any], *replies: Any) -> ChatModelAgent[Message]:
        model = ScriptedModel(list(replies))
        return ChatModelAgent(model=model, tools=[pay], middlewares=middlewares, checkpoint_store=store)

    async def scene() -> Any:
        first = await agent([], calls(("1", "pay", "{}"))).run("go", checkpoint_id="c")
        (asked,) = first.interrupts
        with pytest.raises(ConnectionError):
            await agent([Fails()]).resume("c", {asked.id: True})
        with pytest.raises(ResumeError, match="answered before"):
            await agent([]).resume("c", {asked.id: False})
        return await agent([], "done").resume("c", {asked.id: True})

    assert asyncio.run(scene()).messages[2].content == "paid"


def test_what_rejected_attempts_and_inner_runs_cost_is_counted_once():
    def says(text: str, tokens: int, *asked: ToolCall) -> Message:
        meta = ResponseMeta(usage=TokenUsage(total_tokens=tokens))
        return Message("assistant", text, tool_calls=asked, response_meta=meta)

    def judge(context: Any) -> RetryDecision[Any]:
        return RetryDecision(retry=context.output is not None and context.output.content == "bad", backoff=0)

    agent = ChatModelAgent(
        model=ScriptedModel([says("bad", 100), says("good", 1)]),
        model_retry_config=ModelRetryConfig(should_retry=judge),
    )
    assert agent.run_sync("go").usage.total_tokens == 101
    store = MemoryStore()
    inner_calls = ToolCall("1", "pay", "{}")
    script = [says("", 10, inner_calls), says("ok", 1)]
    inner = ChatModelAgent(name="inner", description="Pays.", model=ScriptedModel(script), tools=[pay])
    outer_calls = ToolCall("1", "inner", '{"request": "q"}')
    outer = ChatModelAgent(
        model=ScriptedModel([says("", 10, outer_calls), says("done", 1)]),
        tools=[inner.as_tool()],
        checkpoint_store=store,
    )

    async def scene() -> Any:
        first = await outer.run("go", checkpoint_id="c")
        return await outer.resume("c", {first.interrupts[0].id: True})

    assert asyncio.run(scene()).usage.total_tokens == 22


def test_cleaning_up_is_one_task_with_time_limits_of_its_own():
    class Cleans(ChatModelAgentMiddleware[Any]):
        async def after_agent(self, state: Any, outcome: Any) -> None:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()

    result = ChatModelAgent(model=ScriptedModel(["done"]), middlewares=[Cleans()]).run_sync("go")
    assert [type(error) for error in result.cleanup_errors] == [TimeoutError]


def test_what_a_retry_changed_goes_with_a_failover():
    def shorten(context: Any) -> RetryDecision[Any]:
        return RetryDecision(
            retry=context.error is not None,
            modified_input_messages=[Message.user("short")],
            additional_options={"top": 1},
            backoff=0,
        )

    other = ScriptedModel(["done"])
    agent = ChatModelAgent(
        model=ScriptedModel([ConnectionError("a"), ConnectionError("b")]),
        model_retry_config=ModelRetryConfig(max_retries=1, should_retry=shorten),
        failover=ModelFailoverConfig(models=[other]),
    )
    agent.run_sync("long")
    assert (other.requests[0].messages, dict(other.requests[0].options)) == ([Message.user("short")], {"top": 1})


class Bang(BaseException):
    """Something that is no error."""


def test_a_run_that_a_tool_blows_up_still_ends_for_whoever_reads_it():
    @tool
    async def bang() -> str:
        """Blow up."""
        raise Bang("boom")

    async def scene() -> Any:
        agent = ChatModelAgent(model=ScriptedModel([calls(("1", "bang", "{}"))]), tools=[bang])
        run, events = agent.run("go"), list[Any]()
        with pytest.raises(Bang):  # noqa: PT012 - reading raises at the end
            async for event in run:
                events.append(event)
        return run, events

    run, events = asyncio.run(asyncio.wait_for(scene(), 20))
    assert isinstance(events[-1], RunFinished)
    assert run.result.outcome.value == "failed"


def test_something_of_the_tools_own_that_was_cancelled_is_the_tools_error():
    @tool
    async def work() -> str:
        """Await what was cancelled."""
        task = asyncio.ensure_future(asyncio.Event().wait())
        task.cancel()
        await task
        return ""

    result = ChatModelAgent(model=ScriptedModel([calls(("1", "work", "{}")), "done"]), tools=[work]).run_sync("go")
    assert (result.output, result.messages[2].is_error) == ("done", True)


def test_a_generator_is_asked_for_every_call_of_an_id_that_recurs():
    asked: list[str] = []

    def text(_: str, call_id: str) -> str:
        asked.append(call_id)
        return f"text {len(asked)}"

    class Breaks(ChatModelAgentMiddleware[Any]):
        def before_model_rewrite_state(self, state: Any, model_context: Any) -> Any:
            if model_context.turn == 2:
                return replace(state, messages=[*state.messages, calls(("x", "look", "{}")), Message.user("again")])
            return None

    model = ScriptedModel([calls(("1", "look", "{}")), "done"])
    agent = ChatModelAgent(model=model, tools=[look], middlewares=[Breaks(), PatchToolCalls(text)])
    agent.run_sync([calls(("x", "look", "{}")), Message.user("go")])
    assert asked == ["x", "x"]
    assert [message.content for message in model.requests[1].messages if message.tool_call_id == "x"] == [
        "text 1",
        "text 2",
    ]


def test_a_result_that_ends_the_run_is_told_even_if_the_run_is_cancelled_first():
    begun = asyncio.Event()

    @tool(return_directly=True)
    async def answer() -> str:
        """Answer."""
        return "the answer"

    @tool
    async def waits() -> str:
        """Wait."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    async def scene() -> list[str]:
        model = ScriptedModel([calls(("1", "answer", "{}"), ("2", "waits", "{}"))])
        async with ChatModelAgent(model=model, tools=[answer, waits]).run("go") as run:
            await begun.wait()
            await run.cancel()
            return [event.name async for event in run if isinstance(event, ToolFinished)]

    assert asyncio.run(asyncio.wait_for(scene(), 20)) == ["answer"]


def test_an_inner_agent_is_redacted_as_the_outer_one_is():
    def redact(value: Any) -> Any:
        return msgspec.structs.replace(value, content="***") if isinstance(value, Message) else value

    inner = ChatModelAgent(name="inner", description="Knows.", model=ScriptedModel(["secret"]))
    store = MemoryStore()
    outer = ChatModelAgent(
        model=ScriptedModel([calls(("1", "inner", '{"request":"q"}')), "done"]),
        tools=[inner.as_tool()],
        redact=redact,
        checkpoint_store=store,
    )

    async def scene() -> list[bytes]:
        await outer.run("go", checkpoint_id="c")
        (nested,) = [run for run in await store.runs() if run != "c"]
        return await store.load(nested)

    assert b"secret" not in b"".join(asyncio.run(scene()))


def test_the_session_value_of_an_inner_tool_is_safe_before_its_end_is():
    order: list[tuple[str, bytes]] = []

    class Watching(MemoryStore):
        async def append(self, run: str, first: int, records: Any) -> None:
            order.extend((run, record) for record in records)
            await super().append(run, first, records)

    @tool
    async def keeps() -> str:
        """Keep."""
        set_session_value("kept", "yes")
        return "kept it"

    inner = ChatModelAgent(
        name="inner", description="Keeps.", model=ScriptedModel([calls(("1", "keeps", "{}")), "ok"]), tools=[keeps]
    )
    outer = ChatModelAgent(
        model=ScriptedModel([calls(("1", "inner", '{"request":"q"}')), "done"]),
        tools=[inner.as_tool()],
        checkpoint_store=Watching(),
    )
    outer.run_sync("go", checkpoint_id="c")
    kept = next(place for place, (run, record) in enumerate(order) if run == "c" and b"kept" in record)
    ended = next(place for place, (run, record) in enumerate(order) if run != "c" and b"kept it" in record)
    assert kept < ended
