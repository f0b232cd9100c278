"""Every small history there is, at every retention and at the edge of the threshold, against a model of a few lines."""

import copy
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest

from tests.histories import Step
from tests.reduction.planning import Letters, letters, planned, saved
from tests.reduction.rounds import Content, Read, long, one_round, read, saved_at, write

KINDS = ("answered", "dangling", "excluded", "small", "large", "media")
RETENTION = range(4)
EDGE = (-1, 0, 1)
"""The threshold, counted from the tokens of the whole history."""

LABELS = "abc"


def content(kind: str, label: str) -> Content:
    """Return what the tool of a round gave."""
    match kind:
        case "small":
            return f"ok {label}"
        case "large":
            return long(label, 5_000)
        case "media":
            return [("text", long(label)), ("image", "iVBORw0KGgo=")]
    return long(label)


def rounds(kinds: tuple[str, ...]) -> list[Step]:
    steps: list[Step] = [("user", "go")]
    for label, kind in zip(LABELS, kinds, strict=False):
        name = "keep" if kind == "excluded" else "search"
        turn, result = one_round(label, content(kind, label), name)
        steps += [turn, ("user", "stop")] if kind == "dangling" else [turn, result]
    return [*steps, ("user", "so?")]


def expected(kinds: tuple[str, ...], before: list[Read], kept: int, *, over: bool) -> list[Read]:
    """Return the results as they must be afterwards."""
    answered = [number for number, kind in enumerate(kinds) if kind != "dangling"]
    after: list[Read] = []
    for number, result in zip(answered, before, strict=True):
        old = number < len(kinds) - kept
        goes = over and old and kinds[number] in {"answered", "large", "media"}
        after.append(Read(result.id, (saved_at(f"/r/clear/{result.id}"),), result.others) if goes else result)
    return after


def scenes(most: int) -> Iterator[tuple[tuple[str, ...], int, int]]:
    for length in range(most + 1):
        yield from product(product(KINDS, repeat=length), RETENTION, EDGE)


def check(wire: str, kinds: tuple[str, ...], kept: int, edge: int) -> None:
    """Plan, and compare with the model; plan again, with what was planned before and without."""
    messages = write(wire, rounds(kinds))
    snapshot = copy.deepcopy(messages)
    limits: dict[str, Any] = {
        "token_counter": Letters(),
        "max_tokens_for_clear": letters(messages) + edge,
        "clear_retention_suffix_limit": kept,
        "clear_exclude_tools": ["keep"],
    }
    plan = planned(wire, messages, **limits)
    before, after = read(wire, messages), read(wire, plan.messages)
    assert messages == snapshot
    assert after == expected(kinds, before, kept, over=edge < 0)
    gone = [result.id for result, now in zip(before, after, strict=True) if result != now]
    assert list(saved(plan)) == [f"/r/clear/{call_id}" for call_id in gone]
    assert [change.call_id for change in plan.changes] == gone
    for save in plan.saves:
        (whole,) = [result for result in before if result.id == save.call_id]
        if whole.others:
            assert whole.text.splitlines()[0] in save.content
        else:
            assert save.content == whole.text
    if not gone and edge >= 0:
        assert plan.messages is messages
    for ledger in ({"ledger": plan.ledger}, {}):
        again = planned(wire, plan.messages, **{**limits, **ledger, "max_tokens_for_clear": 0})
        if edge < 0:
            assert again.messages is plan.messages
            assert again.saves == ()


@pytest.mark.parametrize("wire", ["message", pytest.param("anthropic", marks=pytest.mark.soak)])
def test_every_history_of_up_to_three_rounds_is_cleared_as_the_model_says(wire: str, covered: Callable[[str], None]):
    count = 0
    for kinds, kept, edge in scenes(3):
        try:
            check(wire, kinds, kept, edge)
        except AssertionError as error:
            raise AssertionError(f"{kinds}, keep {kept}, threshold {edge:+d}: {error}") from error
        count += 1
    covered(f"{wire}: {count} histories of up to 3 rounds, cleared as the model says")
    assert count == sum(len(KINDS) ** length for length in range(4)) * len(RETENTION) * len(EDGE)
