"""Item 4: does the cost of a message depend on how long its history is?

The very same messages are checked as many short histories, as fewer long ones, and as one. So the work, the
memory and its caches are the same, and only the length of a history differs.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from _histories import broken, history, tasks
from _measure import Goal, Section, Settings, interleave, say

import suture

__all__ = ["measure_linearity"]


class _Case(NamedTuple):
    what: str
    make: Callable[[int, Any], list[Any]]
    run: Callable[[list[Any]], object]
    slow: bool = False
    """The middle length is left out, to save time."""


_CASES = (
    _Case(
        "message, pairing",
        lambda length, source: history("message", length, source),
        lambda messages: suture.check(messages, wire="message", profile="pairing"),
    ),
    _Case(
        "agentic, pairing",
        lambda length, source: history("agentic", length, source),
        lambda messages: suture.check(messages, wire="agentic", profile="pairing"),
    ),
    _Case(
        "openai-chat, pairing",
        lambda length, source: history("openai-chat", length, source),
        lambda messages: suture.check(messages, wire="openai-chat", profile="pairing"),
    ),
    _Case(
        "openai-chat, full",
        lambda length, source: history("openai-chat", length, source),
        lambda messages: suture.check(messages, wire="openai-chat"),
        slow=True,
    ),
    _Case(
        "openai-chat, repair",
        broken,
        lambda messages: suture.repair(messages, wire="openai-chat"),
        slow=True,
    ),
)


def measure_linearity(settings: Settings) -> list[Section]:
    """Measure each case at three lengths, the slow ones at two."""
    short, middle, long = settings.linear
    rows = []
    for case in _CASES:
        say(f"linearity: {case.what}")
        longer = (long,) if case.slow else (middle, long)
        source = tasks()
        parts = [case.make(short, source) for _ in range(long // short)]
        cuts = {size: _join(parts, size // short) for size in (short, *longer)}
        timings = interleave(
            {f"{len(cut)} x {size:,}": _each(case.run, cut) for size, cut in cuts.items()},
            settings,
        )
        for size in longer:
            this, other = f"{long // size} x {size:,}", f"{long // short} x {short:,}"
            what = f"{case.what}, {this}"
            rows.append(timings.row(what, this, other, messages=long, goal=Goal(1.2)))
    many = f"{long // short} histories of {short:,}, {long // middle} of {middle:,} and one of {long:,}"
    notes = (
        f"The same {long:,} messages as {many}.",
        "`repair` gets histories in which every twentieth result is missing.",
    )
    return [Section("4. Linearity: cost of a message in a long history over that in a short one", rows, notes)]


def _join(parts: list[list[Any]], count: int) -> list[list[Any]]:
    """Return the messages of `parts` as histories of `count` parts each."""
    return [
        [message for part in parts[start : start + count] for message in part] for start in range(0, len(parts), count)
    ]


def _each(run: Callable[[list[Any]], object], histories: list[list[Any]]) -> Callable[[], None]:
    def work() -> None:
        for messages in histories:
            run(messages)

    return work
