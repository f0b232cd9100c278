"""The reference's checklist, rows R: retry and failover."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest

from suture import (
    ChatModelAgent,
    ChatModelAgentMiddleware,
    FailoverContext,
    Message,
    ModelFailoverConfig,
    ModelRequest,
    ModelRequestError,
    ModelRetryConfig,
    ModelWrapper,
    Outcome,
    RetryContext,
    RetryDecision,
    RetryExhausted,
    TokenUsage,
    interrupt,
    replace,
    tool,
)
from suture.events import MessageDelta, MessageFinished, ModelStarted, RetryScheduled
from suture.messages import ResponseMeta
from suture.stores import MemoryStore
from suture.testing import ScriptedModel
from tests.agent.conformance.virtual_time import run_at_once
from tests.agent.lifecycle.recording import collect
from tests.agent.lifecycle.speech import WIRES, Speech, wire_name

every_wire = pytest.mark.parametrize("speech", WIRES, ids=wire_name)


@tool
async def look() -> str:
    """Look."""
    return "seen"


def of(events: list[Any], kind: type) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def judged(*decisions: RetryDecision[Any] | None) -> tuple[ModelRetryConfig, list[RetryContext[Any]]]:
    """Return a retry that decides like this, and what it was given."""
    given: list[RetryContext[Any]] = []

    def should_retry(context: RetryContext[Any]) -> RetryDecision[Any] | None:
        given.append(context)
        return decisions[len(given) - 1] if len(given) <= len(decisions) else None

    return ModelRetryConfig(should_retry=should_retry, backoff=lambda _attempt: 0), given


@every_wire
def test_r2_a_rejected_stream_is_marked_with_attempt_and_reason_and_an_accepted_one_ends_cleanly(speech: Speech):
    retry, given = judged(RetryDecision(retry=True, reject_reason={"code": "too short"}))
    model = ScriptedModel(["no", "a long answer"], speech.wire, chunk_size=2)
    events, result = asyncio.run(collect(ChatModelAgent(model=model, model_retry_config=retry).stream("go")))
    first, second = [event.message_id for event in of(events, ModelStarted)]
    (marker,) = of(events, RetryScheduled)
    assert (marker.message_id, marker.attempt, marker.reason) == (first, 1, {"code": "too short"})
    assert first != second
    place = events.index(marker)
    assert all(event.sequence < place for event in of(events, MessageDelta) if event.message_id == first)
    assert of(events, MessageFinished)[-1].message_id == second
    assert [(context.attempt, context.output) for context in given] == [
        (1, speech.says("no")),
        (2, speech.says("a long answer")),
    ]
    assert result.output == "a long answer"


@every_wire
def test_r2_a_cut_stream_is_judged_with_its_error_and_what_it_had_said(speech: Speech):
    retry, given = judged(RetryDecision(retry=False))
    model = ScriptedModel(["a long answer"], speech.wire, chunk_size=2, cut_after=3)
    run = ChatModelAgent(model=model, model_retry_config=retry).stream("go")

    async def main() -> None:
        with pytest.raises(ConnectionError, match="the stream was cut"):
            await run.result()

    asyncio.run(main())
    assert given[0].output == speech.says("a long")
    assert isinstance(given[0].error, ConnectionError)


@every_wire
def test_r2_the_last_attempt_is_not_marked_and_its_exception_is_the_cause(speech: Speech):
    model = ScriptedModel([TimeoutError("one"), TimeoutError("two"), TimeoutError("three")], speech.wire)
    agent = ChatModelAgent(model=model, model_retry_config=ModelRetryConfig(max_retries=2, backoff=lambda _attempt: 0))
    run, events = agent.stream("go"), []

    async def main() -> RetryExhausted:
        with pytest.raises(RetryExhausted) as raised:  # noqa: PT012 - reading or awaiting may raise
            async for event in run:
                events.append(event)  # noqa: PERF401 - what came before the error counts
            await run.result()
        return raised.value

    error = asyncio.run(main())
    assert error.attempts == 3
    assert isinstance(error.__cause__, TimeoutError)
    assert str(error.__cause__) == "three"
    assert [event.error for event in of(events, RetryScheduled)] == ["TimeoutError: one", "TimeoutError: two"]


@every_wire
@pytest.mark.parametrize("cause", [None, TimeoutError("slow")], ids=["output", "error"])
def test_r2_a_decision_may_turn_an_output_or_an_error_into_another_error(cause: Exception | None, speech: Speech):
    retry, _ = judged(RetryDecision(rewrite_error=PermissionError("refused")))
    model = ScriptedModel(["fine" if cause is None else cause], speech.wire)
    run = ChatModelAgent(model=model, model_retry_config=retry).stream("go")

    async def main() -> None:
        with pytest.raises(PermissionError, match="refused"):
            await run.result()

    asyncio.run(main())
    assert run.final_result is not None
    assert run.final_result.messages == [speech.user("go")]


@pytest.mark.parametrize(
    ("way", "asked"),
    [("rejects", 1), ("raises", 2), ("asks twice", 2), ("answers anew", 1), ("sums up", 2), ("passes", 1)],
)
@pytest.mark.parametrize("outside", [False, True])
def test_every_reply_that_a_model_gave_is_counted_whatever_becomes_of_it(way: str, asked: int, outside: bool):
    cost = TokenUsage(prompt_tokens=2, completion_tokens=3, total_tokens=5)
    reply = Message("assistant", "fine", response_meta=ResponseMeta(usage=cost))

    class Wrapper(ChatModelAgentMiddleware[Any]):
        async def wrap_model_call(self, request: Any, proceed: Any) -> Any:
            said = await proceed(request)
            if way == "raises":
                raise ValueError("not good enough")
            if way == "asks twice":
                await proceed(request)
            if way == "sums up":
                both = TokenUsage(prompt_tokens=4, completion_tokens=6, total_tokens=10)
                return replace(await proceed(request), response_meta=ResponseMeta(usage=both))
            return Message.assistant("anew") if way == "answers anew" else said

    class Around(ChatModelAgentMiddleware[Any]):
        def wrap_model(self, model: Any, model_context: Any) -> Any:
            return ModelWrapper(model)

    refuse = RetryDecision[Any](rewrite_error=ValueError("refused"))
    retry = ModelRetryConfig(
        max_retries=1,
        should_retry=lambda context: refuse if way == "rejects" else context.error is not None,
        backoff=lambda _: 0,
    )
    middlewares = [Around(), Wrapper()] if outside else [Wrapper()]
    run = ChatModelAgent(
        model=ScriptedModel(lambda _: reply), middlewares=middlewares, model_retry_config=retry
    ).stream("go")

    async def main() -> None:
        with contextlib.suppress(ValueError, RetryExhausted):
            await run.result()

    asyncio.run(main())
    assert run.final_result is not None
    assert run.final_result.usage.total_tokens == 5 * asked


@every_wire
@pytest.mark.parametrize("ending", ["exhausted", "another error"])
def test_r2_every_rejected_message_is_taken_back_also_the_last_one(ending: str, speech: Speech):
    rejected = RetryDecision[Any](retry=True, reject_reason="bad")
    refused = RetryDecision[Any](rewrite_error=RetryExhausted("refused", attempts=2))
    last = rejected if ending == "exhausted" else refused
    decisions = iter([rejected, last])
    retry = ModelRetryConfig(max_retries=1, should_retry=lambda _: next(decisions), backoff=lambda _attempt: 0)
    run = ChatModelAgent(model=ScriptedModel(lambda _: "bad", speech.wire), model_retry_config=retry).stream("go")
    shown: dict[str, str] = {}

    async def main() -> None:
        with pytest.raises(RetryExhausted):  # noqa: PT012 - reading raises at its end
            async for event in run:
                if isinstance(event, MessageFinished):
                    shown[event.message_id] = event.text
                if isinstance(event, RetryScheduled):
                    del shown[event.message_id]

    asyncio.run(main())
    assert shown == {}
    assert run.final_result is not None
    assert run.final_result.messages == [speech.user("go")]


def test_r2_the_reason_of_a_rejection_is_redacted_in_its_event():
    retry, _ = judged(RetryDecision(retry=True, reject_reason="the key hunter2 is in it"))

    def redact(value: Any) -> Any:
        return value.replace("hunter2", "*") if isinstance(value, str) else value

    agent = ChatModelAgent(model=ScriptedModel(["one", "two"]), model_retry_config=retry, redact=redact)
    events, _ = asyncio.run(collect(agent.stream("go")))
    assert [event.reason for event in of(events, RetryScheduled)] == ["the key * is in it"]


@every_wire
@pytest.mark.parametrize("persist", [True, False])
def test_r3_a_rewrite_of_the_input_becomes_history_only_if_it_is_to_last(persist: bool, speech: Speech):
    short = [speech.user("in short")]
    retry, given = judged(
        RetryDecision(retry=True, modified_input_messages=short, persist_modified_input_messages=persist)
    )
    model = ScriptedModel([TimeoutError("too long"), speech.calls(("c1", "look", "{}")), "done"], speech.wire)
    _, result = asyncio.run(collect(ChatModelAgent(model=model, tools=[look], model_retry_config=retry).stream("go")))
    kept = short if persist else [speech.user("go")]
    turn = [speech.calls(("c1", "look", "{}")), speech.result("c1", "look", "seen")]
    assert [request.messages for request in model.requests] == [[speech.user("go")], short, [*kept, *turn]]
    assert [context.messages for context in given[:2]] == [[speech.user("go")], short]
    assert result.messages == [*kept, *turn, speech.says("done")]


@every_wire
def test_r4_options_add_up_within_a_turn_and_are_forgotten_after_it(speech: Speech):
    retry, given = judged(
        RetryDecision(retry=True, additional_options={"max_tokens": 100}),
        RetryDecision(retry=True, additional_options={"temperature": 1}),
    )
    model = ScriptedModel(["no", "no", speech.calls(("c1", "look", "{}")), "done"], speech.wire)
    agent = ChatModelAgent(model=model, tools=[look], model_retry_config=retry)
    asyncio.run(collect(agent.stream("go", options={"temperature": 0})))
    options = [
        {"temperature": 0},
        {"temperature": 0, "max_tokens": 100},
        {"temperature": 1, "max_tokens": 100},
        {"temperature": 0},
    ]
    assert [dict(request.options) for request in model.requests] == options
    assert [dict(context.options) for context in given] == options


class Asking(ModelWrapper[Any]):
    """A model that must be approved."""

    async def stream(self, request: ModelRequest[Any], /) -> AsyncIterator[Any]:
        await interrupt("may it be asked?")
        async for piece in self.inner.stream(request):
            yield piece


@every_wire
def test_r5_an_interrupt_is_neither_retried_nor_failed_over(speech: Speech):
    class Approving(ChatModelAgentMiddleware[Any]):
        def wrap_model(self, model: Any, model_context: Any) -> Any:
            return Asking(model)

    judged_errors: list[Any] = []
    other = ScriptedModel(["from the other"], speech.wire)
    model = ScriptedModel(["done"], speech.wire)
    agent = ChatModelAgent(
        model=model,
        middlewares=[Approving()],
        model_retry_config=ModelRetryConfig(should_retry=lambda context: judged_errors.append(context.error)),
        failover=ModelFailoverConfig(models=[other]),
        checkpoint_store=MemoryStore(),
    )

    async def main() -> tuple[Any, Any]:
        events, first = await collect(agent.stream("go", checkpoint_id="one"))
        assert first.outcome is Outcome.INTERRUPTED
        assert judged_errors == []
        assert of(events, RetryScheduled) == []
        return first, await agent.resume("one", answers={first.interrupts[0].id: True})

    _, result = asyncio.run(main())
    assert result.output == "done"
    assert other.requests == []


@every_wire
def test_r5_a_cancellation_is_neither_retried_nor_failed_over(speech: Speech):
    async def main() -> None:
        asked = asyncio.Event()

        async def hang(_messages: Any) -> Any:
            asked.set()
            await asyncio.Event().wait()

        judged_errors: list[Any] = []
        model, other = ScriptedModel([hang, "again"], speech.wire), ScriptedModel(["other"], speech.wire)
        run = ChatModelAgent(
            model=model,
            model_retry_config=ModelRetryConfig(should_retry=lambda context: judged_errors.append(context.error)),
            failover=ModelFailoverConfig(models=[other]),
        ).stream("go")
        reading = asyncio.create_task(collect(run))
        await asked.wait()
        result = await run.cancel()
        await reading
        assert result.outcome is Outcome.CANCELLED
        assert len(model.requests) == 1
        assert other.requests == judged_errors == []

    asyncio.run(main())


@every_wire
def test_r6_every_candidate_has_the_whole_retry_budget_and_the_one_that_works_is_kept_within_the_run(speech: Speech):
    slow = TimeoutError("slow")
    asked = speech.calls(("c1", "look", "{}"))
    first = ScriptedModel([slow, slow, slow, "back again"], speech.wire)
    second = ScriptedModel([slow, slow, slow], speech.wire)
    third = ScriptedModel([slow, slow, asked, "done"], speech.wire)
    errors: list[tuple[int, str]] = []

    def should_failover(context: FailoverContext[Any]) -> bool:
        errors.append((context.attempt, type(context.error).__name__))
        return True

    agent = ChatModelAgent(
        model=first,
        tools=[look],
        model_retry_config=ModelRetryConfig(max_retries=2, backoff=lambda _attempt: 0),
        failover=ModelFailoverConfig(models=[second, third], should_failover=should_failover),
    )
    _, result = asyncio.run(collect(agent.stream("go")))
    assert [len(model.requests) for model in (first, second, third)] == [3, 3, 4]
    assert errors == [(1, "TimeoutError"), (2, "TimeoutError")]
    assert result.output == "done"
    _, again = asyncio.run(collect(agent.stream("go")))
    assert again.output == "back again"


@every_wire
def test_r6_a_failover_may_be_chosen_with_other_messages_and_when_all_fail_the_last_error_is_raised(speech: Speech):
    chosen = ScriptedModel([OSError("third")], speech.wire)
    given: list[FailoverContext[Any]] = []

    def choose(context: FailoverContext[Any]) -> Any:
        given.append(context)
        return (chosen, [speech.user("in short")]) if context.attempt == 1 else None

    agent = ChatModelAgent(
        model=ScriptedModel([TimeoutError("first")], speech.wire),
        failover=ModelFailoverConfig(get_failover_model=choose, max_retries=5),
    )

    async def main() -> None:
        with pytest.raises(OSError, match="third"):
            await agent.run("go")

    asyncio.run(main())
    assert chosen.requests[0].messages == [speech.user("in short")]
    assert [str(context.error) for context in given] == ["first", "third"]


def test_r7_the_default_wait_is_a_tenth_of_a_second_doubling_with_half_of_it_at_random_and_ten_seconds_at_most():
    asked_at: list[float] = []

    def fail(_messages: Any) -> Any:
        asked_at.append(asyncio.get_running_loop().time())
        return "done" if len(asked_at) == 11 else TimeoutError("slow")

    agent = ChatModelAgent(model=ScriptedModel(fail), model_retry_config=ModelRetryConfig(max_retries=10))

    async def main() -> Any:
        return [event async for event in agent.stream("go")]

    delays = [event.delay for event in of(run_at_once(main()), RetryScheduled)]
    bases = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10, 10]
    waited = [later - earlier for earlier, later in pairwise(asked_at)]
    assert len(delays) == 10
    assert all(base <= delay <= 1.5 * base for base, delay in zip(bases, delays, strict=True))
    assert any(delay > base for base, delay in zip(bases, delays, strict=True))
    assert waited == pytest.approx(delays, abs=0.05)


def test_r7_an_error_that_says_when_to_come_back_is_waited_for():
    class BusyError(Exception):
        retry_after = 7

    agent = ChatModelAgent(
        model=ScriptedModel([BusyError("busy"), BusyError("busy"), "done"]),
        model_retry_config=ModelRetryConfig(backoff=lambda attempt: 3 if attempt == 1 else 20),
    )

    async def main() -> Any:
        return [event async for event in agent.stream("go")]

    assert [event.delay for event in of(run_at_once(main()), RetryScheduled)] == [7, 20]


def test_who_asks_to_be_left_alone_for_longer_than_an_hour_is_not_asked_again():
    class AwayError(Exception):
        retry_after = 3601

    model = ScriptedModel([AwayError("come back tomorrow"), "never said"])
    agent = ChatModelAgent(model=model, model_retry_config=ModelRetryConfig(max_retries=3))
    with pytest.raises(AwayError):
        agent.run_sync("go")
    assert len(model.requests) == 1


def test_an_error_that_says_that_it_will_come_again_is_not_tried_again():
    model = ScriptedModel([ModelRequestError("no such model", status=404), "never said"])
    agent = ChatModelAgent(model=model, model_retry_config=ModelRetryConfig(max_retries=3))
    with pytest.raises(ModelRequestError):
        agent.run_sync("go")
    assert len(model.requests) == 1
