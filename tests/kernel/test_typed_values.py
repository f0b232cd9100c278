"""Values of registered types come back exactly as they were; all others are refused where they are set."""

import enum
import inspect
import math
import subprocess
import sys
from collections import OrderedDict, namedtuple
from dataclasses import InitVar, dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture import messages
from suture.errors import ConfigError, InputError, SutureError
from suture.kernel._typed import UnregisteredTypeError, decode_value, encode_value, register_type
from suture.messages import AgenticMessage, FrozenMap, Message, Opaque, ServerToolCall, TextPart, ToolCall, ToolResult


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

TEXT = st.text(max_size=5)
OFFSETS = st.timedeltas(timedelta(hours=-23, minutes=-59), timedelta(hours=23, minutes=59)).map(timezone)
NAMED = st.builds(lambda zone, name: timezone(zone.utcoffset(None), name), OFFSETS, TEXT)
ZONES = st.none() | st.just(UTC) | OFFSETS | NAMED
HASHABLE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
    | st.binary(max_size=5)
    | st.dates()
    | st.datetimes(timezones=ZONES)
    | st.datetimes().map(lambda moment: moment.replace(fold=1))
    | st.times(timezones=ZONES)
    | st.timedeltas()
    | st.sampled_from([*Size, *Level, Access.READ, Access.READ | Access.WRITE, Access(0)])
    | st.just(msgspec.UNSET)
    | st.builds(Tag, TEXT, weight=st.integers()),
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.frozensets(inner, max_size=3)
        | st.builds(Point, inner, inner)
        | st.builds(Money, inner)
    ),
    max_leaves=6,
)
KEYS = st.sampled_from(["$type", "value", "a", ""]) | TEXT
VALUES: st.SearchStrategy[Any] = st.recursive(
    HASHABLE | st.builds(ToolCall, TEXT, TEXT) | st.builds(Message.user, TEXT),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(KEYS, inner, max_size=3)
        | st.dictionaries(KEYS, inner, max_size=3).map(FrozenMap)
        | st.sets(HASHABLE, max_size=3)
        | st.builds(Order, inner, st.lists(inner, max_size=2))
        | st.builds(Renamed, inner, st.lists(inner, max_size=2))
        | st.builds(lambda extra: Message("tool", "x", extra=extra), st.dictionaries(KEYS, inner, max_size=2))
        | st.builds(lambda arguments: ServerToolCall(arguments=arguments), inner)
    ),
    max_leaves=8,
)


def shape(value: Any) -> Any:
    """Everything about a value that `==` looks past: types, signs of zero, the order of dicts, folds, fields."""
    if isinstance(value, dict):
        return type(value), [(key, shape(value[key])) for key in value]
    if isinstance(value, list | tuple):
        return type(value), [shape(each) for each in value]
    if isinstance(value, set | frozenset):
        return type(value), sorted(repr(shape(each)) for each in value)
    if isinstance(value, msgspec.Struct):
        return type(value), [shape(getattr(value, each)) for each in value.__struct_fields__]
    if hasattr(value, "__dataclass_fields__"):
        return type(value), [shape(getattr(value, each)) for each in value.__dataclass_fields__]
    if isinstance(value, Money):
        return Money, shape(value.amount)
    return type(value), repr(value), getattr(value, "fold", 0)


@given(VALUES)
def test_a_value_comes_back_equal_and_of_the_same_types_all_the_way_down(value):
    before = shape(value)
    plain = encode_value(value)
    for stored in (
        plain,
        msgspec.json.decode(msgspec.json.encode(plain)),
        msgspec.msgpack.decode(msgspec.msgpack.encode(plain)),
    ):
        again = decode_value(stored)
        assert again == value
        assert shape(again) == before
    assert shape(value) == before


@given(VALUES)
def test_equal_values_are_stored_as_equal_bytes(value):
    stored = msgspec.json.encode(encode_value(value))
    assert msgspec.json.encode(encode_value(decode_value(msgspec.json.decode(stored)))) == stored


def plain_only(value: Any) -> bool:
    if type(value) is dict:
        return all(type(key) is str and plain_only(each) for key, each in value.items())
    if type(value) is list:
        return all(map(plain_only, value))
    return type(value) in (str, int, float, bool, type(None))


@given(VALUES)
def test_what_is_stored_is_plain_data(value):
    assert plain_only(encode_value(value))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | TEXT,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    )
)
def test_plain_data_is_stored_as_it_is(value):
    assert encode_value(value) == value


def test_the_stored_form_of_every_kind():
    cases: list[tuple[Any, Any]] = [
        ((1, 2), {"$type": "tuple", "value": [1, 2]}),
        ({3, 1, 2}, {"$type": "set", "value": [1, 2, 3]}),
        (frozenset("ba"), {"$type": "frozenset", "value": ["a", "b"]}),
        (b"\x00\xff", {"$type": "bytes", "value": "AP8="}),
        (2**64, {"$type": "int", "value": "0x10000000000000000"}),
        (datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC), {"$type": "datetime", "value": "2024-05-06T07:08:09+00:00"}),
        (datetime(2024, 5, 6, fold=1), {"$type": "datetime", "value": ["2024-05-06T00:00:00", 1]}),  # noqa: DTZ001
        (
            time(7, 8, tzinfo=timezone(timedelta(hours=1), "here")),
            {"$type": "time", "value": ["07:08:00", 0, {"$type": "timedelta", "value": [0, 3600, 0]}, "here"]},
        ),
        (date(2024, 5, 6), {"$type": "date", "value": "2024-05-06"}),
        (time(7, 8), {"$type": "time", "value": "07:08:00"}),
        (timedelta(days=-1, microseconds=5), {"$type": "timedelta", "value": [-1, 0, 5]}),
        ({"$type": "x"}, {"$type": "dict", "value": {"$type": "x"}}),
        (FrozenMap(a=1), {"$type": "suture.FrozenMap", "value": {"a": 1}}),
        (Size.LARGE, {"$type": "tests.Size", "value": {"$type": "tuple", "value": ["l", 2]}}),
        (Point(1), {"$type": "tests.Point", "value": {"x": 1, "y": {"$type": "unset", "value": None}}}),
        (Order(7, ["a"]), {"$type": "tests.Order", "value": {"number": 7, "lines": ["a"], "total": 1}}),
        (Money(5), {"$type": "tests.Money", "value": {"$type": "tuple", "value": [5]}}),
        (Message.user("hi"), {"$type": "suture.Message", "value": {"role": "user", "content": "hi"}}),
        (
            ToolResult((TextPart("hi"),), extra={"k": (1,)}),
            {
                "$type": "suture.ToolResult",
                "value": {
                    "parts": [{"$type": "suture.TextPart", "value": {"text": "hi"}}],
                    "extra": {"k": {"$type": "tuple", "value": [1]}},
                },
            },
        ),
    ]
    for value, stored in cases:
        assert encode_value(value) == stored
        assert decode_value(stored) == value
        assert type(decode_value(stored)) is type(value)


STRUCTS = [name for name in messages.__all__ if isinstance(getattr(messages, name), type(msgspec.Struct))]


@pytest.mark.parametrize("name", STRUCTS)
def test_every_value_of_the_messages_room_is_known_beforehand(name: str):
    cls = getattr(messages, name)
    required = {each.name: "user" if each.name == "role" else 0.5 if each.name == "logprob" else "x"
                for each in msgspec.structs.fields(cls) if each.required}  # fmt: skip
    value = Opaque({"type": "hologram"}) if cls is Opaque else cls(**required)
    assert encode_value(value)["$type"] == f"suture.{name}"
    assert decode_value(encode_value(value)) == value


def test_a_message_with_blocks_of_unknown_type_comes_back():
    message = AgenticMessage("user", (Opaque({"type": "hologram", "beam": (1, {2})}),))
    assert decode_value(encode_value(message)) == message


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (Untyped(), "Untyped cannot be stored; register it first: suture.register_type("),
        ({"a": [0, Untyped()]}, "a[1]: "),
        ({"two words": Untyped()}, "['two words']: "),
        (Order(1, [Untyped()]), "lines[0]: "),
        ((Untyped(),), "[0]: "),
        (Message("user", extra={"k": Untyped()}), "extra.k: "),
        (Untyped, "type cannot be stored"),
        (OrderedDict(a=1), 'suture.register_type("collections.OrderedDict", OrderedDict, encode=..., decode=...)'),
        (namedtuple("Pair", "a b")(1, 2), "Pair cannot be stored"),  # noqa: PYI024
        (bytearray(b"x"), 'suture.register_type("your_package.bytearray", bytearray, encode=..., decode=...)'),
        (type("Sub", (Tag,), {})("x"), "Sub cannot be stored"),
        (type("Text", (str,), {})("x"), "Text cannot be stored"),
    ],
)
def test_an_unregistered_type_is_refused_with_its_place_and_the_call_that_registers_it(value, said):
    with pytest.raises(UnregisteredTypeError) as caught:
        encode_value(value)
    assert said in str(caught.value)
    assert isinstance(caught.value, SutureError)
    assert isinstance(caught.value, TypeError)


def test_the_advice_for_a_dataclass_is_the_whole_call():
    local = dataclass(type("Basket", (), {"__module__": "shop"}))
    with pytest.raises(UnregisteredTypeError) as caught:
        encode_value(local())
    assert str(caught.value) == (
        'shop.Basket cannot be stored; register it first: suture.register_type("shop.Basket", Basket)'
    )


def cyclic() -> list[Any]:
    value: list[Any] = [1]
    value.append({"me": value})
    return value


def cyclic_order() -> Order:
    order = Order(1)
    order.lines.append(("x", order))
    return order


def nested(levels: int) -> list[Any]:
    value: list[Any] = ["bottom"]
    for _ in range(levels - 1):
        value = [value]
    return value


def nested_orders(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = Tag("x", weight=value)
    return value


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": math.nan}, "a: nan is not a number that can be stored"),
        ([math.inf], "[0]: inf is not a number that can be stored"),
        (["\ud800"], "[0]: a text with a lone surrogate cannot be stored"),
        ({"a": {"\udfff": 1}}, "a: a key with a lone surrogate cannot be stored"),
        ({"a": {1: 2}}, "a: a key must be a string, not int"),
        ({"a": {Level.LOW: 2}}, "a: a key must be a string, not Level"),
        (cyclic(), "[1].me: a value that contains itself cannot be stored"),
        (cyclic_order(), "lines[0][1]: a value that contains itself cannot be stored"),
        (nested(201), "nested more than 200 levels deep"),
        (nested_orders(201), "nested more than 200 levels deep"),
        (
            {"at": datetime(2024, 5, 6, tzinfo=ZoneInfo("Europe/Berlin"))},
            "a time zone of type ZoneInfo cannot be stored; convert it with .astimezone(datetime.timezone.utc)",
        ),
        (Order(math.nan), "number: nan is not"),
    ],
)
def test_a_value_that_could_not_come_back_is_refused_with_its_place(value, said):
    with pytest.raises(InputError) as caught:
        encode_value(value)
    assert said in str(caught.value)


@pytest.mark.parametrize("value", [nested(200), nested_orders(200), [*nested(199), b"x"]])
def test_200_levels_are_stored_and_read(value):
    plain = encode_value(value)
    assert repr(decode_value(msgspec.json.decode(msgspec.json.encode(plain)))) == repr(value)
    assert repr(decode_value(msgspec.msgpack.decode(msgspec.msgpack.encode(plain)))) == repr(value)


def test_a_stack_that_is_nearly_used_up_gives_a_clear_error():
    def deep(frames: int) -> Any:
        return deep(frames - 1) if frames else encode_value(nested(200))

    with pytest.raises(InputError, match="too deeply"):
        deep(sys.getrecursionlimit() - len(inspect.stack(0)) - 100)


def test_an_encode_that_fails_fails_when_the_value_is_set():
    class Broken:
        pass

    def fail(_: Broken) -> Any:
        raise KeyError("no such field")

    register_type("tests.Broken", Broken, encode=fail, decode=lambda _: Broken())
    with pytest.raises(InputError, match=r"a\[0\]: .*Broken could not be encoded: KeyError\('no such field'\)"):
        encode_value({"a": [Broken()]})


def test_an_encode_that_gives_what_cannot_be_stored_fails_when_the_value_is_set():
    class Vague:
        pass

    register_type("tests.Vague", Vague, encode=lambda _: {"inner": Untyped()}, decode=lambda _: Vague())
    with pytest.raises(UnregisteredTypeError, match=r"a.inner: .*Untyped cannot be stored"):
        encode_value({"a": Vague()})


def test_an_encode_that_never_ends_is_refused():
    class Endless:
        pass

    register_type("tests.Endless", Endless, encode=lambda _: Endless(), decode=lambda _: Endless())
    with pytest.raises(InputError, match="too deeply"):
        encode_value(Endless())


def test_a_dataclass_is_made_by_its_constructor_and_keeps_the_fields_it_had():
    again = decode_value(encode_value(Derived(1)))
    assert (again.number, again.double) == (2, 6)


def test_a_class_that_got_a_field_with_a_default_still_reads_what_was_stored_before():
    assert decode_value({"$type": "tests.Order", "value": {"number": 7}}) == Order(7)
    assert decode_value({"$type": "tests.Point", "value": {"x": 7}}) == Point(7)


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ({"$type": "tests.Order", "value": {}}, "'tests.Order' could not be decoded: TypeError"),
        ({"$type": "tests.Point", "value": {"x": 1, "z": 2}}, "'tests.Point' could not be decoded: TypeError"),
        ({"$type": "tests.Order", "value": {"number": 1, "gone": 2}}, "'tests.Order' could not be decoded: "),
        ({"$type": "tests.Tag", "value": {"text": "x", "gone": 2}}, "'tests.Tag' could not be decoded: "),
        ({"$type": "tests.Size", "value": "xl"}, "'tests.Size' could not be decoded: ValueError"),
        ({"$type": "bytes", "value": "a"}, "'bytes' could not be decoded"),
        ({"$type": "suture.Message", "value": {"role": "nobody"}}, "'suture.Message' could not be decoded"),
        ({"$type": "tuple"}, "an object with '$type' that is no stored value"),
        ({"$type": "tuple", "value": [], "more": 1}, "an object with '$type' that is no stored value"),
        ({"$type": ["tuple"], "value": []}, "an object with '$type' that is no stored value"),
        ({"$type": "dict", "value": []}, "an object with '$type' that is no stored value"),
        ([b"x"], "bytes is not what a value is stored as"),
    ],
)
def test_stored_data_that_cannot_be_read_is_refused(stored, said):
    with pytest.raises(InputError) as caught:
        decode_value(stored)
    assert said in str(caught.value)


def test_an_unknown_name_is_refused_and_named():
    with pytest.raises(UnregisteredTypeError, match=r"no type is registered as 'os\.system'"):
        decode_value([{"$type": "os.system", "value": "true"}])


def test_decoding_a_name_imports_nothing():
    script = (
        "import sys; from suture.kernel._typed import decode_value\n"
        "try: decode_value({'$type': 'colorsys.rgb_to_hls', 'value': []})\n"
        "except TypeError: print('colorsys' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    assert result.stdout == "False\n"


@dataclass
class NeedsMore:
    number: int
    seed: InitVar[int]


@dataclass(init=False)
class OwnInit:
    number: int

    def __init__(self):
        self.number = 1


@pytest.mark.parametrize(
    ("name", "cls", "functions", "said"),
    [
        ("tests.Size", Untyped, {"encode": str, "decode": str}, "the name 'tests.Size' is taken"),
        ("tests.Size", Size, {}, "the name 'tests.Size' is taken"),
        ("tests.Other", Size, {}, "Size is registered already, as 'tests.Size'"),
        ("dict", Untyped, {"encode": str, "decode": str}, "the name 'dict' is taken"),
        ("int", Untyped, {"encode": str, "decode": str}, "the name 'int' is taken"),
        ("tuple", Untyped, {"encode": str, "decode": str}, "the name 'tuple' is taken"),
        ("tests.list", list, {"encode": str, "decode": str}, "list is registered already"),
        ("tests.str", str, {"encode": str, "decode": str}, "str is registered already"),
        ("", Untyped, {}, "a text that is not empty"),
        (7, Untyped, {}, "a text that is not empty"),
        ("\ud800", Untyped, {}, "a text that is not empty"),
        ("tests.Instance", Untyped(), {}, "only a class can be registered"),
        ("tests.Generic", list[int], {}, "only a class can be registered"),
        ("tests.Untyped", Untyped, {}, "pass encode="),
        ("tests.Untyped", Untyped, {"encode": str}, "encode and decode come together"),
        ("tests.Untyped", Untyped, {"decode": str}, "encode and decode come together"),
        ("tests.tzinfo", tzinfo, {}, "pass encode="),
        ("tests.NeedsMore", NeedsMore, {}, "cannot be made of its fields alone (see seed)"),
        ("tests.OwnInit", OwnInit, {}, "cannot be made of its fields alone (see __init__)"),
    ],
)
def test_a_registration_that_makes_no_sense_is_refused(name, cls, functions, said):
    with pytest.raises(ConfigError) as caught:
        register_type(name, cls, **functions)
    assert said in str(caught.value)
