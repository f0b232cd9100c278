"""The whole order of both lifecycles: of a model turn and of a tool call, on every wire, for every kind of tool."""

import asyncio
from typing import Any

import pytest

from suture import (
    ChatModelAgent,
    FailoverContext,
    ModelFailoverConfig,
    ModelRetryConfig,
    RetryContext,
    ToolsConfig,
)
from suture.testing import ScriptedModel
from tests.agent.lifecycle.recording import (
    KINDS,
    Awaited,
    Plain,
    callbacks,
    collect,
    older,
    passed,
    step,
    steps,
    tool_of_kind,
)
from tests.agent.lifecycle.speech import WIRES, Speech, wire_name

every_wire = pytest.mark.parametrize("speech", WIRES, ids=wire_name)
every_kind = pytest.mark.parametrize("kind", KINDS)
coroutines_or_not = pytest.mark.parametrize("coroutines", [False, True], ids=["plain", "coroutines"])
streamed_or_not = pytest.mark.parametrize(
    ("streaming", "chunk_size"), [(True, 3), (True, None), (False, 3), (False, None)],
    ids=["streaming", "streaming-whole", "not-streaming", "not-streaming-whole"],
)  # fmt: skip

BEFORE_THE_TURN = [
    "old1 before_chat_model",
    "old2 before_chat_model",
    "A before_model_rewrite_state",
    "B before_model_rewrite_state",
]
TO_THE_MODEL = [
    "model event: started",
    "A wrap_model_call: in",
    "A model: in",
    "B wrap_model_call: in",
    "B model: in",
    "callbacks model: start",
]
FROM_THE_MODEL = [
    "callbacks model: end",
    "B model: out",
    "B wrap_model_call: out",
    "A model: out",
    "A wrap_model_call: out",
    "model event: finished",
]
AFTER_THE_TURN = [
    "A after_model_rewrite_state",
    "B after_model_rewrite_state",
    "old1 after_chat_model",
    "old2 after_chat_model",
]
TURN = [*BEFORE_THE_TURN, *TO_THE_MODEL, "the model", *FROM_THE_MODEL, *AFTER_THE_TURN]


def call_steps(kind: str) -> list[str]:
    rings = [
        "tools config 1",
        "tools config 2",
        "old1 wrap_tool_call",
        "old2 wrap_tool_call",
        "A wrap_tool_call",
        f"A wrap_{kind}_tool_call",
        "B wrap_tool_call",
        f"B wrap_{kind}_tool_call",
    ]
    return [
        "tool event: started",
        *(f"{ring}: in" for ring in rings),
        "callbacks tool: start",
        "the tool",
        "callbacks tool: end",
        *(f"{ring}: out" for ring in reversed(rings)),
        "tool event: finished",
    ]


def said(reply: Any) -> Any:
    """Return a reply that says when the model is asked for it."""

    def give(_messages: Any) -> Any:
        step("the model")
        return reply

    return give


def middlewares(*, coroutines: bool) -> list[Any]:
    kind = Awaited if coroutines else Plain
    return [older("old1", coroutines=coroutines), kind("A"), older("old2", coroutines=coroutines), kind("B")]


def around_every_call(name: str, *, coroutines: bool) -> Any:
    def wrap(call: Any, proceed: Any) -> Any:
        return passed(call, proceed, name)

    async def wrap_later(call: Any, proceed: Any) -> Any:
        return await wrap(call, proceed)

    return wrap_later if coroutines else wrap


@every_wire
@every_kind
@coroutines_or_not
@streamed_or_not
def test_every_step_of_a_run_has_its_place(
    speech: Speech, kind: str, coroutines: bool, streaming: bool, chunk_size: int | None
):
    replies = [said(speech.calls(("c1", "work", "{}"))), said("done")]
    agent = ChatModelAgent(
        model=ScriptedModel(replies, speech.wire, chunk_size=chunk_size),
        tools=ToolsConfig(
            tools=[tool_of_kind(kind)],
            tool_call_middlewares=[
                around_every_call("tools config 1", coroutines=coroutines),
                around_every_call("tools config 2", coroutines=coroutines),
            ],
        ),
        middlewares=middlewares(coroutines=coroutines),
        callbacks=callbacks("model", "tool", coroutines=coroutines),
    )
    events, result = asyncio.run(collect(agent.stream("go", streaming=streaming)))
    assert steps(events) == [
        "A before_agent",
        "B before_agent",
        *TURN,
        *call_steps(kind),
        *TURN,
        "A after_agent",
        "B after_agent",
    ]
    assert result.messages == [
        speech.user("go"),
        speech.calls(("c1", "work", "{}")),
        speech.result("c1", "work", "worked"),
        speech.says("done"),
    ]


@every_wire
@streamed_or_not
def test_retry_is_outside_the_event_sender_and_failover_outside_retry(
    speech: Speech, streaming: bool, chunk_size: int | None
):
    def should_retry(context: RetryContext[Any]) -> bool:
        step(f"should_retry {context.attempt}")
        return context.error is not None

    def should_failover(context: FailoverContext[Any]) -> bool:
        step(f"should_failover {context.attempt}")
        return True

    def fail(_messages: Any) -> Any:
        step("the model")
        return TimeoutError("overloaded")

    agent = ChatModelAgent(
        model=ScriptedModel(fail, speech.wire, chunk_size=chunk_size),
        failover=ModelFailoverConfig(
            models=[ScriptedModel([said("done")], speech.wire, chunk_size=chunk_size)],
            should_failover=should_failover,
        ),
        model_retry_config=ModelRetryConfig(max_retries=1, should_retry=should_retry, backoff=lambda _attempt: 0),
        middlewares=middlewares(coroutines=False),
        callbacks=callbacks("model"),
    )
    events, result = asyncio.run(collect(agent.stream("go", streaming=streaming)))
    failing = [*TO_THE_MODEL, "the model", "callbacks model: error"]
    assert steps(events) == [
        "A before_agent",
        "B before_agent",
        *BEFORE_THE_TURN,
        *failing,
        "should_retry 1",
        "model event: retry",
        *failing,
        "should_retry 2",
        "should_failover 1",
        "model event: retry",
        *TO_THE_MODEL,
        "the model",
        *FROM_THE_MODEL,
        "should_retry 1",
        *AFTER_THE_TURN,
        "A after_agent",
        "B after_agent",
    ]
    assert result.messages == [speech.user("go"), speech.says("done")]
