"""Frames of Amazon's event stream, beside botocore's own reader; and recorded exchanges, cut at every byte."""

import json
from itertools import pairwise
from struct import pack
from typing import Any
from zlib import crc32

import pytest
from botocore.eventstream import EventStreamBuffer
from hypothesis import given, settings
from hypothesis import strategies as st

from suture.codecs import Request, get_codec
from suture.errors import ModelError, RateLimitError, StreamCutError
from suture.messages import AgenticMessage, AssistantGenText, Delta, FunctionToolCall, FunctionToolResult
from tests.codecs.bedrock.pieces import WIRE, json_values, words
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
REPLY = AgenticMessage.assistant([AssistantGenText("Let me see."), FunctionToolCall("a", "f", '{"q":1}')])
STREAM = b"".join(codec.frame(event) for event in codec.encode_stream(REPLY).payload)


def beside(*chunks: bytes) -> list[tuple[str, Any]]:
    """Return what botocore's reader finds in `chunks`: what each frame is, and what it holds."""
    buffer = EventStreamBuffer()
    found: list[tuple[str, Any]] = []
    for chunk in chunks:
        buffer.add_data(chunk)
        found += [(message.headers[":event-type"], json.loads(message.payload)) for message in buffer]
    return found


def ours(*chunks: bytes) -> list[tuple[str, Any]]:
    framing = codec.framing()
    return [item for chunk in chunks for event in framing.feed(chunk) for item in event.items()]


def frame(headers: bytes, payload: bytes = b"{}") -> bytes:
    """Return a frame with any headers, its checksums right."""
    prelude = pack(">II", 16 + len(headers) + len(payload), len(headers))
    whole = prelude + pack(">I", crc32(prelude)) + headers + payload
    return whole + pack(">I", crc32(whole))


def header(name: str, kind: int, value: bytes) -> bytes:
    return bytes([len(name)]) + name.encode() + bytes([kind]) + value


def text_header(name: str, value: str) -> bytes:
    return header(name, 7, pack(">H", len(value)) + value.encode())


@given(
    events=st.lists(st.tuples(words, st.dictionaries(words, json_values, max_size=3)), max_size=4),
    cuts=st.lists(st.integers(0, 400), max_size=5),
)
@settings(max_examples=100, deadline=None)
def test_our_frames_are_botocores_and_are_read_alike_in_any_pieces(events: list[tuple[str, Any]], cuts: list[int]):
    data = b"".join(codec.frame({name: payload}) for name, payload in events)
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    chunks = [data[start:end] for start, end in pairwise(places)]
    assert ours(*chunks) == beside(*chunks) == events


def test_headers_of_all_types_are_passed_over():
    fixed = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
    headers = b"".join(header(f"h{kind}", kind, b"\1" * size) for kind, size in fixed.items())
    headers += header("h6", 6, pack(">H", 3) + b"abc") + text_header("h7", "x") + text_header(":event-type", "ping")
    data = frame(headers, b'{"a": 1}')
    assert ours(data) == beside(data) == [("ping", {"a": 1})]


def test_an_exception_is_read_as_one_by_botocore_as_well():
    data = codec.frame({"throttlingException": {"message": "slow down"}})
    assert ours(data) == [("throttlingException", {"message": "slow down"})]
    with pytest.raises(RateLimitError, match="slow down"):
        codec.reader().feed(codec.framing().feed(data)[0])
    with pytest.raises(Exception, match=r"throttlingException.*slow down"):
        parsed_events(data)


def test_an_error_that_is_told_in_headers_is_raised():
    told = {":message-type": "error", ":error-code": "InternalError", ":error-message": "it broke"}
    data = frame(b"".join(text_header(name, value) for name, value in told.items()), b"")
    with pytest.raises(ModelError, match="it broke"):
        codec.reader().feed(codec.framing().feed(data)[0])


def take(data: bytes, found: list[tuple[str, Any]]) -> None:
    """Read `data` in pieces; what is whole goes into `found`."""
    framing = codec.framing()
    for place in range(0, len(data), 64):
        found.extend(item for event in framing.feed(data[place : place + 64]) for item in event.items())


def test_a_byte_that_changed_on_the_way_is_never_read():
    whole = ours(STREAM)
    for place in range(len(STREAM)):
        found: list[tuple[str, Any]] = []
        with pytest.raises(ModelError, match="the stream holds a frame whose"):
            take(STREAM[:place] + bytes([STREAM[place] ^ 0x41]) + STREAM[place + 1 :], found)
        assert found == whole[: len(found)]


@pytest.mark.parametrize(
    "headers",
    [b"\x09abc", b"\x02\xff\xff\x07\x00\x00", b"\x01a", b"\x01h\xc8"],
    ids=["name cut", "name no text", "type missing", "type unknown"],
)
def test_headers_that_make_no_sense_are_refused(headers: bytes):
    with pytest.raises(ModelError, match="headers make no sense"):
        codec.framing().feed(frame(headers))


@pytest.mark.parametrize("payload", [b"{", b"\xff"])
def test_a_frame_that_holds_no_json_is_refused(payload: bytes):
    with pytest.raises(ModelError, match="no JSON"):
        codec.framing().feed(frame(text_header(":event-type", "ping"), payload))


@pytest.mark.parametrize("payload", [b"7", b"null", b'"x"', b"[]"])
def test_a_frame_that_holds_no_object_is_refused_by_the_reader(payload: bytes):
    [event] = codec.framing().feed(frame(text_header(":event-type", "metadata"), payload))
    with pytest.raises(ModelError, match="makes no sense"):
        codec.reader().feed(event)


def cut_everywhere(data: bytes) -> None:
    """See that a stream which ends at any byte is told as cut, and that what was told by then is a beginning."""
    reader = codec.reader()
    every = [delta for event in codec.framing().feed(data) for delta in reader.feed(event)]
    message = reader.finish()
    framing, reader = codec.framing(), codec.reader()
    told: list[Delta] = []
    said_to_end = False
    for place in range(len(data)):
        for event in framing.feed(data[place : place + 1]):
            told += reader.feed(event)
            said_to_end = said_to_end or "messageStop" in event
        assert told == every[: len(told)]
        if not said_to_end:
            with pytest.raises(StreamCutError):
                reader.finish()
    assert said_to_end
    assert told == every
    assert reader.finish() == message


def test_a_stream_that_ends_at_any_byte_is_told_as_cut():
    cut_everywhere(STREAM)


@recorded
def test_a_recorded_stream_that_ends_at_any_byte_is_told_as_cut(exchange: Exchange):
    cut_everywhere(exchange.body)


@recorded
def test_a_recorded_request_comes_back_as_it_was(exchange: Exchange):
    request = codec.decode_request(exchange.request)
    assert codec.encode_request(request) == (exchange.request, ())
    assert request.instruction == exchange.request["system"][0]["text"]
    assert not complaints({name: value for name, value in exchange.request.items() if name != "modelId"})


@recorded
def test_a_recorded_stream_says_what_botocore_finds_in_it(exchange: Exchange):
    reader = codec.reader()
    framing = codec.framing()
    deltas = [delta for event in framing.feed(exchange.body) for delta in reader.feed(event)]
    message = reader.finish()
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
    told = codec.reader()
    for event in events:
        told.feed(event)
    assert told.finish().content_blocks == message.content_blocks


@recorded
def test_a_recorded_reply_fits_behind_the_request_it_answers(exchange: Exchange):
    reader = codec.reader()
    for event in codec.framing().feed(exchange.body):
        reader.feed(event)
    reply = reader.finish()
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
