"""One tool call, from the model's arguments to a result: the ring of wrappers, the guard, the tool."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from difflib import get_close_matches
from hashlib import blake2b
from typing import Any

from msgspec.structs import replace

from suture._aio import closing
from suture._text import shorten
from suture.errors import ConfigError
from suture.events import Event, ToolDelta, ToolFinished, ToolRetried, ToolStarted, ToolWaiting
from suture.kernel.config import Component, notify
from suture.kernel.interrupts import Approval, InterruptSignal, Rejected, Waiting, ask
from suture.kernel.legacy import HookError, SpecificLayer
from suture.kernel.middleware import SPECIFIC_HOOKS, Hook
from suture.kernel.requests import CallTool, Collector, ToolCallRequest, error_result, join_results, text_result
from suture.kernel.state import FRAME, Execution, Frame, describe_error, is_cancelled
from suture.messages import TextPart, ToolArgument, ToolResult
from suture.repair import Cause, placeholder_text
from suture.tools import Tool, ToolArgumentsError
from suture.wires import Call

STREAMING = frozenset(("streamable", "enhanced_streamable"))
_END: Any = object()


# --- the ring -------------------------------------------------------------------------------------


class Layer:
    """One `wrap_tool_call` in the ring: it knows what stands inside it."""

    __slots__ = ("inner", "owner", "wrap")

    def __init__(self, owner: str, wrap: Callable[..., Any], inner: CallTool) -> None:
        self.owner, self.wrap, self.inner = owner, wrap, inner

    async def __call__(self, call: ToolCallRequest) -> ToolResult:
        """Run the wrapper, with the rest of the ring as its `proceed`."""
        frame = FRAME.get()
        before, frame.owner = frame.owner, self.owner
        try:
            result: Any = self.wrap(call, self._proceed)
            if hasattr(result, "__await__"):
                result = await result
        finally:
            frame.owner = before
        if not isinstance(result, ToolResult):
            raise ConfigError(
                f"{self.owner} gave {type(result).__name__} for a result of {call.name}, not a ToolResult"
            )
        return result

    def _proceed(self, call: ToolCallRequest) -> Awaitable[ToolResult]:
        frame = FRAME.get()
        if call.name != frame.tool or call.call_id != frame.call_id:
            raise ConfigError(f"{self.owner} changed the name or the id of a call; they are the model's")
        return self.inner(call)


def compile_rings(rings: Mapping[str, Sequence[Hook]]) -> dict[str, CallTool]:
    """Return for each kind of tool the function that runs a call through its ring; "" is for calls without a tool."""
    compiled: dict[str, CallTool] = {}
    for kind, hooks in rings.items():
        inner: Any = Innermost(kind) if kind else _refuse
        for hook in reversed(hooks):
            if hook.method in SPECIFIC_HOOKS.values():
                inner = SpecificLayer(hook, kind, inner)
            else:
                inner = Layer(hook.owner, hook.call, inner)
        compiled[kind] = inner
    return compiled


async def _refuse(call: ToolCallRequest) -> ToolResult:
    """Say why a call is not run: there is no such tool, or the run may not call it."""
    frame = FRAME.get()
    refused = frame.run.refused.get(int(frame.spot))
    return error_result(refused if refused is not None else unknown_tool(call.name, list(frame.run.tools)))


def unknown_tool(name: str, known: Sequence[str]) -> str:
    """Say that there is no such tool, and which there are.

    >>> unknown_tool("serch", ["search"])
    "There is no tool named 'serch'. Did you mean search? The tools are: search."
    """
    near = get_close_matches(name[:64], known, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    listed = f"The tools are: {', '.join(known)}." if known else "There are no tools."
    return f"There is no tool named {shorten(name, 64)!r}.{hint} {listed}"


# --- the tool and its guard -----------------------------------------------------------------------


class Innermost:
    """The tool itself, inside the ring: callbacks, approval, retries, timeout."""

    __slots__ = ("enhanced", "streams")
    native = True

    def __init__(self, kind: str) -> None:
        self.streams = kind in STREAMING
        self.enhanced = kind.startswith("enhanced")

    async def __call__(self, call: ToolCallRequest) -> ToolResult:
        """Run the tool; the pieces of one that streams go into the sink."""
        argument = ToolArgument(call.arguments) if self.enhanced else call.arguments
        frame = FRAME.get()
        before, frame.owner = frame.owner, "tool"
        try:
            if not self.streams:
                value = await self.endpoint(argument, **call.options)
                return text_result(value) if value.__class__ is str else value
            sink = call.sink or Collector()
            await sink.open()
            async with closing(self.endpoint(argument, **call.options)) as stream:
                async for piece in stream:
                    await sink.write(text_result(piece) if piece.__class__ is str else piece)
            return await sink.close()
        except (ToolArgumentsError, Rejected) as error:
            return error_result(str(error))
        finally:
            frame.owner = before

    def endpoint(self, argument: Any, /, **options: Any) -> Any:
        """Run the tool in the form of its kind: what the reference's wrappers stand around."""
        frame = FRAME.get()
        tool = frame.run.tools[frame.tool]
        if not frame.run.spec.callbacks and not tool.requires_approval and tool.timeout is None and not tool.retry:
            return tool.endpoint(argument, context=frame.context, **options)
        guarded = _Guard(tool, frame).run(argument, options)
        return guarded if self.streams else _last(guarded)


async def _last(stream: AsyncIterator[Any]) -> Any:
    value: Any = None
    async with closing(stream) as pieces:
        async for piece in pieces:
            value = piece
    return value


async def _once(work: Awaitable[Any]) -> AsyncIterator[Any]:
    yield await work


class _Guard:
    """What stands directly around one call of a tool, written once: a tool that does not stream gives one piece."""

    def __init__(self, tool: Tool[..., Any], frame: Frame) -> None:
        self.tool, self.frame = tool, frame
        self._may_still_run = False
        """Whether an attempt was given up that nothing could stop: another one would run beside it."""

    async def run(self, argument: Any, options: Mapping[str, Any]) -> AsyncIterator[Any]:
        """Run the tool inside its callbacks."""
        callbacks = [each for each in self.frame.run.spec.callbacks if "tool" in each.kinds]
        about = Component(kind="tool", name=self.tool.name, call_id=self.frame.call_id)
        text = argument if isinstance(argument, str) else argument.text
        await notify(
            callbacks, "on_start", about, argument if not isinstance(argument, str) else ToolArgument(argument)
        )
        pieces: list[Any] = []
        try:
            if self.tool.requires_approval:
                await self._approve(text)
            async with closing(self._attempts(argument, options)) as stream:
                async for piece in stream:
                    if callbacks:  # whoever wants the whole pays for keeping it
                        pieces.append(text_result(piece) if isinstance(piece, str) else piece)
                    yield piece
        except Exception as error:
            await notify(callbacks, "on_error", about, error)
            raise
        if callbacks:
            await notify(callbacks, "on_end", about, join_results(pieces))

    async def _attempts(self, argument: Any, options: Mapping[str, Any]) -> AsyncIterator[Any]:
        """Try the tool until something comes of it, or its retries are used up."""
        frame, came, attempt = self.frame, False, 0
        while True:
            try:
                async with closing(self._in_time(argument, options)) as stream:
                    async for piece in stream:
                        came = True
                        yield piece
            except Exception as error:
                attempt += 1
                frame.run.check_stop()
                hopeless = came or self._may_still_run or isinstance(error, ToolArgumentsError)
                if attempt > self.tool.retry or hopeless:
                    raise
            else:
                return

    async def _in_time(self, argument: Any, options: Mapping[str, Any]) -> AsyncIterator[Any]:
        """Yield what the tool gives until its time is up."""
        tool = self.tool
        work = tool.endpoint(argument, context=self.frame.context, **options)
        deadline = None if tool.timeout is None else asyncio.get_running_loop().time() + tool.timeout
        async with closing(work if tool.kind in STREAMING else _once(work)) as stream:
            while True:
                clock = asyncio.timeout_at(deadline)
                try:
                    async with clock:
                        piece = await anext(stream, _END)
                except TimeoutError:
                    if not clock.expired():
                        raise
                    self._may_still_run = tool.in_thread
                    rest = "; it may still be running" if tool.in_thread else ""
                    raise TimeoutError(f"{tool.name} did not finish within {tool.timeout} s{rest}") from None
                if piece is _END:
                    return
                yield piece

    async def _approve(self, arguments: str) -> None:
        """Ask whether the call may run, with arguments that are known to be sound; then it begins."""
        tool, frame = self.tool, self.frame
        wrong = tool.validate(arguments)
        if wrong:
            raise ToolArgumentsError(wrong)
        asked = {"tool": tool.name, "call_id": frame.call_id, "arguments": arguments}
        about = blake2b(f"{tool.name}\0{arguments}".encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        approval = Approval.of(ask(frame, "approval", asked, None, "approval", about))
        if approval is None or not approval.approved:
            reason = f"\nReason: {approval.reason}" if approval is not None and approval.reason else ""
            raise Rejected(placeholder_text(Cause.REJECTED, tool.name, frame.call_id, frame.run.language) + reason)
        await begin_calls(frame.run, [int(frame.spot)])
        if frame.sender is not None:
            frame.sender.started()


# --- one call -------------------------------------------------------------------------------------


async def begin_calls(run: Execution, indexes: Sequence[int]) -> None:
    """Count calls as begun, and write that before they do anything. If that is cancelled, none of them has begun."""
    new = [index for index in indexes if index not in run.state.started]
    if not new:
        return
    run.put("started", dict.fromkeys(new, True))
    if run.journal is not None:
        try:
            await run.journal.flush("start")
        except asyncio.CancelledError:
            take_back(run, new)
            raise


def take_back(run: Execution, indexes: Sequence[int]) -> None:
    """Count calls as not begun: they will run again from the top."""
    begun = [index for index in indexes if index in run.state.started]
    if begun:
        run.drop("started", begun)


async def run_call(run: Execution, call: Call, index: int) -> tuple[Waiting, ...] | Exception | None:
    """Run one call to its end; return what it waits for, or the error that must end the run, if there is one.

    The result is in the state and in the journal before anything relies on it.
    """
    frame = Frame(run, run.state.turn, index, "tool", call.id, call.name)
    frame.values = {}
    FRAME.set(frame)
    arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
    tool = run.tools.get(call.name)
    root = _RootSink(frame, tool)
    if run.emitter is not None:
        frame.sender = _Sender(frame, arguments)
        if not run.spec.stack.sends_tool_events and not (tool is not None and tool.requires_approval):
            frame.sender.started()
    reaches = tool is not None and index not in run.refused
    request = ToolCallRequest(call.name, call.id, arguments, tool.kind if tool else "invokable", root, run.tool_options)
    failure: Exception | None = None
    try:
        result = await run.spec.rings[tool.kind if reaches and tool else ""](request)
    except InterruptSignal as signal:
        return await _wait(frame, signal.waiting)
    except BaseExceptionGroup as group:
        waiting = _waiting_in(group)
        if waiting:
            return await _wait(frame, waiting)
        result, failure = _fail(frame, group, root.pieces)
    except asyncio.CancelledError as error:
        if is_cancelled(run):
            raise
        result = join_results(
            [*root.pieces, error_result(_error_text(run, error))]
        )  # the tool's own work was cancelled
    except SystemExit as error:  # argparse and click raise it for arguments that the model chose
        result, failure = _fail(frame, RuntimeError(f"the tool ended with exit code {error.code}"), root.pieces)
    except Exception as error:  # noqa: BLE001 - it becomes a result, or ends the run
        result, failure = _fail(frame, error, root.pieces)
    except BaseException:
        run.put("causes", {index: Cause.UNKNOWN})
        raise
    if result is None:
        return failure
    await _end(frame, index, _storable(result))
    return failure


def _waiting_in(group: BaseExceptionGroup[BaseException]) -> tuple[Waiting, ...]:
    """Return the interrupts that a task group carries out; none if it carries anything else."""
    rest = group.split(InterruptSignal)[1]
    if rest is not None and rest.split(asyncio.CancelledError)[1] is not None:
        return ()
    found: list[Waiting] = []

    def visit(error: BaseException) -> None:
        if isinstance(error, BaseExceptionGroup):
            for inner in error.exceptions:  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
                visit(inner)  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(error, InterruptSignal):
            found.extend(error.waiting)

    visit(group)
    return tuple(found)


async def _wait(frame: Frame, waiting: tuple[Waiting, ...]) -> tuple[Waiting, ...]:
    """Take back that a call has begun, for good before anything else happens: it waits, and runs again from the top."""
    run, index = frame.run, int(frame.spot)
    take_back(run, [index])
    if run.journal is not None:
        await run.journal.flush("wait")
    if frame.sender is not None:
        frame.sender.waits()
    return waiting


def _fail(
    frame: Frame, error: BaseException, pieces: Sequence[ToolResult]
) -> tuple[ToolResult | None, Exception | None]:
    """Return the result that an error becomes, and the error if it must end the run; a hook's own has no result."""
    run = frame.run
    if not isinstance(error, Exception):
        raise error
    if isinstance(error, HookError) and isinstance(error.__cause__, Exception):
        return None, error.__cause__
    try:
        text = _error_text(run, error)
    except Exception as fault:  # noqa: BLE001 - `format_tool_error` itself failed
        return None, fault
    said = any(part for piece in pieces for part in piece.parts if part != TextPart(""))
    result = join_results([*pieces, error_result(f"\n{text}" if said else text)])
    raises = run.spec.raises_tool_errors and not isinstance(error, ToolArgumentsError)
    unstored = run.journal is not None and run.journal.broken is error
    return result, error if raises or unstored or isinstance(error, ConfigError) else None


def _error_text(run: Execution, error: BaseException) -> str:
    if isinstance(error, ToolArgumentsError):
        return str(error)
    if run.spec.format_tool_error is not None and isinstance(error, Exception):
        return run.spec.format_tool_error(error)
    return describe_error(error)


def _storable(result: ToolResult) -> ToolResult:
    """Return a result whose texts hold no half of a surrogate pair: nothing could store or send it."""
    if all(not isinstance(part, TextPart) or part.text.isascii() for part in result.parts):
        return result
    return replace(
        result, parts=tuple(_join_halves(part) if isinstance(part, TextPart) else part for part in result.parts)
    )


def _join_halves(part: TextPart) -> TextPart:
    """Return a text whose two halves of a character are one; a half that is alone becomes U+FFFD."""
    text = part.text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return part if text == part.text else replace(part, text=text)


async def _end(frame: Frame, index: int, result: ToolResult) -> None:
    """Write a result; what the call left in the outer run's session is safe before its end is."""
    run = frame.run
    if frame.values:
        run.put("call_values", {index: frame.values})
    run.put("ended", {index: result})
    if run.journal is not None:
        if run.outer is not None and run.root.journal is not None:
            await run.root.journal.flush()
        await run.journal.flush("end")
    if frame.sender is not None:
        if ends_run(run, frame.tool, result):
            run.held[index] = frame.sender
        else:
            frame.sender.finished(result, directly=False)


def ends_run(run: Execution, name: str, result: ToolResult) -> bool:
    """Tell whether the result of this tool ends the run: an error does not, unless it says so itself."""
    if result.return_directly:
        return True
    tool = run.tools.get(name)
    return not result.is_error and (name in run.return_directly or (tool is not None and tool.return_directly))


# --- its events -----------------------------------------------------------------------------------


class _RootSink(Collector):
    """The outermost sink: it emits pieces as they come, and joins them."""

    __slots__ = ("_frame", "_opened", "_sends", "_tool")

    def __init__(self, frame: Frame, tool: Tool[..., Any] | None) -> None:
        self.pieces = []
        self._frame, self._tool, self._opened, self._sends = frame, tool, False, False

    async def open(self) -> None:
        """Begin; a second time what was emitted is void."""
        if self._opened and self._frame.sender is not None:
            self._frame.sender.retried()
        self._opened, self.pieces = True, []
        run, tool = self._frame.run, self._tool
        streams = tool is not None and tool.kind in STREAMING and run.state.streaming
        self._sends = streams and run.emitter is not None and not run.spec.stack.sends_tool_events

    async def write(self, piece: ToolResult, /) -> None:
        """Keep a piece, and emit it."""
        if not isinstance(piece, ToolResult):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"a sink takes pieces that are ToolResults, not {type(piece).__name__}")
        self.pieces.append(piece)
        if self._sends:
            self._frame.sender.piece(piece)


class _Sender:
    """Sends the events of one tool call."""

    __slots__ = ("arguments", "frame", "has_started", "shown")

    def __init__(self, frame: Frame, arguments: str) -> None:
        self.frame, self.arguments = frame, arguments
        self.has_started = False
        self.shown: ToolResult | None = None
        """The result as it was where a middleware of the list sends it; the call's own if not given."""

    def _send(self, kind: type[Event], **fields: Any) -> None:
        frame = self.frame
        if frame.run.emitter is not None:
            frame.run.emitter.send(
                kind, turn=frame.turn, index=frame.spot, call_id=frame.call_id, name=frame.tool, **fields
            )

    def started(self) -> None:
        """Send that the call begins, once."""
        if not self.has_started:
            self.has_started = True
            self._send(ToolStarted, arguments=self.frame.run.spec.shown(self.arguments))

    def waits(self) -> None:
        """Send that the call waits for an answer."""
        self._send(ToolWaiting, arguments=self.frame.run.spec.shown(self.arguments))

    def piece(self, result: ToolResult) -> None:
        """Send a piece of a streamed result, if pieces are wanted."""
        if self.frame.run.state.streaming:
            self._send(ToolDelta, result=self.frame.run.spec.shown(result))

    def retried(self) -> None:
        """Send that the pieces so far are void."""
        self._send(ToolRetried)

    def finished(self, result: ToolResult, *, directly: bool) -> None:
        """Send the whole result; a call that a wrapper answered begins with it."""
        if self.shown is None and not self.has_started and self.frame.run.spec.stack.sends_tool_events:
            return  # it never came to the place that sends
        self.started()
        result = self.frame.run.spec.shown(self.shown or result)
        message_id = f"{self.frame.run.address}/{self.frame.place}"
        self._send(ToolFinished, result=result, text=result.text, message_id=message_id, return_directly=directly)


def send_settled(run: Execution, call: Call, index: int, result: ToolResult, *, directly: bool = False) -> None:
    """Send the end of a call that this process did not run."""
    if run.emitter is not None:
        sender = _Sender(Frame(run, run.state.turn, index, "tool", call.id, call.name), "")
        sender.shown = result
        sender.has_started = True  # in another process
        sender.finished(result, directly=directly)
