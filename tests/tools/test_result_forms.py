"""What a tool's endpoint makes of what the function gives."""

import enum

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
        (Page(HALF, 0.5), f'{{"title":"{UNKNOWN}","score":0.5}}'),
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
        ({"a": 1}, ToolResult((TextPart('{"a":1}'),))),
        (3, ToolResult((TextPart("3"),))),
        ([TextPart("a"), "b", 3, None], ToolResult((TextPart("a"), TextPart("b"), TextPart("3")))),
    ],
)
@pytest.mark.parametrize("kind", ["enhanced_invokable", "enhanced_streamable"])
def test_an_enhanced_tool_gives_results_whatever_form_its_function_chose(value, result, kind):
    given = run(tool(lambda: value, name="give", kind=kind))
    assert given == ([result] if kind == "enhanced_streamable" else result)
