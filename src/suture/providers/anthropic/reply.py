"""Replies of Anthropic's Messages API: the body of a response, both ways, and the errors that it reports."""

from collections.abc import Mapping
from typing import Any, cast

from suture.codecs._kept import report_extra
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
from suture.messages import AgenticMessage, FunctionToolCall, ResponseMeta, TokenUsage
from suture.providers.anthropic.fields import WIRE, count_in, map_in, own_fields, text_in
from suture.providers.anthropic.reading import read_content
from suture.providers.anthropic.writing import write_content
from suture.wires import plain

__all__ = ["error_in", "nonsense", "read_body", "read_reply", "read_usage", "write_reply"]

_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
_WORDS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
_ERRORS: Mapping[str, type[ModelError]] = {
    "invalid_request_error": ModelRequestError,
    "not_found_error": ModelRequestError,
    "request_too_large": ContextLengthError,
    "authentication_error": ModelAuthError,
    "permission_error": ModelAuthError,
    "billing_error": ModelAuthError,
    "rate_limit_error": RateLimitError,
    "timeout_error": ModelTimeoutError,
    "api_error": ModelServerError,
    "overloaded_error": ModelServerError,
}
_TOO_LONG = ("prompt is too long", "exceed context limit")
"""What the API says of a request that its context cannot hold; it has no code of its own for it."""
_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
_DETAILS = "output_tokens_details"
_COUNTED = (*_COUNTS, _DETAILS)
_TOLD = ("id", "type", "role", "model", "content", "stop_reason", "usage")
_SHARED = ("id", "model", "finish_reason", WIRE)


def read_reply(payload: Mapping[str, Any]) -> AgenticMessage:
    """Return what the body of a response says; raise the error that it reports.

    >>> read_reply({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    Traceback (most recent call last):
        ...
    suture.errors.ModelServerError: anthropic: Overloaded
    """
    try:
        body: Mapping[str, Any] = plain(payload)
        if body.get("type") == "error":
            raise error_in(body)
        return read_body(body)
    except InputError as error:
        raise nonsense(str(error)) from None


def read_body(body: Mapping[str, Any]) -> AgenticMessage:
    """Return the reply in the body of a response.

    >>> read_body({"content": "hello"}).role
    'assistant'
    """
    if body.get("content") is None:
        raise InputError("expected a list, found nothing", path="content")
    blocks = read_content(body, made=True)
    return AgenticMessage("assistant", tuple(blocks), response_meta=_read_meta(body))


def _read_meta(body: Mapping[str, Any]) -> ResponseMeta:
    word = text_in(body, "stop_reason")
    reason = _REASONS.get(word, word)
    extension: dict[str, Any] = {name: text for name in ("id", "model") if (text := text_in(body, name))}
    if _WORDS.get(reason, reason) != word:
        extension["finish_reason"] = word
    rest = {name: value for name, value in body.items() if name not in _TOLD and value is not None}
    usage = None
    if body.get("usage") is not None:
        counted = map_in(body, "usage")
        usage = read_usage(counted)
        beside = {name: value for name, value in counted.items() if name not in _COUNTED and value is not None}
        rest |= {"usage": beside} if beside else {}
    if rest:
        extension[WIRE] = rest
    return ResponseMeta(finish_reason=reason, usage=usage, extension=extension)


def read_usage(usage: Mapping[str, Any]) -> TokenUsage:
    """Return what a reply cost; the API counts what is cached beside the input, not in it.

    >>> read_usage({"input_tokens": 5, "cache_read_input_tokens": 90, "output_tokens": 3})
    TokenUsage(prompt_tokens=95, completion_tokens=3, total_tokens=98, cached_tokens=90)
    """
    fresh, written, cached, said = [count_in(usage, name) for name in _COUNTS]
    thought = count_in(map_in(usage, _DETAILS), "thinking_tokens") if usage.get(_DETAILS) is not None else 0
    prompt = fresh + written + cached
    return TokenUsage(
        prompt_tokens=prompt,
        completion_tokens=said,
        total_tokens=prompt + said,
        cached_tokens=cached,
        cache_write_tokens=written,
        reasoning_tokens=thought,
    )


def write_reply(message: AgenticMessage, losses: Losses) -> dict[str, Any]:
    """Return the body of a response that says `message`.

    >>> write_reply(AgenticMessage.assistant("hello"), Losses())["content"]
    [{'type': 'text', 'text': 'hello'}]
    """
    meta = message.response_meta or ResponseMeta()
    own = own_fields(meta.extension)
    content = write_content(message.content_blocks, losses, blank=True)
    _report_beside(message, meta, losses)
    return {
        "id": meta.extension.get("id", ""),
        "type": "message",
        "role": "assistant",
        "model": meta.extension.get("model", ""),
        "content": content,
        "stop_reason": _word(message, meta),
        "stop_sequence": None,
        **own,
        "usage": {**_write_usage(meta.usage or TokenUsage()), **own.get("usage", {})},
    }


def _word(message: AgenticMessage, meta: ResponseMeta) -> str:
    """Return why a reply ended, in the API's word for it."""
    reason, word = meta.finish_reason, meta.extension.get("finish_reason")
    if isinstance(word, str) and _REASONS.get(word) == reason:
        return word
    if not reason:
        calls = any(isinstance(block, FunctionToolCall) for block in message.content_blocks)
        reason = "tool_calls" if calls else "stop"
    return _WORDS.get(reason, reason)


def _write_usage(usage: TokenUsage) -> dict[str, Any]:
    fresh = max(usage.prompt_tokens - usage.cached_tokens - usage.cache_write_tokens, 0)
    counts = (fresh, usage.cache_write_tokens, usage.cached_tokens, usage.completion_tokens)
    details = {_DETAILS: {"thinking_tokens": usage.reasoning_tokens}} if usage.reasoning_tokens else {}
    return {**dict(zip(_COUNTS, counts, strict=True)), **details}


def _report_beside(message: AgenticMessage, meta: ResponseMeta, losses: Losses) -> None:
    """Report what the body of a response has no field for."""
    if meta.logprobs is not None:
        losses.add(Lost.META, "logprobs", "response_meta")
    for name in meta.extension:
        if name not in _SHARED:
            losses.add(Lost.META, f"{name} of the reply", "response_meta")
    for name, value in message.extra.items():
        report_extra(name, value, losses, "extra")


def error_in(body: Mapping[str, Any]) -> ModelError:
    """Return the error that a body, or an event of a stream, reports.

    >>> error_in({"error": {"type": "rate_limit_error", "message": "slow down"}}).retryable
    True
    """
    error = body.get("error")
    error = cast("dict[str, Any]", error) if error.__class__ is dict else dict[str, Any]()
    code, reason = text_in(error, "type"), text_in(error, "message")
    kind = _ERRORS.get(code, ModelError)
    if kind is ModelRequestError and any(words in reason for words in _TOO_LONG):
        kind = ContextLengthError
    told = reason or code or "an error without a message"
    return kind(told, provider=WIRE, code=code, request_id=text_in(body, "request_id"))


def nonsense(what: str) -> ModelError:
    """Return the error for a reply that is not what the API promises.

    >>> nonsense("content: expected a list, found int").retryable
    True
    """
    return ModelError(f"the reply makes no sense: {what}", provider=WIRE, retryable=True)
