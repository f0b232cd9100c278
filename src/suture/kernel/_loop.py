"""The asyncio driver: it does what the machine says, until the machine says that it is over."""

from typing import Any, cast

from suture.errors import BudgetExceeded, MaxIterationsExceeded, OutputError
from suture.kernel._awaiting import settled
from suture.kernel._batch import answer_batch, run_batch
from suture.kernel._contexts import ChatModelAgentState
from suture.kernel._machine import Phase, Position, Step, next_step
from suture.kernel._scope import Scope, tell_rewrite
from suture.kernel._turn import finish_turn, model_turn
from suture.messages import History

__all__ = ["SafePoint", "loop"]

_CORRECTIONS = 2
"""How often an answer of the wrong form is sent back."""


class SafePoint(BaseException):
    """The run was asked to stop at a point that it has reached."""


async def loop(scope: Scope, position: Position) -> None:
    """Drive a run from `position` to its end."""
    spec, budget = scope.spec, scope.spec.budget
    limit, answers = spec.max_iterations, spec.answers_at_limit
    corrections, used_up = 0, ""
    while True:
        if budget is not None:
            used_up = budget.exceeded(scope.usage, scope.tool_calls)
        step = next_step(position, limit, used_up=bool(used_up), answers_at_limit=answers)
        if scope.stop_at and "now" in scope.stop_at and step is not Step.END:
            raise SafePoint  # somebody swallowed the cancellation
        if step is Step.MODEL or step is Step.LAST_MODEL:
            last = step is Step.LAST_MODEL
            await model_turn(scope, toolless=last)
            position = position.replied(is_last=last)
        elif step is Step.AFTER:
            await finish_turn(scope)
            position = position.routed(calls=bool(scope.last_calls()))
            if position.phase is Phase.DONE:
                fault = _finish(scope, scope.history[-1])
                if fault and corrections < _CORRECTIONS:
                    corrections += 1
                    scope.history = scope.history.append(scope.wire.user(f"{fault}. {_wanted(scope)}"))
                    position = position.asked_again()
                elif fault:
                    raise OutputError(f"the answer is not of the wanted form, after {corrections} corrections: {fault}")
        elif step is Step.TOOLS:
            position = await _tools(scope, position)
        elif step is Step.END:
            return
        elif used_up:
            raise BudgetExceeded(used_up)
        else:
            raise MaxIterationsExceeded(
                f"the run took {position.turns} model turns and is not done; raise max_iterations, or set "
                'on_max_iterations="answer" to end with an answer'
            )


async def _tools(scope: Scope, position: Position) -> Position:
    if "after_model" in scope.stop_at:
        raise SafePoint
    calls, reply = scope.last_calls(), scope.history[-1]
    if position.is_last:
        for index in range(len(calls)):
            scope.batch.refused[index] = "Not run: the run may take no more turns."
    await run_batch(scope, calls)
    directly = answer_batch(scope, calls)
    if scope.after_tool_calls is not None:
        await _after_tools(scope)
    if directly is not None:
        scope.output = scope.wire.text(scope.output_message)
        return position.answered(ends=True)
    if not scope.tools or position.is_last:
        scope.output_message, scope.output = reply, scope.wire.text(reply)
        return position.answered(ends=True)
    if "after_tools" in scope.stop_at:
        raise SafePoint
    return position.answered(ends=False)


async def _after_tools(scope: Scope) -> None:
    """Call the run's own hook: all results are in the state, and the next turn has not begun."""
    function = scope.after_tool_calls
    state: ChatModelAgentState[Any] = ChatModelAgentState(
        messages=scope.history, tool_infos=scope.tool_infos, deferred_tool_infos=scope.deferred_tool_infos
    )
    changed = cast("ChatModelAgentState[Any] | None", await settled(function(state)) if function is not None else None)
    if changed is not None:
        if changed.messages is not scope.history:
            tell_rewrite(scope, scope.turn, "after_tool_calls", len(changed.messages), changed.report)
            scope.history = History.of(changed.messages)
        scope.tool_infos = tuple(changed.tool_infos)
        scope.deferred_tool_infos = tuple(changed.deferred_tool_infos)


def _finish(scope: Scope, reply: Any) -> str:
    """Take a reply as the answer; return what is wrong with its form, if anything is."""
    scope.output_message = reply
    text = scope.wire.text(reply)
    rule = scope.spec.output
    if rule is None:
        scope.output = text
        return ""
    try:
        scope.output = rule.read(text)
    except ValueError as error:
        return str(error)
    return ""


def _wanted(scope: Scope) -> str:
    return scope.spec.output.instruction if scope.spec.output is not None else ""
