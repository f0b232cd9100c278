"""The content of messages: native parts, the form of a result's content on each wire, and the words a model reads."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import asdict

from suture import messages as native
from suture.errors import InputError
from suture.wires.fields import get, is_list, is_map, json_text, put, word
from suture.wires.values import NO_EXTRA

_KINDS: Mapping[str, tuple[Any, Any, Any]] = {
    "text": (native.TextPart, native.UserInputText, native.AssistantGenText),
    "image": (native.ImagePart, native.UserInputImage, native.AssistantGenImage),
    "audio": (native.AudioPart, native.UserInputAudio, native.AssistantGenAudio),
    "video": (native.VideoPart, native.UserInputVideo, native.AssistantGenVideo),
    "file": (native.FilePart, native.UserInputFile, None),
}
"""The native types for text and each medium: a part, a block for the model, and a block that the model made."""
MEDIA: Mapping[Any, str] = {
    kind: name for name, kinds in _KINDS.items() if name != "text" for kind in kinds if kind is not None
}
"""The medium of each type of part or block for media."""
_BEGINNINGS = {
    "/9j/": "image/jpeg",
    "iVBO": "image/png",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
    "JVBERi": "application/pdf",
}
"""How the base64 of images and documents begins, by their type."""
USER_BLOCKS: Mapping[Any, Callable[..., Any]] = {part: block for part, block, _ in _KINDS.values()}
MODEL_BLOCKS: Mapping[Any, Callable[..., Any]] = {part: made for part, _, made in _KINDS.values() if made}
MEDIA_PARTS = (native.ImagePart, native.AudioPart, native.VideoPart, native.FilePart)
_PARTS: Mapping[Any, Callable[..., Any]] = {block: part for part, block in USER_BLOCKS.items()}


class RawPart(native.Opaque):
    """A part or block of another wire in a list of native parts; `raw` is the user's object, unchanged.

    It must not be stored or sent: only the wire that made it can write it.

    >>> RawPart({"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}}).raw["type"]
    'image_url'
    """

    data: Any

    def __post_init__(self) -> None:
        """Accept any object, without the checks of `Opaque`."""

    @property
    def raw(self) -> Any:
        """The user's object."""
        return self.data

    @property
    def type(self) -> str:
        """The type in the object, or an empty text."""
        return word(self.data, "type") or ""

    @property
    def index(self) -> int | None:
        """Always `None`, because the object has another wire's form."""
        return None

    @property
    def extra(self) -> Mapping[str, Any]:
        """Always empty, because any extra data are in the object."""
        return NO_EXTRA


def part_list(content: Any) -> Sequence[Any]:
    """Return `content` if it is a sequence of parts; raise `InputError` if it is a text or something else."""
    if not isinstance(content, Sequence) or isinstance(content, str | bytes):
        raise InputError(f"expected a text or a list of parts, found {type(content).__name__}", path="content")
    return content  # pyright: ignore[reportUnknownVariableType]


def in_words(part: native.Part) -> str:
    """Return `part` as text; for media, their URL, name or type."""
    if isinstance(part, native.TextPart | native.ReasoningPart):
        return part.text
    if isinstance(part, native.ToolSearchPart):
        return json_text(part.tools)
    if isinstance(part, native.Opaque):
        return json_text(part.data)
    return media_in_words(part, str(part.__struct_config__.tag))


class Data(Struct, frozen=True):
    """The data of media that a block holds itself."""

    mime_type: str
    base64: str

    @property
    def url(self) -> str:
        """The same as a data URL."""
        return f"data:{self.mime_type};base64,{self.base64}"


def file_name(media: Any) -> str:
    """Return the name of a file, or one in its place: OpenAI refuses a file by value that has none.

    400: "Missing required parameter: 'messages[1].content[1].file.file_id'" (openai-agents-python#1513), of Responses
    "… 'input[1].content[1]'" (laravel/ai#321).

    >>> from suture.messages import FilePart
    >>> file_name(FilePart(base64_data="JVBE", mime_type="application/pdf")), file_name(FilePart(name="tides.txt"))
    ('document.pdf', 'tides.txt')
    """
    is_pdf = media.mime_type == "application/pdf" or media.url.startswith("data:application/pdf")
    return media.name or ("document.pdf" if is_pdf else "document")


def data_of(block: Any, default: str = "application/octet-stream") -> Data | None:
    """Return the data in a block of media; `None` if it has only a URL.

    An image or a file without a type has that of its first bytes.

    >>> from suture.messages import ImagePart
    >>> data_of(ImagePart(base64_data="/9j/4AAQ"))
    Data(mime_type='image/jpeg', base64='/9j/4AAQ')
    """
    if block.base64_data:
        kind = block.mime_type
        if not kind and MEDIA.get(block.__class__) in {"image", "file"}:
            kind = next((kind for start, kind in _BEGINNINGS.items() if block.base64_data.startswith(start)), "")
        return Data(kind or default, block.base64_data)
    return split_data_url(block.url, block.mime_type or default)


def split_data_url(url: str, default: str = "application/octet-stream") -> Data | None:
    """Return the data in a data URL; `None` for any other URL."""
    head, found, data = url.partition(";base64,")
    if not found or not head.startswith("data:"):
        return None
    return Data(head.removeprefix("data:") or default, data)


def media_in_words(block: Any, default: str = "media") -> str:
    """Return the URL, name or type of media, as a text for formats that cannot hold them."""
    where = "" if block.url.startswith("data:") else block.url
    return where or getattr(block, "name", "") or f"({block.mime_type or default})"


def as_block(part: Any) -> Any:
    """Return a part as the content block for it; anything else as it is."""
    kind = USER_BLOCKS.get(part.__class__)
    if kind is not None:
        return kind(**asdict(part))
    if isinstance(part, native.ReasoningPart | native.ToolSearchPart):
        return native.UserInputText(in_words(part), index=part.index, extra=part.extra)
    return part


def as_part(block: Any) -> native.Part:
    """Return a content block of a result as the part for it; if there is none, as a `RawPart`."""
    kind = _PARTS.get(block.__class__)
    if kind is not None:
        return kind(**asdict(block))
    return block if isinstance(block, native.Opaque) else RawPart(block)


def plain(thing: Any) -> Any:
    """Return `thing` as plain dicts and lists, the same object if it is plain; raise `InputError` if it cannot be.

    >>> from types import SimpleNamespace
    >>> plain(SimpleNamespace(role="user", content=[SimpleNamespace(type="text", text="hi")]))
    {'role': 'user', 'content': [{'type': 'text', 'text': 'hi'}]}
    """
    try:
        native.check_plain(thing)
    except InputError:
        native.check_plain(thing, foreign=True)
        try:
            thing = _rebuild(thing, {})
        except RecursionError:
            raise InputError("nested too deeply") from None
        native.check_plain(thing)
    return thing


def _rebuild(thing: Any, met: dict[int, tuple[Any, Any]]) -> Any:
    """Return `thing` with each object in it as a dict; one that contains itself stays, so that it is refused later."""
    if isinstance(thing, str):
        return str.__str__(thing)
    if thing is None or isinstance(thing, int | float | bytes | type):
        return thing
    if id(thing) not in met:
        met[id(thing)] = (thing, thing)
        met[id(thing)] = (thing, _take_apart(thing, met))
    return met[id(thing)][1]


def _take_apart(thing: Any, met: dict[int, tuple[Any, Any]]) -> Any:
    if is_list(thing):
        return [_rebuild(value, met) for value in thing]
    if is_map(thing):
        return {key: _rebuild(value, met) for key, value in thing.items()}
    dump = getattr(thing, "model_dump", None)
    if dump is not None:
        return dump(exclude_unset=True, mode="json", warnings=False)
    fields: dict[str, Any] = getattr(thing, "__dict__", {})
    return {name: _rebuild(value, met) for name, value in fields.items() if not name.startswith("_")} or thing


class Form(Struct, frozen=True):
    """How a wire writes the content of a result.

    `find` returns the text of a block, or `None` if it is no text. `make` returns the block for a text. `media` returns
    a native part in the wire's form, if it has one. `lone`: content may be a text without a block.

    `join` keeps as much of the old content as it can: content that says the same stays the same object, and a text that
    was changed keeps its block.

    >>> from suture.messages import TextPart
    >>> form = Form(typed_text("text"), text_block("text"))
    >>> form.split([{"type": "text", "text": "hi"}, {"type": "image", "source": {}}])
    (TextPart(text='hi'), RawPart(data={'type': 'image', 'source': {}}))
    >>> form.join([TextPart("bye")], [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}])
    [{'type': 'text', 'text': 'bye', 'cache_control': {'type': 'ephemeral'}}]
    """

    find: Callable[[Any], str | None]
    make: Callable[[str], Mapping[str, Any]]
    media: Callable[[native.Part], Any] = lambda part: None  # noqa: ARG005 - no medium has a form
    lone: bool = True

    def write_text(self, text: str) -> Any:
        """Return content with just `text`."""
        return text if self.lone else [self.make(text)]

    def split(self, content: Any) -> tuple[native.Part, ...] | None:
        """Return content as parts: native ones for texts, `RawPart`s for others; `None` if it is no list of blocks."""
        if content is None or isinstance(content, str):
            return (native.TextPart(content),) if content else ()
        if not is_list(content):
            return None
        texts = [(block, self.find(block)) for block in content]
        return tuple([RawPart(block) if text is None else native.TextPart(text) for block, text in texts])

    def join(self, parts: Sequence[native.Part], content: Any) -> Any:
        """Return the content for `parts`, which replaces `content`."""
        if same_parts(parts, self.split(content)):
            return content
        # If there are as many texts as before, each keeps its block.
        old = [block for block in content if self.find(block) is not None] if is_list(content) else []
        own = iter(old if len(old) == sum(isinstance(part, native.TextPart) for part in parts) else ())
        blocks = [self._write(part, next(own, None) if isinstance(part, native.TextPart) else None) for part in parts]
        if self.lone and (len(blocks) < 2 or not is_list(content)):
            texts = [self.find(block) for block in blocks]
            if all(text is not None and block == self.make(text) for text, block in zip(texts, blocks, strict=True)):
                return "\n".join([text for text in texts if text])
        return blocks

    def _write(self, part: native.Part, own: Any) -> Any:
        """Return the block for `part`, or its `own` block with the new text."""
        if isinstance(part, RawPart):
            return part.raw
        if isinstance(part, native.TextPart) and own is not None:
            if self.find(own) == part.text:
                return own
            if get(own, "text") is not None:
                return put(own, text=part.text)
        return self.media(part) or self.make(in_words(part))


def typed_text(*types: str) -> Callable[[Any], str | None]:
    """Return a function that returns the text of a block of one of these types.

    >>> typed_text("text")({"type": "text", "text": "hi"})
    'hi'
    """

    def find(block: Any) -> str | None:
        text = get(block, "text") if word(block, "type") in types else None
        return text if isinstance(text, str) else None

    return find


def text_block(type: str) -> Callable[[str], dict[str, Any]]:  # noqa: A002 - the field's name
    """Return a function that makes a block of this type from a text.

    >>> text_block("input_text")("hi")
    {'type': 'input_text', 'text': 'hi'}
    """

    def make(text: str) -> dict[str, Any]:
        return {"type": type, "text": text}

    return make


def same_parts(parts: Sequence[native.Part], others: Sequence[native.Part] | None) -> bool:
    """Return whether both are the same parts: wrapped objects must be identical, others equal."""
    if others is None or len(parts) != len(others):
        return False
    return all(
        one.raw is other.raw if isinstance(one, RawPart) and isinstance(other, RawPart) else one == other
        for one, other in zip(parts, others, strict=True)
    )


_LONG = 256
_DEEPEST = 100
_DATA_URL = r"data:(?:[\w.+-]+/[\w.+-]+)?(?:;[\w=.+-]+)*,"
# One line, or lines as MIME and PEM wrap them. Possessive, so that any text takes only one pass.
_BASE64 = r"(?:[A-Za-z0-9+/_-]{60,}+\r?+\n?+)*+[A-Za-z0-9+/_-]*+={0,2}\s*+"
_SEALED = re.compile("signature|encrypted|redacted", re.IGNORECASE)
_OWN = frozenset(("extra", "index"))
_NOTHING: Any = object()


class Words(NamedTuple):
    """What a model reads in one message: its role and its texts in order, and the number of its media.

    >>> from suture.wires import get_wire
    >>> get_wire("openai-chat").words({"role": "user", "content": "hi"})
    Words(texts=('user', 'hi'), media=0)
    """

    texts: tuple[str, ...]
    media: int = 0


class Telling:
    """Collects the words of a message.

    A value of unknown shape is told as JSON, without what is not readable: payloads (base64, data URLs, bytes) count as
    media, signatures and encrypted content are left out.

    >>> telling = Telling("user")
    >>> telling.say("hi")
    >>> telling.show({"type": "hologram", "beam": 7, "signature": "x"})
    >>> telling.words()
    Words(texts=('user', 'hi', '{"type":"hologram","beam":7}'), media=0)
    """

    __slots__ = ("media", "texts")

    def __init__(self, role: str) -> None:
        self.texts = [role]
        self.media = 0

    def words(self) -> Words:
        """Return what was collected."""
        return Words(tuple(self.texts), self.media)

    def say(self, text: Any) -> None:
        """Tell a text; show any other value that is in its place."""
        if isinstance(text, str):
            if text:
                self.texts.append(text)
        elif text is not None:
            self.show(text)

    def write(self, arguments: Any) -> None:
        """Tell the arguments of a call in full, because the model wrote them."""
        if arguments is not None:
            self.say(arguments if isinstance(arguments, str) else json_text(arguments))

    def tell(self, part: native.Part) -> None:
        """Tell a native part."""
        if isinstance(part, native.TextPart | native.ReasoningPart):
            self.say(part.text)
        elif isinstance(part, MEDIA_PARTS):
            self.media += 1
        else:
            self.show(part.tools if isinstance(part, native.ToolSearchPart) else part)

    def show(self, value: Any) -> None:
        """Tell a value of any shape as compact JSON, without what is not readable."""
        kept = self._readable(value, set())
        if kept is not _NOTHING:
            self.texts.append(json_text(kept))

    def _readable(self, value: Any, above: set[int]) -> Any:
        """Return the readable content of `value` as dicts and lists; `above` has the ids of containers around it."""
        if value is None or isinstance(value, int | float):
            return value
        if isinstance(value, str):
            is_payload = (value.startswith("data:") and re.match(_DATA_URL, value)) or (
                len(value) >= _LONG and re.fullmatch(_BASE64, value)
            )
        else:
            is_payload = isinstance(value, bytes | bytearray | memoryview)
        if is_payload:
            self.media += 1
            return _NOTHING
        inside = None if isinstance(value, str) else _open(value)
        if inside is None:
            return value
        if id(value) in above or len(above) > _DEEPEST:
            return _NOTHING
        above.add(id(value))
        if isinstance(inside, Mapping):
            kept = {
                str(name): self._readable(held, above) for name, held in inside.items() if not _SEALED.search(str(name))
            }
            found: Any = {name: held for name, held in kept.items() if held is not _NOTHING}
        else:
            found = [held for held in [self._readable(item, above) for item in inside] if held is not _NOTHING]
        above.discard(id(value))
        return found


def _open(value: Any) -> Mapping[Any, Any] | Sequence[Any] | None:
    """Return the content of a container: fields by name, or items; `None` if `value` is no container."""
    if is_list(value) or is_map(value):
        return value
    if isinstance(value, native.Opaque):
        return _open(value.data)
    if isinstance(value, Struct):
        tag, field = value.__struct_config__.tag, value.__struct_config__.tag_field
        fields = {name: getattr(value, name) for name in value.__struct_fields__ if name not in _OWN}
        held = {name: inside for name, inside in fields.items() if inside is not None and inside not in ("", (), {})}
        return {field: tag, **held} if field else held
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(exclude_none=True, warnings=False)
    fields = getattr(value, "__dict__", {})
    return {name: inside for name, inside in fields.items() if not name.startswith("_")} or None
