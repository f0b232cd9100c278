"""Items 4 and 16: does the cost of a message depend on how long its history is, that of a call on how many there are?

The very same messages are looked at as many short histories and as one. So the work, the memory and its caches
are the same, and only the length of a history differs. With the calls of one turn it is nearly so: each turn has a
question and an answer.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from _histories import WIRES, broken, history, parallel_turn, tasks
from _measure import Goal, Row, Section, Settings, Timings, interleave, say

import suture

__all__ = ["measure_linearity", "measure_parallel_calls"]

_ORDERS = ("in order", "reversed", "shuffled")


def measure_linearity(settings: Settings) -> list[Section]:
    """Measure each wire at two lengths."""
    short, long = settings.sizes
    cases = [(f"{wire}, check", partial(history, wire), partial(suture.check, wire=wire)) for wire in WIRES]
    lossy = ("openai-chat, repair", broken, partial(suture.repair, wire="openai-chat"))
    notes = (
        f"The same {long:,} messages as {long // short} histories of {short:,}, and as one.",
        "`repair` gets histories in which every twentieth result is missing.",
    )
    rows = [_lengths(*case, settings) for case in (*cases, lossy)]
    return [Section("4. Linearity: cost of a message in a long history over that in a short one", rows, notes)]


def measure_parallel_calls(settings: Settings) -> list[Section]:
    """Measure each wire with two numbers of calls in a turn."""
    few, many = settings.parallel
    brief = replace(settings, rounds=(1, 5), seconds=0.3)  # there are many rows, and slow ones where it is not linear
    title = f"16. Repair of one turn of {many:,} parallel calls: cost of a call over that in turns of {few:,}"
    rows = [_calls(*case, brief) for case in product(WIRES, (True, False), _ORDERS)]
    return [Section(title, rows, (f"{many // few} turns against one. The order is that of the results.",))]


def _lengths(
    what: str, make: Callable[[int, Any], list[Any]], look: Callable[[list[Any]], object], settings: Settings
) -> Row:
    short, long = settings.sizes
    say(f"linearity: {what}")
    source = tasks()
    parts = [make(short, source) for _ in range(long // short)]
    whole = [message for part in parts for message in part]
    return _compare(parts, whole, look, settings).row(what, "one", "many", messages=long, goal=Goal(1.2))


def _calls(wire: str, with_ids: bool, order: str, settings: Settings) -> Row:  # noqa: FBT001
    few, many = settings.parallel
    what = f"{wire}, {order}{'' if with_ids else ', no ids'}"
    say(f"parallel calls: {what}")
    parts = [parallel_turn(wire, few, order, with_ids=with_ids) for _ in range(many // few)]
    whole = parallel_turn(wire, many, order, with_ids=with_ids)
    look = partial(suture.repair, wire=wire)
    return _compare(parts, whole, look, settings).row(what, "one", "many", goal=Goal(1.5))


def _compare(
    parts: list[list[Any]], whole: list[Any], look: Callable[[list[Any]], object], settings: Settings
) -> Timings:
    def many() -> None:
        for part in parts:
            look(part)

    return interleave({"one": lambda: look(whole), "many": many}, settings)
