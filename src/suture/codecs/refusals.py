"""What providers, servers and gateways say when they refuse or fail, as data, and the errors that it becomes.

A status alone often misleads: a server answers 500 for a prompt that is too long, a gateway 400 for what is only
overloaded, and an upstream's own words stand deep inside a router's. So all texts of a body are read, and the tables
below overrule the status where a public report shows that it is wrong.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

from suture import errors
from suture.wires.fields import is_list, is_map, parse_json

_CODES: dict[type[errors.ModelError], str] = {
    errors.ContextLengthError: "context_length_exceeded exceed_context_size_error request_too_large",
    errors.ModelAuthError: "401 402 403 accessdeniedexception api_key_invalid authentication_error billing_error "
    "expiredtokenexception invalid_api_key invalid_authentication_error permission_denied permission_error "
    "unauthenticated unrecognizedclientexception",
    errors.RateLimitError: "429 insufficient_quota modelnotreadyexception rate_limit_error rate_limit_exceeded "
    "rate_limit_reached_error resource_exhausted servicequotaexceededexception throttlingexception too_many_requests",
    errors.ModelTimeoutError: "408 deadline_exceeded modeltimeoutexception timeout timeout_error",
    errors.ModelServerError: "409 424 425 498 aborted api_error cancelled engine_overloaded_error internal "
    "internal_server_error internalservererror overloaded_error server_error server_is_overloaded service_unavailable "
    "slow_down unavailable unknown vector_store_timeout",
    errors.ModelRequestError: "badrequesterror bio_policy content_filter data_residency_mismatch failed_precondition "
    "invalid_argument invalid_prompt invalid_request_error misalignment_policy_violation model_not_found not_found "
    "not_found_error out_of_range resourcenotfoundexception unimplemented validationexception",
}
_KIND_OF_CODE = {code: kind for kind, codes in _CODES.items() for code in codes.split()}
"""The class of error that a code or a status means."""

TOO_LONG = (
    (r"context (?:length|window|size|limit)", "OpenAI, Azure, llama.cpp, MiniMax, LM Studio, Ollama, Groq"),
    (r"context_length|context_window_exceeded|context_size_error", "OpenAI, Z.ai, llama.cpp: their codes"),
    (r"(?:prompt|input|request) (?:is )?too long", "Anthropic; Bedrock; Ollama: ollama/ollama#2208"),
    (r"requested input length", "DeepSeek's Responses endpoint"),
    (r"maximum number of (?:input )?tokens|too many input tokens", "Gemini; Bedrock"),
    (r"(?:input|prompt) token count", "Gemini; GitHub Copilot: earendil-works/pi, overflow.ts"),
    (r"exceeded model token limit|model max length exceeded", "Moonshot: MoonshotAI/kimi-cli#2011"),
    (r"maximum prompt length|too large for model with", "xAI; Mistral: earendil-works/pi, overflow.ts"),
    (r"prompt exceeds max length", "Z.ai, code 1261: zeroclaw#4124, hermes-agent#1877, geode#668"),
    (r"range of input length should be", "Model Studio: qwen-code#98, zed#50729, QwenPaw#6255"),
    (r"`?inputs`? tokens \+ `?max_new_tokens`? must be", "TGI, Together: huggingface_hub#2763, chat-ui#340"),
    (r"`?inputs`? must have less than \d+ tokens", "TGI: opea-project/GenAIExamples#340"),
    (r"input length \(?\d+\)? exceeds (?:the )?(?:model's )?maximum", "Volcano Ark: dify#32221; pi, overflow.ts"),
    (r"longer than the maximum model length", "vLLM: vllm-project/vllm"),
    (r"prompt is \d+ tokens long.{0,200}maximum supported sequence length", "SambaNova: cline/cline#294"),
    (r"tokens to keep from the initial prompt|n_keep \(\d+\) >= n_ctx", "LM Studio: opencode#2259, #11141"),
    (r"tokens exceed the configured limit", "OpenAI: litellm#18927"),
    (r"reduce the length of the (?:messages|input prompt)", "Groq: earendil-works/pi, overflow.ts"),
    (r"exceeded max_prompt_tokens", "SiliconFlow: cursor-byok#129"),
    (r"'(?:messages|input)\[\d+\]\.(?:content|output)[^']{0,40}': string too long", "OpenAI: roast#52, clio#41"),
    (r"too many tokens: ", "Cohere: 'too many tokens: size limit exceeded by 3000 tokens'"),
)
"""How a request that is too long is refused, and by whom; few have a code for it."""
_TOO_LARGE_AT_ONCE = (
    (r"request too large for .{0,200}requested:? \d", "OpenAI, 429, for the tokens of a minute: aider#1880, climb#13"),
    (
        r"prompt tokens limit exceeded",
        "OpenRouter, 402, for what the credits allow: continuedev/continue#10962, #11540",
    ),
)
"""How a request is refused that alone has more tokens than the account may send at once."""
_TOO_MANY = (
    (r"rate.?limit.{0,20}(?:exceeded|reached|error)|ratelimiterror", "LiteLLM and one-api pass these on as 400"),
    (r"too many requests|throttlingexception|resource_exhausted", "Bedrock's and Vertex's, passed on by gateways"),
)
"""How too many requests are told under a status that says something else."""
_BUSY = (
    (r"overloaded|over capacity|capacity temporarily exceeded", "Anthropic's 529, passed on by gateways as 400"),
    (r"degraded function cannot be invoked", "NVIDIA's NIM, 400: free-claude-code#1012"),
    (r"currently loading|model is loading|loading model", "Hugging Face, llama.cpp: huggingface_hub#2763"),
)
"""How a server that is busy or starting tells it under a status that says the request is wrong."""
_WRONG = (
    (r"jinja exception|raise_exception\(", "llama.cpp's templates, 500: picoclaw#207, llama.cpp#19851"),
    (r"roles must alternate", "llama.cpp's templates, 500: janhq/jan#6254"),
    (r"image input is not supported", "llama.cpp, 500: llama.cpp#13566, #19917"),
    (r"unsupported param: |tools param requires", "llama.cpp, 500: llama.cpp#10920, LLMKube#126"),
    (r"litellm\.badrequesterror", "LiteLLM, 500"),
)
"""How a wrong request is told under a status that says the server failed."""
_UNPAID = (
    (r"insufficient_(?:quota|balance)|exceeded_current_quota_error", "OpenAI, DeepSeek, Moonshot"),
    (r"billing_(?:hard_limit_reached|not_active|error)", "OpenAI, Anthropic"),
    (r"insufficient balance|no resource package|余额不足", "Z.ai, 429: vercel/ai#9290, continue#11823"),
    (r"check your plan and billing details(?!.*google)", "OpenAI; Google says the same of what a minute lifts"),
    (r"credit balance is too low|extra usage is required", "Anthropic, 400 and 429: claude-code#50784, sub2api#572"),
)
"""Limits that waiting does not lift, because somebody has to pay."""
_LASTING = (
    (r"(?:requests|tokens|count)perday", "Gemini's quotaId, whose retryDelay is of a minute: gemini-cli#8437"),
    (r"free-models-per-day", "OpenRouter"),
    (r"too many tokens per day", "Bedrock: agent-book#29, Ivy-Tendril#1756"),
    (r"requires more system memory", "Ollama, 500: continuedev/continue#12795, #9160"),
    (r"quota exceeded for metric.{0,200}limit: 0\b", "Gemini without a free tier: continuedev/continue#9570"),
)
"""Limits that no wait of a run outlasts."""


_SLIPS = (("json_validate_failed|output_parse_failed|tool_use_failed", "Groq, 400: agno#4090"),)
"""How a reply that the provider could not read is told as a refusal of the request."""
_Table = tuple[tuple[str, str], ...]
_OVERRULES: tuple[tuple[tuple[type[errors.ModelError], ...], _Table, type[errors.ModelError]], ...] = (
    ((errors.RateLimitError, errors.ModelAuthError), _TOO_LARGE_AT_ONCE, errors.ContextLengthError),
    ((errors.ModelRequestError, errors.ModelServerError), _SLIPS, errors.ModelReplyError),
    ((errors.ModelRequestError,), _TOO_MANY, errors.RateLimitError),
    ((errors.ModelRequestError,), _BUSY, errors.ModelServerError),
    ((errors.ModelRequestError, errors.ModelServerError), TOO_LONG, errors.ContextLengthError),
    ((errors.ModelServerError,), _WRONG, errors.ModelRequestError),
)
"""What an error seems to be, the texts that say otherwise, and what it is then; the first that fits counts."""


def _says(text: str, *tables: _Table) -> bool:
    """Return whether a text has a wording of the tables."""
    return _compile(tables).search(text) is not None


@cache
def _compile(tables: tuple[_Table, ...]) -> re.Pattern[str]:
    """Return the pattern of all wordings of the tables; only who reads an error pays for it."""
    return re.compile("|".join([pattern for table in tables for pattern, _ in table]), re.IGNORECASE | re.DOTALL)


_LONGEST, _LONGEST_TEXT, _MOST_TEXTS, _MOST_REASONS = 500, 4000, 200, 12
_SAID = ("message", "detail", "msg", "error_message", "error_msg", "Message")
"""The fields of what a person shall read."""
_INSIDE = ("error", "errors", "raw", "metadata", "innererror", "inner_error", "upstream_error", "cause")
"""The fields in which gateways hand on what their upstream said."""
_ECHO = re.compile(r"""['"]input['"]: ?|input_value=""")
"""Where vLLM and others begin to repeat the request in a text: vllm#49239."""
_ECHOES = frozenset(("input", "failed_generation", "flagged_input", "headers", "url"))
"""Fields that repeat the request or a reply, whose words say nothing of the failure."""


class Refusal(NamedTuple):
    """What the body of a refusal says.

    >>> read_refusal({"error": {"message": "Slow down.", "type": "rate_limit_error"}})
    Refusal(reason='Slow down.', code='rate_limit_error', text='Slow down. rate_limit_error')
    """

    reason: str
    """For a person, with what an upstream said."""
    code: str
    text: str
    """All texts, in which the tables are looked up."""


def read_refusal(body: Any) -> Refusal:
    """Read the body of a refusal, in whatever form a server or a gateway wraps it.

    >>> raw = '{"type": "error", "error": {"message": "prompt is too long"}}'
    >>> read_refusal({"error": {"message": "Provider returned error", "metadata": {"raw": raw}}}).reason
    'Provider returned error: prompt is too long'
    >>> read_refusal({"detail": [{"loc": ["body", "messages"], "msg": "Field required"}]}).reason
    'body.messages: Field required'
    """
    if is_list(body) and body:
        body = body[0]
    reasons: list[str] = []
    for said in islice(_reasons(body, 0), _MOST_REASONS):
        if not any(said in known for known in reasons):
            reasons = [known for known in reasons if known not in said] + [said]
    inner = body.get("error") if is_map(body) else None
    about = inner if is_map(inner) else body
    code = _code_of(about) if is_map(about) else ""
    reason = with_generation(": ".join(reasons)[:_LONGEST], about if is_map(about) else {})
    return Refusal(reason, code[:64], " ".join(_texts(body))[:_LONGEST_TEXT])


def with_generation(reason: str, error: Mapping[str, Any]) -> str:
    """Return the reason of a refusal with what the model had said, where the provider tells it.

    >>> with_generation("Failed to call a function.", {"failed_generation": "<function=add>"})
    "Failed to call a function. The model said: '<function=add>'"
    """
    said = error.get("failed_generation")
    return f"{reason} The model said: {said[:_LONGEST]!r}" if isinstance(said, str) and said else reason


def _code_of(said: Mapping[str, Any]) -> str:
    code = said.get("code")
    return str(code if isinstance(code, str) else said.get("status") or said.get("type") or "")


def _reasons(said: Any, depth: int) -> Iterator[str]:
    """Yield what is meant for a person, the outermost first."""
    if isinstance(said, str):
        inner = parse_json(said) if depth and said.lstrip().startswith("{") else None
        found = list(_reasons(inner, depth + 1)) if inner is not None and depth < 5 else []
        yield from found or ([said.strip()] if said.strip() else [])
    elif is_list(said):
        for each in said[:3]:
            yield from _reasons(each, depth + 1)
    elif is_map(said) and depth < 8:
        place = ".".join(map(str, where)) if is_list(where := said.get("loc")) else ""
        for name in _SAID:
            yield from (f"{place}: {text}" if place else text for text in _reasons(said.get(name), depth + 1))
        has_said = any(said.get(name) for name in _SAID)
        for name in _INSIDE:
            inner = said.get(name)
            is_word = isinstance(inner, str) and has_said and " " not in inner
            yield from () if is_word else _reasons(inner, depth + 1)


def _texts(said: Any) -> Iterator[str]:
    """Yield all texts of a body, those in JSON texts too."""
    waiting: list[Any] = [said]
    for _ in range(_MOST_TEXTS):
        if not waiting:
            return
        each = waiting.pop(0)
        if isinstance(each, str):
            inner = parse_json(each) if each.lstrip().startswith("{") else None
            if inner is None:
                yield _ECHO.split(each, 1)[0]
            else:
                waiting.append(inner)
        elif is_list(each):
            waiting += each
        elif is_map(each):
            waiting += [value for name, value in each.items() if name not in _ECHOES]


def failure_kind(codes: Iterable[str], default: type[errors.ModelError], text: str = "") -> type[errors.ModelError]:
    """Return the class of error that the first known of `codes` means, unless the text says otherwise.

    >>> from suture.errors import ModelError, ModelRequestError
    >>> failure_kind(["invalid_request_error"], ModelError, "Prompt is too long").__name__
    'ContextLengthError'
    >>> too_much = "exceed context limit: 12 + 300000 > 200000"
    >>> failure_kind([], ModelRequestError, f"input length and `max_tokens` {too_much}").__name__
    'ModelRequestError'
    """
    kind = next((_KIND_OF_CODE[code] for code in map(str.lower, codes) if code in _KIND_OF_CODE), default)
    kind = next((meant for seems, table, meant in _OVERRULES if kind in seems and _says(text, table)), kind)
    if kind is errors.ContextLengthError and (length := errors.read_length(text)) is not None and length.is_by_reply:
        return errors.ModelRequestError
    return kind


def is_final(text: str) -> bool:
    """Return whether a text says that no wait lifts the limit.

    >>> is_final("Insufficient balance or no resource package. Please recharge."), is_final("Slow down.")
    (True, False)
    """
    return _says(text, _UNPAID, _LASTING)


def read_failure(
    provider: str, said: Any, *, kind: str = "", default: type[errors.ModelError] | None = None, **facts: Any
) -> errors.ModelError:
    """Return the error that a provider reports in an object with a message, a type, a code or a status.

    >>> error = read_failure("openai-chat", {"message": "Slow down.", "type": "rate_limit_error", "code": 429})
    >>> type(error).__name__, error.reason, error.code, error.status
    ('RateLimitError', 'Slow down.', 'rate_limit_error', 429)
    """
    error: Mapping[str, Any] = said if is_map(said) else {"message": said}
    found = [str(word) for word in (kind, *map(error.get, ("code", "status", "type"))) if word and word != "error"]
    numbers = [int(word) for word in found if len(word) == 3 and word.isascii() and word.isdigit()]
    status = next((number for number in numbers if 400 <= number < 600), None)
    words = [word for word in found if not word.isdigit()]
    code, told = next(iter(words), ""), read_refusal(error)
    if default is None:
        default = errors.ModelServerError if status is None or status >= 500 else errors.ModelRequestError
    text = " ".join((*words, told.text))
    made = failure_kind([*words, str(status)], default, text)
    facts["retry_after"] = facts.get("retry_after") or read_wait(text)
    reason = told.reason or code or "it gives no reason"
    retryable = False if is_final(text) else None
    return made(reason, provider=provider, status=status, code=code, retryable=retryable, **facts)


_WAIT = (
    r"(?:try again|retry) (?:in|after) (?:(?P<d>\d+) ?d(?:ays?)?[ ,]*)?(?:(?P<h>\d+) ?h(?:ours?)?[ ,]*)?"
    r"(?:(?P<m>\d+) ?m(?:in(?:ute)?s?)?(?![a-z])[ ,]*)?(?:(?P<ms>\d+(?:\.\d+)?) ?ms|(?P<s>\d+(?:\.\d+)?) ?s)?"
)
"""How OpenAI, Groq, Azure and Gemini word a wait: `try again in 6m0s`, `in 20ms`, `retry after 9 seconds`."""


def read_wait(text: str) -> float | None:
    """Return the seconds that a text asks to wait; `None` if it names none.

    >>> read_wait("Please try again in 6m0.5s."), read_wait("Please retry after 9 seconds")
    (360.5, 9.0)
    >>> read_wait("Please try again in a while.")
    """
    found = re.search(_WAIT, text, re.IGNORECASE)
    parts = {name: float(said) for name, said in found.groupdict().items() if said} if found is not None else {}
    units = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
    return sum([units[name] * number for name, number in parts.items()]) if parts else None
