"""How an MCP server is reached: as a child process, or over HTTP. Imported only by those who have the SDK."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from threading import Thread
from types import TracebackType
from typing import Any, Self

import anyio
import httpx2
from mcp import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from suture.integrations._mcp_targets import Http, Stdio

__all__ = ["STATUS", "Errors", "Watched", "open_http", "open_stdio"]

_CONNECT = 30.0
"""How many seconds a connection may take to be made; how long an answer takes is for the caller to say."""

_LARGEST = 64 * 1024 * 1024
"""How many bytes one event of a server may have: a picture is one event."""

_KEPT = 2_000
"""How many bytes of what a process writes to its stderr are kept."""

STATUS: ContextVar[list[int]] = ContextVar("suture_mcp_status")
"""Where the HTTP status of what is being asked is noted. A request is sent in the context of whoever asks."""


@asynccontextmanager
async def open_stdio(target: Stdio, errors: "Errors") -> AsyncGenerator[Any, None]:
    """Start a server, and stop it in the end, gently first."""
    parameters = StdioServerParameters(
        command=target.command,
        args=list(target.args),
        env=None if target.env is None else dict(target.env),
        cwd=target.cwd,
    )
    if target.stderr is not None:
        async with stdio_client(parameters, errlog=target.stderr) as streams:
            yield streams
        return
    with errors.open() as stderr:
        async with stdio_client(parameters, errlog=stderr) as streams:
            yield streams


@asynccontextmanager
async def open_http(target: Http) -> AsyncGenerator[Any, None]:
    """Reach a server over streamable HTTP."""
    headers = None if target.headers is None else dict(target.headers)
    timeout = httpx2.Timeout(_CONNECT, read=None)
    hooks = {"response": [_note_status]}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout, event_hooks=hooks) as client,
        streamable_http_client(target.url, http_client=client, max_sse_event_size=_LARGEST) as streams,
    ):
        yield streams


async def _note_status(response: httpx2.Response) -> None:
    with suppress(LookupError):
        STATUS.get().append(response.status_code)


class Errors:
    """The end of what a process writes to its stderr: often it says why the process ended."""

    def __init__(self) -> None:
        self._kept = b""
        self._thread: Thread | None = None

    def open(self) -> Any:
        """Return a file to write to; what is written there is kept."""
        read, write = os.pipe()
        self._thread = Thread(target=self._drain, args=(read,), name="suture-mcp-stderr", daemon=True)
        self._thread.start()
        return os.fdopen(write, "w")

    def _drain(self, read: int) -> None:
        with os.fdopen(read, "rb", buffering=0) as pipe:
            while piece := pipe.read(65_536):
                self._kept = (self._kept + piece)[-_KEPT:]

    async def text(self) -> str:
        """Return what was kept, once the process has ended or said nothing for a while."""
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, 0.5)
        return self._kept.decode(errors="replace").strip()


class Watched:
    """The messages of a server, and an event that is set once there will be no more."""

    def __init__(self, inner: Any, ended: anyio.Event) -> None:
        self._inner, self._ended = inner, ended

    @property
    def last_context(self) -> Any:
        """The context of whoever sent the last message, where the transport tells."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        """Return the next message."""
        try:
            return await self._inner.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._ended.set()
            raise

    async def aclose(self) -> None:
        """Let no more messages come."""
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()
