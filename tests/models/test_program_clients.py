"""Clients that a program passes in: each event loop has its own connections, and the client stays as it is."""

import asyncio
import gc
import ssl
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from weakref import ref

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from suture import ChatModelAgent
from suture._loops import _LOOPS
from suture.errors import ConfigError, ModelError
from suture.models import OpenAIChatModel
from suture.models.clients import _ATTRIBUTE, client_of_loop
from tests.models.loopback import Asked, json_answer, loopback, serving
from tests.models.providers import KINDS, WRITERS, http_of, streamed, text_reply
from tests.models.test_clients import (
    GIVEN,
    given_anthropic,
    given_azure,
    given_bedrock,
    given_gemini,
    given_openai,
    text_of,
)

pytestmark = pytest.mark.usefixtures("surroundings")
SAID = "The sea is calm."
HTTPX = http_of("openai-chat")
ASYNC = [each for each in GIVEN if each[0] != "bedrock"]
MAKERS = [(wire, make) for wire, make, _ in GIVEN]


@pytest.fixture(autouse=True)
def no_loops() -> Any:
    """Begin and end without idle loops."""
    _LOOPS.close()
    yield
    _LOOPS.close()


def make_agent(wire: str, client: Any) -> Any:
    return ChatModelAgent(model=KINDS[wire]("m", client=client))


def answering(wire: str) -> Any:
    """Answer each request as it wants it: as a stream, or whole, as the programs' own requests do."""

    def answer(asked: Asked) -> Any:
        if asked.payload.get("stream") or "stream" in asked.path.lower():
            return streamed(wire, text_reply())
        return json_answer(WRITERS[wire].write_reply(text_reply()))

    return answer


async def ask_directly(wire: str, client: Any) -> str:
    """Ask as the program itself does, with its client."""
    if wire == "openai-chat":
        said = await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
        return said.choices[0].message.content
    if wire == "openai-responses":
        return (await client.responses.create(model="m", input="hi")).output_text
    if wire == "anthropic":
        said = await client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}])
        return said.content[0].text
    return (await client.aio.models.generate_content(model="m", contents="hi")).text


async def shut(client: Any) -> None:
    if hasattr(client, "aio"):
        await client.aio.aclose()
        client.close()
    else:
        await client.close()


@pytest.mark.parametrize(("wire", "make"), MAKERS)
def test_run_sync_with_a_given_client_keeps_one_connection(wire: str, make: Any):
    with serving([streamed(wire, text_reply())]) as server:
        client = make(server.url)
        agent = make_agent(wire, client)
        assert [agent.run_sync("hi").output for _ in range(5)] == [SAID] * 5
        assert server.connections == 1
        _LOOPS.close()
        if wire == "bedrock":
            client.close()


@pytest.mark.parametrize(("wire", "make"), MAKERS)
def test_a_given_client_works_in_one_loop_after_another(wire: str, make: Any):
    with serving([streamed(wire, text_reply())]) as server:
        client = make(server.url)
        agent = make_agent(wire, client)
        assert [asyncio.run(agent.run("hi")).output for _ in range(3)] == [SAID] * 3
        assert agent.run_sync("hi").output == SAID
        if wire == "bedrock":
            client.close()


@pytest.mark.parametrize(("wire", "make"), MAKERS)
def test_a_given_client_works_in_several_threads_at_once(wire: str, make: Any):
    said: list[str] = []
    with serving([streamed(wire, text_reply())]) as server:
        client = make(server.url)
        agent = make_agent(wire, client)
        meet = threading.Barrier(4)

        def ask() -> None:
            meet.wait()
            said.extend(agent.run_sync("hi").output for _ in range(3))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if wire == "bedrock":
            client.close()
    assert said == [SAID] * 12


@pytest.mark.parametrize(("wire", "make", "path"), ASYNC)
def test_the_program_goes_on_to_use_its_client_in_its_own_loop(wire: str, make: Any, path: str):
    with serving(answering(wire)) as server:
        client = make(server.url)
        agent = make_agent(wire, client)

        async def mixed() -> list[str]:
            return [await ask_directly(wire, client), (await agent.run("hi")).output, await ask_directly(wire, client)]

        with asyncio.Runner() as mine:
            assert agent.run_sync("hi").output == SAID
            assert mine.run(mixed()) == [SAID] * 3
            assert agent.run_sync("hi").output == SAID
            assert mine.run(mixed()) == [SAID] * 3
            assert server.connections == 3  # of `run_sync`, of the agent in this loop, and the program's own
            mine.run(shut(client))
        assert path


@pytest.mark.parametrize(("wire", "make", "path"), ASYNC)
def test_the_given_client_stays_as_it_is(wire: str, make: Any, path: str):
    def state(thing: Any) -> dict[str, Any]:
        return dict(vars(thing))

    with serving([streamed(wire, text_reply())]) as server:
        client = make(server.url)
        parts = [client, client._api_client if wire == "gemini" else client._client]
        before = [state(part) for part in parts]
        agent = make_agent(wire, client)
        assert agent.run_sync("hi").output == SAID
        assert asyncio.run(agent.run("hi")).output == SAID
        _LOOPS.close()
        gc.collect()
        assert [state(part) for part in parts] == before
        if wire == "gemini":
            assert not client._api_client._httpx_client.is_closed
        else:
            assert not client.is_closed()
        assert path


def test_a_key_that_is_changed_later_is_sent():
    with serving([streamed("openai-chat", text_reply())]) as server:
        client = given_openai(server.url)
        agent = make_agent("openai-chat", client)
        agent.run_sync("hi")
        client.api_key = "rotated"
        agent.run_sync("hi")
        assert [asked.headers["authorization"] for asked in server.requests] == ["Bearer given", "Bearer rotated"]
        assert server.connections == 1


def test_another_http_client_in_the_same_client_is_used():
    with serving([streamed("openai-chat", text_reply())]) as server:
        client = given_openai(server.url)
        agent = make_agent("openai-chat", client)
        agent.run_sync("hi")
        client._client = HTTPX.AsyncClient(headers={"x-second": "yes"})
        agent.run_sync("hi")
        assert [asked.headers.get("x-second") for asked in server.requests] == [None, "yes"]
        transport: Any = client._client._transport
        assert transport._pool.connections == []
        assert server.connections == 2


def test_a_client_that_the_program_closed_is_refused_and_not_tried_again():
    with serving([streamed("openai-chat", text_reply())]) as server:
        client = given_openai(server.url)
        agent = make_agent("openai-chat", client)
        asyncio.run(client.close())
        with pytest.raises(ConfigError, match="is closed; pass one that stays open"):
            agent.run_sync("hi")


def test_the_copy_of_a_client_that_is_gone_is_closed_while_the_loop_goes_on():
    async def main() -> int:
        async with loopback([streamed("openai-chat", text_reply())]) as server:
            for _ in range(3):
                client = given_openai(server.url)
                gone = ref(client)
                assert client.chat.completions is not None  # parts that lead back to it
                assert await text_of(OpenAIChatModel("m", client=client)) == SAID
                await client.close()
                del client
                gc.collect()
                assert gone() is None
            await server.empty.wait()  # a copy that stays open would keep this waiting
            return server.connections

    assert asyncio.run(main()) == 3


# --- clients with an HTTP client of the program's own ---------------------------------------------


def http_with(**settings: Any) -> Any:
    return HTTPX.AsyncClient(**settings)


def openai_over(http: Any, url: str) -> Any:
    import openai

    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="given", max_retries=0, http_client=http)


def run_everywhere(agent: Any) -> list[str]:
    return [
        *(agent.run_sync("hi").output for _ in range(2)),
        *(asyncio.run(agent.run("hi")).output for _ in range(2)),
        agent.run_sync("hi").output,
    ]


def test_hooks_headers_cookies_and_auth_of_the_http_client_hold_in_each_loop():
    seen: list[str] = []

    async def hook(request: Any) -> None:
        seen.append(request.method)

    http = http_with(event_hooks={"request": [hook]}, headers={"x-team": "sea"}, cookies={"a": "b"})
    with serving([streamed("openai-chat", text_reply())]) as server:
        assert run_everywhere(make_agent("openai-chat", openai_over(http, server.url))) == [SAID] * 5
        assert {(each.headers["x-team"], each.headers["cookie"]) for each in server.requests} == {("sea", "a=b")}
        assert seen == ["POST"] * 5
        assert server.connections == 3


def test_a_proxy_of_the_http_client_holds_in_each_loop():
    with serving([streamed("openai-chat", text_reply())]) as proxy:
        http = http_with(proxy=proxy.url)
        agent = make_agent("openai-chat", openai_over(http, "http://elsewhere.example"))
        assert run_everywhere(agent) == [SAID] * 5
        assert {asked.path for asked in proxy.requests} == {"http://elsewhere.example/v1/chat/completions"}
        assert proxy.connections == 3


def test_mounts_of_the_http_client_hold_in_each_loop():
    with serving([streamed("openai-chat", text_reply())]) as server:
        http = http_with(mounts={"http://127.0.0.1": HTTPX.AsyncHTTPTransport(retries=1)}, transport=Refusing())
        assert run_everywhere(make_agent("openai-chat", openai_over(http, server.url))) == [SAID] * 5
        assert server.connections == 3


class Refusing:
    """A transport that must not be used."""

    async def handle_async_request(self, request: Any) -> Any:
        raise AssertionError(request.url)

    async def aclose(self) -> None:
        pass


def test_a_transport_around_another_has_its_own_connections_in_each_loop():
    class Counting(HTTPX.AsyncBaseTransport):
        def __init__(self, inner: Any) -> None:
            self.inner, self.seen = inner, seen

        async def handle_async_request(self, request: Any) -> Any:
            self.seen.append(request.method)
            return await self.inner.handle_async_request(request)

        async def aclose(self) -> None:
            await self.inner.aclose()

    seen: list[str] = []
    with serving([streamed("openai-chat", text_reply())]) as server:
        http = http_with(transport=Counting(HTTPX.AsyncHTTPTransport()))
        assert run_everywhere(make_agent("openai-chat", openai_over(http, server.url))) == [SAID] * 5
        assert seen == ["POST"] * 5
        assert server.connections == 3


def test_a_transport_that_has_no_pool_is_used_as_it_is():
    class Own(HTTPX.AsyncBaseTransport):
        async def handle_async_request(self, request: Any) -> Any:
            used.append(self)
            pieces = streamed("openai-chat", text_reply()).pieces
            return HTTPX.Response(200, headers={"content-type": "text/event-stream"}, content=b"".join(pieces))

    used: list[Any] = []
    own = Own()
    client = openai_over(http_with(transport=own), "http://elsewhere.example")
    assert run_everywhere(make_agent("openai-chat", client)) == [SAID] * 5
    assert used == [own] * 5


def test_the_aiohttp_transport_of_the_sdk_works_in_each_loop():
    import openai

    with serving([streamed("openai-chat", text_reply())]) as server:
        client = openai_over(openai.DefaultAioHttpClient(), server.url)
        agent = make_agent("openai-chat", client)
        assert run_everywhere(agent) == [SAID] * 5
        assert server.connections == 3
        server.hang_up()
        assert agent.run_sync("hi").output == SAID
        _LOOPS.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a certificate for 127.0.0.1 that signs itself, and its key."""
    now, folder = datetime.now(UTC), tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loopback")])
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(1))
    signed = made.add_extension(address, critical=False).sign(key, hashes.SHA256())
    (folder / "certificate.pem").write_bytes(signed.public_bytes(Encoding.PEM))
    (folder / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return folder / "certificate.pem", folder / "key.pem"


@pytest.mark.parametrize("verify", [True, False])
def test_certificates_of_the_http_client_hold_in_each_loop(verify: bool, certificate: tuple[Path, Path]):
    server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server_side.load_cert_chain(*certificate)
    trusted = ssl.create_default_context(cafile=str(certificate[0]))
    with serving([streamed("openai-chat", text_reply())], tls=server_side) as server:
        http = http_with(verify=trusted if verify else False)
        agent = make_agent("openai-chat", openai_over(http, server.url))
        assert run_everywhere(agent) == [SAID] * 5
        assert server.connections == 3
        server.hang_up()
        assert agent.run_sync("hi").output == SAID
        with pytest.raises(ModelError, match="CERTIFICATE_VERIFY_FAILED") as caught:
            make_agent("openai-chat", openai_over(http_with(), server.url)).run_sync("hi")
        assert (caught.value.retryable, caught.value.attempts) == (False, 1)


# --- clients that are refused ---------------------------------------------------------------------


def sync_openai(url: str) -> Any:
    import openai

    return openai.OpenAI(api_key="k", base_url=url)


def sync_azure(url: str) -> Any:
    import openai

    return openai.AzureOpenAI(api_key="k", azure_endpoint=url, api_version="1")


def sync_anthropic(url: str) -> Any:
    import anthropic

    return anthropic.Anthropic(api_key="k", base_url=url)


def a_class(_: str) -> Any:
    import openai

    return openai.AsyncOpenAI


@pytest.mark.parametrize(
    ("wire", "make", "told"),
    [
        ("openai-chat", sync_openai, "AsyncOpenAI instead of OpenAI"),
        ("openai-responses", sync_azure, "AsyncAzureOpenAI instead of AzureOpenAI"),
        ("anthropic", sync_anthropic, "AsyncAnthropic instead of Anthropic"),
        ("openai-chat", given_anthropic, r"such as openai.AsyncOpenAI\(\), not a AsyncAnthropic of anthropic"),
        ("anthropic", given_openai, r"such as anthropic.AsyncAnthropic\(\)"),
        ("anthropic", given_azure, r"such as anthropic.AsyncAnthropic\(\)"),
        ("gemini", given_openai, r"such as genai.Client\(\)"),
        ("bedrock", given_gemini, "such as boto3.client"),
        ("openai-chat", given_bedrock, "such as openai.AsyncOpenAI"),
        ("openai-chat", a_class, "not the class AsyncOpenAI"),
    ],
)
def test_a_client_that_cannot_work_is_refused_when_the_model_is_made(wire: str, make: Any, told: str):
    with pytest.raises(ConfigError, match=told):
        KINDS[wire]("m", client=make("http://127.0.0.1:1"))


def test_a_client_of_a_class_of_the_programs_own_is_taken():
    class Scripted:
        async def post(self, *_: Any, **__: Any) -> AsyncIterator[bytes]:
            raise NotImplementedError

    client = Scripted()

    async def look() -> bool:
        return await client_of_loop(client) is client and hasattr(asyncio.get_running_loop(), _ATTRIBUTE)

    assert OpenAIChatModel("m", client=client).given_client is client
    assert asyncio.run(look())
