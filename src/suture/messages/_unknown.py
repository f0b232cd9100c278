"""Pieces of unknown type on their way in and out of storage.

Stored, such a piece is simply itself. In memory it is an `Opaque`, which msgspec tags with a name of its own.
So a message that holds one is rewritten, as plain data, on both sides: `enclose` before it becomes structs,
`disclose` after it was structs. All other messages pass by.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast, get_args

from msgspec import to_builtins

from suture.errors import InputError
from suture.messages._blocks import ContentBlock, FunctionToolResult, UserInputBlock
from suture.messages._messages import AgenticMessage, AnyMessage
from suture.messages._opaque import OPAQUE, Opaque
from suture.messages._parts import Part

__all__ = ["disclose", "enclose", "holds_opaque"]

# Takes a piece, the tags known where it stands, and its path.
_Change: TypeAlias = Callable[[Any, frozenset[str], str], Any]


def _tags(union: Any) -> frozenset[str]:
    return frozenset(member.__struct_config__.tag for member in get_args(union))


_FIELDS = {
    "content_blocks": _tags(ContentBlock),
    "user_input_multi_content": _tags(Part),
    "assistant_gen_multi_content": _tags(Part),
}
_INSIDE_RESULT = _tags(UserInputBlock)
_RESULT: Any = FunctionToolResult.__struct_config__.tag


def holds_opaque(message: AnyMessage) -> bool:
    """Tell whether `message` has a piece that must be disclosed."""
    if isinstance(message, AgenticMessage):
        return any(
            Opaque in map(type, block.content) if type(block) is FunctionToolResult else type(block) is Opaque
            for block in message.content_blocks
        )
    return Opaque in map(type, (*message.user_input_multi_content, *message.assistant_gen_multi_content))


def enclose(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stored message with each piece of unknown type made the data of an `Opaque`."""

    def change(piece: Any, known: frozenset[str], path: str) -> Any:
        del path
        if not isinstance(piece, Mapping):
            return piece
        stored = cast("Mapping[str, Any]", piece)
        kind = stored.get("type")
        return {"type": OPAQUE, "data": stored} if isinstance(kind, str) and kind not in known else stored

    return _rewritten(mapping, change)


def disclose(message: AnyMessage, index: int | None) -> dict[str, Any]:
    """Return `message` as plain data, with each `Opaque` replaced by what it holds."""

    def change(piece: Any, known: frozenset[str], path: str) -> Any:
        if piece["type"] != OPAQUE:
            return piece
        kind = piece["data"]["type"]
        if kind in known:
            reason = f"an Opaque of the known type {kind!r} would be read back as that; make one of those instead"
            raise InputError(reason, index=index, path=path)
        return piece["data"]

    return _rewritten(to_builtins(message), change)


def _rewritten(mapping: Mapping[str, Any], change: _Change) -> dict[str, Any]:
    changed = dict(mapping)
    for field, known in _FIELDS.items():
        pieces = mapping.get(field)
        if isinstance(pieces, list | tuple):
            changed[field] = [
                change(_rewritten_inside(piece, change, f"{field}[{place}]"), known, f"{field}[{place}]")
                for place, piece in enumerate(cast("list[Any]", pieces))
            ]
    return changed


def _rewritten_inside(piece: Any, change: _Change, path: str) -> Any:
    if not isinstance(piece, Mapping):
        return piece
    block = cast("Mapping[str, Any]", piece)
    content = block.get("content")
    if block.get("type") != _RESULT or not isinstance(content, list | tuple):
        return block
    inner = [
        change(each, _INSIDE_RESULT, f"{path}.content[{place}]")
        for place, each in enumerate(cast("list[Any]", content))
    ]
    return {**block, "content": inner}
