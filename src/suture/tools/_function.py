"""`tool`: a tool from a function."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ParamSpec, TypedDict, TypeVar, Unpack, cast, overload

from msgspec.structs import replace

from suture.errors import ConfigError
from suture.messages import ToolInfo
from suture.tools._binding import binder
from suture.tools._docstring import read_docstring
from suture.tools._endpoint import endpoint_of
from suture.tools._given import check_schema, given_reader
from suture.tools._kinds import kind_of, way_of
from suture.tools._objects import as_tool_value, is_tool_object
from suture.tools._pydantic import model_reader, needs_pydantic
from suture.tools._reader import raw_reader
from suture.tools._schema import struct_reader
from suture.tools._signature import origin_of, read_signature, return_hint
from suture.tools._tool import Kind, Tool, ToolObject, check_name

P = ParamSpec("P")
R = TypeVar("R")


class _Choices(TypedDict, total=False):
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


@overload
def tool(function: Callable[P, R], /, **choices: Unpack[_Choices]) -> Tool[P, R]: ...
@overload
def tool(function: None = None, /, **choices: Unpack[_Choices]) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
@overload
def tool(function: ToolObject, /, **choices: Unpack[_Choices]) -> Tool[..., Any]: ...
def tool(function: Any = None, /, **choices: Unpack[_Choices]) -> Any:
    """Make a tool from a function, as a decorator or not.

    What the model fills in comes from the signature: names, types and defaults. The docstring describes the tool,
    and its `Args:` the parameters. A parameter annotated `ToolContext` or `Injected[...]` is filled in by the run
    and never shown. A function may be sync (it then runs in a thread), async, a generator or an async generator.
    It may return text or anything that JSON can carry; if it is annotated to return a `ToolResult` or parts, it
    may return those.

    Args:
        function: A function, an object that can be called, or one with `info` and an `invoke` or `stream` method.
        name: Its name for the model, instead of the function's.
        description: What the model is told it does, instead of the docstring.
        schema: A JSON Schema of its arguments, shown as it is, instead of one from the signature.
        kind: The kind of its endpoint, where the annotations do not tell.
        requires_approval: Whether somebody is asked before it runs.
        timeout: After how many seconds an attempt is given up.
        retry: How often it is tried again after an exception.
        idempotent: Whether running it twice does no more than running it once.
        return_directly: Whether its result ends the run.
        thread: Whether a sync function runs in a thread, beside the event loop.

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
    return partial(_make, choices=choices) if function is None else _make(function, choices)


def _make(given: object, choices: _Choices) -> Tool[..., Any]:
    unknown = choices.keys() - _Choices.__annotations__.keys()
    if unknown:
        raise TypeError(f"tool() got an unexpected keyword argument {min(unknown)!r}")
    if isinstance(given, Tool):
        made = cast("Tool[..., Any]", given)
        raise ConfigError(f"{made.name!r} is a tool already; msgspec.structs.replace makes a changed one")
    if is_tool_object(given):
        made = _from_object(given, choices)
    elif callable(given) and not isinstance(given, type):
        made = _from_function(given, choices)
    else:
        raise ConfigError(f"a tool is made from a function, or from an object with info and an endpoint, not {given!r}")
    return replace(
        made,
        requires_approval=choices.get("requires_approval", False),
        timeout=choices.get("timeout"),
        retry=choices.get("retry", 0),
        idempotent=choices.get("idempotent", False),
        return_directly=choices.get("return_directly", False),
    )


def _from_object(given: object, choices: _Choices) -> Tool[..., Any]:
    made = as_tool_value(given, thread=choices.get("thread", True))
    if choices.get("kind") is not None or choices.get("schema") is not None:
        raise ConfigError(f"tool {made.name!r} is an object: its methods tell its kind, its info tells its schema")
    name = choices.get("name") or made.name
    check_name(name)
    description = choices.get("description")
    return replace(
        made,
        info=replace(made.info, name=name, description=made.info.description if description is None else description),
    )


def _from_function(function: Callable[..., Any], choices: _Choices) -> Tool[..., Any]:
    name = choices.get("name") or _name(function)
    check_name(name)
    way = way_of(function)
    given = choices.get("schema")
    schema = None if given is None else check_schema(name, given)
    signature = read_signature(function, name, described=schema.get("properties", ()) if schema else ())
    said = read_docstring(_docstring(function))
    asked = choices.get("kind")
    kind = kind_of(way, None if asked else return_hint(function, name), asked, name)
    if signature.raw:
        reader = raw_reader(signature.raw, None if schema is None else given_reader(name, schema, None))
    elif schema is not None:
        reader = given_reader(name, schema, signature)
    elif needs_pydantic(signature.visible):
        reader = model_reader(name, signature.visible, said.parameters)
    else:
        reader = struct_reader(name, signature.visible, said.parameters)
    description = choices.get("description")
    threaded = choices.get("thread", True) and way in ("blocking", "stream")
    bind = binder(function, signature, reader.read, name)
    return Tool(
        ToolInfo(name, said.description if description is None else description, reader.parameters),
        kind,
        endpoint_of(kind, bind, threaded=threaded, tool=name),
        in_thread=threaded,
        validate=reader.problem,
        function=function,
    )


def _name(function: Callable[..., Any]) -> str:
    origin = origin_of(function)
    named = getattr(function, "__name__", None) or getattr(origin, "__name__", "")
    return type(function).__name__ if named == "__call__" else named


def _docstring(function: Callable[..., Any]) -> str | None:
    # Every object inherits the docstring of its class; a partial's says nothing about the function in it.
    origin = origin_of(function)
    return origin.__doc__ or (None if isinstance(function, partial) else function.__doc__)
