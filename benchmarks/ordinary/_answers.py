"""Structured answers: the types that people ask for, and how models write them."""

import dataclasses
import datetime as dt
import enum
import json
import pathlib
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar

import pydantic
import pydantic.dataclasses
from _case import Case, Facts
from _server import Answer, Call, Reply
from typing_extensions import TypedDict

__all__ = ["CASES", "TITLE"]

TITLE = "Structured answers"
Json = dict[str, Any]
T = TypeVar("T")


class Item(pydantic.BaseModel):
    name: str
    euros: int


class Other(pydantic.BaseModel):
    number: int


@dataclasses.dataclass
class Basket:
    item: Item
    count: int


class Shelf(TypedDict):
    item: Item


@dataclasses.dataclass
class Place:
    path: pathlib.Path


@dataclasses.dataclass
class Cat:
    lives: int


@dataclasses.dataclass
class Dog:
    breed: str


class Colour(enum.Enum):
    RED = "red"


class Page(pydantic.BaseModel, Generic[T]):
    items: list[T]


class Named(pydantic.BaseModel):
    """Its field has a name that is a word of Python."""

    source: str = pydantic.Field(alias="from")


class Items(pydantic.RootModel[list[Item]]):
    """A list that is a model."""


class Pair(NamedTuple):
    left: int
    right: int


_A, _ITEM = {"name": "a", "euros": 1}, Item(name="a", euros=1)

Large = Annotated[int, pydantic.Field(gt=3)]


class Sized(TypedDict):
    size: Large


@pydantic.dataclasses.dataclass
class Weighed:
    weight: int = pydantic.Field(gt=3)


_KINDS: dict[type, tuple[str, ...]] = {
    str: ("string",),
    bool: ("boolean",),
    int: ("integer", "number"),
    list: ("array",),
    type(None): ("null",),
}
"""What a schema calls the types of Python."""


def _resolved(schema: Json, root: Json) -> Json:
    while "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        schema = (root.get("$defs") or root.get("definitions") or {})[name]
    return schema


def _fits(value: Any, schema: Json, root: Json) -> bool:
    """Return whether a value may stand where this schema stands, as far as its outermost form goes."""
    schema = _resolved(schema, root)
    several = schema.get("anyOf") or schema.get("oneOf")
    if several:
        return any(_fits(value, one, root) for one in several)
    kind = schema.get("type")
    if isinstance(kind, list):
        return any(_fits(value, {**schema, "type": one}, root) for one in kind)
    if not isinstance(value, dict):
        return kind is None or kind in _KINDS[type(value)]
    properties = schema.get("properties")
    if kind != "object":
        return False
    if not properties:
        return bool(schema.get("additionalProperties", True))
    return set(schema.get("required", ())) <= set(value) <= set(properties)


def _written(value: Any, schema: Json) -> str | None:
    """Return the value as this schema wants it: as it is, or as the only property of an object; or nothing."""
    if _fits(value, schema, schema):
        return json.dumps(value)
    properties = _resolved(schema, schema).get("properties") or {}
    if len(properties) == 1 and _fits(value, next(iter(properties.values())), schema):
        return json.dumps({next(iter(properties)): value})
    return None


def _form(body: Json) -> Json | None:
    """Return the schema that the answer itself must have, on Chat Completions or Messages."""
    chat = (body.get("response_format") or {}).get("json_schema") or {}
    messages = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
    return chat.get("schema") or messages.get("schema")


def _tools(body: Json) -> list[tuple[str, Json]]:
    tools = [tool.get("function", tool) for tool in body.get("tools") or ()]
    return [(tool["name"], tool.get("parameters") or tool["input_schema"]) for tool in tools]


def answering(*values: Any) -> Answer:
    """Answer with these values in turn, by the schema of the request: as text, or as a call of the tool for it."""

    def answer(body: Json, number: int) -> Reply:
        value = values[min(number, len(values) - 1)]
        form = _form(body)
        if form:
            return Reply(texts=[_written(value, form) or json.dumps(value)])
        for name, schema in _tools(body):
            arguments = _written(value, schema)
            if arguments:
                return Reply(calls=[Call(name, arguments, f"call_{number}")])
        if value is None:
            return Reply()
        return Reply(texts=[value if isinstance(value, str) else json.dumps(value)])

    return answer


def _is(value: Any, *, after: int = 1) -> Any:
    """The program got this value, of this type, from the first answer that was right."""

    def judge(facts: Facts) -> str:
        if facts.value != value or type(facts.value) is not type(value):
            return f"gave {facts.value!r}"
        return "" if len(facts.requests) <= after else f"asked {len(facts.requests)} times"

    return judge


def _output(what: str, wanted: Any, written: Any, value: Any, **more: Any) -> Case:
    given = {"wanted": wanted, **more}
    return Case(what=what, program="structured", given=given, answer=answering(written), judge=_is(value))


def _second(what: str, wanted: Any, wrong: Any, right: Any, value: Any) -> Case:
    """A first answer that breaks a constraint must not be taken."""

    def judge(facts: Facts) -> str:
        if len(facts.requests) < 2:
            return "the wrong answer was taken" if facts.error is None else "not asked again"
        return _is(value, after=2)(facts)

    given = {"wanted": wanted}
    return Case(what=what, program="structured", given=given, answer=answering(wrong, right), judge=judge)


def _in_text(what: str, text: str) -> Case:
    return Case(
        what=what,
        program="structured_as_text",
        given={"wanted": Item},
        answer=lambda _body, _number: Reply(texts=[text]),
        judge=_is(_ITEM),
    )


def _is_object(facts: Facts) -> str:
    body = facts.requests[0].body
    form = _form(body)
    for schema in [form] if form else [schema for _, schema in _tools(body)]:
        if _resolved(schema, schema).get("type") != "object":
            return f"the schema's root is {schema.get('type', 'a union')}"
    return _is([1, 2])(facts)


_JSON = json.dumps(_A)

CASES = (
    _output("`Item`, a pydantic model", Item, _A, _ITEM),
    _output("`list[Item]`", list[Item], [_A], [_ITEM]),
    _output("`Item | None`: an item", Item | None, _A, _ITEM),
    _output("`Item | None`: `null`", Item | None, None, None),
    _output("`A | B`", Item | Other, {"number": 1}, Other(number=1)),
    _output("`[A, B]`", [Item, Other], {"number": 1}, Other(number=1)),
    _output("`Item | str`: an item", Item | str, _A, _ITEM),
    _output("`Item | str`: a text", Item | str, "Which one?", "Which one?"),
    _output("`dict[str, Item]`", dict[str, Item], {"b": _A}, {"b": _ITEM}),
    _output("`dict[str, int]`", dict[str, int], {"b": 1}, {"b": 1}),
    _output("a dataclass that holds an `Item`", Basket, {"item": _A, "count": 2}, Basket(_ITEM, 2)),
    _output("a `TypedDict` that holds an `Item`", Shelf, {"item": _A}, Shelf(item=_ITEM)),
    _output("a dataclass with a `Path`", Place, {"path": "/srv"}, Place(pathlib.Path("/srv"))),
    _output("a union of two dataclasses", Cat | Dog, {"breed": "pug"}, Dog("pug")),
    _output("`list[int]`", list[int], [1, 2], [1, 2]),
    _output("`bool`", bool, True, True),
    _output("`int`", int, 42, 42),
    _output("a `Literal`", Literal["yes", "no"], "yes", "yes"),
    _output("an `Enum`", Colour, "red", Colour.RED),
    _output("`tuple[int, str]`", tuple[int, str], [1, "a"], (1, "a")),
    _output("a `NamedTuple`", Pair, [1, 2], Pair(1, 2)),
    _output("`date`", dt.date, "2026-01-01", dt.date(2026, 1, 1)),
    _output("`list[Item] | str`", list[Item] | str, [_A], [_ITEM]),
    _output("a generic model: `Page[Item]`", Page[Item], {"items": [_A]}, Page[Item](items=[_ITEM])),
    _output("a model with an alias", Named, {"from": "a"}, Named(**{"from": "a"})),
    _output("a `RootModel`", Items, [_A], Items([_ITEM])),
    _output("`Item`, from Anthropic", Item, _A, _ITEM, anthropic=True),
    _output("`list[Item]`, from Anthropic", list[Item], [_A], [_ITEM], anthropic=True),
    _output("`bool`, from Anthropic", bool, True, True, anthropic=True),
    Case(
        what="the schema of `list[int]` is an object, as providers want it",
        program="structured",
        given={"wanted": list[int]},
        answer=answering([1, 2]),
        judge=_is_object,
    ),
    _output('`"5"` for an `int` in a dataclass', Cat, {"lives": "9"}, Cat(9)),
    _second("`Annotated[int, Field(gt=3)]` holds", Large, 1, 5, 5),
    _second("`Field(gt=3)` in a `TypedDict` holds", Sized, {"size": 1}, {"size": 5}, {"size": 5}),
    _second("`Field(gt=3)` in a dataclass of pydantic holds", Weighed, {"weight": 1}, {"weight": 5}, Weighed(weight=5)),
    _in_text("JSON in a fence", f"```json\n{_JSON}\n```"),
    _in_text("JSON after a sentence", f"Here it is: {_JSON}"),
    _in_text("a sentence, JSON in a fence, a sentence", f"Sure!\n```json\n{_JSON}\n```\nAnything else?"),
    _in_text("JSON after `<think>`", f"<think>An item, {{so}} …</think>\n{_JSON}"),
)
