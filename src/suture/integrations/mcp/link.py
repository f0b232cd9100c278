"""One connection to an MCP server. Imported only by those who have the SDK.

What the SDK opens is closed by the task that opened it, and tools are called from many tasks. So each connection has
a task of its own that opens it, waits until it ends, and closes it again. Whoever calls a tool only uses it.
"""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from contextvars import Context, ContextVar
from importlib.metadata import version
from threading import Thread
from typing import Any, Self, cast

import anyio
import httpx2
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client import IncomingMessage
from mcp.client.streamable_http import streamable_http_client
from mcp.types import (
    CONNECTION_CLOSED,
    AudioContent,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    Implementation,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
)

from suture._aio import run_to_the_end
from suture._text import shorten
from suture.integrations.mcp import Http, MCPServerError, Target
from suture.messages import AudioPart, FilePart, ImagePart, Part, TextPart, ToolResult, VideoPart

_CONNECT = 30.0
"""How many seconds a connection may take to be made; how long an answer takes is for the caller to say."""

_LARGEST = 64 * 1024 * 1024
"""How many bytes one event of a server may have: a picture is one event."""

_KEPT = 2_000
"""How many bytes of what a process writes to its stderr are kept."""

STATUS: ContextVar[list[int]] = ContextVar("suture_mcp_status")
"""Where the HTTP status of what is being asked is noted. A request is sent in the context of whoever asks."""


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


class _Watched:
    """The messages of a server, and an event that is set once there will be no more."""

    def __init__(self, inner: Any, ended: anyio.Event) -> None:
        self._inner, self._ended = inner, ended

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._inner.__anext__()
        except (StopAsyncIteration, anyio.ClosedResourceError):
            self._ended.set()
            raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._inner.aclose()


_SILENT = "The tool failed and did not say why."
_MEDIA = {"image": ImagePart, "audio": AudioPart, "video": VideoPart}


def as_tool_result(given: CallToolResult) -> ToolResult:
    """Return a server's result in Suture's own form, with nothing left out.

    Structured content is told as JSON, unless a text says the same: servers repeat it for those who read texts only.

    >>> from mcp.types import CallToolResult, TextContent
    >>> as_tool_result(CallToolResult(content=[TextContent(text="no such page")], is_error=True))
    ToolResult(parts=(TextPart(text='no such page'),), is_error=True)
    >>> as_tool_result(CallToolResult(content=[], structured_content={"pages": 3})).parts
    (TextPart(text='{"pages": 3}'),)
    """
    parts = [_part(block) for block in given.content]
    # What is no number in JSON, as NaN, is told by its name.
    structured: Any = json.loads(json.dumps(given.structured_content), parse_constant=str)
    texts = [block.text for block in given.content if isinstance(block, TextContent)]
    if structured is not None and not _is_said(structured, texts):
        parts.append(TextPart(json.dumps(structured, ensure_ascii=False)))
    if given.is_error and not parts:
        parts.append(TextPart(_SILENT))
    return ToolResult(parts, is_error=given.is_error)


def _part(block: ContentBlock) -> Part:
    match block:
        case TextContent():
            return TextPart(block.text)
        case ImageContent():
            return ImagePart(base64_data=block.data, mime_type=block.mime_type)
        case AudioContent():
            return AudioPart(base64_data=block.data, mime_type=block.mime_type)
        case ResourceLink():  # other tools of the server may be able to read it
            kind = f" ({block.mime_type})" if block.mime_type else ""
            described = f"\n{block.description}" if block.description else ""
            return TextPart(f"Resource {block.title or block.name}{kind}: {block.uri}{described}")
        case EmbeddedResource():
            found, uri = block.resource, str(block.resource.uri)
            if isinstance(found, TextResourceContents):
                return TextPart(f"Resource {uri}:\n{found.text}")
            mime = found.mime_type or "application/octet-stream"
            media = _MEDIA.get(mime.partition("/")[0])
            if media is not None:
                return media(base64_data=found.blob, mime_type=mime, extra={"uri": uri})
            return FilePart(
                base64_data=found.blob, mime_type=mime, name=uri.rpartition("/")[2] or uri, extra={"uri": uri}
            )


def _is_said(structured: Any, texts: Sequence[str]) -> bool:
    """Tell whether the texts hold all of the structured content: as JSON, or what it wraps as it is, or in a row."""
    wanted = [structured]
    if isinstance(structured, dict) and list(cast("dict[str, Any]", structured)) == ["result"]:
        wanted.append(structured["result"])
    values = [_value(text) for text in texts]
    return bool(texts) and any(given in (*texts, *values, values, list(texts)) for given in wanted)


def _value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=str)
    except (ValueError, RecursionError):
        return text


_PATIENCE = 10.0
"""How many seconds a connection may take to be closed in good order."""

_LOST = ("Connection closed", "SSE stream ")
"""How the SDK's own errors begin where no answer comes any more; their code may be a server's as well."""

_FORGOTTEN = "Session terminated"
"""What the SDK makes of a 404 to a session that there was."""

_LONGEST = 500
"""How many characters of somebody else's text go into one of ours."""


class Link:
    """A connection, and the task that holds it."""

    def __init__(self, target: Target, context: Context) -> None:
        self.target, self._context = target, context
        self.listed: tuple[Tool, ...] = ()
        """The tools that the server has."""
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._opened = asyncio.Event()
        self._ended = anyio.Event()
        self._scope = anyio.CancelScope()
        self._failure: Exception | None = None
        self._errors = Errors()
        self._noise = ""
        """What the server last wrote that is no message."""
        self._statuses: list[int] = []

    @property
    def is_over(self) -> bool:
        """Whether no tool can be called any more."""
        return self._client is None or self._ended.is_set() or self._task is None or self._task.done()

    async def open(self, timeout: float | None) -> None:  # noqa: ASYNC109 - told to the user, so it is counted here
        """Connect and ask for the tools; raise `MCPServerError` where that fails, and leave nothing behind."""
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._hold(), context=self._context.copy(), name=f"suture-mcp:{self._name}")
        try:
            done, _ = await asyncio.wait([self._task, self._ready], timeout=timeout, return_when="FIRST_COMPLETED")
        except asyncio.CancelledError:
            await self.close()
            raise
        if not self.is_over:
            return
        await self.close()
        why = self._why("it ended before it answered") if done else f"it did not answer within {timeout} s"
        refused = [status for status in self._statuses if status >= 400]
        if refused:
            why = f"{why} (HTTP status {refused[-1]})"
        raise await self._error(f"{self._name} cannot be used: {why}") from self._failure

    async def close(self) -> None:
        """End the connection, and wait until all of it is gone, even if we are cancelled meanwhile."""
        await run_to_the_end(self._close())

    async def _close(self) -> None:
        task = self._task
        if task is None:
            return
        if self._client is None:
            # A process that is just being started would be let go of, not ended, if that were cancelled.
            with suppress(TimeoutError):
                await asyncio.wait_for(self._opened.wait(), _PATIENCE)
            self._scope.cancel()
        self._client = None
        self._ended.set()
        while not task.done():
            done, _ = await asyncio.wait([task], timeout=_PATIENCE)
            if not done:
                self._scope.cancel()

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Call a tool. A call that is cancelled is cancelled at the server as well."""
        client = self._client
        if client is None:
            raise MCPServerError(f"{self._name} is gone; {name} was not called")
        statuses: list[int] = []
        mark = STATUS.set(statuses)
        try:
            return as_tool_result(await client.call_tool(name, arguments))
        except MCPError as error:
            raise await self._explain(error, name, statuses) from error
        except Exception as error:
            raise MCPServerError(
                f"{self._name} answered {name} with what cannot be used: {self._clip(error)}"
            ) from error
        finally:
            STATUS.reset(mark)

    async def _hold(self) -> None:
        """Keep the connection open until it ends or is to end."""
        STATUS.set(self._statuses)
        try:
            info = Implementation(name="suture", version=version("suture"))
            with self._scope:
                async with Client(self._streams(), cache=None, client_info=info, message_handler=self._hear) as client:
                    self.listed = await _list_tools(client)
                    self._client = client
                    self._ready.set_result(None)
                    await self._ended.wait()
        except Exception as error:  # noqa: BLE001 - told to whoever opened it, or calls
            self._failure = _leaf(error)
        finally:
            self._opened.set()
            self._ended.set()

    @asynccontextmanager
    async def _streams(self) -> AsyncGenerator[tuple[Any, Any], None]:
        target = self.target
        async with AsyncExitStack() as stack:
            if isinstance(target, Http):
                timeout, hooks = httpx2.Timeout(_CONNECT, read=None), {"response": [_note_status]}
                client = httpx2.AsyncClient(headers=dict(target.headers or {}), timeout=timeout, event_hooks=hooks)
                await stack.enter_async_context(client)
                streams = streamable_http_client(target.url, http_client=client, max_sse_event_size=_LARGEST)
            else:
                env = None if target.env is None else dict(target.env)
                about = StdioServerParameters(command=target.command, args=list(target.args), env=env, cwd=target.cwd)
                stderr = target.stderr or stack.enter_context(self._errors.open())
                streams = stdio_client(about, errlog=stderr)
            read, write = await stack.enter_async_context(streams)
            self._opened.set()
            yield _Watched(read, self._ended), write

    async def _hear(self, message: IncomingMessage) -> None:
        """Note what is no message; progress and logs are nobody's business here."""
        if isinstance(message, Exception):
            self._noise = self._clip(message)

    @property
    def _name(self) -> str:
        return f"the MCP server {self.target.label!r}"

    def _why(self, otherwise: str) -> str:
        """Say what ended the connection."""
        failure = self._failure
        if failure is None or (isinstance(failure, MCPError) and _is_lost(failure)):
            return otherwise
        return f"{type(failure).__name__}: {self._clip(failure)}" if str(failure) else type(failure).__name__

    def _clip(self, error: object) -> str:
        return shorten(self._clean(str(error) or type(error).__name__), _LONGEST)

    def _clean(self, text: str) -> str:
        """Return somebody else's text without our secrets: a server may repeat the headers that it was sent."""
        for secret in self.target.secrets:
            text = text.replace(secret, "***")
        return text

    async def _error(self, text: str) -> MCPServerError:
        """Return an error that also tells what a server wrote at the end: one line, and more of it as a note."""
        said = self._clean(await self._errors.text())
        if self._noise:
            text += f"; it wrote what is no message: {self._noise}"
        if said:
            text += f"; the last it said: {self._clip(said.splitlines()[-1].strip())}"
        error = MCPServerError(text)
        if "\n" in said:
            error.add_note(f"What {self._name} wrote to its stderr, the end of it:\n{said}")
        return error

    async def _explain(self, error: MCPError, name: str, statuses: list[int]) -> MCPServerError:
        """Say what went wrong with a call, and whether it may have been carried out."""
        status = statuses[-1] if statuses else 0
        if status == 404 and error.message == _FORGOTTEN:
            self._ended.set()
            return MCPServerError(f"{self._name} has ended the session, and {name} was not called; call it once more")
        if not _is_lost(error):
            shown = f" (HTTP status {status})" if status >= 400 else ""
            return MCPServerError(f"{self._name} refused {name}: {self._clip(error)}{shown}")
        task = self._task
        if task is not None:
            await asyncio.wait([task], timeout=1.0)  # it knows why, once it is through
        unknown = f"whether {name} was carried out is not known"
        if not self.is_over:
            return MCPServerError(f"{self._name} broke off {name}: {self._clip(error)}; {unknown}")
        why = self._why("the connection was closed")
        return await self._error(f"{self._name} went away during {name}: {why}; {unknown}")


async def _list_tools(client: Client) -> tuple[Tool, ...]:
    """Return all tools of a server, page by page."""
    if client.server_capabilities.tools is None:
        return ()
    found: list[Tool] = []
    cursor: str | None = None
    seen: set[str] = set()
    while True:
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if cursor is None:
            return tuple(found)
        if cursor in seen:
            raise ValueError("its list of tools never ends")
        seen.add(cursor)


def _leaf(error: Exception) -> Exception:
    """Return the first exception in a group of them."""
    inside: Sequence[Exception] = getattr(error, "exceptions", ())
    return _leaf(inside[0]) if inside else error


def _is_lost(error: MCPError) -> bool:
    """Tell whether an error means that no answer comes, and not that the server refused."""
    return error.code == CONNECTION_CLOSED and error.message.startswith(_LOST)
