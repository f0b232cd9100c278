"""What Anthropic's server says: a reply as the body of a response, as the events of a stream, and as their bytes."""

import json
from typing import Any

import msgspec

from suture.codecs import get_codec
from suture.messages import AgenticMessage, ResponseMeta, TokenUsage

REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
REASONS["pause"] = "pause_turn"
CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")


def write_reply(message: AgenticMessage) -> dict[str, Any]:
    """Return the body of a response that says `message`."""
    meta = message.response_meta or ResponseMeta()
    usage = meta.usage or TokenUsage()
    written = get_codec("anthropic").encode_messages([message]).payload
    return {
        "type": "message",
        "role": "assistant",
        "content": written[0]["content"] if written else [],
        "stop_reason": REASONS.get(meta.finish_reason, "end_turn"),
        "usage": {
            "input_tokens": usage.prompt_tokens - usage.cached_tokens - usage.cache_write_tokens,
            "cache_creation_input_tokens": usage.cache_write_tokens,
            "cache_read_input_tokens": usage.cached_tokens,
            "output_tokens": usage.completion_tokens,
            "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
        },
    }


def write_stream(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events of a stream that gives the response `body`."""
    end = {name: body[name] for name in ("stop_reason", "stop_sequence") if name in body}
    start = {**body, **dict.fromkeys(end), "content": [], "usage": {**body["usage"], "output_tokens": 0}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(body["content"]):
        began, deltas = taken_apart(block)
        events.append({"type": "content_block_start", "index": index, "content_block": began})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    return [*events, {"type": "message_delta", "delta": end, "usage": body["usage"]}, {"type": "message_stop"}]


def taken_apart(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return how a block begins in a stream, and the pieces that follow."""
    if block["type"] == "text":
        cited = [{"type": "citations_delta", "citation": citation} for citation in block.get("citations", ())]
        began = {**block, "text": "", **({"citations": []} if cited else {})}
        return began, [*cited, {"type": "text_delta", "text": block["text"]}]
    if block["type"] == "thinking":
        signed = [{"type": "signature_delta", "signature": block["signature"]}] if "signature" in block else []
        began = {**block, "thinking": "", **({"signature": ""} if signed else {})}
        return began, [{"type": "thinking_delta", "thinking": block["thinking"]}, *signed]
    if block["type"] in CALLS:
        return {**block, "input": {}}, [
            {"type": "input_json_delta", "partial_json": msgspec.json.encode(block["input"]).decode()}
        ]
    return block, []


def frame(event: dict[str, Any]) -> bytes:
    """Return one event as the bytes of a stream."""
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
