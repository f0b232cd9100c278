"""Every small history there is, over an alphabet of roles, ids and parallel calls: acceptable afterwards."""

from collections.abc import Callable, Sequence
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
VALIDATORS: dict[str, Callable[[list[Any]], str]] = {
    "openai-chat": chat_complaint,
    "anthropic": anthropic_complaint,
}


def history(symbols: tuple[Step, ...]) -> list[Step]:
    """Return `symbols` with each result's text made its own, so that none can be mistaken for another."""
    return [(*step[:3], f"r{place}") if step[0] == "result" else step for place, step in enumerate(symbols)]


def complaint(wire: str, steps: list[Step]) -> str:
    """Return what is wrong with the repair of `steps`, or nothing."""
    messages = write(wire, steps)
    before = repr(messages)
    fixed = suture.repair(messages, wire=wire)
    told = str(flat(fixed.messages)) + str([item.content for item in fixed.report.displaced])
    grown = suture.Repairer[Any](wire=wire)
    for message in messages:
        grown.extend([message])
    claims = {
        "the input changed": repr(messages) != before,
        "not acceptable": bool(fixed.unresolved) or not suture.check(fixed.messages, wire=wire).acceptable,
        "refused by the independent validator": bool(VALIDATORS[wire](list(fixed.messages))),
        "not idempotent": suture.repair(fixed.messages, wire=wire).messages is not fixed.messages,
        "unchanged, yet another list": not fixed.changed and fixed.messages is not messages,
        "a result was lost": any(step[3] not in told for step in steps if step[0] == "result"),
        "a call was lost or invented": calls_in(messages) != calls_in(fixed.messages),
        "grown one by one it differs": grown.messages != fixed.messages or grown.report != fixed.report,
    }
    return ", ".join(claim for claim, holds in claims.items() if holds)


def calls_in(messages: Sequence[Any]) -> int:
    """Return how many calls a history holds."""
    return sum(atom[0] == "call" for atom in flat(messages))


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
def test_every_history_of_up_to_four_messages_is_acceptable_after_repair(
    wire: str, covered: Callable[[str], None]
) -> None:
    """All of them, with an independent validator for each wire."""
    counts = [sweep(wire, length) for length in range(5)]
    covered(f"{wire}: {sum(counts)} histories of up to 4 messages, all acceptable after repair")
    assert counts[4] == len(ALPHABET) ** 4


@pytest.mark.soak
@pytest.mark.parametrize("wire", VALIDATORS)
def test_every_history_of_five_messages_is_acceptable_after_repair(wire: str, covered: Callable[[str], None]) -> None:
    """The same, one message further."""
    count = sweep(wire, 5)
    covered(f"{wire}: {count} histories of 5 messages, all acceptable after repair")
    assert count == len(ALPHABET) ** 5
