"""The port of the loop in this process: a model turn with its hooks, and the tool calls of a turn, together."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import copy_context
from typing import Any, cast

from suture._aio import in_context, settle
from suture.errors import (
    BudgetExceeded,
    ComponentCancelledError,
    ConfigError,
    InputError,
    MaxIterationsExceeded,
    OutputError,
)
from suture.kernel.interrupts import InterruptSignal, Waiting
from suture.kernel.loop import Standing
from suture.kernel.middleware import ChatModelAgentState, Hook, ModelContext, state_alone
from suture.kernel.model_call import Question, Turn
from suture.kernel.requests import error_result
from suture.kernel.run_state import SafePoint, add_usage, merge_values
from suture.kernel.state import Execution, current_frame, is_cancelled
from suture.kernel.tool_call import begin_calls, ends_run, run_call, send_settled
from suture.messages import History, ToolInfo
from suture.repair import Cause, placeholder_text
from suture.wires import Call, CallEdit, Piece

_CORRECTIONS = 2
"""How often an answer of the wrong form is sent back."""
_NO_TOOLS: tuple[ToolInfo, ...] = ()
_Ending = tuple[Waiting, ...] | Exception | None


class LocalPort:
    """Runs the steps of one run in asyncio."""

    def __init__(self, run: Execution, run_calls: Callable[..., Awaitable[None]] | None = None) -> None:
        self.run, self.run_calls = run, run_calls or run_batch

    def _is_last_turn(self, at: Standing) -> bool:
        """Tell whether the next turn is one without tools, to end with an answer; raise where there may be none."""
        run, spec = self.run, self.run.spec
        used_up = ""
        if spec.budget is not None:
            used_up = spec.budget.exceeded(run.state.usage, run.state.tool_calls + run.state.refused_calls)
        if at.turn < spec.max_iterations and not used_up:
            return False
        if spec.answers_at_limit and not at.is_last:
            return True
        if used_up:
            raise BudgetExceeded(used_up)
        raise MaxIterationsExceeded(
            f"the run took {at.turn} model turns and is not done; raise max_iterations, or set "
            'on_max_iterations="answer" to end with an answer'
        )

    # A model turn

    async def model_turn(self, at: Standing, /) -> bool:
        """Take one model turn. If it does not come to a reply, the history is as it was before the first hook."""
        run, is_last = self.run, self._is_last_turn(at)
        if run.stop_at:
            run.check_stop()
        before = run.history, run.tool_infos, run.state.deferred_tool_infos
        run.model_context = _model_context(run, at.turn + 1)
        turn: Turn | None = None
        try:
            await _run_hooks(run, run.spec.stack.before_model, at.turn + 1, "before")
            options = run.options
            if run.spec.output is not None:
                options = {**options, "output_schema": run.spec.output.schema}
            infos = (_NO_TOOLS, _NO_TOOLS) if is_last else (run.tool_infos, run.state.deferred_tool_infos)
            current_frame().move(at.turn + 1, "model", "model")
            turn = Turn(run, Question(run.history, *infos, options))
            reply = await turn.ask()
        except BaseException as error:
            run.history, run.tool_infos, run.state.deferred_tool_infos = before
            if turn is not None and turn.partial is not None and not isinstance(error, InterruptSignal):
                run.update(partial=turn.partial)
            raise
        run.ids[id(reply.message)] = (reply.message, reply.message_id)
        run.history = run.history.append(reply.message)
        _note_infos(run, before[1:])
        if run.journal is not None:
            run.journal.note_history(run.history)
        usage = run.state.usage if reply.usage is None else add_usage(run.state.usage, reply.usage)
        run.update(
            turn=at.turn + 1,
            phase="after",
            is_last=is_last,
            message_id=reply.message_id,
            usage=usage,
            last_usage=reply.usage,
        )
        return is_last

    async def after_model(self, at: Standing, /) -> str:
        """Run the hooks after a turn; the last message they leave decides what comes next."""
        run = self.run
        if run.stop_at:
            run.check_stop()
        if run.spec.stack.after_model:
            before = run.tool_infos, run.state.deferred_tool_infos
            if run.journal is not None:
                await run.journal.flush()
            run.model_context = _model_context(run, at.turn)
            await _run_hooks(run, run.spec.stack.after_model, at.turn, "after")
            if not run.history.length:
                raise InputError("after_model_rewrite_state left no message; its last one decides what comes next")
            _note_infos(run, before)
            if run.journal is not None:
                run.journal.note_history(run.history)
        phase = "tools" if run.last_calls() else self._read_answer(at)
        run.update(phase=phase)
        return phase

    def _read_answer(self, at: Standing) -> str:
        """Take the last message as the answer; one of the wrong form goes back to the model."""
        run = self.run
        run.output_message = run.history[-1]
        fault = _read_output(run)
        if not fault:
            return "end"
        if run.state.corrections >= _CORRECTIONS or at.is_last or run.spec.output is None:
            raise OutputError(
                f"the answer is not of the wanted form, after {run.state.corrections} corrections: {fault}"
            )
        run.history = run.history.append(run.wire.user(f"{fault}. {run.spec.output.instruction}"))
        if run.journal is not None:
            run.journal.note_history(run.history)
        run.update(corrections=run.state.corrections + 1)
        return "model"

    # The tool calls of a turn

    async def tool_calls(self, at: Standing, /) -> bool:
        """Run the calls that have not ended, and put all results into the history, in call order."""
        run = self.run
        if run.stop_at:
            run.check_stop()
            if "after_model" in run.stop_at:
                raise SafePoint
        calls, reply = run.last_calls(), run.history[-1]
        refuse_calls(run, calls)
        await self.run_calls(run, calls)
        ends = not run.tools or at.is_last
        if ends:
            run.output_message = reply
        return _answer_batch(run, calls, ends=ends)

    async def after_tools(self, at: Standing, /) -> None:
        """Run the hook after the calls; take a result that ends the run as its output."""
        run = self.run
        if run.after_tool_calls is not None:
            before = run.tool_infos, run.state.deferred_tool_infos
            hook = Hook("after_tool_calls", "after_tool_calls", "", state_alone(run.after_tool_calls), 0)
            run.model_context = _model_context(run, at.turn)
            await _run_hooks(run, (hook,), at.turn, "after_tools")
            _note_infos(run, before)
            if run.journal is not None:
                run.journal.note_history(run.history)
        if at.ends:
            fault = _read_output(run)
            if fault:
                raise OutputError(f"the run ends with what is not of the wanted form: {fault}")
        run.update(phase="end" if at.ends else "model")
        if not at.ends and "after_tools" in run.stop_at:
            raise SafePoint


def _model_context(run: Execution, turn: int) -> ModelContext:
    return ModelContext(
        tools=run.tool_infos,
        model_retry_config=run.spec.retry,
        failover=run.spec.failover,
        turn=turn,
        wire=run.wire.name,
        last_usage=run.state.last_usage,
        instruction=run.instruction,
    )


def _read_output(run: Execution) -> str:
    """Read the output from the message that holds it; return what is wrong with its form, if anything is."""
    text = run.wire.text(run.output_message)
    rule = run.spec.output
    if rule is None:
        run.output = text
        return ""
    try:
        run.output = rule.read(text)
    except ValueError as error:
        return str(error)
    return ""


# --- hooks ----------------------------------------------------------------------------------------


async def _run_hooks(run: Execution, hooks: Sequence[Hook], turn: int, spot: str) -> None:
    if not hooks:
        return
    frame, context = current_frame(), run.model_context
    frame.move(turn, spot)
    state: ChatModelAgentState[Any] = ChatModelAgentState(
        messages=run.history, tool_infos=run.tool_infos, deferred_tool_infos=run.state.deferred_tool_infos
    )
    for hook in hooks:
        frame.owner = hook.owner
        changed: Any = hook.call(state, context)
        if changed is not None and changed.__class__ is not ChatModelAgentState:
            changed = await await_hook(run, hook, changed)
        if changed is None or changed is state:
            continue
        if not isinstance(changed, ChatModelAgentState):
            raise ConfigError(f"{hook.name} must return a ChatModelAgentState or None, not {type(changed).__name__}")
        state = _take(run, state, cast("ChatModelAgentState[Any]", changed), hook, turn)
    if state.messages is not run.history:
        _forget_ids(run, state.messages)
    run.history = state.messages  # pyright: ignore[reportAttributeAccessIssue]
    run.tool_infos, run.state.deferred_tool_infos = state.tool_infos, state.deferred_tool_infos


async def await_hook(run: Execution, hook: Hook, work: Any) -> Any:
    """Await what a hook does. A cancellation of its own work, when nobody cancelled the run, is its failure."""
    try:
        return await settle(work)
    except asyncio.CancelledError as error:
        if is_cancelled(run):
            raise
        raise ComponentCancelledError(
            f"something of {hook.name}'s own was cancelled, though nobody cancelled the run"
        ) from error


def _take(
    run: Execution, old: ChatModelAgentState[Any], new: ChatModelAgentState[Any], hook: Hook, turn: int
) -> ChatModelAgentState[Any]:
    """Return the state that a hook gave, in the run's own form, and send an event of a changed history."""
    messages = old.messages
    if new.messages is not messages:
        messages = as_history(messages, new.messages)
        if messages is not old.messages:
            run.tell_rewrite(turn, hook.name, len(old.messages), len(messages), new.report)
    return ChatModelAgentState(
        messages=messages,
        tool_infos=tuple(new.tool_infos),
        deferred_tool_infos=tuple(new.deferred_tool_infos),
    )


def as_history(old: Sequence[Any], new: Sequence[Any]) -> History[Any]:
    """Return `new` as a history; where it only adds to `old`, as one that goes on from it."""
    if isinstance(new, History):
        return new
    if isinstance(new, str | bytes) or not isinstance(new, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"state.messages must be a sequence of messages, not {type(new).__name__}")
    length = len(old)
    if isinstance(old, History) and len(new) >= length and all(a is b for a, b in zip(old, new, strict=False)):
        return old.extend(new[length:]) if len(new) > length else old
    return History(new)


def _forget_ids(run: Execution, messages: Sequence[Any]) -> None:
    """Let go of messages that a hook took out of the history."""
    ids = run.ids
    run.ids = {id(message): ids[id(message)] for message in messages if id(message) in ids}


def _note_infos(run: Execution, before: tuple[Any, Any]) -> None:
    if before != (run.tool_infos, run.state.deferred_tool_infos):
        run.update(tool_infos=run.tool_infos, deferred_tool_infos=run.state.deferred_tool_infos)


# --- a batch of calls -----------------------------------------------------------------------------


def refuse_calls(run: Execution, calls: Sequence[Call]) -> None:
    """Decide which calls of a turn are not to be run, and what is said of them."""
    budget = run.spec.budget
    if run.state.is_last:
        run.refused = dict.fromkeys(range(len(calls)), "Not run: the run may take no more turns.")
    elif (
        calls and calls[-1].arguments in ("", "{}") and run.wire.is_cut(run.history[-1])
    ):  # it may have had more to say
        run.refused[len(calls) - 1] = placeholder_text(Cause.MALFORMED, calls[-1].name, calls[-1].id, run.language)
    if budget is not None and budget.tool_calls is not None:
        for index in range(max(0, budget.tool_calls - run.state.tool_calls), len(calls)):
            run.refused[index] = f"Not run: the budget of {budget.tool_calls} tool calls is used up."


async def run_batch(run: Execution, calls: Sequence[Call]) -> None:
    """Run the calls that have not ended; raise what they wait for, or the first error that must end the run."""
    open_calls = [index for index in range(len(calls)) if not is_over(run, index)]
    if not open_calls:
        return
    try:
        if len(open_calls) == 1 or run.spec.sequential:
            endings = await _one_by_one(run, calls, open_calls)
        else:
            endings = await _side_by_side(run, calls, open_calls)
    except asyncio.CancelledError:
        give_up(run, calls, run.state.started)
        raise
    for ending in endings:
        if isinstance(ending, Exception):
            raise ending
    waiting = tuple(item for ending in endings if isinstance(ending, tuple) for item in ending)
    if waiting:
        raise InterruptSignal(waiting)


async def _one_by_one(run: Execution, calls: Sequence[Call], open_calls: list[int]) -> list[_Ending]:
    """Run one after another; what stands behind a call that waits, or that ends the run, does not begin."""
    for index in open_calls:
        if run.stop_at:
            run.check_stop()
        await begin_calls(run, beginning(run, calls, [index]))
        ending = await in_context(run_call(run, calls[index], index), copy_context())
        if ending is not None:
            return [ending]
    return []


async def _side_by_side(run: Execution, calls: Sequence[Call], open_calls: list[int]) -> list[_Ending]:
    await begin_calls(run, beginning(run, calls, open_calls))
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
        while not all(task.done() for task in tasks):  # they clean up, however often we are cancelled meanwhile
            try:
                await asyncio.wait(tasks)
            except asyncio.CancelledError:
                continue
        _retrieve(tasks)
        raise
    _retrieve(tasks)
    return [task.result() for task in tasks]


def _retrieve(tasks: Sequence["asyncio.Task[_Ending]"]) -> None:
    """Ask each task for its exception, so that none is called unretrieved."""
    for task in tasks:
        if not task.cancelled():
            task.exception()


def beginning(run: Execution, calls: Sequence[Call], indexes: Sequence[int]) -> list[int]:
    """Return the calls that begin at once: one that is refused never does, one that asks for approval does later."""
    return [
        index
        for index in indexes
        if index not in run.refused
        and not ((tool := run.tools.get(calls[index].name)) is not None and tool.requires_approval)
    ]


def is_over(run: Execution, index: int) -> bool:
    """Tell whether a call of the turn has a result, or a reason why it has none."""
    return index in run.state.ended or index in run.state.causes


def give_up(run: Execution, calls: Sequence[Call], indexes: Iterable[int]) -> None:
    """Say of calls that started and were cancelled why they have no result."""
    for index in indexes:
        if not is_over(run, index):
            tool = run.tools.get(calls[index].name)
            unstoppable = tool is not None and tool.in_thread
            run.put("causes", {index: Cause.UNKNOWN if unstoppable else Cause.STOPPED})


def _answer_batch(run: Execution, calls: Sequence[Call], *, ends: bool) -> bool:
    """Put the results of a batch that is done into the history; return whether the run ends, perhaps by one of them."""
    state = run.state
    messages = answer_calls(run, calls, Cause.UNKNOWN)
    directly = [
        index
        for index, call in enumerate(calls)
        if index in state.ended and ends_run(run, call.name, state.ended[index])
    ]
    _send_ends(run, calls, directly)
    last = directly[-1] if directly else None
    run.history = run.history.extend(messages)
    values, dropped = merge_values(state)
    state.values.update(values)
    for key in dropped:
        state.values.pop(key, None)
    if run.journal is not None:
        run.journal.note_answers(run.history, last)
    state.tool_calls += len(state.started)
    refused = sum(calls[index].name in run.tools for index in run.refused)
    run.forget_turn()
    ends = ends or last is not None
    run.update(phase="gathered", ends=ends, refused_calls=state.refused_calls + refused)
    if last is not None:
        run.output_message = messages[last]
        state.output = len(run.history) - len(messages) + last
    return ends


def _send_ends(run: Execution, calls: Sequence[Call], directly: Sequence[int]) -> None:
    """Send the ends of calls that another process began, then those of calls that end the run: after all others."""
    if run.emitter is None:
        return
    for index, cause in run.state.causes.items():
        if index not in run.state.ended:
            text = placeholder_text(cause, calls[index].name, calls[index].id, run.language)
            send_settled(run, calls[index], index, error_result(text))
    for index in directly:
        sender = run.held.get(index)
        if sender is not None:
            sender.finished(run.state.ended[index], directly=True)
        else:
            send_settled(run, calls[index], index, run.state.ended[index], directly=True)


def answer_calls(run: Execution, calls: Sequence[Call], default: Cause | None) -> list[Any]:
    """Return the messages that answer the calls, in call order; calls without any result say why.

    Where `default` is `None`, calls that nothing is known about stay open.
    """
    messages: list[Any] = []
    for index, call in enumerate(calls):
        result = run.state.ended.get(index)
        if result is not None:
            message = run.wire.result(call, result)
            run.ids[id(message)] = (message, f"{run.address}/{run.state.turn}/{index}")
            messages.append(message)
            continue
        cause = run.state.causes.get(index, default)
        if cause is not None:
            messages += _explain(run, call, cause)
    return messages


def answer_reply(run: Execution, reply: Any) -> list[Any]:
    """Return the messages that answered a reply, from what is stored."""
    return answer_calls(run, run.wire.calls(reply), Cause.UNKNOWN)


def _explain(run: Execution, call: Call, cause: Cause) -> list[Any]:
    """Return what answers a call that has no result."""
    text = placeholder_text(cause, call.name, call.id, run.language)
    return run.wire.carry([Piece(call=call, text=text, cause=cause.value)])


def cut_short(run: Execution, partial: Any, *, cancelled: bool) -> list[Any]:
    """Return the message of a stream that was cut, with an answer to each of its calls: none of them was run."""
    wire = run.wire
    edits: dict[int, CallEdit] = {}
    pieces: list[Any] = []
    for index, call in enumerate(wire.calls(partial)):
        whole = wire.arguments_ok(call)
        if not whole:
            edits[index] = CallEdit(arguments=wire.sound_arguments(call))
        pieces += _explain(run, call, Cause.STOPPED if whole and cancelled else Cause.MALFORMED)
    return [wire.edit(partial, edits, {}) if edits else partial, *pieces]
