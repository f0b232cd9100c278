"""A conversation in outline: one line a message, and what a repair did to each.

The lines hold text of the history, neutralised; how they are drawn is the screen's business.
"""

import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

import msgspec
from msgspec.structs import replace

from suture._text import shorten_line
from suture.messages import AgenticMessage, Message, message_to_dict
from suture.wires import Call, Result, Wire, get_wire

SAME, INSERTED, MOVED, CHANGED, MERGED, GONE = " ", "+", ">", "~", "^", "-"

_LABEL, _TEXT, _ARGUMENTS = 40, 72, 48
_PARTS = (
    "content",
    "parts",
    "content_blocks",
    "user_input_multi_content",
    "assistant_gen_multi_content",
    "summary",
)
_NEAR, _BESIDE = 50, 2


class Line(msgspec.Struct, frozen=True):
    """One message, in a line.

    >>> outline([{"role": "user", "content": "hi"}], "openai-chat")
    [Line(index=0, role='user', carries='', text='hi', mark=' ', near=False)]
    """

    index: int
    role: str
    carries: str
    text: str
    mark: str = SAME
    near: bool = False
    """Whether it stands beside a change."""


def outline(messages: Sequence[Any], wire: str) -> list[Line]:
    """Return a line for each message."""
    speaker = get_wire(wire)
    return [_line(speaker, message, index) for index, message in enumerate(messages)]


def compare(before: Sequence[Any], after: Sequence[Any], wire: str) -> tuple[list[Line], list[Line]]:
    """Return the outlines of a history and of its repair, each line marked with what became of it.

    A message that came back as the same object stayed, or was moved. Of the others, one that took the place
    of a message that is gone was changed, and the rest were inserted. What else is gone may live on in one
    that was changed.

    >>> user = {"role": "user", "content": "hi"}
    >>> _, after = compare([user], [user, {"role": "assistant", "content": "hello"}], "openai-chat")
    >>> [line.mark for line in after]
    [' ', '+']
    """
    old, new = outline(before, wire), outline(after, wire)
    kept = _kept(before, after)
    stayed = _longest_rise([place for _, place in kept])
    for position, (index, place) in enumerate(kept):
        _mark(SAME if position in stayed else MOVED, old, place, new, index)
    returned, known = {place for _, place in kept}, {index for index, _ in kept}
    gone = [index for index in range(len(before)) if index not in returned]
    made = [index for index in range(len(after)) if index not in known]
    for index in made:
        new[index] = replace(new[index], mark=INSERTED)
    traces = [_Trace.of(get_wire(wire), after[index]) for index in made]
    left = [(index, _Trace.of(get_wire(wire), before[index])) for index in gone]
    waiting = list(left)
    for position, trace in enumerate(traces):
        found = next((entry for entry in waiting[:_NEAR] if entry[1].leads_to(trace)), None)
        if found is not None:
            waiting.remove(found)
            _mark(CHANGED, old, found[0], new, made[position])
    for place, trace in left:
        if old[place].mark == SAME:
            nearest = bisect_left(made, place)
            near = traces[max(0, nearest - _NEAR) : nearest + _NEAR]
            mark = MERGED if any(trace.is_in(other) for other in near) else GONE
            old[place] = replace(old[place], mark=mark)
    _point_out(old, new, kept)
    return old, new


def _kept(before: Sequence[Any], after: Sequence[Any]) -> list[tuple[int, int]]:
    """Return where each message that came back stands now, and where it stood."""
    places: dict[int, list[int]] = {}
    for place in range(len(before) - 1, -1, -1):
        places.setdefault(id(before[place]), []).append(place)
    return [(index, places[id(message)].pop()) for index, message in enumerate(after) if places.get(id(message))]


def _point_out(old: list[Line], new: list[Line], kept: Sequence[tuple[int, int]]) -> None:
    """Tell on each side which lines stand beside a change, also if that is to be seen on the other side only."""
    near_old, near_new = _around(old), _around(new)
    pairs = [(place, index) for index, place in kept if place in near_old or index in near_new]
    for lines, near in ((old, near_old | {place for place, _ in pairs}), (new, near_new | {at for _, at in pairs})):
        for index in near & set(range(len(lines))):
            lines[index] = replace(lines[index], near=True)


def _around(lines: Sequence[Line]) -> set[int]:
    marked = (index for index, line in enumerate(lines) if line.mark != SAME)
    return {index + step for index in marked for step in range(-_BESIDE, _BESIDE + 1)}


def _mark(mark: str, old: list[Line], place: int, new: list[Line], index: int) -> None:
    old[place], new[index] = replace(old[place], mark=mark), replace(new[index], mark=mark)


def _line(wire: Wire, message: Any, index: int) -> Line:
    view = wire.view(message)
    carries = [_called(call) for call in view.calls] + [_answered(result) for result in view.results]
    said = [" ".join(_texts(message))] + [wire.result_text(result)[0] for result in view.results]
    plain = _plain(message)
    kind = plain.get("type")
    if not carries and isinstance(kind, str) and kind != "message":
        carries = [f"({shorten_line(kind, _LABEL)})"]
    text = " / ".join(part for part in said if part.strip())
    return Line(index, view.role, ", ".join(carries), shorten_line(text, _TEXT))


def _called(call: Call) -> str:
    arguments = "" if call.arguments is None else call.arguments
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False, default=str)
    parts = ["calls", shorten_line(call.name, _LABEL) or "(no name)", shorten_line(arguments, _ARGUMENTS)]
    return " ".join(part for part in (*parts, "as", _id(call.id)) if part)


def _answered(result: Result) -> str:
    return f"answers {_id(result.id) if result.id or not result.name else shorten_line(result.name, _LABEL)}"


def _id(text: str) -> str:
    return shorten_line(text, _LABEL) or "(no id)"


def _plain(message: Any) -> dict[str, Any]:
    return message_to_dict(message) if isinstance(message, Message | AgenticMessage) else message


def _texts(message: Any) -> Iterator[str]:
    plain = _plain(message)
    if plain.get("role") in {"tool", "function"}:
        return
    for field in _PARTS:
        value = plain.get(field)
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            for part in cast("list[Any]", value):
                text = cast("dict[str, Any]", part).get("text") if isinstance(part, dict) else None
                if isinstance(text, str):
                    yield text


def _longest_rise(places: Sequence[int]) -> set[int]:
    """Return the positions of a longest rising run in `places`: what stayed where it was."""
    ends: list[int] = []
    ends_at: list[int] = []
    before: list[int] = []
    for position, place in enumerate(places):
        length = bisect_left(ends, place)
        before.append(ends_at[length - 1] if length else -1)
        ends[length : length + 1] = [place]
        ends_at[length : length + 1] = [position]
    stayed: set[int] = set()
    position = ends_at[-1] if ends_at else -1
    while position >= 0:
        stayed.add(position)
        position = before[position]
    return stayed


class _Trace(NamedTuple):
    """What a message keeps through a repair: who speaks, its tools, and what its results say."""

    role: str
    carries: frozenset[tuple[str, str]]
    results: tuple[str, ...]
    text: str

    @classmethod
    def of(cls, wire: Wire, message: Any) -> "_Trace":
        view = wire.view(message)
        results = tuple(wire.result_text(result)[0] for result in view.results)
        carries = {("call", call.name) for call in view.calls} | {("result", text) for text in results}
        return cls(view.role, frozenset(carries), results, " ".join(_texts(message)))

    def leads_to(self, other: "_Trace") -> bool:
        if not self.carries:
            return self.role == other.role and not other.carries
        if self.role == other.role and self.carries & other.carries:
            return True
        return not other.carries and any(text and text in other.text for text in self.results)

    def is_in(self, other: "_Trace") -> bool:
        """Tell whether all that it says is said by `other`."""
        told = self.carries <= other.carries or all(text in other.text for text in self.results)
        return bool(self.carries or self.text) and told and self.text in other.text
