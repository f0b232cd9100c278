"""Streams of Gemini: what comes as it comes, the whole at the end, and whatever can go wrong on the way."""

from typing import Any

import pytest

from suture.codecs import get_codec
from suture.errors import ModelError, ModelServerError, StreamCutError
from suture.messages import (
    AgenticMessage,
    AssistantGenImage,
    AssistantGenText,
    Delta,
    FunctionToolCall,
    Reasoning,
    ResponseMeta,
    TokenUsage,
)
from tests.codecs.gemini.samples import MADE, PIXEL, SIGNED
from tests.codecs.gemini.server import frame, write_reply, write_stream
from tests.codecs.recordings import Exchange, recordings
from tests.corpus import needs_corpus

CODEC = get_codec("gemini")
RECORDED = [(name, exchange) for name, exchanges in recordings("gemini") for exchange in exchanges]
CALL = {"functionCall": {"name": "tides", "args": {"port": "Dover"}}}
KNOWN_CALL = {"functionCall": {"id": "a", "name": "tides", "args": {}}}


def event(*parts: dict[str, Any], reason: str = "", **fields: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    return {"candidates": [candidate | ({"finishReason": reason} if reason else {})], "responseId": "NyTx", **fields}


def read(events: list[dict[str, Any]]) -> tuple[list[Delta], AgenticMessage]:
    reader = CODEC.reader()
    deltas = [delta for piece in events for delta in reader.feed(piece)]
    return deltas, reader.finish()


def parts_of(*events: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parts that a stream says, as they are sent back."""
    message = read([*events, event(reason="STOP")])[1]
    return CODEC.encode_messages([message]).payload[0]["parts"]


def test_what_is_said_comes_piece_by_piece_and_as_a_whole():
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 3, "thoughtsTokenCount": 4, "totalTokenCount": 16}
    deltas, message = read(
        [
            event({"text": "Let me ", "thought": True}, usageMetadata={"promptTokenCount": 9, "totalTokenCount": 9}),
            event({"text": "see.", "thought": True}),
            event({"text": "I look "}),
            event({"text": "it up."}),
            event({**CALL, **SIGNED}),
            event(CALL, {"functionCall": {"id": "own", "name": "now"}}),
            event({"text": ""}, reason="STOP", usageMetadata=usage, modelVersion="gemini-3"),
        ]
    )
    counted = TokenUsage(prompt_tokens=9, completion_tokens=7, total_tokens=16, reasoning_tokens=4)
    assert deltas == [
        Delta(reasoning="Let me "),
        Delta(usage=TokenUsage(prompt_tokens=9, total_tokens=9)),
        Delta(reasoning="see."),
        Delta("I look "),
        Delta("it up."),
        Delta(call_index=0, call_id="call_NyTx_0", name="tides", arguments='{"port":"Dover"}'),
        Delta(call_index=1, call_id="call_NyTx_1", name="tides", arguments='{"port":"Dover"}'),
        Delta(call_index=2, call_id="own", name="now", arguments="{}"),
        Delta(usage=counted),
    ]
    assert message == AgenticMessage(
        "assistant",
        [
            Reasoning("Let me see.", extension={"wire": "gemini"}),
            AssistantGenText("I look it up."),
            FunctionToolCall("call_NyTx_0", "tides", '{"port":"Dover"}', extra={"gemini": SIGNED}),
            FunctionToolCall("call_NyTx_1", "tides", '{"port":"Dover"}'),
            FunctionToolCall("own", "now", "{}", extra={"gemini": {"functionCall": {"args": None}}}),
        ],
        response_meta=ResponseMeta(
            finish_reason="tool_calls",
            usage=counted,
            extension={"id": "NyTx", "model": "gemini-3", "finish_reason": "STOP", "usageMetadata": usage},
        ),
    )


def test_a_text_with_a_signature_stays_a_part_of_its_own():
    signed = {"text": "it", **SIGNED}
    assert parts_of(event({"text": "So "}), event(signed), event({"text": " is."})) == [
        {"text": "So "},
        signed,
        {"text": " is."},
    ]


def test_a_signature_on_an_empty_text_is_kept():
    signed = {"text": "", **SIGNED}
    assert parts_of(event({"text": "So."}), event(signed)) == [{"text": "So."}, signed]


def test_the_parts_of_one_event_stay_apart():
    assert parts_of(event({"text": "a"}, {"text": "b"}), event({"text": "c"})) == [{"text": "a"}, {"text": "bc"}]


def test_thought_and_text_do_not_run_together():
    thought = {"text": "hm", "thought": True}
    assert parts_of(event(thought), event({"text": "So"}), event(thought)) == [thought, {"text": "So"}, thought]


def test_media_and_code_come_whole():
    parts = [{"inlineData": {"mimeType": "image/png", "data": PIXEL}}, MADE["code that it ran"][0]]
    assert parts_of(event(parts[0]), event(parts[1])) == parts


def test_what_is_said_of_the_whole_reply_is_the_last_word():
    events = [event({"text": "a"}), event({"text": "b"}, reason="STOP")]
    events[0]["candidates"][0]["safetyRatings"] = [{"category": "A"}]
    events[1]["candidates"][0] |= {"safetyRatings": [{"category": "B"}], "groundingMetadata": {"webSearchQueries": []}}
    meta = read(events)[1].response_meta
    assert meta is not None
    assert meta.extension["safetyRatings"] == [{"category": "B"}]
    assert meta.extension["groundingMetadata"] == {"webSearchQueries": []}


def test_the_likelihoods_of_all_events_are_put_together():
    events = [event({"text": "a"}), event({"text": "b"}, reason="STOP")]
    for piece, token in zip(events, "ab", strict=True):
        chosen = [{"token": token, "logProbability": -0.5}]
        piece["candidates"][0]["logprobsResult"] = {"chosenCandidates": chosen, "topCandidates": []}
    meta = read(events)[1].response_meta
    assert meta is not None
    assert meta.logprobs is not None
    assert [likely.token for likely in meta.logprobs] == ["a", "b"]


def test_other_candidates_and_unknown_events_are_passed_over():
    other = {"candidates": [{"content": {"parts": [{"text": "no"}]}, "finishReason": "STOP", "index": 1}]}
    deltas, message = read([{"news": 7}, other, event({"text": "yes"}, reason="STOP"), {}])
    assert deltas == [Delta("yes")]
    assert message.content_blocks == (AssistantGenText("yes"),)


def test_counts_may_come_after_the_end():
    deltas, message = read([event({"text": "a"}, reason="STOP"), {"usageMetadata": {"promptTokenCount": 3}}])
    assert deltas[-1] == Delta(usage=TokenUsage(prompt_tokens=3, total_tokens=3))
    assert message.response_meta is not None
    assert message.response_meta.usage == TokenUsage(prompt_tokens=3, total_tokens=3)


@pytest.mark.parametrize("events", [[], [event({"text": "a"})], [event(CALL)], [{"usageMetadata": {}}]])
def test_a_stream_that_does_not_say_its_end_was_cut(events: list[dict[str, Any]]):
    with pytest.raises(StreamCutError, match="before the reply did"):
        read(events)


def test_an_error_in_the_middle_is_raised():
    reader = CODEC.reader()
    assert reader.feed(event({"text": "a"})) == [Delta("a")]
    with pytest.raises(ModelServerError, match="Overloaded"):
        reader.feed({"error": {"code": 503, "message": "Overloaded.", "status": "UNAVAILABLE"}})


@pytest.mark.parametrize(
    ("piece", "said"),
    [
        ({"candidates": {}}, "candidates: expected a list"),
        (event({"text": 7}), "content.parts.text: expected a string"),
        (event({"functionCall": "f"}), "functionCall: expected an object"),
        (event({"functionCall": {"name": 7}}), "name: Delta takes a string"),
        (event({"text": "hm", "thought": True}, usageMetadata=7), "usageMetadata: expected an object"),
        ({"candidates": [{"content": {"parts": 7}}]}, "content.parts: expected a list"),
    ],
)
def test_an_event_that_makes_no_sense_is_an_error_that_says_what(piece: dict[str, Any], said: str):
    with pytest.raises(ModelError, match=said) as caught:
        CODEC.reader().feed(piece)
    assert caught.value.retryable


# Calls


OPENS = {"functionCall": {"name": "f", "willContinue": True}}


def piece(path: str, *, more: bool = True, **value: Any) -> dict[str, Any]:
    said: dict[str, Any] = {"partialArgs": [{"jsonPath": path, **value}]}
    return {"functionCall": said | ({"willContinue": True} if more else {})}


@pytest.mark.parametrize("closes", [True, False])
def test_a_call_whose_arguments_come_in_pieces_is_put_together(closes: bool):
    begins = {"functionCall": {"name": "tides", "id": "a", "willContinue": True}, **SIGNED}
    pieces = [
        begins,
        piece("$.port", stringValue="Do", willContinue=True),
        piece("$.port", stringValue="ver"),
        piece("$.days[0].from", numberValue=2.0),
        piece("$.days[0]['low']", boolValue=False),
        piece("$.days[1]", nullValue="NULL_VALUE", more=closes),
        *([{"functionCall": {}}] if closes else []),
        {"functionCall": {"name": "now", "id": "b"}},
    ]
    deltas, message = read([*[event(each) for each in pieces], event(reason="STOP")])
    first, second = message.content_blocks
    arguments = '{"port":"Dover","days":[{"from":2,"low":false},null]}'
    assert first == FunctionToolCall("a", "tides", arguments, extra={"gemini": dict(SIGNED)})
    assert isinstance(second, FunctionToolCall)
    assert [(delta.call_index, delta.call_id, delta.arguments) for delta in deltas] == [
        (0, "a", arguments),
        (1, "b", second.arguments),
    ]


@pytest.mark.parametrize(
    "pieces",
    [
        [piece("$.a", stringValue="x")],
        [OPENS, piece("$.a[7]", stringValue="x")],
        [OPENS, piece("$", stringValue="x")],
        [OPENS, piece("$.a", stringValue="x"), piece("$.a.b", stringValue="x")],
        [OPENS, {"functionCall": {"partialArgs": [{"stringValue": "x"}]}}],
    ],
)
def test_a_piece_of_arguments_that_fits_nowhere_makes_no_sense(pieces: list[Any]):
    with pytest.raises(ModelError, match="makes no sense"):
        read([event(each) for each in pieces])


def test_an_empty_call_is_passed_over():
    assert parts_of(event(KNOWN_CALL), event({"functionCall": {}})) == [KNOWN_CALL]


# The bytes of a stream


def bytes_of(*events: dict[str, Any]) -> bytes:
    return b"".join([frame(piece) for piece in events])


LONGER = bytes_of(
    event({"text": "hmm — ", "thought": True}),
    event({"text": "well", "thought": True, **SIGNED}),
    event({"text": "So "}, CALL, usageMetadata={"promptTokenCount": 9}),
    event({"text": ""}, reason="STOP"),
)


def test_a_part_of_which_the_sdk_left_nothing_is_passed_over():
    reader = CODEC.reader()
    body = event({}, {"text": "So "}, {}, reason="STOP")
    reader.feed(body)
    assert reader.finish().content_blocks == (AssistantGenText("So "),)
    assert CODEC.decode_reply(body).content_blocks == (AssistantGenText("So "),)


def taken(data: bytes) -> tuple[list[Delta], AgenticMessage | Exception]:
    """Return what a stream of these bytes, one at a time, gives, and the message or the error at its end."""
    framing, reader = CODEC.framing(), CODEC.reader()
    deltas: list[Delta] = []
    for place in range(len(data)):
        for found in framing.feed(data[place : place + 1]):
            deltas += reader.feed(found)
    try:
        return deltas, reader.finish()
    except (StreamCutError, ModelError) as error:
        return deltas, error


@needs_corpus
@pytest.mark.parametrize(("name", "exchange"), RECORDED)
def test_a_recorded_stream_says_what_was_recorded(name: str, exchange: Exchange):
    deltas, message = taken(exchange.body)
    [sent] = CODEC.framing().feed(exchange.body)
    candidate, usage = sent["candidates"][0], sent["usageMetadata"]
    assert isinstance(message, AgenticMessage), name
    for part in candidate["content"]["parts"]:
        if "functionCall" in part:  # recorded without an id
            part["functionCall"]["id"] = f"call_{sent['responseId']}_0"
    assert CODEC.encode_messages([message]).payload == [{"role": "model", "parts": candidate["content"]["parts"]}]
    assert CODEC.decode_reply(sent).content_blocks == message.content_blocks
    meta = message.response_meta
    assert meta is not None
    assert meta.usage is not None
    assert deltas[-1].usage == meta.usage
    assert meta.usage.total_tokens == usage["totalTokenCount"]
    assert meta.usage.prompt_tokens + meta.usage.completion_tokens == usage["totalTokenCount"]
    assert meta.usage.reasoning_tokens == usage["thoughtsTokenCount"]
    called = any("functionCall" in part for part in candidate["content"]["parts"])
    assert meta.finish_reason == ("tool_calls" if called else "stop")


BODIES = [("made here", LONGER), *((name, exchange.body) for name, exchange in RECORDED)]


@pytest.mark.parametrize(("name", "data"), BODIES, ids=[name for name, _ in BODIES])
def test_a_stream_that_is_cut_at_any_byte_is_known_to_be_cut(name: str, data: bytes):
    whole, message = taken(data)
    assert isinstance(message, AgenticMessage), name
    framing, reader = CODEC.framing(), CODEC.reader()
    deltas: list[Delta] = []
    for place in range(len(data)):
        if not data[:place].endswith((b"\r\n\r", b"\r\r")):  # a blank line is whole before the rest of its end
            with pytest.raises((StreamCutError, ModelError)):
                reader.finish()
        for found in framing.feed(data[place : place + 1]):
            deltas += reader.feed(found)
        assert deltas == whole[: len(deltas)]
    assert (deltas, reader.finish()) == (whole, message)


WRITTEN: dict[str, AgenticMessage] = {
    **{f"{name}": AgenticMessage("assistant", [block]) for name, (_, block) in MADE.items()},
    "everything": AgenticMessage("assistant", [block for _, block in MADE.values()]),
    "texts beside each other": AgenticMessage.assistant(
        [AssistantGenText("one"), AssistantGenText("two"), AssistantGenText(""), AssistantGenText("three")]
    ),
    "thoughts beside a text": AgenticMessage.assistant(
        [
            Reasoning("a", extension={"wire": "gemini"}),
            Reasoning("bc", extension={"wire": "gemini"}),
            AssistantGenText("d"),
        ]
    ),
    "nothing": AgenticMessage("assistant"),
    "with its cost": AgenticMessage(
        "assistant",
        [AssistantGenText("hi"), AssistantGenImage(base64_data=PIXEL, mime_type="image/png")],
        response_meta=ResponseMeta(
            finish_reason="length",
            usage=TokenUsage(prompt_tokens=3, completion_tokens=4, total_tokens=7, cached_tokens=1),
            extension={"id": "r", "model": "m"},
        ),
    ),
}


@pytest.mark.parametrize("message", WRITTEN.values(), ids=WRITTEN)
def test_a_stream_says_the_same_as_a_plain_response(message: AgenticMessage):
    whole, events = CODEC.decode_reply(write_reply(message)), write_stream(write_reply(message))
    assert read(events)[1] == whole
    assert taken(bytes_of(*events))[1] == whole


def test_a_reply_of_very_many_pieces_is_whole_at_the_end():
    reader = CODEC.reader()
    for _ in range(20_000):
        reader.feed(event({"text": "tide "}))
    reader.feed(event(reason="STOP"))
    assert reader.finish().content_blocks == (AssistantGenText("tide " * 20_000),)
