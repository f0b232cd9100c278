"""What a model wrote reaches the function as values, or does not reach it and the model is told what to mend."""

import asyncio
import dataclasses
import datetime as dt
import json
import uuid
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import msgspec
import pytest

from suture.errors import SutureError
from suture.tools import ToolArgumentsError, tool
from tests.tools.reading import Color, Node, Point, Range, reading, search, taken
from tests.tools.running import run


class Page(TypedDict):
    title: str
    tags: NotRequired[list[str]]


class Pair(NamedTuple):
    left: int
    right: str


WRITTEN = [
    (int, "3", 3),
    (int, str(10**30), 10**30),
    (float, "3", 3.0),
    (str, '"\\u00fc\\n"', "ü\n"),
    (bool, "true", True),
    (None, "null", None),
    (Any, '{"a": [1]}', {"a": [1]}),
    (object, "[1]", [1]),
    (list[int], "[1, 2]", [1, 2]),
    (tuple[int, str], '[1, "a"]', (1, "a")),
    (set[int], "[1, 1]", {1}),
    (dict[str, int], '{"a": 1}', {"a": 1}),
    (dict[int, str], '{"1": "a"}', {1: "a"}),
    (int | None, "null", None),
    (int | str, '"a"', "a"),
    (Literal["a", 3], "3", 3),
    (Color, '"red"', Color.RED),
    (Range, '{"first": 1}', Range(1)),
    (list[Range], '[{"first": 1, "last": 2}]', [Range(1, 2)]),
    (Page, '{"title": "a", "tags": ["b"]}', {"title": "a", "tags": ["b"]}),
    (Point, '{"x": 1}', Point(1.0)),
    (Pair, '[1, "a"]', Pair(1, "a")),
    (Node, '{"value": 1, "below": [{"value": 2}]}', Node(1, [Node(2)])),
    (dt.datetime, '"2024-01-02T03:04:05Z"', dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC)),
    (dt.date, '"2024-01-02"', dt.date(2024, 1, 2)),
    (uuid.UUID, '"12345678-1234-5678-1234-567812345678"', uuid.UUID("12345678-1234-5678-1234-567812345678")),
    (Decimal, '"1.10"', Decimal("1.10")),
    (bytes, '"YWI="', b"ab"),
    (Annotated[int, msgspec.Meta(ge=0)], "0", 0),
]


@pytest.mark.parametrize(("hint", "written", "value"), WRITTEN, ids=repr)
def test_an_argument_reaches_the_function_as_a_value_of_its_type(hint, written, value):
    (seen,) = taken(reading(hint), f'{{"value": {written}}}')
    assert (type(seen), seen) == (type(value), value)


WRONG = [
    (int, '"three"', "arguments.value: expected int, got str"),
    (int, '"3.5"', "arguments.value: expected int, got str"),
    (int, "3.5", "arguments.value: expected int, got float"),
    (int, "null", "arguments.value: expected int, got null"),
    (str, "3", "arguments.value: expected str, got int"),
    (bool, "2", "arguments.value: expected bool, got int"),
    (bool, '"maybe"', "arguments.value: expected bool, got str"),
    (float, '"1e400"', "arguments.value: expected float, got str"),
    (list[int], '[1, "two"]', "arguments.value[1]: expected int, got str"),
    (list[int], "{}", "arguments.value: expected array, got object"),
    (dict[str, int], '{"a": "b"}', "arguments.value.a: expected int, got str"),
    (int | None, '"a"', "arguments.value: expected int | null, got str"),
    (Literal["a", "b"], '"c"', "arguments.value: invalid enum value 'c'; choices: 'a', 'b'"),
    (Color, '"blue"', "arguments.value: invalid enum value 'blue'; choices: 'green', 'red'"),
    (Color | None, '"blue"', "arguments.value: invalid enum value 'blue'; choices: 'green', 'red'"),
    (list[Color], '["red", "blue"]', "arguments.value[1]: invalid enum value 'blue'; choices: 'green', 'red'"),
    (dict[str, Color], '{"a": "blue"}', "arguments.value.a: invalid enum value 'blue'; choices: 'green', 'red'"),
    (Range, '{"last": 1}', "arguments.value: object missing required field first"),
    (Range, '{"first": []}', "arguments.value.first: expected int, got array"),
    (list[Range], '[{"first": 1}, {"first": null}]', "arguments.value[1].first: expected int, got null"),
    (Node, '{"value": 1, "below": [{"value": ""}]}', "arguments.value.below[0].value: expected int, got str"),
    (Annotated[int, msgspec.Meta(ge=0)], "-1", "arguments.value: expected int >= 0"),
    (Annotated[str, msgspec.Meta(max_length=2)], '"abc"', "arguments.value: expected str of length <= 2"),
    (dt.datetime, '"soon"', "arguments.value: expected a date and time, such as 2026-01-31T10:00:00Z, got 'soon'"),
]


@pytest.mark.parametrize(("hint", "written", "says"), WRONG, ids=repr)
def test_an_argument_of_the_wrong_type_is_refused_with_its_place_and_what_was_expected(hint, written, says):
    made = reading(hint)
    arguments = f'{{"value": {written}}}'
    assert taken(made, arguments) == []
    assert made.validate(arguments) == says
    with pytest.raises(ToolArgumentsError) as caught:
        run(made, arguments)
    assert (str(caught.value), caught.value.reason, caught.value.problems) == (says, says, (says,))
    assert isinstance(caught.value, SutureError)
    assert isinstance(caught.value, ValueError)


def test_the_choices_of_a_type_that_is_used_twice_are_told():
    @tool
    def paint(wall: Color, more: dict[str, list[Color]]) -> None: ...

    assert paint.validate('{"wall": "blue", "more": {"door": ["pink"]}}') == (
        "arguments.wall: invalid enum value 'blue'; choices: 'green', 'red'; "
        "arguments.more.door[0]: invalid enum value 'pink'; choices: 'green', 'red'"
    )


@dataclasses.dataclass
class Picky:
    x: int
    allowed = (1, 2)

    def __post_init__(self) -> None:
        if self.x > 10:
            raise ValueError("too large")
        {number: number for number in self.allowed}[self.x]


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ('{"x": 1}', ""),
        ('{"x": 11}', "arguments.value: too large"),
        ('{"x": 3}', "arguments.value: KeyError: 3"),
    ],
)
def test_what_a_dataclass_checks_itself_is_told_as_well(written, says):
    assert reading(Picky).validate(f'{{"value": {written}}}') == says


@pytest.mark.parametrize("arguments", ['{"value": 1, "x": 2}', '{"x": 2}'])
def test_an_argument_that_may_be_anything_is_never_the_problem(arguments):
    assert "arguments.value: expected" not in reading(object).validate(arguments)


def test_a_name_with_a_dash_is_no_problem():
    assert tool(lambda query: query, name="look-up").validate("{}") == "arguments.query: missing"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("[]", "the arguments must be one JSON object, got array"),
        ("null", "arguments.query: missing"),
        ('"{}"', "the arguments must be one JSON object, got string"),
        ("3", "the arguments must be one JSON object, got integer"),
        ('{"query": "a"', "the arguments are not valid JSON: input data was truncated"),
        ("{'query': 'a'}", "the arguments are not valid JSON: object keys must be strings (byte 1)"),
        ('{"query": "a"} {}', "the arguments are not valid JSON: trailing characters (byte 16)"),
        ('{"query": NaN}', "the arguments are not valid JSON: invalid character (byte 10)"),
        ("[" * 100_000, "the arguments are not valid JSON: nested too deeply"),
        ('{"query": ' + "[" * 100_000, "the arguments are not valid JSON: nested too deeply"),
        ("", "arguments.query: missing"),
        (" \n", "arguments.query: missing"),
        ("{}", "arguments.query: missing"),
        ('{"query": "a", "size": 1}', "arguments.size: unknown; known: query, limit, exact"),
        (
            '{"limit": "nine", "exact": 2, "size": 1}',
            (
                "arguments.size: unknown; known: query, limit, exact; arguments.query: missing; "
                "arguments.limit: expected int, got str; arguments.exact: expected bool, got int"
            ),
        ),
    ],
    ids=lambda text: text[:40],
)
def test_all_that_is_wrong_is_told_at_once(arguments, says):
    assert search.validate(arguments) == says
    with pytest.raises(ToolArgumentsError) as caught:
        run(search, arguments)
    assert str(caught.value) == says


def test_text_that_is_no_unicode_is_refused():
    assert search.validate('{"query": "\ud800"}').startswith("the arguments are not valid JSON: ")
    assert search.validate('{"query": "\\ud800"}').startswith("the arguments are not valid JSON: ")


def test_what_goes_back_to_the_model_stays_short():
    long = search.validate(json.dumps({"x" * 10_000: 1, "query": "a"}))
    assert len(long) < 400
    many = search.validate(json.dumps({"query": "a", **{f"extra{number}": 1 for number in range(100)}}))
    assert many.count("unknown") == 20
    assert many.endswith("; and 80 more")


@pytest.mark.parametrize("nothing", ["", "  ", "{}", "null", " null\n"])
def test_no_text_is_no_arguments(nothing):
    @tool
    def now() -> str:
        return "noon"

    assert now.info.parameters is None
    assert run(now, nothing) == "noon"


def test_a_tool_without_parameters_refuses_arguments():
    made = tool(lambda: "", name="now")
    assert made.validate('{"zone": 1}') == "arguments.zone: unknown; known: none, it takes no arguments"


@pytest.mark.parametrize(
    ("arguments", "seen"),
    [
        ('{"query": "a"}', ["a", 3, False]),
        ('{"exact": true, "query": "a", "limit": 1}', ["a", 1, True]),
        ('{"query": "a", "query": "b"}', ["b", 3, False]),
    ],
)
def test_what_the_model_leaves_out_has_its_default(arguments, seen):
    assert json.loads(run(search, arguments)) == seen


@pytest.mark.parametrize("default", [[1, 2], {"a": 1}, {3}, Range(1), Node(1), object(), Color.RED, None, (), [], 1.5])
def test_any_default_will_do_and_reaches_the_function_itself(default):
    (seen,) = taken(reading(Any, default), "{}")
    assert seen is default


def test_parameters_that_have_no_name_for_the_caller_are_filled_in():
    def divide(a: int, b: int, /, c: int = 1, *, d: int) -> list[int]:
        return [a, b, c, d]

    assert run(tool(divide), '{"d": 4, "b": 2, "a": 1}') == "[1,2,1,4]"


@pytest.mark.parametrize("name", ["self", "cls", "arguments", "context", "ctx", "options", "tool", "_x", "__doc__"])
def test_no_name_of_a_parameter_means_anything_special(name):
    namespace: dict[str, Any] = {}
    exec(f"def echo({name}: int): return {name}", namespace)
    made = tool(namespace["echo"])
    assert made.info.parameters is not None
    assert list(made.info.parameters["properties"]) == [name]
    assert run(made, json.dumps({name: 3}), context=None) == "3"


def test_no_name_of_a_parameter_takes_the_place_of_another():
    def echo(_x: int, at0: int, at1: int = 3) -> list[int]:
        return [_x, at0, at1]

    assert run(tool(echo), '{"_x": 1, "at0": 2}') == "[1,2,3]"


def test_methods_of_objects_are_functions_like_any_other():
    class Shelf:
        def __init__(self, books: int) -> None:
            self.books = books

        def count(self, plus: int) -> int:
            return self.books + plus

    assert run(tool(Shelf(3).count), '{"plus": 2}') == "5"


# --- what a call costs --------------------------------------------------------------------------


def test_nothing_is_inspected_when_a_tool_is_called(monkeypatch: pytest.MonkeyPatch):
    import inspect

    @tool
    async def add(a: int, b: int = 1) -> int:
        return a + b

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("inspected at call time")

    for name in ("signature", "getdoc", "unwrap", "getmodule", "currentframe"):
        monkeypatch.setattr(inspect, name, refuse)
    assert asyncio.run(add.endpoint('{"a": 1}')) == "2"
