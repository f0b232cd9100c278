"""Converse's blocks as ours: each is an object with one key, which says what it is."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, cast

import msgspec

from suture.codecs._contents import Called, arguments_text
from suture.codecs._kept import unknown
from suture.messages import (
    AgenticMessage,
    AssistantGenText,
    FunctionToolCall,
    FunctionToolResult,
    Reasoning,
    ServerToolCall,
    ServerToolResult,
    UserInputText,
)
from suture.providers.bedrock.json import WIRE, Where, as_extra, beside, is_map, only
from suture.providers.bedrock.media import read_media

__all__ = ["read_blocks", "read_message"]

_ROLES = ("user", "assistant", "system")
_SERVER = "server_tool_use"


def read_message(item: Any, index: int | None, names: Called[str]) -> AgenticMessage:
    """Return the message that `item` says; `names` are those of the calls so far, and get those of this one.

    >>> read_message({"role": "user", "content": [{"text": "hi"}]}, 0, Called()) == AgenticMessage.user("hi")
    True
    """
    where = Where("", index, "")
    message = where.map(item)
    role = message.get("role")
    if role not in _ROLES:
        raise where.at("role").fault(f"unknown role {role!r}; expected user or assistant")
    content = where.at("content").list(message.get("content"))
    names.enter(role)
    blocks = read_blocks(content, Where(role, index, names=names))
    for block in blocks:
        if isinstance(block, FunctionToolCall):
            names.note(block.call_id, block.name)
    kept = beside(message, "content") if role == "system" else beside(message, "role", "content")
    return AgenticMessage(role, blocks, extra=as_extra(kept))


def read_blocks(content: Iterable[Any], where: Where) -> tuple[Any, ...]:
    """Return what the blocks of one message say.

    >>> read_blocks([{"text": "hi"}], Where("assistant"))
    (AssistantGenText(text='hi'),)
    """
    blocks = [where.at(f"[{place}]").map(block) for place, block in enumerate(content)]
    where = where._replace(ran=frozenset(_answered(blocks) if where.role == "assistant" else ()))
    return tuple([_read(block, _READERS, where.at(f"[{place}]")) for place, block in enumerate(blocks)])


def _answered(blocks: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    """Yield the ids of the calls that the service answered itself: results with a type, beside their calls."""
    for block in blocks:
        result = block.get("toolResult")
        if is_map(result) and result.get("type") is not None and isinstance(result.get("toolUseId"), str):
            yield result["toolUseId"]


_Readers = Mapping[str, Callable[[Any, Where], Any]]


def _read(block: Mapping[str, Any], readers: _Readers, where: Where) -> Any:
    if "type" in block:
        raise where.at(".type").fault("a block with a type belongs to another wire")
    if len(block) == 1:
        [(kind, held)] = block.items()
        if kind in readers and held is not None:
            made = readers[kind](held, where.at(f".{kind}"))
            if made is not None:
                return made
    return unknown(WIRE, block)


def _text(held: Any, where: Where) -> UserInputText | AssistantGenText:
    if not isinstance(held, str):
        raise where.fault(f"expected a string, found {type(held).__name__}")
    return AssistantGenText(held) if where.role == "assistant" else UserInputText(held)


def _call(held: Any, where: Where) -> FunctionToolCall | ServerToolCall:
    use = where.map(held)
    call_id, name = where.text(use, "toolUseId"), where.text(use, "name")
    kept = beside(use, "toolUseId", "name", "input")
    if use.get("type") == _SERVER or call_id in where.ran:
        own = {"type": None, **kept}
        return ServerToolCall(call_id=call_id, name=name, arguments=use.get("input"), extra={WIRE: own})
    return FunctionToolCall(call_id, name, arguments_text(use.get("input")), extra=as_extra(kept))


def _result(held: Any, where: Where) -> FunctionToolResult | ServerToolResult:
    result = where.map(held)
    call_id = where.text(result, "toolUseId")
    inside = where.at(".content")
    content = inside.list([] if result.get("content") is None else result["content"])
    kept = beside(result, "toolUseId", "content")
    if call_id in where.ran and result.get("type") is not None:
        return ServerToolResult(call_id=call_id, content=content, extra={WIRE: kept})
    is_error = result.get("status") == "error"
    if is_error:
        del kept["status"]
    blocks = [
        _read(inside.at(f"[{place}]").map(block), _INSIDE, inside.at(f"[{place}]")._replace(role="user"))
        for place, block in enumerate(content)
    ]
    name = where.names.answered(call_id) if where.names else None
    return FunctionToolResult(call_id, name or "", tuple(blocks), is_error, extra=as_extra(kept))


def _json(held: Any, where: Where) -> UserInputText:
    """Return JSON in a result as text, marked so that it becomes JSON again."""
    del where
    return UserInputText(msgspec.json.encode(held).decode(), extra={WIRE: {"json": True}})


def _reasoning(held: Any, where: Where) -> Reasoning | None:
    reasoning = where.map(held)
    redacted = reasoning.get("redactedContent")
    if only(reasoning, "redactedContent") and isinstance(redacted, str):
        return Reasoning(signature=redacted, extension={"wire": WIRE, "redacted": True})
    said = reasoning.get("reasoningText")
    if not only(reasoning, "reasoningText") or not is_map(said):
        return None
    inside = where.at(".reasoningText")
    text, signature = inside.text(said, "text"), inside.text(said, "signature")
    kept = beside(said, "text", "signature") if signature else beside(said, "text")
    return Reasoning(text, signature, extension={"wire": WIRE}, extra=as_extra(kept))


def _citations(held: Any, where: Where) -> AssistantGenText | None:
    """Return text with its citations; `None` where it is no text, or more than that."""
    cited = where.map(held)
    citations, content = cited.get("citations"), cited.get("content")
    if where.role != "assistant" or not only(cited, "citations", "content"):
        return None
    if not isinstance(citations, list) or not isinstance(content, list):
        return None
    pieces: list[Any] = [piece.get("text") if only(piece, "text") else None for piece in cast("list[Any]", content)]
    if not all(isinstance(piece, str) for piece in pieces) or not "".join(pieces).strip():
        return None
    return AssistantGenText("".join(pieces), extension={"wire": WIRE, "citations": citations})


_MEDIA: _Readers = {kind: partial(read_media, kind) for kind in ("image", "video", "document")}
_INSIDE: _Readers = {"text": _text, "json": _json, **_MEDIA}
_READERS: _Readers = {
    "text": _text,
    "toolUse": _call,
    "toolResult": _result,
    "reasoningContent": _reasoning,
    "citationsContent": _citations,
    "audio": partial(read_media, "audio"),
    **_MEDIA,
}
