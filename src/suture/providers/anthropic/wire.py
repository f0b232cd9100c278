"""Anthropic's Messages API: `tool_use` blocks in assistant messages, `tool_result` blocks in the next user message."""

from collections.abc import Sequence
from typing import Any

from suture.wires._block_wire import CALL, MEDIA, OTHER, RESULT, TEXT, THINKING, BlockWire
from suture.wires._contents import Form, text_block, typed_text
from suture.wires._fields import check_value, get, given, is_list, is_map, listed, put, text_of, typed, word
from suture.wires._wire import Call, CallEdit, Piece, Result, ResultEdit
from suture.wires._words import Telling

__all__ = ["WIRE", "AnthropicWire"]

_KINDS = {
    "tool_use": CALL,
    "tool_result": RESULT,
    "text": TEXT,
    "thinking": THINKING,
    "redacted_thinking": THINKING,
    "image": MEDIA,
    "document": MEDIA,
}
_ROLES = frozenset(("user", "assistant", "system"))
_OWN_TYPES = frozenset(
    ("tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "server_tool_use")
)
_FOREIGN_FIELDS = ("tool_calls", "tool_call_id", "function_call", "parts")


class AnthropicWire(BlockWire):
    """Messages as the `anthropic` package takes and returns them.

    >>> from suture.wires import get_wire
    >>> wire = get_wire("anthropic")
    >>> wire.view({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}).calls
    (Call(id='a', name='f', arguments={}, kind='', alias=''),)
    """

    name = "anthropic"
    form = Form(typed_text("text"), text_block("text"))

    def claims(self, message: Any) -> bool | None:
        """Say whether `message` is Anthropic's: certainly where a block of its own kind stands in it."""
        role = word(message, "role")
        if role not in _ROLES or any(get(message, field) is not None for field in _FOREIGN_FIELDS):
            return False
        if not is_map(message):
            return True if type(message).__module__.startswith("anthropic.") else None
        content = message.get("content")
        if not is_list(content):
            return None if isinstance(content, str) else False
        kinds = {word(block, "type") for block in content}
        if kinds & _OWN_TYPES or any(str(kind).endswith("_tool_result") for kind in kinds):
            return True
        return None if kinds <= {"text"} else False

    def role(self, message: Any, index: int | None) -> str:
        """Return the role of `message`."""
        role = word(message, "role")
        foreign = next((field for field in _FOREIGN_FIELDS if get(message, field) is not None), "")
        if foreign:
            raise self.fault(index, foreign, "this field belongs to another wire")
        if role is None or role not in _ROLES:
            raise self.fault(index, "role", f"unknown role {role!r}; expected user or assistant")
        return role

    def blocks(self, message: Any, index: int | None = None) -> Sequence[Any]:
        """Return the blocks of `message`; plain text is one text block."""
        content = get(message, "content")
        if isinstance(content, str):
            return [{"type": "text", "text": text_of(message, "content", index)}] if content else []
        if index is None:
            return listed(content, index, "content")
        blocks = typed(content, index, "content")
        check_value(blocks, index, "content")
        return blocks

    def kind(self, block: Any) -> str:
        """Return what `block` is."""
        return _KINDS.get(word(block, "type") or "", OTHER)

    def block_text(self, block: Any) -> str:
        """Return the text of a text block."""
        return text_of(block, "text")

    def block_words(self, block: Any) -> Any:
        """Return the words of a text block, or of thinking; what is redacted has none."""
        return get(block, "thinking" if word(block, "type") == "thinking" else "text")

    def tell_block(self, block: Any, telling: Telling) -> None:
        """Tell one block; a document may be text."""
        source = get(block, "source") if word(block, "type") == "document" else None
        held = {"text": "data", "content": "content"}.get(word(source, "type") or "")
        if held is None:
            super().tell_block(block, telling)
        else:
            self.tell_document(get(source, held), telling)

    def is_signed(self, block: Any) -> bool:
        """Tell whether `block` is thinking that the provider signed or encrypted."""
        return word(block, "type") == "redacted_thinking" or bool(get(block, "signature"))

    def read_call(self, block: Any, index: int | None = None) -> Call:
        """Return the call of a `tool_use` block."""
        return Call(text_of(block, "id", index), text_of(block, "name", index), get(block, "input"))

    def read_result(self, block: Any, index: int | None = None) -> Result:
        """Return the result of a `tool_result` block."""
        content = get(block, "content")
        if content is not None and not isinstance(content, str):
            typed(content, index, "content.tool_result.content")
        return Result(text_of(block, "tool_use_id", index), "", content, failed=bool(get(block, "is_error")))

    def result_text(self, result: Result) -> tuple[str, bool]:
        """Return the text of a result, and whether that is all of it."""
        content = result.content
        if content is None or isinstance(content, str):
            return content or "", True
        texts = [text_of(block, "text") for block in content if word(block, "type") == "text"]
        return "\n".join(texts), len(texts) == len(content)

    def write_call(self, block: Any, edit: CallEdit) -> Any:
        """Return a `tool_use` block with `edit` done to it."""
        return put(block, **given(id=edit.id, name=edit.name, input=edit.arguments))

    def write_result(self, block: Any, edit: ResultEdit) -> Any:
        """Return a `tool_result` block with `edit` done to it."""
        content = self.content_after(edit, get(block, "content"))
        return put(block, **given(tool_use_id=edit.id, content=content))

    def make_result(self, piece: Piece) -> Any:
        """Return an error result for the call of `piece`."""
        tool_use_id = piece.call.id if piece.call else ""
        return {"type": "tool_result", "tool_use_id": tool_use_id, "content": piece.text, "is_error": True}

    def make_text(self, role: str, text: str) -> Any:
        """Return a text block."""
        del role
        return {"type": "text", "text": text}

    def make_message(self, role: str, blocks: Sequence[Any]) -> Any:
        """Return a new message."""
        return {"role": role, "content": list(blocks)}

    def with_blocks(self, message: Any, blocks: Sequence[Any]) -> Any:
        """Return `message` with other blocks."""
        return put(message, content=list(blocks))


WIRE = AnthropicWire()
