"""Bytes that Gemini sends, behind an SDK that writes them in another alphabet."""

import asyncio
import json

import pytest

from suture.messages import AgenticMessage, AssistantGenImage, FunctionToolCall
from tests.models.loopback import Answer, loopback
from tests.models.providers import AGENTIC_HELLO, make_model

pytestmark = pytest.mark.usefixtures("surroundings")


def test_only_bytes_are_put_into_another_alphabet_and_arguments_come_as_they_are():
    args = {"data": "a-b_c", "deep": [{"thoughtSignature": "-_-_"}]}
    parts = [
        {"inlineData": {"mimeType": "image/png", "data": "+/+/"}},
        {"functionCall": {"name": "save", "args": args}, "thoughtSignature": "/+/+"},
    ]
    event = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}

    async def ask() -> AgenticMessage:
        async with loopback([Answer([b"data: %s\n\n" % json.dumps(event).encode()])]) as server:
            model = make_model("gemini", server.url, wire="agentic")
            return [item async for item in model.stream(AGENTIC_HELLO)][-1]

    message = asyncio.run(ask())
    [image] = [block for block in message.content_blocks if isinstance(block, AssistantGenImage)]
    [call] = [block for block in message.content_blocks if isinstance(block, FunctionToolCall)]
    assert json.loads(call.arguments) == args
    assert image.base64_data == "+/+/"
    assert "/+/+" in repr(message)
