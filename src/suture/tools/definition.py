"""`Tool`, which a model can call. `tool` makes one from a function, method or object; `as_tools` makes several."""

import inspect
import re
import sys
import typing
import warnings
from collections import abc
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from types import MethodType, UnionType
from typing import Annotated, Any, TypeVar, Unpack, cast, get_args, get_origin, overload

from msgspec import Meta, Struct
from msgspec.structs import replace

from suture._text import quote
from suture.errors import ConfigError
from suture.messages import Part, ToolInfo, ToolResult
from suture.tools.execution import Kind, make_endpoint

P = typing.ParamSpec("P")
Q = typing.ParamSpec("Q")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

_KINDS: tuple[Kind, ...] = get_args(Kind)
_NAME = r"[a-zA-Z0-9_-]{1,64}"
_RICH = frozenset((ToolResult, *get_args(Part)))
_STREAMS = frozenset((abc.AsyncGenerator, abc.AsyncIterable, abc.AsyncIterator, abc.Generator, abc.Iterator))
_METHODS: dict[str, Kind] = {  # the first one that an object has is used
    "enhanced_stream": "enhanced_streamable",
    "enhanced_invoke": "enhanced_invokable",
    "stream": "streamable",
    "invoke": "invokable",
}


def _accept(arguments: str) -> str:  # noqa: ARG001 - the form of `Tool.validate`
    return ""


class ToolObject(typing.Protocol):
    """An object that describes itself with `info`, and has an endpoint: `invoke`, `stream`, or one for parts."""

    @property
    def info(self) -> ToolInfo:
        """The name, description and schema that the model sees."""
        ...


class Tool(Struct, typing.Generic[P, R_co], frozen=True, eq=False, weakref=True):
    """A tool: what the model sees of it, the endpoint that runs it, and its settings.

    Made once (with `tool`), shared by many runs, never changed; `msgspec.structs.replace` makes another. Calling it
    in Python calls the function that it was made from. Depending on `kind`, `endpoint` is one of

    - `invokable`: `async (arguments: str, **options) -> str`
    - `streamable`: `(arguments: str, **options) -> AsyncIterator[str]`
    - `enhanced_invokable`: `async (argument: ToolArgument, **options) -> ToolResult`
    - `enhanced_streamable`: `(argument: ToolArgument, **options) -> AsyncIterator[ToolResult]`

    A plain endpoint may give a `ToolResult` where a text says less. The option `context`, a `RunContext`, is
    reserved. A stream raises for wrong arguments when its first piece is read; `validate` says beforehand what is
    wrong, or returns an empty text. `retry` counts the attempts after the first. A tool that is `in_thread` cannot be
    stopped. A tool from a method in a class body has `attach` and no object yet: use the attribute of an instance.

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
    attach: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise ConfigError(f"no tool is {self.kind!r}; kinds: {', '.join(_KINDS)}")
        if self.timeout is not None and not (type(self.timeout) in (int, float) and self.timeout > 0):
            raise ConfigError(f"timeout must be a number of seconds above 0, or None; got {self.timeout!r}")
        if type(self.retry) is not int or self.retry < 0:
            raise ConfigError(f"retry counts extra attempts, 0 or more; got {self.retry!r}")

    @property
    def name(self) -> str:
        """The name that the model calls it by."""
        return self.info.name

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function that it was made from."""
        if self.function is None:
            raise TypeError(f"tool {self.name!r} was not made from a function; run its endpoint")
        return self.function(*args, **kwargs)

    @overload
    def __get__(self, instance: None, owner: type) -> typing.Self: ...
    @overload
    def __get__(self: "Tool[typing.Concatenate[Any, Q], R]", instance: object, owner: type) -> "Tool[Q, R]": ...
    def __get__(self, instance: object, owner: type) -> "Tool[..., Any]":
        if instance is None or self.attach is None:
            return self
        bound = MethodType(cast("Callable[..., Any]", self.function), instance)
        return cast("Tool[..., Any]", replace(self, endpoint=self.attach(bound), function=bound, attach=None))

    def __repr__(self) -> str:
        return f"Tool({self.name!r}, kind={self.kind!r})"


AnyTool: typing.TypeAlias = ToolObject | Callable[..., Any]
"""Anything that makes a tool: a `Tool`, a function, a callable object, or one that describes itself."""


class _Choices(typing.TypedDict, total=False):
    """The keyword arguments of `tool`."""

    name: str | None
    description: str | None
    schema: Mapping[str, Any] | None
    kind: Kind | None
    requires_approval: bool
    timeout: float | None
    retry: int
    idempotent: bool
    return_directly: bool
    thread: bool
    strict: bool


@overload
def tool(function: Callable[P, R], /, **choices: Unpack[_Choices]) -> Tool[P, R]: ...
@overload
def tool(function: str | None = None, /, **choices: Unpack[_Choices]) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
@overload
def tool(function: ToolObject, /, **choices: Unpack[_Choices]) -> Tool[..., Any]: ...
def tool(function: Any = None, /, **choices: Unpack[_Choices]) -> Any:
    """Make a tool from a function; works as a decorator, too.

    What the model fills in comes from the signature: names, types and defaults. The docstring describes the tool,
    and its `Args:` the parameters. A parameter annotated `RunContext[...]` or `ToolContext` is filled in by the run
    and never shown. A function may be sync (it then runs in a thread), async, a generator or an async generator.
    It may return anything: text as it is, parts, other values as JSON or else as their `str`.

    Args:
        function: A function, a method, a callable object, or an object with `info` and one of the methods
            `invoke(arguments)`, `stream(arguments)`, `enhanced_invoke(argument)` and `enhanced_stream(argument)`.
            In a decorator, a text in its place is the name: `@tool("search")`.
        name: Its name for the model, instead of the function's.
        description: What it does, for the model, instead of the docstring.
        schema: A JSON Schema of its arguments, shown unchanged, instead of one from the signature.
        kind: The kind of its endpoint, if the annotations do not say.
        requires_approval: Whether each call needs somebody's approval before it runs.
        timeout: After how many seconds an attempt is abandoned.
        retry: How often it is tried again after an exception.
        idempotent: Whether running it twice does no more than running it once.
        return_directly: Whether its result ends the run.
        thread: Whether a sync function runs in a thread, beside the event loop.
        strict: Whether `"5"` is refused where a number belongs. By default it is read as `5`.

    >>> from suture.tools import tool
    >>> @tool(timeout=10)
    ... def search(query: str, limit: int = 3) -> list[str]:
    ...     '''Search the docs.
    ...
    ...     Args:
    ...         query: What to look for.
    ...     '''
    ...     return [query] * limit
    >>> search.info.description
    'Search the docs.'
    >>> search.info.parameters["properties"]["query"]
    {'description': 'What to look for.', 'type': 'string'}
    >>> search("pairing", limit=2)
    ['pairing', 'pairing']
    """
    if isinstance(function, str):
        return tool(**{"name": function, **choices})
    return partial(_make, **choices) if function is None else _make(function, **choices)


def _make(
    source: object,
    *,
    name: str | None = None,
    description: str | None = None,
    schema: Mapping[str, Any] | None = None,
    kind: Kind | None = None,
    thread: bool = True,
    strict: bool = False,
    **policies: Any,
) -> Tool[..., Any]:
    unknown = policies.keys() - _Choices.__annotations__.keys()
    if unknown:
        raise TypeError(f"tool() got an unexpected keyword argument {min(unknown)!r}")
    if isinstance(source, Tool):
        known = cast("Tool[..., Any]", source)
        raise ConfigError(f"{known.name!r} is a tool already; msgspec.structs.replace makes a changed one")
    if method := _method_of(source):  # it checks its arguments itself; `validate`, if it has one, does so beforehand
        info, run = cast("ToolObject", source).info, getattr(source, method)
        if kind or schema is not None or strict:
            raise ConfigError(
                f"tool {info.name!r} is an object: its methods tell its kind and check its arguments, "
                "its info tells its schema; leave out kind, schema and strict"
            )
        threaded, validate = thread and _is_blocking(run), getattr(source, "validate", _accept)
        takes_options = any(each.kind is each.VAR_KEYWORD for each in inspect.signature(run).parameters.values())

        def bind(argument: Any, options: dict[str, Any]) -> Callable[[], Any]:
            return partial(run, argument, **options) if takes_options else partial(run, argument)

        endpoint = make_endpoint(_METHODS[method], bind, threaded=threaded)
        new = Tool(info, _METHODS[method], endpoint, in_thread=threaded, validate=validate, function=run)
    elif callable(source) and not isinstance(source, type):
        new = _from_function(source, name, schema, kind, thread=thread, strict=strict)
    else:
        raise ConfigError(
            f"a tool is made from a function, or from an object with info and an endpoint, not {source!r}"
        )
    info = new.info
    info = replace(info, name=name or info.name, description=info.description if description is None else description)
    _check_name(info.name)
    if sys.flags.optimize > 1 and not info.description:
        _warn_of_docstrings()
    return replace(new, info=info, **policies)


@cache
def _warn_of_docstrings() -> None:
    """Warn, once, of what `python -OO` takes from tools."""
    lost = "python -OO removes docstrings, so models are not told what tools and their arguments are for"
    advice = "write @tool(description='…') and Annotated[str, '…'], or run the program with -O"
    warnings.warn(f"{lost}; {advice}", RuntimeWarning, stacklevel=2)


def _check_name(name: object) -> None:
    """Refuse a name that some provider would refuse."""
    if not isinstance(name, str) or not re.fullmatch(_NAME, name):
        shown = quote(name, 70) if isinstance(name, str) else type(name).__name__
        raise ConfigError(f"a tool cannot be called {shown}; a name has 1 to 64 letters, digits, _ or -")


# --- from a function ----------------------------------------------------------------------------


def _from_function(
    function: Callable[..., Any],
    name: str | None,
    schema: Mapping[str, Any] | None,
    kind: Kind | None,
    *,
    thread: bool,
    strict: bool,
) -> Tool[..., Any]:
    from suture.tools.arguments import bind_function, check_schema, make_reader  # noqa: PLC0415 - only who makes tools pays for it
    from suture.tools.signature import is_method, origin_of, read_docstring, read_signature  # noqa: PLC0415

    origin = origin_of(function)
    own_name: str = getattr(function, "__name__", None) or getattr(origin, "__name__", "")
    name = name or (type(function).__name__ if own_name == "__call__" else own_name)
    _check_name(name)
    own_schema = None if schema is None else check_schema(name, schema)
    lenient = {*(own_schema or {}).get("properties", ()), *(("return",) if kind else ())}
    signature = read_signature(function, name, lenient=lenient)
    # An object has the docstring of its class; that of `partial` says nothing about the function in it.
    text = read_docstring(origin.__doc__ or (None if issubclass(type(function), partial) else function.__doc__))
    reader = make_reader(name, signature, text.parameters, own_schema, strict=strict)
    kind = _kind_of(function, signature.returns, kind, name)
    threaded = thread and _is_blocking(function)

    def attach(function: Callable[..., Any]) -> Callable[..., Any]:
        bind = bind_function(function, signature, reader.read, name)
        return make_endpoint(kind, bind, threaded=threaded)

    return Tool(
        ToolInfo(name, text.description, reader.schema),
        kind,
        attach(function),
        in_thread=threaded,
        validate=reader.problem,
        function=function,
        attach=attach if is_method(function) else None,
    )


def _called(function: Callable[..., Any]) -> Callable[..., Any]:
    # A callable object is judged by its `__call__`; `inspect` sees through a partial by itself.
    return function if inspect.isroutine(function) or issubclass(type(function), partial) else type(function).__call__


def _is_blocking(function: Callable[..., Any]) -> bool:
    called = _called(function)
    return not inspect.iscoroutinefunction(called) and not inspect.isasyncgenfunction(called)


def _kind_of(function: Callable[..., Any], hint: Any, choice: Kind | None, tool: str) -> Kind:
    """Return which kind of tool a function makes, from its form and its return annotation."""
    called = _called(function)
    streams = inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called)
    if choice is not None:
        if streams and choice in ("invokable", "enhanced_invokable"):
            raise ConfigError(f"tool {tool!r} is a generator, so its kind is streamable or enhanced_streamable")
        return choice
    while get_origin(hint) in (Annotated, abc.Awaitable, abc.Coroutine):
        hint = get_args(hint)[0 if get_origin(hint) is Annotated else -1]
    origin = get_origin(hint)
    if streams or origin in _STREAMS or (isinstance(hint, type) and hint in _STREAMS):
        item = next(iter(get_args(hint)), Any) if origin in _STREAMS or origin is Iterable else Any
        return "enhanced_streamable" if _is_rich(item) else "streamable"
    return "enhanced_invokable" if _is_rich(hint) else "invokable"


def _is_rich(hint: Any) -> bool:
    """Return whether values of this type are parts or results, rather than text."""
    if get_origin(hint) in (typing.Union, UnionType, Annotated, list, tuple, abc.Sequence):
        return any(_is_rich(each) for each in get_args(hint))
    return isinstance(hint, type) and hint in _RICH


def _method_of(source: object) -> str | None:
    """Return which of the four endpoint methods an object with `info` has."""
    if not isinstance(getattr(source, "info", None), ToolInfo):
        return None
    return next((name for name in _METHODS if callable(getattr(source, name, None))), None)


# --- several, and one of our own ----------------------------------------------------------------


def as_tools(items: Iterable[object]) -> tuple[Tool[..., Any], ...]:
    """Turn tools, functions and objects with `info` and endpoints into tools; refuse two of one name.

    >>> from suture.tools import as_tools, exit_tool
    >>> def search(query: str) -> str: ...
    >>> as_tools([search, exit_tool()])
    (Tool('search', kind='invokable'), Tool('exit', kind='invokable'))
    >>> as_tools([search, search])
    Traceback (most recent call last):
        ...
    suture.errors.ConfigError: items 0 and 1 are both called 'search' (search, search); rename one: tool(..., name=...)
    """
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] - the caller's code
        raise ConfigError(f"expected a list of tools, got {type(items).__name__}")
    tools = tuple(_as_tool(item, place) for place, item in enumerate(items))
    seen: dict[str, int] = {}
    for place, each in enumerate(tools):
        first = seen.setdefault(each.name, place)
        if first != place:
            both = ", ".join(getattr(one.function, "__qualname__", None) or repr(one) for one in (tools[first], each))
            raise ConfigError(
                f"items {first} and {place} are both called {each.name!r} ({both}); rename one: tool(..., name=...)"
            )
    return tools


def _as_tool(item: object, place: int) -> Tool[..., Any]:
    if isinstance(item, MethodType) and type(cast("Any", item).__func__) is Tool:  # in a class, from Python 3.13 on
        item = cast("Any", item).__func__.__get__(item.__self__, type(item.__self__))
    if isinstance(item, type) or not (callable(item) or _method_of(item)):
        shown = f"the class {item.__name__}" if isinstance(item, type) else f"a {type(item).__name__}"
        raise ConfigError(
            f"item {place} is {shown}, not a tool; expected a Tool, a function, or an object with info and an endpoint"
            + ("; pass its as_tool()" if hasattr(item, "as_tool") else "")
        )
    new = cast("Tool[..., Any]", item) if isinstance(item, Tool) else _make(item)
    _check_name(new.name)
    if new.attach is not None:
        owner = cast("Any", new.function).__qualname__.rpartition(".")[0]
        raise ConfigError(f"tool {new.name!r} is a method; take an object's: {owner}(...).{new.name}")
    return new


def exit_tool(name: str = "exit") -> Tool[[str], str]:
    """Make a tool that ends the run with the final result that the model passes to it.

    >>> from suture.tools import exit_tool
    >>> done = exit_tool()
    >>> done.name, done.return_directly, list(done.info.parameters["properties"])
    ('exit', True, ['final_result'])
    >>> done("42")
    '42'
    """

    def finish(
        final_result: Annotated[str, Meta(description="The final result, complete: nothing follows it.")],
    ) -> str:
        return final_result

    return tool(
        finish,
        name=name,
        description="End the work and return the final result.",
        idempotent=True,
        return_directly=True,
        thread=False,
    )
