"""How reduction goes wrong elsewhere (research, provider rules and failures, part 4.5), one test or more a line."""

import json
from typing import Any

import pytest

import suture
import suture.reduction
from suture.messages import TextPart, ToolArgument, ToolResult
from suture.middleware import ClearResult, ToolDetail, ToolReductionConfig
from suture.profiles import PROFILES, get_profile
from tests.histories import Step
from tests.reduction.planning import cleared, on_each_wire, planned, saved
from tests.reduction.rounds import (
    SIGNED,
    TELLS_ERRORS,
    arguments_on,
    long,
    one_round,
    read,
    saved_at,
    texts,
    write,
)
from tests.shapes.wires import arguments_of

CALLS = [("a", "search", '{"q": 1}')]


@on_each_wire
def test_a_reused_id_does_not_clear_a_fresh_output(wire: str):
    """DCP#615: cleared by id, the output of the last round goes with that of the first."""
    steps = [("user", "go"), *one_round("a", long("old")), ("user", "again"), *one_round("a", long("fresh"))]
    plan = planned(wire, write(wire, steps))
    assert texts(wire, plan.messages) == [saved_at("/r/clear/a"), long("fresh")]
    assert saved(plan) == {"/r/clear/a": long("old")}


@on_each_wire
def test_ids_that_restart_each_round_in_parallel_calls_keep_their_own_outputs(wire: str):
    def parallel(label: str) -> list[Step]:
        calls = [("0", "search", "{}"), ("1", "fetch", "{}")]
        results = [("1", "fetch", long(f"{label}1")), ("0", "search", long(f"{label}0"))]
        return [("turn", calls), ("bundle", results)]

    plan = planned(wire, write(wire, [("user", "go"), *parallel("x"), *parallel("y"), *parallel("z")]))
    files = saved(plan)
    said = [files.get(path_in(text), text) for text in texts(wire, plan.messages)]
    assert said == [long(label) for label in ("x1", "x0", "y1", "y0", "z1", "z0")]
    assert len(files) == 4


def path_in(text: str) -> str:
    """Return the path that a placeholder names; nothing where it is none."""
    head, _, rest = text.partition("saved to: ")
    return rest.partition("\n")[0] if head == "<persisted-output>Tool result " else ""


@on_each_wire
def test_no_call_is_torn_from_its_result(wire: str):
    """F13: a cut between the two makes every provider refuse the history."""
    pair = [("x", "search", "{}"), ("y", "search", "{}")]
    results = [("x", "search", long("x")), ("y", "search", long("y"))]
    messages = write(wire, [("user", "go"), ("turn", pair), ("bundle", results), *one_round("z"), ("user", "so?")])
    profiles = [name for name in PROFILES if get_profile(name).speaks_of(wire)]
    accepted = [name for name in profiles if suture.check(messages, wire=wire, profile=name).acceptable]
    assert accepted
    for choices in ({}, {"clear_message_rewriter": lambda _turn, _results: []}):
        plan = planned(wire, messages, **choices)
        assert plan.changed
        for name in accepted:
            assert suture.check(list(plan.messages), wire=wire, profile=name).findings == ()


def replacing(arguments: str) -> Any:
    """Return settings with a handler that replaces arguments and result."""

    def handler(_detail: ToolDetail) -> ClearResult:
        return ClearResult(
            need_clear=True,
            tool_argument=ToolArgument(arguments),
            tool_result=ToolResult((TextPart("gone"),)),
        )

    return {"search": ToolReductionConfig(clear_handler=handler)}


@pytest.mark.parametrize("wire", SIGNED)
def test_the_arguments_of_a_signed_turn_are_never_touched(wire: str):
    """F47: cleared inputs make arguments `{}`, and the provider finds the signature broken."""
    steps: list[Step] = [("user", "go"), ("signed", CALLS), ("bundle", [("a", "search", long("a"))]), *one_round("z")]
    messages = write(wire, steps)
    plan = planned(wire, messages, tool_config=replacing('{"cleared": true}'))
    assert texts(wire, plan.messages) == ["gone", long("z")]
    assert arguments_of(wire, plan.messages) == arguments_of(wire, messages)


@on_each_wire
def test_the_arguments_of_any_other_turn_may_be_replaced(wire: str):
    messages = write(wire, [("user", "go"), *one_round("a"), *one_round("z")])
    plan = planned(wire, messages, tool_config=replacing('{"cleared": true}'))
    wanted = [arguments_on(wire, '{"cleared": true}'), arguments_on(wire, '{"q": 1}')]
    assert arguments_of(wire, plan.messages) == wanted


@pytest.mark.parametrize("text", ["argument offloaded", "[]", '{"q": ', ""])
@pytest.mark.parametrize("wire", ["anthropic", "gemini", "bedrock"])
def test_arguments_that_are_no_object_become_an_empty_one_where_objects_are_wanted(wire: str, text: str):
    messages = write(wire, [("user", "go"), *one_round("a"), *one_round("z")])
    plan = planned(wire, messages, tool_config=replacing(text))
    assert arguments_of(wire, plan.messages) == [{}, {"q": 1}]


@on_each_wire
def test_whoever_caches_what_was_read_can_see_what_was_cleared(wire: str):
    """A pruned read makes a "file already read" cache lie (qwen-code); the plan says which calls it took."""
    steps = [("user", "go"), *one_round("a", name="read"), *one_round("b", name="grep"), *one_round("z")]
    plan = planned(wire, write(wire, steps))
    assert [(change.call_id, change.name, change.path) for change in plan.changes] == [
        ("a", "read", "/r/clear/a"),
        ("b", "grep", "/r/clear/b"),
    ]
    assert plan.to_dict()["changes"][0]["call_id"] == "a"


@on_each_wire
def test_the_users_messages_are_all_there_even_if_every_round_is_removed(wire: str):
    """Some templates refuse a history without a user message."""
    steps = [("user", "go"), *one_round("a"), ("user", "and?"), *one_round("b"), ("user", "so?")]
    messages = write(wire, steps)
    plan = planned(wire, messages, clear_retention_suffix_limit=0, clear_message_rewriter=lambda _turn, _results: [])
    assert list(plan.messages) == [messages[0], messages[3], messages[6]]


@on_each_wire
def test_the_last_message_stays_the_last_message(wire: str):
    """A history that ends on the assistant is a prefill, and refused by some."""
    for steps in (
        [("user", "go"), *one_round("a"), ("say", "well"), *one_round("b")],
        [("user", "go"), *one_round("a"), ("say", "well"), *one_round("b"), ("user", "so?")],
    ):
        messages = write(wire, steps)
        plan = planned(wire, messages, clear_retention_suffix_limit=0)
        assert len(plan.messages) == len(messages)
        assert read(wire, plan.messages[-1:]) != [] or plan.messages[-1] is messages[-1]


@on_each_wire
def test_a_threshold_that_cannot_be_reached_does_not_make_it_go_on_for_ever(wire: str):
    """goose #5803: a loop of compactions where the model is small."""
    plan = planned(wire, write(wire, [("user", "go"), *one_round("a"), *one_round("b")]))
    assert plan.tokens_after > 0
    for _ in range(3):
        again = planned(wire, plan.messages, ledger=plan.ledger)
        assert again.messages is plan.messages
        assert (again.changed, again.saves, again.changes) == (False, (), ())


@pytest.mark.parametrize("ledger", ["its own", "none", "another history's"])
@pytest.mark.parametrize("offload", [True, False], ids=["offload", "no offload"])
@on_each_wire
def test_a_placeholder_is_not_taken_for_output_again(wire: str, offload: bool, ledger: str):
    """Also if it is longer than the new placeholder would be."""
    root = "/a/very/long/root/of/all/the/files" * 6
    messages = write(wire, [("user", "go"), *one_round("a", long("a", 4_000)), *one_round("b")])
    first = planned(wire, messages, root_dir=root, offload=offload)
    assert cleared(first) == ["a"]
    other = planned(wire, write(wire, [("user", "go"), *one_round("x"), *one_round("y")]))
    kept = {"its own": first.ledger, "none": suture.reduction.Ledger(), "another history's": other.ledger}[ledger]
    again = planned(wire, first.messages, root_dir="/r", offload=offload, ledger=kept)
    assert again.messages is first.messages
    assert again.saves == ()
    shorter = planned(wire, first.messages, root_dir="", offload=False, ledger=kept)
    assert texts(wire, shorter.messages)[0] == texts(wire, first.messages)[0]


@pytest.mark.parametrize("wire", TELLS_ERRORS)
def test_a_result_that_told_of_an_error_still_does_when_it_is_cleared(wire: str):
    """gemini-cli #18545: what is most worth knowing was cleared away."""
    messages = write(wire, [("user", "go"), ("turn", CALLS), ("failed", "a", "search", long("a")), *one_round("z")])
    assert read(wire, messages)[0].failed
    plan = planned(wire, messages)
    old = read(wire, plan.messages)[0]
    assert (old.failed, old.texts) == (True, (saved_at("/r/clear/a"),))


@on_each_wire
def test_skills_and_plans_stay_if_they_are_excluded(wire: str):
    """By the list, and by the tool's own entry."""
    rounds = [("user", "go"), *one_round("s", name="skill"), *one_round("p", name="plan"), *one_round("a")]
    plan = planned(
        wire,
        write(wire, [*rounds, *one_round("z")]),
        clear_exclude_tools=["skill"],
        tool_config={"plan": ToolReductionConfig(skip_clear=True)},
    )
    assert texts(wire, plan.messages) == [long("s"), long("p"), saved_at("/r/clear/a"), long("z")]


LIMIT = {"max_length_for_trunc": 2_000}


@on_each_wire
def test_what_was_truncated_is_cleared_to_the_file_that_is_there(wire: str):
    """No second file that holds a notice which names the first."""
    output = long("a", 9_000)
    messages = write(wire, [("user", "go"), *one_round("a", output), *one_round("z")])
    first = planned(wire, messages, **LIMIT, max_tokens_for_clear=1_000_000)
    assert [change.action for change in first.changes] == ["truncate"]
    assert saved(first) == {"/r/trunc/a": output}
    plan = planned(wire, first.messages, **LIMIT, ledger=first.ledger)
    assert saved(plan) == {}
    assert texts(wire, plan.messages) == [saved_at("/r/trunc/a"), long("z")]


@on_each_wire
def test_what_is_too_long_and_old_is_cleared_at_once_and_has_one_file(wire: str):
    output = long("a", 9_000)
    plan = planned(wire, write(wire, [("user", "go"), *one_round("a", output), *one_round("z")]), **LIMIT)
    ((path, content),) = saved(plan).items()
    assert content == output
    assert texts(wire, plan.messages) == [saved_at(path), long("z")]


@on_each_wire
def test_the_path_of_what_is_cleared_instead_of_truncated_is_free_for_others(wire: str):
    """Found by search: `a` was left alone, since `A` held the short path, and was truncated the next time."""
    steps = [("user", "go"), *one_round("A", long("A", 140)), *one_round("a", long("a", 140), "keep")]
    limits = {"max_length_for_trunc": 10, "clear_exclude_tools": ["keep"], "clear_retention_suffix_limit": 0}
    plan = planned(wire, write(wire, steps), **limits, language="zh")
    assert planned(wire, plan.messages, **limits, language="zh", ledger=plan.ledger).messages is plan.messages


def test_several_parts_are_saved_as_json_that_a_person_can_read():
    content = [("text", long("ä")), ("text", "zweitens"), ("image", "iVBORw0KGgo=")]
    for wire in ("message", "agentic", "openai-chat", "openai-responses", "anthropic", "bedrock"):
        plan = planned(wire, write(wire, [("user", "go"), *one_round("a", content), *one_round("z")]))
        (kept,) = saved(plan).values()
        assert kept.startswith("[\n\t{")
        assert "ä" in kept
        listed = json.loads(kept)
        assert len(listed) == 3
        assert long("ä") in listed[0].values()
        assert "zweitens" in listed[1].values()
        assert all(isinstance(part, dict) for part in listed), listed[2]
        assert read(wire, plan.messages)[0].texts == (saved_at("/r/clear/a"), saved_at("/r/clear/a"))


@on_each_wire
def test_a_part_that_nobody_knows_is_saved_as_it_stood_there(wire: str):
    content = [("text", long("a")), ("unknown", 7)]
    plan = planned(wire, write(wire, [("user", "go"), *one_round("a", content), *one_round("z")]))
    (kept,) = saved(plan).values()
    listed = json.loads(kept)
    by_key = wire in {"gemini", "bedrock"}
    assert listed[1] == ({"hologram": {"beam": 7}} if by_key else {"type": "hologram", "beam": 7})
