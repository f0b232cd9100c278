"""Reading and copying the user's own objects: dicts and the SDKs' objects alike, without importing an SDK."""

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from typing import Any, TypeGuard

from suture.errors import InputError
from suture.messages import check_plain

__all__ = [
    "argument_text",
    "check_value",
    "get",
    "given",
    "has",
    "inner",
    "is_list",
    "is_map",
    "listed",
    "put",
    "text_of",
    "typed",
    "without",
    "word",
]


def is_map(thing: Any) -> TypeGuard[Mapping[str, Any]]:
    """Tell whether `thing` is a mapping, of names as JSON has them.

    >>> is_map({}), is_map([])
    (True, False)
    """
    return isinstance(thing, dict) or isinstance(thing, Mapping)  # noqa: SIM101 - the first is far cheaper


def is_list(thing: Any) -> TypeGuard[Sequence[Any]]:
    """Tell whether `thing` is a list or a tuple.

    >>> is_list([]), is_list("text")
    (True, False)
    """
    return isinstance(thing, list | tuple)


def get(thing: Any, name: str) -> Any:
    """Return the field `name` of a mapping or object, `None` where it is absent.

    >>> get({"a": 1}, "a"), get({"a": 1}, "b"), get("text", "b")
    (1, None, None)
    """
    if thing.__class__ is dict or is_map(thing):
        return thing.get(name)
    return getattr(thing, name, None)


def word(thing: Any, name: str) -> str | None:
    """Return the field `name`, which names a kind; what is no text is told as its type, and fits nothing.

    >>> word({"role": "user"}, "role"), word({}, "role"), word({"role": []}, "role")
    ('user', None, '<list>')
    """
    value = get(thing, name)
    return value if value is None or isinstance(value, str) else f"<{type(value).__name__}>"


def has(thing: Any, name: str) -> bool:
    """Tell whether the field `name` is there, even if it holds nothing.

    >>> has({"a": None}, "a"), has({}, "a")
    (True, False)
    """
    return name in thing if is_map(thing) else hasattr(thing, name)


def put(thing: Any, **fields: Any) -> Any:
    """Return a shallow copy of `thing` with `fields` set: a dict of a mapping, an object of its own type.

    >>> put({"a": 1}, a=2)
    {'a': 2}
    """
    if is_map(thing):
        return {**thing, **fields}
    copier = getattr(thing, "model_copy", None)
    if copier is not None:
        return copier(update=fields)
    twin = copy(thing)
    for name, value in fields.items():
        setattr(twin, name, value)
    return twin


def given(**fields: Any) -> dict[str, Any]:
    """Return those of `fields` that are not `None`.

    >>> given(id="a", name=None)
    {'id': 'a'}
    """
    return {name: value for name, value in fields.items() if value is not None}


def without(thing: Any, name: str) -> Any:
    """Return a shallow copy of `thing` without the field `name` (an object's is set to `None`).

    >>> without({"a": 1, "b": 2}, "b")
    {'a': 1}
    """
    if is_map(thing):
        return {key: value for key, value in thing.items() if key != name}
    return put(thing, **{name: None})


def text_of(thing: Any, name: str, index: int | None = None, path: str = "") -> str:
    """Return the string field `name`, the empty string where it is absent or null.

    >>> text_of({"id": None}, "id")
    ''
    """
    value = get(thing, name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError(
            f"expected a string, found {_type(value)}", index=index, path=f"{path}.{name}" if path else name
        )
    if not value.isascii():
        check_plain(value, index=index, path=path or name)
    return value


def listed(value: Any, index: int | None, path: str) -> Sequence[Any]:
    """Return `value` as a sequence of things with fields; raise `InputError` where it is none.

    >>> listed([{"a": 1}], 0, "content")
    [{'a': 1}]
    """
    if not is_list(value):
        raise InputError(f"expected a list, found {_type(value)}", index=index, path=path)
    for place, item in enumerate(value):
        if item is None or isinstance(item, str | int | float | bytes | list | tuple):
            raise InputError(f"expected an object, found {_type(item)}", index=index, path=f"{path}[{place}]")
    return value


def argument_text(thing: Any, index: int | None, path: str = "") -> Any:
    """Return the field `arguments`: a text, or whatever else stands there; text that is none is refused.

    >>> argument_text({"arguments": "{}"}, 0)
    '{}'
    """
    value = get(thing, "arguments")
    if value is not None and not (isinstance(value, str) and value.isascii()):
        check_plain(value, index=index, path=f"{path}.arguments" if path else "arguments", foreign=True)
    return value


def typed(value: Any, index: int | None, path: str, foreign: Collection[str] = ()) -> Sequence[Any]:
    """Return a list of parts that each say their type; raise `InputError` where one does not, or is of another wire.

    >>> typed([{"type": "text", "text": "hi"}], 0, "content")
    [{'type': 'text', 'text': 'hi'}]
    """
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
    """Return the object in the field `name`; raise `InputError` where something else is there.

    >>> inner({"function": {"name": "f"}}, "function", 0)
    {'name': 'f'}
    """
    value = get(thing, name)
    if isinstance(value, str | int | float | bytes | list | tuple):
        place = f"{path}.{name}" if path else name
        raise InputError(f"expected an object, found {_type(value)}", index=index, path=place)
    return value


def check_value(value: Any, index: int | None, path: str) -> None:
    """Raise `InputError` where a user's value cannot be JSON: cyclic, too deep, not a number, no text.

    >>> check_value([1.5, "x"], 0, "content")
    """
    check_plain(value, index=index, path=path, foreign=True)


def _type(value: Any) -> str:
    return "null" if value is None else type(value).__name__
