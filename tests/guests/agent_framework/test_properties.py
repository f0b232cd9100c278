"""What holds for every history of the framework's messages, with every profile."""

from collections.abc import Sequence
from typing import Any

from agent_framework import Message
from hypothesis import given
from hypothesis import strategies as st

import suture
from suture.profiles import PROFILES
from suture.wires import recognise
from tests.guests.agent_framework.talking import flat, write
from tests.histories import Step
from tests.histories import flat as native_flat
from tests.histories import write as write_wire
from tests.repair.test_properties import histories, real_texts

profiles = st.sampled_from(PROFILES)


def plain(messages: Sequence[Message]) -> list[Any]:
    """Return all that the messages hold, to be compared."""
    return [message.to_dict() for message in messages]


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
    before = plain(messages)
    fixed = suture.repair(messages, profile=profile, tail=tail, orphans=orphans)
    assert plain(messages) == before
    left = suture.check(fixed.messages, profile=profile, tail=tail)
    assert all(not finding.mended for finding in left.findings), str(left)
    assert {finding.problem for finding in left.findings} <= {finding.problem for finding in fixed.unresolved}
    assert suture.repair(fixed.messages, profile=profile, tail=tail, orphans=orphans).messages is fixed.messages
    assert fixed.changed == (fixed.messages is not messages)
    again = suture.repair(write(history), profile=profile, tail=tail, orphans=orphans)
    assert plain(again.messages) == plain(fixed.messages)
    told = str(flat(fixed.messages)) + str([item.content for item in fixed.report.displaced])
    assert [text for text in real_texts(history) if text not in told] == []
    counts = [sum(atom[0] == "call" for atom in flat(each)) for each in (messages, fixed.messages)]
    assert counts[0] == counts[1]


@given(history=histories)
def test_it_is_paired_like_sutures_own_messages(history: list[Step]):
    """The same calls, results and texts in the same order, and the same ids.

    A result without an id gets that of its call where its group must change: here that is so more often, as all results
    of a turn stand in one message.
    """
    nameless = [_without_names(step) for step in history]
    native = native_flat(suture.repair(write_wire("message", nameless), wire="message").messages)
    mine = flat(suture.repair(write(history), profile="pairing").messages)
    mine = [atom for atom in mine if atom != ("text", "assistant", "hm")]
    given = [
        ("result", "", *atom[2:]) if other[:2] == ("result", "") else atom
        for atom, other in zip(mine, native, strict=True)
    ]
    assert given == native


def _without_names(step: Step) -> Step:
    """Return a step whose results name no tool: these messages have no place for that."""
    match step:
        case ("result", call_id, _, text):
            return ("result", call_id, "", text)
        case ("mixed", results, text):
            return ("mixed", [(call_id, "", said) for call_id, _, said in results], text)
    return step


@given(history=histories.filter(bool))
def test_the_messages_are_recognised(history: list[Step]):
    assert recognise(write(history)) == ("agent-framework",)
