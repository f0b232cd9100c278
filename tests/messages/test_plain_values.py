"""`check_plain`: what JSON can carry passes, the rest is refused with its place."""

import datetime as dt
import decimal
import enum
import math
from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture.errors import InputError
from suture.messages import Message, ToolCall, check_plain


class Colour(enum.StrEnum):
    RED = "red"


def nested(levels: int, leaf: Any = 0) -> Any:
    value = leaf
    for _ in range(levels):
        value = [value]
    return value


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_every_json_value_passes(value):
    check_plain(value)
    check_plain(value, foreign=True)


@pytest.mark.parametrize(
    ("value", "place", "reason"),
    [
        (math.nan, "", "nan is not a JSON number"),
        ({"a": [1, math.inf]}, "a[1]", "inf is not a JSON number"),
        ({"a": {"b": -math.inf}}, "a.b", "-inf is not a JSON number"),
        ("\ud800", "", "text with a lone surrogate"),
        (["fine", "tail \udfff"], "[1]", "text with a lone surrogate"),
        ({"a": {"\ud800": 1}}, "a", "a key with a lone surrogate"),
        ({"a": {1: 2}}, "a", "a key must be a string, not int"),
        ({None: 2}, "", "a key must be a string, not NoneType"),
        (
            {"a b": {"c": [0, {"x" * 60: math.nan}]}},
            f"['a b'].c[1]['{'x' * 40}']",
            "nan is not a JSON number",
        ),
        ({"n": 10**4300}, "n", "an integer too large to be stored"),
        ({"n": -(10**4300)}, "n", "an integer too large to be stored"),
    ],
)
@pytest.mark.parametrize("foreign", [False, True])
def test_what_json_cannot_carry_is_refused_with_its_place(value, place, reason, foreign):
    with pytest.raises(InputError) as caught:
        check_plain(value, index=4, foreign=foreign)
    assert (caught.value.path, caught.value.reason, caught.value.index) == (place, reason, 4)


@pytest.mark.parametrize(
    "leaf",
    [b"bytes", {1}, object(), dt.datetime(2026, 1, 1), decimal.Decimal(1), Colour.RED, 1j],  # noqa: DTZ001
)
def test_an_object_that_is_no_json_value_is_refused_unless_it_is_foreign(leaf):
    with pytest.raises(InputError, match=rf"a\[0\]: {type(leaf).__name__} is not a JSON value"):
        check_plain({"a": [leaf]})
    check_plain({"a": [leaf]}, foreign=True)


def test_a_key_that_is_a_kind_of_string_passes_only_among_foreign_values():
    with pytest.raises(InputError, match="a key must be a string, not Colour"):
        check_plain({Colour.RED: 1})
    check_plain({Colour.RED: 1}, foreign=True)


def test_a_kind_of_string_with_a_lone_surrogate_is_refused_among_foreign_values_too():
    class Text(str):
        __slots__ = ()

    with pytest.raises(InputError, match="lone surrogate"):
        check_plain([Text("\ud800")], foreign=True)


def test_text_beyond_ascii_passes_when_it_is_whole():
    check_plain({"héllo": "漢字 😀"})


def test_tuples_and_kinds_of_dict_pass_as_arrays_and_objects():
    check_plain(OrderedDict(a=(1, (2,))))
    with pytest.raises(InputError, match=r"a\[1\]\[0\]"):
        check_plain(OrderedDict(a=(1, (math.nan,))))


def test_two_hundred_levels_pass_and_one_more_is_refused():
    check_plain(nested(200))
    with pytest.raises(InputError, match="nested more than 200 levels deep"):
        check_plain(nested(201))


def test_a_hundred_thousand_levels_are_refused_without_recursion():
    with pytest.raises(InputError, match="nested more than 200 levels deep"):
        check_plain(nested(100_000))


def test_depth_counts_along_the_longest_way_to_a_shared_value():
    shared = nested(150)
    check_plain([shared, nested(49, shared)])
    for value in ([shared, nested(50, shared)], [nested(50, shared), shared]):
        with pytest.raises(InputError, match="nested more than 200 levels deep"):
            check_plain(value)


def test_a_value_that_contains_itself_is_refused_with_the_place_where_it_returns():
    loop: dict[str, Any] = {"a": [1]}
    loop["a"].append(loop)
    with pytest.raises(InputError) as caught:
        check_plain({"extra": loop})
    assert (caught.value.reason, caught.value.path) == ("a value that contains itself", "extra.a[1]")


def test_a_value_that_contains_itself_is_found_beside_shared_ones():
    first, second = [], []
    first.append(second)
    second.append(first)
    with pytest.raises(InputError, match="a value that contains itself"):
        check_plain([[second], first, second])


def test_a_value_shared_many_times_over_is_not_walked_many_times_over():
    value = [0]
    for _ in range(100):
        value = [value, value]
    check_plain(value)  # 2 ** 100 ways lead to the zero
    value = [math.nan]
    for _ in range(100):
        value = [value, value]
    with pytest.raises(InputError, match="nan"):
        check_plain(value)


def test_the_same_value_twice_in_a_row_is_no_cycle():
    shared = {"a": 1}
    check_plain([shared, shared, {"b": shared}])


def test_the_structs_of_messages_are_looked_into():
    with pytest.raises(InputError) as caught:
        check_plain(Message.assistant(tool_calls=[ToolCall("c1", extra={"a": [math.nan]})]), index=2)
    assert str(caught.value) == "message 2, tool_calls[0].extra.a[0]: nan is not a JSON number"


def test_the_path_given_is_the_beginning_of_the_path_told():
    with pytest.raises(InputError) as caught:
        check_plain([{"a": math.nan}], path="content")
    assert caught.value.path == "content[0].a"


def test_integers_can_be_held_to_a_range():
    check_plain([-5, 5], integers=(-5, 5))
    for number in (-6, 6):
        with pytest.raises(InputError, match="an integer too large"):
            check_plain([number], integers=(-5, 5))
