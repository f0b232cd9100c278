"""Where a history may be cut: between two groups, never inside one."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from suture.errors import AmbiguousWireError
from suture.repair.pairing import Assignment, assign
from suture.wires import Wire, get_wire, recognise


def cuts(messages: Sequence[Any], wire: str | Wire | None = None) -> list[int]:
    """Return the places where `messages` may be cut: `messages[:place]` and `messages[place:]` are whole each.

    No call stands on one side and its result on the other. Neighbouring messages of the model stay together: they may
    be one signed turn, or a reasoning item and what follows it; only the provider's own compaction begins anew. The two
    ends are places, too.

    >>> call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    >>> history = [
    ...     {"role": "user", "content": "hi"},
    ...     {"role": "assistant", "tool_calls": [call]},
    ...     {"role": "tool", "tool_call_id": "a", "content": "1"},
    ...     {"role": "user", "content": "thanks"},
    ... ]
    >>> cuts(history)
    [0, 1, 3, 4]
    """
    names = recognise(messages) if wire is None else (wire,)
    wires = [get_wire(name) if isinstance(name, str) else name for name in names]
    found = [cuts_between(each, messages, assign(each, messages)) for each in wires]
    if any(other != found[0] for other in found[1:]):
        raise AmbiguousWireError(tuple(str(name) for name in names))
    return found[0]


def cuts_between(wire: Wire, messages: Sequence[Any], assignment: Assignment) -> list[int]:
    """Return the places where `messages` may be cut, whose results were assigned to their calls before."""
    records = assignment.records
    closed = bytearray(len(messages) + 1)
    for one, other in pairwise(records):
        same_turn = one.view.role == other.view.role == "assistant" and one.index != other.index
        if same_turn and not wire.compacted_by(messages[other.index]):
            closed[other.index] = 1
    for turn in assignment.turns:
        places = [turn.first, turn.last]
        for slot in turn.slots:
            places += [answer.place for answer in (slot.answer, *slot.more) if answer is not None]
        first, last = records[min(places)].index, records[max(places)].index
        closed[first + 1 : last + 1] = b"\x01" * (last - first)
    return [place for place in range(len(messages) + 1) if not closed[place]]
