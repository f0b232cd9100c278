"""Media as Converse has them: a format instead of a type, and bytes or a place in S3 for the rest."""

import re
from binascii import Error as NotBase64
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping, MutableMapping
from typing import Any, NamedTuple

from suture.codecs._contents import data_of, media_in_words, report_address
from suture.codecs._kept import put_back
from suture.codecs._values import Losses, Lost
from suture.messages import (
    AssistantGenAudio,
    AssistantGenImage,
    AssistantGenVideo,
    UserInputAudio,
    UserInputFile,
    UserInputImage,
    UserInputVideo,
)
from suture.providers.bedrock.json import WIRE, Where, as_extra, beside, is_map, only

__all__ = ["MEDIA", "read_media", "write_media"]

MEDIA: Mapping[type, str] = {
    UserInputImage: "image",
    AssistantGenImage: "image",
    UserInputVideo: "video",
    AssistantGenVideo: "video",
    UserInputAudio: "audio",
    AssistantGenAudio: "audio",
    UserInputFile: "document",
}
_GIVEN: Mapping[str, Any] = {
    "image": UserInputImage,
    "video": UserInputVideo,
    "audio": UserInputAudio,
    "document": UserInputFile,
}
_MADE: Mapping[str, Any] = {"image": AssistantGenImage, "video": AssistantGenVideo, "audio": AssistantGenAudio}

_OFFICE = "application/vnd.openxmlformats-officedocument"
_TYPES: Mapping[str, Mapping[str, str]] = {
    "image": {"png": "image/png", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp"},
    "video": {
        "mp4": "video/mp4",
        "mov": "video/quicktime",
        "mkv": "video/x-matroska",
        "webm": "video/webm",
        "flv": "video/x-flv",
        "mpeg": "video/mpeg",
        "wmv": "video/x-ms-wmv",
        "three_gp": "video/3gpp",
    },
    "audio": {
        "mp3": "audio/mpeg",
        "opus": "audio/opus",
        "wav": "audio/wav",
        "aac": "audio/aac",
        "flac": "audio/flac",
        "mp4": "audio/mp4",
        "ogg": "audio/ogg",
        "mka": "audio/x-matroska",
        "m4a": "audio/x-m4a",
        "pcm": "audio/pcm",
        "webm": "audio/webm",
    },
    "document": {
        "pdf": "application/pdf",
        "csv": "text/csv",
        "doc": "application/msword",
        "docx": f"{_OFFICE}.wordprocessingml.document",
        "xls": "application/vnd.ms-excel",
        "xlsx": f"{_OFFICE}.spreadsheetml.sheet",
        "html": "text/html",
        "txt": "text/plain",
        "md": "text/markdown",
    },
}
_FORMATS = {kind: {mime: form for form, mime in table.items()} for kind, table in _TYPES.items()}
_ALIASES = {
    "image/jpg": "image/jpeg",
    "audio/mp3": "audio/mpeg",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/m4a": "audio/x-m4a",
    "text/x-markdown": "text/markdown",
}
_TEXTS = ("application/json", "application/xml", "application/yaml")
_SPOILS_NAME = re.compile(r"[^A-Za-z0-9_\-()\[\]]+")
_LONGEST_NAME = 200
_LONGEST_ENDING = 4
_S3 = "s3://"
_OWN = ("format", "source", "name")


def read_media(kind: str, held: Any, where: Where) -> Any:
    """Return the block of media; `None` where it holds what a block cannot.

    >>> read_media("image", {"format": "png", "source": {"bytes": "iVBO"}}, Where("user"))
    UserInputImage(base64_data='iVBO', mime_type='image/png')
    """
    block = where.map(held)
    found = _read_source(block.get("source"))
    if found is None or not isinstance(block.get("format", ""), str):
        return None
    fields, kept = found
    form: Any = block.get("format")
    mime = fields.pop("mime_type", "")
    if form is not None:
        mime = _TYPES[kind].get(form) or f"{'application' if kind == 'document' else kind}/{form}"
    if form is None or form != _FORMATS[kind].get(mime):
        kept["format"] = form
    if kind == "document":
        fields["name"] = where.text(block, "name")
    kept |= beside(block, *_OWN)
    made = (_MADE if where.role == "assistant" else _GIVEN).get(kind, UserInputFile)
    return made(**fields, mime_type=mime, extra=as_extra(kept))


def _read_source(source: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Return the fields of a block that say what `source` says, and what is kept beside them."""
    if not is_map(source) or len(source) != 1:
        return None
    [(form, held)] = source.items()
    if form == "bytes" and isinstance(held, str) and held:
        return {"base64_data": held}, {}
    if form == "text" and isinstance(held, str) and held:
        data = b2a_base64(held.encode(), newline=False).decode()
        return {"base64_data": data, "mime_type": "text/plain"}, {"source": "text"}
    location: Any = held
    if form == "s3Location" and only(location, "uri", "bucketOwner"):
        uri: Any = location.get("uri")
        if isinstance(uri, str) and uri.startswith(_S3):
            return {"url": uri}, beside(location, "uri")
    return None


class _Written(NamedTuple):
    """What becomes of media: their format and source."""

    form: str | None
    source: dict[str, Any]


def write_media(block: Any, losses: Losses, path: str, names: MutableMapping[str, int], *, inside: bool = False) -> Any:
    """Return media as a block of Converse's, or as a text where it cannot hold them; `inside` a result, no sound.

    >>> write_media(UserInputImage(url="https://example.com/a.png"), Losses(), "", {})
    {'text': 'https://example.com/a.png'}
    """
    kind = MEDIA[block.__class__]
    held: Any = block.extra.get(WIRE)
    kept: Mapping[str, Any] = held if is_map(held) else {}
    written = None if inside and kind == "audio" else _written(kind, block, kept, losses, path)
    if written is None:
        losses.add(Lost.MEDIA, f"{kind} {media_in_words(block)[:80]}", path)
        put_back(WIRE, {}, block.extra, losses, path)
        return {"text": media_in_words(block)}
    report_address(block, losses, path)
    if getattr(block, "detail", ""):
        losses.add(Lost.DETAIL, f"image detail {block.detail}", path)
    made: dict[str, Any] = {} if written.form is None else {"format": written.form}
    if kind == "document":
        made["name"] = _document_name(block.name, names, losses, path)
    made = put_back(WIRE, made, block.extra, losses, path)
    made.pop("bucketOwner", None)
    return {kind: {**made, "source": written.source}}


def _written(kind: str, block: Any, kept: Mapping[str, Any], losses: Losses, path: str) -> _Written | None:
    in_s3 = not block.base64_data and block.url.startswith(_S3)
    data = None if in_s3 else data_of(block, "")
    if data is None and not in_s3:
        return None
    mime = (data.mime_type if data else block.mime_type).partition(";")[0].strip().lower()
    if "format" in kept:
        form = kept["format"]
    else:
        form = _format(kind, _ALIASES.get(mime, mime), losses, path)
        if form is None:
            return None
    if in_s3:
        owner = {"bucketOwner": kept["bucketOwner"]} if "bucketOwner" in kept else {}
        return _Written(form, {"s3Location": {"uri": block.url, **owner}})
    encoded = data.base64 if data else ""
    text = _decoded(encoded) if kept.get("source") == "text" else None
    return _Written(form, {"bytes": encoded} if text is None else {"text": text})


def _format(kind: str, mime: str, losses: Losses, path: str) -> str | None:
    """Return the format of a type of media; any other text is one, too."""
    form = _FORMATS[kind].get(mime)
    if form is None and kind == "document" and (mime.startswith("text/") or mime in _TEXTS):
        losses.add(Lost.DETAIL, f"that a file is {mime}", path)
        return "txt"
    return form


def _decoded(data: str) -> str | None:
    try:
        return a2b_base64(data).decode()
    except (NotBase64, ValueError):
        return None


def _document_name(name: str, taken: MutableMapping[str, int], losses: Losses, path: str) -> str:
    """Return a name as Converse allows it, which no other document has."""
    stem, _, ending = name.rpartition(".")
    plain = stem if stem and len(ending) <= _LONGEST_ENDING else name
    plain = _SPOILS_NAME.sub(" ", plain).strip()[: _LONGEST_NAME - 8].strip() or "document"
    given, key = plain, plain.lower()
    while given.lower() in taken:
        taken[key] += 1
        given = f"{plain} {taken[key]}"
    taken[given.lower()] = 1
    if name and given != name:
        losses.add(Lost.DETAIL, f"file name {name[:80]!r}", path)
    return given
