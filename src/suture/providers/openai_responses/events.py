"""The body of a response, cut into the events of a stream that says the same."""

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["write_events"]

_FIELDS = {"function_call": "arguments", "custom_tool_call": "input", "mcp_call": "arguments"}
"""The items that come as one text, and where that is."""
_EVENTS = {
    "function_call": "response.function_call_arguments",
    "custom_tool_call": "response.custom_tool_call_input",
    "mcp_call": "response.mcp_call_arguments",
}


def write_events(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the events of a stream that ends with `body`.

    >>> [event["type"] for event in write_events({"status": "completed", "output": []})]
    ['response.created', 'response.in_progress', 'response.completed']
    """
    begun: dict[str, Any] = {**body, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
    events.append({"type": "response.in_progress", "response": begun})
    for place, item in enumerate(body["output"]):
        events += [{**event, "output_index": place} for event in _item(item)]
    events.append({"type": f"response.{body['status']}", "response": dict(body)})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def _item(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    kind = item.get("type")
    status = {"status": "in_progress"} if "status" in item else {}
    if kind in _FIELDS:
        yield {"type": "response.output_item.added", "item": {**item, **status, _FIELDS[kind]: ""}}
        yield from _text(_EVENTS[kind], item, _FIELDS[kind], item.get(_FIELDS[kind], ""))
    elif kind == "message":
        yield {"type": "response.output_item.added", "item": {**item, **status, "content": []}}
        yield from _content(item)
    elif kind == "reasoning":
        rest = {name: value for name, value in item.items() if name != "content"}
        yield {"type": "response.output_item.added", "item": {**rest, **status, "summary": []}}
        yield from _summary(item)
    else:
        yield {"type": "response.output_item.added", "item": {**item, **status}}
    yield {"type": "response.output_item.done", "item": dict(item)}


def _content(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events of the parts of a message."""
    for place, part in enumerate(item["content"]):
        at = {"item_id": item.get("id", ""), "content_index": place}
        kind = part.get("type")
        field = "refusal" if kind == "refusal" else "text"
        if kind not in {"output_text", "refusal"}:
            yield {"type": "response.content_part.added", **at, "part": part}
            yield {"type": "response.content_part.done", **at, "part": part}
            continue
        yield {"type": "response.content_part.added", **at, "part": {**part, field: ""}}
        extra: dict[str, Any] = {"logprobs": []} if field == "text" else {}
        for event in _text(f"response.{kind}", item, field, part[field]):
            yield {**event, **at, **extra}
        yield {"type": "response.content_part.done", **at, "part": part}


def _summary(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events of the summary of reasoning, and of the reasoning itself where that is told."""
    for place, part in enumerate(item["summary"]):
        at = {"item_id": item.get("id", ""), "summary_index": place}
        yield {"type": "response.reasoning_summary_part.added", **at, "part": {**part, "text": ""}}
        for event in _text("response.reasoning_summary_text", item, "text", part.get("text", "")):
            yield {**event, **at}
        yield {"type": "response.reasoning_summary_part.done", **at, "part": part}
    for place, part in enumerate(item.get("content", ())):
        for event in _text("response.reasoning_text", item, "text", part.get("text", "")):
            yield {**event, "content_index": place}


def _text(name: str, item: Mapping[str, Any], field: str, text: str) -> Iterator[dict[str, Any]]:
    """Yield a text as one piece, and then whole."""
    at = {"item_id": item.get("id", "")}
    if text:
        yield {"type": f"{name}.delta", **at, "delta": text}
    yield {"type": f"{name}.done", **at, field: text}
