"""Whether agents can call the tools of MCP servers with the release of `mcp` that is installed: `mcp_smoke.py`.

A server of that release is started twice, as a child process over stdio and over streamable HTTP on loopback. A
scripted model calls its tool through each. One line says that both answered; anything else is an error.
"""

import asyncio
import socket
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING

from suture import ChatModelAgent, Message, ToolCall
from suture.integrations.mcp import MCPServer
from suture.testing import ScriptedModel


async def ask(server: MCPServer) -> str:
    """Let an agent call the tool; return what the model is told."""
    call = ToolCall("call_1", "tides", '{"port": "Dover"}')
    model = ScriptedModel([Message.assistant(tool_calls=[call]), "At 06:12."])
    async with server:
        result = await ChatModelAgent(model=model, tools=server.tools).run("When is high tide in Dover?")
    return result.messages[2].content


def main() -> None:
    """Ask over stdio and over HTTP; stop with an error if an answer is another one."""
    told = [asyncio.run(ask(MCPServer.stdio(sys.executable, [__file__, "stdio"])))]
    with subprocess.Popen([sys.executable, __file__, "http"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
            told.append(asyncio.run(ask(MCPServer.http(url))))
        finally:
            process.kill()
    if told != ["06:12 in Dover"] * 2:
        raise SystemExit(f"mcp {version('mcp')}: over stdio and HTTP came {told}")
    print(f"mcp {version('mcp')}: a tool was called over stdio and over HTTP")


def serve(how: str) -> None:
    """Be the server."""
    if TYPE_CHECKING or find_spec("mcp.server.mcpserver"):
        from mcp.server.mcpserver import MCPServer as Server
    else:  # mcp 1
        from mcp.server.fastmcp import FastMCP as Server

    server = Server("harbour", log_level="CRITICAL")

    @server.tool()
    async def tides(port: str) -> str:
        """Look up today's high tide."""
        return f"06:12 in {port}"

    if how == "stdio":
        server.run()
        return
    import uvicorn

    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        config = uvicorn.Config(server.streamable_http_app(), log_level="error")
        asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))


if __name__ == "__main__":
    if sys.argv[1:]:
        serve(sys.argv[1])
    else:
        main()
