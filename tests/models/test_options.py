"""Options that stand beside the body, options that a model refuses, and names that were meant otherwise."""

import asyncio
import logging
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from suture import ChatModelAgent, Message
from suture.errors import ConfigError, ModelError
from suture.events import Custom
from suture.models import BedrockModel, ModelRequest
from suture.models.sampling import REFUSED, leave_out
from tests.models.loopback import Asked, loopback
from tests.models.providers import HELLO, KINDS, WIRES, address, make_model, refusal, streamed, text_reply
from tests.models.test_limits import own_client
from tests.models.test_requests import at

pytestmark = pytest.mark.usefixtures("surroundings")
SDKS = ("openai-chat", "openai-responses", "anthropic")
SECRET = "gateway-0123456789abcdef"


async def ask(model: Any, **options: Any) -> None:
    [item async for item in model.stream(ModelRequest("", HELLO.messages, options=options))]


def asked(wire: str, name: str = "m", /, model_settings: Any = None, **options: Any) -> Asked:
    """Return what a server is sent with these options of a request."""

    async def run() -> Asked:
        async with loopback([streamed(wire, text_reply())]) as server:
            settings = {"base_url": address(wire, server.url), **(model_settings or {})}
            await ask(KINDS[wire](name, **settings), **options)
            return server.requests[0]

    return asyncio.run(run())


# Beside the body


@pytest.mark.parametrize("wire", WIRES)
def test_headers_of_the_model_and_of_a_request_are_sent(wire: str):
    settings = {"headers": {"x-team": "port", "x-title": "all"}, "options": {"extra_headers": {"x-pier": "7"}}}
    sent = asked(wire, model_settings=settings, extra_headers={"x-title": "one"})
    found = {name: sent.headers.get(name) for name in ("x-team", "x-title", "x-pier")}
    assert found == {"x-team": "port", "x-title": "one", "x-pier": "7"}
    assert b"extra_headers" not in sent.body


@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire != "bedrock"])
def test_headers_go_with_a_client_of_ones_own_too(wire: str):
    async def run() -> Asked:
        async with loopback([streamed(wire, text_reply())]) as server, own_client(wire, server.url) as client:
            await ask(KINDS[wire]("m", client=client, headers={"x-team": "port"}))
            return server.requests[0]

    assert asyncio.run(run()).headers["x-team"] == "port"


def test_a_client_of_boto3_takes_no_headers_from_here():
    async def run() -> None:
        async with own_client("bedrock", "http://127.0.0.1:1") as client:
            await ask(BedrockModel("m", client=client, headers={"x-team": "port"}))

    with pytest.raises(ConfigError, match="takes headers from its own events"):
        asyncio.run(run())


@pytest.mark.parametrize("wire", WIRES)
def test_the_value_of_a_header_is_in_no_error(wire: str):
    async def run(name: str) -> str:
        def echo(sent: Asked) -> Any:
            return refusal(wire, 400, f"{name} is {sent.headers[name]}")

        async with loopback(echo) as server:
            with pytest.raises(ModelError) as caught:
                await ask(make_model(wire, server.url, headers={name: f"Bearer {SECRET}"}))
        return str(caught.value)

    for name in ("x-gateway-key", "x-anything"):
        assert f"{name} is ***" in asyncio.run(run(name))
    assert f"x-title is Bearer {SECRET}" in asyncio.run(run("x-title"))


@pytest.mark.parametrize("wrong", [{"x-team": 1}, [("x-team", "port")], "x-team: port"])
@pytest.mark.parametrize("wire", WIRES)
def test_headers_that_are_no_texts_are_refused(wire: str, wrong: Any):
    with pytest.raises(ConfigError, match="headers are a mapping of names to texts"):
        KINDS[wire]("m", headers=wrong)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"extra_headers": {"x-team": 1}}, "extra_headers is a mapping of names to texts; found 'x-team': 1"),
        ({"timeout": "5"}, "timeout counts seconds, more than 0, or is None for no end; got '5'"),
        ({7: "seed"}, "options are a mapping of names to values; 7 is no name"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("wire", WIRES)
def test_options_of_the_wrong_type_are_refused_before_anything_is_sent(wire: str, options: Any, says: str):
    model = KINDS[wire]("m", base_url="http://127.0.0.1:9", api_key="none", options=options)
    with pytest.raises(ConfigError, match=says):
        model.body(ModelRequest("", [Message.user("hi")]))


@pytest.mark.parametrize("wire", SDKS)
def test_extra_query_and_extra_body_do_what_they_do_in_the_sdk(wire: str):
    settings = {"options": {"extra_body": {"top_a": 0.1, "min_p": 1}, "temperature": 1}}
    sent = asked(
        wire, model_settings=settings, extra_query={"api-version": "7"}, extra_body={"min_p": 0.2, "temperature": 0}
    )
    assert parse_qs(urlsplit(sent.path).query) == {"api-version": ["7"]}
    body = sent.payload
    assert (body["top_a"], body["min_p"], body["temperature"]) == (0.1, 0.2, 0)
    assert b'"temperature":1' not in sent.body
    assert b"extra_" not in sent.body


@pytest.mark.parametrize("wire", SDKS)
def test_the_sdk_itself_sends_the_same(wire: str):
    """What `extra_body` and `extra_query` do is the SDK's; here it is asked itself."""
    extra: Any = {"extra_query": {"v": "7"}, "extra_body": {"top_a": 0.1}, "extra_headers": {"x-team": "port"}}

    async def run() -> Asked:
        async with loopback([streamed(wire, text_reply())]) as server, own_client(wire, server.url) as client:
            if wire == "openai-chat":
                await client.chat.completions.create(model="m", messages=[], stream=True, **extra)
            elif wire == "openai-responses":
                await client.responses.create(model="m", input="hi", stream=True, **extra)
            else:
                await client.messages.create(model="m", max_tokens=1, messages=[], stream=True, **extra)
            return server.requests[0]

    theirs, ours = asyncio.run(run()), asked(wire, **extra)
    assert theirs.path == ours.path
    assert theirs.headers["x-team"] == ours.headers["x-team"] == "port"
    assert theirs.payload["top_a"] == ours.payload["top_a"] == 0.1


def test_gemini_takes_the_sdk_s_http_options():
    from google.genai.types import HttpOptions

    fields = {"generationConfig": {"topK": 3}}
    sent = asked("gemini", temperature=0.5, http_options={"headers": {"x-team": "port"}}, extra_body=fields)
    assert sent.headers["x-team"] == "port"
    assert sent.payload["generationConfig"] == {"temperature": 0.5, "topK": 3}
    assert asked("gemini", http_options=HttpOptions(headers={"x-team": "pier"})).headers["x-team"] == "pier"
    body = asked("gemini", temperature=0.5, http_options={"extra_body": fields}).payload
    assert body["generationConfig"] == {"temperature": 0.5, "topK": 3}


@pytest.mark.parametrize(
    ("wire", "option", "hint"),
    [
        ("bedrock", "extra_body", "additionalModelRequestFields"),
        ("bedrock", "extra_query", "Converse takes none"),
        ("bedrock", "http_options", "extra_headers"),
        ("gemini", "extra_query", "http_options"),
        ("openai-chat", "http_options", "extra_headers"),
        ("anthropic", "http_options", "extra_headers"),
        *[(wire, "api_key", "it is a setting of the model") for wire in WIRES],
        *[(wire, "base_url", "it is a setting of the model") for wire in WIRES],
        *[(wire, "headers", "extra_headers") for wire in WIRES],
        *[(wire, "max_retries", "model_retry_config") for wire in WIRES],
    ],
)
def test_an_option_that_has_its_place_elsewhere_says_where(wire: str, option: str, hint: str):
    with pytest.raises(ConfigError, match=f"^{option} is no option: .*{hint}"):
        asked(wire, **{option: {"x": "y"}})


@pytest.mark.parametrize(
    ("wire", "field"),
    [("openai-chat", "messages"), ("openai-responses", "input"), ("anthropic", "messages"), ("gemini", "contents")],
)
def test_the_history_is_no_option(wire: str, field: str):
    for options in ({field: []}, {"extra_body": {field: []}}):
        with pytest.raises(ConfigError, match=f"{field} is no option"):
            asked(wire, **options)


@pytest.mark.parametrize("wrong", ["x", [("a", "b")], 3])
def test_what_stands_beside_the_body_is_a_mapping(wrong: Any):
    with pytest.raises(ConfigError, match="extra_headers is a mapping"):
        asked("openai-chat", extra_headers=wrong)


@pytest.mark.parametrize(
    ("setting", "hint"),
    [
        ("default_headers", "headers="),
        ("extra_body", "options={'extra_body': …}"),
        ("temperature", "options={'temperature': …}"),
        ("azure_endpoint", "client="),
        ("max_retries", "model_retry_config= of the agent"),
        ("tiemout", "timeout="),
        ("baseurl", "base_url="),
        ("stream", "streaming="),
    ],
)
@pytest.mark.parametrize("wire", WIRES)
def test_a_setting_that_has_another_name_here_says_which(wire: str, setting: str, hint: str):
    with pytest.raises(ConfigError) as caught:
        KINDS[wire]("m", **{setting: {}})
    assert f"{setting} ({hint})" in str(caught.value)


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic"])
def test_a_misspelt_option_is_sent_and_warned_of_once(wire: str, caplog: pytest.LogCaptureFixture):
    async def run() -> list[Asked]:
        async with loopback([streamed(wire, text_reply())]) as server:
            model = make_model(wire, server.url, options={"max_tokns": 5, "top_a": 0.1})
            await ask(model)
            await ask(model)
            return server.requests

    for sent in asyncio.run(run()):
        assert (sent.payload["max_tokns"], sent.payload["top_a"]) == (5, 0.1)
    [record] = [record for record in caplog.records if record.name == "suture"]
    assert record.levelno == logging.WARNING
    assert "the option max_tokns is sent as it is; was max_tokens meant?" in record.getMessage()


# What a model refuses


@pytest.mark.parametrize(
    ("wire", "model", "path"),
    [
        ("openai-chat", "gpt-5-mini", "max_completion_tokens"),
        ("openai-chat", "openai/gpt-5", "max_completion_tokens"),
        ("openai-chat", "o4-mini-2025-04-16", "max_completion_tokens"),
        ("openai-chat", "gpt-5-chat-latest", "max_completion_tokens"),
        ("openai-chat", "gpt-6-sol", "max_completion_tokens"),
        ("openai-chat", "gpt-4.1", "max_tokens"),
        ("openai-chat", "gpt-oss-120b", "max_tokens"),
        ("openai-chat", "my-deployment", "max_tokens"),
        ("openai-responses", "gpt-5-mini", "max_output_tokens"),
        ("anthropic", "claude-opus-5", "max_tokens"),
        ("gemini", "gemini-3-pro", "generationConfig.maxOutputTokens"),
        ("bedrock", "openai.gpt-oss-120b-1:0", "inferenceConfig.maxTokens"),
    ],
)
def test_the_limit_of_a_reply_has_the_name_that_the_model_takes(wire: str, model: str, path: str):
    body = asked(wire, model, max_tokens=100).payload
    assert at(body, path) == 100
    assert path == "max_tokens" or "max_tokens" not in body


def test_a_limit_in_the_provider_s_own_words_stands_over_the_shared_one():
    body = asked("openai-chat", "gpt-5", max_tokens=100, max_completion_tokens=50).payload
    assert body["max_completion_tokens"] == 50
    assert "max_tokens" not in body
    assert asked("openai-chat", "gpt-5", extra_body={"max_tokens": 7}).payload["max_tokens"] == 7


REFUSING: list[Any] = [
    ("openai-chat", "gpt-5-mini", {"temperature": 0, "top_p": 0.5, "stop": "END", "seed": 1}, {"seed": 1}),
    ("openai-chat", "openrouter/openai/o3", {"temperature": 0, "parallel_tool_calls": False}, {}),
    ("openai-chat", "gpt-5-chat-latest", {"temperature": 0}, {"temperature": 0}),
    ("openai-chat", "gpt-5.2", {"temperature": 0}, {"temperature": 0}),
    ("openai-chat", "gpt-5.2", {"temperature": 0, "reasoning_effort": "low"}, {"reasoning_effort": "low"}),
    ("openai-chat", "gpt-5.2-pro", {"temperature": 0}, {}),
    ("openai-chat", "gpt-5.6-sol", {"temperature": 0, "reasoning_effort": "none"}, {"temperature": 0}),
    ("openai-chat", "grok-4.3", {"presence_penalty": 1, "temperature": 0}, {"temperature": 0}),
    ("openai-chat", "my-own", {"temperature": 0, "top_p": 0.5}, {"temperature": 0, "top_p": 0.5}),
    ("openai-responses", "gpt-5-mini", {"temperature": 0, "top_p": 0.5}, {}),
    ("openai-responses", "gpt-5.1", {"temperature": 0, "reasoning": {"effort": "high"}}, {}),
    ("anthropic", "claude-opus-4-7", {"temperature": 0, "top_k": 3}, {}),
    ("anthropic", "claude-sonnet-5-5", {"temperature": 0}, {}),
    ("anthropic", "claude-sonnet-4-5", {"temperature": 0, "top_p": 0.5}, {"temperature": 0}),
    ("anthropic", "claude-sonnet-4-5", {"top_p": 0.5}, {"top_p": 0.5}),
    ("anthropic", "claude-3-5-haiku-latest", {"temperature": 0, "top_p": 0.5}, {"temperature": 0, "top_p": 0.5}),
    ("anthropic", "claude-sonnet-4-5", {"temperature": 0, "thinking": {"type": "enabled", "budget_tokens": 1024}}, {}),
    ("anthropic", "claude-sonnet-4-5", {"temperature": 0, "thinking": {"type": "disabled"}}, {"temperature": 0}),
    ("bedrock", "us.anthropic.claude-opus-4-7-v1:0", {"temperature": 0, "top_p": 0.5}, {}),
    ("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", {"temperature": 0, "top_p": 0.5}, {"temperature": 0}),
]
PATHS = {"bedrock": "inferenceConfig."}
SAMPLING = ("temperature", "top_p", "top_k", "stop", "presence_penalty", "parallel_tool_calls")


@pytest.mark.parametrize(("wire", "model", "options", "expected"), REFUSING)
def test_what_a_model_refuses_is_left_out(wire: str, model: str, options: dict[str, Any], expected: dict[str, Any]):
    body = asked(wire, model, **options).payload
    names = {"top_p": "topP"} if wire == "bedrock" else {}
    sent = {name: at(body, f"{PATHS.get(wire, '')}{names.get(name, name)}") for name in SAMPLING}
    assert {name: value for name, value in sent.items() if value is not None} == {
        name: value for name, value in expected.items() if name in SAMPLING
    }
    assert {name: at(body, name) for name in expected if name not in SAMPLING} == {
        name: value for name, value in expected.items() if name not in SAMPLING
    }


def test_an_option_that_was_left_out_is_logged_and_reported_once(caplog: pytest.LogCaptureFixture):
    async def run() -> list[Any]:
        async with loopback([streamed("openai-chat", text_reply())]) as server:
            model = KINDS["openai-chat"]("gpt-5-mini", base_url=f"{server.url}/v1", options={"temperature": 0})
            agent = ChatModelAgent(model=model)
            async with agent.stream("hi") as running:
                events = [event async for event in running]
            await agent.run("hi")
            return [event.data for event in events if isinstance(event, Custom) and event.name == "losses"]

    [[loss]] = asyncio.run(run())
    assert (loss["name"], loss["what"]) == ("option", "temperature, which gpt-5-mini refuses")
    [record] = [record for record in caplog.records if record.name == "suture"]
    assert "the option temperature is left out, since gpt-5-mini refuses it" in record.getMessage()


def test_extra_body_sends_what_would_be_left_out():
    assert asked("openai-chat", "gpt-5-mini", extra_body={"temperature": 0}).payload["temperature"] == 0


def test_every_name_of_the_tables_is_found_by_itself():
    for table in REFUSED:
        for name, (when, options) in table.items():
            wants = {"reasoning_effort": "low", "thinking": {"type": "enabled"}, "temperature": 0}
            said = {**dict.fromkeys(options, 1), **(wants if when else {})}
            assert set(options) <= set(leave_out(f"router/{name}-2026", said)), name
