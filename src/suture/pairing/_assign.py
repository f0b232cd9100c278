"""Who belongs to whom: every result is given to its call, or to nobody.

Two steps. *Gather* walks the records once and hands each result to the latest turn that has its id.
*Settle* then decides, turn by turn, which call each of them answers and what is left over. No set of ids
over the whole history is ever consulted: ids that restart each round, or never change, are common and valid.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from suture.pairing._causes import is_builtin_text
from suture.wires import Call, Key, Result, Wire

__all__ = ["Assignment", "OutsideError", "Reference", "Slot", "Turn", "alias_key", "assign", "match_call"]

IsPlaceholder = Callable[[str], bool] | None


class OutsideError(Exception):
    """A result speaks of a call before `start`: only the whole history can say whose it is."""


@dataclass(slots=True, eq=False)
class Reference:
    """A result where it stands: message index, position in that message."""

    index: int
    position: int
    result: Result
    key: Key
    """The key of the calls that it may answer."""
    synthetic: bool = False


@dataclass(slots=True, eq=False)
class Slot:
    """A call, and the result it has been given."""

    call: Call
    index: int
    key: Key
    given: Reference | None = None


@dataclass(slots=True, eq=False)
class Turn:
    """The calls that the model made in one go, from message `first` to message `last`."""

    first: int
    last: int
    joined: bool
    """It stands directly behind another turn."""
    slots: list[Slot] = field(default_factory=list[Slot])
    strays: list[Reference] = field(default_factory=list[Reference])
    arrivals: dict[Key, list[Reference]] = field(default_factory=dict[Key, list[Reference]])
    nameless: list[Reference] = field(default_factory=list[Reference])
    """Results without an id that came while this was the latest turn."""
    surplus: bool = False
    """More results came than it has calls, or one took another's place."""

    def in_order_of_arrival(self) -> list[Reference]:
        """Return all results that came to this turn."""
        references = [reference for arrived in self.arrivals.values() for reference in arrived]
        if not self.nameless:
            return references  # within one id they are in order, and no two ids meet
        return sorted([*references, *self.nameless], key=lambda reference: (reference.index, reference.position))


@dataclass(slots=True, eq=False)
class Assignment:
    """What `assign` found: the turns with their results, and every result that has no place in one."""

    turns: list[Turn] = field(default_factory=list[Turn])
    orphans: list[Reference] = field(default_factory=list[Reference])
    waiting: list[Reference] = field(default_factory=list[Reference])
    """Those of the orphans whose call may still come, in the very next turn."""
    end: int = 0
    """Where the items begin that the next one may join, to make one turn."""
    copies: list[tuple[Reference, Slot]] = field(default_factory=list[tuple[Reference, Slot]])
    """Left out without loss: an identical twin, or a placeholder beside another result."""
    beaten: list[tuple[Reference, Slot]] = field(default_factory=list[tuple[Reference, Slot]])
    """Real results whose place a later, different one took."""


def match_call(wire: Wire, result: Result, waiting: Sequence[tuple[Key, Call]]) -> int:
    """Return which of the calls `waiting`, as (key, call), a result answers that comes next; -1 for none.

    >>> from suture.wires import get_wire
    >>> match_call(get_wire("gemini"), Result("", "g"), [("a", Call("a", "f")), ("b", Call("b", "g"))])
    1
    """
    key, name = wire.key(result), result.name
    fitting = -1
    for place, (own_key, call) in enumerate(waiting):
        by_id = own_key == key or (call.alias == result.id and wire.answers(result, call))
        by_name = (not name or call.name == name) and wire.answers(result, call)
        if by_id if result.id else by_name:
            if name and call.name == name:
                return place
            fitting = place if fitting < 0 else fitting
    return fitting


def alias_key(wire: Wire, call: Call) -> Key:
    """Return the key of a result that means `call` by its other id."""
    return wire.key(call._replace(id=call.alias))


def assign(
    wire: Wire,
    messages: Sequence[Any],
    start: int,
    is_placeholder: IsPlaceholder,
    known: frozenset[Key] | set[Key],
) -> Assignment:
    """Give each result of `messages[start:]` to its call; `known` are the keys of calls before `start`."""
    gathering = _Gathering(wire, messages, start, known)
    gathering.walk()
    settling = _Settling(wire, gathering.found, is_placeholder, known)
    settling.settle()
    return gathering.found


class _Gathering:
    """Walk the records; hand each result to the latest turn that has its id."""

    def __init__(self, wire: Wire, messages: Sequence[Any], start: int, known: frozenset[Key] | set[Key]) -> None:
        self.wire, self.messages, self.start, self.known = wire, messages, start, known
        self.found = Assignment()
        self.latest: dict[Key, Turn] = {}
        self.aliases: dict[Key, Key] = {}
        self.strays: list[Reference] = []

    def walk(self) -> None:
        for index, calls, results in self.wire.scan(self.messages, self.start, len(self.messages)):
            view = self.wire.view(self.messages[index], index)
            if calls:
                self._open(index, view.calls)
            if results:
                for position, result in enumerate(view.results):
                    self._receive(Reference(index, position, result, self.wire.key(result)))
        end = len(self.messages)
        while self.wire.set_like and end > self.start and self._made(end - 1):
            end -= 1
        self.found.end = end
        self.found.waiting = self._unbarred(end)
        if self.found.turns:
            unmatched = self._close(self.found.turns[-1])
            if self.found.turns[-1].first == end:
                self.found.waiting = unmatched
        self.found.orphans += self.strays

    def _open(self, index: int, calls: tuple[Call, ...]) -> None:
        turn = self._turn_at(index)
        for call in calls:
            key = self.wire.key(call)
            turn.slots.append(Slot(call, index, key))
            if call.id:
                self.latest[key] = turn
            if call.alias:
                self.aliases[alias_key(self.wire, call)] = key

    def _turn_at(self, index: int) -> Turn:
        """Return the turn that the call at `index` belongs to: on a list of items, that of its neighbours."""
        turns = self.found.turns
        if turns and self.wire.set_like and index <= turns[-1].last:
            return turns[-1]
        first, last = self._run(index) if self.wire.set_like else (index, index)
        joined = bool(turns) and turns[-1].last + 1 == first
        if turns:
            self._close(turns[-1])
        turn = Turn(first, last, joined)
        self._hand_over_strays(turn)
        turns.append(turn)
        return turn

    def _run(self, index: int) -> tuple[int, int]:
        """Return the first and last of the neighbouring items that the model made."""
        first = last = index
        floor = self.found.turns[-1].last + 1 if self.found.turns else self.start
        while first > floor and self._made(first - 1):
            first -= 1
        while last + 1 < len(self.messages) and self._made(last + 1):
            last += 1
        return first, last

    def _made(self, index: int) -> bool:
        return self.wire.made_by_model(self.messages[index], index)

    def _hand_over_strays(self, turn: Turn) -> None:
        """A result before its call may move into the very next assistant turn, and no further."""
        turn.strays = self._unbarred(turn.first)
        self.found.orphans += self.strays[: len(self.strays) - len(turn.strays)]
        self.strays = []

    def _unbarred(self, place: int) -> list[Reference]:
        """Return the strays that no message of the model separates from `place`."""
        if not self.strays:
            return []
        barrier = place - 1
        while barrier > self.strays[0].index and not self._made(barrier):
            barrier -= 1
        return [stray for stray in self.strays if stray.index >= barrier]

    def _close(self, turn: Turn) -> list[Reference]:
        """Match the strays that waited for `turn`, once all its calls are known; return the others."""
        keys = {slot.key for slot in turn.slots}
        for stray in reversed(turn.strays):
            if stray.key in keys:
                turn.arrivals.setdefault(stray.key, []).insert(0, stray)
        unmatched = [stray for stray in turn.strays if stray.key not in keys]
        self.found.orphans += unmatched
        turn.strays = []
        return unmatched

    def _receive(self, reference: Reference) -> None:
        result = reference.result
        if not result.id:
            if self.found.turns:
                self.found.turns[-1].nameless.append(reference)
            elif self.known:
                raise OutsideError
            else:
                self.found.orphans.append(reference)
            return
        if reference.key not in self.latest:
            reference.key = self.aliases.get(reference.key, reference.key)
        turn = self.latest.get(reference.key)
        if turn is not None:
            turn.arrivals.setdefault(reference.key, []).append(reference)
        elif reference.key in self.known:
            raise OutsideError
        elif reference.index < self._first_reference:
            self.strays.append(reference)

    @cached_property
    def _first_reference(self) -> int:
        return self.wire.first_reference(self.messages)


class _Settling:
    """Decide which call each result answers. Turns are settled in order, so what is earlier is final."""

    def __init__(
        self, wire: Wire, found: Assignment, is_placeholder: IsPlaceholder, known: frozenset[Key] | set[Key]
    ) -> None:
        self.wire, self.found, self.is_placeholder, self.known = wire, found, is_placeholder, known
        self.unanswered: dict[Key, int] = {}
        """How many calls of each id, in turns that are settled, have no real result."""

    def settle(self) -> None:
        turns = self.found.turns
        start = 0
        while start < len(turns):
            stop = start + 1
            while stop < len(turns) and turns[stop].joined:
                stop += 1
            self._settle_cluster(turns[start:stop])
            start = stop

    def _settle_cluster(self, turns: list[Turn]) -> None:
        """Settle turns that stand directly together: only here can results in order tell calls apart."""
        slots: dict[Key, list[Slot]] = {}
        for turn in turns:
            own: dict[Key, list[Slot]] = {}
            for slot in turn.slots:
                own.setdefault(slot.key, []).append(slot)
                slots.setdefault(slot.key, []).append(slot)
            coming = {key: len(references) for key, references in turn.arrivals.items()}
            in_order = {key for key, count in coming.items() if count == len(slots[key]) > len(own[key])}
            for reference in turn.in_order_of_arrival():
                key = reference.key
                if reference.result.id:
                    coming[key] -= 1
                    self._give(turn, slots[key] if key in in_order else own[key], reference, slots[key])
                else:
                    self._give_nameless(turn, reference, own, coming)
        for turn in turns:
            for slot in turn.slots:
                if slot.call.id and (slot.given is None or slot.given.synthetic):
                    self.unanswered[slot.key] = self.unanswered.get(slot.key, 0) + 1

    def _give(self, turn: Turn, slots: list[Slot], reference: Reference, everywhere: list[Slot]) -> None:
        """Give a result to the first call of its id (and name) that has none, or only a placeholder."""
        name = reference.result.name
        slots = [slot for slot in slots if name and slot.call.name == name] or slots
        reference.synthetic = self._is_synthetic(reference.result, slots[0].call)
        if self._fill(turn, slots, reference):
            return
        turn.surplus = True
        if reference.synthetic:
            self.found.copies.append((reference, slots[-1]))
        elif self._someone_waits(slots[0].key, everywhere, slots):
            self.found.orphans.append(reference)
        else:
            self._compete(slots, reference)

    def _give_nameless(
        self, turn: Turn, reference: Reference, own: dict[Key, list[Slot]], coming: dict[Key, int]
    ) -> None:
        """Give a result without an id to a call of its name; without a name, to the first that waits.

        A call whose own result is still coming is not given away.
        """
        name = reference.result.name
        fitting = [
            slot
            for slot in turn.slots
            if (not name or slot.call.name == name) and self.wire.answers(reference.result, slot.call)
        ]
        waiting = {key: sum(slot.given is None for slot in own[key]) for key in {slot.key for slot in fitting}}
        slots = [slot for slot in fitting if slot.given is not None or waiting[slot.key] > coming.get(slot.key, 0)]
        if slots:
            reference.synthetic = self._is_synthetic(reference.result, slots[0].call)
        if not slots or not self._fill(turn, slots, reference):
            turn.surplus = True
            self.found.orphans.append(reference)

    def _fill(self, turn: Turn, slots: list[Slot], reference: Reference) -> bool:
        for slot in slots:
            if slot.given is None:
                slot.given = reference
                return True
        if not reference.synthetic:
            for slot in slots:
                if slot.given is not None and slot.given.synthetic:
                    self.found.copies.append((slot.given, slot))
                    slot.given = reference
                    turn.surplus = True
                    return True
        return False

    def _someone_waits(self, key: Key, everywhere: list[Slot], own: list[Slot]) -> bool:
        """Tell whether a call of this id in an earlier turn has no real result: then nobody can know."""
        if key in self.known:
            raise OutsideError
        if self.unanswered.get(key):
            return True
        earlier = set(everywhere).difference(own)
        return any(slot.given is None or slot.given.synthetic for slot in earlier)

    def _compete(self, slots: list[Slot], reference: Reference) -> None:
        """Of real results for one call, identical ones are one, and of different ones the last wins."""
        for slot in slots:
            if slot.given is not None and _same(slot.given.result, reference.result):
                self.found.copies.append((reference, slot))
                return
        slot = slots[-1]
        if slot.given is not None:
            self.found.beaten.append((slot.given, slot))
        slot.given = reference

    def _is_synthetic(self, result: Result, call: Call) -> bool:
        if result.marked:
            return True
        text, complete = self.wire.result_text(result)
        if not complete:
            return False
        if is_builtin_text(text, call.name, call.id) is not None:
            return True
        return self.is_placeholder is not None and bool(self.is_placeholder(text))


def _same(one: Result, other: Result) -> bool:
    try:
        return one.failed == other.failed and bool(one.content == other.content)
    except Exception:  # noqa: BLE001 - what users' objects make of == says nothing of ours
        return False
