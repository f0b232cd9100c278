"""What the model said, in Chat Completions: an assistant message, from blocks and into blocks."""

from collections.abc import Mapping
from typing import Any

from suture.codecs._contents import arguments_text
from suture.codecs._kept import KIND, keep, unknown
from suture.messages import (
    AssistantGenAudio,
    AssistantGenImage,
    AssistantGenText,
    ContentBlock,
    FunctionToolCall,
    Reasoning,
)
from suture.providers.openai_chat.parts import LISTED, WIRE, image_of, is_list, is_map, objects, only_texts, others

__all__ = ["CALL", "DETAILS", "OLD_CALL", "THOUGHT", "THOUGHTS", "detail_text", "read_turn"]

THOUGHT, DETAILS = "reasoning_content", "reasoning_details"
THOUGHTS = (THOUGHT, "reasoning")
"""The fields of a text that the model thought, by rank: a server that sends several says the same in each."""
CALL, OLD_CALL = "tool_call", "function_call"
"""What a call of a kind that nobody knows, and one of the older form, are kept under."""
_READ = ("role", "content", "tool_calls")


def read_turn(item: Mapping[str, Any], index: int) -> tuple[list[ContentBlock], dict[str, Any]]:
    """Return the blocks of an assistant message: thought, text, sound, images, calls; and what has no place in them."""
    read: list[str] = [*_READ]
    thought = _read_thought(item, read)
    said = _read_said(item.get("content"), index)
    refusal = item.get("refusal")
    if isinstance(refusal, str) and refusal:
        said.append(AssistantGenText(refusal, extension={"refusal": True}))
        read.append("refusal")
    media = [*_read_audio(item, read), *_read_images(item, read)]
    calls = _read_calls(item.get("tool_calls"), index)
    if is_map(item.get(OLD_CALL)):
        calls.append(unknown(WIRE, {OLD_CALL: item[OLD_CALL]}))
        read.append(OLD_CALL)
    rest = others(item, read)
    content = item.get("content")
    if is_list(content) and only_texts(content):
        rest[LISTED] = None
    return [*thought, *said, *media, *calls], rest


def _read_thought(item: Mapping[str, Any], read: list[str]) -> list[ContentBlock]:
    details = item.get(DETAILS)
    found = details if is_list(details) and details and all(map(is_map, details)) else ()
    field = next((name for name in THOUGHTS if isinstance(item.get(name), str) and item[name]), "")
    if not field and not found:
        return []
    extension: dict[str, Any] = {"wire": WIRE}
    if field != THOUGHT:
        extension["field"] = field or DETAILS
    if found:
        extension["details"] = list(found)
        read.append(DETAILS)
    read.append(field)
    text = item[field] if field else "".join([detail_text(detail) for detail in found])
    signature = next((sign for detail in found if isinstance(sign := detail.get("signature"), str) and sign), "")
    return [Reasoning(text, signature, extension=extension)]


def detail_text(detail: Mapping[str, Any]) -> str:
    """Return what one of the details says in words; what is encrypted says nothing."""
    text = detail.get("text") or detail.get("summary")
    return text if isinstance(text, str) else ""


def _read_said(content: Any, index: int) -> list[ContentBlock]:
    if content is None or isinstance(content, str):
        return [AssistantGenText(content)] if content else []
    return [_read_part(part) for part in objects(content, index, "a text or a list of parts", "a part")]


def _read_part(part: Mapping[str, Any]) -> ContentBlock:
    kind, said = part.get("type"), part.get(str(part.get("type")))
    if kind == "text" and isinstance(said, str):
        return AssistantGenText(said, extra=keep(WIRE, part, ("type", "text")))
    if kind == "refusal" and isinstance(said, str):
        return AssistantGenText(said, extension={"refusal": True}, extra=keep(WIRE, part, ("type", "refusal")))
    if kind == "thinking" and is_list(said) and only_texts(said):
        text = "".join([piece["text"] for piece in said])
        extension = {"wire": WIRE, "field": "thinking"}
        return Reasoning(text, extension=extension, extra=keep(WIRE, part, ("type", "thinking")))
    return unknown(WIRE, part)


def _read_audio(item: Mapping[str, Any], read: list[str]) -> list[ContentBlock]:
    audio = item.get("audio")
    if not is_map(audio) or not isinstance(audio.get("data", ""), str):
        return []
    read.append("audio")
    return [AssistantGenAudio(base64_data=audio.get("data", ""), extra=keep(WIRE, audio, ("data",)))]


def _read_images(item: Mapping[str, Any], read: list[str]) -> list[ContentBlock]:
    """Return the images that a server sends beside the text, each marked as having come so."""
    images = item.get("images")
    if not is_list(images) or not images:
        return []
    found: list[ContentBlock] = []
    for image in images:
        held = image.get("image_url") if is_map(image) else None
        if not is_map(held) or len(held) != 1 or not isinstance(held.get("url"), str):
            return []
        extra = {"index": None, **others(image, ("type", "image_url"))}
        found.append(AssistantGenImage(**image_of(held["url"]), extra={WIRE: extra}))
    read.append("images")
    return found


def _read_calls(calls: Any, index: int) -> list[ContentBlock]:
    if calls is None:
        return []
    return [_read_call(call) for call in objects(calls, index, "a list of calls", "a call", "tool_calls")]


def _read_call(call: Mapping[str, Any]) -> ContentBlock:
    kind = call.get("type", "function")
    field, said = ("custom", "input") if kind == "custom" else ("function", "arguments")
    held = call.get(field)
    call_id, name = call.get("id") or "", (held.get("name") or "") if is_map(held) else None
    if kind not in ("function", "custom") or not is_map(held) or not isinstance(call_id, str):
        return unknown(WIRE, {CALL: dict(call)})
    if not isinstance(name, str):
        return unknown(WIRE, {CALL: dict(call)})
    rest = others(call, ("id", "type", "index", field))
    inner = others(held, ("name", said))
    kept = {**rest, **({field: inner} if inner else {})}
    extra = {**({WIRE: kept} if kept else {}), **({KIND: kind} if kind == "custom" else {})}
    given = held.get(said) if kind == "function" else held.get(said, "")
    return FunctionToolCall(call_id, name, arguments_text(given), extra=extra)
