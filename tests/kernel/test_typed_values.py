"""Values of registered types come back exactly as they were."""

from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suture import messages
from suture.kernel.values import decode_value, encode_value
from suture.messages import AgenticMessage, FrozenMap, Message, Opaque, ServerToolCall, TextPart, ToolCall, ToolResult
from tests.kernel.registered import Access, Derived, Level, Money, Order, Point, Renamed, Size, Tag

TEXT = st.text(max_size=5)
PLAIN_KEYS = TEXT.filter(lambda text: text != "$type")  # that one is escaped; Hypothesis finds it in our code
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


@settings(deadline=None)
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


@settings(deadline=None)
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


@settings(deadline=None)
@given(VALUES)
def test_what_is_stored_is_plain_data(value):
    assert plain_only(encode_value(value))


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | TEXT,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PLAIN_KEYS, inner, max_size=3),
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


def test_a_dataclass_is_made_by_its_constructor_and_keeps_the_fields_it_had():
    again = decode_value(encode_value(Derived(1)))
    assert (again.number, again.double) == (2, 6)


def test_a_class_that_got_a_field_with_a_default_still_reads_what_was_stored_before():
    assert decode_value({"$type": "tests.Order", "value": {"number": 7}}) == Order(7)
    assert decode_value({"$type": "tests.Point", "value": {"x": 7}}) == Point(7)
