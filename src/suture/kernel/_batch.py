"""The tool calls of one turn, together: run what is still to be run, then answer them all in call order."""

import asyncio
from collections.abc import Sequence
from contextvars import copy_context
from typing import Any

from suture.kernel._awaiting import in_context
from suture.kernel._call import run_call
from suture.kernel._interrupt import InterruptSignal, Waiting
from suture.kernel._journal import Journal
from suture.kernel._records import Stopped, Waited
from suture.kernel._results import ends_run
from suture.kernel._scope import Batch, Frame, Scope
from suture.kernel._senders import ToolSender
from suture.repair import Cause, placeholder_text
from suture.wires import Call, CallEdit, Piece

__all__ = ["answer_batch", "answers", "cut_short", "run_batch"]

_Ending = tuple[Waiting, ...] | Exception | None


async def run_batch(scope: Scope, calls: Sequence[Call]) -> None:
    """Run the calls that have not ended; raise what they wait for, or the first error that must end the run."""
    open_calls = [index for index in range(len(calls)) if not _is_over(scope.batch, index)]
    if scope.spec.budget is not None:
        _refuse_beyond_budget(scope, open_calls)
    if not open_calls:
        return
    try:
        if len(open_calls) == 1 or scope.spec.sequential:
            endings = await _one_by_one(scope, calls, open_calls)
        else:
            endings = await _side_by_side(scope, calls, open_calls)
    except asyncio.CancelledError:
        _give_up(scope, calls)
        raise
    for ending in endings:
        if isinstance(ending, Exception):
            raise ending
    waiting = tuple(item for ending in endings if isinstance(ending, tuple) for item in ending)
    if waiting:
        raise InterruptSignal(waiting)


async def _one_by_one(scope: Scope, calls: Sequence[Call], open_calls: list[int]) -> list[_Ending]:
    """Run one after another; what stands behind a call that waits, or that ends the run, does not begin."""
    for index in open_calls:
        if scope.stop_at:
            scope.check_stop()
        begun = _begin(scope, [index])
        if scope.journal is not None and begun:
            await _write_start(scope, scope.journal, begun)
        ending = await in_context(run_call(scope, calls[index], index), copy_context())
        if ending is not None:
            return [ending]
    return []


async def _side_by_side(scope: Scope, calls: Sequence[Call], open_calls: list[int]) -> list[_Ending]:
    begun = _begin(scope, open_calls)
    if scope.journal is not None and begun:
        await _write_start(scope, scope.journal, begun)
    loop = asyncio.get_running_loop()
    tasks = [
        loop.create_task(run_call(scope, calls[index], index), context=copy_context(), name=f"{scope.address}:{index}")
        for index in open_calls
    ]
    try:
        await asyncio.wait(tasks)
    except asyncio.CancelledError:
        for task in tasks:
            task.cancel()
        await _wait_out(tasks)
        raise
    _ask_each(tasks)
    return [task.result() for task in tasks]


async def _wait_out(tasks: list["asyncio.Task[_Ending]"]) -> None:
    """Wait until the cancelled calls have cleaned up, however often we are cancelled meanwhile."""
    while not all(task.done() for task in tasks):
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            continue
    _ask_each(tasks)


def _ask_each(tasks: list["asyncio.Task[_Ending]"]) -> None:
    """Ask each task for its exception, so that none is called unretrieved."""
    for task in tasks:
        if not task.cancelled():
            task.exception()


def _begin(scope: Scope, open_calls: list[int]) -> list[int]:
    """Count these calls as begun and return them; those that are refused do not begin."""
    begun = [index for index in open_calls if index not in scope.batch.refused]
    scope.batch.started.update(begun)
    scope.tool_calls += len(begun)
    return begun


async def _write_start(scope: Scope, journal: Journal, begun: list[int]) -> None:
    """Write that these calls begin. If that is cancelled, none of them has."""
    try:
        await journal.start(begun)
    except asyncio.CancelledError:
        for index in begun:
            journal.note(Waited(index))
        scope.batch.started.difference_update(begun)
        scope.tool_calls -= len(begun)
        raise


def _is_over(batch: Batch, index: int) -> bool:
    return index in batch.ended or index in batch.causes


def _refuse_beyond_budget(scope: Scope, open_calls: list[int]) -> None:
    """Mark the calls that the budget does not pay for."""
    budget = scope.spec.budget
    if budget is not None and budget.tool_calls is not None:
        left = max(0, budget.tool_calls - scope.tool_calls)
        for index in open_calls[left:]:
            scope.batch.refused[index] = f"Not run: the budget of {budget.tool_calls} tool calls is used up."


def _give_up(scope: Scope, calls: Sequence[Call]) -> None:
    """Say of each call that started and was cancelled why it has no result."""
    for index in scope.batch.started:
        if not _is_over(scope.batch, index):
            tool = scope.tools.get(calls[index].name)
            cause = Cause.UNKNOWN if tool is not None and tool.in_thread else Cause.STOPPED
            scope.batch.causes[index] = cause
            if scope.journal is not None:
                scope.journal.note(Stopped(index, cause.value))


def answers(scope: Scope, calls: Sequence[Call], default: Cause | None) -> list[Any]:
    """Return the messages that answer the calls, in call order; calls without any result say why.

    Where `default` is `None`, calls that nothing is known about stay open.
    """
    messages: list[Any] = []
    for index, call in enumerate(calls):
        result = scope.batch.ended.get(index)
        if result is not None:
            message = scope.wire.result(call, result)
            scope.ids[id(message)] = (message, f"{scope.address}/{scope.turn}/{index}")
            messages.append(message)
            continue
        cause = scope.batch.causes.get(index, default)
        if cause is not None:
            messages.extend(_say_why(scope, call, cause))
    return messages


def _say_why(scope: Scope, call: Call, cause: Cause) -> list[Any]:
    """Return what answers a call that has no result."""
    text = placeholder_text(cause, call.name, call.id, scope.language)
    return scope.wire.carry([Piece(call=call, text=text, cause=cause.value)])


def answer_batch(scope: Scope, calls: Sequence[Call], *, ends: bool) -> bool:
    """Put the results of a batch that is done into the history; return whether the run ends, perhaps by one of them."""
    messages = answers(scope, calls, Cause.UNKNOWN)
    directly = [
        index
        for index, call in enumerate(calls)
        if index in scope.batch.ended and ends_run(scope, call.name, scope.batch.ended[index])
    ]
    for index in directly:
        _tell_of_end(scope, calls[index], index)
    last = directly[-1] if directly else None
    scope.history = scope.history.extend(messages)
    ends = ends or last is not None
    if scope.journal is not None:
        scope.journal.note_answers(scope.history, last, ends=ends)
    if last is not None:
        scope.output_message = messages[last]
    scope.batch, scope.calls = Batch(), None
    return ends


def _tell_of_end(scope: Scope, call: Call, index: int) -> None:
    """Send the held-back event of a call that ends the run: after all others, and also if it ended before a resume."""
    if scope.emitter is None:
        return
    sender = scope.batch.held.get(index)
    if sender is None:
        sender = ToolSender(scope, Frame(scope, scope.turn, index, "tool", call.id, call.name), "")
        sender.has_started = True
    sender.finished(scope.batch.ended[index], directly=True)


def cut_short(scope: Scope, partial: Any, *, cancelled: bool) -> list[Any]:
    """Return the message of a stream that was cut, with an answer to each of its calls: none of them was run."""
    wire = scope.wire
    edits: dict[int, CallEdit] = {}
    pieces: list[Any] = []
    for index, call in enumerate(wire.calls(partial)):
        whole = wire.arguments_ok(call)
        if not whole:
            edits[index] = CallEdit(arguments=wire.sound_arguments(call))
        pieces.extend(_say_why(scope, call, Cause.STOPPED if whole and cancelled else Cause.MALFORMED))
    return [wire.edit(partial, edits, {}) if edits else partial, *pieces]
