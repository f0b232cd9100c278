"""A schema that is given is shown as it is, and held to as far as its outermost object goes."""

import json
from typing import Any

import pytest

from suture.errors import ConfigError
from suture.messages import ToolArgument, ToolContext
from suture.tools import tool
from tests.tools.running import Context, run

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "What to look for."},
        "limit": {"type": ["integer", "null"]},
        "ratio": {"type": "number"},
        "flags": {"type": "array", "items": {"type": "string"}},
        "more": {"type": "object"},
        "exact": {"type": "boolean"},
        "free": {},
        "any": True,
    },
    "required": ["query"],
    "additionalProperties": False,
    "x-vendor": 1,
}


def echo(**given: Any) -> dict[str, Any]:
    return given


def test_the_schema_is_shown_as_it_is_and_a_later_change_does_not_reach_the_tool():
    schema = json.loads(json.dumps(SCHEMA))
    made = tool(echo, schema=schema)
    schema["properties"]["query"]["type"] = "integer"
    assert made.info.parameters == SCHEMA


@pytest.mark.parametrize(
    "arguments",
    [
        {"query": "a"},
        {"query": "a", "limit": None, "ratio": 1, "flags": [1], "more": {}, "exact": False, "free": 1, "any": []},
        {"query": "", "limit": 3.0, "ratio": 0.5},
    ],
)
def test_arguments_that_fit_reach_the_function_by_name(arguments):
    assert json.loads(run(tool(echo, schema=SCHEMA), json.dumps(arguments))) == arguments


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("{", "the arguments are not valid JSON: input data was truncated"),
        ("[1]", "the arguments must be one JSON object, got array"),
        ("", "arguments.query: missing"),
        ('{"query": 1}', "arguments.query: expected string, got integer"),
        ('{"query": null}', "arguments.query: expected string, got null"),
        ('{"query": "a", "limit": "1"}', "arguments.limit: expected integer or null, got string"),
        ('{"query": "a", "limit": true}', "arguments.limit: expected integer or null, got boolean"),
        ('{"query": "a", "limit": 1.5}', "arguments.limit: expected integer or null, got number"),
        ('{"query": "a", "ratio": true}', "arguments.ratio: expected number, got boolean"),
        ('{"query": "a", "flags": {}}', "arguments.flags: expected array, got object"),
        ('{"query": "a", "more": []}', "arguments.more: expected object, got array"),
        (
            '{"exact": 1, "size": 2}',
            (
                "arguments.size: unknown; known: query, limit, ratio, flags, more, exact, free, any; "
                "arguments.query: missing; arguments.exact: expected boolean, got integer"
            ),
        ),
    ],
)
@pytest.mark.parametrize("form", ["raw", "strict"])
def test_arguments_that_do_not_fit_are_refused_with_all_that_is_wrong(arguments, says, form):
    def whole(argument: ToolArgument) -> str:
        return argument.text

    made = tool(whole, schema=SCHEMA) if form == "raw" else tool(echo, schema=SCHEMA, strict=True)
    assert made.validate(arguments) == says


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"limit": "1"}, {"limit": 1}),
        ({"limit": None}, {"limit": None}),
        ({"ratio": "0.5"}, {"ratio": 0.5}),
        ({"exact": "true"}, {"exact": True}),
        ({"free": "1", "any": "true"}, {"free": "1", "any": "true"}),
    ],
)
def test_numbers_and_switches_in_quotes_are_read_where_the_schema_asks_for_them(written, read):
    arguments = json.dumps({"query": "a", **written})
    assert json.loads(run(tool(echo, schema=SCHEMA), arguments)) == {"query": "a", **read}


@pytest.mark.parametrize("written", ['"many"', '"1.5"', "1.5", "[]", '""'])
def test_what_is_no_whole_number_is_refused_where_the_schema_asks_for_one(written):
    said = tool(echo, schema=SCHEMA).validate(f'{{"query": "a", "limit": {written}}}')
    assert said.startswith("arguments.limit: expected integer or null, got ")


def test_unknown_arguments_pass_where_the_schema_does_not_forbid_them():
    made = tool(echo, schema={"properties": {"query": {}}})
    assert made.info.parameters == {"type": "object", "properties": {"query": {}}}
    assert run(made, '{"size": 1}') == '{"size":1}'


def test_a_function_with_parameters_gets_them_as_they_were_decoded():
    def search(query: bytes, limit: int = 3) -> list[Any]:
        return [query, limit]

    made = tool(search, schema={"properties": {"query": {"type": "string"}}})
    assert run(made, '{"query": "a"}') == '["a",3]'
    assert run(made, '{"query": "a", "limit": "many"}') == '["a","many"]'


def test_names_by_pattern_are_left_to_the_function():
    made = tool(echo, schema={"patternProperties": {"^x-": {}}, "additionalProperties": False})
    assert run(made, '{"x-size": 1}') == '{"x-size":1}'


def test_parameters_that_have_no_name_for_the_caller_have_their_defaults():
    def power(base: int, exponent: int = 2, /) -> int:
        return base**exponent

    made = tool(power, schema={"properties": {"base": {"type": "integer"}, "exponent": {"type": "integer"}}})
    assert (run(made, '{"base": 3}'), run(made, '{"base": 3, "exponent": 3}')) == ("9", "27")


def test_what_the_function_cannot_take_or_do_without_is_refused_whatever_the_schema_says():
    def search(query: str, page: int, limit: int = 3) -> None: ...

    made = tool(search, schema={"properties": {"query": {"type": "string"}}})
    assert made.validate('{"size": 1}') == (
        "arguments.size: unknown; known: query, page, limit; arguments.query: missing; arguments.page: missing"
    )


def test_a_schema_that_asks_for_what_the_function_does_not_take_is_refused():
    def search(query: str) -> None: ...

    with pytest.raises(ConfigError, match=r"tool 'search' does not take 'size', which its schema asks for"):
        tool(search, schema={"properties": {"query": {}, "size": {}}})


def test_the_arguments_can_be_taken_unread_once_they_fit():
    def whole(argument: ToolArgument, context: ToolContext) -> str:
        return argument.text + context.call_id

    made = tool(whole, schema=SCHEMA)
    assert made.info.parameters == SCHEMA
    assert run(made, '{ "query": "a" }', context=Context()) == '{ "query": "a" }call_1'


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        (["a"], "its schema must be a mapping, a JSON Schema; got list"),
        ([], "its schema must be a mapping, a JSON Schema; got list"),
        ({"type": "array"}, "its schema is not a JSON Schema of an object"),
        ({"properties": []}, "its schema is not a JSON Schema of an object"),
        ({"properties": {"a": 3}}, "its schema is not a JSON Schema of an object"),
        ({"required": "a"}, "its schema is not a JSON Schema of an object"),
        ({"properties": {"a": {"default": {1}}}}, "its schema is not JSON"),
        ({"properties": {"a": {"default": float("nan")}}}, "its schema is not JSON"),
    ],
)
def test_what_is_no_schema_of_an_object_is_refused(schema, says):
    with pytest.raises(ConfigError, match=f"tool 'echo': {says}"):
        tool(echo, schema=schema)
