"""Rounds: a turn with tool calls and the results that belong to it, and what is already known of them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from suture.messages import TextPart
from suture.reduction._texts import is_cleared_text, named_path
from suture.reduction._values import Ledger, Saved
from suture.repair import Assignment, Turn, assign
from suture.wires import Call, Result, Wire

__all__ = [
    "PROCESSED",
    "SAVED",
    "Answer",
    "Round",
    "is_done",
    "mark_saved",
    "named_paths",
    "read_saved",
    "round_digest",
    "rounds_of",
    "saved_of",
]

PROCESSED = "_reduction_mw_processed"
"""The key in `extra` of a turn whose round has been cleared."""
SAVED = "_reduction_mw_saved"
"""The key in `extra` of a result that was saved: where, and how much."""


class Answer(NamedTuple):
    """A call of a round, where it stands, and the result that it has."""

    call: Call
    turn: int
    """The message with the call."""
    number: int
    """The call's place in that message."""
    message: int
    """The message with the result."""
    position: int
    """The result's place in that message."""
    result: Result
    synthetic: bool
    """Whether the result only stands for one that is missing."""


class Round(NamedTuple):
    """The calls that a model made in one go, from message `first` to message `last`, and their results."""

    first: int
    last: int
    calls: tuple[Call, ...]
    answers: tuple[Answer, ...]

    @property
    def shares(self) -> Counter[int]:
        """How many of its results each of those messages holds."""
        return Counter(answer.message for answer in self.answers)

    @property
    def results(self) -> list[int]:
        """The messages that hold its results, in order."""
        return sorted({answer.message for answer in self.answers})


def rounds_of(
    wire: Wire, messages: Sequence[Any], start: int = 0, is_placeholder: Callable[[str], bool] | None = None
) -> list[Round]:
    """Return the rounds of `messages[start:]`, in order.

    >>> from suture.messages import Message, ToolCall
    >>> from suture.wires import get_wire
    >>> history = [Message.assistant(tool_calls=[ToolCall("a", "f")]), Message.tool("42", "a")]
    >>> [(found.first, found.results) for found in rounds_of(get_wire("message"), history)]
    [(0, [1])]
    """
    found = assign(wire, messages, start, is_placeholder=is_placeholder)
    return [_round(found, turn) for turn in found.turns]


def _round(found: Assignment, turn: Turn) -> Round:
    answers: list[Answer] = []
    records = found.records
    for slot in turn.slots:
        given = slot.answer
        if given is not None:
            turn_index, index = records[slot.place].index, records[given.place].index
            answers.append(
                Answer(slot.call, turn_index, slot.position, index, given.position, given.result, given.synthetic)
            )
    first, last = records[turn.first].index, records[turn.last].index
    return Round(first, last, tuple([slot.call for slot in turn.slots]), tuple(answers))


def is_done(wire: Wire, messages: Sequence[Any], found: Round, ledger: Ledger) -> bool:
    """Tell whether a round has been cleared before: its turn is marked, or it is kept in mind beside the history.

    On a wire whose messages cannot be marked, and without a ledger, our own texts in its results tell.
    """
    if wire.marks:
        return wire.extra_of(messages[found.first]).get(PROCESSED) is True
    if ledger.rounds:
        return round_digest(wire, found) in ledger.rounds
    return any(is_cleared_text(wire.result_text(answer.result)[0]) for answer in found.answers)


def round_digest(wire: Wire, found: Round) -> str:
    """Return what a round is known by on a wire whose messages cannot be marked: all that it says."""
    said = [
        [[call.id, call.name, str(call.arguments)] for call in found.calls],
        [wire.result_text(answer.result)[0] for answer in found.answers],
    ]
    return sha256(repr(said).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def saved_of(wire: Wire, answer: Answer, ledger: Ledger) -> Saved | None:
    """Return where a result is that was saved before: what now stands for it names that path."""
    if wire.marks:
        marked = read_saved(answer.result.extra, answer.call)
        mine = [] if marked is None else [marked]
    else:
        mine = [saved for saved in ledger.saved if saved.call_id == answer.call.id]
    named = named_paths(wire, answer.result) if mine else set[str]()
    return next((saved for saved in reversed(mine) if saved.path in named), None)


def named_paths(wire: Wire, result: Result) -> set[str]:
    """Return the paths that the notices in a result name."""
    texts = [part.text for part in wire.result_parts(result) or () if isinstance(part, TextPart)]
    return {path for path in map(named_path, texts) if path}


def mark_saved(saved: Saved) -> dict[str, Any]:
    """Return what a result carries in `extra` once it was saved."""
    return {SAVED: {"path": saved.path, "phase": saved.phase, "length": saved.length, "name": saved.name}}


def read_saved(extra: Mapping[str, Any], call: Call | Result) -> Saved | None:
    """Return what `mark_saved` says; `None` where there is no such mark, or none of ours."""
    found = extra.get(SAVED)
    if not isinstance(found, Mapping):
        return None
    try:
        return msgspec.convert({"call_id": call.id, "name": call.name, **found}, Saved)
    except (msgspec.ValidationError, TypeError):
        return None
