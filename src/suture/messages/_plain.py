"""`check_plain`: is this value one that JSON can carry and give back unchanged?

Encoders are not trusted with this: they write NaN as null, integer keys as strings and bytes as base64, and
say nothing. Two walks, neither recursive, go over whatever a message holds (dicts, lists, tuples, our own
structs). `_is_plain` only says yes or no, and is fast; after a no, `_explain` finds the place.
"""

from collections.abc import Iterable
from math import isfinite
from types import NoneType
from typing import Any, NamedTuple, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import astuple

from suture.errors import InputError

__all__ = ["JSON_INTEGERS", "MAX_DEPTH", "MSGPACK_INTEGERS", "check_plain"]

MAX_DEPTH = 200
"""How many containers may stand inside one another."""

JSON_INTEGERS = (1 - 10**4300, 10**4300 - 1)
"""The smallest and largest integer that Python reads back from decimal digits."""

MSGPACK_INTEGERS = (-(2**63), 2**64 - 1)
"""The smallest and largest integer that MessagePack can hold."""

_CONTAINERS = (dict, list, tuple, Struct)
_HARMLESS = frozenset((bool, NoneType))
_SHOWN = 40


def check_plain(
    value: Any,
    *,
    index: int | None = None,
    path: str = "",
    foreign: bool = False,
    integers: tuple[int, int] | None = None,
) -> None:
    """Raise `InputError` where `value` holds something that JSON cannot carry.

    Refused are NaN and infinities, lone surrogates, keys that are not strings, integers outside `integers`
    (by default, of over 4300 digits), cycles, more than 200 levels, and any other kind of object. A tuple
    counts as an array. With `foreign` set, objects of unknown kinds (bytes, an SDK's classes) are passed over
    instead. `index` and `path` say where `value` stands; the error adds the rest of the way.

    >>> check_plain({"scores": [0.5, 1]})
    >>> check_plain({"scores": [0.5, float("nan")]}, index=3, path="extra")
    Traceback (most recent call last):
        ...
    suture.errors.InputError: message 3, extra.scores[1]: nan is not a JSON number
    """
    if type(value) is str and value.isascii():
        return
    rules = _Rules(foreign, integers or JSON_INTEGERS)
    if not _is_plain(value, rules):
        reason, way = _explain(value, rules)
        raise InputError(reason, index=index, path=(path + way).removeprefix("."))


class _Rules(NamedTuple):
    """What is asked for, and what that means for one leaf and for one key."""

    foreign: bool
    integers: tuple[int, int]

    def fault(self, leaf: object) -> str:
        if type(leaf) is int:
            return "" if self.integers[0] <= leaf <= self.integers[1] else "an integer too large to be stored"
        if type(leaf) is float:
            return "" if isfinite(leaf) else f"{leaf} is not a JSON number"
        if type(leaf) is str or (self.foreign and isinstance(leaf, str)):
            return "" if _is_unicode(leaf) else "text with a lone surrogate"
        if self.foreign or type(leaf) in _HARMLESS:
            return ""
        return f"{type(leaf).__name__} is not a JSON value"

    def key_fault(self, key: object) -> str:
        if not isinstance(key, str) or not (self.foreign or type(key) is str):
            return f"a key must be a string, not {type(key).__name__}"
        return "" if _is_unicode(key) else "a key with a lone surrogate"


def _is_plain(value: object, rules: _Rules) -> bool:
    # Level by level: what is met twice on a level is looked at once, and a cycle runs out of levels.
    level: Iterable[Any] = ((value,),)
    for _ in range(MAX_DEPTH + 1):
        below: dict[int, Any] = {}
        for container in level:
            if not _is_plain_within(container, rules, below):
                return False
        if not below:
            return True
        level = below.values()
    return False


def _is_plain_within(container: Any, rules: _Rules, below: dict[int, Any]) -> bool:
    children: Iterable[object] = container
    if isinstance(container, dict):
        mapping = cast("dict[Any, object]", container)
        for key in mapping:
            if not (type(key) is str and key.isascii()) and rules.key_fault(key):
                return False
        children = mapping.values()
    elif isinstance(container, Struct):
        children = astuple(container)
    for child in children:
        if type(child) is str:
            if not child.isascii() and rules.fault(child):
                return False
        elif type(child) in _HARMLESS:
            continue
        elif isinstance(child, _CONTAINERS):
            if child:
                below[id(child)] = child  # pyright: ignore[reportUnknownArgumentType]
        elif rules.fault(child):
            return False
    return True


# A container still to be looked into: itself, its depth, its key in its parent, its parent.
_Frame: TypeAlias = tuple[Any, int, Any, "_Frame | None"]


def _explain(value: object, rules: _Rules) -> tuple[str, str]:
    """Return what is wrong and the way to it. Depth first, and again where a container is met deeper."""
    deepest: dict[int, int] = {}
    frames: list[_Frame] = [((value,), 0, 0, None)]
    while frames:
        frame = frames.pop()
        for key, child in _entries(frame[0]):
            inner: _Frame = (child, frame[1] + 1, key, frame)
            reason = rules.key_fault(key) if isinstance(frame[0], dict) else ""
            if reason:
                return reason, _way(frame)
            if not isinstance(child, _CONTAINERS):
                reason = rules.fault(child)
            elif deepest.get(id(child), 0) < inner[1]:  # pyright: ignore[reportUnknownArgumentType]
                deepest[id(child)] = inner[1]  # pyright: ignore[reportUnknownArgumentType]
                frames.append(inner)
                reason = _nesting_fault(inner)
            if reason:
                return reason, _way(inner)
    return "changed while it was looked at", ""


def _entries(container: Any) -> Iterable[tuple[Any, object]]:
    if isinstance(container, dict):
        return cast("dict[Any, object]", container).items()
    if isinstance(container, Struct):
        return zip(container.__struct_fields__, astuple(container), strict=True)
    return enumerate(cast("list[object]", container))


def _nesting_fault(inner: _Frame) -> str:
    above = inner[3]
    while above is not None:
        if above[0] is inner[0]:
            return "a value that contains itself"
        above = above[3]
    return f"nested more than {MAX_DEPTH} levels deep" if inner[1] > MAX_DEPTH and inner[0] else ""


def _way(frame: _Frame) -> str:
    steps: list[str] = []
    parent = frame[3]
    # The outermost container is the tuple around the value itself; a key into that is no part of the way.
    while parent is not None and parent[3] is not None:
        steps.append(_spelled(frame[2]))
        frame, parent = parent, parent[3]
    return "".join(reversed(steps))


def _spelled(key: Any) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    return f".{key}" if key.isidentifier() and len(key) <= _SHOWN else f"[{key[:_SHOWN]!r}]"


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
