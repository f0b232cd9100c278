"""The bodies of responses, and what they say of a failure."""

from typing import Any

import pytest

from suture.codecs import encode, get_codec, to_agentic
from suture.errors import (
    ContextLengthError,
    ModelAuthError,
    ModelError,
    ModelRequestError,
    ModelServerError,
    RateLimitError,
)
from suture.messages import AssistantGenText, FunctionToolCall, LogProb, ResponseMeta, TokenUsage, TopLogProb
from tests.codecs.openai_responses.samples import MADE, WIRE, kept
from tests.codecs.openai_responses.server import make_body as body

codec = get_codec(WIRE)
SAID = {
    "type": "message",
    "id": "msg_9f",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "hi", "annotations": []}],
}
CALL = {"type": "function_call", "id": "fc_9f", "call_id": "a", "name": "f", "arguments": "{}", "status": "completed"}
USAGE = {
    "input_tokens": 900,
    "input_tokens_details": {"cached_tokens": 800, "cache_write_tokens": 50},
    "output_tokens": 40,
    "output_tokens_details": {"reasoning_tokens": 12},
    "total_tokens": 940,
}


def test_a_reply_is_read_with_what_it_cost():
    told = {"service_tier": "default", "instructions": "Be brief.", "store": True, "user": None}
    message = codec.decode_reply(body(SAID, usage=USAGE, **told))
    assert message.content_blocks == (AssistantGenText("hi"),)
    assert message.extra == kept(item={"id": "msg_9f", "status": "completed"})
    assert message.response_meta == ResponseMeta(
        finish_reason="stop",
        usage=TokenUsage(
            prompt_tokens=900,
            completion_tokens=40,
            total_tokens=940,
            cached_tokens=800,
            cache_write_tokens=50,
            reasoning_tokens=12,
        ),
        extension={"id": "resp_9f", "created_at": 1778027172, "model": "gpt-5", "service_tier": "default"},
    )


def test_a_reply_that_is_one_text_is_a_plain_message():
    message = codec.decode_reply(body(SAID))
    [said] = encode([message], "message").messages
    assert (said.content, said.assistant_gen_multi_content) == ("hi", ())
    assert to_agentic(said) == message


@pytest.mark.parametrize("name", MADE)
def test_what_a_reply_says_is_what_the_same_items_say_in_a_history(name: str):
    items, message = MADE[name]
    read = codec.decode_reply(body(*items))
    assert (read.content_blocks, read.extra) == (message.content_blocks, message.extra)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (body(SAID), "stop"),
        (body(SAID, CALL), "tool_calls"),
        ({"output": [SAID]}, "stop"),
        (body(status="incomplete", incomplete_details={"reason": "max_output_tokens"}), "length"),
        (body(status="incomplete", incomplete_details={"reason": "content_filter"}), "content_filter"),
        (body(status="incomplete", incomplete_details={"reason": "steered"}), "steered"),
        (body(status="incomplete"), "incomplete"),
    ],
)
def test_why_a_reply_ended_is_said_in_one_vocabulary(given: dict[str, Any], reason: str):
    meta = codec.decode_reply(given).response_meta
    assert meta is not None
    assert meta.finish_reason == reason


def test_a_call_that_was_cut_by_the_limit_keeps_its_arguments_as_they_are():
    cut = body({**CALL, "arguments": '{"city": "Par', "status": "incomplete"}, status="incomplete")
    call = codec.decode_reply(cut).content_blocks[0]
    assert isinstance(call, FunctionToolCall)
    assert call.arguments == '{"city": "Par'


def test_a_total_that_is_not_told_is_counted():
    meta = codec.decode_reply(body(usage={"input_tokens": 3, "output_tokens": 2})).response_meta
    assert meta is not None
    assert meta.usage == TokenUsage(prompt_tokens=3, completion_tokens=2, total_tokens=5)


def test_how_likely_the_tokens_were_is_told():
    top = {"token": "ho", "logprob": -1.5, "bytes": [104, 111]}
    token = {"token": "hi", "logprob": -0.5, "bytes": None, "top_logprobs": [top]}
    said = {**SAID, "content": [{"type": "output_text", "text": "hi", "logprobs": [token]}]}
    meta = codec.decode_reply(body(said)).response_meta
    assert meta is not None
    assert meta.logprobs == (LogProb("hi", -0.5, None, (TopLogProb("ho", -1.5, (104, 111)),)),)


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        ({"code": "server_error"}, ModelServerError, True),
        ({"code": "rate_limit_exceeded"}, RateLimitError, True),
        ({"code": "insufficient_quota"}, RateLimitError, False),
        ({"code": "context_length_exceeded", "type": "invalid_request_error"}, ContextLengthError, False),
        ({"code": "invalid_prompt"}, ModelRequestError, False),
        ({"code": "image_too_large"}, ModelRequestError, False),
        ({"code": "invalid_api_key", "type": "invalid_request_error"}, ModelAuthError, False),
        ({"code": None, "type": "invalid_request_error"}, ModelRequestError, False),
        ({"code": "quantum_noise"}, ModelServerError, True),
        ({}, ModelServerError, True),
        ({"code": 7, "message": 7}, ModelServerError, True),
    ],
)
def test_a_failure_is_an_exception_that_says_whether_to_try_again(error: Any, kind: type[ModelError], retryable: bool):
    said = {"message": "No.", **error}
    with pytest.raises(ModelError) as failed:
        codec.decode_reply(body(status="failed", error=said))
    assert type(failed.value) is kind
    assert failed.value.provider == WIRE
    assert failed.value.retryable is retryable
    with pytest.raises(kind):
        codec.reader().feed({"type": "response.failed", "response": {"error": said}})
    with pytest.raises(kind):
        codec.reader().feed({"type": "error", "error": said})


def test_an_error_event_may_say_it_without_an_object_around_it():
    with pytest.raises(RateLimitError) as failed:
        codec.reader().feed({"type": "error", "code": "rate_limit_exceeded", "message": "Slow down.", "param": None})
    assert (failed.value.reason, failed.value.code) == ("Slow down.", "rate_limit_exceeded")


@pytest.mark.parametrize("status", ["failed", "cancelled", "in_progress", "queued"])
def test_a_response_that_has_not_ended_well_is_no_reply(status: str):
    with pytest.raises(ModelServerError, match=status):
        codec.decode_reply(body(SAID, status=status))


@pytest.mark.parametrize(
    "given",
    [
        {},
        body(output={}),
        body(7),
        body({"type": 7}),
        body({"type": [], "id": "x"}),
        body({"type": {}, "id": "x"}),
        body({"role": "critic", "content": ""}),
        body({**CALL, "name": 7}),
        body({**SAID, "content": [{"type": "output_text", "text": 7}]}),
        body({"type": "reasoning", "summary": [7]}),
        body({"type": "mcp_list_tools", "tools": [{"name": "f", "input_schema": 7}]}),
        body(usage=7),
        body(status=7),
        body(status="incomplete", incomplete_details=7),
        {"output": [], "scores": {1: 2}},
    ],
)
def test_a_body_that_makes_no_sense_is_a_failure_that_may_pass(given: dict[str, Any]):
    with pytest.raises(ModelError) as failed:
        codec.decode_reply(given)
    assert failed.value.retryable
    assert failed.value.provider == WIRE
