"""Replies of Gemini: the body of a response, both ways, and the errors that it reports."""

from collections.abc import Mapping, Sequence
from typing import Any

from suture.codecs._kept import put_back
from suture.codecs._values import Losses, Lost
from suture.errors import (
    ContextLengthError,
    InputError,
    ModelAuthError,
    ModelError,
    ModelRequestError,
    ModelServerError,
    ModelTimeoutError,
    RateLimitError,
)
from suture.messages import (
    AgenticMessage,
    AssistantGenText,
    ContentBlock,
    FunctionToolCall,
    LogProb,
    Reasoning,
    ResponseMeta,
    TokenUsage,
    TopLogProb,
)
from suture.providers.gemini.fields import GEMINI, camel, count_in, deep_camel, object_in, objects, text_in
from suture.providers.gemini.read import Calls, read_content
from suture.providers.gemini.write import write_parts
from suture.wires import plain

__all__ = ["candidate_of", "check_error", "nonsense", "read_reply", "read_usage", "write_reply"]

_FILTERED = (
    "SAFETY",
    "RECITATION",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
)
_REASONS = {"STOP": "stop", "MAX_TOKENS": "length", **dict.fromkeys(_FILTERED, "content_filter")}
_WORDS = {"": "STOP", "stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}
_ERRORS: Mapping[str, type[ModelError]] = {
    "INVALID_ARGUMENT": ModelRequestError,
    "FAILED_PRECONDITION": ModelRequestError,
    "OUT_OF_RANGE": ModelRequestError,
    "NOT_FOUND": ModelRequestError,
    "UNIMPLEMENTED": ModelRequestError,
    "UNAUTHENTICATED": ModelAuthError,
    "PERMISSION_DENIED": ModelAuthError,
    "RESOURCE_EXHAUSTED": RateLimitError,
    "DEADLINE_EXCEEDED": ModelTimeoutError,
    "ABORTED": ModelServerError,
    "CANCELLED": ModelServerError,
    "INTERNAL": ModelServerError,
    "UNAVAILABLE": ModelServerError,
    "UNKNOWN": ModelServerError,
}
_STATUSES: Mapping[int, str] = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_TOO_LONG = ("exceeds the maximum number of tokens", "input token count")
_BAD_KEY = "API_KEY_INVALID"
_COUNTS = ("promptTokenCount", "candidatesTokenCount", "totalTokenCount")
_SOME_COUNTS = ("thoughtsTokenCount", "cachedContentTokenCount")
_TOOL_COUNT = "toolUsePromptTokenCount"
_TOLD = ("candidates", "usageMetadata", "modelVersion", "responseId")
_SHARED = ("id", "model", "finish_reason", GEMINI)


def read_reply(payload: Mapping[str, Any]) -> AgenticMessage:
    """Return what the body of a response says; raise the error that it reports.

    >>> read_reply({"error": {"code": 503, "message": "Overloaded.", "status": "UNAVAILABLE"}})
    Traceback (most recent call last):
        ...
    suture.errors.ModelServerError: gemini: Overloaded. (status 503)
    """
    try:
        body = camel(object_in({"reply": plain(payload)}, "reply"))
        check_error(body)
        candidate = candidate_of(body) or {}
        content = {**object_in(candidate, "content"), "role": "model"}
        message = read_content(content, text_in(body, "responseId"), Calls())
        blocks = tuple([block for block in message.content_blocks if not _says_nothing(block)])
        meta = _read_meta(body, candidate, blocks)
    except InputError as error:
        raise nonsense(str(error)) from None
    if not candidate:
        raise nonsense("it holds no candidate")
    return AgenticMessage("assistant", blocks, response_meta=meta, extra=message.extra)


def _says_nothing(block: ContentBlock) -> bool:
    """Tell whether a block is a text without words or signature: a stream may end in one."""
    if isinstance(block, Reasoning):
        return not block.text and not block.signature and not block.extra
    return isinstance(block, AssistantGenText) and not block.text and not block.extra


def candidate_of(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the first candidate of a body, or of an event; `None` where it speaks of others, or of none.

    >>> candidate_of({"candidates": [{"index": 1}, {"finish_reason": "STOP"}]})
    {'finishReason': 'STOP'}
    """
    candidates = [camel(candidate) for candidate in objects(body.get("candidates"), "candidates")]
    return next((candidate for candidate in candidates if not candidate.get("index")), None)


def _read_meta(body: Mapping[str, Any], candidate: Mapping[str, Any], blocks: Sequence[Any]) -> ResponseMeta:
    word = text_in(candidate, "finishReason")
    reason = _REASONS.get(word, word)
    if reason == "stop" and any(isinstance(block, FunctionToolCall) for block in blocks):
        reason = "tool_calls"
    named = {"id": text_in(body, "responseId"), "model": text_in(body, "modelVersion")}
    extension: dict[str, Any] = {name: text for name, text in named.items() if text}
    if word and _WORDS.get(reason, reason) != word:
        extension["finish_reason"] = word
    usage = None
    beside = {name: value for name, value in candidate.items() if name not in {"content", "finishReason"}}
    kept: dict[str, Any] = {"candidate": deep_camel(beside)}
    kept["candidate"] |= {} if "content" in candidate else {"content": None}
    kept["candidate"] |= {} if "index" in candidate else {"index": None}
    kept["body"] = deep_camel({name: value for name, value in body.items() if name not in _TOLD})
    if body.get("usageMetadata") is not None:
        counted = deep_camel(object_in(body, "usageMetadata"))
        usage, kept["usage"] = read_usage(counted), _usage_beside(counted)
    kept = {name: held for name, held in kept.items() if held}
    extension |= {GEMINI: kept} if kept else {}
    return ResponseMeta(finish_reason=reason, usage=usage, logprobs=_read_logprobs(candidate), extension=extension)


def read_usage(usage: Mapping[str, Any]) -> TokenUsage:
    """Return what a reply cost; Gemini counts thought, and what its own tools gave, beside the rest.

    >>> read_usage({"promptTokenCount": 11, "candidatesTokenCount": 2, "thoughtsTokenCount": 16})
    TokenUsage(prompt_tokens=11, completion_tokens=18, total_tokens=29, reasoning_tokens=16)
    """
    prompt, said, total = [count_in(usage, name) for name in _COUNTS]
    thought, cached = [count_in(usage, name) for name in _SOME_COUNTS]
    prompt += count_in(usage, _TOOL_COUNT)
    return TokenUsage(
        prompt_tokens=prompt,
        completion_tokens=said + thought,
        total_tokens=total or prompt + said + thought,
        cached_tokens=cached,
        reasoning_tokens=thought,
    )


def _usage_beside(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is said of the cost beside what `TokenUsage` holds; a `None` where a count is absent."""
    known = {*_COUNTS, *(name for name in _SOME_COUNTS if usage.get(name))}
    rest = {name: value for name, value in usage.items() if name not in known}
    return {**rest, **dict.fromkeys([name for name in _COUNTS if usage.get(name) is None])}


def _read_logprobs(candidate: Mapping[str, Any]) -> tuple[LogProb, ...] | None:
    if candidate.get("logprobsResult") is None:
        return None
    result = camel(object_in(candidate, "logprobsResult"))
    tops = [objects(top.get("candidates"), "logprobsResult.topCandidates") for top in _tokens(result, "topCandidates")]
    made: list[LogProb] = []
    for place, token in enumerate(_tokens(result, "chosenCandidates")):
        beside = tops[place] if place < len(tops) else ()
        top = tuple([TopLogProb(*_likely(camel(other))) for other in beside])
        made.append(LogProb(*_likely(token), top_logprobs=top))
    return tuple(made)


def _tokens(result: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    return [camel(token) for token in objects(result.get(name), f"logprobsResult.{name}")]


def _likely(token: Mapping[str, Any]) -> tuple[Any, Any]:
    return token.get("token") or "", token.get("logProbability") or 0.0


def write_reply(message: AgenticMessage, losses: Losses) -> dict[str, Any]:
    """Return the body of a response that says `message`.

    >>> write_reply(AgenticMessage.assistant("hello"), Losses())["candidates"][0]["finishReason"]
    'STOP'
    """
    meta = message.response_meta or ResponseMeta()
    own = object_in(meta.extension, GEMINI)
    content = put_back(GEMINI, {"parts": write_parts(message, losses), "role": "model"}, message.extra, losses)
    made = {"content": content, "finishReason": _word(meta), "index": 0}
    candidate = put_back(GEMINI, made, {GEMINI: own.get("candidate", {})}, losses)
    if content["parts"] and "content" not in candidate:
        candidate["content"] = content
    body: dict[str, Any] = {"candidates": [candidate], **object_in(own, "body")}
    if meta.usage is not None:
        body["usageMetadata"] = _write_usage(meta.usage, object_in(own, "usage"))
    named = {"modelVersion": meta.extension.get("model"), "responseId": meta.extension.get("id")}
    _report_beside(meta, candidate, losses)
    return {**body, **{name: value for name, value in named.items() if value}}


def _word(meta: ResponseMeta) -> str:
    """Return why a reply ended, in Gemini's word for it."""
    word = meta.extension.get("finish_reason")
    if isinstance(word, str) and _REASONS.get(word, word) == meta.finish_reason:
        return word
    return _WORDS.get(meta.finish_reason, meta.finish_reason)


def _write_usage(usage: TokenUsage, beside: Mapping[str, Any]) -> dict[str, Any]:
    prompt = max(usage.prompt_tokens - count_in(beside, _TOOL_COUNT), 0)
    said = max(usage.completion_tokens - usage.reasoning_tokens, 0)
    counts = dict(zip(_COUNTS, (prompt, said, usage.total_tokens), strict=True))
    some = dict(zip(_SOME_COUNTS, (usage.reasoning_tokens, usage.cached_tokens), strict=True))
    made = {**counts, **{name: count for name, count in some.items() if count}, **beside}
    return {name: value for name, value in made.items() if value is not None}


def _report_beside(meta: ResponseMeta, candidate: Mapping[str, Any], losses: Losses) -> None:
    """Report what the body of a response does not say."""
    if meta.logprobs is not None and "logprobsResult" not in candidate:
        losses.add(Lost.META, "logprobs", "response_meta")
    if meta.usage is not None and meta.usage.cache_write_tokens:
        losses.add(Lost.META, "cache_write_tokens", "response_meta")
    for name in meta.extension:
        if name not in _SHARED:
            losses.add(Lost.META, f"{name} of the reply", "response_meta")


# What a provider may get wrong


def check_error(body: Mapping[str, Any]) -> None:
    """Raise the error that a body, or an event of a stream, reports.

    >>> check_error({"promptFeedback": {"blockReason": "SAFETY"}})
    Traceback (most recent call last):
        ...
    suture.errors.ModelRequestError: gemini: it blocks the prompt: SAFETY
    """
    if body.get("error") is not None:
        raise _error(camel(object_in(body, "error")))
    feedback = camel(object_in(body, "promptFeedback"))
    blocked = text_in(feedback, "blockReason")
    if blocked:
        told = ": ".join([text for text in (blocked, text_in(feedback, "blockReasonMessage")) if text])
        raise ModelRequestError(f"it blocks the prompt: {told}", provider=GEMINI, code=blocked)


def _error(error: Mapping[str, Any]) -> ModelError:
    number = count_in(error, "code")
    status, reason = text_in(error, "status") or _STATUSES.get(number, ""), text_in(error, "message")
    kind = _ERRORS.get(status, ModelServerError if number >= 500 else ModelError)
    details = [camel(detail) for detail in objects(error.get("details"), "error.details")]
    if kind is ModelRequestError and any(words in reason.lower() for words in _TOO_LONG):
        kind = ContextLengthError
    if any(detail.get("reason") == _BAD_KEY for detail in details):
        kind = ModelAuthError
    return kind(
        reason or status or "an error without a message",
        provider=GEMINI,
        status=number or None,
        code=status,
        retry_after=next((wait for detail in details if (wait := _wait(detail)) is not None), None),
    )


def _wait(detail: Mapping[str, Any]) -> float | None:
    """Return how many seconds a detail of an error asks for, such as `34.5s`."""
    said = detail.get("retryDelay")
    number = said.removesuffix("s") if isinstance(said, str) else ""
    return float(number) if number.replace(".", "", 1).isdecimal() and number.isascii() else None


def nonsense(what: str) -> ModelError:
    """Return the error for a reply that is not what the API promises.

    >>> nonsense("candidates: expected a list, found int").retryable
    True
    """
    return ModelError(f"the reply makes no sense: {what}", provider=GEMINI, retryable=True)
