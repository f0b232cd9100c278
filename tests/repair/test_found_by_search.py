"""Histories that a search found broken after their repair, made small. What a repair must hold, holds for them."""

from itertools import combinations
from typing import Any

import pytest

import suture
from tests.histories import Step, write
from tests.repair.test_properties import assert_one_path
from tests.shapes.wires import WIRES

A, B, C = [("a", "f", "{}")], [("b", "f", "{}")], [("c", "f", "{}")]
NAMELESS = [("", "f", "{}")]
HI: Step = ("user", "hi")
TWICE: Step = ("turn", [("a", "f", "{}"), ("a", "f", "{}")])


def placeholder(id_: str) -> tuple[str, str, str]:
    return id_, "f", f"Tool call f with id {id_} was canceled - another message came in before it could be completed."


Case = tuple[str, str, list[Step], dict[str, Any]]
FOUND: dict[str, Case] = {
    "a dropped orphan joins two turns, the second call without an id": (
        "openai-responses",
        "openai-responses",
        [("turn", B), ("result", "z", "f", "1"), ("turn", NAMELESS), ("result", "b", "f", "1")],
        {"orphans": "drop"},
    ),
    "a dropped placeholder joins two turns, the first with one id twice": (
        "openai-responses",
        "openai-responses",
        [TWICE, ("result", *placeholder("q")), ("turn", B), *[("result", id_, "f", "1") for id_ in ("", "a", "a")]],
        {},
    ),
    "an early result that moves joins two turns": (
        "openai-responses",
        "pairing",
        [("turn", B), ("result", "a", "f", "1"), TWICE, ("result", "b", "f", "1"), ("result", "", "f", "1")],
        {},
    ),
    "an orphan between a call and its result without an id, and the id again": (
        "openai-responses",
        "openai-responses",
        [("turn", A), ("result", "y", "f", "1"), ("say", "s"), ("result", "", "f", "1"), ("turn", A)],
        {},
    ),
    "one call with an id, one without, results the other way round": (
        "agentic",
        "pairing",
        [HI, ("turn", [*A, ("", "g", "{}")]), ("result", "", "g", "2"), ("result", "a", "f", "1")],
        {},
    ),
    "the same, in one message": (
        "bedrock",
        "bedrock",
        [HI, ("turn", [*A, *NAMELESS]), ("mixed", [("", "f", "2"), ("a", "f", "1")], "and")],
        {},
    ),
    "a history with nothing wrong, handed over at once": (
        "openai-responses",
        "openai-responses",
        [HI, ("turn", A), ("result", "a", "f", "1")],
        {},
    ),
    "a system message before it is known who speaks next": (
        "message",
        "pairing",
        [("turn", A), ("system", "note"), HI],
        {},
    ),
    "nothing said before it is known who speaks next": (
        "message",
        "pairing",
        [("turn", A), ("turn", A), ("result", "a", "f", "1"), ("say", ""), HI],
        {},
    ),
    "text behind an open call, and the late result of another one": (
        "openai-chat",
        "pairing",
        [("turn", B), HI, ("turn", A), ("say", "so"), ("result", "b", "f", "1")],
        {"tail": "keep"},
    ),
    "a stray placeholder in a model message behind another one": (
        "anthropic",
        "pairing",
        [("say", "well"), ("inner", A, [placeholder("b")], "so")],
        {},
    ),
    "an empty user message before the model's": ("anthropic", "anthropic", [("user", ""), ("say", "well")], {}),
    "a dropped placeholder makes text and calls one turn": (
        "openai-chat",
        "kimi",
        [("say", "well"), ("result", *placeholder("c")), ("turn", A)],
        {},
    ),
    "an early result makes text and calls one turn": (
        "openai-chat",
        "kimi",
        [("say", "well"), ("result", "a", "f", "1"), ("turn", A)],
        {},
    ),
    "a late result makes text and calls one turn": (
        "openai-chat",
        "deepseek",
        [
            *[("turn", B), ("result", "c", "f", "1"), ("say", "so")],
            ("result", "b", "f", "1"),
            ("say", "so"),
            ("turn", A),
        ],
        {},
    ),
    "text behind the calls of the second message of a turn": (
        "anthropic",
        "anthropic",
        [("turn", A), ("inner", B, [], "so")],
        {},
    ),
    "text between the calls of an open turn": (
        "bedrock",
        "bedrock",
        [("turn", A), ("say", "well"), ("turn", C)],
        {"tail": "keep"},
    ),
    "a signed text between the calls of an open turn": (
        "bedrock",
        "bedrock",
        [HI, ("say", "well"), ("turn", B), ("think", "so"), ("turn", C)],
        {"tail": "keep"},
    ),
    "an empty message between two of one turn": (
        "bedrock",
        "bedrock",
        [("turn", A), ("inner", B, [("", "f", "2")], "so"), ("say", ""), ("result", "a", "f", "1"), ("turn", C)],
        {},
    ),
    "a thought and a turn in two messages": (
        "gemini",
        "gemini",
        [HI, ("think", "so"), ("turn", B), ("turn", [*C, *C])],
        {},
    ),
    "an early result of a turn before the last": (
        "agentic",
        "pairing",
        [("result", "a", "f", "1"), ("turn", A), ("system", "note"), ("inner", C, [("c", "f", "2")], ""), ("say", "")],
        {},
    ),
    "two strays, the call of one of which comes": (
        "openai-chat",
        "openai-chat",
        [("turn", C), ("result", "b", "f", "1"), ("result", "z", "f", "2"), ("say", "so"), HI, ("turn", B)],
        {},
    ),
    "an early result of another name before an open call": (
        "gemini",
        "pairing",
        [("mixed", [("", "g", "1")], "and"), ("turn", C)],
        {"tail": "keep"},
    ),
    "two orphans in one message": (
        "anthropic",
        "anthropic",
        [("mixed", [("c", "f", "1"), ("a", "g", "2")], "and"), ("say", "well"), HI, ("turn", A)],
        {},
    ),
    "one id twice in a turn, and a result named like the call that has one": (
        "message",
        "pairing",
        [("turn", [("b", "f", "{}"), ("b", "g", "{}")]), ("result", "b", "", "1"), ("result", "b", "f", "2")],
        {},
    ),
    "a late result between two of the model's messages": (
        "openai-chat",
        "deepseek",
        [("turn", A), ("turn", A), ("result", "a", "f", "1"), ("say", "so"), ("result", "a", "f", "2"), ("turn", A)],
        {},
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_a_search_found_is_acceptable_and_final(name: str) -> None:
    wire, profile, steps, options = FOUND[name]
    messages = write(wire, steps)
    fixed = suture.repair(messages, wire=wire, profile=profile, **options)
    report = suture.check(fixed.messages, wire=wire, profile=profile, tail=options.get("tail", "cancel"))
    assert [each.problem for each in report.findings] == [each.problem for each in fixed.unresolved]
    assert suture.repair(fixed.messages, wire=wire, profile=profile, **options).messages is fixed.messages


@pytest.mark.parametrize("name", FOUND)
def test_what_a_search_found_grows_in_every_split_as_if_handed_over_at_once(name: str) -> None:
    wire, profile, steps, options = FOUND[name]
    messages = write(wire, steps)
    inner = range(1, len(messages))
    for cuts in [cuts for count in range(len(messages)) for cuts in combinations(inner, count)]:
        grown = suture.Repairer[Any](wire=wire, profile=profile, **options)
        for start, stop in zip((0, *cuts), (*cuts, len(messages)), strict=True):
            grown.extend(messages[start:stop])
            whole = suture.repair(messages[:stop], wire=wire, profile=profile, **options)
            assert list(grown.messages) == list(whole.messages), cuts
            assert grown.report == whole.report, cuts
            assert grown.pending == whole.pending, cuts


@pytest.mark.parametrize("name", FOUND)
def test_what_a_search_found_is_the_same_at_a_glance_and_at_a_thorough_look(name: str) -> None:
    wire, profile, steps, options = FOUND[name]
    assert_one_path(wire, profile, write(wire, steps), **options)


def test_a_blank_reply_behind_an_open_call_is_nobodys_word():
    for wire in WIRES:
        messages = write(wire, [HI, ("turn", A), ("say", " "), ("user", "and")])
        whole = suture.repair(messages, wire=wire)
        assert "answered: interrupted" in [found.done for found in whole.report.findings], wire
        for cut in range(1, len(messages)):
            grown = suture.Repairer[Any](messages[:cut], wire=wire)
            grown.extend(messages[cut:])
            assert list(grown.messages) == list(whole.messages), (wire, cut)
            assert grown.report == whole.report


def test_a_call_before_a_stray_result_is_canceled_by_a_user_who_speaks_later():
    """Nobody had spoken behind it when the first messages came."""
    history = [HI, TWICE, ("result", "a", "f", "1"), ("system", "note"), ("result", "b", "f", "2"), ("user", "and")]
    for wire in WIRES:
        messages = write(wire, history)
        whole = suture.repair(messages, wire=wire)
        for cut in range(1, len(messages)):
            grown = suture.Repairer[Any](messages[:cut], wire=wire)
            grown.extend(messages[cut:])
            assert list(grown.messages) == list(whole.messages), (wire, cut)
            assert grown.report == whole.report
