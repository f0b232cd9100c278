"""One tool's endpoint, and what is built around it for one call: guard, rings of wrappers, lift.

From outside in: the ring of all wrappers, the lift, the ring for the tool's kind, the guard (approval, callbacks,
retries, timeout), the tool. The lift turns any kind into an iterator of `ToolResult`s; nothing is ever turned back,
so no part is lost on the way. The frame is told whose work begins, so that interrupts have addresses.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Any, NoReturn

from suture.errors import ConfigError
from suture.kernel._awaiting import closing
from suture.kernel._guard import STREAMING, Rejected, guard
from suture.kernel._results import error_result, text_result
from suture.kernel._scope import Frame, Scope
from suture.kernel._stack import Layer
from suture.messages import ToolArgument, ToolContext, ToolResult
from suture.tools import Tool, ToolArgumentsError

__all__ = ["Endpoint", "HookFailed", "build", "refusal", "surround", "unknown_tool"]

Endpoint = Callable[..., Any]
_ENHANCED = frozenset(("enhanced_invokable", "enhanced_streamable"))


async def build(scope: Scope, tool: Tool[..., Any], context: ToolContext, frame: Frame) -> Endpoint:
    """Return the endpoint of one call with everything around it; it takes a `ToolArgument` and gives results."""
    form = "__aiter__" if tool.kind in STREAMING else "__await__"
    endpoint = _owned(guard(tool, context, frame), frame, "tool", form)
    ring = scope.spec.stack.around_kinds[tool.kind]
    if ring:
        endpoint = await surround(ring, endpoint, context, frame, form)
    return await surround(scope.spec.stack.around_calls, _lift(tool.kind, endpoint), context, frame)


async def surround(
    layers: Sequence[Layer], endpoint: Endpoint, context: ToolContext, frame: Frame, form: str = "__aiter__"
) -> Endpoint:
    """Return an endpoint inside a ring of wrappers, the first outermost. An error of a hook itself is no tool's."""
    for name, hook in reversed(layers):
        try:
            wrapped: Any = hook(endpoint, context)
            if hasattr(wrapped, "__await__"):
                wrapped = await wrapped
        except Exception as error:
            raise HookFailed(name) from error
        if wrapped is not None:
            endpoint = _owned(wrapped, frame, name, form)
    return endpoint


class HookFailed(Exception):
    """A hook raised while it put something around a call; the cause is what it raised."""


def refusal(text: str) -> Endpoint:
    """Return an endpoint that runs nothing and says why."""

    async def call(_: ToolArgument, /, **__: Any) -> AsyncIterator[ToolResult]:
        yield error_result(text)

    return call


def unknown_tool(name: str, known: Sequence[str]) -> str:
    """Say that there is no such tool, and which there are."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a wrong name pays for it

    near = get_close_matches(name, known, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    listed = f"The tools are: {', '.join(known)}." if known else "There are no tools."
    return f"There is no tool named {name!r}.{hint} {listed}"


def _lift(kind: str, endpoint: Endpoint) -> Endpoint:
    """Return an endpoint of any kind as one that takes a `ToolArgument` and gives an iterator of results."""
    enhanced = kind in _ENHANCED
    if kind not in STREAMING:

        def single(argument: ToolArgument, /, **options: Any) -> _Single:
            return _Single(endpoint(argument if enhanced else argument.text, **options))

        return single

    async def call(argument: ToolArgument, /, **options: Any) -> AsyncIterator[ToolResult]:
        try:
            async with closing(endpoint(argument if enhanced else argument.text, **options)) as stream:
                async for piece in stream:
                    yield piece if enhanced else text_result(piece)
        except (ToolArgumentsError, Rejected) as error:
            yield error_result(str(error))

    return call


class _Single:
    """An iterator of one result: what a tool that does not stream gives."""

    __slots__ = ("_work",)

    def __init__(self, work: Awaitable[Any]) -> None:
        self._work: Awaitable[Any] | None = work

    def __aiter__(self) -> "_Single":
        return self

    async def __anext__(self) -> ToolResult:
        work, self._work = self._work, None
        if work is None:
            raise StopAsyncIteration
        try:
            value = await work
        except (ToolArgumentsError, Rejected) as error:
            return error_result(str(error))
        return text_result(value) if isinstance(value, str) else value

    async def aclose(self) -> None:
        """Let go of work that was never begun."""
        work, self._work = self._work, None
        if isinstance(work, Coroutine):
            work.close()


def _owned(endpoint: Endpoint, frame: Frame, owner: str, form: str) -> Endpoint:
    """Return `endpoint` so that the frame knows whose work it begins, and its work is of the form that it must be."""

    def call(argument: Any, /, **options: Any) -> Any:
        work = endpoint(argument, **options)
        if not hasattr(work, form):
            _refuse(work, owner, form)
        frame.layers.append((owner, work))
        return work

    return call


def _refuse(work: object, owner: str, form: str) -> NoReturn:
    found = type(work).__name__
    if isinstance(work, Coroutine):
        work.close()
    wanted = "an async generator: yield results" if form == "__aiter__" else "async: return what the tool returns"
    raise ConfigError(f"the endpoint that {owner} gave must be {wanted}; it gave {found}")
