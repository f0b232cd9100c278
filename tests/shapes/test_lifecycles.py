"""Shapes F51 to F57: what happens to a history over its life, not in one message of it."""

from typing import Any

import pytest

import suture
from suture.messages import Message, TextPart, ToolCall
from tests.shapes.notation import call, flat, result, says, turn, user
from tests.shapes.texts import placeholder
from tests.shapes.wires import WIRES, read, render

GO = user("go")
PROFILES = (
    "pairing",
    "openai-chat",
    "openai-responses",
    "anthropic",
    "gemini",
    "bedrock",
    "mistral",
    "deepseek",
    "kimi",
    "minimax",
)
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
    """F51: what was repaired once is not repaired anew, byte for byte."""
    stored: list[Any] = []
    for steps in ([GO, turn(call("a"))], [user("no")], [turn(call("b"), call("c")), result("c", "3")], [user("no")]):
        stored = list(suture.repair(stored + render(wire, steps).messages, wire=wire).messages)
        again = suture.repair(stored, wire=wire)
        assert again.messages is stored
    assert [id_ for id_, _ in results(wire, stored)] == ["a", "b", "c"]


@pytest.mark.parametrize("wire", WIRES)
def test_a_history_that_grows_keeps_its_repaired_beginning(wire: str):
    """F51, and prompt caches: block by block, up to what the new messages concern."""
    steps = [GO, turn(call("a"), call("a")), user("no"), result("q", "lost"), says("hm"), user("next"), says("ok")]
    for length in range(4, len(steps)):
        short = flat(read(wire, suture.repair(render(wire, steps[:length]).messages, wire=wire).messages))
        longer = flat(read(wire, suture.repair(render(wire, steps[: length + 1]).messages, wire=wire).messages))
        assert longer[: len(short)] == short


@pytest.mark.parametrize("wire", WIRES)
def test_after_a_rollback_nothing_of_the_later_edits_is_left(wire: str):
    """F52: the later result replaced a placeholder, and is gone again."""
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
    """F53: two-pass poison."""
    first = suture.repair(
        render(wire, [GO, turn(call("x"), call("y")), result("q", "lost"), user("no")]).messages, wire=wire
    )
    second = suture.repair(first.messages, wire=wire, generator=lambda _name, _id: "again", orphans="drop", tail="keep")
    assert second.messages is first.messages


def test_the_text_of_another_layer_gives_way_to_ours_and_to_the_real_result():
    """F53."""
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


@pytest.mark.parametrize("wire", ["message", "agentic"])
@pytest.mark.parametrize("profile", PROFILES)
def test_one_history_is_made_acceptable_to_whichever_provider_comes_next(profile: str, wire: str):
    """F55: latent until the model is switched."""
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


@pytest.mark.parametrize("first", PROFILES)
def test_a_history_repaired_for_one_provider_can_be_repaired_for_every_other(first: str):
    """F53, F55: and each time it holds."""
    once = suture.repair(render("message", NASTY).messages, wire="message", profile=first)
    for second in PROFILES:
        fixed = suture.repair(once.messages, wire="message", profile=second)
        assert suture.check(fixed.messages, wire="message", profile=second).acceptable, second


def test_what_is_fine_for_one_provider_is_told_for_the_next():
    """F55."""
    history = [
        Message.user("go"),
        Message.assistant("", [ToolCall("functions.search:0", "search", "{}")]),
        Message.tool([TextPart("1")], "functions.search:0", "search"),
        Message.user("next"),
    ]
    problems = {
        profile: {each.problem for each in suture.check(history, wire="message", profile=profile).findings}
        for profile in ("pairing", "kimi", "anthropic", "mistral", "deepseek")
    }
    assert problems["pairing"] == set()
    assert problems["anthropic"] == {"illegal-id"}
    assert problems["mistral"] == {"illegal-id", "tool-then-user"}


@pytest.mark.parametrize("wire", WIRES)
def test_a_check_before_sending_changes_nothing_and_says_why_it_would_be_refused(wire: str):
    """F56: a request that is bound to fail is not sent eleven times."""
    messages = render(wire, [GO, turn(call("x")), user("no")]).messages
    given = list(messages)
    for _ in range(2):
        report = suture.check(messages, wire=wire)
        assert next(each.problem for each in report.findings) == "dangling"
    assert all(one is other for one, other in zip(messages, given, strict=True))


@pytest.mark.parametrize("wire", WIRES)
def test_a_result_that_comes_hours_later_finds_its_call_or_is_told_as_news(wire: str):
    """F57."""
    opening = [GO, turn(call("x")), result("x", placeholder("unknown", "x")), says("started")]
    middle = [step for n in range(30) for step in (user(f"q{n}"), says(f"a{n}"))]
    fixed = suture.repair(render(wire, [*opening, *middle, result("x", "finished")]).messages, wire=wire)
    assert results(wire, fixed.messages) == [("x", "finished")]

    fixed = suture.repair(render(wire, [GO, says("started"), *middle, result("x", "finished")]).messages, wire=wire)
    assert results(wire, fixed.messages) == []
    assert "finished" in str(read(wire, fixed.messages)[-1])
