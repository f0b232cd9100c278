"""Streams: recorded ones, ones that are cut at any byte, ones that make no sense, and the SDK on the other side."""

from typing import Any

import anthropic
import pytest

from suture.codecs import get_codec
from suture.errors import ModelError, StreamCutError
from suture.messages import AgenticMessage, AssistantGenText, Delta, FunctionToolCall, Reasoning, TokenUsage
from suture.wires import get_chat_wire
from tests.codecs.answering import answering
from tests.codecs.anthropic.samples import MADE
from tests.codecs.anthropic.server import frame, write_stream
from tests.codecs.recordings import recordings
from tests.corpus import needs_corpus

CODEC = get_codec("anthropic")


def read(data: bytes, size: int = 0) -> tuple[list[Delta], AgenticMessage]:
    """Return the pieces and the message of a stream that comes in chunks of `size` bytes, or in one."""
    framing, reader = CODEC.framing(), CODEC.reader()
    chunks = [data[start : start + size] for start in range(0, len(data), size)] if size else [data]
    deltas = [delta for chunk in chunks for event in framing.feed(chunk) for delta in reader.feed(event)]
    return deltas, reader.finish()


def streamed(body: dict[str, Any]) -> bytes:
    return b"".join(map(frame, write_stream(body)))


def reply_of(*blocks: dict[str, Any], stop_reason: str = "end_turn") -> list[dict[str, Any]]:
    """Return the events of a reply whose blocks come whole."""
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {"content": []}}]
    for index, block in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": stop_reason}})
    return [*events, {"type": "message_stop"}]


def finished(events: list[dict[str, Any]]) -> AgenticMessage:
    reader = CODEC.reader()
    for event in events:
        reader.feed(event)
    return reader.finish()


# Recorded streams

WEATHER = ("get_weather", '{"city":"Paris"}')
RECORDED: dict[str, list[tuple[str, list[tuple[str, str]], str, tuple[int, int]]]] = {
    "accepts-malformed-assistant-tool-order-with-default-patch": [
        ("The weather in Paris is currently 72°F.", [], "stop", (638, 14))
    ],
    "anthropic-opus-4-7-image-tool-result": [("jiggling restroom prison", [], "stop", (1005, 13))],
    "claude-opus-4-7-drives-a-tool-loop": [
        ("", [WEATHER], "tool_calls", (798, 66)),
        ("Paris is currently sunny at 22°C.", [], "stop", (895, 19)),
    ],
    "streams-text": [("Hello!", [], "stop", (18, 5))],
    "streams-tool-call": [("", [WEATHER], "tool_calls", (677, 33))],
}


def recorded_streams() -> list[tuple[str, bytes]]:
    return [
        (name, exchange.body)
        for name, exchanges in recordings("anthropic-messages")
        for exchange in exchanges
        if exchange.status == 200
    ]


@needs_corpus
def test_every_recorded_stream_says_what_was_recorded():
    found: dict[str, list[Any]] = {}
    for name, body in recorded_streams():
        deltas, message = read(body)
        calls = [block for block in message.content_blocks if isinstance(block, FunctionToolCall)]
        meta = message.response_meta
        assert meta
        assert meta.usage
        assert meta.usage == deltas[-1].usage
        assert meta.extension["id"].startswith("msg_")
        text = get_chat_wire("agentic").text(message)
        cost = (meta.usage.prompt_tokens, meta.usage.completion_tokens)
        said = (text, [(call.name, call.arguments) for call in calls], meta.finish_reason, cost)
        found.setdefault(name, []).append(said)
        joined = get_chat_wire("agentic").join(deltas)
        assert joined
        assert get_chat_wire("agentic").text(joined) == text
        assert [(call.id, call.name) for call in get_chat_wire("agentic").calls(joined)] == [
            (call.call_id, call.name) for call in calls
        ]
    assert found == RECORDED


@needs_corpus
def test_a_recorded_stream_is_the_same_in_whatever_pieces_it_comes():
    for _, body in recorded_streams():
        whole = read(body)
        assert read(body, 1) == whole
        assert read(body, 7) == whole


@needs_corpus
def test_a_recorded_error_is_raised():
    [error] = [
        exchange.body
        for _, exchanges in recordings("anthropic-messages")
        for exchange in exchanges
        if exchange.status == 400
    ]
    [event] = CODEC.framing().feed(b"event: error\ndata: %s\n\n" % error)
    with pytest.raises(ModelError, match="ids were found without"):
        CODEC.decode_reply(event)


@pytest.mark.parametrize(
    ("delta", "field", "value"),
    [
        ({"type": "input_json_delta", "partial_json": '{"q": 1}'}, "input", {"q": 1}),
        ({"type": "text_delta", "text": "hm"}, "text", "hm"),
        ({"type": "some_delta", "text": "hm"}, "input", {}),
    ],
)
def test_pieces_of_a_block_of_a_type_that_nobody_knows_are_kept_with_it(delta: Any, field: str, value: Any):
    began = {"type": "later_tool_use", "id": "x", "input": {}}
    reader = CODEC.reader()
    events = [
        {"type": "message_start", "message": {"content": []}},
        {"type": "content_block_start", "index": 0, "content_block": began},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    ]
    assert [delta for event in events for delta in reader.feed(event)] == []
    assert CODEC.encode_messages([reader.finish()]).payload[0]["content"] == [{**began, field: value}]


def check_cuts(body: bytes) -> int:
    """Cut a stream at every byte: it fails as a cut stream, or is whole; what was told is a beginning of the whole."""
    deltas, message = read(body)
    framing, reader = CODEC.framing(), CODEC.reader()
    told: list[Delta] = []
    cuts = 0
    for place in range(len(body)):
        try:
            assert reader.finish() == message
        except StreamCutError:
            cuts += 1
        assert told == deltas[: len(told)]
        told += [delta for event in framing.feed(body[place : place + 1]) for delta in reader.feed(event)]
    assert (told, reader.finish()) == (deltas, message)
    return cuts


@needs_corpus
def test_a_recorded_stream_that_is_cut_at_any_byte_is_known_to_be_cut():
    for _, body in recorded_streams():
        assert check_cuts(body) > len(body) * 0.7


def test_a_stream_of_every_kind_of_block_that_is_cut_at_any_byte_is_known_to_be_cut():
    body = streamed(EVERYTHING)
    assert check_cuts(body) > len(body) * 0.9


# Streams and plain replies

EVERYTHING: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [block for block, _ in MADE.values()],
    "stop_reason": "stop_sequence",
    "stop_sequence": "END",
    "container": {"id": "c"},
    "usage": {"input_tokens": 5, "cache_read_input_tokens": 4, "output_tokens": 2, "service_tier": "standard"},
}
CONTENTS: dict[str, list[dict[str, Any]]] = {
    **{name: [block] for name, (block, _) in MADE.items()},
    "everything": EVERYTHING["content"],
    "nothing": [],
    "blank text": [{"type": "text", "text": ""}],
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_a_stream_says_what_the_plain_reply_says(content: list[dict[str, Any]]):
    body = {**EVERYTHING, "content": content}
    deltas, message = read(streamed(body))
    assert message == CODEC.decode_reply(body)
    held = message.content_blocks
    texts = [block.text for block in held if isinstance(block, AssistantGenText)]
    thoughts = [block.text for block in held if isinstance(block, Reasoning)]
    assert "".join([delta.text for delta in deltas]) == "".join(texts)
    assert "".join([delta.reasoning for delta in deltas]) == "".join(thoughts)
    joined = get_chat_wire("agentic").join(deltas)
    assert (get_chat_wire("agentic").calls(joined) if joined else ()) == get_chat_wire("agentic").calls(message)


def test_the_sdk_reads_a_stream_as_it_reads_the_plain_reply():
    named = ["thinking", "text", "text with citations", "server call", "server result", "call"]
    body = {**EVERYTHING, "content": [MADE[name][0] for name in named]}
    with (
        answering(anthropic, "Anthropic", streamed(body), "text/event-stream") as (client, _),
        client.messages.stream(model="claude", max_tokens=9, messages=[]) as stream,
    ):
        message = stream.get_final_message().to_dict()
    assert {name: message[name] for name in body} == body


# What may come in a stream


def test_thought_text_and_calls_are_told_as_they_come():
    events = [
        {"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 3, "output_tokens": 1}}},
        {"type": "ping"},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "h"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "m"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "Let"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": " me"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "delta_of_tomorrow"}},
        {"type": "content_block_stop", "index": 1},
        {"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "a", "name": "f"}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ""}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"p'}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '": 1}'}},
        {"type": "content_block_stop", "index": 2},
        {
            "type": "content_block_start",
            "index": 3,
            "content_block": {"type": "tool_use", "id": "b", "name": "g", "input": {"q": 2}},
        },
        {"type": "content_block_stop", "index": 3},
        {"type": "event_of_tomorrow"},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
    ]
    reader = CODEC.reader()
    deltas = [delta for event in events for delta in reader.feed(event)]
    assert deltas == [
        Delta(usage=TokenUsage(prompt_tokens=3, completion_tokens=1, total_tokens=4)),
        Delta(reasoning="h"),
        Delta(reasoning="m"),
        Delta("Let"),
        Delta(" me"),
        Delta(call_index=0, call_id="a", name="f"),
        Delta(call_index=0, arguments='{"p'),
        Delta(call_index=0, arguments='": 1}'),
        Delta(call_index=1, call_id="b", name="g"),
        Delta(call_index=1, arguments='{"q":2}'),
        Delta(usage=TokenUsage(prompt_tokens=3, completion_tokens=9, total_tokens=12)),
    ]
    assert reader.finish().content_blocks == (
        Reasoning("hm", "c2ln", extension={"wire": "anthropic"}),
        AssistantGenText("Let me"),
        FunctionToolCall("a", "f", '{"p":1}'),
        FunctionToolCall("b", "g", '{"q":2}'),
    )


def test_a_reply_that_is_cut_by_its_length_keeps_the_arguments_as_far_as_they_came():
    events = reply_of({"type": "tool_use", "id": "a", "name": "f", "input": {}}, stop_reason="max_tokens")
    piece = {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"p'}}
    assert finished([*events[:2], piece, *events[2:]]).content_blocks == (FunctionToolCall("a", "f", '{"p'),)


def test_arguments_that_are_nested_too_deeply_stay_the_text_they_are():
    deep = '{"a":' + "[" * 300 + "]" * 300 + "}"
    events = reply_of({"type": "tool_use", "id": "a", "name": "f", "input": {}}, stop_reason="tool_use")
    piece = {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": deep}}
    assert finished([*events[:2], piece, *events[2:]]).content_blocks == (FunctionToolCall("a", "f", deep),)


def test_blocks_stand_where_their_index_says():
    first, second = [{"type": "text", "text": text} for text in ("a", "b")]
    events = reply_of(first, second)
    assert finished([events[0], *events[3:5], *events[1:3], *events[5:]]).content_blocks == (
        AssistantGenText("a"),
        AssistantGenText("b"),
    )


def test_a_summary_of_the_conversation_comes_in_one_piece():
    events = reply_of({"type": "compaction", "content": None})
    piece = {"type": "compaction_delta", "content": "So far", "encrypted_content": "ZW5j"}
    [block] = finished(
        [*events[:2], {"type": "content_block_delta", "index": 0, "delta": piece}, *events[2:]]
    ).content_blocks
    whole = {"type": "compaction", "content": "So far", "encrypted_content": "ZW5j"}
    assert CODEC.encode_messages([AgenticMessage("assistant", [block])]).payload[0]["content"] == [whole]


@pytest.mark.parametrize("ends", [1, 2])
def test_the_end_is_said_by_a_reason_or_by_the_last_event(ends: int):
    events = reply_of({"type": "text", "text": "hi"})
    told = [*events[:-2], events[-ends]]
    assert finished(told).content_blocks == (AssistantGenText("hi"),)


def test_a_stream_that_never_began_is_cut():
    with pytest.raises(StreamCutError, match="anthropic: the stream ended before the reply did"):
        CODEC.reader().finish()


START = {"type": "message_start", "message": {"content": []}}
TEXT = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
NONSENSE: list[tuple[list[dict[str, Any]], str]] = [
    ([{}], "an event without a type"),
    ([{"type": 7}], "an event without a type"),
    ([{"type": "message_start"}], "message_start, message: expected an object, found nothing"),
    ([START, TEXT, START], "message_start, a second beginning"),
    (
        [{"type": "message_start", "message": {"content": ["x"]}}],
        "message_start, message.content[0]: expected an object, found str",
    ),
    ([TEXT], "content_block_start, it came before message_start"),
    ([START, TEXT, TEXT], "content_block_start, a second block 0"),
    ([START, {**TEXT, "index": None}], "content_block_start, index: expected a place, found None"),
    ([START, {**TEXT, "index": "0"}], "content_block_start, index: expected a place, found '0'"),
    ([START, {**TEXT, "content_block": {}}], "content_block_start, content_block.type: expected a type"),
    (
        [START, {**TEXT, "content_block": {"type": "tool_use", "input": {"port": "\ud800"}}}],
        "content_block_start, input.port: text with a lone surrogate",
    ),
    (
        [START, {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "x"}}],
        "content_block_delta, index: block 1 is not open",
    ),
    (
        [START, TEXT, {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": 7}}],
        "content_block_delta, text: expected a string, found int",
    ),
    (
        [START, TEXT, {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta"}}],
        "content_block_delta, delta.type: a input_json_delta for a block of type text",
    ),
    (
        [START, TEXT, *[{"type": "content_block_stop", "index": 0}] * 2],
        "content_block_stop, index: block 0 is not open",
    ),
    ([{"type": "message_delta", "delta": {}}], "message_delta, it came before message_start"),
    ([{"type": "message_stop"}], "message_stop, it came before message_start"),
    ([START, {"type": "message_delta", "delta": 7}], "message_delta, delta: expected an object, found int"),
    (
        [START, {"type": "message_delta", "delta": {}, "usage": 1.5}],
        "message_delta, usage: expected an object, found float",
    ),
]


@pytest.mark.parametrize(("events", "said"), NONSENSE, ids=[case[1] for case in NONSENSE])
def test_events_that_make_no_sense_are_an_error_of_the_provider_worth_another_try(events: list[Any], said: str):
    reader = CODEC.reader()
    for event in events[:-1]:
        reader.feed(event)
    with pytest.raises(ModelError) as caught:
        reader.feed(events[-1])
    assert str(caught.value) == f"anthropic: the reply makes no sense: {said}"
    assert caught.value.retryable


def test_a_gateway_that_begins_to_count_again_is_read():
    call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    opens = {"type": "content_block_start", "index": 0, "content_block": call}
    piece = {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "input_json_delta", "partial_json": '{"x":1}'},
    }
    ends = {"type": "content_block_stop", "index": 0}
    said = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I look."}}
    stop = [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]
    second = {**opens, "content_block": {**call, "id": "toolu_2"}}
    reader = CODEC.reader()
    for event in [START, TEXT, said, ends, opens, piece, ends, second, piece, ends, *stop]:
        reader.feed(event)
    blocks: Any = reader.finish().content_blocks
    text, first, other = blocks
    assert text.text.endswith("I look.")
    assert [(each.call_id, each.arguments) for each in (first, other)] == [
        ("toolu_1", '{"x":1}'),
        ("toolu_2", '{"x":1}'),
    ]


def test_a_beginning_may_come_twice_and_hold_blocks_that_are_whole():
    call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"x": 1}}
    begins = {"type": "message_start", "message": {"content": [{"type": "text", "text": "I look."}, call]}}
    stop = [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]
    reader = CODEC.reader()
    deltas = [delta for event in [START, begins, *stop] for delta in reader.feed(event)]
    blocks: Any = reader.finish().content_blocks
    text, asked = blocks
    assert (text.text, asked.call_id, asked.arguments) == ("I look.", "toolu_1", '{"x":1}')
    assert "".join(delta.text for delta in deltas) == "I look."
    assert "".join(delta.arguments for delta in deltas) == '{"x":1}'


def test_an_empty_piece_of_another_kind_is_nothing():
    empty = {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": ""}}
    reader = CODEC.reader()
    for event in [START, TEXT, empty, {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}]:
        reader.feed(event)
    assert [type(block).__name__ for block in reader.finish().content_blocks] == ["AssistantGenText"]
