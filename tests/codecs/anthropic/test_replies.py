"""Replies: the body of a response, and the errors that it reports."""

from typing import Any

import pytest

from suture.codecs import get_codec
from suture.errors import (
    ContextLengthError,
    ModelAuthError,
    ModelError,
    ModelRequestError,
    ModelServerError,
    ModelTimeoutError,
    RateLimitError,
)
from suture.messages import AgenticMessage, AssistantGenText, ResponseMeta, TokenUsage

CODEC = get_codec("anthropic")
USAGE = {
    "input_tokens": 5,
    "cache_creation_input_tokens": 20,
    "cache_read_input_tokens": 300,
    "output_tokens": 7,
    "output_tokens_details": {"thinking_tokens": 4},
    "service_tier": "standard",
    "cache_creation": {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 0},
}
BODY: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [{"type": "text", "text": "hello"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": USAGE,
}


def test_a_reply_is_read_with_why_it_ended_and_what_it_cost():
    assert CODEC.decode_reply(BODY) == AgenticMessage(
        "assistant",
        [AssistantGenText("hello")],
        response_meta=ResponseMeta(
            finish_reason="stop",
            usage=TokenUsage(
                prompt_tokens=325,
                completion_tokens=7,
                total_tokens=332,
                cached_tokens=300,
                cache_write_tokens=20,
                reasoning_tokens=4,
            ),
            extension={"id": "msg_1", "model": "claude", "finish_reason": "end_turn", "usage": USAGE},
        ),
    )


@pytest.mark.parametrize(
    "beside",
    [
        {"stop_sequence": "END"},
        {"stop_details": {"type": "refusal", "category": "bio"}},
        {"container": {"id": "container_1", "expires_at": "2026-01-01T00:00:00Z"}},
    ],
    ids=str,
)
def test_what_a_reply_says_beside_is_kept(beside: dict[str, Any]):
    meta = CODEC.decode_reply({**BODY, "usage": None, **beside}).response_meta
    assert meta
    assert meta.extension == {"id": "msg_1", "model": "claude", "finish_reason": "end_turn", **beside}


@pytest.mark.parametrize(
    ("word", "reason", "told"),
    [
        ("end_turn", "stop", "end_turn"),
        ("stop_sequence", "stop", "stop_sequence"),
        ("max_tokens", "length", "max_tokens"),
        ("model_context_window_exceeded", "length", "model_context_window_exceeded"),
        ("tool_use", "tool_calls", "tool_use"),
        ("refusal", "content_filter", "refusal"),
        ("pause_turn", "pause", "pause_turn"),
        (None, "", None),
    ],
)
def test_why_a_reply_ended_is_said_in_the_words_that_all_providers_share(word: Any, reason: str, told: Any):
    meta = CODEC.decode_reply({**BODY, "stop_reason": word}).response_meta
    assert meta
    assert (meta.finish_reason, meta.extension.get("finish_reason")) == (reason, told)


ERRORS: list[tuple[str, str, type[ModelError], bool]] = [
    ("invalid_request_error", "messages: nothing", ModelRequestError, False),
    ("invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum", ContextLengthError, False),
    (
        "invalid_request_error",
        "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000",
        ContextLengthError,
        False,
    ),
    ("not_found_error", "model: x", ModelRequestError, False),
    ("request_too_large", "Request exceeds the maximum size", ContextLengthError, False),
    ("authentication_error", "invalid x-api-key", ModelAuthError, False),
    ("permission_error", "no access", ModelAuthError, False),
    ("billing_error", "credit", ModelAuthError, False),
    ("rate_limit_error", "slow down", RateLimitError, True),
    ("timeout_error", "too slow", ModelTimeoutError, True),
    ("api_error", "Internal server error", ModelServerError, True),
    ("overloaded_error", "Overloaded", ModelServerError, True),
    ("error_of_tomorrow", "surprise", ModelServerError, True),
]


@pytest.mark.parametrize(("code", "reason", "kind", "retryable"), ERRORS)
def test_an_error_is_raised_as_what_it_is(code: str, reason: str, kind: type[ModelError], retryable: bool):
    body = {"type": "error", "error": {"type": code, "message": reason}, "request_id": "req_1"}
    for raises in (CODEC.decode_reply, CODEC.reader().feed):
        with pytest.raises(ModelError) as caught:
            raises(body)
        error = caught.value
        assert type(error) is kind
        assert (error.reason, error.code, error.provider) == (reason, code, "anthropic")
        assert (error.request_id, error.retryable) == ("req_1", retryable)


@pytest.mark.parametrize("error", [None, "boom", {}, {"type": 7}])
def test_an_error_that_does_not_say_what_it_is_is_still_one(error: Any):
    with pytest.raises(ModelError):
        CODEC.decode_reply({"type": "error", "error": error})


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "content: expected a list, found nothing"),
        ({"content": 7}, "content: expected a list, found int"),
        ({"content": [{"type": "text", "text": 7}]}, "content[0].text: expected a string, found int"),
        ({"content": [], "usage": 5}, "usage: expected an object, found int"),
        ({"content": [], "stop_reason": 7}, "stop_reason: expected a string, found int"),
    ],
)
def test_a_body_that_makes_no_sense_is_an_error_of_the_provider_worth_another_try(body: Any, said: str):
    with pytest.raises(ModelError) as caught:
        CODEC.decode_reply(body)
    assert str(caught.value) == f"anthropic: the reply makes no sense: {said}"
    assert caught.value.retryable
