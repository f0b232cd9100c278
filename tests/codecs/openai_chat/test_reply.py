"""Replies of Chat Completions: the body of a response, and what it says of itself."""

from typing import Any

import pytest

from suture.codecs import Lost
from suture.errors import (
    ContextLengthError,
    ModelAuthError,
    ModelError,
    ModelRequestError,
    ModelServerError,
    ModelTimeoutError,
    RateLimitError,
)
from suture.messages import AssistantGenAudio, AssistantGenText, FunctionToolCall, LogProb, TokenUsage, TopLogProb
from tests.codecs.openai_chat.samples import MADE, SIGNATURE, WORDS, made, own, reply
from tests.codecs.openai_chat.server import BODIES, CODEC, COUNTS, NOTE, TOKEN, body


@pytest.mark.parametrize("name", MADE)
def test_a_reply_says_what_the_same_message_in_a_history_says(name: str):
    item, message = MADE[name]
    assert CODEC.decode_reply(body(item)).content_blocks == message.content_blocks


def test_a_reply_says_why_it_ended_and_what_it_cost():
    read = CODEC.decode_reply(BODIES["fields of one server"])
    assert read.content_blocks == (WORDS,)
    meta = read.response_meta
    assert meta is not None
    assert meta.finish_reason == "stop"
    assert meta.usage == TokenUsage(prompt_tokens=90, completion_tokens=7, total_tokens=97, cached_tokens=80)
    assert meta.extension["id"] == "chatcmpl-1"
    assert meta.extension["model"] == "m"
    assert meta.extension["service_tier"] == "default"
    assert meta.extension["choice"] == {"native_finish_reason": "end_turn", "seed": 7}


def test_likely_tokens_are_read():
    meta = CODEC.decode_reply(BODIES["likely tokens"]).response_meta
    assert meta is not None
    assert meta.logprobs == (LogProb("At", -0.5, (65, 116), (TopLogProb("At", -0.5),)),)


def test_a_citation_is_on_its_text():
    read = CODEC.decode_reply(BODIES["a citation"])
    assert read.content_blocks == (AssistantGenText("At 06:12.", extension={"annotations": [NOTE]}),)


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("tool_calls", "tool_calls"),
        ("content_filter", "content_filter"),
        ("eos", "stop"),
        ("model_length", "length"),
        ("function_call", "function_call"),
        (None, ""),
    ],
)
def test_the_reason_is_told_in_one_vocabulary(word: str | None, reason: str):
    meta = CODEC.decode_reply(body(made("6."), {"finish_reason": word})).response_meta
    assert meta is not None
    assert meta.finish_reason == reason
    assert meta.extension.get("finish_reason") == (word if word not in {reason, None} else None)


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        (COUNTS, TokenUsage(prompt_tokens=90, completion_tokens=7, total_tokens=97)),
        (
            {**COUNTS, "prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 26},
            TokenUsage(prompt_tokens=90, completion_tokens=7, total_tokens=97, cached_tokens=64),
        ),
        (
            {**COUNTS, "cached_tokens": 64},
            TokenUsage(prompt_tokens=90, completion_tokens=7, total_tokens=97, cached_tokens=64),
        ),
        (
            # What was thought is counted in the total alone.
            {
                "prompt_tokens": 32,
                "completion_tokens": 9,
                "total_tokens": 135,
                "completion_tokens_details": {"reasoning_tokens": 94},
            },
            TokenUsage(prompt_tokens=32, completion_tokens=103, total_tokens=135, reasoning_tokens=94),
        ),
        (
            {"prompt_tokens": 3, "completion_tokens": None, "prompt_tokens_details": None},
            TokenUsage(prompt_tokens=3, total_tokens=3),
        ),
    ],
)
def test_what_a_reply_cost_is_counted_alike_for_all_servers(usage: dict[str, Any], counted: TokenUsage):
    meta = CODEC.decode_reply(body(made("6."), usage=usage)).response_meta
    assert meta is not None
    assert meta.usage == counted


def test_what_it_cost_may_stand_in_a_field_of_one_server():
    meta = CODEC.decode_reply(body(made("6."), x_groq={"usage": COUNTS})).response_meta
    assert meta is not None
    assert meta.usage == TokenUsage(prompt_tokens=90, completion_tokens=7, total_tokens=97)


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("fields of one server", {"choice": {"native_finish_reason": "end_turn", "seed": 7}}),
        ("what it cost", {}),
        ("likely tokens", {}),
        ("likely tokens of a refusal", {"choice": {"logprobs": {"content": [], "refusal": [TOKEN]}}}),
        ("a citation", {}),
        ("a citation of nothing", {"message": {"annotations": [NOTE]}}),
    ],
)
def test_what_has_no_place_in_a_reply_is_kept_beside_it(name: str, kept: dict[str, Any]):
    meta = CODEC.decode_reply(BODIES[name]).response_meta
    assert meta is not None
    assert {field: value for field, value in meta.extension.items() if field in {"choice", "message"}} == kept
    assert meta.extension.get("usage") == BODIES[name].get("usage")


def test_a_later_request_says_only_what_servers_take():
    item = made("At 06:12.", annotations=[NOTE], executed_tools=[], **SIGNATURE)
    said = CODEC.decode_reply(body(item))
    assert CODEC.encode_messages([said]).payload == [made("At 06:12.", **SIGNATURE)]


def test_an_empty_thought_in_a_reply_is_none():
    assert CODEC.decode_reply(body(made("6.", reasoning_content="", reasoning=""))) == CODEC.decode_reply(
        body(made("6."))
    )


def test_of_several_choices_the_first_is_read():
    payload = body(made("First."))
    payload["choices"].append({"index": 1, "message": made("Second."), "finish_reason": "stop"})
    assert CODEC.decode_reply(payload).content_blocks == (AssistantGenText("First."),)


def test_arguments_that_were_cut_stay_as_they_are():
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": '}}
    read = CODEC.decode_reply(body(made(tool_calls=[call]), {"finish_reason": "length"}))
    assert read.content_blocks == (FunctionToolCall("c", "f", '{"a": '),)


def test_a_sound_that_has_no_id_is_told_in_a_request_by_what_it_says():
    sound = AssistantGenAudio(base64_data="AAAA", extra=own(transcript="Six."))
    payload, losses = CODEC.encode_messages([reply(sound)])
    assert payload == [made("Six.")]
    assert [loss.name for loss in losses] == [Lost.MEDIA]


# Errors


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        (
            {"message": "m", "type": "invalid_request_error", "code": "context_length_exceeded"},
            ContextLengthError,
            False,
        ),
        ({"message": "This model's maximum context length is 9.", "code": 400}, ContextLengthError, False),
        ({"message": "m", "type": "BadRequestError", "code": 400}, ModelRequestError, False),
        ({"message": "m", "type": "invalid_request_error", "code": "model_not_found"}, ModelRequestError, False),
        ({"message": "m", "code": "invalid_api_key"}, ModelAuthError, False),
        ({"message": "m", "code": 402}, ModelAuthError, False),
        ({"message": "m", "code": "rate_limit_exceeded"}, RateLimitError, True),
        ({"message": "m", "code": "429"}, RateLimitError, True),
        ({"message": "m", "type": "insufficient_quota", "code": "insufficient_quota"}, RateLimitError, False),
        ({"message": "m", "type": "server_error", "code": None}, ModelServerError, True),
        ({"message": "m", "code": 502}, ModelServerError, True),
        ({"message": "m", "code": 408}, ModelTimeoutError, True),
        ({"message": "m", "code": "nobody_knows"}, ModelServerError, True),
        ("m", ModelServerError, True),
    ],
)
def test_an_error_is_raised_as_what_it_is(error: Any, kind: type[ModelError], retryable: bool):
    with pytest.raises(ModelError) as caught:
        CODEC.decode_reply({"error": error})
    assert type(caught.value) is kind
    assert caught.value.retryable is retryable
    assert caught.value.provider == "openai-chat"


def test_an_error_says_its_status_or_its_code():
    with pytest.raises(ModelServerError) as by_status:
        CODEC.decode_reply({"error": {"message": "Overloaded", "code": 502, "type": "upstream"}})
    assert (by_status.value.status, by_status.value.code, by_status.value.reason) == (502, "upstream", "Overloaded")
    with pytest.raises(RateLimitError) as by_word:
        CODEC.decode_reply({"object": "error", "message": "Slow down", "type": "rate_limit_error"})
    assert (by_word.value.status, by_word.value.code, by_word.value.reason) == (None, "rate_limit_error", "Slow down")


def test_an_error_in_a_choice_is_raised():
    with pytest.raises(ModelServerError, match="Upstream failed"):
        CODEC.decode_reply(body(made("6."), {"error": {"code": 502, "message": "Upstream failed"}}))
    for word in ("error", "insufficient_system_resource"):
        with pytest.raises(ModelServerError, match="broke off"):
            CODEC.decode_reply(body(made("6."), {"finish_reason": word}))


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"choices": []},
        {"choices": {}},
        {"choices": [7]},
        {"choices": [{"message": "hi"}]},
        body({"content": 7}),
        body(made("6."), {"finish_reason": 7}),
        body(made("6."), usage=7),
        body(made(tool_calls=7)),
    ],
)
def test_a_reply_that_makes_no_sense_may_be_asked_for_again(payload: dict[str, Any]):
    with pytest.raises(ModelError) as caught:
        CODEC.decode_reply(payload)
    assert caught.value.retryable
