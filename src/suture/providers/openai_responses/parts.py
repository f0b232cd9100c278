"""The parts of a message, or of the output of a tool, from and into blocks."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from suture.codecs._contents import Data, data_of, media_in_words, report_address, split_data_url
from suture.codecs._kept import unknown, unwrap
from suture.codecs._values import Losses, Lost
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
from suture.providers.openai_responses.fields import (
    PART,
    WIRE,
    beside,
    list_in,
    map_of,
    own_fields,
    own_type,
    returned,
    tag_of,
    text_in,
)

__all__ = ["is_plain_text", "read_parts", "told", "write_output", "write_part"]

_TEXTS = ("input_text", "output_text", "text")
_REFUSAL = "refusal"


def read_parts(holder: Mapping[str, Any], name: str = "content", *, made: bool = False) -> list[Any]:
    """Return the blocks in `holder[name]`: of the model's making, or what it is given.

    >>> read_parts({"content": [{"type": "input_text", "text": "hi"}]})
    [UserInputText(text='hi')]
    """
    content = holder.get(name)
    if isinstance(content, str):
        return [AssistantGenText(content) if made else UserInputText(content)]
    blocks: list[Any] = []
    for place, part in enumerate(list_in(holder, name)):
        try:
            blocks.append(_read(part, made=made))
        except InputError as error:
            raise InputError(error.reason, path=f"{name}[{place}].{error.path}") from None
    return blocks


def write_part(block: Any, losses: Losses, path: str, *, made: bool = False) -> dict[str, Any] | None:
    """Return `block` as a part of a message: one of the model's (`made`), or one for it; `None` where it has no form.

    >>> write_part(UserInputText("hi"), Losses(), "content_blocks[0]")
    {'type': 'input_text', 'text': 'hi'}
    """
    if isinstance(block, Opaque):
        return unwrap(WIRE, block, losses, path)
    if isinstance(block, UserInputText | AssistantGenText):
        return _write_text(block, losses, path, made=made)
    writer = None if made else _WRITERS.get(type(block))
    part = None if writer is None else writer(block, losses, path)
    if part is not None:
        return part
    losses.add(Lost.MEDIA, f"{tag_of(block)} {media_in_words(block)[:60]}", path)
    text = {"type": _usual(made=made), "text": media_in_words(block)}
    beyond = {name: value for name, value in block.extra.items() if name != WIRE or not isinstance(value, Mapping)}
    return returned(text, beyond, losses, path)


def write_output(content: Sequence[Any], losses: Losses, path: str) -> str | list[dict[str, Any]]:
    """Return what a tool gave: as text if it is one, else as parts.

    >>> write_output([UserInputText("42")], Losses(), "content")
    '42'
    """
    parts = [write_part(block, losses, f"{path}[{place}]") for place, block in enumerate(content)]
    written = [part for part in parts if part is not None]
    if not written:
        return ""
    return written[0]["text"] if len(written) == 1 and is_plain_text(written[0]) else written


def told(content: Sequence[Any], losses: Losses, path: str) -> str:
    r"""Return what a tool gave as one text, for outputs that hold nothing else; media are told in words.

    >>> told([UserInputText("a"), UserInputText("b")], Losses(), "content")
    'a\nb'
    """
    texts: list[str] = []
    for place, block in enumerate(content):
        where = f"{path}[{place}]"
        part = write_part(block, losses, where, made=True)
        if part is not None and "text" in part:
            texts.append(str(part["text"]))
        elif part is not None:
            losses.add(Lost.BLOCK, f"a part of type {part.get('type')}", where)
    return "\n".join(texts)


def is_plain_text(part: Mapping[str, Any]) -> bool:
    """Tell whether a part is a text and nothing else, so that a string says the same.

    >>> is_plain_text({"type": "input_text", "text": "hi"})
    True
    """
    return set(part) == {"type", "text"} and part["type"] in {"input_text", "output_text"}


# Reading


def _read(part: Mapping[str, Any], *, made: bool) -> Any:
    kind = part.get("type")
    if not isinstance(kind, str):
        raise InputError("expected a type", path="type")
    if kind in _TEXTS:
        known = ("type", "text") if kind == _usual(made=made) else ("text",)
        block = AssistantGenText if made else UserInputText
        return block(text_in(part, "text"), extra=beside(part, known))
    if kind == _REFUSAL and made:
        extra = beside(part, ("type", "refusal"))
        return AssistantGenText(text_in(part, "refusal"), extension={_REFUSAL: True}, extra=extra)
    reader = None if made else _READERS.get(kind)
    return _unknown(part) if reader is None else reader(part)


def _unknown(part: Mapping[str, Any]) -> Opaque:
    """Return an unknown part, marked as one."""
    return Opaque({**unknown(WIRE, part).data, "extra": {WIRE: {PART: True}}})


def _image(part: Mapping[str, Any]) -> UserInputImage:
    extra = beside(part, ("type", "image_url", "detail"))
    return UserInputImage(**_media(text_in(part, "image_url")), detail=text_in(part, "detail"), extra=extra)


def _file(part: Mapping[str, Any]) -> UserInputFile:
    data, url = text_in(part, "file_data"), text_in(part, "file_url")
    if not data:
        extra = beside(part, ("type", "filename", "file_data", "file_url"))
        return UserInputFile(url=url, name=text_in(part, "filename"), extra=extra)
    media: dict[str, Any] = _media(data) if data.startswith("data:") else {"base64_data": data}
    return UserInputFile(**media, name=text_in(part, "filename"), extra=beside(part, ("type", "filename", "file_data")))


def _audio(part: Mapping[str, Any]) -> Any:
    held = map_of(part.get("input_audio"), "input_audio")
    if set(held) != {"data", "format"}:
        return _unknown(part)
    data, form = text_in(held, "data"), text_in(held, "format")
    return UserInputAudio(base64_data=data, mime_type=f"audio/{form}", extra=beside(part, ("input_audio",)))


def _media(url: str) -> dict[str, Any]:
    """Return what an address holds if it holds it itself and says what that is, else the address."""
    data = split_data_url(url, "")
    if data is None or not data.mime_type:
        return {"url": url}
    return {"base64_data": data.base64, "mime_type": data.mime_type}


_READERS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "input_image": _image,
    "input_file": _file,
    "input_audio": _audio,
}


# Writing


def _usual(*, made: bool) -> str:
    return "output_text" if made else "input_text"


def _write_text(block: Any, losses: Losses, path: str, *, made: bool) -> dict[str, Any]:
    extension: Mapping[str, Any] = getattr(block, "extension", {})
    refused = made and extension.get(_REFUSAL) is True
    for name in extension:
        if name != _REFUSAL:
            losses.add(Lost.FIELD, f"{name} of a text", path)
    said = {"type": _REFUSAL, _REFUSAL: block.text} if refused else {"type": _usual(made=made), "text": block.text}
    return returned(said, block.extra, losses, path)


def _write_image(block: Any, losses: Losses, path: str) -> dict[str, Any] | None:
    address = Data(block.mime_type or "image/png", block.base64_data).url if block.base64_data else block.url
    if not address and "file_id" not in own_fields(block.extra):
        return None
    part: dict[str, Any] = {"type": "input_image"}
    if address:
        part["image_url"] = address
    if getattr(block, "detail", ""):
        part["detail"] = block.detail
    _report_beside(block, losses, path)
    return returned(part, block.extra, losses, path)


def _write_file(block: UserInputFile, losses: Losses, path: str) -> dict[str, Any] | None:
    part: dict[str, Any] = {"type": "input_file"}
    data = Data(block.mime_type, block.base64_data)
    if data.base64 or block.url.startswith("data:"):
        part["file_data"] = (data.url if data.mime_type else data.base64) if data.base64 else block.url
    elif block.url:
        part["file_url"] = block.url
    elif "file_id" not in own_fields(block.extra):
        return None
    if block.name and "file_data" in part:
        part["filename"] = block.name
    elif block.name:  # the API refuses a name beside an address
        losses.add(Lost.DETAIL, f"file name {block.name!r}", path)
    _report_beside(block, losses, path)
    return returned(part, block.extra, losses, path)


def _write_audio(block: UserInputAudio, losses: Losses, path: str) -> dict[str, Any] | None:
    """Return a sound that came from here; another has no form."""
    data = data_of(block)
    if data is None or own_type(block.extra) != "input_audio":
        return None
    report_address(block, losses, path)
    held = {"data": data.base64, "format": data.mime_type.partition("/")[2]}
    return returned({"type": "input_audio", "input_audio": held}, block.extra, losses, path)


def _report_beside(block: Any, losses: Losses, path: str) -> None:
    """Report what media say beside the one thing that is written: where they are as well, or what they are."""
    report_address(block, losses, path)
    if block.mime_type and not block.base64_data:
        losses.add(Lost.DETAIL, f"media type {block.mime_type}", path)


_WRITERS: Mapping[Any, Callable[[Any, Losses, str], dict[str, Any] | None]] = {
    UserInputImage: _write_image,
    AssistantGenImage: _write_image,
    UserInputFile: _write_file,
    UserInputAudio: _write_audio,
}
