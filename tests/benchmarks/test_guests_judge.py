"""The judge of the guests' table finds what a provider refuses and what a model is not told, and nothing else."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "guests"
PLACEHOLDER = "It was interrupted."


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    for module in ("_cases", "_judge"):
        monkeypatch.delitem(sys.modules, module, raising=False)


def case_of(letter: str) -> Any:
    return next(case for case in import_module("_cases").CASES if case.letter == letter)


def as_it_is(case: Any) -> list[Any]:
    """Return a history as a framework sends it that does nothing to it."""
    sent: list[Any] = []
    for step in (*case.steps, ("user", import_module("_cases").PROMPT)):
        match step:
            case ("user", text):
                sent.append(("user", [("text", text)]))
            case ("say", text):
                sent.append(("assistant", [("text", text)]))
            case ("result", name, text):
                sent.append(("tool", [("result", name, text)]))
            case (_, *calls):
                sent.append(("assistant", [("call", name, "weather") for name, _ in calls]))
    return sent


def mended(case: Any) -> list[Any]:
    """Return a history as it must be sent: each call with an id of its own, and its answer right behind it."""
    sent: list[Any] = []
    answers = iter(case.answers)
    number = 0
    for role, atoms in as_it_is(case):
        kinds = {atom[0] for atom in atoms}
        if kinds == {"result"} and not case.stray:
            continue
        if case.stray and kinds == {"result"}:
            sent[-1][1].append(("text", f"A tool said: {case.stray}"))
        elif kinds == {"call"}:
            names = [f"id_{number + place}" for place in range(len(atoms))]
            number += len(atoms)
            sent.append((role, [("call", name, "weather") for name in names]))
            sent.append(("user", [("result", name, next(answers) or PLACEHOLDER) for name in names]))
        elif sent and sent[-1][0] == role:
            sent[-1][1].extend(atoms)
        else:
            sent.append((role, list(atoms)))
    return sent


def verdict(sent: Any, letter: str, provider: str) -> str:
    judge = import_module("_judge")
    return judge.judge(sent, case_of(letter), judge.PROVIDERS[provider])


PROVIDERS = ("OpenAI, Chat Completions", "OpenAI, Responses", "Anthropic", "Gemini", "Bedrock")


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("letter", "ABCDEFG")
def test_a_history_that_was_mended_is_right_everywhere(letter: str, provider: str):
    assert verdict(mended(case_of(letter)), letter, provider) == "right"


@pytest.mark.parametrize(
    ("letter", "said"),
    [
        ("A", "refused: unanswered call"),
        ("B", "refused: unanswered call"),
        ("C", "refused: orphan result"),
        ("D", "refused: two results"),
        ("E", "refused: late result"),
        ("F", "refused: unanswered call, id twice"),
        ("G", "refused: unanswered call"),
    ],
)
def test_a_history_that_is_sent_as_it_is_is_refused_for_its_fault(letter: str, said: str):
    assert verdict(as_it_is(case_of(letter)), letter, "Anthropic") == said


def test_a_result_may_stand_anywhere_behind_its_call_in_responses_alone():
    sent = as_it_is(case_of("E"))
    assert [provider for provider in PROVIDERS if verdict(sent, "E", provider) == "right"] == ["OpenAI, Responses"]


def test_a_result_before_its_call_is_refused_even_there():
    first, call, *rest = as_it_is(case_of("E"))
    late = next(message for message in rest if message[0] == "tool")
    sent = [first, late, call, *(message for message in rest if message is not late)]
    assert verdict(sent, "E", "OpenAI, Responses") == "refused: orphan result"


def test_an_id_may_come_again_in_another_turn_where_the_provider_says_so():
    first, call, result, again, *rest = as_it_is(case_of("F"))
    sent = [first, call, result, again, ("tool", [("result", "call_1", PLACEHOLDER)]), *rest]
    taken = [provider for provider in PROVIDERS if verdict(sent, "F", provider) == "right"]
    assert taken == ["OpenAI, Chat Completions", "Gemini"]


def test_bedrock_wants_roles_to_alternate():
    *before, (_, (result, prompt)) = mended(case_of("A"))
    sent = [*before, ("user", [result]), ("user", [prompt])]
    assert verdict(sent, "A", "Bedrock") == "refused: user twice in a row"
    assert verdict(sent, "A", "Anthropic") == "right"


def test_text_before_a_result_hides_it():
    first, call, result, *rest = mended(case_of("B"))
    turned = (result[0], [*result[1][1:], result[1][0]])
    assert verdict([first, call, turned, *rest], "B", "Anthropic") == "refused: late result"


def test_gemini_tells_results_apart_by_their_order():
    first, calls, (role, (one, two, *text)), *rest = mended(case_of("G"))
    sent = [first, calls, (role, [two, one, *text]), *rest]
    assert verdict(sent, "G", "Gemini") == "results out of order"
    assert verdict(sent, "G", "Anthropic") == "right"


def test_what_is_dropped_is_told_though_nobody_refuses_it():
    def without(letter: str, kind: str) -> list[Any]:
        return [(role, [atom for atom in atoms if atom[0] != kind]) for role, atoms in as_it_is(case_of(letter))]

    assert verdict(without("A", "call"), "A", "Anthropic") == "call dropped"
    assert verdict(without("C", "result"), "C", "Anthropic") == "orphan dropped"
    assert verdict(without("A", "text"), "A", "Anthropic").endswith("words lost")


def test_a_real_result_that_gives_way_to_an_older_one_or_to_a_placeholder_is_lost():
    older = [(role, [atom for atom in atoms if atom[-1] != "Sunny in Rome."]) for role, atoms in as_it_is(case_of("D"))]
    assert verdict(older, "D", "OpenAI, Chat Completions") == "real result lost"
    lost = [
        (role, [(*atom[:2], PLACEHOLDER) if atom[0] == "result" else atom for atom in atoms])
        for role, atoms in mended(case_of("E"))
    ]
    assert verdict(lost, "E", "Anthropic") == "real result lost"


def test_a_result_at_the_wrong_call_is_noticed():
    first, calls, (role, (one, two, *text)), *rest = mended(case_of("G"))
    swapped = [(*one[:2], two[2]), (*two[:2], one[2])]
    assert verdict([first, calls, (role, [*swapped, *text]), *rest], "G", "Anthropic") == "wrong result at a call"
