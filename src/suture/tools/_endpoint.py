"""The four endpoints around one function, whichever way the function is run."""

import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, TypeAlias

from suture.messages import ToolArgument, ToolResult
from suture.tools._results import as_result, as_text
from suture.tools._streams import pieces_of
from suture.tools._tool import Kind
from suture.tools._workers import in_thread

Call: TypeAlias = Callable[[], Any]
"""A function with all that it takes: only to be called."""

Bind: TypeAlias = Callable[[str, dict[str, Any]], Call]
"""Gives the call for these arguments and options, or raises `ToolArgumentsError`."""


def endpoint_of(kind: Kind, bind: Bind, *, threaded: bool, tool: str) -> Callable[..., Any]:
    """Make the endpoint of a kind.

    >>> import asyncio
    >>> from functools import partial
    >>> from suture.tools._endpoint import endpoint_of
    >>> shout = endpoint_of("invokable", lambda text, options: partial(text.upper), threaded=False, tool="shout")
    >>> asyncio.run(shout("hey"))
    'HEY'
    """

    async def invoke(arguments: str, **options: Any) -> str:
        call = bind(arguments, options)
        value: Any = await in_thread(call) if threaded else call()
        if hasattr(value, "__await__"):
            value = await value
        return value if type(value) is str else as_text(value, tool)

    async def stream(arguments: str, **options: Any) -> AsyncIterator[str]:
        async with aclosing(pieces_of(bind(arguments, options), threaded=threaded)) as pieces:
            async for piece in pieces:
                yield as_text(piece, tool)

    async def enhanced_invoke(argument: ToolArgument, **options: Any) -> ToolResult:
        return as_result(await _value_of(bind(argument.text, options), threaded=threaded), tool)

    async def enhanced_stream(argument: ToolArgument, **options: Any) -> AsyncIterator[ToolResult]:
        async with aclosing(pieces_of(bind(argument.text, options), threaded=threaded)) as pieces:
            async for piece in pieces:
                yield as_result(piece, tool)

    endpoints: dict[Kind, Callable[..., Any]] = {
        "invokable": invoke,
        "streamable": stream,
        "enhanced_invokable": enhanced_invoke,
        "enhanced_streamable": enhanced_stream,
    }
    return endpoints[kind]


async def _value_of(call: Call, *, threaded: bool) -> Any:
    value = await in_thread(call) if threaded else call()
    return await value if inspect.isawaitable(value) else value
