"""What known servers take and demand: thoughts go only to those that take them, and each is asked by its own rules."""

import asyncio
import json
import logging
from typing import Any

import pytest
from openai import AsyncOpenAI

from suture import ChatModelAgent
from suture.errors import ModelRequestError
from suture.kernel import ModelFailoverConfig
from suture.messages import Message
from suture.models import AnthropicModel, ModelRequest, OpenAIChatModel
from tests.models.loopback import Answer, Asked, loopback
from tests.models.providers import frame, make_model, refusal, stream_headers, streamed, text_reply

pytestmark = pytest.mark.usefixtures("surroundings")
CHAT = "openai-chat"
FIELDS = ("reasoning_content", "reasoning", "reasoning_details")
WORDS = {
    "groq, jan#8136": (400, "'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property '{}' is unsupported)]"),
    "groq, vercel/ai#8057": (400, "messages[1].{}: {} is not supported with this model"),
    "cerebras, kilocode#10375": (400, "messages.1.assistant.{}: property 'messages.1.assistant.{}' is unsupported"),
    "mistral, litellm#30835": (422, {"object": "error", "message": {"detail": [{"type": "extra_forbidden", "loc": ["body", "messages", 1, "assistant", "{}"], "msg": "Extra inputs are not permitted", "input": "Hm."}]}, "type": "invalid_request_error"}),
}  # fmt: skip


def thinks(field: str) -> Answer:
    """Return a stream that thinks in a field, then speaks."""
    thought: Any = [{"type": "reasoning.text", "text": "Hm.", "index": 0}] if field == "reasoning_details" else "Hm."
    choices = [
        {"index": 0, "delta": {"role": "assistant", field: thought}, "finish_reason": None},
        {"index": 0, "delta": {"content": "At noon."}, "finish_reason": "stop"},
    ]
    events = [{"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [each]} for each in choices]
    return Answer([*[frame(CHAT, event) for event in events], b"data: [DONE]\n\n"], headers=stream_headers(CHAT))


def strict(field: str, words: Any, status: int) -> Any:
    """Return a server that refuses a field of a message."""

    def answer(asked: Asked) -> Answer:
        if any(field in message for message in asked.payload["messages"]):
            if isinstance(words, str):
                return refusal(CHAT, status, words.replace("{}", field))
            body = json.dumps(words).replace("{}", field).encode()
            return Answer([body], status, {"content-type": "application/json"})
        return streamed(CHAT, text_reply())

    return answer


async def move(field: str, server: Any, **settings: Any) -> tuple[Any, Any]:
    """Talk to a server that thinks in a field, then twice to another."""
    async with loopback([thinks(field)]) as one, loopback(server) as other:
        first = await ChatModelAgent(model=make_model(CHAT, one.url)).run("When?")
        agent = ChatModelAgent(model=make_model(CHAT, other.url, **settings))
        second = await agent.run("Sure?", history=first.messages)
        return await agent.run("Really?", history=second.messages), other


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("field", FIELDS)
def test_a_field_that_a_server_refuses_is_left_out_from_then_on(
    field: str, words: str, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.WARNING, "suture")
    status, said = WORDS[words]
    result, server = asyncio.run(move(field, strict(field, said, status)))
    assert result.output == "The sea is calm."
    assert [field in json.dumps(asked.payload) for asked in server.requests] == [True, False, False]
    assert [f"refuses a thought in {field}" in record.getMessage() for record in caplog.records] == [True]


@pytest.mark.parametrize("field", FIELDS)
def test_a_server_that_says_nothing_gets_the_thought_in_the_field_that_it_came_in(field: str):
    _, server = asyncio.run(move(field, [streamed(CHAT, text_reply())] * 2))
    assert all(field in asked.payload["messages"][1] for asked in server.requests)


@pytest.mark.parametrize("field", FIELDS[:2])
def test_a_refusal_of_something_else_is_not_asked_again(field: str):
    said = "The `reasoning_content` in the thinking mode must be passed back to the API."
    with pytest.raises(ModelRequestError, match="must be passed back"):
        asyncio.run(move(field, [refusal(CHAT, 400, said)]))
    with pytest.raises(ModelRequestError, match="reasoning_effort"):
        asyncio.run(move(field, [refusal(CHAT, 400, "reasoning_effort is not supported")]))


def test_a_field_that_the_profile_demands_is_refused_once_and_told():
    with pytest.raises(ModelRequestError, match="unsupported"):
        asyncio.run(move("reasoning_content", lambda _: refusal(CHAT, 400, "property 'reasoning_content' is unsupported"), profile="deepseek"))  # fmt: skip


def test_a_failover_to_a_strict_server_is_right():
    async def run() -> tuple[Any, Any]:
        strange = strict("reasoning_content", WORDS["groq, jan#8136"][1], 400)
        async with loopback([thinks("reasoning_content"), refusal(CHAT, 500)]) as one, loopback(strange) as other:
            spare = ModelFailoverConfig(models=[make_model(CHAT, other.url)])
            agent = ChatModelAgent(model=make_model(CHAT, one.url), failover=spare, model_retry_config=None)
            first = await agent.run("When?")
            return await agent.run("Sure?", history=first.messages), other

    result, _ = asyncio.run(run())
    assert result.output == "The sea is calm."


HOSTS = [("groq", "https://api.groq.com/openai/v1"), ("cerebras", "https://api.cerebras.ai/v1"), ("mistral", "https://api.mistral.ai/v1")]  # fmt: skip


@pytest.mark.parametrize("form", ["base_url", "client"])
@pytest.mark.parametrize(("host", "address"), HOSTS, ids=[host for host, _ in HOSTS])
def test_known_servers_are_not_sent_what_they_refuse(host: str, address: str, form: str):
    async def history() -> list[Any]:
        found: list[Any] = []
        for field in FIELDS:
            async with loopback([thinks(field)]) as one:
                result = await ChatModelAgent(model=make_model(CHAT, one.url)).run("When?", history=found)
                found = list(result.messages)
        return found

    where: dict[str, Any] = {"base_url": address}
    if form == "client":
        where = {"client": AsyncOpenAI(base_url=address, api_key="a-key-of-mine")}
    messages = asyncio.run(history())
    body = OpenAIChatModel("m", **where).body(ModelRequest("", [*messages, Message.user("Sure?")])).payload
    sent = {field for message in body["messages"] for field in FIELDS if field in message}
    taken = {"groq": {"reasoning"}, "cerebras": {"reasoning"}, "mistral": set()}
    assert sent == taken[host]


AT = [
    ("https://api.deepseek.com", "deepseek"),
    ("https://api.mistral.ai/v1", "mistral"),
    ("https://api.moonshot.cn/v1", "kimi"),
    ("https://api.minimax.io/v1", "minimax"),
    ("https://api.groq.com/openai/v1", "groq"),
    ("https://notmistral.ai/v1", "openai-chat"),
    ("https://mistral.ai.example/v1", "openai-chat"),
    ("http://127.0.0.1:8000/v1", "openai-chat"),
]


@pytest.mark.parametrize(("address", "profile"), AT)
def test_a_server_is_sent_requests_by_its_own_rules_unless_the_program_says_otherwise(address: str, profile: str):
    assert OpenAIChatModel("m", base_url=address).profile == profile
    assert OpenAIChatModel("m", client=AsyncOpenAI(base_url=address, api_key="a-key-of-mine")).profile == profile
    assert OpenAIChatModel("m", base_url=address, profile="openai-chat").profile == "openai-chat"


def test_a_profile_that_knows_nothing_of_the_wire_is_not_taken():
    assert AnthropicModel("m", base_url="https://api.deepseek.com/anthropic").profile == "anthropic"
    assert AnthropicModel("m", base_url="https://api.minimax.io/anthropic").profile == "minimax"
