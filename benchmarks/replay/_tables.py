"""The figures as tables: for a terminal, and for a page."""

from collections.abc import Sequence
from typing import NamedTuple

from ._meter import Bill
from ._outcome import LIMITS, Outcome
from ._policies import POLICIES

__all__ = ["Table", "caches_table", "costs_table", "rivals_table"]

_NOTHING = next(iter(POLICIES))


class Table(NamedTuple):
    """Rows of text under a head. The first two columns are words, all others figures."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """Return it as Markdown."""
        rule = ["---" if place < 2 else "---:" for place in range(len(self.head))]
        lines = [f"| {' | '.join(row)} |\n" for row in (self.head, *self.rows)]
        return "".join([lines[0], f"|{'|'.join(rule)}|\n", *lines[1:]])

    def lines(self) -> list[str]:
        """Return it as lines for a terminal."""
        widths = [max(len(row[place]) for row in (self.head, *self.rows)) for place in range(len(self.head))]
        lines: list[str] = []
        for count, row in enumerate((self.head, *self.rows)):
            if count > 1 and row[0] != self.rows[count - 2][0]:
                lines.append("")
            cells = [
                cell.ljust(width) if place < 2 else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  ".join(cells).rstrip())
        return lines


def costs_table(outcome: Outcome) -> Table:
    """Return what each policy costs where any prefix is read from the cache, and without a cache."""
    head = ("limit", "policy", "cost", "of none", "sent", "hits", "mean", "no cache", "of none", "over", "avoidable")
    rows: list[tuple[str, ...]] = []
    for limit, name, bill, nothing in _bills(outcome):
        rows.append(
            (
                _kilo(limit),
                name,
                _kilo(bill.cost),
                _of(bill.cost, nothing.cost),
                _kilo(bill.sent),
                f"{bill.hits:.1%}",
                f"{bill.mean_hits:.1%}",
                _kilo(bill.fresh_cost),
                _of(bill.fresh_cost, nothing.fresh_cost),
                f"{bill.over:,}",
                f"{bill.avoidable:,}",
            )
        )
    return Table(head, rows)


def caches_table(outcome: Outcome) -> Table:
    """Return what each policy costs with caches that are hit only at breakpoints."""
    head = ("limit", "policy", "any prefix", "of none", "breakpoints", "of none", "one more", "of none", "breaks")
    rows: list[tuple[str, ...]] = []
    for limit, name, bill, nothing in _bills(outcome):
        rows.append(
            (
                _kilo(limit),
                name,
                _kilo(bill.cost),
                _of(bill.cost, nothing.cost),
                _kilo(bill.strict_cost),
                _of(bill.strict_cost, nothing.strict_cost),
                _kilo(bill.strict_more_cost),
                _of(bill.strict_more_cost, nothing.strict_more_cost),
                f"{bill.breaks:,}",
            )
        )
    return Table(head, rows)


def rivals_table(outcome: Outcome) -> Table:
    """Return how ours differs from each of the others, over all runs and run by run."""
    head = ("limit", "ours against", "difference", "95 % of draws", "runs cheaper", "equal", "dearer")
    rows = [
        (
            _kilo(one.limit),
            one.other,
            f"{one.difference:+.1%}",
            f"{one.low:+.1%} to {one.high:+.1%}",
            str(one.cheaper),
            str(one.equal),
            str(one.dearer),
        )
        for one in outcome.rivals()
    ]
    return Table(head, rows)


def _bills(outcome: Outcome) -> list[tuple[int, str, Bill, Bill]]:
    bills = outcome.bills
    return [(limit, name, bills[name, limit], bills[_NOTHING, limit]) for limit in LIMITS for name in outcome.names]


def _kilo(number: float) -> str:
    return f"{number / 1000:,.0f}k"


def _of(part: float, whole: float) -> str:
    return f"{part / whole:.1%}"
