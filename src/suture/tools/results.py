"""What a function returned, as a result: text as it is, parts, and any other value as JSON.

A tool that ran is never told as failed for what it returned, because the model would run it again. A value that JSON
has no form for is text at its place; one that has no text either is named by its type. Python's own encoder does the
usual work. What it cannot encode (numbers that are none, keys that are no text, cycles, parts inside of values) is
walked through once.
"""

import sys
from collections import abc, deque
from collections.abc import Callable
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import cache
from itertools import count, cycle, repeat
from math import isfinite
from typing import TYPE_CHECKING, Any, cast, get_args
from uuid import UUID

import msgspec
from msgspec.structs import replace

from suture._text import replace_surrogates
from suture.messages import FrozenMap, ImagePart, Part, TextPart, ToolResult

if TYPE_CHECKING:
    from json import JSONEncoder

_PARTS: tuple[type, ...] = get_args(Part)
_ENDLESS = (count, cycle, repeat)
_PNG_MODES = frozenset(("1", "L", "LA", "I", "P", "RGB", "RGBA"))
_AGAIN = "…"
"""Stands for a value that contains itself, and for what is nested too deeply."""
_DEEPEST = 100
_LONGEST_NUMBER = 10_000
"""How many bits an integer may have that is written in digits; Python refuses to write longer ones."""


def read_result(value: Any) -> str | ToolResult:
    """Return a value as text, or as a result if it has parts; never raise.

    >>> read_result({"port": "Dover", "depth": float("nan")})
    '{"port":"Dover","depth":"nan"}'
    >>> read_result(["The chart:", ImagePart(url="u")])
    ToolResult(parts=(TextPart(text='The chart:'), ImagePart(url='u')))
    """
    if type(value) is str:
        return replace_surrogates(value)
    try:
        return _read(value)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the tool ran, whatever its value does
        return f"The tool ran. Its result, a {_name_of(value)}, cannot be shown ({type(error).__name__})."


def read_parts(value: Any) -> ToolResult:
    """Return a value as a result with parts.

    >>> read_parts("fog")
    ToolResult(parts=(TextPart(text='fog'),))
    """
    if value is None or (type(value) in (list, tuple) and not value):
        return ToolResult()
    result = read_result(value)
    return ToolResult((TextPart(result),)) if isinstance(result, str) else result


def join_pieces(pieces: list[Any]) -> Any:
    """Return all that an iterator gave as one value: texts are joined.

    >>> join_pieces(["fo", "g"]), join_pieces([1, 2])
    ('fog', [1, 2])
    """
    return "".join(pieces) if pieces and all(isinstance(each, str) for each in pieces) else pieces


def _name_of(value: object) -> str:
    return type(value).__name__


def can(value: Any, method: str) -> bool:
    """Return whether a value has a special method: its type, and the value itself, which may stand for another.

    >>> can(iter([]), "__next__"), can([], "__next__")
    (True, False)
    """
    try:
        return _has(method)(value) and hasattr(value, method)
    except Exception:  # noqa: BLE001 - it stands for something that is not there
        return False


def is_iterator(value: Any) -> bool:
    """Return whether a value gives pieces that come to an end."""
    return can(value, "__next__") and not isinstance(value, _ENDLESS)


def clean_result(result: ToolResult) -> ToolResult:
    """Return a result whose texts hold no lone surrogates, which could be neither stored nor sent."""
    for at, part in enumerate(result.parts):
        if isinstance(part, TextPart) and not part.text.isascii():
            text = replace_surrogates(part.text)
            if text != part.text:
                result = replace(result, parts=(*result.parts[:at], replace(part, text=text), *result.parts[at + 1 :]))
    return result


def _read(value: Any) -> str | ToolResult:
    if value is None:
        return ""
    if isinstance(value, ToolResult):
        return clean_result(value)
    if isinstance(value, _PARTS):
        return clean_result(ToolResult((value,)))
    if _is_image(value):
        value = _picture(value)
        return ToolResult((value,)) if isinstance(value, ImagePart) else value
    if isinstance(value, list | tuple) and any(_is_rich(each) for each in cast("list[Any]", value)):
        return _join(cast("list[Any]", value))
    try:
        return _json(value)
    except Exception:  # noqa: BLE001 - what one encoder cannot write, the walk can
        walk = _Walk()
        text = _json(walk.plain(value))
        return ToolResult((TextPart(text), *walk.media)) if walk.media else text


def _json(value: Any) -> str:
    """Return a text as it is, anything else as JSON."""
    for _ in range(_DEEPEST):  # a value may stand for another one of its kind without end
        if isinstance(value, str | int | float | dict | list | tuple | None):
            break
        value = _default(value)
    else:
        value = str(value)
    return replace_surrogates(str.__str__(value) if isinstance(value, str) else _encoder().encode(value))


def _is_rich(value: Any) -> bool:
    return isinstance(value, (ToolResult, *_PARTS)) or _is_image(value)


def _join(values: list[Any] | tuple[Any, ...]) -> ToolResult:
    results = [read_parts(each) for each in values]
    return ToolResult(
        [part for each in results for part in each.parts],
        is_error=any(each.is_error for each in results),
        return_directly=any(each.return_directly for each in results),
        extra=FrozenMap({name: each for result in results for name, each in result.extra.items()}),
    )


# --- images, whose library is never imported here -------------------------------------------------


def _is_image(value: Any) -> bool:
    library = sys.modules.get("PIL.Image")
    return library is not None and isinstance(value, library.Image)


def _picture(image: Any) -> ImagePart | str:
    """Return an image as a part, or its text if it cannot be saved."""
    from base64 import b64encode  # noqa: PLC0415 - only who returns images pays for it
    from io import BytesIO  # noqa: PLC0415

    file = BytesIO()
    try:
        (image if image.mode in _PNG_MODES else image.convert("RGB")).save(file, "PNG")
    except Exception:  # noqa: BLE001 - an image of no size, of a kind that PNG does not have, of a closed file
        return str(image)
    return ImagePart(base64_data=b64encode(file.getvalue()).decode(), mime_type="image/png")


# --- any value as JSON ----------------------------------------------------------------------------


class _WalkError(Exception):
    """There is a part inside a value, or an iterator, which can be read only once."""


@cache
def _encoder() -> "JSONEncoder":
    from json import JSONEncoder  # noqa: PLC0415 - most tools return text

    return JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_default)


def _default(value: Any) -> Any:
    if _is_rich(value) or is_iterator(value):
        raise _WalkError
    return _form(value)


def _form(value: Any) -> Any:
    """Return the form of a value that JSON does not know: a mapping, a list or a text, with any values inside."""
    try:
        form = _shape(value)
    except Exception:  # noqa: BLE001 - then it has its text
        form = value
    return str(value) if form is value else form


def _shape(value: Any) -> Any:
    """Return the mapping, list or text that a value stands for; the value itself if there is none."""
    if isinstance(value, type):
        return value
    return next((shape(value) for is_one, shape in _SHAPES if is_one(value)), value)


def _text_of(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return msgspec.to_builtins(data)


def _struct_fields(value: msgspec.Struct) -> Any:
    config = value.__struct_config__
    form: dict[str, Any] = {} if config.tag_field is None else {config.tag_field: config.tag}
    for each in msgspec.structs.fields(value):
        item = getattr(value, each.name)
        empty = each.default_factory in (list, dict, set) and not item
        if not (config.omit_defaults and (item is each.default or empty)):
            form[each.encode_name] = item
    return list(form.values()) if config.array_like else form


def _model_fields(value: Any) -> Any:
    try:
        return value.model_dump(mode="json")
    except Exception:  # noqa: BLE001 - a field of an arbitrary type
        return dict(value)


def _dataclass_fields(value: Any) -> dict[str, Any]:
    from dataclasses import fields  # noqa: PLC0415 - whoever has one has loaded it

    return {each.name: getattr(value, each.name) for each in fields(value)}


def _attrs_fields(value: Any) -> dict[str, Any]:
    names: list[str] = [each.name for each in value.__attrs_attrs__]
    return {name: getattr(value, name) for name in names}


def _is_row(value: Any) -> bool:
    sqlite = sys.modules.get("sqlite3")
    return sqlite is not None and isinstance(value, sqlite.Row)


def _row(value: Any) -> dict[str, Any]:
    return {name: value[name] for name in value.keys()}  # noqa: SIM118 - a row iterates over its values


def _is(*kinds: Any) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


def _has(*names: str) -> Callable[[object], bool]:
    return lambda value: all(hasattr(type(value), name) for name in names)


_SHAPES: tuple[tuple[Callable[[Any], bool], Callable[[Any], Any]], ...] = (
    (_is(date, time, timedelta, Decimal, UUID), msgspec.to_builtins),
    (_is(bytes, bytearray, memoryview), lambda value: _text_of(bytes(value))),
    (_is(Enum), lambda value: value.value),
    (_is(BaseException), lambda value: f"{type(value).__name__}: {value}"),
    (_is(msgspec.Struct), _struct_fields),
    (_has("model_dump"), _model_fields),
    (_has("__dataclass_fields__"), _dataclass_fields),
    (_has("__attrs_attrs__"), _attrs_fields),
    (_is(abc.Mapping), dict),
    (_is_row, _row),
    (_has("tolist", "dtype"), lambda value: value.tolist()),  # numpy's, and what does as numpy does
    (_is(abc.Sequence, abc.Set, abc.MappingView, deque), list),
    (is_iterator, list),
)
"""Which values stand for a mapping, a list or a text, and how to get it; the first row that fits holds."""


def _name_of_key(key: Any) -> str:
    """Return the name that JSON has for the key of a mapping."""
    try:
        if key is None or isinstance(key, bool):
            return _encoder().encode(key)
        if isinstance(key, int):
            return hex(key) if key.bit_length() > _LONGEST_NUMBER else str(int(key))
        name = None if isinstance(key, tuple) else _form(key)
        return name if isinstance(name, str) else str(cast("object", key))
    except Exception as error:  # noqa: BLE001 - an object that cannot even say what it is
        return _unshown(key, error)


def _unshown(value: Any, error: Exception) -> str:
    return f"a {_name_of(value)} that cannot be shown ({type(error).__name__})"


class _Walk:
    """Turns a value into what JSON can hold, and takes the parts out of it."""

    def __init__(self) -> None:
        self.media: list[Any] = []
        self._open: set[int] = set()
        """The values that the walk is inside of."""

    def plain(self, value: Any, depth: int = 0) -> Any:
        """Return a value as JSON can hold it; raise if the outermost one cannot be shown at all."""
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, int):
            return hex(value) if value.bit_length() > _LONGEST_NUMBER else value
        if isinstance(value, float):
            return value if isfinite(value) else str(value)
        if _is_rich(value):
            return self._take(value)
        place = id(value)
        if depth > _DEEPEST or place in self._open:
            return _AGAIN
        self._open.add(place)
        try:
            return self._inside(value, depth + 1)
        except Exception as error:  # an object that cannot even say what it is
            if not depth:
                raise
            return _unshown(value, error)
        finally:
            self._open.discard(place)

    def _inside(self, value: Any, depth: int) -> Any:
        if isinstance(value, dict):
            return self._mapping(cast("dict[Any, Any]", value), depth)
        if isinstance(value, list | tuple):
            return [self.plain(each, depth) for each in cast("list[Any]", value)]
        return self.plain(_form(value), depth - 1)

    def _mapping(self, mapping: dict[Any, Any], depth: int) -> dict[str, Any]:
        form: dict[str, Any] = {}
        for key, value in mapping.items():
            name = key if isinstance(key, str) else _name_of_key(key)
            while name in form:  # two keys of one text
                name += "'"
            form[name] = self.plain(value, depth)
        return form

    def _take(self, value: Any) -> str:
        """Put the parts of a value aside; return its text, with a mark for each of the others."""
        parts = read_parts(value).parts
        texts: list[str] = []
        for part in parts:
            if isinstance(part, TextPart):
                texts.append(part.text)
            else:
                self.media.append(part)
                texts.append(f"[{part.__struct_config__.tag} {len(self.media)}]")
        return "\n".join(texts)
