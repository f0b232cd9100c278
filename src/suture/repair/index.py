"""Where the calls of a history stand, by what their results know them by."""

from collections.abc import Callable, Sequence
from typing import Any

from suture.wires import Call, Key, SurrogateError, View, Wire, sendable

_CHUNK = 64
_NEAR = 16
"""How many messages are looked at before the ids of all are read: most results speak of a call nearby."""


def look(wire: Wire, message: Any, index: int) -> tuple[Any, View]:
    """Return a message that was handed in, with lone surrogates replaced, and its view."""
    try:
        return message, wire.view(message, index)
    except SurrogateError:
        message = sendable(message)
        return message, wire.view(message, index)


class CallIndex:
    """Finds calls by key, anywhere before some place. It is made when first asked, and grows with what is asked for.

    Most messages have passed a glance: their ids are read without a second look. Those that have not must be noted.
    Ids are kept by the chunk of the messages that they stand in.

    >>> from suture.wires import get_wire
    >>> item = {"type": "function_call", "call_id": "a|b", "name": "f", "arguments": "{}"}
    >>> index = CallIndex(get_wire("openai-responses"), [item])
    >>> index.find("a|b", 1), index.find("b", 1), index.find_alias("b", 1)
    (0, -1, 0)
    """

    def __init__(self, wire: Wire, messages: Sequence[Any]) -> None:
        self._wire, self.messages = wire, messages
        self._unusual = bytearray()
        """Which messages no glance has accepted."""
        self._chunks: list[range] = []
        self._ids: list[list[Key]] = []
        self._aliases: list[list[Key]] = []
        self._last_ids: dict[Key, int] = {}
        """In which chunk an id occurs last."""
        self._last_aliases: dict[Key, int] = {}
        self._known: dict[tuple[Key, int], int] = {}
        """What was found before."""
        self._reference = (0, 0)

    def note(self, part: range) -> None:
        """Note messages that no glance has accepted."""
        self._unusual += bytes(max(0, part.stop - len(self._unusual)))
        self._unusual[part.start : part.stop] = b"\x01" * len(part)

    def view(self, place: int) -> View:
        """Return the view of one message."""
        return look(self._wire, self.messages[place], place)[1]

    @property
    def first_reference(self) -> int:
        """Where the history first refers to what the service keeps."""
        length = len(self.messages)
        if self._reference[0] != length:
            self._reference = length, self._wire.first_reference(self.messages)
        return self._reference[1]

    def find(self, key: Key, before: int) -> int:
        """Return where the last call of this key stands before a place; -1 where there is none."""
        if (key, before) not in self._known:
            self._known[key, before] = self._find(key, before)
        return self._known[key, before]

    def _find(self, key: Key, before: int) -> int:
        for place in range(before - 1, max(before - _NEAR, 0) - 1, -1):
            if any(call.id and self._wire.key(call) == key for call in self.view(place).calls):
                return place
        self._extend(before)
        return self._search(self._ids, self._last_ids, key, before, lambda call: [self._wire.key(call)])

    def find_alias(self, name: Key, before: int) -> int:
        """Return where the last call stands before a place that has this for its id, another id, or half of one."""
        self._extend(before)
        for number in range(len(self._aliases), len(self._chunks)):
            self._aliases.append(self._read_aliases(self._chunks[number], self._ids[number]))
            self._last_aliases.update(dict.fromkeys(self._aliases[number], number))
        found = self._search(self._aliases, self._last_aliases, name, before, self._other_names)
        return max(found, self.find(name, before))

    def _search(
        self,
        names: list[list[Key]],
        last: dict[Key, int],
        name: Key,
        before: int,
        name_call: Callable[[Call], list[Key]],
    ) -> int:
        """Return the last place of a name among those of the chunks."""
        for number in range(last.get(name, -1), -1, -1):
            if name in names[number]:
                chunk = self._chunks[number]
                for place in range(min(chunk.stop, before) - 1, chunk.start - 1, -1):
                    if any(call.id and name in name_call(call) for call in self.view(place).calls):
                        return place
        return -1

    def find_turn(self, before: int) -> int:
        """Return where the last message with calls stands before a place; -1 where there is none."""
        place = before - 1
        while place >= 0 and not self.view(place).calls:
            place -= 1
        return place

    def _extend(self, end: int) -> None:
        """Read the ids up to `end`: of what passed a glance as plain as it is, of the rest by its views."""
        place = self._chunks[-1].stop if self._chunks else 0
        while place < end:
            unusual, plain = self._unusual.find(1, place, end), self._unusual.find(0, place, end)
            if unusual == place:
                part = range(place, end if plain < 0 else plain)
                calls = [call for index in part for call in self.view(index).calls if call.id]
                ids = [self._wire.key(call) for call in calls]
            else:
                part = range(place, min(place + _CHUNK, end if unusual < 0 else unusual))
                ids = self._wire.call_ids(self.messages, part.start, part.stop)
            self._last_ids.update(dict.fromkeys(ids, len(self._ids)))
            self._ids.append(ids)
            self._chunks.append(part)
            place = part.stop

    def _read_aliases(self, part: range, ids: Sequence[Key]) -> list[Key]:
        """Return by what else the calls of a chunk may be meant."""
        if self._unusual.find(1, part.start, part.stop) >= 0:
            calls = [call for index in part for call in self.view(index).calls if call.id]
            return [name for call in calls for name in self._other_names(call)]
        halves = [half for call_id in ids for half in get_halves(call_id)] if "|" in "".join(ids) else []
        return halves + self._wire.item_ids(self.messages, part.start, part.stop)

    def _other_names(self, call: Call) -> list[Key]:
        names = (call.alias, *get_halves(call.id))
        return [self._wire.key(call._replace(id=name)) for name in names if name]


def get_halves(call_id: str) -> tuple[str, ...]:
    """Return the two halves of a composite id.

    >>> get_halves("call_1|fc_9"), get_halves("call_1")
    (('call_1', 'fc_9'), ())
    """
    first, found, second = call_id.partition("|")
    return (first, second) if found and first and second else ()
