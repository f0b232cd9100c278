"""What the tests of placeholders share: histories with missing results, and the results after a repair."""

from typing import Any

import suture
from tests.shapes.notation import Step, call, flat, turn, user
from tests.shapes.wires import read, render

GO = user("go")
X = turn(call("x"))
XY = turn(call("x"), call("y", "fetch"))


def results(wire: str, messages: Any) -> list[tuple[str, str]]:
    return [(event[1], event[2]) for event in flat(read(wire, messages)) if event[0] in {"result", "failed"}]


def repaired(wire: str, steps: list[Step], **options: Any) -> list[tuple[str, str]]:
    return results(wire, suture.repair(render(wire, steps).messages, wire=wire, **options).messages)
