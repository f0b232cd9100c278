"""The contents of messages: native parts, the content of results on each wire, and the words that a model reads."""

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
"""The native classes of text and media: the part, the block for the model, and the block that the model made."""
MEDIA: Mapping[Any, str] = {
    kind: name for name, kinds in _KINDS.items() if name != "text" for kind in kinds if kind is not None
}
"""The medium that each part or block holds that is not text."""
USER_BLOCKS: Mapping[Any, Callable[..., Any]] = {part: block for part, block, _ in _KINDS.values()}
MODEL_BLOCKS: Mapping[Any, Callable[..., Any]] = {part: made for part, _, made in _KINDS.values() if made}
MEDIA_PARTS = (native.ImagePart, native.AudioPart, native.VideoPart, native.FilePart)
_PARTS: Mapping[Any, Callable[..., Any]] = {block: part for part, block in USER_BLOCKS.items()}


class RawPart(native.Opaque):
    """A part or block of another wire in a list of native parts: `raw` is the user's own object, untouched.

    It cannot be stored or sent: only the wire that made it can write it.

    >>> RawPart({"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}}).raw["type"]
    'image_url'
    """

    data: Any

    def __post_init__(self) -> None:
        """Accept any object unchecked."""

    @property
    def raw(self) -> Any:
        """The object itself."""
        return self.data

    @property
    def type(self) -> str:
        """The `type` of the object; the empty string if it has none."""
        return word(self.data, "type") or ""

    @property
    def index(self) -> int | None:
        """`None`: the object is of another wire."""
        return None

    @property
    def extra(self) -> Mapping[str, Any]:
        """Empty: whatever is attached to the object is inside it."""
        return NO_EXTRA


def part_list(content: Any) -> Sequence[Any]:
    """Return `content` if it is a sequence of parts; raise `InputError` for anything else, such as a text."""
    if not isinstance(content, Sequence) or isinstance(content, str | bytes):
        raise InputError(f"expected a text or a list of parts, found {type(content).__name__}", path="content")
    return content  # pyright: ignore[reportUnknownVariableType]


def in_words(part: native.Part) -> str:
    """Return `part` as text; for media, their address or what they are."""
    if isinstance(part, native.TextPart | native.ReasoningPart):
        return part.text
    if isinstance(part, native.ToolSearchPart):
        return json_text(part.tools)
    if isinstance(part, native.Opaque):
        return json_text(part.data)
    return media_in_words(part, str(part.__struct_config__.tag))


class Data(Struct, frozen=True):
    """Media that are in a block themselves, rather than their address."""

    mime_type: str
    base64: str

    @property
    def url(self) -> str:
        """The media as a data URL."""
        return f"data:{self.mime_type};base64,{self.base64}"


def data_of(block: Any, default: str = "application/octet-stream") -> Data | None:
    """Return the data of a media block; `None` if it only has an address."""
    if block.base64_data:
        return Data(block.mime_type or default, block.base64_data)
    return split_data_url(block.url, block.mime_type or default)


def split_data_url(url: str, default: str = "application/octet-stream") -> Data | None:
    """Return the data of a data URL; `None` for any other URL."""
    head, found, data = url.partition(";base64,")
    if not found or not head.startswith("data:"):
        return None
    return Data(head.removeprefix("data:") or default, data)


def media_in_words(block: Any, default: str = "media") -> str:
    """Return the address of media, or what they are: a text for formats that cannot hold them."""
    where = "" if block.url.startswith("data:") else block.url
    return where or getattr(block, "name", "") or f"({block.mime_type or default})"


def as_block(part: Any) -> Any:
    """Return a part as the equivalent content block; anything else unchanged."""
    kind = USER_BLOCKS.get(part.__class__)
    if kind is not None:
        return kind(**asdict(part))
    if isinstance(part, native.ReasoningPart | native.ToolSearchPart):
        return native.UserInputText(in_words(part), index=part.index, extra=part.extra)
    return part


def as_part(block: Any) -> native.Part:
    """Return a content block of a result as the equivalent part, or wrapped if there is none."""
    kind = _PARTS.get(block.__class__)
    if kind is not None:
        return kind(**asdict(block))
    return block if isinstance(block, native.Opaque) else RawPart(block)


def plain(thing: Any) -> Any:
    """Return `thing` as plain dicts and lists (the same object if it is plain); raise `InputError` if that fails.

    >>> from types import SimpleNamespace
    >>> plain(SimpleNamespace(role="user", content=[SimpleNamespace(type="text", text="hi")]))
    {'role': 'user', 'content': [{'type': 'text', 'text': 'hi'}]}
    """
    try:
        native.check_plain(thing)
    except InputError:
        native.check_plain(thing, foreign=True)
        try:
            thing = _rebuilt(thing, {})
        except RecursionError:
            raise InputError("nested too deeply") from None
        native.check_plain(thing)
    return thing


def _rebuilt(thing: Any, met: dict[int, tuple[Any, Any]]) -> Any:
    """Return `thing` with each object in it turned into a dict; a cyclic one is kept, to be refused later."""
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


class Form(Struct, frozen=True):
    """How a wire writes the content of a result.

    `find` returns the text of a block, `None` if it is not a text block. `make` returns the block for a text. `media`
    returns a native part in the wire's form, if there is one. `lone`: content may be a plain text without a block.

    Content is changed as little as possible: equal content stays the same object, and a changed text keeps the other
    fields of its block.

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
        """Return content that is only `text`."""
        return text if self.lone else [self.make(text)]

    def split(self, content: Any) -> tuple[native.Part, ...] | None:
        """Return content as parts: texts as native ones, other blocks unchanged; `None` if it is no list of blocks."""
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
        """Return the block for `part`, based on its `own` block if it has one."""
        if isinstance(part, RawPart):
            return part.raw
        if isinstance(part, native.TextPart) and own is not None:
            if self.find(own) == part.text:
                return own
            if get(own, "text") is not None:
                return put(own, text=part.text)
        return self.media(part) or self.make(in_words(part))


def typed_text(*types: str) -> Callable[[Any], str | None]:
    """Return a function that finds the text in a block of one of these types.

    >>> typed_text("text")({"type": "text", "text": "hi"})
    'hi'
    """

    def find(block: Any) -> str | None:
        text = get(block, "text") if word(block, "type") in types else None
        return text if isinstance(text, str) else None

    return find


def text_block(type: str) -> Callable[[str], dict[str, Any]]:  # noqa: A002 - the field's name
    """Return a function that turns a text into a block of this type.

    >>> text_block("input_text")("hi")
    {'type': 'input_text', 'text': 'hi'}
    """

    def make(text: str) -> dict[str, Any]:
        return {"type": type, "text": text}

    return make


def same_parts(parts: Sequence[native.Part], others: Sequence[native.Part] | None) -> bool:
    """Return whether the parts are the same: wrapped objects identical, all others equal."""
    if others is None or len(parts) != len(others):
        return False
    return all(
        one.raw is other.raw if isinstance(one, RawPart) and isinstance(other, RawPart) else one == other
        for one, other in zip(parts, others, strict=True)
    )


_LONG = 256
_DEEPEST = 100
_DATA_URL = r"data:(?:[\w.+-]+/[\w.+-]+)?(?:;[\w=.+-]+)*,"
# One run, or lines wrapped as in MIME and PEM. Possessive quantifiers: one pass, whatever the text.
_BASE64 = r"(?:[A-Za-z0-9+/_-]{60,}+\r?+\n?+)*+[A-Za-z0-9+/_-]*+={0,2}\s*+"
_SEALED = re.compile("signature|encrypted|redacted", re.IGNORECASE)
_OWN = frozenset(("extra", "index"))
_NOTHING: Any = object()


class Words(NamedTuple):
    """What a model reads of one message: its role, its texts in order, and how many media it has.

    >>> from suture.wires import get_wire
    >>> get_wire("openai-chat").words({"role": "user", "content": "hi"})
    Words(texts=('user', 'hi'), media=0)
    """

    texts: tuple[str, ...]
    media: int = 0


class Telling:
    """Collects the words of a message.

    An unknown shape is added as JSON, without its parts that are not text: payloads (base64, data URLs, bytes) count
    as media; signatures and encrypted content do not count.

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
        """Return the words collected so far."""
        return Words(tuple(self.texts), self.media)

    def say(self, text: Any) -> None:
        """Add a text; a value that is not a text is added as JSON."""
        if isinstance(text, str):
            if text:
                self.texts.append(text)
        elif text is not None:
            self.show(text)

    def write(self, arguments: Any) -> None:
        """Add all arguments of a call, since the model wrote them."""
        if arguments is not None:
            self.say(arguments if isinstance(arguments, str) else json_text(arguments))

    def tell(self, part: native.Part) -> None:
        """Add the words of a native part."""
        if isinstance(part, native.TextPart | native.ReasoningPart):
            self.say(part.text)
        elif isinstance(part, MEDIA_PARTS):
            self.media += 1
        else:
            self.show(part.tools if isinstance(part, native.ToolSearchPart) else part)

    def show(self, value: Any) -> None:
        """Add a value of any shape as compact JSON, without payloads and signatures."""
        kept = self._readable(value, set())
        if kept is not _NOTHING:
            self.texts.append(json_text(kept))

    def _readable(self, value: Any, above: set[int]) -> Any:
        """Return the readable parts of `value` as dicts and lists; `above` are the containers around it."""
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
        inside = None if isinstance(value, str) else _opened(value)
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


def _opened(value: Any) -> Mapping[Any, Any] | Sequence[Any] | None:
    """Return the contents of a container: fields by name, or items; `None` for anything else."""
    if is_list(value) or is_map(value):
        return value
    if isinstance(value, native.Opaque):
        return _opened(value.data)
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
