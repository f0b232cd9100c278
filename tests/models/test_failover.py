"""One provider fails in the middle of a conversation, and another takes over."""

import asyncio
import json
from typing import Any

import pytest

import suture
from suture import ChatModelAgent, tool
from suture.kernel import ModelFailoverConfig
from suture.messages import AgenticMessage, AssistantGenText, Reasoning
from tests.models.loopback import loopback
from tests.models.providers import WIRES, call_reply, history_in, make_model, refusal, streamed, text_reply

pytestmark = pytest.mark.usefixtures("surroundings")
PAIRS = [(first, second) for first in WIRES for second in WIRES if first != second]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_another_provider_takes_over_in_the_middle_of_a_conversation(first: str, second: str):
    @tool
    def tides(port: str) -> str:
        """Look up high tide."""
        return f"06:12 in {port}"

    asks = call_reply(
        ("call_1", "tides", '{"port": "Dover"}'),
        ("call_2", "tides", '{"port": "Hull"}'),
        text="I look that up.",
        thought="Two ports.",
        signature="c2lnbmVk",
    )

    async def run() -> tuple[Any, Any, Any]:
        async with (
            loopback([streamed(first, asks), refusal(first, 500)]) as one,
            loopback([streamed(second, text_reply())]) as other,
        ):
            agent = ChatModelAgent(
                model=make_model(first, one.url),
                tools=[tides],
                model_retry_config=None,
                failover=ModelFailoverConfig(models=[make_model(second, other.url)]),
            )
            return await agent.run("High tide in Dover and Hull?"), one, other

    result, one, other = asyncio.run(run())
    assert result.output == "The sea is calm."
    assert (len(one.requests), len(other.requests)) == (2, 1)
    sent = history_in(second, other.requests[0].payload)
    assert suture.check(sent, profile=second).acceptable
    text = json.dumps(sent, ensure_ascii=False)
    assert "06:12 in Dover" in text
    assert "06:12 in Hull" in text
    assert "c2lnbmVk" not in text  # what another provider signed is refused


THOUGHT = {"wire": "openai-chat"}
FORMS = [{}, {"field": "reasoning"}, {"field": "reasoning_details", "details": [{"type": "reasoning.text"}]}]


@pytest.mark.parametrize("form", FORMS, ids=["reasoning_content", "reasoning", "reasoning_details"])
def test_mistral_is_told_what_it_thought_itself_and_nothing_that_it_refuses(form: dict[str, Any]):
    def asks(**form: Any) -> AgenticMessage:
        thought = Reasoning("Hm.", extension={**THOUGHT, **form})
        return AgenticMessage.assistant([thought, AssistantGenText("Hello.")])

    history = [AgenticMessage.user("hi"), asks(**form), AgenticMessage.user("hi"), asks(field="thinking")]

    async def asked(profile: str) -> dict[str, Any]:
        async with loopback([streamed("openai-chat", text_reply())]) as server:
            model = make_model("openai-chat", server.url, profile=profile, wire="agentic")
            await ChatModelAgent(model=model).run("Go on.", history=history)
            return server.requests[0].payload

    body, other = asyncio.run(asked("mistral")), asyncio.run(asked("openai-chat"))
    _, first, _, second, _ = body["messages"]
    assert first == {"role": "assistant", "content": "Hello."}
    assert second["content"][0] == {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    assert "stream_options" not in body
    assert set(other["messages"][1]) > {"role", "content"}
    assert other["stream_options"] == {"include_usage": True}
