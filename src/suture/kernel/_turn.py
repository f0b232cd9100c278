"""One model turn: the hooks before it, the model, the hooks after it. What it changes lasts only if it succeeds."""

from collections.abc import Sequence
from typing import Any

from suture.errors import ConfigError, InputError
from suture.kernel._attempts import Ask, ask_model
from suture.kernel._awaiting import settled
from suture.kernel._contexts import ChatModelAgentState, ModelContext
from suture.kernel._interrupt import InterruptSignal
from suture.kernel._records import Gathered, Settled
from suture.kernel._scope import Scope, current_frame, tell_rewrite
from suture.kernel._stack import Hook, without_context
from suture.kernel._usage import add_usage
from suture.messages import History, ToolInfo

__all__ = ["finish_turn", "gather_turn", "model_turn"]

_NO_TOOLS: tuple[ToolInfo, ...] = ()


async def model_turn(scope: Scope, *, toolless: bool = False) -> None:
    """Take one model turn: the reply is the last message of the history then.

    If it does not come to a reply, the history is as it was before the first hook.
    """
    before = scope.history, scope.tool_infos, scope.deferred_tool_infos
    context = _context(scope, scope.turn + 1)
    try:
        await _run_hooks(scope, scope.spec.stack.before_model, context, "before")
        options = scope.options
        if scope.spec.output is not None:
            options = {**options, "output_schema": scope.spec.output.schema}
        infos, deferred = (_NO_TOOLS, _NO_TOOLS) if toolless else (scope.tool_infos, scope.deferred_tool_infos)
        current_frame().move(scope.turn + 1, "model", "model")
        reply = await ask_model(scope, Ask(scope.history, infos, deferred, options), context)
    except BaseException as error:
        scope.history, scope.tool_infos, scope.deferred_tool_infos = before
        if isinstance(error, InterruptSignal):
            scope.partial = None  # the model will be asked again
        raise
    scope.turn += 1
    scope.ids[id(reply.message)] = (reply.message, reply.message_id)
    scope.calls = None
    scope.last_usage = reply.usage
    if reply.usage is not None:
        scope.usage = add_usage(scope.usage, reply.usage)
    scope.history = scope.history.append(reply.message)
    if scope.journal is not None:
        _note_infos(scope, before[1:])
        scope.journal.note_reply(scope.history, scope.turn, reply.message_id, reply.usage, is_last=toolless)


async def finish_turn(scope: Scope) -> None:
    """Run the hooks after a turn; the last message they leave decides what comes next."""
    hooks = scope.spec.stack.after_model
    before = scope.tool_infos, scope.deferred_tool_infos
    if scope.journal is not None:
        await scope.journal.flush()
    await _run_hooks(scope, hooks, _context(scope, scope.turn), "after")
    scope.calls = None
    if not len(scope.history):
        raise InputError("after_model_rewrite_state left no message; its last one decides what comes next")
    if scope.journal is not None:
        _note_infos(scope, before)
        scope.journal.note_history(scope.history)
        scope.journal.note(Settled(scope.turn))


async def gather_turn(scope: Scope) -> None:
    """Run the hook after a turn's calls: their results are in the history, and the next turn has not begun."""
    function = scope.after_tool_calls
    if function is None:
        return
    before = scope.tool_infos, scope.deferred_tool_infos
    hook = Hook("after_tool_calls", "after_tool_calls", without_context(function), 0, "after_tool_calls")
    await _run_hooks(scope, (hook,), _context(scope, scope.turn), "after_tools")
    scope.calls = None
    if scope.journal is not None:
        _note_infos(scope, before)
        scope.journal.note_history(scope.history)
        scope.journal.note(Gathered())


def _context(scope: Scope, turn: int) -> ModelContext:
    return ModelContext(
        tools=scope.tool_infos,
        model_retry_config=scope.spec.retry,
        failover=scope.spec.failover,
        turn=turn,
        wire=scope.wire.name,
        last_usage=scope.last_usage,
    )


async def _run_hooks(scope: Scope, hooks: Sequence[Hook], context: ModelContext, spot: str) -> None:
    if not hooks:
        return
    frame = current_frame()
    frame.move(context.turn, spot)
    state: ChatModelAgentState[Any] = ChatModelAgentState(
        messages=scope.history, tool_infos=scope.tool_infos, deferred_tool_infos=scope.deferred_tool_infos
    )
    for hook in hooks:
        frame.name = hook.frame
        changed: ChatModelAgentState[Any] | None = hook.call(state, context)
        if changed is not None and changed.__class__ is not ChatModelAgentState:
            changed = await settled(changed)
        if changed is None or changed is state:
            continue
        if not isinstance(changed, ChatModelAgentState):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"{hook.name} must return a ChatModelAgentState or None, not {type(changed).__name__}")
        state = _take(scope, state, changed, hook, context.turn)
    if state.messages is not scope.history:
        _forget_ids(scope, state.messages)
    scope.history = state.messages  # pyright: ignore[reportAttributeAccessIssue]
    scope.tool_infos, scope.deferred_tool_infos = state.tool_infos, state.deferred_tool_infos


def _take(
    scope: Scope, old: ChatModelAgentState[Any], new: ChatModelAgentState[Any], hook: Hook, turn: int
) -> ChatModelAgentState[Any]:
    """Return the state that a hook gave, in the run's own form, and tell of a changed history."""
    messages = old.messages
    if new.messages is not messages:
        messages = _history(messages, new.messages)
        if messages is not old.messages:
            tell_rewrite(scope, turn, hook.name, len(messages), new.report, len(old.messages))
    return ChatModelAgentState(
        messages=messages,
        tool_infos=tuple(new.tool_infos),
        deferred_tool_infos=tuple(new.deferred_tool_infos),
    )


def _history(old: Sequence[Any], new: Sequence[Any]) -> History[Any]:
    """Return `new` as a history; where it only adds to `old`, as one that goes on from it."""
    if isinstance(new, History):
        return new
    if isinstance(new, str | bytes) or not isinstance(new, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"state.messages must be a sequence of messages, not {type(new).__name__}")
    length = len(old)
    if isinstance(old, History) and len(new) >= length and all(a is b for a, b in zip(old, new, strict=False)):
        return old.extend(new[length:]) if len(new) > length else old
    return History(new)


def _forget_ids(scope: Scope, messages: Sequence[Any]) -> None:
    """Let go of messages that a hook took out of the history."""
    ids = scope.ids
    scope.ids = {id(message): ids[id(message)] for message in messages if id(message) in ids}


def _note_infos(scope: Scope, before: tuple[Any, Any]) -> None:
    if scope.journal is not None and before != (scope.tool_infos, scope.deferred_tool_infos):
        scope.edited_infos = True
        scope.journal.note_infos(scope.tool_infos, scope.deferred_tool_infos)
