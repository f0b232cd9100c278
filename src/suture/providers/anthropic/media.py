"""Images and documents of Anthropic's Messages API, both ways: the bytes, the text, the address or the file's id."""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from msgspec.structs import replace

from suture.codecs._contents import data_of, media_in_words, report_address
from suture.codecs._kept import put_back, report_extra
from suture.codecs._values import Losses, Lost
from suture.messages import UserInputFile, UserInputImage
from suture.providers.anthropic.fields import WIRE, kept_beside, map_in, own_fields, tag_of, text_in

__all__ = ["read_media", "write_in_words", "write_media"]

_PDF = "application/pdf"
_TEXT = "text/plain"
_IMAGES = frozenset(("image/jpeg", "image/png", "image/gif", "image/webp"))
_MEANT = {"image/jpg": "image/jpeg"}
_BEGINNINGS = {
    "/9j/": "image/jpeg",
    "iVBOR": "image/png",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
    "JVBERi": _PDF,
}
"""How the base64 of each type begins."""


class _Held(NamedTuple):
    """A block's type and its source."""

    type: str
    source: dict[str, Any]


def read_media(block: Mapping[str, Any]) -> UserInputImage | UserInputFile:
    """Return an `image` or `document` block; a source that would be written otherwise is kept as it is.

    >>> read_media({"type": "image", "source": {"type": "url", "url": "https://example.com/cat.png"}}).url
    'https://example.com/cat.png'
    """
    source = map_in(block, "source")
    fields = _read_source(source)
    known = {"type"}
    if block["type"] == "image":
        made = UserInputImage(**fields)
    else:
        known.add("title")
        if fields.get("url"):
            fields["mime_type"] = _PDF
        made = UserInputFile(**fields, name=text_in(block, "title"))
    if _held(made) == (block["type"], source):
        known.add("source")
    return replace(made, extra=kept_beside(block, known))


def _read_source(source: Mapping[str, Any]) -> dict[str, Any]:
    kind = source.get("type")
    if kind == "base64":
        return {"base64_data": text_in(source, "data"), "mime_type": text_in(source, "media_type")}
    if kind == "url":
        return {"url": text_in(source, "url")}
    text = text_in(source, "data") if kind == "text" else _words(source.get("content")) if kind == "content" else None
    if text is None:
        return {}
    return {"base64_data": b64encode(text.encode()).decode(), "mime_type": _TEXT}


def _words(content: Any) -> str | None:
    """Return what a document of blocks says, if it is text alone."""
    if isinstance(content, str):
        return content
    blocks = cast("list[Any]", content) if isinstance(content, list) else []
    texts = [cast("Mapping[str, Any]", block).get("text") if isinstance(block, Mapping) else None for block in blocks]
    said = [text for text in texts if isinstance(text, str)]
    return "\n".join(said) if said and len(said) == len(texts) else None


def write_media(block: Any, losses: Losses, path: str) -> dict[str, Any]:
    """Return the block for an image or a file; a text that tells of it where the API takes no such thing.

    >>> write_media(UserInputImage(url="https://example.com/cat.png"), Losses(), "")["source"]["type"]
    'url'
    """
    held = _held(block)
    if "source" in own_fields(block.extra):
        held = _Held("image" if isinstance(block, UserInputImage) else "document", {})
    if held is None:
        return write_in_words(block, losses, path)
    made: dict[str, Any] = held._asdict()
    name = getattr(block, "name", "")
    if held.type == "document" and name:
        made["title"] = name
    _report_details(block, held, losses, path)
    return put_back(WIRE, made, block.extra, losses, path)


def write_in_words(block: Any, losses: Losses, path: str) -> dict[str, Any]:
    """Return a text that tells where media are, or what; they are reported.

    >>> from suture.messages import UserInputAudio
    >>> write_in_words(UserInputAudio(url="https://example.com/a.ogg"), Losses(), "")["text"]
    'https://example.com/a.ogg'
    """
    words = media_in_words(block)
    losses.add(Lost.MEDIA, f"{tag_of(block)} {words[:80]}", path)
    for name, value in block.extra.items():
        report_extra(name, value, losses, path)
    return {"type": "text", "text": words}


def _held(block: Any) -> _Held | None:
    """Return the block's type and its source; `None` where the API takes no such thing."""
    data = data_of(block, "")
    if data is None:
        return _addressed(block)
    kind = data.mime_type.partition(";")[0] or _begun(data.base64)
    kind = _MEANT.get(kind, kind)
    if kind in _IMAGES or kind == _PDF:
        source = {"type": "base64", "media_type": kind, "data": data.base64}
        return _Held("document" if kind == _PDF else "image", source)
    text = _decoded(data.base64) if kind.startswith("text/") else None
    return None if text is None else _Held("document", {"type": "text", "media_type": _TEXT, "data": text})


def _addressed(block: Any) -> _Held | None:
    if not block.url.startswith(("https://", "http://")):
        return None
    source = {"type": "url", "url": block.url}
    if isinstance(block, UserInputImage) or block.mime_type in _IMAGES:
        return _Held("image", source)
    return _Held("document", source) if block.mime_type in {"", _PDF} else None


def _begun(base64: str) -> str:
    return next((kind for beginning, kind in _BEGINNINGS.items() if base64.startswith(beginning)), "")


def _decoded(base64: str) -> str | None:
    try:
        return b64decode(base64, validate=True).decode()
    except ValueError:
        return None


def _report_details(block: Any, held: _Held, losses: Losses, path: str) -> None:
    """Report what is said about media beside what they are, where the form that is written has no field for it."""
    report_address(block, losses, path)
    if isinstance(block, UserInputImage):
        if block.detail:
            losses.add(Lost.DETAIL, f"image detail {block.detail}", path)
    elif held.type == "image" and block.name:
        losses.add(Lost.DETAIL, f"file name {block.name[:80]}", path)
    told = {"url": _PDF if held.type == "document" else "", "text": _TEXT}.get(held.source.get("type", ""))
    if told is not None and block.mime_type not in {"", told}:
        losses.add(Lost.DETAIL, f"type {block.mime_type[:80]}", path)
