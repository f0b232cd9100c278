"""What every repair must hold, asserted wherever one is made."""

from copy import deepcopy
from typing import Any

import suture


def mended(messages: list[Any], wire: str, **options: Any) -> suture.Repaired[Any]:
    """Repair, and assert that the outcome is acceptable, final, and the input as it was."""
    given, before = list(messages), deepcopy(messages)

    fixed = suture.repair(messages, wire=wire, **options)

    assert messages == before
    assert all(one is other for one, other in zip(messages, given, strict=True))
    assert fixed.changed
    assert not fixed.unresolved, str(fixed.report)
    assert not suture.check(messages, **checking(wire, options)).acceptable
    report = suture.check(fixed.messages, **checking(wire, options))
    assert report.acceptable, str(report)
    assert suture.repair(fixed.messages, wire=wire, **options).messages is fixed.messages
    return fixed


def left_alone(messages: list[Any], wire: str, **options: Any) -> None:
    """Assert that a history is acceptable and comes back as the same list."""
    before = deepcopy(messages)

    fixed = suture.repair(messages, wire=wire, **options)

    assert fixed.messages is messages
    assert messages == before
    assert not fixed.changed
    assert fixed.report.acceptable, str(fixed.report)
    assert suture.check(messages, **checking(wire, options)).acceptable


def unmendable(messages: list[Any], wire: str, problem: str, **options: Any) -> suture.Repaired[Any]:
    """Assert that one thing is left in `unresolved`, and that the history comes back as it is."""
    before = deepcopy(messages)

    fixed = suture.repair(messages, wire=wire, **options)

    assert [each.problem for each in fixed.unresolved] == [problem], str(fixed.report)
    assert not any(each.mended or each.done for each in fixed.unresolved)
    assert list(fixed.messages) == messages == before
    assert not suture.check(fixed.messages, **checking(wire, options)).acceptable
    return fixed


def checking(wire: str, options: dict[str, Any]) -> dict[str, Any]:
    return {"wire": wire} | {name: options[name] for name in ("profile", "tail") if name in options}


def found(fixed: suture.Repaired[Any]) -> list[tuple[str, int]]:
    return [(each.problem, each.index) for each in fixed.report.findings]
