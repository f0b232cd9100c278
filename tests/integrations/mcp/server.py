"""A real MCP server for the tests, made with the official SDK.

`server.py` speaks over stdio; `server.py http` over HTTP on loopback, at a port that it prints. What a test waits for
is told to the port of loopback that `NOTES` names.
"""

import asyncio
import os
import socket
import sys
from typing import Any

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)

DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg=="

server = MCPServer("harbour", log_level="ERROR")


def note(text: str) -> None:
    with socket.create_connection(("127.0.0.1", int(os.environ["NOTES"]))) as listener:
        listener.sendall(text.encode())


@server.tool()
async def tides(port: str, day: int = 1) -> str:
    """Look up the high tide."""
    return f"06:{day:02d} in {port}"


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def depths() -> list[int]:
    """Read the soundings."""
    return [3, 5, 8]


@server.tool(name="files.read", annotations=ToolAnnotations(idempotent_hint=True))
async def files_read(path: str) -> dict[str, Any]:
    """Read a file."""
    return {"path": path, "lines": 2}


@server.tool(annotations=ToolAnnotations(destructive_hint=True))
async def sink() -> str:
    """Fail."""
    raise ToolError("the ship is gone")


@server.tool()
async def everything() -> CallToolResult:
    """Give a part of each kind."""
    return CallToolResult(
        content=[
            TextContent(text="The chart:"),
            ImageContent(data=DOT, mime_type="image/png"),
            AudioContent(data="AAAA", mime_type="audio/wav"),
            EmbeddedResource(resource=TextResourceContents(uri="file:///log.txt", text="fog", mime_type="text/plain")),
            EmbeddedResource(resource=BlobResourceContents(uri="file:///a/dot.png", blob=DOT, mime_type="image/png")),
            EmbeddedResource(resource=BlobResourceContents(uri="file:///a/log.pdf", blob="AAAA")),
            ResourceLink(name="almanac", uri="file:///almanac.txt", mime_type="text/plain", description="All tides."),
        ]
    )


@server.tool()
async def chart() -> Image:
    """Draw a chart."""
    return Image(data=b"\x89PNG", format="png")


@server.tool()
async def summary() -> CallToolResult:
    """Say in words what is also there as data."""
    return CallToolResult(content=[TextContent(text="Three ships.")], structured_content={"ships": ["a", "b", "c"]})


@server.tool()
async def silent_failure() -> CallToolResult:
    """Fail without a word."""
    return CallToolResult(content=[], is_error=True)


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
