"""Pairing: every result is given to its call, or to nobody. The same for every provider.

Three steps. *Read* makes records of the messages. *Gather* finds the turns and hands each result to the latest turn
that has its id. *Settle* decides, turn by turn, which call each of them answers and what is left over. No set of ids
over the whole history is ever consulted: ids that restart each round, or never change, are common and valid.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct, field

from suture.messages import TextPart
from suture.repair.texts import FILLERS, is_builtin_text
from suture.wires import Call, Key, Result, SurrogateError, View, Wire, sendable

IsPlaceholder = Callable[[str], bool] | None


class OutsideError(Exception):
    """A result may speak of a call outside of what was looked at: before it one of this `key`, or anywhere."""

    def __init__(self, key: Key = None) -> None:
        super().__init__()
        self.key = key


class Record(Struct, eq=False):
    """One message, or one step of a message that holds several: what it is, and where it stood."""

    index: int
    message: Any
    view: View
    calls_before: int = 0
    """How many calls of the same message stand in steps before this one."""
    is_step: bool = False


class Reference(Struct, eq=False):
    """A result where it stands: the place of its record, its position in that message."""

    place: int
    position: int
    result: Result
    key: Key
    """The key of the calls that it may answer."""
    synthetic: bool = False


class Slot(Struct, eq=False):
    """A call, and the result that it has."""

    call: Call
    place: int
    position: int
    """The number of the call in its message, as that was handed in."""
    key: Key
    answer: Reference | None = None
    more: list[Reference] = field(default_factory=list[Reference])
    """Further parts of its result, of another kind: they are joined to it."""


class Turn(Struct, eq=False):
    """The calls that the model made in one go, from record `first` to record `last`."""

    first: int
    last: int
    slots: list[Slot] = field(default_factory=list[Slot])
    arrivals: list[Reference] = field(default_factory=list[Reference])
    """Results that came with an id of one of its calls."""
    nameless: list[Reference] = field(default_factory=list[Reference])
    """Results without an id that came while this was the latest turn."""
    surplus: bool = False
    """More results came than it has calls, one took another's place, or one came in several parts."""


class Assignment(Struct, eq=False):
    """The turns of a history with their results, and every result that has no place in one."""

    records: list[Record]
    turns: list[Turn] = field(default_factory=list[Turn])
    orphans: list[Reference] = field(default_factory=list[Reference])
    unsettled: Turn | None = None
    """One of the last two turns, if a result was or could be adopted there: what comes may still have its id."""
    strays: list[tuple[Reference, int]] = field(default_factory=list[tuple[Reference, int]])
    """Results whose id no turn up to the next one has, and how many turns stand before each."""
    copies: list[tuple[Reference, Slot]] = field(default_factory=list[tuple[Reference, Slot]])
    """Left out without loss: an identical twin, or a placeholder beside another result."""
    beaten: list[tuple[Reference, Slot]] = field(default_factory=list[tuple[Reference, Slot]])
    """Real results whose place a later, different one took."""


def look(wire: Wire, message: Any, index: int) -> tuple[Any, View]:
    """Return a message that was handed in, with lone surrogates replaced, and its view."""
    try:
        return message, wire.view(message, index)
    except SurrogateError:
        message = sendable(message)
        return message, wire.view(message, index)


def open_place(found: Assignment) -> int | None:
    """Return the index of the first message that what comes next may still change, beside the last group."""
    places = [] if found.unsettled is None else [found.unsettled.first]
    records = found.records
    last = len(records) - 1
    while last >= 0 and records[last].view.role == "assistant":
        last -= 1  # what the model says at the end may go on with calls
    while last >= 0 and records[last].view.role != "assistant":
        last -= 1
    places += [reference.place for reference in found.orphans if reference.place > last]
    for turn in found.turns[-1:]:
        early = [reference.place for reference in (*turn.arrivals, *turn.nameless)]
        places += [place for place in early if place < turn.first]
    return min([found.records[place].index for place in places], default=None)


def read(wire: Wire, messages: Sequence[Any], start: int, stop: int) -> list[Record]:
    """Return a record for each of `messages[start:stop]`; several for one that holds calls and results in steps."""
    records: list[Record] = []
    for index in range(start, stop):
        message, view = look(wire, messages[index], index)
        if not view.results or view.role != "assistant":
            records.append(Record(index, message, view))
            continue
        calls = 0
        for step in wire.steps(message):
            view = wire.view(step)
            records.append(Record(index, step, view, calls, is_step=True))
            calls += len(view.calls)
    return records


def assign(
    wire: Wire,
    messages: Sequence[Any],
    start: int = 0,
    stop: int | None = None,
    is_placeholder: IsPlaceholder = None,
    *,
    local: bool = False,
) -> Assignment:
    """Give each result of `messages[start:stop]` to its call.

    With `local` set there may be calls before `start`: `OutsideError` says that a result may speak of one.

    >>> from suture.wires import get_wire
    >>> assign(get_wire("openai-chat"), [{"role": "tool", "tool_call_id": "a", "content": "42"}]).orphans[0].result.id
    'a'
    """
    stop = len(messages) if stop is None else stop
    found = Assignment(read(wire, messages, start, stop))
    _Gathering(wire, messages, found, local=local).run()
    _Settling(wire, found, is_placeholder, local=local).run()
    return found


def is_synthetic(wire: Wire, result: Result, call: Call | None, is_placeholder: IsPlaceholder) -> bool:
    """Tell whether a result only stands for one that is missing; `call` is the one it answers, if there is one."""
    if result.marked:
        return True
    text, complete = wire.result_text(result)
    if not complete:
        return False
    name, call_id = (result.name or None, result.id) if call is None else (call.name, call.id)
    # An approval says who refused it before it says why.
    if text in FILLERS or is_builtin_text(text.removeprefix("rejected: "), name, call_id) is not None:
        return True
    return is_placeholder is not None and bool(is_placeholder(text))


class _Gathering:
    """Finds the turns, and hands each result to the latest one that has its id."""

    def __init__(self, wire: Wire, messages: Sequence[Any], found: Assignment, *, local: bool) -> None:
        self.wire, self.found, self.local = wire, found, local
        self.first_reference = 0 if local else wire.first_reference(messages)
        self.latest: dict[Key, Turn] = {}
        self.unmatched: list[tuple[Reference, int]] = []
        """Results whose id no turn before them has, and how many turns stand before each."""

    def run(self) -> None:
        records = self.found.records
        place = 0
        while place < len(records):
            view = records[place].view
            if view.role == "assistant":
                place = self._read_run(place)
                continue
            for position, result in enumerate(view.results):
                self._receive(Reference(place, position, result, self.wire.key(result)))
            place += 1
        if self.unmatched:
            self._match_aliases()
            self._match_early()

    def _read_run(self, start: int) -> int:
        """Read the neighbouring messages of the model from `start` on; return where they end."""
        records = self.found.records
        first, last_call, stop = -1, -1, start
        while stop < len(records) and records[stop].view.role == "assistant":
            view = records[stop].view
            if first < 0 and not view.empty:
                first = stop
            if view.calls:
                last_call = stop
            stop += 1
        if last_call >= 0:
            # What the model said behind its last call belongs to the turn only if results follow directly.
            goes_on = self.wire.set_like or (stop < len(records) and bool(records[stop].view.results))
            self._open(Turn(first, stop - 1 if goes_on else last_call))
        return stop

    def _open(self, turn: Turn) -> None:
        for place in range(turn.first, turn.last + 1):
            record = self.found.records[place]
            for number, call in enumerate(record.view.calls, record.calls_before):
                key = self.wire.key(call)
                turn.slots.append(Slot(call, place, number, key))
                if call.id:
                    self.latest[key] = turn
        self.found.turns.append(turn)

    def _receive(self, reference: Reference) -> None:
        turns = self.found.turns
        if not reference.result.id:
            if turns:
                turns[-1].nameless.append(reference)
            elif self.local:
                raise OutsideError
            else:
                self.unmatched.append((reference, 0))
            return
        turn = self.latest.get(reference.key)
        if turn is not None:
            turn.arrivals.append(reference)
        elif self.local:
            raise OutsideError(reference.key)
        elif self.found.records[reference.place].index < self.first_reference:
            self.unmatched.append((reference, len(turns)))

    def _match_aliases(self) -> None:
        """Hand over results that mean a call before them by its other id, or by half of a composite one."""
        known: dict[Key, list[tuple[int, Key]]] = defaultdict(list)
        for number, turn in enumerate(self.found.turns):
            for slot in turn.slots:
                for alias in (slot.call.id, slot.call.alias, *_halves(slot.call.id)):
                    if alias:
                        known[self.wire.key(slot.call._replace(id=alias))].append((number, slot.key))
        left: list[tuple[Reference, int]] = []
        for reference, before in self.unmatched:
            if not reference.result.id:
                left.append((reference, before))
                continue
            meant = [_last_before(known[name], before) for name in self._names(reference) if name in known]
            number, key = max(meant, default=_NOWHERE, key=_first)
            if number < 0:
                left.append((reference, before))
            else:
                reference.key = key
                self.found.turns[number].arrivals.append(reference)
        self.unmatched = left

    def _names(self, reference: Reference) -> list[Key]:
        halves = [self.wire.key(reference.result._replace(id=half)) for half in _halves(reference.result.id)]
        return [reference.key, *halves]

    def _match_early(self) -> None:
        """Hand over results to the very next turn, where that has their id and no model's message stands between."""
        turns, records = self.found.turns, self.found.records
        keys: dict[int, set[Key]] = {}
        barriers: dict[int, int] = {}
        for reference, number in self.unmatched:
            if number < len(turns) and number not in keys:
                keys[number] = {slot.key for slot in turns[number].slots}
                barrier = turns[number].first - 1
                while barrier >= 0 and records[barrier].view.role != "assistant":
                    barrier -= 1
                barriers[number] = barrier
            is_barred = reference.place <= barriers.get(number, len(records))
            if not reference.result.id:
                (self.found.orphans if is_barred else turns[number].nameless).append(reference)
            elif reference.key not in keys.get(number, ()):
                self.found.strays.append((reference, number))
            else:
                (self.found.orphans if is_barred else turns[number].arrivals).append(reference)
        for number in keys:
            turns[number].arrivals.sort(key=_where)
            turns[number].nameless.sort(key=_where)


class _Queue:
    """Calls that a result may answer, in order; each is looked at once however many results come."""

    __slots__ = ("_open", "_weak", "slots")

    def __init__(self) -> None:
        self.slots: list[Slot] = []
        self._open = self._weak = 0

    def take(self, *, real: bool) -> Slot | None:
        """Return the first call without a result; if there is none, for a real one the first with a placeholder."""
        slots = self.slots
        while self._open < len(slots) and slots[self._open].answer is not None:
            self._open += 1
        if self._open < len(slots):
            return slots[self._open]
        if not real:
            return None
        while self._weak < len(slots):
            answer = slots[self._weak].answer
            if answer is not None and answer.synthetic:
                return slots[self._weak]
            self._weak += 1
        return None


class _Settling:
    """Decides which call each result answers. Turns are settled in order, so what is earlier is final."""

    def __init__(self, wire: Wire, found: Assignment, is_placeholder: IsPlaceholder, *, local: bool) -> None:
        self.wire, self.found, self.is_placeholder, self.local = wire, found, is_placeholder, local
        self.known: set[Key] = set()
        """The keys of the calls in the turns that are settled."""

    def run(self) -> None:
        for turn in self.found.turns:
            if turn.arrivals:
                self._settle_ids(turn)
            if turn.nameless:
                self._settle_nameless(turn)
            self.known.update([slot.key for slot in turn.slots])
        self._adopt()
        self.found.orphans.sort(key=_where)

    def _settle_ids(self, turn: Turn) -> None:
        queues: dict[Any, _Queue] = defaultdict(_Queue)
        for slot in turn.slots:
            queues[slot.key].slots.append(slot)
            queues[slot.key, slot.call.name].slots.append(slot)
        twins: dict[Any, list[tuple[Reference, Slot]]] = defaultdict(list)
        for reference in turn.arrivals:
            queue = self._queue(queues, reference)
            slot = self._fill(turn, queue, reference)
            if slot is not None:
                twins[self._content(reference)].append((reference, slot))
                continue
            turn.surplus = True
            if reference.synthetic:
                self.found.copies.append((reference, queue.slots[-1]))
            elif not self._collapse(twins, reference):
                self._compete(queue.slots[-1], reference)
                twins[self._content(reference)].append((reference, queue.slots[-1]))

    def _queue(self, queues: dict[Any, _Queue], reference: Reference) -> _Queue:
        """Return the calls of a result's id, and of its name if it has one that one of them has."""
        named = (reference.key, reference.result.name)
        return queues[named] if reference.result.name and named in queues else queues[reference.key]

    def _settle_nameless(self, turn: Turn) -> None:
        """Give results without an id to calls of their name; without a name, to the first that is left."""
        queues: dict[Any, _Queue] = defaultdict(_Queue)
        for slot in turn.slots:
            family = self.wire.family(slot.call)
            queues[family, ""].slots.append(slot)
            if slot.call.name:
                queues[family, slot.call.name].slots.append(slot)
        for reference in turn.nameless:
            queue = queues.get((self.wire.family(reference.result), reference.result.name))
            if queue is None or self._fill(turn, queue, reference) is None:
                turn.surplus = True
                self.found.orphans.append(reference)

    def _fill(self, turn: Turn, queue: _Queue, reference: Reference) -> Slot | None:
        """Give a result to the first call that has none, or only a placeholder."""
        call = queue.slots[0].call
        reference.synthetic = is_synthetic(self.wire, reference.result, call, self.is_placeholder)
        slot = queue.take(real=not reference.synthetic)
        if slot is None:
            return None
        if slot.answer is not None:
            self.found.copies.append((slot.answer, slot))
            turn.surplus = True
        slot.answer = reference
        return slot

    def _content(self, reference: Reference) -> Any:
        return (reference.key, reference.result.failed, self.wire.result_text(reference.result)[0])

    def _collapse(self, twins: dict[Any, list[tuple[Reference, Slot]]], reference: Reference) -> bool:
        """Leave out a result that says just what another one of its id says."""
        for other, slot in twins.get(self._content(reference), ()):
            if _same(other.result, reference.result):
                self.found.copies.append((reference, slot))
                return True
        return False

    def _compete(self, slot: Slot, reference: Reference) -> None:
        """Of different results for one call, parts of different kinds are joined; else the last one wins.

        If an earlier turn has the id too, nobody can know whose it is.
        """
        if self.local:
            raise OutsideError
        if reference.key in self.known or slot.answer is None:
            self.found.orphans.append(reference)
            return
        kinds = {kind for part in (slot.answer, *slot.more) for kind in self._kinds(part)}
        if kinds and self._kinds(reference) and not kinds & self._kinds(reference):
            slot.more.append(reference)
            return
        self.found.beaten += [(part, slot) for part in (slot.answer, *slot.more)]
        slot.answer, slot.more = reference, []

    def _kinds(self, reference: Reference) -> set[str]:
        """Return whether a result holds text, something else, or both; nothing where it cannot be taken apart."""
        parts = self.wire.result_parts(reference.result)
        return {"text" if isinstance(part, TextPart) else "other" for part in parts or ()}

    def _adopt(self) -> None:
        """Give a lone open call the lone result directly behind its turn, whose id nobody has."""
        behind: dict[int, list[Reference]] = defaultdict(list)
        for reference, number in self.found.strays:
            if number and self._is_directly_behind(self.found.turns[number - 1], reference.place):
                behind[number - 1].append(reference)
            else:
                self.found.orphans.append(reference)
        for number, references in behind.items():
            slots = [slot for slot in self.found.turns[number].slots if slot.answer is None]
            if len(references) == 1 == len(slots) and self._may_belong(references[0].result, slots[0].call):
                slots[0].answer = references[0]
                self._leave_unsettled(number)
            else:
                self.found.orphans += references
                if len(slots) == 1:
                    self._leave_unsettled(number)

    def _leave_unsettled(self, number: int) -> None:
        if number >= len(self.found.turns) - 2 and self.found.unsettled is None:
            self.found.unsettled = self.found.turns[number]

    def _may_belong(self, result: Result, call: Call) -> bool:
        if is_synthetic(self.wire, result, None, self.is_placeholder):
            return False  # it speaks of another call
        return self.wire.family(result) == self.wire.family(call) and result.name in {"", call.name}

    def _is_directly_behind(self, turn: Turn, place: int) -> bool:
        between = self.found.records[turn.last + 1 : place]
        return all(record.view.results and not record.view.loose for record in between)


_NOWHERE: tuple[int, Key] = (-1, "")


def _first(pair: tuple[int, Key]) -> int:
    return pair[0]


def _last_before(known: Sequence[tuple[int, Key]], before: int) -> tuple[int, Key]:
    """Return the last of `known`, in the order of their turns, whose turn has a number below `before`."""
    place = bisect_left(known, before, key=_first)
    return known[place - 1] if place else _NOWHERE


def _where(reference: Reference) -> tuple[int, int]:
    return reference.place, reference.position


def _halves(call_id: str) -> tuple[str, ...]:
    """Return the two halves of a composite id.

    >>> _halves("call_1|fc_9"), _halves("call_1")
    (('call_1', 'fc_9'), ())
    """
    first, found, second = call_id.partition("|")
    return (first, second) if found and first and second else ()


def _same(one: Result, other: Result) -> bool:
    try:
        return one.failed == other.failed and bool(one.content == other.content)
    except Exception:  # noqa: BLE001 - what users' objects make of == says nothing of ours
        return False
