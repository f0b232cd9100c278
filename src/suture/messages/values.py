"""Frozen values, which check their fields when they are made, and a check of what JSON can hold.

msgspec checks types when it decodes, but not when Python code makes a struct. `Value` does that from the annotations,
so a struct only declares its fields. `check_plain` does not rely on encoders: without an error they write NaN as null,
integer keys as strings and bytes as base64.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Literal, NoReturn, TypeAlias, Union, cast, dataclass_transform, get_args, get_origin

from msgspec import Struct, field
from msgspec.structs import asdict, astuple, fields, force_setattr

from suture.errors import InputError

JSON_TYPES: dict[type, str] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    NoneType: "null",
}
"""The types of JSON, by the types of decoded values."""


class FrozenMap(dict[str, Any]):
    """A read-only dict; copy it into a plain dict to change it. The values in it stay the caller's, and unchanged.

    >>> extra = FrozenMap({"origin": "cache"})
    >>> extra == {"origin": "cache"}
    True
    >>> {**extra, "seen": 2}
    {'origin': 'cache', 'seen': 2}
    >>> extra["seen"] = 2
    Traceback (most recent call last):
        ...
    TypeError: a FrozenMap cannot be changed; copy it into a dict first
    """

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("a FrozenMap cannot be changed; copy it into a dict first")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = _refuse
    setdefault: Any = _refuse
    update: Any = _refuse

    def __copy__(self) -> "FrozenMap":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "FrozenMap":
        from copy import deepcopy  # noqa: PLC0415 - only who copies pays for it

        return FrozenMap(deepcopy(dict(self), memo))

    def __reduce__(self) -> tuple[type["FrozenMap"], tuple[dict[str, Any]]]:
        return FrozenMap, (dict(self),)


EMPTY: Mapping[str, Any] = FrozenMap()
"""The only empty map: every value without `extra` shares it, and encoders leave it out because it is identical."""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Value(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True, forbid_unknown_fields=True):
    """A frozen struct that converts its fields (list to tuple, mapping to `FrozenMap`) or refuses them.

    To change one, make another with `msgspec.structs.replace`. An unknown field is refused when reading, never dropped.
    """

    def __post_init__(self) -> None:
        kind = type(self)
        defaults, rules = _RULES.get(kind) or _learn(kind)
        for value, default, rule in zip(astuple(self), defaults, rules, strict=False):
            if value is default:
                continue
            exact, admit, name = rule
            if type(value) is exact:
                continue
            admitted = admit(value)
            if admitted is not value:
                force_setattr(self, name, admitted)


# How one field is checked: a type that passes at once, a function for any other value, and the field's name. For a
# class: the defaults of its fields, which pass at once, and these rules.
_Rule: TypeAlias = tuple[type | None, Callable[[Any], Any], str]
_Checks: TypeAlias = tuple[tuple[Any, ...], tuple[_Rule, ...]]

_RULES: dict[type[Value], _Checks] = {}
_NAMES: dict[Any, str] = {
    str: "a string",
    int: "an integer",
    bool: "a boolean",
    float: "a number",
    Mapping: "a mapping",
}


def _learn(kind: type[Value]) -> _Checks:
    """Derive the defaults and the rules of a class, and remember them."""
    rules: list[_Rule] = []
    for info in fields(kind):
        hint: Any = info.type
        if get_origin(hint) in (Union, UnionType):
            # The only union of a single field is "or None", and that `None` is the default, which passes at once.
            (hint,) = (choice for choice in get_args(hint) if choice is not NoneType)
        origin, inside = get_origin(hint) or hint, get_args(hint)
        if origin in (tuple, Sequence):
            origin, inside = Sequence, get_args(inside[0]) or inside[:1]
        exact = None if hint not in _NAMES or (isinstance(info.default, str) and info.default) else hint
        admit = _Field(kind.__name__, info.name, info.default, origin, inside).admit
        rules.append((exact, admit, info.name))
    _RULES[kind] = tuple([info.default for info in fields(kind)]), tuple(rules)
    return _RULES[kind]


class _Field(Struct, frozen=True):
    """A field of a class, and the values that it accepts."""

    owner: str
    name: str
    default: Any
    kind: Any
    inside: tuple[Any, ...]
    """The types allowed in a sequence, or the texts of a `Literal`."""

    def admit(self, value: Any) -> Any:
        """Return the value to store for `value`, or raise `InputError`."""
        kind = self.kind
        if kind is Sequence:
            if type(value) is not tuple and (not isinstance(value, Sequence) or isinstance(value, str | bytes)):
                self._refuse(f"a sequence of {self._kinds()}", value)
            members = tuple(cast("Sequence[Any]", value))
            for place, member in enumerate(members):
                if type(member) not in self.inside and not _fits(member, self.inside):
                    self._refuse(self._kinds(), member, f"[{place}]")
            return members
        if kind is Mapping:
            if not isinstance(value, Mapping):
                self._refuse("a mapping", value)
            mapping = cast("Mapping[str, Any]", value)
            return EMPTY if not mapping else mapping if type(mapping) is FrozenMap else FrozenMap(mapping)
        if kind is Literal:
            if isinstance(value, str) and value in self.inside:
                return str.__str__(value)
            self._refuse("one of " + ", ".join(map(repr, self.inside)), value)
        if kind is str and isinstance(value, str):
            # Encoders know only `str` itself, so a subclass, such as an enum member, becomes a plain text. They leave
            # out only the very default object, so an equal text becomes that: equal values must give equal bytes.
            return self.default if value == self.default else str.__str__(value)
        if kind is float and type(value) is int:
            return float(value)
        if kind is Any or _fits(value, (kind,)):
            return value
        return self._refuse(_NAMES.get(kind) or f"a {kind.__name__}", value)

    def _kinds(self) -> str:
        return " or ".join(kind.__name__ for kind in self.inside[:3]) + (" or …" if len(self.inside) > 3 else "")

    def _refuse(self, wanted: str, value: Any, place: str = "") -> NoReturn:
        is_text = self.kind is Literal and isinstance(value, str)
        found = repr(value[:40]) if is_text else type(value).__name__
        raise InputError(f"{self.owner} takes {wanted} here, not {found}", path=self.name + place)


def _fits(value: Any, kinds: tuple[type, ...]) -> bool:
    # Only the exact plain types are encoded as they are: `True` is not an integer here.
    return type(value) in kinds or (isinstance(value, kinds) and not any(kind in _NAMES for kind in kinds))


# Metadata of a reply


class TokenUsage(Value, kw_only=True):
    """The number of tokens that a reply cost. Usages can be added.

    `prompt_tokens` counts all input; `cached_tokens` of it were read from the prompt cache, `cache_write_tokens` were
    written to it. `completion_tokens` counts all output; `reasoning_tokens` of it are thoughts.

    >>> TokenUsage(prompt_tokens=900, completion_tokens=40, total_tokens=940, cached_tokens=800)
    TokenUsage(prompt_tokens=900, completion_tokens=40, total_tokens=940, cached_tokens=800)
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0

    def __add__(self, other: "TokenUsage") -> "TokenUsage":
        """Return the sum; where a provider gives no total, it is that of input and output."""
        if not isinstance(other, TokenUsage):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        sums = {name: getattr(self, name) + getattr(other, name) for name in TokenUsage.__struct_fields__}
        return TokenUsage(**{**sums, "total_tokens": self._all_tokens() + other._all_tokens()})

    def _all_tokens(self) -> int:
        return self.total_tokens or self.prompt_tokens + self.completion_tokens


class TopLogProb(Value):
    """A possible token, its log probability, and its UTF-8 bytes if they are known."""

    token: str
    logprob: float
    bytes: tuple[int, ...] | None = None


class LogProb(TopLogProb):
    """A token of the reply, with the likeliest tokens at its place."""

    top_logprobs: tuple[TopLogProb, ...] = ()


class ResponseMeta(Value, kw_only=True):
    """Why a reply ended, what it cost, and its log probabilities; `extension` holds the provider's other data.

    >>> ResponseMeta(finish_reason="stop", extension={"service_tier": "flex"}).extension["service_tier"]
    'flex'
    """

    finish_reason: str = ""
    usage: TokenUsage | None = None
    logprobs: tuple[LogProb, ...] | None = None
    extension: Mapping[str, Any] = EMPTY


# What JSON can hold

MAX_DEPTH = 200
"""How deep containers may be nested."""

JSON_INTEGERS = (1 - 10**4300, 10**4300 - 1)
"""The smallest and the largest integer that Python reads from decimal digits."""

_CONTAINERS: Any = (dict, list, tuple, Struct)
_HARMLESS = frozenset((bool, NoneType))


def check_plain(
    value: Any,
    *,
    index: int | None = None,
    path: str = "",
    foreign: bool = False,
    integers: tuple[int, int] | None = None,
) -> None:
    """Raise `InputError` if `value` holds something that JSON cannot hold.

    Refused are NaN and infinities, lone surrogates, keys that are not strings, integers outside `integers` (by default,
    of over 4300 digits), cycles, more than 200 levels, and any other kind of object. A tuple counts as an array. With
    `foreign` set, objects of unknown types (bytes, an SDK's classes) are ignored instead. `index` and `path` say where
    `value` is; the error adds the rest of the path.

    >>> check_plain({"scores": [0.5, 1]})
    >>> check_plain({"scores": [0.5, float("nan")]}, index=3, path="extra")
    Traceback (most recent call last):
        ...
    suture.errors.InputError: message 3, extra.scores[1]: nan is not a JSON number
    """
    if type(value) is str and value.isascii():
        return
    rules = _Rules(*(integers or JSON_INTEGERS), foreign) if foreign or integers else _PLAIN
    is_leaf = not isinstance(value, _CONTAINERS)
    reason, way = (rules.leaf_fault(value), "") if is_leaf else _find_within(value, rules, 1, {})
    if reason:
        raise InputError(reason, index=index, path=(path + way).removeprefix("."))


class _Rules(Struct, frozen=True):
    """What is demanded of keys and leaves."""

    least: int
    most: int
    foreign: bool = False

    def keys_fault(self, keys: Iterable[object]) -> str:
        for key in keys:
            if type(key) is str and key.isascii():
                continue
            if not isinstance(key, str) or not (self.foreign or type(key) is str):
                return f"a key must be a string, not {type(key).__name__}"
            if not is_sendable(key):
                return "a key with a lone surrogate"
        return ""

    def leaf_fault(self, leaf: object) -> str:
        if type(leaf) is int:
            return "" if self.least <= leaf <= self.most else "an integer too large to be stored"
        if type(leaf) is float:
            return "" if isfinite(leaf) else f"{leaf} is not a JSON number"
        if type(leaf) is str or (self.foreign and isinstance(leaf, str)):
            return "" if is_sendable(leaf) else "text with a lone surrogate"
        return "" if self.foreign or type(leaf) in _HARMLESS else f"{type(leaf).__name__} is not a JSON value"


_PLAIN = _Rules(*JSON_INTEGERS)


def _find_within(container: Any, rules: _Rules, depth: int, looked: dict[int, int]) -> tuple[str, str]:
    """Return what is wrong in a container, and the path there; `looked` has the depth of each one, 0 while open."""
    identity = id(container)
    known = looked.get(identity, -1)
    if known == 0:
        return "a value that contains itself", ""
    if depth > MAX_DEPTH:
        return f"nested more than {MAX_DEPTH} levels deep", ""
    if known >= depth:
        return "", ""
    looked[identity] = 0
    children: Iterable[Any] = astuple(container) if isinstance(container, Struct) else container
    if isinstance(container, dict):
        if reason := rules.keys_fault(children):
            return reason, ""
        children = cast("dict[Any, Any]", container).values()
    for child in children:
        reason = way = ""
        if type(child) is str:
            reason = "" if child.isascii() else rules.leaf_fault(child)
        elif type(child) in _HARMLESS or (type(child) is int and rules.least <= child <= rules.most):
            continue
        elif not isinstance(child, _CONTAINERS):
            reason = rules.leaf_fault(child)
        elif child:
            reason, way = _find_within(child, rules, depth + 1, looked)
        if reason:
            return reason, _step(container, child) + way
    looked[identity] = depth
    return "", ""


def _step(container: Any, child: object) -> str:
    """Return the key of a child in the form of a path; it is searched only for an error."""
    entries: Any = asdict(container) if isinstance(container, Struct) else container
    pairs = cast("dict[str, Any]", entries).items() if isinstance(entries, dict) else enumerate(entries)
    key = next((key for key, each in pairs if each is child), "?")
    if isinstance(key, int):
        return f"[{key}]"
    return f".{key}" if key.isidentifier() and len(key) <= 40 else f"[{key[:40]!r}]"


def is_sendable(text: str) -> bool:
    """Return whether `text` can be written as UTF-8, which half a surrogate pair cannot."""
    try:
        text.encode("utf-16")  # refuses the same texts as UTF-8 does, in half the time
    except UnicodeEncodeError:
        return False
    return True
