"""How much is cleared: tokens never grow, the watermark is reached with as little as possible, all or nothing."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import suture
from suture.messages import ToolInfo
from tests.histories import Step
from tests.reduction.drawing import choices, everywhere, histories
from tests.reduction.planning import Letters, cleared, letters, on_each_wire, planned
from tests.reduction.rounds import long, one_round, read, saved_at, texts, write

FIVE: list[Step] = [("user", "go"), *(step for call_id in "abcde" for step in one_round(call_id))]


@everywhere
@given(history=histories(), settings=choices())
def test_tokens_never_grow(wire: str, history: list[Step], settings: dict[str, Any]):
    messages = write(wire, history)
    plan = planned(wire, messages, **settings)
    assert plan.tokens_after <= plan.tokens_before
    assert plan.tokens_freed == plan.tokens_before - plan.tokens_after
    assert (plan.tokens_freed > 0) or not any(change.action == "clear" for change in plan.changes)
    for change in plan.changes:
        assert change.tokens_after <= change.tokens_before


@everywhere
@given(history=histories(), settings=choices())
def test_the_numbers_of_a_plan_are_those_of_its_counter(wire: str, history: list[Step], settings: dict[str, Any]):
    messages = write(wire, history)
    plan = planned(wire, messages, **{**settings, "token_counter": Letters()})
    assert plan.tokens_before == letters(messages)
    assert plan.tokens_after == letters(list(plan.messages))


@everywhere
@given(history=histories(clean=True), settings=choices(truncation=False), data=st.data())
def test_with_a_watermark_the_shortest_run_of_oldest_rounds_that_suffices_is_cleared(
    wire: str, history: list[Step], settings: dict[str, Any], data: st.DataObject
):
    messages = write(wire, history)
    total = letters(messages)
    wanted = {**settings, "token_counter": Letters(), "clear_at_least_tokens": 0, "max_tokens_for_clear": total - 1}
    whole = planned(wire, messages, **{**wanted, "clear_down_to_tokens": None})
    low = data.draw(st.integers(0, total - 1))
    plan = planned(wire, messages, **{**wanted, "clear_down_to_tokens": low})
    places = [place for place, pair in enumerate(zip(plan.messages, messages, strict=True)) if pair[0] is not pair[1]]
    for place in places:
        assert plan.messages[place] == whole.messages[place]
    if letters(list(plan.messages)) > low:
        assert list(plan.messages) == list(whole.messages)
        return
    changed = [place for place in places if read(wire, [plan.messages[place]])]
    left = [place for place in range(len(messages)) if place not in places]
    untouched = [place for place in left if whole.messages[place] != messages[place]]
    assert not untouched or max(places) < min(untouched)
    if changed:
        last = start_of_round(wire, messages, changed[-1])
        short = [*plan.messages[:last], *messages[last:]]
        assert letters(short) > low


def start_of_round(wire: str, messages: list[Any], place: int) -> int:
    """Return where the results begin that stand together with the one at `place`, in a clean history."""
    while place and read(wire, [messages[place - 1]]):
        place -= 1
    return place


@everywhere
@given(history=histories(), settings=choices(), least=st.integers(0, 2_000))
def test_at_least_so_many_tokens_is_all_or_nothing(
    wire: str, history: list[Step], settings: dict[str, Any], least: int
):
    messages = write(wire, history)
    plain = {**settings, "clear_down_to_tokens": None, "skip_truncation": True}
    whole = planned(wire, messages, **{**plain, "clear_at_least_tokens": 0})
    plan = planned(wire, messages, **{**plain, "clear_at_least_tokens": least})
    if whole.changed and whole.tokens_freed >= least:
        assert list(plan.messages) == list(whole.messages)
        assert plan.saves == whole.saves
    else:
        assert plan.tokens_freed == 0
        assert cleared(plan) == []
        assert plan.saves == ()
    if whole.tokens_freed < least:
        assert plan.messages is messages


@on_each_wire
def test_the_watermark_is_reached_step_by_step_as_it_is_lowered(wire: str):
    """From no round to all that may be cleared, one after another, the oldest first."""
    messages = write(wire, FIVE)
    total = letters(messages)
    gain = len(long("a")) - len(saved_at("/r/clear/a"))
    steps = (total - 1, total - gain, total - gain - 1, total - 2 * gain, total - 3 * gain, total - 4 * gain, 0)
    limits = {"token_counter": Letters(), "max_tokens_for_clear": total - 1}
    found = [cleared(planned(wire, messages, clear_down_to_tokens=low, **limits)) for low in steps]
    wanted = ["a", "a", "ab", "ab", "abc", "abcd", "abcd"]
    assert found == [list(ids) for ids in wanted]
    assert all(len(one) <= len(other) for one, other in pairwise(found))


@on_each_wire
def test_between_watermark_and_threshold_nothing_happens(wire: str):
    """So the prefix stays as it is for many turns."""
    messages = write(wire, FIVE)
    total = letters(messages)
    limits = {"token_counter": Letters(), "max_tokens_for_clear": total - 1, "clear_down_to_tokens": total // 2}
    plan = planned(wire, messages, **limits)
    assert total // 4 < plan.tokens_after <= total // 2
    grown = [*plan.messages, *write(wire, one_round("f"))]
    assert letters(grown) > total // 2
    assert planned(wire, grown, ledger=plan.ledger, **limits).messages is grown


@on_each_wire
def test_a_watermark_that_frees_too_little_is_all_or_nothing_as_well(wire: str):
    messages = write(wire, FIVE)
    total, gain = letters(messages), len(long("a")) - len(saved_at("/r/clear/a"))
    limits = {
        "token_counter": Letters(),
        "max_tokens_for_clear": total - 1,
        "clear_down_to_tokens": total - 2 * gain,
    }
    enough = planned(wire, messages, **limits, clear_at_least_tokens=2 * gain)
    assert cleared(enough) == ["a", "b"]
    assert planned(wire, messages, **limits, clear_at_least_tokens=4 * gain + 1).messages is messages


@on_each_wire
def test_the_tools_are_counted_as_well(wire: str):
    messages = write(wire, FIVE)
    alone = planned(wire, messages, max_tokens_for_clear=100_000)
    tools = (ToolInfo("search", "Search. " * 1_000),)
    beside = planned(wire, messages, max_tokens_for_clear=100_000, tool_infos=tools)
    assert alone.tokens_before > 0
    assert beside.tokens_before >= alone.tokens_before + 2_000
    over = planned(wire, messages, max_tokens_for_clear=alone.tokens_before, tool_infos=tools)
    assert cleared(over) == list("abcd")


@on_each_wire
def test_media_cost_tokens(wire: str):
    plain = write(wire, [("user", "go"), *one_round("a", "here"), *one_round("z")])
    shown = write(wire, [("user", "go"), *one_round("a", [("text", "here"), ("image", "iVBO")]), *one_round("z")])
    few, many = (planned(wire, messages, max_tokens_for_clear=100_000).tokens_before for messages in (plain, shown))
    assert many >= few + 1_000


@on_each_wire
def test_a_function_that_counts_sees_the_whole_list_and_the_tools(wire: str):
    asked: list[tuple[Any, Any]] = []
    tools = (ToolInfo("search"),)

    def counter(messages: Any, tool_infos: Any) -> int:
        asked.append((list(messages), tuple(tool_infos)))
        return letters(list(messages))

    messages = write(wire, FIVE)
    plan = planned(wire, messages, token_counter=counter, tool_infos=tools)
    assert asked[0] == (messages, tools)
    assert texts(wire, plan.messages)[0] == saved_at("/r/clear/a")
    assert plan.tokens_after == letters(list(plan.messages))


@pytest.mark.parametrize("wrong", [-1, True, 1.5, None, "7"], ids=repr)
def test_a_counter_that_gives_no_count_is_refused(wrong: Any):
    class Odd:
        def count(self, message: Any) -> int:
            return wrong

    def odd(_messages: Any, _tools: Any) -> int:
        return wrong

    for counter in (Odd(), odd):
        with pytest.raises(suture.ConfigError, match=r"(?i)odd"):
            planned("message", write("message", FIVE), token_counter=counter)
