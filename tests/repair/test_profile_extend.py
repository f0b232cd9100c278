"""Rules of one's own: what an extended profile refuses to be, and that a repair goes by it."""

import re
from collections.abc import Callable
from typing import Any, cast

import pytest

import suture
from suture.profiles import IdForm, Operation, Profile, Rule, get_profile
from suture.wires import get_wire
from tests.repair.credit import FOREIGN, NATIVE, asks, history, sound, untouched
from tests.shapes.notation import result, says, turn, user

ASK: dict[str, Any] = {"role": "user", "content": "q"}
NEXT: dict[str, Any] = {"role": "user", "content": "next"}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
PAIR = history("openai-chat", user("q"), turn(asks("a", "1")), result("a", "42"))
TWELVE = IdForm(pattern="[a-zA-Z0-9]{12}", limit=12, scope="turn", prefix="", length=12)


def rule(problem: str, operation: str, *wires: str, name: str = "own") -> Rule:
    says_ = "A rule of mine."
    return Rule(id=f"mine.{name}", problems=(problem,), says=says_, operation=Operation(operation), wires=wires)


BRIDGE = rule("tool-then-user", "bridge")


# --- what is an error -------------------------------------------------------------------------


def test_an_unknown_problem_is_an_error() -> None:
    with pytest.raises(suture.ConfigError, match="dangeling"):
        Profile.extend("openai-chat", name="mine", rules=[rule("dangeling", "answer")])


def test_an_unknown_wire_is_an_error() -> None:
    with pytest.raises(suture.ConfigError, match="telegraph"):
        Profile.extend("openai-chat", name="mine", rules=[rule("tool-then-user", "bridge", "telegraph")])


@pytest.mark.parametrize(
    ("problem", "operation", "wire"),
    [("result-name", "name-result", "anthropic"), ("results-not-first", "results-first", "openai-chat")],
)
def test_an_operation_that_the_wire_cannot_do_is_an_error(problem: str, operation: str, wire: str) -> None:
    with pytest.raises(suture.ConfigError, match=operation):
        Profile.extend(wire, name="mine", rules=[rule(problem, operation, wire)])


@pytest.mark.parametrize("structural", ["answered", "has-call", "single-result", "adjacent", "sendable"])
def test_a_rule_of_structure_cannot_be_left_out(structural: str) -> None:
    with pytest.raises(suture.ConfigError, match=structural):
        Profile.extend("openai-chat", name="mine", without={f"openai-chat.{structural}"})
    other = Rule(id=f"openai-chat.{structural}", problems=("tool-then-user",), says="", operation=Operation.BRIDGE)
    with pytest.raises(suture.ConfigError, match=structural):
        Profile.extend("openai-chat", name="mine", rules=[other])


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: IdForm(pattern="["), "is no pattern"),
        (lambda: IdForm(pattern="[a-z]+", scope="room"), "unknown scope 'room'"),
        (lambda: Profile.extend("openai-chat", name="mine", names="["), "is no pattern"),
        (lambda: Profile.extend("openai-chat", name="mine", rules=[rule("missing-field", "fill")]), "names no field"),
        (lambda: Profile.extend("openai-chat", name="mine", rules=["mine"]), "a list of Rule"),  # pyright: ignore[reportArgumentType]
        (lambda: Profile.extend("openai-chat", name="mine", ids="[a-z]+"), "an IdForm"),  # pyright: ignore[reportArgumentType]
        (lambda: Profile.extend("openai-chat", name="mine", ids=IdForm(pattern="[0-9]{9}")), "set prefix and length"),
    ],
)
def test_what_could_only_fail_in_a_repair_is_an_error_when_it_is_made(make: Callable[[], object], told: str) -> None:
    with pytest.raises(suture.ConfigError, match=told):
        make()


def test_one_rule_may_be_left_out_by_its_bare_id() -> None:
    base = get_profile("openai-responses")
    mine = Profile.extend(base, name="mine", without="openai-responses.item-id-form")
    assert [rule.id for rule in base.rules if rule not in mine.rules] == ["openai-responses.item-id-form"]


def test_an_operation_may_be_given_by_its_name() -> None:
    named: Any = "unrepairable"
    mine = Profile.extend(
        "openai-chat", name="mine", rules=[Rule(id="own", problems=("bad-arguments",), says="", operation=named)]
    )
    turn_ = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{"}}
    given = [ASK, {"role": "assistant", "tool_calls": [turn_]}, {"role": "tool", "tool_call_id": "a", "content": "42"}]
    fixed = suture.repair(given, profile=mine)
    assert fixed.messages is given
    assert [finding.problem for finding in fixed.unresolved] == ["bad-arguments"]


def test_one_problem_may_be_given_by_its_bare_name() -> None:
    bare: Any = "bad-arguments"
    made = Rule(id="own", problems=bare, says="", operation=Operation.UNREPAIRABLE)
    assert made == Rule(id="own", problems=("bad-arguments",), says="", operation=Operation.UNREPAIRABLE)
    with pytest.raises(suture.ConfigError, match="unknown problem 'bad'"):
        Rule(id="own", problems=cast("Any", "bad"), says="", operation=Operation.UNREPAIRABLE)


@pytest.mark.parametrize("taken", ["openai-chat", "anthropic", "pairing", "mistral"])
def test_a_name_that_is_taken_is_an_error(taken: str) -> None:
    with pytest.raises(suture.ConfigError, match=taken):
        Profile.extend("openai-chat", name=taken, rules=[BRIDGE])


def test_a_profile_that_there_is_not_cannot_be_extended() -> None:
    with pytest.raises(suture.ConfigError, match="openai-chatt"):
        Profile.extend("openai-chatt", name="mine")


# --- a repair goes by it ----------------------------------------------------------------------


def test_an_extended_profile_has_the_rules_of_the_other_and_its_own() -> None:
    before = get_profile("openai-chat")
    mine = Profile.extend("openai-chat", name="mine", rules=[BRIDGE], without={"openai-chat.text-results"})
    ids = {each.id for each in mine.rules}
    assert "mine.own" in ids
    assert "openai-chat.text-results" not in ids
    assert {each.problems for each in mine.rules} >= {("dangling",), ("orphan",), ("duplicate",)}
    assert mine.name == "mine"
    assert get_profile("openai-chat") == before
    assert "mine.own" not in {each.id for each in before.rules}


def test_a_repair_obeys_an_added_rule() -> None:
    mine = Profile.extend("openai-chat", name="mine", rules=[BRIDGE])
    given = [*PAIR, NEXT]
    untouched("openai-chat", given)
    report = suture.check(given, wire="openai-chat", profile=mine)
    assert [(finding.problem, finding.rule) for finding in report.findings] == [("tool-then-user", "mine.own")]
    assert report.profile == "mine"
    fixed = sound("openai-chat", given, profile=mine)
    assert [message["role"] for message in fixed.messages] == ["user", "assistant", "tool", "assistant", "user"]
    grown = suture.Repairer[Any](wire="openai-chat", profile=mine)
    for message in given:
        grown.extend([message])
    assert list(grown.messages) == list(fixed.messages)


@pytest.mark.parametrize("problem", ["tool-then-user", "model-first"])
@pytest.mark.parametrize("wire", ["anthropic", "openai-chat", "openai-responses"])
def test_a_repair_obeys_an_added_rule_that_no_other_profile_of_the_wire_has(wire: str, problem: str) -> None:
    mine = Profile.extend(wire, name="mine", rules=[rule(problem, "bridge")])
    given = history(wire, turn(asks("a", "1")), result("a", "42"), user("next"))
    untouched(wire, given)
    report = suture.check(given, wire=wire, profile=mine)
    assert [(finding.problem, finding.rule) for finding in report.findings] == [(problem, "mine.own")]


def test_a_repair_gives_ids_of_the_wanted_form() -> None:
    mine = Profile.extend("openai-chat", name="mine", ids=TWELVE)
    fixed = sound("openai-chat", PAIR, profile=mine)
    (call,) = fixed.messages[1]["tool_calls"]
    assert re.fullmatch("[a-zA-Z0-9]{12}", call["id"])
    assert fixed.messages[2] == {**PAIR[2], "tool_call_id": call["id"]}
    untouched("openai-chat", PAIR)


def test_a_made_id_is_no_longer_than_the_limit() -> None:
    short = Profile.extend("openai-chat", name="mine", ids=IdForm(pattern="[a-zA-Z0-9_]+", limit=8))
    (made,) = sound("openai-chat", history("openai-chat", user("q"), turn(asks("a/b", "1"))), profile=short).messages[
        1
    ]["tool_calls"]
    assert re.fullmatch("call_[a-zA-Z0-9]{3}", made["id"])


@pytest.mark.parametrize("pattern", ["[0-9]{9}", "[A-F]{9}", "[a-z_]{9}", "(?=.*[0-9])(?=.*[a-z]).{9}"])
def test_an_id_is_made_of_the_characters_that_the_pattern_takes(pattern: str) -> None:
    form = IdForm(pattern=pattern, limit=9, scope="history", prefix="", length=9)
    mine = Profile.extend("openai-chat", name="mine", ids=form)
    broken = history("openai-chat", user("q"), turn(asks("a/b", "1"), asks("a/c", "2")))
    made = [call["id"] for call in sound("openai-chat", broken, profile=mine).messages[1]["tool_calls"]]
    assert len(set(made)) == 2
    assert all(re.fullmatch(pattern, each) for each in made)


def test_a_finding_about_an_id_or_a_name_cites_the_form_that_was_extended() -> None:
    ids = IdForm(pattern="[0-9]{9}", limit=9, prefix="", length=9)
    mine = Profile.extend("openai-chat", name="mine", ids=ids, names="[A-Z]+")
    says = {found.problem: (found.says, found.source) for found in suture.check(PAIR, profile=mine).findings}
    assert says == {
        "illegal-id": ("An id fits [0-9]{9} and has at most 9 characters.", ""),
        "illegal-name": ("A tool's name fits [A-Z]+.", ""),
    }


def test_without_ids_of_its_own_an_extended_profile_has_those_of_the_other() -> None:
    mine = Profile.extend("openai-chat", name="mine", rules=[BRIDGE])
    long = "c" * 41
    fixed = sound(
        "openai-chat", history("openai-chat", user("q"), turn(asks(long, "1")), result(long, "42")), profile=mine
    )
    (call,) = fixed.messages[1]["tool_calls"]
    assert len(call["id"]) <= 40
    assert fixed.messages[2]["tool_call_id"] == call["id"]


def test_a_rule_that_is_left_out_is_not_enforced() -> None:
    mine = Profile.extend("openai-chat", name="mine", without={"openai-chat.text-results"})
    given = [*PAIR[:2], {**PAIR[2], "content": [IMAGE]}]
    assert not suture.check(given, wire="openai-chat").acceptable
    untouched("openai-chat", given, profile=mine)


@pytest.mark.parametrize(
    ("left_out", "ids"), [("id-form", ("a/\x01", "b")), ("id-form", ("", "b")), ("id-unique", ("a", "a"))]
)
def test_a_rule_on_ids_that_is_left_out_is_not_enforced(left_out: str, ids: tuple[str, str]) -> None:
    mine = Profile.extend("openai-chat", name="mine", without={f"openai-chat.{left_out}"})
    results = [result(id_, text) for id_, text in zip(ids, ("one", "two"), strict=True)]
    given = history("openai-chat", user("q"), turn(*[asks(id_, id_) for id_ in ids]), *results)
    untouched("openai-chat", given, profile=mine)
    assert suture.repair(given).changed


def test_pairing_is_done_whatever_is_left_out() -> None:
    mine = Profile.extend("openai-chat", name="mine", without={"openai-chat.arguments", "openai-chat.not-empty"})
    given = history("openai-chat", user("q"), turn(asks("a", "1")), user("next"), result("a", "42"))
    assert list(sound("openai-chat", given, profile=mine).messages) == [given[0], given[1], given[3], given[2]]


# --- a report never claims what was not done --------------------------------------------------


def test_what_a_rule_calls_unrepairable_is_left_and_said_so() -> None:
    mine = Profile.extend("openai-chat", name="mine", rules=[rule("tool-then-user", "unrepairable")])
    given = [*PAIR, NEXT]
    fixed = suture.repair(given, wire="openai-chat", profile=mine)
    assert fixed.messages is given
    assert not fixed.changed
    assert [(finding.problem, finding.done) for finding in fixed.unresolved] == [("tool-then-user", "")]


def test_the_operation_of_the_rule_runs_and_not_the_usual_one() -> None:
    mine = Profile.extend(
        "openai-chat",
        name="mine",
        rules=[rule("media-in-result", "unrepairable", "openai-chat")],
        without={"openai-chat.text-results"},
    )
    given = [*PAIR[:2], {**PAIR[2], "content": [IMAGE]}]
    fixed = suture.repair(given, wire="openai-chat", profile=mine)
    assert fixed.messages is given
    assert [(finding.problem, finding.done) for finding in fixed.unresolved] == [("media-in-result", "")]


@pytest.mark.parametrize("profile", ["openai-chat", "mistral", "deepseek", "groq", "kimi", "minimax"])
def test_what_a_report_says_was_done_is_not_found_again(profile: str) -> None:
    given: list[dict[str, Any]] = [
        ASK,
        {"role": "assistant", "content": ""},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a/b", "type": "function", "function": {"name": "", "arguments": '{"q'}},
                {"id": "a/b", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "a/b", "content": None},
        NEXT,
        {"role": "tool", "tool_call_id": "zz", "content": "lost"},
    ]
    fixed = suture.repair(given, wire="openai-chat", profile=profile)
    claimed = {finding.problem for finding in fixed.report.findings if finding.done}
    left = {finding.problem for finding in suture.check(fixed.messages, wire="openai-chat", profile=profile).findings}
    assert claimed
    assert not claimed & left
    assert left == {finding.problem for finding in fixed.unresolved}


# --- a wire as an object ----------------------------------------------------------------------


@pytest.mark.parametrize("wire", [*FOREIGN, *NATIVE])
def test_a_wire_may_be_given_as_an_object(wire: str) -> None:
    given = history(wire, user("q"), turn(asks("a", "1"), asks("b", "2")), result("b", "42"), says("so"), user("next"))
    by_name = suture.repair(given, wire=wire)
    by_object = suture.repair(given, wire=get_wire(wire))
    assert list(by_object.messages) == list(by_name.messages)
    assert by_object.report == by_name.report
    assert suture.check(given, wire=get_wire(wire)) == suture.check(given, wire=wire)
    assert list(suture.Repairer[Any](given, wire=get_wire(wire)).messages) == list(by_name.messages)
    whole = list(by_name.messages)
    assert suture.repair(whole, wire=get_wire(wire)).messages is whole
