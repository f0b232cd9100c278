"""Whatever is generated reaches the function exactly if it fits, and fails in no other way."""

import datetime as dt
import json
from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.reading import Color, Node, Point, Range, reading, search, taken

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
TYPED: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (int, st.integers()),
    (bool, st.booleans()),
    (str, st.text()),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (list[int], st.lists(st.integers())),
    (dict[str, bool], st.dictionaries(st.text(), st.booleans())),
    (int | None, st.none() | st.integers()),
    (Literal["a", "b"], st.sampled_from(["a", "b"])),
    (Color, st.sampled_from(Color)),
    (Range, st.builds(Range, st.integers(), st.integers())),
    (Point, st.builds(Point, st.floats(allow_nan=False, allow_infinity=False))),
    (list[Node], st.lists(st.builds(Node, st.integers(), st.lists(st.builds(Node, st.integers()))))),
    (Any, PLAIN),
]
READERS = [reading(hint) for hint, _ in TYPED]
STRICT_READERS = [reading(hint, strict=True) for hint, _ in TYPED]


@given(st.data())
def test_arguments_that_fit_reach_the_function_as_the_same_values(data):
    place = data.draw(st.integers(0, len(TYPED) - 1))
    value = data.draw(TYPED[place][1])
    arguments = msgspec.json.encode({"value": value}).decode()
    assert READERS[place].validate(arguments) == ""
    (seen,) = taken(READERS[place], arguments)
    assert (type(seen), seen) == (type(value), value)


def fits(value: Any, hint: Any) -> bool:
    """Whether a JSON value is one of these types, said without msgspec."""
    if hint is int:
        return type(value) is int
    if hint is float:
        return type(value) in (int, float)
    if hint is str or hint is bool:
        return type(value) is hint
    if hint == list[int]:
        return type(value) is list and all(fits(each, int) for each in value)
    if hint == dict[str, bool]:
        return type(value) is dict and all(fits(each, bool) for each in value.values())
    if hint == int | None:
        return value is None or fits(value, int)
    return hint is Any or value in ("a", "b")


IN_QUOTES = st.integers().map(str) | st.floats().map(repr) | st.booleans().map(lambda each: str(each).lower())


@given(st.integers(0, 7), PLAIN | IN_QUOTES)
def test_a_strict_tool_is_called_exactly_if_its_argument_fits(place, value):
    hint, _ = TYPED[place]
    arguments = json.dumps({"value": value})
    called = bool(taken(STRICT_READERS[place], arguments))
    assert called == fits(value, hint)
    assert called == (STRICT_READERS[place].validate(arguments) == "")


WIDER: list[Any] = [
    *(hint for hint, _ in TYPED),
    int | str,
    str | int | None,
    float | int | bool,
    bool | list[str] | list[int],
    Literal["5", 5] | float,
    Decimal | str,
    dt.datetime | dt.date | str,
    list[Range | Point | Node],
    dict[str, int | list[str] | None],
    Annotated[int, msgspec.Meta(ge=0)] | str,
]
WIDER_READERS = [(reading(hint), reading(hint, strict=True)) for hint in WIDER]
NESTED = st.recursive(
    PLAIN | IN_QUOTES | st.datetimes().map(str) | st.dates().map(str),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["first", "x", "value", "a"]), inner),
    max_leaves=6,
)


@given(st.integers(0, len(WIDER) - 1), NESTED)
def test_being_lenient_changes_nothing_that_fits_exactly(place, value):
    lenient, strict = WIDER_READERS[place]
    arguments = json.dumps({"value": value})
    exact = taken(strict, arguments)
    if exact:
        assert repr(taken(lenient, arguments)) == repr(exact)


@given(st.text() | PLAIN.map(json.dumps))
def test_no_text_makes_reading_fail_in_another_way(text):
    problem = search.validate(text)
    try:
        given_ = json.loads(text)
    except ValueError:
        assert problem
    else:
        assert bool(problem) != (isinstance(given_, dict) and isinstance(given_.get("query"), str))
