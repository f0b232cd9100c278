"""Tools from functions: every way to write one, what the model sees, and what a call of it in Python is."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, assert_type

from msgspec import Meta, Struct

from suture import (
    ChatModelAgent,
    Injected,
    Message,
    Tool,
    ToolArgument,
    ToolCall,
    ToolContext,
    ToolInfo,
    ToolResult,
    exit_tool,
    tool,
)
from suture.messages import ImagePart, Part, TextPart
from suture.testing import ScriptedModel


@dataclass
class Database:
    rows: dict[str, int]


class Place(Struct):
    city: str
    country: str = "de"


@tool
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


@tool
async def search(query: str, limit: int = 5) -> list[str]:
    """Search the docs.

    Args:
        query: What to look for.
    """
    return [query] * limit


@tool(name="look_up", description="Look something up.", timeout=10, retry=2, idempotent=True)
async def look(place: Place, unit: Literal["C", "F"] = "C") -> dict[str, Any]:
    return {"city": place.city, "unit": unit}


@tool(thread=False)
def count(
    key: Annotated[str, Meta(description="What to count.")],
    database: Injected[Database],
    context: ToolContext,
    cache: Injected[dict[str, int]] | None = None,
) -> str:
    """Count rows."""
    assert_type(database, Database)
    assert_type(context.call_id, str)
    return f"{context.name}: {database.rows[key]}, {cache}"


@tool
async def lines(file: str) -> AsyncIterator[str]:
    """Read line by line."""
    yield file
    yield "end"


@tool
def rows(table: str) -> Iterator[str]:
    """Read row by row."""
    yield table


@tool
async def picture(url: str) -> ToolResult:
    """Show a picture."""
    return ToolResult([TextPart("Here it is."), ImagePart(url=url)])


@tool
def parts(url: str) -> list[Part]:
    """Give parts."""
    return [ImagePart(url=url)]


@tool(kind="enhanced_streamable")
async def frames(argument: ToolArgument) -> AsyncIterator[ToolResult]:
    """Show pictures one by one."""
    yield ToolResult(parts=(TextPart(argument.text),))
    yield ToolResult([TextPart("no more")], is_error=True, return_directly=True, extra={"frames": 1})


@tool(schema={"type": "object", "properties": {"path": {"type": "string"}}})
def delete(path: str) -> None:
    """Delete a file."""
    print("deleted", path)


def plain(text: str) -> str:
    """Not decorated: an agent takes it as it is."""
    return text.upper()


async def called_in_python() -> None:
    assert_type(double(4), int)
    assert_type(await search("pairing", limit=2), list[str])
    assert_type(await look(Place("Kiel")), dict[str, Any])
    assert_type(count("a", Database({"a": 1}), ToolContext("count", "call_1")), str)
    assert_type(rows("boats"), Iterator[str])
    assert_type(delete("a.txt"), None)
    async for line in lines("a.txt"):
        assert_type(line, str)
    for part in (await picture("https://example.com/a.png")).parts:
        assert_type(part, Part)


def described() -> None:
    assert_type(double.name, str)
    assert_type(double.info, ToolInfo)
    assert_type(tool(plain)("a"), str)
    assert_type(exit_tool()("done"), str)
    approved = tool(plain, name="shout", requires_approval=True)
    assert approved.requires_approval
    assert approved.name == "shout"


async def main() -> None:
    await called_in_python()
    described()
    model = ScriptedModel(
        [
            Message.assistant(
                tool_calls=[
                    ToolCall("call_1", "double", '{"number": 4}'),
                    ToolCall("call_2", "count", '{"key": "a"}'),
                    ToolCall("call_3", "lines", '{"file": "a.txt"}'),
                    ToolCall("call_4", "picture", '{"url": "https://example.com/a.png"}'),
                    ToolCall("call_5", "plain", '{"text": "hey"}'),
                ]
            ),
            "done",
        ]
    )
    everything: list[Tool[..., Any]] = [double, search, look, count, lines, rows, picture, parts, frames, delete]
    agent = ChatModelAgent(name="worker", model=model, tools=[*everything, plain, exit_tool("finish")])
    result = await agent.run("work", deps=[Database({"a": 7})])
    results = [message.content for message in result.messages if message.role == "tool"]
    assert results[:2] == ["8", "count: 7, None"], results


if __name__ == "__main__":
    asyncio.run(main())
