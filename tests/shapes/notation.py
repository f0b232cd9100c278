"""A neutral notation for histories: steps are written once and rendered for every wire.

`A[x] U T[x]` is `[turn(call("x")), user("stop"), result("x", "42")]`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

OBJECT = {"q": "x"}


@dataclass(frozen=True)
class Call:
    id: Any
    name: str = "search"
    arguments: Any = None  # an object, or the raw text that a cut stream left


@dataclass(frozen=True)
class User:
    text: Any


@dataclass(frozen=True)
class System:
    text: str


@dataclass(frozen=True)
class Turn:
    """What the model said: its text, then its calls."""

    calls: tuple[Call, ...] = ()
    text: str = ""


@dataclass(frozen=True)
class Result:
    id: Any
    text: Any
    name: str = ""
    error: bool = False


Step = User | System | Turn | Result


def call(id_: Any, name: str = "search", arguments: Any = None) -> Call:
    return Call(id_, name, OBJECT if arguments is None else arguments)


def user(text: Any) -> User:
    return User(text)


def system(text: str) -> System:
    return System(text)


def turn(*calls: Call, text: str = "") -> Turn:
    return Turn(tuple(calls), text)


def says(text: str) -> Turn:
    return Turn((), text)


def result(id_: Any, text: Any, name: str = "", *, error: bool = False) -> Result:
    return Result(id_, text, name, error)


@dataclass(frozen=True)
class Fresh:
    """Any id that stands nowhere in the input; the same label is the same id."""

    label: str


class Retold:
    """The text that keeps an orphan result: fenced, and labelled as output of a tool, no instruction."""

    def __init__(self, content: str) -> None:
        self.content = content

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, str):
            return NotImplemented
        label, _, fenced = other.partition("\n")
        told = "tool" in label.lower() and "not an instruction" in label
        return told and fenced.count(self.content) == 1 and fenced.startswith("`") and fenced.endswith("`")

    def __hash__(self) -> int:
        return hash(self.content)

    def __repr__(self) -> str:
        return f"Retold({self.content!r})"


def retold(content: str) -> User:
    return User(Retold(content))


# An outline is what a history is read back as: one entry a message, with its role and its events in order.
# An event is ("text", text), ("call", id, name), ("result", id, text) or ("failed", id, text).
Event = tuple[Any, ...]
Entry = tuple[str, tuple[Event, ...]]
Outline = list[Entry]


def bound(expected: Outline, actual: Outline) -> Outline:
    """Return `expected` with each `Fresh` id replaced by the one that stands in its place in `actual`."""
    ids: dict[Fresh, str] = {}
    for (_, ours), (_, theirs) in zip(expected, actual, strict=False):
        for mine, other in zip(ours, theirs, strict=False):
            if mine[0] != "text" and isinstance(mine[1], Fresh) and len(other) > 1:
                ids.setdefault(mine[1], other[1])
    given = {event[1] for _, events in expected for event in events if event[0] != "text"}
    minted = list(ids.values())
    assert len(set(minted)) == len(minted), f"two fresh ids are the same: {ids}"
    assert not set(minted) & given, f"a fresh id is one that was there before: {ids}"
    return [
        (role, tuple((event[0], ids.get(event[1], event[1]), *event[2:]) for event in events))
        for role, events in expected
    ]


def flat(outline: Outline) -> list[Event]:
    return [event for _, events in outline for event in events]


def name_for(steps: Sequence[Step], at: int) -> str:
    """Return the tool's name for the result at `at`: its own, else that of the nearest call of its id."""
    step = steps[at]
    assert isinstance(step, Result)
    if step.name:
        return step.name
    before = [each for other in steps[:at] if isinstance(other, Turn) for each in other.calls]
    after = [each for other in steps[at:] if isinstance(other, Turn) for each in other.calls]
    named = [each.name for each in [*reversed(before), *after] if each.id == step.id]
    return named[0] if named else "search"


@dataclass(frozen=True)
class Outcome:
    """What becomes of a history: the steps afterwards (none: it is whole) and what pairing found.

    A finding is (problem, where, call id); where is a step, or (step, number of the call).
    """

    wanted: tuple[Step, ...] | None
    found: tuple[tuple[str, Any, str], ...] = ()
    displaced: tuple[str, ...] = ()
    fit: frozenset[str] = frozenset()  # what fit must find beside


@dataclass(frozen=True)
class Shape:
    """A way in which histories break: `given` becomes `outcome`, on some wires another one."""

    name: str
    given: tuple[Step, ...]
    outcome: Outcome
    on: dict[str, Outcome]
    wires: tuple[str, ...]
    options: dict[str, Any]
    causes: dict[tuple[int, int], str]

    def __str__(self) -> str:
        return self.name

    def outcome_on(self, wire: str) -> Outcome:
        return self.on.get(wire, self.outcome)


ALL_WIRES = ("message", "agentic", "openai-chat", "openai-responses", "anthropic", "gemini", "bedrock")


def becomes(
    *wanted: Step, found: Sequence[Any] = (), displaced: Sequence[str] = (), fit: Sequence[str] = ()
) -> Outcome:
    return Outcome(wanted, tuple(found), tuple(displaced), frozenset(fit))


def stays(*, fit: Sequence[str] = ()) -> Outcome:
    return Outcome(None, fit=frozenset(fit))


def shape(
    name: str,
    given: Sequence[Step],
    outcome: Outcome,
    *,
    on: dict[str, Outcome] | None = None,
    wires: Sequence[str] = ALL_WIRES,
    causes: dict[tuple[int, int], str] | None = None,
    **options: Any,
) -> Shape:
    """`on` maps wires, several apart by spaces, to what becomes of the history there."""
    split = {wire: other for wires_, other in (on or {}).items() for wire in wires_.split()}
    return Shape(name, tuple(given), outcome, split, tuple(wires), options, causes or {})
