"""The body of a response, from and into a message; what it says of a failure, as an exception."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from msgspec.structs import replace

from suture.codecs._values import Losses
from suture.errors import (
    ContextLengthError,
    InputError,
    ModelAuthError,
    ModelError,
    ModelRequestError,
    ModelServerError,
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
from suture.providers.openai_responses.fields import WIRE, list_in, map_of, number_of, own_fields, text_in
from suture.providers.openai_responses.read import read_output
from suture.providers.openai_responses.write import cited, write_items

__all__ = ["error_of", "nonsense", "read_reply", "read_usage", "write_reply"]

_REASONS = {"max_output_tokens": "length"}
_WORDS = {word: reason for reason, word in _REASONS.items()}
_ENDED = ("stop", "tool_calls", "")
_READ = frozenset(("object", "output", "status", "error", "incomplete_details", "usage"))
_REPEATED = frozenset(
    (
        "access_programs",
        "background",
        "frequency_penalty",
        "image",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
        "parallel_tool_calls",
        "presence_penalty",
        "previous_response_id",
        "prompt",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning",
        "safety_identifier",
        "store",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
    )
)
"""What a response repeats of its request."""
_OURS = _READ | _REPEATED | {"finish_reason"}
_ERRORS: Mapping[str, type[ModelError]] = {
    "context_length_exceeded": ContextLengthError,
    "rate_limit_exceeded": RateLimitError,
    "rate_limit_error": RateLimitError,
    "insufficient_quota": RateLimitError,
    "too_many_requests": RateLimitError,
    "invalid_api_key": ModelAuthError,
    "authentication_error": ModelAuthError,
    "permission_error": ModelAuthError,
    "server_error": ModelServerError,
    "server_is_overloaded": ModelServerError,
    "slow_down": ModelServerError,
    "vector_store_timeout": ModelServerError,
    "invalid_request_error": ModelRequestError,
    "invalid_prompt": ModelRequestError,
    "data_residency_mismatch": ModelRequestError,
    "bio_policy": ModelRequestError,
    "misalignment_policy_violation": ModelRequestError,
}
_REFUSALS = ("invalid_", "image_", "unsupported_", "empty_image", "failed_to_download_image")
_FOR_GOOD = ("insufficient_quota",)


def error_of(said: Mapping[str, Any]) -> ModelError:
    """Return the exception that an error of the service is.

    >>> type(error_of({"code": "rate_limit_exceeded", "message": "Slow down."})).__name__
    'RateLimitError'
    """
    names = [name for name in (said.get("code"), said.get("type")) if isinstance(name, str) and name != "error"]
    kind = next((_ERRORS[name] for name in names if name in _ERRORS), None)
    if kind is None:
        kind = ModelRequestError if any(name.startswith(_REFUSALS) for name in names) else ModelServerError
    code = names[0] if names else ""
    told = said.get("message")
    reason = told if isinstance(told, str) and told else f"it failed and gives no reason but {code or 'none'}"
    return kind(reason, provider=WIRE, code=code, retryable=False if code in _FOR_GOOD else None)


def nonsense(what: str) -> ModelError:
    """Return the exception for what makes no sense; another try may.

    >>> nonsense("an event without a type").retryable
    True
    """
    return ModelError(f"it sent {what}", provider=WIRE, retryable=True)


def read_reply(body: Mapping[str, Any]) -> AgenticMessage:
    """Return what the body of a response says.

    >>> said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}
    >>> read_reply({"status": "completed", "output": [said]}).response_meta.finish_reason
    'stop'
    """
    error: Any = body.get("error")
    if isinstance(error, Mapping):
        raise error_of(cast("Mapping[str, Any]", error))
    try:
        status = text_in(body, "status") or "completed"
        if status not in {"completed", "incomplete"}:
            raise ModelServerError(f"the response is {status[:40]}, with no reply in it", provider=WIRE)
        if not isinstance(body.get("output"), list):
            raise nonsense("a response without output")
        message = read_output(list_in(body, "output"))
        return replace(message, response_meta=_meta(body, status, message.content_blocks))
    except InputError as fault:
        raise nonsense(f"a response that makes no sense: {fault}") from None


def write_reply(message: AgenticMessage, losses: Losses) -> dict[str, Any]:
    """Return the body of a response that says `message`.

    >>> write_reply(AgenticMessage.assistant("hi"), Losses())["output"][0]["content"]
    [{'annotations': [], 'type': 'output_text', 'text': 'hi'}]
    """
    message = replace(message, role="assistant")
    meta = message.response_meta or ResponseMeta()
    reason = meta.finish_reason
    is_whole = reason in _ENDED
    body: dict[str, Any] = {
        "id": "",
        "object": "response",
        "created_at": 0,
        "status": "completed" if is_whole else "incomplete",
        "error": None,
        "incomplete_details": None if is_whole else {"reason": _WORDS.get(reason, reason)},
        "model": "",
        "output": [_output(each.item, place) for place, each in enumerate(write_items([message], losses))],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None if meta.usage is None else _usage(meta.usage),
    }
    return {**body, **{name: value for name, value in meta.extension.items() if name not in _OURS}}


def read_usage(body: Mapping[str, Any]) -> TokenUsage | None:
    """Return what a reply cost, where the body says so.

    >>> read_usage({"usage": {"input_tokens": 31, "output_tokens": 20, "total_tokens": 51}}).prompt_tokens
    31
    """
    if body.get("usage") is None:
        return None
    usage = map_of(body["usage"], "usage")
    given = _details(usage, "input_tokens_details")
    made = _details(usage, "output_tokens_details")
    prompt, completion = _count(usage, "input_tokens"), _count(usage, "output_tokens")
    return TokenUsage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=_count(usage, "total_tokens") or prompt + completion,
        cached_tokens=_count(given, "cached_tokens"),
        cache_write_tokens=_count(given, "cache_write_tokens"),
        reasoning_tokens=_count(made, "reasoning_tokens"),
    )


def _output(item: dict[str, Any], place: int) -> dict[str, Any]:
    """Return an item as responses have it: with an id, if only its number."""
    number = number_of(item, place)
    if item.get("id") or not number:
        return item
    if item["type"] != "message":
        return {**item, "id": number}
    return {**item, "id": number, "status": "completed", "content": cited(item["content"])}


def _meta(body: Mapping[str, Any], status: str, blocks: Sequence[Any]) -> ResponseMeta:
    extension = {name: value for name, value in body.items() if value and name not in _OURS}
    return ResponseMeta(
        finish_reason=_reason(body, status, blocks),
        usage=read_usage(body),
        logprobs=_logprobs(blocks),
        extension=extension,
    )


def _reason(body: Mapping[str, Any], status: str, blocks: Sequence[Any]) -> str:
    if status == "incomplete":
        details = body.get("incomplete_details")
        reason = text_in(map_of(details, "incomplete_details"), "reason") if details is not None else ""
        return _REASONS.get(reason, reason) or status
    return "tool_calls" if any(isinstance(block, FunctionToolCall) for block in blocks) else "stop"


def _logprobs(blocks: Sequence[Any]) -> tuple[LogProb, ...] | None:
    """Return how likely the tokens of the texts were, where that was asked for."""
    texts = [block for block in blocks if isinstance(block, AssistantGenText)]
    found = [token for block in texts for token in list_in(own_fields(block.extra), "logprobs")]
    if not found:
        return None
    return tuple(
        LogProb(*_token(token), tuple(TopLogProb(*_token(other)) for other in list_in(token, "top_logprobs")))
        for token in found
    )


def _token(token: Mapping[str, Any]) -> tuple[str, float, tuple[int, ...] | None]:
    said: Any = token.get("bytes")
    if said is not None and not isinstance(said, list):
        raise InputError("expected a list", path="bytes")
    known = None if said is None else tuple(cast("list[int]", said))
    return text_in(token, "token"), token.get("logprob", 0.0), known


def _usage(usage: TokenUsage) -> dict[str, Any]:
    given = {"cached_tokens": usage.cached_tokens, "cache_write_tokens": usage.cache_write_tokens}
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": given,
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    }


def _details(usage: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return {} if usage.get(name) is None else map_of(usage[name], name)


def _count(thing: Mapping[str, Any], name: str) -> int:
    value = thing.get(name)
    if value is None:
        return 0
    if type(value) is not int:
        raise InputError(f"expected a whole number, found {type(value).__name__}", path=name)
    return value
