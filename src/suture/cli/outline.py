"""A conversation in outline: one line a message, and where a repair changed it.

The lines hold text of the history, neutralised; how they are drawn is the screen's business.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import msgspec

from suture._text import shorten_line
from suture.wires import Call, Result, Wire, argument_json, get_wire
from suture.wires.fields import is_map
from suture.wires.parts import Telling

_LABEL, _TEXT, _ARGUMENTS = 40, 72, 48
_BESIDE = 2
"""How many messages are shown beside a change."""


class Line(msgspec.Struct, frozen=True):
    """One message, in a line.

    >>> outline([{"role": "user", "content": "hi"}], "openai-chat")
    [Line(index=0, role='user', carries='', text='hi', mark=' ')]
    """

    index: int
    role: str
    carries: str
    text: str
    mark: str = " "
    """`-` for a message that a repair has moved, changed or removed, `+` for what there is instead."""


def outline(messages: Sequence[Any], wire: str) -> list[Line]:
    """Return a line for each message."""
    speaker = get_wire(wire)
    return [_line(speaker, message, index) for index, message in enumerate(messages)]


def compare(before: Sequence[Any], after: Sequence[Any], wire: str) -> list[list[Line]]:
    """Return the outlines of the places at which a history and its repair differ, each with its neighbours.

    A message that came back as the same object, in the same order, is the same.

    >>> user = {"role": "user", "content": "hi"}
    >>> (place,) = compare([user], [user, {"role": "assistant", "content": "hello"}], "openai-chat")
    >>> [line.mark for line in place]
    [' ', '+']
    """
    rows, done, made = list[tuple[str, int]](), 0, 0
    for old, new in [*_find_kept(before, after), (len(before), len(after))]:
        rows += [*[("-", at) for at in range(done, old)], *[("+", at) for at in range(made, new)], (" ", new)]
        done, made = old + 1, new + 1
    rows.pop()
    changed = [place for place, (mark, _) in enumerate(rows) if mark != " "]
    near = {place + step for place in changed for step in range(-_BESIDE, _BESIDE + 1)} & set(range(len(rows)))
    speaker, places = get_wire(wire), list[list[Line]]()
    for place in sorted(near):
        if place - 1 not in near:
            places.append([])
        mark, index = rows[place]
        places[-1].append(_line(speaker, (before if mark == "-" else after)[index], index, mark))
    return places


def _find_kept(before: Sequence[Any], after: Sequence[Any]) -> list[tuple[int, int]]:
    """Return where messages stood and stand that came back and kept their order, as many as there can be."""
    stood: dict[int, list[int]] = {}
    for place in range(len(before) - 1, -1, -1):
        stood.setdefault(id(before[place]), []).append(place)
    pairs = [(stood[id(message)].pop(), index) for index, message in enumerate(after) if stood.get(id(message))]
    ends, chains = list[int](), list[Any]()  # of the rising rows of each length: the lowest end, and the row so far
    for pair in pairs:
        length = bisect_left(ends, pair[0])
        chain = (pair, chains[length - 1] if length else None)
        ends[length : length + 1], chains[length : length + 1] = [pair[0]], [chain]
    found, kept = chains[-1] if chains else None, list[tuple[int, int]]()
    while found is not None:
        pair, found = found
        kept.append(pair)
    return kept[::-1]


def _line(wire: Wire, message: Any, index: int, mark: str = " ") -> Line:
    view = wire.view(message)
    telling = Telling(view.role)
    wire.tell(message, telling)
    carries = [_called(call) for call in view.calls] + [_answered(result) for result in view.results]
    said = [" ".join(telling.texts[1:]), *[wire.result_text(result)[0] for result in view.results]]
    kind = message.get("type") if is_map(message) else None
    if not carries and isinstance(kind, str) and kind != "message":
        carries = [f"({shorten_line(kind, _LABEL)})"]
    text = " / ".join(part for part in said if part.strip())
    return Line(index, view.role, ", ".join(carries), shorten_line(text, _TEXT), mark)


def _called(call: Call) -> str:
    arguments = shorten_line(argument_json(call.arguments), _ARGUMENTS)
    parts = ["calls", shorten_line(call.name, _LABEL) or "(no name)", arguments]
    return " ".join(part for part in (*parts, "as", _id(call.id)) if part)


def _answered(result: Result) -> str:
    return f"answers {_id(result.id) if result.id or not result.name else shorten_line(result.name, _LABEL)}"


def _id(text: str) -> str:
    return shorten_line(text, _LABEL) or "(no id)"
