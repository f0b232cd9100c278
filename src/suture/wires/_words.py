"""What a model reads of a message: its texts, and how many media there are beside them.

A shape that nobody here knows is told as JSON, without what is no text in it: payloads (base64, data URLs, bytes)
are media, signatures and encrypted content are nothing at all.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from suture.messages import Opaque, Part, ReasoningPart, TextPart, ToolSearchPart
from suture.wires._fields import is_list, is_map
from suture.wires._parts import MEDIA
from suture.wires._text import json_words

__all__ = ["Telling", "Words"]

_LONG = 256
_DEEPEST = 100
_DATA_URL = re.compile(r"data:(?:[\w.+-]+/[\w.+-]+)?(?:;[\w=.+-]+)*,")
# One run, or lines as MIME and PEM wrap them. Possessive: one pass, whatever the text.
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/_-]{60,}+\r?+\n?+)*+[A-Za-z0-9+/_-]*+={0,2}\s*+")
_SEALS = ("signature", "encrypted", "redacted")
_OWN = frozenset(("extra", "index"))
_NOTHING: Any = object()


class Words(NamedTuple):
    """What a model reads of one message: its role and its texts in order, and how many media it carries.

    >>> from suture.wires import get_wire
    >>> get_wire("openai-chat").words({"role": "user", "content": "hi"})
    Words(texts=('user', 'hi'), media=0)
    """

    texts: tuple[str, ...]
    media: int = 0


class Telling:
    """The words of a message while they are gathered.

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
        """Return what was told."""
        return Words(tuple(self.texts), self.media)

    def say(self, text: Any) -> None:
        """Tell a text; something else that stands in its place is shown."""
        if isinstance(text, str):
            if text:
                self.texts.append(text)
        elif text is not None:
            self.show(text)

    def write(self, arguments: Any) -> None:
        """Tell the arguments of a call, all of them: the model wrote them."""
        if arguments is not None:
            self.say(arguments if isinstance(arguments, str) else json_words(arguments))

    def tell(self, part: Part) -> None:
        """Tell a native part."""
        if isinstance(part, TextPart | ReasoningPart):
            self.say(part.text)
        elif isinstance(part, MEDIA):
            self.media += 1
        else:
            self.show(part.tools if isinstance(part, ToolSearchPart) else part)

    def show(self, value: Any) -> None:
        """Tell a value of any shape as compact JSON, without what is no text in it."""
        kept = self._readable(value, set())
        if kept is not _NOTHING:
            self.texts.append(json_words(kept))

    def _readable(self, value: Any, above: set[int]) -> Any:
        """Return `value` as dicts and lists of what can be read; `above` are the containers it stands in."""
        if value is None or isinstance(value, int | float):
            return value
        if isinstance(value, str):
            return self._unless_payload(value)
        if isinstance(value, bytes | bytearray | memoryview):
            self.media += 1
            return _NOTHING
        inside = _opened(value)
        if inside is None:
            return value
        if id(value) in above or len(above) > _DEEPEST:
            return _NOTHING
        above.add(id(value))
        if isinstance(inside, Mapping):
            kept = {str(name): self._readable(held, above) for name, held in inside.items() if not _is_sealed(name)}
            found: Any = {name: held for name, held in kept.items() if held is not _NOTHING}
        else:
            found = [held for held in [self._readable(item, above) for item in inside] if held is not _NOTHING]
        above.discard(id(value))
        return found

    def _unless_payload(self, text: str) -> Any:
        if _DATA_URL.match(text) or (len(text) >= _LONG and _BASE64.fullmatch(text)):
            self.media += 1
            return _NOTHING
        return text


def _is_sealed(name: Any) -> bool:
    return isinstance(name, str) and any(seal in name.lower() for seal in _SEALS)


def _opened(value: Any) -> Mapping[Any, Any] | Sequence[Any] | None:
    """Return what a container holds: fields by name, or items; `None` for what is no container."""
    if is_list(value) or is_map(value):
        return value
    if isinstance(value, Opaque):
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
