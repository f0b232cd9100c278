"""What Responses answers, for tests that need an answer: the body of a response, and the events of a stream."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from suture.codecs import get_codec
from suture.messages import AgenticMessage, ResponseMeta

_PIECES = {
    "function_call": ("response.function_call_arguments", "arguments"),
    "custom_tool_call": ("response.custom_tool_call_input", "input"),
    "mcp_call": ("response.mcp_call_arguments", "arguments"),
}
"""The items that come as one text: the events of it, and the field that has it in the end."""


def make_body(*output: Any, **fields: Any) -> dict[str, Any]:
    """Return the body of a response with these items."""
    return {
        "id": "resp_9f",
        "object": "response",
        "created_at": 1778027172,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": "gpt-5",
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
        **fields,
    }


def write_reply(message: AgenticMessage) -> dict[str, Any]:
    """Return the body of a response that says `message`."""
    meta = message.response_meta or ResponseMeta()
    fields: dict[str, Any] = {}
    if meta.finish_reason not in {"", "stop", "tool_calls"}:
        reason = {"length": "max_output_tokens"}.get(meta.finish_reason, meta.finish_reason)
        fields = {"status": "incomplete", "incomplete_details": {"reason": reason}}
    if meta.usage is not None:
        fields["usage"] = {
            "input_tokens": meta.usage.prompt_tokens,
            "input_tokens_details": {
                "cached_tokens": meta.usage.cached_tokens,
                "cache_write_tokens": meta.usage.cache_write_tokens,
            },
            "output_tokens": meta.usage.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": meta.usage.reasoning_tokens},
            "total_tokens": meta.usage.total_tokens,
        }
    return make_body(*get_codec("openai-responses").encode_messages([message]).payload, **fields)


def write_stream(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the events of a stream that ends with `body`."""
    begun = {**body, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
    for place, item in enumerate(body["output"]):
        events += [{**event, "output_index": place} for event in _item(item)]
    events.append({"type": f"response.{body['status']}", "response": dict(body)})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def frame(event: Mapping[str, Any]) -> bytes:
    """Return one event as the bytes of a stream."""
    return f"event: {event.get('type')}\ndata: {json.dumps(event)}\n\n".encode()


def _item(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    kind, at = item["type"], {"item_id": item.get("id", "")}
    begun: dict[str, Any] = {}
    pieces: list[dict[str, Any]] = []
    if kind in _PIECES:
        name, field = _PIECES[kind]
        begun = {field: ""}
        pieces = [{"type": f"{name}.delta", **at, "delta": item[field]}]
    elif kind == "message":
        begun = {"content": []}
        pieces = [{**piece, **at} for piece in _content(item["content"])]
    elif kind == "reasoning":
        begun = {"summary": [], "content": []}
        pieces = [
            {"type": f"response.{name}.delta", **at, counter: place, "delta": part["text"]}
            for field, name, counter in (
                ("summary", "reasoning_summary_text", "summary_index"),
                ("content", "reasoning_text", "content_index"),
            )
            for place, part in enumerate(item.get(field, ()))
        ]
    yield {"type": "response.output_item.added", "item": {**item, **begun}}
    yield from pieces
    yield {"type": "response.output_item.done", "item": dict(item)}


def _content(parts: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the events of the parts of a message: a text in pieces, what is none at once."""
    for place, part in enumerate(parts):
        at, kind = {"content_index": place}, part["type"]
        field = {"output_text": "text", "refusal": "refusal"}.get(kind, "")
        yield {"type": "response.content_part.added", **at, "part": {**part, field: ""} if field else part}
        if field:
            yield {"type": f"response.{kind}.delta", **at, "delta": part[field]}
        yield {"type": "response.content_part.done", **at, "part": part}
