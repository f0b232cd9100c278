"""Repaired histories against validators that share nothing with the code under test."""

from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

import suture
from tests.shapes.notation import Step, call, flat, result, says, turn, user
from tests.shapes.test_history_shapes import PAIRS, options_of
from tests.shapes.texts import ENGLISH
from tests.shapes.validators import VALIDATORS
from tests.shapes.wires import FORMS, Form, read, render

ALPHABET: tuple[Step, ...] = (
    user("u"),
    says("s"),
    turn(call("x")),
    turn(call("x"), call("y", "fetch"), text="t"),
    turn(call("", ""), call("", "fetch", '{"q')),
    result("x", "1"),
    result("y", "2", "fetch"),
    result("", "3", error=True),
)
FOREIGN = [form for form in FORMS if form.wire in VALIDATORS]


def histories(length: int) -> Iterator[tuple[Step, ...]]:
    """Yield every history of the alphabet's steps, up to a length."""
    for size in range(1, length + 1):
        yield from product(ALPHABET, repeat=size)


def kept(form: Form, messages: Any, fixed: suture.Repaired[Any]) -> None:
    """Assert that no call and no real result is lost from output and `displaced` together."""
    before, after = flat(read(form, messages)), flat(read(form, fixed.messages))
    assert sum(event[0] == "call" for event in before) == sum(event[0] == "call" for event in after)
    given = Counter(event[2] for event in before if event[0] in {"result", "failed"})
    told = Counter(event[2] for event in after if event[0] in {"result", "failed"})
    told += Counter(str(each.content) for each in fixed.report.displaced)
    texts = [event[1] for event in after if event[0] == "text"]
    for content, count in (given - told).items():  # an identical duplicate is dropped, an orphan is told
        assert any(content in text for text in texts) or told[content] or count == 0, content


@pytest.mark.parametrize("form", FOREIGN, ids=str)
def test_every_short_history_is_acceptable_to_a_validator_of_its_own(form: Form):
    for steps in histories(3):
        messages = render(form, steps).messages
        fixed = suture.repair(messages, wire=form.wire)
        assert VALIDATORS[form.wire](fixed.messages) == [], steps
        kept(form, messages, fixed)


@pytest.mark.parametrize("form", FOREIGN, ids=str)
def test_a_short_history_that_the_validator_accepts_comes_back_as_the_same_list(form: Form):
    """No false alarms: what a provider takes is not touched."""
    validate = VALIDATORS[form.wire]
    accepted = 0
    for steps in histories(4):
        messages = render(form, [user("go"), *steps]).messages
        if not validate(messages):
            accepted += 1
            assert suture.repair(messages, wire=form.wire).messages is messages, steps
    assert accepted > 5


def test_every_repaired_shape_is_acceptable_to_a_validator_of_its_own():
    for shape, form in PAIRS:
        if form.wire in VALIDATORS and "tail" not in shape.options:
            rendered = render(form, shape.given)
            fixed = suture.repair(rendered.messages, **options_of(shape, form, rendered))
            assert VALIDATORS[form.wire](fixed.messages) == [], f"{shape} | {form}"


def test_both_native_wires_agree_with_each_other_on_every_short_history():
    for steps in histories(3):
        chat = suture.repair(render("message", steps).messages, wire="message")
        blocks = suture.repair(render("agentic", steps).messages, wire="agentic")
        assert flat(read("message", chat.messages)) == flat(read("agentic", blocks.messages)), steps
        assert [(each.problem, each.call_id) for each in chat.report.findings] == [
            (each.problem, each.call_id) for each in blocks.report.findings
        ], steps


def test_placeholders_are_the_only_texts_that_are_invented():
    starts = tuple(text.partition("{")[0] for text in ENGLISH.values())
    for steps in histories(3):
        messages = render("message", steps).messages
        given = {event[-1] for event in flat(read("message", messages))}
        for event in flat(read("message", suture.repair(messages, wire="message").messages)):
            if event[0] in {"result", "failed"} and event[2] not in given:
                assert event[2].startswith(starts)
