"""What a tool's endpoint makes of what the function gives."""

import enum
from typing import Any

import msgspec
import pytest

from suture.messages import ImagePart, TextPart, ToolResult
from suture.tools import tool
from tests.tools.running import HELLO, run


class Color(enum.StrEnum):
    RED = "red"


class Page(msgspec.Struct):
    title: str
    score: float


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is", "as it is"),
        ("", ""),
        (Color.RED, "red"),
        (None, ""),
        (0, "0"),
        (False, "false"),
        (1.5, "1.5"),
        ([], "[]"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        (("ü", "\n"), '["ü","\\n"]'),
        (Page("a", 1.5), '{"title":"a","score":1.5}'),
    ],
)
def test_a_plain_tool_gives_text_as_it_is_and_the_rest_as_json(value, text):
    made = run(tool(lambda: value, name="give"))
    assert made == text
    assert type(made) is str


HALF, UNKNOWN = "\ud83d", "\ufffd"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (f"a{HALF}b", f"a{UNKNOWN}b"),
        (f"\U0001f600{HALF}", f"\U0001f600{UNKNOWN}"),
        ([HALF, {HALF: (1, HALF)}], f'["{UNKNOWN}",{{"{UNKNOWN}":[1,"{UNKNOWN}"]}}]'),
        (Page(HALF, float("nan")), f'{{"title":"{UNKNOWN}","score":null}}'),
    ],
    ids=["text", "text with a whole one", "a list", "a struct"],
)
def test_half_a_character_is_replaced_so_that_the_text_can_be_stored(value, text):
    assert run(tool(lambda: value, name="give")) == text
    assert run(tool(lambda: iter([value]), name="give", kind="streamable")) == [text]


@pytest.mark.parametrize(
    "value", [HALF, TextPart(HALF, extra={"a": 1}), [TextPart(HALF)], ToolResult([TextPart(HALF)], is_error=True)]
)
def test_half_a_character_in_parts_is_replaced_and_the_rest_stays(value):
    result = run(tool(lambda: value, name="give", kind="enhanced_invokable"))
    assert [part.text for part in result.parts] == [UNKNOWN]
    assert result.is_error == isinstance(value, ToolResult)
    assert dict(result.parts[0].extra) == ({"a": 1} if isinstance(value, TextPart) else {})


def cycle() -> list[Any]:
    ring: list[Any] = []
    ring.append(ring)
    return ring


@pytest.mark.parametrize(
    ("value", "named"),
    [(object(), "object"), (cycle(), "list"), ({"a": {1j}}, "dict"), (Page, "")],
    ids=["an object", "a cycle", "a set of complex numbers", "a class"],
)
def test_a_value_that_json_cannot_carry_is_an_error_that_says_so(value, named):
    with pytest.raises(TypeError, match=rf"tool 'give' gave a {named}.* that JSON cannot carry"):
        run(tool(lambda: value, name="give"))


@pytest.mark.parametrize(
    ("value", "named"),
    [(HELLO, "ToolResult"), (TextPart("a"), "TextPart"), ([TextPart("a")], "TextPart"), ((HELLO,), "ToolResult")],
)
def test_a_result_that_was_not_announced_is_refused_with_what_to_do(value, named):
    with pytest.raises(TypeError, match=f"tool 'give' gave a {named} but does not say so; annotate it -> ToolResult"):
        run(tool(lambda: value, name="give"))
    with pytest.raises(TypeError, match=r"-> AsyncIterator\[ToolResult\]"):
        run(tool(lambda: HELLO, name="give", kind="streamable"))


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (HELLO, HELLO),
        (TextPart("a"), ToolResult((TextPart("a"),))),
        (
            [TextPart("a"), ImagePart(url="u")],
            ToolResult(
                (
                    TextPart("a"),
                    ImagePart(url="u"),
                )
            ),
        ),
        ((TextPart("a"),), ToolResult((TextPart("a"),))),
        ([], ToolResult()),
        ("a", ToolResult((TextPart("a"),))),
        (Color.RED, ToolResult((TextPart("red"),))),
        (None, ToolResult()),
    ],
)
@pytest.mark.parametrize("kind", ["enhanced_invokable", "enhanced_streamable"])
def test_an_enhanced_tool_gives_results_whatever_form_its_function_chose(value, result, kind):
    given = run(tool(lambda: value, name="give", kind=kind))
    assert given == ([result] if kind == "enhanced_streamable" else result)


@pytest.mark.parametrize(("value", "named"), [({"a": 1}, "dict"), ([TextPart("a"), "b"], "str"), (3, "int")])
def test_an_enhanced_tool_refuses_what_is_no_part(value, named):
    with pytest.raises(TypeError, match=f"tool 'give' gave a {named}; an enhanced tool gives a ToolResult, a part"):
        run(tool(lambda: value, name="give", kind="enhanced_invokable"))
