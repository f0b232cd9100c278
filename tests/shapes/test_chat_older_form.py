"""Calls and results of the older form of Chat Completions: `function_call` and the role `function`."""

from tests.shapes.chat import GO, NEXT, WIRE, call, model, old_result, says, tool
from tests.shapes.holding import left_alone, mended
from tests.shapes.texts import placeholder

OLD_CALL = {"role": "assistant", "content": None, "function_call": {"name": "search", "arguments": "{}"}}


def test_a_whole_history_of_the_older_form_is_left_alone():
    left_alone([GO, OLD_CALL, old_result("1"), says("done"), NEXT], WIRE)


def test_a_call_of_the_older_form_is_answered_in_the_older_form():
    fixed = mended([GO, OLD_CALL, NEXT], WIRE)
    assert fixed.messages[1] is OLD_CALL
    assert set(fixed.messages[2]) == {"role", "name", "content"}
    assert (fixed.messages[2]["role"], fixed.messages[2]["name"]) == ("function", "search")
    assert fixed.messages[2]["content"].startswith("Tool call search")
    assert fixed.messages[2]["content"].endswith("was canceled - another message came in before it could be completed.")


def test_a_late_result_of_the_older_form_moves_home():
    fixed = mended([GO, OLD_CALL, NEXT, old_result("1")], WIRE)
    assert fixed.messages == [GO, OLD_CALL, old_result("1"), NEXT]


def test_an_orphan_of_the_older_form_is_kept_as_text():
    fixed = mended([GO, old_result("precious"), says("done")], WIRE)
    assert fixed.messages[1]["role"] == "user"
    assert "precious" in fixed.messages[1]["content"]


def test_both_forms_may_stand_in_one_history():
    fixed = mended([GO, OLD_CALL, old_result("1"), model(call("x")), NEXT], WIRE)
    assert fixed.messages[:4] == [GO, OLD_CALL, old_result("1"), model(call("x"))]
    assert fixed.messages[4] == tool("x", placeholder("interrupted", "x"))
