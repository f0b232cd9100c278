"""Asking the contestants in turn, and the table that comes of it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from _measure import Goal, Row, Section, Settings, Timings, say

from loops._contest import NOOPS, WINDOW
from loops._contestants import OURS, Contestant, Failed, Sample, contestants

__all__ = ["measure_agents"]

_FLOOR = "hand-written"
_WIRES = ("message", "openai-chat")
_GOALS = (Goal(10, at_least=True), Goal(20, at_least=True))
"""How many times the cheapest peer's step should cost ours, in a short run and in a long one."""
_FLAT = Goal(1.2)


class _Entry(NamedTuple):
    """Who is asked, and for what."""

    who: str
    variant: str

    @property
    def name(self) -> str:
        return self.variant if self.who == OURS else self.who


class _Results:
    """The samples of some entries that took turns, each with the same number of steps."""

    def __init__(self, steps: int, samples: dict[_Entry, list[Sample]]) -> None:
        self.steps = steps
        self.messages = 2 * steps + 2  # the question, a call and its result for each step, the answer
        self.samples = samples
        self.times = Timings({entry.name: [sample.step for sample in taken] for entry, taken in samples.items()})

    def flatness(self, entry: _Entry) -> Row:
        taken = self.samples[entry]
        ends = {"last": [sample.last for sample in taken], "first": [sample.first for sample in taken]}
        what = f"{self.steps:,} steps, {'ours: ' if entry.who == OURS else ''}{entry.name}"
        goal = _FLAT if entry.who == OURS else None
        return Timings(ends).row(what, "last", "first", messages=self.messages, goal=goal)


class _Field:
    """All contestants, asked in turn."""

    def __init__(self, running: dict[str, Contestant]) -> None:
        self.running = running
        self._warm: set[_Entry] = set()

    def contest(self, steps: int, entries: Sequence[_Entry], rounds: int) -> _Results:
        say(f"agents: {steps:,} steps, {'; '.join(entry.name for entry in entries)}")
        for entry in entries:
            if entry not in self._warm:
                self.running[entry.who].run(entry.variant, min(steps, 100))
                self._warm.add(entry)
        samples: dict[_Entry, list[Sample]] = {entry: [] for entry in entries}
        for count in range(rounds):
            for place in range(len(entries)):
                entry = entries[(count + place) % len(entries)]
                samples[entry].append(self.running[entry.who].run(entry.variant, steps))
        return _Results(steps, samples)


def measure_agents(settings: Settings) -> list[Section]:
    """Measure our agent against the others, against a bare loop and against itself."""
    try:
        with contestants() as (running, absent):
            return _measure(_Field(running), absent, settings)
    except Failed as failure:
        raise SystemExit(str(failure)) from None


def _measure(field: _Field, absent: list[str], settings: Settings) -> list[Section]:
    peers = [name for name in field.running if name not in (OURS, _FLOOR)]
    with_noops = [_Entry(peer, "noops") for peer in peers]
    ours = [_Entry(OURS, f"{wire}, noops") for wire in _WIRES]
    bare = [_Entry(OURS, "message, bare"), *(_Entry(peer, "bare") for peer in peers)]
    reading = [_Entry(OURS, f"{wire}, reading") for wire in _WIRES]
    extras = [_Entry(OURS, f"{wire}, {kind}") for wire in _WIRES for kind in ("events", "journal")]
    alone = [_Entry(_FLOOR, "bare"), bare[0], *ours, *reading, *extras]
    *usual, longest = settings.steps
    rounds = settings.runs
    contests = [field.contest(steps, [*ours, *with_noops], rounds) for steps in usual]
    bares = [field.contest(steps, bare, rounds) for steps in usual]
    selves = [field.contest(steps, alone, 3 * rounds) for steps in usual]
    long = field.contest(longest, [*ours, *extras], rounds)
    versions = ", ".join(f"{name} {field.running[name].version}" for name in peers)
    return [
        _against_peers(contests, bares, [*absent, f"Peers: {versions}."] if peers else absent),
        _against_floor(selves),
        _flatness([selves[-1], long, contests[-1]]),
    ]


def _against_peers(contests: list[_Results], bares: list[_Results], said: list[str]) -> Section:
    rows: list[Row] = []
    for results, goal in zip(contests, _GOALS, strict=True):
        peers = _cheapest_first(results)
        for wire in _WIRES:
            rows += [
                results.times.row(
                    f"{results.steps:,} steps, {wire}",
                    f"{wire}, noops",
                    peer,
                    messages=results.messages,
                    goal=goal if peer == peers[0] else None,
                    speed=True,
                )
                for peer in peers
            ]
    for results in bares:
        rows += [
            results.times.row(
                f"{results.steps:,} steps, message, bare",
                "message, bare",
                peer,
                messages=results.messages,
                speed=True,
            )
            for peer in _cheapest_first(results)
        ]
    notes = (
        *said,
        f"CPU of one step: a model turn with one call, and the tool's run. {NOOPS} middlewares do nothing around both;",
        "ours has PatchToolCalls as well. The goal is for the cheapest peer. `bare`: no middlewares, no goal.",
    )
    return Section("7. An agent's step, against other agents (ratio: its time over ours)", rows, notes)


def _cheapest_first(results: _Results) -> list[str]:
    peers = [entry.name for entry in results.samples if entry.who != OURS]
    return sorted(peers, key=results.times.best)


def _against_floor(selves: list[_Results]) -> Section:
    rows: list[Row] = []
    for results in selves:
        for entry in results.samples:
            if entry.who == OURS:
                wire, _, kind = entry.variant.partition(", ")
                plain = kind in ("bare", "noops")
                what = f"{results.steps:,} steps, {entry.variant}"
                other = _FLOOR if plain else f"{wire}, noops"
                row = results.times.row(what, entry.name, other, messages=results.messages)
                rows.append(row if plain else replace(row, against="noops"))
    notes = (
        "The hand-written loop checks, repairs, reports and limits nothing, and has no middlewares.",
        f"`noops`: PatchToolCalls and {NOOPS} middlewares that do nothing. `reading`: they also see what passes.",
        "`events`: someone reads all events. `journal`: all is written to SQLite, in a file.",
    )
    return Section("8. An agent's step, against a hand-written loop and against itself", rows, notes)


def _flatness(results: list[_Results]) -> Section:
    seen: set[tuple[int, _Entry]] = set()
    rows: list[Row] = []
    for one in results:
        for entry in one.samples:
            if (one.steps, entry) not in seen:
                seen.add((one.steps, entry))
                rows.append(one.flatness(entry))
    notes = ("A peer's rows have no goal: they are there to compare.",)
    return Section(f"9. An agent's last {WINDOW} steps over its first {WINDOW}", rows, notes)
