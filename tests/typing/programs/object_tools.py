"""Tools from objects: methods, callable objects, and classes that bring their own description and endpoint."""

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, assert_type

from suture import ChatModelAgent, Message, Tool, ToolArgument, ToolCall, ToolInfo, ToolResult, ToolsConfig, tool
from suture.messages import TextPart
from suture.testing import ScriptedModel


class Notebook:
    """Its methods are tools."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    async def note(self, text: str) -> int:
        """Keep a note."""
        self.notes.append(text)
        return len(self.notes)


class Greeter:
    """An object that can be called."""

    def __init__(self, greeting: str) -> None:
        self.greeting = greeting

    def __call__(self, name: str) -> str:
        """Greet somebody."""
        return f"{self.greeting}, {name}!"


class Calculator:
    """An object with `info` and an endpoint of its own."""

    info = ToolInfo("add", "Add numbers.", {"type": "object", "properties": {"numbers": {"type": "array"}}})

    async def invoke(self, arguments: str, **options: Any) -> str:
        return str(sum(json.loads(arguments)["numbers"]))

    def validate(self, arguments: str) -> str:
        return "" if "numbers" in arguments else "numbers are missing"


class Camera:
    """The same, with parts, piece by piece."""

    info = ToolInfo("camera", "Show what there is.")

    async def enhanced_stream(self, argument: ToolArgument) -> AsyncIterator[ToolResult]:
        yield ToolResult([TextPart(argument.text)])


def power(base: int, exponent: int) -> int:
    """Raise a number to a power."""
    return int(base**exponent)


async def main() -> None:
    notebook = Notebook()
    note = tool(notebook.note)
    assert_type(await note("milk"), int)
    greet = tool(Greeter("Hello"), name="greet")
    assert_type(greet("Ada"), str)
    add = tool(Calculator(), requires_approval=False)
    assert_type(add.name, str)
    square = tool(partial(power, exponent=2), name="square", description="Square a number.")
    assert_type(square(base=3), int)
    by_hand: Tool[..., Any] = Tool(info=ToolInfo("echo"), kind="invokable", endpoint=echo)

    calls = [
        ToolCall("1", "note", '{"text": "bread"}'),
        ToolCall("2", "greet", '{"name": "Ada"}'),
        ToolCall("3", "add", '{"numbers": [1, 2]}'),
        ToolCall("4", "camera", "{}"),
        ToolCall("5", "square", '{"base": 4}'),
        ToolCall("6", "echo", "{}"),
    ]
    agent = ChatModelAgent(
        name="worker",
        model=ScriptedModel([Message.assistant(tool_calls=calls), "done"]),
        tools=ToolsConfig(
            tools=[note, greet, add, Camera(), square, by_hand], sequential=True, return_directly={"never"}
        ),
    )
    result = await agent.run("work")
    texts = [message.content for message in result.messages if message.role == "tool"]
    assert texts[:3] == ["2", "Hello, Ada!", "3"], texts


async def echo(arguments: str, **options: Any) -> str:
    return f"{arguments} {sorted(options)}"


if __name__ == "__main__":
    asyncio.run(main())
