"""Tools of MCP servers as tools of Suture.

Needs `pip install 'mcp>=2.3'`. The SDK is imported when a server is entered.
"""

import asyncio
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextvars import Context, copy_context
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TextIO, TypedDict, Unpack, cast
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from suture.errors import ConfigError, SutureError
from suture.messages import ToolArgument, ToolResult
from suture.tools import Tool, tool

if TYPE_CHECKING:
    import mcp.types

    from suture.integrations.mcp.link import Link

__all__ = ["MCPServer", "MCPServerError"]


class MCPServerError(SutureError, ConnectionError):
    """An MCP server could not be reached, went away, or answered with what cannot be used; says which, and why.

    Raised where a server is entered. In a tool call it is told to the model, like every exception of a tool.

    >>> from suture.integrations.mcp import MCPServerError
    >>> issubclass(MCPServerError, ConnectionError)
    True
    """


# --- where a server is ----------------------------------------------------------------------------

_SHORTEST = 8
"""How many characters a secret has: what is shorter is a setting."""


class Stdio(Struct, frozen=True, kw_only=True):
    """A server that is started as a child process, and spoken to over its stdin and stdout.

    >>> Stdio(command="/usr/bin/npx", args=("-y", "server-files", "--token=x")).label
    'npx server-files'
    """

    command: str
    args: Sequence[str] = ()
    env: Mapping[str, str] | None = None
    cwd: str | Path | None = None
    stderr: TextIO | None = None

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.command), str) or not self.command:
            raise ConfigError(f"command is the program that is the server; got {self.command!r}")
        if isinstance(self.args, str) or not all(isinstance(cast("object", each), str) for each in self.args):
            raise ConfigError(f"args is a list of texts, one for each argument; got {self.args!r}")
        if self.env is not None:
            _check_texts("env", self.env)

    @property
    def label(self) -> str:
        """The program and what it is to run. No more of it: the rest may be secret, and a model may be told this."""
        first = next((each for each in self.args if not each.startswith("-")), "")
        return f"{Path(self.command).name} {Path(first).name}".strip()

    @property
    def secrets(self) -> Sequence[str]:
        """What no error may hold."""
        return ()


class Http(Struct, frozen=True, kw_only=True):
    """A server that is reached over streamable HTTP.

    >>> Http(url="https://me:secret@example.com/mcp?key=x").label
    'https://example.com/mcp'
    """

    url: str
    headers: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.url), str) or urlsplit(self.url).scheme not in {"http", "https"}:
            raise ConfigError(f"url is where the server is, as http://127.0.0.1:8000/mcp; got {self.url!r}")
        if self.headers is not None:
            _check_texts("headers", self.headers)

    @property
    def label(self) -> str:
        """The address, without what may be secret in it."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    @property
    def secrets(self) -> Sequence[str]:
        """What no error may hold, the longest first: what headers say, and the key in one that also says its kind.

        >>> Http(url="http://127.0.0.1/mcp", headers={"Authorization": "Bearer 0123456789"}).secrets
        ['Bearer 0123456789', '0123456789']
        """
        said = [value.strip() for value in (self.headers or {}).values()]
        held = {*said, *[value.rpartition(" ")[2] for value in said]}
        return sorted([value for value in held if len(value) >= _SHORTEST], key=len, reverse=True)


Target = Stdio | Http


def _check_texts(what: str, given: object) -> None:
    found = cast("Mapping[Any, Any]", given)
    if not isinstance(given, Mapping) or not all(isinstance(each, str) for pair in found.items() for each in pair):
        raise ConfigError(f"{what} maps names to texts")


# --- the server -----------------------------------------------------------------------------------


class _Choices(TypedDict, total=False):
    """What holds for a server however it is reached."""

    prefix: str
    include: Collection[str] | None
    exclude: Collection[str]
    timeout: float | None


class MCPServer:
    """An MCP server, connected from entering its `async with` block to leaving it. Its tools are in `tools`.

    Args:
        prefix: put before the name of each tool, so that two servers may have tools of one name.
        include: the names, as the server has them, of the tools to offer; all if not given.
        exclude: the names of tools not to offer.
        timeout: how many seconds it may take to connect, and how many each call; `None` for any number.

    The model sees each tool's schema as it is. A name that some provider would refuse is changed. A tool that says of
    itself that it only reads, or that calling it twice does no more than once, is `idempotent`. Tools can be called
    from any task of the event loop that entered the server. A server that went away is started, or connected to, once
    more by the next call.

    >>> server = MCPServer.stdio("python", ["server.py"], prefix="files_", exclude=["delete"])
    >>> server.tools
    ()
    >>> server
    <MCPServer 'python server.py'>
    """

    def __init__(
        self,
        target: Target,
        *,
        prefix: str = "",
        include: Collection[str] | None = None,
        exclude: Collection[str] = (),
        timeout: float | None = 60.0,
    ) -> None:
        for what, given in (("include", include), ("exclude", exclude)):
            if isinstance(given, str) or not all(isinstance(cast("object", each), str) for each in given or ()):
                raise ConfigError(f"{what} is a list of names; got {given!r}")
        if timeout is not None and (type(timeout) not in (int, float) or not timeout > 0):
            raise ConfigError(f"timeout must be a number of seconds above 0, or None; got {timeout!r}")
        self._target, self._prefix, self._timeout = target, prefix, timeout
        self._include, self._exclude = None if include is None else frozenset(include), frozenset(exclude or ())
        if safe_names([""], self._prefix + "x")[""] != self._prefix + "x":
            raise ConfigError(f"prefix is a few letters, digits, _ or -; got {self._prefix!r}")
        self._tools: tuple[Tool[..., Any], ...] = ()
        self._link: Link | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        """The event loop that entered the server, while it is entered."""
        self._context = Context()
        self._lock = asyncio.Lock()

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
        """Return a server that is started as a child process, and gone when its block is left.

        Args:
            command: the program.
            args: its arguments.
            env: variables of its environment, beside a few harmless ones such as `PATH`; others are not passed on.
            cwd: the directory it is started in.
            stderr: a file for what it writes there; not given, only the end is kept, for the texts of errors.
            choices: what all servers take.

        >>> MCPServer.stdio("npx", ["-y", "@modelcontextprotocol/server-everything"])
        <MCPServer 'npx server-everything'>
        """
        given = args if isinstance(args, str) else tuple(args)
        return cls(Stdio(command=command, args=given, env=env, cwd=cwd, stderr=stderr), **choices)

    @classmethod
    def http(cls, url: str, *, headers: Mapping[str, str] | None = None, **choices: Unpack[_Choices]) -> "MCPServer":
        """Return a server that is reached over streamable HTTP.

        Args:
            url: where it is.
            headers: sent with every request, such as `{"Authorization": "Bearer …"}`.
            choices: what all servers take.

        >>> MCPServer.http("http://127.0.0.1:8000/mcp", headers={"Authorization": "Bearer secret"})
        <MCPServer 'http://127.0.0.1:8000/mcp'>
        """
        return cls(Http(url=url, headers=headers), **choices)

    @property
    def tools(self) -> tuple[Tool[..., Any], ...]:
        """The tools of the server, once it was entered.

        >>> MCPServer.http("http://127.0.0.1:8000/mcp").tools
        ()
        """
        return self._tools

    def __repr__(self) -> str:
        return f"<MCPServer {self._target.label!r}>"

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
        self._loop = None
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    async def _connect(self) -> "Link":
        """Make a connection in place of the one that there was."""
        try:
            # The extra is paid for by those who use it.
            from suture.integrations.mcp.link import Link  # noqa: PLC0415
        except ImportError as error:
            missing = "an MCPServer needs the package mcp, which is not installed: pip install 'mcp>=2.3'"
            raise ConfigError(missing) from error
        if self._link is not None:
            await self._link.close()
        self._check_entered()
        self._link = link = Link(self._target, self._context)
        await link.open(self._timeout)
        return link

    def _check_entered(self) -> None:
        """Raise where tools cannot be called: that is the program's mistake, and the model cannot mend it."""
        if self._loop is None:
            raise ConfigError(f"{self!r} has been left; run the agent inside its async with block")
        if self._loop is not asyncio.get_running_loop():
            raise ConfigError(
                f"{self!r} was entered in another event loop; await agent.run(...) there instead of using run_sync"
            )

    async def _call(self, name: str, argument: ToolArgument) -> ToolResult:
        """Call a tool by the name that the server has for it."""
        arguments = msgspec.json.decode(argument.text.strip() or "{}", type=dict[str, Any])
        self._check_entered()
        async with self._lock:
            link = self._link
            if link is None or link.is_over:
                link = await self._connect()
        return await link.call(name, arguments)

    def _make_tools(self, listed: "Sequence[mcp.types.Tool]") -> tuple[Tool[..., Any], ...]:
        found = {each.name: each for each in reversed(listed)}
        for what, names in (("include", self._include or ()), ("exclude", self._exclude)):
            missing = sorted(name for name in names if name not in found)
            if missing:
                raise ConfigError(f"{what}: {self!r} has no tool {missing[0]!r}; it has {', '.join(sorted(found))}")
        offered = [
            name
            for name in dict.fromkeys(each.name for each in listed)
            if name not in self._exclude and (self._include is None or name in self._include)
        ]
        names = safe_names(offered, self._prefix)
        return tuple([self._make_tool(found[name], names[name]) for name in offered])

    def _make_tool(self, listed: "mcp.types.Tool", name: str) -> Tool[..., Any]:
        async def call(argument: ToolArgument) -> ToolResult:
            return await self._call(listed.name, argument)

        hints = listed.annotations
        try:
            return tool(
                call,
                name=name,
                description=listed.description or listed.title or (hints.title if hints else None) or "",
                schema=listed.input_schema,
                timeout=self._timeout,
                idempotent=bool(hints and (hints.read_only_hint or hints.idempotent_hint)),
            )
        except ConfigError as error:
            raise MCPServerError(
                f"{self!r}: the tool {listed.name!r} cannot be offered: {error}; leave it out with exclude="
            ) from error


# --- names ----------------------------------------------------------------------------------------

_LONGEST = 64
"""How many characters the name of a tool may have."""

_REFUSED = re.compile(r"[^a-zA-Z0-9_-]")
_MARK = 6
"""How many characters tell two names apart that would be alike."""


def safe_names(names: Iterable[str], prefix: str = "") -> dict[str, str]:
    """Return a name of its own for each of `names`: as it is where that will do, else as near as can be.

    What others are called decides, never the order, so that a name stays the same from one run to the next.

    >>> safe_names(["search", "files.read"], "web_")
    {'search': 'web_search', 'files.read': 'web_files_read'}
    >>> safe_names(["read_file", "read.file"])
    {'read_file': 'read_file', 'read.file': 'read_file_6e8969'}
    """
    given = list(dict.fromkeys(names))
    wanted = {name: _REFUSED.sub("_", prefix + name) for name in given}
    sound = {name for name in given if wanted[name] == prefix + name and 0 < len(wanted[name]) <= _LONGEST}
    counts: dict[str, int] = {}
    for name in given:
        counts[wanted[name]] = counts.get(wanted[name], 0) + (name not in sound)
    taken = {wanted[name] for name in sound}
    made: dict[str, str] = {}
    for name in given:
        near = wanted[name]
        if name not in sound:
            if counts[near] > 1 or near in taken or not 0 < len(near) <= _LONGEST:
                near = _marked(near, name, taken)
            taken.add(near)
        made[name] = near
    return made


def _marked(near: str, name: str, taken: set[str]) -> str:
    """Return `near` with a mark that is made from `name`; a longer mark where even that is taken."""
    digest = blake2b(name.encode(errors="surrogatepass"), digest_size=16).hexdigest()
    for length in range(_MARK, len(digest)):
        found = f"{near[: _LONGEST - length - 1]}_{digest[:length]}"
        if found not in taken:
            return found
    raise AssertionError  # pragma: no cover - as many names cannot be had
