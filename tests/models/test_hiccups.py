"""What passes by itself does not end a run: each kind of failure, each provider, each place in a run."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

import suture
from suture import ChatModelAgent, ModelRetryConfig, tool
from suture.errors import ModelConnectionError, ModelError, ModelServerError, RateLimitError
from suture.events import RetryScheduled
from suture.kernel import ModelFailoverConfig, retries
from suture.models import ModelRequest
from suture.testing import ScriptedModel
from tests.models.loopback import Answer, Loopback, loopback
from tests.models.providers import WIRES, call_reply, make_model, refusal, streamed, text_reply, whole

pytestmark = pytest.mark.usefixtures("surroundings", "at_once")
CLOSED = Answer(head=b"")
RESET = Answer(head=b"", then="cut")
STATUSES = (408, 409, 429, 500, 502, 503, 529)
FINAL = (400, 401, 403, 404, 422)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(retries, "_FIRST_HICCUP", 0.0)


def cut(wire: str) -> Answer:
    """Return a stream that breaks behind its first events."""
    answer = streamed(wire, text_reply())
    return replace(answer, pieces=answer.pieces[:2], then="cut")


def failures(wire: str) -> dict[str, Answer]:
    by_status = {str(status): refusal(wire, status) for status in STATUSES}
    return {**by_status, "closed": CLOSED, "reset": RESET, "cut": cut(wire)}


KINDS = [*map(str, STATUSES), "closed", "reset", "cut"]


@tool
def tides(port: str) -> str:
    """Look up high tide."""
    ran.append(port)
    return f"06:12 in {port}"


ran: list[str] = []


async def ask(wire: str, answers: Sequence[Answer], **settings: Any) -> tuple[Any, Loopback, list[RetryScheduled]]:
    ran.clear()
    streaming = settings.pop("streaming", True)
    async with loopback(answers) as server:
        agent = ChatModelAgent(model=make_model(wire, server.url, streaming=streaming), tools=[tides], **settings)
        run = agent.stream("High tide in Dover?")
        told = [event async for event in run if isinstance(event, RetryScheduled)]
        return await run.result(), server, told


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wire", WIRES)
def test_two_failures_that_pass_do_not_end_a_run(wire: str, kind: str):
    failure = failures(wire)[kind]
    result, server, told = asyncio.run(ask(wire, [failure, failure, streamed(wire, text_reply())]))
    assert (result.output, len(server.requests), [event.attempt for event in told]) == ("The sea is calm.", 3, [1, 2])
    assert len({asked.body for asked in server.requests}) == 1


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "cut"])
@pytest.mark.parametrize("wire", WIRES)
def test_nor_do_they_without_a_stream(wire: str, kind: str):
    failure = failures(wire)[kind]
    answers = [failure, failure, whole(wire, text_reply())]
    result, server, _ = asyncio.run(ask(wire, answers, streaming=False))
    assert (result.output, len(server.requests)) == ("The sea is calm.", 3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wire", WIRES)
def test_a_tool_that_ran_before_a_failure_does_not_run_again(wire: str, kind: str):
    calls = streamed(wire, call_reply(("call_1", "tides", '{"port": "Dover"}')))
    result, server, _ = asyncio.run(ask(wire, [calls, failures(wire)[kind], streamed(wire, text_reply())]))
    assert (result.output, ran, len(server.requests)) == ("The sea is calm.", ["Dover"], 3)
    assert [message.role for message in result.messages] == ["user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wire", WIRES)
def test_the_third_failure_is_the_error_and_counts_the_attempts(wire: str, kind: str):
    async def fails() -> tuple[Exception, int]:
        async with loopback([failures(wire)[kind]]) as server:
            agent = ChatModelAgent(model=make_model(wire, server.url))
            with pytest.raises(suture.errors.RunError) as caught:
                await agent.run("hi")
            return caught.value, len(server.requests)

    error, requests = asyncio.run(fails())
    assert (requests, getattr(error, "attempts", 0)) == (3, 3)
    assert str(error).endswith("; 3 attempts failed")
    assert not isinstance(error, suture.errors.RetryExhausted)


@pytest.mark.parametrize("status", FINAL)
@pytest.mark.parametrize("wire", WIRES)
def test_what_would_come_again_is_asked_once(wire: str, status: int):
    async def fails() -> tuple[str, int]:
        async with loopback([refusal(wire, status)]) as server:
            with pytest.raises(ModelError) as caught:
                await ChatModelAgent(model=make_model(wire, server.url)).run("hi")
            return str(caught.value), len(server.requests)

    said, requests = asyncio.run(fails())
    assert requests == 1
    assert "attempts" not in said


@pytest.mark.parametrize("wire", WIRES)
def test_none_turns_it_off(wire: str):
    async def fails() -> int:
        async with loopback([refusal(wire, 503)]) as server:
            with pytest.raises(ModelServerError):
                await ChatModelAgent(model=make_model(wire, server.url), model_retry_config=None).run("hi")
            return len(server.requests)

    assert asyncio.run(fails()) == 1


@pytest.mark.parametrize("wire", WIRES)
def test_a_model_asked_by_hand_asks_once(wire: str):
    async def fails() -> int:
        async with loopback([refusal(wire, 503)]) as server:
            with pytest.raises(ModelServerError):
                async for _ in make_model(wire, server.url).stream(ModelRequest("", [suture.Message.user("hi")])):
                    pass
            return len(server.requests)

    assert asyncio.run(fails()) == 1


def waits(error: Exception, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return how long an agent waits before it asks again after `error`."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.extend([seconds] if seconds else [])

    def reply(_: Any) -> Any:
        if len(model.requests) == 1:
            raise error
        return "done"

    monkeypatch.setattr("suture.kernel.model_call.asyncio.sleep", sleep)
    model: ScriptedModel[Any] = ScriptedModel(reply)
    ChatModelAgent(model=model).run_sync("hi")
    return slept


def test_a_demand_to_wait_is_kept_up_to_a_minute(monkeypatch: pytest.MonkeyPatch):
    assert waits(RateLimitError("slow", retry_after=59.5), monkeypatch) == [59.5]
    with pytest.raises(RateLimitError, match=r"slow$"):
        waits(RateLimitError("slow", retry_after=61), monkeypatch)


@pytest.mark.parametrize("attempt", [1, 2])
def test_the_wait_begins_at_half_a_second_and_doubles(attempt: int):
    first = 0.5 * attempt
    assert all(first <= retries.spread(attempt, 0.5) <= 1.5 * first for _ in range(50))


@pytest.mark.parametrize("error", [OSError("mine"), ValueError("mine"), suture.InputError("mine"), TimeoutError()])
def test_an_error_of_the_programs_own_is_not_tried_again(error: Exception):
    def reply(_: Any) -> Any:
        raise error

    model: ScriptedModel[Any] = ScriptedModel(reply)
    with pytest.raises(type(error)):
        ChatModelAgent(model=model).run_sync("hi")
    assert len(model.requests) == 1


def test_another_model_is_asked_when_the_first_has_failed_three_times():
    first: ScriptedModel[Any] = ScriptedModel(raises(ModelServerError("down", status=503)))
    other = ScriptedModel(["done"])
    agent = ChatModelAgent(model=first, failover=ModelFailoverConfig(models=[other]))
    assert agent.run_sync("hi").output == "done"
    assert (len(first.requests), len(other.requests)) == (3, 1)


def raises(error: Exception) -> Callable[[Any], Any]:
    def reply(_: Any) -> Any:
        raise error

    return reply


def test_a_server_that_nobody_reaches_is_told_as_such():
    model = make_model("openai-chat", "http://127.0.0.1:9")
    with pytest.raises(ModelConnectionError, match=r"127\.0\.0\.1:9.* was not reached .*; 3 attempts failed"):
        ChatModelAgent(model=model).run_sync("hi")


def test_each_retry_is_one_line_in_the_log(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "suture")
    model: ScriptedModel[Any] = ScriptedModel(raises(ModelServerError("down", status=503)))
    with pytest.raises(ModelServerError):
        ChatModelAgent(model=model).run_sync("hi")
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [
        f"ScriptedModel: attempt {number} failed: ModelServerError: down (status 503); the next in 0.0 s"
        for number in (1, 2)
    ]


def test_a_retry_config_of_the_programs_own_is_kept_as_it_is():
    model: ScriptedModel[Any] = ScriptedModel(raises(ModelServerError("down")))
    config = ModelRetryConfig(max_retries=1, backoff=lambda _: 0)
    with pytest.raises(suture.errors.RetryExhausted, match=r"^2 attempts failed, the last with: down$"):
        ChatModelAgent(model=model, model_retry_config=config).run_sync("hi")
    assert len(model.requests) == 2
