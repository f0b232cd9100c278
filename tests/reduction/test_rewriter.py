"""The rewriter that sees a whole round before it is cleared: catalogue lines 48 to 57, R10 and defect 10."""

from collections.abc import Sequence
from typing import Any

import pytest

import suture
from tests.histories import Step
from tests.reduction.planning import Letters, cleared, letters, on_each_wire, on_native_wires, planned, saved
from tests.reduction.rounds import BUNDLED, long, marked, one_round, read, saved_at, texts, write

REMINDER: Step = ("user", "<system-reminder>two files were written</system-reminder>")
PAIR = [("x", "write", "{}"), ("y", "write", "{}")]
PAIR_ROUND: list[Step] = [("turn", PAIR), ("bundle", [("x", "write", long("x")), ("y", "write", long("y"))])]
KEPT = one_round("z")


class Rewriter:
    """Gives back what it was made with, and remembers what it was given."""

    def __init__(self, *returned: Any) -> None:
        self.returned = list(returned)
        self.turns: list[Any] = []
        self.results: list[list[Any]] = []

    def __call__(self, turn: Any, results: Sequence[Any]) -> list[Any]:
        self.turns.append(turn)
        self.results.append(list(results))
        return list(self.returned)


def same(turn: Any, results: Sequence[Any]) -> list[Any]:
    """Leave the round as it is."""
    return [turn, *results]


@on_each_wire
def test_a_round_becomes_a_reminder_and_what_the_model_said_behind_it_stays(wire: str):
    ask, done = write(wire, [("user", "go")]), write(wire, [("say", "done")])
    group, kept, reminder = write(wire, PAIR_ROUND), write(wire, KEPT), write(wire, [REMINDER])
    rewriter = Rewriter(*reminder)
    messages = [*ask, *group, *done, *kept]
    plan = planned(wire, messages, clear_message_rewriter=rewriter)
    assert list(plan.messages) == [*ask, *reminder, *done, *kept]
    assert [change.action for change in plan.changes] == ["rewrite"]
    assert plan.saves == ()
    assert len(rewriter.turns) == 1
    assert [result.id for result in read(wire, rewriter.results[0])] == ["x", "y"]


@on_each_wire
def test_no_messages_remove_the_round_and_the_kept_one_stays(wire: str):
    ask, done = write(wire, [("user", "go")]), write(wire, [("say", "done"), ("user", "more")])
    group, kept = write(wire, PAIR_ROUND), write(wire, KEPT)
    messages = [*ask, *group, *done, *kept]
    plan = planned(wire, messages, clear_message_rewriter=Rewriter())
    assert list(plan.messages) == [*ask, *done, *kept]
    assert all(message in messages for message in plan.messages)
    assert plan.tokens_after < plan.tokens_before


@on_each_wire
def test_a_call_that_the_rewriter_keeps_stays_if_its_tool_is_excluded(wire: str):
    left = write(wire, one_round("y", name="get_weather"))
    rewriter = Rewriter(*write(wire, [REMINDER]), *left)
    calls = [("x", "write", "{}"), ("y", "get_weather", '{"q": 1}')]
    results = [("x", "write", long("x")), ("y", "get_weather", long("y"))]
    messages = write(wire, [("user", "go"), ("turn", calls), ("bundle", results), *KEPT])
    plan = planned(wire, messages, clear_message_rewriter=rewriter, clear_exclude_tools=["get_weather"])
    assert [(result.id, result.text) for result in read(wire, plan.messages)] == [("y", long("y")), ("z", long("z"))]
    assert plan.messages[1] == write(wire, [REMINDER])[0]
    assert plan.saves == ()


@on_each_wire
def test_what_the_rewriter_returns_is_cleared_like_everything_else(wire: str):
    messages = write(wire, [("user", "go"), *one_round("a"), *KEPT])
    plan = planned(wire, messages, clear_message_rewriter=same)
    assert texts(wire, plan.messages) == [saved_at("/r/clear/a"), long("z")]
    assert saved(plan) == {"/r/clear/a": long("a")}


@pytest.mark.parametrize("kind", ["turn", "signed"])
@on_each_wire
def test_a_turn_of_several_calls_or_thoughts_can_be_given_back_as_it_was_given(wire: str, kind: str):
    """`[turn, *results]` leaves a round as it is, also where a turn is several items."""
    messages = write(wire, [("user", "go"), (kind, PAIR), PAIR_ROUND[1], *KEPT])
    plan = planned(wire, messages, clear_message_rewriter=same)
    assert texts(wire, plan.messages) == [saved_at("/r/clear/x"), saved_at("/r/clear/y"), long("z")]
    assert len(plan.messages) == len(messages)


@on_each_wire
def test_a_user_message_between_rounds_survives(wire: str):
    reminder = write(wire, [REMINDER])
    first, between, kept = write(wire, one_round("a")), write(wire, [("user", "wait")]), write(wire, KEPT)
    ask = write(wire, [("user", "go")])
    plan = planned(wire, [*ask, *first, *between, *kept], clear_message_rewriter=Rewriter(*reminder))
    assert list(plan.messages) == [*ask, *reminder, *between, *kept]


@on_each_wire
def test_an_assistant_message_without_calls_is_not_offered(wire: str):
    rewriter = Rewriter()
    messages = write(wire, [("user", "go"), ("say", "well"), ("user", "so?"), *KEPT])
    assert planned(wire, messages, clear_message_rewriter=rewriter).messages is messages
    assert rewriter.turns == []


@on_each_wire
def test_if_the_rewriter_gains_too_little_nothing_happens(wire: str):
    messages = write(wire, [("user", "go"), *one_round("a", "ok"), *KEPT])
    rewriter = Rewriter(*write(wire, one_round("a", "fine")))
    assert planned(wire, messages, clear_message_rewriter=rewriter, clear_at_least_tokens=10).messages is messages
    assert len(rewriter.turns) == 1


def test_a_role_of_the_wires_own_before_the_first_turn_is_no_business_of_ours():
    odd = {"role": "developer", "content": "hm"}
    messages = [odd, *write("openai-chat", [("user", "go"), *PAIR_ROUND, *KEPT])]
    plan = planned("openai-chat", messages, clear_message_rewriter=Rewriter())
    assert plan.messages[0] is odd
    assert [result.id for result in read("openai-chat", plan.messages)] == ["z"]


@on_each_wire
def test_the_error_of_a_rewriter_comes_out_as_it_is(wire: str):
    failure = RuntimeError("no reminder today")

    def failing(_turn: Any, _results: Sequence[Any]) -> list[Any]:
        raise failure

    messages = write(wire, [("user", "go"), *one_round("a"), *KEPT])
    with pytest.raises(RuntimeError) as caught:
        planned(wire, messages, clear_message_rewriter=failing)
    assert caught.value is failure


@on_each_wire
def test_without_results_the_rewriter_gets_none(wire: str):
    rewriter = Rewriter(*write(wire, [REMINDER]))
    messages = write(wire, [("user", "go"), ("turn", [("a", "write", "{}")]), ("user", "stop"), *KEPT])
    planned(wire, messages, clear_message_rewriter=rewriter)
    assert rewriter.results == [[]]


@on_each_wire
def test_with_a_counter_that_never_sees_a_gain_nothing_happens(wire: str):
    messages = write(wire, [("user", "go"), *PAIR_ROUND, *KEPT])
    plan = planned(
        wire, messages, token_counter=lambda _m, _t: 1_000, clear_at_least_tokens=10, clear_message_rewriter=Rewriter()
    )
    assert plan.messages is messages


@pytest.mark.parametrize("wrong", [None, "", {}, 7], ids=repr)
@on_each_wire
def test_a_rewriter_that_gives_no_list_is_an_error(wire: str, wrong: Any):
    messages = write(wire, [("user", "go"), *one_round("a"), *KEPT])
    with pytest.raises(suture.ConfigError, match="rewriter"):
        planned(wire, messages, clear_message_rewriter=lambda _turn, _results: wrong)


@on_each_wire
def test_a_round_without_its_result_never_takes_the_user_message_behind_it(wire: str):
    """The reference takes the next messages for results, whatever they are (defect 10)."""
    ask, turn = write(wire, [("user", "go")]), write(wire, [("turn", [("a", "write", "{}")])])
    stop, kept = write(wire, [("user", "stop"), ("say", "stopped"), ("user", "go on")]), write(wire, KEPT)
    plan = planned(wire, [*ask, *turn, *stop, *kept], clear_message_rewriter=Rewriter())
    assert list(plan.messages) == [*ask, *stop, *kept]


@on_each_wire
def test_with_half_the_results_the_rewriter_gets_that_half(wire: str):
    rewriter = Rewriter()
    half = write(wire, [("bundle", [("y", "write", long("y"))])])
    stop, kept = write(wire, [("user", "stop")]), write(wire, KEPT)
    ask = write(wire, [("user", "go")])
    plan = planned(wire, [*ask, *write(wire, [("turn", PAIR)]), *half, *stop, *kept], clear_message_rewriter=rewriter)
    assert rewriter.results == [half]
    assert list(plan.messages) == [*ask, *stop, *kept]


@on_each_wire
def test_a_result_that_comes_late_is_given_to_its_own_turn(wire: str):
    """What stood between stays where it was."""
    rewriter = Rewriter()
    late = write(wire, [("bundle", [("a", "write", long("a"))])])
    between, kept = write(wire, [("user", "wait")]), write(wire, KEPT)
    ask = write(wire, [("user", "go")])
    messages = [*ask, *write(wire, [("turn", [("a", "write", "{}")])]), *between, *late, *kept]
    plan = planned(wire, messages, clear_message_rewriter=rewriter)
    assert rewriter.results == [late]
    assert list(plan.messages) == [*ask, *between, *kept]


@pytest.mark.parametrize("wire", BUNDLED)
def test_the_users_own_words_beside_a_result_are_not_removed_with_it(wire: str):
    mixed: Step = ("mixed", [("a", "search", long("a"))], "and hurry")
    messages = write(wire, [("user", "go"), ("turn", [("a", "search", "{}")]), mixed, *KEPT])
    plan = planned(wire, messages, clear_message_rewriter=Rewriter())
    assert "and hurry" in str(list(plan.messages))
    assert [result.id for result in read(wire, plan.messages)] == ["z"]


@on_each_wire
def test_what_the_rewriter_does_to_its_list_is_not_done_to_the_history(wire: str):
    def greedy(_turn: Any, results: list[Any]) -> list[Any]:
        results.append("mine")
        results.clear()
        return []

    ask, kept = write(wire, [("user", "go")]), write(wire, KEPT)
    messages = [*ask, *write(wire, one_round("a")), *kept]
    before = list(messages)
    plan = planned(wire, messages, clear_message_rewriter=greedy)
    assert messages == before
    assert list(plan.messages) == [*ask, *kept]


@on_each_wire
def test_a_round_that_was_rewritten_or_cleared_is_not_offered_again(wire: str):
    seen: list[list[str]] = []

    def keeping(turn: Any, results: Sequence[Any]) -> list[Any]:
        seen.append([result.id for result in read(wire, results)])
        return [turn, *results]

    first = planned(wire, write(wire, [("user", "go"), *one_round("a"), *KEPT]), clear_message_rewriter=keeping)
    more = [*first.messages, *write(wire, one_round("c"))]
    second = planned(wire, more, clear_message_rewriter=keeping, ledger=first.ledger)
    assert seen == [["a"], ["z"]]
    assert cleared(second) == ["z"]


@on_each_wire
def test_the_rewriter_is_not_asked_below_the_threshold_nor_for_rounds_that_are_kept(wire: str):
    rewriter = Rewriter()
    messages = write(wire, [("user", "go"), *one_round("a"), *KEPT])
    assert planned(wire, messages, clear_message_rewriter=rewriter, max_tokens_for_clear=9_999).messages is messages
    kept = planned(wire, messages, clear_message_rewriter=rewriter, clear_retention_suffix_limit=2)
    assert kept.messages is messages
    assert rewriter.turns == []


@on_native_wires
def test_a_round_that_the_rewriter_left_carries_the_mark(wire: str):
    plan = planned(wire, write(wire, [("user", "go"), *one_round("a"), *KEPT]), clear_message_rewriter=same)
    assert marked(plan.messages) == [False, True, False, False, False]


@on_each_wire
def test_with_a_watermark_only_as_many_rounds_are_rewritten_as_needed(wire: str):
    """The oldest first; the rest is not even offered."""
    steps: list[Step] = [("user", "go"), *one_round("a"), *one_round("b"), *one_round("c"), *KEPT]
    messages = write(wire, steps)
    total = letters(messages)
    plan = planned(
        wire,
        messages,
        clear_message_rewriter=Rewriter(),
        token_counter=Letters(),
        max_tokens_for_clear=total - 1,
        clear_down_to_tokens=total - 1,
    )
    assert [result.id for result in read(wire, plan.messages)] == ["b", "c", "z"]
