"""Items 1 and 3: a valid history against a bare pass."""

from functools import partial
from typing import Any

from _bare import BARE
from _histories import FOREIGN, NATIVE, history, tasks
from _measure import Goal, Row, Section, Settings, interleave, say

import suture

__all__ = ["measure_scans"]

_BARE = "bare pass"
_PAIRING, _FULL = Goal(2), Goal(5)
_LOOKS = {"check": suture.check, "repair": suture.repair}


def measure_scans(settings: Settings) -> list[Section]:
    """Measure all wires, each look side by side with the bare pass of its wire."""
    size = settings.sizes[0]
    plain = [row for wire in FOREIGN for row in _valid(wire, history(wire, size), settings)]
    texts = [
        row for wire in FOREIGN for row in _valid(wire, history(wire, size, tasks(foreign=1)), settings, ", not ASCII")
    ]
    pairing = [row for size in settings.sizes for wire in NATIVE for row in _valid(wire, history(wire, size), settings)]
    return [
        Section(
            "1. A valid history of native messages, whose own profile is `pairing`",
            pairing,
            ("The bare pass reads each role and pairs each result with its call by a dict; it looks at nothing else.",),
        ),
        Section(
            "3. A valid history of plain dicts, with the provider's own profile",
            [*plain, *texts],
            ("`not ASCII`: every text holds letters beyond ASCII, otherwise one in twelve does.",),
        ),
    ]


def _valid(wire: str, messages: list[Any], settings: Settings, variant: str = "") -> list[Row]:
    say(f"valid history: {wire}{variant}, {len(messages):,} messages")
    report = suture.check(messages, wire=wire)
    if report.findings or not BARE[wire](messages):
        raise SystemExit(f"the {wire} history is not valid: {report.findings}")
    looks = {name: partial(look, messages, wire=wire) for name, look in _LOOKS.items()}
    timings = interleave({_BARE: partial(BARE[wire], messages), **looks}, settings)
    goal = _PAIRING if wire in NATIVE else _FULL
    return [timings.row(f"{wire}, {name}{variant}", name, _BARE, messages=len(messages), goal=goal) for name in looks]
