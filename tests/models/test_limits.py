"""How long a model waits: a silence, a connection, a whole reply; and what its error says ran out."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import pairwise
from typing import Any

import pytest

from suture.errors import ConfigError, ModelTimeoutError
from suture.models import ModelRequest, OpenAIChatModel
from suture.models.limits import Limits
from tests.models.loopback import Answer, loopback
from tests.models.providers import (
    HELLO,
    KINDS,
    WIRES,
    address,
    frames,
    http_of,
    make_model,
    stream_headers,
    text_reply,
    whole,
)
from tests.models.test_leaving import SOON, broken_off, model_is_ready, read, silent

pytestmark = pytest.mark.usefixtures("surroundings")


async def timeout_of(model: Any, request: ModelRequest[Any] = HELLO) -> str:
    await model_is_ready(model)

    async def hear() -> None:
        async for _ in model.stream(request):
            pass

    with pytest.raises(ModelTimeoutError) as caught:
        await asyncio.wait_for(hear(), SOON)
    assert caught.value.retryable
    return str(caught.value)


QUIET: dict[str, Any] = {"timeout": 0.3, "connect_timeout": 60}
"""A short silence ends the reply; connecting may take as long as a busy machine needs."""


def test_a_steady_stream_may_last_four_times_the_timeout():
    seconds, count = 5.0, 40  # a busy machine may stand still for seconds between two pieces

    async def hear(wire: str) -> str:
        body = b"".join(frames(wire, text_reply()))
        places = [len(body) * number // count for number in range(count + 1)]
        pieces = [body[start:end] for start, end in pairwise(places)]

        async def wait(_: int) -> None:
            await asyncio.sleep(4 * seconds / (count - 1))

        async with loopback([Answer(pieces, headers=stream_headers(wire), after=wait)]) as server:
            model = make_model(wire, server.url, timeout=seconds)
            return [item async for item in model.stream(HELLO)][-1].content

    async def run() -> list[str]:
        return await asyncio.gather(*[hear(wire) for wire in WIRES])

    assert asyncio.run(run()) == ["The sea is calm."] * len(WIRES)


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("wire", WIRES)
def test_a_silence_names_the_setting_for_silences(wire: str, streaming: bool):
    async def run() -> str:
        async with loopback([silent()]) as server:
            return await timeout_of(make_model(wire, server.url, streaming=streaming, **QUIET))

    said = asyncio.run(run())
    assert "nothing came for 0.3 seconds" in said
    assert "timeout= says how long a silence may last" in said


@contextmanager
def deaf() -> Iterator[str]:
    """Yield the address of a listener whose backlog is full, so that it drops every further SYN."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    port = listener.getsockname()[1]
    waiting: list[socket.socket] = []
    try:
        while True:
            waiting.append(socket.socket())
            waiting[-1].settimeout(0.3)
            try:
                waiting[-1].connect(("127.0.0.1", port))
            except TimeoutError:
                break
        yield f"http://127.0.0.1:{port}"
    finally:
        for each in (*waiting, listener):
            each.close()


@pytest.mark.parametrize("wire", WIRES)
def test_a_connection_that_is_never_made_names_the_setting_for_connecting(wire: str):
    with deaf() as url:
        said = asyncio.run(timeout_of(make_model(wire, url, timeout=600, connect_timeout=0.3)))
    assert "there was no connection after 0.3 seconds" in said
    assert "connect_timeout= says how long connecting may take" in said


@pytest.mark.parametrize("wire", WIRES)
def test_a_whole_reply_names_the_setting_for_whole_replies(wire: str):
    async def run() -> str:
        async with loopback([Answer(head=b"", then="hang")]) as server:
            return await timeout_of(make_model(wire, server.url, total_timeout=0.3))

    said = asyncio.run(run())
    assert "the reply was not whole after 0.3 seconds" in said
    assert "total_timeout= says how long a whole reply may take" in said


@pytest.mark.parametrize("wire", ["openai-chat", "openai-responses", "anthropic"])  # the others know no comments
def test_a_stream_without_end_is_left_after_the_total_time(wire: str):
    first = frames(wire, text_reply())[0]

    async def run() -> str:
        endless = Answer([first, b": still here\n\n"], headers=stream_headers(wire), then="endless")
        async with loopback([endless]) as server:
            return await timeout_of(make_model(wire, server.url, timeout=30, total_timeout=0.3))

    assert "total_timeout=" in asyncio.run(run())


@pytest.mark.parametrize("wire", ["openai-chat", "openai-responses", "anthropic", "gemini"])
def test_a_connection_has_five_seconds_whatever_the_address(wire: str, monkeypatch: pytest.MonkeyPatch):
    library = http_of(wire)
    seen: list[Any] = []

    async def refuse(_: Any, request: Any) -> None:
        seen.append(request.extensions["timeout"])
        raise library.ConnectError("no line")

    monkeypatch.setattr(library.AsyncHTTPTransport, "handle_async_request", refuse)

    async def run() -> None:
        for url, settings in (
            (None, {}),
            ("http://127.0.0.1:1", {}),
            (None, {"timeout": 2}),
            (None, {"timeout": None}),
        ):
            more = {} if url is None else {"base_url": address(wire, url)}
            with pytest.raises(Exception, match="no line"):
                await read(KINDS[wire]("m", api_key="none-needed", **more, **settings))

    asyncio.run(run())
    assert [(each["connect"], each["read"]) for each in seen] == [(5, 600), (5, 600), (2, 2), (5, None)]


def test_a_connection_of_boto3_has_five_seconds_too():
    for settings, expected in (({}, (5, 600)), ({"timeout": 2}, (2, 2)), ({"timeout": None}, (5, None))):
        config = make_model("bedrock", "http://127.0.0.1:1", **settings)._get_client().meta.config
        assert (config.connect_timeout, config.read_timeout) == expected


@pytest.mark.parametrize("wire", WIRES)
def test_a_timeout_among_the_options_is_that_of_one_request(wire: str):
    async def run() -> tuple[str, str]:
        async with loopback([silent(), broken_off(wire)]) as server:
            model = make_model(wire, server.url, timeout=600)
            request = ModelRequest("", HELLO.messages, options={"timeout": 0.3})
            return await timeout_of(model, request), await timeout_of(model, request)

    for said in asyncio.run(run()):
        assert "nothing came for 0.3 seconds" in said


def test_the_sdk_s_own_object_is_taken_as_a_timeout_where_there_is_one():
    import openai

    limits = openai.Timeout(600, read=0.3)

    async def run() -> str:
        async with loopback([silent()]) as server:
            model = make_model("openai-chat", server.url)
            for other in ("gemini", "bedrock"):
                with pytest.raises(ConfigError, match="timeout counts seconds, not Timeout"):
                    await read(make_model(other, server.url, options={"timeout": limits}))
            return await timeout_of(model, ModelRequest("", HELLO.messages, options={"timeout": limits}))

    assert "nothing came in time; timeout=" in asyncio.run(run())


@asynccontextmanager
async def own_client(wire: str, url: str) -> AsyncIterator[Any]:
    """Yield a client of the user's, which waits two minutes at least."""
    if wire == "bedrock":
        import boto3

        client = boto3.client("bedrock-runtime", endpoint_url=url)
        yield client
        client.close()
    elif wire == "gemini":
        import google.genai as genai  # noqa: PLR0402 - stubs of another package hide it from `from google import`

        client = genai.Client(api_key="none-needed", http_options={"base_url": url, "timeout": 120_000})
        yield client
        await client.aio.aclose()
        client.close()
    else:
        import anthropic
        import openai

        kind = anthropic.AsyncAnthropic if wire == "anthropic" else openai.AsyncOpenAI
        async with kind(api_key="none-needed", base_url=address(wire, url), max_retries=0, timeout=120) as client:
            yield client


@pytest.mark.parametrize("wire", WIRES)
def test_a_timeout_beside_a_client_of_ones_own_holds(wire: str):
    async def run() -> str:
        async with loopback([broken_off(wire)]) as server, own_client(wire, server.url) as client:
            return await timeout_of(KINDS[wire]("m", client=client, **QUIET))

    assert "nothing came for 0.3 seconds" in asyncio.run(run())


def test_a_client_of_ones_own_keeps_its_time():
    import openai

    async def run() -> str:
        async with (
            loopback([silent()]) as server,
            openai.AsyncOpenAI(api_key="x", base_url=server.url, max_retries=0, timeout=0.3) as client,
        ):
            return await timeout_of(OpenAIChatModel("m", client=client))

    assert "nothing came in time; timeout=" in asyncio.run(run())


@pytest.mark.parametrize("name", ["timeout", "connect_timeout", "total_timeout"])
@pytest.mark.parametrize("wrong", [0, -1, "5", True, float("nan")])
def test_a_limit_that_is_no_number_of_seconds_is_refused(name: str, wrong: Any):
    with pytest.raises(ConfigError, match=f"^{name} counts seconds"):
        OpenAIChatModel("m", **{name: wrong})


def test_a_reply_that_is_asked_for_whole_may_be_limited_too():
    async def run() -> Any:
        async with loopback([whole("openai-chat", text_reply())]) as server:
            model = make_model("openai-chat", server.url, streaming=False, total_timeout=60)
            return [item async for item in model.stream(HELLO)][-1]

    assert asyncio.run(run()).content == "The sea is calm."


def test_the_limits_of_a_request_leave_those_of_the_model_alone():
    limits = Limits(connect=None, silence=None, total=9)
    assert limits.with_silence(2) == Limits(2, 2, 9)
    assert limits == Limits(None, None, 9)
