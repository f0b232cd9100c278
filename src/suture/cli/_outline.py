"""A conversation in outline: one line a message, and what a repair did to each.

The lines hold text of the history, neutralised; how they are drawn is the screen's business.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import msgspec
from msgspec.structs import replace

from suture.cli._visible import shorten
from suture.messages import AgenticMessage, Message, message_to_dict
from suture.wires import Call, Result, Wire, get_wire

__all__ = ["CHANGED", "GONE", "INSERTED", "MOVED", "SAME", "Line", "compare", "outline"]

SAME, INSERTED, MOVED, CHANGED, GONE = " ", "+", ">", "~", "-"

_LABEL, _TEXT, _ARGUMENTS = 40, 72, 48
_PARTS = (
    "content",
    "parts",
    "content_blocks",
    "user_input_multi_content",
    "assistant_gen_multi_content",
    "summary",
)
_NEAR = 50


class Line(msgspec.Struct, frozen=True):
    """One message, in a line.

    >>> outline([{"role": "user", "content": "hi"}], "openai-chat")
    [Line(index=0, role='user', carries='', text='hi', mark=' ')]
    """

    index: int
    role: str
    carries: str
    text: str
    mark: str = SAME


def outline(messages: Sequence[Any], wire: str) -> list[Line]:
    """Return a line for each message."""
    speaker = get_wire(wire)
    return [_line(speaker, message, index) for index, message in enumerate(messages)]


def compare(before: Sequence[Any], after: Sequence[Any], wire: str) -> tuple[list[Line], list[Line]]:
    """Return the outlines of a history and of its repair, each line marked with what became of it.

    A message that came back as the same object stayed, or was moved; of the others, one that took the place
    of a message that is gone was changed, and the rest were inserted.

    >>> user = {"role": "user", "content": "hi"}
    >>> _, after = compare([user], [user, {"role": "assistant", "content": "hello"}], "openai-chat")
    >>> [line.mark for line in after]
    [' ', '+']
    """
    old, new = outline(before, wire), outline(after, wire)
    places = {id(message): index for index, message in enumerate(before)}
    kept = [(index, places[id(message)]) for index, message in enumerate(after) if id(message) in places]
    stayed = _longest_rise([place for _, place in kept])
    for position, (index, place) in enumerate(kept):
        _mark(SAME if position in stayed else MOVED, old, place, new, index)
    returned, known = {place for _, place in kept}, {index for index, _ in kept}
    gone = [index for index in range(len(before)) if index not in returned]
    made = [index for index in range(len(after)) if index not in known]
    for index in gone:
        old[index] = replace(old[index], mark=GONE)
    for index in made:
        new[index] = replace(new[index], mark=INSERTED)
    for place, index in _successions(get_wire(wire), (before, gone), (after, made)):
        _mark(CHANGED, old, place, new, index)
    return old, new


def _mark(mark: str, old: list[Line], place: int, new: list[Line], index: int) -> None:
    old[place], new[index] = replace(old[place], mark=mark), replace(new[index], mark=mark)


def _line(wire: Wire, message: Any, index: int) -> Line:
    view = wire.view(message)
    carries = [_called(call) for call in view.calls] + [_answered(result) for result in view.results]
    said = [" ".join(_texts(message))] + [wire.result_text(result)[0] for result in view.results]
    plain = _plain(message)
    kind = plain.get("type")
    if not carries and isinstance(kind, str) and kind != "message":
        carries = [f"({shorten(kind, _LABEL)})"]
    text = " / ".join(part for part in said if part.strip())
    return Line(index, view.role, ", ".join(carries), shorten(text, _TEXT))


def _called(call: Call) -> str:
    arguments = call.arguments if isinstance(call.arguments, str) else _json(call.arguments)
    name = shorten(call.name, _LABEL) or "(no name)"
    return f"calls {name} {shorten(arguments, _ARGUMENTS)} as {_id(call.id)}"


def _answered(result: Result) -> str:
    return f"answers {_id(result.id) if result.id or not result.name else shorten(result.name, _LABEL)}"


def _id(text: str) -> str:
    return shorten(text, _LABEL) or "(no id)"


def _json(value: Any) -> str:
    from json import dumps

    return "" if value is None else dumps(value, ensure_ascii=False, default=str)


def _plain(message: Any) -> dict[str, Any]:
    return message_to_dict(message) if isinstance(message, Message | AgenticMessage) else message


def _texts(message: Any) -> Iterator[str]:
    """Yield what a message says besides its results."""
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


_Some: TypeAlias = tuple[Sequence[Any], Sequence[int]]
"""A history, and which of its messages are meant."""


def _successions(wire: Wire, gone: _Some, made: _Some) -> Iterator[tuple[int, int]]:
    """Yield the place of each gone message that was changed, with that of what it became."""
    left = [(index, _Trace.of(wire, gone[0][index])) for index in gone[1]]
    for index in made[1]:
        trace = _Trace.of(wire, made[0][index])
        found = next((entry for entry in left[:_NEAR] if entry[1].leads_to(trace)), None)
        if found is not None:
            left.remove(found)
            yield found[0], index


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
