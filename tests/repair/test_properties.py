"""What holds for every history, on every legal pair of wire and profile."""

import copy
import os
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import suture
from suture.messages import History
from suture.pairing import Cause, placeholder_text
from suture.profiles import PROFILES, get_profile
from suture.repair import Follower
from suture.wires import WIRES
from tests.histories import Step, atoms, flat, write

PAIRS = [(wire, profile) for profile in PROFILES for wire in WIRES if get_profile(profile).speaks_of(wire)]

ids = st.sampled_from(["a", "b", "c", "", "fn.read:0", "x" * 70])
names = st.sampled_from(["f", "g", ""])
arguments = st.sampled_from(["{}", '{"q": 1}', '{"q": ', "", "[]"])
calls = st.lists(st.tuples(ids, names, arguments), min_size=1, max_size=3)


@st.composite
def results(draw: st.DrawFn) -> tuple[str, str, str]:
    """Return a result: mostly real, sometimes one of our placeholders."""
    call_id, name = draw(ids), draw(names)
    text = draw(st.sampled_from(["real", "other", ""]))
    if draw(st.integers(0, 5)) == 0:
        text = placeholder_text(draw(st.sampled_from(Cause)), name or "f", call_id, draw(st.sampled_from(["en", "zh"])))
    return call_id, name, text


steps = st.one_of(
    st.tuples(st.just("user"), st.sampled_from(["hello", "again"])),
    st.tuples(st.just("say"), st.sampled_from(["well", ""])),
    st.tuples(st.just("think"), st.just("so")),
    st.tuples(st.just("turn"), calls),
    st.tuples(st.just("turn"), calls),
    results().map(lambda result: ("result", *result)),
    results().map(lambda result: ("result", *result)),
    st.tuples(st.just("mixed"), st.lists(results(), min_size=1, max_size=2), st.just("and")),
)


def numbered(history: Sequence[Step]) -> list[Step]:
    """Return `history` with every real result made unique, so that it can be followed."""
    out: list[Step] = []
    for place, step in enumerate(history):
        match step:
            case ("result", call_id, name, "real"):
                out.append(("result", call_id, name, f"real-{place}-"))
            case ("mixed", carried, text):
                marked = [(i, n, f"real-{place}-{k}-" if t == "real" else t) for k, (i, n, t) in enumerate(carried)]
                out.append(("mixed", marked, text))
            case _:
                out.append(step)
    return out


histories = st.lists(steps, max_size=9).map(numbered)
everywhere = pytest.mark.parametrize(("wire", "profile"), PAIRS, ids=[f"{wire}-{profile}" for wire, profile in PAIRS])
EXAMPLES = int(os.environ.get("SUTURE_EXAMPLES", "80"))
thorough = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
pytestmark = pytest.mark.properties


def real_texts(history: Sequence[Step]) -> list[str]:
    """Return the marks of all real results."""
    carried = [
        result
        for step in history
        if step[0] in {"result", "mixed"}
        for result in (step[1] if step[0] == "mixed" else [step[1:]])
    ]
    return [text for _, _, text in carried if text.startswith("real-")]


@everywhere
@given(history=histories, tail=st.sampled_from(["cancel", "keep"]), orphans=st.sampled_from(["text", "drop"]))
@thorough
def test_a_repaired_history_is_acceptable_and_stays_as_it_is(
    wire: str, profile: str, history: list[Step], tail: Any, orphans: Any
) -> None:
    """Acceptable afterwards or told as unresolved; idempotent; deterministic; nothing lost; input unchanged."""
    messages = write(wire, history)
    before = copy.deepcopy(messages)
    fixed = suture.repair(messages, wire=wire, profile=profile, tail=tail, orphans=orphans)
    assert messages == before
    left = suture.check(fixed.messages, wire=wire, profile=profile, tail=tail)
    assert {finding.problem for finding in left.findings} <= {finding.problem for finding in fixed.unresolved}, str(
        left
    )
    assert all(not finding.mended for finding in left.findings), str(left)
    again = suture.repair(fixed.messages, wire=wire, profile=profile, tail=tail, orphans=orphans)
    assert again.messages is fixed.messages
    assert not again.changed
    assert fixed.changed or fixed.messages is messages
    assert fixed.changed == (fixed.messages is not messages)
    assert suture.repair(before, wire=wire, profile=profile, tail=tail, orphans=orphans).messages == fixed.messages
    told = str(flat(fixed.messages)) + str([item.content for item in fixed.report.displaced])
    assert [text for text in real_texts(history) if text not in told] == []
    assert sum(atom[0] == "call" for atom in flat(fixed.messages)) == sum(atom[0] == "call" for atom in flat(messages))
    if tail == "cancel":
        assert not fixed.pending


@everywhere
@given(history=histories, data=st.data(), tail=st.sampled_from(["cancel", "keep"]))
@thorough
def test_a_repairer_fed_in_any_split_agrees_with_repair(
    wire: str, profile: str, history: list[Step], data: st.DataObject, tail: Any
) -> None:
    """Same messages, report, pending, unresolved, and whether anything changed."""
    messages = write(wire, history)
    whole = suture.repair(messages, wire=wire, profile=profile, tail=tail)
    grown = suture.Repairer[Any](wire=wire, profile=profile, tail=tail)
    start = 0
    while start < len(messages):
        size = data.draw(st.integers(1, len(messages) - start))
        grown.extend(messages[start : start + size])
        start += size
    assert grown.messages == list(whole.messages)
    assert grown.report == whole.report
    assert grown.pending == whole.pending
    assert grown.unresolved == whole.unresolved
    assert grown.changed == whole.changed


@everywhere
@given(history=histories, other=histories, data=st.data())
@thorough
def test_a_follower_agrees_with_repair_at_every_step_however_the_history_grows_or_forks(
    wire: str, profile: str, history: list[Step], other: list[Step], data: st.DataObject
) -> None:
    follower = Follower(wire, profile, "en")
    for messages in (write(wire, history), write(wire, other)):
        grown: History[Any] = History()
        while True:
            whole = suture.repair(list(grown), wire=wire, profile=profile)
            followed = follower.follow(grown)
            assert list(followed.messages) == list(whole.messages)
            assert (followed.messages is grown) == (not whole.changed)
            assert followed.unresolved == whole.unresolved
            left = len(messages) - len(grown)
            if not left:
                break
            size = data.draw(st.integers(1, left))
            new = messages[len(grown) : len(grown) + size]
            grown = History([*grown, *new]) if data.draw(st.booleans()) else grown.extend(new)


@pytest.mark.parametrize("profile", [profile for profile in PROFILES if get_profile(profile).speaks_of("message")])
@given(history=st.lists(steps.filter(lambda step: step[0] != "mixed"), max_size=9).map(numbered))
@thorough
def test_message_and_agentic_agree(profile: str, history: list[Step]) -> None:
    """The same calls, results and texts in the same order; how they are put into messages may differ."""
    shapes = {wire: suture.repair(write(wire, history), wire=wire, profile=profile) for wire in ("message", "agentic")}
    said = {
        wire: [atom for atom in flat(fixed.messages) if atom != ("text", "assistant", "hm")]
        for wire, fixed in shapes.items()
    }
    assert said["message"] == said["agentic"]
    paired = {
        wire: [
            (finding.index, finding.problem)
            for finding in fixed.report.findings
            if finding.rule.split(".")[1] in {"answered", "has-call", "single-result", "adjacent"}
        ]
        for wire, fixed in shapes.items()
    }
    assert paired["message"] == paired["agentic"]


def first_affected(wire: str, history: Sequence[Step], cut: int) -> int:
    """Return the last place before which nothing that follows may change anything."""
    while (first := affected_once(wire, history, cut)) != cut:
        cut = first
    return cut


def affected_once(wire: str, history: Sequence[Step], cut: int) -> int:
    """Return the first step of `history[:cut]` whose group what follows `cut` may change.

    Those are: an open tail; a group that a later result speaks of; a stray result whose call comes.
    """
    first = cut
    for place in range(cut, len(history)):
        step = history[place]
        carried = [step[1:]] if step[0] == "result" else step[1] if step[0] == "mixed" else []
        for call_id, *_ in carried:
            first = min(first, spoken_of(history, place, call_id))
        if step[0] == "turn":
            opened = {call[0] for call in step[1]}
            strays = [k for k in range(cut) if history[k][0] == "result" and history[k][1] in opened]
            strays += [k for k in range(cut) if history[k][0] == "mixed" and {r[0] for r in history[k][1]} & opened]
            first = min([first, *strays])
    return cluster_start(wire, history, first)


def spoken_of(history: Sequence[Step], place: int, call_id: str) -> int:
    """Return the first step of the group that a result of `call_id` at `place` may belong to."""
    for k in range(place - 1, -1, -1):
        step = history[k]
        if step[0] == "turn" and (not call_id or call_id in {call[0] for call in step[1]}):
            return k
    return place


def cluster_start(wire: str, history: Sequence[Step], first: int) -> int:
    """Return where the turns begin that stand directly before `first`, with nothing but results between."""
    joined = {"turn", "say", "think"} if wire == "openai-responses" else {"turn"}
    k = first - 1
    while k >= 0 and history[k][0] in {"result", "mixed"}:
        k -= 1
    while k >= 0 and history[k][0] in joined:
        first = k
        k -= 1
    return first


@everywhere
@given(history=histories, data=st.data())
@thorough
def test_what_is_added_changes_nothing_before_what_it_touches(
    wire: str, profile: str, history: list[Step], data: st.DataObject
) -> None:
    """Prefix-stable: prompt caches depend on it."""
    cut = data.draw(st.integers(0, len(history)))
    stable = first_affected(wire, history, cut)

    def repaired(part: Sequence[Step]) -> list[Any]:
        return flat(suture.repair(write(wire, part), wire=wire, profile=profile).messages)

    prefix = repaired(history[:stable])
    assert repaired(history[:cut])[: len(prefix)] == prefix
    assert repaired(history)[: len(prefix)] == prefix


@everywhere
def test_an_empty_history_comes_back_as_the_same_list(wire: str, profile: str) -> None:
    """Nothing in, nothing out."""
    messages: list[Any] = []
    assert suture.repair(messages, wire=wire, profile=profile).messages is messages
    assert atoms(write(wire, [("user", "hi")])[0])
