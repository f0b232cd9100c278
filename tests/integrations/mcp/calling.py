"""What the tests of this folder share: servers, an agent that calls their tools, and what it is told."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from suture import ChatModelAgent, Message, ToolCall
from suture.integrations.mcp import MCPServer
from suture.testing import ScriptedModel

HERE = Path(__file__).parent
SERVER, ODD = HERE / "server.py", HERE / "odd_server.py"
PYTHON = os.environ.get("SUTURE_MCP_PYTHON", sys.executable)
"""Runs the sound servers; one with another line of the SDK may be named."""


def sound(**choices: Any) -> MCPServer:
    """Return a sound server, as a child process."""
    return MCPServer.stdio(PYTHON, [str(SERVER)], **choices)


def odd(habit: str, **choices: Any) -> MCPServer:
    """Return a server with an odd habit, as a child process."""
    return MCPServer.stdio(sys.executable, [str(ODD), habit], **choices)


@contextmanager
def served(**environment: str) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """Give the URL of a sound server over HTTP, and its process."""
    process = subprocess.Popen(
        [PYTHON, SERVER, "http"], stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp", process
    finally:
        process.kill()
        process.communicate()


def model_that(*calls: tuple[str, str]) -> ScriptedModel[Message]:
    """Return a model that makes these calls (a tool and its arguments) in one turn, and answers in the next."""
    made = [ToolCall(f"c{number}", name, arguments) for number, (name, arguments) in enumerate(calls)]
    return ScriptedModel([Message.assistant(tool_calls=made), "ok"])


async def results(server: MCPServer, *calls: tuple[str, str]) -> list[Message]:
    """Let an agent make these calls in one turn; return the messages that answer them."""
    result = await ChatModelAgent(model=model_that(*calls), tools=server.tools).run("hi")
    return [message for message in result.messages if message.role == "tool"]


async def texts(server: MCPServer, *calls: tuple[str, str]) -> list[str]:
    """As above, only what the messages say."""
    return [message.content for message in await results(server, *calls)]


class Notes:
    """What servers note, in order."""

    def __init__(self) -> None:
        self.port = ""
        self.lines: asyncio.Queue[str] = asyncio.Queue()

    async def next(self) -> str:
        return await asyncio.wait_for(self.lines.get(), 120)


@asynccontextmanager
async def listening() -> AsyncIterator[Notes]:
    """Listen to what servers note, at a port of loopback."""
    notes = Notes()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        notes.lines.put_nowait((await reader.read()).decode())
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    notes.port = str(server.sockets[0].getsockname()[1])
    async with server:
        yield notes


def is_alive(pid: int) -> bool:
    """Tell whether a process is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
