"""The parts of a message, or of a tool's output, from and into blocks; and the fields that `extra` keeps of them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from suture.codecs.codec import Losses, Lost
from suture.codecs.contents import (
    keep,
    put_back,
    read_each,
    report_address,
    report_extension,
    tell_in_words,
    unknown,
    unwrap,
)
from suture.errors import InputError
from suture.messages import (
    AssistantGenImage,
    AssistantGenText,
    Opaque,
    UserInputAudio,
    UserInputFile,
    UserInputImage,
    UserInputText,
)
from suture.wires.fields import is_map, list_of, map_of, object_of, text_of
from suture.wires.parts import Data, data_of, split_data_url

WIRE = "openai-responses"

ITEM = "item"
"""What an item of the model's that is a message has beside its content.

It is kept in the `extra` of the native message, so that a reply that is one text is nothing else; of a second such
item, in that of its first block.
"""
NEEDS = "reasoning"
"""Kept with what the model made: the id of the reasoning that it was made after."""
PART = "part"
"""Kept with an unknown block: that it is part of a message, not an item."""
_MARKS = (ITEM, NEEDS, PART)
_PARSED = ("parsed", "parsed_arguments")
"""What the SDK puts beside a text or a call for its user; the API does not take it."""
_TEXTS = ("input_text", "output_text", "text")
_REFUSAL = "refusal"


# Fields


def extra_of(thing: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Return the `extra` of what was read: its fields that are neither `known` nor null."""
    return keep(WIRE, thing, *known, *_PARSED)


def own_type(extra: Mapping[str, Any]) -> str:
    """Return the type of item, part or tool that an `extra` keeps; the empty string where it keeps none."""
    kind = map_of(extra, WIRE).get("type")
    return kind if isinstance(kind, str) else ""


def mark(block: Any, **marks: Any) -> Any:
    """Return `block` with marks of ours in its `extra`."""
    extra = {**block.extra, WIRE: {**map_of(block.extra, WIRE), **marks}}
    return Opaque({**block.data, "extra": extra}) if isinstance(block, Opaque) else replace(block, extra=extra)


def restore(written: dict[str, Any], extra: Mapping[str, Any], losses: Losses, path: str) -> dict[str, Any]:
    """Return what was written of a block, with the fields that were kept of it, without our marks."""
    if is_map(extra.get(WIRE)):
        extra = {**extra, WIRE: {name: value for name, value in map_of(extra, WIRE).items() if name not in _MARKS}}
    return put_back(WIRE, written, extra, losses, path)


# Reading


def read_parts(holder: Mapping[str, Any], name: str = "content", *, by_model: bool = False) -> list[Any]:
    """Return the blocks in `holder[name]`: what the model made, or what it is given."""
    content = holder.get(name)
    if isinstance(content, str):
        return [AssistantGenText(content) if by_model else UserInputText(content)]
    return read_each(list_of(holder, name), partial(_read, by_model=by_model), name)


def _read(part: Mapping[str, Any], *, by_model: bool) -> Any:
    kind = part.get("type")
    if not isinstance(kind, str):
        raise InputError("expected a type", path="type")
    if kind in _TEXTS:
        known = ("type", "text") if kind == _text_type(by_model=by_model) else ("text",)
        block = AssistantGenText if by_model else UserInputText
        return block(text_of(part, "text"), extra=extra_of(part, known))
    if kind == _REFUSAL and by_model:
        extra = extra_of(part, ("type", _REFUSAL))
        return AssistantGenText(text_of(part, _REFUSAL), extension={_REFUSAL: True}, extra=extra)
    reader = None if by_model else _READERS.get(kind)
    return _unknown(part) if reader is None else reader(part)


def _text_type(*, by_model: bool) -> str:
    return "output_text" if by_model else "input_text"


def _unknown(part: Mapping[str, Any]) -> Opaque:
    return mark(unknown(WIRE, part), **{PART: True})


def _read_image(part: Mapping[str, Any]) -> UserInputImage:
    extra = extra_of(part, ("type", "image_url", "detail"))
    return UserInputImage(**_media(text_of(part, "image_url")), detail=text_of(part, "detail"), extra=extra)


def _read_file(part: Mapping[str, Any]) -> UserInputFile:
    data, name = text_of(part, "file_data"), text_of(part, "filename")
    if not data:
        extra = extra_of(part, ("type", "filename", "file_data", "file_url"))
        return UserInputFile(url=text_of(part, "file_url"), name=name, extra=extra)
    media: dict[str, Any] = _media(data) if data.startswith("data:") else {"base64_data": data}
    return UserInputFile(**media, name=name, extra=extra_of(part, ("type", "filename", "file_data")))


def _read_audio(part: Mapping[str, Any]) -> Any:
    audio: Mapping[str, Any] = object_of(part, "input_audio")
    if set(audio) != {"data", "format"}:
        return _unknown(part)
    kind = f"audio/{text_of(audio, 'format')}"
    return UserInputAudio(base64_data=text_of(audio, "data"), mime_type=kind, extra=extra_of(part, ("input_audio",)))


def _media(url: str) -> dict[str, Any]:
    """Return what an address holds if it holds it itself and says what that is, else the address."""
    data = split_data_url(url, "")
    if data is None or not data.mime_type:
        return {"url": url}
    return {"base64_data": data.base64, "mime_type": data.mime_type}


_READERS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "input_image": _read_image,
    "input_file": _read_file,
    "input_audio": _read_audio,
}


# Writing


def write_part(block: Any, losses: Losses, path: str, *, by_model: bool = False) -> dict[str, Any] | None:
    """Return `block` as a part of a message, of the model's or for it; `None` where it has no form."""
    if isinstance(block, Opaque):
        return unwrap(WIRE, block, losses, path)
    if isinstance(block, UserInputText | AssistantGenText):
        return _write_text(block, losses, path, by_model=by_model)
    writer = None if by_model else _WRITERS.get(type(block))
    part = None if writer is None else writer(block)
    if part is None:
        return {"type": _text_type(by_model=by_model), "text": tell_in_words(block, losses, path)}
    if getattr(block, "name", "") and "filename" not in part:
        losses.add(Lost.DETAIL, f"file name {block.name!r}", path)
    report_address(block, losses, path)
    if block.mime_type and not block.base64_data and not isinstance(block, UserInputAudio):
        losses.add(Lost.DETAIL, f"media type {block.mime_type}", path)
    return restore(part, block.extra, losses, path)


def write_output(content: Sequence[Any], losses: Losses, path: str) -> str | list[dict[str, Any]]:
    """Return what a tool gave: as text if it is one, else as parts."""
    parts = [write_part(block, losses, f"{path}[{place}]") for place, block in enumerate(content)]
    return plain_text([part for part in parts if part is not None]) or ""


def plain_text(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return parts as a string, where they are one text and nothing else."""
    is_text = len(parts) == 1 and parts[0].keys() == {"type", "text"} and parts[0]["type"] in _TEXTS[:2]
    return parts[0]["text"] if is_text else parts


def write_text(content: Sequence[Any], losses: Losses, path: str) -> str:
    """Return what a tool gave as one text, for outputs that hold nothing else; media are told in words."""
    texts: list[str] = []
    for place, block in enumerate(content):
        where = f"{path}[{place}]"
        part = write_part(block, losses, where, by_model=True)
        if part is not None and "text" in part:
            texts.append(str(part["text"]))
        elif part is not None:
            losses.add(Lost.BLOCK, f"a part of type {part.get('type')}", where)
    return "\n".join(texts)


def _write_text(block: Any, losses: Losses, path: str, *, by_model: bool) -> dict[str, Any]:
    extension: Mapping[str, Any] = getattr(block, "extension", {})
    report_extension(block, (_REFUSAL,), losses, path)
    refuses = by_model and extension.get(_REFUSAL) is True
    kind, field = (_REFUSAL, _REFUSAL) if refuses else (_text_type(by_model=by_model), "text")
    return restore({"type": kind, field: block.text}, block.extra, losses, path)


def _write_image(block: Any) -> dict[str, Any] | None:
    address = Data(block.mime_type or "image/png", block.base64_data).url if block.base64_data else block.url
    if not address and "file_id" not in map_of(block.extra, WIRE):
        return None
    detail = getattr(block, "detail", "")
    return {
        "type": "input_image",
        **({"image_url": address} if address else {}),
        **({"detail": detail} if detail else {}),
    }


def _write_file(block: UserInputFile) -> dict[str, Any] | None:
    """Return a file; the API refuses a name beside an address."""
    if block.base64_data or block.url.startswith("data:"):
        by_value = Data(block.mime_type, block.base64_data).url if block.mime_type else block.base64_data
        part = {"type": "input_file", "file_data": by_value if block.base64_data else block.url}
        return {**part, "filename": block.name} if block.name else part
    if block.url:
        return {"type": "input_file", "file_url": block.url}
    return {"type": "input_file"} if "file_id" in map_of(block.extra, WIRE) else None


def _write_audio(block: UserInputAudio) -> dict[str, Any] | None:
    """Return a sound that came from here; another has no form."""
    data = data_of(block)
    if data is None or own_type(block.extra) != "input_audio":
        return None
    audio = {"data": data.base64, "format": data.mime_type.partition("/")[2]}
    return {"type": "input_audio", "input_audio": audio}


_WRITERS: Mapping[Any, Callable[[Any], dict[str, Any] | None]] = {
    UserInputImage: _write_image,
    AssistantGenImage: _write_image,
    UserInputFile: _write_file,
    UserInputAudio: _write_audio,
}
