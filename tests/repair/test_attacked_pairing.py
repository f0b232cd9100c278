"""Which result belongs to which call where ids differ, recur or come twice."""

from typing import Any

import pytest

import suture
from tests.repair.credit import (
    FOREIGN,
    INTERRUPTED,
    WIRES,
    answers,
    asks,
    history,
    orphans,
    sound,
    texts,
    told,
)
from tests.shapes.notation import result, says, turn, user
from tests.shapes.wires import read

ASK, NEXT = user("q"), user("next")
COMPOSITE = "call_1|fc_9"


def displaced(fixed: suture.Repaired[Any]) -> list[Any]:
    return [each.content for each in fixed.report.displaced]


# --- composite ids ----------------------------------------------------------------------------


@pytest.mark.parametrize("half", ["call_1", "fc_9"])
@pytest.mark.parametrize("wire", WIRES)
def test_half_of_a_composite_id_names_its_call(wire: str, half: str) -> None:
    fixed = sound(wire, history(wire, ASK, turn(asks(COMPOSITE, "1")), result(half, "42"), NEXT))
    assert answers(wire, fixed.messages) == [("1", "42")]
    assert texts(wire, fixed.messages) == ["q", "next"]
    assert displaced(fixed) == []


@pytest.mark.parametrize("wire", WIRES)
def test_halves_of_composite_ids_find_their_calls_in_a_parallel_turn(wire: str) -> None:
    calls = turn(asks("call_1|fc_1", "1"), asks("call_2|fc_2", "2"))
    fixed = sound(wire, history(wire, ASK, calls, result("call_2", "two"), result("call_1", "one"), NEXT))
    assert answers(wire, fixed.messages) == [("1", "one"), ("2", "two")]
    assert orphans(wire, fixed.messages) == []


@pytest.mark.parametrize("wire", WIRES)
def test_an_exact_id_in_an_earlier_turn_comes_before_half_of_a_composite_one(wire: str) -> None:
    steps = [ASK, turn(asks("a", "1")), user("and?"), turn(asks("a|b", "2")), result("a", "A"), NEXT]
    fixed = sound(wire, history(wire, *steps))
    (_, first), (_, second) = answers(wire, fixed.messages)
    assert first == "A"
    assert second is not None
    assert second.startswith("Tool call search")


@pytest.mark.parametrize("ids", [("call_1", COMPOSITE), (COMPOSITE, "call_1"), ("call_1", "fc_9")])
@pytest.mark.parametrize("wire", WIRES)
def test_the_last_result_wins_whichever_has_the_whole_composite_id(wire: str, ids: tuple[str, str]) -> None:
    results = [result(ids[0], "first"), result(ids[1], "last")]
    fixed = sound(wire, history(wire, ASK, turn(asks(COMPOSITE, "1")), *results, NEXT))
    assert answers(wire, fixed.messages) == [("1", "last")]
    assert displaced(fixed) == ["first"]


# --- one open call, one result with another id ------------------------------------------------


@pytest.mark.parametrize("ids", [("a", "z"), ("", "call_9"), ("a", "42")])
@pytest.mark.parametrize("wire", WIRES)
def test_one_open_call_and_the_one_unknown_result_behind_it_belong_together(wire: str, ids: tuple[str, str]) -> None:
    fixed = sound(wire, history(wire, ASK, turn(asks(ids[0], "1")), result(ids[1], "42"), NEXT))
    assert answers(wire, fixed.messages) == [("1", "42")]
    assert texts(wire, fixed.messages) == ["q", "next"]
    assert displaced(fixed) == []


@pytest.mark.parametrize("wire", WIRES)
def test_an_unknown_result_goes_to_the_one_call_of_the_turn_that_is_open(wire: str) -> None:
    steps = [ASK, turn(asks("a", "1"), asks("b", "2")), result("a", "A"), result("z", "Z"), NEXT]
    assert answers(wire, sound(wire, history(wire, *steps)).messages) == [("1", "A"), ("2", "Z")]


@pytest.mark.parametrize("wire", WIRES)
def test_an_unknown_result_behind_two_open_calls_is_an_orphan(wire: str) -> None:
    fixed = sound(wire, history(wire, ASK, turn(asks("a", "1"), asks("b", "2")), result("z", "Z"), NEXT))
    assert answers(wire, fixed.messages) == [("1", told(INTERRUPTED, "a")), ("2", told(INTERRUPTED, "b"))]
    assert ["Z" in text for text in orphans(wire, fixed.messages)] == [True]


@pytest.mark.parametrize("wire", WIRES)
def test_two_unknown_results_behind_one_open_call_are_orphans(wire: str) -> None:
    fixed = sound(wire, history(wire, ASK, turn(asks("a", "1")), result("y", "Y"), result("z", "Z"), NEXT))
    assert answers(wire, fixed.messages) == [("1", told(INTERRUPTED, "a"))]
    assert len(orphans(wire, fixed.messages)) == 2


@pytest.mark.parametrize("wire", WIRES)
def test_an_unknown_result_that_is_not_directly_behind_is_an_orphan(wire: str) -> None:
    fixed = sound(wire, history(wire, ASK, turn(asks("a", "1")), NEXT, result("z", "Z")))
    assert answers(wire, fixed.messages) == [("1", told(INTERRUPTED, "a"))]
    assert len(orphans(wire, fixed.messages)) == 1


@pytest.mark.parametrize("wire", WIRES)
def test_an_unknown_result_yields_to_one_with_the_id_of_the_call(wire: str) -> None:
    fixed = sound(wire, history(wire, ASK, turn(asks("a", "1")), result("z", "Z"), NEXT, result("a", "A")))
    assert answers(wire, fixed.messages) == [("1", "A")]
    assert ["Z" in text for text in orphans(wire, fixed.messages)] == [True]


@pytest.mark.parametrize("wire", WIRES)
def test_a_result_of_the_next_turn_is_not_given_to_the_open_call_before_it(wire: str) -> None:
    fixed = sound(wire, history(wire, ASK, turn(asks("a", "1")), result("b", "B"), turn(asks("b", "2")), NEXT))
    (_, first), second = answers(wire, fixed.messages)
    assert second == ("2", "B")
    assert first is not None
    assert first.startswith("Tool call search with id a")
    assert orphans(wire, fixed.messages) == []


@pytest.mark.parametrize("wire", WIRES)
def test_a_result_of_an_earlier_turn_is_not_given_to_the_open_call_before_it(wire: str) -> None:
    earlier = [ASK, turn(asks("z", "1")), result("z", "Z"), says("so"), user("and?")]
    fixed = sound(wire, history(wire, *earlier, turn(asks("a", "2")), result("z", "Z"), NEXT))
    assert answers(wire, fixed.messages) == [("1", "Z"), ("2", told(INTERRUPTED, "a"))]
    assert orphans(wire, fixed.messages) == []


# --- twice, early, late -----------------------------------------------------------------------


@pytest.mark.parametrize("wire", WIRES)
def test_an_early_result_and_a_result_of_its_own_answer_two_calls_of_one_id(wire: str) -> None:
    calls = turn(asks("a", "1"), asks("a", "2"))
    fixed = sound(wire, history(wire, ASK, result("a", "early"), calls, result("a", "own"), NEXT))
    assert sorted(text or "" for _, text in answers(wire, fixed.messages)) == ["early", "own"]
    assert displaced(fixed) == []
    assert orphans(wire, fixed.messages) == []


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic", "gemini", "bedrock", "message", "agentic"])
def test_an_early_result_and_a_result_of_its_own_answer_two_calls_without_ids(wire: str) -> None:
    calls = turn(asks("", "1"), asks("", "2"))
    fixed = sound(wire, history(wire, ASK, result("", "early"), calls, result("", "own"), NEXT))
    assert sorted(text or "" for _, text in answers(wire, fixed.messages)) == ["early", "own"]
    assert displaced(fixed) == []


@pytest.mark.parametrize("own", ["other", None])
@pytest.mark.parametrize("wire", ["anthropic", "gemini", "bedrock"])
def test_the_user_still_speaks_first_where_the_first_message_goes(wire: str, own: str | None) -> None:
    steps = [result("a", "early"), turn(asks("a", "1")), *([result("a", own)] if own else []), says("so")]
    fixed = sound(wire, history(wire, *steps))
    assert read(wire, fixed.messages)[0][0] == "user"
    assert answers(wire, fixed.messages) == [("1", own or "early")]
    assert displaced(fixed) == (["early"] if own else [])


def test_the_user_still_speaks_first_on_minimax() -> None:
    given = history("anthropic", result("a", "early"), turn(asks("a", "1")), result("a", "own"))
    fixed = sound("anthropic", given, profile="minimax")
    assert fixed.messages[0]["role"] == "user"


@pytest.mark.parametrize("wire", WIRES)
def test_a_copy_of_a_result_collapses_although_an_earlier_turn_has_its_id(wire: str) -> None:
    steps = [
        ASK,
        turn(asks("a", "1")),
        result("a", "A"),
        NEXT,
        turn(asks("a", "2")),
        result("a", "B"),
        result("a", "B"),
    ]
    fixed = sound(wire, history(wire, *steps))
    assert answers(wire, fixed.messages) == [("1", "A"), ("2", "B")]
    assert orphans(wire, fixed.messages) == []


@pytest.mark.parametrize("wire", WIRES)
def test_another_result_is_an_orphan_where_an_earlier_turn_has_its_id(wire: str) -> None:
    steps = [
        ASK,
        turn(asks("a", "1")),
        result("a", "A"),
        NEXT,
        turn(asks("a", "2")),
        result("a", "B"),
        result("a", "C"),
    ]
    fixed = sound(wire, history(wire, *steps))
    assert answers(wire, fixed.messages) == [("1", "A"), ("2", "B")]
    assert ["C" in text.partition("\n")[2] for text in orphans(wire, fixed.messages)] == [True]


@pytest.mark.parametrize("wire", WIRES)
def test_the_last_result_wins_also_if_it_says_what_a_displaced_one_said(wire: str) -> None:
    results = [result("a", text) for text in ("A", "B", "A")]
    fixed = sound(wire, history(wire, ASK, turn(asks("a", "1")), *results, NEXT))
    assert answers(wire, fixed.messages) == [("1", "A")]
    assert displaced(fixed) == ["A", "B"]


@pytest.mark.parametrize("wire", WIRES)
def test_a_report_does_not_speak_of_a_real_result_where_there_are_two_placeholders(wire: str) -> None:
    fillers = [result("a", text) for text in ("aborted", "No result provided")]
    fixed = sound(wire, history(wire, ASK, turn(asks("a", "1")), *fillers, NEXT))
    assert answers(wire, fixed.messages) == [("1", "aborted")]
    done = {finding.done for finding in fixed.report.findings if finding.problem == "duplicate"}
    assert done == {"dropped: another placeholder is there"}


@pytest.mark.parametrize("wire", WIRES)
def test_a_later_turn_with_the_same_id_does_not_change_what_became_of_a_duplicate(wire: str) -> None:
    steps = [ASK, turn(asks("a", "1")), result("a", "A"), result("a", "B"), NEXT]
    fixed = sound(wire, history(wire, *steps))
    assert answers(wire, fixed.messages) == [("1", "B")]
    assert displaced(fixed) == ["A"]
    later = sound(wire, history(wire, *steps, turn(asks("a", "2")), result("a", "C"), user("ok")))
    assert answers(wire, later.messages) == [("1", "B"), ("2", "C")]
    assert list(later.messages)[: len(fixed.messages)] == list(fixed.messages)


@pytest.mark.parametrize("order", [("REAL 42", "FILLER"), ("FILLER", "REAL 42")])
@pytest.mark.parametrize("wire", WIRES)
def test_the_filler_of_another_framework_never_displaces_a_real_result(wire: str, order: tuple[str, str]) -> None:
    said = [result("a", text.replace("FILLER", "[Tool execution was interrupted]")) for text in order]
    fixed = sound(wire, history(wire, ASK, turn(asks("a", "1")), *said, NEXT))
    assert answers(wire, fixed.messages) == [("1", "REAL 42")]
    assert "REAL 42" not in displaced(fixed)


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
TEXT = {"type": "text", "text": "a chart"}


@pytest.mark.parametrize("parts", [(TEXT, IMAGE), (IMAGE, TEXT)])
@pytest.mark.parametrize("apart", [False, True])
def test_text_and_image_of_one_call_are_joined_on_anthropic(parts: tuple[Any, Any], apart: bool) -> None:
    blocks = [{"type": "tool_result", "tool_use_id": "a", "content": [part]} for part in parts]
    answered = (
        [{"role": "user", "content": [block]} for block in blocks] if apart else [{"role": "user", "content": blocks}]
    )
    fixed = sound("anthropic", [*history("anthropic", ASK, turn(asks("a", "1"))), *answered])
    assert len(fixed.messages) == 3
    (block,) = fixed.messages[2]["content"]
    assert block["tool_use_id"] == "a"
    assert sorted(part["type"] for part in block["content"]) == ["image", "text"]
    assert TEXT in block["content"]
    assert IMAGE in block["content"]
    assert displaced(fixed) == []


def test_text_and_image_of_one_call_are_joined_on_bedrock() -> None:
    text, image = {"text": "a chart"}, {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}
    blocks = [{"toolResult": {"toolUseId": "a", "content": [part]}} for part in (text, image)]
    fixed = sound("bedrock", [*history("bedrock", ASK, turn(asks("a", "1"))), {"role": "user", "content": blocks}])
    (block,) = fixed.messages[2]["content"]
    assert text in block["toolResult"]["content"]
    assert image in block["toolResult"]["content"]
    assert displaced(fixed) == []


def test_text_and_image_of_one_call_are_joined_on_responses() -> None:
    text = {"type": "input_text", "text": "a chart"}
    image = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
    outputs = [{"type": "function_call_output", "call_id": "a", "output": [part]} for part in (text, image)]
    fixed = sound("openai-responses", [*history("openai-responses", ASK, turn(asks("a", "1"))), *outputs])
    (output,) = (item for item in fixed.messages if item.get("type") == "function_call_output")
    assert output["output"] == [text, image]
    assert displaced(fixed) == []


# --- one path ---------------------------------------------------------------------------------


def _chat_call(id_: str, name: str) -> dict[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": "{}"}}


def _tool(id_: str, text: str, **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id_, "content": text, **more}


def _made(*calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **more}


CHAT_ASK, CHAT_NEXT = {"role": "user", "content": "q"}, {"role": "user", "content": "next"}
OLD = {"name": "h", "arguments": "{}"}
SAME_ID = {"role": "model", "parts": [{"functionCall": {"id": "1", "name": name, "args": {}}} for name in "gh"]}
ANSWERS = [{"functionResponse": {"id": "1", "name": "h", "response": {"result": text}}} for text in ("one", "two")]
ODD = {
    "one id twice with one named result": (
        "openai-chat",
        [
            CHAT_ASK,
            _made(_chat_call("a", "f"), _chat_call("a", "g")),
            _tool("a", "1"),
            _tool("a", "0", name="f"),
            CHAT_NEXT,
        ],
    ),
    "one id twice on Gemini": (
        "gemini",
        [
            {"role": "user", "parts": [{"text": "q"}]},
            SAME_ID,
            {"role": "user", "parts": ANSWERS},
            {"role": "model", "parts": [{"text": "so"}]},
            {"role": "user", "parts": [{"text": "next"}]},
        ],
    ),
    "a call without an id answered in the older form": (
        "openai-chat",
        [CHAT_ASK, _made(_chat_call("", "f")), {"role": "function", "name": "f", "content": "1"}, CHAT_NEXT],
    ),
    "both forms in one message": (
        "openai-chat",
        [CHAT_ASK, _made(_chat_call("a", "f"), function_call=OLD), _tool("a", "1"), CHAT_NEXT],
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_group_comes_out_the_same_alone_grown_and_before_a_broken_one(name: str) -> None:
    wire, given = ODD[name]
    fixed = sound(wire, given)
    assert list(suture.Repairer[Any](given, wire=wire).messages) == list(fixed.messages)
    grown = suture.Repairer[Any](wire=wire)
    for message in given:
        grown.extend([message])
    assert list(grown.messages) == list(fixed.messages)
    more = history(wire, turn(asks("zz", "1")), user("stop"))
    longer = suture.repair([*given, *more], wire=wire)
    assert list(longer.messages)[: len(fixed.messages)] == list(fixed.messages)


def test_a_named_result_goes_to_the_call_of_that_id_and_name() -> None:
    calls = _made(_chat_call("a", "f"), _chat_call("a", "g"))
    given = [CHAT_ASK, calls, _tool("a", "of g", name="g"), _tool("a", "of f", name="f"), CHAT_NEXT]
    fixed = sound("openai-chat", given)
    ids = {call["function"]["name"]: call["id"] for call in fixed.messages[1]["tool_calls"]}
    assert ids["f"] != ids["g"]
    results = {message["tool_call_id"]: message["content"] for message in fixed.messages if message["role"] == "tool"}
    assert results == {ids["f"]: "of f", ids["g"]: "of g"}


def test_a_call_in_the_older_form_beside_others_is_answered() -> None:
    fixed = sound("openai-chat", ODD["both forms in one message"][1])
    said = str(fixed.messages[2:])
    assert "Tool call h" in said
    assert "'content': '1'" in said


@pytest.mark.parametrize("wire", FOREIGN)
def test_as_many_results_of_an_id_as_calls_of_it_pair_in_order(wire: str) -> None:
    calls = [turn(asks("a", "1")), turn(asks("a", "2"))]
    fixed = sound(wire, history(wire, ASK, *calls, result("a", "one"), result("a", "two"), NEXT))
    assert answers(wire, fixed.messages) == [("1", "one"), ("2", "two")]
    assert displaced(fixed) == []


@pytest.mark.parametrize("filler", ["aborted", told("was not run - it was rejected.", "")])
@pytest.mark.parametrize("wire", WIRES)
def test_an_early_placeholder_without_an_id_leaves_its_call_to_a_result_that_can_be_adopted(
    wire: str, filler: str
) -> None:
    steps = [ASK, result("", filler), turn(asks("a", "1")), result("z", "42"), NEXT]
    fixed = sound(wire, history(wire, *steps))
    assert answers(wire, fixed.messages) == [("1", "42")]
    assert orphans(wire, fixed.messages) == []
