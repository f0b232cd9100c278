"""The beginning of a run (input, stored state, `before_agent`) and its end (result, last record, last event)."""

import asyncio
from collections.abc import Mapping, Sequence
from os import urandom
from typing import Any, cast

import msgspec

from suture._aio import LOG, run_to_the_end, settle
from suture.errors import ConfigError, InputError, OutputError, ResumeError, RunError, SutureError
from suture.events import Interrupt, Interrupted, RunFinished, RunStarted
from suture.kernel.answers import read_output
from suture.kernel.config import Component, notify
from suture.kernel.input import NOTHING, Intake, read_messages
from suture.kernel.loop import Standing, await_hook, cut_short
from suture.kernel.middleware import ChatModelAgentContext, ChatModelAgentState, Outcome
from suture.kernel.run_state import Approval, InterruptSignal, RunResult, Snapshot, Waiting, check_answer, copy_state
from suture.kernel.state import Emitter, Execution, current_run, get_frame
from suture.kernel.tool_call import answer_calls
from suture.kernel.values import encode_value
from suture.messages import FrozenMap, History
from suture.messages.history import MessageList
from suture.repair import Cause, make_options, pair
from suture.repair import is_in_order as is_paired
from suture.tools import as_tools

_UNKNOWN = (None, "")
"""Stands for the id of a message without an event."""


class Begin(msgspec.Struct, frozen=True):
    """How a run begins: with an input, or (`resumes`) from where it stood, with answers."""

    intake: Intake = Intake()
    """What was handed in; nothing, if a stored conversation goes on as it is."""
    resumes: bool = False
    answer: Any = NOTHING
    """The answer to the one interrupt that the run waits for."""
    asked: Sequence[Interrupt] = ()
    """The interrupts of the result that is resumed; by now the run may wait for others."""
    answers: Mapping[str, Any] = FrozenMap()
    """Answers by interrupt id or call id."""
    snapshot: Snapshot | None = None
    """Where the run stood, if it is not in a store."""
    nested: bool = False
    """For a run inside another one: continue it if it has begun before."""
    joins: bool = False
    """An engine does one step of a run that is loaded already, so no lease is taken and nothing is resumed."""


# --- the beginning --------------------------------------------------------------------------------


async def begin(run: Execution, start: Begin) -> Standing:
    """Load what is stored, run the `before_agent` hooks, and return where the run stands."""
    if not start.joins:
        start = await load(run, start)
    state, journal = run.state, run.journal
    has_input = start.resumes and state.entered
    if not (start.joins and has_input):
        if run.emitter is not None:
            resumed = start.resumes and not start.joins
            run.emitter.send(RunStarted, messages=len(run.history), resumed=resumed, checkpoint_id=run.checkpoint_id)
        tell_losses(run, start.intake)
        if run.spec.callbacks:
            await notify(run.spec.callbacks, "on_start", Component(kind="agent", name=run.spec.name), run.history)
    if not run.has_joined:
        await before_agent(run, resumed=has_input)
    if has_input:
        if not start.joins and state.phase in ("after", "tools"):
            _reopen_calls(run)
    else:
        if run.spec.input_builder is not None:
            _take(run, read_messages(run.wire, await settle(run.spec.input_builder(run.instruction, run.history))))
        run.update(entered=True)
        if journal is not None:
            await journal.flush()
    if start.nested and state.outcome == "finished":
        return Standing("gathered", state.turn, ends=True)
    run.state.outcome = ""
    return Standing(state.phase, state.turn, state.is_last, state.ends)


def _take(run: Execution, intake: Intake) -> None:
    """Take what a hook returned as the run's history."""
    run.history = History.of(intake.messages)
    tell_losses(run, intake)


def tell_losses(run: Execution, intake: Intake) -> None:
    """Tell what was lost when messages of another wire were converted."""
    if intake.losses:
        report = {"losses": msgspec.to_builtins(list(intake.losses))}
        run.tell_rewrite(0, "convert", intake.length, len(intake.messages), report)


def _reopen_calls(run: Execution) -> None:
    """Decide about calls that started and did not end: idempotent ones run again; the outcome of others is unknown."""
    state = run.state
    for index, call in enumerate(run.last_calls()):
        tool = run.tools.get(call.name)
        if tool is not None and tool.idempotent:
            if index in state.causes:
                run.drop("causes", [index])
        elif index in state.started and index not in state.ended:
            state.causes.setdefault(index, Cause.UNKNOWN)


async def load(run: Execution, start: Begin, *, takes_answers: bool = True) -> Begin:
    """Load the stored state of a run into `run`, if there is any, and open its journal; nothing runs yet.

    Without `takes_answers`, a run that would be resumed is only read: the stored state does not change.
    """
    restored = await _restore(run, start)
    if restored and not start.joins and run.state.driver and run.state.outcome in ("", "interrupted"):
        run.journal = None  # it must not be changed
        raise ResumeError(f"{run.checkpoint_id!r} is run by {run.state.driver}: answer or stop it there")
    if start.nested:
        known = run.state.asked
        answers = {key: start.answers[key] for key in known if key in start.answers}
        start = msgspec.structs.replace(start, resumes=restored, answers=answers)
    if start.resumes:
        if not takes_answers:
            run.journal = None
        elif not (start.nested and run.state.outcome == "finished") and (start.answers or not start.joins):
            await _resume(run, start)
    else:
        _start(run, start, restored=restored)
    if run.emitter is not None:
        run.emitter.run_id = run.state.run_id
    return start


def _start(run: Execution, start: Begin, *, restored: bool) -> None:
    """Begin a run: the first of its conversation, or the next one with a new input."""
    fresh, old = run.fresh_state, run.state
    if not start.intake.messages:
        _check_that_it_goes_on(run, restored=restored)
    if restored:  # the open calls of the last run get placeholders with their causes
        if old.phase in ("after", "tools") and len(run.history) and old.turn:
            run.history = run.history.continue_with(answer_calls(run, run.last_calls(), Cause.INTERRUPTED))
        if old.partial is not None:
            run.history = run.history.continue_with(cut_short(run, old.partial, cancelled=old.outcome == "cancelled"))
        fresh = msgspec.structs.replace(fresh, runs=old.runs + 1, session={**old.session, **fresh.session})
    run.state, run.usage_before = fresh, fresh.usage
    new = start.intake.messages
    run.history = run.history.continue_with(new) if restored else History.of(new)
    run.output_message = None
    if restored:
        run.address = fresh.agent  # the run before may have been another agent's
        run.place_address()
    if run.journal is not None:
        run.journal.note_beginning(run.state)
        run.journal.note_history(run.history)


def _check_that_it_goes_on(run: Execution, *, restored: bool) -> None:
    """Raise unless there is a stored conversation, which has ended, to go on with; nothing changes then."""
    outcome, name = run.state.outcome, run.checkpoint_id
    if restored and outcome not in ("", Outcome.INTERRUPTED):
        return
    run.journal = None
    if restored:
        raise ResumeError(f"the run of {name!r} has not ended; agent.resume({name!r}) goes on with it")
    raise InputError(f"there is no conversation {name!r} in this store to go on with; give an input")


async def _restore(run: Execution, start: Begin) -> bool:
    """Restore the run from the store or from memory; return whether there was anything."""
    store, name = run.spec.store, run.checkpoint_id
    if start.snapshot is not None:
        run.restore(start.snapshot)
    elif name is None or store is None:
        if start.resumes:
            raise ConfigError("to resume, the agent needs the checkpoint_store that the run was kept in")
        if name is not None:
            raise ConfigError("a checkpoint_id needs an agent with a checkpoint_store")
        return False
    else:
        from suture.kernel.storage import open_journal  # noqa: PLC0415 - only who stores runs pays for it

        # Whoever holds the lease of the outer run also writes the nested one.
        if not await open_journal(run, store, name, takes_lease=run.outer is None and not start.joins):
            if start.resumes:
                run.journal = None  # a resume that is refused changes nothing
                raise ResumeError(f"there is no checkpoint {name!r} in this store")
            return False
    state = run.state
    if run.outer is None:
        run.address = state.agent
    run.place_address()
    if state.tool_infos is not None:
        run.tool_infos = state.tool_infos
    if state.output is not None and 0 <= state.output < len(run.history):
        run.output_message = run.history[state.output]
    run.usage_before = state.usage
    return True


async def _resume(run: Execution, start: Begin) -> None:
    """Take answers to interrupts, and count the resume."""
    state = run.state
    try:
        answers = address_answers(run, start)
        check_answers(run, answers)
    except SutureError:
        run.journal = None  # a resume that is refused changes nothing
        raise
    state.session.update(run.fresh_state.session)
    if answers:
        run.put("answers", answers)
    run.update(resumes=state.resumes + 1, outcome="", waiting={}, partial=None)
    if run.journal is not None:
        await run.journal.flush()


def address_answers(run: Execution, start: Begin) -> dict[str, Any]:
    """Return the answers by interrupt id: a single answer is for the only interrupt, a call id means its interrupt."""
    state, waiting = run.state, run.state.waiting
    answers: dict[str, Any] = {}
    if state.outcome == "finished":
        name = f"checkpoint {run.checkpoint_id!r}" if run.checkpoint_id else "the run"
        raise ResumeError(f"{name} has finished; to continue the conversation, run the agent with this checkpoint_id")
    if start.answer is not NOTHING and len(start.asked) == 1:
        answers[start.asked[0].id] = start.answer
    elif start.answer is not NOTHING:
        if not waiting:
            raise ResumeError("this run does not wait for an answer; to go on where it stopped, resume it without one")
        if len(waiting) > 1:
            raise ResumeError(f"one answer is not enough: the run waits for {', '.join(waiting)}; use answers={{...}}")
        answers[next(iter(waiting))] = start.answer
    for key, data in start.answers.items():
        ids = [key] if key in state.asked else [each for each, call_id in waiting.items() if call_id == key]
        if len(ids) > 1:
            raise ResumeError(f"several interrupts are of call {key!r}: answer by interrupt id: {', '.join(ids)}")
        address = ids[0] if ids else key
        if address in answers:
            raise ResumeError(f"{address!r} is answered twice, once by its call id {key!r}; answer it once")
        answers[address] = data
    return {
        address: {"approved": data.approved, "reason": data.reason} if isinstance(data, Approval) else data
        for address, data in answers.items()
    }


def check_answers(run: Execution, given: Mapping[str, Any]) -> None:
    """Raise `ResumeError` if the run cannot be resumed with these answers. Nothing has changed then.

    An answer may be given twice: whoever gave it may not know whether it was received.
    """
    state, name = run.state, f"checkpoint {run.checkpoint_id!r}" if run.checkpoint_id else "the run"
    for address, data in given.items():
        if address not in state.asked:
            waits = ", ".join(state.waiting) or "nothing"
            raise ResumeError(f"{name} does not wait for {address!r}; it waits for: {waits}")
        check_answer(address, state.asked[address], data)
        encode_value(data)
        if address not in state.waiting and address in state.answers and state.answers[address] != data:
            raise ResumeError(f"{address!r} was already answered differently; the first answer counts")


async def before_agent(run: Execution, *, resumed: bool) -> None:
    """Run the `before_agent` hooks, which may change instruction and tools, in each process that joins a run."""
    spec, frame = run.spec, get_frame()
    frame.turn, frame.spot = 0, "before_agent"
    instruction = spec.instruction
    context: ChatModelAgentContext[Any] = ChatModelAgentContext(
        instruction=instruction if isinstance(instruction, str) else await instruction(current_run()),
        tools=spec.tools,
        return_directly=spec.return_directly,
        messages=run.history,
        resumed=resumed,
    )
    for hook in spec.stack.before_agent:
        run.reached = hook.at
        frame.owner = hook.owner
        changed = cast("ChatModelAgentContext[Any] | None", await await_hook(run, hook, hook.call(context)))
        if changed is None:
            continue
        if not isinstance(changed, ChatModelAgentContext):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"{hook.name} must return a ChatModelAgentContext or None, not {type(changed).__name__}")
        if resumed and changed.messages is not context.messages:
            raise ConfigError(f"{hook.name}: messages are read-only when a run is resumed; check context.resumed")
        context = changed
    run.reached = spec.stack.size
    tools = spec.tools if context.tools is spec.tools else as_tools(context.tools)
    run.instruction = context.instruction
    run.tools = {tool.info.name: tool for tool in tools}
    run.return_directly = frozenset(context.return_directly)
    if context.messages is not run.history:
        _take(run, read_messages(run.wire, context.messages))
    if run.state.tool_infos is None:
        run.tool_infos = tuple([tool.info for tool in tools])


# --- the end --------------------------------------------------------------------------------------


async def finish(
    run: Execution, outcome: Outcome, error: BaseException | None, waiting: tuple[Waiting, ...]
) -> RunResult[Any, Any]:
    """End a run and return its result. A success becomes a failure if its end cannot be stored."""
    try:
        if outcome is Outcome.FINISHED:
            _finish_output(run)
        await _store_end(run, outcome, error, waiting)
    except asyncio.CancelledError:
        pass
    except Exception as failure:  # noqa: BLE001 - what could not be stored is the outcome then
        outcome, error, waiting = Outcome.FAILED, error or failure, ()
    broken = run.journal.broken if run.journal is not None else None
    if broken is not None and error is None:
        outcome, error, waiting = Outcome.FAILED, broken, ()
    try:
        messages = run.history if outcome is Outcome.FINISHED else _final_messages(run, outcome)
    except Exception as failure:  # noqa: BLE001 - a hook left what is no message
        messages = run.history
        outcome, error, waiting = Outcome.FAILED, error or failure, ()
    for index, sender in run.held.items() if outcome is not Outcome.INTERRUPTED else ():
        sender.finished(run.state.ended[index], directly=True)
    faults: tuple[Exception, ...] = ()
    if run.spec.stack.after_agent or run.spec.callbacks:
        faults = await _clean_up(run, messages, outcome, error)
    known, snapshot = run.ids, None
    has_begun = run.state.entered or len(run.history)
    goes_on = outcome is not Outcome.FINISHED or run.outer is not None  # the outer call may have to run again
    if goes_on and run.journal is None and has_begun:  # it is not in a store
        snapshot = Snapshot(copy_state(run.state), run.history, dict(known), dict(run.snapshots))
        if run.outer is not None:
            run.root.snapshots[run.address] = snapshot
    result: RunResult[Any, Any] = RunResult(
        output=run.output if outcome is Outcome.FINISHED else None,
        messages=_as_own_list(run, messages, outcome),
        outcome=outcome,
        usage=run.state.usage,
        interrupts=tuple(item.interrupt for item in waiting),
        run_id=run.state.run_id,
        checkpoint_id=run.checkpoint_id,
        session=FrozenMap(run.root.state.session),
        message_ids=tuple([known.get(id(message), _UNKNOWN)[1] for message in messages]),
        error=error,
        cleanup_errors=faults,
        snapshot=snapshot,
    )
    if run.emitter is not None:
        _send_end(run, run.emitter, result)
    return result


def _send_end(run: Execution, emitter: Emitter, result: RunResult[Any, Any]) -> None:
    spec, outcome, text = run.spec, result.outcome, ""
    if outcome is Outcome.INTERRUPTED:
        shown = tuple(msgspec.structs.replace(item, info=spec.shown(item.info)) for item in result.interrupts)
        emitter.send(Interrupted, interrupts=shown, checkpoint_id=run.checkpoint_id)
    elif outcome is Outcome.FINISHED:
        text = run.wire.text(spec.shown(run.output_message))
    said = run.error_text(result.error)
    emitter.send(RunFinished, outcome=outcome.value, text=text, error=said, usage=result.usage)


def _finish_output(run: Execution) -> None:
    """Pair what hooks left behind, and put the final text into the session; it is stored redacted."""
    spec, root = run.spec, run.root
    if spec.repairs:
        run.history = _pair(run, run.history, "cancel")
    if spec.output_key is None:
        return
    text = run.wire.text(run.output_message)
    root.state.session[spec.output_key] = text
    if root.journal is not None:
        shown = text if spec.redact is None else run.wire.text(spec.shown(run.output_message))
        root.journal.note_entries("session", {spec.output_key: shown})


def _pair(run: Execution, history: History[Any], tail: Any) -> History[Any]:
    if is_paired(run.wire, history):
        return history
    options = {name: value for name, value in run.spec.fit_options.items() if name in ("orphans", "is_placeholder")}
    paired = pair(run.wire, history, make_options(tail=tail, language=run.language, **options))
    return History(paired.messages) if paired.changed else history


def note_waiting(run: Execution, waiting: Sequence[Waiting]) -> None:
    """Store the questions of interrupts, the state that they keep, and the kind of answer that they take."""
    for item in waiting:
        asked = item.interrupt
        if asked.id in run.state.answers:  # it was given for a different question
            run.drop("answers", [asked.id])
        run.put("asked", {asked.id: item.terms})
        run.put("infos", {asked.id: [run.spec.shown(asked.info), asked.name, list(asked.run_path)]})
        if item.state is not None:
            run.put("states", {asked.id: item.state})


def read_waiting(run: Execution) -> tuple[Waiting, ...]:
    """Return the interrupts that a stored run waits for."""
    state, found = run.state, list[Waiting]()
    for address, call_id in state.waiting.items():
        info, name, path = state.infos.get(address, (None, "", ()))
        asked = Interrupt(id=address, info=info, run_path=tuple(path), call_id=call_id, name=name)
        found.append(Waiting(asked, state.states.get(address), state.asked.get(address, "")))
    return tuple(found)


def read_result(run: Execution) -> RunResult[Any, Any]:
    """Return the result of a stored run that has ended, or waits."""
    state, output = run.state, None
    if state.output is not None and state.outcome == "finished":
        try:
            output = read_output(run.spec.output, run.wire, run.history[state.output])
        except ValueError as error:  # the agent that reads it has a different `output_type`
            raise OutputError(f"the stored answer of {run.checkpoint_id!r} does not fit output_type: {error}") from None
    return RunResult(
        output=output,
        messages=list(_final_messages(run, Outcome(state.outcome))),
        outcome=Outcome(state.outcome),
        usage=state.usage,
        interrupts=tuple(item.interrupt for item in read_waiting(run)),
        run_id=state.run_id,
        checkpoint_id=run.checkpoint_id,
        session=FrozenMap(state.session),
        error=RunError(state.error) if state.error else None,
    )


async def _store_end(
    run: Execution, outcome: Outcome, error: BaseException | None, waiting: tuple[Waiting, ...]
) -> None:
    journal, history = run.journal, run.history
    if journal is not None and journal.broken is not None:
        return
    if waiting:
        note_waiting(run, waiting)
    place = run.state.output
    if outcome is Outcome.FINISHED:
        place = next((at for at in range(len(history) - 1, -1, -1) if history[at] is run.output_message), None)
    run.update(
        outcome=outcome.value,
        waiting={item.interrupt.id: item.interrupt.call_id for item in waiting},
        error=run.error_text(error) if outcome is Outcome.FAILED else "",
        output=place,
    )
    if journal is not None:
        run.update(ending=urandom(8).hex())
        await run_to_the_end(journal.flush())
        journal.remember()


def _final_messages(run: Execution, outcome: Outcome) -> History[Any]:
    """Return the history for the result: with finished results, and placeholders with their causes for other calls."""
    history, state = run.history, run.state
    if not len(history) or outcome is Outcome.FINISHED:
        return history
    calls = run.wire.calls(history[-1]) if run.wire.view(history[-1]).role == "assistant" else ()
    if calls and state.turn and state.phase in ("after", "tools"):
        default = None if outcome is Outcome.INTERRUPTED else Cause.STOPPED
        history = History(history).continue_with(answer_calls(run, calls, default))
    if state.partial is not None:
        history = History(history).continue_with(cut_short(run, state.partial, cancelled=outcome is Outcome.CANCELLED))
    tail = "keep" if outcome is Outcome.INTERRUPTED else "cancel"
    return _pair(run, history, tail) if run.spec.repairs else history


def _as_own_list(run: Execution, messages: History[Any], outcome: Outcome) -> list[Any]:
    """Return the messages as the user's own list. It continues the history if nobody else can: no resume, no store."""
    alone = outcome is Outcome.FINISHED and run.journal is None and run.outer is None
    return MessageList(messages, messages if alone else None)


async def _clean_up(
    run: Execution, messages: History[Any], outcome: Outcome, error: BaseException | None
) -> tuple[Exception, ...]:
    """Run the `after_agent` hooks and the agent's callbacks to their end, even if cancelled."""
    faults: list[Exception] = []
    state: ChatModelAgentState[Any] = ChatModelAgentState(
        messages=messages, tool_infos=run.tool_infos, deferred_tool_infos=run.state.deferred_tool_infos
    )

    async def run_hooks() -> None:
        frame = get_frame()
        frame.turn, frame.spot = run.state.turn, "after_agent"
        for hook in run.spec.stack.after_agent:
            if hook.at >= run.reached:
                continue
            frame.owner = hook.owner
            try:
                await await_hook(run, hook, hook.call(state, outcome))
            except InterruptSignal:
                faults.append(RuntimeError(f"{hook.name}.after_agent cannot interrupt: the run is over"))
            except Exception as fault:  # noqa: BLE001 - it never replaces the outcome
                LOG.exception("%s.after_agent failed", hook.name)
                faults.append(fault)
        about = Component(kind="agent", name=run.spec.name)
        if isinstance(error, Exception):
            await notify(run.spec.callbacks, "on_error", about, error)
        else:
            await notify(run.spec.callbacks, "on_end", about, messages)

    try:
        await run_to_the_end(run_hooks())
    except asyncio.CancelledError:
        LOG.debug("the run was cancelled while it cleaned up")
    return tuple(faults)
