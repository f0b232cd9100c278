"""Reads and copies the user's objects, whether dicts or objects of an SDK, without importing an SDK."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from operator import is_
from typing import Any, TypeGuard

import msgspec

from suture._text import replace_surrogates
from suture.errors import InputError
from suture.messages import check_plain


def is_map(thing: Any) -> TypeGuard[Mapping[str, Any]]:
    """Return whether `thing` is a mapping, which is taken for a JSON object."""
    return isinstance(thing, dict) or isinstance(thing, Mapping)  # noqa: SIM101 - the first is far cheaper


def is_list(thing: Any) -> TypeGuard[Sequence[Any]]:
    """Return whether `thing` is a list or a tuple."""
    return isinstance(thing, list | tuple)


def get(thing: Any, name: str) -> Any:
    """Return the field `name` of a mapping or object, `None` if it is absent."""
    if thing.__class__ is dict or is_map(thing):
        return thing.get(name)
    return getattr(thing, name, None)


def word(thing: Any, name: str) -> str | None:
    """Return the text in the field `name`; of another value its type, as `<int>`, which equals no known word."""
    value = get(thing, name)
    return value if value is None or isinstance(value, str) else f"<{type(value).__name__}>"


def has(thing: Any, name: str) -> bool:
    """Return whether the field `name` is there, even if it holds nothing."""
    return name in thing if is_map(thing) else hasattr(thing, name)


def put(thing: Any, **fields: Any) -> Any:
    """Return a shallow copy of `thing` with `fields` set: a dict for a mapping, else an object of the same type."""
    if is_map(thing):
        return {**thing, **fields}
    copier = getattr(thing, "model_copy", None)
    if copier is not None:
        return copier(update=fields)
    from copy import copy  # noqa: PLC0415 - only who changes an object pays for it

    try:
        twin = copy(thing)
        for name, value in fields.items():
            setattr(twin, name, value)
    except (AttributeError, TypeError) as error:  # a frozen object, or one that cannot be copied
        raise InputError(f"a {type(thing).__name__} cannot be changed: {error}") from None
    return twin


_SIMPLE = frozenset((str, int, float, bool, dict))
_DEPTH = 6
"""How many levels of objects an outline shows, which is more than any SDK has."""


@cache
def _field_names(kind: type) -> Mapping[str, str] | None:
    """Return the names on the wire of a pydantic model's fields; `None` for another class."""
    fields: Any = getattr(kind, "model_fields", None)
    return {name: field.alias or name for name, field in fields.items()} if isinstance(fields, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]


def outline(thing: Any, depth: int = 0) -> Any:
    """Return a dict that looks like an SDK's object, for a glance; a value without such objects is returned as it is.

    Fields that are `None` are left out. A call's arguments, and all other plain values, are shared with the object.

    >>> message = {"role": "user", "content": "hi"}
    >>> outline(message) is message
    True
    """
    kind = thing.__class__
    if kind is dict:
        for name, value in thing.items():
            if value.__class__ is list and (made := outline(value, depth + 1)) is not value:
                thing = {**thing, name: made}
        return thing
    if depth == _DEPTH:
        return thing
    if kind is list:
        if _SIMPLE.issuperset(map(type, thing)):
            return thing
        return [each if each.__class__ in _SIMPLE else outline(each, depth + 1) for each in thing]
    names = _field_names(kind)
    if names is None:
        return thing
    extra: Any = getattr(thing, "__pydantic_extra__", None)
    fields: dict[str, Any] = {**thing.__dict__, **extra} if extra else thing.__dict__
    return {
        names.get(name, name): value if value.__class__ in _SIMPLE else outline(value, depth + 1)
        for name, value in fields.items()
        if value is not None
    }


def given(**fields: Any) -> dict[str, Any]:
    """Return those of `fields` that are not `None`."""
    return {name: value for name, value in fields.items() if value is not None}


def without(thing: Any, name: str) -> Any:
    """Return a shallow copy of `thing` without the field `name`; in an object it is `None`, which SDKs do not send."""
    if is_map(thing):
        return {key: value for key, value in thing.items() if key != name}
    twin = put(thing, **{name: None})
    getattr(twin, "model_fields_set", set[str]()).discard(name)
    return twin


def text_of(thing: Any, name: str, index: int | None = None, path: str = "") -> str:
    """Return the string field `name`, the empty string if it is absent or null."""
    value = get(thing, name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError(
            f"expected a string, found {_type(value)}", index=index, path=f"{path}.{name}" if path else name
        )
    if index is not None and not value.isascii():
        check_value(value, index, path or name)
    return value


def listed(value: Any, index: int | None, path: str) -> Sequence[Any]:
    """Return `value` as a sequence of things with fields; raise `InputError` if it is something else."""
    if not is_list(value):
        raise InputError(f"expected a list, found {_type(value)}", index=index, path=path)
    for place, item in enumerate(value):
        if item.__class__ is not dict and (item is None or isinstance(item, str | int | float | bytes | list | tuple)):
            raise InputError(f"expected an object, found {_type(item)}", index=index, path=f"{path}[{place}]")
    return value


def list_of(thing: Any, name: str, index: int | None = None, path: str = "") -> Sequence[Any]:
    """Return the list of things with fields in the field `name`, an empty one if it is absent or null."""
    value = get(thing, name)
    return () if value is None else listed(value, index, f"{path}.{name}" if path else name)


def map_of(thing: Any, name: str) -> Mapping[str, Any]:
    """Return the object in the field `name`, an empty one if there is none."""
    value = thing.get(name) if is_map(thing) else None
    return value if is_map(value) else {}


def object_of(thing: Any, name: str, path: str = "", *, optional: bool = False) -> Mapping[str, Any]:
    """Return the object in the field `name`; raise `InputError` if there is none, unless it is `optional`."""
    value = get(thing, name)
    if value is None and optional:
        return {}
    return expect(value, Mapping, "an object", f"{path}.{name}" if path else name)


def expect(value: Any, kind: Any, wanted: str, path: str) -> Any:
    """Return `value`; raise `InputError` if it is not of `kind`."""
    if isinstance(value, kind):
        return value
    raise InputError(f"expected {wanted}, found {'nothing' if value is None else _type(value)}", path=path)


def argument_text(thing: Any, index: int | None, path: str = "") -> Any:
    """Return the field `arguments`, whatever it is; raise `InputError` for what JSON cannot express."""
    value = get(thing, "arguments")
    if index is not None and value is not None and not (isinstance(value, str) and value.isascii()):
        check_value(value, index, f"{path}.arguments" if path else "arguments")
    return value


def typed(value: Any, index: int | None, path: str, foreign: Collection[str] = ()) -> Sequence[Any]:
    """Return a list of parts with types; raise `InputError` if one has no type, or one of another wire."""
    parts = listed(value, index, path)
    for place, part in enumerate(parts):
        kind = get(part, "type")
        if not isinstance(kind, str):
            raise InputError(f"expected a type, found {_type(kind)}", index=index, path=f"{path}[{place}].type")
        if kind in foreign:
            raise InputError(f"a part of type {kind!r} belongs to another wire", index=index, path=f"{path}[{place}]")
        if kind == "text":
            text_of(part, "text", index, f"{path}[{place}]")
    return parts


def inner(thing: Any, name: str, index: int | None, path: str = "") -> Any:
    """Return the object in the field `name`; raise `InputError` if something else is there."""
    value = get(thing, name)
    if value is None or value.__class__ is dict:
        return value
    if isinstance(value, str | int | float | bytes | list | tuple):
        place = f"{path}.{name}" if path else name
        raise InputError(f"expected an object, found {_type(value)}", index=index, path=place)
    return value


class SurrogateError(InputError):
    """A text holds half of a surrogate pair, so it cannot be sent as it is."""


def check_value(value: Any, index: int | None, path: str) -> None:
    """Raise `InputError` if a user's value cannot be JSON: a cycle, too deep, not a number, half a surrogate pair."""
    try:
        check_plain(outline(value), index=index, path=path, foreign=True)
    except InputError as error:
        if "surrogate" not in error.reason:
            raise
        check_plain(sendable(value), index=index, path=path, foreign=True)
        raise SurrogateError(error.reason, index=index, path=path) from None


def sendable(value: Any) -> Any:
    r"""Return `value` with each lone surrogate in its texts replaced by U+FFFD; itself if there is none.

    >>> sendable({"text": "caf" + chr(0xD83D)}) == {"text": "caf" + chr(0xFFFD)}
    True
    """
    if isinstance(value, str):
        return replace_surrogates(value)
    if is_map(value):
        new = {sendable(key): sendable(item) for key, item in value.items()}
        same = all(new.get(key) is item for key, item in value.items())
        return value if same else new
    if is_list(value):
        items = [sendable(item) for item in value]
        return value if all(map(is_, items, value)) else items
    if hasattr(value, "model_copy"):
        fields: dict[str, Any] = {**vars(value), **(getattr(value, "__pydantic_extra__", None) or {})}
        changed = {name: sendable(item) for name, item in fields.items()}
        changed = {name: item for name, item in changed.items() if item is not fields[name]}
        return put(value, **changed) if changed else value
    return value


def _type(value: Any) -> str:
    return "null" if value is None else type(value).__name__


def argument_json(arguments: Any) -> str:
    """Return the arguments of a call as JSON text: text as it is, even if it is cut; `None` as an empty object.

    >>> argument_json({"q": 1}), argument_json('{"q": '), argument_json(None)
    ('{"q":1}', '{"q": ', '{}')
    """
    if isinstance(arguments, str):
        return arguments
    return "{}" if arguments is None else json_text(arguments)


class _Object(msgspec.Struct, gc=False):
    """An empty struct: decoding into it validates a JSON object and builds nothing."""


# An escaped backslash, a whole pair, or half of a pair, which alone is captured.
_ESCAPE = r"\\\\|\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|(\\u[dD][89a-fA-F][\da-fA-F]{2})"
decode_object: Callable[[Any], Any] = msgspec.json.Decoder(_Object).decode
"""Check that a text is a JSON object without building it; raise one of `NO_OBJECT` if it is not."""
_decode: Callable[[Any], Any] = msgspec.json.Decoder().decode
NO_OBJECT = (msgspec.MsgspecError, UnicodeError, RecursionError, TypeError)


def parse_json(text: str | bytes) -> Any:
    """Return the value of JSON text; `None` if it is no JSON."""
    try:
        return _decode(text)
    except NO_OBJECT:
        return None


def without_lone_escapes(text: str) -> str:
    r"""Return the text of an object with each escaped half of a surrogate pair replaced by U+FFFD.

    >>> without_lone_escapes('{"q": "caf' + chr(92) + 'ud83d"}') == '{"q": "caf' + chr(92) + 'ufffd"}'
    True
    """
    return re.sub(_ESCAPE, lambda found: found[0] if found[1] is None else "\\ufffd", text)


def is_object_text(text: str) -> bool:
    """Return whether `text` is a JSON object, without building it.

    >>> is_object_text('{"a": [1, 2]}'), is_object_text('{"a": [1, '), is_object_text("[]")
    (True, False, False)
    """
    try:
        decode_object(str.__str__(text))  # msgspec reads no subclass of str
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        # A lone surrogate is no reason to throw away a call's arguments.
        repaired = without_lone_escapes(replace_surrogates(text)) if "\\u" in text else text
        return repaired != text and is_object_text(repaired)
    return True


def sound_arguments(arguments: Any, *, as_text: bool) -> Any:
    """Convert arguments that are an object into text, or those that are text into an object; others become empty.

    >>> sound_arguments({"q": 1}, as_text=True), sound_arguments('{"q": 1}', as_text=False)
    ('{"q":1}', {'q': 1})
    >>> sound_arguments('{"q": ', as_text=True)
    '{}'
    >>> sound_arguments({"q": chr(0xD83D)}, as_text=True) == '{"q":"' + chr(0xFFFD) + '"}'
    True
    """
    if as_text:
        whole = dict(arguments) if is_map(arguments) else {}
        try:
            return msgspec.json.encode(whole, enc_hook=repr).decode()
        except UnicodeEncodeError:
            return msgspec.json.encode(sendable(whole), enc_hook=repr).decode()
    if not isinstance(arguments, str) or not is_object_text(arguments):
        return {}
    try:
        return msgspec.json.decode(str.__str__(arguments))
    except msgspec.MsgspecError:  # a lone surrogate or a number out of range cannot be sent
        return {}


_TEXTS = ("text", "output_text", "input_text")


def says_nothing(content: Any) -> bool:
    """Return whether content is missing, empty, or holds only empty texts."""
    if not content or isinstance(content, str):
        return not content
    return all(word(part, "type") in _TEXTS and not get(part, "text") for part in content)


def is_blank(content: Any) -> bool:
    """Return whether content holds only blank texts."""
    if isinstance(content, str):
        return content.isspace()
    texts = [get(part, "text") if word(part, "type") in _TEXTS else None for part in content or ()]
    return bool(texts) and all(isinstance(text, str) and not text.strip() for text in texts)


def json_text(value: Any) -> str:
    """Return `value` as compact JSON text, with `repr` for what JSON cannot hold. Never raises."""
    try:
        return msgspec.json.encode(value, enc_hook=repr).decode()
    except (TypeError, ValueError, RecursionError):  # a lone surrogate, a strange key, a cycle
        try:
            return repr(value)
        except RecursionError:
            return f"({type(value).__name__})"
