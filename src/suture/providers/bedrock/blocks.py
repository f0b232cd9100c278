"""The blocks of Converse from and into ours: each of its blocks is an object with one key, which says what it is."""

import re
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeGuard, cast

import msgspec

from suture.codecs.codec import Losses, Lost
from suture.codecs.contents import (
    CallFinder,
    arguments_object,
    keep,
    origin_of,
    put_back,
    report_address,
    report_extension,
    rest_of,
    tag_of,
    unknown,
    unwrap,
)
from suture.errors import InputError
from suture.messages import (
    AssistantGenAudio,
    AssistantGenImage,
    AssistantGenText,
    AssistantGenVideo,
    FunctionToolCall,
    FunctionToolResult,
    Opaque,
    Reasoning,
    ServerToolCall,
    ServerToolResult,
    ToolSearchResult,
    UserInputAudio,
    UserInputFile,
    UserInputImage,
    UserInputText,
    UserInputVideo,
)
from suture.wires.fields import argument_json, inner, is_map, listed, parse_json, text_of
from suture.wires.parts import data_of, media_in_words

WIRE = "bedrock"
_USER_MEDIA = {"image": UserInputImage, "video": UserInputVideo, "audio": UserInputAudio}
_MODEL_MEDIA = {"image": AssistantGenImage, "video": AssistantGenVideo, "audio": AssistantGenAudio}
MEDIA: Mapping[type, str] = {
    **{block: kind for table in (_USER_MEDIA, _MODEL_MEDIA) for kind, block in table.items()},
    UserInputFile: "document",
}
"""The blocks of ours that hold media, and what Converse calls them."""
SERVER_CALL = "server_tool_use"
"""The type of a call that the service itself runs."""

_Block = dict[str, Any]
_S3 = "s3://"
_OFFICE = "application/vnd.openxmlformats-officedocument"
_SAME = {
    "image": ("png", "jpeg", "gif", "webp"),
    "video": ("mp4", "webm", "mpeg"),
    "audio": ("opus", "wav", "aac", "flac", "mp4", "ogg", "pcm", "webm"),
}
"""The formats that are called as in their MIME type: `png` is `image/png`."""
_OTHER = {
    "video": {
        "mov": "video/quicktime",
        "mkv": "video/x-matroska",
        "flv": "video/x-flv",
        "wmv": "video/x-ms-wmv",
        "three_gp": "video/3gpp",
    },
    "audio": {"mp3": "audio/mpeg", "mka": "audio/x-matroska", "m4a": "audio/x-m4a"},
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
_TYPES: Mapping[str, Mapping[str, str]] = {
    kind: {form: f"{kind}/{form}" for form in _SAME.get(kind, ())} | _OTHER.get(kind, {})
    for kind in ("image", "video", "audio", "document")
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
_TEXT_TYPES = ("application/json", "application/xml", "application/yaml")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_\-()\[\]]+")
_LONGEST_NAME = 200
_LONGEST_ENDING = 4


# Reading


class Place(NamedTuple):
    """Where a block stands, for errors; and what must be known of its surroundings to read it."""

    role: str
    message: int | None = None
    path: str = "content"
    names: CallFinder | None = None
    """The names of the calls before it."""
    server_ids: Collection[str] = ()
    """The ids of the calls in this message that the service itself answered."""

    def at(self, step: str) -> "Place":
        """Return a place further in."""
        return self._replace(path=self.path + step)

    def text(self, holder: Any, name: str) -> str:
        """Return the text in the field `name` of what stands here."""
        return text_of(holder, name, self.message, self.path)


def has_only(value: Any, *names: str) -> TypeGuard[Mapping[str, Any]]:
    """Return whether `value` is an object that has no fields but `names`."""
    return is_map(value) and value.keys() <= set(names)


def read_blocks(content: Any, place: Place) -> tuple[Any, ...]:
    """Return what the blocks of one message say."""
    blocks = listed(content, place.message, place.path)
    if place.role == "assistant":
        results = [block.get("toolResult") for block in blocks]
        ids = [result.get("toolUseId") for result in results if is_map(result) and result.get("type") is not None]
        place = place._replace(server_ids=[known for known in ids if isinstance(known, str)])
    return tuple([_read(block, _READERS, place.at(f"[{number}]")) for number, block in enumerate(blocks)])


_Readers = Mapping[str, Callable[[Any, Place], Any]]


def _read(block: Mapping[str, Any], readers: _Readers, place: Place) -> Any:
    if "type" in block:
        raise InputError("a block with a type belongs to another wire", index=place.message, path=f"{place.path}.type")
    if len(block) == 1:
        [(kind, held)] = block.items()
        if kind == "text" and held is not None:
            text = place.text(block, kind)
            return AssistantGenText(text) if place.role == "assistant" else UserInputText(text)
        if kind in readers and held is not None:
            held = held if kind == "json" else inner(block, kind, place.message, place.path)
            made = readers[kind](held, place.at(f".{kind}"))
            if made is not None:
                return made
    return unknown(WIRE, block)


def _read_call(use: Mapping[str, Any], place: Place) -> FunctionToolCall | ServerToolCall:
    call_id, name = place.text(use, "toolUseId"), place.text(use, "name")
    rest = rest_of(use, "toolUseId", "name", "input")
    if use.get("type") == SERVER_CALL or call_id in place.server_ids:
        own = {"type": None, **rest}
        return ServerToolCall(call_id=call_id, name=name, arguments=use.get("input"), extra={WIRE: own})
    return FunctionToolCall(call_id, name, argument_json(use.get("input")), extra=keep(WIRE, rest))


def _read_result(result: Mapping[str, Any], place: Place) -> FunctionToolResult | ServerToolResult:
    call_id = place.text(result, "toolUseId")
    inside = place.at(".content")._replace(role="user")
    content = listed([] if result.get("content") is None else result["content"], place.message, inside.path)
    rest = rest_of(result, "toolUseId", "content")
    if call_id in place.server_ids and "type" in rest:
        return ServerToolResult(call_id=call_id, content=content, extra={WIRE: rest})
    is_error = rest.get("status") == "error"
    if is_error:
        del rest["status"]
    blocks = [_read(block, _RESULT_READERS, inside.at(f"[{number}]")) for number, block in enumerate(content)]
    name = place.names.find(call_id) if place.names else None
    return FunctionToolResult(call_id, name or "", tuple(blocks), is_error, extra=keep(WIRE, rest))


def _read_json(value: Any, place: Place) -> UserInputText:
    """Return JSON in a result as text, marked so that it becomes JSON again."""
    del place
    return UserInputText(msgspec.json.encode(value).decode(), extra={WIRE: {"json": True}})


def _read_reasoning(reasoning: Mapping[str, Any], place: Place) -> Reasoning | None:
    redacted = reasoning.get("redactedContent")
    if has_only(reasoning, "redactedContent") and isinstance(redacted, str):
        return Reasoning(signature=redacted, extension={"wire": WIRE, "redacted": True})
    said = reasoning.get("reasoningText")
    if not has_only(reasoning, "reasoningText") or not is_map(said):
        return None
    place = place.at(".reasoningText")
    text, signature = place.text(said, "text"), place.text(said, "signature")
    rest = rest_of(said, "text", "signature") if signature else rest_of(said, "text")
    return Reasoning(text, signature, extension={"wire": WIRE}, extra=keep(WIRE, rest))


def _read_citations(cited: Mapping[str, Any], place: Place) -> AssistantGenText | None:
    """Return text with its citations; `None` where it is no text, or more than that."""
    citations, content = cited.get("citations"), cited.get("content")
    if place.role != "assistant" or not has_only(cited, "citations", "content"):
        return None
    if not isinstance(citations, list) or not isinstance(content, list):
        return None
    pieces: list[Any] = [piece.get("text") if has_only(piece, "text") else None for piece in cast("list[Any]", content)]
    if not all(isinstance(piece, str) for piece in pieces) or not "".join(pieces).strip():
        return None
    return AssistantGenText("".join(pieces), extension={"wire": WIRE, "citations": citations})


def _read_media(kind: str, held: Mapping[str, Any], place: Place) -> Any:
    """Return the block of media; `None` where it holds what a block cannot."""
    source, form = _read_source(held.get("source")), held.get("format")
    if source is None or not isinstance(held.get("format", ""), str):
        return None
    fields, rest = source
    if form is not None:
        fields["mime_type"] = _TYPES[kind].get(form) or f"{'application' if kind == 'document' else kind}/{form}"
    if form is None or form not in _TYPES[kind]:
        rest["format"] = form
    if kind == "document":
        fields["name"] = place.text(held, "name")
    rest |= rest_of(held, "format", "source", "name")
    made: Any = (_MODEL_MEDIA if place.role == "assistant" else _USER_MEDIA).get(kind, UserInputFile)
    return made(**fields, extra={WIRE: rest} if rest else {})


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
    if form == "s3Location" and has_only(held, "uri", "bucketOwner"):
        uri = held.get("uri")
        if isinstance(uri, str) and uri.startswith(_S3):
            return {"url": uri}, rest_of(held, "uri")
    return None


_MEDIA_READERS: _Readers = {kind: partial(_read_media, kind) for kind in ("image", "video", "document")}
_RESULT_READERS: _Readers = {"json": _read_json, **_MEDIA_READERS}
_READERS: _Readers = {
    "toolUse": _read_call,
    "toolResult": _read_result,
    "reasoningContent": _read_reasoning,
    "citationsContent": _read_citations,
    "audio": partial(_read_media, "audio"),
    **_MEDIA_READERS,
}


# Writing


def write_blocks(blocks: Iterable[Any], losses: Losses) -> list[_Block]:
    """Return `blocks` as Converse has them; those that it has no form for are reported and left out."""
    made = [write_block(block, losses, f"content_blocks[{number}]") for number, block in enumerate(blocks)]
    return [block for block in made if block is not None]


def write_block(block: Any, losses: Losses, path: str) -> _Block | None:
    """Return `block` as Converse has it; `None`, and reported, where it has no form for it."""
    return _WRITERS.get(block.__class__, _report_block)(block, losses, path)


def write_words(block: Any, losses: Losses, path: str) -> _Block:
    """Return the text that stands for media where Converse cannot hold them."""
    words = media_in_words(block)
    losses.add(Lost.MEDIA, f"{MEDIA[block.__class__]} {words[:80]}", path)
    put_back(WIRE, {}, block.extra, losses, path)
    return {"text": words}


def _write_text(block: UserInputText | AssistantGenText, losses: Losses, path: str) -> _Block:
    put_back(WIRE, {}, block.extra, losses, path)
    extension: Mapping[str, Any] = getattr(block, "extension", {})
    citations = extension.get("citations") if extension and origin_of(block) == WIRE else None
    if citations is not None:
        return {"citationsContent": {"content": [{"text": block.text}], "citations": citations}}
    for name in extension:
        if name != "wire":
            losses.add(Lost.FIELD, f"{origin_of(block) or 'extension'} {name}", path)
    return {"text": block.text}


def _write_reasoning(block: Reasoning, losses: Losses, path: str) -> _Block | None:
    if origin_of(block) != WIRE:
        losses.add(Lost.REASONING, f"reasoning {block.text[:40]!r}", path)
        return None
    report_extension(block, ("redacted",), losses, path)
    if block.extension.get("redacted"):
        put_back("", {}, block.extra, losses, path)
        return {"reasoningContent": {"redactedContent": block.signature}}
    said = {"text": block.text, **({"signature": block.signature} if block.signature else {})}
    return {"reasoningContent": {"reasoningText": put_back(WIRE, said, block.extra, losses, path)}}


def _write_call(block: FunctionToolCall, losses: Losses, path: str) -> _Block:
    arguments = arguments_object(block.arguments, losses, path)
    use = {"toolUseId": block.call_id, "name": block.name, "input": arguments}
    return {"toolUse": put_back(WIRE, use, block.extra, losses, path)}


def _write_result(block: FunctionToolResult, losses: Losses, path: str) -> _Block:
    parts = [_write_part(part, losses, f"{path}.content[{number}]") for number, part in enumerate(block.content)]
    content = [part for part in parts if part is not None]
    result = put_back(WIRE, {"toolUseId": block.call_id, "content": content}, block.extra, losses, path)
    return {"toolResult": {**result, "status": "error"} if block.is_error else result}


def _write_part(block: Any, losses: Losses, path: str) -> _Block | None:
    """Return a part of a result: that may be JSON, but no sound."""
    if MEDIA.get(block.__class__) == "audio":
        return write_words(block, losses, path)
    if block.__class__ is UserInputText and block.extra == {WIRE: {"json": True}}:
        value = parse_json(block.text)
        if value is not None:  # else it was cut since it was read
            return {"json": value}
    return write_block(block, losses, path)


def _write_search(block: ToolSearchResult, losses: Losses, path: str) -> _Block:
    losses.add(Lost.BLOCK, "tools that were found, which are told as JSON", path)
    result = {"toolUseId": block.call_id, "content": [{"json": {"tools": msgspec.to_builtins(list(block.tools))}}]}
    return {"toolResult": put_back(WIRE, result, block.extra, losses, path)}


def _write_server_call(block: ServerToolCall, losses: Losses, path: str) -> _Block | None:
    if WIRE not in block.extra:
        return _report_block(block, losses, path)
    use = {"toolUseId": block.call_id, "name": block.name, "input": block.arguments}
    return {"toolUse": put_back(WIRE, use, block.extra, losses, path)}


def _write_server_result(block: ServerToolResult, losses: Losses, path: str) -> _Block | None:
    if WIRE not in block.extra:
        return _report_block(block, losses, path)
    result = {"toolUseId": block.call_id, "content": block.content}
    return {"toolResult": put_back(WIRE, result, block.extra, losses, path)}


def _report_block(block: Any, losses: Losses, path: str) -> None:
    """Report what Converse has no form for: what another service did on its side."""
    name = getattr(block, "name", "") or getattr(block, "server_label", "")
    losses.add(Lost.BLOCK, f"{tag_of(block)} {name}".strip(), path)


def _write_media(block: Any, losses: Losses, path: str) -> _Block:
    kind, rest = MEDIA[block.__class__], block.extra.get(WIRE)
    kept: Mapping[str, Any] = rest if is_map(rest) else {}
    in_s3 = not block.base64_data and block.url.startswith(_S3)
    data = None if in_s3 else data_of(block, "")
    if data is None and not in_s3:
        return write_words(block, losses, path)
    form = kept.get("format")
    if "format" not in kept:
        form = _format_of(kind, data.mime_type if data else block.mime_type, losses, path)
        if form is None:
            return write_words(block, losses, path)
    report_address(block, losses, path)
    if getattr(block, "detail", ""):
        losses.add(Lost.DETAIL, f"image detail {block.detail}", path)
    named = {"name": _document_name(block.name, losses, path)} if kind == "document" else {}
    made = put_back(WIRE, {"format": form, **named}, block.extra, losses, path)
    owner = {"bucketOwner": made.pop("bucketOwner")} if "bucketOwner" in made else {}
    if data is None:
        source: Any = {"s3Location": {"uri": block.url, **owner}}
    else:
        text = _text_in(data.base64) if kept.get("source") == "text" else None
        source = {"bytes": data.base64} if text is None else {"text": text}
    return {kind: {**made, "source": source}}


def _format_of(kind: str, mime: str, losses: Losses, path: str) -> str | None:
    """Return the format of a type of media; a document of any text is one of plain text."""
    mime = mime.partition(";")[0].strip().lower()
    mime = _ALIASES.get(mime, mime)
    form = _FORMATS[kind].get(mime)
    if form is None and kind == "document" and (mime.startswith("text/") or mime in _TEXT_TYPES):
        losses.add(Lost.DETAIL, f"that a file is {mime}", path)
        return "txt"
    return form


def _text_in(data: str) -> str | None:
    try:
        return a2b_base64(data).decode()
    except ValueError:
        return None


def _document_name(name: str, losses: Losses, path: str) -> str:
    """Return a name as Converse allows it."""
    stem, _, ending = name.rpartition(".")
    made = stem if stem and len(ending) <= _LONGEST_ENDING else name
    made = _NOT_IN_NAMES.sub(" ", made).strip()[:_LONGEST_NAME].strip() or "document"
    if name and made != name:
        losses.add(Lost.DETAIL, f"file name {name[:80]!r}", path)
    return made


_WRITERS: Mapping[Any, Callable[[Any, Losses, str], _Block | None]] = {
    UserInputText: _write_text,
    AssistantGenText: _write_text,
    Reasoning: _write_reasoning,
    FunctionToolCall: _write_call,
    FunctionToolResult: _write_result,
    ToolSearchResult: _write_search,
    ServerToolCall: _write_server_call,
    ServerToolResult: _write_server_result,
    Opaque: partial(unwrap, WIRE),
    **dict.fromkeys(MEDIA, _write_media),
}
