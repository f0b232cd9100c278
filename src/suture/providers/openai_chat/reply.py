"""Replies of Chat Completions: the body of a response, both ways."""

from collections.abc import Mapping
from typing import Any

import msgspec

from suture.codecs._values import Losses, Lost
from suture.errors import InputError, ModelServerError
from suture.messages import (
    AgenticMessage,
    AssistantGenText,
    ContentBlock,
    FunctionToolCall,
    LogProb,
    ResponseMeta,
    TokenUsage,
)
from suture.providers.openai_chat.errors import nonsense, raise_error
from suture.providers.openai_chat.parts import LISTED, WIRE, inside, is_list, is_map, others, own
from suture.providers.openai_chat.reading import THOUGHTS, read_turn
from suture.wires import plain

__all__ = ["read_reply", "read_usage", "write_body"]

_REASONS = {"eos": "stop", "eos_token": "stop", "stop_sequence": "stop", "model_length": "length"}
"""What servers say in other words than most."""
_SENT_BACK = ("extra_content", LISTED)
"""What a later request must say of a reply; other fields that only replies have would be refused there."""
_EMPTY = tuple((name, "") for name in (*THOUGHTS, "refusal"))
"""What says nothing: some servers send it with every reply."""
_SHARED = ("id", "model", "finish_reason", WIRE)


# Reading


def read_reply(payload: Mapping[str, Any]) -> AgenticMessage:
    """Return what the body of a response says; raise the error that it reports."""
    try:
        body: Any = plain(payload)
        return _read(body)
    except InputError as error:
        raise nonsense(f"a reply that cannot be read came: {error}") from None


def _read(body: Mapping[str, Any]) -> AgenticMessage:
    raise_error(body)
    choices = body.get("choices")
    choice = choices[0] if is_list(choices) and choices else None
    message = choice.get("message") if is_map(choice) else None
    if not is_map(choice) or not is_map(message):
        raise nonsense("a reply without a message came")
    raise_error(choice)
    blocks, rest = read_turn(message, 0)
    sent = {name: value for name, value in rest.items() if name in _SENT_BACK}
    beside = {name: value for name, value in rest.items() if name not in _SENT_BACK and (name, value) not in _EMPTY}
    blocks = _annotated(blocks, beside)
    meta = _read_meta(body, choice, beside)
    extra = {WIRE: sent} if sent else {}
    return AgenticMessage("assistant", tuple(blocks), response_meta=meta, extra=extra)


def _annotated(blocks: list[ContentBlock], rest: dict[str, Any]) -> list[ContentBlock]:
    """Return the blocks with the annotations of the text on it, where there is one text."""
    texts = [block for block in blocks if isinstance(block, AssistantGenText) and not block.extension]
    notes = rest.get("annotations")
    if len(texts) != 1 or not is_list(notes) or not notes:
        return blocks
    noted = msgspec.structs.replace(texts[0], extension={"annotations": list(rest.pop("annotations"))})
    return [noted if block is texts[0] else block for block in blocks]


def _read_meta(body: Mapping[str, Any], choice: Mapping[str, Any], message: Mapping[str, Any]) -> ResponseMeta:
    word = choice.get("finish_reason")
    if word is not None and not isinstance(word, str):
        raise nonsense(f"a finish_reason of the type {type(word).__name__} came")
    if word == "error":
        raise ModelServerError("the model broke off with an error", provider=WIRE)
    word = word or ""
    reason = _REASONS.get(word, word)
    extension: dict[str, Any] = {name: body[name] for name in ("id", "model") if body.get(name)}
    if reason != word:
        extension["finish_reason"] = word
    logprobs = _read_logprobs(choice.get("logprobs"))
    told = ("index", "message", "finish_reason", *(("logprobs",) if logprobs is not None else ()))
    usage = _usage_in(body)
    kept = {
        **others(body, ("id", "model", "object", "choices", "usage")),
        "choice": others(choice, told),
        "message": dict(message),
        "usage": None if usage is None or _write_usage(usage) == body.get("usage") else body.get("usage"),
    }
    rest = {name: value for name, value in kept.items() if value not in (None, {})}
    if rest:
        extension[WIRE] = rest
    return ResponseMeta(finish_reason=reason, usage=usage, logprobs=logprobs, extension=extension)


def _usage_in(body: Mapping[str, Any]) -> TokenUsage | None:
    """Return what a reply cost; one server tells it in a field of its own."""
    found = body.get("usage")
    if found is None:
        found = inside(body, "x_groq").get("usage")
    return None if found is None else read_usage(found)


def read_usage(usage: Any) -> TokenUsage:
    """Return what a reply cost: all input, all output, and of these what was cached and what was thought."""
    if not is_map(usage):
        raise nonsense(f"a usage of the type {type(usage).__name__} came")
    asked, answered = inside(usage, "prompt_tokens_details"), inside(usage, "completion_tokens_details")
    prompt, total = _count(usage, "prompt_tokens"), _count(usage, "total_tokens")
    # Some servers count what was thought in the total alone.
    completion = max(_count(usage, "completion_tokens"), total - prompt)
    return TokenUsage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=prompt + completion,
        cached_tokens=_count(asked, "cached_tokens")
        or _count(usage, "prompt_cache_hit_tokens")
        or _count(usage, "cached_tokens"),
        cache_write_tokens=_count(asked, "cache_write_tokens"),
        reasoning_tokens=_count(answered, "reasoning_tokens"),
    )


def _count(held: Mapping[str, Any], name: str) -> int:
    value = held.get(name)
    return value if type(value) is int and value > 0 else 0


def _read_logprobs(found: Any) -> tuple[LogProb, ...] | None:
    """Return how likely the tokens were; `None` where that is told in a form that would not come back."""
    if not is_map(found) or not is_list(found.get("content")):
        return None
    try:
        read = msgspec.convert(found["content"], tuple[LogProb, ...])
    except msgspec.ValidationError:
        return None
    return read if _write_logprobs(read) == others(found, ()) else None


# Writing


def write_body(message: AgenticMessage, made: dict[str, Any], losses: Losses) -> dict[str, Any]:
    """Return the body of a response whose message is `made`, which says `message`."""
    meta = message.response_meta or ResponseMeta()
    for name in meta.extension:
        if name not in _SHARED:
            losses.add(Lost.META, f"extension {name!r}")
    kept = own(meta.extension)
    choice: dict[str, Any] = {
        "index": 0,
        "message": {**made, **kept.get("message", {})},
        "finish_reason": _write_reason(message, meta),
        **kept.get("choice", {}),
    }
    if meta.logprobs is not None:
        choice["logprobs"] = _write_logprobs(meta.logprobs)
    body: dict[str, Any] = {
        "id": meta.extension.get("id", ""),
        "object": "chat.completion",
        "created": 0,
        "model": meta.extension.get("model", ""),
        **others(kept, ("choice", "message", "usage")),
        "choices": [choice],
    }
    usage = kept.get("usage") or (_write_usage(meta.usage) if meta.usage else None)
    return {**body, "usage": usage} if usage is not None else body


def _write_reason(message: AgenticMessage, meta: ResponseMeta) -> str:
    word = meta.extension.get("finish_reason", "")
    if meta.finish_reason and _REASONS.get(word) == meta.finish_reason:
        return word
    called = any(isinstance(block, FunctionToolCall) for block in message.content_blocks)
    return meta.finish_reason or ("tool_calls" if called else "stop")


def _write_usage(usage: TokenUsage) -> dict[str, Any]:
    counts = {"cached_tokens": usage.cached_tokens, "cache_write_tokens": usage.cache_write_tokens}
    asked = {name: count for name, count in counts.items() if count}
    made: dict[str, Any] = {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
    }
    if asked:
        made["prompt_tokens_details"] = asked
    if usage.reasoning_tokens:
        made["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    return made


def _write_logprobs(logprobs: tuple[LogProb, ...]) -> dict[str, Any]:
    def told(token: Any) -> dict[str, Any]:
        return {
            "token": token.token,
            "logprob": token.logprob,
            "bytes": None if token.bytes is None else list(token.bytes),
        }

    content = [{**told(token), "top_logprobs": [told(top) for top in token.top_logprobs]} for token in logprobs]
    return {"content": content}
