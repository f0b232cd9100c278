"""No key is ever seen: not in errors, events, results, stores or logs, whatever a server says back."""

import asyncio
import json
import logging
import re
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from suture import ChatModelAgent
from suture.errors import ConfigError, ModelAuthError, ModelError, SutureError
from suture.kernel import ModelRetryConfig
from suture.models import ModelRequest
from suture.models.http import scrubbed
from suture.stores import SQLiteStore
from tests.models.loopback import Answer, Asked, loopback
from tests.models.providers import HELLO, WIRES, error_body, frame, make_model, refusal, stream_headers

pytestmark = pytest.mark.usefixtures("surroundings")
KEY = "sk-secret-0123456789abcdefghijklmnopqrstuvwxyz"


def echo(asked: Asked) -> str:
    return json.dumps(asked.headers)


def in_the_body(wire: str, asked: Asked) -> Answer:
    return refusal(wire, 400, f"bad request with {echo(asked)}", code=KEY)


def in_a_page(_wire: str, asked: Asked) -> Answer:
    return Answer([b"<html>" + echo(asked).encode()], 500, {"content-type": "text/html"})


def where_it_is_cut(wire: str, _asked: Asked) -> Answer:
    return refusal(wire, 400, "x" * (500 - len(KEY) // 2) + KEY)


def in_the_headers(wire: str, _asked: Asked) -> Answer:
    return refusal(wire, 429, "Slow down.", x_request_id=KEY, request_id=KEY, x_amzn_requestid=KEY, retry_after=KEY)


def in_the_location(_wire: str, _asked: Asked) -> Answer:
    return Answer([], 307, {"location": f"http://{KEY}.example/{KEY}?key={KEY}"})


def in_an_event(wire: str, asked: Asked) -> Answer:
    message = f"overloaded: {echo(asked)}"
    event: dict[str, Any] = error_body(wire, message, KEY)
    if wire == "bedrock":
        event = {"throttlingException": {"message": message}}
    if wire == "openai-responses":
        event = {"type": "error", "message": message, "code": KEY, "sequence_number": 0}
    return Answer([frame(wire, event)], headers=stream_headers(wire))


def in_a_broken_event(wire: str, _asked: Asked) -> Answer:
    event = b"data: %s\n\n" % (b"x" * 60 + KEY.encode())
    return Answer([event], headers=stream_headers(wire))


# At DEBUG botocore logs the headers that it sends, and HTTP clients log those that come; nothing else is logged.
PLACES = [
    in_the_body,
    in_a_page,
    where_it_is_cut,
    in_the_headers,
    in_the_location,
    in_an_event,
    in_a_broken_event,
]


def model_with_key(wire: str, url: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    if wire != "bedrock":
        return make_model(wire, url, api_key=KEY)
    monkeypatch.setenv("AWS_SESSION_TOKEN", KEY)
    return make_model(wire, url)


def chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def told(error: BaseException) -> str:
    """Return all that an error says to whoever looks."""
    seen = [f"{one!s} {one!r} {one.args!r} {one.__dict__!r}" for one in chain(error)]
    return "\n".join([*seen, *traceback.format_exception(error)])


async def watch(running: Any, seen: list[str]) -> None:
    """Note all events of a run, as JSON and as they show themselves."""
    async with running:
        async for event in running:
            seen += [msgspec.json.encode(event, enc_hook=repr).decode(), repr(event)]


def leaks(text: str) -> bool:
    """Tell whether the key, or a good part of it, is in `text`."""
    return KEY[:16] in text


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("wire", WIRES)
def test_a_key_that_a_server_repeats_is_in_no_error(
    wire: str,
    place: Callable[[str, Asked], Answer],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    tells_headers = wire == "bedrock" or place in {in_the_headers, in_the_location}
    caplog.set_level(logging.INFO if tells_headers else logging.DEBUG)

    async def run() -> SutureError:
        async with loopback(lambda asked: place(wire, asked)) as server:
            model = model_with_key(wire, server.url, monkeypatch)
            assert not leaks(repr(model))
            with pytest.raises(SutureError) as caught:
                [item async for item in model.stream(HELLO)]
            assert leaks(echo(server.requests[0]))
            return caught.value

    error = asyncio.run(run())
    assert not leaks(told(error))
    assert not leaks(caplog.text)


@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire != "bedrock"])
def test_a_secret_in_the_address_is_in_no_error(wire: str):
    def repeat(asked: Asked) -> Answer:
        return refusal(wire, 400, f"no {asked.path}, {asked.headers.get('authorization')}")

    async def fail(url: str) -> str:
        model = make_model(wire, f"{url}?token=lighthouse-key")
        with pytest.raises(SutureError) as caught:
            [item async for item in model.stream(HELLO)]
        return told(caught.value)

    async def run() -> tuple[str, str]:
        async with loopback(repeat) as server:
            refused = await fail(server.url.replace("//", "//bosun:harbour-master@"))
            assert "lighthouse" in server.requests[0].path
        return refused, await fail("http://bosun:harbour-master@127.0.0.1:1")

    refused, unreached = asyncio.run(run())
    assert "***" in refused
    assert "was not reached" in unreached
    assert not re.search("lighthouse|master|Ym9zdW46", refused + unreached)


@pytest.mark.parametrize("wire", WIRES)
def test_a_key_that_a_server_repeats_is_nowhere_in_a_run(
    wire: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO if wire == "bedrock" else logging.DEBUG)
    path = tmp_path / "runs.db"

    async def run() -> tuple[list[str], Any]:
        async with loopback(lambda asked: PLACES[len(server.requests) % 2](wire, asked)) as server:
            with SQLiteStore(path) as store:
                agent = ChatModelAgent(
                    model=model_with_key(wire, server.url, monkeypatch),
                    checkpoint_store=store,
                    model_retry_config=ModelRetryConfig(
                        max_retries=1, backoff=lambda _: 0.0, should_retry=lambda about: about.attempt == 1
                    ),
                )
                running = agent.stream("hi", checkpoint_id="c1")
                seen: list[str] = []
                with pytest.raises(SutureError) as caught:
                    await watch(running, seen)
                assert len(server.requests) == 2
            assert not leaks(told(caught.value))
            return seen, caught.value.result

    events, result = asyncio.run(run())
    assert any("retry_scheduled" in event for event in events)
    assert not leaks("".join(events))
    assert not leaks(repr(result) + repr(result.error) + str(result.error) + repr(result.messages))
    stored = b"".join([file.read_bytes() for file in tmp_path.iterdir()])
    assert stored
    assert KEY[:16].encode() not in stored
    assert not leaks(caplog.text)


def test_the_secrets_that_a_client_of_ones_own_holds_are_kept_back():
    import boto3
    import google.genai as genai  # noqa: PLR0402 - stubs of another package hide it from `from google import`
    import openai

    from suture.models import BedrockModel, GeminiModel, OpenAIChatModel

    async def ask(model: Any) -> str:
        with pytest.raises(SutureError) as caught:
            [item async for item in model.stream(ModelRequest("", HELLO.messages))]
        return told(caught.value)

    async def run() -> list[str]:
        async with loopback(lambda asked: refusal("bedrock", 400, f"{asked.headers} {KEY}")) as server:
            azure = openai.AsyncAzureOpenAI(
                azure_endpoint=server.url, api_version="v", azure_ad_token=KEY, max_retries=0
            )
            google = genai.Client(api_key=KEY, http_options={"base_url": server.url})
            boto = boto3.client(
                "bedrock-runtime",
                endpoint_url=server.url,
                aws_access_key_id="AKIA",
                aws_secret_access_key="s" * 40,
                aws_session_token=KEY,
            )
            own = openai.AsyncOpenAI(
                api_key="none-needed", base_url=server.url, default_headers={"x-gateway": KEY}, max_retries=0
            )
            said = [
                await ask(OpenAIChatModel("m", client=azure)),
                await ask(OpenAIChatModel("m", client=own)),
                await ask(GeminiModel("m", client=google)),
                await ask(BedrockModel("m", client=boto)),
            ]
            await azure.close()
            await own.close()
            await google.aio.aclose()
            google.close()
            boto.close()
            return said

    for text in asyncio.run(run()):
        assert "***" in text
        assert not leaks(text)


ELSEWHERE = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GEMINI_API_KEY", "GOOGLE_API_KEY")


@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire != "bedrock"])
def test_a_server_of_ones_own_is_never_sent_the_key_that_the_environment_holds(
    wire: str, monkeypatch: pytest.MonkeyPatch
):
    for name in ELSEWHERE:
        monkeypatch.setenv(name, KEY)

    async def run() -> list[Asked]:
        async with loopback([refusal(wire, 400)]) as server:
            for model in (make_model(wire, server.url), make_model(wire, server.url, api_key="another")):
                with pytest.raises(SutureError):
                    [item async for item in model.stream(HELLO)]
            return server.requests

    for asked in asyncio.run(run()):
        assert not leaks(repr(asked))


MORE_OF_THE_ENVIRONMENT = {
    "OPENAI_ORG_ID": KEY,
    "OPENAI_PROJECT_ID": KEY,
    "OPENAI_CUSTOM_HEADERS": f"X-Gateway: {KEY}",
    "ANTHROPIC_CUSTOM_HEADERS": f"X-Gateway: {KEY}",
}


@pytest.mark.parametrize("wire", ["openai-chat", "openai-responses", "anthropic"])
def test_a_server_of_ones_own_is_sent_nothing_else_that_is_for_the_provider(wire: str, monkeypatch: pytest.MonkeyPatch):
    for name, value in MORE_OF_THE_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)

    async def run() -> list[Asked]:
        async with loopback([refusal(wire, 400)]) as server:
            with pytest.raises(SutureError):
                [item async for item in make_model(wire, server.url).stream(HELLO)]
            return server.requests

    [asked] = asyncio.run(run())
    assert not leaks(repr(asked))


OWN = {
    "openai-chat": "OPENAI_API_KEY",
    "openai-responses": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "gemini": "GEMINI_API_KEY",
}


async def refused_key(model: Callable[[str], Any], wire: str, status: int = 401) -> str:
    async with loopback([refusal(wire, status, "No such key.")]) as server:
        with pytest.raises(ModelAuthError) as caught:
            [item async for item in model(server.url).stream(HELLO)]
    return str(caught.value)


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("wire", OWN)
def test_a_refusal_names_the_key_that_the_environment_holds_but_that_was_not_sent(
    wire: str, status: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(OWN[wire], KEY)
    said = asyncio.run(refused_key(lambda url: make_model(wire, url), wire, status))
    assert f"{OWN[wire]} is set, but base_url= is sent no key unless you pass it" in said
    assert f"api_key=os.environ['{OWN[wire]}']" in said
    assert not leaks(said)
    given = asyncio.run(refused_key(lambda url: make_model(wire, url, api_key="another one"), wire, status))
    assert "check api_key= (" in given
    monkeypatch.delenv(OWN[wire])
    assert "check api_key= (" in asyncio.run(refused_key(lambda url: make_model(wire, url), wire, status))


def test_a_refusal_names_the_variable_that_a_named_model_read(monkeypatch: pytest.MonkeyPatch):
    from suture.models import get_model

    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)

    def model(url: str) -> Any:
        named: Any = get_model("openrouter:m")
        named.base_url = f"{url}/v1"
        return named

    said = asyncio.run(refused_key(model, "openai-chat"))
    assert "check OPENROUTER_API_KEY (" in said


@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire != "bedrock"])
@pytest.mark.parametrize("key", ["x", "ollama", "sk-1234", "none-needed"])
def test_a_key_that_may_be_a_word_leaves_the_words_of_an_error_alone(wire: str, key: str):
    words = "context exceeded: max tokens; ollama pull m; sk-1234; none-needed"

    async def run() -> str:
        async with loopback([refusal(wire, 404, words)]) as server:
            with pytest.raises(SutureError) as caught:
                [item async for item in make_model(wire, server.url, api_key=key).stream(HELLO)]
            return str(caught.value)

    assert words in asyncio.run(run())


def test_a_short_key_is_masked_as_a_word_and_a_long_one_anywhere():
    said = scrubbed(ModelError(f"key pier-2026, not pier-20267; {KEY}x n{KEY[:20]}"), ["pier-2026", KEY])
    assert str(said) == "key ***, not pier-20267; ***x n***"


@pytest.mark.parametrize("wire", ["openai-chat", "openai-responses", "anthropic"])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_function_gives_the_key_of_each_request(wire: str, *, is_async: bool):
    keys = iter([KEY + "1", KEY + "2"])

    def now() -> str:
        return next(keys)

    async def later() -> str:
        return next(keys)

    async def run() -> tuple[list[Asked], list[SutureError]]:
        async with loopback([refusal(wire, 400, f"bad key {KEY}1"), refusal(wire, 400, f"bad key {KEY}2")]) as server:
            model = make_model(wire, server.url, api_key=later if is_async else now)
            errors: list[SutureError] = []
            for _ in range(2):
                with pytest.raises(SutureError) as caught:
                    await ChatModelAgent(model=model).run("hi")
                errors.append(caught.value)
            return server.requests, errors

    requests, errors = asyncio.run(run())
    sent = [asked.headers.get("x-api-key") or asked.headers["authorization"] for asked in requests]
    assert [key.removeprefix("Bearer ") for key in sent] == [f"{KEY}1", f"{KEY}2"]
    assert not any(leaks(told(error)) for error in errors)


def test_what_is_no_key_is_refused():
    for wire in ("gemini", "bedrock"):
        with pytest.raises(ConfigError, match="api_key takes a text, not function"):
            make_model(wire, "http://127.0.0.1:9", api_key=lambda: KEY)
    with pytest.raises(ConfigError, match="api_key takes a text, not int"):
        make_model("openai-chat", "http://127.0.0.1:9", api_key=7)
    with pytest.raises(ConfigError, match="the function given as api_key returned NoneType, not a key"):
        ChatModelAgent(model=make_model("openai-chat", "http://127.0.0.1:9", api_key=lambda: None)).run_sync("hi")
