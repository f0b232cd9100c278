"""Agents inside tools that end, wait or fail at a bad moment."""

import asyncio
from typing import Any

import msgspec
import pytest

from suture import (
    ChatModelAgent,
    ChatModelAgentMiddleware,
    Message,
    ModelRetryConfig,
    RetryDecision,
    TokenUsage,
    ToolCall,
    current_run,
    tool,
)
from suture.events import MessageDelta
from suture.messages import ResponseMeta
from suture.stores import MemoryStore
from suture.testing import ScriptedModel
from tests.agent.durability.small_tools import calls, pay


def test_two_inner_streams_that_wait_for_the_reader_both_go_on():
    def inner(name: str) -> Any:
        model = ScriptedModel(["x" * 1000], chunk_size=1)
        return ChatModelAgent(name=name, description="Talks.", model=model).as_tool()

    async def scene() -> int:
        asked = calls(("1", "a", '{"request":"q"}'), ("2", "b", '{"request":"q"}'))
        agent = ChatModelAgent(model=ScriptedModel([asked, "done"]), tools=[inner("a"), inner("b")])
        async with agent.stream("go") as run:
            for _ in range(3000):
                await asyncio.sleep(0)
            return len([event async for event in run if isinstance(event, MessageDelta)])

    assert asyncio.run(asyncio.wait_for(scene(), 120)) == 2000


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
        return await outer.resume("c", answers={first.interrupts[0].id: True})

    assert asyncio.run(scene()).usage.total_tokens == 22


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
        async def append(self, run: str, first: int, records: Any, **options: Any) -> None:
            order.extend((run, record) for record in records)
            await super().append(run, first, records, **options)

    @tool
    async def keeps() -> str:
        """Keep."""
        current_run().session["kept"] = "yes"
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
