"""What an error carries: the run that it ended, what is left of a history, why the attempts failed."""

import asyncio
from collections.abc import Sequence

from suture import (
    ChatModelAgent,
    ConfigError,
    HistoryError,
    MaxIterationsExceeded,
    Message,
    ModelRetryConfig,
    OutputError,
    RetryExhausted,
    RunError,
    SutureError,
    ToolCall,
    UnregisteredTypeError,
    tool,
)
from suture.testing import ScriptedModel
from suture.tools import ToolArgumentsError


@tool
def ping() -> str:
    """Ping."""
    return "pong"


def call(messages: Sequence[Message]) -> Message:
    return Message.assistant(tool_calls=[ToolCall(f"call_{len(messages)}", "ping", "{}")])


async def limited() -> int:
    agent = ChatModelAgent(name="limited", model=ScriptedModel(call), tools=[ping], max_iterations=2)
    try:
        await agent.run("go")
    except MaxIterationsExceeded as error:
        return len(error.result.messages) if error.result is not None else 0
    return 0


async def exhausted() -> int:
    agent = ChatModelAgent(
        name="exhausted",
        model=ScriptedModel([TimeoutError()] * 2),
        model_retry_config=ModelRetryConfig(max_retries=1, backoff=lambda _: 0.0),
    )
    try:
        await agent.run("go")
    except RetryExhausted as error:
        return error.attempts if isinstance(error.__cause__, TimeoutError) else 0
    return 0


async def mistyped() -> str:
    agent = ChatModelAgent(
        name="mistyped", model=ScriptedModel(["not a number"] * 3), output_type=int, max_iterations=3
    )
    try:
        await agent.run("go")
    except (OutputError, RunError) as error:
        return str(error)
    return ""


def problems(error: SutureError) -> list[str]:
    if isinstance(error, HistoryError):
        return [f"{finding.index}: {finding.problem}" for finding in error.unresolved]
    if isinstance(error, ToolArgumentsError):
        return list(error.problems)
    if isinstance(error, UnregisteredTypeError):
        return [str(error)]
    return []


async def main() -> None:
    assert await limited() == 5
    assert await exhausted() == 2
    assert await mistyped()
    assert problems(HistoryError("nothing left")) == []
    try:
        ChatModelAgent(name="", model=ScriptedModel([]))
    except ConfigError as error:
        print(error)


if __name__ == "__main__":
    asyncio.run(main())
