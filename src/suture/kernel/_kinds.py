"""How instances of a class are taken apart and put together, for `_typed.py`: found out from the class itself.

`encode` gives something simpler, which is then encoded in turn; `decode` gets that back, already decoded.
"""

import enum
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta, timezone
from functools import cache
from typing import Any, NamedTuple, cast

import msgspec
from msgspec.structs import FieldInfo

from suture import messages
from suture.errors import ConfigError

__all__ = ["Kind", "has_kind", "kind_of_class", "known_kinds"]


class Kind(NamedTuple):
    """A registered type: its name, and how an instance becomes something simpler and comes back."""

    name: str
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    unordered: bool = False
    """Whether the order of the list that `encode` gives means nothing; then it is sorted, for equal bytes."""


def has_kind(cls: type[Any]) -> bool:
    """Tell whether `kind_of_class` can find out everything from the class.

    >>> has_kind(enum.Enum), has_kind(complex)
    (True, False)
    """
    return issubclass(cls, (msgspec.Struct, enum.Enum)) or "__dataclass_fields__" in cls.__dict__


def kind_of_class(name: str, cls: type[Any]) -> Kind:
    """Return how instances of a Struct, a dataclass or an enum are stored; refuse any other class.

    >>> class Size(enum.Enum):
    ...     SMALL = "s"
    >>> kind_of_class("shop.Size", Size).encode(Size.SMALL)
    's'
    """
    if not has_kind(cls):
        raise ConfigError(
            f"{cls.__qualname__} is no msgspec Struct, dataclass or enum; "
            "pass encode=, which makes plain data of an instance, and decode=, which makes the instance again"
        )
    if issubclass(cls, enum.Enum):
        return Kind(name, _value_of, cls)
    if issubclass(cls, msgspec.Struct):
        return Kind(name, _struct_fields, _maker(cls))
    return _dataclass_kind(name, cls)


def known_kinds() -> Iterator[tuple[type, Kind]]:
    """Yield the types that are registered beforehand: Python's own, and the values of `suture.messages`."""
    yield tuple, Kind("tuple", list, tuple)
    yield set, Kind("set", list, set, unordered=True)
    yield frozenset, Kind("frozenset", list, frozenset, unordered=True)
    yield bytes, Kind("bytes", _base64, _bytes)
    yield datetime, Kind("datetime", _moment, _from_moment(datetime))
    yield time, Kind("time", _moment, _from_moment(time))
    yield date, Kind("date", date.isoformat, date.fromisoformat)
    yield timedelta, Kind("timedelta", _span, _from_span)
    yield msgspec.UnsetType, Kind("unset", _nothing, _unset)
    yield messages.FrozenMap, Kind("suture.FrozenMap", dict, messages.FrozenMap)
    for name in messages.__all__:
        cls = getattr(messages, name)
        if isinstance(cls, type) and issubclass(cls, msgspec.Struct):
            yield cls, Kind(f"suture.{name}", _message_fields, _maker(cls))


def _maker(cls: type) -> Callable[[Any], Any]:
    return lambda fields: cls(**fields)


def _value_of(member: enum.Enum) -> Any:
    return member.value


def _base64(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()


def _bytes(text: str) -> bytes:
    return a2b_base64(text, strict_mode=True)


def _moment(value: datetime | time) -> Any:
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
    # A fold, a zone's name, or an offset that `fromisoformat` misreads.
    return [value.replace(tzinfo=None).isoformat(), value.fold, *made_of]


def _from_moment(cls: Any) -> Callable[[Any], Any]:
    def decode(stored: Any) -> Any:
        if isinstance(stored, str):
            return cls.fromisoformat(stored)
        text, fold, *zone = stored
        return cls.fromisoformat(text).replace(fold=fold, tzinfo=timezone(*zone) if zone else None)

    return decode


def _span(value: timedelta) -> list[int]:
    return [value.days, value.seconds, value.microseconds]


def _from_span(stored: list[int]) -> timedelta:
    days, seconds, microseconds = stored
    return timedelta(days, seconds, microseconds)


def _nothing(_: object) -> None:
    return None


def _unset(_: object) -> msgspec.UnsetType:
    return msgspec.UNSET


def _struct_fields(value: msgspec.Struct) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__struct_fields__}


@cache
def _infos(cls: type[msgspec.Struct]) -> tuple[FieldInfo, ...]:
    return msgspec.structs.fields(cls)


def _message_fields(value: msgspec.Struct) -> dict[str, Any]:
    """Return the fields that are not at their default. A message takes lists and dicts and makes them its own."""
    fields: dict[str, Any] = {}
    for info in _infos(type(value)):
        given = getattr(value, info.name)
        if given is not info.default:
            fields[info.name] = given if info.type is Any else _loosened(given)
    return fields


def _loosened(given: Any) -> Any:
    if type(given) is tuple:
        return list(cast("tuple[Any, ...]", given))
    return dict(given) if type(given) is messages.FrozenMap else given


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
            # What is not an argument, and what `__post_init__` has changed once more.
            if getattr(value, each, dataclasses.MISSING) is not given:
                object.__setattr__(value, each, given)
        return value

    return Kind(name, encode, decode)
