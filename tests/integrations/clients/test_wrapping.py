"""A wrapped client is a client of the same class with the same connections, and so are its copies."""

from collections.abc import Callable
from copy import copy
from typing import Any

import anthropic
import openai
import pytest
from anthropic.lib.bedrock import AnthropicBedrock, AsyncAnthropicBedrock
from anthropic.lib.vertex import AnthropicVertex, AsyncAnthropicVertex

from suture.errors import ConfigError
from suture.integrations import anthropic as suture_anthropic
from suture.integrations import openai as suture_openai
from suture.profiles import IdForm, Profile
from tests.histories import flat, write
from tests.integrations.clients.sending import (
    CREATE,
    FIELDS,
    WIRES,
    answered,
    closed_at_the_end,
    plain_client,
    send,
    talk,
    wrap,
)
from tests.models.loopback import Loopback

pytestmark = pytest.mark.usefixtures("surroundings")
BROKEN = [("user", "When is high tide?"), ("turn", [("call_1", "tides", "{}")]), ("user", "Stop.")]
ORPHAN = [("user", "When is high tide?"), ("result", "ghost", "tides", "06:12"), ("user", "Stop.")]
UNKNOWN = (
    "Tool call tides with id call_1 has no recorded result - it may or may not have run. Check before running it again."
)


def sent_with(wire: str, make: Callable[[Any], Any], steps: Any = BROKEN, *, asynchronous: bool = False) -> list[Any]:
    """Send `steps` with the client that `make` makes of a plain one; return what the server got, atom by atom."""

    async def use(server: Loopback) -> None:
        async with plain_client(wire, server.url, asynchronous=asynchronous) as client:
            await send(make(client), CREATE[wire].call, write(wire, steps))

    (asked,) = talk(wire, use)
    return flat(asked.payload[FIELDS[wire]])


COPIES: dict[str, Callable[[Any], Any]] = {
    "with_options": lambda client: wrap(client).with_options(timeout=7),
    "copy": lambda client: wrap(client).copy(max_retries=7),
    "a copy of a copy": lambda client: wrap(client).copy().with_options(max_retries=7),
    "copy.copy": lambda client: copy(wrap(client)),
    "wrapped twice": lambda client: wrap(wrap(client)),
    "used before it was wrapped": lambda client: _used(client) and wrap(client),
}


def _used(client: Any) -> bool:
    """Touch the client's resources, which are made when they are first used."""
    return bool(client.messages if hasattr(client, "messages") else (client.chat.completions, client.responses))


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("make", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("wire", WIRES)
def test_copies_send_whole_histories_too(wire: str, make: Callable[[Any], Any], asynchronous: bool):
    sent = sent_with(wire, make, asynchronous=asynchronous)
    assert [atom[0] for atom in sent] == ["text", "call", "result", "text"]
    assert sent[2] == ("result", "call_1", UNKNOWN)


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("wire", WIRES)
def test_the_given_client_stays_as_it_is(wire: str, asynchronous: bool):
    states: list[Any] = []

    def make(client: Any) -> Any:
        before = dict(vars(client))
        wrapped = wrap(client)
        states.extend([before, dict(vars(client)), type(wrapped) is type(client), wrapped is client])
        return client

    assert sent_with(wire, make, asynchronous=asynchronous) == flat(write(wire, BROKEN))
    before, after, same_class, same_client = states
    assert before == after
    assert (same_class, same_client) == (True, False)


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("wire", WIRES)
def test_both_clients_use_the_same_connection_and_settings(wire: str, asynchronous: bool):
    connections: list[int] = []

    async def use(server: Loopback) -> None:
        settings = {"max_retries": 7, "timeout": 11.0, "default_headers": {"x-port": "Dover"}}
        async with plain_client(wire, server.url, asynchronous=asynchronous, **settings) as client:
            wrapped = wrap(client)
            for each in (client, wrapped, wrapped.with_options(timeout=12.0)):
                await send(each, CREATE[wire].call, write(wire, BROKEN))
            connections.append(server.connections)
            assert (wrapped.max_retries, wrapped.timeout) == (7, 11.0)

    asked = talk(wire, use)
    assert connections == [1]
    assert [each.headers["x-port"] for each in asked] == ["Dover"] * 3
    assert asked[0].headers["user-agent"] == asked[1].headers["user-agent"]


def test_copies_keep_the_credentials_of_a_client():
    """The SDK asks for the very class of a client before it hands these on."""

    def token(**_: Any) -> Any:
        raise AssertionError("nothing is sent here")

    with anthropic.Anthropic(credentials=token) as client:
        assert client.with_options().credentials is token
        assert wrap(client).credentials is token
        assert wrap(client).with_options(timeout=7).credentials is token


# Who else speaks so


def _azure(url: str, *, asynchronous: bool) -> Any:
    kind: Any = openai.AsyncAzureOpenAI if asynchronous else openai.AzureOpenAI
    return kind(api_key="none", azure_endpoint=url, api_version="2026-01-01")


def _openai_bedrock(url: str, *, asynchronous: bool) -> Any:
    kind: Any = openai.AsyncBedrockOpenAI if asynchronous else openai.BedrockOpenAI
    return kind(api_key="none", aws_region="us-east-1", base_url=url)


def _bedrock(url: str, *, asynchronous: bool) -> Any:
    kind: Any = AsyncAnthropicBedrock if asynchronous else AnthropicBedrock
    return kind(aws_access_key="none", aws_secret_key="none", aws_region="us-east-1", base_url=url)


def _vertex(url: str, *, asynchronous: bool) -> Any:
    kind: Any = AsyncAnthropicVertex if asynchronous else AnthropicVertex
    return kind(access_token="none", project_id="harbour", region="us-east5", base_url=url)


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("copied", [False, True], ids=["wrapped", "copied"])
@pytest.mark.parametrize(
    ("wire", "make"),
    [
        ("openai-chat", _azure),
        ("openai-responses", _azure),
        ("openai-responses", _openai_bedrock),
        ("anthropic", _bedrock),
        ("anthropic", _vertex),
    ],
)
def test_clients_of_platforms_send_whole_histories(
    wire: str, make: Callable[..., Any], copied: bool, asynchronous: bool
):
    async def use(server: Loopback) -> None:
        client = make(server.url, asynchronous=asynchronous)
        async with closed_at_the_end(client):
            wrapped = wrap(client).with_options(timeout=7) if copied else wrap(client)
            assert type(wrapped) is type(client)
            await send(wrapped, CREATE[wire].call, write(wire, BROKEN))

    (asked,) = talk(wire, use, answered(wire))
    assert ("result", "call_1", UNKNOWN) in flat(asked.payload[FIELDS[wire]])


# Settings


@pytest.mark.parametrize("wire", WIRES)
def test_orphans_can_be_dropped(wire: str):
    sent = sent_with(wire, lambda client: wrap(client, orphans="drop"), ORPHAN)
    assert sent == [("text", "user", "When is high tide?"), ("text", "user", "Stop.")]


@pytest.mark.parametrize("wire", WIRES)
def test_a_generator_says_what_stands_for_a_missing_result(wire: str):
    sent = sent_with(wire, lambda client: wrap(client, generator=lambda name, call_id: f"{name} {call_id}: gone"))
    assert sent[2] == ("result", "call_1", "tides call_1: gone")


@pytest.mark.parametrize("wire", WIRES)
def test_the_language_of_the_texts_can_be_chosen(wire: str):
    sent = sent_with(wire, lambda client: wrap(client, language="zh"))
    assert sent[2][2].startswith("工具调用 tides")


def test_a_server_that_speaks_like_openai_has_rules_of_its_own():
    sent = sent_with("openai-chat", lambda client: wrap(client, profile="mistral"))
    (call_id,) = {atom[1] for atom in sent if atom[0] in {"call", "result"}}
    assert len(call_id) == 9
    assert sent_with("openai-responses", lambda client: wrap(client, profile="mistral"))[1][1] == "call_1"


def test_a_profile_of_ones_own_can_be_given():
    mine = Profile.extend("openai-chat", name="mine", ids=IdForm(pattern="[a-zA-Z0-9]{5}", prefix="", length=5))
    sent = sent_with("openai-chat", lambda client: wrap(client, profile=mine))
    (call_id,) = {atom[1] for atom in sent if atom[0] in {"call", "result"}}
    assert len(call_id) == 5


def test_the_latest_settings_hold():
    sent = sent_with("openai-chat", lambda client: wrap(wrap(client, profile="mistral"), language="zh"))
    assert sent[1] == ("call", "call_1", "tides")
    assert sent[2][2].startswith("工具调用 tides")


def test_a_profile_that_says_nothing_of_it_is_refused():
    with openai.OpenAI(api_key="none") as client:
        with pytest.raises(ConfigError, match=r"'bedrock' has no rules for .* these do: pairing, openai-chat,"):
            suture_openai.wrap(client, profile="bedrock")
        with pytest.raises(ConfigError, match="unknown profile 'none'"):
            suture_openai.wrap(client, profile="none")


def test_what_is_no_client_of_the_sdk_is_refused():
    with openai.OpenAI(api_key="none") as client, anthropic.Anthropic(api_key="none") as other:
        with pytest.raises(ConfigError, match="expected a client of the package openai, found Anthropic"):
            suture_openai.wrap(other)
        with pytest.raises(ConfigError, match="expected a client of the package anthropic, found OpenAI"):
            suture_anthropic.wrap(client)
        with pytest.raises(ConfigError, match="expected a client of the package openai, found Chat"):
            suture_openai.wrap(client.chat)
