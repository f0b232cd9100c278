"""The types that the tests of stored values register, and one that they do not."""

import enum
from dataclasses import dataclass, field
from typing import Any

import msgspec

from suture.kernel.values import register_type


class Size(enum.Enum):
    SMALL = "s"
    LARGE = ("l", 2)


class Access(enum.Flag):
    READ = 1
    WRITE = 2


class Level(enum.IntEnum):
    LOW = 1


class Point(msgspec.Struct, frozen=True):
    x: Any
    y: Any = msgspec.UNSET


class Renamed(msgspec.Struct, rename="camel", array_like=True, tag=True, forbid_unknown_fields=True):
    first_name: Any = None
    rest: list[Any] = []


@dataclass
class Order:
    number: Any
    lines: list[Any] = field(default_factory=list)
    total: Any = field(init=False, default=None)

    def __post_init__(self):
        self.total = len(self.lines)


@dataclass(frozen=True, slots=True)
class Tag:
    text: str
    weight: Any = field(default=0, kw_only=True, compare=False)


@dataclass
class Derived:
    """Its number grows each time it is made, and it has something that is no field."""

    number: int

    def __post_init__(self):
        self.number += 1
        self.double = self.number * 2


class Money:
    def __init__(self, amount: Any):
        self.amount = amount

    def __eq__(self, other: object):
        return type(other) is Money and other.amount == self.amount

    def __hash__(self):
        return hash(self.amount)


class Untyped:
    pass


for name, cls in {
    "tests.Size": Size,
    "tests.Access": Access,
    "tests.Level": Level,
    "tests.Point": Point,
    "tests.Renamed": Renamed,
    "tests.Order": Order,
    "tests.Tag": Tag,
    "tests.Derived": Derived,
}.items():
    register_type(name, cls)
register_type("tests.Money", Money, encode=lambda money: (money.amount,), decode=lambda inner: Money(*inner))
