"""Turns that end, wait or resume at a bad moment."""

import asyncio
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
    interrupt,
    replace,
    tool,
)
from suture.middleware import PatchToolCalls
from suture.stores import MemoryStore
from suture.testing import ScriptedModel
from tests.agent.durability.small_tools import calls, look, pay


def test_an_approved_call_is_run_whatever_the_budget_refused_beside_it():
    store = MemoryStore()

    def agent(*replies: Any) -> ChatModelAgent[Any]:
        return ChatModelAgent(
            model=ScriptedModel(list(replies)),
            tools=[look, pay],
            budget=Budget(tool_calls=1),
            on_max_iterations="answer",
            checkpoint_store=store,
        )

    first = agent(calls(("1", "pay", "{}"), ("2", "look", "{}"))).run_sync("go", checkpoint_id="c")

    async def go_on() -> Any:
        return await agent("fine").resume("c", answers={first.interrupts[0].id: True})

    result = asyncio.run(go_on())
    assert [message.content for message in result.messages[2:4]] == [
        "paid",
        "Not run: the budget of 1 tool call is used up.",
    ]


class Point(msgspec.Struct):
    x: int


class Hooked(ChatModelAgentMiddleware[Any]):
    def after_model_rewrite_state(self, state: Any, model_context: Any) -> None:
        return None


@pytest.mark.parametrize("middlewares", [[], [Hooked()]], ids=["plain", "hooked"])
def test_a_correction_that_was_asked_for_is_waited_for_after_a_failure(middlewares: list[Any]):
    store = MemoryStore()

    def agent(*replies: Any) -> ChatModelAgent[Any]:
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

    def agent(*replies: Any) -> ChatModelAgent[Any]:
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

    def agent(*replies: Any) -> ChatModelAgent[Any]:
        return ChatModelAgent(model=ScriptedModel(list(replies)), tools=[answer], checkpoint_store=store)

    async def scene() -> Any:
        first = await agent(calls(("1", "answer", "{}"))).run("go", checkpoint_id="c", after_tool_calls=after)
        assert first.interrupts[0].id == "agent/1/after_tools/after_tool_calls/0"
        return await agent().resume("c", answers={first.interrupts[0].id: "yes"}, after_tool_calls=after)

    result = asyncio.run(scene())
    assert (result.output, seen) == ("the answer", ["yes"])


def test_what_the_hooks_of_a_failed_turn_changed_is_not_applied_twice():
    class Reminds(ChatModelAgentMiddleware[Any]):
        def before_model_rewrite_state(self, state: Any, model_context: Any) -> Any:
            return replace(state, messages=[*state.messages, Message.user("remember")])

    store = MemoryStore()

    def agent(*replies: Any) -> ChatModelAgent[Any]:
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

    def agent(*replies: Any) -> ChatModelAgent[Any]:
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
        return await agent().resume("c", answers={first.interrupts[0].id: True})

    result = asyncio.run(scene())
    assert ran == ["work"]
    assert result.messages[-1].content == "Not run: the run may take no more turns."


def test_an_answer_may_be_given_again_but_not_otherwise():
    store = MemoryStore()

    class Fails(ChatModelAgentMiddleware[Any]):
        def before_agent(self, context: Any) -> None:
            if context.resumed:
                raise ConnectionError("not yet")

    def agent(middlewares: list[Any], *replies: Any) -> ChatModelAgent[Any]:
        model = ScriptedModel(list(replies))
        return ChatModelAgent(model=model, tools=[pay], middlewares=middlewares, checkpoint_store=store)

    async def scene() -> Any:
        first = await agent([], calls(("1", "pay", "{}"))).run("go", checkpoint_id="c")
        (asked,) = first.interrupts
        with pytest.raises(ConnectionError):
            await agent([Fails()]).resume("c", answers={asked.id: True})
        with pytest.raises(ResumeError, match="already answered differently"):
            await agent([]).resume("c", answers={asked.id: False})
        return await agent([], "done").resume("c", answers={asked.id: True})

    assert asyncio.run(scene()).messages[2].content == "paid"


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
