"""When a model turn is tried again, and by whom."""

import asyncio
from collections.abc import Sequence
from typing import assert_type

from suture import (
    ChatModelAgent,
    FailoverContext,
    Message,
    Model,
    ModelFailoverConfig,
    ModelRetryConfig,
    RetryContext,
    RetryDecision,
    RetryExhausted,
)
from suture.testing import ScriptedModel


def judge(context: RetryContext[Message]) -> RetryDecision[Message]:
    assert_type(context.messages, Sequence[Message])
    assert_type(context.output, Message | None)
    if isinstance(context.error, TimeoutError):
        return RetryDecision(retry=True, backoff=0)
    if context.output is not None and not context.output.content:
        again = [*context.messages, Message.user("Say something.")]
        return RetryDecision(
            retry=True,
            modified_input_messages=again,
            persist_modified_input_messages=True,
            additional_options={"temperature": 1},
            backoff=0.0,
            reject_reason="empty",
        )
    if isinstance(context.error, PermissionError):
        return RetryDecision(rewrite_error=RuntimeError("no key"))
    decision = RetryDecision(retry=False)
    print(context.attempt, decision.retry)
    return decision


async def judge_later(context: RetryContext[Message]) -> RetryDecision[Message] | None:
    await asyncio.sleep(0)
    return judge(context) if context.attempt < 3 else None


async def yes(context: RetryContext[Message]) -> bool:
    return context.error is not None


def helps(context: FailoverContext[Message]) -> bool:
    return isinstance(context.error, ConnectionError)


async def helps_later(context: FailoverContext[Message]) -> bool:
    return helps(context)


def choose(context: FailoverContext[Message]) -> Model[Message] | None:
    return ScriptedModel([f"attempt {context.attempt}"]) if context.attempt < 3 else None


async def choose_and_shorten(context: FailoverContext[Message]) -> tuple[Model[Message], list[Message]]:
    return ScriptedModel(["short"]), list(context.messages[-1:])


async def retried() -> None:
    empty = Message.assistant("")
    for should_retry in (judge, judge_later):
        agent = ChatModelAgent(
            name="stubborn",
            model=ScriptedModel([TimeoutError(), empty, "hello"]),
            model_retry_config=ModelRetryConfig(max_retries=2, should_retry=should_retry),
        )
        assert (await agent.run("hi")).output == "hello"
    config = ModelRetryConfig(
        max_retries=1,
        should_retry=lambda context: isinstance(context.error, TimeoutError) and context.attempt == 1,
        backoff=lambda attempt: 0.001 * attempt,
    )
    agent = ChatModelAgent(name="stubborn", model=ScriptedModel([TimeoutError()] * 2), model_retry_config=config)
    try:
        await agent.run("hi")
    except (RetryExhausted, TimeoutError) as error:
        print(type(error).__name__)
    ModelRetryConfig(should_retry=yes, backoff=float)


async def failed_over() -> None:
    broken = ScriptedModel([ConnectionError()])
    for failover in (
        ModelFailoverConfig(models=[ScriptedModel(["backup"])], should_failover=helps),
        ModelFailoverConfig(models=(ScriptedModel(["backup"]),), should_failover=helps_later),
        ModelFailoverConfig(get_failover_model=choose, max_retries=2),
        ModelFailoverConfig(get_failover_model=choose_and_shorten, max_retries=1),
    ):
        agent = ChatModelAgent(name="careful", model=ScriptedModel([ConnectionError()]), failover=failover)
        assert (await agent.run("hi")).output in {"backup", "attempt 1", "short"}
    assert broken.requests == []


async def main() -> None:
    await retried()
    await failed_over()


if __name__ == "__main__":
    asyncio.run(main())
