"""The MCP SDK of line 2, as `suture.integrations.mcp` uses it; `_mcp_line_1` has the same names."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version
from inspect import signature
from typing import Any

import httpx2
from anyio import CancelScope
from mcp import Client, MCPError, types
from mcp.client.session import MessageHandlerFnT
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

Session = Client
SessionError = MCPError

_LARGEST = 64 * 1024 * 1024
"""How many bytes one event of a server may have; an image is one event."""
_HAS_LIMIT = "max_sse_event_size" in signature(streamable_http_client).parameters
"""Whether that can be said; before 2.3 it is 1 MiB."""


def as_message(said: Any) -> SessionMessage:
    """Return what a server said as a message of the SDK; raise pydantic's `ValidationError` if it is none."""
    return SessionMessage(types.jsonrpc_message_adapter.validate_python(said, by_name=False))


@asynccontextmanager
async def open_http(
    url: str, headers: dict[str, str], connect: float, note: Callable[[int], None]
) -> AsyncGenerator[tuple[Any, Any], None]:
    """Open the two streams of a server; `note` is told each HTTP status in the context of who sent the request."""

    async def hear(response: httpx2.Response) -> None:
        note(response.status_code)

    limit: Any = {"max_sse_event_size": _LARGEST} if _HAS_LIMIT else {}
    timeout, hooks = httpx2.Timeout(connect, read=None), {"response": [hear]}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout, event_hooks=hooks) as client,
        streamable_http_client(url, http_client=client, **limit) as streams,
    ):
        yield streams


async def run_session(
    streams: AbstractAsyncContextManager[tuple[Any, Any]],
    hear: MessageHandlerFnT,
    attempt: CancelScope,
    use: Callable[[Session], Awaitable[None]],
) -> None:
    """Open the streams, greet the server, await `use` with the session, and close all; `attempt` gives it up."""
    info = types.Implementation(name="suture", version=version("suture"))
    with attempt:
        async with Session(streams, cache=None, client_info=info, message_handler=hear) as session:
            session.session.validate_tool_result = _accept_result  # pyright: ignore[reportAttributeAccessIssue]
            await use(session)


async def _accept_result(*_: Any) -> None:
    """Accept a result that does not fit the output schema of its tool: the tool has run."""
