"""What happens to a history over its life, not in one message of it."""

from typing import Any

import pytest

import suture
from suture.profiles import PROFILES, get_profile
from tests.shapes.notation import call, flat, result, says, turn, user
from tests.shapes.texts import placeholder
from tests.shapes.wires import WIRES, read, render

GO = user("go")
PAIRS = [(profile, wire) for profile in PROFILES for wire in get_profile(profile).wires if wire in WIRES]
NASTY = [
    result("lost", "before the cut"),
    GO,
    turn(call("functions.search:0"), call("functions.search:0", "fetch", '{"q'), text="I will look."),
    user("wait"),
    result("functions.search:0", "1", "search"),
    says("hm"),
    turn(call("", ""), call("x" * 90)),
    result("x" * 90, ""),
    turn(call("ok")),
]


def results(wire: str, messages: Any) -> list[tuple[str, str]]:
    return [(event[1], event[2]) for event in flat(read(wire, messages)) if event[0] in {"result", "failed"}]


@pytest.mark.parametrize("wire", WIRES)
def test_a_session_that_is_resumed_again_and_again_stays_as_it_was_repaired(wire: str):
    """What was repaired once is not repaired anew, byte for byte."""
    stored: list[Any] = []
    for steps in ([GO, turn(call("a"))], [user("no")], [turn(call("b"), call("c")), result("c", "3")], [user("no")]):
        stored = list(suture.repair(stored + render(wire, steps).messages, wire=wire).messages)
        again = suture.repair(stored, wire=wire)
        assert again.messages is stored
    assert [id_ for id_, _ in results(wire, stored)] == ["a", "b", "c"]


@pytest.mark.parametrize("wire", WIRES)
def test_a_history_that_grows_keeps_its_repaired_beginning(wire: str):
    """Prompt caches: block by block, up to what the new messages concern."""
    steps = [GO, turn(call("a"), call("a")), user("no"), result("q", "lost"), says("hm"), user("next"), says("ok")]
    for length in range(4, len(steps)):
        short = flat(read(wire, suture.repair(render(wire, steps[:length]).messages, wire=wire).messages))
        longer = flat(read(wire, suture.repair(render(wire, steps[: length + 1]).messages, wire=wire).messages))
        assert longer[: len(short)] == short


@pytest.mark.parametrize("wire", WIRES)
def test_after_a_rollback_nothing_of_the_later_edits_is_left(wire: str):
    """The later result replaced a placeholder, and is gone again."""
    rendered = render(wire, [GO, turn(call("x")), user("no"), result("x", "1"), says("done")])
    repairer = suture.Repairer(rendered.messages, wire=wire)
    assert results(wire, repairer.messages) == [("x", "1")]
    repairer.reset()
    repairer.extend(rendered.messages[:3])
    alone = suture.repair(rendered.messages[:3], wire=wire)
    assert list(repairer.messages) == list(alone.messages)
    assert results(wire, repairer.messages) == [("x", placeholder("interrupted", "x"))]
    assert repairer.report.findings == alone.report.findings


@pytest.mark.parametrize("wire", WIRES)
def test_a_second_layer_finds_nothing_to_do_and_invents_no_second_result(wire: str):
    """Two-pass poison."""
    first = suture.repair(
        render(wire, [GO, turn(call("x"), call("y")), result("q", "lost"), user("no")]).messages, wire=wire
    )
    second = suture.repair(first.messages, wire=wire, generator=lambda _name, _id: "again", orphans="drop", tail="keep")
    assert second.messages is first.messages


def test_the_text_of_another_layer_gives_way_to_ours_and_to_the_real_result():
    theirs = "[Tool execution was interrupted]"
    for wire in WIRES:
        steps = [GO, turn(call("x")), result("x", theirs), result("x", placeholder("unknown", "x")), says("done")]
        fixed = suture.repair(render(wire, steps).messages, wire=wire, is_placeholder=lambda text: text == theirs)
        assert len(results(wire, fixed.messages)) == 1
        fixed = suture.repair(
            render(wire, [*steps, result("x", "42")]).messages, wire=wire, is_placeholder=lambda text: text == theirs
        )
        assert results(wire, fixed.messages) == [("x", "42")]
        assert fixed.report.displaced == ()


@pytest.mark.parametrize(("profile", "wire"), PAIRS)
def test_one_history_is_made_acceptable_to_whichever_provider_comes_next(profile: str, wire: str):
    """Latent until the model is switched."""
    messages = render(wire, NASTY).messages
    fixed = suture.repair(messages, wire=wire, profile=profile)
    assert not fixed.unresolved, str(fixed.report)
    assert suture.check(fixed.messages, wire=wire, profile=profile).acceptable
    assert suture.repair(fixed.messages, wire=wire, profile=profile).messages is fixed.messages
    events = flat(read(wire, fixed.messages))
    assert [event[2] for event in events if event[0] == "call"][:2] == ["search", "fetch"]
    assert len([event for event in events if event[0] == "call"]) == 5
    assert len([event for event in events if event[0] in {"result", "failed"}]) == 5
    assert "before the cut" in str(events)


@pytest.mark.parametrize(("first", "wire"), PAIRS)
def test_a_history_repaired_for_one_provider_can_be_repaired_for_every_other_of_its_wire(first: str, wire: str):
    """And each time it holds."""
    once = suture.repair(render(wire, NASTY).messages, wire=wire, profile=first)
    for second in [profile for profile, other in PAIRS if other == wire]:
        fixed = suture.repair(once.messages, wire=wire, profile=second)
        assert suture.check(fixed.messages, wire=wire, profile=second).acceptable, second


@pytest.mark.parametrize("wire", WIRES)
def test_a_check_before_sending_changes_nothing_and_says_why_it_would_be_refused(wire: str):
    """A request that is bound to fail is not sent eleven times."""
    messages = render(wire, [GO, turn(call("x")), user("no")]).messages
    given = list(messages)
    for _ in range(2):
        report = suture.check(messages, wire=wire)
        assert next(each.problem for each in report.findings) == "dangling"
    assert all(one is other for one, other in zip(messages, given, strict=True))


@pytest.mark.parametrize("wire", WIRES)
def test_a_result_that_comes_hours_later_finds_its_call_or_is_told_as_news(wire: str):
    opening = [GO, turn(call("x")), result("x", placeholder("unknown", "x")), says("started")]
    middle = [step for n in range(30) for step in (user(f"q{n}"), says(f"a{n}"))]
    fixed = suture.repair(render(wire, [*opening, *middle, result("x", "finished")]).messages, wire=wire)
    assert results(wire, fixed.messages) == [("x", "finished")]

    fixed = suture.repair(render(wire, [GO, says("started"), *middle, result("x", "finished")]).messages, wire=wire)
    assert results(wire, fixed.messages) == []
    assert "finished" in str(read(wire, fixed.messages)[-1])
