"""Whose rules hold, and what else can be set."""

import asyncio
from typing import Any, ClassVar

import pytest
from agent_framework import Agent, Message

from suture.errors import ConfigError
from suture.integrations.agent_framework import wrap
from tests.guests.agent_framework.talking import FakeClient, call, flat, result, run, write

ILLEGAL = "fn.read:0"
BROKEN = [("user", "When?"), ("turn", [("a", "tides", "{}")]), ("user", "Stop.")]


def sent(client: FakeClient, messages: list[Message]) -> list[tuple[Any, ...]]:
    asyncio.run(run(Agent(client=client), messages))
    return flat(client.sent[0])


def ids_of(client: FakeClient) -> list[str]:
    """Return the ids that two turns with the same illegal one go by."""
    turns = [
        Message(role, [content])
        for _ in range(2)
        for role, content in (("user", "When?"), ("assistant", call(ILLEGAL)), ("tool", result(ILLEGAL)))
    ]
    return [atom[1] for atom in sent(client, turns) if atom[0] == "call"]


class Stored(FakeClient):
    """A client whose service keeps conversations if nobody says otherwise, as that for Responses does."""

    STORES_BY_DEFAULT: ClassVar[bool] = True


class OpenAIFake(FakeClient):
    """A client that is known by its provider's name."""

    OTEL_PROVIDER_NAME: ClassVar[str] = "openai"


class AnthropicFan(OpenAIFake):
    """A client of the user's own, whose name says nothing."""


class StoredOpenAI(Stored):
    OTEL_PROVIDER_NAME: ClassVar[str] = "azure.ai.openai"


class Mistral(FakeClient):
    OTEL_PROVIDER_NAME: ClassVar[str] = "mistralai"


class Unknown(FakeClient):
    OTEL_PROVIDER_NAME: ClassVar[str] = "unknown"


class Vertex(FakeClient):
    """A client for another provider's model at Google's; its class is named after that provider."""

    OTEL_PROVIDER_NAME: ClassVar[str] = "google.vertex.ai"


AnthropicVertexClient = type(
    "AnthropicVertexClient", (Vertex,), {"__module__": "agent_framework_anthropic._vertex_client"}
)


@pytest.mark.parametrize(
    ("kind", "prefixes"),
    [
        (OpenAIFake, [ILLEGAL, ILLEGAL]),
        (AnthropicFan, [ILLEGAL, ILLEGAL]),
        (StoredOpenAI, [ILLEGAL, "call_"]),
        (FakeClient, ["toolu_", "toolu_"]),
        (Unknown, ["toolu_", "toolu_"]),
        (AnthropicVertexClient, ["toolu_", "toolu_"]),
        (Vertex, [ILLEGAL, ILLEGAL]),
    ],
)
def test_the_rules_of_the_clients_provider_hold(kind: Any, prefixes: list[str]):
    ids = ids_of(wrap(kind()))
    assert [each.startswith(prefix) for each, prefix in zip(ids, prefixes, strict=True)] == [True, True]


def test_mistral_wants_nine_letters_and_digits():
    assert {len(each) for each in ids_of(wrap(Mistral()))} == {9}


def test_a_profile_can_be_given():
    assert ids_of(wrap(FakeClient(), profile="openai-chat")) == [ILLEGAL, ILLEGAL]


def test_orphans_can_be_dropped():
    history = [Message("user", ["When?"]), Message("tool", [result("ghost")]), Message("user", ["Stop."])]
    assert sent(wrap(FakeClient(), orphans="drop"), history) == flat(write([BROKEN[0], BROKEN[2]]))


def test_a_generator_says_what_stands_for_a_missing_result():
    client = wrap(FakeClient(), generator=lambda name, call_id: f"{name} {call_id}: gone")
    assert sent(client, write(BROKEN))[2] == ("result", "a", "tides a: gone")


def test_the_language_of_the_texts_can_be_chosen():
    assert sent(wrap(FakeClient(), language="zh"), write(BROKEN))[2][2].startswith("工具调用 tides")


def test_the_latest_settings_hold():
    sent_twice = sent(wrap(wrap(FakeClient(), profile="mistral"), language="zh"), write(BROKEN))
    assert sent_twice[1] == ("call", "a", "tides")
    assert sent_twice[2][2].startswith("工具调用 tides")


def test_a_wrong_setting_is_refused():
    with pytest.raises(ConfigError, match="unknown profile 'none'"):
        wrap(FakeClient(), profile="none")
    with pytest.raises(ConfigError, match="a chat client that derives from BaseChatClient, found Agent"):
        wrap(Agent(client=FakeClient()))  # pyright: ignore[reportArgumentType] - what is tested
