"""How a native block keeps what Responses has beside it."""

from typing import Any

from suture.messages import Opaque

WIRE = "openai-responses"


def kept(kind: str = "", **fields: Any) -> dict[str, Any]:
    """Return the `extra` of a block that keeps these fields, and of a kind of call that is no function's."""
    return {**({WIRE: fields} if fields else {}), **({"suture.kind": kind} if kind else {})}


def part(value: dict[str, Any], **fields: Any) -> Opaque:
    """Return a part that nobody knows."""
    return Opaque({"type": f"{WIRE}.block", "value": value, "extra": kept(part=True, **fields)})


def unknown(value: dict[str, Any]) -> Opaque:
    """Return an item that nobody knows."""
    return Opaque({"type": f"{WIRE}.block", "value": value})


def says(text: str) -> dict[str, Any]:
    """Return a message of the model's that says `text`."""
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
