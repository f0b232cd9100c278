"""Native parts as other wires say them (content blocks, parts of Chat Completions), and anyone's objects as parts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import asdict

from suture.errors import InputError
from suture.messages import (
    AudioPart,
    FilePart,
    FrozenMap,
    ImagePart,
    Opaque,
    Part,
    ReasoningPart,
    TextPart,
    ToolSearchPart,
    UserInputAudio,
    UserInputFile,
    UserInputImage,
    UserInputText,
    UserInputVideo,
    VideoPart,
    check_plain,
)
from suture.wires._fields import is_list, is_map, word
from suture.wires._text import json_text

__all__ = [
    "MEDIA",
    "RawPart",
    "as_block",
    "as_chat_part",
    "as_part",
    "chat_content",
    "chat_media",
    "chat_result",
    "in_words",
    "only_texts",
    "part_list",
    "plain",
]

MEDIA = (ImagePart, AudioPart, VideoPart, FilePart)
"""The parts that are not text."""

_BLOCKS: Mapping[Any, Callable[..., Any]] = {
    TextPart: UserInputText,
    ImagePart: UserInputImage,
    AudioPart: UserInputAudio,
    VideoPart: UserInputVideo,
    FilePart: UserInputFile,
}
_PARTS: Mapping[Any, Callable[..., Any]] = {block: part for part, block in _BLOCKS.items()}
_NO_EXTRA: Mapping[str, Any] = FrozenMap()
_AUDIO_FORMATS = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav"}


class RawPart(Opaque):
    """A part or block of another wire in a list of native parts: `raw` is the user's own object, untouched.

    It is no value to keep or to send: only the wire that made it can write it.

    >>> RawPart({"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}}).raw["type"]
    'image_url'
    """

    data: Any

    def __post_init__(self) -> None:
        """Take anything, and leave it as it is."""

    @property
    def raw(self) -> Any:
        """The object itself."""
        return self.data

    @property
    def type(self) -> str:
        """The type that the object says it has; the empty string where it says none."""
        return word(self.data, "type") or ""

    @property
    def index(self) -> int | None:
        """Nothing: the object is another wire's."""
        return None

    @property
    def extra(self) -> Mapping[str, Any]:
        """Nothing: what is attached to the object is in the object."""
        return _NO_EXTRA


def part_list(content: Any) -> Sequence[Any]:
    """Return `content` if it is a sequence of parts, and no text; raise `InputError` where it is something else.

    >>> part_list([])
    []
    """
    if not isinstance(content, Sequence) or isinstance(content, str | bytes):
        raise InputError(f"expected a text or a list of parts, found {type(content).__name__}", path="content")
    return content  # pyright: ignore[reportUnknownVariableType]


def only_texts(parts: Sequence[Part]) -> bool:
    """Tell whether `parts` are texts with nothing attached to them, so that one text says the same.

    >>> only_texts([TextPart("a")]), only_texts([TextPart("a", extra={"origin": "cache"})])
    (True, False)
    """
    return all(type(part) is TextPart and not part.extra for part in parts)


def in_words(part: Part) -> str:
    """Return `part` as text; of media that is where they are, or what.

    >>> in_words(TextPart("42")), in_words(AudioPart(url="https://example.com/a.ogg"))
    ('42', 'https://example.com/a.ogg')
    """
    if isinstance(part, TextPart | ReasoningPart):
        return part.text
    if isinstance(part, ToolSearchPart):
        return json_text(part.tools)
    if isinstance(part, Opaque):
        return json_text(part.data)
    named = part.name if isinstance(part, FilePart) else ""
    where = "" if part.url.startswith("data:") else part.url
    return where or named or f"({part.mime_type or type(part).__struct_config__.tag})"


def as_block(part: Any) -> Any:
    """Return a part as the content block that says the same; anything else as it is.

    >>> as_block(TextPart("hi"))
    UserInputText(text='hi')
    """
    kind = _BLOCKS.get(part.__class__)
    if kind is not None:
        return kind(**asdict(part))
    if isinstance(part, ReasoningPart | ToolSearchPart):
        return UserInputText(in_words(part), index=part.index, extra=part.extra)
    return part


def as_part(block: Any) -> Part:
    """Return a content block of a result as the part that says the same; one that has none, wrapped.

    >>> as_part(UserInputText("hi"))
    TextPart(text='hi')
    """
    kind = _PARTS.get(block.__class__)
    if kind is not None:
        return kind(**asdict(block))
    return block if isinstance(block, Opaque) else RawPart(block)


def as_chat_part(part: Any) -> dict[str, Any] | None:
    """Return a native part in the form of Chat Completions; `None` where that has none.

    >>> as_chat_part(TextPart("hi"))
    {'type': 'text', 'text': 'hi'}
    >>> as_chat_part(ImagePart(base64_data="iVBO", mime_type="image/png"))
    {'type': 'image_url', 'image_url': {'url': 'data:image/png;base64,iVBO'}}
    >>> as_chat_part(AudioPart(url="https://example.com/a.ogg")) is None
    True
    """
    if isinstance(part, Opaque):
        return dict(part.data)
    if isinstance(part, TextPart | ReasoningPart | ToolSearchPart):
        return {"type": "text", "text": in_words(part)}
    if isinstance(part, ImagePart):
        detail = {"detail": part.detail} if part.detail else {}
        return {"type": "image_url", "image_url": {"url": part.url or _data_url(part, "image/png"), **detail}}
    if isinstance(part, VideoPart):
        return {"type": "video_url", "video_url": {"url": part.url or _data_url(part, "video/mp4")}}
    data = _data(part) if isinstance(part, AudioPart | FilePart) else None
    if data is None:
        return None
    if isinstance(part, AudioPart):
        spoken = data.mime_type.partition("/")[2].partition(";")[0]
        return {
            "type": "input_audio",
            "input_audio": {"data": data.base64, "format": _AUDIO_FORMATS.get(spoken, spoken) or "wav"},
        }
    name = {"filename": part.name} if part.name else {}
    return {"type": "file", "file": {**name, "file_data": data.url("application/octet-stream")}}


def chat_content(content: Any) -> list[Any]:
    """Return parts in the form of Chat Completions; those in that form already, as dicts, stay as they are.

    >>> chat_content([TextPart("hi"), {"type": "text", "text": "there"}])
    [{'type': 'text', 'text': 'hi'}, {'type': 'text', 'text': 'there'}]
    """
    said: list[Any] = []
    for place, part in enumerate(part_list(content)):
        form = part if is_map(part) else as_chat_part(part)
        if form is None:
            held = " without base64_data" if isinstance(part, MEDIA) else ""
            raise InputError(f"{type(part).__name__}{held} has no form on openai-chat", path=f"content[{place}]")
        said.append(form)
    return said


def chat_media(part: Part) -> dict[str, Any] | None:
    """Return a part that is not text in the form of Chat Completions; `None` where that has none, and of all others.

    >>> chat_media(TextPart("hi")) is None
    True
    """
    return as_chat_part(part) if isinstance(part, MEDIA) else None


def chat_result(parts: Sequence[Part]) -> str | list[Any]:
    """Return what a tool gave in the form of Chat Completions: one text, or parts where there are media.

    >>> chat_result([TextPart("3 pages")])
    '3 pages'
    """
    forms = [chat_media(part) for part in parts]
    if not any(forms):
        return "\n".join([in_words(part) for part in parts])
    return [form or {"type": "text", "text": in_words(part)} for form, part in zip(forms, parts, strict=True)]


def plain(thing: Any) -> Any:
    """Return `thing` as plain dicts and lists, itself if it is that; raise `InputError` where it cannot be.

    >>> from types import SimpleNamespace
    >>> plain(SimpleNamespace(role="user", content=[SimpleNamespace(type="text", text="hi")]))
    {'role': 'user', 'content': [{'type': 'text', 'text': 'hi'}]}
    """
    try:
        check_plain(thing)
    except InputError:
        check_plain(thing, foreign=True)
        try:
            thing = _rebuilt(thing, {})
        except RecursionError:
            raise InputError("nested too deeply") from None
        check_plain(thing)
    return thing


def _rebuilt(thing: Any, met: dict[int, tuple[Any, Any]]) -> Any:
    """Return `thing` with each object in it made a dict; one that holds itself stays, to be refused."""
    if isinstance(thing, str):
        return str.__str__(thing)
    if thing is None or isinstance(thing, int | float | bytes | type):
        return thing
    if id(thing) not in met:
        met[id(thing)] = (thing, thing)
        met[id(thing)] = (thing, _taken_apart(thing, met))
    return met[id(thing)][1]


def _taken_apart(thing: Any, met: dict[int, tuple[Any, Any]]) -> Any:
    if is_list(thing):
        return [_rebuilt(value, met) for value in thing]
    if is_map(thing):
        return {key: _rebuilt(value, met) for key, value in thing.items()}
    dump = getattr(thing, "model_dump", None)
    if dump is not None:
        return dump(exclude_unset=True, mode="json", warnings=False)
    fields: dict[str, Any] = getattr(thing, "__dict__", {})
    return {name: _rebuilt(value, met) for name, value in fields.items() if not name.startswith("_")} or thing


class _Data(NamedTuple):
    """What a part holds itself, rather than where it is."""

    mime_type: str
    base64: str

    def url(self, default: str) -> str:
        return f"data:{self.mime_type or default};base64,{self.base64}"


def _data(part: Any) -> _Data | None:
    if part.base64_data:
        return _Data(part.mime_type, part.base64_data)
    head, found, data = part.url.partition(";base64,")
    if not found or not head.startswith("data:"):
        return None
    return _Data(head.removeprefix("data:") or part.mime_type, data)


def _data_url(part: Any, default: str) -> str:
    return _Data(part.mime_type, part.base64_data).url(default)
