"""The blocks in the content of LangChain's messages: which are calls, which are signed, and how media are written.

LangChain keeps the blocks of each provider as they came, beside its own form of them. So one call may be a `tool_use`,
a `tool_call` or a `function_call`. What a provider runs itself is no call of ours.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from suture.messages import FilePart, ImagePart, Part
from suture.wires import Form, RawPart, argument_json, text_block, typed_text
from suture.wires.fields import get, is_map, is_object_text, sound_arguments, word
from suture.wires.parts import MEDIA_PARTS
from suture.wires.values import CALL, MEDIA, OTHER, RESULT, TEXT, THINKING

__all__ = [
    "CALL_BLOCKS",
    "COMPUTER",
    "CUSTOM",
    "FORM",
    "CallBlock",
    "block_call",
    "decoded",
    "is_signed",
    "kind_of",
    "write_block",
]

CUSTOM, COMPUTER = "custom", "computer"
"""The kinds of a call of a custom tool, whose output has a form of its own, and of one that wants a screenshot."""


class CallBlock(NamedTuple):
    """Where a call block has its id and its arguments, and what kind of call it is."""

    id: str
    arguments: str
    kind: str = ""
    as_text: bool = False


CALL_BLOCKS = {
    "tool_use": CallBlock("id", "input"),
    "tool_call": CallBlock("id", "args"),
    "tool_call_chunk": CallBlock("id", "args"),
    "invalid_tool_call": CallBlock("id", "args"),
    "function_call": CallBlock("call_id", "arguments", as_text=True),
    "custom_tool_call": CallBlock("call_id", "input", CUSTOM),
    "computer_call": CallBlock("call_id", "action", COMPUTER),
}
_UNSETTLED = frozenset(("tool_call_chunk", "invalid_tool_call"))
_THOUGHTS = frozenset(("thinking", "redacted_thinking", "reasoning", "reasoning_content"))
_SEALS = ("signature", "thought_signature", "encrypted_content")
_KINDS = {
    "tool_result": RESULT,
    "text": TEXT,
    "input_text": TEXT,
    "output_text": TEXT,
    "refusal": TEXT,
    "image": MEDIA,
    "image_url": MEDIA,
    "input_image": MEDIA,
    "audio": MEDIA,
    "input_audio": MEDIA,
    "video": MEDIA,
    "file": MEDIA,
    "input_file": MEDIA,
    "document": MEDIA,
    "media": MEDIA,
    **dict.fromkeys(_THOUGHTS, THINKING),
    **dict.fromkeys(CALL_BLOCKS, CALL),
}


def kind_of(block: Any) -> str:
    """Return what a block is: call, result, text, thinking, media or other.

    >>> kind_of("hi"), kind_of({"type": "tool_use"}), kind_of({"type": "server_tool_use"})
    ('text', 'call', 'other')
    """
    return TEXT if isinstance(block, str) else _KINDS.get(word(block, "type") or "", OTHER)


def is_signed(block: Any) -> bool:
    """Tell whether a block is signed or encrypted by the provider.

    >>> is_signed({"type": "thinking", "thinking": "hm", "signature": "s"}), is_signed({"type": "text", "text": "hi"})
    (True, False)
    """
    if not is_map(block):
        return False
    inside: Any = (block, block.get("extras"), block.get("reasoning_content"))
    return block.get("type") == "redacted_thinking" or any(
        is_map(holder) and any(holder.get(seal) for seal in _SEALS) for holder in inside
    )


def decoded(arguments: Any) -> Any:
    """Return arguments as the object that they are the text of; all else as it is.

    >>> decoded('{"q": 1}'), decoded('{"q": ')
    ({'q': 1}, '{"q": ')
    """
    if isinstance(arguments, str) and is_object_text(arguments):
        return sound_arguments(arguments, as_text=False)
    return arguments


def block_call(block: Mapping[str, Any], form: CallBlock) -> tuple[Any, Any, Any]:
    """Return id, name and arguments of a call block.

    >>> block = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
    >>> block_call(block, CALL_BLOCKS["function_call"])
    ('a', 'f', {})
    """
    arguments = block.get(form.arguments)
    if form.kind == COMPUTER:
        return block.get(form.id), "computer", arguments
    if form.kind == CUSTOM:
        return block.get(form.id), block.get("name"), {"__arg1": arguments}
    if not arguments and "partial_json" in block:
        arguments = block["partial_json"]
    return block.get(form.id), block.get("name"), decoded(arguments)


def write_block(block: Mapping[str, Any], call_id: str | None, name: str | None, arguments: Any) -> dict[str, Any]:
    """Return a call block with another id, name or arguments; `None` leaves each as it is.

    >>> write_block({"type": "invalid_tool_call", "id": "a", "name": "f", "args": "{", "error": "cut"}, "b", None, {})
    {'type': 'tool_call', 'id': 'b', 'name': 'f', 'args': {}}
    """
    kind = block["type"]
    form, made = CALL_BLOCKS[kind], dict(block)
    if call_id is not None:
        made[form.id] = call_id
    if name is not None and form.kind != COMPUTER:
        made["name"] = name
    if arguments is None or form.kind:
        return made
    made[form.arguments] = argument_json(arguments) if form.as_text else arguments
    made.pop("partial_json", None)
    if kind in _UNSETTLED:
        made["type"] = "tool_call"
        made.pop("error", None)
    return made


def _find_text(block: Any) -> str | None:
    """Return the text that a block of a result says."""
    if isinstance(block, str):
        return block
    if word(block, "type") == "custom_tool_call_output":
        output = get(block, "output")
        return output if isinstance(output, str) else None
    return _typed(block)


def _media(part: Part) -> dict[str, Any] | None:
    """Return a native medium as a block of LangChain's own form."""
    if not isinstance(part, MEDIA_PARTS) or isinstance(part, RawPart):
        return None
    kind = cast("str", type(part).__struct_config__.tag)
    where = {"url": part.url} if part.url else {"base64": part.base64_data}
    typed = {"mime_type": part.mime_type} if part.mime_type else {}
    named = {"extras": {"filename": part.name}} if isinstance(part, FilePart) and part.name else {}
    seen = {"extras": {"detail": part.detail}} if isinstance(part, ImagePart) and part.detail else {}
    return {"type": kind, **where, **typed, **named, **seen}


_typed = typed_text("text", "input_text", "output_text")
FORM = Form(_find_text, text_block("text"), _media)
"""How the content of a tool message is written."""
