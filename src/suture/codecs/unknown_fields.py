"""What one provider says beside what a block can hold is kept in `extra`, under the name of the wire.

So it comes back when the block is written for that provider again, and can be named where it is written for another.
A kept `None` says that the field was absent: what a codec would have written is taken out.
"""

from collections.abc import Collection, Mapping
from typing import Any

from suture.codecs.codec import CODECS, Losses, Lost
from suture.messages import Opaque
from suture.wires.fields import is_map
from suture.wires.values import KIND

_ORIGIN = "wire"


def rest_of(holder: Mapping[str, Any], *known: str) -> dict[str, Any]:
    """Return the fields that are neither `known` nor null."""
    return {name: value for name, value in holder.items() if name not in known and value is not None}


def keep(wire: str, holder: Mapping[str, Any], *known: str) -> dict[str, Any]:
    """Return the `extra` of what was read: its fields that are neither `known` nor null.

    >>> keep("anthropic", {"type": "text", "text": "hi", "citations": []}, "type", "text")
    {'anthropic': {'citations': []}}
    >>> keep("anthropic", {"type": "text"}, "type")
    {}
    """
    rest = rest_of(holder, *known)
    return {wire: rest} if rest else {}


def put_back(
    wire: str, made: dict[str, Any], extra: Mapping[str, Any], losses: Losses, path: str = ""
) -> dict[str, Any]:
    """Return what was made of a block, with what was kept for this wire; report what is of no use here.

    >>> put_back("anthropic", {"type": "text"}, {"anthropic": {"citations": []}}, Losses())
    {'type': 'text', 'citations': []}
    """
    if not extra:
        return made
    for name, value in extra.items():
        if name != wire:
            report_extra(name, value, losses, path)
    kept = extra.get(wire)
    if not is_map(kept):
        if wire in extra:
            report_extra(wire, kept, losses, path)
        return made
    merged: dict[str, Any] = {**made, **kept}
    return {name: value for name, value in merged.items() if not (value is None and name in kept)}


def without_kind(extra: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """Return `extra` without the kind of call, where that is `kind`: what is written says it itself."""
    return {name: value for name, value in extra.items() if name != KIND} if extra.get(KIND) == kind else extra


def report_extra(name: str, value: Any, losses: Losses, path: str) -> None:
    """Report that `extra[name]` is lost: another provider's fields by their names, anybody's data by its own."""
    if name not in CODECS or not is_map(value):
        losses.add(Lost.EXTRA, f"extra {name!r}", path)
        return
    for field, held in value.items():
        if held is not None:
            losses.add(Lost.FIELD, f"{name} {field}", path)


def report_extension(block: Any, known: Collection[str], losses: Losses, path: str) -> None:
    """Report the fields in the extension of a text or a thought that are not `known` where it is written."""
    for name in block.extension:
        if name != _ORIGIN and name not in known:
            losses.add(Lost.FIELD, f"extension {name!r}", path)


def unknown(wire: str, block: Mapping[str, Any]) -> Opaque:
    """Return a block of a type that nobody here knows, kept whole."""
    return Opaque({"type": f"{wire}.block", "value": dict(block)})


def unwrap(wire: str, block: Opaque, losses: Losses, path: str = "") -> dict[str, Any] | None:
    """Return the block that `unknown` kept for this wire; report any other, and return `None`."""
    held = block.data.get("value")
    if block.type == f"{wire}.block" and is_map(held):
        return dict(held)
    losses.add(Lost.BLOCK, f"a block of type {block.type}", path)
    return None


def origin_of(block: Any) -> str:
    """Return the wire that a block of reasoning was read from; the empty string where nobody knows."""
    origin = block.extension.get(_ORIGIN, "")
    return origin if isinstance(origin, str) else ""
