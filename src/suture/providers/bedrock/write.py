"""Our blocks as Converse's."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from suture.codecs._contents import arguments_object
from suture.codecs._kept import origin_of, put_back, report_extension, unwrap
from suture.codecs._values import Losses, Lost
from suture.messages import (
    AssistantGenText,
    FunctionToolCall,
    FunctionToolResult,
    Opaque,
    Reasoning,
    ServerToolCall,
    ServerToolResult,
    ToolSearchResult,
    UserInputText,
)
from suture.providers.bedrock.json import WIRE, field
from suture.providers.bedrock.media import MEDIA, write_media

__all__ = ["Writing", "arranged", "is_blank", "write_blocks"]

_Block = dict[str, Any]
_FAILED = "(the tool failed without a message)"
_BEFORE_CALLS = frozenset(("text", "reasoningContent", "image", "video", "audio", "document"))
_decode = msgspec.json.Decoder().decode


class Writing(NamedTuple):
    """What is known while a request is written: what was lost so far, and how documents are called.

    >>> Writing(Losses(), {}).losses.found()
    ()
    """

    losses: Losses
    documents: dict[str, int]


def write_blocks(blocks: Iterable[Any], writing: Writing, path: str = "content_blocks") -> list[_Block]:
    """Return `blocks` as Converse has them; those that it has no form for are reported and left out.

    >>> write_blocks([UserInputText("hi")], Writing(Losses(), {}))
    [{'text': 'hi'}]
    """
    made = [
        _WRITERS.get(block.__class__, _foreign)(block, writing, f"{path}[{place}]")
        for place, block in enumerate(blocks)
    ]
    return [block for block in made if block is not None]


def is_blank(block: Mapping[str, Any]) -> bool:
    """Tell whether a block is text that says nothing, which Converse refuses.

    >>> is_blank({"text": " "}), is_blank({"text": "a"}), is_blank({"cachePoint": {}})
    (True, False, False)
    """
    text = block.get("text")
    return isinstance(text, str) and not text.strip()


def arranged(role: str, blocks: list[_Block]) -> list[_Block]:
    """Return the blocks of one message in the order that Converse wants: results first, calls last.

    >>> arranged("user", [{"text": "so"}, {"toolResult": {}}])
    [{'toolResult': {}}, {'text': 'so'}]
    """
    if role == "user":
        return sorted(blocks, key=lambda block: "toolResult" not in block)
    answered = {field(block.get("toolResult"), "toolUseId") for block in blocks} - {None}
    first = next((place for place, block in enumerate(blocks) if _is_call(block, answered)), len(blocks))
    moved = [block for block in blocks[first:] if not _BEFORE_CALLS.isdisjoint(block)]
    return [*blocks[:first], *moved, *(block for block in blocks[first:] if _BEFORE_CALLS.isdisjoint(block))]


def _is_call(block: _Block, answered: Collection[Any]) -> bool:
    """Tell whether a block is a call that the program is to answer, not one that the service did."""
    use = block.get("toolUse")
    return use is not None and field(use, "type") != "server_tool_use" and field(use, "toolUseId") not in answered


def _text(block: UserInputText | AssistantGenText, writing: Writing, path: str) -> _Block:
    put_back(WIRE, {}, block.extra, writing.losses, path)
    extension: Mapping[str, Any] = getattr(block, "extension", {})
    citations = extension.get("citations") if extension and origin_of(block) == WIRE else None
    if citations is not None:
        return {"citationsContent": {"content": [{"text": block.text}], "citations": citations}}
    for name in extension:
        if name != "wire":
            writing.losses.add(Lost.FIELD, f"{origin_of(block) or 'extension'} {name}", path)
    return {"text": block.text}


def _reasoning(block: Reasoning, writing: Writing, path: str) -> _Block | None:
    if origin_of(block) != WIRE:
        writing.losses.add(Lost.REASONING, f"reasoning {block.text[:40]!r}", path)
        return None
    report_extension(block, ("redacted",), writing.losses, path)
    if block.extension.get("redacted"):
        put_back("", {}, block.extra, writing.losses, path)
        return {"reasoningContent": {"redactedContent": block.signature}}
    said = {"text": block.text, **({"signature": block.signature} if block.signature else {})}
    return {"reasoningContent": {"reasoningText": put_back(WIRE, said, block.extra, writing.losses, path)}}


def _call(block: FunctionToolCall, writing: Writing, path: str) -> _Block:
    arguments = arguments_object(block.arguments, writing.losses, path)
    use = {"toolUseId": block.call_id, "name": block.name, "input": arguments}
    return {"toolUse": put_back(WIRE, use, block.extra, writing.losses, path)}


def _result(block: FunctionToolResult, writing: Writing, path: str) -> _Block:
    content = _inside(block.content, writing, f"{path}.content")
    if block.is_error and all(is_blank(part) for part in content):
        content = [{"text": _FAILED}]
    result = put_back(WIRE, {"toolUseId": block.call_id, "content": content}, block.extra, writing.losses, path)
    return {"toolResult": {**result, "status": "error"} if block.is_error else result}


def _inside(blocks: Iterable[Any], writing: Writing, path: str) -> list[_Block]:
    """Return the content of a result: JSON beside text, but no sound."""
    made: list[_Block | None] = []
    for place, block in enumerate(blocks):
        here = f"{path}[{place}]"
        if block.__class__ in MEDIA:
            made.append(write_media(block, writing.losses, here, writing.documents, inside=True))
        else:
            made.append(_json(block) or _WRITERS.get(block.__class__, _foreign)(block, writing, here))
    return [block for block in made if block is not None]


def _json(block: Any) -> _Block | None:
    """Return JSON that was read from a result; `None` of what is none, or no longer."""
    if block.__class__ is not UserInputText or block.extra != {WIRE: {"json": True}}:
        return None
    try:
        return {"json": _decode(block.text)}
    except (msgspec.DecodeError, RecursionError):
        return None


def _search(block: ToolSearchResult, writing: Writing, path: str) -> _Block:
    writing.losses.add(Lost.BLOCK, "tools that were found, which are told as JSON", path)
    found = {"json": {"tools": msgspec.to_builtins(list(block.tools))}}
    result = {"toolUseId": block.call_id, "content": [found]}
    return {"toolResult": put_back(WIRE, result, block.extra, writing.losses, path)}


def _server_call(block: ServerToolCall, writing: Writing, path: str) -> _Block | None:
    if WIRE not in block.extra:
        return _foreign(block, writing, path)
    use = {"toolUseId": block.call_id, "name": block.name, "input": block.arguments}
    return {"toolUse": put_back(WIRE, use, block.extra, writing.losses, path)}


def _server_result(block: ServerToolResult, writing: Writing, path: str) -> _Block | None:
    if WIRE not in block.extra:
        return _foreign(block, writing, path)
    result = {"toolUseId": block.call_id, "content": block.content}
    return {"toolResult": put_back(WIRE, result, block.extra, writing.losses, path)}


def _opaque(block: Opaque, writing: Writing, path: str) -> _Block | None:
    return unwrap(WIRE, block, writing.losses, path)


def _media(block: Any, writing: Writing, path: str) -> _Block:
    return write_media(block, writing.losses, path, writing.documents)


def _foreign(block: Any, writing: Writing, path: str) -> None:
    """Report what Converse has no form for: what another service did on its side."""
    name = getattr(block, "name", "") or getattr(block, "server_label", "")
    kind: str = block.__struct_config__.tag
    writing.losses.add(Lost.BLOCK, f"{kind} {name}".strip(), path)


_WRITERS: Mapping[Any, Callable[[Any, Writing, str], _Block | None]] = {
    UserInputText: _text,
    AssistantGenText: _text,
    Reasoning: _reasoning,
    FunctionToolCall: _call,
    FunctionToolResult: _result,
    ToolSearchResult: _search,
    ServerToolCall: _server_call,
    ServerToolResult: _server_result,
    Opaque: _opaque,
    **dict.fromkeys(MEDIA, _media),
}
