"""Amazon Bedrock's Converse: blocks are objects with one key; `toolUse` pairs with `toolResult`."""

from collections.abc import Sequence
from typing import Any

from suture.wires._block_wire import CALL, MEDIA, OTHER, RESULT, TEXT, THINKING, BlockWire
from suture.wires._contents import Form
from suture.wires._fields import check_value, get, given, has, inner, is_list, is_map, listed, put, text_of, word
from suture.wires._text import json_text, json_words
from suture.wires._wire import Call, CallEdit, Piece, Result, ResultEdit
from suture.wires._words import Telling

__all__ = ["WIRE", "BedrockWire"]

_KINDS = {
    "toolUse": CALL,
    "toolResult": RESULT,
    "text": TEXT,
    "reasoningContent": THINKING,
    "image": MEDIA,
    "document": MEDIA,
    "video": MEDIA,
    "audio": MEDIA,
}
_ROLES = frozenset(("user", "assistant"))


def _text(block: Any) -> str | None:
    """Return what a block of a result says: a text, or JSON as text."""
    value, text = get(block, "json"), get(block, "text")
    if value is not None:
        return json_words(value)
    return text if isinstance(text, str) else None


def _text_block(text: str) -> dict[str, Any]:
    return {"text": text}


class BedrockWire(BlockWire):
    """Messages as Converse takes and returns them.

    >>> from suture.wires import get_wire
    >>> get_wire("bedrock").view({"role": "user", "content": [{"text": "hi"}]}).role
    'user'
    """

    name = "bedrock"
    form = Form(_text, _text_block, lone=False)

    def claims(self, message: Any) -> bool | None:
        """Say whether `message` is Bedrock's: its blocks have no type, only one key each."""
        content = get(message, "content")
        if not is_map(message) or word(message, "role") not in _ROLES or not is_list(content):
            return False
        if not content:
            return None
        return all(is_map(block) and "type" not in block and any(key in _KINDS for key in block) for block in content)

    def role(self, message: Any, index: int | None) -> str:
        """Return the role of `message`."""
        role = word(message, "role")
        if role is None or role not in _ROLES:
            raise self.fault(index, "role", f"unknown role {role!r}; expected user or assistant")
        return role

    def blocks(self, message: Any, index: int | None = None) -> Sequence[Any]:
        """Return the blocks of `message`."""
        blocks = listed(get(message, "content"), index, "content")
        if index is not None:
            check_value(blocks, index, "content")
            for place, block in enumerate(blocks):
                if has(block, "type"):
                    raise self.fault(index, f"content[{place}].type", "a block with a type belongs to another wire")
                text_of(block, "text", index, f"content[{place}]")
        return blocks

    def kind(self, block: Any) -> str:
        """Return what `block` is; a tool that the service itself runs is not the client's call."""
        for key, kind in _KINDS.items():
            value = get(block, key)
            if value is not None:
                return OTHER if kind in {CALL, RESULT} and word(value, "type") == "server_tool_use" else kind
        return OTHER

    def block_text(self, block: Any) -> str:
        """Return the text of a text block."""
        return text_of(block, "text")

    def block_words(self, block: Any) -> Any:
        """Return the words of a text block, or of reasoning; what is redacted has none."""
        text = get(block, "text")
        return get(get(get(block, "reasoningContent"), "reasoningText"), "text") if text is None else text

    def tell_block(self, block: Any, telling: Telling) -> None:
        """Tell one block; a document may be text."""
        source = get(get(block, "document"), "source")
        content = get(source, "text")
        content = get(source, "content") if content is None else content
        if content is None or self.kind(block) != MEDIA:
            super().tell_block(block, telling)
        else:
            self.tell_document(content, telling)

    def is_signed(self, block: Any) -> bool:
        """Tell whether `block` is reasoning that the provider signed or encrypted."""
        reasoning = get(block, "reasoningContent")
        return get(reasoning, "redactedContent") is not None or bool(get(get(reasoning, "reasoningText"), "signature"))

    def read_call(self, block: Any, index: int | None = None) -> Call:
        """Return the call of a `toolUse` block."""
        use = inner(block, "toolUse", index, "content")
        return Call(text_of(use, "toolUseId", index), text_of(use, "name", index), get(use, "input"))

    def read_result(self, block: Any, index: int | None = None) -> Result:
        """Return the result of a `toolResult` block."""
        result = inner(block, "toolResult", index, "content")
        content: Sequence[Any] = listed(get(result, "content") or [], index, "content.toolResult.content")
        for part in content:
            text_of(part, "text", index, "content.toolResult.content")
        return Result(text_of(result, "toolUseId", index), "", content, failed=get(result, "status") == "error")

    def result_text(self, result: Result) -> tuple[str, bool]:
        """Return the text of a result, and whether that is all of it."""
        content = result.content
        texts = [
            json_text(get(block, "json")) if get(block, "json") is not None else text_of(block, "text")
            for block in content
            if get(block, "json") is not None or get(block, "text") is not None
        ]
        return "\n".join(texts), len(texts) == len(content)

    def write_call(self, block: Any, edit: CallEdit) -> Any:
        """Return a `toolUse` block with `edit` done to it."""
        fields = given(toolUseId=edit.id, name=edit.name, input=edit.arguments)
        return put(block, toolUse=put(get(block, "toolUse"), **fields))

    def write_result(self, block: Any, edit: ResultEdit) -> Any:
        """Return a `toolResult` block with `edit` done to it."""
        result = get(block, "toolResult")
        content = self.content_after(edit, get(result, "content"))
        return put(block, toolResult=put(result, **given(toolUseId=edit.id, content=content)))

    def make_result(self, piece: Piece) -> Any:
        """Return an error result for the call of `piece`."""
        tool_use_id = piece.call.id if piece.call else ""
        return {"toolResult": {"toolUseId": tool_use_id, "content": [{"text": piece.text}], "status": "error"}}

    def make_text(self, role: str, text: str) -> Any:
        """Return a text block."""
        del role
        return {"text": text}

    def make_message(self, role: str, blocks: Sequence[Any]) -> Any:
        """Return a new message."""
        return {"role": role, "content": list(blocks)}

    def with_blocks(self, message: Any, blocks: Sequence[Any]) -> Any:
        """Return `message` with other blocks."""
        return put(message, content=list(blocks))


WIRE = BedrockWire()
