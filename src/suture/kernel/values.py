"""Values of registered types as plain data and back: the stored form of run-local values and interrupts.

Plain data stays what it is. Everything else is tagged with the name it is registered under::

    {"$type": "shop.Order", "value": {"number": 7, "tags": {"$type": "set", "value": ["gift"]}}}

Nothing is imported by name and nothing is pickled: a type that is not registered is neither written nor read. Names
and fields are part of the stored form, so a class may move or be renamed as long as it keeps its registered name.
"""

import enum
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from functools import cache, partial
from math import isfinite
from threading import Lock
from typing import Any, Final, TypeVar, cast

import msgspec

from suture import messages
from suture.errors import ConfigError, InputError, SutureError

_T = TypeVar("_T")

_TAG: Final = "$type"
_VALUE: Final = "value"
_DEEPEST: Final = 200
_INTEGERS: Final = (-(2**63), 2**64 - 1)  # the range of MessagePack
_ESCAPED: Final = "dict"
_LARGE: Final = "int"
_SHOWN: Final = 40
_TOO_DEEP: Final = f"nested more than {_DEEPEST} levels deep"
_CONTAINERS: Final = frozenset((list, dict))
_LEAVES: Final = frozenset((str, int, float, bool, type(None)))


class Kind(msgspec.Struct, frozen=True):
    """A registered type: its name, and how its instances are turned into simpler values and back."""

    name: str
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    unordered: bool = False
    """Whether the order of the list from `encode` has no meaning; then it is sorted, for equal bytes."""


def _has_kind(cls: type[Any]) -> bool:
    """Return whether `_kind_of_class` needs nothing but the class."""
    return issubclass(cls, (msgspec.Struct, enum.Enum)) or "__dataclass_fields__" in cls.__dict__


def _kind_of_class(name: str, cls: type[Any]) -> Kind:
    """Return how instances of a Struct, a dataclass or an enum are stored; refuse any other class."""
    if not _has_kind(cls):
        raise ConfigError(
            f"{cls.__qualname__} is no msgspec Struct, dataclass or enum; "
            "pass encode=, which makes plain data of an instance, and decode=, which makes the instance again"
        )
    if issubclass(cls, enum.Enum):
        return Kind(name, lambda member: member.value, cls)
    if issubclass(cls, msgspec.Struct):
        return Kind(name, msgspec.structs.asdict, lambda fields: cls(**fields))
    return _dataclass_kind(name, cls)


def _encode_moment(value: datetime | time) -> Any:
    zone = value.tzinfo
    if zone is not None and type(zone) is not timezone:
        raise TypeError(
            f"a time zone of type {type(zone).__name__} cannot be stored; "
            "convert it with .astimezone(datetime.timezone.utc)"
        )
    made_of: list[Any] = []
    if zone is not None:
        offset, name = zone.utcoffset(None), zone.tzname(None)
        made_of = [offset] if name == timezone(offset).tzname(None) else [offset, name]
    if not value.fold and len(made_of) < 2 and not any(offset.microseconds for offset in made_of):
        return value.isoformat()
    # It has a fold, a zone name, or an offset that `fromisoformat` misreads.
    return [value.replace(tzinfo=None).isoformat(), value.fold, *made_of]


def _decode_moment(cls: Any, stored: Any) -> Any:
    if isinstance(stored, str):
        return cls.fromisoformat(stored)
    text, fold, *zone = stored
    return cls.fromisoformat(text).replace(fold=fold, tzinfo=timezone(*zone) if zone else None)


_LOOSE: Final[dict[type, type]] = {tuple: list, messages.FrozenMap: dict}
_fields_of = cache(msgspec.structs.fields)


def _message_fields(value: msgspec.Struct) -> dict[str, Any]:
    """Return the fields that are not at their default; a message accepts lists and dicts for them."""
    fields: dict[str, Any] = {}
    for info in _fields_of(type(value)):
        given: Any = getattr(value, info.name)
        if given is not info.default:
            loosen: Any = _LOOSE.get(given.__class__) if info.type is not Any else None
            fields[info.name] = given if loosen is None else loosen(given)
    return fields


def _dataclass_kind(name: str, cls: type[Any]) -> Kind:
    import dataclasses  # noqa: PLC0415 - whoever has a dataclass has paid for it
    import inspect  # noqa: PLC0415 - as `dataclasses` does

    fields = dataclasses.fields(cls)
    names = [field.name for field in fields]
    taken = {field.name for field in fields if field.init}
    parameters = inspect.signature(cls).parameters
    unknown = [each for each, one in parameters.items() if each not in taken and one.default is one.empty]
    if unknown or not taken <= set(parameters):
        raise ConfigError(
            f"{cls.__qualname__} cannot be made of its fields alone (see {', '.join(unknown) or '__init__'}); "
            "pass encode= and decode="
        )

    def encode(value: Any) -> dict[str, Any]:
        return {each: getattr(value, each) for each in names}

    def decode(stored: dict[str, Any]) -> Any:
        if not stored.keys() <= set(names):
            raise TypeError(f"no such field: {', '.join(sorted(stored.keys() - set(names)))}")
        value = cls(**{each: stored[each] for each in stored if each in taken})
        for each, given in stored.items():
            # Fields that are no arguments, and those that `__post_init__` has changed again.
            if getattr(value, each, dataclasses.MISSING) is not given:
                object.__setattr__(value, each, given)
        return value

    return Kind(name, encode, decode)


class UnregisteredTypeError(SutureError, TypeError):
    """A value has a type that is not registered, or stored data names such a type.

    >>> encode_value({"total": 3 + 4j})
    Traceback (most recent call last):
        ...
    suture.kernel.values.UnregisteredTypeError: total: complex cannot be stored; register it first: \
suture.register_type("your_package.complex", complex, encode=..., decode=...)
    """


_by_name: Final[dict[str, Kind]] = {}
_by_class: Final[dict[type, Kind]] = {}
_registering: Final = Lock()


def register_type(
    name: str,
    cls: type[_T],
    *,
    encode: Callable[[_T], Any] | None = None,
    decode: Callable[[Any], _T] | None = None,
) -> None:
    """Make instances of `cls` storable, under `name`; once per class, where the class is defined.

    msgspec Structs, dataclasses and enums need nothing else: they are stored by their fields, or their value.
    Any other class needs `encode`, which turns an instance into plain data (or other storable values), and
    `decode`, which turns that into the instance. Subclasses count as separate types. A name or class that is taken
    is refused with `ConfigError`.

    ::

        @dataclass
        class Order:
            number: int


        suture.register_type("shop.Order", Order)
        suture.register_type("shop.UUID", UUID, encode=str, decode=UUID)

    >>> from suture.messages import Message
    >>> register_type("shop.Note", Message)
    Traceback (most recent call last):
        ...
    suture.errors.ConfigError: suture.messages.message.Message is registered already, as 'suture.Message'; \
register a class once
    """
    if not isinstance(name, str) or not name or not _is_unicode(name):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"a type is registered under a text that is not empty, not {name!r}")
    if not isinstance(cls, type):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"only a class can be registered, and {cls!r} is none")
    if (encode is None) != (decode is None):
        raise ConfigError(f"{_called(cls)}: encode and decode come together or not at all")
    kind = _kind_of_class(name, cls) if encode is None or decode is None else Kind(name, encode, decode)
    with _registering:
        if name in _by_name or name == _ESCAPED:
            raise ConfigError(f"the name {name!r} is taken; register {_called(cls)} once, under a name of its own")
        if cls in _by_class or cls in _LEAVES or cls in _CONTAINERS:
            taken = f", as {_by_class[cls].name!r}" if cls in _by_class else ""
            raise ConfigError(f"{_called(cls)} is registered already{taken}; register a class once")
        _by_name[name] = _by_class[cls] = kind


def encode_value(value: Any) -> Any:
    """Return `value` as plain data that JSON and MessagePack can carry; `decode_value` restores it exactly.

    Raises `UnregisteredTypeError` for an instance of a type that is not registered, `InputError` for a value that
    cannot come back as it was (NaN, a lone surrogate, a key that is no string, a cycle, more than 200 levels) or
    whose `encode` fails. Both say where it stands.

    >>> encode_value({"seen": (1, 2), "raw": b"hi"})
    {'seen': {'$type': 'tuple', 'value': [1, 2]}, 'raw': {'$type': 'bytes', 'value': 'aGk='}}
    >>> encode_value({"scores": [0.5, float("nan")]})
    Traceback (most recent call last):
        ...
    suture.errors.InputError: scores[1]: nan is not a number that can be stored
    """
    try:
        return _encoded(value, 1)
    except RecursionError:
        raise InputError("nested too deeply for the stack that is left") from None
    except _Refusal as refusal:
        raise refusal.explain() from refusal.__cause__


def decode_value(plain: Any) -> Any:
    """Return the value that `encode_value` turned into `plain`.

    Builds registered types only. Raises `UnregisteredTypeError` for a name that is not registered (here, or not
    yet), `InputError` for data that no `encode_value` wrote or that its type does not take any more.

    >>> decode_value({"seen": {"$type": "tuple", "value": [1, 2]}})
    {'seen': (1, 2)}
    >>> decode_value({"$type": "shop.Basket", "value": {}})
    Traceback (most recent call last):
        ...
    suture.kernel.values.UnregisteredTypeError: no type is registered as 'shop.Basket'; import the module that \
calls suture.register_type("shop.Basket", ...) before this is read
    """
    try:
        return _decoded(plain)
    except RecursionError:
        raise InputError("nested too deeply for the stack that is left") from None


class _Refusal(Exception):
    """Why a value cannot be stored; on its way out, each container adds itself and the key."""

    def __init__(self, text: str, error: type[SutureError] = InputError) -> None:
        self.text, self.error, self.steps = text, error, list[tuple[Any, str | int]]()

    def explain(self) -> SutureError:
        """Return the error that says what is wrong, and where."""
        text, steps, held = self.text, self.steps[::-1], set[int]()
        for at, (owner, _) in enumerate(steps):
            if text is _TOO_DEEP and id(owner) in held:
                text, steps = "a value that contains itself cannot be stored", steps[:at]
                break
            held.add(id(owner))
        path = ""
        for _, key in steps:
            if isinstance(key, int):
                path += f"[{key}]"
            elif key:
                path += f".{key}" if key.isidentifier() and len(key) <= _SHOWN else f"[{key[:_SHOWN]!r}]"
        path = path.removeprefix(".")
        if text is _TOO_DEEP:
            path = path[:_SHOWN] + "…"
        if self.error is InputError:
            return InputError(text, path=path)
        return self.error(f"{path}: {text}" if path else text)


def _encoded(value: Any, depth: int) -> Any:  # noqa: C901, PLR0912
    # One function, so that each level takes one frame: 200 levels must fit into whatever stack is left.
    cls: type[Any] = type(value)  # pyright: ignore[reportUnknownVariableType]
    if cls is str and not _is_unicode(value):
        raise _Refusal("a text with a lone surrogate cannot be stored")
    if cls is int and not _INTEGERS[0] <= value <= _INTEGERS[1]:
        return {_TAG: _LARGE, _VALUE: hex(value)}  # hexadecimal has no length limit in Python
    if cls is float and not isfinite(value):
        raise _Refusal(f"{value} is not a number that can be stored")
    if cls in _LEAVES:
        return value
    kind, inner = (None, value) if cls in _CONTAINERS else _take_apart(value, cls)
    form: type[Any] = inner.__class__
    if form in _CONTAINERS and depth > _DEEPEST:
        raise _Refusal(_TOO_DEEP)
    for key in inner if form is dict else ():
        if type(key) is not str:
            raise _Refusal(f"a key must be a string, not {type(key).__name__}")
        if not _is_unicode(key):
            raise _Refusal("a key with a lone surrogate cannot be stored")
    at: str | int = ""
    plain: Any
    try:
        if form is list:
            plain = []
            for at, each in enumerate(inner):  # noqa: B007 - where it was refused
                plain.append(_encoded(each, depth + 1))
        elif form is dict:
            plain = {}
            for at, each in inner.items():
                plain[at] = _encoded(each, depth + 1)
            if _TAG in plain:
                plain = {_TAG: _ESCAPED, _VALUE: plain}
        else:
            plain = _encoded(inner, depth)
    except _Refusal as refusal:
        refusal.steps.append((value, at))
        raise
    if kind is not None and kind.unordered:
        plain.sort(key=msgspec.json.encode)
    return plain if kind is None else {_TAG: kind.name, _VALUE: plain}


def _take_apart(value: Any, cls: type[Any]) -> tuple[Kind, Any]:
    kind = _by_class.get(cls)
    if kind is None:
        package = cls.__module__ if cls.__module__ not in ("builtins", "__main__") else "your_package"
        functions = "" if _has_kind(cls) else ", encode=..., decode=..."
        call = f'suture.register_type("{package}.{cls.__name__}", {cls.__name__}{functions})'
        raise _Refusal(f"{_called(cls)} cannot be stored; register it first: {call}", UnregisteredTypeError)
    try:
        return kind, kind.encode(value)
    except Exception as error:
        raise _Refusal(f"{_called(cls)} could not be encoded: {error!r}") from error


def _decoded(plain: Any) -> Any:
    # One function, like `_encoded`: what could be written must be readable with the same stack.
    if type(plain) is list:
        return list(map(_decoded, cast("list[Any]", plain)))
    if type(plain) is not dict:
        if type(plain) in _LEAVES:
            return plain
        raise InputError(f"{type(plain).__name__} is not what a value is stored as")
    mapping = cast("dict[str, Any]", plain)
    kind, mapping = _find_kind(mapping) if _TAG in mapping else (None, mapping)
    if kind is not None:
        inner = _decoded(mapping[_VALUE])
        try:
            return kind.decode(inner)
        except Exception as error:
            raise InputError(f"what is stored as {kind.name!r} could not be decoded: {error!r}") from error
    entries: dict[str, Any] = {}
    for key, each in mapping.items():
        entries[key] = _decoded(each)
    return entries


def _find_kind(mapping: dict[str, Any]) -> tuple[Kind | None, dict[str, Any]]:
    """Return the kind that `mapping` names and the mapping; for an escaped dict, `None` and the dict itself."""
    name, inner = mapping[_TAG], mapping.get(_VALUE)
    if type(name) is not str or mapping.keys() != {_TAG, _VALUE} or (name == _ESCAPED and type(inner) is not dict):
        raise InputError(f"an object with {_TAG!r} that is no stored value; its keys: {', '.join(mapping)[:_SHOWN]}")
    if name == _ESCAPED:
        return None, cast("dict[str, Any]", inner)
    kind = _by_name.get(name)
    if kind is None:
        raise UnregisteredTypeError(
            f"no type is registered as {name!r}; import the module that calls "
            f'suture.register_type("{name}", ...) before this is read'
        )
    return kind, mapping


def _called(cls: type) -> str:
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _is_unicode(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


_by_name[_LARGE] = Kind(_LARGE, hex, lambda digits: int(digits, 16))
_KNOWN: Final[dict[type, Kind]] = {
    tuple: Kind("tuple", list, tuple),
    set: Kind("set", list, set, unordered=True),
    frozenset: Kind("frozenset", list, frozenset, unordered=True),
    bytes: Kind(
        "bytes",
        lambda data: b2a_base64(data, newline=False).decode(),
        lambda text: a2b_base64(text, strict_mode=True),
    ),
    datetime: Kind("datetime", _encode_moment, partial(_decode_moment, datetime)),
    time: Kind("time", _encode_moment, partial(_decode_moment, time)),
    date: Kind("date", date.isoformat, date.fromisoformat),
    timedelta: Kind("timedelta", lambda span: [span.days, span.seconds, span.microseconds], lambda it: timedelta(*it)),
    msgspec.UnsetType: Kind("unset", lambda _: None, lambda _: msgspec.UNSET),
    messages.FrozenMap: Kind("suture.FrozenMap", dict, messages.FrozenMap),
}
"""The built-in types that are registered from the start, as are the values of `suture.messages`."""
for _name in messages.__all__:
    _cls = getattr(messages, _name)
    if isinstance(_cls, type) and issubclass(_cls, msgspec.Struct):
        _KNOWN[_cls] = Kind(f"suture.{_name}", _message_fields, _kind_of_class("", _cls).decode)
_by_class.update(_KNOWN)
_by_name.update({kind.name: kind for kind in _KNOWN.values()})
