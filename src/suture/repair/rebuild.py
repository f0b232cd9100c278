"""Rebuilding a history from an assignment: which groups must change, the findings, and the new messages.

A group (a turn and its results) that is in order is not touched. One that must change becomes: the turn, its results
in call order, then whatever was in between, in its old order.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, pairwise, takewhile
from operator import attrgetter
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from suture.errors import ConfigError
from suture.language import Language
from suture.repair.pairing import (
    Assignment,
    Parts,
    Record,
    Reference,
    Slot,
    Turn,
    assign,
    is_synthetic,
    open_place,
    take_all,
)
from suture.repair.report import Displaced, Finding, Pending
from suture.repair.texts import ORPHAN_LIMIT, Cause, orphan_text, placeholder_text
from suture.wires import Call, Piece, ResultEdit, View, Wire, sendable

Place = tuple[int, int]
"""The place of a call: the index of its message and its position in it."""


class PairOptions(Struct, frozen=True, kw_only=True):
    """The options of pairing. Everything is explicit; no environment is read.

    >>> PairOptions().tail
    'cancel'
    """

    tail: str = "cancel"
    orphans: str = "text"
    language: Language = "en"
    generator: Callable[[str, str, Cause, Place], str] | None = None
    """Makes the text of a placeholder from name, id, cause and place of the call."""
    cause: Cause | None = None
    """Why results are missing, if the history does not show it."""
    causes: Mapping[Place, Cause] = field(default_factory=dict[Place, Cause])
    is_placeholder: Callable[[str], bool] | None = None


class Pair(Struct, frozen=True, eq=False):
    """A call of a group and its result, with their messages and positions. An open call has no result."""

    call: Record
    position: int
    answer: Record | None = None
    answer_position: int = 0


class Group(Struct, frozen=True, eq=False):
    """A turn and its results in the new history."""

    turn: list[Record]
    results: list[Record]
    pairs: list[Pair]
    begins: int
    """Its first index in the original history, including early results."""
    pending: bool = False
    sources: Sequence[Any] = ()
    """The original messages of its results, if these were put into others."""


class Paired(Struct, eq=False):
    """The outcome of pairing some messages.

    >>> Paired().findings
    []
    """

    items: list[Record] = field(default_factory=list[Record])
    """The new messages, each with the index of the one that it came from."""
    groups: list[Group] = field(default_factory=list[Group])
    changed: bool = False
    findings: list[Finding] = field(default_factory=list[Finding])
    displaced: list[Displaced] = field(default_factory=list[Displaced])
    pending: list[Pending] = field(default_factory=list[Pending])
    answered: set[Place] = field(default_factory=set[Place])
    """The calls that got a placeholder."""
    open_place: int | None = None
    """The first message, apart from the last group, that later messages may still change."""

    @property
    def messages(self) -> list[Any]:
        """The new messages."""
        return [item.message for item in self.items]


def pair(
    wire: Wire,
    messages: Sequence[Any],
    options: PairOptions,
    parts: Parts | None = None,
    *,
    set_like: bool | None = None,
) -> Paired:
    """Pair the calls and results of `messages`, or of some parts of them as in `assign`.

    >>> from suture.wires import get_wire
    >>> broken = [{"role": "tool", "tool_call_id": "a", "content": "42"}]
    >>> pair(get_wire("openai-chat"), broken, PairOptions(orphans="drop")).messages
    []
    """
    parts = parts or take_all(wire, messages)
    found = assign(wire, messages, options.is_placeholder, parts)
    return _Rebuilding(parts, options, found, set_like=wire.set_like if set_like is None else set_like).run()


class _Rebuilding:
    """One pass over an assignment, which fills a `Paired`."""

    def __init__(self, parts: Parts, options: PairOptions, found: Assignment, *, set_like: bool) -> None:
        self.options, self.found, self.set_like, self.out = options, found, set_like, Paired()
        self.ranges, self.index = parts.ranges, parts.index
        self.wire, self.messages = parts.index.wire, parts.index.messages
        references = [part for turn in found.turns for slot in turn.slots for part in slot.parts]
        references += [*found.orphans, *[reference for reference, _ in (*found.copies, *found.beaten)]]
        self.counts = Counter([reference.place for reference in references])
        """How many results of each record the assignment covers."""
        self.orphaned = {reference.place for reference in found.orphans}
        self.left_out = {reference.place for reference, _ in (*found.copies, *found.beaten)}
        self.open_turn = self._open_turn() if options.tail == "keep" else None
        """The last turn, if its calls may wait for their results."""
        self.speakers: dict[int, str] = {}
        """For each turn that lacks results, by its last record, who speaks next."""
        self.changing: dict[int, Turn] = {}
        """The turns whose groups must change, by their last record."""
        self.stays: set[int] = set()
        """Records whose results stay where they are."""
        self.texts: Mapping[int, dict[int, str]] = {}
        """Records whose results move, with those of them that are kept as text."""

    def run(self) -> Paired:
        self.out.open_place = open_place(self.found)
        self._choose()
        self.texts = {place: {} for place in self.counts if place not in self.stays}
        self._report_leftovers()
        self._write()
        self.out.findings.sort(key=attrgetter("index"))
        self.out.displaced.sort(key=attrgetter("index"))
        return self.out

    def _next_speaker(self, place: int) -> str:
        """Return the role that speaks next after a record: the user, the model, or an empty text."""
        records, part = self.found.records, self.found.records[place].part
        behind = takewhile(lambda record: record.part == part, (records[at] for at in range(place + 1, len(records))))
        rest = range(self.ranges[part].stop, len(self.messages))
        views = chain((record.view for record in behind), map(self.index.view, rest))
        return next((speaker for view in views if (speaker := find_speaker(view))), "")

    def _open_turn(self) -> Turn | None:
        """Return the last turn, if it lacks results and nothing but its own results follows it."""
        turn = self.found.turns[-1] if self.found.turns else None
        if turn is None or self.ranges[-1].stop < len(self.messages) or all(slot.parts for slot in turn.slots):
            return None
        if turn.last > turn.slots[-1].place and not any(place > turn.last for place in turn.places):
            return None  # no result follows what the model said after its calls
        behind = range(turn.last + 1, len(self.found.records))
        alone = [place in self.counts and place not in self.orphaned for place in behind]
        loose = [self.found.records[place].view.loose for place in behind]
        return turn if all(alone) and not any(loose) else None

    # What must change

    def _choose(self) -> None:
        """Decide which groups must change."""
        for turn in self.found.turns:
            if self._is_whole(turn):
                self.stays |= turn.places
            else:
                self.changing[turn.last] = turn
        if self.wire.set_like:
            retold = {reference.place for reference in self.found.orphans if self._is_kept(reference)}
            for turn, following in pairwise(self.found.turns):
                # If everything between two turns of items goes away, their calls would become one turn.
                between = range(turn.last + 1, following.first)
                gone = [place in self.counts and place not in self.stays and place not in retold for place in between]
                together = self.found.records[turn.last].part == self.found.records[following.first].part
                if turn.last not in self.changing and together and turn.places and all(gone):
                    self.changing[turn.last] = turn
                    self.stays -= turn.places

    def _is_whole(self, turn: Turn) -> bool:
        places, answers = turn.places, [(slot.call, slot.parts[0].result) for slot in turn.slots if slot.parts]
        missing = any(not slot.parts and self.wire.can_answer(slot.call) for slot in turn.slots)
        if (
            turn.surplus
            or (missing and turn is not self.open_turn)
            or any(place <= turn.last for place in places)
            or any(result.id and result.id != call.id and self.wire.has_id(call) for call, result in answers)
        ):
            return False
        if self.set_like or not places:
            return True
        last = turn.last + len(places)
        if max(places) != last or sum([self.counts[place] for place in places]) != len(answers):
            return False
        return not any(self.found.records[place].view.loose for place in places if place != last)

    # The new messages

    def _write(self) -> None:
        carriers: dict[int, list[Record]] = {}
        """The new results after the turns that change."""
        for place, record in enumerate(self.found.records):
            if record.message is not self.messages[record.index]:
                self.out.changed = True
                if not record.is_step:
                    self._find(record.index, "lone-surrogate", None, "replaced by U+FFFD")
                elif record.view.results:
                    self._find(record.index, "result-in-model-message", None, "split at its results")
            if place in self.texts:
                self.out.changed = True
                rest = self.wire.rest(record.message, self.texts[place])
                self.out.items += (
                    [] if rest is None else [Record(record.index, rest, self.wire.view(rest), record.part)]
                )
            else:
                self.out.items.append(record)
            turn = self.changing.get(place)
            if turn is not None:
                self.out.changed = True
                pieces = self._pieces(turn)
                made = self.wire.carry(pieces) if pieces else []
                views = map(self.wire.view, made)
                carriers[place] = [Record(record.index, *each, record.part) for each in zip(made, views, strict=True)]
                self.out.items += carriers[place]
        self.out.groups = [self._group(turn, carriers.get(turn.last)) for turn in self.found.turns]
        if self.texts:
            self._extend_turns()

    def _extend_turns(self) -> None:
        """Extend a turn by what the model said before it, if everything in between is gone."""
        groups = self.out.groups
        begins = {id(group.turn[0]): number for number, group in enumerate(groups)}
        taken = {id(item) for group in groups for item in group.turn}
        said: list[Record] = []
        for item in self.out.items:
            number = begins.get(id(item))
            if said and said[-1].part != item.part:
                said = []
            if number is not None:
                groups[number] = replace(groups[number], turn=[*said, *groups[number].turn])
            if item.view.role != "assistant" or id(item) in taken:
                said = []
            elif said or not item.view.silent:
                said.append(item)

    def _group(self, turn: Turn, carriers: list[Record] | None) -> Group:
        """Return the group of a turn in the new history."""
        keeps, records, places = turn is self.open_turn, self.found.records, turn.places
        where: list[tuple[Record | None, int]]
        if carriers is None:
            results, sources = [records[place] for place in sorted(places)], ()
            answers = [slot.answer for slot in turn.slots]
            where = [(None, 0) if answer is None else (records[answer.place], answer.position) for answer in answers]
        else:
            results, sources = carriers, [records[place].message for place in places]
            carried = iter([(item, position) for item in carriers for position in range(len(item.view.results))])
            where = [next(carried) if self._has_piece(turn, slot) else (None, 0) for slot in turn.slots]
        pairs: list[Pair] = []
        for slot, (answer, position) in zip(turn.slots, where, strict=True):
            record, call = records[slot.place], slot.call
            pairs.append(Pair(record, slot.position - record.calls_before, answer, position))
            if answer is None and keeps:
                waiting = Pending(index=record.index, position=slot.position, call_id=call.id, name=call.name)
                self.out.pending.append(waiting)
            elif answer is None:
                self._find(record.index, "dangling", call, "")
        begins = records[min([turn.first, *places])].index
        return Group(records[turn.first : turn.last + 1], results, pairs, begins, keeps, sources)

    def _has_piece(self, turn: Turn, slot: Slot) -> bool:
        return bool(slot.parts) or (turn is not self.open_turn and self.wire.can_answer(slot.call))

    def _pieces(self, turn: Turn) -> list[Piece]:
        """Return the results of a turn in call order, a placeholder where one is missing."""
        before = len(self.out.findings)
        pieces: list[Piece] = []
        run_end = turn.last + 1
        places = turn.places
        while run_end in places or run_end in self.left_out:
            run_end += 1
        for slot in turn.slots:
            if slot.parts:
                pieces.append(self._piece(slot))
                at, place = slot.parts[0], self.found.records[slot.place].index
                if at.place <= turn.last:
                    self._find(at.index, "early", slot.call, f"moved behind its call at {place}")
                elif at.place >= run_end and not self.set_like:
                    self._find(at.index, "late", slot.call, f"moved behind its call at {place}")
            elif self._has_piece(turn, slot):
                pieces.append(self._placeholder(turn, slot))
        if len(self.out.findings) == before and not turn.surplus and not places & self.orphaned:
            first = self.found.records[turn.first].index
            self._find(first, "out-of-order", turn.slots[0].call, "results put together, in call order")
        return pieces

    def _piece(self, slot: Slot) -> Piece:
        """Return the result of a call, with its parts joined and under the id of its call."""
        call, (answer, *more) = slot.call, slot.parts
        new_id = joined = None
        if more:
            ordered = sorted(slot.parts, key=attrgetter("place", "position"))
            joined = [part for reference in ordered for part in self.wire.result_parts(reference.result) or ()]
            for reference in more:
                self._find(reference.index, "duplicate", call, "joined: another part of one result")
        if call.id != answer.result.id and self.wire.has_id(call):
            new_id, had = call.id, f"; it had {answer.result.id!r}" if answer.result.id else ""
            self._find(answer.index, "wrong-id", call, f"given the id of its call, {call.id!r}{had}")
        message = self.found.records[answer.place].message
        if new_id is not None or joined is not None:
            message = self.wire.edit(message, {}, {answer.position: ResultEdit(id=new_id, parts=joined)})
        return Piece(message, answer.position)

    def _placeholder(self, turn: Turn, slot: Slot) -> Piece:
        call, place = slot.call, (self.found.records[slot.place].index, slot.position)
        cause = self.options.causes.get(place)
        if cause is None and self.wire.is_malformed(call):
            cause = Cause.MALFORMED
        elif cause is None and self.options.cause is not None:
            cause = self.options.cause
        elif cause is None:
            if turn.last not in self.speakers:
                self.speakers[turn.last] = self._next_speaker(turn.last)
            cause = Cause.INTERRUPTED if self.speakers[turn.last] == "user" else Cause.UNKNOWN
        self.out.answered.add(place)
        self._find(place[0], "dangling", call, f"answered: {cause}")
        text: Any = self.options.generator(call.name, call.id, cause, place) if self.options.generator else ""
        if not isinstance(text, str):
            raise ConfigError(f"generator returned {type(text).__name__}; it must return text")
        if sendable(text) is not text:
            raise ConfigError("generator returned text with a lone surrogate, which cannot be sent")
        text = text or placeholder_text(cause, call.name, call.id, self.options.language)
        return Piece(call=call, text=text, cause=str(cause))

    # Leftovers

    def _report_leftovers(self) -> None:
        for reference, slot in self.found.copies:
            other = "another placeholder" if slot.parts[0].synthetic else "its real result"
            done = f"dropped: {other if reference.synthetic else 'an identical one'} is there"
            self._find(reference.index, "duplicate", slot.call, done)
        for reference, slot in self.found.beaten:
            self._find(reference.index, "duplicate", slot.call, "displaced: a later one takes its place")
            self._displace(reference, slot.call.name, "duplicate")
        for reference in self.found.orphans:
            result, kept = reference.result, self._is_kept(reference)
            text, complete = self.wire.result_text(result)
            if kept:
                shown = orphan_text(text, result.name, result.id, self.options.language)
                self.texts[reference.place][reference.position] = shown
            if not self._is_synthetic(reference) and (not kept or not complete or len(text) > ORPHAN_LIMIT):
                self._displace(reference, result.name, "orphan")
            call = Call(result.id, result.name)
            self._find(reference.index, "orphan", call, "kept as user text" if kept else "dropped")

    def _is_kept(self, reference: Reference) -> bool:
        """Return whether an orphan is kept as text; a placeholder is not, since it has no information."""
        return self.options.orphans == "text" and not self._is_synthetic(reference)

    def _is_synthetic(self, reference: Reference) -> bool:
        return is_synthetic(self.wire, reference.result, None, self.options.is_placeholder)

    def _displace(self, reference: Reference, name: str, reason: str) -> None:
        result = reference.result
        text, complete = self.wire.result_text(result)
        self.out.displaced.append(
            Displaced(
                index=reference.index,
                call_id=result.id,
                name=result.name or name,
                reason=reason,
                length=len(text),
                content=text if complete else result.content,
            )
        )

    def _find(self, index: int, problem: str, call: Call | None, done: str) -> None:
        call_id, name = (call.id, call.name) if call is not None else ("", "")
        self.out.findings.append(Finding(index=index, problem=problem, call_id=call_id, name=name, done=done))


def find_speaker(view: View) -> str:
    """Return the role that speaks in a message: the user, the model, or an empty text."""
    if view.role == "assistant":
        return "" if view.silent else view.role
    return view.role if view.role == "user" and (view.loose or not view.results) else ""
