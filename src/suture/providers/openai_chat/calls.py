"""The calls in a stream of Chat Completions, whose pieces servers mark in more ways than one."""

from collections.abc import Mapping, Sequence
from typing import Any

from suture.codecs._contents import arguments_text
from suture.messages import Delta
from suture.providers.openai_chat.errors import nonsense
from suture.providers.openai_chat.parts import is_map
from suture.providers.openai_chat.pieces import absorb, map_in, text_in

__all__ = ["SAID", "Calls"]

SAID = {"function": "arguments", "custom": "input"}
"""Where the arguments of each kind of call stand."""
_OF_PIECE = ("index", "id", "type", *SAID)


class _Call:
    """A call while it is said."""

    def __init__(self, place: int) -> None:
        self.place, self.id, self.name, self.kind = place, "", "", ""
        self.told = False
        self.named = 0
        """The chunk that its name came in."""
        self.arguments: list[str] = []
        self.rest: dict[str, Any] = {}
        self.inner: dict[str, Any] = {}

    def whole(self) -> dict[str, Any]:
        """Return the call as a plain response has it."""
        made: dict[str, Any] = {"id": self.id, "type": self.kind or "function", **self.rest}
        said = SAID.get(made["type"])
        if said is not None:
            made[made["type"]] = {"name": self.name, said: "".join(self.arguments), **self.inner}
        return made


class Calls:
    """Finds out which call a piece belongs to, and joins them at the end.

    Most servers say it by the index. Some leave that out, or the id; some send the id with each piece, or a new one;
    some give the index of the call before, or the same id to two calls. A piece that has neither goes on with the last
    call, and a call that has a name is not given another.

    >>> calls = Calls()
    >>> calls.take([{"id": "call_1", "function": {"name": "add", "arguments": ""}}])
    [Delta(call_index=0, call_id='call_1', name='add')]
    >>> calls.take([{"function": {"arguments": "{}"}}])
    [Delta(call_index=0, arguments='{}')]
    """

    def __init__(self) -> None:
        self._all: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._by_id: dict[str, _Call] = {}
        self._last: _Call | None = None
        self._chunk = 0

    def take(self, pieces: Sequence[Any]) -> list[Delta]:
        """Return what the pieces in one chunk add."""
        self._chunk += 1
        return [delta for piece in pieces for delta in self._take(map_in(piece, "tool_calls"))]

    def whole(self) -> list[dict[str, Any]]:
        """Return the calls, in the order in which they were begun."""
        return [call.whole() for call in self._all]

    def _take(self, piece: Mapping[str, Any]) -> list[Delta]:
        kind = text_in(piece.get("type"), "the type of a call")
        field = "custom" if kind == "custom" or "custom" in piece else "function"
        held = map_in(piece.get(field), field)
        name = text_in(held.get("name"), "the name of a call")
        call_id = text_in(piece.get("id"), "the id of a call")
        marks = piece.get("id"), held.get("name")
        call = self._last = self._find(_index(piece.get("index")), call_id, name, bare=marks == (None, None))
        said = held.get(SAID[field])
        arguments = arguments_text(said) if is_map(said) else text_in(said, "the arguments of a call")
        call.kind = call.kind or kind or ("custom" if field == "custom" else "")
        call.arguments.append(arguments)
        absorb(call.rest, piece, _OF_PIECE)
        absorb(call.inner, held, ("name", SAID[field]))
        new_name = "" if call.name else name
        call.id, call.name = call.id or call_id, call.name or name
        if new_name:
            call.named = self._chunk
        if call.id:
            self._by_id[call.id] = call
        new_id = "" if call.told else call.id
        if not (new_name or arguments or (new_id and held)):
            return []
        call.told = call.told or bool(new_id)
        return [Delta(call_index=call.place, call_id=new_id, name=new_name, arguments=arguments)]

    def _find(self, index: int | None, call_id: str, name: str, *, bare: bool) -> _Call:
        """Return the call that a piece with these marks belongs to; begin one where it is the first of it."""
        if index is None:
            known = self._by_order(call_id, name)
        else:
            # Some servers begin a call under the index of another, and go on under its own.
            known = self._by_place(index, call_id, name) if index in self._by_index or not bare else self._last
        if known is None:
            if index is None and not call_id and not name:
                raise nonsense("a piece of a call that was never begun came in a stream")
            known = _Call(len(self._all))
            self._all.append(known)
        if index is not None:
            self._by_index[index] = known
        return known

    def _by_place(self, index: int, call_id: str, name: str) -> _Call | None:
        at = self._by_index.get(index)
        if at is None or (name and call_id and at.id and call_id != at.id):
            return None
        return None if _is_renamed(at, name) else at

    def _by_order(self, call_id: str, name: str) -> _Call | None:
        last = self._last
        known = self._by_id.get(call_id)
        if known is not None:
            again = name and known.named == self._chunk
            return None if again or _is_renamed(known, name) else known
        if last is None or (call_id and last.id) or (name and last.name):
            return None
        return last


def _is_renamed(call: _Call, name: str) -> bool:
    return bool(name and call.name and name != call.name)


def _index(value: Any) -> int | None:
    if value is None or type(value) is int:
        return value
    raise nonsense(f"the index of a call of the type {type(value).__name__} came in a stream")
