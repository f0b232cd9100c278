"""The parts of a message's content in Chat Completions, from and into blocks."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeGuard

from suture.codecs._contents import Data, data_of, media_in_words, report_address, split_data_url
from suture.codecs._kept import keep, put_back, report_extension, report_extra, unknown, unwrap
from suture.codecs._values import Losses, Lost
from suture.errors import InputError
from suture.messages import (
    AssistantGenAudio,
    AssistantGenImage,
    AssistantGenText,
    AssistantGenVideo,
    Opaque,
    UserInputAudio,
    UserInputBlock,
    UserInputFile,
    UserInputImage,
    UserInputText,
    UserInputVideo,
)

__all__ = [
    "LISTED",
    "WIRE",
    "block_type",
    "image_of",
    "inside",
    "is_list",
    "is_map",
    "join_parts",
    "objects",
    "only_texts",
    "others",
    "own",
    "read_content",
    "restored",
    "write_media",
    "write_part",
    "write_words",
]

WIRE = "openai-chat"
LISTED = "listed"
"""A mark in what is kept: the content was a list, though one text would have said the same."""

_FORMATS = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav"}
_TYPES = {"mp3": "audio/mpeg"}


def is_map(thing: Any) -> TypeGuard[Mapping[str, Any]]:
    """Tell whether `thing` is an object of JSON."""
    return isinstance(thing, Mapping)


def is_list(thing: Any) -> TypeGuard[Sequence[Any]]:
    """Tell whether `thing` is an array of JSON."""
    return isinstance(thing, list | tuple)


def inside(held: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the object that `held` holds under `name`, an empty one where it is none."""
    found = held.get(name)
    return found if is_map(found) else {}


def own(extra: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what was kept for this wire."""
    return inside(extra, WIRE)


def others(held: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Return the fields that are not `known`; one that is null says nothing."""
    return {name: value for name, value in held.items() if name not in known and value is not None}


def block_type(block: Any) -> str:
    """Return the type of a block, to be told."""
    return block.type if isinstance(block, Opaque) else str(block.__struct_config__.tag)


def restored(made: dict[str, Any], extra: Mapping[str, Any], losses: Losses, path: str = "") -> dict[str, Any]:
    """Return what was made, with what was kept for this wire, also inside the objects that it holds."""
    kept = own(extra)
    inner = {
        name: _within(made[name], value) for name, value in kept.items() if is_map(value) and is_map(made.get(name))
    }
    return put_back(WIRE, made, {**extra, WIRE: {**kept, **inner}} if inner else extra, losses, path)


def _within(made: Mapping[str, Any], kept: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**made, **kept}
    return {name: value for name, value in merged.items() if not (value is None and name in kept)}


# Reading


def read_content(content: Any, index: int) -> list[UserInputBlock]:
    """Return what a message that is not the model's says."""
    if content is None:
        return []
    if isinstance(content, str):
        return [UserInputText(content)]
    return [_read_part(part) for part in objects(content, index, "a text or a list of parts", "a part")]


def objects(held: Any, index: int, wanted: str, each: str, path: str = "content") -> list[Mapping[str, Any]]:
    """Return the objects in a list of a message's, in the field `path`."""
    if not is_list(held):
        raise InputError(f"expected {wanted}, found {type(held).__name__}", index=index, path=path)
    for place, item in enumerate(held):
        if not is_map(item):
            where = f"{path}[{place}]"
            raise InputError(f"expected {each}, found {type(item).__name__}", index=index, path=where)
    return list(held)


def _read_part(part: Mapping[str, Any]) -> UserInputBlock:
    reader = _READERS.get(str(part.get("type")))
    return (reader(part) if reader else None) or unknown(WIRE, part)


def _read_text(part: Mapping[str, Any]) -> UserInputBlock | None:
    text = part.get("text")
    return UserInputText(text, extra=keep(WIRE, part, ("type", "text"))) if isinstance(text, str) else None


def _read_image(part: Mapping[str, Any]) -> UserInputBlock | None:
    return _seen(UserInputImage, part, "image_url", ("url", "detail"))


def _read_video(part: Mapping[str, Any]) -> UserInputBlock | None:
    return _seen(UserInputVideo, part, "video_url", ("url",))


def _seen(kind: Any, part: Mapping[str, Any], name: str, known: Sequence[str]) -> Any:
    """Return an image or a film: by value where its address is a data URL that says all."""
    held = part.get(name)
    fields = {field: held[field] for field in known if field in held} if is_map(held) else {}
    if not is_map(held) or "url" not in fields or not all(isinstance(value, str) for value in fields.values()):
        return None
    return kind(**{**fields, **image_of(fields["url"])}, extra=_keep_both(part, name, held, known))


def image_of(url: str) -> dict[str, Any]:
    """Return the fields of media at `url`: what a data URL holds, where it comes out the same."""
    data = split_data_url(url)
    if data is None or data.url != url:
        return {"url": url}
    return {"url": "", "base64_data": data.base64, "mime_type": data.mime_type}


def _read_audio(part: Mapping[str, Any]) -> UserInputBlock | None:
    held = part.get("input_audio")
    data, spoken = (held.get("data"), held.get("format")) if is_map(held) else (None, None)
    if not is_map(held) or not isinstance(data, str) or not isinstance(spoken, str):
        return None
    extra = _keep_both(part, "input_audio", held, ("data", "format"))
    return UserInputAudio(base64_data=data, mime_type=_TYPES.get(spoken, f"audio/{spoken}"), extra=extra)


def _read_file(part: Mapping[str, Any]) -> UserInputBlock | None:
    held = part.get("file")
    if not is_map(held) or not all(isinstance(held.get(name, ""), str) for name in ("filename", "file_data")):
        return None
    given = held.get("file_data", "")
    found = image_of(given)
    known = ["filename", "file_data"]
    if "base64_data" not in found:
        # An address, or an id: what was said is kept, and said again.
        found["url"] = given if "://" in given else ""
        known.remove("file_data")
    return UserInputFile(name=held.get("filename", ""), **found, extra=_keep_both(part, "file", held, known))


def _keep_both(part: Mapping[str, Any], name: str, held: Mapping[str, Any], known: Sequence[str]) -> dict[str, Any]:
    """Return what neither the part nor the object in it has a place for."""
    inner = others(held, known)
    kept = {**others(part, ("type", name)), **({name: inner} if inner else {})}
    return {WIRE: kept} if kept else {}


_READERS: Mapping[str, Callable[[Mapping[str, Any]], UserInputBlock | None]] = {
    "text": _read_text,
    "image_url": _read_image,
    "video_url": _read_video,
    "input_audio": _read_audio,
    "file": _read_file,
}


# Writing


def write_part(block: Any, losses: Losses, path: str) -> dict[str, Any] | None:
    """Return a block of a user message as a part; `None`, and reported, where there is nothing that says it."""
    if isinstance(block, Opaque):
        return unwrap(WIRE, block, losses, path)
    if isinstance(block, UserInputText | AssistantGenText):
        if isinstance(block, AssistantGenText):
            report_extension(block, (), losses, path)
        return restored({"type": "text", "text": block.text}, block.extra, losses, path)
    return write_media(block, losses, path) or write_words(block, losses, path)


def write_media(block: Any, losses: Losses, path: str) -> dict[str, Any] | None:
    """Return media as a part; `None` where the format cannot hold them."""
    writer = _WRITERS.get(type(block))
    made = writer(block) if writer else None
    if made is None:
        return None
    report_address(block, losses, path)
    if not block.base64_data and block.url and block.mime_type and not block.url.startswith("data:"):
        losses.add(Lost.DETAIL, f"type {block.mime_type}", path)
    return restored(made, block.extra, losses, path)


def write_words(block: Any, losses: Losses, path: str) -> dict[str, Any] | None:
    """Return words in place of media that cannot stand here, and report it; nothing of any other block."""
    if type(block) in _WRITERS:
        losses.add(Lost.MEDIA, media_in_words(block), path)
        for name, value in block.extra.items():
            report_extra(name, value, losses, path)
        return {"type": "text", "text": media_in_words(block)}
    losses.add(Lost.BLOCK, f"a block of type {block_type(block)}", path)
    return None


def _write_image(block: Any) -> dict[str, Any] | None:
    detail = {"detail": block.detail} if getattr(block, "detail", "") else {}
    url = _address(block, "image/png")
    return {"type": "image_url", "image_url": {"url": url, **detail}} if url else None


def _write_video(block: Any) -> dict[str, Any] | None:
    url = _address(block, "video/mp4")
    return {"type": "video_url", "video_url": {"url": url}} if url else None


def _address(block: Any, default: str) -> str:
    return Data(block.mime_type or default, block.base64_data).url if block.base64_data else block.url


def _write_audio(block: Any) -> dict[str, Any] | None:
    data = data_of(block, "audio/wav")
    if data is None:
        return None
    spoken = data.mime_type.partition("/")[2].partition(";")[0]
    return {"type": "input_audio", "input_audio": {"data": data.base64, "format": _FORMATS.get(spoken, spoken)}}


def _write_file(block: Any) -> dict[str, Any] | None:
    name = {"filename": block.name} if block.name else {}
    data = data_of(block)
    if data is not None:
        return {"type": "file", "file": {**name, "file_data": data.url}}
    kept = inside(own(block.extra), "file")
    known = "file_id" in kept or "file_data" in kept
    return {"type": "file", "file": name} if known else None


_WRITERS: Mapping[Any, Callable[[Any], dict[str, Any] | None]] = {
    UserInputImage: _write_image,
    UserInputVideo: _write_video,
    UserInputAudio: _write_audio,
    UserInputFile: _write_file,
    AssistantGenImage: _write_image,
    AssistantGenVideo: _write_video,
    AssistantGenAudio: _write_audio,
}


def only_texts(parts: Sequence[Any]) -> bool:
    """Tell whether `parts` are texts with nothing attached, so that one text says the same."""
    return all(map(_is_text, parts))


def _is_text(part: Any) -> bool:
    return is_map(part) and len(part) == 2 and part.get("type") == "text" and isinstance(part.get("text"), str)


def join_parts(parts: list[dict[str, Any]], *, listed: bool) -> str | list[dict[str, Any]]:
    """Return the content that `parts` make: one text, if they are texts and need not be a list."""
    return parts if listed or not only_texts(parts) else "\n".join([part["text"] for part in parts])
