"""The catalogue of failure shapes, F1 to F57: where each is tested, or why it does not concern a history."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.shapes.test_history_shapes import HISTORY_SHAPES

HERE = Path(__file__).parent
EVERYWHERE = "every wire"  # a shape in missing.py, misplaced.py or identity.py, run on every wire that can express it


class Elsewhere(str):
    """Why a shape does not concern a history that is given to `repair`."""

    __slots__ = ()


SHAPES: dict[str, tuple[str, ...] | Elsewhere] = {
    "F1": (EVERYWHERE, "test_responses_shapes", "test_sdk_openai", "test_sdk_anthropic", "test_sdk_gemini"),
    "F2": (EVERYWHERE, "test_orphans_and_reports"),
    "F3": (EVERYWHERE, "test_gemini_shapes", "test_bedrock_shapes"),
    "F4": (EVERYWHERE, "test_placeholder_texts"),
    "F5": (EVERYWHERE,),
    "F6": (EVERYWHERE, "test_anthropic_shapes", "test_chat_shapes"),
    "F7": (EVERYWHERE, "test_responses_shapes"),
    "F8": (EVERYWHERE, "test_chat_shapes", "test_gemini_shapes"),
    "F9": (EVERYWHERE, "test_placeholder_texts"),
    "F10": (EVERYWHERE,),
    "F11": (EVERYWHERE,),
    "F12": (EVERYWHERE, "test_placeholder_texts"),
    "F13": (EVERYWHERE, "test_gemini_shapes"),
    "F14": (EVERYWHERE, "test_orphans_and_reports"),
    "F15": (EVERYWHERE, "test_responses_shapes"),
    "F16": (EVERYWHERE, "test_responses_shapes"),
    "F17": (EVERYWHERE, "test_placeholder_texts"),
    "F18": (EVERYWHERE, "test_responses_shapes"),
    "F19": (EVERYWHERE, "test_chat_shapes"),
    "F20": ("test_chat_shapes", "test_anthropic_shapes"),
    "F21": ("test_anthropic_shapes", "test_gemini_shapes", "test_bedrock_shapes"),
    "F22": ("test_anthropic_shapes",),
    "F23": ("test_anthropic_shapes", "test_bedrock_shapes"),
    "F24": (EVERYWHERE, "test_gemini_shapes", "test_bedrock_shapes"),
    "F25": (EVERYWHERE, "test_anthropic_shapes", "test_gemini_shapes", "test_bedrock_shapes"),
    "F26": (EVERYWHERE,),
    "F27": (EVERYWHERE,),
    "F28": (EVERYWHERE, "test_gemini_shapes"),
    "F29": ("test_gemini_shapes", "test_bedrock_shapes"),
    "F30": (EVERYWHERE, "test_chat_shapes", "test_responses_shapes"),
    "F31": (EVERYWHERE, "test_anthropic_shapes"),
    "F32": (EVERYWHERE,),
    "F33": (EVERYWHERE, "test_chat_shapes"),
    "F34": ("test_chat_shapes", "test_anthropic_shapes", "test_bedrock_shapes", "test_responses_shapes"),
    "F35": (EVERYWHERE,),  # one message of one wire holds a call in one place; doubled, it is F31
    "F36": ("test_responses_shapes", "test_chat_shapes"),
    "F37": (EVERYWHERE, "test_gemini_shapes"),
    "F38": ("test_gemini_shapes",),
    "F39": (
        "test_chat_shapes",
        "test_anthropic_shapes",
        "test_responses_shapes",
        "test_gemini_shapes",
        "test_bedrock_shapes",
    ),
    "F40": (
        "test_chat_shapes",
        "test_anthropic_shapes",
        "test_responses_shapes",
        "test_gemini_shapes",
        "test_bedrock_shapes",
    ),
    "F41": ("test_anthropic_shapes", "test_bedrock_shapes", "test_chat_shapes"),
    "F42": ("test_anthropic_shapes", "test_bedrock_shapes", "test_chat_shapes", "test_gemini_shapes"),
    "F43": ("test_bad_input",),
    "F44": Elsewhere(
        "whether a model sees images is not known to a history; where a wire's results cannot hold media, F20 moves it"
    ),
    "F45": Elsewhere("an image is not judged, and nothing is changed because a provider refused it"),
    "F46": ("test_anthropic_shapes",),
    "F47": ("test_anthropic_shapes",),
    "F48": ("test_anthropic_shapes", "test_bedrock_shapes", "test_gemini_shapes", "test_responses_shapes"),
    "F49": ("test_anthropic_shapes",),
    "F50": ("test_chat_shapes", "test_sdk_openai"),
    "F51": (EVERYWHERE, "test_lifecycles", "test_placeholder_texts"),
    "F52": ("test_lifecycles",),
    "F53": (EVERYWHERE, "test_lifecycles"),
    "F54": (EVERYWHERE, "test_placeholder_texts"),
    "F55": ("test_lifecycles",),
    "F56": ("test_lifecycles", "test_history_shapes"),
    "F57": (EVERYWHERE, "test_lifecycles", "test_responses_shapes"),
}


@cache
def cited() -> dict[str, set[str]]:
    """Return which files of tests cite each number, in a test's docstring or in the names of its cases."""
    found: dict[str, set[str]] = {}
    for path in HERE.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                for number in re.findall(r"\bF\d+\b", ast.get_docstring(node) or ""):
                    found.setdefault(number, set()).add(path.stem)
    for shape in HISTORY_SHAPES:
        for number in shape.numbers:
            found.setdefault(number, set()).add(EVERYWHERE)
    return found


def test_the_table_covers_the_catalogue_exactly():
    assert list(SHAPES) == [f"F{number}" for number in range(1, 58)]


@pytest.mark.parametrize("number", SHAPES)
def test_each_shape_is_tested_where_the_table_says_or_the_table_says_why_not(number: str):
    where = SHAPES[number]
    if isinstance(where, Elsewhere):
        assert len(where) > 30
    else:
        assert where
        assert set(where) <= cited().get(number, set())


def test_every_shape_of_a_history_runs_on_all_seven_wires_or_says_on_which():
    on_all = {number for shape in HISTORY_SHAPES if len(shape.wires) == 7 for number in shape.numbers}
    everywhere = {number for number, where in SHAPES.items() if EVERYWHERE in where}
    assert everywhere - on_all == {"F19"}  # Gemini and Bedrock have no system message in a history
