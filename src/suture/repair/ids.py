"""The ids of calls: an index of their places, new ids that a provider accepts, and the uses of server tools."""

import sys
from collections.abc import Sequence
from typing import Any

from suture.errors import ConfigError
from suture.profiles import IdForm
from suture.wires import Key, SurrogateError, View, Wire

_TRIES = 100_000


class CallIndex:
    """Finds calls by key, anywhere before some place, from `start` on. Messages are only read when they are needed.

    Most messages have passed a glance, so their ids can be read directly. Those that have not must be noted.
    `cost` estimates, in messages, the work of the successful searches.

    >>> from suture.wires import get_wire
    >>> item = {"type": "function_call", "call_id": "a|b", "name": "f", "arguments": "{}"}
    >>> index = CallIndex(get_wire("openai-responses"), [item])
    >>> index.find("a|b", 1), index.find("b", 1), index.find_alias("b", 1)
    (0, -1, 0)
    """

    def __init__(self, wire: Wire, messages: Sequence[Any], start: int = 0) -> None:
        self.wire, self.messages, self._start, self.cost = wire, messages, start, 0
        self.plain = messages
        """The messages as a glance sees them."""
        self.views: dict[int, tuple[Any, View]] = {}
        """The messages that were read, with lone surrogates replaced, and their views."""
        self._unusual = bytearray()
        """The messages that no glance has accepted."""
        self._names: set[Key] = set()
        """The ids and aliases of the calls in the first messages, filled once a search found nothing."""
        self._lists: list[list[Key]] = []
        """The part of them that was not searched yet."""
        self._read = start
        """How many messages these are."""
        self._known: dict[tuple[Key, int, bool], int] = {}
        """The results of earlier searches."""
        self._turn = (start, -1)
        """The last search for a turn, and its result."""
        self._reference = sys.maxsize

    def note(self, part: range) -> None:
        """Note messages that no glance has accepted."""
        self._unusual += bytes(max(0, part.stop - len(self._unusual)))
        self._unusual[part.start : part.stop] = b"\x01" * len(part)
        references = (place for place in part if self.wire.refers(self.messages[place]))
        self._reference = min(self._reference, next(references, self._reference))

    def look(self, place: int) -> tuple[Any, View]:
        """Return one message, with lone surrogates replaced, and its view."""
        if place not in self.views:
            message = self.messages[place]
            try:
                view = self.wire.view(message, place)
            except SurrogateError:
                message = self.wire.sendable(message)
                view = self.wire.view(message, place)
            self.views[place] = message, view
        return self.views[place]

    def view(self, place: int) -> View:
        """Return the view of one message."""
        return self.look(place)[1]

    def refers(self, before: int) -> bool:
        """Return whether a message before a place refers to items stored by the service, which no glance accepts."""
        return self._reference < before

    def find(self, key: Key, before: int) -> int:
        """Return the index of the last message before a place with a call of this key; -1 if there is none."""
        if (key, before, False) not in self._known:
            place = self.find_alias(key, before)  # search both at once: most results that are searched for have neither
            if place >= 0 and key not in self._list(place, place + 1, aliases=False):
                place = self._search(key, place, aliases=False)
            self._known[key, before, False] = place
        return self._known[key, before, False]

    def find_alias(self, name: Key, before: int) -> int:
        """Return the index of the last message before a place with a call of this id, alias or half of an id."""
        if (name, before, True) not in self._known:
            may_stand = True
            if self._read > self._start:  # all names were read: most that are searched for do not exist
                self._names.update(*self._lists, self._list(self._read, before))
                self._lists = []
                self._read = max(self._read, before)
                may_stand = name in self._names
            self._known[name, before, True] = self._search(name, before) if may_stand else -1
        return self._known[name, before, True]

    def find_turn(self, before: int) -> int:
        """Return the index of the last message with calls before a place; -1 if there is none."""
        floor, found = self._turn if self._turn[0] <= before else (self._start, -1)
        place = before - 1
        while place >= floor and not self.view(place).calls:
            place -= 1
        self._turn = before, place if place >= floor else found
        return self._turn[1]

    def _search(self, name: Key, before: int, *, aliases: bool = True) -> int:
        """Return the last place of a name before a place, in ever larger steps backwards; -1 if there is none."""
        stop, size, found = before, 256, -1
        read: list[list[Key]] = []
        while stop > self._start and found < 0:
            start = max(self._start, stop - size)
            names = self._list(start, stop, aliases=aliases)
            read.append(names)
            if name in names:
                if names.count(name) == 1:  # the names are spread evenly enough to guess where it is
                    about = start + (stop - start) * names.index(name) // len(names)
                    close = max(start, about - 16), min(stop, about + 16)
                    start, stop = close if name in self._list(*close, aliases=aliases) else (start, stop)
                while stop - start > 1:
                    middle = (start + stop) // 2
                    late = name in self._list(middle, stop, aliases=aliases)
                    start, stop = (middle, stop) if late else (start, middle)
                found = start
            stop, size = start, 4 * size
        if found < 0 and aliases and self._read == self._start:
            self._lists, self._read = read, before
        self.cost += (before - found) // 4 if found >= 0 else 0
        return found

    def _list(self, start: int, stop: int, *, aliases: bool = True) -> list[Key]:
        """Return the ids of calls, and with `aliases` their other ids and halves.

        Messages that passed a glance are read directly, the others through their views.
        """
        names: list[Key] = []
        while start < stop:
            unusual, plain = self._unusual.find(1, start, stop), self._unusual.find(0, start, stop)
            if unusual == start:
                end = plain if plain >= 0 else min(stop, len(self._unusual))
                for call in [call for place in range(start, end) for call in self.view(place).calls]:
                    meant_by = (call.id, call.alias, *get_halves(call.id)) if aliases and call.id else (call.id,)
                    names += [self.wire.key(call._replace(id=name)) for name in meant_by if name]
            else:
                end = unusual if unusual >= 0 else stop
                ids = self.wire.call_ids(self.plain, start, end)
                names = names + ids if names else ids
                if aliases:
                    names += [half for each in ids for half in get_halves(each)] if "|" in "".join(ids) else []
                    names += self.wire.item_ids(self.plain, start, end)
            start = end
        return names


def get_halves(call_id: str) -> tuple[str, ...]:
    """Return the two halves of a composite id.

    >>> get_halves("call_1|fc_9"), get_halves("call_1")
    (('call_1', 'fc_9'), ())
    """
    first, found, second = call_id.partition("|")
    return (first, second) if found and first and second else ()


class Ids:
    """Gives each call its id. The first call with an accepted id keeps it, unless an earlier rename took it.

    `used` are the ids that may not be given again: those of the turn, or of the whole history if an id may be used
    only once in a request. They are in order, so that the ids given since some point can be taken back.

    >>> ids = Ids(IdForm(pattern="[a-z]+", limit=9, scope="history", prefix="", length=9))
    >>> ids.begin_turn()
    >>> ids.give("ok"), ids.give("ok") == "ok"
    ('ok', False)
    """

    def __init__(self, form: IdForm) -> None:
        self.form = form
        self.used: dict[str, None] = {}
        self._repeats: dict[str, int] = {}
        """How often each id that had to change was seen."""
        self._repeat_log: list[str] = []

    def begin_turn(self) -> None:
        """Begin a new turn, to which the following calls belong."""
        if self.form.scope != "history":
            self.take_back((0, 0))

    def give(self, original: str) -> str:
        """Return the id for the next call whose own id is `original`."""
        if self.form.accepts(original) and (original not in self.used or not self.form.scope):
            return self._take(original)
        count = self._repeats.get(original, 0)
        self._repeats[original] = count + 1
        self._repeat_log.append(original)
        for salt in range(_TRIES):
            made = self.form.make(f"{original}\0{count}\0{salt}")
            if made not in self.used and self.form.accepts(made):
                return self._take(made)
        raise ConfigError(f"no id like {self.form.make(original)!r} fits {self.form.pattern!r} and is free")

    def _take(self, call_id: str) -> str:
        self.used[call_id] = None
        return call_id

    def mark(self) -> tuple[int, int]:
        """Return a point that `take_back` can return to."""
        return len(self.used), len(self._repeat_log)

    def take_back(self, point: tuple[int, int]) -> None:
        """Take back the ids given since `mark` returned `point`."""
        while len(self.used) > point[0]:
            self.used.popitem()
        for original in self._repeat_log[point[1] :]:
            self._repeats[original] -= 1
        del self._repeat_log[point[1] :]


class ServerUses:
    """The ids of server tool uses in the output since the last message that is not the model's."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._seen, self._found = 0, set[Any]()

    def find(self, out: Sequence[Any]) -> set[Any]:
        """Return the ids in `out`; no message is looked at twice."""
        new = set[Any]()
        for place in reversed(range(self._seen, len(out))):
            view = self._wire.view(out[place])
            if view.role != "assistant" and not view.results:
                self._found = set[Any]()
                break
            new |= self._wire.server_tools(out[place])[0]
        self._seen = len(out)
        self._found |= new
        return self._found

    def take_back(self, count: int) -> None:
        """Forget the output after the first `count` messages."""
        if self._seen > count:
            self._seen, self._found = 0, set[Any]()
