"""A real MCP server for the tests, made with the official SDK of either line: its types are made from their wire form.

`server.py` speaks over stdio; `server.py http` over HTTP on loopback, at a port that it prints. What a test waits for
is told to the port of loopback that `NOTES` names.
"""

import asyncio
import os
import socket
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from mcp.types import CallToolResult, ToolAnnotations

if TYPE_CHECKING or find_spec("mcp.server.mcpserver"):
    from mcp.server.mcpserver import Context, Image, MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
else:  # line 1
    from mcp.server.fastmcp import Context, Image
    from mcp.server.fastmcp import FastMCP as MCPServer
    from mcp.server.fastmcp.exceptions import ToolError

server = MCPServer("harbour", log_level="ERROR")


def note(text: str) -> None:
    with socket.create_connection(("127.0.0.1", int(os.environ["NOTES"]))) as listener:
        listener.sendall(text.encode())


@server.tool()
async def tides(port: str, day: int = 1) -> str:
    """Look up the high tide."""
    return f"06:{day:02d} in {port}"


@server.tool(annotations=ToolAnnotations.model_validate({"readOnlyHint": True}))
def depths() -> list[int]:
    """Read the soundings."""
    return [3, 5, 8]


@server.tool(name="files.read", annotations=ToolAnnotations.model_validate({"idempotentHint": True}))
async def files_read(path: str) -> dict[str, Any]:
    """Read a file."""
    return {"path": path, "lines": 2}


@server.tool(annotations=ToolAnnotations.model_validate({"destructiveHint": True}))
async def sink() -> str:
    """Fail."""
    raise ToolError("the ship is gone")


@server.tool()
async def everything() -> CallToolResult:
    """Give a part of each kind."""
    log = {"uri": "file:///log.txt", "text": "fog", "mimeType": "text/plain"}
    picture = {"uri": "file:///a/dot.png", "blob": "iVBORw==", "mimeType": "image/png"}
    link = {"name": "almanac", "uri": "file:///almanac.txt", "mimeType": "text/plain", "description": "All tides."}
    content: list[dict[str, Any]] = [
        {"type": "text", "text": "The chart:"},
        {"type": "image", "data": "iVBORw==", "mimeType": "image/png"},
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
        {"type": "resource", "resource": log},
        {"type": "resource", "resource": picture},
        {"type": "resource", "resource": {"uri": "file:///a/log.pdf", "blob": "AAAA"}},
        {"type": "resource_link", **link},
    ]
    return CallToolResult.model_validate({"content": content})


@server.tool()
async def chart() -> Image:
    """Draw a chart."""
    return Image(data=b"\x89PNG", format="png")


@server.tool()
async def summary() -> CallToolResult:
    """Say in words what is also there as data."""
    said = {"type": "text", "text": "Three ships."}
    return CallToolResult.model_validate({"content": [said], "structuredContent": {"ships": ["a", "b", "c"]}})


@server.tool()
async def silent_failure() -> CallToolResult:
    """Fail without a word."""
    return CallToolResult.model_validate({"content": [], "isError": True})


@server.tool()
async def chatty(context: Context) -> str:
    """Tell of progress and write to the log while working."""
    for step in range(20):
        await context.report_progress(step, 20, f"step {step}")
        await context.log("info", f"line {step}")
    return "done"


@server.tool()
async def wait(mark: str) -> str:
    """Wait until it is cancelled, and note how far it came."""
    note(f"{mark} started")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        note(f"{mark} cancelled")
        raise
    return "never"


@server.tool()
async def die() -> str:
    """End the process in the middle of a call."""
    print("the boiler burst", file=sys.stderr, flush=True)
    os._exit(3)


@server.tool()
async def pid() -> str:
    """Say which process this is."""
    return str(os.getpid())


@server.tool()
async def environment() -> list[str]:
    """Say which variables there are."""
    return sorted(os.environ)


async def serve() -> None:
    import uvicorn

    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        config = uvicorn.Config(server.streamable_http_app(), log_level="error")
        await uvicorn.Server(config).serve(sockets=[listening])


if __name__ == "__main__":
    if sys.argv[1:] == ["http"]:
        asyncio.run(serve())
    else:
        server.run()
