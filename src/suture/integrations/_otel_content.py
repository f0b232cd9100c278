"""What was said, in the form that the GenAI conventions have for it: JSON of messages made of parts."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from suture.messages import Delta, TextPart, ToolResult
from suture.wires import ChatWire

__all__ = ["as_instruction", "as_messages", "as_result"]


def as_messages(wire: ChatWire, messages: Sequence[Any], shown: Callable[[Any], Any], finish: str = "") -> str:
    """Return messages of any wire as the conventions write them; pictures and other media are left out.

    `shown` is asked what of each message may be shown, and `finish` is why the last one ended.

    >>> from suture.integrations._otel_content import as_messages
    >>> from suture.messages import Message
    >>> from suture.wires import get_chat_wire
    >>> as_messages(get_chat_wire("message"), [Message.user("hi")], lambda message: message)
    '[{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]'
    """
    told = [each for message in messages for each in _told(wire, shown(message))]
    if finish and told:
        told[-1]["finish_reason"] = finish
    return json.dumps(told, ensure_ascii=False)


def as_instruction(text: str) -> str:
    """Return what a model is told before everything else.

    >>> from suture.integrations._otel_content import as_instruction
    >>> as_instruction("Be brief.")
    '[{"type": "text", "content": "Be brief."}]'
    """
    return json.dumps([{"type": "text", "content": text}], ensure_ascii=False)


def as_result(pieces: Sequence[ToolResult]) -> str:
    """Return what a tool gave, in words.

    >>> from suture.integrations._otel_content import as_result
    >>> as_result([ToolResult([TextPart("06:")]), ToolResult([TextPart("12")])])
    '06:12'
    """
    return "".join([part.text for piece in pieces for part in piece.parts if isinstance(part, TextPart)])


def _told(wire: ChatWire, message: Any) -> list[dict[str, Any]]:
    """Return a message; one that has both results and text as two, for the results are of another role."""
    view = wire.view(message)
    if view.role == "assistant":
        return [{"role": "assistant", "parts": [_piece(delta) for delta in wire.deltas(message) if _says(delta)]}]
    if not view.results:
        return [{"role": view.role, "parts": [{"type": "text", "content": wire.text(message)}]}]
    found = [(result.id, wire.result_text(result)[0]) for result in view.results]
    parts = [{"type": "tool_call_response", "id": call, "result": text} for call, text in found]
    rest = wire.rest(message, {})
    beside = _told(wire, rest) if rest is not None and wire.text(rest) else []
    return [{"role": "tool", "parts": parts}, *beside]


def _says(delta: Delta) -> bool:
    return bool(delta.text or delta.reasoning or delta.call_index is not None)


def _piece(delta: Delta) -> dict[str, Any]:
    if delta.call_index is not None:
        return {"type": "tool_call", "id": delta.call_id, "name": delta.name, "arguments": _value(delta.arguments)}
    if delta.reasoning:
        return {"type": "reasoning", "content": delta.reasoning}
    return {"type": "text", "content": delta.text}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
