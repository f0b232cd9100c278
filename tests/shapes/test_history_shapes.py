"""Every failure shape, on every wire that can express it.

What it becomes, what is found, and that it then holds.
"""

from copy import deepcopy
from typing import Any

import pytest

import suture
from tests.shapes.identity import IDENTITY
from tests.shapes.misplaced import MISPLACED
from tests.shapes.missing import MISSING
from tests.shapes.notation import Outcome, Shape, bound, flat
from tests.shapes.wires import FORMS, Form, Rendered, expect, read, render

HISTORY_SHAPES = MISSING + MISPLACED + IDENTITY
PAIRING = {"dangling", "orphan", "duplicate", "late", "early", "out-of-order"}
MOVED = {"late", "early", "out-of-order"}
PAIRS = [(shape, form) for shape in HISTORY_SHAPES for form in FORMS if form.wire in shape.wires]
CASES = [pytest.param(shape, form, id=f"{shape} | {form}") for shape, form in PAIRS]


def options_of(shape: Shape, form: Form, rendered: Rendered) -> dict[str, Any]:
    """Return the options of `repair`; causes are keyed by (where the message stands, position of the call in it)."""
    options = dict(shape.options, wire=form.wire)
    if shape.causes:
        separate = form.wire == "openai-responses"
        options["causes"] = {
            (rendered.at[step, n], 0 if separate else n): suture.Cause(cause)
            for (step, n), cause in shape.causes.items()
        }
    return options


def forms_of(shape: Shape) -> list[Form]:
    return [form for form in FORMS if form.wire in shape.wires]


def wanted_steps(shape: Shape, outcome: Outcome):
    return shape.given if outcome.wanted is None else outcome.wanted


@pytest.mark.parametrize(("shape", "form"), CASES)
def test_a_broken_history_becomes_exactly_what_it_should_and_then_it_holds(shape: Shape, form: Form):
    rendered = render(form, shape.given)
    given, before = list(rendered.messages), deepcopy(rendered.messages)

    fixed = suture.repair(rendered.messages, **options_of(shape, form, rendered))

    actual = read(form, fixed.messages)
    expected = bound(expect(form, wanted_steps(shape, shape.outcome_on(form.wire))), actual)
    if form.bundle:  # where message boundaries fall in a group that was taken apart is free
        assert flat(actual) == flat(expected)
    else:
        assert actual == expected

    report = suture.check(fixed.messages, wire=form.wire, tail=shape.options.get("tail", "cancel"))
    again = suture.repair(fixed.messages, wire=form.wire, **shape.options)
    assert report.acceptable, str(report)
    assert again.messages is fixed.messages
    assert not again.changed

    assert rendered.messages == before
    assert all(one is other for one, other in zip(rendered.messages, given, strict=True))
    for message in fixed.messages:  # what did not change is the same object
        equal = [other for other in given if other == message]
        assert not equal or any(other is message for other in equal)


@pytest.mark.parametrize(("shape", "form"), CASES)
def test_the_findings_say_what_was_wrong_and_where(shape: Shape, form: Form):
    """What is bound to be refused is known before it is sent."""
    rendered = render(form, shape.given)
    outcome = shape.outcome_on(form.wire)

    fixed = suture.repair(rendered.messages, **options_of(shape, form, rendered))
    report = suture.check(rendered.messages, wire=form.wire, tail=shape.options.get("tail", "cancel"))
    findings = fixed.report.findings

    found = [(each.problem, each.index, each.call_id) for each in findings if each.problem in PAIRING]
    wanted = [(problem, rendered.at[where], id_) for problem, where, id_ in outcome.found]
    if form.bundle:  # how results that share a message are told to have moved is free
        found = [(problem, id_) for problem, _, id_ in found if problem not in MOVED]
        wanted = [(problem, id_) for problem, _, id_ in wanted if problem not in MOVED]
    else:
        assert outcome.fit <= {each.problem for each in findings}
    assert sorted(found) == sorted(wanted)
    assert all(each.mended and each.rule and each.source and each.done for each in findings)
    assert [each.index for each in findings] == sorted(each.index for each in findings)
    assert [each.content for each in fixed.report.displaced] == list(outcome.displaced)
    assert fixed.unresolved == ()

    assert report.acceptable is not fixed.changed
    assert fixed.changed is (fixed.messages is not rendered.messages)
    if "orphans" not in shape.options:  # which `check` does not take
        assert {(each.problem, each.index, each.call_id) for each in report.findings} == {
            (each.problem, each.index, each.call_id) for each in findings
        }


@pytest.mark.parametrize("shape", HISTORY_SHAPES, ids=str)
def test_the_wire_is_recognised_and_one_message_at_a_time_gives_the_same(shape: Shape):
    """A session that is stored and resumed after every message."""
    for form in forms_of(shape):
        rendered = render(form, shape.given)
        options = options_of(shape, form, rendered)
        fixed = suture.repair(rendered.messages, **options)

        repairer = suture.Repairer(**options)
        for message in rendered.messages:
            repairer.extend([message])

        assert list(repairer.messages) == list(fixed.messages)
        assert repairer.report == fixed.report
        assert repairer.pending == fixed.pending

        del options["wire"]
        recognised = suture.repair(rendered.messages, **options)
        assert recognised.report.wire == form.wire
        assert list(recognised.messages) == list(fixed.messages)


@pytest.mark.parametrize("shape", [shape for shape in HISTORY_SHAPES if "message" in shape.wires], ids=str)
def test_pairing_alone_gives_the_same_events_on_every_wire(shape: Shape):
    """The structural half is the same for all; ids, arguments and merging are fit's."""
    outcome = shape.on.get("message", shape.outcome)
    for form in forms_of(shape):
        if form.wire == "openai-responses":  # set-like
            continue
        rendered = render(form, shape.given)

        fixed = suture.repair(rendered.messages, **options_of(shape, form, rendered), profile="pairing")

        assert flat(read(form, fixed.messages)) == flat(expect(form, wanted_steps(shape, outcome)))
