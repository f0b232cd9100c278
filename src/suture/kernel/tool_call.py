"""The tool calls of a turn, in parallel or one by one, each from the model's arguments to a result."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from contextvars import copy_context
from typing import Any, cast

from suture import events
from suture._aio import LOG, closing, in_context, run_to_the_end
from suture._text import plural, shorten
from suture.errors import ComponentCancelledError, ConfigError, SutureError
from suture.kernel.config import Component, notify
from suture.kernel.requests import Collector, HookError, ToolCallRequest, error_result, join_results, text_result
from suture.kernel.run_state import Approval, InterruptSignal, Rejected, Waiting, ask, take_values
from suture.kernel.state import Execution, Frame, describe_error, get_frame, is_cancelled, set_frame
from suture.messages import TextPart, ToolArgument, ToolResult
from suture.repair import Cause, placeholder_text
from suture.tools import Tool, ToolArgumentsError
from suture.tools.results import clean_result, read_parts
from suture.wires import Call, Piece

STREAMING = frozenset(("streamable", "enhanced_streamable"))
_END: Any = object()
_Ending = tuple[Waiting, ...] | Exception | None


# --- the tool and its guard -----------------------------------------------------------------------


async def refuse_call(call: ToolCallRequest) -> ToolResult:
    """Return a result that says why a call is not run: there is no such tool, or the run may not call it."""
    frame = get_frame()
    check_names(frame, call)
    refused = frame.run.refused.get(int(frame.spot))
    return error_result(refused if refused is not None else unknown_tool(call.name, list(frame.run.tools)))


def check_names(frame: Frame, call: ToolCallRequest) -> None:
    """Raise `ConfigError` if a wrapper changed the id or name of the call, and name the wrapper."""
    if call.call_id != frame.call_id or call.name != frame.tool:
        raise ConfigError(f"{frame.owner} changed the name or the id of a call; they are the model's")


def unknown_tool(name: str, known: Sequence[str]) -> str:
    """Return the text that says that there is no such tool, and which tools there are.

    >>> unknown_tool("serch", ["search"])
    "There is no tool named 'serch'. Did you mean search? The tools are: search."
    """
    from difflib import get_close_matches  # noqa: PLC0415 - most runs never need it

    near = get_close_matches(name[:64], known, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    listed = f"The tools are: {', '.join(known)}." if known else "There are no tools."
    return f"There is no tool named {shorten(name, 64)!r}.{hint} {listed}"


class CalledTool:
    """The tool at the centre of the ring, with callbacks, approval, retries and timeout."""

    __slots__ = ("enhanced", "streams")

    def __init__(self, kind: str) -> None:
        self.streams = kind in STREAMING
        self.enhanced = kind.startswith("enhanced")

    async def __call__(self, call: ToolCallRequest) -> ToolResult:
        """Run the tool; the pieces of one that streams go into the sink."""
        frame = get_frame()
        outer = frame.owner
        if call is not frame.request:
            check_names(frame, call)
        argument = ToolArgument(call.arguments) if self.enhanced else call.arguments
        frame.owner = "tool"
        try:
            if not self.streams:
                value = await self.endpoint(argument, **call.options)
                frame.unstoppable = True
                if value.__class__ is str:
                    return ToolResult((TextPart(value),))
                return value if value.__class__ is ToolResult else read_parts(value)
            sink = call.sink or Collector()
            await sink.open()
            async with closing(self.endpoint(argument, **call.options)) as stream:
                async for piece in stream:
                    await sink.write(text_result(piece) if piece.__class__ is str else read_parts(piece))
            frame.unstoppable = True
            return await sink.close()
        except (ToolArgumentsError, Rejected) as error:
            return error_result(str(error))
        finally:
            frame.owner = outer

    def endpoint(self, argument: Any, /, **options: Any) -> Any:
        """Run the tool as an endpoint of its kind, which the reference's wrappers wrap."""
        frame = get_frame()
        tool = frame.run.tools[frame.tool]
        if not frame.run.spec.callbacks and not tool.requires_approval and tool.timeout is None and not tool.retry:
            return tool.endpoint(argument, context=frame, **options)
        guarded = _guard(tool, frame, argument, options)
        return guarded if self.streams else _last(guarded)


async def _last(stream: AsyncIterator[Any]) -> Any:
    value: Any = None
    async with closing(stream) as pieces:
        async for piece in pieces:
            value = piece
    return value


async def _once(work: Awaitable[Any]) -> AsyncIterator[Any]:
    yield await work


async def _guard(tool: Tool[..., Any], frame: Frame, argument: Any, options: Mapping[str, Any]) -> AsyncIterator[Any]:
    """Run a tool with its callbacks, once it is approved; one that does not stream yields one piece."""
    callbacks = [each for each in frame.run.spec.callbacks if "tool" in each.kinds]
    about = Component(kind="tool", name=tool.name, call_id=frame.call_id)
    whole = ToolArgument(argument) if isinstance(argument, str) else argument
    await notify(callbacks, "on_start", about, whole)
    pieces: list[Any] = []
    try:
        if tool.requires_approval:
            await _approve(tool, frame, whole.text)
        async with closing(_attempts(tool, frame, argument, options)) as stream:
            async for piece in stream:
                if callbacks:  # only callbacks need the whole
                    pieces.append(text_result(piece) if isinstance(piece, str) else read_parts(piece))
                yield piece
    except Exception as error:
        await notify(callbacks, "on_error", about, error)
        raise
    if callbacks:
        await notify(callbacks, "on_end", about, join_results(pieces))


async def _attempts(
    tool: Tool[..., Any], frame: Frame, argument: Any, options: Mapping[str, Any]
) -> AsyncIterator[Any]:
    """Try a tool until it succeeds or its retries are used up; each attempt has its own timeout."""
    clock, came = asyncio.timeout(None), False
    for retries in range(tool.retry, -1, -1):
        deadline = None if tool.timeout is None else asyncio.get_running_loop().time() + tool.timeout
        try:
            work = tool.endpoint(argument, context=frame, **options)
            async with closing(work if tool.kind in STREAMING else _once(work)) as stream:
                while True:
                    async with (clock := asyncio.timeout_at(deadline)):
                        piece = await anext(stream, _END)
                    if piece is _END:
                        return
                    came = True
                    yield piece
        except Exception as error:
            frame.run.check_stop()
            timed_out = isinstance(error, TimeoutError) and clock.expired()
            # A tool in a thread cannot be stopped, so another attempt would run in parallel.
            if (
                retries
                and not came
                and not isinstance(error, ToolArgumentsError)
                and not (timed_out and tool.in_thread)
            ):
                continue
            if not timed_out:
                raise
            rest = "; it may still be running" if tool.in_thread else ""
            raise TimeoutError(f"{tool.name} did not finish within {tool.timeout} s{rest}") from None


async def _approve(tool: Tool[..., Any], frame: Frame, arguments: str) -> None:
    """Check the arguments and ask whether the call may run; then mark it as begun."""
    from hashlib import blake2b  # noqa: PLC0415 - only who asks for approval pays for it

    wrong = tool.validate(arguments)
    if wrong:
        raise ToolArgumentsError(wrong)
    asked = {"tool": tool.name, "call_id": frame.call_id, "arguments": arguments}
    about = blake2b(f"{tool.name}\0{arguments}".encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    approval = Approval.of(ask(frame, "approval", asked, None, "approval", about))
    if approval is None or not approval.approved:
        reason = f"\nReason: {approval.reason}" if approval is not None and approval.reason else ""
        raise Rejected(placeholder_text(Cause.REJECTED, tool.name, frame.call_id, frame.run.language) + reason)
    index = int(frame.spot)
    if index not in frame.run.state.started:
        frame.run.state.started[index] = True
        await write_beginning(frame.run, [index])
    if frame.sender is not None:
        frame.sender.started()


# --- one call -------------------------------------------------------------------------------------


class ToolSender:
    """Sends the events of one tool call."""

    __slots__ = ("arguments", "frame", "has_started", "shown")

    def __init__(self, frame: Frame, arguments: str, *, settled: ToolResult | None = None) -> None:
        self.frame, self.arguments = frame, arguments
        self.has_started = settled is not None
        """Whether the start was sent, as it was if the call was `settled` by another process."""
        self.shown = settled
        """The result as it was at the middleware that sends the events; by default the call's own."""

    def _send(self, kind: type[events.Event], **fields: Any) -> None:
        frame = self.frame
        if frame.run.emitter is not None:
            frame.run.emitter.send(
                kind, turn=frame.turn, index=frame.spot, call_id=frame.call_id, name=frame.tool, **fields
            )

    def started(self) -> None:
        """Send that the call begins, once."""
        if not self.has_started:
            self.has_started = True
            self._send(events.ToolStarted, arguments=self.frame.run.spec.shown(self.arguments))

    def waits(self) -> None:
        """Send that the call waits for an answer."""
        self._send(events.ToolWaiting, arguments=self.frame.run.spec.shown(self.arguments))

    async def piece(self, result: ToolResult) -> None:
        """Send a piece of a streamed result, if pieces are wanted; a tool never waits for the reader."""
        if self.frame.run.state.streaming:
            self._send(events.ToolDelta, result=self.frame.run.spec.shown(result))

    def retried(self) -> None:
        """Announce that the pieces so far are void."""
        self._send(events.ToolRetried)

    def finished(self, result: ToolResult, *, directly: bool) -> None:
        """Send the whole result. A call that a wrapper answered starts here; one that was not approved never starts."""
        run = self.frame.run
        if self.shown is None and not self.has_started and run.spec.stack.sends_tool_events:
            return  # it never reached the middleware that sends
        tool = run.tools.get(self.frame.tool)
        if tool is None or not tool.requires_approval:
            self.started()
        result = run.spec.shown(self.shown or result)
        message_id = f"{run.address}/{self.frame.place}"
        self._send(
            events.ToolFinished, result=result, text=result.text, message_id=message_id, return_directly=directly
        )


def begin_calls(run: Execution, calls: Sequence[Call], indexes: Iterable[int]) -> list[int]:
    """Mark calls as begun and return them; refused calls never begin, and those that ask for approval begin later."""
    started = run.state.started
    begun: list[int] = []
    for index in indexes:
        tool = run.tools.get(calls[index].name)
        if index not in run.refused and index not in started and (tool is None or not tool.requires_approval):
            started[index] = True
            begun.append(index)
    return begun


async def write_beginning(run: Execution, begun: Sequence[int]) -> None:
    """Write that calls begin, before they have any effect. If that fails or is cancelled, none of them has begun."""
    if begun and run.journal is not None:
        run.journal.note_entries("started", dict.fromkeys(begun, True))
        try:
            await run.journal.flush("start")
        except (Exception, asyncio.CancelledError):
            run.drop("started", begun)
            raise


async def run_call(run: Execution, call: Call, index: int) -> tuple[Waiting, ...] | Exception | None:
    """Run one call to its end; return the interrupts that it waits for, or the error that must end the run, if any.

    The result is in the state and in the journal before anything relies on it.
    """
    state, arguments = run.state, call.arguments
    frame = Frame(run, state.turn, index, "tool", call.id, call.name)
    set_frame(frame)
    if not isinstance(arguments, str):
        import json  # noqa: PLC0415 - most wires have text; it is the standard library's form that wrappers see

        arguments = json.dumps(arguments)
    tool = run.tools.get(call.name)
    kind, emits = ("invokable", False) if tool is None else (tool.kind, tool.kind in STREAMING)
    if run.emitter is not None:
        frame.sender = ToolSender(frame, arguments)
        if run.spec.stack.sends_tool_events:
            emits = False
        elif tool is None or not tool.requires_approval:
            frame.sender.started()
    root, failure = Collector(frame.sender, emits), None
    request = frame.request = ToolCallRequest(call.name, call.id, arguments, kind, root, run.tool_options)
    try:
        result = await run.spec.rings["" if tool is None or index in run.refused else kind](request)
    except BaseException as error:  # noqa: BLE001 - it becomes a result, or ends the run
        waiting = _waiting_in(error)
        if waiting:
            return await _wait(frame, waiting)
        result, failure = _fail(frame, error, root.pieces)
        if result is None:
            return failure
    state.ended[index] = result = clean_result(result)
    if frame.own_values:
        run.put("call_values", {index: frame.own_values})
    if run.journal is not None or frame.sender is not None:
        await _tell_end(frame, index, result)
    return failure


async def _tell_end(frame: Frame, index: int, result: ToolResult) -> None:
    """Write and send a result, after writing what the call put into the outer run's session."""
    run = frame.run
    if run.journal is not None:
        run.journal.note_entries("ended", {index: result})
        if run.outer is not None and run.root.journal is not None:
            await run.root.journal.flush()
        await run.journal.flush("end")
    if frame.sender is not None:
        if ends_run(run, frame.tool, result):
            run.held[index] = frame.sender
        else:
            frame.sender.finished(result, directly=False)


def _waiting_in(error: BaseException) -> tuple[Waiting, ...]:
    """Return the interrupts in an error or exception group; none if the group has any other error."""
    if isinstance(error, InterruptSignal):
        return error.waiting
    if not isinstance(error, BaseExceptionGroup):
        return ()
    signals, rest = cast("BaseExceptionGroup[BaseException]", error).split(InterruptSignal)
    if signals is None or (rest is not None and rest.split(asyncio.CancelledError)[1] is not None):
        return ()
    return tuple([item for inner in signals.exceptions for item in _waiting_in(inner)])


async def _wait(frame: Frame, waiting: tuple[Waiting, ...]) -> tuple[Waiting, ...]:
    """Write that a call waits and has not begun, before anything else happens; it will run again from the top."""
    run, index = frame.run, int(frame.spot)
    if index in run.state.started:
        run.drop("started", [index])
    if run.journal is not None:
        await run.journal.flush("wait")
    if frame.sender is not None:
        frame.sender.waits()
    return waiting


def _fail(
    frame: Frame, error: BaseException, pieces: Sequence[ToolResult]
) -> tuple[ToolResult | None, Exception | None]:
    """Return the result for an error, and the error if it must end the run; a hook's error has no result."""
    run = frame.run
    if isinstance(error, SystemExit):  # argparse and click raise it for wrong arguments, which the model chose
        error = RuntimeError(f"the tool ended with exit code {error.code}")
    cause = error
    if isinstance(error, asyncio.CancelledError):
        if is_cancelled(run):
            if frame.unstoppable or frame.agents_inside:
                run.put("causes", {int(frame.spot): Cause.UNKNOWN})
            raise error
        error = ComponentCancelledError(f"{frame.tool} cancelled its own work, though nobody cancelled the run")
        error.__cause__ = cause
    if not isinstance(error, Exception):
        run.put("causes", {int(frame.spot): Cause.UNKNOWN})
        raise error
    if isinstance(error, HookError) and isinstance(error.__cause__, Exception):
        return None, error.__cause__
    form = None if isinstance(error, ToolArgumentsError) else run.spec.format_tool_error
    try:
        text = form(cause) if form is not None and isinstance(cause, Exception) else describe_error(cause)
        if isinstance(error, ToolArgumentsError):
            text = str(error)
    except Exception as fault:  # noqa: BLE001 - `format_tool_error` itself failed
        return None, fault
    if isinstance(error, SutureError) and not isinstance(error, ToolArgumentsError):
        LOG.warning("the tool %s failed with an error of Suture's, which only its model is told: %s", frame.tool, text)
    said = any(part for piece in pieces for part in piece.parts if part != TextPart(""))
    result = join_results([*pieces, error_result(f"\n{text}" if said else text)])
    raises = run.spec.raises_tool_errors and not isinstance(error, ToolArgumentsError)
    unstored = run.journal is not None and run.journal.broken is error
    return result, error if raises or unstored or isinstance(error, ConfigError) else None


def ends_run(run: Execution, name: str, result: ToolResult) -> bool:
    """Return whether the result of this tool ends the run; an error only does if it says so itself."""
    if result.return_directly:
        return True
    tool = run.tools.get(name)
    return not result.is_error and (name in run.return_directly or (tool is not None and tool.return_directly))


# --- the calls of a turn --------------------------------------------------------------------------


def refuse_calls(run: Execution, calls: Sequence[Call]) -> None:
    """Decide which calls of a turn must not run, and note the texts of their results."""
    budget = run.spec.budget
    if run.state.is_last:
        run.refused = dict.fromkeys(range(len(calls)), "Not run: the run may take no more turns.")
    elif (
        calls and calls[-1].arguments in ("", "{}") and run.wire.is_cut(run.history[-1])
    ):  # the reply was cut: the model may have wanted to say more
        run.refused[len(calls) - 1] = placeholder_text(Cause.MALFORMED, calls[-1].name, calls[-1].id, run.language)
    if budget is not None and budget.tool_calls is not None:
        for index in range(max(0, budget.tool_calls - run.state.tool_calls), len(calls)):
            run.refused[index] = f"Not run: the budget of {plural(budget.tool_calls, 'tool call')} is used up."


async def run_batch(run: Execution, calls: Sequence[Call]) -> None:
    """Run the calls that have not ended; raise the interrupts that they wait for, or the first error that is fatal."""
    ended, causes = run.state.ended, run.state.causes
    open_calls: Sequence[int] = range(len(calls))
    if ended or causes:
        open_calls = [index for index in open_calls if index not in ended and index not in causes]
    endings: list[_Ending] = []
    try:
        if len(open_calls) > 1 and not run.spec.sequential:
            endings = await _side_by_side(run, calls, open_calls)
        else:
            for index in open_calls:
                if run.stop_at:
                    run.check_stop()
                begun = begin_calls(run, calls, (index,))
                if run.journal is not None:
                    await write_beginning(run, begun)
                ending = await in_context(run_call(run, calls[index], index), copy_context())
                if ending is not None:  # after a call that waits or ends the run, no other begins
                    endings = [ending]
                    break
    except asyncio.CancelledError:
        give_up(run, calls, run.state.started)
        raise
    if endings:
        waiting: list[Waiting] = []
        for ending in endings:
            if isinstance(ending, Exception):
                raise ending
            waiting += ending or ()
        if waiting:
            raise InterruptSignal(tuple(waiting))


async def _side_by_side(run: Execution, calls: Sequence[Call], open_calls: Sequence[int]) -> list[_Ending]:
    await write_beginning(run, begin_calls(run, calls, open_calls))
    loop = asyncio.get_running_loop()
    tasks = [
        loop.create_task(run_call(run, calls[index], index), context=copy_context(), name=f"{run.address}:{index}")
        for index in open_calls
    ]
    try:
        await asyncio.wait(tasks)
    except asyncio.CancelledError:
        for task in tasks:
            task.cancel()
        await run_to_the_end(asyncio.wait(tasks))  # lets them clean up, however often we are cancelled meanwhile
        raise
    finally:
        for task in tasks:
            if task.done() and not task.cancelled():
                task.exception()  # marks it as retrieved, or asyncio would log it
    return [task.result() for task in tasks]


def is_over(run: Execution, index: int) -> bool:
    """Return whether a call of the turn has a result, or a reason why it has none."""
    return index in run.state.ended or index in run.state.causes


def give_up(run: Execution, calls: Sequence[Call], indexes: Iterable[int]) -> None:
    """Note why calls that started and were cancelled have no result."""
    for index in indexes:
        if not is_over(run, index):
            tool = run.tools.get(calls[index].name)
            unstoppable = tool is not None and tool.in_thread
            run.put("causes", {index: Cause.UNKNOWN if unstoppable else Cause.STOPPED})


def answer_batch(run: Execution, calls: Sequence[Call], *, ends: bool) -> bool:
    """Put the results of a finished batch into the history; return whether the run ends, `ends` or by one of them."""
    state = run.state
    messages = answer_calls(run, calls, Cause.UNKNOWN)
    directly = [index for index, result in state.ended.items() if ends_run(run, calls[index].name, result)]
    if run.emitter is not None:
        for index, cause in state.causes.items():  # these calls began in another process
            if index not in state.ended:
                text = placeholder_text(cause, calls[index].name, calls[index].id, run.language)
                _send_settled(run, calls[index], index, error_result(text), directly=False)
        for index in sorted(directly):  # after all others
            if index in run.held:
                run.held[index].finished(state.ended[index], directly=True)
            else:
                _send_settled(run, calls[index], index, state.ended[index], directly=True)
    run.history = run.history.continue_with(messages)
    if state.call_values:
        take_values(state)
    state.tool_calls += len(state.started)
    if run.refused:
        state.refused_calls += sum(calls[index].name in run.tools for index in run.refused)
    last = max(directly) if directly else None
    if last is not None:
        ends, run.output_message = True, messages[last]
        state.output = len(run.history) - len(messages) + last
    run.forget_turn()
    state.phase, state.ends = "gathered", ends
    if run.journal is not None:
        run.journal.note_answers(run.history, last)
        run.journal.note_state()
    return ends


def _send_settled(run: Execution, call: Call, index: int, result: ToolResult, *, directly: bool) -> None:
    """Send the end of a call that this process did not run."""
    frame = Frame(run, run.state.turn, index, "tool", call.id, call.name)
    ToolSender(frame, "", settled=result).finished(result, directly=directly)


def answer_calls(run: Execution, calls: Sequence[Call], default: Cause | None) -> list[Any]:
    """Return the messages that answer the calls, in call order; calls without a result get a placeholder.

    Its cause for a call that began is that the outcome is unknown. If `default` is `None`, other calls stay open.
    """
    messages: list[Any] = []
    for index, call in enumerate(calls):
        result = run.state.ended.get(index)
        if result is not None:
            message = run.wire.result(call, result)
            run.ids[id(message)] = (message, f"{run.address}/{run.state.turn}/{index}")
            messages.append(message)
            continue
        cause = run.state.causes.get(index, Cause.UNKNOWN if index in run.state.started else default)
        if cause is not None:
            messages += explain(run, call, cause)
    return messages


def explain(run: Execution, call: Call, cause: Cause) -> list[Any]:
    """Return the placeholder for a call that has no result."""
    text = placeholder_text(cause, call.name, call.id, run.language)
    return run.wire.carry([Piece(call=call, text=text, cause=cause.value)])
