"""One tool's endpoint, and what is built around it for one call: guard, rings of wrappers, lift.

From outside in: the ring of all wrappers, the lift, the ring for the tool's kind, the guard (approval, callbacks,
retries, timeout), the tool. The lift turns any kind into an iterator of `ToolResult`s; nothing is ever turned back,
so no part is lost on the way. The frame is told whose work begins, so that interrupts have addresses.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeGuard

from suture.kernel._awaiting import closing, settled
from suture.kernel._interrupt import Approval, ask
from suture.kernel._policies import Callbacks, Component
from suture.kernel._scope import Frame, Scope
from suture.kernel._stack import Layer
from suture.messages import FrozenMap, TextPart, ToolArgument, ToolContext, ToolResult
from suture.pairing import Cause, placeholder_text
from suture.tools import Tool, ToolArgumentsError

__all__ = [
    "STREAMING",
    "Endpoint",
    "Rejected",
    "build",
    "ends_run",
    "error_result",
    "join_results",
    "refusal",
    "surround",
    "text_result",
    "unknown_tool",
]

Endpoint = Callable[..., Any]
STREAMING = frozenset(("streamable", "enhanced_streamable"))
_ENHANCED = frozenset(("enhanced_invokable", "enhanced_streamable"))
_STOP = object()


class Rejected(Exception):
    """The call was not approved; its text tells the model."""


def text_result(text: str) -> ToolResult:
    """Return a result that is one text."""
    return ToolResult((TextPart(text),))


def error_result(text: str) -> ToolResult:
    """Return a result that says what went wrong."""
    return ToolResult((TextPart(text),), is_error=True)


async def build(scope: Scope, tool: Tool[..., Any], context: ToolContext, frame: Frame) -> Endpoint:
    """Return the endpoint of one call with everything around it; it takes a `ToolArgument` and gives results."""
    endpoint = _owned(guard(scope, tool, context, frame), frame, "tool")
    endpoint = await surround(scope.spec.stack.around_kinds[tool.kind], endpoint, context, frame)
    return await surround(scope.spec.stack.around_calls, _lift(tool.kind, endpoint), context, frame)


async def surround(layers: Sequence[Layer], endpoint: Endpoint, context: ToolContext, frame: Frame) -> Endpoint:
    """Return an endpoint inside a ring of wrappers, the first outermost."""
    for name, hook in reversed(layers):
        wrapped: Any = hook(endpoint, context)
        if hasattr(wrapped, "__await__"):
            wrapped = await wrapped
        if wrapped is not None:
            endpoint = _owned(wrapped, frame, name)
    return endpoint


def guard(scope: Scope, tool: Tool[..., Any], context: ToolContext, frame: Frame) -> Endpoint:
    """Return the tool's own endpoint with approval, callbacks, retries and timeout."""
    own = {"context": context, "dependencies": scope.dependencies}
    callbacks = scope.spec.callbacks
    told = callbacks if callbacks is not None and "tool" in callbacks.kinds else None
    if told is None and not tool.requires_approval and tool.timeout is None and not tool.retry:
        return partial(tool.endpoint, **own)
    if tool.kind in STREAMING:
        return _guard_stream(tool, own, told, frame)

    async def call(argument: Any, /, **options: Any) -> Any:
        if tool.requires_approval:
            _approve(scope, tool, argument, frame)
        if told is not None:
            await _tell(told.on_start, told, tool, context, _as_argument(argument))
        attempt = 0
        while True:
            try:
                if tool.timeout is None:
                    value = await tool.endpoint(argument, **own, **options)
                else:
                    async with asyncio.timeout(tool.timeout):
                        value = await tool.endpoint(argument, **own, **options)
                break
            except Exception as error:  # noqa: BLE001 - told of, and raised again below
                attempt += 1
                if attempt <= tool.retry and not isinstance(error, ToolArgumentsError):
                    continue
                failure = _timed_out(tool, error)
                if told is not None:
                    await _tell(told.on_error, told, tool, context, failure)
                raise failure from error.__cause__
        if told is not None:
            await _tell(told.on_end, told, tool, context, text_result(value) if isinstance(value, str) else value)
        return value

    return call


def _guard_stream(tool: Tool[..., Any], own: dict[str, Any], told: Callbacks | None, frame: Frame) -> Endpoint:
    context: ToolContext = own["context"]

    async def call(argument: Any, /, **options: Any) -> AsyncIterator[Any]:
        if tool.requires_approval:
            _approve(frame.scope, tool, argument, frame)
        if told is not None:
            await _tell(told.on_start, told, tool, context, _as_argument(argument))
        pieces: list[Any] = []
        attempt = 0
        while True:
            try:
                async with closing(_within(tool, tool.endpoint(argument, **own, **options))) as stream:
                    async for piece in stream:
                        pieces.append(text_result(piece) if isinstance(piece, str) else piece)
                        yield piece
                break
            except Exception as error:  # noqa: BLE001 - told of, and raised again below
                attempt += 1
                if attempt <= tool.retry and not pieces and not isinstance(error, ToolArgumentsError):
                    continue
                failure = _timed_out(tool, error)
                if told is not None:
                    await _tell(told.on_error, told, tool, context, failure)
                raise failure from error.__cause__
        if told is not None:
            await _tell(told.on_end, told, tool, context, join_results(pieces))

    return call


async def _within(tool: Tool[..., Any], stream: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Yield what a stream gives until the tool's time is up."""
    async with closing(stream):
        deadline = None if tool.timeout is None else asyncio.get_running_loop().time() + tool.timeout
        while True:
            async with asyncio.timeout_at(deadline):
                piece = await anext(stream, _STOP)
            if piece is _STOP:
                return
            yield piece


def join_results(pieces: Sequence[ToolResult]) -> ToolResult:
    """Return one result made of pieces: a text that goes on in the next piece is one, and any piece's word is all's."""
    if len(pieces) == 1:
        return pieces[0]
    parts: list[Any] = []
    extra: dict[str, Any] = {}
    for piece in pieces:
        extra.update(piece.extra)
        rest = piece.parts
        if parts and rest and _is_plain_text(parts[-1]) and _is_plain_text(rest[0]):
            parts[-1] = TextPart(parts[-1].text + rest[0].text)
            rest = rest[1:]
        parts.extend(rest)
    return ToolResult(
        tuple(parts),
        is_error=any(piece.is_error for piece in pieces),
        return_directly=any(piece.return_directly for piece in pieces),
        extra=FrozenMap(extra),
    )


def ends_run(scope: Scope, name: str, result: ToolResult) -> bool:
    """Tell whether the result of this tool ends the run: an error does not, unless it says so itself."""
    if result.return_directly:
        return True
    tool = scope.tools.get(name)
    return not result.is_error and (name in scope.return_directly or (tool is not None and tool.return_directly))


def _is_plain_text(part: Any) -> TypeGuard[TextPart]:
    return type(part) is TextPart and not part.extra


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


def _owned(endpoint: Endpoint, frame: Frame, owner: str) -> Endpoint:
    """Return `endpoint` so that the frame knows whose work it begins."""

    def call(argument: Any, /, **options: Any) -> Any:
        work = endpoint(argument, **options)
        frame.layers.append((owner, work))
        return work

    return call


def _approve(scope: Scope, tool: Tool[..., Any], argument: Any, frame: Frame) -> None:
    text = _as_argument(argument).text
    wrong = tool.validate(text)
    if wrong:
        raise ToolArgumentsError(wrong)
    asked = {"tool": tool.name, "call_id": frame.call_id, "arguments": text}
    approval = Approval.of(ask(frame, "approval", asked, None, "approval"))
    if approval is None or not approval.approved:
        reason = f"\nReason: {approval.reason}" if approval is not None and approval.reason else ""
        raise Rejected(placeholder_text(Cause.REJECTED, tool.name, frame.call_id, scope.language) + reason)


def _timed_out(tool: Tool[..., Any], error: Exception) -> Exception:
    if not isinstance(error, TimeoutError) or tool.timeout is None:
        return error
    rest = "; it may still be running" if tool.in_thread else ""
    return TimeoutError(f"{tool.name} did not finish within {tool.timeout} s{rest}")


def _as_argument(argument: Any) -> ToolArgument:
    return ToolArgument(argument) if isinstance(argument, str) else argument


async def _tell(function: Any, callbacks: Callbacks, tool: Tool[..., Any], context: ToolContext, value: Any) -> None:
    del callbacks
    if function is not None:
        await settled(function(Component(kind="tool", name=tool.name, call_id=context.call_id), value))
