"""Budgets, limits, tool errors and callbacks."""

import asyncio
from collections.abc import Sequence

from suture import (
    Budget,
    BudgetExceeded,
    Callbacks,
    ChatModelAgent,
    Component,
    MaxIterationsExceeded,
    Message,
    ModelRequest,
    RunResult,
    TokenUsage,
    ToolArgument,
    ToolCall,
    ToolResult,
    tool,
)
from suture.testing import ScriptedModel

PRICE = 0.000_003


@tool
def fail() -> str:
    """Fail."""
    raise OSError("the disk is full")


def cost(usage: TokenUsage) -> float:
    return usage.prompt_tokens * PRICE + usage.completion_tokens * 5 * PRICE


def say(error: Exception) -> str:
    return f"It failed: {error}"


def started(component: Component, value: ModelRequest[Message] | ToolArgument) -> None:
    print("start", component.kind, component.name, type(value).__name__)


async def ended(component: Component, value: object) -> None:
    if isinstance(value, ToolResult):
        print(component.call_id, value.is_error)


def failed(component: Component, error: Exception) -> None:
    print(component.name, error)


def forever(messages: Sequence[Message]) -> Message:
    return Message.assistant(tool_calls=[ToolCall(f"call_{len(messages)}", "fail", "{}")])


async def main() -> None:
    agent = ChatModelAgent(
        name="worker",
        model=ScriptedModel(forever),
        tools=[fail],
        max_iterations=3,
        on_max_iterations="raise",
        budget=Budget(total_tokens=100_000, tool_calls=50, cost=1, cost_of=cost),
        tool_errors="result",
        format_tool_error=say,
        callbacks=Callbacks(on_start=started, on_end=ended, on_error=failed, kinds={"model", "tool"}),
        return_directly={"exit"},
        language="zh",
    )
    try:
        await agent.run("work")
    except MaxIterationsExceeded as error:
        result: RunResult[Message] | None = error.result
        assert result is not None
        print(len(result.messages), result.usage.total_tokens)

    poor = ChatModelAgent(
        name="poor",
        model=ScriptedModel(forever),
        tools=[fail],
        budget=Budget(cost=0.5, cost_of=lambda usage: usage.total_tokens / 1000, tool_calls=1),
        callbacks=Callbacks(on_end=lambda component, value: print(component.kind, value)),
    )
    run = poor.stream("work")
    try:
        await run.result()
    except BudgetExceeded:
        assert run.final_result is not None
        assert run.final_result.messages[0].content == "work"


if __name__ == "__main__":
    asyncio.run(main())
