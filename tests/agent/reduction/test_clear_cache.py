"""Prompt caches: what was sent once is sent again as the same bytes, and changes come in batches (research 4.3)."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from suture.stores import MemoryBackend
from suture.testing import ScriptedModel
from suture.tokens import Tally
from tests.agent.durability.scenes import play, seen
from tests.agent.reduction._clear_scenes import (
    Counting,
    asks,
    make,
    on_each_wire,
    placed,
    reducing,
    rewrites,
    said,
    sent,
    whole,
)
from tests.reduction.planning import Letters, letters
from tests.reduction.rounds import long, read, saved_at

LABELS = "abcdefgh"


def common(one: Sequence[Any], other: Sequence[Any]) -> int:
    """Return how many messages the two begin with alike."""
    pairs = zip(one, other, strict=False)
    return next((place for place, (mine, theirs) in enumerate(pairs) if mine != theirs), min(len(one), len(other)))


def requests(model: ScriptedModel[Any]) -> list[list[Any]]:
    return [list(request.messages) for request in model.requests]


async def looked(wire: str, labels: str, **choices: Any) -> tuple[ScriptedModel[Any], list[Any]]:
    """Look all of these up, one round each; return the model and the events."""
    script = [*(asks(wire, label) for label in labels), "done"]
    agent, model = make(wire, script, reducing(MemoryBackend(), **choices))
    events, _ = await seen(agent.stream("go"))
    return model, events


@on_each_wire
def test_each_request_begins_as_the_one_before_up_to_the_round_that_was_just_cleared(wire: str):
    """One round is cleared each turn here: the worst that can be asked for."""

    async def scene() -> None:
        model, _ = await looked(wire, LABELS)
        all_sent = requests(model)
        for number in range(2, len(all_sent)):
            before, after = all_sent[number - 1], all_sent[number]
            # user, then two messages a round: round number - 2 (counted from 0) was whole and is cleared now
            cleared = 1 + 2 * (number - 2)
            assert common(before, after) >= cleared
            assert said(wire, before[:cleared]) == said(wire, after[:cleared]) == placed(*LABELS[: number - 2])

    play(scene())


@on_each_wire
def test_while_nothing_is_cleared_each_request_is_the_one_before_and_what_is_new(wire: str):
    async def scene() -> None:
        model, events = await looked(wire, LABELS, max_tokens_for_clear=100_000)
        all_sent = requests(model)
        for before, after in pairwise(all_sent):
            assert common(before, after) == len(before)
            assert all(mine is theirs for mine, theirs in zip(before, after, strict=False))
        assert rewrites(events) == []

    play(scene())


@on_each_wire
def test_with_a_low_watermark_clearings_come_in_batches_and_the_prefix_stands_between_them(wire: str):
    async def scene() -> None:
        model, events = await looked(
            wire, LABELS, token_counter=Letters(), max_tokens_for_clear=6_000, clear_down_to_tokens=3_000
        )
        turns = [event.turn for event in rewrites(events)]
        all_sent = requests(model)
        broken = [turn for turn, pair in enumerate(pairwise(all_sent), 2) if common(*pair) < len(pair[0])]
        assert broken == turns
        assert 1 <= len(turns) <= 3
        for turn in turns:
            assert letters(all_sent[turn - 1]) <= 3_000

    play(scene())


@on_each_wire
def test_a_placeholder_is_the_same_bytes_in_every_request_that_has_it(wire: str):
    async def scene() -> None:
        model, _ = await looked(wire, LABELS)
        for label in LABELS[:-1]:
            place = saved_at(f"/r/clear/{label}")
            forms = [
                repr(message)
                for messages in requests(model)
                for message in messages
                if [(one.id, one.text) for one in read(wire, [message])] == [(label, place)]
            ]
            assert len(forms) == len(LABELS) - 1 - LABELS.index(label)
            assert len(set(forms)) == 1

    play(scene())


@on_each_wire
def test_a_threshold_out_of_reach_clears_each_result_once_and_no_more(wire: str):
    """A loop of compactions where the model is small; a placeholder that is taken for output again."""

    async def scene() -> None:
        backend = Counting()
        script = [asks(wire, "a"), asks(wire, "b"), *(asks(wire, f"p{n}", name="peek") for n in range(5)), "done"]
        agent, model = make(wire, script, reducing(backend, max_tokens_for_clear=1))
        events, _ = await seen(agent.stream("go"))
        assert backend.written == ["/r/clear/a", "/r/clear/b"]
        small = {f"p{n}": f"ok p{n}" for n in range(5)}
        assert said(wire, sent(model)) == placed("a", "b") | small
        reported = [[change["call_id"] for change in (event.report or {})["changes"]] for event in rewrites(events)]
        assert [ids for ids in reported if ids] == [["a"], ["b"]]

    play(scene())


@on_each_wire
def test_results_that_would_not_get_smaller_stay_for_good(wire: str):
    async def scene() -> None:
        backend = Counting()
        script = [*(asks(wire, f"p{n}", name="peek") for n in range(4)), "done"]
        agent, model = make(wire, script, reducing(backend))
        await agent.run("go")
        assert said(wire, sent(model)) == {f"p{n}": f"ok p{n}" for n in range(4)}
        assert backend.written == []

    play(scene())


@pytest.mark.parametrize("kept", [0, 1, 2, 5])
@on_each_wire
def test_as_many_of_the_latest_rounds_are_whole_as_are_to_be_kept(wire: str, kept: int):
    async def scene() -> None:
        model, _ = await looked(wire, "abcd", clear_retention_suffix_limit=kept)
        for number, messages in enumerate(requests(model)):
            old = max(0, number - kept)
            assert said(wire, messages) == placed(*"abcd"[:old]) | whole(*"abcd"[old:number])

    play(scene())


@on_each_wire
def test_exactly_at_the_threshold_nothing_is_cleared(wire: str):
    async def scene() -> None:
        plain, _ = await looked(wire, "ab", max_tokens_for_clear=1_000_000, add_reading_tools=False)
        request = plain.requests[-1]
        total = Tally(wire, Letters()).total(list(request.messages), request.tool_infos)
        for threshold, first in ((total, long("a")), (total - 1, saved_at("/r/clear/a"))):
            choices = {"token_counter": Letters(), "max_tokens_for_clear": threshold, "add_reading_tools": False}
            model, _ = await looked(wire, "ab", **choices)
            assert said(wire, sent(model))["a"] == first

    play(scene())
