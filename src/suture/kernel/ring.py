"""The ring around a model or tool call: `wrap_model_call` and `wrap_tool_call`, and the reference's five hooks.

One of those (`wrap_model`, and one for each kind of tool) *pulls* a stream; `proceed` *pushes* one into a sink. Those
next to the tool (or the model) are chained as they are. One with a general wrapper inside it is bridged by a task and a
small queue; there the whole is joined for that wrapper, so memory is not bounded.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import copy_context
from types import CoroutineType
from typing import Any

from msgspec.structs import replace

from suture._aio import closing, settle
from suture.errors import ConfigError
from suture.kernel.middleware import SPECIFIC_HOOKS, ChatModelAgentMiddleware, Hook, Stack
from suture.kernel.model_call import AskedModel, accept, ask, make_model_context
from suture.kernel.requests import (
    AskModel,
    CallTool,
    Collector,
    HookError,
    Model,
    ModelRequest,
    ToolCallRequest,
    error_result,
    name_of,
    text_result,
)
from suture.kernel.run_state import Rejected
from suture.kernel.state import FRAME, Frame, current_frame
from suture.kernel.tool_call import CalledTool, refuse_call, refuse_renamed
from suture.messages import TextPart, ToolArgument, ToolContext, ToolResult
from suture.tools import ToolArgumentsError

_ROOM = 32
"""How many pieces a bridge may hold; fewer cost three times as much a piece."""
_END: Any = object()


# --- the ring -------------------------------------------------------------------------------------


class Layer:
    """One `wrap_model_call` or `wrap_tool_call` in a ring: it knows what stands inside it."""

    __slots__ = ("around_tools", "inner", "owner", "wrap")

    def __init__(self, hook: Hook, inner: Callable[[Any], Awaitable[Any]]) -> None:
        self.owner, self.wrap = hook.owner, hook.call
        self.inner: Any = inner.__call__  # a bound method is called faster
        self.around_tools = hook.method == "wrap_tool_call"

    async def __call__(self, request: Any) -> Any:
        """Run the wrapper, with the rest of the ring as its `proceed`."""
        frame = FRAME.get()
        outer = frame.owner
        if self.around_tools and (request.call_id != frame.call_id or request.name != frame.tool):
            refuse_renamed(outer)
        frame.owner = self.owner
        try:
            value: Any = self.wrap(request, self.inner)
            if value.__class__ is CoroutineType or hasattr(value, "__await__"):
                value = await value
        finally:
            frame.owner = outer
        if not self.around_tools:
            if not frame.run.wire.made_by_model(value):
                raise ConfigError(f"{self.owner} gave {type(value).__name__} for a reply, not the model's message")
        elif value.__class__ is not ToolResult and not isinstance(value, ToolResult):
            raise ConfigError(
                f"{self.owner} gave {type(value).__name__} for a result of {request.name}, not a ToolResult"
            )
        return value


def compile_rings(stack: Stack) -> dict[str, Callable[[Any], Awaitable[Any]]]:
    """Return what takes a request through each ring: "model", each kind of tool, and "" for calls without a tool."""
    rings: dict[str, Any] = {"model": AskedModel(), "": refuse_call}
    rings |= {kind: CalledTool(kind) for kind in SPECIFIC_HOOKS}
    for ring, inner in rings.items():
        for hook in reversed(stack.around_model if ring == "model" else stack.around_tools[ring]):
            if hook.method == "wrap_model":
                inner = ModelLayer(hook, inner)  # noqa: PLW2901 - it stands inside the next one
            elif hook.method in {"wrap_tool_call", "wrap_model_call"}:
                inner = Layer(hook, inner)  # noqa: PLW2901
            else:
                inner = SpecificLayer(hook, ring, inner)  # noqa: PLW2901
        rings[ring] = inner.__call__
    return rings


# --- tools ----------------------------------------------------------------------------------------


class SpecificLayer:
    """A hook for one kind of tool, in the ring of that kind."""

    __slots__ = ("enhanced", "hook", "inner", "native", "streams")

    def __init__(self, hook: Hook, kind: str, inner: Any) -> None:
        self.hook, self.inner = hook, inner
        self.streams = kind.endswith("streamable")
        self.enhanced = kind.startswith("enhanced")
        self.native: bool = getattr(inner, "native", False)
        """Whether nothing but hooks of this kind stands between it and the tool."""

    async def __call__(self, call: ToolCallRequest) -> ToolResult:
        """Run the call through the hook's endpoint; pieces go into the call's sink."""
        inside = _Inside(self.inner, call, enhanced=self.enhanced)
        endpoint = await self._wrap(inside)
        argument = ToolArgument(call.arguments) if self.enhanced else call.arguments
        try:
            if not self.streams:
                return inside.put_back(await endpoint(argument, **call.options))
            sink = call.sink or Collector()
            whole, passed = await _pump(endpoint(argument, **call.options), sink, joins=not self.native)
            changed = inside.changed_whole()
            if changed is not None and passed != inside.whole:  # the hook has changed what is void: it runs again
                inside.answer, frame = changed, FRAME.get()
                frame.counts.pop(f"{frame.place}/{self.hook.owner}", None)  # what it asked is answered
                return (await _pump(endpoint(argument, **call.options), sink, joins=False))[0]
        except (ToolArgumentsError, Rejected) as error:
            return error_result(str(error))
        return whole if changed is None else changed

    def endpoint(self, argument: Any, /, **options: Any) -> Any:
        """Run the call natively, inside another hook of this kind."""
        return self._stream(argument, options) if self.streams else self._invoke(argument, options)

    async def _invoke(self, argument: Any, options: dict[str, Any]) -> Any:
        return await (await self._wrap(None))(argument, **options)

    async def _stream(self, argument: Any, options: dict[str, Any]) -> AsyncIterator[Any]:
        endpoint = await self._wrap(None)
        async with closing(endpoint(argument, **options)) as stream:
            async for piece in stream:
                yield piece

    async def _wrap(self, inside: "_Inside | None") -> Callable[..., Any]:
        """Return the endpoint that the hook gives for what stands inside it."""
        frame = FRAME.get()
        if self.native:
            owner = "tool" if not isinstance(self.inner, SpecificLayer) else self.inner.hook.owner
            inner: Any = _Owned(self.inner.endpoint, owner, streams=self.streams)
        elif inside is not None:
            inner = inside.stream if self.streams else inside.invoke
        else:  # pragma: no cover - an inner layer that is not native is never asked for an endpoint
            raise AssertionError
        before, frame.owner = frame.owner, self.hook.owner
        try:
            wrapped: Any = await settle(self.hook.call(inner, ToolContext(frame.tool, frame.call_id)))
        except Exception as error:
            raise HookError(self.hook.owner) from error
        finally:
            frame.owner = before
        if wrapped is not None and not callable(wrapped):
            raise ConfigError(f"{self.hook.owner} gave {type(wrapped).__name__}, which is not an endpoint")
        return inner if wrapped is None else _Owned(wrapped, self.hook.owner, streams=self.streams)


async def _pump(stream: Any, sink: Any, *, joins: bool) -> tuple[ToolResult, ToolResult | None]:
    """Put a hook's stream into a sink; return the sink's whole, and (`joins`) what the hook itself gave."""
    given = Collector()
    await sink.open()
    async with closing(stream) as pieces:
        async for piece in pieces:
            result = text_result(piece) if isinstance(piece, str) else piece
            if joins:
                await given.write(result)
            await sink.write(result)
    return await sink.close(), await given.close() if joins else None


class _Owned:
    """An endpoint whose code is known to be its owner's while it runs; its work must be of the right form."""

    __slots__ = ("_endpoint", "_owner", "_streams")

    def __init__(self, endpoint: Callable[..., Any], owner: str, *, streams: bool) -> None:
        self._endpoint, self._owner, self._streams = endpoint, owner, streams

    def __call__(self, argument: Any, /, **options: Any) -> Any:
        work = self._endpoint(argument, **options)
        if not hasattr(work, "__aiter__" if self._streams else "__await__"):
            found = type(work).__name__
            if hasattr(work, "close"):
                work.close()
            wanted = "an async generator: yield results" if self._streams else "async: return what the tool returns"
            raise ConfigError(f"the endpoint that {self._owner} gave must be {wanted}; it gave {found}")
        return _OwnedStream(work, self._owner) if self._streams else self._await(work)

    async def _await(self, work: Awaitable[Any]) -> Any:
        frame = FRAME.get()
        before, frame.owner = frame.owner, self._owner
        try:
            value = await work
        finally:
            frame.owner = before
        if not isinstance(value, str | ToolResult):
            raise ConfigError(
                f"the endpoint that {self._owner} gave returned {type(value).__name__}, not what the tool returns"
            )
        return value


class _OwnedStream:
    """A stream whose code is its owner's each time it runs."""

    __slots__ = ("_frame", "_next", "_owner", "_stream")

    def __init__(self, stream: Any, owner: str) -> None:
        self._stream, self._owner, self._frame = stream, owner, FRAME.get()
        self._next = stream.__aiter__().__anext__

    def __aiter__(self) -> "_OwnedStream":
        return self

    async def __anext__(self) -> Any:
        frame = self._frame
        before, frame.owner = frame.owner, self._owner
        try:
            return await self._next()
        finally:
            frame.owner = before

    async def aclose(self) -> None:
        end = getattr(self._stream, "aclose", None)
        if end is not None:
            await end()


class _Inside:
    """What stands inside a hook where that is a general wrapper: its `proceed`, as an endpoint of the hook's kind."""

    def __init__(self, proceed: CallTool, call: ToolCallRequest, *, enhanced: bool) -> None:
        self.proceed, self.call, self.enhanced = proceed, call, enhanced
        self.result: ToolResult | None = None
        self.whole: ToolResult | None = None
        self.answer: ToolResult | None = None
        """What a wrapper inside gave in place of the pieces; the hook is given that if it runs again."""
        self.is_void = False
        """Whether pieces that the hook was given do not hold: the call ran again, or its result is another one."""

    def _call(self, argument: Any, options: dict[str, Any]) -> ToolCallRequest:
        text = argument if isinstance(argument, str) else argument.text
        if text == self.call.arguments and not options:
            return self.call
        return replace(self.call, arguments=text, options=options)

    async def invoke(self, argument: Any, /, **options: Any) -> Any:
        """Run what stands inside; a plain tool's endpoint gives its text."""
        self.result = await self.proceed(self._call(argument, options))
        return self.result if self.enhanced else self.result.text

    def put_back(self, value: Any) -> ToolResult:
        """Return what a hook's endpoint gave as a result; beside a text, all that the inner result says stays."""
        result = self.result
        if not isinstance(value, str):
            return value
        if result is None:
            return text_result(value)
        return result if value == result.text else replace(result, parts=(TextPart(value),))

    async def stream(self, argument: Any, /, **options: Any) -> AsyncIterator[Any]:
        """Yield the pieces that what stands inside pushes, while it runs in a task of its own."""
        if self.answer is not None:
            yield self.answer if self.enhanced else self.answer.text
            return
        queue: asyncio.Queue[Any] = asyncio.Queue(_ROOM)
        sink = _Bridge(queue=queue)
        work = self.proceed(replace(self._call(argument, options), sink=sink))
        task = asyncio.ensure_future(_in_task(work, queue))
        try:
            while (piece := await queue.get()) is not _END:
                yield piece if self.enhanced else piece.text
            self.result, self.whole = await task, sink.whole
            self.is_void = sink.is_open and (sink.is_void or self.result is not self.whole)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
        if not sink.is_open and self.result is not None:
            yield self.result if self.enhanced else self.result.text

    def changed_whole(self) -> ToolResult | None:
        """Return the result that holds in place of the pieces that the hook was given, if these do not."""
        return self.result if self.is_void else None


async def _in_task(work: Awaitable[Any], queue: "asyncio.Queue[Any]") -> Any:
    """Await what fills a queue, then put its end there, also if it fails: whoever reads must not wait for ever."""
    try:
        return await work
    finally:
        await queue.put(_END)


class _Bridge(Collector, kw_only=True, eq=False):
    """A sink whose pieces are pulled from a queue."""

    queue: Any
    whole: ToolResult | None = None
    is_void: bool = False
    """Whether pieces were passed on that a later attempt has made void."""

    async def open(self) -> None:
        """Begin, perhaps once more."""
        self.is_void = self.is_void or bool(self.pieces)
        await Collector.open(self)

    async def write(self, piece: Any, /) -> None:
        """Pass a piece on, and keep it."""
        await Collector.write(self, piece)
        await self.queue.put(piece)

    async def close(self) -> ToolResult | None:
        """Return the whole."""
        self.whole = await Collector.close(self)
        return self.whole


# --- models ---------------------------------------------------------------------------------------


class ModelLayer:
    """A `wrap_model` in the ring around the model."""

    __slots__ = ("hook", "inner")

    def __init__(self, hook: Hook, inner: Any) -> None:
        self.hook, self.inner = hook, inner

    async def __call__(self, request: ModelRequest[Any]) -> Any:
        """Ask the model that the hook gives."""
        model, run = await self.model(), FRAME.get().run
        known = len(run.replies)
        return accept(run, model, await ask(model, request), known)

    async def model(self) -> Model[Any]:
        """Return the model inside, with the hook around it."""
        frame = FRAME.get()
        inner: Any = await self.inner.model() if hasattr(self.inner, "model") else _BridgedModel(frame, self.inner)
        frame.owner = self.hook.owner
        run = frame.run
        wrapped: Any = await settle(self.hook.call(inner, make_model_context(run, run.state.turn + 1, run.sent_infos)))
        if wrapped is None:
            return inner
        if not hasattr(wrapped, "stream"):
            raise ConfigError(
                f"{self.hook.owner} gave {type(wrapped).__name__}, which is not a model: it has no stream"
            )
        return wrapped


class _BridgedModel:
    """What stands inside a `wrap_model` where that is a general wrapper, as a model."""

    def __init__(self, frame: Frame, proceed: AskModel) -> None:
        self._proceed = proceed
        self.wire, self.profile = frame.run.asking.wire, frame.run.asking.profile
        self.name = name_of(frame.run.asking)

    async def stream(self, request: ModelRequest[Any], /) -> AsyncIterator[Any]:
        """Yield the deltas that what stands inside pushes, then its message."""
        queue: asyncio.Queue[Any] = asyncio.Queue(_ROOM)
        work = self._proceed(replace(request, sink=_Bridge(queue=queue, joins=False)))
        task = asyncio.get_running_loop().create_task(_in_task(work, queue), context=copy_context())
        try:
            while (delta := await queue.get()) is not _END:
                yield delta
            yield await task
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])


# --- the reference's senders ----------------------------------------------------------------------


class EventSenderModelWrapper(ChatModelAgentMiddleware[Any]):
    """Put it into the list of middlewares to send model events from there instead of from outermost.

    >>> EventSenderModelWrapper().sends_model_events
    True
    """

    sends_model_events = True

    async def wrap_model_call(self, request: ModelRequest[Any], proceed: AskModel, /) -> Any:
        """Send what comes out of the model at this place."""
        sender = current_frame().sender
        if sender is None:
            return await proceed(request)
        message = await proceed(replace(request, sink=_SendingSink(request.sink, sender)))
        sender.finished(message, None)
        return message


class EventSenderToolWrapper(ChatModelAgentMiddleware[Any]):
    """Put it into the list of middlewares to send tool events from there instead of from outermost.

    >>> EventSenderToolWrapper().sends_tool_events
    True
    """

    sends_tool_events = True

    async def wrap_tool_call(self, call: ToolCallRequest, proceed: CallTool, /) -> ToolResult:
        """Send what goes in and comes out at this place."""
        sender = current_frame().sender
        if sender is None:
            return await proceed(call)
        sender.arguments, sender.shown = call.arguments, None
        sender.started()
        result = await proceed(replace(call, sink=_SendingSink(call.sink or Collector(), sender)))
        sender.shown = result
        return result


class _SendingSink:
    """Sends the pieces that pass through it."""

    def __init__(self, outer: Any, sender: Any) -> None:
        self._outer, self._sender = outer, sender

    async def open(self) -> None:
        """Begin."""
        await self._outer.open()

    async def write(self, piece: Any, /) -> None:
        """Send a piece, and pass it on."""
        await self._sender.piece(piece)
        await self._outer.write(piece)

    async def close(self) -> Any:
        """Return the whole."""
        return await self._outer.close()
