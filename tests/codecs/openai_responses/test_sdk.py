"""The real SDK reads what the codec writes, and the codec reads what the SDK gives."""

import json
from typing import Any

import openai
import pytest
from openai.types.responses import Response

from suture.codecs import Request, get_codec
from suture.messages import AgenticMessage, AssistantGenText, FunctionToolCall, ResponseMeta, TokenUsage, ToolInfo
from tests.codecs.answering import answering
from tests.codecs.openai_responses.samples import MADE, WIRE
from tests.codecs.openai_responses.server import frame, make_body, write_reply, write_stream

codec = get_codec(WIRE)
META = ResponseMeta(
    finish_reason="stop",
    usage=TokenUsage(prompt_tokens=3, completion_tokens=2, total_tokens=5),
    extension={"id": "resp_9f", "model": "gpt-5"},
)
TEXT, CALL = AssistantGenText("hello"), FunctionToolCall("a", "f", '{"x":1}')
REPLY = AgenticMessage("assistant", [TEXT, CALL], response_meta=META)
REQUEST = Request(
    [AgenticMessage.user("hi"), AgenticMessage.assistant([CALL]), AgenticMessage.tool_result("a", "f", "42")],
    "Be brief.",
    [ToolInfo("f", "Do.")],
    {"model": "gpt-5", "max_tokens": 80},
)


def test_the_sdk_reads_a_reply_and_sends_a_request_as_it_was_written():
    payload: Any = codec.encode_request(REQUEST).payload
    body = json.dumps(write_reply(REPLY)).encode()
    with answering(openai, "OpenAI", body, "application/json") as (client, asked):
        response = client.responses.create(**payload)
    assert asked == [payload]
    assert response.output_text == "hello"
    assert codec.decode_reply(response.to_dict()).content_blocks == (TEXT, CALL)


def test_the_sdk_reads_a_stream():
    payload: Any = codec.encode_request(REQUEST).payload
    sent = write_stream(write_reply(REPLY))
    body = b"".join(map(frame, sent))
    with (
        answering(openai, "OpenAI", body, "text/event-stream") as (client, _),
        client.responses.create(**payload, stream=True) as stream,
    ):
        events = list(stream)
    assert [event.type for event in events] == [event["type"] for event in sent]
    reader = codec.reader()
    for event in events:
        reader.feed(event.to_dict())
    assert reader.finish().content_blocks == (TEXT, CALL)


@pytest.mark.parametrize("name", MADE)
def test_the_sdks_objects_are_read_like_what_they_stand_for(name: str):
    items, _ = MADE[name]
    body = make_body(*items)
    response = Response.construct(**body)
    given, meant = codec.decode_messages([*response.output]), codec.decode_messages(body["output"])
    assert codec.encode_messages(given) == codec.encode_messages(meant)
    assert [type(block) for message in given for block in message.content_blocks] == [
        type(block) for message in meant for block in message.content_blocks
    ]
