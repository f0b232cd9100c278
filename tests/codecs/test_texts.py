"""The text of a reply is its text parts one after another, and it goes back in the parts in which it came."""

import asyncio
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from suture import ChatModelAgent
from suture.codecs import convert, encode, from_agentic, get_codec, to_agentic
from suture.messages import (
    AgenticMessage,
    AssistantGenText,
    Message,
    Reasoning,
    TextPart,
    message_from_dict,
    message_to_dict,
)
from suture.testing import ScriptedModel
from suture.wires import get_chat_wire

SIGNED = {"thoughtSignature": "c2ln"}
CITED = {"citations": [{"type": "char_location", "cited_text": "4"}]}


def gemini(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP"}]}


def anthropic(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": list(blocks), "stop_reason": "end_turn"}


def responses(*items: dict[str, Any]) -> dict[str, Any]:
    return {"status": "completed", "output": list(items)}


def says(*texts: str, **more: Any) -> dict[str, Any]:
    parts = [{"type": "output_text", "text": text} for text in texts]
    return {"type": "message", "role": "assistant", "content": parts, **more}


THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
REPLIES = {
    "gemini, a thought first": (
        "gemini",
        gemini({"text": "hm", "thought": True}, {"text": "The answer "}, {"text": "is 4.", **SIGNED}),
        "The answer is 4.",
    ),
    "gemini, a signature behind": ("gemini", gemini({"text": "It is 4."}, {"text": "", **SIGNED}), "It is 4."),
    "gemini, a thought between": (
        "gemini",
        gemini({"text": '{"city": "New '}, {"text": "hm", "thought": True}, {"text": 'York", "n": 1}', **SIGNED}),
        '{"city": "New York", "n": 1}',
    ),
    "anthropic, a cited text": (
        "anthropic",
        anthropic(
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "text", "text": "It is "},
            {"type": "text", "text": "4", **CITED},
            {"type": "text", "text": "."},
        ),
        "It is 4.",
    ),
    "responses, two parts": ("openai-responses", responses(THOUGHT, says("It is ", "4.")), "It is 4."),
    "responses, two messages": ("openai-responses", responses(says("It is "), THOUGHT, says("4.")), "It is 4."),
    "bedrock, reasoning first": (
        "bedrock",
        {
            "output": {
                "message": {
                    "role": "assistant",
                    "content": [
                        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}},
                        {"text": "It is "},
                        {"citationsContent": {"content": [{"text": "4."}], "citations": [{"title": "t"}]}},
                    ],
                }
            },
            "stopReason": "end_turn",
        },
        "It is 4.",
    ),
    "chat, parts": (
        "openai-chat",
        {
            "choices": [
                {
                    "message": {
                        "role": "assistant",
                        "content": [
                            {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                            {"type": "text", "text": "It is "},
                            {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                            {"type": "text", "text": "4."},
                        ],
                    },
                    "finish_reason": "stop",
                }
            ]
        },
        "It is 4.",
    ),
}


def sent_back(body: dict[str, Any]) -> Any:
    """Return the items of a reply as a program sends them back."""
    if "candidates" in body:
        return [body["candidates"][0]["content"]]
    if "output" in body:
        output = body["output"]
        return [output["message"]] if isinstance(output, dict) else output
    if "choices" in body:
        return [body["choices"][0]["message"]]
    return [{"role": "assistant", "content": body["content"]}]


@pytest.mark.parametrize("wire", ["message", "agentic"])
@pytest.mark.parametrize("name", REPLIES)
def test_the_text_of_a_reply_is_its_texts_and_nothing_between(name: str, wire: str):
    provider, body, text = REPLIES[name]
    codec = get_codec(provider)
    [message] = encode([codec.decode_reply(body)], wire).messages
    assert get_chat_wire(wire).text(message) == text
    assert wire == "agentic" or message.content == text
    said = get_chat_wire(wire).deltas(message)
    assert "".join(delta.text for delta in said) == text
    stored = message_from_dict(msgspec.json.decode(msgspec.json.encode(message_to_dict(message))))
    assert stored == message
    assert convert([stored], wire, provider).messages == sent_back(body)


@dataclass
class City:
    city: str
    n: int


@pytest.mark.parametrize("wire", ["message", "agentic"])
def test_an_answer_in_pieces_around_a_thought_has_its_type(wire: str):
    provider, body, _ = REPLIES["gemini, a thought between"]
    [message] = encode([get_codec(provider).decode_reply(body)], wire).messages
    agent = ChatModelAgent(model=ScriptedModel([message], wire=wire), output_type=City)
    assert asyncio.run(agent.run("Where?")).output == City("New York", 1)


def test_a_text_that_a_program_changes_is_what_goes_back():
    provider, body, _ = REPLIES["gemini, a thought first"]
    [message] = from_agentic(get_codec(provider).decode_reply(body))
    changed = msgspec.structs.replace(message, content="Four.")
    assert get_chat_wire("message").text(changed) == "Four."
    [content] = convert([changed], "message", provider).messages
    assert content["parts"] == [{"text": "hm", "thought": True}, {"text": "Four."}]


def test_parts_without_an_index_stand_behind_the_content_as_ever():
    message = Message("assistant", "a", assistant_gen_multi_content=[TextPart("b")])
    assert get_chat_wire("message").text(message) == "ab"
    assert to_agentic(message).content_blocks == (AssistantGenText("a"), AssistantGenText("b"))


def test_an_answer_is_the_final_one_if_there_is_such_a_phase():
    commentary, answer = says("Looking it up.", phase="commentary"), says('{"city":"Rome"}', phase="final_answer")
    read = get_codec("openai-responses").decode_reply(responses(commentary, THOUGHT, answer))
    message: Any = read
    for wire in ("message", "agentic"):
        [message] = encode([read], wire).messages
        assert get_chat_wire(wire).text(message) == '{"city":"Rome"}'
        assert convert([message], wire, "openai-responses").messages == [commentary, THOUGHT, answer]
    assert message.content_blocks[0].text == "Looking it up."
    alone = get_codec("openai-responses").decode_reply(responses(commentary))
    assert get_chat_wire("agentic").text(alone) == "Looking it up."


def test_a_thought_between_texts_is_no_line_break_on_another_provider():
    message = AgenticMessage.assistant([AssistantGenText("a"), Reasoning("hm"), AssistantGenText("b")])
    [said] = convert([message], "agentic", "openai-chat").messages
    assert said["content"] == "ab"


@pytest.mark.parametrize("name", REPLIES)
def test_a_text_that_stands_in_content_and_in_parts_counts_once(name: str):
    provider, body, text = REPLIES[name]
    read = get_codec(provider).decode_reply(body)
    for wire in ("message", "agentic"):
        [message] = encode([read], wire).messages
        told = "".join(get_chat_wire(wire).words(message).texts).replace("hm", "")
        assert told == f"assistant{text}"
