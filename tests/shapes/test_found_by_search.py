"""Histories that a search found broken after their repair, made small. What a repair must hold, holds for them."""

from typing import Any

import pytest

import suture
from tests.shapes.notation import Step, call, result, says, turn, user
from tests.shapes.texts import placeholder
from tests.shapes.validators import VALIDATORS
from tests.shapes.wires import Form, render

RESPONSES = Form("openai-responses")
STRAY = result("q", placeholder("interrupted", "q"))

# Dropping what stood between two turns of this wire makes them one, and a result without an id another call's.
FOUND: dict[str, tuple[Form, list[Step], dict[str, Any]]] = {
    "a dropped orphan joins two turns, the second call without an id": (
        RESPONSES,
        [turn(call("y")), result("b", "1"), turn(call("")), result("y", "1")],
        {"orphans": "drop"},
    ),
    "a dropped placeholder joins two turns, the first with one id twice": (
        RESPONSES,
        [turn(call("a"), call("a")), STRAY, turn(call("x")), result("", "1"), result("a", "1"), result("a", "1")],
        {},
    ),
    "an early result that moves joins two turns": (
        RESPONSES,
        [turn(call("a")), result("x", "1"), turn(call("x"), call("x")), result("a", "1"), result("", "1")],
        {"profile": "pairing"},
    ),
    "an orphan between a call and its result without an id, and the id again": (
        RESPONSES,
        [turn(call("a")), result("y", "1"), says("s"), result("", "1"), turn(call("a"))],
        {},
    ),
    "one call with an id, one without, results the other way round": (
        Form("agentic"),
        [user("go"), turn(call("a"), call("", "fetch")), result("", "2", "fetch"), result("a", "1", "search")],
        {},
    ),
    "the same, in one message": (
        Form("agentic", bundle=True),
        [user("go"), turn(call("a"), call("")), result("", "2", "search"), result("a", "1", "search")],
        {"profile": "bedrock"},
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_a_search_once_found_holds_now(name: str):
    form, steps, options = FOUND[name]
    messages = render(form, steps).messages
    profile = {"profile": options["profile"]} if "profile" in options else {}

    fixed = suture.repair(messages, wire=form.wire, **options)

    report = suture.check(fixed.messages, wire=form.wire, **profile)
    assert report.acceptable, str(report)
    assert suture.repair(fixed.messages, wire=form.wire, **options).messages is fixed.messages
    if form.wire in VALIDATORS and not profile:
        assert VALIDATORS[form.wire](fixed.messages) == []


@pytest.mark.parametrize("name", FOUND)
def test_one_message_at_a_time_gives_the_same(name: str):
    form, steps, options = FOUND[name]
    messages = render(form, steps).messages
    fixed = suture.repair(messages, wire=form.wire, **options)

    repairer = suture.Repairer(wire=form.wire, **options)
    for message in messages:
        repairer.extend([message])

    assert list(repairer.messages) == list(fixed.messages)
    assert repairer.report == fixed.report
