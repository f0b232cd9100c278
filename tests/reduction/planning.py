"""How these tests plan: a threshold of nothing, one round kept, files below `/r`; and what they read from a plan."""

from typing import Any

import msgspec
import pytest

import suture.reduction
from suture.reduction import Plan
from tests.reduction.rounds import FOREIGN, NATIVE, WIRES

on_each_wire = pytest.mark.parametrize("wire", WIRES)
on_native_wires = pytest.mark.parametrize("wire", NATIVE)
on_foreign_wires = pytest.mark.parametrize("wire", FOREIGN)


def planned(wire: str, messages: Any, **choices: Any) -> Plan[Any]:
    """Plan with settings under which everything but the last round is cleared."""
    settings = {"root_dir": "/r", "max_tokens_for_clear": 0, "clear_retention_suffix_limit": 1, **choices}
    return suture.reduction.plan(messages, wire=wire, **settings)


def saved(plan: Plan[Any]) -> dict[str, Any]:
    """Return what the plan saves, by path; no path twice."""
    files = {save.path: save.content for save in plan.saves}
    assert len(files) == len(plan.saves), [save.path for save in plan.saves]
    return files


def cleared(plan: Plan[Any]) -> list[str]:
    """Return the ids of the calls whose results the plan clears, in order."""
    return [change.call_id for change in plan.changes if change.action == "clear"]


def letters(thing: Any) -> int:
    """Return how many characters all texts in `thing` have, those under `extra` left out."""
    if isinstance(thing, str | bytes):
        return len(thing)
    if isinstance(thing, dict):
        return sum(letters(value) for key, value in thing.items() if key != "extra")
    if isinstance(thing, list | tuple):
        return sum(letters(value) for value in thing)
    return letters(msgspec.to_builtins(thing)) if isinstance(thing, msgspec.Struct) else 0


class Letters:
    """A counter whose numbers can be worked out by hand: one token for each character. It remembers its questions."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def count(self, message: Any) -> int:
        self.asked.append(message)
        return letters(message)
