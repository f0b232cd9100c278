"""What Bedrock's Converse demands: roles that alternate, results first, told errors, narrow ids and names."""

import re
from typing import Any

import pytest

from tests.shapes.holding import found, left_alone, mended, unmendable
from tests.shapes.texts import placeholder

WIRE = "bedrock"


def blocks(parts: tuple[Any, ...]) -> list[Any]:
    return [{"text": part} if isinstance(part, str) else part for part in parts]


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "content": blocks(parts)}


def model(*parts: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": blocks(parts)}


def use(id_: str, name: str = "search", arguments: Any = None) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": id_, "name": name, "input": {} if arguments is None else arguments}}


def res(id_: str, *content: Any, **more: Any) -> dict[str, Any]:
    return {"toolResult": {"toolUseId": id_, "content": blocks(content), **more}}


GO = user("go")
SIGNED = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2lnbmVk"}}}


def test_roles_alternate():
    fixed = mended([GO, user("more"), model("a"), model("b"), user("next")], WIRE)
    assert fixed.messages == [user("go", "more"), model("a", "b"), user("next")]
    assert found(fixed) == [("same-role", 1), ("same-role", 3)]


def test_a_history_that_starts_with_the_model_is_given_a_user_turn_and_its_group_stays_whole():
    history = [model(use("x")), user(res("x", "1")), model("done")]
    fixed = mended(history, WIRE)
    assert fixed.messages[0]["role"] == "user"
    assert fixed.messages[0]["content"][0]["text"].strip()
    assert list(fixed.messages[1:]) == history
    assert found(fixed) == [("model-first", 0)]


def test_results_in_separate_messages_are_merged():
    """See agno#6698."""
    fixed = mended([GO, model(use("x"), use("y")), user(res("x", "1")), user(res("y", "2")), model("done")], WIRE)
    assert fixed.messages == [
        GO,
        model(use("x"), use("y")),
        user(res("x", "1"), res("y", "2")),
        model("done"),
    ]


def test_a_placeholder_has_status_error_and_stands_with_the_real_results():
    fixed = mended([GO, model(use("x"), use("y")), user(res("x", "1")), model("done")], WIRE)
    assert fixed.messages[2] == user(res("x", "1"), res("y", placeholder("unknown", "y"), status="error"))


def test_a_result_that_is_more_than_the_calls_becomes_text():
    """The number of toolResult blocks exceeds the number of toolUse blocks."""
    fixed = mended([GO, model(use("x")), user(res("x", "1"), res("q", "surplus")), model("done")], WIRE)
    results = [block for block in fixed.messages[2]["content"] if "toolResult" in block]
    assert results == [res("x", "1")]
    assert "surplus" in fixed.messages[2]["content"][1]["text"]


@pytest.mark.parametrize("content", [(), ("",)], ids=["no block", "blank block"])
def test_an_empty_error_result_is_given_a_text(content: tuple[Any, ...]):
    """Cannot be empty when status value is error."""
    fixed = mended([GO, model(use("x")), user(res("x", *content, status="error"))], WIRE)
    (block,) = fixed.messages[2]["content"]
    assert block["toolResult"]["status"] == "error"
    assert block["toolResult"]["content"][0]["text"].strip()
    assert found(fixed) == [("empty-error", 2)]


def test_blank_texts_are_left_out():
    """The text field in the ContentBlock object is blank."""
    fixed = mended([GO, model("", use("x")), user(res("x", "1"), " "), model("\t"), user("next")], WIRE)
    assert fixed.messages == [GO, model(use("x")), user(res("x", "1"), "next")]


def test_text_after_a_call_stands_before_it_and_text_before_a_result_behind_it():
    fixed = mended([GO, model("a", use("x"), "b"), user("c", res("x", "1"))], WIRE)
    assert fixed.messages == [GO, model("a", "b", use("x")), user(res("x", "1"), "c")]
    assert found(fixed) == [("text-after-calls", 1), ("results-not-first", 2)]


@pytest.mark.parametrize("id_", ["functions.search:0", "a" * 65, "call_x|fc_y", "a b"])
def test_an_id_that_bedrock_cannot_read_is_renamed_on_both_sides(id_: str):
    fixed = mended([GO, model(use(id_)), user(res(id_, "1"))], WIRE)
    new = fixed.messages[1]["content"][0]["toolUse"]["toolUseId"]
    assert re.fullmatch("[a-zA-Z0-9_-]{1,64}", new)
    assert fixed.messages[2] == user(res(new, "1"))


def test_a_name_that_bedrock_cannot_read_is_told_and_not_guessed():
    history = [GO, model(use("x", "my tool")), user(res("x", "1"))]
    assert unmendable(history, WIRE, "illegal-name").messages is history


@pytest.mark.parametrize("arguments", ['{"q": "par', [1], 7])
def test_input_that_is_no_object_becomes_an_empty_one_and_a_missing_name_is_filled(arguments: Any):
    fixed = mended([GO, model(use("x", "", arguments)), user(res("x", "1"))], WIRE)
    assert fixed.messages[1] == model(use("x", "unknown_tool"))
    assert sorted(found(fixed)) == [("bad-arguments", 1), ("missing-name", 1)]


def test_input_that_is_null_becomes_an_empty_object():
    call = {"toolUse": {"toolUseId": "x", "name": "search", "input": None}}
    assert mended([GO, model(call), user(res("x", "1"))], WIRE).messages[1] == model(use("x"))


@pytest.mark.parametrize(
    ("history", "problem"),
    [
        ([GO, model(SIGNED, use("x"), "b"), user(res("x", "1"))], "text-after-calls"),
        ([GO, model(SIGNED, use("x", "")), user(res("x", "1"))], "missing-name"),
    ],
)
def test_a_signed_turn_is_not_touched_and_what_is_wrong_with_it_is_told(history: list[Any], problem: str):
    assert unmendable(history, WIRE, problem).messages is history


def test_a_signed_turn_is_answered_and_comes_back_as_the_same_object():
    turn = model(SIGNED, "a", use("x"))
    fixed = mended([GO, turn, user("stop")], WIRE)
    assert fixed.messages[1] is turn
    assert fixed.messages[2] == user(res("x", placeholder("interrupted", "x"), status="error"), "stop")


def test_unknown_blocks_are_left_alone():
    left_alone(
        [
            GO,
            model({"hologram": 7}, use("x")),
            user(res("x", {"json": {"a": 1}}), {"cachePoint": {"type": "default"}}),
        ],
        WIRE,
    )
