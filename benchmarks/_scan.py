"""Items 1 and 3: the pairing scan and the full check, against a bare pass over the same messages."""

from functools import partial
from typing import Any

from _bare import BARE
from _histories import WIRES, history
from _measure import Goal, Row, Section, Settings, Timings, interleave, say

import suture

__all__ = ["measure_scans"]

_WITH_GOAL = ("message", "agentic", "openai-chat")
_FULL = {"message": "openai-chat", "agentic": "openai-chat"}
"""The profile of the full check where the default one is `pairing`, which looks at no arguments."""
_BARE, _CHECK = "bare pass", "check"


def measure_scans(settings: Settings) -> list[Section]:
    """Measure all wires, each check side by side with the bare pass of its wire."""
    scans: list[Row] = []
    fulls: list[Row] = []
    for wire in WIRES:
        for size in settings.sizes:
            messages = history(wire, size)
            scans.append(_pairing(wire, messages, settings))
            # Where no goal is set, the slow check is measured at one size only, to save time.
            if size == settings.sizes[0] or wire in _WITH_GOAL:
                fulls.append(_full(wire, messages, settings))
    return [
        Section(
            "1. Pairing scan of a valid history: check(messages, wire=…, profile='pairing')",
            scans,
            ("The bare pass reads each role, each call's id and each result's id; it checks nothing.",),
        ),
        Section(
            "3. Full check, arguments parsed: check(messages, wire=…) with the wire's own profile",
            fulls,
            ("Native messages, whose own profile is `pairing`, are checked with `openai-chat`.",),
        ),
    ]


def _pairing(wire: str, messages: list[Any], settings: Settings) -> Row:
    say(f"pairing scan: {wire}, {len(messages):,} messages")
    goal = Goal(3) if wire in _WITH_GOAL else None
    timings = _compare(wire, messages, "pairing", settings)
    return timings.row(wire, _CHECK, _BARE, messages=len(messages), goal=goal)


def _full(wire: str, messages: list[Any], settings: Settings) -> Row:
    say(f"full check: {wire}, {len(messages):,} messages")
    timings = _compare(wire, messages, _FULL.get(wire), settings)
    return timings.row(wire, _CHECK, _BARE, messages=len(messages))


def _compare(wire: str, messages: list[Any], profile: str | None, settings: Settings) -> Timings:
    bare = BARE[wire]
    report = suture.check(messages, wire=wire, profile=profile)
    if report.findings:
        raise SystemExit(f"the {wire} history is not valid: {report.findings[0]}")
    check = partial(suture.check, messages, wire=wire, profile=profile)
    return interleave({_BARE: lambda: bare(messages), _CHECK: check}, settings)
