"""Streams of Chat Completions: chunks folded, however servers cut them."""

from typing import Any

import pytest

from suture.errors import ModelError, ModelServerError, RateLimitError, StreamCutError
from suture.messages import (
    AgenticMessage,
    AssistantGenAudio,
    AssistantGenImage,
    AssistantGenText,
    Delta,
    FunctionToolCall,
    LogProb,
    TokenUsage,
)
from tests.codecs.openai_chat.samples import ADDRESS, MADE, own, thought
from tests.codecs.openai_chat.server import (
    BODIES,
    CODEC,
    COUNTS,
    END,
    NOTE,
    TOKEN,
    body,
    chunk,
    piece,
    read,
    write_stream,
)


def finish(events: list[dict[str, Any]]) -> AgenticMessage:
    reader = CODEC.reader()
    for event in events:
        reader.feed(event)
    return reader.finish()


@pytest.mark.parametrize("payload", [pytest.param(found, id=name) for name, found in BODIES.items()])
def test_a_stream_says_what_the_plain_response_says(payload: dict[str, Any]):
    assert finish(write_stream(payload)) == CODEC.decode_reply(payload)


@pytest.mark.parametrize("name", MADE)
def test_the_pieces_join_to_what_the_message_says(name: str):
    item, message = MADE[name]
    reader = CODEC.reader()
    deltas = [delta for event in write_stream(body(item)) for delta in reader.feed(event)]
    texts = [block for block in message.content_blocks if isinstance(block, AssistantGenText)]
    thoughts = [getattr(block, "text", "") for block in message.content_blocks if block not in texts]
    calls = [block for block in message.content_blocks if isinstance(block, FunctionToolCall)]
    assert "".join(delta.text for delta in deltas) == "".join(block.text for block in texts)
    assert "".join(delta.reasoning for delta in deltas) == "".join(thoughts)
    told = [
        ("".join(delta.arguments for delta in deltas if delta.call_index == place), place)
        for place in range(len(calls))
    ]
    assert told == [(call.arguments, place) for place, call in enumerate(calls)]


# How servers cut


def test_text_and_refusal_come_as_text():
    message, deltas = read(
        chunk(role="assistant", content=""), chunk(content="At "), chunk(content="six.", refusal="No.")
    )
    assert message.content_blocks == (AssistantGenText("At six."), AssistantGenText("No.", extension={"refusal": True}))
    assert deltas == [Delta("At "), Delta("six."), Delta("No.")]


def test_an_empty_text_beside_a_call_is_no_text():
    message, _ = read(chunk(content="", tool_calls=[piece("{}", "f", id="a", index=0)]), chunk(content=""))
    assert message.content_blocks == (FunctionToolCall("a", "f", "{}"),)


@pytest.mark.parametrize(("field", "extension"), [("reasoning_content", {}), ("reasoning", {"field": "reasoning"})])
def test_thought_comes_before_the_text(field: str, extension: dict[str, str]):
    message, deltas = read(chunk(**{field: "Let me "}), chunk(**{field: "see."}), chunk(content="Six."))
    assert message.content_blocks == (thought("Let me see.", **extension), AssistantGenText("Six."))
    assert deltas == [Delta(reasoning="Let me "), Delta(reasoning="see."), Delta("Six.")]


def test_thought_in_two_fields_is_told_once():
    message, deltas = read(chunk(reasoning="Hm.", reasoning_content="Hm."), chunk(content="Six."))
    assert message.content_blocks == (thought("Hm."), AssistantGenText("Six."))
    assert deltas == [Delta(reasoning="Hm."), Delta("Six.")]


def detail(text: str | None = None, index: int | None = 0, **fields: Any) -> dict[str, Any]:
    said = {"text": text} if text is not None else {}
    place = {} if index is None else {"index": index}
    return {"type": "reasoning.text", **said, **fields, **place}


def test_details_are_whole_again_so_that_they_can_be_sent_back():
    sealed = {"type": "reasoning.encrypted", "data": "ZW5j", "index": 1}
    message, deltas = read(
        chunk(reasoning="Let me ", reasoning_details=[detail("Let me ", signature=None)]),
        chunk(reasoning="see.", reasoning_details=[detail("see.")]),
        chunk(reasoning_details=[detail(signature="c2ln"), sealed]),
        chunk(content="Six."),
    )
    whole = [detail("Let me see.", signature="c2ln"), sealed]
    assert message.content_blocks == (
        thought("Let me see.", "c2ln", field="reasoning", details=whole),
        AssistantGenText("Six."),
    )
    assert deltas == [Delta(reasoning="Let me "), Delta(reasoning="see."), Delta("Six.")]


def test_details_without_an_index_go_on_until_they_are_signed():
    message, deltas = read(
        chunk(reasoning_details=[detail("Let me ", None)]),
        chunk(reasoning_details=[detail("see.", None, signature="one")]),
        chunk(reasoning_details=[detail("So.", None, signature="two")]),
    )
    whole = [detail("Let me see.", None, signature="one"), detail("So.", None, signature="two")]
    assert message.content_blocks == (thought("Let me see.So.", "one", field="reasoning_details", details=whole),)
    assert "".join(delta.reasoning for delta in deltas) == "Let me see.So."


def test_details_of_another_id_or_in_one_chunk_are_apart():
    message, _ = read(
        chunk(reasoning_details=[detail("a", 0, id="x"), detail("b", 0, id="x")]),
        chunk(reasoning_details=[detail("c", 0, id="y")]),
    )
    (block,) = message.content_blocks
    assert [held["text"] for held in block.extension["details"]] == ["a", "b", "c"]  # pyright: ignore[reportAttributeAccessIssue]


def test_content_in_parts_is_put_together():
    thinks = [{"type": "thinking", "thinking": [{"type": "text", "text": text}]} for text in ("Let me ", "see.")]
    message, deltas = read(
        chunk(content=[thinks[0]]), chunk(content=[thinks[1]]), chunk(content="Si"), chunk(content="x.")
    )
    assert message.content_blocks == (thought("Let me see.", field="thinking"), AssistantGenText("Six."))
    assert deltas == [Delta(reasoning="Let me "), Delta(reasoning="see."), Delta("Si"), Delta("x.")]


@pytest.mark.parametrize(
    ("pieces", "whole"),
    [
        (["QUJD", "REVG"], "QUJDREVG"),
        (["QUJDR", "EVG"], "QUJDREVG"),
        (["QQ==", "Qg=="], "QUI="),
        (["Q=", "!"], "Q=!"),
    ],
)
def test_a_sound_is_put_together_however_it_was_encoded(pieces: list[str], whole: str):
    message, deltas = read(
        chunk(audio={"id": "audio_1", "transcript": "Si"}),
        *(chunk(audio={"data": held}) for held in pieces),
        chunk(audio={"transcript": "x.", "expires_at": 7}),
    )
    kept_of = own(id="audio_1", expires_at=7, transcript="Six.")
    said = AssistantGenText("Six.", extension={"transcript": True})
    assert message.content_blocks == (AssistantGenAudio(base64_data=whole, extra=kept_of), said)
    assert deltas == [Delta("Si"), Delta("x.")]
    assert CODEC.encode_messages([message]).payload == [
        {"role": "assistant", "content": None, "audio": {"id": "audio_1"}}
    ]


def test_images_citations_and_likely_tokens_add_up():
    image = {"type": "image_url", "image_url": {"url": ADDRESS}}
    events = [chunk(content="Six.", images=[image], annotations=[NOTE]), chunk(images=[image], annotations=[NOTE])]
    for event in events:
        event["choices"][0]["logprobs"] = {"content": [TOKEN], "refusal": None}
    message, _ = read(*events)
    assert message.content_blocks == (
        AssistantGenText("Six.", extension={"annotations": [NOTE, NOTE]}),
        *[AssistantGenImage(url=ADDRESS, extra=own(index=None))] * 2,
    )
    meta = message.response_meta
    assert meta is not None
    assert meta.logprobs is not None
    assert [type(token) for token in meta.logprobs] == [LogProb, LogProb]


@pytest.mark.parametrize("last", [{"choices": [], "usage": COUNTS}, {**END, "usage": COUNTS}, {"usage": COUNTS}])
def test_what_it_cost_comes_wherever_it_stands(last: dict[str, Any]):
    cost = TokenUsage(prompt_tokens=90, completion_tokens=7, total_tokens=97)
    message, deltas = read(chunk(content="Six."), last)
    assert deltas == [Delta("Six."), Delta(usage=cost)]
    assert message.response_meta is not None
    assert message.response_meta.usage == cost


def test_events_that_say_nothing_are_passed_over():
    said = {"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [], "prompt_filter_results": []}
    message, deltas = read(
        {"type": "ping"}, said, {"choices": None}, {"choices": [{"delta": None}]}, chunk(content="6.")
    )
    assert deltas == [Delta("6.")]
    assert message.response_meta is not None
    assert message.response_meta.extension["model"] == "m"


def test_other_choices_are_passed_over():
    other = {"choices": [{"index": 1, "delta": {"content": "Seven."}, "finish_reason": "stop"}]}
    message, deltas = read(chunk(content="Six."), other)
    assert message.content_blocks == (AssistantGenText("Six."),)
    assert deltas == [Delta("Six.")]


# Streams that break


def test_a_stream_without_a_reason_to_end_was_cut():
    reader = CODEC.reader()
    reader.feed(chunk(content="Si"))
    with pytest.raises(StreamCutError, match="before the reply did"):
        reader.finish()


def test_an_error_in_the_middle_is_raised():
    reader = CODEC.reader()
    reader.feed(chunk(content="Si"))
    with pytest.raises(RateLimitError, match="Slow down"):
        reader.feed({"error": {"code": 429, "message": "Slow down"}})
    with pytest.raises(ModelServerError, match="Gone"):
        reader.feed({"choices": [{"index": 0, "delta": {}, "error": {"code": 502, "message": "Gone"}}]})


NONSENSE: list[dict[str, Any]] = [
    {"choices": 7},
    {"choices": [7]},
    {"choices": [{"index": 0, "delta": 7}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": 7}]},
    {"choices": [{"index": 0, "delta": {}, "logprobs": 7}]},
    {"choices": [{"index": 0, "delta": {}, "logprobs": {"content": 7}}]},
    {"usage": 7},
    chunk(content=7),
    chunk(content=[7]),
    chunk(refusal=7),
    chunk(reasoning=7),
    chunk(reasoning_details=7),
    chunk(reasoning_details=[7]),
    chunk(audio=7),
    chunk(audio={"data": 7}),
    chunk(function_call=7),
    chunk(function_call={"name": 7}),
    chunk(tool_calls=7),
    chunk(tool_calls=[7]),
    chunk(tool_calls=[{"index": "0"}]),
    chunk(tool_calls=[{"index": 0, "id": [7]}]),
    chunk(tool_calls=[{"index": 0, "type": 7}]),
    chunk(tool_calls=[{"index": 0, "function": 7}]),
    chunk(tool_calls=[{"index": 0, "function": {"name": 7}}]),
    chunk(tool_calls=[{"index": 0, "function": {"arguments": 7}}]),
    chunk(tool_calls=[{"function": {"arguments": "{}"}}]),
]


@pytest.mark.parametrize("event", NONSENSE, ids=str)
def test_an_event_that_makes_no_sense_may_come_better_next_time(event: dict[str, Any]):
    with pytest.raises(ModelError, match="makes no sense") as caught:
        CODEC.reader().feed(event)
    assert caught.value.retryable
    assert caught.value.provider == "openai-chat"


def test_of_several_choices_without_an_index_the_first_is_read():
    choices = [{"delta": {"content": text}, "finish_reason": "stop"} for text in ("yes", "no")]
    assert finish([{"choices": choices}]).content_blocks == (AssistantGenText("yes"),)
