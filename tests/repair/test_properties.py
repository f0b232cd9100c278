"""What holds for every history, on every legal pair of wire and profile."""

import copy
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import suture
from suture.messages import History
from suture.profiles import PROFILES, get_profile
from suture.repair import Cause, Follower, is_whole, make_options, placeholder_text
from suture.repair.walk import Walk
from suture.wires import WIRES, get_wire
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
all_steps = st.one_of(
    steps,
    steps,
    st.tuples(st.just("system"), st.just("note")),
    st.tuples(st.sampled_from(["user", "say"]), st.sampled_from(["", " "])),
    st.tuples(st.just("inner"), calls, st.lists(results(), max_size=2), st.sampled_from(["so", ""])),
)
"""Also what only some renderers of steps know."""


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
            case ("inner", made, carried, text):
                marked = [(i, n, f"real-{place}-{k}-" if t == "real" else t) for k, (i, n, t) in enumerate(carried)]
                out.append(("inner", made, marked, text))
            case _:
                out.append(step)
    return out


histories = st.lists(steps, max_size=9).map(numbered)
groups = st.sampled_from(["a", "b", "a|b", "k1", "k2"]).map(
    lambda call_id: [
        ("user", "go"),
        ("turn", [(call_id, "f", "{}")]),
        ("result", call_id, "f", "real"),
        ("say", "well"),
    ]
)
"""Groups that are whole: between them, what is not stands apart."""
spread_histories = (
    st.lists(st.one_of(groups, all_steps.map(lambda step: [step])), max_size=7)
    .map(lambda parts: [step for part in parts for step in part])
    .map(numbered)
)
all_histories = st.lists(all_steps, max_size=9).map(numbered)
everywhere = pytest.mark.parametrize(("wire", "profile"), PAIRS, ids=[f"{wire}-{profile}" for wire, profile in PAIRS])


def results_of(step: Step) -> list[tuple[str, str, str]]:
    """Return the results that a step holds."""
    match step:
        case ("result", call_id, name, text):
            return [(call_id, name, text)]
        case ("mixed", carried, _) | ("inner", _, carried, _):
            return carried
    return []


def calls_of(step: Step) -> list[tuple[str, str, str]]:
    """Return the calls that a step holds."""
    return step[1] if step[0] in {"turn", "inner"} else []


def real_texts(history: Sequence[Step]) -> list[str]:
    """Return the marks of all real results."""
    return [text for step in history for _, _, text in results_of(step) if text.startswith("real-")]


@everywhere
@given(history=all_histories, tail=st.sampled_from(["cancel", "keep"]), orphans=st.sampled_from(["text", "drop"]))
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
@given(history=spread_histories, data=st.data(), tail=st.sampled_from(["cancel", "keep"]))
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
@given(history=all_histories, other=all_histories, data=st.data())
def test_a_follower_agrees_with_repair_at_every_step_however_the_history_grows_or_forks(
    wire: str, profile: str, history: list[Step], other: list[Step], data: st.DataObject
) -> None:
    follower = Follower(wire=wire, profile=profile, language="en")
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
            grown = History([*grown, *new]) if data.draw(st.booleans()) else grown.continue_with(new)


@pytest.mark.parametrize("wire", WIRES)
def test_what_the_model_says_next_is_whole_at_a_glance_on_any_wire(wire: str) -> None:
    said: list[Step] = [("user", "hi"), ("turn", [("a", "f", "{}")]), ("result", "a", "f", "42"), ("say", "done")]
    assert is_whole(get_wire(wire), write(wire, said), 1)
    assert not is_whole(get_wire(wire), write(wire, said[:2]), 1)


def assert_one_path(wire: str, profile: str, messages: list[Any], **options: Any) -> None:
    """Assert that `repair` gives what the thorough look at everything gives."""
    quick = suture.repair(messages, wire=wire, profile=profile, **options)
    walk = Walk(get_wire(wire), get_profile(profile), make_options(**options), messages)
    walk.look_at_everything(len(messages))
    walk.fit.finish()
    assert list(quick.messages) == walk.out
    assert quick.report == walk.report()
    assert quick.pending == walk.pending
    assert quick.changed == walk.changed


TWO_RESULTS_INSIDE: list[Step] = [
    ("inner", [("a", "f", "{}")], [("a", "f", "real-0")], "so"),
    ("inner", [("a", "f", "{}")], [("a", "f", "real-1"), ("a", "f", "real-2")], "so"),
]


@everywhere
@example(history=TWO_RESULTS_INSIDE, tail="cancel")
@given(history=spread_histories, tail=st.sampled_from(["cancel", "keep"]))
def test_what_the_quick_look_calls_whole_the_thorough_look_calls_whole(
    wire: str, profile: str, history: list[Step], tail: Any
) -> None:
    """There is one path."""
    assert_one_path(wire, profile, write(wire, history), tail=tail)


@example(history=[("turn", [("a", "f", "{}")]), ("say", " "), ("user", "hello")])
@given(history=st.lists(all_steps.filter(lambda step: step[0] not in {"mixed", "inner"}), max_size=9).map(numbered))
def test_message_and_agentic_agree(history: list[Step]) -> None:
    """The same calls, results and texts in the same order; how they are put into messages may differ."""
    shapes = {wire: suture.repair(write(wire, history), wire=wire) for wire in ("message", "agentic")}
    said = {
        wire: [atom for atom in flat(fixed.messages) if atom != ("text", "assistant", "hm") and atom[2]]
        for wire, fixed in shapes.items()
    }
    assert said["message"] == said["agentic"]
    found = {wire: [(each.index, each.problem) for each in fixed.report.findings] for wire, fixed in shapes.items()}
    assert found["message"] == found["agentic"]


MODEL = {"turn", "say", "think", "inner"}


def first_affected(history: Sequence[Step], cut: int) -> int:
    """Return the last place before which nothing that follows may change anything."""
    while (first := affected_once(history, cut)) != cut:
        cut = first
    return cut


def affected_once(history: Sequence[Step], cut: int) -> int:
    """Return the first step of `history[:cut]` whose group what follows `cut` may change.

    Those are: an open tail; a group that a later result speaks of; a stray or adopted result whose call comes.
    """
    first = cut
    for place in range(cut, len(history)):
        for call_id, *_ in results_of(history[place]):
            first = min(first, spoken_of(history, place, call_id))
        opened = {call[0] for call in calls_of(history[place])}
        if opened:
            first = min([first, *strays(history, place, opened)])
    return group_start(history, first)


def spoken_of(history: Sequence[Step], place: int, call_id: str) -> int:
    """Return the first step of the group that a result of `call_id` at `place` may belong to."""
    for k in range(place, -1, -1):
        made = calls_of(history[k])
        if made and (not call_id or call_id in {call[0] for call in made}):
            return k
    return place


def strays(history: Sequence[Step], place: int, opened: set[str]) -> list[int]:
    """Return the results whose next turn is the one at `place`, and that may belong to it."""
    found: list[int] = []
    while place and history[place - 1][0] in MODEL:
        place -= 1
    for k in range(place - 1, -1, -1):
        if {result[0] for result in results_of(history[k])} & {*opened, ""}:
            found.append(k)
        if calls_of(history[k]):
            break
    return found


def group_start(history: Sequence[Step], first: int) -> int:
    """Return where the turn begins that stands before `first` with nothing between that ends it."""
    k = first - 1
    while k >= 0 and (history[k][0] in {"result", "mixed", "system"} or is_blank(history[k])):
        k -= 1
    while k >= 0 and history[k][0] in MODEL:
        first = k
        k -= 1
    return first


def is_blank(step: Step) -> bool:
    return step[0] == "say" and not step[1].strip()


@everywhere
@given(history=all_histories, data=st.data())
def test_what_is_added_changes_nothing_before_what_it_touches(
    wire: str, profile: str, history: list[Step], data: st.DataObject
) -> None:
    """Prefix-stable: prompt caches depend on it."""
    cut = data.draw(st.integers(0, len(history)))
    stable = first_affected(history, cut)

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
