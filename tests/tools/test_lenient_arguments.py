"""What models write for a value, and what is read, in the types of msgspec, of Python and of pydantic alike."""

import collections
import dataclasses
import datetime as dt
import enum
import fractions
import ipaddress
import json
import os
import pathlib
import re
import uuid
import zoneinfo
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Generic, Literal, NamedTuple, NewType, NotRequired, TypeVar

import attrs
import jsonschema
import msgspec
import pydantic
import pytest
from annotated_types import Gt, Interval, Len, Predicate
from typing_extensions import TypeAliasType, TypedDict

from suture.errors import ConfigError
from suture.tools import tool
from tests.tools.reading import Color, Range, reading, taken

T = TypeVar("T")
Number = TypeVar("Number", int, str)
UserId = NewType("UserId", int)
TEN = dt.datetime.fromisoformat("2026-01-01T10:00:00")


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


SCALARS: list[tuple[Any, str, Any]] = [
    (int, '"5"', 5),
    (int, '" 5 "', 5),
    (int, '"+5"', 5),
    (int, '"-5"', -5),
    (int, "5.0", 5),
    (int, '"5.0"', 5),
    (int, "true", 1),
    (float, '"5.5"', 5.5),
    (float, '"5"', 5.0),
    (float, '"1e3"', 1000.0),
    (float, '"inf"', float("inf")),
    (float, "5", 5.0),
    (bool, '"true"', True),
    (bool, '"False"', False),
    (bool, '"yes"', True),
    (bool, '"off"', False),
    (bool, "1", True),
    (bool, "0.0", False),
    (Decimal, '"1.10"', Decimal("1.10")),
    (Decimal, '" 1.5 "', Decimal("1.5")),
    (Decimal, "1", Decimal(1)),
    (uuid.UUID, '"{12345678-1234-5678-1234-567812345678}"', uuid.UUID("12345678-1234-5678-1234-567812345678")),
    (Level, '"1"', Level.LOW),
    (dt.datetime, '"2026-01-01T10:00"', TEN),
    (dt.datetime, '"2026-01-01 10:00"', TEN),
    (dt.datetime, '"2026-01-01_10:00:30"', TEN.replace(second=30)),
    (dt.datetime, '"2026-01-01 10:00:00.5"', TEN.replace(microsecond=500_000)),
    (dt.datetime, '"2026-01-01"', TEN.replace(hour=0)),
    (dt.datetime, '"2026-01-01T10:00Z"', dt.datetime(2026, 1, 1, 10, tzinfo=dt.UTC)),
    (dt.datetime, '"2026-01-01T12:00+0200"', dt.datetime(2026, 1, 1, 10, tzinfo=dt.UTC)),
    (dt.datetime, "1767261600", dt.datetime(2026, 1, 1, 10, tzinfo=dt.UTC)),
    (dt.datetime, '"1767261600"', dt.datetime(2026, 1, 1, 10, tzinfo=dt.UTC)),
    (dt.datetime, "1767261600000", dt.datetime(2026, 1, 1, 10, tzinfo=dt.UTC)),
    (dt.datetime, '"1712012300000"', dt.datetime(2024, 4, 1, 22, 58, 20, tzinfo=dt.UTC)),
    (dt.datetime, "1767261600.5", dt.datetime(2026, 1, 1, 10, 0, 0, 500_000, tzinfo=dt.UTC)),
    (dt.date, '"2026-01-01"', dt.date(2026, 1, 1)),
    (dt.date, '"2026-01-01T00:00:00"', dt.date(2026, 1, 1)),
    (dt.date, "1767225600", dt.date(2026, 1, 1)),
    (dt.time, '"10:00"', dt.time(10)),
    (dt.time, '"10:00:30.5"', dt.time(10, 0, 30, 500_000)),
    (dt.time, '"10:00Z"', dt.time(10, tzinfo=dt.UTC)),
    (dt.time, "3600", dt.time(1, tzinfo=dt.UTC)),
    (dt.timedelta, "3600", dt.timedelta(hours=1)),
    (dt.timedelta, "1.5", dt.timedelta(seconds=1.5)),
    (dt.timedelta, '"01:00"', dt.timedelta(hours=1)),
    (dt.timedelta, '"01:00:00"', dt.timedelta(hours=1)),
    (dt.timedelta, '"-01:00:00.5"', -dt.timedelta(hours=1, seconds=0.5)),
    (dt.timedelta, '"PT1H"', dt.timedelta(hours=1)),
    (dt.timedelta, '"P1DT2H3M4.5S"', dt.timedelta(days=1, hours=2, minutes=3, seconds=4.5)),
    (dt.timedelta, '"P2W"', dt.timedelta(weeks=2)),
    (dt.timedelta, '"-PT15M"', -dt.timedelta(minutes=15)),
    (dt.timedelta, '"1 day"', dt.timedelta(days=1)),
    (dt.timedelta, '"2 days, 01:00:00"', dt.timedelta(days=2, hours=1)),
]
"""As pydantic reads them."""

BEYOND_PYDANTIC: list[tuple[Any, str, Any]] = [
    (int, '"1e3"', 1000),
    (int, '"1.5e1"', 15),
    (bool, '" true "', True),
    (Literal[3, "a"], '"3"', 3),
    (Literal[True], '"true"', True),
    (Color | str, '"red"', Color.RED),
    (Color | str, '"blue"', "blue"),
    (dt.datetime, '"20260101"', TEN.replace(hour=0)),
    (dt.timedelta, '"3600"', dt.timedelta(hours=1)),
]


def same(seen: Any, value: Any) -> bool:
    return type(seen) is type(value) and seen == value


@dataclasses.dataclass
class Plain(Generic[T]):
    value: T


class Slotted(msgspec.Struct, Generic[T]):
    value: T


class Typed(TypedDict, Generic[T]):
    value: T


class Named(NamedTuple):
    value: Any


class Model(pydantic.BaseModel, Generic[T]):
    value: T


PLACES: list[tuple[Any, str, Any]] = [
    (lambda hint: hint, "{}", lambda seen: seen),
    (lambda hint: hint | None, "{}", lambda seen: seen),
    (lambda hint: list[hint], "[{}]", lambda seen: seen[0]),
    (lambda hint: dict[str, hint], '{{"a": {}}}', lambda seen: seen["a"]),
    (lambda hint: tuple[int, hint], '["1", {}]', lambda seen: seen[1]),
    (lambda hint: Plain[hint], '{{"value": {}}}', lambda seen: seen.value),
    (lambda hint: Slotted[hint], '{{"value": {}}}', lambda seen: seen.value),
    (lambda hint: Typed[hint], '{{"value": {}}}', lambda seen: seen["value"]),
    (lambda hint: list[Plain[hint] | Slotted[hint]], '[{{"value": {}}}]', lambda seen: seen[0].value),
    (lambda hint: Model[hint], '{{"value": {}}}', lambda seen: seen.value),
    (lambda hint: list[Model[hint] | None], '[{{"value": {}}}]', lambda seen: seen[0].value),
    (lambda hint: Annotated[hint, "What it is."], "{}", lambda seen: seen),
    (lambda hint: Annotated[hint, pydantic.Field(description="What it is.")], "{}", lambda seen: seen),
    (lambda hint: Annotated[list[hint], pydantic.AfterValidator(lambda each: each)], "[{}]", lambda seen: seen[0]),
]
"""Where a type may stand: the annotation around it, the JSON around the value, and the value in what is read."""


@pytest.mark.parametrize("place", range(len(PLACES)))
@pytest.mark.parametrize(("hint", "written", "value"), SCALARS, ids=repr)
def test_a_scalar_is_read_in_the_forms_that_models_write_wherever_it_stands(hint, written, value, place):
    around, text, inside = PLACES[place]
    arguments = f'{{"value": {text.format(written)}}}'
    made = reading(around(hint))
    assert made.validate(arguments) == ""
    (seen,) = taken(made, arguments)
    assert same(inside(seen), value)


@pytest.mark.parametrize(("hint", "written", "value"), BEYOND_PYDANTIC, ids=repr)
def test_some_forms_are_read_that_pydantic_does_not_know(hint, written, value):
    made = reading(hint)
    (seen,) = taken(made, f'{{"value": {written}}}')
    assert same(seen, value)


LOSSY: list[tuple[Any, str]] = [
    (int, "5.5"),
    (int, '"5.5"'),
    (int, '"five"'),
    (int, '""'),
    (int, '"nan"'),
    (int, "1e23"),
    (int, '"1e999999999"'),
    (int, '"' + "9" * 5000 + '"'),
    (int, "null"),
    (int, "[5]"),
    (float, '"1e400"'),
    (float, '"1,5"'),
    (bool, "2"),
    (bool, '"maybe"'),
    (bool, '""'),
    (str, "5"),
    (str, "true"),
    (Decimal, '"much"'),
    (Decimal, "true"),
    (bytes, '"not base64!"'),
    (dt.datetime, '"soon"'),
    (dt.datetime, "true"),
    (dt.datetime, "1e300"),
    (dt.datetime, '"2026-02-30T10:00"'),
    (dt.date, '"2026-01-01T10:00:00"'),
    (dt.date, "1767261600"),
    (dt.time, "86400"),
    (dt.time, "86399.9999999"),
    (dt.time, '"25:00"'),
    (dt.timedelta, '"P1M"'),
    (dt.timedelta, '"P"'),
    (dt.timedelta, '"PT"'),
    (dt.timedelta, '""'),
    (dt.timedelta, '"01:75"'),
    (dt.timedelta, '"P99999999999D"'),
    (dt.timedelta, '"-P999999999DT23H"'),
    (dt.timedelta, "1e300"),
    (Level, '"3"'),
    (Literal[3], '"4"'),
    (Literal["a"], "1"),
    (None, '"null"'),
]


@pytest.mark.parametrize("place", range(9))
@pytest.mark.parametrize(("hint", "written"), LOSSY, ids=lambda each: repr(each)[:40])
def test_nothing_is_read_that_would_be_a_guess(hint, written, place):
    around, text, _ = PLACES[place]
    if place == 1 and (hint is None or written == "null"):
        pytest.skip("null is one of the values")
    made = reading(around(type(None) if hint is None else hint))
    problem = made.validate(f'{{"value": {text.format(written)}}}')
    assert problem.startswith("arguments.value")
    assert "\n" not in problem


UNIONS: list[tuple[Any, str, Any]] = [
    (int | str, '"5"', "5"),
    (str | int, "5", 5),
    (int | str, "5.0", 5),
    (int | bool, "true", True),
    (bool | int, "1", 1),
    (float | int, "5", 5),
    (int | float, "5.0", 5.0),
    (int | float, '"5.5"', 5.5),
    (int | float, '"5"', 5),
    (Literal["5"] | int, '"5"', "5"),
    (Literal["5"] | int, '"6"', 6),
    (list[int] | list[str], '["1"]', ["1"]),
    (list[int] | list[str], "[1]", [1]),
    (list[int] | int, '"5"', 5),
    (dt.datetime | str, '"later"', "later"),
    (dt.datetime | str, '"2026-01-01 10:00"', TEN),
    (str | dt.datetime, '"2026-01-01 10:00"', "2026-01-01 10:00"),
    (dt.date | dt.datetime, '"2026-01-01"', dt.date(2026, 1, 1)),
    (dt.date | dt.datetime, '"2026-01-01T10:00"', TEN),
    (dt.datetime | dt.date, '"2026-01-01"', dt.date(2026, 1, 1)),
    (Plain[int] | Range, '{"first": "1"}', Range(1)),
    (Plain[int] | Range, '{"value": "1"}', Plain(1)),
    (Slotted[int] | Range, '{"value": 1}', Slotted(1)),
    (Plain[int] | Model[int], '{"value": 1}', Plain(1)),
    (Model[int] | Range, '{"first": 1}', Range(1)),
    (Range | Model[int], '{"value": "1"}', Model[int](value=1)),
    (Model[int] | str, '"a"', "a"),
    (Model[int] | str | None, "null", None),
    (dict[str, int] | list[int], '{"a": "1"}', {"a": 1}),
]


@pytest.mark.parametrize(("hint", "written", "value"), UNIONS, ids=repr)
def test_the_member_of_a_union_that_fits_exactly_wins_and_else_the_first_that_fits(hint, written, value):
    (seen,) = taken(reading(hint), f'{{"value": {written}}}')
    assert same(seen, value)


class Narrow(TypedDict):
    n: int


class Wide(TypedDict):
    n: NotRequired[int]
    s: str


@dataclasses.dataclass
class Optional1:
    n: int = 0


@dataclasses.dataclass
class Optional2:
    s: str = ""


@pytest.mark.parametrize(
    ("hint", "written", "value"),
    [
        (Narrow | Wide, '{"n": "1", "s": "a"}', {"n": 1, "s": "a"}),
        (Narrow | Wide, '{"n": "1"}', {"n": 1}),
        (Optional1 | Optional2, '{"s": "a"}', Optional2("a")),
        (Optional1 | Optional2, '{"n": "1"}', Optional1(1)),
        (list[Optional1 | Optional2], '[{"n": 1}, {"s": "a"}]', [Optional1(1), Optional2("a")]),
    ],
    ids=repr,
)
def test_among_objects_the_type_that_knows_most_of_the_fields_is_meant(hint, written, value):
    (seen,) = taken(reading(hint), f'{{"value": {written}}}')
    assert same(seen, value)


@dataclasses.dataclass
class Deep:
    path: pathlib.Path
    when: dt.datetime | str = "now"
    some: list["Deep"] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Sum:
    first: int
    start: dataclasses.InitVar[int] = 0
    total: int = dataclasses.field(init=False)
    kind: ClassVar[str] = "sum"

    def __post_init__(self, start: int) -> None:
        self.total = self.first + start


class Row(msgspec.Struct, array_like=True, tag="row"):
    number: int
    word: str = ""


class Other(msgspec.Struct, array_like=True, tag="other"):
    number: int


class Renamed(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    first_number: int


@attrs.define
class Crate:
    width: int
    _height: int = 1


TYPES: list[tuple[Any, str, Any]] = [
    (pathlib.Path, '"/tmp"', pathlib.Path("/tmp")),
    (pathlib.PurePosixPath, '"/tmp"', pathlib.PurePosixPath("/tmp")),
    (os.PathLike[str], '"/tmp"', pathlib.Path("/tmp")),
    (pathlib.Path | None, "null", None),
    (Iterable[str], '["a"]', ["a"]),
    (Sequence[int], '["1"]', [1]),
    (Collection[int], '["1"]', [1]),
    (Mapping[str, int], '{"a": "1"}', {"a": 1}),
    (AbstractSet[int], '["1", "1"]', {1}),
    (set[int], '["1", 1]', {1}),
    (frozenset[int], '["1"]', frozenset({1})),
    (tuple[int, ...], '["1", "2"]', (1, 2)),
    (tuple[int, str], '["1", "2"]', (1, "2")),
    (list, '["1"]', ["1"]),
    (dict, '{"a": "1"}', {"a": "1"}),
    (dict[int, float], '{"1": "1.5"}', {1: 1.5}),
    (dict[Color, int], '{"red": "1"}', {Color.RED: 1}),
    (dict[dt.date, int], '{"2026-01-01": 1}', {dt.date(2026, 1, 1): 1}),
    (collections.deque[int], '["1"]', collections.deque([1])),
    (collections.defaultdict[str, list[int]], '{"a": ["1"]}', collections.defaultdict(list, a=[1])),
    (collections.OrderedDict[str, int], '{"a": "1"}', collections.OrderedDict(a=1)),
    (collections.Counter[str], '{"a": "1"}', collections.Counter(a=1)),
    (UserId, '"5"', 5),
    (T, '"5"', "5"),
    (Number, '"5"', "5"),
    (ipaddress.IPv4Address, '"127.0.0.1"', ipaddress.IPv4Address("127.0.0.1")),
    (ipaddress.IPv4Address, "2130706433", ipaddress.IPv4Address("127.0.0.1")),
    (ipaddress.IPv6Network, '"::/64"', ipaddress.IPv6Network("::/64")),
    (zoneinfo.ZoneInfo, '"UTC"', zoneinfo.ZoneInfo("UTC")),
    (fractions.Fraction, '"1/3"', fractions.Fraction(1, 3)),
    (fractions.Fraction, "0.1", fractions.Fraction(1, 10)),
    (complex, '"1+2j"', 1 + 2j),
    (complex, "1.5", 1.5 + 0j),
    (re.Pattern[str], '"a+"', re.compile("a+")),
    (Sum, '{"first": "1", "start": "2"}', Sum(1, 2)),
    (Row, '["row", "1"]', Row(1)),
    (Row | Other, '["other", "1"]', Other(1)),
    (Renamed, '{"firstNumber": "1"}', Renamed(1)),
    (Crate, '{"width": "1", "_height": "2"}', Crate(1, 2)),
    (Named, '["1"]', Named("1")),
    (Named, '{"value": 1}', Named(1)),
    (Deep, '{"path": "/x", "some": [{"path": "y"}]}', Deep(pathlib.Path("/x"), "now", [Deep(pathlib.Path("y"))])),
    (pydantic.HttpUrl, '"http://a.b/"', pydantic.HttpUrl("http://a.b/")),
    (pydantic.SecretStr, '"a"', pydantic.SecretStr("a")),
    (Annotated[list[Slotted[int]], pydantic.Field(max_length=1)], '[{"value": "1"}]', [Slotted(1)]),
    (Annotated[Slotted[int], pydantic.AfterValidator(lambda each: each.value)], '{"value": "1"}', 1),
]


@pytest.mark.parametrize(
    ("hint", "written", "value"), TYPES, ids=[repr(hint).partition(" at 0x")[0] for hint, _, _ in TYPES]
)
def test_types_that_people_write_make_a_tool_and_are_read(hint, written, value):
    made = reading(hint)
    (seen,) = taken(made, f'{{"value": {written}}}')
    assert same(seen, value)
    assert made.info.parameters is not None
    jsonschema.Draft202012Validator.check_schema(made.info.parameters)


def test_a_path_may_have_a_default():
    made = reading(pathlib.Path, pathlib.Path("here"))
    assert taken(made, "{}") == [pathlib.Path("here")]
    assert taken(made, '{"value": "there"}') == [pathlib.Path("there")]


@pytest.mark.parametrize("hint", [list[int], pathlib.Path, Annotated[int, "What it is."], Model[int], int | None, Any])
def test_null_is_read_where_it_is_the_default(hint):
    made = reading(hint, None)
    assert taken(made, '{"value": null}') == taken(made, "{}") == [None]
    parameters: Any = made.info.parameters
    jsonschema.Draft202012Validator(parameters).validate({"value": None})
    assert (hint == Annotated[int, "What it is."]) == (parameters["properties"]["value"].get("description") is not None)


@pytest.mark.parametrize(
    ("default", "shown"),
    [(pathlib.Path("here"), "here"), (Model[int](value=1), {"value": 1}), ([pathlib.Path("a")], ["a"])],
    ids=repr,
)
def test_the_schema_shows_a_default_that_is_a_path_or_a_model(default, shown):
    parameters: Any = reading(Any, default).info.parameters
    assert parameters["properties"] == {"value": {"default": shown}}


def test_a_secret_default_is_not_shown():
    parameters: Any = reading(pydantic.SecretStr, pydantic.SecretStr("a")).info.parameters
    assert "default" not in parameters["properties"]["value"]


Ids = TypeAliasType("Ids", list[int])
Boxes = TypeAliasType("Boxes", list[Plain[T]], type_params=(T,))


@pytest.mark.parametrize(
    ("alias", "written", "value"),
    [
        (Ids, '["1"]', [1]),
        (Boxes[int], '[{"value": "1"}]', [Plain(1)]),
    ],
    ids=repr,
)
def test_a_type_alias_is_the_type_that_it_names(alias, written, value):
    (seen,) = taken(reading(alias), f'{{"value": {written}}}')
    assert same(seen, value)


def test_two_places_of_the_same_name_keep_their_own_values():
    made = reading(dict[str, dict[str, Range | Narrow] | Range | Narrow])
    written = {"a.b": {"first": "1"}, "a": {"b": {"n": "2"}}, "x" * 100 + "1": {"n": 3}, "x" * 100 + "2": {"n": "4"}}
    (seen,) = taken(made, json.dumps({"value": written}))
    assert list(seen.values()) == [Range(1), {"b": {"n": 2}}, {"n": 3}, {"n": 4}]


def test_two_keys_of_one_value_are_not_made_one():
    says = "arguments.value: two of its keys are the same value"
    assert reading(dict[int, str]).validate('{"value": {"1": "a", "1.0": "b"}}') == says


def test_an_annotation_that_is_odd_is_a_config_error():
    with pytest.raises(ConfigError, match=r"parameter 'value': a model cannot write Lost as JSON .*Missing"):
        reading(Lost)
    with pytest.raises(ConfigError, match="parameter 'value': a model cannot write"):
        reading(Plain[Annotated[int, {}]])
    with pytest.raises(ConfigError, match=r"parameter 'value': a model cannot write .*LookupError: documentation"):
        reading(Annotated[int, Unbound()])


def test_a_default_that_stands_for_nothing_yet_is_not_shown():
    made = reading(Any, Unbound())
    assert made.info.parameters is not None
    assert made.info.parameters["properties"] == {"value": {}}


class Unbound:
    """As the proxies of web frameworks outside of a request."""

    def __getattr__(self, name: str) -> Any:
        raise LookupError(name)


@dataclasses.dataclass
class Lost:
    it: "Missing"  # noqa: F821  # pyright: ignore[reportUndefinedVariable]


SMALL = '"abcd"'
CONSTRAINTS: list[tuple[Any, str, str, str]] = [
    (Annotated[int, msgspec.Meta(gt=3)], '"4"', '"3"', "expected int > 3"),
    (Annotated[int, pydantic.Field(gt=3)], '"4"', '"3"', "expected int > 3"),
    (Annotated[int, Gt(3)], '"4"', '"3"', "expected int > 3"),
    (Annotated[int, Interval(ge=1, le=2)], '"2"', '"3"', "expected int <= 2"),
    (Annotated[int, pydantic.Field(multiple_of=2)], '"4"', '"3"', "expected int that's a multiple of 2"),
    (Annotated[float, msgspec.Meta(lt=1)], '"0.5"', '"1"', "expected float < 1"),
    (Annotated[str, msgspec.Meta(max_length=4)], SMALL, '"abcde"', "expected str of length <= 4"),
    (Annotated[str, pydantic.Field(max_length=4)], SMALL, '"abcde"', "expected str of length <= 4"),
    (Annotated[str, pydantic.Field(pattern="^a")], SMALL, '"b"', "expected str matching regex '^a'"),
    (Annotated[list[int], Len(1, 2)], '["1"]', '["1", 2, 3]', "expected array of length <= 2"),
    (Annotated[dict[str, int], msgspec.Meta(min_length=1)], '{"a": "1"}', "{}", "expected object of length >= 1"),
    (Annotated[int, Gt(3), Gt(1)], '"4"', '"3"', "expected int > 3"),
    (Annotated[int, msgspec.Meta(gt=3), pydantic.Field(gt=1, lt=9)], '"4"', '"3"', "expected int > 3"),
    (Annotated[Decimal, Gt(3)], '"3.5"', '"3"', "expected decimal > 3"),
    (Annotated[dt.date, Gt(TEN.date())], '"2026-01-02"', '"2026-01-01"', "expected date > 2026-01-01"),
    (Annotated[dt.datetime, msgspec.Meta(tz=True)], "0", '"2026-01-01 10:00"', "expected datetime with a timezone"),
    (Annotated[int | None, Gt(3)], "null", '"3"', "expected int | null > 3"),
]


@pytest.mark.parametrize("place", [0, 2, 3, 5, 6, 7, 8])
@pytest.mark.parametrize(("hint", "good", "bad", "says"), CONSTRAINTS, ids=repr)
def test_a_constraint_holds_wherever_it_stands_and_is_told_in_the_same_words(hint, good, bad, says, place):
    around, text, _ = PLACES[place]
    made = reading(around(hint))
    assert made.validate(f'{{"value": {text.format(good)}}}') == ""
    assert made.validate(f'{{"value": {text.format(bad)}}}').endswith(says)


def test_a_predicate_is_checked_as_well():
    made = reading(list[Annotated[str, Predicate(str.islower)]])
    assert made.validate('{"value": ["a"]}') == ""
    assert made.validate('{"value": ["A"]}').startswith("arguments.value[0]: ")


def test_a_constraint_is_in_the_schema_whoever_wrote_it():
    def search(
        a: Annotated[int, msgspec.Meta(gt=3)], b: Annotated[int, pydantic.Field(gt=3)], c: Annotated[int, Gt(3)]
    ):
        return a, b, c

    parameters: Any = tool(search).info.parameters
    assert list(parameters["properties"].values()) == [{"type": "integer", "exclusiveMinimum": 3}] * 3


FORMATS = [
    (dt.datetime, "date-time"),
    (dt.date, "date"),
    (dt.time, "time"),
    (dt.timedelta, "duration"),
    (uuid.UUID, "uuid"),
    (ipaddress.IPv4Address, "ipv4"),
]


@pytest.mark.parametrize(("hint", "format_"), FORMATS, ids=repr)
def test_the_schema_says_which_format_a_text_has(hint, format_):
    parameters: Any = reading(list[hint]).info.parameters
    assert parameters["properties"]["value"]["items"] == {"type": "string", "format": format_}


# --- strict tools -------------------------------------------------------------------------------


@pytest.mark.parametrize("place", range(9))
@pytest.mark.parametrize(
    ("hint", "written"),
    [
        (int, '"5"'),
        (int, "5.0"),
        (int, "true"),
        (float, '"5.5"'),
        (bool, '"true"'),
        (bool, "1"),
        (dt.datetime, "1767261600"),
        (dt.timedelta, "3600"),
        (Level, '"1"'),
    ],
    ids=repr,
)
def test_a_strict_tool_takes_no_other_type(hint, written, place):
    around, text, _ = PLACES[place]
    arguments = f'{{"value": {text.format(written)}}}'.replace('"1", ', "1, ")
    assert reading(around(hint)).validate(arguments) == ""
    assert reading(around(hint), strict=True).validate(arguments).startswith("arguments.value")


def test_a_strict_tool_holds_models_to_it_as_well():
    assert reading(Model[int], strict=True).validate('{"value": {"value": 5}}') == ""
    assert reading(Model[int], strict=True).validate('{"value": {"value": "5"}}').startswith("arguments.value.value: ")


# --- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hint", "written", "says"),
    [
        (int | None, '"a"', "arguments.value: expected int | null, got str"),
        (list[int] | int, '["a"]', "arguments.value[0]: expected int, got str"),
        (Range | Plain[int], "3", "arguments.value: expected object, got int"),
        (Range | Plain[int], '{"value": "a"}', "arguments.value.value: expected int, got str"),
        (Model[int] | str, "3", "arguments.value: expected object | str, got int"),
        (Model[int] | str, '{"value": "a"}', "arguments.value.value: input should be a valid integer"),
        (dict[str, Range], '{"a": {"first": "x"}}', "arguments.value.a.first: expected int, got str"),
        (tuple[int, int], "[1]", "arguments.value: expected array of length 2, got 1"),
        (Deep, '{"path": 1, "when": 2}', "arguments.value.path: expected str, got int"),
        (dt.time, '"noon"', "arguments.value: expected a time of day, such as 10:00:00, got 'noon'"),
        (dt.timedelta, '"long"', "arguments.value: expected a duration, such as PT1H30M, got 'long'"),
        (dt.date, '"soon"', "arguments.value: expected a date, such as 2026-01-31, got 'soon'"),
    ],
    ids=repr,
)
def test_a_problem_has_its_place_and_what_was_expected(hint, written, says):
    assert reading(hint).validate(f'{{"value": {written}}}').startswith(says)


def test_a_union_within_itself_is_read_in_time_that_grows_with_the_text():
    deep = '{"value": "x"}'
    for _ in range(60):
        deep = f'{{"value": {deep}}}'
    assert reading(Tree1 | Tree2).validate(f'{{"value": {deep}}}').startswith("arguments.value.value.value")


@dataclasses.dataclass
class Tree1:
    value: "Tree1 | Tree2 | int"


@dataclasses.dataclass
class Tree2:
    value: "Tree1 | Tree2 | int"
