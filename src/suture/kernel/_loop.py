"""The asyncio driver: it does what the machine says, until the machine says that it is over."""

from suture.errors import BudgetExceeded, MaxIterationsExceeded, OutputError
from suture.kernel._batch import answer_batch, run_batch
from suture.kernel._machine import Position, Step, next_step
from suture.kernel._records import AskedAgain
from suture.kernel._scope import SafePoint, Scope
from suture.kernel._turn import finish_turn, gather_turn, model_turn
from suture.repair import Cause, placeholder_text

__all__ = ["loop"]

_CORRECTIONS = 2
"""How often an answer of the wrong form is sent back."""


async def loop(scope: Scope, position: Position) -> None:
    """Drive a run from `position` to its end."""
    spec, budget = scope.spec, scope.spec.budget
    limit, answers, used_up = spec.max_iterations, spec.answers_at_limit, ""
    while True:
        if budget is not None:
            used_up = budget.exceeded(scope.usage, scope.tool_calls + scope.refused_calls)
        step = next_step(position, limit, used_up=bool(used_up), answers_at_limit=answers)
        if step is Step.END:
            return
        if scope.stop_at:
            scope.check_stop()
        if step is Step.MODEL or step is Step.LAST_MODEL:
            last = step is Step.LAST_MODEL
            await model_turn(scope, toolless=last)
            position = position.replied(is_last=last)
        elif step is Step.AFTER:
            if spec.stack.after_model:
                await finish_turn(scope)
            position = _route(scope, position)
        elif step is Step.ROUTE:
            position = _route(scope, position)
        elif step is Step.TOOLS:
            position = await _tools(scope, position)
        elif step is Step.GATHERED:
            position = await _gather(scope, position)
        elif used_up:
            raise BudgetExceeded(used_up)
        else:
            raise MaxIterationsExceeded(
                f"the run took {position.turns} model turns and is not done; raise max_iterations, or set "
                'on_max_iterations="answer" to end with an answer'
            )


def _route(scope: Scope, position: Position) -> Position:
    """Look at the last message: calls go to the tools, anything else is the answer; one of the wrong form goes back."""
    if scope.last_calls():
        return position.routed(calls=True)
    scope.output_message = scope.history[-1]
    fault = _read_output(scope)
    if not fault:
        return position.routed(calls=False)
    if scope.corrections >= _CORRECTIONS or position.is_last or scope.spec.output is None:
        raise OutputError(f"the answer is not of the wanted form, after {scope.corrections} corrections: {fault}")
    scope.corrections += 1
    scope.history = scope.history.append(scope.wire.user(f"{fault}. {scope.spec.output.instruction}"))
    scope.calls = None
    if scope.journal is not None:
        scope.journal.note_history(scope.history)
        scope.journal.note(AskedAgain())
    return position.asked_again()


async def _tools(scope: Scope, position: Position) -> Position:
    if "after_model" in scope.stop_at:
        raise SafePoint
    calls, reply = scope.last_calls(), scope.history[-1]
    if position.is_last:
        for index in range(len(calls)):
            scope.batch.refused[index] = "Not run: the run may take no more turns."
    elif calls and calls[-1].arguments in ("", "{}") and scope.wire.is_cut(reply):  # it may have had more to say
        scope.batch.refused[len(calls) - 1] = placeholder_text(
            Cause.MALFORMED, calls[-1].name, calls[-1].id, scope.language
        )
    await run_batch(scope, calls)
    ends = not scope.tools or position.is_last
    if ends:
        scope.output_message = reply
    position = position.answered(ends=answer_batch(scope, calls, ends=ends))
    if position.ends or scope.after_tool_calls is not None or scope.stop_at:
        return await _gather(scope, position)
    return position.gathered()


async def _gather(scope: Scope, position: Position) -> Position:
    """Run the hook after the calls; take a result that ends the run as its output."""
    if scope.after_tool_calls is not None:
        await gather_turn(scope)
    if position.ends:
        fault = _read_output(scope)
        if fault:
            raise OutputError(f"the run ends with what is not of the wanted form: {fault}")
    elif "after_tools" in scope.stop_at:
        raise SafePoint
    return position.gathered()


def _read_output(scope: Scope) -> str:
    """Read the output from the message that holds it; return what is wrong with its form, if anything is."""
    text = scope.wire.text(scope.output_message)
    rule = scope.spec.output
    if rule is None:
        scope.output = text
        return ""
    try:
        scope.output = rule.read(text)
    except ValueError as error:
        return str(error)
    return ""
