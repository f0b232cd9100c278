"""An agent that a tool or a hook runs by itself counts in the usage and the budget of the run around it, once."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from suture import Budget, ChatModelAgent, interrupt, tool
from suture.errors import BudgetExceeded
from suture.messages import Message, ResponseMeta, TokenUsage, ToolCall
from suture.middleware import ChatModelAgentMiddleware
from suture.stores import MemoryStore
from suture.testing import ScriptedModel

INNER, OUTER = 7, 100


def reply(text: str, tokens: int, *calls: str) -> Message:
    usage = TokenUsage(prompt_tokens=tokens - 1, completion_tokens=1, total_tokens=tokens)
    named = [ToolCall(f"call_{number}", name, "{}") for number, name in enumerate(calls)]
    return Message("assistant", text, tool_calls=named, response_meta=ResponseMeta(usage=usage))


def helper(**settings: Any) -> ChatModelAgent[str]:
    """Return an agent that uses `INNER` tokens each time."""
    model = ScriptedModel(lambda _: reply("done", INNER))
    return ChatModelAgent(name="helper", description="Helps.", model=model, **settings)


def boss(*tools: Any, calls: int = 1, **settings: Any) -> ChatModelAgent[str]:
    """Return an agent that calls each tool so often in one turn, and answers; each turn uses `OUTER` tokens."""
    names = [getattr(each, "name", "") or each.__name__ for each in tools] * calls
    return ChatModelAgent(
        model=ScriptedModel([reply("", OUTER, *names), reply("well", OUTER)]), tools=tools, **settings
    )


def awaited(inner: ChatModelAgent[str]) -> Any:
    async def ask() -> str:
        """Ask."""
        return (await inner.run("hi")).output

    return ask


def streamed(inner: ChatModelAgent[str]) -> Any:
    async def ask() -> str:
        """Ask."""
        async with inner.stream("hi") as run:
            return "".join([text async for text in run.text()])

    return ask


def in_a_thread(inner: ChatModelAgent[str]) -> Any:
    def ask() -> str:
        """Ask."""
        return inner.run_sync("hi").output

    return ask


def in_place(inner: ChatModelAgent[str]) -> Any:
    return tool(thread=False)(in_a_thread(inner))


def as_tool(inner: ChatModelAgent[str]) -> Any:
    return inner.as_tool(name="ask", input_schema={"type": "object"})


def in_a_task(inner: ChatModelAgent[str]) -> Any:
    async def ask() -> str:
        """Ask."""
        async with asyncio.TaskGroup() as group:
            task = group.create_task(inner.run("hi"))
        return task.result().output

    return ask


WAYS: list[Callable[[ChatModelAgent[str]], Any]] = [awaited, streamed, in_a_thread, in_place, in_a_task, as_tool]


@pytest.mark.parametrize("store", [None, MemoryStore])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_it_counts_once(way: Any, store: Any):
    kept = {"checkpoint_store": store()} if store else {}
    agent = boss(way(helper()), **kept)

    async def main() -> list[int]:
        result = await agent.run("go", **({"checkpoint_id": "a"} if store else {}))
        stored = [(await agent.session("a").result()).usage.total_tokens] if store else []
        return [result.usage.total_tokens, *stored]

    assert set(asyncio.run(main())) == {2 * OUTER + INNER}


@pytest.mark.parametrize("inner", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("outer", WAYS, ids=lambda way: way.__name__)
def test_it_counts_once_at_any_depth(outer: Any, inner: Any):
    model = ScriptedModel([reply("", INNER, "ask"), reply("done", INNER)])
    middle = ChatModelAgent(name="middle", description="Helps.", model=model, tools=[inner(helper())])
    assert boss(outer(middle)).run_sync("go").usage.total_tokens == 2 * OUTER + 3 * INNER


@pytest.mark.parametrize("store", [None, MemoryStore])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_many_at_once_are_all_counted(way: Any, store: Any):
    kept = {"checkpoint_store": store()} if store else {}
    result = boss(way(helper()), calls=20, **kept).run_sync("go", **({"checkpoint_id": "a"} if store else {}))
    assert result.usage.total_tokens == 2 * OUTER + 20 * INNER


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_it_counts_in_the_budget(way: Any):
    with pytest.raises(BudgetExceeded, match="budget of 105 tokens is used up"):
        boss(way(helper()), budget=Budget(total_tokens=OUTER + 5)).run_sync("go")


def test_one_that_fails_or_is_stopped_counts_too():
    model = ScriptedModel([reply("", INNER, "missing"), ConnectionError("no line")])
    failing = ChatModelAgent(name="failing", model=model)

    async def stopped() -> str:
        """Stop."""
        async with helper(tools=[awaited(helper())]).stream("hi") as run:
            await run.result()
            return "left"

    result = boss(awaited(failing), stopped).run_sync("go")
    assert result.usage.total_tokens == 2 * OUTER + 2 * INNER


@pytest.mark.parametrize("store", [None, MemoryStore])
def test_what_runs_again_after_an_interrupt_counts_again_and_nothing_else_does(store: Any):
    async def ask() -> str:
        """Ask."""
        await helper().run("hi")
        return str(await interrupt("sure?"))

    agent = boss(ask, **({"checkpoint_store": store()} if store else {}))

    async def main() -> list[int]:
        paused = await agent.run("go", **({"checkpoint_id": "a"} if store else {}))
        result = await agent.resume("a" if store else paused, "yes")
        stored = [(await agent.session("a").result()).usage.total_tokens] if store else [result.usage.total_tokens]
        return [paused.usage.total_tokens, result.usage.total_tokens, *stored]

    assert asyncio.run(main()) == [OUTER + INNER, 2 * OUTER + 2 * INNER, 2 * OUTER + 2 * INNER]


def test_each_input_of_a_stored_conversation_counts_what_it_used_itself():
    inner = helper(checkpoint_store=MemoryStore())

    async def ask() -> str:
        """Ask."""
        return (await inner.session("talk").run("hi")).output

    assert boss(ask, calls=3).run_sync("go").usage.total_tokens == 2 * OUTER + 3 * INNER


def test_a_run_that_is_resumed_inside_counts_from_there():
    @tool
    async def sure() -> str:
        """Ask."""
        return str(await interrupt("sure?"))

    model = ScriptedModel([reply("", INNER, "sure"), reply("done", INNER)])
    inner = ChatModelAgent(name="inner", model=model, tools=[sure], checkpoint_store=MemoryStore())
    paused = asyncio.run(inner.run("hi", checkpoint_id="talk"))

    async def ask() -> str:
        """Ask."""
        return (await inner.resume("talk", "yes")).output

    assert paused.usage.total_tokens == INNER
    assert boss(ask).run_sync("go").usage.total_tokens == 2 * OUTER + INNER


def test_one_that_a_hook_runs_counts():
    class Asks(ChatModelAgentMiddleware[Message]):
        async def before_agent(self, context: Any) -> None:
            await helper().run("hi")

    model = ScriptedModel([reply("well", OUTER)])
    result = ChatModelAgent(model=model, middlewares=[Asks()]).run_sync("go")
    assert result.usage.total_tokens == OUTER + INNER


def test_runs_outside_of_each_other_do_not_count_for_each_other():
    first, second = boss(in_a_thread(helper())).run_sync("go"), helper().run_sync("hi")
    assert (first.usage.total_tokens, second.usage.total_tokens) == (2 * OUTER + INNER, INNER)
