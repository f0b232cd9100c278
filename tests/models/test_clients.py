"""Clients and their connections: made when needed, kept while a loop lives, and left alone if they were given."""

import asyncio
import gc
import os
import subprocess
import sys
from typing import Any
from weakref import ReferenceType, ref

import pytest

from suture import ChatModelAgent, Message, ToolCall
from suture.errors import ConfigError, ModelError, StreamCutError
from suture.models import GeminiModel, ModelRequest
from suture.models.http import own_clients
from tests.models.loopback import Answer, Asked, Loopback, loopback
from tests.models.providers import HELLO, KINDS, WIRES, address, make_model, streamed, text_reply, whole

pytestmark = pytest.mark.usefixtures("surroundings")


async def text_of(model: Any) -> str:
    return [item async for item in model.stream(HELLO)][-1].content


@pytest.mark.parametrize("wire", WIRES)
def test_a_model_works_in_one_loop_after_another_and_keeps_its_connection_in_each(wire: str):
    held: list[Any] = []

    async def ask_twice(port: int) -> tuple[list[str], Loopback]:
        async with loopback([streamed(wire, text_reply())], port=port) as server:
            model = held[0] if held else make_model(wire, server.url)
            held[:] = [model]
            return [await text_of(model), await text_of(model)], server

    texts, first = asyncio.run(ask_twice(0))
    again, second = asyncio.run(ask_twice(int(first.url.rsplit(":", 1)[1])))
    assert texts + again == ["The sea is calm."] * 4
    assert len(first.requests) == len(second.requests) == 2
    assert (first.connections, second.connections) == (1, 1)


@pytest.mark.parametrize("then", ["leave", "break"])
@pytest.mark.parametrize("wire", WIRES)
def test_a_request_on_a_connection_that_the_server_is_closing_goes_out_on_another(wire: str, then: str):
    async def run() -> tuple[list[str], Loopback]:
        async with loopback([streamed(wire, text_reply(), then=then)]) as server:
            model = make_model(wire, server.url)
            return [await text_of(model) for _ in range(3)], server

    texts, server = asyncio.run(run())
    assert texts == ["The sea is calm."] * 3
    assert (len(server.requests), server.connections) == (3, 3)


BROKEN = Answer([b'{"a": '], headers={"content-type": "application/json"}, then="reset")


@pytest.mark.parametrize(
    ("before", "last"),
    [(0, Answer(head=b"")), (1, Answer(head=b"garbage\r\n\r\n")), (1, BROKEN)],
    ids=["a new connection closes", "a kept one brings garbage", "a kept one breaks in the reply"],
)
@pytest.mark.parametrize("wire", WIRES)
def test_a_request_that_the_server_has_read_is_not_sent_again(wire: str, before: int, last: Answer):
    async def run() -> Loopback:
        async with loopback([*[whole(wire, text_reply())] * before, last]) as server:
            model = make_model(wire, server.url, streaming=False)
            for _ in range(before):
                assert await text_of(model) == "The sea is calm."
            with pytest.raises((ModelError, StreamCutError)):
                await text_of(model)
            return server

    server = asyncio.run(run())
    assert (len(server.requests), server.connections) == (before + 1, 1)


@pytest.mark.parametrize("wire", WIRES)
def test_run_sync_works_twice(wire: str):
    async def run() -> list[Any]:
        async with loopback([streamed(wire, text_reply())]) as server:
            agent = ChatModelAgent(model=make_model(wire, server.url))
            return [
                await asyncio.to_thread(lambda: agent.run_sync("hi").output),
                await asyncio.to_thread(lambda: agent.run_sync("hi").output),
            ]

    assert asyncio.run(run()) == ["The sea is calm."] * 2


@pytest.mark.parametrize("wire", WIRES)
def test_many_at_once_each_get_their_own_answer(wire: str):
    def answer(asked: Asked) -> Any:
        number = asked.body.decode().split("number ")[1].split("#")[0]
        return streamed(wire, text_reply(f"This is {number}."))

    async def ask(model: Any, number: int) -> str:
        from suture.messages import Message

        request = ModelRequest("", [Message.user(f"number {number}#")])
        return [item async for item in model.stream(request)][-1].content

    async def run() -> list[str]:
        async with loopback(answer) as server:
            model = make_model(wire, server.url)
            return list(await asyncio.gather(*[ask(model, number) for number in range(12)]))

    assert asyncio.run(run()) == [f"This is {number}." for number in range(12)]


def test_a_loop_that_has_ended_is_forgotten():
    loops: list[ReferenceType[Any]] = []
    clients: list[Any] = []

    async def run() -> None:
        async with loopback([streamed("openai-chat", text_reply())]) as server:
            model.base_url = f"{server.url}/v1"
            await text_of(model)
            loops.append(ref(asyncio.get_running_loop()))
            clients.append((await own_clients(model.http_library())).http)

    model = make_model("openai-chat", "http://127.0.0.1")
    asyncio.run(run())
    gc.collect()
    assert [loop() for loop in loops] == [None]
    assert clients[0].is_closed


def _run_and_close(work: Any, loops: list[ReferenceType[Any]]) -> None:
    loop = asyncio.new_event_loop()
    loops.append(ref(loop))
    loop.run_until_complete(work)
    loop.close()


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire != "bedrock"])
def test_a_loop_that_was_just_closed_is_not_kept_alive(wire: str):
    async def run() -> None:
        async with loopback([streamed(wire, text_reply())]) as server:
            model.base_url = address(wire, server.url)
            await text_of(model)

    model = make_model(wire, "http://127.0.0.1")
    loops: list[ReferenceType[Any]] = []
    for _ in range(3):
        _run_and_close(run(), loops)
    gc.collect()
    assert [loop() for loop in loops] == [None] * 3


@pytest.mark.parametrize("wire", WIRES)
def test_a_model_that_does_not_stream_takes_the_whole_reply(wire: str):
    async def run() -> tuple[str, Any, Asked]:
        async with loopback([whole(wire, text_reply())]) as server:
            model = make_model(wire, server.url, streaming=False)
            [message] = [item async for item in model.stream(HELLO)]
            return message.content, message.response_meta, server.requests[0]

    text, meta, asked = asyncio.run(run())
    assert text == "The sea is calm."
    assert meta.usage.total_tokens == 12
    assert asked.payload.get("stream", False) is False
    assert "stream_options" not in asked.payload
    assert "stream" not in asked.path.lower()


def given_openai(url: str) -> Any:
    import openai

    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="given", max_retries=0)


def given_azure(url: str) -> Any:
    import openai

    return openai.AsyncAzureOpenAI(azure_endpoint=url, api_version="2026-01-01", api_key="given", max_retries=0)


def given_anthropic(url: str) -> Any:
    import anthropic

    return anthropic.AsyncAnthropic(base_url=url, api_key="given", max_retries=0)


def given_gemini(url: str) -> Any:
    import google.genai as genai  # noqa: PLR0402 - stubs of another package hide it from `from google import`

    return genai.Client(api_key="given", http_options={"base_url": url, "api_version": "v1"})


def given_bedrock(url: str) -> Any:
    import boto3

    return boto3.client("bedrock-runtime", endpoint_url=url)


async def close(client: Any) -> None:
    if hasattr(client, "aio"):
        await client.aio.aclose()
    done = client.close()
    if done is not None:
        await done


GIVEN = [
    ("openai-chat", given_openai, "/v1/chat/completions"),
    ("openai-chat", given_azure, "/openai/deployments/m/chat/completions"),
    ("openai-responses", given_openai, "/v1/responses"),
    ("anthropic", given_anthropic, "/v1/messages"),
    ("gemini", given_gemini, "/v1/models/m:streamGenerateContent"),
    ("bedrock", given_bedrock, "/model/m/converse-stream"),
]


@pytest.mark.parametrize("vertexai", [True, False])
def test_vertex_is_sent_no_ids_of_calls_which_it_refuses(vertexai: bool):
    import google.genai as genai  # noqa: PLR0402 - stubs of another package hide it from `from google import`

    history = [
        Message.user("High tide?"),
        Message.assistant(tool_calls=[ToolCall("a", "tides", '{"id": "Dover"}'), ToolCall("b", "tides", "{}")]),
        Message.tool("06:12", "a", "tides"),
        Message.tool("07:40", "b", "tides"),
    ]

    async def run() -> list[Any]:
        async with loopback([streamed("gemini", text_reply())]) as server:
            client = genai.Client(vertexai=vertexai, api_key="given", http_options={"base_url": server.url})
            [item async for item in GeminiModel("m", client=client).stream(ModelRequest("", history))]
            await client.aio.aclose()
            return server.requests[0].payload["contents"]

    parts = [part for content in asyncio.run(run()) for part in content["parts"][-2:]]
    held = [part.get("functionCall") or part.get("functionResponse") for part in parts[1:]]
    assert [each.get("id") for each in held] == ([None] * 4 if vertexai else ["a", "b"] * 2)
    assert [each.get("args") for each in held[:2]] == [{"id": "Dover"}, {}]


@pytest.mark.parametrize(("wire", "make", "path"), GIVEN)
def test_a_client_that_is_given_is_used_and_stays_open(wire: str, make: Any, path: str):
    async def run() -> list[Asked]:
        async with loopback([streamed(wire, text_reply())]) as server:
            client = make(server.url)
            for _ in range(2):  # a model that is done has not closed it
                assert await text_of(KINDS[wire]("m", client=client)) == "The sea is calm."
            await close(client)
            return server.requests

    for asked in asyncio.run(run()):
        assert asked.path.split("?")[0] == path
        assert wire == "bedrock" or any("given" in value for value in asked.headers.values())


@pytest.mark.parametrize("wire", WIRES)
def test_a_client_and_an_address_do_not_go_together(wire: str):
    with pytest.raises(ConfigError, match="one or the other"):
        KINDS[wire]("m", client=object(), base_url="http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("wire", "named"),
    [
        ("openai-chat", "OPENAI_API_KEY"),
        ("openai-responses", "OPENAI_API_KEY"),
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("gemini", "GEMINI_API_KEY"),
    ],
)
def test_without_a_key_the_variable_is_named(wire: str, named: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ConfigError, match=named):
        asyncio.run(text_of(KINDS[wire]("m")))


def test_without_credentials_bedrock_says_where_they_come_from(tmp_path: Any, monkeypatch: pytest.MonkeyPatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    with pytest.raises(ConfigError, match="AWS_BEARER_TOKEN_BEDROCK and AWS_DEFAULT_REGION"):
        asyncio.run(text_of(KINDS["bedrock"]("m", base_url="http://127.0.0.1:1")))


MISSING = """
import asyncio, sys
sys.modules[{module!r}] = None
import suture
from suture.models import ModelRequest, {kind}

async def ask():
    async for _ in {kind}("m", base_url="http://127.0.0.1:1").stream(ModelRequest("", [suture.Message.user("hi")])):
        pass

try:
    asyncio.run(ask())
except suture.ConfigError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("wire", "module", "extra"),
    [
        ("openai-chat", "openai", "openai"),
        ("anthropic", "anthropic", "anthropic"),
        ("gemini", "google.genai", "google"),
        ("bedrock", "boto3", "bedrock"),
    ],
)
def test_without_the_sdk_the_package_to_install_is_named(wire: str, module: str, extra: str):
    program = MISSING.format(module=module, kind=KINDS[wire].__name__)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=dict(os.environ),
    )
    assert f"(extra {extra}), and {module} is not installed: " in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("HTTPS_PROXY", "http://me:hunter2#x@proxy:1", "InvalidURL"),
        ("ALL_PROXY", "ftp://me:hunter2@proxy", "Unknown scheme"),
        ("SSL_CERT_FILE", "/no/such/file", "No such file"),
    ],
)
@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire != "bedrock"])
def test_a_proxy_or_certificate_of_the_environment_that_cannot_be_used_is_named_and_not_tried_again(
    wire: str, variable: str, value: str, told: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match=f"{told}.*check .*{variable}") as caught:
        asyncio.run(text_of(make_model(wire, "http://127.0.0.1")))
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("wrong", [0, -1, "5", True, float("nan"), float("inf")])
@pytest.mark.parametrize("wire", WIRES)
def test_a_timeout_that_is_no_number_of_seconds_is_refused(wire: str, wrong: Any):
    with pytest.raises(ConfigError, match="timeout counts seconds"):
        KINDS[wire]("m", timeout=wrong)


@pytest.mark.parametrize("wire", WIRES)
def test_options_that_are_no_mapping_are_refused(wire: str):
    with pytest.raises(ConfigError, match="options are a mapping"):
        KINDS[wire]("m", options=[("temperature", 0)])
