"""What passes by itself does not end a run: each kind of failure, each provider, each place in a run."""

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import anthropic
import openai
import pytest

import suture
from suture import ChatModelAgent, ChatModelAgentMiddleware, ModelRetryConfig, tool
from suture.errors import ModelConnectionError, ModelError, ModelServerError, RateLimitError
from suture.events import RetryScheduled
from suture.kernel import ModelFailoverConfig, retries
from suture.models import ModelRequest
from suture.testing import ScriptedModel
from tests.models.loopback import Answer, Loopback, loopback
from tests.models.providers import KINDS as KINDS_OF_MODELS
from tests.models.providers import (
    WIRES,
    address,
    call_reply,
    frame,
    http_of,
    make_model,
    refusal,
    streamed,
    text_reply,
    whole,
)

pytestmark = pytest.mark.usefixtures("surroundings", "at_once")
CLOSED = Answer(head=b"")
RESET = Answer(head=b"", then="cut")
STATUSES = (408, 409, 429, 500, 502, 503, 529)
FINAL = (400, 401, 403, 404, 422)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(retries, "_FIRST_HICCUP", 0.0)


SAID = "Overloaded, try later."
OVERLOADS: dict[str, list[dict[str, Any]]] = {
    "openai-chat": [
        {"error": {"message": SAID, "type": "server_error", "code": "server_error"}},
        {"error": {"message": SAID, "code": 503}},
        {"error": {"message": SAID, "code": 502}, "choices": [{"index": 0, "delta": {}, "finish_reason": "error"}]},
    ],
    "openai-responses": [
        {"type": "error", "message": SAID, "code": "server_is_overloaded", "sequence_number": 3},
        {"type": "error", "error": {"message": SAID, "code": "rate_limit_exceeded"}, "sequence_number": 3},
        {"type": "response.failed", "response": {"error": {"message": SAID, "code": "server_error"}}},
    ],
    "anthropic": [
        {"type": "error", "error": {"type": kind, "message": SAID}}
        for kind in ("overloaded_error", "api_error", "rate_limit_error", "timeout_error")
    ],
    "gemini": [
        {"error": {"code": 503, "message": SAID, "status": "UNAVAILABLE"}},
        {"error": {"code": 429, "message": SAID, "status": "RESOURCE_EXHAUSTED"}},
    ],
    "bedrock": [
        {f"{kind}Exception": {"message": SAID}}
        for kind in ("serviceUnavailable", "throttling", "internalServer", "modelStreamError")
    ],
}
"""What each provider says in a stream that began with 200."""
TOLD = [(wire, place) for wire, events in OVERLOADS.items() for place in range(len(events))]


def cut(wire: str) -> Answer:
    """Return a stream that breaks behind its first events."""
    answer = streamed(wire, text_reply())
    return replace(answer, pieces=answer.pieces[:2], then="cut")


def overload(wire: str, place: int = 0, after: int = 2) -> Answer:
    """Return a stream that tells an overload behind its first events."""
    answer = streamed(wire, text_reply())
    return replace(answer, pieces=[*answer.pieces[:after], frame(wire, OVERLOADS[wire][place])])


def failures(wire: str) -> dict[str, Answer]:
    by_status = {str(status): refusal(wire, status) for status in STATUSES}
    return {**by_status, "closed": CLOSED, "reset": RESET, "cut": cut(wire), "overload": overload(wire)}


STREAMED = ["cut", "overload"]
KINDS = [*map(str, STATUSES), "closed", "reset", *STREAMED]


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


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in STREAMED])
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


@pytest.mark.parametrize("after", [0, 1, 3])
@pytest.mark.parametrize(("wire", "place"), TOLD)
def test_an_overload_that_a_stream_tells_is_one_wherever_it_stands(wire: str, place: int, after: int):
    failure = overload(wire, place, after)
    result, server, told = asyncio.run(ask(wire, [failure, streamed(wire, text_reply())]))
    assert (result.output, len(server.requests)) == ("The sea is calm.", 2)
    assert [SAID in (event.error or "") for event in told] == [True]


@pytest.mark.parametrize("wire", WIRES)
def test_a_kept_connection_that_the_server_has_closed_is_no_attempt(wire: str):
    calls = streamed(wire, call_reply(("call_1", "tides", '{"port": "Dover"}')))
    for then in ("leave", "break"):
        result, server, told = asyncio.run(ask(wire, [replace(calls, then=then), streamed(wire, text_reply())]))
        assert (result.output, ran, told) == ("The sea is calm.", ["Dover"], [])
        assert (len(server.requests), server.connections) == (2, 2)


class ComesBack(ChatModelAgentMiddleware[Any]):
    """A server that begins to listen with the second attempt."""

    def __init__(self, wire: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.wire, self.attempts, self.servers = wire, 0, AsyncExitStack()

    async def wrap_model_call(self, request: ModelRequest[Any], proceed: Any) -> Any:
        self.attempts += 1
        if self.attempts == 2:
            answers = [streamed(self.wire, text_reply())]
            await self.servers.enter_async_context(loopback(answers, port=self.port))
        return await proceed(request)


@pytest.mark.parametrize("wire", WIRES)
def test_a_server_that_refuses_connections_and_comes_back_is_reached(wire: str):
    async def come_back() -> tuple[Any, int]:
        server = ComesBack(wire)
        async with server.servers:
            model = make_model(wire, f"http://127.0.0.1:{server.port}")
            result = await ChatModelAgent(model=model, middlewares=[server]).run("hi")
            return result.output, server.attempts

    assert asyncio.run(come_back()) == ("The sea is calm.", 2)


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


@pytest.mark.parametrize("wire", WIRES)
def test_a_date_to_wait_for_is_kept_up_to_a_minute(wire: str, monkeypatch: pytest.MonkeyPatch):
    async def delays(**later: int) -> list[float]:
        date = format_datetime(datetime.now(UTC) + timedelta(**later), usegmt=True)
        answers = [refusal(wire, 503, retry_after=date), streamed(wire, text_reply())]
        return [event.delay for event in (await ask(wire, answers))[2]]

    async def sleep(_: float) -> None:
        """Wait for nothing."""

    monkeypatch.setattr("suture.kernel.model_call.asyncio.sleep", sleep)
    [delay] = asyncio.run(delays(seconds=50))
    assert 1 < delay <= 50
    assert asyncio.run(delays(hours=-1)) == [0]
    with pytest.raises(ModelServerError):
        asyncio.run(delays(hours=1))


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


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic"])
def test_nor_is_one_that_comes_up_through_the_sdk(wire: str):
    asked: list[Any] = []

    async def hook(request: Any) -> None:
        asked.append(request)
        raise TypeError("the program's own hook")

    async def fails() -> tuple[Exception, int]:
        async with loopback([streamed(wire, text_reply())]) as server:
            http = http_of(wire).AsyncClient(event_hooks={"request": [hook]})
            client = SDKS[wire](base_url=address(wire, server.url), api_key="none", max_retries=0, http_client=http)
            with pytest.raises(ModelError, match="the program's own hook") as caught:
                await ChatModelAgent(model=KINDS_OF_MODELS[wire]("m", client=client)).run("hi")
            await http.aclose()
            return caught.value, len(server.requests)

    error, requests = asyncio.run(fails())
    assert (len(asked), requests, getattr(error, "attempts", 0)) == (1, 0, 1)


SDKS: dict[str, Any] = {"openai-chat": openai.AsyncOpenAI, "anthropic": anthropic.AsyncAnthropic}


@pytest.mark.parametrize("wire", ["openai-chat", "gemini"])
def test_nor_is_a_key_that_cannot_be_sent(wire: str):
    with pytest.raises(ModelError, match="UnicodeEncodeError") as caught:
        ChatModelAgent(model=make_model(wire, "http://127.0.0.1:9", api_key="kü")).run_sync("hi")
    assert (caught.value.retryable, caught.value.attempts) == (False, 1)


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
