"""The page in docs/ that shows the figures: what stands between its marks is made here."""

import re
from pathlib import Path

from ._outcome import Outcome
from ._tables import caches_table, costs_table, rivals_table

__all__ = ["PAGE", "PICTURE", "filled"]

_DOCS = Path(__file__).parents[2] / "docs"
PAGE = _DOCS / "reduction-measured.md"
PICTURE = _DOCS / "reduction-measured.svg"
_TABLES = {"costs": costs_table, "caches": caches_table, "rivals": rivals_table}


def filled(page: str, outcome: Outcome) -> str:
    """Return the page with the tables as they are now.

    A table stands between `<!-- table: NAME -->` and `<!-- end -->`.
    """
    for name, make in _TABLES.items():
        mark = f"<!-- table: {name} -->"
        pattern = re.compile(rf"{re.escape(mark)}\n.*?<!-- end -->", re.DOTALL)
        if len(pattern.findall(page)) != 1:
            raise SystemExit(f"{PAGE.name} must have one place for the table: {mark}")
        text = f"{mark}\n\n{make(outcome).markdown()}\n<!-- end -->"
        page = pattern.sub(lambda _, text=text: text, page)
    return page
