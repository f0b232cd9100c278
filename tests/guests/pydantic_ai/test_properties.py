"""What holds for every history of pydantic-ai's messages, with every profile."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import suture
from suture.profiles import PROFILES
from tests.guests.pydantic_ai.written import atoms, write
from tests.histories import Step, flat
from tests.histories import write as write_wire
from tests.repair.test_properties import histories, numbered, real_texts, steps

profiles = st.sampled_from(PROFILES)


@given(
    profile=profiles,
    history=histories,
    tail=st.sampled_from(["cancel", "keep"]),
    orphans=st.sampled_from(["text", "drop"]),
)
def test_a_repaired_history_is_acceptable_and_stays_as_it_is(
    profile: str, history: list[Step], tail: Any, orphans: Any
):
    """Acceptable afterwards or told as unresolved; idempotent; deterministic; nothing lost; input unchanged."""
    messages = write(history)
    before = copy.deepcopy(messages)
    fixed = suture.repair(messages, profile=profile, tail=tail, orphans=orphans)
    assert messages == before
    left = suture.check(fixed.messages, profile=profile, tail=tail)
    assert all(not finding.mended for finding in left.findings), str(left)
    assert {finding.problem for finding in left.findings} <= {finding.problem for finding in fixed.unresolved}
    assert suture.repair(fixed.messages, profile=profile, tail=tail, orphans=orphans).messages is fixed.messages
    assert fixed.changed == (fixed.messages is not messages)
    assert suture.repair(before, profile=profile, tail=tail, orphans=orphans).messages == fixed.messages
    told = str(atoms(fixed.messages)) + str([item.content for item in fixed.report.displaced])
    assert [text for text in real_texts(history) if text not in told] == []
    calls = [[atom[2] for atom in atoms(each) if atom[0] == "call"] for each in (messages, fixed.messages)]
    assert len(calls[0]) == len(calls[1])


@given(history=st.lists(steps.filter(lambda step: step[0] != "mixed"), max_size=9).map(numbered))
def test_it_is_paired_like_sutures_own_messages(history: list[Step]):
    """The same calls, results and texts in the same order, and the same ids. (Here, no text is no arguments.)"""
    history = [("turn", [(i, n, a or "{}") for i, n, a in step[1]]) if step[0] == "turn" else step for step in history]
    mine = suture.repair(write(history), profile="pairing")
    native = suture.repair(write_wire("message", history), wire="message")
    assert [atom for atom in atoms(mine.messages) if atom[1:] != ("assistant", "hm")] == flat(native.messages)
    problems = [[(each.index, each.problem) for each in fixed.report.findings] for fixed in (mine, native)]
    assert problems[0] == problems[1]
