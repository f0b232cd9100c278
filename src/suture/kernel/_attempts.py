"""Asking a model until there is a reply: failover around retry around one attempt."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from math import isfinite
from random import random
from typing import Any, NamedTuple, cast

from suture.errors import ConfigError, HistoryError, InputError, RetryExhausted, StreamCutError
from suture.events import ModelStarted, RetryScheduled
from suture.kernel._awaiting import close, settled
from suture.kernel._contexts import ModelContext
from suture.kernel._innermost import Innermost
from suture.kernel._model import Model, ModelRequest, name_of
from suture.kernel._policies import FailoverContext, ModelRetryConfig, RetryContext, RetryDecision
from suture.kernel._scope import Scope, current_frame, tell_rewrite, told_error
from suture.kernel._senders import ModelSender
from suture.kernel._usage import spend
from suture.messages import Delta, History, TokenUsage, ToolInfo

__all__ = ["Ask", "Reply", "ask_model", "default_backoff"]

_LONGEST_WAIT = 3600.0
"""Who asks to be left alone for longer than this many seconds is not asked again."""
_HOPELESS = (ConfigError, HistoryError, InputError)
"""Errors that would come again: nothing about the request changes by itself."""


class Ask(NamedTuple):
    """What one model turn asks."""

    messages: Sequence[Any]
    tool_infos: tuple[ToolInfo, ...]
    deferred_tool_infos: tuple[ToolInfo, ...]
    options: Mapping[str, Any]


class Reply(NamedTuple):
    """What came of it."""

    message: Any
    message_id: str
    usage: TokenUsage | None


async def ask_model(scope: Scope, ask: Ask, context: ModelContext) -> Reply:
    """Return the reply of the first model that gives one; the one that works is kept for the rest of the run."""
    failover = scope.spec.failover
    if failover is None and scope.spec.retry is None:
        return await _attempt(scope, scope.model, ask, context, 1)
    counter, asking = [0], [ask]
    if failover is None:
        return await _with_retry(scope, scope.model, asking, context, counter)
    tried = 0
    limit = len(failover.models) if failover.max_retries is None else failover.max_retries
    model = scope.model
    while True:
        try:
            reply = await _with_retry(scope, model, asking, context, counter)
        except Exception as error:
            scope.check_stop()
            ask = asking[0]
            partial, scope.partial = scope.partial, None
            own = error.__cause__ if isinstance(error, RetryExhausted) else None
            cause = own if isinstance(own, Exception) else error
            about = FailoverContext(attempt=tried + 1, messages=ask.messages, output=partial, error=cause)
            chosen = await _next_model(scope, about) if tried < limit else None
            if chosen is None:
                scope.partial = partial
                raise
            tried += 1
            model, messages = chosen
            _tell_retry(scope, counter[0], error, failover=name_of(model))
            asking[0] = ask if messages is None else ask._replace(messages=messages)
        else:
            scope.sticky_model = model
            return reply


async def _next_model(scope: Scope, about: FailoverContext[Any]) -> tuple[Model[Any], Sequence[Any] | None] | None:
    failover = scope.spec.failover
    if failover is None or isinstance(about.error, ConfigError):
        return None
    if failover.should_failover is not None and not await settled(failover.should_failover(about)):
        return None
    if failover.get_failover_model is None:
        others = [model for model in (scope.spec.model, *failover.models) if model is not scope.model]
        return (others[about.attempt - 1], None) if about.attempt <= len(others) else None
    chosen = await settled(failover.get_failover_model(about))
    if chosen is None:
        return None
    model, messages = cast("tuple[Model[Any], Any]", chosen if isinstance(chosen, tuple) else (chosen, None))
    if model.wire != scope.wire.name:
        raise ConfigError(f"a failover model speaks {model.wire}, and this agent's messages are {scope.wire.name}")
    return model, messages


async def _with_retry(
    scope: Scope, model: Model[Any], asking: list[Ask], context: ModelContext, counter: list[int]
) -> Reply:
    """Ask one model until an attempt is accepted. What is asked may change on the way: `asking` holds it."""
    config = scope.spec.retry
    if config is None:
        counter[0] += 1
        return await _attempt(scope, model, asking[0], context, counter[0])
    for number in range(1, config.max_retries + 2):
        counter[0] += 1
        ask = asking[0]
        reply, error = None, None
        try:
            reply = await _attempt(scope, model, ask, context, counter[0])
        except Exception as failure:  # noqa: BLE001 - it is judged below
            error = failure
            scope.check_stop()
        partial, scope.partial = scope.partial, None
        output = reply.message if reply is not None else partial
        about = RetryContext(attempt=number, messages=ask.messages, options=ask.options, output=output, error=error)
        decision = await _judge(config, about)
        if decision is None or not decision.retry:
            scope.partial = partial
            return _accept(reply, error, decision)
        if reply is not None and reply.usage is not None:
            spend(scope, reply.usage)
        if number > config.max_retries:
            scope.partial = partial
            reason = error if error is not None else decision.reject_reason or "the output was rejected"
            raise RetryExhausted(
                f"{number} attempts failed, the last with: {reason}",
                attempts=number,
                reject_reason=decision.reject_reason,
            ) from error
        asking[0] = _prepare_next(scope, ask, decision)
        delay = _delay(config, decision, error, number)
        _tell_retry(scope, counter[0], error, reason=decision.reject_reason, delay=delay)
        if delay > 0:
            await asyncio.sleep(delay)
    raise AssertionError  # pragma: no cover - the loop returns or raises


async def _judge(config: ModelRetryConfig, about: RetryContext[Any]) -> RetryDecision[Any] | None:
    if config.should_retry is None:
        return RetryDecision(retry=about.error is not None and _can_help(about.error))
    decision = await settled(config.should_retry(about))
    return RetryDecision(retry=decision) if isinstance(decision, bool) else decision


def _can_help(error: Exception) -> bool:
    """Tell whether to try again can help against `error`."""
    if isinstance(error, _HOPELESS) or not getattr(error, "retryable", True):
        return False
    return _seconds(getattr(error, "retry_after", None)) <= _LONGEST_WAIT


def _accept(reply: Reply | None, error: Exception | None, decision: RetryDecision[Any] | None) -> Reply:
    if decision is not None and decision.rewrite_error is not None:
        raise decision.rewrite_error from error
    if error is not None:
        raise error
    if reply is None:
        raise AssertionError  # pragma: no cover - there is a reply or an error
    return reply


def _prepare_next(scope: Scope, ask: Ask, decision: RetryDecision[Any]) -> Ask:
    if decision.additional_options:
        ask = ask._replace(options={**ask.options, **decision.additional_options})
    if decision.modified_input_messages is not None:
        messages: History[Any] = History.of(decision.modified_input_messages)
        ask = ask._replace(messages=messages)
        if decision.persist_modified_input_messages:
            tell_rewrite(scope, scope.turn + 1, "should_retry", len(messages))
            scope.history = messages
    return ask


def _delay(config: ModelRetryConfig, decision: RetryDecision[Any], error: Exception | None, attempt: int) -> float:
    if decision.backoff is not None:
        return decision.backoff
    wait = default_backoff(attempt) if config.backoff is None else config.backoff(attempt)
    return max(wait, _seconds(getattr(error, "retry_after", None)))


def _seconds(asked: Any) -> float:
    """Return how long an error asks to be waited for; what is no sound number of seconds asks for nothing."""
    try:
        seconds = 0.0 if isinstance(asked, bool) or asked is None else float(asked)
    except (TypeError, ValueError):
        return 0.0
    return seconds if isfinite(seconds) else 0.0


def default_backoff(attempt: int) -> float:
    """Return how long to wait after attempt number `attempt`: 0.1 s doubling, up to half of it added at random.

    >>> 0.1 <= default_backoff(1) <= 0.15, 10 <= default_backoff(9) <= 15
    (True, True)
    """
    wait = 0.1 * 2 ** (attempt - 1) if attempt <= 7 else 10.0
    return wait + random() * wait / 2  # noqa: S311 - spreads load, keeps no secret


def _tell_retry(
    scope: Scope,
    attempt: int,
    error: Exception | None,
    *,
    reason: Any = None,
    delay: float = 0.0,
    failover: str = "",
) -> None:
    if scope.emitter is not None:
        scope.emitter.send(
            RetryScheduled,
            turn=scope.turn + 1,
            attempt=attempt,
            message_id=_message_id(scope, attempt),
            error=told_error(scope, error),
            reason=reason,
            delay=delay,
            failover=failover,
        )


def _message_id(scope: Scope, attempt: int) -> str:
    again = f"r{scope.resumes}" if scope.resumes else ""
    return f"{scope.address}/{scope.turn + 1}.{attempt}{again}"


async def _attempt(scope: Scope, model: Model[Any], ask: Ask, context: ModelContext, number: int) -> Reply:
    """Ask one model once. What a cut stream had said by then is in `scope.partial`."""
    message_id = _message_id(scope, number)
    emitter = scope.emitter
    if emitter is not None:
        emitter.send(ModelStarted, turn=scope.turn + 1, attempt=number, message_id=message_id, model=name_of(model))
    chain: Model[Any] = Innermost(model, scope)
    frame = current_frame()
    for hook in reversed(scope.spec.stack.wrap_model):
        frame.name = hook.frame
        wrapped = hook.call(chain, context)
        if hasattr(wrapped, "__await__"):
            wrapped = await wrapped
        if wrapped is not None:
            chain = wrapped
    if emitter is not None and not scope.spec.stack.sends_model_events:
        chain = ModelSender(chain, scope)
    request = ModelRequest(
        scope.instruction, ask.messages, ask.tool_infos, ask.options, ask.deferred_tool_infos, message_id
    )
    wire = scope.wire
    deltas: list[Delta] = []
    message, usage = None, None
    stream = _checked(chain.stream(request), model)
    try:
        async for item in stream:
            if isinstance(item, Delta):
                deltas.append(item)
                usage = item.usage or usage
            else:
                if message is not None:  # only the last message is the whole one
                    deltas += wire.deltas(message)
                message = item
    except BaseException:
        scope.partial = wire.join(deltas if message is None else [*deltas, *wire.deltas(message)])
        await close(stream)
        raise
    if message is None:
        scope.partial = wire.join(deltas)
        raise StreamCutError("the model's stream ended before its message was whole: it ends with one whole message")
    if not wire.made_by_model(message):
        raise InputError(
            f"{name_of(model)} replied with {type(message).__name__}; a reply is an assistant message of the "
            f"{wire.name} wire"
        )
    return Reply(message, message_id, wire.usage(message) or usage)


def _checked(stream: Any, model: Model[Any]) -> AsyncIterator[Any]:
    if hasattr(stream, "__aiter__"):
        return stream
    if isinstance(stream, Coroutine):
        stream.close()
    raise ConfigError(
        f"{name_of(model)}.stream, or a wrapper's around it, must be an async generator: yield the message instead of "
        "returning it"
    )
