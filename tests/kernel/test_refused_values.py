"""Values of unregistered types, stored data that cannot be read and senseless registrations are refused."""

import inspect
import math
import subprocess
import sys
from collections import OrderedDict, namedtuple
from dataclasses import InitVar, dataclass
from datetime import datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest

from suture.errors import ConfigError, InputError, SutureError
from suture.kernel.values import UnregisteredTypeError, decode_value, encode_value, register_type
from suture.messages import Message
from tests.kernel.registered import Level, Order, Size, Tag, Untyped


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
        "import sys; from suture.kernel.values import decode_value\n"
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
