"""What providers refuse, over HTTP and through their SDKs, as Suture's errors; and what an agent tries again."""

import asyncio
import json
import pickle
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from suture import ChatModelAgent
from suture.errors import (
    ConfigError,
    ContextLengthError,
    ModelAuthError,
    ModelConnectionError,
    ModelError,
    ModelRequestError,
    ModelServerError,
    RateLimitError,
    RetryExhausted,
)
from suture.events import RetryScheduled
from suture.kernel import ModelRetryConfig
from suture.messages import Message
from suture.models import ModelRequest
from tests.models.loopback import Answer, loopback
from tests.models.providers import (
    HELLO,
    KINDS,
    WIRES,
    address,
    frame,
    frames,
    make_model,
    refusal,
    stream_headers,
    streamed,
    text_reply,
)

pytestmark = pytest.mark.usefixtures("surroundings")

TOO_LONG = {
    "openai-chat": "This model's maximum context length is 8192 tokens, however you requested 9000.",
    "openai-responses": "Your input exceeds the context window of this model.",
    "anthropic": "prompt is too long: 210000 tokens > 200000 maximum",
    "gemini": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "bedrock": "Input is too long for requested model.",
}


async def refused(wire: str, *answers: Answer, streaming: bool = True) -> ModelError:
    async with loopback(answers) as server:
        model = make_model(wire, server.url, streaming=streaming)
        with pytest.raises(ModelError) as caught:
            [item async for item in model.stream(HELLO)]
        assert len(server.requests) == 1
    return caught.value


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("wire", WIRES)
def test_each_status_has_its_error(wire: str, streaming: bool):
    expected = {
        400: (ModelRequestError, False),
        401: (ModelAuthError, False),
        403: (ModelAuthError, False),
        404: (ModelRequestError, False),
        413: (ContextLengthError, False),
        422: (ModelRequestError, False),
        424: (ModelServerError, True),
        429: (RateLimitError, True),
        500: (ModelServerError, True),
        503: (ModelServerError, True),
        529: (ModelServerError, True),
    }

    async def all_of_them() -> dict[int, tuple[type, bool]]:
        found: dict[int, tuple[type, bool]] = {}
        async with loopback(lambda _: refusal(wire, status, "It says why.", "its_code")) as server:
            model = make_model(wire, server.url, streaming=streaming)
            for status in expected:
                with pytest.raises(ModelError) as caught:
                    [item async for item in model.stream(HELLO)]
                error = caught.value
                assert (error.status, error.code, error.request_id) == (status, "its_code", "req_1")
                assert error.provider == wire
                assert "It says why." in str(error)
                found[status] = (type(error), error.retryable)
        return found

    assert asyncio.run(all_of_them()) == expected


@pytest.mark.parametrize("wire", WIRES)
def test_a_history_that_is_too_long_is_told_apart(wire: str):
    error = asyncio.run(refused(wire, refusal(wire, 400, TOO_LONG[wire])))
    assert type(error) is ContextLengthError
    assert not error.retryable


@pytest.mark.parametrize("wire", WIRES)
def test_a_refused_key_says_where_the_key_comes_from(wire: str):
    error = asyncio.run(refused(wire, refusal(wire, 401, "invalid key")))
    # A server that base_url names is not sent the environment's key; boto3 sends it its credentials.
    assert ("AWS_BEARER_TOKEN_BEDROCK" if wire == "bedrock" else "check api_key=") in str(error)
    named = {"anthropic": "ANTHROPIC_API_KEY", "gemini": "GEMINI_API_KEY", "bedrock": "AWS_BEARER_TOKEN_BEDROCK"}
    assert named.get(wire, "OPENAI_API_KEY") in KINDS[wire]("m").key_hint


def google_refusal(status: int, **detail: str) -> Answer:
    told = {"code": status, "message": "No.", "status": "INVALID_ARGUMENT", "details": [detail]}
    return Answer([json.dumps({"error": told}).encode()], status, {"content-type": "application/json"})


@pytest.mark.parametrize("streaming", [True, False])
def test_what_google_says_of_a_key_or_a_wait_stands_in_the_details(streaming: bool):
    refused_key = asyncio.run(refused("gemini", google_refusal(400, reason="API_KEY_INVALID"), streaming=streaming))
    assert type(refused_key) is ModelAuthError
    assert (refused_key.status, refused_key.code) == (400, "API_KEY_INVALID")
    assert "check api_key=" in str(refused_key)
    waits = asyncio.run(refused("gemini", google_refusal(429, retryDelay="34.5s"), streaming=streaming))
    assert waits.retry_after == 34.5


def test_a_stream_of_bedrock_s_that_its_model_broke_off_may_be_tried_again():
    events = [*frames("bedrock", text_reply())[:2], frame("bedrock", {"modelStreamErrorException": {"message": "No."}})]
    error = asyncio.run(refused("bedrock", Answer(events, headers=stream_headers("bedrock"))))
    assert (type(error), error.retryable) == (ModelServerError, True)


@pytest.mark.parametrize("address", ["127.0.0.1:8000", "http://", "http://[::1", "ftp://harbour.example", 8000])
@pytest.mark.parametrize("wire", WIRES)
def test_an_address_that_is_none_of_http_is_refused_at_once(wire: str, address: Any):
    with pytest.raises(ConfigError, match="base_url begins with http:// or https:// and names a server"):
        KINDS[wire]("m", base_url=address)


@pytest.mark.parametrize("wire", WIRES)
def test_a_model_error_survives_pickling(wire: str):
    error = asyncio.run(refused(wire, refusal(wire, 429, "Slow down.", retry_after="3")))
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), again.__dict__) == (str(error), error.__dict__)
    assert again.retry_after == 3.0


@pytest.mark.parametrize("wire", WIRES)
def test_a_wait_is_read_in_seconds_in_milliseconds_or_as_a_date(wire: str):
    async def wait(**headers: str) -> float | None:
        return (await refused(wire, refusal(wire, 429, "Slow down.", **headers))).retry_after

    async def waits() -> tuple[Any, ...]:
        later = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
        return (
            await wait(retry_after="2"),
            await wait(retry_after_ms="1500", retry_after="9"),
            await wait(retry_after="nonsense"),
            await wait(retry_after="-1"),
            await wait(retry_after="inf"),
            await wait(),
            await wait(retry_after=later),
        )

    *said, until = asyncio.run(waits())
    assert said == [2.0, 1.5, None, None, None, None]
    assert until is not None
    assert 3500 < until <= 3600


@pytest.mark.parametrize("wire", WIRES)
def test_an_agent_waits_as_long_as_the_provider_asks(wire: str, monkeypatch: pytest.MonkeyPatch):
    waited: list[float] = []

    async def note(seconds: float) -> None:
        waited.append(seconds)

    async def run() -> tuple[Any, list[RetryScheduled]]:
        answers = [refusal(wire, 429, "Slow down.", retry_after="37"), streamed(wire, text_reply())]
        async with loopback(answers) as server:
            retry = ModelRetryConfig(max_retries=2, backoff=lambda _: 0.0)
            agent = ChatModelAgent(model=make_model(wire, server.url), model_retry_config=retry)
            monkeypatch.setattr("suture.kernel.model_call.asyncio", _Waiting(note))
            async with agent.stream("hi") as running:
                retries = [event async for event in running if isinstance(event, RetryScheduled)]
            return running.final_result, retries

    result, retries = asyncio.run(run())
    assert result.output == "The sea is calm."
    assert [retry.delay for retry in retries] == [37.0]
    assert waited == [37.0]


class _Waiting:
    """The asyncio of the module that waits, with a sleep that is only noted."""

    def __init__(self, sleep: Any) -> None:
        self.sleep = sleep

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)


@pytest.mark.parametrize("wire", WIRES)
def test_an_agent_tries_again_what_may_help_and_nothing_else(wire: str):
    async def attempts(status: int) -> int:
        async with loopback([refusal(wire, status)]) as server:
            retry = ModelRetryConfig(max_retries=2, backoff=lambda _: 0.0)
            agent = ChatModelAgent(model=make_model(wire, server.url), model_retry_config=retry)
            with pytest.raises((ModelError, RetryExhausted)):
                await agent.run("hi")
            return len(server.requests)

    async def all_of_them() -> dict[int, int]:
        return {status: await attempts(status) for status in (400, 401, 404, 413, 500, 529)}

    assert asyncio.run(all_of_them()) == {400: 1, 401: 1, 404: 1, 413: 1, 500: 3, 529: 3}


@pytest.mark.parametrize("wire", WIRES)
def test_an_error_without_a_body_still_says_its_status(wire: str):
    error = asyncio.run(refused(wire, Answer([], 502, {})))
    assert type(error) is ModelServerError
    assert error.status == 502


@pytest.mark.parametrize("wire", WIRES)
def test_an_error_page_is_told_in_part(wire: str):
    page = b"<html><h1>Bad gateway</h1>" + b"x" * 100_000
    error = asyncio.run(refused(wire, Answer([page], 502, {"content-type": "text/html"})))
    assert type(error) is ModelServerError
    assert "bad gateway" in str(error).lower()
    assert len(str(error)) < 1000


@pytest.mark.parametrize("wire", WIRES)
def test_a_server_that_is_not_there_is_a_connection_error(wire: str):
    async def run() -> None:
        async with loopback([]) as server:
            url = server.url
        model = make_model(wire, url)
        with pytest.raises(ModelConnectionError) as caught:
            [item async for item in model.stream(HELLO)]
        assert caught.value.retryable
        assert caught.value.provider == wire
        assert address(wire, url)

    asyncio.run(run())


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("wire", WIRES)
def test_no_redirect_is_followed_and_no_key_goes_elsewhere(wire: str, status: int):
    async def run() -> tuple[ModelError, int, str]:
        async with loopback([streamed(wire, text_reply())]) as other:
            host = other.url.replace("http://", "http://user:password@")
            away = Answer([], status, {"location": f"{host}/v1/there?token=t0ken#part"})
            error = await refused(wire, away)
            return error, other.connections, other.url

    error, connections, url = asyncio.run(run())
    assert connections == 0
    assert type(error) is ModelRequestError
    assert f"redirects to {url}, and is not followed" in str(error)
    assert "t0ken" not in str(error)
    assert "password" not in str(error)


@pytest.mark.parametrize("code", ["insufficient_quota", "billing_hard_limit_reached", "billing_not_active"])
def test_a_limit_that_only_money_lifts_is_not_tried_again(code: str):
    error = asyncio.run(refused("openai-chat", refusal("openai-chat", 429, "Check your plan.", code)))
    assert (type(error), error.retryable) == (RateLimitError, False)


@pytest.mark.parametrize("wire", WIRES)
def test_a_request_that_can_never_be_written_is_not_tried_again(wire: str):
    async def run() -> None:
        async with loopback([streamed(wire, text_reply())]) as server:
            model = make_model(wire, server.url, options={"temperature": object()})
            with pytest.raises(ModelRequestError) as caught:
                [item async for item in model.stream(HELLO)]
        assert not caught.value.retryable
        assert server.requests == []

    asyncio.run(run())


@pytest.mark.parametrize("wire", WIRES)
def test_half_a_character_in_a_history_is_sent_as_the_replacement_character(wire: str):
    async def run() -> None:
        async with loopback([streamed(wire, text_reply())]) as server:
            request = ModelRequest("", [Message.user("cut \ud83d")])
            [item async for item in make_model(wire, server.url).stream(request)]
        assert "cut \ufffd" in json.dumps(json.loads(server.requests[0].body), ensure_ascii=False)

    asyncio.run(run())
