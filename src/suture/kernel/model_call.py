"""The model turn: failover around retries around one attempt through the ring."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from suture._aio import LOG, close, settle
from suture.errors import (
    ComponentCancelledError,
    ConfigError,
    ContextLengthError,
    ContextOverflowError,
    HistoryError,
    InputError,
    RetryExhausted,
    RunError,
    StreamCutError,
)
from suture.events import MessageDelta, MessageFinished, ModelStarted, RetryScheduled
from suture.kernel.config import Callbacks, Component, FailoverContext, RetryContext, RetryDecision
from suture.kernel.config import notify as notify_callbacks
from suture.kernel.middleware import ChatModelAgentState, ModelContext
from suture.kernel.requests import Collector, Model, ModelRequest, ModelWrapper, Sink, name_of
from suture.kernel.retries import can_help, wait_after
from suture.kernel.run_state import subtract_usage
from suture.kernel.state import LIMIT, Execution, describe_error, get_frame, is_cancelled
from suture.messages import Delta, History, TokenUsage, ToolInfo
from suture.repair import Follower, is_in_order

_CUT = "the model's stream ended before its message was complete; stream() must yield that message last"


async def ask(model: Model[Any], request: ModelRequest[Any]) -> Any:
    """Ask a model, put its deltas into the request's sink, and return its whole message."""
    return await read_reply(model, model.stream(request), request.sink)


async def read_reply(model: Model[Any], stream: Any, sink: Sink | None) -> Any:
    """Read a model's stream: put its deltas into the sink, and return its whole message."""
    if not hasattr(stream, "__aiter__"):
        if hasattr(stream, "close"):
            stream.close()
        raise ConfigError(
            f"{name_of(model)}.stream, or a wrapper's around it, must be an async generator: yield the message instead "
            "of returning it"
        )
    message: Any = None
    is_fresh = sink.__class__ is Collector and not sink.pieces  # pyright: ignore[reportAttributeAccessIssue, reportOptionalMemberAccess, reportUnknownMemberType] - most are: it need not be told
    try:
        if sink is not None and not is_fresh:
            await sink.open()
        async for item in stream:
            if message is not None:
                raise InputError(  # noqa: TRY301
                    f"{name_of(model)} yielded more after its message: a stream is deltas, then exactly one message"
                )
            if not isinstance(item, Delta):
                message = item
            elif sink is not None:
                await sink.write(item)
    except BaseException:
        await close(stream)
        raise
    if sink is not None and not is_fresh:
        await sink.close()
    if message is None:
        raise StreamCutError(_CUT)
    return message


def accept(run: Execution, model: Model[Any], message: Any, known: int) -> Any:
    """Return the reply of a model, which must be a message of the run's wire; there were `known` replies before."""
    if not run.wire.made_by_model(message):
        raise InputError(
            f"{name_of(model)} replied with {type(message).__name__}; a reply is an assistant message of the "
            f"{run.wire.name} wire"
        )
    if len(run.replies) == known:
        run.replies.append(message)
    return message


class AskedModel:
    """The model at the centre of the ring: it gets what its provider accepts, and callbacks are called."""

    async def __call__(self, request: ModelRequest[Any]) -> Any:
        """Ask the model."""
        run = get_frame().run
        message = await read_reply(run.asking, _send(run, run.asking, request), request.sink)
        return accept(run, run.asking, message, len(run.replies))

    async def model(self) -> Model[Any]:
        """Return the model in the form that the reference's wrappers take."""
        run = get_frame().run
        return _FittedModel(run.asking, run)


class _FittedModel(ModelWrapper[Any]):
    """A model that gets a history whose pairing was checked once more, because wrappers may have changed it."""

    def __init__(self, inner: Model[Any], run: Execution) -> None:
        super().__init__(inner)
        self._run = run

    def stream(self, request: ModelRequest[Any], /) -> AsyncIterator[Any]:
        """Send the model what its provider accepts."""
        return _send(self._run, self.inner, request)


def _send(run: Execution, model: Model[Any], request: ModelRequest[Any]) -> AsyncIterator[Any]:
    """Send a model what its provider accepts, and return its stream."""
    messages: Any = request.messages
    follower = run.fits.get(id(model)) if messages.__class__ is History else None
    if follower is not None:
        is_fit = follower.passes(messages)
    else:
        is_fit = run.wire.native and messages.__class__ is History and messages.log.whole >= messages.length
    if not is_fit:
        messages = _fit(run, model, History.of(messages))
    if messages is not request.messages:
        request = replace(request, messages=messages)
    callbacks = run.spec.callbacks
    if callbacks:
        callbacks = [each for each in callbacks if "model" in each.kinds]
    return _notify(model, request, callbacks) if callbacks else model.stream(request)


async def _notify(model: Model[Any], request: ModelRequest[Any], callbacks: Sequence[Callbacks]) -> AsyncIterator[Any]:
    about = Component(kind="model", name=name_of(model))
    await notify_callbacks(callbacks, "on_start", about, request)
    whole: Any = None
    stream = model.stream(request)
    try:
        async for item in stream:
            if isinstance(item, Delta):
                yield item
            else:
                whole = item
        if whole is None:
            raise StreamCutError(_CUT)  # noqa: TRY301 - callbacks are told of it like of any other
    except BaseException as error:
        await close(stream)
        if isinstance(error, Exception):
            await notify_callbacks(callbacks, "on_error", about, error)
        raise
    await notify_callbacks(callbacks, "on_end", about, whole)
    yield whole


def _fit(run: Execution, model: Model[Any], history: History[Any]) -> Sequence[Any]:
    """Return the form of a history that may be sent. A `Follower` keeps track, so a turn only looks at new messages."""
    native = run.wire.native
    if native and is_in_order(run.wire, history):  # our own models encode and fit it themselves
        return history
    follower = run.fits.get(id(model))
    if follower is None:
        profile = "pairing" if native else model.profile
        follower = Follower(wire=model.wire, profile=profile, language=run.language, **run.spec.fit_options)
        run.fits[id(model)] = follower
    fixed = follower.follow(history)
    unresolved = fixed.unresolved if fixed.report.findings else ()
    if unresolved:
        first = unresolved[0]
        raise HistoryError(
            f"{model.profile} would refuse this history, and {len(unresolved)} of its faults cannot be repaired; "
            f"the first: message {first.index}, {first.problem} ({first.says or 'no rule'})",
            unresolved=unresolved,
        )
    return fixed.messages


def make_model_context(run: Execution, turn: int, tools: tuple[ToolInfo, ...]) -> ModelContext:
    """Return the context of a model turn, for hooks."""
    return ModelContext(
        tools=tools,
        model_retry_config=run.spec.retry,
        failover=run.spec.failover,
        turn=turn,
        wire=run.wire.name,
        last_usage=run.state.last_usage,
        instruction=run.instruction,
    )


# --- failover and retry ---------------------------------------------------------------------------


class Turn(msgspec.Struct, eq=False):
    """The attempts of one model turn: the current request, and the number of attempts."""

    run: Execution
    messages: Sequence[Any]
    tool_infos: tuple[ToolInfo, ...]
    deferred_tool_infos: tuple[ToolInfo, ...]
    options: Mapping[str, Any]
    number: int = 0
    """The number of the current attempt, counting those of all models."""
    message_id: str = ""
    """The id of the reply in events."""
    usage: TokenUsage | None = None
    """The usage of the reply."""
    partial: Any = None
    """What a cut stream said before the cut."""
    shortened: Any = None
    """The model for which the request was shortened."""

    async def ask(self, reply: Any, error: Exception | None) -> Any:
        """Return the reply that counts, after an attempt that ended with `reply` or `error`.

        Each model is asked until an attempt is accepted, then the next one; that which works is kept for the run.
        """
        run, failover = self.run, self.run.spec.failover
        if failover is None:
            return await self._ask_again(run.model, reply, error)
        limit = len(failover.models) if failover.max_retries is None else failover.max_retries
        model, tried, failures = run.model, 0, list[str]()
        while True:
            try:
                reply = await self._ask_again(model, reply, error)
            except Exception as failure:
                run.check_stop()
                own = failure.__cause__ if isinstance(failure, RetryExhausted) else None
                cause = own if isinstance(own, Exception) else failure
                about = FailoverContext(attempt=tried + 1, messages=self.messages, output=self.partial, error=cause)
                chosen = await self._next_model(about) if tried < limit else None
                if chosen is None:
                    for told in failures:
                        failure.add_note(told)
                    raise
                tried += 1
                failures.append(f"before it, {name_of(model)} failed with {describe_error(failure)}")
                model, messages = chosen
                self._send_retry(failure, failover=name_of(model))
                if messages is not None:
                    self.messages = messages
            else:
                run.model = model
                return reply
            reply, error = await self._try(model)

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

    async def _try(self, model: Model[Any]) -> tuple[Any, Exception | None]:
        """Ask a model once; return its reply, or its error."""
        try:
            return await self.attempt(model), None
        except Exception as error:  # noqa: BLE001 - it is judged
            return None, error

    async def _ask_again(self, model: Model[Any], reply: Any, error: Exception | None) -> Any:
        """Judge an attempt, and ask the model again until one is accepted; the request may change in between."""
        run, config, number = self.run, self.run.spec.retry, 0
        while True:
            number += 1
            if error is not None:
                run.check_stop()
            decision = await self._judge(number, reply, error)
            if config is None or (not decision.retry and decision.rewrite_error is None):
                if error is not None:
                    raise _counted(error, number)
                return reply
            if reply is not None and self.usage is not None:
                run.spend(self.usage)
            if not decision.retry or number > config.max_retries:
                if reply is not None:  # the reader discards the last rejected message, too
                    self._send_retry(None, reason=decision.reject_reason)
                raise self._failure(number, error, decision) from error
            self._change_question(decision)
            delay = wait_after(config, number, error) if decision.backoff is None else decision.backoff
            LOG.info("%s", _describe_retry(model, number, error, decision.reject_reason, delay))
            self._send_retry(error, reason=decision.reject_reason, delay=delay)
            if delay > 0:
                await asyncio.sleep(delay)
            reply, error = await self._try(model)

    async def _judge(self, number: int, reply: Any, error: Exception | None) -> RetryDecision[Any]:
        """Return what the agent's retries say of an attempt."""
        config = self.run.spec.retry
        if config is None or config.should_retry is None:
            return RetryDecision(retry=config is not None and error is not None and can_help(config, number, error))
        output = self.partial if reply is None else reply
        about = RetryContext(attempt=number, messages=self.messages, options=self.options, output=output, error=error)
        judged = await settle(config.should_retry(about))
        return RetryDecision(retry=bool(judged)) if judged is None or isinstance(judged, bool) else judged

    def _failure(self, number: int, error: Exception | None, decision: RetryDecision[Any]) -> Exception:
        if not decision.retry and decision.rewrite_error is not None:
            return decision.rewrite_error
        reason = error if error is not None else decision.reject_reason or "the output was rejected"
        said = f"{number} attempts failed, the last with: {reason}"
        return RetryExhausted(said, attempts=number, reject_reason=decision.reject_reason)

    def _change_question(self, decision: RetryDecision[Any]) -> None:
        run = self.run
        if decision.additional_options:
            self.options = {**self.options, **decision.additional_options}
        if decision.modified_input_messages is not None:
            self.messages = messages = History.of(decision.modified_input_messages)
            if decision.persist_modified_input_messages:
                run.tell_rewrite(run.state.turn + 1, "should_retry", len(run.history), len(messages))
                run.history = messages

    def _send_retry(
        self, error: Exception | None, *, reason: Any = None, delay: float = 0.0, failover: str = ""
    ) -> None:
        """Announce that what came so far does not count; so it does not stay in the history either."""
        run, self.partial = self.run, None
        if run.journal is not None:
            run.journal.note_event("retry", run.error_text(error))
        if run.emitter is not None:
            run.emitter.send(
                RetryScheduled,
                turn=run.state.turn + 1,
                attempt=self.number,
                message_id=self.message_id,
                error=run.error_text(error),
                reason=run.spec.shown(reason),
                delay=delay,
                failover=failover,
            )

    # The events of an attempt

    def retried(self) -> None:
        """Announce that a wrapper asks again, so that readers discard the deltas of this attempt."""
        self._send_retry(None, reason="a wrapper asks again")

    async def piece(self, delta: Delta) -> None:
        """Send a delta if pieces are wanted; wait while the reader is behind."""
        run, emitter = self.run, self.run.emitter
        if emitter is not None and run.state.streaming:
            shown = run.spec.shown(delta)
            emitter.send(MessageDelta, turn=run.state.turn + 1, message_id=self.message_id, delta=shown)
            if len(emitter.buffer.items) > LIMIT:
                await emitter.buffer.wait_for_room()

    def finished(self, message: Any, usage: TokenUsage | None) -> None:
        """Send the whole message."""
        run = self.run
        if run.emitter is not None:
            shown = run.spec.shown(message)
            run.emitter.send(
                MessageFinished,
                turn=run.state.turn + 1,
                message_id=self.message_id,
                message=shown,
                text=run.wire.text(shown),
                usage=run.wire.usage(message) or usage,
            )

    # One attempt

    async def _shorten(self, error: ContextLengthError) -> bool:
        """Shorten the request, permanently if it is the history itself; return whether it is shorter now."""
        run = self.run
        if run.spec.shorten is None:
            return False
        state: ChatModelAgentState[Any] = ChatModelAgentState(messages=self.messages, tool_infos=self.tool_infos)
        try:
            shorter = await run.spec.shorten(state, make_model_context(run, run.state.turn + 1, self.tool_infos), error)
        except ContextOverflowError as overflow:
            if error.limit is not None and (error.tokens or 0) > error.limit:
                facts = overflow.what, overflow.tokens, overflow.limit
                raise ContextOverflowError(*facts, index=overflow.index, refusal=error.reason) from error
            return False  # the provider did not count both, so sizes would be guesses; its own error says more
        if shorter is None:
            return False
        self._send_retry(error)
        messages: History[Any] = History.of(shorter.messages)
        if self.messages is run.history:
            run.tell_rewrite(run.state.turn + 1, "Compaction", len(run.history), len(messages), shorter.report)
            run.history = messages
        self.messages = messages
        return True

    async def attempt(self, model: Model[Any]) -> Any:
        """Ask one model once, and once more if the request was too long. `partial` keeps what a cut stream said."""
        run = self.run
        wire, turn, frame = run.wire, run.state.turn + 1, get_frame()
        self.number += 1
        if self.partial is not None:
            self.partial = None
        again = f"r{run.state.resumes}" if run.state.resumes else ""
        self.message_id = message_id = f"{run.address}/{turn}.{self.number}{again}"
        run.asking, run.sent_infos = model, self.tool_infos
        frame.turn, frame.spot, frame.owner, sender = turn, "model", "model", None
        if run.emitter is not None:
            run.emitter.send(ModelStarted, turn=turn, attempt=self.number, message_id=message_id, model=name_of(model))
            frame.sender = sender = self
        emits = not run.spec.stack.sends_model_events
        root = Collector(sender, emits, False)  # noqa: FBT003 - by place, it is faster
        run.replies = []
        infos, deferred, wants_pieces = self.tool_infos, self.deferred_tool_infos, run.state.streaming
        request = ModelRequest(
            run.instruction, self.messages, infos, self.options, deferred, message_id, root, wants_pieces
        )
        try:
            message = await run.spec.rings["model"](request)
        except BaseException as error:
            self.partial = wire.join(root.pieces)
            if isinstance(error, ContextLengthError) and self.shortened is not model and await self._shorten(error):
                self.shortened = model
                return await self.attempt(model)
            if isinstance(error, asyncio.CancelledError) and not is_cancelled(run):
                raise ComponentCancelledError(
                    f"{name_of(model)}, or a wrapper around it, cancelled its own work, though nobody cancelled the run"
                ) from error
            if isinstance(error, Exception):
                self._spend_rest(None)
            raise
        spent: TokenUsage | None = None
        for delta in root.pieces:
            spent = delta.usage or spent
        if sender is not None and emits:
            sender.finished(message, spent)
        self.usage = wire.usage(message) or spent
        if len(run.replies) != 1 or run.replies[0] is not message:
            self._spend_rest(self.usage)
        return message

    def _spend_rest(self, counted: TokenUsage | None) -> None:
        """Count replies that wrappers did not pass on, because they asked twice, changed a reply or refused it."""
        total, run = TokenUsage(), self.run
        for reply in run.replies:
            total = total + (run.wire.usage(reply) or TokenUsage())
        rest = subtract_usage(total, TokenUsage() + (counted or TokenUsage()))
        if rest != TokenUsage():
            run.spend(rest)


def _counted(error: Exception, attempts: int) -> Exception:
    """Return the error of the last attempt, which says how many there were."""
    if attempts > 1:
        if isinstance(error, RunError):
            error.attempts = attempts
        else:
            error.add_note(f"{attempts} attempts failed")
    return error


def _describe_retry(model: Model[Any], number: int, error: Exception | None, reason: Any, delay: float) -> str:
    why = describe_error(error) if error is not None else f"its reply was rejected ({reason})"
    return f"{name_of(model)}: attempt {number} failed: {why}; the next in {delay:.1f} s"
