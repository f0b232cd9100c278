"""One reader for a value of any annotation, with the same schema, values and words wherever it is used."""

import dataclasses
import pathlib
import subprocess
import sys
from typing import Annotated, Any

import jsonschema
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import TypedDict

from suture.errors import ConfigError
from suture.tools import tool
from suture.tools.values import NotJSONError, ValueProblemsError, make_value_reader
from tests.tools.reading import Color, Node, Point, Range
from tests.tools.test_generated_arguments import NESTED, TYPED

Above3 = Annotated[int, pydantic.Field(gt=3)]


class Item(pydantic.BaseModel):
    name: str
    price: Above3 = 4


class Other(pydantic.BaseModel):
    size: int


@dataclasses.dataclass
class Holder:
    item: Item


@dataclasses.dataclass
class Bounded:
    a: Above3


@dataclasses.dataclass
class Defaulted:
    a: int = pydantic.Field(gt=3, description="How many.")


@pydantic.dataclasses.dataclass
class Checked:
    a: Above3


class Bundle(TypedDict):
    item: Item
    a: Above3


class Crate(msgspec.Struct):
    a: Above3
    items: list[Item] = []


@dataclasses.dataclass
class File:
    path: pathlib.Path


VALUES: list[tuple[Any, str, Any]] = [
    (list[Item], '[{"name": "a"}]', [Item(name="a")]),
    (Item | None, "null", None),
    (Item | Other, '{"size": "1"}', Other(size=1)),
    (Item | str, '"a"', "a"),
    (Item | str, '{"name": "a"}', Item(name="a")),
    (dict[str, Item], '{"x": {"name": "a"}}', {"x": Item(name="a")}),
    (Holder, '{"item": {"name": "a"}}', Holder(Item(name="a"))),
    (Bundle, '{"item": {"name": "a"}, "a": "4"}', {"item": Item(name="a"), "a": 4}),
    (Crate, '{"a": 4, "items": [{"name": "a"}]}', Crate(4, [Item(name="a")])),
    (File, '{"path": "/x"}', File(pathlib.Path("/x"))),
    (Holder | File | Crate | None, '{"a": "4"}', Crate(4)),
    (Bounded | Bundle, '{"a": "4"}', Bounded(4)),
    (Defaulted, '{"a": "4"}', Defaulted(4)),
    (bool, '"true"', True),
    (Color, '"red"', Color.RED),
]


@pytest.mark.parametrize(("hint", "written", "value"), VALUES, ids=repr)
def test_mixtures_of_models_dataclasses_typed_dicts_and_structs_are_read(hint, written, value):
    reader = make_value_reader(hint, "answer", where="output_type")
    jsonschema.Draft202012Validator.check_schema(reader.schema)
    assert "$ref" not in reader.schema
    assert reader.read(written) == value
    assert type(reader.read(written.encode())) is type(value)


CONSTRAINED: list[tuple[Any, str, str]] = [
    (Above3, "3", "answer: expected int > 3"),
    (list[Above3], "[4, 3]", "answer[1]: expected int > 3"),
    (Bounded, '{"a": 3}', "answer.a: expected int > 3"),
    (Crate, '{"a": "3"}', "answer.a: expected int > 3"),
    (Bundle, '{"item": {"name": "a"}, "a": 3}', "answer.a: expected int > 3"),
    (Checked, '{"a": 3}', "answer.a: input should be greater than 3"),
    (Defaulted, '{"a": 3}', "answer.a: input should be greater than 3"),
    (Item, '{"name": "a", "price": 3}', "answer.price: input should be greater than 3"),
    (list[Item], "[{}]", "answer[0].name: field required"),
    (Holder, "{}", "answer: object missing required field item"),
]


@pytest.mark.parametrize(("hint", "written", "says"), CONSTRAINED, ids=repr)
def test_no_constraint_is_lost_and_parameters_are_told_the_same(hint, written, says):
    with pytest.raises(ValueProblemsError) as caught:
        make_value_reader(hint, "answer", where="output_type").read(written)
    assert caught.value.problems == (says,)

    def take(value): ...

    take.__annotations__["value"] = hint
    assert tool(take).validate(f'{{"value": {written}}}') == says.replace("answer", "arguments.value", 1)


@pytest.mark.parametrize("written", ["", "{", "Sure!", "NaN", "[" * 100_000, b"\xff"], ids=lambda each: repr(each)[:9])
@pytest.mark.parametrize("hint", [int, list[int] | list[str], Item, Item | str], ids=repr)
def test_what_is_not_json_is_told_as_that(hint, written):
    with pytest.raises(NotJSONError, match=r"^answer is not valid JSON: "):
        make_value_reader(hint, "answer", where="output_type").read(written)


def test_a_type_that_cannot_be_read_is_named_with_what_to_write_instead():
    class Database: ...

    with pytest.raises(ConfigError) as caught:
        make_value_reader(list[Database], "answer", where="output_type")
    assert str(caught.value) == (
        "output_type: a model cannot write Database as JSON; annotate it with str, int, a list or dict of them, "
        "a dataclass, a TypedDict or a pydantic model"
    )


def test_a_recursive_type_stands_at_the_root_of_its_schema():
    schema = make_value_reader(Node, "answer", where="output_type").schema
    assert (schema["type"], list(schema["$defs"])) == ("object", ["Node"])
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid({"value": 1, "below": [{"value": 2}]})
    assert not validator.is_valid({"value": 1, "below": [{}]})


def test_two_types_of_one_name_have_a_definition_each():
    def make(kind: type) -> type:
        return dataclasses.make_dataclass("Same", [("a", kind)])

    first, second = make(int), make(str)
    schema = make_value_reader(
        tuple[first, first, second, second, list[Item], list[Item]], "answer", where="output_type"
    ).schema
    assert sorted(schema["$defs"]) == ["Item", "Same", "Same_2"]
    assert [each["properties"]["a"]["type"] for each in (schema["$defs"]["Same"], schema["$defs"]["Same_2"])] == [
        "integer",
        "string",
    ]


def test_a_model_named_like_a_dataclass_keeps_its_own_definition():
    inner = pydantic.create_model("Range", word=(str, ...))
    outer = pydantic.create_model("Outer", one=(inner, ...), two=(inner, ...))
    schema = make_value_reader(tuple[Range, Range, outer], "answer", where="output_type").schema
    assert schema["$defs"]["Range"]["required"] == ["first"]
    assert schema["$defs"]["Range_2"]["required"] == ["word"]
    assert schema["prefixItems"][2]["properties"]["two"] == {"$ref": "#/$defs/Range_2"}


EXACT = [(hint, make_value_reader(hint, "answer", where="test").read) for hint, _ in [*TYPED, (list[Point | None], 0)]]


@given(st.integers(0, len(EXACT) - 1), NESTED)
def test_what_is_exactly_of_a_type_is_read_as_msgspec_reads_it(place, value):
    hint, read = EXACT[place]
    written = msgspec.json.encode(value)
    try:
        exact = msgspec.json.decode(written, type=hint)
    except msgspec.ValidationError:
        return
    assert repr(read(written)) == repr(exact)


ALONE = """
import sys
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from suture.errors import ConfigError
from suture.tools.values import make_value_reader

class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"pydantic", "pydantic_core", "annotated_types"}:
            raise ImportError(name)

sys.meta_path.insert(0, Nothing())

class Database: ...

@dataclass
class File:
    path: Path
    when: datetime | str

print(make_value_reader(list[File] | File, "answer", where="test").read('{"path": "a", "when": "2026-01-01 10:00"}'))
try:
    make_value_reader(Database, "answer", where="test")
except ConfigError as error:
    print(error)
"""


def test_the_base_install_reads_what_is_not_pydantics():
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=True)
    read, error = done.stdout.splitlines()
    assert read.replace("Windows", "Posix") == "File(path=PosixPath('a'), when=datetime.datetime(2026, 1, 1, 10, 0))"
    assert error.startswith("test: a model cannot write Database as JSON; annotate it with ")
