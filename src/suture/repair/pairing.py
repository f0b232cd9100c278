"""Pairing: each result is assigned to its call, or to none. The same for every provider.

Three steps. *Read* makes records of the messages. *Gather* finds the turns and gives each result to the latest turn
that has its id. *Settle* decides, turn by turn, which call each result answers and which are left over. There is no
set of ids for the whole history: ids that restart each round, or never change, are common and valid.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import attrgetter, itemgetter
from typing import Any

from msgspec import Struct, field

from suture.errors import AmbiguousWireError
from suture.messages import TextPart
from suture.repair.ids import CallIndex, get_halves
from suture.repair.texts import FILLERS, is_builtin_text
from suture.wires import Call, Key, Result, View, Wire, check_list, get_wire, recognise

IsPlaceholder = Callable[[str], bool] | None


class OutsideError(Exception):
    """The messages from `place` to `last` must be read, too."""

    def __init__(self, place: int, last: int | None = None) -> None:
        super().__init__()
        self.place, self.last = place, place if last is None else last


class Parts(Struct, frozen=True):
    """Parts of a history that are read together, and the index of the calls outside of them."""

    ranges: Sequence[range]
    index: CallIndex

    def want(self, place: int) -> None:
        """Raise `OutsideError` if there is a message at `place` and none of the parts contains it."""
        if place >= 0 and not any(place in part for part in self.ranges):
            raise OutsideError(place)


def take_all(wire: Wire, messages: Sequence[Any], start: int = 0) -> Parts:
    """Return all messages from `start` on as one part."""
    parts = Parts([range(start, len(messages))], CallIndex(wire, messages, start))
    parts.index.note(parts.ranges[0])
    return parts


class Record(Struct, eq=False):
    """One message, or one step of a message that holds several, and the index of the message that it came from."""

    index: int
    message: Any
    view: View
    part: int = 0
    """The number of the part that it belongs to."""
    calls_before: int = 0
    """How many calls of the same message are in earlier steps."""
    is_step: bool = False


class Reference(Struct, eq=False):
    """A result and its place: the place and index of its record, and its position in that message."""

    place: int
    index: int
    position: int
    result: Result
    key: Key
    """The key of the calls that it may answer."""
    synthetic: bool = False
    beaten: bool = False
    """Whether a later, different result replaced it."""


class Slot(Struct, eq=False):
    """A call, and its result."""

    call: Call
    place: int
    position: int
    """The number of the call in the original message."""
    key: Key
    parts: list[Reference] = field(default_factory=list[Reference])
    """Its result; several if they are parts of different kinds."""

    @property
    def answer(self) -> Reference | None:
        """Its result, or the first part of it."""
        return self.parts[0] if self.parts else None


class Turn(Struct, eq=False):
    """The calls that the model made at once, from record `first` to record `last`."""

    first: int
    last: int
    slots: list[Slot] = field(default_factory=list[Slot])
    arrivals: list[Reference] = field(default_factory=list[Reference])
    """Results that came with an id of one of its calls."""
    nameless: list[Reference] = field(default_factory=list[Reference])
    """Results without an id that came while this was the latest turn."""
    surplus: bool = False
    """Whether it has more results than calls, one replaced another, or one came in several parts."""

    @property
    def places(self) -> set[int]:
        """The records that hold its results."""
        return {slot.parts[0].place for slot in self.slots if slot.parts}


class Assignment(Struct, eq=False):
    """The turns of a history with their results, and all results that belong to none."""

    records: list[Record]
    turns: list[Turn] = field(default_factory=list[Turn])
    orphans: list[Reference] = field(default_factory=list[Reference])
    unsettled: Turn | None = None
    """One of the last two turns, if it adopted or could adopt a result: a later turn may still have its id."""
    strays: list[tuple[Reference, int]] = field(default_factory=list[tuple[Reference, int]])
    """Results whose id no turn up to the next one has, and how many turns come before each."""
    copies: list[tuple[Reference, Slot]] = field(default_factory=list[tuple[Reference, Slot]])
    """Results dropped without loss: an identical twin, or a placeholder next to another result."""
    beaten: list[tuple[Reference, Slot]] = field(default_factory=list[tuple[Reference, Slot]])
    """Real results that a later, different one replaced."""
    _ends: dict[int, int] = field(default_factory=dict[int, int])

    def is_directly_behind(self, turn: Turn, place: int) -> bool:
        """Return whether there are only results between a turn and the record at `place`."""
        if turn.last not in self._ends:
            end = turn.last + 1
            while end < len(self.records) and self.records[end].view.results and not self.records[end].view.loose:
                end += 1
            self._ends[turn.last] = end
        return place <= self._ends[turn.last]


def open_place(found: Assignment) -> int | None:
    """Return the index of the first message, apart from the last group, that later messages may still change."""
    places = [] if found.unsettled is None else [found.unsettled.first]
    records = found.records
    last = len(records) - 1
    while last >= 0 and records[last].view.role == "assistant":
        last -= 1  # what the model says at the end may continue with calls
    while last >= 0 and not _speaks(records[last]):
        last -= 1
    places += [reference.place for reference in found.orphans if reference.place > last]
    for turn in found.turns[-1:]:
        early = [reference.place for reference in (*turn.arrivals, *turn.nameless)]
        places += [place for place in early if place < turn.first]
    return min([records[place].index for place in places], default=None)


def _speaks(record: Record) -> bool:
    """Return whether the model says or calls something in a message."""
    return record.view.role == "assistant" and not record.view.silent


def read(wire: Wire, parts: Parts) -> list[Record]:
    """Return a record for each message; several for one that holds calls and results in steps."""
    records: list[Record] = []
    for part, index in [(part, index) for part, places in enumerate(parts.ranges) for index in places]:
        message, view = parts.index.look(index)
        if not view.results or view.role != "assistant":
            records.append(Record(index, message, view, part))
            continue
        calls = 0
        for step in wire.steps(message):
            view = wire.view(step)
            records.append(Record(index, step, view, part, calls, is_step=True))
            calls += len(view.calls)
    return records


def assign(
    wire: Wire,
    messages: Sequence[Any],
    is_placeholder: IsPlaceholder = None,
    parts: Parts | None = None,
    *,
    start: int = 0,
) -> Assignment:
    """Assign each result of `messages[start:]`, or of some parts of them, to its call.

    The outcome is the same as for all messages: if that needs a message outside of the parts, `OutsideError` names it.

    >>> from suture.wires import get_wire
    >>> assign(get_wire("openai-chat"), [{"role": "tool", "tool_call_id": "a", "content": "42"}]).orphans[0].result.id
    'a'
    """
    parts = parts or take_all(wire, messages, start)
    found = Assignment(read(wire, parts))
    _Assigning(found, is_placeholder, parts).run()
    return found


def is_synthetic(wire: Wire, result: Result, call: Call | None, is_placeholder: IsPlaceholder) -> bool:
    """Return whether a result is only a placeholder; `call` is the call that it answers, if there is one."""
    if result.marked:
        return True
    text, complete = wire.result_text(result)
    if not complete:
        return False
    name, ids = (result.name or None, {result.id}) if call is None else (call.name, {call.id, result.id})
    # The text of a rejection may begin with who refused it.
    said = text.removeprefix("rejected: ")
    if text in FILLERS or any(is_builtin_text(said, name, each) is not None for each in ids):
        return True
    return is_placeholder is not None and bool(is_placeholder(text))


_WHERE = attrgetter("place", "position")


class _Queue:
    """Calls that a result may answer, in order; each is looked at once, however many results there are."""

    __slots__ = ("_open", "_weak", "slots")

    def __init__(self) -> None:
        self.slots: list[Slot] = []
        self._open = self._weak = 0

    def take(self, *, real: bool) -> Slot | None:
        """Return the first call without a result; if all have one, for a `real` result the first with a placeholder."""
        slots = self.slots
        while self._open < len(slots) and slots[self._open].parts:
            self._open += 1
        if self._open < len(slots):
            return slots[self._open]
        if not real:
            return None
        while self._weak < len(slots) and not slots[self._weak].parts[0].synthetic:
            self._weak += 1
        return slots[self._weak] if self._weak < len(slots) else None


class _Assigning:
    """Finds the turns, gives each result to the latest one that has its id, and decides which call it answers."""

    def __init__(self, found: Assignment, is_placeholder: IsPlaceholder, parts: Parts) -> None:
        self.found, self.is_placeholder, self.parts = found, is_placeholder, parts
        self.wire, self.messages = parts.index.wire, parts.index.messages
        self.latest: dict[Key, Turn] = {}
        self.aliases: dict[Key, tuple[int, Key]] = {}
        """By alias of a call (its other id, or half of a composite one), the last turn and call that has it."""
        self.unmatched: list[tuple[Reference, int]] = []
        """Results whose id no earlier turn has, and how many turns come before each."""
        self.waiting: list[Reference] = []
        """Those since the last turn, which may belong to the next one."""
        self.barred = 0
        """How many of these were followed by a message of the model, so that they may not."""
        self.last_spoken: dict[int, int] = {}
        """The last place in each part where the model speaks."""
        self.known: set[Key] = set()
        """The keys of the calls in the turns that are settled."""

    def run(self) -> None:
        records = self.found.records
        place = 0
        while place < len(records):
            view = records[place].view
            if view.role == "assistant":
                place = self._read_run(place)
                continue
            for position, result in enumerate(view.results):
                self._receive(Reference(place, records[place].index, position, result, self.wire.key(result)))
            place += 1
        self._hand_over(None)
        for reference, number in self.unmatched:
            self._look_ahead(reference, number)
        for turn in self.found.turns:  # in order, so that earlier turns are final
            if turn.arrivals or turn.nameless:
                self._settle(turn)
            self.known.update([slot.key for slot in turn.slots])
        self._adopt()
        self.found.orphans.sort(key=_WHERE)

    def _part(self, place: int) -> range:
        return self.parts.ranges[self.found.records[place].part]

    # Which turn a result belongs to

    def _read_run(self, start: int) -> int:
        """Read the adjacent messages of the model from `start` on; return where they end."""
        records = self.found.records
        first, last_call, stop = -1, -1, start
        while stop < len(records) and records[stop].view.role == "assistant":
            view = records[stop].view
            if first < 0 and not view.silent:
                first = stop
            if view.calls:
                last_call = stop
            stop += 1
        if first >= 0:
            self.last_spoken[records[first].part] = first
        if last_call < 0:
            self.barred = len(self.waiting) if first >= 0 else self.barred
            return stop
        # What the model said after its last call belongs to the turn only if results follow directly.
        goes_on = self.wire.set_like or (stop < len(records) and bool(records[stop].view.results))
        turn = Turn(first, stop - 1 if goes_on else last_call)
        for place in range(turn.first, turn.last + 1):
            for number, call in enumerate(records[place].view.calls, records[place].calls_before):
                key = self.wire.key(call)
                turn.slots.append(Slot(call, place, number, key))
                if call.id:
                    self.latest[key] = turn
                    for alias in filter(None, (call.id, call.alias, *get_halves(call.id))):
                        self.aliases[self.wire.key(call._replace(id=alias))] = len(self.found.turns), key
        self._hand_over(turn)
        self.found.turns.append(turn)
        return stop

    def _receive(self, reference: Reference) -> None:
        """Give a result to the latest turn with a call that has its id, also as an alias."""
        turns, has_id, index = self.found.turns, bool(reference.result.id), self.parts.index
        turn = self.latest.get(reference.key) if has_id else turns[-1] if turns else None
        part = self._part(reference.place)
        if turn is None or self._part(turn.first) is not part:
            self.parts.want(index.find(reference.key, part.start) if has_id else index.find_turn(part.start))
        if turn is None and has_id:
            if index.refers(reference.index):
                return  # its call may be stored by the service
            halves = [reference.result._replace(id=half) for half in get_halves(reference.result.id)]
            names = [reference.key, *map(self.wire.key, halves)]
            for name in names:
                self.parts.want(index.find_alias(name, part.start))
            if meant := [self.aliases[name] for name in names if name in self.aliases]:
                number, reference.key = max(meant, key=itemgetter(0))
                turn = turns[number]
        if turn is not None:
            (turn.arrivals if has_id else turn.nameless).append(reference)
        else:
            self.waiting.append(reference)
            self.unmatched.append((reference, len(turns)))

    def _hand_over(self, turn: Turn | None) -> None:
        """Give each waiting result to the next turn, if that has its id and no message of the model is in between."""
        keys = {slot.key for slot in turn.slots} if turn is not None and self.waiting else set[Key]()
        for number, reference in enumerate(self.waiting):
            if reference.result.id and reference.key not in keys:
                self.found.strays.append((reference, len(self.found.turns)))
            elif turn is None or number < self.barred:
                self.found.orphans.append(reference)
            else:
                (turn.arrivals if reference.result.id else turn.nameless).append(reference)
        self.waiting, self.barred = [], 0

    def _look_ahead(self, reference: Reference, number: int) -> None:
        """Request the messages that decide on a result whose id no earlier turn has, up to the next turn or speaker."""
        turns, records, part = self.found.turns, self.found.records, self._part(reference.place)
        if part.stop == len(self.messages) or (number < len(turns) and self._part(turns[number].first) is part):
            return
        before, may_be_adopted = turns[number - 1] if number else None, False
        if before is not None and self.found.is_directly_behind(before, reference.place):
            keys = {slot.key for slot in before.slots}
            may_be_adopted = len(keys) < len(before.slots) or not keys.issubset([one.key for one in before.arrivals])
        if may_be_adopted or self.last_spoken.get(records[reference.place].part, -1) < reference.place:
            last, index = part.stop, self.parts.index
            while last < len(self.messages) - 1 and not (
                index.view(last).calls if may_be_adopted else index.view(last).role == "assistant"
            ):
                last += 1
            raise OutsideError(part.stop, last)

    # Which call it answers

    def _settle(self, turn: Turn) -> None:
        """Give results to calls with their id, and their name if they have one; without an id, by name alone."""
        queues: dict[Any, _Queue] = defaultdict(_Queue)
        for slot in turn.slots:
            family, name = self.wire.family(slot.call), slot.call.name
            for heading in {(slot.key,), (slot.key, name), (family, "", None), (family, name, None)}:
                queues[heading].slots.append(slot)
        twins: dict[Any, list[tuple[Reference, Slot]]] = defaultdict(list)
        for reference in turn.arrivals:
            named = (reference.key, reference.result.name)
            queue = queues[named if reference.result.name and named in queues else (reference.key,)]
            slot = self._fill(turn, queue, reference)
            if slot is not None:
                twins[self._content(reference)].append((reference, slot))
                continue
            turn.surplus = True
            if reference.synthetic:
                self.found.copies.append((reference, queue.slots[-1]))
            elif not self._collapse(twins, reference):
                self._compete(turn, queue.slots[-1], reference)
                twins[self._content(reference)].append((reference, queue.slots[-1]))
        for reference in turn.nameless:
            queue = queues.get((self.wire.family(reference.result), reference.result.name, None))
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
        if slot.parts:
            self.found.copies.append((slot.parts[0], slot))
            turn.surplus = True
        slot.parts = [reference]
        return slot

    def _content(self, reference: Reference) -> Any:
        return (reference.key, reference.result.failed, self.wire.result_text(reference.result)[0])

    def _collapse(self, twins: dict[Any, list[tuple[Reference, Slot]]], reference: Reference) -> bool:
        """Drop a result that says the same as another one with its id."""
        for other, slot in twins.get(self._content(reference), ()):
            if other.beaten:
                continue
            try:
                same = bool(other.result.content == reference.result.content)
            except Exception:  # noqa: BLE001, S112 - what users' objects make of == says nothing of ours
                continue
            if same:
                self.found.copies.append((reference, slot))
                return True
        return False

    def _compete(self, turn: Turn, slot: Slot, reference: Reference) -> None:
        """Decide between different results for one call: parts of different kinds are joined, else the last wins."""
        begin = self._part(turn.first).start  # if an earlier turn has the id too, it is unclear whose it is
        if not slot.parts or reference.key in self.known or self.parts.index.find(reference.key, begin) >= 0:
            self.found.orphans.append(reference)
            return
        kinds = {kind for part in slot.parts for kind in self._kinds(part)}
        if kinds and self._kinds(reference) and not kinds & self._kinds(reference):
            slot.parts.append(reference)
            return
        for part in slot.parts:
            part.beaten = True
            self.found.beaten.append((part, slot))
        slot.parts = [reference]

    def _kinds(self, reference: Reference) -> set[str]:
        """Return whether a result holds text, something else, or both; an empty set if it cannot be taken apart."""
        parts = self.wire.result_parts(reference.result)
        return {"text" if isinstance(part, TextPart) else "other" for part in parts or ()}

    def _adopt(self) -> None:
        """Give a turn's only open call, or one with a placeholder, the only result after it whose id no call has."""
        behind: dict[int, list[Reference]] = defaultdict(list)
        for reference, number in self.found.strays:
            turn = self.found.turns[number - 1] if number else None
            if turn is not None and self.found.is_directly_behind(turn, reference.place):
                behind[number - 1].append(reference)
            else:
                self.found.orphans.append(reference)
        for number, references in behind.items():
            turn = self.found.turns[number]
            slots = [slot for slot in turn.slots if not slot.parts]
            slots = slots or [slot for slot in turn.slots if slot.parts[0].synthetic and not slot.parts[0].result.id]
            if len(slots) == 1 and number >= len(self.found.turns) - 2 and self.found.unsettled is None:
                self.found.unsettled = turn
            result, call = references[0].result, slots[0].call if slots else None
            if (
                len(references) == 1 == len(slots)
                and call is not None
                and self.wire.family(result) == self.wire.family(call)
                and result.name in {"", call.name}
                and not is_synthetic(self.wire, result, None, self.is_placeholder)  # it is about another call
            ):
                self.found.copies += [(placeholder, slots[0]) for placeholder in slots[0].parts]
                turn.surplus = turn.surplus or bool(slots[0].parts)
                slots[0].parts = references
            else:
                self.found.orphans += references


# Where a history may be cut: between two groups, never inside one


def cuts(messages: Sequence[Any], wire: str | Wire | None = None) -> list[int]:
    """Return the places where `messages` may be cut so that `messages[:place]` and `messages[place:]` are both whole.

    A call and its result stay on the same side. Adjacent messages of the model stay together: they may be one signed
    turn, or a reasoning item and its follower; only the provider's own compaction may start a new part. The two ends
    count as places, too.

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
    check_list(messages)
    names = recognise(messages) if wire is None else (wire,)
    wires = [get_wire(name) if isinstance(name, str) else name for name in names]
    found = [cuts_between(each, messages, assign(each, messages)) for each in wires]
    if any(other != found[0] for other in found[1:]):
        raise AmbiguousWireError(tuple(str(name) for name in names))
    return found[0]


def cuts_between(wire: Wire, messages: Sequence[Any], assignment: Assignment) -> list[int]:
    """Return the places where `messages` may be cut, given the assignment of their results."""
    records = assignment.records
    closed = bytearray(len(messages) + 1)
    for one, other in pairwise(records):
        same_turn = one.view.role == other.view.role == "assistant" and one.index != other.index
        if same_turn and not wire.compacted_by(messages[other.index]):
            closed[other.index] = 1
    for turn in assignment.turns:
        places = [turn.first, turn.last, *[part.place for slot in turn.slots for part in slot.parts]]
        first, last = records[min(places)].index, records[max(places)].index
        closed[first + 1 : last + 1] = b"\x01" * (last - first)
    return [place for place in range(len(messages) + 1) if not closed[place]]
