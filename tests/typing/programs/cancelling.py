"""Stopping a run, at once or at a safe point."""

import asyncio
from typing import Any, Literal, assert_type

from suture import ChatModelAgent, Message, Outcome, RunResult, ToolCall, tool
from suture.events import ToolStarted
from suture.testing import ScriptedModel

Point = Literal["now", "after_model", "after_tools"]


@tool
async def wait(seconds: float) -> str:
    """Wait."""
    await asyncio.sleep(seconds)
    return "done"


def make(seconds: float) -> ChatModelAgent:
    call = ToolCall("1", "wait", f'{{"seconds": {seconds}}}')
    model = ScriptedModel([Message.assistant(tool_calls=[call]), "done"])
    return ChatModelAgent(name="waiter", model=model, tools=[wait])


async def stop(at: Point, seconds: float) -> RunResult[Any]:
    async with make(seconds).stream("wait") as run:
        async for event in run:
            if isinstance(event, ToolStarted):
                break
        result = await run.cancel(at, timeout=5, recursive=True)
    assert_type(result, RunResult[Any])
    return result


async def main() -> None:
    now = await stop("now", 60)
    assert now.outcome is Outcome.CANCELLED
    assert now.messages[-1].is_error
    later = await stop("after_tools", 0)
    assert_type(later.escalated, bool)
    run = make(0).stream("wait")
    assert (await run.cancel()).outcome == "cancelled"
    assert (await make(0).stream("wait").cancel(at="after_model")).outcome is Outcome.CANCELLED


if __name__ == "__main__":
    asyncio.run(main())
