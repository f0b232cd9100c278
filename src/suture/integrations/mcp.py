"""Tools of MCP servers as tools of Suture. Needs the extra `mcp`, which is the official SDK.

The SDK demands that the task that opened a connection also closes it, but tools are called from many tasks. So each
connection has its own task, which opens it, waits for its end, and closes it. The callers of tools only use it.

What differs between the lines 1 and 2 of the SDK stands in `_mcp_line_1` and `_mcp_line_2`, which have the same names.
The SDK's types are read in the form that they have on the wire, which is the same in both.
"""

import asyncio
import json
import os
import re
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from contextvars import Context, ContextVar, copy_context
from functools import partial
from hashlib import blake2b
from pathlib import Path
from threading import Thread
from traceback import format_exception
from typing import TYPE_CHECKING, Annotated, Any, Self, TextIO, TypedDict, Unpack
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from suture._aio import run_to_the_end
from suture._extras import check_extra
from suture._text import mask, secrets_of_address, shorten
from suture.errors import ConfigError, SutureError
from suture.messages import ToolArgument, ToolResult
from suture.tools import Tool, tool
from suture.wires import sendable
from suture.wires.fields import is_map

try:
    import mcp
    from anyio import BrokenResourceError, CancelScope
    from mcp import StdioServerParameters, stdio_client, types
    from pydantic import ValidationError

    from suture.integrations._mcp_results import as_tool_result

    if TYPE_CHECKING or hasattr(mcp, "Client"):
        from suture.integrations import _mcp_line_2 as sdk
    else:
        from suture.integrations import _mcp_line_1 as sdk
finally:  # an old release may lack some of these: its version says more than the ImportError
    check_extra("mcp", "mcp")

__all__ = ["MCPServer", "MCPServerError"]


class MCPServerError(SutureError, ConnectionError):
    """An MCP server could not be reached, went away, or gave an unusable answer; the text says which, and why.

    Entering a server raises it. In a tool call the model gets its text, as with every exception of a tool.

    >>> from suture.integrations.mcp import MCPServerError
    >>> issubclass(MCPServerError, ConnectionError)
    True
    """


# --- the server -----------------------------------------------------------------------------------

_LONGEST_NAME = 64
"""How many characters the name of a tool may have."""


class _Choices(TypedDict, total=False):
    """The settings that every kind of server has."""

    prefix: str
    include: Collection[str] | None
    exclude: Collection[str]
    timeout: float | None


class _Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of a server of either kind."""

    command: Annotated[str, Meta(min_length=1)] = "-"
    args: list[str] = []
    env: dict[str, str] | None = None
    url: Annotated[str, Meta(pattern="^https?://")] = "http://"
    headers: dict[str, str] | None = None
    prefix: Annotated[str, Meta(pattern="^[a-zA-Z0-9_-]{0,63}$")] = ""
    include: frozenset[str] | None = None
    exclude: frozenset[str] = frozenset()
    timeout: Annotated[int, Meta(gt=0)] | Annotated[float, Meta(gt=0)] | None = 60.0


def _check(**given: Any) -> _Settings:
    """Return checked settings; the error for a wrong one does not quote its value, which may be secret."""
    try:
        return msgspec.convert(given, _Settings)
    except msgspec.ValidationError as error:
        raise ConfigError(f"a setting of an MCPServer is wrong: {str(error).replace('$.', '')}") from None


class MCPServer:
    """An MCP server, connected from entering its `async with` block to leaving it. Its tools are in `tools`.

    Args:
        prefix: put before the name of each tool, so that two servers may have tools of the same name.
        include: the server's names of the tools to offer; by default all.
        exclude: the server's names of tools not to offer.
        timeout: how many seconds connecting, and each call, may take; `None` for no limit.

    The model sees each tool's schema unchanged. A name that some provider would refuse is changed. A tool that declares
    itself read-only or idempotent is `idempotent`. Tools can be called from any task of the event loop that entered the
    server. If a server went away, the next call starts it, or connects to it, again.

    >>> server = MCPServer.stdio("python", ["server.py"], prefix="files_", exclude=["delete"])
    >>> server.tools
    ()
    >>> server
    <MCPServer 'python server.py'>
    """

    def __init__(self, label: str, settings: _Settings, connect: "_Connect", secrets: Sequence[str] = ()) -> None:
        self._label, self._settings = label, settings
        self._make_link = partial(_Link, label, connect, secrets)
        self._tools: tuple[Tool[..., Any], ...] = ()
        self._link: _Link | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        """The event loop that entered the server, while it is entered."""
        self._context, self._lock = Context(), asyncio.Lock()

    @classmethod
    def stdio(
        cls,
        command: str,
        args: Sequence[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        stderr: TextIO | None = None,
        **choices: Unpack[_Choices],
    ) -> "MCPServer":
        """Return a server that runs as a child process and ends with the `async with` block.

        Args:
            command: the program.
            args: its arguments.
            env: variables for its environment; of the others, it only gets a few harmless ones such as `PATH`.
            cwd: the directory it is started in.
            stderr: a file for its stderr; by default only the end of it is kept, for the texts of errors.
            choices: the settings of every server.

        >>> MCPServer.stdio("npx", ["-y", "@modelcontextprotocol/server-everything", "--token=x"])
        <MCPServer 'npx server-everything'>
        """
        settings = _check(command=command, args=args, env=env, **choices)
        about = StdioServerParameters(command=command, args=settings.args, env=settings.env, cwd=cwd)
        about.encoding_error_handler = "replace"  # the SDK stops reading at bytes that are not UTF-8
        first = next((each for each in settings.args if not each.startswith("-")), "")

        def connect(keep: Callable[[], TextIO]) -> Any:
            return stdio_client(about, errlog=stderr or keep())

        return cls(f"{Path(command).name} {Path(first).name}".strip(), settings, connect)

    @classmethod
    def http(cls, url: str, *, headers: Mapping[str, str] | None = None, **choices: Unpack[_Choices]) -> "MCPServer":
        """Return a server that is reached over streamable HTTP.

        Args:
            url: its address.
            headers: sent with every request, such as `{"Authorization": "Bearer …"}`.
            choices: the settings of every server.

        >>> MCPServer.http("http://me:secret@127.0.0.1:8000/mcp?key=x", headers={"Authorization": "Bearer secret"})
        <MCPServer 'http://127.0.0.1:8000/mcp'>
        """
        settings = _check(url=url, headers=headers, **choices)
        parts, sent = urlsplit(url), settings.headers or {}
        # The values of headers, and the key alone of one such as "Bearer KEY".
        secrets = [text for value in sent.values() for text in (value.strip(), value.strip().rpartition(" ")[2])]
        label = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

        def connect(_: object) -> Any:
            return sdk.open_http(url, sent, _CONNECT, _note_status)

        return cls(label, settings, connect, [*secrets, *secrets_of_address(url)])

    @property
    def tools(self) -> tuple[Tool[..., Any], ...]:
        """The tools of the server, once it was entered.

        >>> MCPServer.http("http://127.0.0.1:8000/mcp").tools
        ()
        """
        return self._tools

    def __repr__(self) -> str:
        return f"<MCPServer {self._label!r}>"

    async def __aenter__(self) -> Self:
        if self._loop is not None:
            raise ConfigError(f"{self!r} is entered already; make another one for a second connection")
        self._loop, self._context, self._lock = asyncio.get_running_loop(), copy_context(), asyncio.Lock()
        try:
            link = await self._connect()
            self._tools = self._make_tools(link.listed)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        link, self._link, self._loop = self._link, None, None
        if link is not None:
            await run_to_the_end(link.close())

    async def _connect(self) -> "_Link":
        """Replace the connection by a new one."""
        if self._link is not None:
            await run_to_the_end(self._link.close())
        self._check_entered()
        self._link = link = self._make_link(self._context)
        await link.open(self._settings.timeout)
        return link

    def _check_entered(self) -> None:
        """Raise `ConfigError` if tools cannot be called here: a mistake of the program, which no model can correct."""
        if self._loop is None:
            raise ConfigError(f"{self!r} has been left; run the agent inside its async with block")
        if self._loop is not asyncio.get_running_loop():
            raise ConfigError(
                f"{self!r} was entered in another event loop; await agent.run(...) there instead of using run_sync"
            )

    async def _call(self, name: str, argument: ToolArgument) -> ToolResult:
        """Call a tool by its name on the server."""
        arguments = msgspec.json.decode(argument.text.strip() or "{}", type=dict[str, Any])
        self._check_entered()
        async with self._lock:
            link = self._link
            if link is None or link.is_over:
                link = await self._connect()
        return await link.call(name, arguments)

    def _make_tools(self, listed: Sequence["_Listed"]) -> tuple[Tool[..., Any], ...]:
        found, chosen = {each.name: each for each in reversed(listed)}, self._settings
        for what, names in (("include", chosen.include or ()), ("exclude", chosen.exclude)):
            for name in sorted(names):
                if name not in found:
                    raise ConfigError(f"{what}: {self!r} has no tool {name!r}; it has {', '.join(sorted(found))}")
        wanted = (found.keys() if chosen.include is None else chosen.include) - chosen.exclude
        names = safe_names([each.name for each in listed if each.name in wanted], chosen.prefix)
        return tuple([self._make_tool(found[name], names[name]) for name in names])

    def _make_tool(self, listed: "_Listed", name: str) -> Tool[..., Any]:
        async def call(argument: ToolArgument) -> ToolResult:
            return await self._call(listed.name, argument)

        hints = listed.annotations
        try:
            return tool(
                call,
                name=name,
                description=listed.description or listed.title or (hints.title if hints else None) or "",
                schema=listed.input_schema,
                timeout=self._settings.timeout,
                idempotent=bool(hints and (hints.read_only_hint or hints.idempotent_hint)),
            )
        except ConfigError as error:
            raise MCPServerError(
                f"{self!r}: the tool {listed.name!r} cannot be offered: {error}; leave it out with exclude="
            ) from error


def safe_names(names: Iterable[str], prefix: str = "") -> dict[str, str]:
    """Return a unique name for each of `names`: unchanged if providers accept it, otherwise as similar as possible.

    The result does not depend on the order, so that a name stays the same from one run to the next.

    >>> safe_names(["search", "files.read"], "web_")
    {'search': 'web_search', 'files.read': 'web_files_read'}
    >>> safe_names(["read.file", "read_file"])
    {'read.file': 'read_file_6e8969', 'read_file': 'read_file'}
    """
    near = {name: re.sub("[^a-zA-Z0-9_-]", "_", prefix + name) for name in names}
    made: dict[str, str] = {}
    for name in sorted(near, key=lambda name: (near[name] != prefix + name, name)):
        mark, found, length = blake2b(name.encode(errors="surrogatepass"), digest_size=16).hexdigest(), near[name], 6
        while found in made.values() or not 0 < len(found) <= _LONGEST_NAME:
            found, length = f"{near[name][: _LONGEST_NAME - 1 - length]}_{mark[:length]}", length + 1
        made[name] = found
    return {name: made[name] for name in near}


# --- a connection ---------------------------------------------------------------------------------

_CONNECT = 30.0
"""How many seconds making a connection may take; the caller says how long an answer may take."""
_KEPT = 2_000
"""How many bytes of a process's stderr are kept."""
_PATIENCE = 10.0
"""How many seconds a connection may take to close in good order."""
_LONGEST = 500
"""How many characters of a server's text go into an error of ours."""
_LOST = ("Connection closed", "SSE stream ")
"""The beginnings of the SDK's own errors if no answer will come; a server may use their code as well."""
_SESSION_GONE = "Session terminated"
"""The SDK's message for a 404 to an existing session."""
_STATUS: ContextVar[list[int]] = ContextVar("suture_mcp_status")
"""Collects the HTTP statuses of a request, which is sent in the context of its caller."""


def _note_status(status: int) -> None:
    with suppress(LookupError):
        _STATUS.get().append(status)


_Connect = Callable[[Callable[[], TextIO]], AbstractAsyncContextManager[tuple[Any, Any]]]
"""Opens the two streams of a server; its argument opens a file for the stderr of a process."""


class _Messages:
    """The messages of a server, as far as they can be read; `ended` is called when there will be no more."""

    def __init__(self, inner: Any, ended: Callable[[], None]) -> None:
        self._inner, self._ended = inner, ended

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._ended()
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        message = await anext(self._inner)
        return _read_again(message) if isinstance(message, ValidationError) else message


def _read_again(fault: ValidationError) -> Any:
    """Return an answer that the SDK could not read, with lone surrogates replaced, or as an error for its caller."""
    for each in fault.errors():
        with suppress(ValueError, RecursionError):
            said: Any = json.loads(each["input"]) if isinstance(each["input"], str) else each["input"]
            if not is_map(said) or "method" in said or type(said.get("id")) not in {int, str}:
                continue
            with suppress(ValidationError):
                return sdk.as_message(sendable(said))
            error = {"code": types.PARSE_ERROR, "message": str(fault)}
            return sdk.as_message({"jsonrpc": "2.0", "id": said["id"], "error": error})
    return fault


class _Link:
    """A connection, and the task that holds it."""

    def __init__(self, label: str, connect: _Connect, secrets: Sequence[str], context: Context) -> None:
        self._name, self._connect, self._secrets = f"the MCP server {label!r}", connect, secrets
        self.listed: tuple[_Listed, ...] = ()
        """The tools that the server has."""
        self._session: Any = None
        self._opened, self._ready, self._ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._attempt, self._scope = CancelScope(), CancelScope()
        self._failure: Any = None
        self._stderr, self._drain = b"", Thread()
        self._noise = ""
        """The last output of the server that is not a message."""
        self._statuses: list[int] = []
        self._task = asyncio.get_running_loop().create_task(
            self._hold(), context=context.copy(), name=f"suture-mcp:{label}"
        )

    @property
    def is_over(self) -> bool:
        """Whether tools can no longer be called."""
        return self._session is None or self._ended.is_set() or self._task.done()

    async def open(self, timeout: float | None) -> None:  # noqa: ASYNC109 - its error names it
        """Connect and ask for the tools; raise `MCPServerError` if that fails, and leave nothing behind."""
        why = "it ended before it answered"
        try:
            async with asyncio.timeout(timeout):
                await self._ready.wait()
        except TimeoutError:
            why = f"it did not answer within {timeout} s"
        finally:
            if self.is_over:
                await run_to_the_end(self.close())
        if self.is_over:
            refused = [f" (HTTP status {status})" for status in self._statuses if status >= 400]
            raise await self._error("cannot be used", why, "".join(refused[-1:])) from self._cause(self._failure)

    async def close(self) -> None:
        """End the connection, and wait until all of it is gone."""
        if self._session is None:
            # If starting a process were cancelled, the process would go on.
            with suppress(TimeoutError):
                await asyncio.wait_for(self._opened.wait(), _PATIENCE)
            self._attempt.cancel()
        self._session = None
        self._ended.set()
        while not self._task.done():
            await asyncio.wait([self._task], timeout=_PATIENCE)
            self._scope.cancel()

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Call a tool. A call that is cancelled is cancelled at the server as well."""
        statuses: list[int] = []
        mark = _STATUS.set(statuses)
        try:
            return as_tool_result(await self._session.call_tool(name, arguments))
        except Exception as error:  # noqa: BLE001 - it becomes one of ours
            raise await self._explain(error, name, statuses) from self._cause(error)
        finally:
            _STATUS.reset(mark)

    async def _hold(self) -> None:
        """Keep the connection open until it ends or `close` is called."""
        _STATUS.set(self._statuses)
        try:
            with self._scope:
                await sdk.run_session(self._streams(), self._hear, self._attempt, self._use)
        except Exception as error:  # noqa: BLE001 - raised to callers of `open` and `call`
            self._failure = error
            while inside := getattr(self._failure, "exceptions", ()):  # a group of them
                self._failure = inside[0]
        finally:
            for stage in (self._opened, self._ended, self._ready):
                stage.set()

    async def _use(self, session: sdk.Session) -> None:
        self.listed = await _list_tools(session)
        self._session = session
        self._ready.set()
        await self._ended.wait()

    @asynccontextmanager
    async def _streams(self) -> AsyncGenerator[tuple[Any, Any], None]:
        async with AsyncExitStack() as stack:
            streams = self._connect(lambda: stack.enter_context(self._keep_stderr()))
            read, write = await stack.enter_async_context(streams)
            self._opened.set()
            yield _Messages(read, self._ended.set), write

    def _keep_stderr(self) -> TextIO:
        """Return a file for a process's stderr, the end of which often says why the process ended."""
        read, write = os.pipe()

        def drain() -> None:
            with os.fdopen(read, "rb", buffering=0) as pipe:
                while piece := pipe.read(65_536):
                    self._stderr = (self._stderr + piece)[-_KEPT:]

        self._drain = Thread(target=drain, name="suture-mcp-stderr", daemon=True)
        self._drain.start()
        return os.fdopen(write, "w")

    async def _hear(self, message: Any) -> None:
        """Remember output that is not a message; ignore progress and logs."""
        if isinstance(message, Exception):
            self._noise = self._clip(message)

    def _clip(self, error: object) -> str:
        """Return a server's text, shortened and without our secrets, since it may repeat the headers of a request."""
        return shorten(mask(str(error) or type(error).__name__, self._secrets), _LONGEST)

    def _cause(self, error: BaseException | None) -> BaseException | None:
        """Return an error as the cause of ours, unless its traceback shows a secret."""
        shown = "".join(format_exception(error)) if error is not None else ""
        return error if mask(shown, self._secrets) == shown else None

    async def _error(self, what: str, why: str, more: str) -> MCPServerError:
        """Return an error that says why a connection ended, and what the server wrote at the end."""
        failure = self._failure
        if failure is not None and not _is_lost(failure):
            why = f"{type(failure).__name__}: {self._clip(failure)}" if str(failure) else type(failure).__name__
        text = f"{self._name} {what}: {why}{more}"
        if self._drain.is_alive():
            await asyncio.to_thread(self._drain.join, 0.5)
        said = self._stderr.decode(errors="replace").strip()
        if self._noise:
            text += f"; it wrote what is no message: {self._noise}"
        if said:
            text += f"; the last it said: {self._clip(said.splitlines()[-1].strip())}"
        error = MCPServerError(text)
        if "\n" in said:
            error.add_note(f"What {self._name} wrote to its stderr, the end of it:\n{said}")
        return error

    async def _explain(self, error: Exception, name: str, statuses: list[int]) -> MCPServerError:
        """Return an error that says what went wrong with a call, and whether it may have been carried out."""
        status, unknown = (statuses or [0])[-1], f"; whether {name} was carried out is not known"
        if not isinstance(error, sdk.SessionError) or error.error.code == types.PARSE_ERROR:
            what = f"answered {name} with what cannot be used: {self._clip(error)}{unknown}"
        elif status == 404 and error.error.message == _SESSION_GONE:
            self._ended.set()
            what = f"has ended the session, and {name} was not called; call it once more"
        elif not _is_lost(error):
            shown = f" (HTTP status {status})" if status >= 400 else ""
            what = f"refused {name}: {self._clip(error)}{shown}"
        else:
            await asyncio.wait([self._task], timeout=1.0)  # the task knows why, once it has ended
            if self.is_over:
                return await self._error(f"went away during {name}", "the connection was closed", unknown)
            what = f"broke off {name}: {self._clip(error)}{unknown}"
        return MCPServerError(f"{self._name} {what}")


class _Hints(Struct, rename="camel"):
    title: str | None
    read_only_hint: bool | None
    idempotent_hint: bool | None


class _Listed(Struct, rename="camel"):
    """A tool of a server."""

    name: str
    title: str | None
    description: str | None
    input_schema: dict[str, Any]
    annotations: _Hints | None


class _Page(Struct, rename="camel"):
    tools: tuple[_Listed, ...]
    next_cursor: str | None


async def _list_tools(session: sdk.Session) -> tuple[_Listed, ...]:
    """Return all tools of a server, page by page."""
    if session.server_capabilities.tools is None:
        return ()
    pages = [_Page((), None)]
    while len(pages) == 1 or pages[-1].next_cursor is not None:
        listed = await session.list_tools(cursor=pages[-1].next_cursor)
        page = msgspec.convert(listed.model_dump(by_alias=True), _Page)
        if page.next_cursor is not None and page.next_cursor in [page.next_cursor for page in pages]:
            raise ValueError("its list of tools never ends")
        pages.append(page)
    return tuple([each for page in pages for each in page.tools])


def _is_lost(error: Exception) -> bool:
    """Return whether an error means that no answer will come, not that the server refused."""
    if isinstance(error, BrokenResourceError):  # of a process that is gone
        return True
    return (
        isinstance(error, sdk.SessionError)
        and error.error.code == types.CONNECTION_CLOSED
        and error.error.message.startswith(_LOST)
    )
