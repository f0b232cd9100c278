"""All policies at all limits."""

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ._corpus import Recording
from ._meter import Bill, replay
from ._policies import OURS, POLICIES
from ._scale import Scale
from ._summaries import REST, Make

__all__ = ["LIMITS", "Outcome", "Rivalry", "replay_all"]

LIMITS = (8_000, 16_000, 32_000)
_DRAWS = 2_000


class Rivalry(NamedTuple):
    """How the cost of ours differs from that of another policy: in all, and run by run."""

    limit: int
    other: str
    difference: float
    low: float
    high: float
    cheaper: int
    equal: int
    dearer: int


class Outcome(NamedTuple):
    """What everything costs."""

    runs: int
    bills: Mapping[tuple[str, int], Bill]

    @property
    def names(self) -> list[str]:
        """The policies, in the order of the tables."""
        return list(dict.fromkeys(name for name, _ in self.bills))

    @property
    def requests(self) -> int:
        return next(iter(self.bills.values())).requests

    def cheapest_other(self, limit: int) -> str:
        """Return which of the four, other than ours, costs least."""
        others = [name for name in POLICIES if name != OURS]
        return min(others, key=lambda name: self.bills[name, limit].cost)

    def rivals(self) -> Iterator[Rivalry]:
        """Yield how ours fares against each of the four, at each limit."""
        for limit in LIMITS:
            for other in POLICIES:
                if other != OURS:
                    yield _rivalry(limit, other, self.bills[OURS, limit], self.bills[other, limit])


def replay_all(recordings: Sequence[Recording], others: Mapping[str, Make] | None = None) -> Outcome:
    """Replay all runs with every policy, at every limit; `others` are those of other frameworks."""
    scale = Scale()
    everyone = {**POLICIES, **REST, **(others or {})}
    bills = {
        (name, limit): replay(recordings, make, limit, scale) for limit in LIMITS for name, make in everyone.items()
    }
    return Outcome(len(recordings), bills)


def _rivalry(limit: int, other: str, ours: Bill, theirs: Bill) -> Rivalry:
    pairs = [(cost, theirs.by_run[run]) for run, cost in ours.by_run.items()]
    cheaper = sum(mine < its - 1e-6 for mine, its in pairs)
    dearer = sum(mine > its + 1e-6 for mine, its in pairs)
    low, high = _interval(pairs)
    return Rivalry(limit, other, ours.cost / theirs.cost - 1, low, high, cheaper, len(pairs) - cheaper - dearer, dearer)


def _interval(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    """Return between what the difference lies in 95 of 100 draws of as many runs, with replacement."""
    chance = random.Random(0)
    found: list[float] = []
    for _ in range(_DRAWS):
        drawn = chance.choices(pairs, k=len(pairs))
        found.append(sum(mine for mine, _ in drawn) / sum(its for _, its in drawn) - 1)
    found.sort()
    return found[_DRAWS // 40], found[-_DRAWS // 40]
