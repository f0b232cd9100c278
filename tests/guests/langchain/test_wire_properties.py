"""What holds for every history of LangChain's messages."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import suture
from suture.integrations.langchain.wire import WIRE
from suture.messages import History
from suture.profiles import PROFILES, get_profile
from suture.repair import Follower
from suture.wires import Demands, get_wire
from tests.guests.langchain.wire_messages import FORMS, structure, write
from tests.histories import Step
from tests.histories import write as write_native
from tests.repair.test_properties import numbered

PROFILE_NAMES = [profile for profile in PROFILES if get_profile(profile).speaks_of("langchain")]

ids = st.sampled_from(["a", "b", "c", "", "fn.read:0", "x" * 70])
names = st.sampled_from(["f", "g"])
arguments = st.sampled_from(["{}", '{"q": 1}', '{"q": ', "[]"])
sound = st.sampled_from(["{}", '{"q": 1}'])
results = st.tuples(ids, st.sampled_from(["f", "g", ""]), st.sampled_from(["real", "other", ""]))


def steps(made: Any) -> Any:
    """Return steps whose calls have arguments as in `made`."""
    calls = st.lists(st.tuples(ids, names, made), min_size=1, max_size=3)
    return st.one_of(
        st.tuples(st.just("user"), st.sampled_from(["hello", "again"])),
        st.tuples(st.just("say"), st.sampled_from(["well", ""])),
        st.tuples(st.just("think"), st.just("so")),
        st.tuples(st.just("turn"), calls),
        st.tuples(st.just("turn"), calls),
        results.map(lambda result: ("result", *result)),
        results.map(lambda result: ("result", *result)),
        st.tuples(st.just("mixed"), st.lists(results, min_size=1, max_size=2), st.just("and")),
    )


histories = st.lists(steps(arguments), max_size=9).map(numbered)
sound_histories = st.lists(steps(sound), max_size=9).map(numbered)
everywhere = pytest.mark.parametrize("profile", PROFILE_NAMES)


@everywhere
@given(history=histories, form=st.sampled_from(FORMS), tail=st.sampled_from(["cancel", "keep"]))
def test_a_repaired_history_is_acceptable_and_stays_as_it_is(
    profile: str, history: list[Step], form: str, tail: Any
) -> None:
    messages = write(history, form)
    before = copy.deepcopy(messages)
    fixed = suture.repair(messages, profile=profile, tail=tail)
    assert fixed.report.wire == "langchain" or not messages
    assert messages == before
    left = suture.check(fixed.messages, wire="langchain", profile=profile, tail=tail)
    assert {finding.problem for finding in left.findings} <= {finding.problem for finding in fixed.unresolved}
    assert all(not finding.mended for finding in left.findings), str(left)
    again = suture.repair(fixed.messages, wire="langchain", profile=profile, tail=tail)
    assert again.messages is fixed.messages
    assert fixed.changed == (fixed.messages is not messages)
    said = str(structure(WIRE, fixed.messages)) + str([item.content for item in fixed.report.displaced])
    for step in history:
        carried = step[1] if step[0] == "mixed" else [step[1:]] if step[0] == "result" else []
        assert all(text in said for _, _, text in carried)
    count = sum(len(WIRE.view(message).calls) for message in messages)
    assert sum(len(WIRE.view(message).calls) for message in fixed.messages) == count


@given(history=sound_histories, tail=st.sampled_from(["cancel", "keep"]), orphans=st.sampled_from(["text", "drop"]))
def test_pairing_gives_the_structure_that_native_messages_would_get(
    history: list[Step], tail: Any, orphans: Any
) -> None:
    native = get_wire("message")
    ours = suture.repair(write(history), wire="langchain", profile="pairing", tail=tail, orphans=orphans)
    theirs = suture.repair(write_native("message", history), wire="message", tail=tail, orphans=orphans)
    assert structure(WIRE, ours.messages) == structure(native, theirs.messages)
    assert [finding.problem for finding in ours.report.findings] == [
        finding.problem for finding in theirs.report.findings
    ]


@everywhere
@given(history=histories, form=st.sampled_from(FORMS), data=st.data())
def test_a_history_that_is_followed_as_it_grows_comes_out_the_same(
    profile: str, history: list[Step], form: str, data: st.DataObject
) -> None:
    messages = write(history, form)
    follower = Follower(wire="langchain", profile=profile, language="en")
    grown: History[Any] = History()
    while len(grown) < len(messages):
        size = data.draw(st.integers(1, len(messages) - len(grown)))
        grown = grown.continue_with(messages[len(grown) : len(grown) + size])
        whole = suture.repair(messages[: len(grown)], wire="langchain", profile=profile)
        assert list(follower.follow(grown).messages) == list(whole.messages)


@given(history=histories, form=st.sampled_from(FORMS))
def test_a_glance_calls_nothing_in_order_that_a_closer_look_would_change(history: list[Step], form: str) -> None:
    messages = write(history, form)
    end = WIRE.glance(messages, 0, Demands())
    assert not suture.repair(messages[:end], wire="langchain", profile="pairing").changed
