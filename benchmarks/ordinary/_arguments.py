"""What a model writes as arguments, and what parameters people declare."""

import dataclasses
import datetime as dt
import decimal
import enum
import ipaddress
import pathlib
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, TypeVar

import pydantic
from _case import RAN, Case, Facts, call_then_text
from typing_extensions import TypedDict

__all__ = ["CASES", "TITLE"]

TITLE = "Arguments of tools"
T = TypeVar("T")

_FORECAST = """Get the forecast.

Parameters
----------
city : str
    The name of the place.
days : int, optional
    How many days ahead.

Returns
-------
str
    The forecast.
"""


class Colour(enum.Enum):
    RED = "red"


class Point(pydantic.BaseModel):
    x: int
    y: int = 0


@dataclasses.dataclass
class Box:
    corner: Point
    name: str = ""


@dataclasses.dataclass
class Cat:
    lives: int


@dataclasses.dataclass
class Dog:
    breed: str


class Car(TypedDict):
    wheels: int


class Boat(TypedDict):
    sail: str


class Page(pydantic.BaseModel, Generic[T]):
    items: list[T]


class Named(pydantic.BaseModel):
    """Its field has a name that is a word of Python."""

    source: str = pydantic.Field(alias="from")


class Pair(NamedTuple):
    left: int
    right: int


Ident = NewType("Ident", int)


def function(annotation: Any, default: Any = Parameter.empty) -> Callable[..., str]:
    """Return a function `act(x: annotation = default)`, as a user would have written it."""

    def act(x: Any = default) -> str:
        """Do it.

        Args:
            x: what with
        """
        RAN.append(x)
        return "well done"

    kind = Parameter.POSITIONAL_OR_KEYWORD
    act.__annotations__ = {"x": annotation, "return": str}
    act.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter("x", kind, annotation=annotation, default=default)], return_annotation=str
    )
    if default is Parameter.empty:
        act.__defaults__ = None
    return act


def forecast(city: str, days: int = 3) -> str:
    RAN.append((city, days))
    return "sunny"


forecast.__doc__ = _FORECAST


def _plain(x, y=2):  # noqa: ANN001, ANN202
    """Do it."""
    RAN.append((x, y))
    return "well done"


def ran_with(value: Any) -> Callable[[Facts], str]:
    """The tool ran once, with this value, of the same type."""

    def judge(facts: Facts) -> str:
        if facts.value != "done":
            return f"gave {facts.value!r}"
        if len(facts.ran) != 1:
            return "the tool never ran" if not facts.ran else f"the tool ran {len(facts.ran)} times"
        ran = list(facts.ran[0]) if isinstance(value, list) and not isinstance(facts.ran[0], str) else facts.ran[0]
        return "" if ran == value and type(ran) is type(value) else f"the tool got {facts.ran[0]!r}"

    return judge


def _arguments(what: str, annotation: Any, written: str, value: Any, default: Any = Parameter.empty) -> Case:
    return Case(
        what=what,
        program="use",
        given={"function": function(annotation, default)},
        answer=call_then_text(f'{{"x": {written}}}' if written else "{}"),
        judge=ran_with(value),
    )


def _described(facts: Facts) -> str:
    made = facts.requests[0].body["tools"][0]["function"]
    if "The name of the place" not in str(made["parameters"]["properties"]["city"].get("description")):
        return "the parameter has no description"
    return "" if "Parameters" not in made["description"] else "the parameters stay in the tool's description"


_AT = dt.datetime(2026, 1, 1, 10, 0)  # noqa: DTZ001

CASES = (
    _arguments('`"5"` for an `int`', int, '"5"', 5),
    Case(
        what='a model that always writes `"5"` for an `int`',
        program="use",
        given={"function": function(int)},
        answer=call_then_text('{"x": "5"}', until=lambda result: "well done" in result),
        judge=ran_with(5),
    ),
    _arguments("`5.0` for an `int`", int, "5.0", 5),
    _arguments("`5` for a `float`", float, "5", 5.0),
    _arguments('`"5.5"` for a `float`', float, '"5.5"', 5.5),
    _arguments('`"true"` for a `bool`', bool, '"true"', True),
    _arguments('`["1", "2"]` for a `list[int]`', list[int], '["1", "2"]', [1, 2]),
    _arguments('`"5.0"` for an `int`', int, '"5.0"', 5),
    _arguments("`1` for a `bool`", bool, "1", True),
    _arguments('`"yes"` for a `bool`', bool, '"yes"', True),
    _arguments("`5` for a `str`", str, "5", "5"),
    _arguments('`{"1": "a"}` for a `dict[int, str]`', dict[int, str], '{"1": "a"}', {1: "a"}),
    _arguments("`null` for an `int` with a default", int, "null", 3, 3),
    _arguments("an argument too many", int, '5, "unasked": true', 5),
    _arguments("`null` for `int | None`", int | None, "null", None),
    _arguments('`"5"` for `int | str` stays a text', int | str, '"5"', "5"),
    _arguments('`"5"` inside a pydantic model', Point, '{"x": "5"}', Point(x=5)),
    _arguments('`"5"` inside a dataclass', Cat, '{"lives": "9"}', Cat(9)),
    _arguments("`datetime`: `2026-01-01T10:00:00`", dt.datetime, '"2026-01-01T10:00:00"', _AT),
    _arguments("`datetime`: `2026-01-01T10:00`", dt.datetime, '"2026-01-01T10:00"', _AT),
    _arguments("`datetime`: `2026-01-01 10:00`", dt.datetime, '"2026-01-01 10:00"', _AT),
    _arguments("`datetime`: `2026-01-01`", dt.datetime, '"2026-01-01"', dt.datetime(2026, 1, 1)),  # noqa: DTZ001
    _arguments("`datetime`: `1767261600`", dt.datetime, "1767261600", dt.datetime(2026, 1, 1, 10, tzinfo=dt.UTC)),
    _arguments("`datetime`: `2026-01-01T10:00:00Z`", dt.datetime, '"2026-01-01T10:00:00Z"', _AT.replace(tzinfo=dt.UTC)),
    _arguments("`date`: `2026-01-01T00:00:00`", dt.date, '"2026-01-01T00:00:00"', dt.date(2026, 1, 1)),
    _arguments("`date`", dt.date, '"2026-01-01"', dt.date(2026, 1, 1)),
    _arguments("`time`: `10:00`", dt.time, '"10:00"', dt.time(10)),
    _arguments("`timedelta`: `3600`", dt.timedelta, "3600", dt.timedelta(hours=1)),
    _arguments("`timedelta`: `01:00:00`", dt.timedelta, '"01:00:00"', dt.timedelta(hours=1)),
    _arguments("`datetime | str`: `later`", dt.datetime | str, '"later"', "later"),
    _arguments("`Path`", pathlib.Path, '"/tmp/a"', pathlib.Path("/tmp/a")),
    _arguments("`Path` with a default", pathlib.Path, "", pathlib.Path(), pathlib.Path()),
    _arguments("`Iterable[str]`", Iterable[str], '["a"]', ["a"]),
    _arguments("`Sequence[str]`", Sequence[str], '["a"]', ["a"]),
    _arguments("`Mapping[str, int]`", Mapping[str, int], '{"a": 1}', {"a": 1}),
    _arguments("`dict[str, Any]`", dict[str, Any], '{"a": [1]}', {"a": [1]}),
    _arguments("`set[str]`", set[str], '["a"]', {"a"}),
    _arguments("`tuple[int, str]`", tuple[int, str], '[1, "a"]', (1, "a")),
    _arguments("`Decimal`: `1.5`", decimal.Decimal, "1.5", decimal.Decimal("1.5")),
    _arguments('`Decimal`: `"1.5"`', decimal.Decimal, '"1.5"', decimal.Decimal("1.5")),
    _arguments("`UUID`", uuid.UUID, f'"{uuid.UUID(int=1)}"', uuid.UUID(int=1)),
    _arguments("an `Enum`", Colour, '"red"', Colour.RED),
    _arguments("a `Literal`", Literal["a", "b"], '"b"', "b"),
    _arguments("a `NamedTuple`", Pair, "[1, 2]", Pair(1, 2)),
    _arguments("a `NewType`", Ident, "7", 7),
    _arguments("`list[Model]`, of pydantic", list[Point], '[{"x": 1}]', [Point(x=1)]),
    _arguments("a dataclass that holds a pydantic model", Box, '{"corner": {"x": 1}}', Box(Point(x=1))),
    _arguments("`list[int] | list[str]`", list[int] | list[str], '["a"]', ["a"]),
    _arguments("a union of two dataclasses", Cat | Dog, '{"breed": "pug"}', Dog("pug")),
    _arguments("a union of two `TypedDict`s", Car | Boat, '{"sail": "red"}', Boat(sail="red")),
    _arguments("`Annotated[int, Field(gt=0)]`", Annotated[int, pydantic.Field(gt=0)], "5", 5),
    _arguments("`IPv4Address`", ipaddress.IPv4Address, '"10.0.0.1"', ipaddress.IPv4Address("10.0.0.1")),
    _arguments("`Model | None`: `null`", Point | None, "null", None),
    _arguments("a generic model: `Page[Model]`", Page[Point], '{"items": [{"x": 1}]}', Page[Point](items=[Point(x=1)])),
    _arguments("a model with an alias", Named, '{"from": "a"}', Named(**{"from": "a"})),
    _arguments("`HttpUrl`", pydantic.HttpUrl, '"https://a.b/c"', pydantic.HttpUrl("https://a.b/c")),
    Case(
        what="parameters without annotations",
        program="use",
        given={"function": _plain},
        answer=call_then_text('{"x": "a"}', name="_plain"),
        judge=ran_with(("a", 2)),
    ),
    Case(
        what="a NumPy docstring describes the parameters",
        program="use",
        given={"function": forecast},
        answer=call_then_text('{"city": "Rome"}', name="forecast"),
        judge=_described,
    ),
)
