"""The end of a run: what is said of calls without results, what is stored, which hooks clean up, what is told."""

import asyncio
from contextlib import suppress
from typing import Any

import msgspec

from suture.events import Interrupt, Interrupted, RunFinished
from suture.kernel._awaiting import settled, uninterrupted
from suture.kernel._batch import answers, cut_short
from suture.kernel._contexts import ChatModelAgentState, Outcome
from suture.kernel._interrupt import InterruptSignal, Waiting
from suture.kernel._policies import Component
from suture.kernel._records import Paused
from suture.kernel._result import RunResult
from suture.kernel._scope import Scope, current_frame, told_error
from suture.kernel._telling import tell
from suture.kernel._typed import encode_value
from suture.messages import FrozenMap, History
from suture.repair import Cause

__all__ = ["finish"]


async def finish(
    scope: Scope, outcome: Outcome, error: BaseException | None, waiting: tuple[Waiting, ...]
) -> tuple[RunResult[Any], BaseException | None]:
    """End a run; return its result and what it failed with. What cannot be stored makes a success a failure."""
    try:
        if outcome is Outcome.FINISHED and scope.spec.output_key is not None:
            _keep_output(scope, scope.spec.output_key)
        if scope.journal is not None:
            await uninterrupted(_store_end(scope, outcome, waiting))
    except asyncio.CancelledError:
        pass
    except Exception as failure:  # noqa: BLE001 - what could not be stored is the outcome then
        outcome, error, waiting = Outcome.FAILED, error or failure, ()
    broken = scope.journal.broken if scope.journal is not None else None
    if broken is not None and error is None:
        outcome, error, waiting = Outcome.FAILED, broken, ()
    scope.waiting = waiting
    try:
        messages = _final_messages(scope, outcome)
    except Exception as failure:  # noqa: BLE001 - a hook left what is no message
        messages = scope.history
        outcome, error, waiting = Outcome.FAILED, error or failure, ()
    for index, sender in scope.batch.held.items() if outcome is not Outcome.INTERRUPTED else ():
        sender.finished(scope.batch.ended[index], directly=True)
    faults = await _clean_up(scope, messages, outcome, error)
    result: RunResult[Any] = RunResult(
        output=scope.output if outcome is Outcome.FINISHED else None,
        messages=messages,
        outcome=outcome,
        usage=scope.usage,
        interrupts=tuple(item.interrupt for item in waiting),
        run_id=scope.run_id,
        checkpoint_id=scope.checkpoint_id,
        session=FrozenMap(scope.root.session),
        message_ids=_message_ids(scope, messages),
        error=error,
        cleanup_errors=faults,
    )
    _tell(scope, result)
    return result, error


def _keep_output(scope: Scope, key: str) -> None:
    """Keep the final text in the session; stored is what may be stored of it."""
    root = scope.root
    root.session[key] = scope.wire.text(scope.output_message)
    if root.journal is not None:
        stored = scope.wire.text(scope.spec.shown(scope.output_message))
        root.journal.keep_value("session", key, encode_value(stored))


async def _store_end(scope: Scope, outcome: Outcome, waiting: tuple[Waiting, ...]) -> None:
    journal = scope.journal
    if journal is None or journal.broken is not None:
        return
    journal.note_history(scope.history)
    journal.note(
        Paused(
            outcome.value,
            [_stored(_redacted(scope, item.interrupt)) for item in waiting],
            {item.interrupt.id: encode_value(item.state) for item in waiting if item.state is not None},
            {item.interrupt.id: item.expects for item in waiting},
            None if scope.partial is None else scope.wire.dump(scope.spec.shown(scope.partial)),
            _place(scope.history, scope.output_message) if outcome is Outcome.FINISHED else None,
        )
    )
    await journal.flush()


def _place(history: History[Any], message: Any) -> int | None:
    return next((index for index in range(len(history) - 1, -1, -1) if history[index] is message), None)


def _redacted(scope: Scope, item: Interrupt) -> Interrupt:
    return msgspec.structs.replace(item, info=scope.spec.shown(item.info))


def _stored(item: Interrupt) -> dict[str, Any]:
    rest = msgspec.structs.asdict(item)
    return {**rest, "run_path": list(item.run_path), "info": encode_value(item.info)}


def _final_messages(scope: Scope, outcome: Outcome) -> History[Any]:
    """Return the history as it is handed out: finished results are in it, and every other call says why."""
    history = scope.history
    if not len(history) or outcome is Outcome.FINISHED:
        return history
    calls = scope.wire.calls(history[-1]) if scope.wire.view(history[-1]).role == "assistant" else ()
    if calls and scope.turn:
        default = None if outcome is Outcome.INTERRUPTED else Cause.STOPPED
        history = History(history).extend(answers(scope, calls, default))
    if scope.partial is not None:
        history = History(history).extend(cut_short(scope, scope.partial, cancelled=outcome is Outcome.CANCELLED))
    return history


async def _clean_up(
    scope: Scope, messages: History[Any], outcome: Outcome, error: BaseException | None
) -> tuple[Exception, ...]:
    """Run the `after_agent` hooks and the agent's callbacks to their end, whatever happens meanwhile."""
    faults: list[Exception] = []
    state: ChatModelAgentState[Any] = ChatModelAgentState(
        messages=messages, tool_infos=scope.tool_infos, deferred_tool_infos=scope.deferred_tool_infos
    )

    async def run_hooks() -> None:
        frame = current_frame()
        frame.move(scope.turn, "after_agent")
        for hook in scope.spec.stack.after_agent:
            if hook.at >= scope.reached:
                continue
            frame.name = hook.frame
            try:
                await settled(hook.call(state, outcome))
            except InterruptSignal:
                faults.append(RuntimeError(f"{hook.name}.after_agent cannot interrupt: the run is over"))
            except Exception as fault:  # noqa: BLE001 - it never replaces the outcome
                faults.append(fault)
        about = Component(kind="agent", name=scope.spec.name)
        try:
            if isinstance(error, Exception):
                await tell(scope.spec.callbacks, "on_error", about, error)
            else:
                await tell(scope.spec.callbacks, "on_end", about, messages)
        except Exception as fault:  # noqa: BLE001
            faults.append(fault)

    if scope.spec.stack.after_agent or scope.spec.callbacks is not None:
        with suppress(asyncio.CancelledError):
            await uninterrupted(run_hooks())
    return tuple(faults)


def _message_ids(scope: Scope, messages: History[Any]) -> tuple[str, ...]:
    known = scope.ids
    return tuple([known[id(message)][1] if id(message) in known else "" for message in messages])


def _tell(scope: Scope, result: RunResult[Any]) -> None:
    emitter = scope.emitter
    if emitter is None:
        return
    if result.outcome is Outcome.INTERRUPTED:
        shown = tuple(_redacted(scope, item) for item in result.interrupts)
        emitter.send(Interrupted, interrupts=shown, checkpoint_id=scope.checkpoint_id)
    error = told_error(scope, result.error)
    text = ""
    if result.outcome is Outcome.FINISHED:
        text = scope.wire.text(scope.spec.shown(scope.output_message))
    emitter.send(RunFinished, outcome=result.outcome.value, text=text, error=error, usage=result.usage)
