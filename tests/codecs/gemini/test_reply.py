"""Replies of Gemini: what they say, why they ended, what they cost, and the errors that they report."""

import re
from typing import Any

import pytest
from google.genai import types

from suture.codecs import get_codec
from suture.errors import (
    ContextLengthError,
    ModelAuthError,
    ModelError,
    ModelReplyError,
    ModelRequestError,
    ModelServerError,
    ModelTimeoutError,
    RateLimitError,
)
from suture.messages import (
    AgenticMessage,
    AssistantGenText,
    FunctionToolCall,
    LogProb,
    ResponseMeta,
    TokenUsage,
    TopLogProb,
)

CODEC = get_codec("gemini")
USAGE = {"promptTokenCount": 11, "candidatesTokenCount": 2, "totalTokenCount": 13}


def body(*parts: dict[str, Any], reason: str = "STOP", **fields: Any) -> dict[str, Any]:
    candidate = {"content": {"parts": list(parts), "role": "model"}, "finishReason": reason, "index": 0}
    return {"candidates": [candidate], "responseId": "NyTx", "modelVersion": "gemini-2.5-flash", **fields}


def test_a_reply_says_its_text_its_end_its_cost_and_where_it_is_from():
    reply = CODEC.decode_reply(body({"text": "Hello!"}, usageMetadata=USAGE))
    assert reply == AgenticMessage(
        "assistant",
        [AssistantGenText("Hello!")],
        response_meta=ResponseMeta(
            finish_reason="stop",
            usage=TokenUsage(prompt_tokens=11, completion_tokens=2, total_tokens=13),
            extension={
                "id": "NyTx",
                "model": "gemini-2.5-flash",
                "finish_reason": "STOP",
                "usageMetadata": USAGE,
            },
        ),
    )


REPLIES: dict[str, dict[str, Any]] = {
    "text": body({"text": "Hello!"}, usageMetadata=USAGE),
    "nothing": body(),
    "thought and a signed call": body(
        {"text": "hm", "thought": True},
        {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "c2ln"},
    ),
    "two texts": body({"text": "a"}, {"text": "b"}),
    "what is said beside": {
        "candidates": [
            {
                "content": {"parts": [{"text": "hi"}], "role": "model"},
                "finishReason": "STOP",
                "finishMessage": "Done.",
                "groundingMetadata": {"webSearchQueries": ["tide"]},
                "safetyRatings": [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "NEGLIGIBLE"}],
                "avgLogprobs": -0.5,
            }
        ],
        "usageMetadata": {
            **USAGE,
            "totalTokenCount": 150,
            "thoughtsTokenCount": 30,
            "cachedContentTokenCount": 8,
            "toolUsePromptTokenCount": 107,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 11}],
            "trafficType": "ON_DEMAND",
        },
        "createTime": "2026-04-28T21:18:47Z",
        "modelVersion": "gemini-2.5-flash",
        "responseId": "NyTx",
    },
    "no content at all": {
        "candidates": [{"finishReason": "MAX_TOKENS", "index": 0}],
        "usageMetadata": {"promptTokenCount": 11, "totalTokenCount": 27, "thoughtsTokenCount": 16},
    },
    "counts of nothing": body({"text": "hi"}, usageMetadata={**USAGE, "thoughtsTokenCount": 0}),
}


@pytest.mark.parametrize("payload", REPLIES.values(), ids=REPLIES)
def test_the_sdks_own_dump_of_a_response_says_the_same(payload: dict[str, Any]):
    dumped = types.GenerateContentResponse.model_validate(payload).model_dump(mode="json", exclude_unset=True)
    said, meant = CODEC.decode_reply(dumped), CODEC.decode_reply(payload)
    assert (said.content_blocks, said.response_meta) == (meant.content_blocks, meant.response_meta)


def test_what_is_said_beside_the_reply_is_kept():
    meta = CODEC.decode_reply(REPLIES["what is said beside"]).response_meta
    assert meta is not None
    assert meta.extension == {
        "id": "NyTx",
        "model": "gemini-2.5-flash",
        "finish_reason": "STOP",
        "finishMessage": "Done.",
        "groundingMetadata": {"webSearchQueries": ["tide"]},
        "safetyRatings": [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "NEGLIGIBLE"}],
        "avgLogprobs": -0.5,
        "createTime": "2026-04-28T21:18:47Z",
        "usageMetadata": REPLIES["what is said beside"]["usageMetadata"],
    }


def test_a_reply_without_content_says_why_it_ended_and_what_it_cost():
    reply = CODEC.decode_reply(REPLIES["no content at all"])
    assert reply.content_blocks == ()
    assert reply.response_meta is not None
    assert reply.response_meta.finish_reason == "length"
    assert reply.response_meta.usage == TokenUsage(
        prompt_tokens=11, completion_tokens=16, total_tokens=27, reasoning_tokens=16
    )


def test_thought_cached_input_and_what_its_own_tools_gave_are_counted():
    meta = CODEC.decode_reply(REPLIES["what is said beside"]).response_meta
    assert meta is not None
    assert meta.usage == TokenUsage(
        prompt_tokens=118, completion_tokens=32, total_tokens=150, cached_tokens=8, reasoning_tokens=30
    )


CALL = {"functionCall": {"name": "f", "args": {}}}


@pytest.mark.parametrize(
    ("reason", "parts", "finish", "kept"),
    [
        ("STOP", [{"text": "hi"}], "stop", "STOP"),
        ("STOP", [CALL], "tool_calls", "STOP"),
        ("MAX_TOKENS", [{"text": "hi"}], "length", "MAX_TOKENS"),
        ("SAFETY", [], "content_filter", "SAFETY"),
        ("PROHIBITED_CONTENT", [], "content_filter", "PROHIBITED_CONTENT"),
        ("RECITATION", [], "content_filter", "RECITATION"),
        ("SOMETHING_NEW", [CALL], "SOMETHING_NEW", None),
    ],
)
def test_why_a_reply_ended_is_said_in_the_words_that_all_share(
    reason: str, parts: list[dict[str, Any]], finish: str, kept: str | None
):
    meta = CODEC.decode_reply(body(*parts, reason=reason)).response_meta
    assert meta is not None
    assert (meta.finish_reason, meta.extension.get("finish_reason")) == (finish, kept)


def ids_of(payload: dict[str, Any]) -> list[str]:
    return [
        block.call_id for block in CODEC.decode_reply(payload).content_blocks if isinstance(block, FunctionToolCall)
    ]


def test_a_call_without_an_id_is_named_after_the_response():
    own = {"functionCall": {"id": "own", "name": "g", "args": {}}}
    assert ids_of(body(CALL, own, CALL)) == ["call_NyTx_0", "own", "call_NyTx_2"]


def test_a_call_of_a_response_that_has_no_id_is_named_after_itself():
    def named(args: dict[str, Any]) -> str:
        payload = body({"functionCall": {"name": "f", "args": args}})
        del payload["responseId"]
        return ids_of(payload)[0]

    assert re.fullmatch("call_[0-9a-f]{8}_0", named({"a": 1}))
    assert named({"a": 1}) == named({"a": 1}) != named({"a": 2})


def test_a_reply_is_sent_back_as_it_came():
    call = {"functionCall": {"id": "own", "name": "g", "args": {}}}
    parts = [{"text": "hm", "thought": True}, {**call, "thoughtSignature": "c2ln"}, call]
    reply = CODEC.decode_reply(body(*parts))
    assert CODEC.encode_messages([reply]).payload == [{"role": "model", "parts": parts}]


def test_a_text_without_words_is_left_out_of_a_reply_but_not_its_signature():
    signed = {"text": "", "thoughtSignature": "c2ln"}
    reply = CODEC.decode_reply(body({"text": ""}, {"text": "", "thought": True}, {"text": "hi"}, signed))
    assert CODEC.encode_messages([reply]).payload[0]["parts"] == [{"text": "hi"}, signed]


def test_of_several_candidates_the_first_is_read():
    payload = body({"text": "first"})
    other = {"content": {"parts": [{"text": "second"}]}, "finishReason": "STOP", "index": 1}
    payload["candidates"].insert(0, other)
    assert CODEC.decode_reply(payload).content_blocks == (AssistantGenText("first"),)


def test_the_likelihood_of_tokens_is_read():
    payload = body({"text": "hi"})
    payload["candidates"][0]["logprobsResult"] = {
        "chosenCandidates": [
            {"token": "hi", "logProbability": -0.5, "tokenId": 3},
            {"token": "!", "logProbability": -1},
        ],
        "topCandidates": [{"candidates": [{"token": "hi", "logProbability": -0.5}, {"token": "ho"}]}],
    }
    reply = CODEC.decode_reply(payload)
    assert reply.response_meta is not None
    assert reply.response_meta.logprobs == (
        LogProb("hi", -0.5, top_logprobs=(TopLogProb("hi", -0.5), TopLogProb("ho", 0.0))),
        LogProb("!", -1.0),
    )


def failed(code: int, status: str, message: str = "No.", **details: Any) -> dict[str, Any]:
    error: dict[str, Any] = {"code": code, "message": message, "status": status}
    return {"error": {**error, "details": [details]} if details else error}


TOO_LONG = "The input token count (1048580) exceeds the maximum number of tokens allowed (1048576)."
ERRORS: dict[str, tuple[dict[str, Any], type[ModelError], bool]] = {
    "invalid request": (failed(400, "INVALID_ARGUMENT"), ModelRequestError, False),
    "too long": (failed(400, "INVALID_ARGUMENT", TOO_LONG), ContextLengthError, False),
    "bad key": (failed(400, "INVALID_ARGUMENT", reason="API_KEY_INVALID"), ModelAuthError, False),
    "no key": (failed(401, "UNAUTHENTICATED"), ModelAuthError, False),
    "not allowed": (failed(403, "PERMISSION_DENIED"), ModelAuthError, False),
    "no such model": (failed(404, "NOT_FOUND"), ModelRequestError, False),
    "too many requests": (failed(429, "RESOURCE_EXHAUSTED"), RateLimitError, True),
    "failure": (failed(500, "INTERNAL"), ModelServerError, True),
    "overloaded": (failed(503, "UNAVAILABLE"), ModelServerError, True),
    "too slow": (failed(504, "DEADLINE_EXCEEDED"), ModelTimeoutError, True),
    "a status of its own": (failed(529, "BUSY"), ModelServerError, True),
    "only a number": ({"error": {"code": 429, "message": "Slow down."}}, RateLimitError, True),
    "nothing known": ({"error": {}}, ModelServerError, True),
    "blocked prompt": ({"promptFeedback": {"blockReason": "SAFETY"}}, ModelRequestError, False),
}


@pytest.mark.parametrize(("payload", "kind", "retryable"), ERRORS.values(), ids=ERRORS)
def test_an_error_is_told_apart_by_its_status(payload: dict[str, Any], kind: type[ModelError], retryable: bool):
    for read in (CODEC.decode_reply, CODEC.reader().feed):
        with pytest.raises(ModelError) as caught:
            read(payload)
        assert type(caught.value) is kind
        assert caught.value.retryable is retryable
        assert caught.value.provider == "gemini"


def test_an_error_says_what_gemini_says_and_how_long_to_wait():
    payload = failed(429, "RESOURCE_EXHAUSTED", "Quota exceeded.", retryDelay="34.5s")
    with pytest.raises(RateLimitError) as caught:
        CODEC.decode_reply(payload)
    error = caught.value
    assert (str(error), error.code, error.retry_after) == (
        "gemini: Quota exceeded. (status 429)",
        "RESOURCE_EXHAUSTED",
        34.5,
    )


@pytest.mark.parametrize("delay", ["soon", "-1s", "", "1.2.3s", "infs", 7])
def test_a_time_to_wait_that_is_none_is_passed_over(delay: Any):
    with pytest.raises(RateLimitError) as caught:
        CODEC.decode_reply(failed(429, "RESOURCE_EXHAUSTED", retryDelay=delay))
    assert caught.value.retry_after is None


def test_why_a_prompt_is_blocked_is_told():
    with pytest.raises(ModelRequestError, match=r"it blocks the prompt: OTHER: Not this\.") as caught:
        CODEC.decode_reply({"promptFeedback": {"blockReason": "OTHER", "blockReasonMessage": "Not this."}})
    assert caught.value.code == "OTHER"


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({}, "it holds no candidate"),
        ({"candidates": []}, "it holds no candidate"),
        ({"candidates": 7}, "candidates: expected a list, found int"),
        ({"candidates": [7]}, r"candidates\[0\]: expected an object, found int"),
        ({"candidates": [{"content": []}]}, "content: expected an object, found list"),
        ({"candidates": [{"content": {"parts": [{"text": 7}]}}]}, r"parts\[0\].text: AssistantGenText takes a string"),
        ({"candidates": [{"finishReason": 7}]}, "finishReason: expected a string, found int"),
        (body(usageMetadata=7), "usage: expected an object, found int"),
        (body(responseId=7), "responseId: expected a string"),
        ({"error": "no"}, "error: expected an object, found str"),
    ],
)
def test_a_response_that_makes_no_sense_is_an_error_that_says_what(payload: dict[str, Any], said: str):
    with pytest.raises(ModelError, match=said) as caught:
        CODEC.decode_reply(payload)
    assert caught.value.retryable
    assert "the reply makes no sense" in str(caught.value)


def test_a_call_that_gemini_could_not_read_is_a_slip_with_its_words():
    told = body(reason="MALFORMED_FUNCTION_CALL")
    told["candidates"][0]["finishMessage"] = "Malformed function call: print(weather("
    with pytest.raises(ModelReplyError, match=r"MALFORMED_FUNCTION_CALL: Malformed function call: print\(weather\("):
        CODEC.decode_reply(told)
