"""Recorded exchanges: requests come back as they were, and streams say what botocore finds in them, also when cut."""

import json

import pytest

from suture.codecs import Request, get_codec
from suture.errors import StreamCutError
from suture.messages import AgenticMessage, AssistantGenText, Delta, FunctionToolCall, FunctionToolResult
from tests.codecs.bedrock.pieces import WIRE
from tests.codecs.bedrock.sdk import complaints, parsed_events
from tests.codecs.recordings import Exchange, recordings
from tests.corpus import needs_corpus

codec = get_codec(WIRE)
EXCHANGES = [
    pytest.param(exchange, id=f"{name}-{number}")
    for name, exchanges in recordings("bedrock-converse")
    for number, exchange in enumerate(exchanges)
]
recorded = pytest.mark.parametrize("exchange", EXCHANGES or [pytest.param(None, marks=needs_corpus)])


def reply_in(exchange: Exchange) -> tuple[list[Delta], AgenticMessage]:
    reader = codec.reader()
    deltas = [delta for event in parsed_events(exchange.body) for delta in reader.feed(event)]
    return deltas, reader.finish()


@recorded
def test_a_recorded_request_comes_back_as_it_was(exchange: Exchange):
    request = codec.decode_request(exchange.request)
    assert codec.encode_request(request) == (exchange.request, ())
    assert request.instruction == exchange.request["system"][0]["text"]
    assert not complaints({name: value for name, value in exchange.request.items() if name != "modelId"})


@recorded
def test_a_recorded_stream_says_what_botocore_finds_in_it(exchange: Exchange):
    deltas, message = reply_in(exchange)
    events = parsed_events(exchange.body)
    pieces = [event["contentBlockDelta"]["delta"] for event in events if "contentBlockDelta" in event]
    text = "".join(piece.get("text", "") for piece in pieces)
    assert "".join(delta.text for delta in deltas) == text
    assert "".join(block.text for block in message.content_blocks if isinstance(block, AssistantGenText)) == text
    calls = [block for block in message.content_blocks if isinstance(block, FunctionToolCall)]
    begun = [event["contentBlockStart"]["start"]["toolUse"] for event in events if "contentBlockStart" in event]
    assert [{"toolUseId": call.call_id, "name": call.name} for call in calls] == begun
    assert [json.loads(call.arguments) for call in calls] == [
        json.loads(piece["toolUse"]["input"]) for piece in pieces if "toolUse" in piece
    ]
    [usage] = [event["metadata"]["usage"] for event in events if "metadata" in event]
    counted = message.response_meta.usage if message.response_meta else None
    assert counted is not None
    assert counted == deltas[-1].usage
    assert (counted.prompt_tokens, counted.completion_tokens, counted.total_tokens) == (
        usage["inputTokens"],
        usage["outputTokens"],
        usage["totalTokens"],
    )


@recorded
def test_a_recorded_stream_is_cut_until_its_end_was_said(exchange: Exchange):
    whole = reply_in(exchange)[1]
    reader = codec.reader()
    for event in parsed_events(exchange.body):
        reader.feed(event)
        if "messageStop" in event:
            break
        with pytest.raises(StreamCutError):
            reader.finish()
    assert reader.finish().content_blocks == whole.content_blocks


@recorded
def test_a_recorded_reply_fits_behind_the_request_it_answers(exchange: Exchange):
    reply = reply_in(exchange)[1]
    request = codec.decode_request(exchange.request)
    answers = [
        FunctionToolResult(block.call_id, block.name)
        for block in reply.content_blocks
        if isinstance(block, FunctionToolCall)
    ]
    more = [AgenticMessage("user", tuple(answers))] if answers else [AgenticMessage.user("And then?")]
    payload = codec.encode_request(Request([*request.messages, reply, *more], tools=request.tools)).payload
    assert payload["messages"][: len(request.messages)] == exchange.request["messages"]
    assert not complaints(payload)
