"""Which of the four kinds a function makes, from what it is and from what it says it returns."""

import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from types import UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

from suture.errors import ConfigError
from suture.messages import Part, ToolResult
from suture.tools._tool import Kind, check_kind

Way: TypeAlias = Literal["async", "async stream", "stream", "blocking"]
"""How a function is run: awaited, iterated with or without awaiting, or simply called."""

_RICH = frozenset((ToolResult, *get_args(Part)))
_STREAMS = frozenset((AsyncGenerator, AsyncIterable, AsyncIterator, Generator, Iterator))
_SEQUENCES = frozenset((list, tuple, Sequence))


def way_of(function: Callable[..., Any]) -> Way:
    """Tell how a function is run.

    >>> from suture.tools._kinds import way_of
    >>> async def fetch(url: str): ...
    >>> way_of(fetch), way_of(len)
    ('async', 'blocking')
    """
    # An object that can be called is what its `__call__` is; a partial is looked through by `inspect`.
    called = function if inspect.isroutine(function) or hasattr(function, "func") else type(function).__call__
    if inspect.isasyncgenfunction(called):
        return "async stream"
    if inspect.isgeneratorfunction(called):
        return "stream"
    return "async" if inspect.iscoroutinefunction(called) else "blocking"


def kind_of(way: Way, hint: Any, asked: Kind | None, tool: str) -> Kind:
    """Tell which kind of tool a function makes, if no other kind is asked for.

    >>> from suture.messages import ToolResult
    >>> from suture.tools._kinds import kind_of
    >>> kind_of("async", str, None, "search"), kind_of("async", ToolResult, None, "search")
    ('invokable', 'enhanced_invokable')
    >>> kind_of("async stream", AsyncIterator[str], None, "search")
    'streamable'
    """
    streams = way in ("async stream", "stream")
    if asked is not None:
        check_kind(asked)
        if streams and asked in ("invokable", "enhanced_invokable"):
            raise ConfigError(f"tool {tool!r} is a generator, so its kind is streamable or enhanced_streamable")
        return asked
    while get_origin(hint) in (Annotated, Awaitable, Coroutine):
        hint = get_args(hint)[0 if get_origin(hint) is Annotated else -1]
    origin = get_origin(hint)
    if streams or origin in _STREAMS or (isinstance(hint, type) and hint in _STREAMS):
        item = next(iter(get_args(hint)), Any) if origin in _STREAMS or origin is Iterable else Any
        return "enhanced_streamable" if _is_rich(item) else "streamable"
    return "enhanced_invokable" if _is_rich(hint) else "invokable"


def _is_rich(hint: Any) -> bool:
    """Whether values of this type are parts or results, rather than text."""
    origin = get_origin(hint)
    if origin in (Union, UnionType, Annotated) or origin in _SEQUENCES:
        return any(_is_rich(each) for each in get_args(hint))
    return isinstance(hint, type) and hint in _RICH
