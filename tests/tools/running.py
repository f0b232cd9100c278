"""How the tests run a tool: as a kernel would, without one."""

import asyncio
from typing import Any

from suture.messages import TextPart, ToolArgument, ToolResult
from suture.tools import RunContext, Tool


class Context(RunContext[Any]):
    """What a run would pass in."""

    def __init__(self, deps: Any = None, tool: str = "search", call_id: str = "call_1") -> None:
        self.deps, self.tool, self.call_id = deps, tool, call_id


HELLO = ToolResult((TextPart("hello"),))


def run(tool: Tool[..., Any], arguments: str = "{}", **options: Any) -> Any:
    """Run a tool of any kind; a stream gives the list of its pieces."""
    given = ToolArgument(arguments) if tool.kind.startswith("enhanced") else arguments

    async def at_once() -> Any:
        if tool.kind.endswith("invokable"):
            return await tool.endpoint(given, **options)
        return [piece async for piece in tool.endpoint(given, **options)]

    return asyncio.run(at_once())
