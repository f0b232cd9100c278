"""What Gemini's servers would say: a native reply as the body of a response, and as the events of a stream."""

import json
from typing import Any

from suture.codecs import get_codec
from suture.messages import AgenticMessage, ResponseMeta

_REASONS = {"length": "MAX_TOKENS", "content_filter": "SAFETY"}


def write_reply(message: AgenticMessage) -> dict[str, Any]:
    """Return the body of a response that says `message`."""
    meta = message.response_meta or ResponseMeta()
    contents = get_codec("gemini").encode_messages([message]).payload
    content = contents[0] if contents else {"role": "model", "parts": []}
    reason = _REASONS.get(meta.finish_reason, "STOP")
    body: dict[str, Any] = {"candidates": [{"content": content, "finishReason": reason, "index": 0}]}
    if meta.usage is not None:
        body["usageMetadata"] = {
            "promptTokenCount": meta.usage.prompt_tokens,
            "candidatesTokenCount": meta.usage.completion_tokens - meta.usage.reasoning_tokens,
            "totalTokenCount": meta.usage.total_tokens,
            "thoughtsTokenCount": meta.usage.reasoning_tokens,
            "cachedContentTokenCount": meta.usage.cached_tokens,
        }
    named = {"responseId": meta.extension.get("id"), "modelVersion": meta.extension.get("model")}
    return {**body, **{name: value for name, value in named.items() if value}}


def write_stream(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events of a stream that says what `body` says: a text in two pieces, and behind it texts that join."""
    [candidate] = body["candidates"]
    runs: list[list[dict[str, Any]]] = []
    parts = candidate["content"]["parts"]
    for place, part in enumerate(parts):
        if place and _flows(part) and _flows(parts[place - 1]) and part.keys() == parts[place - 1].keys():
            runs[-1].append(part)
        elif _flows(part) and len(part["text"]) > 1:
            half = len(part["text"]) // 2
            runs += [[{**part, "text": part["text"][:half]}], [{**part, "text": part["text"][half:]}]]
        else:
            runs.append([part])
    *early, last = [{"content": {"role": "model", "parts": run}} for run in runs] or [candidate]
    named = {name: body[name] for name in ("responseId", "modelVersion") if name in body}
    return [*({"candidates": [each], **named} for each in early), {**body, "candidates": [candidate | last]}]


def frame(event: dict[str, Any]) -> bytes:
    """Return one event as the bytes of a stream."""
    return f"data: {json.dumps(event)}\n\n".encode()


def _flows(part: dict[str, Any]) -> bool:
    return part.keys() <= {"text", "thought"}
