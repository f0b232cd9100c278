"""Asking a model until there is a reply: failover around retry around one attempt through the ring."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from math import isfinite
from random import random
from typing import Any, NamedTuple, cast

from msgspec.structs import replace

from suture._aio import close, settle
from suture.errors import (
    ComponentCancelledError,
    ConfigError,
    ContextLengthError,
    ContextOverflowError,
    HistoryError,
    InputError,
    RetryExhausted,
    StreamCutError,
)
from suture.events import MessageDelta, MessageFinished, ModelStarted, RetryScheduled
from suture.kernel.config import Callbacks, Component, FailoverContext, ModelRetryConfig, RetryContext, RetryDecision
from suture.kernel.config import notify as notify_callbacks
from suture.kernel.legacy import ModelLayer
from suture.kernel.middleware import ChatModelAgentState, Hook
from suture.kernel.requests import AskModel, Model, ModelRequest, ModelWrapper, Sink, ask, name_of
from suture.kernel.state import FRAME, Execution, is_cancelled
from suture.messages import Delta, History, TokenUsage, ToolInfo
from suture.repair import Follower, is_in_order
from suture.wires import get_wire

_LONGEST_WAIT = 3600.0
"""Who asks to be left alone for longer than this many seconds is not asked again."""
_HOPELESS = (ConfigError, HistoryError, InputError)
"""Errors that would come again: nothing about the request changes by itself."""


class Question(NamedTuple):
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


# --- the ring -------------------------------------------------------------------------------------


class Layer:
    """One `wrap_model_call` in the ring: it knows what stands inside it."""

    __slots__ = ("inner", "owner", "wrap")

    def __init__(self, owner: str, wrap: Callable[..., Any], inner: AskModel) -> None:
        self.owner, self.wrap, self.inner = owner, wrap, inner

    async def __call__(self, request: ModelRequest[Any]) -> Any:
        """Run the wrapper, with the rest of the ring as its `proceed`."""
        frame = FRAME.get()
        before, frame.owner = frame.owner, self.owner
        try:
            reply: Any = self.wrap(request, self.inner)
            return await reply if hasattr(reply, "__await__") else reply
        finally:
            frame.owner = before


class _Innermost:
    """The model itself, inside the ring: it is sent what its provider accepts, and callbacks are called."""

    async def __call__(self, request: ModelRequest[Any]) -> Any:
        """Ask the model."""
        return await ask(await self.model(), request)

    async def model(self) -> Model[Any]:
        """Return the model as the reference's wrappers see it."""
        run = FRAME.get().run
        return _FittedModel(run.asking, run)


def compile_ring(hooks: Sequence[Hook]) -> AskModel:
    """Return the function that sends a request through the ring around the model."""
    inner: Any = _Innermost()
    for hook in reversed(hooks):
        inner = ModelLayer(hook, inner) if hook.method == "wrap_model" else Layer(hook.owner, hook.call, inner)
    return inner


class _FittedModel(ModelWrapper[Any]):
    """A model that is sent a history whose pairing was checked once more, whatever wrappers did to it."""

    def __init__(self, inner: Model[Any], run: Execution) -> None:
        super().__init__(inner)
        self._run = run

    def stream(self, request: ModelRequest[Any], /) -> AsyncIterator[Any]:
        """Ask the model, with what its provider accepts."""
        run, model = self._run, self.inner
        history = History.of(request.messages)
        if not (run.wire.native and is_in_order(run.wire, history)):  # a model of ours fits what it encodes itself
            fit = run.fits.get(id(model))
            if fit is None:
                fit = run.fits[id(model)] = make_fit(run, model)
            messages = fit(history)
            if messages is not request.messages:
                request = replace(request, messages=messages)
        if not run.spec.callbacks:
            return model.stream(request)
        callbacks = [each for each in run.spec.callbacks if "model" in each.kinds]
        return self._notify(request, callbacks) if callbacks else model.stream(request)

    async def _notify(self, request: ModelRequest[Any], callbacks: Sequence[Callbacks]) -> AsyncIterator[Any]:
        about = Component(kind="model", name=name_of(self.inner))
        await notify_callbacks(callbacks, "on_start", about, request)
        whole: Any = None
        stream = self.inner.stream(request)
        try:
            async for item in stream:
                if isinstance(item, Delta):
                    yield item
                else:
                    whole = item
        except BaseException as error:
            await close(stream)
            if isinstance(error, Exception):
                await notify_callbacks(callbacks, "on_error", about, error)
            raise
        await notify_callbacks(callbacks, "on_end", about, whole)
        if whole is not None:
            yield whole


def make_fit(run: Execution, model: Model[Any]) -> Callable[[History[Any]], Sequence[Any]]:
    """Return the fit for one model in one run. It follows the history, so a turn looks only at what is new."""
    native = get_wire(model.wire).native
    follower: Follower | None = None

    def fit(history: History[Any]) -> Sequence[Any]:
        if native and is_in_order(run.wire, history):  # pairing is all there is to see to
            return history
        nonlocal follower
        if follower is None:
            profile = "pairing" if native else model.profile
            follower = Follower(wire=model.wire, profile=profile, language=run.language, **run.spec.fit_options)
        fixed = follower.follow(history)
        unresolved = fixed.unresolved
        if unresolved:
            first = unresolved[0]
            raise HistoryError(
                f"{model.profile} would refuse this history, and {len(unresolved)} of its faults cannot be repaired; "
                f"the first: message {first.index}, {first.problem} ({first.says or 'no rule'})",
                unresolved=unresolved,
            )
        return fixed.messages

    return fit


# --- failover and retry ---------------------------------------------------------------------------


class Turn:
    """One model turn's attempts: what is asked now, and how many attempts there were."""

    def __init__(self, run: Execution, question: Question) -> None:
        self.run, self.question = run, question
        self.number = 0
        """Which attempt is being made; attempts of all models count."""
        self.partial: Any = None
        """What a cut stream had said."""
        self._shortened: Model[Any] | None = None
        """The model that what is asked was made shorter for."""

    async def ask(self) -> Reply:
        """Return the reply of the first model that gives one; the one that works is kept for the rest of the run."""
        failover, run = self.run.spec.failover, self.run
        if failover is None:
            return await self._with_retry(run.model)
        limit = len(failover.models) if failover.max_retries is None else failover.max_retries
        model, tried = run.model, 0
        while True:
            try:
                reply = await self._with_retry(model)
            except Exception as error:
                run.check_stop()
                own = error.__cause__ if isinstance(error, RetryExhausted) else None
                cause = own if isinstance(own, Exception) else error
                about = FailoverContext(
                    attempt=tried + 1, messages=self.question.messages, output=self.partial, error=cause
                )
                chosen = await self._next_model(about) if tried < limit else None
                if chosen is None:
                    raise
                tried += 1
                model, messages = chosen
                self._send_retry(error, failover=name_of(model))
                if messages is not None:
                    self.question = self.question._replace(messages=messages)
            else:
                run.model = model
                return reply

    async def _next_model(self, about: FailoverContext[Any]) -> tuple[Model[Any], Sequence[Any] | None] | None:
        run, failover = self.run, self.run.spec.failover
        if failover is None or isinstance(about.error, ConfigError):
            return None
        if failover.should_failover is not None and not await settle(failover.should_failover(about)):
            return None
        if failover.get_failover_model is None:
            others = [model for model in (run.spec.model, *failover.models) if model is not run.model]
            return (others[about.attempt - 1], None) if about.attempt <= len(others) else None
        chosen = await settle(failover.get_failover_model(about))
        if chosen is None:
            return None
        model, messages = cast("tuple[Model[Any], Any]", chosen if isinstance(chosen, tuple) else (chosen, None))
        if model.wire != run.wire.name:
            raise ConfigError(f"a failover model speaks {model.wire}, and this agent's messages are {run.wire.name}")
        return model, messages

    async def _with_retry(self, model: Model[Any]) -> Reply:
        """Ask one model until an attempt is accepted. What is asked may change on the way."""
        run, config = self.run, self.run.spec.retry
        if config is None:
            return await self._attempt(model)
        number = 0
        while True:
            number += 1
            reply, error = None, None
            try:
                reply = await self._attempt(model)
            except Exception as failure:  # noqa: BLE001 - it is judged below
                error = failure
                run.check_stop()
            question = self.question
            output = reply.message if reply is not None else self.partial
            about = RetryContext(
                attempt=number, messages=question.messages, options=question.options, output=output, error=error
            )
            decision = await _judge(config, about)
            if decision is None or not decision.retry:
                return self._accept(reply, error, decision)
            if reply is not None and reply.usage is not None:
                run.spend(reply.usage)
            if number > config.max_retries:
                self._give_up(number, reply, error, decision)
            self._change_question(decision)
            delay = _delay(config, decision, error, number)
            self._send_retry(error, reason=decision.reject_reason, delay=delay)
            if delay > 0:
                await asyncio.sleep(delay)

    def _give_up(self, number: int, reply: Reply | None, error: Exception | None, decision: RetryDecision[Any]) -> None:
        if reply is not None:  # the reader discards the last rejected message, too
            self._send_retry(None, reason=decision.reject_reason)
        reason = error if error is not None else decision.reject_reason or "the output was rejected"
        raise RetryExhausted(
            f"{number} attempts failed, the last with: {reason}", attempts=number, reject_reason=decision.reject_reason
        ) from error

    def _accept(self, reply: Reply | None, error: Exception | None, decision: RetryDecision[Any] | None) -> Reply:
        if decision is not None and decision.rewrite_error is not None:
            if reply is not None:
                self._send_retry(None, reason=decision.reject_reason)
            raise decision.rewrite_error from error
        if error is not None:
            raise error
        if reply is None:
            raise AssertionError  # pragma: no cover - there is a reply or an error
        return reply

    def _change_question(self, decision: RetryDecision[Any]) -> None:
        run, question = self.run, self.question
        if decision.additional_options:
            question = question._replace(options={**question.options, **decision.additional_options})
        if decision.modified_input_messages is not None:
            messages: History[Any] = History.of(decision.modified_input_messages)
            question = question._replace(messages=messages)
            if decision.persist_modified_input_messages:
                run.tell_rewrite(run.state.turn + 1, "should_retry", len(run.history), len(messages))
                run.history = messages
        self.question = question

    def _send_retry(
        self, error: Exception | None, *, reason: Any = None, delay: float = 0.0, failover: str = ""
    ) -> None:
        run = self.run
        if run.journal is not None:
            run.journal.note_event("retry", run.error_text(error))
        if run.emitter is not None:
            run.emitter.send(
                RetryScheduled,
                turn=run.state.turn + 1,
                attempt=self.number,
                message_id=self._message_id(),
                error=run.error_text(error),
                reason=run.spec.shown(reason),
                delay=delay,
                failover=failover,
            )

    def _message_id(self) -> str:
        run = self.run
        again = f"r{run.state.resumes}" if run.state.resumes else ""
        return f"{run.address}/{run.state.turn + 1}.{self.number}{again}"

    # One attempt

    async def _shorten(self, error: ContextLengthError) -> bool:
        """Make what is asked shorter, for good where it is the history itself; tell whether it is."""
        run, question = self.run, self.question
        if run.spec.shorten is None:
            return False
        state: ChatModelAgentState[Any] = ChatModelAgentState(
            messages=question.messages, tool_infos=question.tool_infos
        )
        try:
            shorter = await run.spec.shorten(state, run.model_context, error)
        except ContextOverflowError:
            if error.limit is not None:
                raise
            return False  # nobody knows the limit: what the provider says says more
        if shorter is None:
            return False
        self._send_retry(error)
        messages: History[Any] = History.of(shorter.messages)
        if question.messages is run.history:
            run.tell_rewrite(run.state.turn + 1, "Compaction", len(run.history), len(messages), shorter.report)
            run.history = messages
        self.question = question._replace(messages=messages)
        return True

    async def _attempt(self, model: Model[Any]) -> Reply:
        """Ask one model once, and where it says "too long" once more. What a cut stream had said is in `partial`."""
        self.number += 1
        self.partial = None
        run, question, message_id = self.run, self.question, self._message_id()
        if run.emitter is not None:
            run.emitter.send(
                ModelStarted,
                turn=run.state.turn + 1,
                attempt=self.number,
                message_id=message_id,
                model=name_of(model),
            )
        frame = FRAME.get()
        frame.owner = "model"
        run.asking = model
        if run.model_context.tools is not question.tool_infos:
            run.model_context = replace(run.model_context, tools=question.tool_infos)
        frame.sender = _Sender(run, message_id) if run.emitter is not None else None
        root: Any = _RootSink(frame.sender if not run.spec.stack.sends_model_events else None)
        request = ModelRequest(
            run.instruction,
            question.messages,
            question.tool_infos,
            question.options,
            question.deferred_tool_infos,
            message_id,
            root,
        )
        try:
            message = await self._go_through_ring(model, request, root)
        except ContextLengthError as error:
            if self._shortened is model or not await self._shorten(error):
                raise
            self._shortened = model
            return await self._attempt(model)
        if frame.sender is not None and not run.spec.stack.sends_model_events:
            frame.sender.finished(message, root.usage)
        return Reply(message, message_id, run.wire.usage(message) or root.usage)

    async def _go_through_ring(self, model: Model[Any], request: ModelRequest[Any], root: "_RootSink") -> Any:
        """Return the whole message that comes out of the ring."""
        run = self.run
        try:
            message = await run.spec.rings["model"](request)
        except asyncio.CancelledError as error:
            self.partial = run.wire.join(root.deltas)
            if is_cancelled(run):
                raise
            raise ComponentCancelledError(
                f"something of {name_of(model)}'s own was cancelled, though nobody cancelled the run"
            ) from error
        except BaseException:
            self.partial = run.wire.join(root.deltas)
            raise
        if message is None:
            self.partial = run.wire.join(root.deltas)
            raise StreamCutError(
                "the model's stream ended before its message was whole: it ends with one whole message"
            )
        if not run.wire.made_by_model(message):
            raise InputError(
                f"{name_of(model)} replied with {type(message).__name__}; a reply is an assistant message of the "
                f"{run.wire.name} wire"
            )
        return message


class _RootSink:
    """The outermost sink of a model: it keeps the deltas in case the stream is cut, and emits them."""

    __slots__ = ("_sender", "deltas")

    def __init__(self, sender: "_Sender | None") -> None:
        self._sender = sender
        self.deltas: list[Delta] = []

    @property
    def usage(self) -> TokenUsage | None:
        """What the deltas say that the reply cost."""
        return next((delta.usage for delta in reversed(self.deltas) if delta.usage is not None), None)

    async def open(self) -> None:
        """Begin; what was written before is void."""
        self.deltas = []

    async def write(self, delta: Delta, /) -> None:
        """Keep a delta, and emit it; wait while the reader is behind."""
        self.deltas.append(delta)
        if self._sender is not None:
            await self._sender.delta(delta)

    async def close(self) -> None:
        """End."""


class _Sender:
    """Sends the events of one attempt."""

    def __init__(self, run: Execution, message_id: str) -> None:
        self._run, self._message_id = run, message_id

    async def delta(self, delta: Delta) -> None:
        """Send a delta; wait while the reader is behind."""
        run = self._run
        emitter = run.emitter
        if emitter is not None and run.state.streaming:
            shown = run.spec.shown(delta)
            emitter.send(MessageDelta, turn=run.state.turn + 1, message_id=self._message_id, delta=shown)
            if emitter.is_behind:
                await emitter.buffer.wait_for_room()

    def finished(self, message: Any, usage: TokenUsage | None = None) -> None:
        """Send the whole message."""
        run = self._run
        shown = run.spec.shown(message)
        if run.emitter is not None:
            run.emitter.send(
                MessageFinished,
                turn=run.state.turn + 1,
                message_id=self._message_id,
                message=shown,
                text=run.wire.text(shown),
                usage=run.wire.usage(message) or usage,
            )

    def around(self, outer: Sink | None) -> "_SendingSink":
        """Return a sink that sends what passes through it to `outer`."""
        return _SendingSink(self, outer)


class _SendingSink(_RootSink):
    """Sends deltas from where a middleware of the list stands."""

    __slots__ = ("_outer",)

    def __init__(self, sender: _Sender, outer: Any) -> None:
        super().__init__(sender)
        self._outer = outer

    async def open(self) -> None:
        """Begin."""
        await self._outer.open()

    async def write(self, delta: Delta, /) -> None:
        """Send a delta, and pass it on."""
        await super().write(delta)
        await self._outer.write(delta)

    async def close(self) -> None:
        """End."""
        await self._outer.close()


# --- what an attempt is worth ---------------------------------------------------------------------


async def _judge(config: ModelRetryConfig, about: RetryContext[Any]) -> RetryDecision[Any] | None:
    if config.should_retry is None:
        return RetryDecision(retry=about.error is not None and _can_help(about.error))
    decision = await settle(config.should_retry(about))
    return RetryDecision(retry=decision) if isinstance(decision, bool) else decision


def _can_help(error: Exception) -> bool:
    """Tell whether to try again can help against `error`."""
    if isinstance(error, _HOPELESS) or not getattr(error, "retryable", True):
        return False
    return _seconds(getattr(error, "retry_after", None)) <= _LONGEST_WAIT


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
