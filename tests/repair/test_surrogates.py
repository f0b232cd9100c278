"""Half a surrogate pair, which no provider takes, becomes U+FFFD wherever it stands; whole pairs stay."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import suture
from tests.cli.program import run
from tests.repair.credit import FOREIGN, INTERRUPTED, history, sound, told, untouched
from tests.shapes.notation import call, result, says, system, turn, user
from tests.shapes.wires import WITH_SYSTEM, arguments_of, read

HALVES = {"high": "caf\ud83d", "low": "\ude00caf", "between": "a\ud83db"}
PLACES = ("user", "model", "beside a call", "result", "system")


def steps(place: str, text: str) -> list[Any]:
    """Return a history that says `text` in that place, and what it says there otherwise."""
    said = {name: text if name == place else name for name in PLACES}
    first = [system(said["system"])] if place == "system" else []
    called = turn(call("a"), text=said["beside a call"])
    return [*first, user(said["user"]), called, result("a", said["result"]), says(said["model"]), user("next")]


def assert_sendable(messages: Any) -> None:
    json.dumps(messages, ensure_ascii=False).encode("utf-8")


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("wire", FOREIGN)
def test_half_a_pair_in_a_text_becomes_the_replacement_character(wire: str, place: str, half: str) -> None:
    if place == "system" and wire not in WITH_SYSTEM:
        pytest.skip("the system prompt stands outside")
    mended = HALVES[half].replace("\ud83d", "\ufffd").replace("\ude00", "\ufffd")
    given = history(wire, *steps(place, HALVES[half]))
    assert not suture.check(given, wire=wire).acceptable
    fixed = sound(wire, given)
    assert_sendable(fixed.messages)
    assert read(wire, fixed.messages) == read(wire, history(wire, *steps(place, mended)))
    same = sum(ours is theirs for ours, theirs in zip(fixed.messages, given, strict=True))
    assert same == len(given) - 1


@pytest.mark.parametrize("arguments", [{"q": "caf\ud83d"}, {"\ud83d": 1}, {"q": [{"deep": "\ude00"}]}])
@pytest.mark.parametrize("wire", ["anthropic", "gemini", "bedrock"])
def test_half_a_pair_in_arguments_that_are_an_object_is_replaced(wire: str, arguments: dict[str, Any]) -> None:
    given = history(wire, user("q"), turn(call("a", "search", arguments)), result("a", "42"))
    fixed = sound(wire, given)
    assert_sendable(fixed.messages)
    wanted = json.loads(json.dumps(arguments).replace("\\ud83d", "\\ufffd").replace("\\ude00", "\\ufffd"))
    assert arguments_of(wire, fixed.messages) == [wanted]


ARGUMENTS = {
    '{"q": "caf\\ud83d"}': {"q": "caf\ufffd"},
    '{"q": "\\ude00caf"}': {"q": "\ufffdcaf"},
    '{"q": "\\uD83D"}': {"q": "\ufffd"},
    '{"q": "\\ud83d\\u0041"}': {"q": "\ufffdA"},
    '{"q": "\\ud83d\\ud83d\\ude00"}': {"q": "\ufffd\U0001f600"},
    '{"q": "\\\\\\ud83d"}': {"q": "\\\ufffd"},
    '{"\\ud83d": [1, {"n": "\\udfff"}]}': {"\ufffd": [1, {"n": "\ufffd"}]},
    '{"q": "caf\ud83d"}': {"q": "caf\ufffd"},
}


@pytest.mark.parametrize("text", ARGUMENTS, ids=ascii)
@pytest.mark.parametrize("wire", ["openai-chat", "openai-responses"])
def test_half_a_pair_in_the_text_of_arguments_is_replaced_and_the_rest_kept(wire: str, text: str) -> None:
    given = history(wire, user("q"), turn(call("a", "search", text)), user("next"))
    assert not suture.check(given, wire=wire).acceptable
    fixed = sound(wire, given)
    assert_sendable(fixed.messages)
    (arguments,) = arguments_of(wire, fixed.messages)
    assert json.loads(arguments) == ARGUMENTS[text]
    results = [event[2] for _, events in read(wire, fixed.messages) for event in events if event[0] == "result"]
    assert results == [told(INTERRUPTED, "a")]


@pytest.mark.parametrize("text", ['{"q": "\\ud83d\\ude00"}', '{"q": "\\\\ud83d"}', '{"q": "\U0001f600"}'], ids=ascii)
@pytest.mark.parametrize("wire", ["openai-chat", "openai-responses"])
def test_a_whole_pair_and_an_escaped_backslash_in_arguments_stay(wire: str, text: str) -> None:
    untouched(wire, history(wire, user("\U0001f600"), turn(call("a", "search", text)), result("a", "\U0001f600")))


@pytest.mark.parametrize("wire", FOREIGN)
def test_half_a_pair_in_an_id_is_replaced_on_both_sides(wire: str) -> None:
    fixed = sound(wire, history(wire, user("q"), turn(call("a\ud83d")), result("a\ud83d", "42"), user("next")))
    assert_sendable(fixed.messages)
    events = [event for _, events in read(wire, fixed.messages) for event in events]
    assert [event[1] for event in events if event[0] == "call"] == [
        event[1] for event in events if event[0] == "result"
    ]
    assert [event[2] for event in events if event[0] == "result"] == ["42"]


@pytest.mark.parametrize("wire", FOREIGN)
def test_half_a_pair_in_an_orphan_is_replaced(wire: str) -> None:
    fixed = sound(wire, history(wire, user("q"), result("z", "caf\ud83d"), user("next")))
    assert_sendable(fixed.messages)
    assert "caf\ufffd" in str(read(wire, fixed.messages))


def test_a_growing_history_replaces_it_too() -> None:
    given = history("openai-chat", *steps("result", "caf\ud83d"))
    grown = suture.Repairer[Any](wire="openai-chat")
    for message in given:
        grown.extend([message])
    assert list(grown.messages) == list(suture.repair(given, wire="openai-chat").messages)


def test_half_a_pair_in_a_field_that_an_sdks_object_does_not_declare_is_replaced() -> None:
    class Part(BaseModel, extra="allow"):
        type: str

    part = Part.model_validate({"type": "text", "text": "caf\ud83d"})
    fixed = suture.repair([{"role": "user", "content": [part]}], wire="openai-chat")
    assert fixed.messages[0]["content"][0].model_dump() == {"type": "text", "text": "caf\ufffd"}
    assert part.model_dump()["text"] == "caf\ud83d"


def test_the_command_replaces_it(tmp_path: Path) -> None:
    path = tmp_path / "h.json"
    path.write_text('[{"role": "user", "content": "caf\\ud83d"}]', encoding="ascii")
    assert run("check", "--wire", "openai-chat", path).status == 1
    done = run("repair", "--wire", "openai-chat", path)
    assert done.status == 0
    assert json.loads(done.out) == [{"role": "user", "content": "caf\ufffd"}]
