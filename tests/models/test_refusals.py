"""Refusals as they stand in public reports: what each becomes, over HTTP and through the SDKs."""

import asyncio
import json
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture import ChatModelAgent, ModelRetryConfig
from suture.codecs.refusals import read_failure
from suture.errors import (
    ContextLengthError,
    ModelAuthError,
    ModelError,
    ModelReplyError,
    ModelRequestError,
    ModelServerError,
    RateLimitError,
)
from suture.messages import Message
from suture.middleware import Compaction
from suture.models.http import status_error
from tests.models.loopback import Answer, loopback
from tests.models.providers import HELLO, WIRES, frame, make_model, refusal, stream_headers, streamed, text_reply

pytestmark = pytest.mark.usefixtures("surroundings")


class Row(NamedTuple):
    """A refusal: who reported it, its status and message (or whole body), and what it is."""

    source: str
    status: int
    said: Any
    kind: type[ModelError]
    retryable: bool = False
    limit: int | None = None
    tokens: int | None = None


def long(source: str, said: Any, limit: int | None = None, tokens: int | None = None, status: int = 400) -> Row:
    return Row(source, status, said, ContextLengthError, False, limit, tokens)


TOO_LONG = [
    long("cline#294", "Requested generation length 1 is not possible! The provided prompt is 4309 tokens long, so generating 1 tokens requires a sequence length of 4310, but the maximum supported sequence length is just 4096!", 4096, 4309),
    long("tsc-meetings#593", {"error": {"code": "tokens_limit_reached", "message": "Request body too large for gpt-4o model. Max size: 8000 tokens."}}, 8000, None, 413),
    long("cursor-byok#129", {"code": 20015, "message": "number of input tokens (204703) has exceeded max_prompt_tokens (202752) limit.", "data": None}, 202_752, 204_703),
    long("cline#5140", {"error": "Please reduce the length of the messages or completion. Current length is 42328 while limit is 40000"}, 40_000, 42_328),
    long("roast#52", "Invalid 'messages[5].content': string too long. Expected a string with maximum length 10485760, but got a string with length 10605342 instead."),
    long("anthropic", "prompt is too long: 210000 tokens > 200000 maximum", 200_000, 210_000),
    long("claude-code#408", "input length and `max_tokens` exceed context limit: 189136 + 20000 > 204648", 184_648, 189_136),
    long("vllm#42474", "This model's maximum context length is 128000 tokens. However, you requested 65535 output tokens and your prompt contains at least 62466 input tokens, for a total of at least 128001 tokens.", 62_465, 62_466),
    long("biomni", "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 65536 tokens and your request has 57879 input tokens (8192 > 65536 - 57879). None", 57_344, 57_879),
    long("vllm#20409", "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the messages, 10000 in the completion). Please reduce the length", 6384, 112_946),
    long("models.dev#4422", "Requested token count exceeds the model's maximum context length of 256000 tokens. You requested a total of 256878 tokens: 131216 tokens from the input messages and 125662 tokens for the completion.", 130_338, 131_216),
    long("refly#1177", "This endpoint's maximum context length is 32768 tokens. However, you requested about 42832 tokens (42832 of text input). Please reduce the length of either one", 32_768, 42_832),
    long("huggingface_hub#2763", "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 8740 `inputs` tokens and 500 `max_new_tokens`", 3596, 8740, 422),
    long("litellm#4934", "`inputs` tokens + `max_new_tokens` must be <= 4097", 4097, None, 422),
    long("qwen-code#98", "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 204800]", 204_800),
    long("zeroclaw#4124", {"error": {"code": "1261", "message": "Prompt exceeds max length"}}),
    long("dify#32221", "Input length 203743 exceeds the maximum length 202752", 202_752, 203_743),
    long("claude-code-switch#12", "API 调用参数有误，请检查文档。Request 212387 input tokens exceeds the model's maximum context length 202750", 202_750, 212_387),
    long("pi, Together", "The input (5000 tokens) is longer than the model's context length (4096 tokens).", 4096, 5000),
    long("pi, a compatible server", "Input length (265330) exceeds model's maximum context length (262144).", 262_144, 265_330),
    long("pi, Poolside", "Input length 5000 exceeds the maximum allowed input length of 4096 tokens.", 4096, 5000),
    long("pi, Groq", {"error": {"message": "Please reduce the length of the messages or completion.", "type": "invalid_request_error", "code": "context_length_exceeded"}}),
    long("pi, Mistral", "Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum context length", 32_768, 65_673),
    long("pi, xAI", "This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131_072, 537_812),
    long("pi, Copilot", "prompt token count of 91230 exceeds the limit of 64000", 64_000, 91_230),
    long("pi, MiniMax", "invalid params, context window exceeds limit (2013)"),
    long("kimi-cli#2011", "Your request exceeded model token limit: 262144 (requested: 272000)", 262_144, 272_000),
    long("llama.cpp#19774", {"error": {"code": 400, "message": "request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it", "type": "exceed_context_size_error", "n_prompt_tokens": 4390, "n_ctx": 4096}}, 4096, 4390),
    long("llama.cpp#19774, 500", {"error": {"code": 500, "message": "Context size has been exceeded.", "type": "server_error"}}, status=500),
    long("opencode#11141", {"error": "Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)"}, 7424, 15_028),
    long("opencode#2259", {"error": "The number of tokens to keep from the initial prompt is greater than the context length."}),
    long("lmstudio-bug-tracker#546", {"error": "Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with context length of only 32768 tokens, which is not enough."}, 32_768, 111_490),
    long("pi, Ollama", {"error": {"message": "prompt too long; exceeded max context length by 12 tokens", "type": "invalid_request_error"}}),
    long("doc-comments-ai#54", "Requested tokens (590) exceed context window of 512", 512, 590),
    long("litellm#18927", "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300123 tokens. Please reduce the length of the messages.", 272_000, 300_123),
    long("climb#13", {"error": {"message": "Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 30601. The input or output tokens must be reduced in order to run successfully.", "type": "tokens", "param": None, "code": "rate_limit_exceeded"}}, 30_000, 30_601, 429),
    long("cline#4971", {"error": {"message": "Request too large for model `m` in organization `o` on tokens per minute (TPM): Limit 6000, Requested 17322, please reduce your message size", "type": "tokens", "code": "rate_limit_exceeded"}}, 6000, 17_322, 413),
    long("continue#10962", "Prompt tokens limit exceeded: 69120 > 36608. To increase, visit https://openrouter.ai/settings/credits", 36_608, 69_120, 402),
    long("arkavo-edge#371", "The input token count exceeds the maximum number of tokens allowed (1048576).", 1_048_576),
]  # fmt: skip
BY_THE_REPLY = [
    Row("vllm", 400, "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 4096 tokens and your request has 12 input tokens (8192 > 4096 - 12). None", ModelRequestError),
    Row("truefoundry/models#873", 400, "This model's maximum context length is 8192 tokens. However, you requested 8246 tokens (54 in the messages, 8192 in the completion).", ModelRequestError),
    Row("spring-boot-user-beans#136", 400, "This model's maximum context length is 4097 tokens, however you requested 4130 tokens (130 in your prompt; 4000 for the completion).", ModelRequestError),
    Row("anthropic", 400, "input length and `max_tokens` exceed context limit: 12 + 300000 > 200000, decrease input length or `max_tokens` and try again", ModelRequestError),
    Row("zerostack#22", 400, "This model's maximum context length is 131072 tokens. However, you requested 131072 output tokens and your prompt contains 14233 characters (more than 0 characters, which is the upper bound for 0 input tokens).", ModelRequestError),
    Row("chat-ui#340", 422, "`inputs` tokens + `max_new_tokens` must be <= 1100. Given: 100 `inputs` tokens and 1024 `max_new_tokens`", ModelRequestError),
    Row("code-gpt-docs#284", 400, "max_tokens is too large: 6000. This model supports at most 4096 completion tokens, whereas you provided 6000.", ModelRequestError),
    Row("anthropic", 400, "max_tokens: 300000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-5", ModelRequestError),
]  # fmt: skip
NOT_TOO_LONG = [
    Row("vLLM repeats the request", 400, "[{'type': 'missing', 'loc': ('body', 'messages', 0, 'tool_call_id'), 'msg': 'Field required', 'input': {'content': 'What is the context length?'}}]", ModelRequestError),
    Row("pydantic repeats the request", 400, "1 validation error: content: Input should be a valid string [type=string_type, input_value='a rate limit was reached', input_type=str]", ModelRequestError),
    Row("free-claude-code#1354", 400, "`max_completion_tokens` must be less than or equal to `16384`, the maximum value for `max_completion_tokens` is less than the `context_window` for this model", ModelRequestError),
    Row("sentry-mcp#106", 400, "Invalid 'tools[13].function.description': string too long. Expected a string with maximum length 1024, but got a string with length 1103 instead.", ModelRequestError),
    Row("Roo-Code#248", 400, "The maximum tokens you requested exceed the model limit of 4096. Try again with a maximum tokens value lower than 4096.", ModelRequestError),
    Row("langmanus#119", 400, "Invalid 'messages[10].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 41 instead.", ModelRequestError),
    Row("anthropic", 400, "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes", ModelRequestError),
    Row("openai", 400, "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 150 instead.", ModelRequestError),
    Row("bedrock", 429, "Too many tokens, please wait before trying again.", RateLimitError, retryable=True),
    Row("continue#9800", 429, "Tokens per minute limit exceeded - too many tokens processed.", RateLimitError, retryable=True),
    Row("an answer that is repeated", 400, {"error": {"message": "Failed to call a function.", "code": "tool_use_failed", "failed_generation": "the prompt is too long"}}, ModelReplyError,
        retryable=True),
    Row("FastAPI repeats the request", 422, {"detail": [{"loc": ["body", "model"], "msg": "Field required", "input": {"messages": "context length"}}]}, ModelRequestError),
]  # fmt: skip
STATUSES = [
    Row("a conflict", 409, "Conflict", ModelServerError, retryable=True),
    Row("too early", 425, "Too Early", ModelServerError, retryable=True),
    Row("Groq, flex", 498, "Flex tier capacity exceeded", ModelServerError, retryable=True),
    *[Row("Cloudflare", status, "<html>…</html>", ModelServerError, retryable=True) for status in (520, 524, 527, 529)],
    Row("Hugging Face", 503, {"error": "Model m is currently loading", "estimated_time": 20.0}, ModelServerError, retryable=True),
    Row("llama.cpp", 503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}, ModelServerError, retryable=True),
    Row("gemini-cli#14811", 429, [{"error": {"code": 429, "message": "Resource exhausted. Please try again later.", "status": "RESOURCE_EXHAUSTED"}}], RateLimitError, retryable=True),
    Row("no money", 402, {"error": {"message": "Insufficient Balance", "type": "unknown_error", "code": "invalid_request_error"}}, ModelAuthError),
]  # fmt: skip
MISLEADING = [
    Row("free-claude-code#1012", 400, {"status": 400, "title": "Bad Request", "detail": "Function id '3b9748d8': DEGRADED function cannot be invoked"}, ModelServerError, retryable=True),
    Row("a gateway", 400, {"error": {"message": "Overloaded", "type": "overloaded_error"}}, ModelServerError, retryable=True),
    Row("a gateway", 400, {"error": {"message": "litellm.RateLimitError: AnthropicException - slow down", "code": "400"}}, RateLimitError, retryable=True),
    Row("picoclaw#207", 500, {"error": {"code": 500, "message": "Error: Jinja Exception: After the optional system message, conversation roles must alternate user and assistant roles", "type": "server_error"}}, ModelRequestError),
    Row("llama.cpp#19917", 500, {"error": {"code": 500, "message": "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj", "type": "server_error"}}, ModelRequestError),
    Row("continue#12795", 500, {"error": "model requires more system memory (7.5 GiB) than is available (5.2 GiB)"}, ModelServerError),
    Row("llama.cpp#10920", 500, {"error": {"code": 500, "message": "Unsupported param: tools", "type": "server_error"}}, ModelRequestError),
    Row("vercel/ai#9290", 429, "Insufficient balance or no resource package. Please recharge.", RateLimitError),
    Row("continue#11823", 429, "余额不足或无可用资源包,请充值。", RateLimitError),
    Row("openai", 429, {"error": {"message": "You exceeded your current quota, please check your plan and billing details.", "type": "insufficient_quota", "code": "insufficient_quota"}}, RateLimitError),
    Row("gemini-cli#8437", 429, {"error": {"code": 429, "message": "You exceeded your current quota, please check your plan and billing details. For more information head to: https://ai.google.dev/gemini-api/docs/rate-limits.", "status": "RESOURCE_EXHAUSTED", "details": [{"violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]}]}}, RateLimitError, retryable=True),
    Row("dify#19838", 429, {"error": {"code": 429, "message": "You exceeded your current quota.", "status": "RESOURCE_EXHAUSTED", "details": [{"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}]}]}}, RateLimitError),
    Row("continue#9570", 429, "Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 0, model: gemini-3-pro", RateLimitError),
    Row("agent-book#29", 429, "Too many tokens per day, please wait before trying again.", RateLimitError),
    Row("openrouter", 429, {"error": {"message": "Rate limit exceeded: free-models-per-day", "code": 429}}, RateLimitError),
]  # fmt: skip
ROWS = [*TOO_LONG, *BY_THE_REPLY, *NOT_TOO_LONG, *STATUSES, *MISLEADING]


def body_of(said: Any) -> Any:
    return {"error": {"message": said, "type": "invalid_request_error"}} if isinstance(said, str) else said


def answer_of(row: Row, **headers: str) -> Answer:
    body = row.said if row.said == "<html>…</html>" else json.dumps(body_of(row.said))
    return Answer([body.encode()], row.status, {"content-type": "application/json", **headers})


async def refused(wire: str, answer: Answer) -> ModelError:
    async with loopback([answer]) as server:
        with pytest.raises(ModelError) as caught:
            [item async for item in make_model(wire, server.url).stream(HELLO)]
    return caught.value


def seen(error: ModelError) -> tuple[Any, ...]:
    return type(error), error.retryable, getattr(error, "limit", None), getattr(error, "tokens", None)


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.status} {row.source}" for row in ROWS])
def test_a_reported_refusal_is_told_for_what_it_is(row: Row):
    error = asyncio.run(refused("openai-chat", answer_of(row)))
    assert seen(error) == (row.kind, row.retryable, row.limit, row.tokens)
    assert error.status == row.status


@pytest.mark.parametrize("row", [*TOO_LONG, *BY_THE_REPLY], ids=lambda row: row.source)
@pytest.mark.parametrize("wire", ["openai-chat", "anthropic", "openai-responses"])
def test_and_so_is_one_inside_a_stream(wire: str, row: Row):
    if row.status != 400:
        pytest.skip("said with another status")
    told = body_of(row.said).get("error", row.said)
    told = told if isinstance(told, dict) else {"message": told}
    error = {**told, "code": "invalid_request_error", "type": "invalid_request_error"}
    event = {**error, "type": "error"} if wire == "openai-responses" else {"type": "error", "error": error}
    answer = Answer([frame(wire, event)], headers=stream_headers(wire))
    found = asyncio.run(refused(wire, answer))
    assert seen(found) == (row.kind, row.retryable, row.limit, row.tokens)


TOLD = {
    "type": "error",
    "error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"},
}
RAW = json.dumps(TOLD)
WRAPPED = {
    "OpenRouter: pal-mcp-server#134": {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": RAW, "provider_name": "Anthropic"}}},
    "forgecode#1146": {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": TOLD}}},
    "LiteLLM": {"error": {"message": f"litellm.BadRequestError: AnthropicException - {RAW}. Received Model Group=m", "type": None, "param": None, "code": "400"}},
    "LiteLLM, bytes": {"error": {"message": f"litellm.APIConnectionError: AnthropicException - {RAW.encode()!r}"}},
    "Cloudflare": {"errors": [{"message": f"AiError: {TOLD['error']['message']}", "code": 5021}], "success": False, "result": {}, "messages": []},
    "Portkey": {"error": {"message": f"anthropic error: {TOLD['error']['message']}", "type": "invalid_request_error"}, "provider": "anthropic"},
    "Vercel: vercel/ai#9290": {"error": {"message": "Bad Request", "type": "AI_APICallError", "param": {"statusCode": 400, "responseBody": RAW}}},
    "Azure": {"error": {"code": "BadRequest", "message": "The request failed.", "innererror": TOLD["error"]}},
    "one-api": {"error": {"message": f"{TOLD['error']['message']} (request id: 2025)", "type": "one_api_error", "code": "bad_response_status_code"}},
    "FastAPI": {"detail": TOLD["error"]["message"]},
    "FastAPI, an object": {"detail": TOLD},
    "claude-code-router#1204": {"error": {"message": f"Error from provider(anthropic,m: 400): {RAW}", "type": "api_error", "code": "provider_response_error"}},
    "truefoundry/models#873": {"status": "failure", "message": f"openrouter error: Provider returned error | metadata: {json.dumps({'raw': TOLD})}"},
    "continue#9570": {"error": {"message": json.dumps(TOLD, indent=2), "code": 400, "status": "Bad Request"}},
    "Google, a list": [{"error": {"code": 400, "message": TOLD["error"]["message"], "status": "INVALID_ARGUMENT"}}],
}  # fmt: skip


@pytest.mark.parametrize("status", [400, 500])
@pytest.mark.parametrize("wrapped", WRAPPED.values(), ids=WRAPPED)
def test_what_an_upstream_refused_is_told_apart_in_any_wrapping(wrapped: Any, status: int):
    answer = Answer([json.dumps(wrapped).encode()], status, {"content-type": "application/json"})
    error = asyncio.run(refused("openai-chat", answer))
    assert type(error) is ContextLengthError
    assert "prompt is too long: 210000 tokens > 200000" in error.reason or "Bad Request" in error.reason


def test_the_fault_that_a_server_finds_in_a_field_is_told_with_its_place():
    told = {"detail": [{"type": "missing", "loc": ["body", "messages"], "msg": "Field required", "input": {}}]}
    error = asyncio.run(
        refused("openai-chat", Answer([json.dumps(told).encode()], 422, {"content-type": "application/json"}))
    )
    assert error.reason == "body.messages: Field required"


NAMES = [
    "error",
    "errors",
    "message",
    "detail",
    "msg",
    "loc",
    "code",
    "status",
    "type",
    "metadata",
    "raw",
    "innererror",
    "failed_generation",
    "input",
]
LEAVES = st.sampled_from(
    [
        "",
        " ",
        "{",
        "[]",
        "no",
        "prompt is too long",
        '{"error": {"message": "no"}}',
        "Try again in 2s",
        None,
        True,
        429,
        0.5,
    ]
)
BODIES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=20,
)


@given(BODIES, st.sampled_from([400, 402, 413, 429, 500, 503]))
def test_whatever_the_form_of_a_refusal_it_is_an_error_with_its_status(body: Any, status: int):
    error = status_error("openai-chat", status, body, {})
    assert (error.status, bool(error.reason)) == (status, True)
    inside = read_failure("openai-chat", body)
    assert inside.reason
    assert error.retryable in (True, False)


def test_a_huge_and_deep_body_is_read_in_a_moment_and_cut():
    deep: Any = "prompt is too long"
    for _ in range(500):
        deep = {"error": deep, "message": "no " * 100}
    error = status_error("openai-chat", 400, deep, {})
    assert len(error.reason) <= 500
    wide = {name: [{"message": f"{name} {n}"} for n in range(100)] for name in NAMES}
    assert len(status_error("openai-chat", 400, wide, {}).reason) <= 500


@pytest.mark.parametrize(
    ("status", "said", "retryable"), [(429, "false", False), (400, "true", True), (429, "perhaps", True)]
)
@pytest.mark.parametrize("wire", ["openai-chat", "anthropic"])
def test_a_provider_that_says_whether_to_try_again_is_believed(wire: str, status: int, said: str, retryable: bool):
    error = asyncio.run(refused(wire, refusal(wire, status, "Hm.", x_should_retry=said)))
    assert error.retryable is retryable


def test_a_number_that_is_no_count_of_tokens_is_none():
    assert ContextLengthError(f"prompt is too long: {'9' * 5000} tokens > 1").limit is None


WAITS = {
    "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 1.2s.": 1.2,
    "Rate limit reached. Please try again in 7m12.5s.": 432.5,
    "Rate limit reached. Please try again in 1h2m3s.": 3723.0,
    "Please try again in 20ms.": 0.02,
    "Requests have exceeded call rate limit. Please retry after 9 seconds.": 9.0,
    "Please retry in 45.578569677s.": 45.578569677,
    "You are out of requests. Try again in 3 days 4 hours.": 273_600.0,
    "Please retry after 2 minutes.": 120.0,
    "Please try again later.": None,
    "Please retry in a few minutes": None,
}  # fmt: skip


@pytest.mark.parametrize("told", WAITS)
@pytest.mark.parametrize("wire", WIRES)
def test_a_wait_is_read_in_words_if_no_header_says_it(wire: str, told: str):
    assert asyncio.run(refused(wire, refusal(wire, 429, told))).retry_after == WAITS[told]
    assert asyncio.run(refused(wire, refusal(wire, 429, told, retry_after="3"))).retry_after == 3.0


def test_a_wait_in_words_is_read_inside_a_stream_too():
    event = {"error": {"message": "Slow down. Please try again in 2s.", "code": 429}}
    error = asyncio.run(
        refused("openai-chat", Answer([frame("openai-chat", event)], headers=stream_headers("openai-chat")))
    )
    assert (type(error), error.retryable, error.retry_after) == (RateLimitError, True, 2.0)


# What an agent does about it


async def run(wire: str, *answers: Answer, question: str = "hi") -> tuple[Any, int]:
    async with loopback(list(answers)) as server:
        retry = ModelRetryConfig(max_retries=2, backoff=lambda _: 0.0)
        agent = ChatModelAgent(model=make_model(wire, server.url), middlewares=[Compaction()], model_retry_config=retry)
        try:
            history = [Message.user("word " * 2000), Message.assistant("yes " * 2000), Message.user(question)]
            result: Any = await agent.run(history if question != "hi" else "hi")
        except ModelError as error:
            result = error
        return result, len(server.requests)


@pytest.mark.parametrize("row", BY_THE_REPLY, ids=lambda row: row.source)
def test_nothing_is_compacted_if_it_is_the_reply_that_does_not_fit(row: Row):
    error, requests = asyncio.run(run("openai-chat", answer_of(row)))
    assert (type(error), requests, error.reason) == (ModelRequestError, 1, row.said)


BOTH = "'max_tokens' is too large: 2000. This model's maximum context length is 6000 tokens and your request has 5000 input tokens"
RAW_TOO_LONG = json.dumps({"error": {"message": "prompt is too long: 5000 tokens > 4000 maximum"}})


@pytest.mark.parametrize(
    "told",
    [{"message": "Provider returned error", "code": 400, "metadata": {"raw": RAW_TOO_LONG}}, {"message": BOTH}],
    ids=["an upstream's", "both are large"],
)
def test_a_compaction_follows_where_a_shorter_history_helps(told: Any):
    refuses = Answer([json.dumps({"error": told}).encode()], 400, {"content-type": "application/json"})
    answers = [refuses, *[streamed("openai-chat", text_reply())] * 3]
    result, requests = asyncio.run(run("openai-chat", *answers, question="Well?"))
    assert result.output == "The sea is calm."
    assert requests > 1


def test_a_code_stands_for_a_reason_and_a_number_for_none():
    assert status_error("bedrock", 404, {"message": "", "code": "UnknownOperationException"}, {}).reason.startswith(
        "Unknown"
    )
    assert status_error("bedrock", 404, {"message": "", "code": "404"}, {}).reason == "it gives no reason"


@pytest.mark.parametrize(
    "said",
    [
        "This model's maximum context length is 4096 tokens.",  # it does not say how many there are
        "Input length 40 exceeds the maximum length 4096",  # it contradicts itself
    ],
)
def test_no_size_is_told_that_the_provider_did_not_count(said: str):
    error, requests = asyncio.run(run("openai-chat", refusal("openai-chat", 400, said)))
    assert (type(error), error.reason, requests) == (ContextLengthError, said, 1)
