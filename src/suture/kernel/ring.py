"""The ring around a model or tool call: `wrap_model_call`, `wrap_tool_call`, and the reference's five hooks.

The reference's hooks (`wrap_model`, and one for each kind of tool) *pull* a stream; `proceed` *pushes* one into a sink.
Hooks next to the tool (or the model) are simply chained. A hook with a general wrapper inside it is bridged by a task
and a small queue; the bridge joins the whole for that wrapper, so memory is not bounded there.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from inspect import iscoroutinefunction
from types import FunctionType
from typing import Any, cast

from msgspec import field
from msgspec.structs import replace

from suture._aio import closing, settle
from suture.errors import ConfigError
from suture.kernel import requests
from suture.kernel.middleware import SPECIFIC_HOOKS, ChatModelAgentMiddleware, Hook, Stack
from suture.kernel.model_call import AskedModel, accept, ask, make_model_context
from suture.kernel.run_state import Rejected
from suture.kernel.state import Frame, current_frame, get_frame
from suture.kernel.tool_call import CalledTool, check_names, refuse_call
from suture.messages import TextPart, ToolArgument, ToolContext, ToolResult
from suture.tools import ToolArgumentsError
from suture.tools.results import read_parts

_ROOM = 32
"""How many pieces a bridge may hold; with fewer, each piece costs three times as much."""
_END: Any = object()
_AGAIN: Any = object()


# --- the ring -------------------------------------------------------------------------------------


def _layer(hook: Hook, proceed: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
    """Return one `wrap_model_call` or `wrap_tool_call` of a ring, bound to the rest of the ring as its `proceed`."""
    owner, around_tools = hook.owner, hook.method == "wrap_tool_call"
    wrap: Any = hook.call if iscoroutinefunction(hook.call) else partial(_call_plain, hook.call)

    async def run(request: Any) -> Any:
        frame = get_frame()
        outer = frame.owner
        if around_tools and request is not frame.request:
            check_names(frame, request)
        frame.owner = owner
        try:
            value: Any = await wrap(request, proceed)
        finally:
            frame.owner = outer
        if not around_tools:
            if not frame.run.wire.made_by_model(value):
                raise ConfigError(f"{hook} returned {type(value).__name__}, not the model's message")
        elif value.__class__ is not ToolResult and not isinstance(value, ToolResult):
            raise ConfigError(f"{hook} returned {type(value).__name__} for {request.name}, not a ToolResult")
        return value

    return run


async def _call_plain(wrap: Callable[[Any, Any], Any], request: Any, proceed: Callable[[Any], Awaitable[Any]]) -> Any:
    return await settle(wrap(request, proceed))


def _entry(layer: Any) -> Callable[[Any], Awaitable[Any]]:
    """Return the function that takes a request through a layer; a bound method is faster to call than an object."""
    return layer if isinstance(layer, FunctionType) else layer.__call__


def compile_rings(stack: Stack) -> dict[str, Callable[[Any], Awaitable[Any]]]:
    """Return the entry of each ring: "model", each kind of tool, and "" for calls without a tool."""
    rings: dict[str, Any] = {"model": AskedModel(), "": refuse_call}
    rings |= {kind: CalledTool(kind) for kind in SPECIFIC_HOOKS}
    for ring, inner in rings.items():
        for hook in reversed(stack.around_model if ring == "model" else stack.around_tools[ring]):
            if hook.method == "wrap_model":
                inner = ModelLayer(hook, inner)  # noqa: PLW2901 - it stands inside the next one
            elif hook.method in {"wrap_tool_call", "wrap_model_call"}:
                inner = _layer(hook, _entry(inner))  # noqa: PLW2901
            elif isinstance(inner, SpecificLayer):
                inner = SpecificLayer((hook, *inner.hooks), ring, inner.inner)  # noqa: PLW2901
            else:
                inner = SpecificLayer((hook,), ring, inner)  # noqa: PLW2901
        rings[ring] = _entry(inner)
    return rings


# --- tools ----------------------------------------------------------------------------------------


class SpecificLayer:
    """Adjacent hooks for one kind of tool, outermost first, in the ring of that kind."""

    __slots__ = ("enhanced", "hooks", "inner", "streams")

    def __init__(self, hooks: tuple[Hook, ...], kind: str, inner: Any) -> None:
        self.hooks, self.inner = hooks, inner
        self.streams = kind.endswith("streamable")
        self.enhanced = kind.startswith("enhanced")

    async def __call__(self, call: requests.ToolCallRequest) -> ToolResult:
        """Run the call through the endpoint that the hooks return; pieces go into the call's sink."""
        inside = _Inside(self.inner, call, enhanced=self.enhanced)
        bridged = not isinstance(self.inner, CalledTool)
        if bridged:
            endpoint: Any = inside.stream if self.streams else inside.invoke
        else:
            endpoint = _owned(inside.stream_tool if self.streams else inside.run_tool, "tool", streams=self.streams)
        for hook in reversed(self.hooks):
            endpoint = await self._wrap(hook, endpoint)
        argument = ToolArgument(call.arguments) if self.enhanced else call.arguments
        try:
            if not self.streams:
                return inside.put_back(await endpoint(argument, **call.options))
            sink = call.sink or requests.Collector()
            whole, passed = await _pump(endpoint(argument, **call.options), sink, joins=bridged, rest=inside.rest)
            changed = inside.result if inside.is_void else None
            if changed is not None and passed != inside.whole:  # a hook has changed void pieces: run the hooks again
                inside.answer, frame = changed, get_frame()
                for hook in self.hooks:  # their interrupts were answered
                    frame.counts.pop(f"{frame.place}/{hook.owner}", None)
                return (await _pump(endpoint(argument, **call.options), sink, joins=False, rest=inside.rest))[0]
        except (ToolArgumentsError, Rejected) as error:
            return requests.error_result(str(error))
        return whole if changed is None else changed

    async def _wrap(self, hook: Hook, inner: Any) -> Callable[..., Any]:
        """Return the endpoint that a hook returns for the one inside it."""
        frame = get_frame()
        before, frame.owner = frame.owner, hook.owner
        try:
            wrapped: Any = await settle(hook.call(inner, ToolContext(frame.tool, frame.call_id)))
        except Exception as error:
            raise requests.HookError(hook.owner) from error
        finally:
            frame.owner = before
        if wrapped is not None and not callable(wrapped):
            raise ConfigError(f"{hook} returned {type(wrapped).__name__}, which is not an endpoint")
        return inner if wrapped is None else _owned(wrapped, hook.owner, streams=self.streams)


async def _pump(
    stream: Any, sink: Any, *, joins: bool, rest: Sequence[ToolResult] = ()
) -> tuple[ToolResult, ToolResult | None]:
    """Put a hook's stream and the `rest` into a sink; return its whole, and (`joins`) the hook's own pieces, joined."""
    given = requests.Collector()
    await sink.open()
    async with closing(stream) as pieces:
        async for piece in pieces:
            result = requests.text_result(piece) if isinstance(piece, str) else piece
            if joins:
                await given.write(result)
            await sink.write(result)
    for piece in rest:
        await sink.write(piece)
    return await sink.close(), await given.close() if joins else None


def _owned(endpoint: Callable[..., Any], owner: str, *, streams: bool) -> Callable[..., Any]:
    """Return an endpoint that runs on behalf of its owner, and check that it returns the right type."""

    def call(argument: Any, /, **options: Any) -> Any:
        work = endpoint(argument, **options)
        if not hasattr(work, "__aiter__" if streams else "__await__"):
            found = type(work).__name__
            if hasattr(work, "close"):
                work.close()
            wanted = "an async generator: yield results" if streams else "async: return what the tool returns"
            raise ConfigError(f"the endpoint that {owner} gave must be {wanted}; it gave {found}")
        return _own_stream(work, owner) if streams else _own_work(work, owner)

    return call


async def _own_work(work: Awaitable[Any], owner: str) -> Any:
    """Await the work of an endpoint on behalf of its owner."""
    frame = get_frame()
    before, frame.owner = frame.owner, owner
    try:
        value = await work
    finally:
        frame.owner = before
    if not isinstance(value, str | ToolResult):
        raise ConfigError(f"the endpoint that {owner} gave returned {type(value).__name__}, not what the tool returns")
    return value


async def _own_stream(stream: Any, owner: str) -> AsyncIterator[Any]:
    """Yield from a stream, each step of which runs on behalf of its owner."""
    frame = get_frame()
    async with closing(stream) as pieces:
        step = aiter(pieces).__anext__
        while True:
            before, frame.owner = frame.owner, owner
            try:
                piece = await step()
            except StopAsyncIteration:
                return
            finally:
                frame.owner = before
            yield piece


class _Inside:
    """The `proceed` of a hook with a general wrapper inside it, as an endpoint of the hook's kind."""

    def __init__(self, proceed: Any, call: requests.ToolCallRequest, *, enhanced: bool) -> None:
        self.proceed, self.call, self.enhanced = proceed, call, enhanced
        self.result: ToolResult | None = None
        self.whole: ToolResult | None = None
        self.rest: list[ToolResult] = []
        """What a plain tool streamed besides text; the hook gets the text."""
        self.answer: ToolResult | None = None
        """What a wrapper inside returned instead of the pieces; the hook gets it if it runs again."""
        self.is_void = False
        """Whether pieces that the hook got are void: the call ran again, or its result is a different one."""

    def _call(self, argument: Any, options: dict[str, Any]) -> requests.ToolCallRequest:
        text = argument if isinstance(argument, str) else argument.text
        if text == self.call.arguments and not options:
            return self.call
        return replace(self.call, arguments=text, options=options)

    async def invoke(self, argument: Any, /, **options: Any) -> Any:
        """Run the inside of the ring; return its text for a plain tool."""
        self.result = result = await self.proceed(self._call(argument, options))
        return result if self.enhanced else result.text

    async def run_tool(self, argument: Any, /, **options: Any) -> Any:
        """Run the tool; return its text if it is plain, whatever it gave."""
        value = await self.proceed.endpoint(argument, **options)
        self.result = None if value.__class__ is str else read_parts(value)
        if self.result is None:
            return requests.text_result(value) if self.enhanced else value
        return self.result if self.enhanced else self.result.text

    async def stream_tool(self, argument: Any, /, **options: Any) -> AsyncIterator[Any]:
        """Yield the pieces of the tool; of a plain one their texts, and keep the rest of them."""
        self.rest.clear()
        async with closing(self.proceed.endpoint(argument, **options)) as pieces:
            async for piece in pieces:
                yield piece if piece.__class__ is str and not self.enhanced else self._piece(read_parts(piece))

    def _piece(self, result: ToolResult) -> str | ToolResult:
        """Return a piece as the hook gets it: of a plain tool its text, and what else it has goes to the rest."""
        if self.enhanced:
            return result
        rest = replace(result, parts=tuple(part for part in result.parts if not isinstance(part, TextPart)))
        if rest != ToolResult():
            self.rest.append(rest)
        return result.text

    def put_back(self, value: Any) -> ToolResult:
        """Return the output of a hook's endpoint as a result; if it is a text, the rest of the inner result is kept."""
        result = self.result
        if not isinstance(value, str):
            return value
        if result is None:
            return requests.text_result(value)
        if value == result.text:
            return result
        return replace(result, parts=(TextPart(value), *[part for part in result.parts if type(part) is not TextPart]))

    async def stream(self, argument: Any, /, **options: Any) -> AsyncIterator[Any]:
        """Yield the pieces that the inside of the ring pushes while it runs in its own task."""
        if self.answer is not None:
            self.rest.clear()
            yield self._piece(self.answer)
            return
        self.rest.clear()
        sink = _Bridge()
        async with closing(sink.pull(self.proceed(replace(self._call(argument, options), sink=sink)))) as pieces:
            async for piece in pieces:
                yield self._piece(piece)
        self.result, self.whole = sink.result, sink.whole
        self.is_void = sink.is_open and (sink.is_void or self.result is not self.whole)
        if not sink.is_open and self.result is not None:
            yield self._piece(self.result)


class _Bridge(requests.Collector, kw_only=True, eq=False):
    """A sink whose pieces are pulled from a queue."""

    queue: Any = field(default_factory=lambda: asyncio.Queue[Any](_ROOM))
    whole: ToolResult | None = None
    result: Any = None
    """What the work that filled it returned."""
    is_void: bool = False
    """Whether a later attempt made pieces void that were passed on."""
    outer: Any = None
    """The sink that the pieces end up in; it is opened again when this one is."""

    async def pull(self, work: Awaitable[Any]) -> AsyncIterator[Any]:
        """Yield the pieces that `work` writes here while it runs in its own task."""
        task = asyncio.ensure_future(self._fill(work))
        try:
            while (piece := await self.queue.get()) is not _END:
                if piece is _AGAIN:  # whoever pulls has passed on all that is void
                    await self.outer.open()
                else:
                    yield piece
            self.result = await task
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
            if not task.cancelled():
                task.exception()  # marks it as retrieved, or asyncio would log it; the reader has left

    async def _fill(self, work: Awaitable[Any]) -> Any:
        """Await the work, then put the end, even if it fails, so that the reader does not wait for ever."""
        try:
            return await work
        finally:
            if not cast("asyncio.Task[Any]", asyncio.current_task()).cancelling():  # otherwise nobody reads any more
                await self.queue.put(_END)

    async def open(self) -> None:
        """Begin, perhaps again."""
        if self.pieces:
            self.is_void = True
            if self.outer is not None:
                await self.queue.put(_AGAIN)
        await requests.Collector.open(self)

    async def write(self, piece: Any, /) -> None:
        """Pass a piece on, and keep it."""
        await requests.Collector.write(self, piece)
        await self.queue.put(piece)

    async def close(self) -> ToolResult | None:
        """Return the whole."""
        self.whole = await requests.Collector.close(self)
        return self.whole


# --- models ---------------------------------------------------------------------------------------


class ModelLayer:
    """A `wrap_model` in the ring around the model."""

    __slots__ = ("hook", "inner")

    def __init__(self, hook: Hook, inner: Any) -> None:
        self.hook, self.inner = hook, inner

    async def __call__(self, request: requests.ModelRequest[Any]) -> Any:
        """Ask the model that the hook returns."""
        model, run = await self.model(), get_frame().run
        known = len(run.replies)
        return accept(run, model, await ask(model, request), known)

    async def model(self) -> requests.Model[Any]:
        """Return the model inside, with the hook around it."""
        frame = get_frame()
        inner: Any = await self.inner.model() if hasattr(self.inner, "model") else _BridgedModel(frame, self.inner)
        frame.owner = self.hook.owner
        run = frame.run
        wrapped: Any = await settle(self.hook.call(inner, make_model_context(run, run.state.turn + 1, run.sent_infos)))
        if wrapped is None:
            return inner
        if not hasattr(wrapped, "stream"):
            raise ConfigError(f"{self.hook} returned {type(wrapped).__name__}, which is not a model: it has no stream")
        return wrapped


class _BridgedModel:
    """The `proceed` of a `wrap_model` hook with a general wrapper inside it, as a model."""

    def __init__(self, frame: Frame, proceed: requests.AskModel) -> None:
        self._proceed = proceed
        self.wire, self.profile = frame.run.asking.wire, frame.run.asking.profile
        self.name = requests.name_of(frame.run.asking)

    async def stream(self, request: requests.ModelRequest[Any], /) -> AsyncIterator[Any]:
        """Yield the deltas that the inside of the ring pushes, then its message."""
        sink = _Bridge(joins=False, outer=request.sink)
        async with closing(sink.pull(self._proceed(replace(request, sink=sink)))) as deltas:
            async for delta in deltas:
                yield delta
        yield sink.result


# --- the reference's senders ----------------------------------------------------------------------


class EventSenderModelWrapper(ChatModelAgentMiddleware[Any]):
    """Put it into the list of middlewares to send model events from there instead of from outermost.

    >>> EventSenderModelWrapper().sends_model_events
    True
    """

    sends_model_events = True

    async def wrap_model_call(self, request: requests.ModelRequest[Any], proceed: requests.AskModel) -> Any:
        """Send the model's output as it is at this place."""
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

    async def wrap_tool_call(self, call: requests.ToolCallRequest, proceed: requests.CallTool) -> ToolResult:
        """Send the call and its result as they are at this place."""
        sender = current_frame().sender
        if sender is None:
            return await proceed(call)
        sender.arguments, sender.shown = call.arguments, None
        sender.started()
        result = await proceed(replace(call, sink=_SendingSink(call.sink or requests.Collector(), sender)))
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
