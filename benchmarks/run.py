"""Measure Suture against bare loops, against peers and against itself; print one table.

python benchmarks/run.py                # what `make bench` does
python benchmarks/run.py --quick        # tiny sizes: shows that it runs, measures nothing
python benchmarks/run.py --json FILE    # the same numbers as data
python benchmarks/run.py --only agents  # a part of it
"""

import argparse
import json
import os
import platform
import sys
import textwrap
import time
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path

from _broken import measure_broken_groups
from _growth import measure_growth
from _imports import measure_imports
from _journals import measure_journals
from _linear import measure_linearity, measure_parallel_calls
from _measure import Row, Section, Settings, say
from _peer import deepagents_version, measure_peer
from _scan import measure_scans
from _temporal import measure_temporal
from guests import measure_guests
from loops import measure_agents, measure_models
from reduction import measure_reduction

_PARTS = {
    "scans": measure_scans,
    "broken": measure_broken_groups,
    "peer": measure_peer,
    "linearity": measure_linearity,
    "parallel": measure_parallel_calls,
    "growth": measure_growth,
    "imports": measure_imports,
    "agents": measure_agents,
    "models": measure_models,
    "reduction": measure_reduction,
    "guests": measure_guests,
    "journal": measure_journals,
    "temporal": measure_temporal,
}
_QUICK = Settings(
    sizes=(200, 600),
    parallel=(20, 40),
    grown=(20, 100),
    twins=2,
    rounds=(2, 3),
    seconds=0.0,
    starts=2,
    steps=(10, 20, 40),
    real=50,
    runs=2,
    replayed=3,
    looked=(20, 40, 80),
    looks=2,
    megabytes=2,
    writes=2,
    visits=(20,),
    visited=(40,),
    stays=5,
    returns=2,
    flows=((20, 2_000), (5, 500)),
)
_HOW = (
    "How: the contestants of a row run in turn (A B C, B C A, …), each round once, within one process; agents "
    "have a process each, and guests one for each framework. Times are the best CPU time of all rounds; `ratio` is "
    "best over best, `median` the median of the rounds' own ratios. Before each timing the garbage is collected, while "
    "it runs the collector is off, and older objects are frozen: the same for all. Items 10 to 12 say what they do "
    "otherwise. Times depend on the machine; only ratios are worth comparing."
)
_COLUMNS = "  {:<40}{:>9}{:>11}{:>11}  {:<15}{:>8}{:>8}{:>8}  {:<9}{}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers here")
    parser.add_argument("--only", nargs="+", choices=_PARTS, metavar="PART", help=f"some of: {', '.join(_PARTS)}")
    given = parser.parse_args(arguments)
    settings = _QUICK if given.quick else Settings()
    start = time.perf_counter()
    sections: list[Section] = []
    for part in given.only or _PARTS:
        sections += _PARTS[part](settings)
    sections.sort(key=lambda section: int(section.title.partition(".")[0]))
    if given.quick:
        sections = [_without_verdicts(section) for section in sections]
    say("")
    about = _about()
    print(f"Suture's benchmarks: {', '.join(f'{name} {value}' for name, value in about.items())}")
    if given.quick:
        print("QUICK: sizes too small to mean anything; there are no verdicts.")
    print(textwrap.fill(_HOW, 118))
    _print(sections)
    goals = [row.met for section in sections for row in section.rows if row.met is not None]
    told = f"{sum(goals)} of {len(goals)} goals met, " if goals else ""
    print(f"\n{told}in {time.perf_counter() - start:.0f} s")
    if given.json is not None:
        _write(given.json, about, settings, sections)
    return 0


def _without_verdicts(section: Section) -> Section:
    return section._replace(rows=[replace(row, met=None) for row in section.rows])


def _about() -> dict[str, str]:
    return {
        "suture": version("suture"),
        "deepagents": deepagents_version() or "(not installed)",
        "Python": platform.python_version(),
        "on": f"{platform.machine()}, {os.cpu_count()} CPUs",
    }


def _print(sections: list[Section]) -> None:
    print()
    print(
        _COLUMNS.format(
            "", "messages", "this ms", "other ms", "other", "ratio", "median", "rounds", "goal", ""
        ).rstrip()
    )
    for section in sections:
        print(f"\n{section.title}")
        for row in section.rows:
            print(_line(row))
        for note in section.notes:
            print(f"    {note}")


def _line(row: Row) -> str:
    verdict = {None: "", True: "met", False: "MISSED"}[row.met]
    return _COLUMNS.format(
        row.what,
        f"{row.messages:,}" if row.messages else "",
        _milliseconds(row.ours),
        _milliseconds(row.other),
        row.against,
        f"{row.ratio:.2f}" if row.ratio is not None else "",
        f"{row.middle:.2f}" if row.middle is not None else "",
        row.rounds or "",
        row.goal,
        verdict,
    ).rstrip()


def _milliseconds(number: float | None) -> str:
    if number is None:
        return ""
    return f"{number:.4f}" if number < 0.1 else f"{number:.2f}" if number < 100 else f"{number:.0f}"


def _write(file: Path, about: dict[str, str], settings: Settings, sections: list[Section]) -> None:
    data = {
        "about": about,
        "settings": asdict(settings),
        "sections": [
            {"title": section.title, "notes": section.notes, "rows": [asdict(row) for row in section.rows]}
            for section in sections
        ],
    }
    file.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
