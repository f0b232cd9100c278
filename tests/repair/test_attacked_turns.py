"""A turn in several messages: which results are its own, and what each provider is given."""

from collections.abc import Callable
from typing import Any

import pytest

import suture
from tests.repair.credit import (
    FOREIGN,
    INTERRUPTED,
    NATIVE,
    UNKNOWN,
    WIRES,
    answers,
    asks,
    history,
    orphans,
    sound,
    texts,
    told,
    told_without_id,
    untouched,
)
from tests.shapes.notation import Step, result, says, turn, user
from tests.shapes.wires import read

ASK = user("Paris and London?")
SIGNED = {"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk"}


# --- results without ids ----------------------------------------------------------------------


@pytest.mark.parametrize("bundle", [False, True])
@pytest.mark.parametrize("wire", FOREIGN)
def test_results_without_ids_settle_in_order_over_neighbouring_messages(wire: str, bundle: bool) -> None:
    calls = [turn(asks("", "Paris")), turn(asks("", "London"))]
    broken = history(wire, ASK, *calls, result("", "sunny"), result("", "rainy"), bundle=bundle)
    fixed = sound(wire, broken)
    assert answers(wire, fixed.messages) == [("Paris", "sunny"), ("London", "rainy")]
    assert texts(wire, fixed.messages) == ["Paris and London?"]
    assert fixed.report.displaced == ()


@pytest.mark.parametrize("wire", NATIVE)
def test_a_native_turn_in_two_messages_without_ids_is_whole(wire: str) -> None:
    calls = [turn(asks("", "Paris")), turn(asks("", "London"))]
    untouched(wire, history(wire, ASK, *calls, result("", "sunny"), result("", "rainy")))


@pytest.mark.parametrize("wire", WIRES)
def test_a_user_between_two_messages_with_calls_ends_the_first_turn(wire: str) -> None:
    broken = history(wire, ASK, turn(asks("", "Paris")), user("and?"), turn(asks("", "London")), result("", "rainy"))
    fixed = sound(wire, broken)
    assert answers(wire, fixed.messages) == [("Paris", told_without_id(wire, INTERRUPTED)), ("London", "rainy")]


@pytest.mark.parametrize("wire", ["gemini", "message", "agentic"])
def test_a_result_without_an_id_finds_the_neighbour_of_its_name(wire: str) -> None:
    calls = [turn(asks("", "1", "weather")), turn(asks("", "2", "tides"))]
    given = history(wire, ASK, *calls, result("", "06:12", "tides"), result("", "sunny", "weather"))
    fixed = sound(wire, [*given, *history(wire, user("and?"), turn(asks("", "3", "weather")), user("stop"))])
    assert texts(wire, fixed.messages) == ["Paris and London?", "and?", "stop"]
    named = [event for _, events in read(wire, fixed.messages) for event in events if event[0] in {"result", "failed"}]
    assert {event[2] for event in named} >= {"06:12", "sunny"}
    if wire == "gemini":  # it matches by place, so the responses are in the order of the calls
        assert answers(wire, fixed.messages)[:2] == [("1", "sunny"), ("2", "06:12")]
        responses = [
            part["functionResponse"]["name"] for part in fixed.messages[2]["parts"] if "functionResponse" in part
        ]
        assert responses == ["weather", "tides"]


def _old_call(name: str) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "function_call": {"name": name, "arguments": "{}"}}


def _old_answer(name: str, text: str) -> dict[str, Any]:
    return {"role": "function", "name": name, "content": text}


def test_the_older_chat_form_settles_over_neighbours_in_order() -> None:
    ask, paris, london = {"role": "user", "content": "q"}, _old_call("weather"), _old_call("weather")
    sunny, rainy = _old_answer("weather", "sunny"), _old_answer("weather", "rainy")
    fixed = sound("openai-chat", [ask, paris, london, sunny, rainy])
    assert list(fixed.messages) == [ask, paris, sunny, london, rainy]
    assert fixed.report.displaced == ()


def test_the_older_chat_form_settles_over_neighbours_by_name() -> None:
    ask, weather, tides = {"role": "user", "content": "q"}, _old_call("weather"), _old_call("tides")
    sunny, high = _old_answer("weather", "sunny"), _old_answer("tides", "06:12")
    fixed = sound("openai-chat", [ask, weather, tides, high, sunny])
    assert list(fixed.messages) == [ask, weather, sunny, tides, high]


@pytest.mark.parametrize("wire", ["gemini", "message", "agentic"])
def test_a_result_without_an_id_whose_name_no_open_call_has_is_an_orphan(wire: str) -> None:
    fixed = sound(wire, history(wire, ASK, turn(asks("", "1", "weather")), result("", "06:12", "tides"), user("and?")))
    assert answers(wire, fixed.messages) == [("1", told(INTERRUPTED, "", "weather"))]
    assert [("06:12" in text) for text in orphans(wire, fixed.messages)] == [True]


@pytest.mark.parametrize("wire", ["gemini", "message", "agentic"])
def test_beside_an_id_the_id_decides_and_not_the_name(wire: str) -> None:
    fixed = sound(wire, history(wire, ASK, turn(asks("a", "1", "weather")), result("a", "sunny", "tides"), user("ok")))
    assert answers(wire, fixed.messages) == [("1", "sunny")]
    assert orphans(wire, fixed.messages) == []


# --- a turn in several messages ---------------------------------------------------------------

WHOLE = {
    "parallel": (turn(asks("x", "1")), turn(asks("y", "2")), result("x", "one"), result("y", "two")),
    "in another order": (turn(asks("x", "1")), turn(asks("y", "2")), result("y", "two"), result("x", "one")),
    "text between": (turn(asks("x", "1")), says("hm"), turn(asks("y", "2")), result("x", "one"), result("y", "two")),
    "text behind": (turn(asks("x", "1")), says("hm"), result("x", "one")),
    "one by one": (turn(asks("x", "1")), result("x", "one"), turn(asks("y", "2")), result("y", "two")),
}


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("wire", WIRES)
def test_pairing_leaves_a_whole_turn_alone_in_however_many_messages(wire: str, name: str) -> None:
    untouched(wire, history(wire, ASK, *WHOLE[name], bundle=True), profile="pairing")


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("wire", FOREIGN)
def test_a_turn_in_several_messages_keeps_all_its_results(wire: str, name: str) -> None:
    fixed = sound(wire, history(wire, ASK, *WHOLE[name], bundle=True))
    expected = [("1", "one")] if name == "text behind" else [("1", "one"), ("2", "two")]
    assert answers(wire, fixed.messages) == expected
    assert [text for text in texts(wire, fixed.messages) if text == "hm"] == ["hm"] * ("text" in name)
    assert fixed.report.displaced == ()


@pytest.mark.parametrize("name", ["parallel", "in another order"])
def test_chat_gets_each_message_with_its_results_behind_it(name: str) -> None:
    given = history("openai-chat", ASK, *WHOLE[name])
    fixed = sound("openai-chat", given)
    first, second = (3, 4) if name == "parallel" else (4, 3)
    wanted = [given[0], given[1], given[first], given[2], given[second]]
    assert all(ours is theirs for ours, theirs in zip(fixed.messages, wanted, strict=True))


@pytest.mark.parametrize("profile", ["anthropic", "minimax"])
def test_a_result_of_one_step_is_the_same_message_where_the_next_step_is_answered(profile: str) -> None:
    """Pairing puts the result and the placeholder into one message; the split takes them apart again."""
    calls = [{"type": "tool_use", "id": call_id, "name": "f", "input": {}} for call_id in "xy"]
    first = {"role": "assistant", "content": [calls[0]]}
    second = {"role": "assistant", "content": [{"type": "text", "text": "then"}, calls[1]]}
    answer = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": "42"}]}
    given = [{"role": "user", "content": "go"}, first, second, answer]
    fixed = suture.repair(given, wire="anthropic", profile=profile)
    kept = [message for message in fixed.messages if any(message is each for each in given)]
    assert kept == [given[0], first, answer, second]


def test_chat_keeps_text_between_two_messages_with_calls_where_it_was() -> None:
    given = history("openai-chat", ASK, *WHOLE["text between"])
    ask, one, text, two, first, second = given
    assert list(sound("openai-chat", given).messages) == [ask, one, first, text, two, second]


def test_chat_splits_a_turn_of_three_messages_with_some_results_missing() -> None:
    steps = [turn(asks("a", "1"), asks("b", "2")), turn(asks("c", "3")), turn(asks("d", "4"))]
    fixed = sound("openai-chat", history("openai-chat", ASK, *steps, result("d", "D"), result("a", "A"), user("stop")))
    assert answers("openai-chat", fixed.messages) == [
        ("1", "A"),
        ("2", told(INTERRUPTED, "b")),
        ("3", told(INTERRUPTED, "c")),
        ("4", "D"),
    ]
    roles = [message["role"] for message in fixed.messages]
    assert roles == ["user", "assistant", "tool", "tool", "assistant", "tool", "assistant", "tool", "user"]


@pytest.mark.parametrize("name", ["parallel", "in another order"])
@pytest.mark.parametrize("wire", ["gemini", "bedrock"])
def test_gemini_and_bedrock_get_one_message_with_all_calls_and_one_with_all_results(wire: str, name: str) -> None:
    given = history(wire, ASK, *WHOLE[name])
    key = "parts" if wire == "gemini" else "content"
    fixed = sound(wire, given)
    assert len(fixed.messages) == 3
    assert fixed.messages[1][key] == [*given[1][key], *given[2][key]]
    assert len(fixed.messages[2][key]) == 2


@pytest.mark.parametrize("ids", [("x", "y"), ("", "")])
def test_gemini_gets_responses_in_the_order_of_their_calls(ids: tuple[str, str]) -> None:
    calls = turn(asks(ids[0], "1", "weather"), asks(ids[1], "2", "tides"))
    swapped = [result(ids[1], "06:12", "tides"), result(ids[0], "sunny", "weather")]
    given = history("gemini", ASK, calls, *swapped, bundle=True)
    assert not suture.check(given, wire="gemini").acceptable
    fixed = sound("gemini", given)
    assert list(fixed.messages[:2]) == given[:2]
    assert fixed.messages[2]["parts"] == list(reversed(given[2]["parts"]))


@pytest.mark.parametrize("wire", ["gemini", "anthropic", "bedrock"])
def test_text_behind_the_last_call_does_not_make_the_history_end_on_the_model(wire: str) -> None:
    fixed = sound(wire, history(wire, ASK, *WHOLE["text behind"]))
    outline = read(wire, fixed.messages)
    assert outline[-1] == ("user", (("result", "x", "one"),))
    said = [event[:2] for _, events in outline[1:-1] for event in events]
    assert said == ([("call", "x"), ("text", "hm")] if wire == "gemini" else [("text", "hm"), ("call", "x")])


@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire != "openai-responses"])
def test_model_text_with_no_result_behind_it_begins_another_turn(wire: str) -> None:
    fixed = sound(wire, history(wire, ASK, turn(asks("x", "1")), says("never mind"), user("ok")))
    kinds = [event[0] for _, events in read(wire, fixed.messages) for event in events]
    assert [kind.replace("failed", "result") for kind in kinds] == ["text", "call", "result", "text", "text"]


EMPTY: dict[str, Callable[[], Any]] = {
    "openai-chat": lambda: {"role": "assistant", "content": ""},
    "anthropic": lambda: {"role": "assistant", "content": []},
    "gemini": lambda: {"role": "model", "parts": []},
    "bedrock": lambda: {"role": "assistant", "content": []},
}


@pytest.mark.parametrize("ids", [("x", "y"), ("", "")])
@pytest.mark.parametrize("wire", EMPTY)
def test_an_empty_model_message_neither_begins_nor_ends_a_turn(wire: str, ids: tuple[str, str]) -> None:
    steps = [turn(asks(ids[0], "1")), turn(asks(ids[1], "2")), result(ids[0], "one"), result(ids[1], "two")]
    ask, one, two, first, second = history(wire, ASK, *steps)
    void = EMPTY[wire]
    fixed = sound(wire, [ask, void(), one, void(), two, void(), first, second])
    assert answers(wire, fixed.messages) == [("1", "one"), ("2", "two")]
    assert fixed.messages == sound(wire, [ask, one, two, first, second]).messages


@pytest.mark.parametrize("between", [(), (user("and?"),)])
@pytest.mark.parametrize("wire", EMPTY)
def test_an_empty_model_message_does_not_part_an_early_result_from_its_call(
    wire: str, between: tuple[Step, ...]
) -> None:
    ask, early, *rest = history(wire, ASK, result("a", "one"), *between, turn(asks("a", "1")), user("next"))
    given = [ask, early, EMPTY[wire](), *rest]
    fixed = sound(wire, given)
    assert answers(wire, fixed.messages) == [("1", "one")]
    grown = suture.Repairer[Any](wire=wire)
    for message in given:
        grown.extend([message])
    assert list(grown.messages) == list(fixed.messages)


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic", "message"])
def test_a_kept_open_turn_in_two_messages_is_not_split(wire: str) -> None:
    given = history(wire, ASK, turn(asks("x", "1")), turn(asks("y", "2")), result("y", "two"))
    fixed = suture.repair(given, wire=wire, tail="keep")
    assert fixed.messages is given
    assert [(each.index, each.position, each.call_id) for each in fixed.pending] == [(1, 0, "x")]
    assert suture.check(given, wire=wire, tail="keep").acceptable


@pytest.mark.parametrize("wire", WIRES)
def test_an_open_turn_in_two_messages_is_answered_where_it_is_not_kept(wire: str) -> None:
    fixed = sound(wire, history(wire, ASK, turn(asks("x", "1")), turn(asks("y", "2")), result("y", "two")))
    assert answers(wire, fixed.messages) == [("1", told(UNKNOWN, "x")), ("2", "two")]
    assert fixed.pending == ()


# --- what is signed ---------------------------------------------------------------------------


def _use(id_: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": "search", "input": {}}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _claude(*messages: list[dict[str, Any]], answered: str) -> list[dict[str, Any]]:
    results = [{"type": "tool_result", "tool_use_id": id_, "content": f"r{id_}"} for id_ in answered]
    said = [{"role": "assistant", "content": blocks} for blocks in messages]
    return [{"role": "user", "content": "q"}, *said, {"role": "user", "content": results}]


LEFT_ALONE = {
    "a signed thought and two calls": ([SIGNED, _use("x")], [_use("y")]),
    "two calls": ([_use("x")], [_use("y")]),
    "a text and two calls": ([_text("look"), _use("x")], [_use("y")]),
    "one block a message": ([SIGNED], [_text("look")], [_use("x")], [_use("y")]),
    "a thought in a message of its own": ([SIGNED], [_use("x"), _use("y")]),
    "a text in a message of its own": ([_text("look")], [_use("x"), _use("y")]),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_anthropic_joins_neighbours_in_the_right_order_by_itself(name: str) -> None:
    untouched("anthropic", _claude(*LEFT_ALONE[name], answered="xy"))


def _runs(messages: Any) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the blocks that Anthropic reads as one message, with their role."""
    runs: list[tuple[str, list[dict[str, Any]]]] = []
    for message in messages:
        content = message["content"]
        blocks = [_text(content)] if isinstance(content, str) else content
        if runs and runs[-1][0] == message["role"]:
            runs[-1][1].extend(blocks)
        else:
            runs.append((message["role"], list(blocks)))
    return runs


OWN = {**SIGNED, "thinking": "hm again"}
SPLIT = {
    "text before the second call": (([_use("x")], [_text("now"), _use("y")]), ["x"], ["now", "y"]),
    "text in a message between": (([_use("x")], [_text("now")], [_use("y")]), ["x"], ["now", "y"]),
    "a thought before the second call": (([SIGNED, _use("x")], [OWN, _use("y")]), ["hm", "x"], ["hm again", "y"]),
    "a thought behind the first call": (([_use("x")], [OWN, _use("y")]), ["x"], ["hm again", "y"]),
}


@pytest.mark.parametrize("name", SPLIT)
def test_anthropic_is_given_a_turn_of_its_own_where_text_or_a_thought_begins_one(name: str) -> None:
    layout, first, second = SPLIT[name]
    given = _claude(*layout, answered="xy")
    fixed = sound("anthropic", given)
    runs = [
        (
            role,
            [block.get("thinking", block.get("text", block.get("id", block.get("tool_use_id")))) for block in blocks],
        )
        for role, blocks in _runs(fixed.messages)
    ]
    assert runs == [("user", ["q"]), ("assistant", first), ("user", ["x"]), ("assistant", second), ("user", ["y"])]
    assert all(any(message is each for message in fixed.messages) for each in given[1:-1]), "a model message changed"


def test_anthropic_text_behind_the_last_call_goes_before_the_calls() -> None:
    fixed = sound("anthropic", _claude([_use("x")], [_text("done soon")], answered="x"))
    assert [block.get("text", block.get("id")) for block in _runs(fixed.messages)[1][1]] == ["done soon", "x"]
    assert fixed.messages[-1]["role"] == "user"


def _part(name: str, signature: str = "") -> dict[str, Any]:
    own = {"thoughtSignature": signature} if signature else {}
    return {"functionCall": {"name": name, "args": {}}, **own}


def _contents(*messages: list[dict[str, Any]], answered: str) -> list[dict[str, Any]]:
    responses = [{"functionResponse": {"name": name, "response": {"result": f"r{name}"}}} for name in answered]
    said = [{"role": "model", "parts": parts} for parts in messages]
    return [{"role": "user", "parts": [{"text": "q"}]}, *said, {"role": "user", "parts": responses}]


def test_gemini_neighbours_are_joined_where_only_the_first_is_signed() -> None:
    given = _contents([_part("f", "c2ln")], [_part("g")], answered="fg")
    fixed = sound("gemini", given)
    assert list(fixed.messages) == [given[0], {"role": "model", "parts": [_part("f", "c2ln"), _part("g")]}, given[3]]


def test_a_gemini_neighbour_with_its_own_signature_was_a_step_of_its_own() -> None:
    given = _contents([_part("f", "c2ln")], [_part("g", "c2ln")], answered="fg")
    first, second = ({"role": "user", "parts": [part]} for part in given[3]["parts"])
    assert list(sound("gemini", given).messages) == [given[0], given[1], first, given[2], second]


def _converse(*messages: list[dict[str, Any]], answered: str) -> list[dict[str, Any]]:
    results = [{"toolResult": {"toolUseId": id_, "content": [{"text": f"r{id_}"}]}} for id_ in answered]
    said = [{"role": "assistant", "content": blocks} for blocks in messages]
    return [{"role": "user", "content": [{"text": "q"}]}, *said, {"role": "user", "content": results}]


def _reasons(text: str) -> dict[str, Any]:
    return {"reasoningContent": {"reasoningText": {"text": text, "signature": "c2ln"}}}


def _uses(id_: str) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": id_, "name": "search", "input": {}}}


def test_bedrock_neighbours_are_joined_where_only_the_first_is_signed() -> None:
    given = _converse([_reasons("hm"), _uses("x")], [_uses("y")], answered="xy")
    joined = {"role": "assistant", "content": [_reasons("hm"), _uses("x"), _uses("y")]}
    assert list(sound("bedrock", given).messages) == [given[0], joined, given[3]]


def test_a_bedrock_neighbour_with_its_own_thought_was_a_step_of_its_own() -> None:
    given = _converse([_reasons("hm"), _uses("x")], [_reasons("again"), _uses("y")], answered="xy")
    first, second = ({"role": "user", "content": [block]} for block in given[3]["content"])
    assert list(sound("bedrock", given).messages) == [given[0], given[1], first, given[2], second]


# --- steps in one message ---------------------------------------------------------------------


def _steps(wire: str) -> tuple[list[Any], list[Any]]:
    """Return a message that holds call, result, text, call, result, text, and what it must become."""
    if wire == "anthropic":
        key, model = "content", "assistant"
        blocks: list[Any] = [
            block
            for id_ in "ab"
            for block in (
                _use(id_),
                {"type": "tool_result", "tool_use_id": id_, "content": id_ * 3},
                _text(f"so {id_}"),
            )
        ]
    elif wire == "bedrock":
        key, model = "content", "assistant"
        blocks = [
            block
            for id_ in "ab"
            for block in (
                _uses(id_),
                {"toolResult": {"toolUseId": id_, "content": [{"text": id_ * 3}]}},
                {"text": f"so {id_}"},
            )
        ]
    else:
        key, model = "parts", "model"
        blocks = [
            block
            for name in "ab"
            for block in (
                _part(name),
                {"functionResponse": {"name": name, "response": {"result": name * 3}}},
                {"text": f"so {name}"},
            )
        ]
    ask = {"role": "user", key: [_text("q") if wire == "anthropic" else {"text": "q"}]}
    cut = [blocks[:1], blocks[1:2], blocks[2:4], blocks[4:5], blocks[5:]]
    roles = [model, "user", model, "user", model]
    return [ask, {"role": model, key: blocks}], [
        ask,
        *({"role": role, key: part} for role, part in zip(roles, cut, strict=True)),
    ]


@pytest.mark.parametrize("wire", ["anthropic", "bedrock", "gemini"])
def test_steps_in_one_message_are_split_at_each_result(wire: str) -> None:
    given, wanted = _steps(wire)
    assert not suture.check(given, wire=wire).acceptable
    assert list(sound(wire, given).messages) == wanted


@pytest.mark.parametrize("wire", ["anthropic", "bedrock", "gemini"])
def test_a_result_in_a_model_message_behind_the_call_goes_to_a_user_message(wire: str) -> None:
    _, (ask, called, answered, *_) = _steps(wire)
    misplaced = {**answered, "role": called["role"]}
    assert not suture.check([ask, called, misplaced], wire=wire).acceptable
    assert list(sound(wire, [ask, called, misplaced]).messages) == [ask, called, answered]
