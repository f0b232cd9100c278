"""The MCP SDK of line 1, as `suture.integrations.mcp` uses it; `_mcp_line_2` has the same names.

A session of line 2 tells the server of a cancelled call, leaves no caller waiting when it ends, and answers a request
itself if HTTP gives no answer. A session of line 1 does none of these, so they are here.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, contextmanager, nullcontext, suppress
from contextvars import Context, copy_context
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Self

from anyio import BrokenResourceError, CancelScope, ClosedResourceError, move_on_after, sleep_forever
from pydantic import ValidationError

# The type checker knows line 2 alone, and httpx2, which has the names of httpx.
if TYPE_CHECKING:
    import httpx2 as httpx
else:
    import httpx
mcp: Any = import_module("mcp")
types: Any = import_module("mcp.types")
_http: Any = import_module("mcp.client.streamable_http")
_SessionMessage: Any = import_module("mcp.shared.message").SessionMessage
SessionError: Any = mcp.McpError

_COURTESY = 5.0
"""How many seconds telling a server of a cancelled call may take."""


def as_message(said: Any) -> Any:
    """Return what a server said as a message of the SDK; raise pydantic's `ValidationError` if it is none."""
    return _SessionMessage(types.JSONRPCMessage.model_validate(said))


# --- a session ------------------------------------------------------------------------------------


async def run_session(
    streams: AbstractAsyncContextManager[tuple[Any, Any]],
    hear: Callable[[Any], Awaitable[None]],
    attempt: CancelScope,
    use: Callable[["Session"], Awaitable[None]],
) -> None:
    """Open the streams, greet the server, await `use` with the session, and close all; `attempt` gives it up."""
    async with streams as (read, write):
        with attempt:  # not around the streams: a cancelled one would kill its process at once
            session = Session(read, write, hear)
            async with session.inner:
                try:
                    await session.greet()
                    await use(session)
                finally:
                    session.lose()


class Session:
    """A session, under the names that the client of line 2 has."""

    def __init__(self, read: Any, write: Any, hear: Callable[[Any], Awaitable[None]]) -> None:
        info = types.Implementation(name="suture", version=version("suture"))
        self.inner = _Client(_Inbox(read, self.lose), write, message_handler=hear, client_info=info)
        self.server_capabilities: Any = None
        self._waiting: set[CancelScope] = set()
        self._is_lost = False

    def lose(self) -> None:
        """Raise the error for a closed connection in all calls, those to come as well."""
        self._is_lost = True
        for scope in self._waiting:
            scope.cancel()

    async def greet(self) -> None:
        """Agree with the server on what it is capable of."""
        with self._waits():
            self.server_capabilities = (await self.inner.initialize()).capabilities

    async def list_tools(self, *, cursor: str | None = None) -> Any:
        """Return a page of the server's tools."""
        with self._waits():
            return await self.inner.list_tools(params=types.PaginatedRequestParams(cursor=cursor))

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call a tool. The session's own method would refuse a result that does not fit the tool's output schema."""
        params = types.CallToolRequestParams(name=name, arguments=arguments, _meta=_trace())
        number = self.inner._request_id  # noqa: SLF001 - the id of the next request
        try:
            with self._waits():
                request = types.ClientRequest(types.CallToolRequest(params=params))
                return await self.inner.send_request(request, types.CallToolResult)
        except asyncio.CancelledError:
            told = types.CancelledNotification(params=types.CancelledNotificationParams(requestId=number))
            with move_on_after(_COURTESY, shield=True), suppress(ClosedResourceError, BrokenResourceError):
                await self.inner.send_notification(types.ClientNotification(told))
            raise

    @contextmanager
    def _waits(self) -> Generator[None]:
        """Wait for the server in here until it answers, or the connection is lost."""
        with suppress(ClosedResourceError, BrokenResourceError):
            with CancelScope() as scope:
                self._waiting.add(scope)
                if self._is_lost:
                    scope.cancel()
                try:
                    yield
                finally:
                    self._waiting.discard(scope)
            if not scope.cancelled_caught:
                return
        raise SessionError(types.ErrorData(code=types.CONNECTION_CLOSED, message="Connection closed"))


class _Client(mcp.ClientSession):
    """Goes on where the SDK's session ends without a word: if a call is cancelled at the moment of its answer."""

    async def _handle_response(self, message: Any) -> None:
        with suppress(ClosedResourceError, BrokenResourceError):
            above: Any = super()
            await above._handle_response(message)  # noqa: SLF001 - there is no other place for it


class _Inbox:
    """The messages of a server, of which the session does not see the end: it would leave callers waiting."""

    def __init__(self, inner: Any, ended: Callable[[], None]) -> None:
        self._inner, self._ended = inner, ended

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._inner.__aexit__()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        with suppress(StopAsyncIteration, ClosedResourceError, BrokenResourceError):
            return await anext(self._inner)
        self._ended()
        await self._inner.__aexit__()
        return await sleep_forever()


def _trace() -> Any:
    """Return the trace that the caller is in, for the server."""
    with suppress(ImportError):
        found: dict[str, str] = {}
        import_module("opentelemetry.propagate").inject(found)
        return types.RequestParams.Meta(**found) if found else None
    return None


# --- HTTP -----------------------------------------------------------------------------------------


@asynccontextmanager
async def open_http(
    url: str, headers: dict[str, str], connect: float, note: Callable[[int], None]
) -> AsyncGenerator[tuple[Any, Any], None]:
    """Open the two streams of a server; `note` is told each HTTP status in the context of who sent the request."""
    callers: dict[Any, Context] = {}
    timeout = httpx.Timeout(connect, read=None)
    async with _HTTPClient(callers, note, headers=headers, timeout=timeout) as client:
        if hasattr(_http, "streamable_http_client"):
            streams = _http.streamable_http_client(url, http_client=client)
        else:  # 1.23

            def lend(**_: object) -> Any:
                return nullcontext(client)

            timeouts = {"timeout": connect, "sse_read_timeout": None}
            streams = _http.streamablehttp_client(url, httpx_client_factory=lend, **timeouts)
        async with streams as (read, write, _):
            yield read, _Outbox(write, callers)


class _Outbox:
    """The messages to a server; in whose context each request was made is kept in `callers`."""

    def __init__(self, inner: Any, callers: dict[Any, Context]) -> None:
        self._inner, self._callers = inner, callers

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._inner.aclose()

    async def send(self, message: Any) -> None:
        if isinstance(message.message.root, types.JSONRPCRequest):
            self._callers[message.message.root.id] = copy_context()
        await self._inner.send(message)


class _HTTPClient(httpx.AsyncClient):
    """Sees to it that each request is answered: where the server does not, by an error in its place.

    A refusal would end the connection otherwise, and another useless answer leave the caller waiting.
    """

    def __init__(self, callers: dict[Any, Context], note: Callable[[int], None], **options: Any) -> None:
        super().__init__(**options)
        self._callers, self._note = callers, note

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        response = await super().send(request, **options)
        if request.method != "POST" or response.has_redirect_location:
            return response
        sent = json.loads(await request.aread())
        if "method" in sent and "id" in sent:
            self._callers.pop(sent["id"], Context()).run(self._note, response.status_code)
            return await _answer(response, sent["id"])
        if response.is_error:  # nobody waits for an answer
            await response.aclose()
            return httpx.Response(202, request=request)
        return response


async def _answer(response: httpx.Response, number: Any) -> httpx.Response:
    """Return a response to the request of this number that the SDK can read."""
    kind, status, about = response.headers.get("content-type", "").lower(), response.status_code, response.headers
    if status < 400 and kind.startswith("text/event-stream"):
        kept = {name: about[name] for name in ("content-type", "mcp-session-id") if name in about}
        return httpx.Response(status, headers=kept, stream=_Events(response, number), request=response.request)
    code, text = types.INVALID_REQUEST, f"Unexpected content type: {kind}"
    if kind.startswith("application/json"):
        try:
            said = types.JSONRPCMessage.model_validate_json(await response.aread()).root
            if status < 400:
                return response
            if isinstance(said, types.JSONRPCError):
                return _refusal(response, number, said.error)
        except ValidationError as error:
            code, text = types.PARSE_ERROR, f"Failed to parse JSON response: {error}"
    await response.aclose()
    if status == 404:
        text = "Session terminated" if "mcp-session-id" in response.request.headers else "Not Found"
    elif status >= 400:
        code, text = types.INTERNAL_ERROR, "Server returned an error response"
    elif status == 202:
        text = "server answered a request with 202 Accepted"
    return _refusal(response, number, types.ErrorData(code=code, message=text))


def _refusal(response: httpx.Response, number: Any, error: Any) -> httpx.Response:
    """Return a response that refuses the request of this number."""
    content = types.JSONRPCError(jsonrpc="2.0", id=number, error=error).model_dump_json(exclude_none=True)
    headers = {"content-type": "application/json"}
    return httpx.Response(200, headers=headers, content=content, request=response.request)


class _Events(httpx.AsyncByteStream):
    """The events of a response, and an error after the last of them unless the SDK can resume the stream there."""

    def __init__(self, response: httpx.Response, number: Any) -> None:
        self._response, self._number = response, number

    async def __aiter__(self) -> AsyncIterator[bytes]:
        is_resumable, end = False, b"\n"
        with suppress(httpx.HTTPError):
            async with aclosing(self._response.aiter_bytes()) as pieces:
                async for piece in pieces:
                    is_resumable = is_resumable or re.search(rb"[\r\n]id:", end + piece) is not None
                    end = (end + piece)[-3:]
                    yield piece
        if not is_resumable:
            lost = types.ErrorData(code=types.CONNECTION_CLOSED, message="SSE stream ended without a response")
            yield b"\n\ndata: " + _refusal(self._response, self._number, lost).content + b"\n\n"

    async def aclose(self) -> None:
        await self._response.aclose()
