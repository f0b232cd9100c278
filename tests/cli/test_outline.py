"""The outline of a history, and the marks that say what a repair did."""

from typing import Any

import pytest

import suture
from suture.cli.output import compare, outline
from tests.cli.program import ANSWER, GOOD, STOP, USER, result, turn


def marks(before: list, **options: Any) -> list[str]:
    """Repair `before`; return the marks of each place that changed, one letter a message."""
    fixed = suture.repair(before, **options)
    places = compare(before, fixed.messages, fixed.report.wire)
    return ["".join(line[0] for line in place) for place in places]


def test_a_line_tells_who_speaks_what_is_called_and_what_is_said():
    assert outline(GOOD, "openai-chat") == [
        '    0  user       "What is the weather in Kyoto?"',
        '    1  assistant  calls weather {"city": "Kyoto"} as call_1',
        '    2  tool       answers call_1  "sunny"',
        '    3  assistant  "Sunny."',
    ]


def test_a_long_text_is_cut_and_control_characters_are_spelled_out():
    (line,) = outline([{"role": "user", "content": "a\x1b[31m\n b" + "c" * 5000}], "openai-chat")
    text = line.partition('"')[2]
    assert text.startswith("a\\x1b[31m bccc")
    assert text.endswith('…"')
    assert len(text) == 72 + 1


def test_what_a_call_lacks_is_told():
    call = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
    (line,) = outline([{"role": "assistant", "tool_calls": [call]}], "openai-chat")
    assert line == "    0  assistant  calls (no name) as (no id)"


def test_an_item_that_is_no_message_is_told_by_its_type():
    item = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "think"}]}
    assert outline([item], "openai-responses") == ['    0  assistant  (reasoning)  "think"']


CASES = [
    pytest.param(GOOD, [], id="nothing to do"),
    pytest.param([USER, turn("a"), STOP], ["  + "], id="a placeholder is inserted"),
    pytest.param([USER, turn("a"), STOP, result("a")], ["  + -"], id="a late result is moved"),
    pytest.param([USER, turn("a"), result("a"), result("a")], ["  -"], id="a duplicate is gone"),
    pytest.param([USER, result("z"), ANSWER], [" -+ "], id="an orphan is changed into text"),
    pytest.param([USER, turn("a", arguments="{"), result("a")], [" -+ "], id="bad arguments are changed"),
    pytest.param([turn("a"), *GOOD, turn("b")], [" +  ", "  +"], id="two places"),
]


@pytest.mark.parametrize(("history", "expected"), CASES)
def test_a_repair_is_shown_by_what_went_and_what_came_instead(history: list, expected: list[str]):
    assert marks(history) == expected


def test_a_long_history_in_which_everything_changes_is_compared_in_time():
    before = [message for number in range(3000) for message in (USER, turn(f"a b{number}"), result(f"a b{number}"))]
    (place,) = marks(before, profile="mistral", wire="openai-chat")
    assert (place.count("-"), place.count("+")) == (6000, 6000 + 2999)  # and what Mistral wants between turns
