"""`Tool`: what a model can call, and how it is run."""

import re
from collections.abc import Callable
from typing import Any, Generic, Literal, ParamSpec, Protocol, TypeAlias, TypeVar, cast, get_args

from msgspec import Struct

from suture.errors import ConfigError
from suture.messages import ToolInfo

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)

Kind: TypeAlias = Literal["invokable", "streamable", "enhanced_invokable", "enhanced_streamable"]
"""The four shapes of an endpoint: text or `ToolResult`, at once or in pieces."""

KINDS: tuple[Kind, ...] = get_args(Kind)
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def check_name(name: object) -> None:
    """Refuse a name that some provider would refuse.

    >>> from suture.tools._tool import check_name
    >>> check_name("look up")
    Traceback (most recent call last):
        ...
    suture.errors.ConfigError: a tool cannot be called 'look up'; a name has 1 to 64 letters, digits, _ or -
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        shown = repr(name) if isinstance(name, str) else type(name).__name__
        raise ConfigError(f"a tool cannot be called {shown}; a name has 1 to 64 letters, digits, _ or -")


def check_kind(kind: object) -> None:
    """Refuse what is none of the four kinds.

    >>> from suture.tools._tool import check_kind
    >>> check_kind("sync")
    Traceback (most recent call last):
        ...
    suture.errors.ConfigError: no tool is 'sync'; kinds: invokable, streamable, enhanced_invokable, enhanced_streamable
    """
    if kind not in KINDS:
        raise ConfigError(f"no tool is {kind!r}; kinds: {', '.join(KINDS)}")


def _accept(arguments: str) -> str:  # noqa: ARG001 - the form of `Tool.validate`
    return ""


class ToolObject(Protocol):
    """An object that describes itself with `info`, and has an endpoint: `invoke`, `stream`, or one for parts."""

    @property
    def info(self) -> ToolInfo:
        """What the model is told."""
        ...


class Tool(Struct, Generic[P, R_co], frozen=True, eq=False, weakref=True):
    """A tool: what the model is told, the endpoint that runs it, and how it wants to be run.

    Made once (with `tool`), shared by many runs, never changed; `msgspec.structs.replace` makes another. Called
    in Python it is the function it was made from. By `kind`, `endpoint` is one of

    - `invokable`: `async (arguments: str, **options) -> str`
    - `streamable`: `(arguments: str, **options) -> AsyncIterator[str]`
    - `enhanced_invokable`: `async (argument: ToolArgument, **options) -> ToolResult`
    - `enhanced_streamable`: `(argument: ToolArgument, **options) -> AsyncIterator[ToolResult]`

    Two options are reserved: `context`, a `ToolContext`, and `dependencies`, a tuple of objects. A stream says
    that its arguments are wrong when its first piece is asked for. `validate` says so beforehand: nothing, or
    what is wrong. `retry` counts the attempts after the first. A tool that is `in_thread` cannot be stopped.

    >>> from suture.tools import tool
    >>> @tool
    ... def double(number: int) -> int:
    ...     return 2 * number
    >>> double(4)
    8
    >>> double.validate('{"number": "four"}')
    'arguments.number: expected int, got str'
    >>> import asyncio
    >>> asyncio.run(double.endpoint('{"number": 4}'))
    '8'
    """

    info: ToolInfo
    kind: Kind
    endpoint: Callable[..., Any]
    requires_approval: bool = False
    timeout: float | None = None
    retry: int = 0
    idempotent: bool = False
    return_directly: bool = False
    in_thread: bool = False
    validate: Callable[[str], str] = _accept
    function: Callable[P, R_co] | None = None

    def __post_init__(self) -> None:
        check_kind(self.kind)
        if not callable(cast("object", self.endpoint)):
            raise ConfigError(f"a tool's endpoint must be callable, {type(self.endpoint).__name__} is not")
        for flag in ("requires_approval", "idempotent", "return_directly", "in_thread"):
            if type(getattr(self, flag)) is not bool:
                raise ConfigError(f"{flag} is True or False; got {getattr(self, flag)!r}")
        if self.timeout is not None and not _is_number(self.timeout, above=0):
            raise ConfigError(f"timeout must be a number of seconds above 0, or None; got {self.timeout!r}")
        if type(self.retry) is not int or self.retry < 0:
            raise ConfigError(f"retry counts extra attempts, 0 or more; got {self.retry!r}")

    @property
    def name(self) -> str:
        """The name by which the model calls it."""
        return self.info.name

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        if self.function is None:
            raise TypeError(f"tool {self.name!r} was not made from a function; run its endpoint")
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"Tool({self.name!r}, kind={self.kind!r})"


AnyTool: TypeAlias = ToolObject | Callable[..., Any]
"""Whatever makes a tool: a `Tool`, a function, an object that can be called or describes itself."""


def _is_number(given: object, *, above: float) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and given > above
