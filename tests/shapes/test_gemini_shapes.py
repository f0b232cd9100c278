"""What Gemini's `contents` demand: parity, alternation, a user first, names; ids are optional."""

from typing import Any

import pytest

from tests.shapes.holding import found, left_alone, mended
from tests.shapes.notation import Retold
from tests.shapes.texts import placeholder

WIRE = "gemini"


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def model(*parts: Any) -> dict[str, Any]:
    return {"role": "model", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def call(name: str = "search", args: Any = None, **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {} if args is None else args, **more}}


def answer(name: str = "search", output: str = "1", **more: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": {"output": output}, **more}}


GO = user("go")
SIGNED = {**call("search"), "thoughtSignature": "c2lnbmVk"}


def test_calls_without_ids_are_whole_when_each_has_an_answer():
    left_alone([GO, model(call("a"), call("b")), user(answer("a"), answer("b")), model("done"), user("next")], WIRE)


def test_a_missing_answer_is_found_by_its_name_where_there_are_no_ids():
    """Count parity."""
    fixed = mended([GO, model(call("a"), call("b")), user(answer("b", "2")), model("done")], WIRE)
    first, second = fixed.messages[2]["parts"]
    assert first["functionResponse"]["name"] == "a"
    assert first["functionResponse"]["response"] == {"error": placeholder("unknown", "", "a")}
    assert "id" not in first["functionResponse"]
    assert second == answer("b", "2")
    assert found(fixed) == [("dangling", 1)]


def test_a_missing_answer_is_found_by_its_place_where_names_are_the_same():
    fixed = mended([GO, model(call(), call()), user(answer()), model("done")], WIRE)
    first, second = fixed.messages[2]["parts"]
    assert first == answer()
    assert second["functionResponse"]["response"] == {"error": placeholder("unknown", "")}


def test_a_surplus_answer_without_an_id_is_kept_as_text():
    """The number of response parts equals the number of calls."""
    fixed = mended([GO, model(call()), user(answer(output="1"), answer(output="2")), model("done")], WIRE)
    answers = [part for part in fixed.messages[2]["parts"] if "functionResponse" in part]
    assert answers == [answer(output="1")]
    assert fixed.messages[2]["parts"][1]["text"] == Retold("2")


def test_a_placeholder_carries_the_id_of_its_call_if_that_has_one():
    fixed = mended([GO, model(call(id="x")), user("stop")], WIRE)
    response = fixed.messages[2]["parts"][0]["functionResponse"]
    assert (response["id"], response["name"]) == ("x", "search")


def test_answers_in_separate_contents_are_merged():
    """See gemini-cli#28407."""
    fixed = mended([GO, model(call("a"), call("b")), user(answer("a")), user(answer("b")), model("done")], WIRE)
    assert fixed.messages == [GO, model(call("a"), call("b")), user(answer("a"), answer("b")), model("done")]
    assert found(fixed) == [("same-role", 3)]


def test_neighbours_of_one_role_are_merged():
    fixed = mended([GO, user("more"), model("a"), model("b"), user("next")], WIRE)
    assert fixed.messages == [user("go", "more"), model("a", "b"), user("next")]
    assert found(fixed) == [("same-role", 1), ("same-role", 3)]


def test_text_before_the_answers_stands_behind_them():
    fixed = mended([GO, model(call()), user("by the way", answer())], WIRE)
    assert fixed.messages[2] == user(answer(), "by the way")
    assert found(fixed) == [("results-not-first", 2)]


@pytest.mark.parametrize("start", [[model(call()), user(answer())], [model("hello")]], ids=["call", "text"])
def test_a_history_that_starts_with_the_model_is_given_a_user_turn(start: list[Any]):
    """And its group stays whole."""
    history = [*start, model("done")] if len(start) > 1 else [*start, user("next")]
    fixed = mended(history, WIRE)
    first = fixed.messages[0]
    assert first["role"] == "user"
    assert first["parts"][0]["text"].strip()
    assert list(fixed.messages[1:]) == history
    assert found(fixed) == [("model-first", 0)]


def test_a_dangling_call_at_the_very_start_is_answered_behind_a_user_turn():
    fixed = mended([model(call()), user("next")], WIRE)
    assert [message["role"] for message in fixed.messages] == ["user", "model", "user"]
    assert fixed.messages[2]["parts"][0]["functionResponse"]["response"] == {"error": placeholder("interrupted", "")}
    assert fixed.messages[2]["parts"][1] == {"text": "next"}


def test_an_answer_at_the_very_start_becomes_text():
    fixed = mended([user(answer()), model("done")], WIRE)
    assert [part.keys() for part in fixed.messages[0]["parts"]] == [{"text"}]


@pytest.mark.parametrize("name", ["other", "", None])
def test_an_answer_carries_the_name_of_its_call(name: Any):
    wrong = answer(id="x")
    wrong["functionResponse"]["name"] = name
    fixed = mended([GO, model(call(id="x")), user(wrong)], WIRE)
    assert fixed.messages[2] == user(answer(id="x"))
    assert found(fixed) == [("result-name", 2)]


def test_a_call_without_a_name_is_named_on_both_sides():
    fixed = mended([GO, model(call("", id="x")), user(answer("", id="x"))], WIRE)
    assert fixed.messages == [GO, model(call("unknown_tool", id="x")), user(answer("unknown_tool", id="x"))]


@pytest.mark.parametrize("args", [[1], '{"q": "par', 7])
def test_args_that_are_no_object_become_an_empty_one(args: Any):
    fixed = mended([GO, model(call(args=args)), user(answer())], WIRE)
    assert fixed.messages[1] == model(call())
    assert found(fixed) == [("bad-arguments", 1)]


@pytest.mark.parametrize("nothing", [model(), model("")], ids=["no parts", "blank"])
def test_an_empty_content_is_dropped(nothing: dict[str, Any]):
    fixed = mended([GO, model(call()), nothing, user(answer()), model("done")], WIRE)
    assert fixed.messages == [GO, model(call()), user(answer()), model("done")]


def test_an_empty_text_beside_a_call_does_not_take_the_call_with_it():
    """See gemini-cli#26691."""
    fixed = mended([GO, model("", call()), user("stop")], WIRE)
    assert call() in fixed.messages[1]["parts"]
    assert "functionResponse" in fixed.messages[2]["parts"][0]


def test_a_thought_signature_stays_in_the_very_part_it_came_in():
    turn = model({"text": "hm", "thought": True}, SIGNED, call("fetch"))
    fixed = mended([GO, turn, user(answer("search")), model("done")], WIRE)
    assert fixed.messages[1] is turn
    assert [part["functionResponse"]["name"] for part in fixed.messages[2]["parts"]] == ["search", "fetch"]


@pytest.mark.parametrize(
    "parts",
    [
        (
            {"executableCode": {"code": "1", "language": "PYTHON"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK"}},
        ),
        ({"inlineData": {"mimeType": "image/png", "data": "AAAA"}},),
        ({"hologram": 7},),
    ],
    ids=["code execution", "media", "unknown"],
)
def test_server_side_tools_and_unknown_parts_are_left_alone(parts: tuple[Any, ...]):
    left_alone([GO, model(*parts), user("next")], WIRE)


def test_the_older_role_of_answers_and_a_content_without_a_role_are_read():
    left_alone([{"parts": [{"text": "go"}]}, model(call()), {"role": "function", "parts": [answer()]}], WIRE)


def test_snake_case_is_read_as_well():
    call_part = {"function_call": {"name": "search", "args": {}}}
    left_alone([GO, model(call_part), user({"function_response": {"name": "search", "response": {}}})], WIRE)
    fixed = mended([GO, model(call_part), user("stop")], WIRE)
    assert fixed.messages[1] == model(call_part)
