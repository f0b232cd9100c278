"""What the model and the reader are told is true: causes, texts without ids, whose image it is, nothing lost."""

import json
from pathlib import Path
from typing import Any

import pytest

import suture
from suture.codecs import convert
from tests.cli.program import run, write_json
from tests.repair.credit import (
    INTERRUPTED,
    MALFORMED,
    NATIVE,
    REJECTED,
    STOPPED,
    UNKNOWN,
    WIRES,
    answers,
    asks,
    history,
    orphans,
    sound,
    told,
    told_without_id,
)
from tests.shapes.notation import call, result, says, turn, user
from tests.shapes.wires import arguments_of, read

ASK, NEXT = user("pay"), user("and?")
OPEN = turn(asks("a", "1"))


@pytest.mark.parametrize("wire", WIRES)
def test_a_long_result_that_begins_and_ends_as_a_placeholder_does_is_real(wire: str) -> None:
    text = f"Tool call log of the night. 02:14 paid 500 EUR to Bob. 02:15 the last one, mail, with id z {REJECTED}"
    fixed = sound(wire, history(wire, ASK, result("z", text), NEXT))
    (kept,) = orphans(wire, fixed.messages)
    assert text in kept


# --- why a result is missing ------------------------------------------------------------------


@pytest.mark.parametrize("wire", WIRES)
def test_a_call_before_a_message_of_the_user_was_interrupted(wire: str) -> None:
    fixed = sound(wire, history(wire, ASK, OPEN, NEXT))
    assert answers(wire, fixed.messages) == [("1", told(INTERRUPTED, "a"))]


@pytest.mark.parametrize("wire", WIRES)
def test_of_a_call_at_the_end_nobody_knows(wire: str) -> None:
    fixed = sound(wire, history(wire, ASK, OPEN))
    assert answers(wire, fixed.messages) == [("1", told(UNKNOWN, "a"))]


@pytest.mark.parametrize("wire", WIRES)
def test_of_a_call_before_the_models_own_message_nobody_knows(wire: str) -> None:
    fixed = sound(wire, history(wire, ASK, OPEN, says("It is paid.")))
    assert answers(wire, fixed.messages) == [("1", told(UNKNOWN, "a"))]


@pytest.mark.parametrize("wire", WIRES)
def test_of_a_sibling_before_the_models_own_message_nobody_knows(wire: str) -> None:
    calls = turn(asks("a", "1"), asks("b", "2"))
    fixed = sound(wire, history(wire, ASK, calls, result("a", "paid"), says("Both are paid.")))
    assert answers(wire, fixed.messages) == [("1", "paid"), ("2", told(UNKNOWN, "b"))]


@pytest.mark.parametrize("wire", WIRES)
def test_a_sibling_before_a_message_of_the_user_was_interrupted(wire: str) -> None:
    calls = turn(asks("a", "1"), asks("b", "2"))
    fixed = sound(wire, history(wire, ASK, calls, result("a", "paid"), NEXT))
    assert answers(wire, fixed.messages) == [("1", "paid"), ("2", told(INTERRUPTED, "b"))]


@pytest.mark.parametrize("wire", WIRES)
def test_cut_arguments_were_malformed_whatever_follows(wire: str) -> None:
    for behind in ([NEXT], []):
        fixed = sound(wire, history(wire, ASK, turn(call("a", "search", '{"q": "ti')), *behind), profile=_own(wire))
        results = [event[2] for _, events in read(wire, fixed.messages) for event in events if event[0] in DONE]
        assert results == [told(MALFORMED, "a")]


DONE = {"result", "failed"}


def _own(wire: str) -> str:
    return "pairing" if wire in NATIVE else wire


@pytest.mark.parametrize("arguments", ["", None])
@pytest.mark.parametrize("wire", WIRES)
def test_a_call_without_arguments_is_not_malformed(wire: str, arguments: Any) -> None:
    if arguments is None and wire in NATIVE:
        pytest.skip("native arguments are a text")
    given = history(wire, ASK, turn(call("a", "search", "?")), NEXT)
    given[1] = _with_arguments(wire, given[1], arguments)
    fixed = sound(wire, given)
    results = [event[2] for _, events in read(wire, fixed.messages) for event in events if event[0] in DONE]
    assert results == [told(INTERRUPTED, "a")]
    if wire in {"openai-chat", "openai-responses"}:
        assert arguments_of(wire, fixed.messages) == ["{}"]
    if wire in {"anthropic", "bedrock"}:
        assert arguments_of(wire, fixed.messages) == [{}]


def _with_arguments(wire: str, message: Any, arguments: Any) -> Any:
    """Return the message with these arguments in its one call."""
    match wire:
        case "message" | "agentic":
            return history(wire, turn(call("a", "search", arguments)))[0]
        case "openai-chat":
            function = {"name": "search", "arguments": arguments}
            return {**message, "tool_calls": [{"id": "a", "type": "function", "function": function}]}
        case "openai-responses":
            return {**message, "arguments": arguments}
        case "anthropic":
            return {**message, "content": [{**message["content"][0], "input": arguments}]}
        case "gemini":
            return {**message, "parts": [{"functionCall": {"id": "a", "name": "search", "args": arguments}}]}
    return {**message, "content": [{"toolUse": {"toolUseId": "a", "name": "search", "input": arguments}}]}


@pytest.mark.parametrize("cause", [suture.Cause.UNKNOWN, "unknown"])
@pytest.mark.parametrize("wire", WIRES)
def test_a_cause_for_the_whole_call_takes_the_place_of_the_default(wire: str, cause: Any) -> None:
    given = history(wire, ASK, OPEN, NEXT, turn(asks("b", "2")), user("stop"))
    fixed = suture.repair(given, wire=wire, cause=cause)
    assert answers(wire, fixed.messages) == [("1", told(UNKNOWN, "a")), ("2", told(UNKNOWN, "b"))]
    grown = suture.Repairer[Any](given, wire=wire, cause=cause)
    assert list(grown.messages) == list(fixed.messages)


@pytest.mark.parametrize("wire", WIRES)
def test_a_named_cause_comes_before_the_one_for_the_whole_call(wire: str) -> None:
    given = history(wire, ASK, OPEN, NEXT, turn(asks("b", "2")), user("stop"))
    fixed = suture.repair(given, wire=wire, cause="stopped", causes={(3, 0): "rejected"})
    assert answers(wire, fixed.messages) == [("1", told(STOPPED, "a")), ("2", told(REJECTED, "b"))]


def test_a_cause_that_there_is_not_is_a_wrong_argument() -> None:
    with pytest.raises(suture.ConfigError):
        suture.repair(history("openai-chat", ASK, OPEN, NEXT), wire="openai-chat", cause="bored")


@pytest.mark.parametrize("wire", WIRES)
def test_a_cause_is_named_by_its_message_in_a_turn_of_several(wire: str) -> None:
    given = history(wire, ASK, OPEN, turn(asks("b", "2")), NEXT)
    fixed = suture.repair(given, wire=wire, causes={(2, 0): suture.Cause.REJECTED})
    assert answers(wire, fixed.messages) == [("1", told(INTERRUPTED, "a")), ("2", told(REJECTED, "b"))]


@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire != "openai-responses"])
def test_a_cause_is_named_by_the_place_of_its_call_in_the_message(wire: str) -> None:
    given = history(wire, ASK, turn(asks("a", "1"), asks("b", "2"), text="I look"), result("a", "A"), NEXT)
    fixed = suture.repair(given, wire=wire, causes={(1, 1): "rejected"})
    assert answers(wire, fixed.messages) == [("1", "A"), ("2", told(REJECTED, "b"))]


@pytest.mark.parametrize("key", [(0, 0), (1, 0), (1, 2), (2, 0), (9, 0), (-1, 0)])
@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire != "openai-responses"])
def test_a_key_of_causes_that_names_no_unanswered_call_is_a_wrong_argument(wire: str, key: tuple[int, int]) -> None:
    given = history(wire, ASK, turn(asks("a", "1"), asks("b", "2")), result("a", "A"), NEXT)
    with pytest.raises(suture.ConfigError):
        suture.repair(given, wire=wire, causes={key: "rejected"})


@pytest.mark.parametrize("key", [(0, 0), (1, 0), (2, 1), (3, 0), (9, 0)])
def test_on_responses_a_key_of_causes_names_an_item(key: tuple[int, int]) -> None:
    given = history("openai-responses", ASK, turn(asks("a", "1"), asks("b", "2")), result("a", "A"), NEXT)
    assert "rejected" in str(suture.repair(given, wire="openai-responses", causes={(2, 0): "rejected"}).messages)
    with pytest.raises(suture.ConfigError):
        suture.repair(given, wire="openai-responses", causes={key: "rejected"})


# --- texts ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ending", "options"), [(INTERRUPTED, {}), (UNKNOWN, {"cause": "unknown"})], ids=["default", "named"]
)
@pytest.mark.parametrize("wire", WIRES)
def test_a_call_without_an_id_is_told_without_one(wire: str, ending: str, options: dict[str, Any]) -> None:
    fixed = sound(wire, history(wire, ASK, turn(asks("", "1")), NEXT), **options)
    assert answers(wire, fixed.messages) == [("1", told_without_id(wire, ending))]


@pytest.mark.parametrize("wire", ["gemini", "message", "agentic"])
def test_a_call_without_an_id_is_told_without_one_in_chinese(wire: str) -> None:
    fixed = sound(wire, history(wire, ASK, turn(asks("", "1")), NEXT), language="zh")
    ((_, text),) = answers(wire, fixed.messages)
    assert text is not None
    assert text.startswith("工具调用 search")
    assert "ID" not in text


@pytest.mark.parametrize("wire", WIRES)
def test_a_real_result_takes_the_place_of_a_text_without_an_id(wire: str) -> None:
    fixed = sound(wire, history(wire, ASK, turn(asks("", "1")), result("", told(INTERRUPTED, "")), result("", "real")))
    assert answers(wire, fixed.messages) == [("1", "real")]
    assert fixed.report.displaced == ()


def _image(mark: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{mark}"}}


@pytest.mark.parametrize("profile", ["openai-chat", "mistral", "deepseek", "kimi"])
def test_images_of_two_results_say_whose_they_are(profile: str) -> None:
    names = {"aaaaaaaa1": "chart", "aaaaaaaa2": "photo"}
    calls = [{"id": id_, "type": "function", "function": {"name": n, "arguments": "{}"}} for id_, n in names.items()]
    ask = {"role": "user", "content": "draw"}
    made = {"role": "assistant", "content": None, "tool_calls": calls}
    if profile in {"deepseek", "kimi"}:
        made["reasoning_content"] = ""
    shown = [{"role": "tool", "tool_call_id": id_, "content": [_image(name * 4)]} for id_, name in names.items()]
    fixed = sound("openai-chat", [ask, made, *shown], profile=profile)
    users = [message["content"] for message in fixed.messages if message["role"] == "user"]
    promoted = [part for content in users if isinstance(content, list) for part in content]
    for id_, name in names.items():
        place = promoted.index(_image(name * 4))
        said = [part["text"] for part in promoted[:place] if part.get("type") == "text"]
        assert said, "an image stands without a word"
        assert id_ in said[-1] or name in said[-1]


# --- approvals --------------------------------------------------------------------------------

REQUEST = {"type": "mcp_approval_request", "id": "mcpr_1", "name": "f", "arguments": "{}", "server_label": "s"}
SAID = {"role": "user", "content": "go"}


def _approval(reason: str, *, approve: bool = True) -> dict[str, Any]:
    return {
        "type": "mcp_approval_response",
        "approval_request_id": "mcpr_1",
        "approve": approve,
        "reason": reason,
    }


def test_two_approvals_with_different_reasons_are_not_identical() -> None:
    fixed = sound("openai-responses", [SAID, REQUEST, _approval("the first reason"), _approval("the second reason")])
    shown = str(fixed.messages) + str([each.content for each in fixed.report.displaced])
    assert "the first reason" in shown
    assert "the second reason" in shown
    assert sum(item.get("type") == "mcp_approval_response" for item in fixed.messages) == 1


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("order", [1, -1], ids=["real first", "placeholder first"])
def test_a_real_approval_beats_the_placeholder_of_one(language: str, order: int) -> None:
    placeholder = suture.repair([SAID, REQUEST, SAID], wire="openai-responses", language=language).messages[2]
    assert placeholder["approve"] is False
    fixed = sound("openai-responses", [SAID, REQUEST, *[_approval("sure"), placeholder][::order], SAID])
    assert list(fixed.messages) == [SAID, REQUEST, _approval("sure"), SAID]
    assert fixed.report.displaced == ()


def test_a_displaced_approval_is_there_with_its_reason() -> None:
    given = [SAID, REQUEST, _approval("too dangerous", approve=False), _approval("changed my mind")]
    fixed = sound("openai-responses", given)
    assert fixed.messages[2] == given[3]
    (gone,) = fixed.report.displaced
    assert "too dangerous" in str(gone.content)


def test_an_orphan_approval_says_more_than_true() -> None:
    fixed = sound("openai-responses", [SAID, _approval("she signed the form")])
    assert "she signed the form" in str(fixed.messages[1])


# --- conversion and the command line ----------------------------------------------------------


@pytest.mark.parametrize("target", ["anthropic", "gemini", "bedrock"])
def test_a_leading_system_prompt_crosses_to_a_format_that_keeps_it_outside(target: str) -> None:
    made = convert(
        [{"role": "system", "content": "Answer briefly."}, {"role": "user", "content": "q"}], "openai-chat", target
    )
    kept = {name: getattr(made, name) for name in dir(made) if not name.startswith("_") and name != "losses"}
    assert "Answer briefly." in str(kept)


HOSTILE = {"csi": "a\u009b31m", "override": "a\u202eb", "separator": "a\u2028b"}


def _orphan_of(id_: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": "q"}, {"role": "tool", "tool_call_id": id_, "content": "1"}]


@pytest.mark.parametrize("name", HOSTILE)
def test_json_for_a_terminal_holds_no_raw_control_characters(name: str, tmp_path: Path) -> None:
    done = run("check", "--json", write_json(tmp_path / "h.json", _orphan_of(HOSTILE[name])))
    assert done.status == 1
    assert HOSTILE[name][1] not in done.out
    assert json.loads(done.out)["report"]["findings"][0]["call_id"] == HOSTILE[name]


@pytest.mark.parametrize("name", HOSTILE)
def test_the_table_spells_control_characters_out(name: str, tmp_path: Path) -> None:
    done = run("check", write_json(tmp_path / "h.json", _orphan_of(HOSTILE[name])))
    assert HOSTILE[name][1] not in done.out
    assert f"{ord(HOSTILE[name][1]):x}" in done.out.lower()


def test_the_command_says_the_cause_that_the_library_says(tmp_path: Path) -> None:
    given = history("openai-chat", ASK, OPEN, says("It is paid."))
    done = run("repair", write_json(tmp_path / "h.json", given))
    assert json.loads(done.out)[2]["content"] == told(UNKNOWN, "a")
