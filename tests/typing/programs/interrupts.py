"""Asking somebody outside, and going on with the answer."""

import asyncio
from collections.abc import Mapping
from typing import Any, TypedDict, assert_type

from suture import (
    Approval,
    ChatModelAgent,
    ChatModelAgentMiddleware,
    Message,
    Outcome,
    ResumeError,
    Run,
    RunResult,
    ToolCall,
    ToolCallRequest,
    ToolResult,
    interrupt,
    interrupt_state,
    tool,
)
from suture.middleware import CallTool
from suture.stores import MemoryStore, Store
from suture.testing import ScriptedModel


class Question(TypedDict):
    text: str
    choices: list[str]


@tool
async def ask_user(question: str) -> str:
    """Ask the user."""
    return await interrupt(question, expects=str)


@tool
async def book(seats: int) -> str:
    """Book seats."""
    asked: Question = {"text": f"Book {seats} seats?", "choices": ["yes", "no"]}
    sure = await interrupt(asked, state={"seats": seats}, expects=bool)
    assert_type(sure, bool)
    kept, found = interrupt_state()
    assert_type(found, bool)
    answer: dict[str, Any] = await interrupt("By card?")
    return f"{seats} {sure} {answer} {kept}"


@tool(requires_approval=True)
def pay(euros: int) -> str:
    """Pay."""
    return f"paid {euros}"


class Guard(ChatModelAgentMiddleware[Message]):
    async def wrap_tool_call(self, call: ToolCallRequest, proceed: CallTool) -> ToolResult:
        if call.name == "book" and not await interrupt(f"May it {call.name}?", expects=bool):
            raise PermissionError(call.name)
        return await proceed(call)


def make(store: Store | None) -> ChatModelAgent:
    calls = [
        ToolCall("1", "ask_user", '{"question": "Where to?"}'),
        ToolCall("2", "book", '{"seats": 2}'),
        ToolCall("3", "pay", '{"euros": 120}'),
    ]
    return ChatModelAgent(
        name="clerk",
        model=ScriptedModel([Message.assistant(tool_calls=calls), "done"]),
        tools=[ask_user, book, pay],
        middlewares=[Guard()],
        checkpoint_store=store,
    )


def answer_for(name: str, info: Any) -> object:
    known: Mapping[str, object] = {"ask_user": "Dover", "book": True, "pay": Approval(approved=True)}
    return {"card": True} if info == "By card?" else known[name]


async def main() -> None:
    agent = make(MemoryStore())
    result = await agent.run("Book it.", checkpoint_id="trip-7")
    while result.outcome is Outcome.INTERRUPTED:
        answers = {asked.id: answer_for(asked.name, asked.info) for asked in result.interrupts}
        for asked in result.interrupts:
            assert_type(asked.id, str)
            assert_type(asked.run_path, tuple[str, ...])
        going_on = agent.stream(resume="trip-7", answers=answers)
        assert_type(going_on, Run[str])
        result = await going_on.result()
        assert_type(result, RunResult[str])
    assert result.output == "done"

    memory = make(None)
    asking = await memory.run("Book it.")
    while asking.outcome is Outcome.INTERRUPTED:
        first = asking.interrupts[0]
        if len(asking.interrupts) == 1:
            asking = await memory.resume(asking, answer_for(first.name, first.info))
        else:
            asking = await memory.resume(asking, answers={first.call_id: answer_for(first.name, first.info)})
        assert_type(asking, RunResult[str])
    assert asking.output == "done"

    other = make(MemoryStore())
    await other.run("Book it.", checkpoint_id="trip-8")
    try:
        await other.resume("trip-8", answers={"clerk/9/9/tool/0": False}, deps=(), options={"temperature": 0})
    except ResumeError as error:
        print(error)


if __name__ == "__main__":
    asyncio.run(main())
