"""Tools from functions: every way to write one, what the model sees, and what a call of it in Python is."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, assert_type

from msgspec import Meta, Struct

from suture import (
    ChatModelAgent,
    Message,
    RunContext,
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
    ctx: RunContext[Database],
    context: ToolContext,
    bare: RunContext,
) -> str:
    """Count rows."""
    assert_type(ctx.deps, Database)
    assert_type(bare.deps, Any)
    assert_type(context.call_id, str)
    return f"{context.name}: {ctx.deps.rows[key]}, {bare is ctx}"


class Fleet:
    """Its methods are tools, too."""

    def __init__(self, *ships: str) -> None:
        self.ships = ships

    @tool
    def size(self, port: str) -> int:
        """Count the ships in a port."""
        return self.ships.count(port)

    @tool(timeout=10)
    async def list_ships(self, ctx: RunContext[Database], limit: int = 3) -> list[str]:
        """List ships."""
        assert_type(self.size(port="Kiel"), int)
        return [*self.ships[:limit], *ctx.deps.rows]


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


class Index:
    def __call__(self, query: str) -> int:
        return len(query)


def plain(text: str) -> str:
    """Not decorated: an agent takes it as it is."""
    return text.upper()


async def called_in_python() -> None:
    assert_type(double(4), int)
    assert_type(await search("pairing", limit=2), list[str])
    assert_type(await look(Place("Kiel")), dict[str, Any])
    assert_type(Fleet("Kiel").size("Kiel"), int)
    bound: Tool[[str], int] = Fleet("Kiel").size
    assert_type(bound("Kiel"), int)
    assert_type(Fleet.size(Fleet("Kiel"), "Kiel"), int)
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
    assert_type(tool(Index(), retry=1)("abc"), int)
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
    fleet = Fleet("Kiel", "Dover")
    everything: list[Tool[..., Any]] = [double, search, look, count, lines, rows, picture, parts, frames, delete]
    agent = ChatModelAgent(
        name="worker", model=model, tools=[*everything, plain, fleet.size, fleet.list_ships, exit_tool("finish")]
    )
    result = await agent.run("work", deps=Database({"a": 7}))
    results = [message.content for message in result.messages if message.role == "tool"]
    assert results[:2] == ["8", "count: 7, True"], results


if __name__ == "__main__":
    asyncio.run(main())
