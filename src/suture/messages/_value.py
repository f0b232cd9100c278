"""`Value`, the root of every struct in this room: frozen, and checked when it is made.

msgspec checks types when it decodes but not when Python code constructs. `Value` closes that gap from the
annotations themselves, so a struct here declares its fields and nothing else. The rules are worked out once
per class; a field left at its default costs one comparison.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from types import UnionType
from typing import Any, Literal, NamedTuple, NoReturn, Union, cast, dataclass_transform, get_args, get_origin

from msgspec import Struct, field
from msgspec.structs import FieldInfo, fields, force_setattr

from suture.errors import InputError
from suture.messages._frozen import EMPTY, FrozenMap

__all__ = ["Value"]

_NAMES = {str: "a string", int: "an integer", bool: "a boolean", float: "a number"}
_SHOWN = 3


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Value(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True, forbid_unknown_fields=True):
    """A frozen struct whose fields are coerced (list to tuple, mapping to `FrozenMap`) or refused.

    To change one, make another with `msgspec.structs.replace`. A field that is not known is refused when
    reading, never dropped.
    """

    def __post_init__(self) -> None:
        kind = type(self)
        rules = _RULES.get(kind) or _learn(kind)
        for given, (default, exact, admit, name) in zip(rules.read(self), rules.each, strict=False):
            if given is default or type(given) is exact:
                continue
            kept = admit(given)
            if kept is not given:
                force_setattr(self, name, kept)


class _Rule(NamedTuple):
    """How one field is checked: its default and its exact type pass at once, `admit` judges the rest."""

    default: Any
    exact: type | None
    admit: Callable[[Any], Any]
    name: str


class _Rules(NamedTuple):
    """The rules of one class, and a function that reads the fields they are about, all at once."""

    each: tuple[_Rule, ...]
    read: Callable[[Value], tuple[Any, ...]]


_RULES: dict[type[Value], _Rules] = {}


def _learn(kind: type[Value]) -> _Rules:
    each = tuple(_rule(_Field(kind.__name__, info.name), info) for info in fields(kind) if info.type is not Any)
    rules = _RULES[kind] = _Rules(each, _reader([rule.name for rule in each]))
    return rules


def _reader(names: list[str]) -> Callable[[Value], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)

    def read(value: Value) -> tuple[Any, ...]:
        return tuple([getattr(value, name) for name in names])

    return read


class _Field(NamedTuple):
    """Where a value is about to be put; says so when the value does not fit."""

    owner: str
    name: str

    def refuse(self, wanted: str, found: str, place: str = "") -> NoReturn:
        raise InputError(f"{self.owner} takes {wanted} here, not {found}", path=self.name + place)


def _rule(field: _Field, info: FieldInfo) -> _Rule:
    hint: Any = info.type
    if get_origin(hint) in (Union, UnionType):
        # In a single field the only union is "or None", and None is then the default that passes at once.
        (hint,) = (choice for choice in get_args(hint) if choice is not type(None))
    if isinstance(info.default, str) and info.default:
        return _Rule(info.default, None, _text_or(info.default, field), info.name)
    return _Rule(info.default, hint if hint in _NAMES else None, _admission(field, hint), info.name)


def _admission(field: _Field, hint: Any) -> Callable[[Any], Any]:
    origin = get_origin(hint)
    if origin is Literal:
        return _one_of(field, get_args(hint))
    if origin in (tuple, Sequence):
        return _many(field, get_args(hint)[0])
    if origin is Mapping:
        return _mapping(field)
    if hint is str:
        return _text(field)
    if hint is float:
        return _number(field)
    return _instance(field, hint)


def _one_of(field: _Field, choices: tuple[str, ...]) -> Callable[[Any], Any]:
    def admit(given: Any) -> Any:
        if type(given) is str and given in choices:
            return given
        if isinstance(given, str) and given in choices:
            return str.__str__(given)
        found = repr(given[:40]) if isinstance(given, str) else type(given).__name__
        return field.refuse("one of " + ", ".join(map(repr, choices)), found)

    return admit


def _text(field: _Field) -> Callable[[Any], Any]:
    def admit(given: Any) -> Any:
        # Encoders know only str itself, so a subclass (an enum member, say) is kept as the text it is.
        return str.__str__(given) if isinstance(given, str) else field.refuse(_NAMES[str], type(given).__name__)

    return admit


def _text_or(default: str, field: _Field) -> Callable[[Any], Any]:
    check = _text(field)

    def admit(given: Any) -> Any:
        # Encoders leave out a default by identity; for equal values to be equal bytes, an equal text is it.
        return default if given == default else check(given)

    return admit


def _number(field: _Field) -> Callable[[Any], Any]:
    def admit(given: Any) -> Any:
        return float(given) if type(given) is int else field.refuse(_NAMES[float], type(given).__name__)

    return admit


def _mapping(field: _Field) -> Callable[[Any], Any]:
    def admit(given: Any) -> Any:
        if not isinstance(given, Mapping):
            field.refuse("a mapping", type(given).__name__)
        if not given:
            return EMPTY
        mapping = cast("Mapping[str, Any]", given)
        return mapping if type(mapping) is FrozenMap else FrozenMap(mapping)

    return admit


def _instance(field: _Field, kind: type) -> Callable[[Any], Any]:
    wanted = _NAMES.get(kind) or f"a {kind.__name__}"

    def admit(given: Any) -> Any:
        return given if _fits(given, (kind,)) else field.refuse(wanted, type(given).__name__)

    return admit


def _many(field: _Field, member: Any) -> Callable[[Any], Any]:
    kinds: tuple[type, ...] = get_args(member) or (member,)
    exact = frozenset(kinds)
    names = " or ".join(kind.__name__ for kind in kinds[:_SHOWN]) + (" or …" if len(kinds) > _SHOWN else "")

    def admit(given: Any) -> Any:
        if type(given) is not tuple and (not isinstance(given, Sequence) or isinstance(given, str | bytes)):
            field.refuse(f"a sequence of {names}", type(cast("object", given)).__name__)
        members = tuple(cast("Sequence[Any]", given))
        if not exact.issuperset(map(type, members)):
            for place, each in enumerate(members):
                if not _fits(each, kinds):
                    field.refuse(names, type(each).__name__, f"[{place}]")
        return members

    return admit


def _fits(given: Any, kinds: tuple[type, ...]) -> bool:
    # Of the plain types only the exact one is encoded as it is: True is not an integer here.
    return type(given) in kinds or (isinstance(given, kinds) and not any(kind in _NAMES for kind in kinds))
