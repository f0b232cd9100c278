"""Item 15: what a journal costs a step, in CPU and on the disk, beside two peers; and what a fork costs."""

import asyncio
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from _measure import Goal, Row, Section, Settings, Timings, say
from _program import Failed, guests_python
from loops._contestants import Contestant, Sample

from suture.stores import SQLiteStore

__all__ = ["measure_journals"]

_PROGRAM = Path(__file__).parent / "journal_steps.py"
_OURS = "ours"
_PEERS = {"openai-agents": "openai-agents' SQLiteSession", "langgraph": "LangGraph's AsyncSqliteSaver"}
_FORKS = 50
_STEP, _DISK, _FLAT = Goal(0.2, unit=" ms"), Goal(200, unit=" kB"), Goal(1.25)
_LESS = Goal(20, at_least=True)
_FORK_DISK, _FORK_TIME = Goal(1, unit=" kB"), Goal(1, unit=" ms")


def measure_journals(settings: Settings) -> list[Section]:
    """Measure steps with a journal and without one, and forks."""
    title = "15. A journal: what it adds to a step (ratio: a peer's over ours)"
    rows, notes = _measure_steps(settings)
    return [Section(title, [*rows, *_measure_forks(settings)], notes)]


def _measure_steps(settings: Settings) -> tuple[list[Row], tuple[str, ...]]:
    python, steps = guests_python(), settings.steps[1]
    if python is None:
        return [Row(what="guests: not installed")], ()
    kinds = (_OURS, *_PEERS)
    samples: dict[str, list[Sample]] = {f"{kind}|{way}": [] for kind in kinds for way in ("with", "without")}
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        say(f"journals: {steps} steps")
        try:
            program = Contestant("journals", python, _PROGRAM, stack, directory)
            for _ in range(min(settings.runs, 3)):  # a peer's run takes long
                for variant, taken in samples.items():
                    taken.append(program.run(variant, steps))
        except Failed:  # what is installed is the newest release, which may not be what was written for
            return [Row(what="journals: fails")], ()
        size = {kind: max(file.stat().st_size for file in Path(directory).glob(f"{kind}-*.db")) / 1e3 for kind in kinds}
    best = {name: min(each.step for each in taken) * 1e3 for name, taken in samples.items()}
    added = {kind: best[f"{kind}|with"] - best[f"{kind}|without"] for kind in kinds}
    ours, calls = added[_OURS], 2 * steps + 2
    parts = {
        "last": [each.last for each in samples["ours|with"]],
        "first": [each.first for each in samples["ours|with"]],
    }
    rows = [
        Row(what="CPU of a step", messages=calls, ours=ours, goal=str(_STEP), met=_STEP.is_met(ours)),
        Row(what=f"on the disk: {size[_OURS]:.0f} kB", messages=calls, goal=str(_DISK), met=_DISK.is_met(size[_OURS])),
        Timings(parts).row("the last 20 steps", "last", "first", messages=calls, goal=_FLAT),
    ]
    for kind in _PEERS:
        for what, ratio, other in (("CPU", added[kind] / ours, added[kind]), ("disk", size[kind] / size[_OURS], None)):
            told = f"{kind}: {what}" if other is not None else f"{kind}: {what}, {size[kind]:,.0f} kB"
            goal, met = str(_LESS), _LESS.is_met(ratio)
            mine = ours if other is not None else None
            rows.append(
                Row(what=told, messages=calls, ours=mine, against=kind, other=other, ratio=ratio, goal=goal, met=met)
            )
    notes = (
        f"{steps} tiny calls in one run. The cost of a journal is that of a step with one less that of a step without,",
        "over the whole run, with opening and closing the file.",
        f"Peers: {' and '.join(_PEERS.values())}; {program.version}.",
    )
    return rows, notes


def _measure_forks(settings: Settings) -> list[Row]:
    records = settings.grown[1]
    say(f"journals: forks at {records:,} records")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "runs.db"

        async def fill(store: SQLiteStore) -> None:
            await store.append("run", 0, [b"%d" % number * 40 for number in range(records)])

        async def fork(store: SQLiteStore) -> float:
            await store.load("run", records)
            start = time.process_time()
            for number in range(_FORKS):
                await store.fork("run", records, f"fork-{number}")
            return (time.process_time() - start) / _FORKS * 1e3

        with SQLiteStore(path) as store:
            asyncio.run(fill(store))
        before = path.stat().st_size
        with SQLiteStore(path) as store:
            spent = asyncio.run(fork(store))
        size = (path.stat().st_size - before) / _FORKS / 1e3
    return [
        Row(what="a fork", messages=records, ours=spent, goal=str(_FORK_TIME), met=_FORK_TIME.is_met(spent)),
        Row(what=f"a fork: {size:.2f} kB", messages=records, goal=str(_FORK_DISK), met=_FORK_DISK.is_met(size)),
    ]
