"""The schema that a model is shown, from annotations and docstrings."""

import json
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import jsonschema
import msgspec
import pytest

from suture.errors import ConfigError
from suture.tools import tool
from tests.tools.reading import Color, Node, Range


class Cat(msgspec.Struct, tag="cat"):
    lives: int


class Dog(msgspec.Struct, tag="dog"):
    color: Color


class Page(TypedDict):
    title: str


def shown(function: Any, **choices: Any) -> dict[str, Any]:
    parameters = tool(function, name="shown", **choices).info.parameters
    assert parameters is not None
    jsonschema.Draft202012Validator.check_schema(parameters)
    return json.loads(json.dumps(parameters))


def test_a_schema_holds_names_types_defaults_and_what_is_required():
    def search(query: str, limit: int = 3, *, tags: list[str] | None = None): ...

    assert shown(search) == {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer", "default": 3},
            "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}], "default": None},
        },
        "required": ["query"],
        "additionalProperties": False,
    }


def test_what_is_not_annotated_may_be_anything():
    def search(query, limit=3): ...

    assert shown(search)["properties"] == {"query": {}, "limit": {"default": 3}}


class Place(NamedTuple):
    x: int


class Pair(msgspec.Struct, array_like=True):
    x: int


@pytest.mark.parametrize(
    ("hint", "items"),
    [(list, {}), (list[Any], {}), (set, {}), (tuple, {}), (tuple[int, str], False), (Place, False), (Pair, {})],
)
def test_an_array_always_says_what_its_items_are(hint: Any, items: Any):
    def search(places): ...

    search.__annotations__["places"] = hint
    places = shown(search)["properties"]["places"]
    assert (places["type"], places["items"]) == ("array", items)


def test_parameters_are_described_by_the_docstring_or_by_themselves():
    def search(
        query: str,
        limit: Annotated[int, msgspec.Meta(ge=1, description="How many at most.")] = 3,
        color: Color = Color.RED,
        page: Annotated[int, "Where to begin.", "Not this text."] = 1,
    ):
        """Search the docs.

        All of them.

        Args:
            query (str): What to look for,
                in plain words.
            limit: Not this text.
            color: Which shelf.
            page: Not this text.
            gone: No such parameter.

        Returns:
            Pages.
        """

    assert tool(search).info.description == "Search the docs.\n\nAll of them."
    assert shown(search)["properties"] == {
        "query": {"description": "What to look for, in plain words.", "type": "string"},
        "limit": {"description": "How many at most.", "type": "integer", "minimum": 1, "default": 3},
        "color": {
            "description": "Which shelf.",
            "title": "Color",
            "type": "string",
            "enum": ["green", "red"],
            "default": "red",
        },
        "page": {"description": "Where to begin.", "type": "integer", "default": 1},
    }


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal[1, 2], {"type": "integer", "enum": [1, 2]}),
        (Literal["a", 1], {"enum": ["a", 1]}),
        (Color, {"title": "Color", "type": "string", "enum": ["green", "red"]}),
        (Any, {}),
        (object, {}),
        (
            Range,
            {
                "title": "Range",
                "type": "object",
                "properties": {"first": {"type": "integer"}, "last": {"type": "integer", "default": 9}},
                "required": ["first"],
            },
        ),
        (
            list[Page],
            {
                "type": "array",
                "items": {
                    "title": "Page",
                    "type": "object",
                    "properties": {"title": {"type": "string"}},
                    "required": ["title"],
                },
            },
        ),
    ],
    ids=repr,
)
def test_a_type_that_is_used_once_is_written_where_it_is_used(hint, schema):
    def search(value): ...

    search.__annotations__["value"] = hint
    assert shown(search)["properties"] == {"value": schema}
    assert "$defs" not in shown(search)


def test_a_type_that_is_used_twice_or_within_itself_is_defined_once():
    def search(one: Color, other: list[Color], tree: Node): ...

    schema = shown(search)
    assert schema["properties"] == {
        "one": {"$ref": "#/$defs/Color"},
        "other": {"type": "array", "items": {"$ref": "#/$defs/Color"}},
        "tree": {"$ref": "#/$defs/Node"},
    }
    assert sorted(schema["$defs"]) == ["Color", "Node"]
    validator = jsonschema.Draft202012Validator(schema)
    tree = {"value": 1, "below": [{"value": 2, "below": []}]}
    assert validator.is_valid({"one": "red", "other": ["green"], "tree": tree})
    assert not validator.is_valid({"one": "blue", "other": [], "tree": tree})


def test_the_branches_of_a_tagged_union_can_still_be_found():
    def adopt(pet: Cat | Dog): ...

    schema = shown(adopt)
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid({"pet": {"type": "dog", "color": "red"}})
    assert not validator.is_valid({"pet": {"type": "cat", "color": "red"}})
    assert set(schema["$defs"]) == {"Cat", "Dog"}


def test_a_type_named_like_the_tool_is_no_problem():
    class shown_(msgspec.Struct):  # noqa: N801
        x: int

    shown_.__name__ = "shown"

    def search(value: shown_): ...

    search.__annotations__["value"] = shown_
    assert shown(search)["properties"]["value"]["properties"] == {"x": {"type": "integer"}}


@pytest.mark.parametrize(
    ("default", "said"),
    [
        (Color.RED, {"default": "red"}),
        ([1], {"default": [1]}),
        (Range(1), {"default": {"first": 1, "last": 9}}),
        (object(), {}),
        (float("nan"), {}),
        ({1: object()}, {}),
    ],
    ids=["an enum", "a list", "a dataclass", "an object", "not a number", "a dict of objects"],
)
def test_a_default_is_shown_if_json_can_carry_it(default, said):
    def search(value=default): ...

    assert shown(search)["properties"] == {"value": said}


class Database:
    """Nothing that a model could write."""


def test_a_type_without_a_json_form_is_refused_with_the_parameter_and_what_to_do():
    def search(query: str, database: Database): ...

    with pytest.raises(ConfigError, match=r"tool 'search', parameter 'database': .* take a RunContext\[Database\]"):
        tool(search)


@pytest.mark.parametrize(
    ("hint", "name"),
    [
        (list[Database], "Database"),
        (dict[str, Database | None], "Database"),
        (Annotated[Database, "Which one."], "Database"),
        (Callable[[int], str], r"collections\.abc\.Callable\[\[int\], str\]"),
        (type[int], r"type\[int\]"),
        (Literal[b"a"] | Database, "Database"),
    ],
    ids=repr,
)
def test_what_cannot_be_read_is_named_where_it_stands_with_what_to_write_instead(hint, name):
    def search(what): ...

    search.__annotations__["what"] = hint
    says = (
        rf"^tool 'search', parameter 'what': a model cannot write {name} as JSON; annotate it with str, int, .* model; "
        rf"what only your program has is passed with run\(\.\.\., deps=\.\.\.\): take a RunContext\[{name}\]$"
    )
    with pytest.raises(ConfigError, match=says):
        tool(search)


def test_arguments_without_names_are_refused():
    def search(*queries: str): ...

    with pytest.raises(ConfigError, match=r"parameter 'queries': .* take a list instead of \*queries"):
        tool(search)


def test_what_has_no_signature_is_refused():
    with pytest.raises(ConfigError, match="its signature cannot be read"):
        tool(max)


def test_what_a_partial_fills_in_is_neither_shown_nor_open_to_the_model():
    from functools import partial

    def fetch(url: str, token: str, size: int = 3) -> str:
        """Fetch a page."""
        return f"{url} {token} {size}"

    made = tool(partial(fetch, token="secret"))
    assert (made.name, made.info.description) == ("fetch", "Fetch a page.")
    assert "token" not in shown(partial(fetch, token="secret"))["properties"]
    assert made.validate('{"url": "a", "token": "b"}') == "arguments.token: unknown; known: url, size"
    assert made("a") == "a secret 3"


def test_a_callable_object_is_named_after_its_class_and_described_by_its_call():
    class Search:
        """An index."""

        def __call__(self, query: str) -> str:
            """Search the index."""
            return query

    class Quiet:
        """An index."""

        def __call__(self) -> str:
            return ""

    made = tool(Search())
    assert (made.name, made.info.description) == ("Search", "Search the index.")
    assert tool(Quiet()).info.description == "An index."


def test_name_and_description_can_be_given():
    def search(): ...

    made = tool(search, name="look", description="Look.")
    assert (made.name, made.info.description) == ("look", "Look.")
    assert tool(search, description="").info.description == ""


@pytest.mark.parametrize("name", ["look up", "a.b", "ü", "x" * 65, "look\n", "1/2"])
def test_a_name_that_a_provider_would_refuse_is_refused(name):
    with pytest.raises(ConfigError, match="a name has 1 to 64 letters, digits, _ or -"):
        tool(lambda: "", name=name)


def test_a_function_without_a_name_must_be_given_one():
    with pytest.raises(ConfigError, match="a tool cannot be called '<lambda>'"):
        tool(lambda: "")


def test_a_text_in_front_is_the_name():
    @tool("look_up", description="Look.")
    def search(query: str) -> str:
        return query

    assert (search.info.name, search.info.description, search("x")) == ("look_up", "Look.", "x")


def test_a_pydantic_model_as_a_schema_is_told_how_to_give_its_own():
    import pydantic

    class Weather(pydantic.BaseModel):
        city: str

    def look(city: str) -> str:
        """Look."""
        return city

    with pytest.raises(ConfigError, match=r"of a pydantic model it is Model\.model_json_schema\(\)"):
        tool(look, schema=Weather)  # pyright: ignore[reportArgumentType, reportCallIssue]
