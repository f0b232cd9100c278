"""Every small history there is, over an alphabet of roles, ids and parallel calls: acceptable afterwards."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

import suture
from tests.histories import Step, flat, write
from tests.validators import anthropic_complaint, chat_complaint

ALPHABET: tuple[Step, ...] = (
    ("user", "u"),
    ("say", "s"),
    ("say", ""),
    ("turn", [("a", "f", "{}")]),
    ("turn", [("b", "f", "{}")]),
    ("turn", [("a", "f", "{}"), ("b", "g", "{}")]),
    ("turn", [("a", "f", "{}"), ("a", "f", "{}")]),
    ("turn", [("", "f", "{}")]),
    ("result", "a", "", "r"),
    ("result", "b", "", "r"),
    ("result", "", "", "r"),
    ("result", "z", "", "r"),
)
VALIDATORS: dict[str, Callable[[list[Any]], str]] = {"openai-chat": chat_complaint, "anthropic": anthropic_complaint}


def history(symbols: tuple[Step, ...]) -> list[Step]:
    """Return `symbols` with each result's text made its own, so that none can be mistaken for another."""
    return [(*step[:3], f"r{place}") if step[0] == "result" else step for place, step in enumerate(symbols)]


def complaint(wire: str, steps: list[Step]) -> str:
    """Return what is wrong with the repair of `steps`, or nothing."""
    messages = write(wire, steps)
    before = repr(messages)
    fixed = suture.repair(messages, wire=wire)
    if repr(messages) != before:
        return "the input changed"
    if fixed.unresolved or not suture.check(fixed.messages, wire=wire).acceptable:
        return f"not acceptable: {suture.check(fixed.messages, wire=wire)}"
    if said := VALIDATORS[wire](list(fixed.messages)):
        return said
    if suture.repair(fixed.messages, wire=wire).messages is not fixed.messages:
        return "not idempotent"
    if not fixed.changed and fixed.messages is not messages:
        return "unchanged, yet another list"
    told = str(flat(fixed.messages)) + str([item.content for item in fixed.report.displaced])
    lost = [step[3] for step in steps if step[0] == "result" and step[3] not in told]
    if lost:
        return f"lost {lost}"
    if len([atom for atom in flat(messages) if atom[0] == "call"]) != len(
        [atom for atom in flat(fixed.messages) if atom[0] == "call"]
    ):
        return "a call was lost or invented"
    grown = suture.Repairer[Any](wire=wire)
    for message in messages:
        grown.extend([message])
    if grown.messages != fixed.messages or grown.report != fixed.report:
        return "grown one by one it differs"
    return ""


def sweep(wire: str, length: int) -> int:
    """Check every history of exactly `length` steps; return how many there were."""
    count = 0
    for symbols in product(ALPHABET, repeat=length):
        steps = history(symbols)
        said = complaint(wire, steps)
        assert not said, f"{steps}: {said}"
        count += 1
    return count


@pytest.mark.parametrize("wire", VALIDATORS)
def test_every_history_of_up_to_four_messages_is_acceptable_after_repair(wire: str, capsys: pytest.CaptureFixture[str]) -> None:
    """All of them, with an independent validator for each wire."""
    counts = [sweep(wire, length) for length in range(5)]
    with capsys.disabled():
        print(f"\n{wire}: {sum(counts)} histories of up to 4 messages, all acceptable after repair")
    assert counts[4] == len(ALPHABET) ** 4


@pytest.mark.soak
@pytest.mark.parametrize("wire", VALIDATORS)
def test_every_history_of_five_messages_is_acceptable_after_repair(wire: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The same, one message further."""
    count = sweep(wire, 5)
    with capsys.disabled():
        print(f"\n{wire}: {count} histories of 5 messages, all acceptable after repair")
    assert count == len(ALPHABET) ** 5
