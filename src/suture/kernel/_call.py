"""One tool call, from the model's arguments to a result: run it, journal it, tell of it."""

import asyncio
import json
from typing import Any

from msgspec.structs import replace

from suture.errors import ConfigError
from suture.kernel._awaiting import close
from suture.kernel._endpoints import HookFailed, build, refusal, surround, unknown_tool
from suture.kernel._guard import Rejected, needs_no_guard
from suture.kernel._interrupt import InterruptSignal, Waiting
from suture.kernel._journal import Journal
from suture.kernel._records import Waited
from suture.kernel._results import ends_run, error_result, join_results, text_result
from suture.kernel._scope import FRAME, Frame, Scope
from suture.kernel._senders import ToolSender
from suture.messages import TextPart, ToolArgument, ToolContext, ToolResult
from suture.tools import Tool, ToolArgumentsError
from suture.wires import Call

__all__ = ["run_call"]


async def run_call(scope: Scope, call: Call, index: int) -> tuple[Waiting, ...] | Exception | None:
    """Run one call to its end; return what it waits for, or the error that must end the run, if there is one.

    The result is in the batch and in the journal before anything relies on it.
    """
    frame = Frame(scope, scope.turn, index, "tool", call.id, call.name)
    FRAME.set(frame)
    tool = scope.tools.get(call.name)
    argument = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
    if scope.emitter is not None:
        frame.sender = ToolSender(scope, frame, argument)
        if not scope.spec.stack.sends_tool_events:
            frame.sender.started()
    failure: Exception | None = None
    pieces: list[ToolResult] = []
    try:
        result = await _execute(scope, tool, frame, argument, pieces)
    except InterruptSignal as signal:
        _wait(scope, index)
        return signal.waiting
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if scope.stop_at or task is None or task.cancelling():
            raise
        result = join_results([*pieces, error_result(_told(scope, error))])  # something of the tool's own was cancelled
    except Exception as error:  # noqa: BLE001 - it becomes a result, or ends the run
        try:
            result, failure = _failed(scope, error, pieces)
        except Exception as fault:  # noqa: BLE001 - `format_tool_error` itself failed
            return fault
        if result is None:
            return failure
    if frame.extra:
        result = replace(result, extra={**result.extra, **frame.extra})
    scope.batch.ended[index] = result
    refused = tool is not None and index in scope.batch.refused
    scope.refused_calls += refused
    if scope.journal is not None:
        await _write_end(scope, scope.journal, index, result, refused=refused)
    if frame.sender is not None:
        _tell_end(scope, frame, result)
    return failure


def _wait(scope: Scope, index: int) -> None:
    """Take back that a call has begun: it will run again from the top."""
    if index in scope.batch.started:
        scope.batch.started.discard(index)
        scope.tool_calls -= 1
    if scope.journal is not None:
        scope.journal.note(Waited(index))


def _failed(scope: Scope, error: Exception, pieces: list[ToolResult]) -> tuple[ToolResult | None, Exception | None]:
    """Return the result that an error becomes, and the error if it must end the run; a hook's own has no result."""
    if isinstance(error, HookFailed) and isinstance(error.__cause__, Exception):
        return None, error.__cause__
    raises = scope.spec.raises_tool_errors and not isinstance(error, ToolArgumentsError | Rejected)
    unstored = scope.journal is not None and scope.journal.broken is error
    told = _told(scope, error)
    said = any(part for piece in pieces for part in piece.parts if part != TextPart(""))
    result = join_results([*pieces, error_result(f"\n{told}" if said else told)])
    return result, error if raises or unstored or isinstance(error, ConfigError) else None


async def _write_end(scope: Scope, journal: Journal, index: int, result: ToolResult, *, refused: bool) -> None:
    """Write a result; what the call left in the outer run's session is safe before its end is."""
    if scope.outer is not None and scope.root.journal is not None:
        await scope.root.journal.flush()
    await journal.end(index, result, refused=refused)


def _tell_end(scope: Scope, frame: Frame, result: ToolResult) -> None:
    """Tell of a result; of one that ends the run, only after all others."""
    if ends_run(scope, frame.tool, result):
        scope.batch.held[int(frame.spot)] = frame.sender
    else:
        frame.sender.finished(result, directly=False)


async def _execute(
    scope: Scope,
    tool: Tool[..., Any] | None,
    frame: Frame,
    argument: str,
    pieces: list[ToolResult],
) -> ToolResult:
    context = ToolContext(frame.tool, frame.call_id)
    stack = scope.spec.stack
    options = scope.tool_options
    refused = scope.batch.refused.get(frame.spot)
    if tool is None or refused is not None:
        why = refused or unknown_tool(frame.tool, list(scope.tools))
        endpoint = await surround(stack.around_calls, refusal(why), context, frame)
    elif _is_bare(scope, tool):
        own: dict[str, Any] = {"context": context, "dependencies": scope.dependencies}
        return text_result(await tool.endpoint(argument, **own, **options))
    else:
        endpoint = await build(scope, tool, context, frame)
    outermost: ToolSender | None = frame.sender if not stack.sends_tool_events else None
    stream = endpoint(ToolArgument(argument), **options)
    try:
        async for piece in stream:
            pieces.append(_checked(piece, frame.tool))
            if outermost is not None:
                outermost.piece(piece)
    except BaseException:
        await close(stream)
        raise
    return join_results(pieces)


def _is_bare(scope: Scope, tool: Tool[..., Any]) -> bool:
    """Tell whether nothing stands around a plain tool, so that it can be called as it is."""
    spec = scope.spec
    return (
        tool.kind == "invokable"
        and not spec.stack.around_calls
        and not spec.stack.around_kinds["invokable"]
        and spec.callbacks is None
        and needs_no_guard(tool)
    )


def _told(scope: Scope, error: BaseException) -> str:
    if isinstance(error, (ToolArgumentsError, Rejected)):
        return str(error)
    if scope.spec.format_tool_error is not None and isinstance(error, Exception):
        return scope.spec.format_tool_error(error)
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _checked(piece: Any, tool: str) -> ToolResult:
    if not isinstance(piece, ToolResult):
        raise ConfigError(f"a wrapper gave {type(piece).__name__} for a result of {tool}, not a ToolResult")
    return piece
