"""Measuring several contestants side by side, so that only their ratios count.

One round times each contestant once, in turn (A B C, B C A, …), so that whatever slows the machine slows
them all. Time is this process's CPU time. Before each timing the garbage is collected; while it runs the
collector is off, and what existed before the measurement is frozen out of its sight: the same for all.
"""

import gc
import math
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

__all__ = ["Goal", "Row", "Section", "Settings", "Timings", "interleave", "say"]

_LEAST_SAMPLE = 0.002
"""Seconds that a timing takes at least; shorter work is repeated within it."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How much is measured."""

    sizes: tuple[int, int] = (10_000, 100_000)
    """Messages in a history."""
    parallel: tuple[int, int] = (500, 8_000)
    """Calls in one turn."""
    grown: tuple[int, int] = (100, 10_000)
    """Messages in a history before `Repairer.extend` adds one."""
    twins: int = 8
    """Repairers that are extended in one timing."""
    rounds: tuple[int, int] = (3, 40)
    """Fewest and most rounds of a measurement; between them `seconds` decides."""
    seconds: float = 1.2
    starts: int = 15
    """Processes that import the package."""
    steps: tuple[int, int, int] = (100, 400, 5_000)
    """Steps of an agent's run: short, long, and very long for our own."""
    real: int = 400
    """Steps of an agent's run through a real SDK."""
    runs: int = 5
    """Runs of each agent that are counted."""
    replayed: int = 0
    """Recorded runs that are replayed; 0: all."""
    looked: tuple[int, int, int] = (100, 1_000, 10_000)
    """Messages in a history that `ToolReduction` looks at."""
    looks: int = 15
    """Runs in which it does."""
    megabytes: int = 100
    """Output that is truncated."""
    writes: int = 25
    """How often."""
    visits: tuple[int, ...] = (50, 200)
    """Steps of a guest's run."""
    visited: tuple[int, ...] = (50, 1_000)
    """Messages in a history that a guest goes on with, for `stays` steps."""
    stays: int = 10
    returns: int = 25
    """Runs of each of these that are counted."""
    flows: tuple[tuple[int, int], tuple[int, int]] = ((1_000, 20_000), (150, 5_000))
    """Calls of a workflow and the bytes of each: of ours, and of the peer."""


class Goal(NamedTuple):
    """What a number should be."""

    limit: float
    at_least: bool = False
    unit: str = ""

    def is_met(self, number: float) -> bool:
        return number >= self.limit if self.at_least else number <= self.limit

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.limit:g}{self.unit}"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table: two times and what one is of the other."""

    what: str
    messages: int | None = None
    ours: float | None = None
    """Milliseconds of the subject."""
    against: str = ""
    other: float | None = None
    """Milliseconds of what it is compared with."""
    ratio: float | None = None
    middle: float | None = None
    """The ratio once more, as the median over the rounds."""
    rounds: int = 0
    goal: str = ""
    met: bool | None = None


class Section(NamedTuple):
    """Some rows of the table, with a heading and what a reader must know of them."""

    title: str
    rows: list[Row]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Timings:
    """CPU seconds of each contestant, one for each round."""

    times: Mapping[str, list[float]] = field(default_factory=dict)

    @property
    def rounds(self) -> int:
        return len(next(iter(self.times.values()), []))

    def best(self, name: str) -> float:
        return min(self.times[name])

    def ratio(self, name: str, other: str) -> float:
        """Return the best time of `name` over the best of `other`."""
        return self.best(name) / self.best(other)

    def middle(self, name: str, other: str) -> float:
        """Return the median, over the rounds, of the time of `name` over that of `other`."""
        pairs = zip(self.times[name], self.times[other], strict=True)
        return median(one / another for one, another in pairs)

    def row(
        self,
        what: str,
        name: str,
        other: str,
        *,
        messages: int | None = None,
        goal: Goal | None = None,
        speed: bool = False,
    ) -> Row:
        """Return the row of the cost of `name` over that of `other`, or the other way round: its speed."""
        above, below = (other, name) if speed else (name, other)
        ratio = self.ratio(above, below)
        return Row(
            what=what,
            messages=messages,
            ours=self.best(name) * 1e3,
            against=other,
            other=self.best(other) * 1e3,
            ratio=ratio,
            middle=self.middle(above, below),
            rounds=self.rounds,
            goal=str(goal or ""),
            met=None if goal is None else goal.is_met(ratio),
        )


def interleave(contestants: Mapping[str, Callable[[], object]], settings: Settings) -> Timings:
    """Time the contestants in turn, round after round."""
    least, most = settings.rounds
    names = list(contestants)
    gc.collect()
    gc.freeze()
    try:
        loops = _loops(contestants)
        times: dict[str, list[float]] = {name: [] for name in names}
        spent = 0.0
        for count in range(most):
            if count >= least and spent > settings.seconds:
                break
            for place in range(len(names)):
                name = names[(count + place) % len(names)]
                seconds = _time(contestants[name], loops)
                spent += seconds
                times[name].append(seconds / loops)
    finally:
        gc.unfreeze()
    return Timings(times)


def say(what: str) -> None:
    """Show on standard error what is being measured."""
    live = sys.stderr.isatty()
    print(f"\r\x1b[K{what}" if live else what, end="" if live else "\n", file=sys.stderr, flush=True)


def _loops(contestants: Mapping[str, Callable[[], object]]) -> int:
    """Return how often to repeat the work in one timing; each contestant has run once then."""
    fastest = min(_time(work, 1) for work in contestants.values())
    return max(1, math.ceil(_LEAST_SAMPLE / max(fastest, 1e-6)))


def _time(work: Callable[[], object], loops: int) -> float:
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        for _ in range(loops):
            work()
        return time.process_time() - start
    finally:
        gc.enable()
