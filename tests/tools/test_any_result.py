"""A tool that ran has a result, whatever its function returned."""

import asyncio
import collections
import dataclasses
import enum
import itertools
import json
import math
import sqlite3
import types
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import attrs
import msgspec
import numpy as np
import PIL.Image
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture.messages import ImagePart, TextPart, ToolResult
from suture.tools import tool
from suture.tools.results import read_result
from tests.tools.running import run

IMAGE, AUDIO = ImagePart(url="u"), ImagePart(url="v", mime_type="image/png")


class Receipt:
    def __str__(self) -> str:
        return "paid 3 euros"


class Mute:
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Leaving:
    def __str__(self) -> str:
        raise SystemExit(3)


class Unbound:
    """As the proxies of web frameworks outside of a request."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    @property
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        raise RuntimeError("unbound")


class Mirror:
    def model_dump(self, mode: str) -> "Mirror":
        return Mirror()

    def __str__(self) -> str:
        return "a mirror"


class Port(enum.Enum):
    DOVER = "Dover"
    PAIR = (1, 2)


class Place(NamedTuple):
    x: int
    y: int


@dataclasses.dataclass
class Chart:
    path: PurePosixPath
    scale: Any = 1


@attrs.define
class Tide:
    at: date


class Ship(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    name: str
    papers: Any = None
    owner: Receipt | None = None


class Log(msgspec.Struct, rename="camel", tag="log", omit_defaults=True):
    first_line: Any
    lines: list[str] = []
    note: str = "none"


class Pair(msgspec.Struct, array_like=True):
    first: Any
    second: Any


def a_cycle() -> list[Any]:
    ring: list[Any] = [1]
    ring.append({"ring": ring})
    return ring


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def rows() -> list[Any]:
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    try:
        return connection.execute("select 1 as a, 'x' as b").fetchall()
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Receipt(), "paid 3 euros"),
        ({"receipt": Receipt()}, '{"receipt":"paid 3 euros"}'),
        (PurePosixPath("/a"), "/a"),
        (Decimal("1.10"), "1.10"),
        (datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:00Z"),
        (Port.DOVER, "Dover"),
        (Port.PAIR, "[1,2]"),
        (Place(1, 2), "[1,2]"),
        (b"caf\xc3\xa9", "café"),
        (b"\xff", "/w=="),
        ([bytearray(b"a"), memoryview(b"b")], '["a","b"]'),
        (ValueError("no tide"), "ValueError: no tide"),
        ({"error": ValueError("no tide")}, '{"error":"ValueError: no tide"}'),
        (float("nan"), "nan"),
        ([math.inf, -math.inf, 1.5], '["inf","-inf",1.5]'),
        ({1, 2}, "[1,2]"),
        (collections.deque([1, {2}]), "[1,[2]]"),
        (range(3), "[0,1,2]"),
        ({"a": 1}.keys(), '["a"]'),
        ({"a": 1}.values(), "[1]"),
        (collections.ChainMap({"a": 1}), '{"a":1}'),
        (types.MappingProxyType({"a": 1}), '{"a":1}'),
        (collections.Counter("aa"), '{"a":2}'),
        ({(1, 2): 3, Port.DOVER: 4, PurePosixPath("/p"): 5, None: 6, True: 7}, None),
        ({1: "a", "1": "b", (1,): "c"}, '{"1":"a","1\'":"b","(1,)":"c"}'),
        (rows(), '[{"a":1,"b":"x"}]'),
        (rows()[0], '{"a":1,"b":"x"}'),
        (Chart(PurePosixPath("/c"), {1}), '{"path":"/c","scale":[1]}'),
        (Tide(date(2026, 1, 1)), '{"at":"2026-01-01"}'),
        (Ship(name="Ada"), '{"name":"Ada","papers":null,"owner":null}'),
        (Ship(name="Ada", owner=Receipt()), '{"name":"Ada","papers":null,"owner":"paid 3 euros"}'),
        (Log("x"), '{"type":"log","firstLine":"x"}'),
        (Log(Receipt(), ["y"]), '{"type":"log","firstLine":"paid 3 euros","lines":["y"]}'),
        (Pair(1, b"x"), '[1,"x"]'),
        (np.float32(0.5), "0.5"),
        ({"n": np.int64(3), "ok": np.bool_(True), "all": np.arange(2)}, '{"n":3,"ok":true,"all":[0,1]}'),
        (a_cycle(), '[1,{"ring":"…"}]'),
        (Ship, f"<class '{__name__}.Ship'>"),
        (1 + 2j, "(1+2j)"),
        (itertools.count(), "count(0)"),
        ([10**5000], f'["{hex(10**5000)}"]'),
        ([Mute(), 1], '["a Mute that cannot be shown (RuntimeError)",1]'),
        ({Mute(): 1, 10**5000: 2}, f'{{"a Mute that cannot be shown (RuntimeError)":1,"{hex(10**5000)}":2}}'),
        (Mirror(), "a mirror"),
        (Mute(), "The tool ran. Its result, a Mute, cannot be shown (RuntimeError)."),
        (Leaving(), "The tool ran. Its result, a Leaving, cannot be shown (SystemExit)."),
    ],
)
@pytest.mark.parametrize("thread", [True, False])
def test_any_value_is_a_result(value: Any, text: str | None, thread: bool):
    if text is None:
        text = '{"(1, 2)":3,"Dover":4,"/p":5,"null":6,"true":7}'
    assert run(tool(lambda: value, name="give", thread=thread)) == text
    assert run(tool(lambda: [value] and value, name="give", kind="enhanced_invokable")).text == text


@pytest.mark.parametrize("thread", [True, False])
def test_what_stands_for_nothing_is_named_by_its_type(thread: bool):
    text = "The tool ran. Its result, a Unbound, cannot be shown (RuntimeError)."
    assert run(tool(lambda: Unbound(), name="give", thread=thread)) == text  # noqa: PLW0108 - a class is no tool


def test_an_iterator_inside_a_value_is_read_once():
    assert read_result({"rows": (row for row in "ab"), "nan": math.nan}) == '{"rows":["a","b"],"nan":"nan"}'
    assert read_result({"x": map(str, [1])}) == '{"x":["1"]}'


def test_a_value_that_is_nested_too_deeply_is_cut():
    text = run(tool(lambda: deep(200_000), name="give"))
    assert text == "[" * 101 + '"…"' + "]" * 101


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        (IMAGE, (IMAGE,)),
        (TextPart("a"), (TextPart("a"),)),
        ([TextPart("a")], (TextPart("a"),)),
        (["a chart:", IMAGE, {"scale": 2}, None], (TextPart("a chart:"), IMAGE, TextPart('{"scale":2}'))),
        ((IMAGE, AUDIO), (IMAGE, AUDIO)),
        (iter(["a", IMAGE]), (TextPart("a"), IMAGE)),
        ({"chart": IMAGE, "and": [AUDIO]}, (TextPart('{"chart":"[image 1]","and":["[image 2]"]}'), IMAGE, AUDIO)),
        (Chart(PurePosixPath("/"), IMAGE), (TextPart('{"path":"/","scale":"[image 1]"}'), IMAGE)),
        (Ship(name="Ada", papers=IMAGE), None),
        ([[ToolResult([TextPart("a"), IMAGE])]], (TextPart('[["a\\n[image 1]"]]'), IMAGE)),
        ([ToolResult([TextPart("a")]), ToolResult([IMAGE])], (TextPart("a"), IMAGE)),
        ([TextPart("\ud83d"), "\ud83d"], (TextPart("\ufffd"), TextPart("\ufffd"))),
    ],
)
def test_parts_are_parts_wherever_they_stand(value: Any, parts: Any):
    if parts is None:
        parts = (TextPart('{"name":"Ada","papers":"[image 1]","owner":null}'), IMAGE)
    result = run(tool(lambda: value, name="give"))
    assert result.parts == parts


def test_a_result_that_was_not_announced_keeps_its_flags():
    result = ToolResult([TextPart("no")], is_error=True, extra={"a": 1})
    assert run(tool(lambda: result, name="give")) is result
    assert run(tool(lambda: [result, "b"], name="give")) == ToolResult(
        [TextPart("no"), TextPart("b")], is_error=True, extra={"a": 1}
    )


@pytest.mark.parametrize("mode", ["RGB", "CMYK", "P", "F"])
def test_an_image_of_pil_is_a_part(mode: str):
    result = run(tool(lambda: ["seen:", PIL.Image.new(mode, (2, 3))], name="give"))
    text, image = result.parts
    assert text == TextPart("seen:")
    assert (image.mime_type, image.base64_data[:11]) == ("image/png", "iVBORw0KGgo")
    assert run(tool(lambda: PIL.Image.new(mode, (2, 3)), name="give")).parts == (image,)


def test_an_image_that_cannot_be_saved_is_its_text():
    assert run(tool(lambda: PIL.Image.new("RGB", (0, 0)), name="give")).startswith("<PIL.Image.Image image mode=RGB")


def letters() -> Iterator[Any]:
    yield "a"
    yield "b"


async def letters_later() -> Any:
    yield "a"
    yield "b"


async def work() -> Any:
    return {"a": 1}


async def work_that_gives_work() -> Any:
    return work()


async def work_that_gives_a_task() -> Any:
    return asyncio.ensure_future(work())


class Connection:
    """Waits for itself, as the connections of database libraries do."""

    def __await__(self) -> Any:
        yield from asyncio.sleep(0).__await__()
        return self

    def __str__(self) -> str:
        return "connected"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (letters, "ab"),
        (lambda: iter([1, 2]), "[1,2]"),
        (lambda: iter([]), "[]"),
        (letters_later, "ab"),
        (work, '{"a":1}'),
        (work_that_gives_work, '{"a":1}'),
        (work_that_gives_a_task, '{"a":1}'),
        (Connection, "connected"),
    ],
)
@pytest.mark.parametrize("thread", [True, False])
def test_what_comes_later_or_in_pieces_is_waited_for(make: Callable[[], Any], text: str, thread: bool):
    def give() -> Any:
        return make()

    async def give_later() -> Any:
        return make()

    assert run(tool(give, thread=thread)) == text
    if make is not Connection:  # what an async function returns is not opened for it
        assert run(tool(give_later)) == text


def test_an_iterator_is_read_in_the_thread_of_its_function_and_its_error_is_the_tools():
    def broken() -> Iterator[str]:
        yield "a"
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        run(tool(lambda: iter(broken()), name="give"))


@pytest.mark.parametrize(
    ("kind", "pieces"),
    [
        ("streamable", ["a", '{"b":1}', ToolResult((IMAGE,)), "paid 3 euros"]),
        ("enhanced_streamable", [ToolResult((part,)) for part in map(TextPart, ("a", '{"b":1}'))]),
    ],
)
def test_each_piece_of_a_stream_may_be_anything(kind: Any, pieces: list[Any]):
    values: list[Any] = ["a", {"b": 1}, IMAGE, Receipt()]
    assert run(tool(lambda: iter(values), name="give", kind=kind))[: len(pieces)] == pieces


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.decimals() | st.dates()
KEYS = st.text() | st.integers() | st.tuples(st.integers()) | st.dates() | st.binary() | st.none()
VALUES = st.recursive(
    LEAVES | st.just(Receipt()) | st.just(Mute()) | st.sets(st.integers()),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner) | st.builds(Chart, inner, inner) | st.tuples(inner),
    max_leaves=20,
)


@given(VALUES)
def test_any_container_is_json_and_each_value_in_it_is_there(value: Any):
    text = str(read_result([value]))
    (read,) = json.loads(text, object_pairs_hook=list)
    assert text.encode()

    def count(each: Any) -> int:
        if isinstance(each, Chart):
            return 1 + count(each.path) + count(each.scale)
        if isinstance(each, dict):
            return 1 + sum(map(count, each.values()))
        return 1 + sum(map(count, each)) if isinstance(each, list | tuple | set) else 1

    def count_read(each: Any) -> int:
        if isinstance(each, list):
            return 1 + sum(count_read(item[1] if isinstance(item, tuple) else item) for item in each)
        return 1

    assert count_read(read) == count(value)
