"""One tool call, from the model's arguments to a result: run it, journal it, tell of it."""

import json
from typing import Any

from suture.errors import ConfigError
from suture.kernel._awaiting import close
from suture.kernel._endpoints import HookFailed, build, refusal, surround, unknown_tool
from suture.kernel._guard import Rejected
from suture.kernel._interrupt import InterruptSignal, Waiting
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

    The result is in the journal and in the batch before anything relies on it.
    """
    frame = Frame(scope, scope.turn, index, "tool", call.id, call.name)
    FRAME.set(frame)
    tool = scope.tools.get(call.name)
    argument = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
    sender = None
    if scope.emitter is not None:
        sender = frame.sender = ToolSender(scope, frame, argument)
        if not scope.spec.stack.sends_tool_events:
            sender.started()
    failure: Exception | None = None
    pieces: list[ToolResult] = []
    try:
        result = await _execute(scope, tool, frame, argument, pieces, sender)
    except InterruptSignal as signal:
        scope.batch.started.discard(index)
        scope.tool_calls -= 1
        if scope.journal is not None:
            scope.journal.note(Waited(index))
        return signal.waiting
    except Exception as error:  # noqa: BLE001 - it becomes a result, or ends the run
        if isinstance(error, HookFailed) and isinstance(error.__cause__, Exception):
            return error.__cause__
        raises = scope.spec.raises_tool_errors and not isinstance(error, ToolArgumentsError | Rejected)
        unstored = scope.journal is not None and scope.journal.broken is error
        failure = error if raises or unstored or isinstance(error, ConfigError) else None
        told = _told(scope, error)
        said = any(part for piece in pieces for part in piece.parts if part != TextPart(""))
        result = join_results([*pieces, error_result(f"\n{told}" if said else told)])
    scope.batch.ended[index] = result
    if scope.journal is not None:
        await scope.journal.end(index, result)
    if sender is not None:
        if ends_run(scope, call.name, result):
            scope.batch.held[index] = sender
        else:
            sender.finished(result, directly=False)
    return failure


async def _execute(
    scope: Scope,
    tool: Tool[..., Any] | None,
    frame: Frame,
    argument: str,
    pieces: list[ToolResult],
    sender: ToolSender | None,
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
    outermost = sender if not stack.sends_tool_events else None
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
        and not tool.requires_approval
        and tool.timeout is None
        and not tool.retry
    )


def _told(scope: Scope, error: Exception) -> str:
    if isinstance(error, (ToolArgumentsError, Rejected)):
        return str(error)
    if scope.spec.format_tool_error is not None:
        return scope.spec.format_tool_error(error)
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _checked(piece: Any, tool: str) -> ToolResult:
    if not isinstance(piece, ToolResult):
        raise ConfigError(f"a wrapper gave {type(piece).__name__} for a result of {tool}, not a ToolResult")
    return piece
