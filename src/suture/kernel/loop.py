"""The loop of a run: a plain coroutine over a port; and the port that runs the steps in this process.

The loop reads no clock, makes no ids and sees no message. A small stored value, `Standing`, says where a run stands,
and the loop can continue from any of them. A durable engine runs the same loop with the port's steps as activities::

    model ──> after ──> tools ──> gathered ──> model …
                │                     │
                └──────> end <────────┘
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, cast

import msgspec

from suture._aio import settle
from suture.errors import (
    BudgetExceeded,
    ComponentCancelledError,
    ConfigError,
    InputError,
    MaxIterationsExceeded,
    OutputError,
)
from suture.kernel.answers import TAGS, explain_ending, read_output
from suture.kernel.middleware import ChatModelAgentState, Hook, state_alone
from suture.kernel.model_call import Turn, make_model_context
from suture.kernel.run_state import InterruptSignal, SafePoint
from suture.kernel.state import Execution, get_frame, is_cancelled
from suture.kernel.tool_call import answer_batch, explain, refuse_calls, run_batch
from suture.messages import History, ToolInfo
from suture.repair import Cause
from suture.wires import CallEdit

_CORRECTIONS = 2
"""How often an answer of the wrong form is sent back to the model."""
_NO_TOOLS: tuple[ToolInfo, ...] = ()


class Standing(msgspec.Struct, frozen=True, array_like=True):
    """Where a run stands.

    >>> len(msgspec.msgpack.encode(Standing("tools", 12))) < 20
    True
    """

    phase: str = "model"
    """The next step: `model`, `after` (the hooks after a reply), `tools`, `gathered` (the hook after them) or `end`."""
    turn: int = 0
    """How many model turns it has taken."""
    is_last: bool = False
    """Whether the turn is the last one that the run may take."""
    ends: bool = False
    """Whether the results of the turn end the run."""


class Port(Protocol):
    """The steps that the loop asks for; each returns where the run stands then.

    Two of them have effects on the outside world: the model turn and the tool calls.
    """

    async def model_turn(self, at: Standing, /) -> Standing:
        """Take a model turn: the hooks before it, then the model. After it the reply is the last message.

        Raise the error of the limit that is reached if there may be no more turns.
        """
        ...

    async def after_model(self, at: Standing, /) -> Standing:
        """Run the hooks after a reply. Next are its tool calls, another model turn, or the end."""
        ...

    async def tool_calls(self, at: Standing, /) -> Standing:
        """Run the calls of the reply and answer them."""
        ...

    async def after_tools(self, at: Standing, /) -> Standing:
        """Run the hook after the calls."""
        ...


_STEPS = {"model": "model_turn", "after": "after_model", "tools": "tool_calls", "gathered": "after_tools"}


async def advance(at: Standing, port: Port) -> Standing:
    """Do the next step and return where the run stands then. All calls of a turn are one step."""
    return at if at.phase == "end" else await getattr(port, _STEPS[at.phase])(at)


async def drive(at: Standing, port: Port) -> Standing:
    """Advance a run to its end."""
    while at.phase != "end":
        at = await getattr(port, _STEPS[at.phase])(at)
    return at


class LocalPort:
    """Runs the steps of one run in asyncio."""

    def __init__(self, run: Execution, run_calls: Callable[..., Awaitable[None]] | None = None) -> None:
        self.run, self.run_calls = run, run_calls or run_batch

    def _is_last_turn(self, at: Standing) -> bool:
        """Return whether the next turn must be an answer without tools; raise if there may be no turn."""
        run, spec = self.run, self.run.spec
        used_up = ""
        if spec.budget is not None:
            used_up = spec.budget.exceeded(run.state.usage, run.state.tool_calls + run.state.refused_calls)
        if at.turn < spec.max_iterations and not used_up:
            return False
        if spec.answers_at_limit and not at.is_last:
            return True
        answer = 'or set on_max_iterations="answer" to end with an answer'
        if used_up:
            raise BudgetExceeded(f"{used_up}; raise it, {answer}")
        taken = f"the run took {at.turn} model turns and is not done"
        raise MaxIterationsExceeded(f"{taken}; raise max_iterations, {answer}")

    async def model_turn(self, at: Standing, /) -> Standing:
        """Take one model turn. If there is no reply, the history is as it was before the first hook."""
        run, turn = self.run, at.turn + 1
        spec, state = run.spec, run.state
        is_last = (turn > spec.max_iterations or spec.budget is not None) and self._is_last_turn(at)
        if run.stop_at:
            run.check_stop()
        before = run.history, run.tool_infos, state.tool_infos, state.deferred_tool_infos
        asked: Turn | None = None
        try:
            if spec.stack.before_model:
                await _run_hooks(run, spec.stack.before_model, turn, "before")
            options = run.options
            if spec.output is not None:
                options = {**options, "output_schema": spec.output.schema}
            infos = _NO_TOOLS if is_last else run.tool_infos
            deferred = _NO_TOOLS if is_last else state.deferred_tool_infos
            asked = Turn(run, run.history, infos, deferred, options)
            message = failure = None
            try:
                message = await asked.attempt(run.model)
            except Exception as error:  # noqa: BLE001 - it is judged
                failure = error
            if failure is not None or (spec.retry is not None and spec.retry.should_retry is not None):
                message = await asked.ask(message, failure)
        except BaseException as error:
            run.history, run.tool_infos, state.tool_infos, state.deferred_tool_infos = before
            if asked is not None and asked.partial is not None and not isinstance(error, InterruptSignal):
                run.update(partial=asked.partial)
            raise
        run.ids[id(message)] = (message, asked.message_id)
        run.history = run.history.continue_with((message,))
        if asked.usage is not None:
            state.usage = state.usage + asked.usage
        state.turn, state.phase, state.is_last = turn, "after", is_last
        state.message_id, state.last_usage = asked.message_id, asked.usage
        if run.journal is not None:
            run.journal.note_state()
        return Standing("after", turn, is_last)

    async def after_model(self, at: Standing, /) -> Standing:
        """Run the hooks after a turn; the last message after them decides the next step."""
        run = self.run
        if run.stop_at:
            run.check_stop()
        if run.spec.stack.after_model:
            if run.journal is not None:
                await run.journal.flush()
            await _run_hooks(run, run.spec.stack.after_model, at.turn, "after")
        state, phase = run.state, "tools"
        calls, reply = run.last_calls(), run.history[-1]
        if not calls and not at.is_last and run.wire.is_paused(reply):
            phase = "model"  # a paused reply continues when it is sent back
        elif not calls:
            run.output_message, phase = reply, "end"
            fault = _read_output(run)
            if fault:  # an answer of the wrong form goes back to the model
                ending = explain_ending(run.wire, reply)
                if ending:
                    raise OutputError(f"there is no answer of output_type: {ending}")
                if state.corrections >= _CORRECTIONS or at.is_last or run.spec.output is None:
                    raise OutputError(
                        f"the answer does not fit output_type, after {state.corrections} corrections: {fault}"
                    )
                said = f"The answer does not fit: {fault}. {run.spec.output.instruction}"
                run.history = run.history.continue_with((run.wire.user(said),))
                state.corrections, phase = state.corrections + 1, "model"
        state.phase = phase
        if run.journal is not None:
            run.journal.note_state()
        return Standing(phase, at.turn, at.is_last)

    async def tool_calls(self, at: Standing, /) -> Standing:
        """Run the calls that have not ended, and put all results into the history, in call order."""
        run = self.run
        if run.stop_at:
            run.check_stop()
            if "after_model" in run.stop_at:
                raise SafePoint
        calls = run.last_calls()
        refuse_calls(run, calls)
        await self.run_calls(run, calls)
        ends = not run.tools or at.is_last
        if ends:
            run.output_message, run.state.output = run.history[-1], len(run.history) - 1
        return Standing("gathered", at.turn, at.is_last, answer_batch(run, calls, ends=ends))

    async def after_tools(self, at: Standing, /) -> Standing:
        """Run the hook after the calls; take a result that ends the run as its output."""
        run = self.run
        if run.after_tool_calls is not None:
            hook = Hook("after_tool_calls", "after_tool_calls", "", state_alone(run.after_tool_calls), 0)
            await _run_hooks(run, (hook,), at.turn, "after_tools")
        if at.ends:
            fault = _read_output(run)
            if fault:
                raise OutputError(f"the result does not fit output_type: {fault}")
        run.state.phase = phase = "end" if at.ends else "model"
        if run.journal is not None:
            run.journal.note_state()
        if not at.ends and "after_tools" in run.stop_at:
            raise SafePoint
        return Standing(phase, at.turn, at.is_last, at.ends)


def _read_output(run: Execution) -> str:
    """Read the output from its message; return what is wrong with its form, if anything."""
    if run.spec.output is None and not (text := run.wire.text(run.output_message)).lstrip().startswith(TAGS):
        run.output = text  # as most answers are
        return ""
    try:
        run.output = read_output(run.spec.output, run.wire, run.output_message)
    except ValueError as error:
        return str(error) or type(error).__name__
    return ""


# --- hooks ----------------------------------------------------------------------------------------


async def _run_hooks(run: Execution, hooks: Sequence[Hook], turn: int, spot: str) -> None:
    frame, context = get_frame(), make_model_context(run, turn, run.tool_infos)
    frame.turn, frame.spot = turn, spot
    first: ChatModelAgentState[Any] = ChatModelAgentState(
        messages=run.history, tool_infos=run.tool_infos, deferred_tool_infos=run.state.deferred_tool_infos
    )
    state = first
    for hook in hooks:
        frame.owner = hook.owner
        changed: Any = hook.call(state, context)
        if changed is None:
            continue
        if changed.__class__ is not ChatModelAgentState:
            changed = await await_hook(run, hook, changed)
        if changed is None or changed is state:
            continue
        if not isinstance(changed, ChatModelAgentState):
            raise ConfigError(f"{hook.name} must return a ChatModelAgentState or None, not {type(changed).__name__}")
        new = cast("ChatModelAgentState[Any]", changed)
        messages = state.messages if new.messages is state.messages else as_history(state.messages, new.messages)
        if messages is not state.messages:
            run.tell_rewrite(turn, hook.name, len(state.messages), len(messages), new.report)
        infos, deferred = tuple(new.tool_infos), tuple(new.deferred_tool_infos)
        state = ChatModelAgentState(messages=messages, tool_infos=infos, deferred_tool_infos=deferred)
    if state is not first:
        if state.messages is not run.history:
            _check_messages(run, cast("History[Any]", state.messages), spot)
            ids = run.ids  # forget messages that a hook took out of the history
            run.ids = {id(message): ids[id(message)] for message in state.messages if id(message) in ids}
        run.history = cast("History[Any]", state.messages)
        if state.tool_infos != run.tool_infos:
            run.tool_infos = run.state.tool_infos = state.tool_infos
        run.state.deferred_tool_infos = state.deferred_tool_infos


def _check_messages(run: Execution, new: History[Any], spot: str) -> None:
    """Raise `InputError` if hooks left what is not a message of the run's wire, or no message after the model."""
    if not new.length and spot == "after":
        raise InputError("after_model_rewrite_state left no message; its last one decides what comes next")
    first = run.history.length if new.follows(run.history) else 0
    for index, message in enumerate(new[first:], first):
        if run.wire.claims(message) is False:
            run.wire.view(message, index)  # says what is wrong with it


async def await_hook(run: Execution, hook: Hook, work: Any) -> Any:
    """Await the work of a hook. If its work was cancelled but the run was not, that is a failure of the hook."""
    try:
        return await settle(work)
    except asyncio.CancelledError as error:
        if is_cancelled(run):
            raise
        raise ComponentCancelledError(f"{hook.name} cancelled its own work, though nobody cancelled the run") from error


def as_history(old: Sequence[Any], new: Sequence[Any]) -> History[Any]:
    """Return `new` as a history, which extends `old` if it only adds to it."""
    if isinstance(new, History):
        return new
    if isinstance(new, str | bytes) or not isinstance(new, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"state.messages must be a sequence of messages, not {type(new).__name__}")
    length = len(old)
    if isinstance(old, History) and len(new) >= length and all(a is b for a, b in zip(old, new, strict=False)):
        return old.continue_with(new[length:]) if len(new) > length else old
    return History(new)


def cut_short(run: Execution, partial: Any, *, cancelled: bool) -> list[Any]:
    """Return the message of a cut stream and a placeholder for each of its calls, since none of them ran."""
    wire = run.wire
    edits: dict[int, CallEdit] = {}
    pieces: list[Any] = []
    for index, call in enumerate(wire.calls(partial)):
        whole = wire.arguments_ok(call)
        if not whole:
            edits[index] = CallEdit(arguments=wire.sound_arguments(call))
        pieces += explain(run, call, Cause.STOPPED if whole and cancelled else Cause.MALFORMED)
    return [wire.edit(partial, edits, {}) if edits else partial, *pieces]
