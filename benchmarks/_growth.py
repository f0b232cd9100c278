"""Item 5: adding one message to a short history and to a long one."""

import gc
import time
from collections.abc import Iterator
from typing import Any

from _histories import Task, history, tasks
from _measure import Goal, Row, Section, Settings, Timings, say

from suture import Repairer

__all__ = ["measure_growth"]

_WIRE = "openai-chat"
_KINDS = ("user message", "call", "result", "answer")


def measure_growth(settings: Settings) -> list[Section]:
    """Measure `Repairer.extend([message])` for each kind of message."""
    short, long = settings.grown
    rows = [row for profile in (_WIRE, "pairing") for row in _measure(profile, settings)]
    notes = (
        f"{settings.twins} repairers of each length take the same message in one timing; lengths take turns.",
        "Two tasks go by, a question, a call, its result, an answer: the first untimed, to warm caches.",
    )
    title = f"5. Repairer.extend by one message: at {long:,} messages over at {short:,} ({_WIRE})"
    return [Section(title, rows, notes)]


def _measure(profile: str, settings: Settings) -> list[Row]:
    short, long = settings.grown
    say(f"Repairer.extend at {short:,} and {long:,} messages, profile {profile}")
    beginning = history(_WIRE, long)
    large = [Repairer(beginning, wire=_WIRE, profile=profile) for _ in range(settings.twins)]
    start = history(_WIRE, short)
    times: dict[str, dict[str, list[float]]] = {kind: {"short": [], "long": []} for kind in _KINDS}
    new = _single_rounds()
    gc.collect()
    gc.freeze()
    try:
        for count in range(settings.rounds[1]):
            small = [Repairer(start, wire=_WIRE, profile=profile) for _ in range(settings.twins)]
            for message in next(new):  # untimed: what was just made is in the caches, the long ones are not
                _extend([*small, *large], message)
            for kind, message in zip(_KINDS, next(new), strict=True):
                turn = [("short", small), ("long", large)]
                for name, repairers in turn if count % 2 else reversed(turn):
                    times[kind][name].append(_extend(repairers, message) / settings.twins)
    finally:
        gc.unfreeze()
    return [
        Timings(times[kind]).row(f"{profile}: {kind}", "long", "short", messages=long, goal=Goal(1.2))
        for kind in _KINDS
    ]


def _single_rounds() -> Iterator[list[Any]]:
    """Yield tasks of four messages: a question, one call, its result, an answer."""
    for task in tasks(seed=8):
        first = task.rounds[0]
        small = Task(task.question, (first._replace(calls=first.calls[:1]),), task.answer)
        yield history(_WIRE, len(_KINDS), iter((small, task)))


def _extend(repairers: list[Repairer[Any]], message: Any) -> float:
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        for repairer in repairers:
            repairer.extend([message])
        return time.process_time() - start
    finally:
        gc.enable()
