"""The body of a Converse response, both ways, and what its failures mean."""

from collections.abc import Mapping
from typing import Any

from suture.codecs._contents import as_json
from suture.codecs._kept import origin_of, put_back
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
from suture.providers.bedrock.json import WIRE, Where, as_extra, beside, field, is_map
from suture.providers.bedrock.read import read_blocks
from suture.providers.bedrock.write import Writing, write_blocks

__all__ = ["failure", "nonsense", "read_reply", "read_usage", "write_reply"]

_REASONS = {
    "end_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "content_filtered": "content_filter",
    "stop_sequence": "stop",
    "guardrail_intervened": "content_filter",
    "model_context_window_exceeded": "length",
}
_WORDS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "content_filtered"}
_READ = ("output", "stopReason", "usage", "ResponseMetadata")
_OWN = ("wire", "id", "finish_reason", "usage")
_FAILURES: Mapping[str, type[ModelError]] = {
    "throttlingexception": RateLimitError,
    "servicequotaexceededexception": RateLimitError,
    "modelnotreadyexception": RateLimitError,
    "validationexception": ModelRequestError,
    "resourcenotfoundexception": ModelRequestError,
    "accessdeniedexception": ModelAuthError,
    "unrecognizedclientexception": ModelAuthError,
    "expiredtokenexception": ModelAuthError,
    "modeltimeoutexception": ModelTimeoutError,
}
_TOO_LONG = (
    "too long",
    "context window",
    "context length",
    "context limit",
    "too many input tokens",
    "maximum number of",
)
_COUNTS = {
    "inputTokens": "prompt_tokens",
    "outputTokens": "completion_tokens",
    "totalTokens": "total_tokens",
    "cacheReadInputTokens": "cached_tokens",
    "cacheWriteInputTokens": "cache_write_tokens",
}


def nonsense(what: str) -> ModelError:
    """Return the error that the service's answer makes no sense.

    >>> str(nonsense("a delta without a block"))
    'bedrock: the answer makes no sense: a delta without a block'
    """
    return ModelError(f"the answer makes no sense: {what}", provider=WIRE, retryable=True)


def failure(kind: str, told: Any) -> ModelError:
    """Return what an exception of the service's means.

    >>> type(failure("validationException", {"message": "Input is too long for requested model."})).__name__
    'ContextLengthError'
    """
    reasons = [field(told, name) for name in ("message", "Message", "originalMessage")]
    reason = ": ".join(dict.fromkeys(said for said in reasons if isinstance(said, str) and said)) or kind
    meant = _FAILURES.get(kind.lower(), ModelServerError)
    if meant is ModelRequestError and any(words in reason.lower() for words in _TOO_LONG):
        meant = ContextLengthError
    status = field(told, "originalStatusCode")
    return meant(reason, provider=WIRE, code=kind, status=status if type(status) is int else None)


def read_reply(payload: Mapping[str, Any]) -> AgenticMessage:
    """Return what the body of a response says.

    >>> message = {"role": "assistant", "content": [{"text": "hi"}]}
    >>> read_reply({"output": {"message": message}, "stopReason": "end_turn"}).response_meta.finish_reason
    'stop'
    """
    try:
        body: Mapping[str, Any] = as_json(payload)
        if "output" not in body:
            raise _refusal(body)
        where = Where("assistant", None, "output")
        message = where.at(".message").map(where.map(body["output"]).get("message"))
        where = where.at(".message.content")
        blocks = read_blocks(where.list(message.get("content")), where)
        extra = as_extra(beside(message, "role", "content"))
        return AgenticMessage("assistant", blocks, response_meta=_meta(body), extra=extra)
    except InputError as error:
        raise nonsense(str(error)) from None


def _refusal(body: Mapping[str, Any]) -> ModelError:
    """Return what a body without a message says: the service's error, or boto3's form of it."""
    said = body.get("Error")
    if is_map(said):
        return failure(str(said.get("Code", "")), said)
    if "message" in body or "Message" in body:
        return failure(str(body.get("__type", "")).rpartition("#")[2] or "error", body)
    return nonsense("a response without output")


def _meta(body: Mapping[str, Any]) -> ResponseMeta:
    where = Where("", None, "")
    word = where.text(body, "stopReason")
    finish = _REASONS.get(word, word)
    extension: dict[str, Any] = {"wire": WIRE}
    identity = field(body.get("ResponseMetadata"), "RequestId")
    if isinstance(identity, str):
        extension["id"] = identity
    if _WORDS.get(finish, finish) != word:
        extension["finish_reason"] = word
    extension |= beside(body, *_READ, *_OWN)
    usage = body.get("usage")
    if usage is None:
        return ResponseMeta(finish_reason=finish, extension=extension)
    counted = read_usage(usage)
    rest = _rest(usage, counted)
    if rest:
        extension["usage"] = rest
    return ResponseMeta(finish_reason=finish, usage=counted, extension=extension)


def read_usage(usage: Any) -> TokenUsage:
    """Return what a reply cost; Converse does not count what was cached as input.

    >>> read_usage({"inputTokens": 3, "outputTokens": 4, "totalTokens": 17, "cacheReadInputTokens": 10})
    TokenUsage(prompt_tokens=13, completion_tokens=4, total_tokens=17, cached_tokens=10)
    """
    where = Where("", None, "usage")
    given = where.map(usage)
    counts = {own: 0 if given.get(name) is None else given[name] for name, own in _COUNTS.items()}
    for name, count in zip(_COUNTS, counts.values(), strict=True):
        if type(count) is not int:
            raise where.at(f".{name}").fault(f"expected an integer, found {type(count).__name__}")
    counts["prompt_tokens"] += counts["cached_tokens"] + counts["cache_write_tokens"]
    if given.get("totalTokens") is None:
        counts["total_tokens"] = counts["prompt_tokens"] + counts["completion_tokens"]
    return TokenUsage(**counts)


def _written_usage(usage: TokenUsage) -> dict[str, Any]:
    counts = {name: getattr(usage, own) for name, own in _COUNTS.items()}
    counts["inputTokens"] -= usage.cached_tokens + usage.cache_write_tokens
    return {name: count for name, count in counts.items() if count or not name.startswith("cache")}


def _rest(usage: Mapping[str, Any], counted: TokenUsage) -> dict[str, Any]:
    """Return what `usage` says beside what is counted; a `None` where it does not say what would be written."""
    written = _written_usage(counted)
    differs = {name: usage.get(name) for name, count in written.items() if usage.get(name) != count}
    return beside(usage, *written) | differs


def write_reply(message: AgenticMessage, losses: Losses) -> dict[str, Any]:
    """Return the body of a response that says `message`.

    >>> write_reply(AgenticMessage.assistant("hi"), Losses())["output"]["message"]["content"]
    [{'text': 'hi'}]
    """
    if message.role != "assistant":
        raise InputError(f"a reply is the assistant's, this message is the {message.role}'s")
    content = write_blocks(message.content_blocks, Writing(losses, {}))
    said = put_back(WIRE, {"role": "assistant", "content": content}, message.extra, losses)
    meta = message.response_meta or ResponseMeta()
    body: dict[str, Any] = {"output": {"message": said}, "stopReason": _stop_reason(message, meta)}
    own = origin_of(meta) == WIRE
    if meta.usage is not None:
        rest = {WIRE: meta.extension["usage"]} if own and "usage" in meta.extension else {}
        body["usage"] = put_back(WIRE, _written_usage(meta.usage), rest, losses)
        if meta.usage.reasoning_tokens:
            losses.add(Lost.META, "reasoning tokens")
    if meta.logprobs is not None:
        losses.add(Lost.META, "logprobs")
    for name, value in meta.extension.items():
        if own and name not in _OWN:
            body[name] = value
        elif name == "id" or (not own and name not in {"wire", "finish_reason"}):
            losses.add(Lost.META, f"response {name}")
    return body


def _stop_reason(message: AgenticMessage, meta: ResponseMeta) -> str:
    word = meta.extension.get("finish_reason")
    if isinstance(word, str) and (origin_of(meta) == WIRE or word in _REASONS):
        return word
    if meta.finish_reason:
        return _WORDS.get(meta.finish_reason, meta.finish_reason)
    calls = any(isinstance(block, FunctionToolCall) for block in message.content_blocks)
    return "tool_use" if calls else "end_turn"
