"""Input items as the SDK writes them, and what a list of them says, in short."""

from collections.abc import Mapping, Sequence
from typing import Any

from suture.repair import Cause, placeholder_text

Item = dict[str, Any]

RETOLD = "Output of a tool call that is no longer in this conversation"


def user(text: str) -> Item:
    return {"role": "user", "content": text}


def says(text: str) -> Item:
    said = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "role": "assistant", "id": f"msg_{text}", "status": "completed", "content": [said]}


def asks(call_id: str, name: str = "search") -> Item:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": "{}"}


def gives(call_id: str, text: str = "42") -> Item:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def thinks(item_id: str) -> Item:
    return {"type": "reasoning", "id": item_id, "summary": []}


def unknown(call_id: str, name: str = "search") -> str:
    """Return how a call is answered of which nobody knows what became of it."""
    return f"{call_id}={placeholder_text(Cause.UNKNOWN, name, call_id, 'en')}"


def shape(items: Any, names: Mapping[str, str] | None = None) -> list[str]:
    """Return what items say: `a?` for a call, `a=42` for its result; ids in `names` go by the names given there."""
    called = names or {}
    return [_line(item, called) for item in items]


def _line(item: Item, names: Mapping[str, str]) -> str:
    call_id = names.get(item.get("call_id", ""), item.get("call_id", ""))
    match item.get("type", "message"):
        case "function_call":
            return f"{call_id}?"
        case "function_call_output":
            return f"{call_id}={item['output'].replace(item['call_id'], call_id)}"
        case "message":
            content = item["content"]
            text = content if isinstance(content, str) else "".join(part["text"] for part in content)
            return "(retold)" if text.startswith(RETOLD) else text
        case kind:
            return kind


def renamed(items: Sequence[Item]) -> dict[str, str]:
    """Return a plain name for the one call id that no history here has."""
    ids = [item["call_id"] for item in items if item.get("type") == "function_call"]
    assert len(set(ids)) == len(ids), "an id is used twice"
    return {each: "new" for each in ids if len(each) > 1}
