"""A chat in the terminal. Answers stream; Ctrl-C stops the turn, not the program, and the conversation goes on.

    you> what is 6 * 7?
    you> what time is it?
    you> wait 30 seconds         (press Ctrl-C meanwhile)
    you> what happened?

The model is scripted and knows no more than this. Ctrl-D ends the program.
"""

import ast
import asyncio
import operator
import re
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime

from suture import ChatModelAgent, Delta, Message, ModelRequest, ModelWrapper, ToolCall, tool
from suture.events import MessageDelta, ToolStarted
from suture.models import closing
from suture.testing import ScriptedModel

_OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


@tool(thread=False)
def calculate(expression: str) -> float:
    """Work out sums, differences, products and quotients."""
    return _value(ast.parse(expression, mode="eval").body)


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.BinOp(left=left, op=kind, right=right) if type(kind) in _OPERATIONS:
            return _OPERATIONS[type(kind)](_value(left), _value(right))
    raise ValueError("only numbers and + - * / are understood")


@tool(thread=False)
def clock() -> str:
    """Tell the time."""
    return datetime.now(UTC).strftime("%H:%M UTC")


@tool
async def wait(seconds: int) -> str:
    """Do nothing for a while."""
    await asyncio.sleep(seconds)
    return f"{seconds} seconds have passed"


def script(messages: Sequence[Message]) -> Message:
    """Play a model that reads a sum, a question for the time, or a wish to wait."""
    last, said = messages[-1], messages[-1].content.lower()
    if last.role == "tool":
        return Message.assistant(f"The tool says: {last.content}.")
    call_id = f"call_{len(messages)}"
    if found := re.search(r"wait (\d+)", said):
        return _calls(call_id, "wait", f'{{"seconds": {found[1]}}}')
    if found := re.search(r"[\d.]+(?: *[-+*/] *[\d.]+)+", said):
        return _calls(call_id, "calculate", f'{{"expression": "{found[0]}"}}')
    if "time" in said:
        return _calls(call_id, "clock", "{}")
    results = [message.content for message in messages if message.role == "tool"]
    if "what happened" in said and results:
        return Message.assistant(f"The last thing I was told is: {results[-1]}")
    return Message.assistant("I can work out sums, tell the time, and wait. Everything else is beyond me.")


def _calls(call_id: str, name: str, arguments: str) -> Message:
    return Message.assistant("One moment. ", tool_calls=[ToolCall(call_id, name, arguments)])


class Unhurried(ModelWrapper[Message]):
    """Slows a model down to the pace of a real one."""

    async def stream(self, request: ModelRequest[Message], /) -> AsyncIterator[Delta | Message]:
        async with closing(self.inner.stream(request)) as pieces:
            async for piece in pieces:
                await asyncio.sleep(0.02)
                yield piece


agent = ChatModelAgent(
    name="chat", model=Unhurried(ScriptedModel(script, chunk_size=4)), tools=[calculate, clock, wait]
)


async def turn(said: str, history: Sequence[Message]) -> Sequence[Message]:
    """Answer what the user said, as text comes in; return the history that this makes."""
    run = agent.stream(said, history=history)
    try:
        async with run:
            async for event in run:
                if isinstance(event, MessageDelta):
                    print(event.text, end="", flush=True)
                elif isinstance(event, ToolStarted):
                    print(f"[{event.name} {event.arguments}] ", end="", flush=True)
    except asyncio.CancelledError:  # Ctrl-C: `async with` has ended the run, and every call has its result
        print("[stopped]", end="")
    print()
    return run.final_result.messages if run.final_result is not None else history


def main() -> None:
    history: Sequence[Message] = ()
    while True:
        try:
            said = input("you> ")
        except KeyboardInterrupt:
            print("\n(Ctrl-D ends the program)")
            continue
        except EOFError:
            print("\nBye.")
            return
        if said.strip():
            history = asyncio.run(turn(said, history))


if __name__ == "__main__":
    main()
