"""Item 15: a history with one broken group in its middle, against the same one with that group whole."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from _histories import BLOCKS, WIRES, Call, Round, Task, history, tasks
from _measure import Goal, Row, Section, Settings, interleave, say

import suture

__all__ = ["measure_broken_groups"]

_GOAL = Goal(1.5)
_FAR = 1_000


def measure_broken_groups(settings: Settings) -> list[Section]:
    """Measure every kind of broken group on every wire."""
    most = 60 if settings.seconds else 12  # the shortest rows are the noisiest
    size, brief = settings.sizes[0], replace(settings, rounds=(2, most), seconds=0.3)  # there are many rows
    rows = [row for wire in WIRES for kind in KINDS for row in _measure(wire, kind, size, brief)]
    notes = (
        f"`far`: {_FAR:,} messages lie between. `repair` with the wire's own profile; what that accepts is left out.",
    )
    return [Section("15. One broken group in the middle of a history, against the same one whole", rows, notes)]


def _measure(wire: str, kind: str, size: int, settings: Settings) -> list[Row]:
    half, source = size // 4 * 2, tasks()
    before, after = history(wire, half, source), history(wire, half, source)
    valid = [*before, *_Group(wire).write(), *after]
    first, *late = KINDS[kind](_Group(wire))
    broken = [*before, *first, *after[:_FAR], *(late[0] if late else ()), *after[_FAR:]]
    if suture.check(valid, wire=wire).findings:
        raise SystemExit(f"the {wire} history is not valid")
    if not suture.check(broken, wire=wire).findings:
        return []
    say(f"one broken group: {wire}, {kind}")
    work = {
        name: partial(suture.repair, messages, wire=wire) for name, messages in (("broken", broken), ("valid", valid))
    }
    timings = interleave(work, settings)
    return [timings.row(f"{wire}, {kind}", "broken", "valid", messages=len(broken), goal=_GOAL)]


class _Group:
    """A question, a turn of two calls, their results and an answer; and the parts to make a broken one of."""

    def __init__(self, wire: str) -> None:
        self.wire = wire
        letters = Random(5)
        ids = ["call_" + "".join(letters.choices("abcdef0123456789", k=24)) for _ in range(3)]
        self.x, self.y, self.z = [Call(each, "search", "tokens", 5, f"result {each}") for each in ids]
        self.user, self.turn, *_, self.answer = self.write()

    def write(self, *calls: Call, text: str = "", answer: str = "Done.") -> list[Any]:
        return WIRES[self.wire](Task("Go.", (Round(text, calls or (self.x, self.y)),), answer))

    def results(self, *calls: Call) -> list[Any]:
        """Return the messages that carry the results of `calls`."""
        carriers = [self.write(call)[-2] for call in calls]
        field = BLOCKS.get(self.wire)
        if field is None or not carriers:
            return carriers
        return [carriers[0] | {field: [block for carrier in carriers for block in carrier[field]]}]

    def turns(self, *calls: Call) -> list[Any]:
        """Return the messages of a turn with these calls."""
        return [message for message in self.write(*calls)[1:-1] if message not in self.results(*calls)]

    def around(self, *middle: Any) -> list[Any]:
        """Return a question, the turn, these messages and an answer."""
        return [self.user, *self.turns(self.x, self.y), *middle, self.answer]


class _Cut(Call):
    """A call whose arguments were cut off."""

    arguments = "cut"  # pyright: ignore[reportIncompatibleMethodOverride, reportAssignmentType]
    json = '{"query": '  # pyright: ignore[reportIncompatibleMethodOverride, reportAssignmentType]


def _unsigned(group: _Group) -> list[Any]:
    """Return the group with a thought that was cut before its signature, where thoughts are signed."""
    messages = group.write()
    if group.wire == "anthropic":
        messages[1]["content"].insert(0, {"type": "thinking", "thinking": "so"})
    return messages


KINDS: dict[str, Callable[[_Group], list[Any]]] = {
    "lost": lambda g: [g.around(*g.results(g.x))],
    "stray": lambda g: [g.around(*g.results(g.x, g.y, g.z))],
    "stray, alone": lambda g: [[*g.write(), *g.results(g.z)]],
    "adopted": lambda g: [g.around(*g.results(g.x, g.z))],
    "early": lambda g: [[g.user, *g.results(g.x), *g.turns(g.x, g.y), *g.results(g.y), g.answer]],
    "late": lambda g: [[*g.around(*g.results(g.x)), g.user, *g.results(g.y), g.answer]],
    "late, far": lambda g: [g.around(*g.results(g.x)), g.results(g.y)],
    "copy": lambda g: [g.around(*g.results(g.x, g.y, g.y))],
    "copy, far": lambda g: [g.write(), g.results(g.y)],
    "duplicate": lambda g: [g.around(*g.results(g.x, g.y, g.y._replace(result="other")))],
    "duplicate, far": lambda g: [g.write(), g.results(g.y._replace(result="other"))],
    "order": lambda g: [g.around(*g.results(g.y, g.x))],
    "without id": lambda g: [g.around(*g.results(g.x, g.y._replace(id="")))],
    "stray without id": lambda g: [[*g.write(), *g.results(g.z._replace(id=""))]],
    "bad id": lambda g: [g.write(g.x, g.y._replace(id="a b/" * 20))],
    "half an id": lambda g: [
        [g.user, *g.turns(g.x, g.y._replace(id=f"{g.y.id}|fc_1")), *g.results(g.x, g.y), g.answer]
    ],
    "id used before": lambda g: [[*g.write(g.x), *g.write(g.x._replace(result="again"))]],
    "one id twice": lambda g: [g.write(g.x, g.x._replace(result="again"))],
    "bad arguments": lambda g: [g.write(g.x, _Cut(*g.y))],
    "unsigned thinking": lambda g: [_unsigned(g)],
    "no name": lambda g: [g.write(g.x, g.y._replace(name=""))],
    "blank answer": lambda g: [g.write(answer=" ")],
    "half a character": lambda g: [g.write(answer="caf\ud83d")],
    "split turn": lambda g: [[g.user, *g.turns(g.x), *g.turns(g.y), *g.results(g.x, g.y), g.answer]],
    "text between": lambda g: [g.around(*g.results(g.x), g.user, *g.results(g.y))],
}
