"""From an assignment to a history: which groups must change, what is said of them, and the new list.

A group (a turn and its results) that is whole is not touched. One that must change ends as: the turn, its
results in call order, then whatever stood between, in its old order.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple

from suture.errors import ConfigError
from suture.language import Language
from suture.pairing._assign import Assignment, Reference, Slot, Turn, alias_key, assign, match_call
from suture.pairing._build import Builder
from suture.pairing._causes import Cause, is_builtin_text, placeholder_text
from suture.pairing._orphans import ORPHAN_LIMIT, orphan_text
from suture.pairing._report import Displaced, Finding, Pending
from suture.pairing._whole import is_whole
from suture.wires import Call, Key, Piece, Wire

__all__ = ["PairOptions", "Paired", "pair"]

NOTHING_KNOWN: frozenset[Key] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class PairOptions:
    """How pairing decides where the history leaves a choice. Everything is explicit; nothing ambient is read.

    >>> PairOptions().tail
    'cancel'
    """

    tail: str = "cancel"
    orphans: str = "text"
    language: Language = "en"
    generator: Callable[[str, str, Cause, tuple[int, int]], str] | None = None
    """Name, id, cause and place (turn, number) of a call to the text of its placeholder."""
    causes: Mapping[tuple[int, int], Cause] = field(default_factory=dict[tuple[int, int], Cause])
    is_placeholder: Callable[[str], bool] | None = None
    set_like: bool = False


class Paired(NamedTuple):
    """The outcome for `messages[start:]`.

    `origins[i]` is where `messages[i]` came from (`None`: nothing moved). `boundary`: what comes before this
    index of the input is settled, unless a later result speaks of it; `cut` is that place in `messages`.

    >>> Paired([], None, 0, 0).findings
    ()
    """

    messages: Sequence[Any]
    origins: list[int] | None
    boundary: int
    cut: int
    findings: tuple[Finding, ...] = ()
    displaced: tuple[Displaced, ...] = ()
    pending: tuple[Pending, ...] = ()
    keys: tuple[Key, ...] = ()
    """The keys of the calls before `boundary`."""


def pair(
    wire: Wire,
    messages: Sequence[Any],
    options: PairOptions,
    start: int = 0,
    known: frozenset[Key] | set[Key] = NOTHING_KNOWN,
    *,
    track: bool = False,
) -> Paired:
    """Pair the calls and results of `messages[start:]`; with `track`, also say what is settled and what not.

    >>> from suture.wires import get_wire
    >>> broken = [{"role": "tool", "tool_call_id": "a", "content": "42"}]
    >>> pair(get_wire("openai-chat"), broken, PairOptions(orphans="drop")).messages
    []
    """
    if not track and is_whole(wire, messages, set_like=options.set_like):
        return Paired(messages, None, len(messages), len(messages))
    found = assign(wire, messages, start, options.is_placeholder, known)
    return _Planning(wire, messages, options, start, found).run()


class _Planning:
    """One pass over an assignment; its parts end up in a `Paired`."""

    def __init__(
        self, wire: Wire, messages: Sequence[Any], options: PairOptions, start: int, found: Assignment
    ) -> None:
        self.wire, self.messages, self.options, self.start, self.found = wire, messages, options, start, found
        self.findings: list[Finding] = []
        self.displaced: list[Displaced] = []
        self.pending: list[Pending] = []
        self.counts = _count(found)
        self.orphaned = {reference.index for reference in found.orphans}
        self.left_out = {reference.index for reference, _ in (*found.copies, *found.beaten)}
        self.tail_is_open = self._tail_is_open()
        self.carried: dict[int, list[Piece]] = {}
        """Where a changed turn ends: the results that follow it."""
        self.stays: set[int] = set()
        """Messages whose results stay where they are."""
        self.retold = {reference.index for reference in found.orphans if self._is_retold(reference)}
        """Where an orphan will be kept as text."""
        self.kept: dict[int, dict[int, str]] = {}
        """Messages whose results move: which of those stay as text."""

    def run(self) -> Paired:
        for turn, keeps in self._changing():
            self._change(turn, keeps=keeps)
        for turn in self.found.turns:
            if self._keeps_tail(turn):
                self._leave_open(turn)
            else:
                self._tell_unanswerable(turn)
        for index in self.counts:
            if index not in self.stays:
                self.kept[index] = {}
        self._tell_leftovers()
        return self._build()

    def _changing(self) -> list[tuple[Turn, bool]]:
        """Return the turns whose groups must change, and whether their calls may stay open."""
        turns = [(turn, self._keeps_tail(turn), _indexes(turn)) for turn in self.found.turns]
        whole = {turn.first: self._is_whole(turn, indexes, keeps=keeps) for turn, keeps, indexes in turns}
        for turn, _, indexes in turns:
            self.stays |= indexes if whole[turn.first] else set()
        if self.wire.set_like:
            for (turn, _, indexes), (following, _, _) in pairwise(turns):
                if whole[turn.first] and indexes and self._would_join(turn, following):
                    whole[turn.first] = False
                    self.stays -= indexes
        return [(turn, keeps) for turn, keeps, _ in turns if not whole[turn.first]]

    def _would_join(self, turn: Turn, following: Turn) -> bool:
        """Tell whether all that keeps two turns of items apart goes away: then their calls would be one turn."""
        between = range(turn.last + 1, following.first)
        return all(index in self.counts and index not in self.stays and index not in self.retold for index in between)

    # What must change

    def _tail_is_open(self) -> bool:
        """Tell whether nothing but its own results follows the last turn."""
        if not self.found.turns:
            return False
        return all(
            index in self.counts
            and index not in self.orphaned
            and not self.wire.is_loose(self.messages[index], self.counts[index])
            for index in range(self.found.turns[-1].last + 1, len(self.messages))
        )

    def _keeps_tail(self, turn: Turn) -> bool:
        return self.options.tail == "keep" and self.tail_is_open and turn is self.found.turns[-1]

    def _is_whole(self, turn: Turn, indexes: set[int], *, keeps: bool) -> bool:
        given = [slot.given for slot in turn.slots if slot.given is not None]
        missing = any(slot.given is None and self.wire.can_answer(slot.call) for slot in turn.slots)
        if turn.surplus or (missing and not keeps):
            return False
        if any(not reference.result.id for reference in given) and not _reads_in_place(self.wire, turn):
            return False
        if any(index <= turn.last for index in indexes):
            return False
        if self.options.set_like:
            return True
        in_place = indexes == set(range(turn.last + 1, turn.last + 1 + len(indexes)))
        if not in_place or sum(self.counts[index] for index in indexes) != len(given):
            return False
        before_the_last = sorted(indexes)[:-1]
        return not any(self.wire.is_loose(self.messages[index], self.counts[index]) for index in before_the_last)

    def _change(self, turn: Turn, *, keeps: bool) -> None:
        """Put the results of `turn` behind it in call order, a placeholder where one is missing."""
        run_end = turn.last + 1
        mine = _indexes(turn)
        while run_end in mine or run_end in self.left_out:
            run_end += 1
        pieces: list[Piece] = []
        before = len(self.findings)
        for position, slot in enumerate(turn.slots):
            if slot.given is not None:
                pieces.append(Piece(self.messages[slot.given.index], slot.given.position))
                self._tell_move(turn, slot, slot.given, run_end)
            elif not keeps:
                pieces += self._answer(turn, slot, position)
        if len(self.findings) == before and not turn.surplus and not mine & self.orphaned:
            self._tell(turn.first, "out-of-order", turn.slots[0], "results put together, in call order")
        self.carried[turn.last] = pieces

    def _tell_move(self, turn: Turn, slot: Slot, reference: Reference, run_end: int) -> None:
        if reference.index <= turn.last:
            self._tell(reference.index, "early", slot, f"moved behind its call at {slot.index}")
        elif reference.index >= run_end and not self.options.set_like:
            self._tell(reference.index, "late", slot, f"moved behind its call at {slot.index}")

    def _answer(self, turn: Turn, slot: Slot, position: int) -> list[Piece]:
        call = slot.call
        if not self.wire.can_answer(call):
            return []
        cause = self.options.causes.get((turn.first, position)) or self._cause(turn, slot)
        self._tell(slot.index, "dangling", slot, f"answered: {cause}")
        return [Piece(call=call, text=self._text(cause, call, (turn.first, position)), cause=str(cause))]

    def _cause(self, turn: Turn, slot: Slot) -> Cause:
        if not self.wire.arguments_ok(slot.call) and self.wire.sound_arguments(slot.call) in ({}, "{}"):
            return Cause.MALFORMED
        followed = turn is not self.found.turns[-1] or not self.tail_is_open
        return Cause.INTERRUPTED if followed else Cause.UNKNOWN

    def _text(self, cause: Cause, call: Call, place: tuple[int, int]) -> str:
        if self.options.generator is not None:
            text = self.options.generator(call.name, call.id, cause, place)
            if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - the caller's code
                raise ConfigError(f"generator returned {type(text).__name__}; it must return text")
            if text and not is_sendable(text):
                raise ConfigError("generator returned text with a lone surrogate, which cannot be sent")
            if text:
                return text
        return placeholder_text(cause, call.name, call.id, self.options.language)

    def _tell_unanswerable(self, turn: Turn) -> None:
        for slot in turn.slots:
            if slot.given is None and not self.wire.can_answer(slot.call):
                self._tell(slot.index, "dangling", slot, "")

    def _leave_open(self, turn: Turn) -> None:
        for position, slot in enumerate(turn.slots):
            if slot.given is None:
                call = slot.call
                self.pending.append(Pending(index=slot.index, position=position, call_id=call.id, name=call.name))

    # What is left over

    def _tell_leftovers(self) -> None:
        for reference, slot in self.found.copies:
            done = "dropped: its real result is there" if reference.synthetic else "dropped: an identical one is there"
            self._tell(reference.index, "duplicate", slot, done)
        for reference, slot in self.found.beaten:
            self._tell(reference.index, "duplicate", slot, "displaced: a later one takes its place")
            self._displace(reference, slot.call.name, "duplicate")
        for reference in self.found.orphans:
            self._tell_orphan(reference)

    def _tell_orphan(self, reference: Reference) -> None:
        result = reference.result
        text, complete = self.wire.result_text(result)
        done = "kept as user text" if self._is_retold(reference) else "dropped"
        if self._is_retold(reference):
            shown = orphan_text(text, result.name, result.id, self.options.language)
            self.kept[reference.index][reference.position] = shown
        if not self._is_placeholder(reference) and (done == "dropped" or not complete or len(text) > ORPHAN_LIMIT):
            self._displace(reference, result.name, "orphan")
        self.findings.append(
            Finding(index=reference.index, problem="orphan", call_id=result.id, name=result.name, done=done)
        )

    def _is_retold(self, reference: Reference) -> bool:
        """Tell whether an orphan is kept as text: a placeholder has nothing to tell."""
        return self.options.orphans == "text" and not self._is_placeholder(reference)

    def _is_placeholder(self, reference: Reference) -> bool:
        result = reference.result
        text, complete = self.wire.result_text(result)
        if result.marked or not complete:
            return result.marked
        if is_builtin_text(text, result.name or None, result.id) is not None:
            return True
        return self.options.is_placeholder is not None and bool(self.options.is_placeholder(text))

    def _displace(self, reference: Reference, name: str, reason: str) -> None:
        result = reference.result
        text, complete = self.wire.result_text(result)
        self.displaced.append(
            Displaced(
                index=reference.index,
                call_id=result.id,
                name=result.name or name,
                reason=reason,
                length=len(text),
                content=text if complete else self.wire.raw_content(result),
            )
        )

    def _tell(self, index: int, problem: str, slot: Slot, done: str) -> None:
        call = slot.call
        self.findings.append(Finding(index=index, problem=problem, call_id=call.id, name=call.name, done=done))

    # The new list

    def _build(self) -> Paired:
        boundary = self._boundary()
        findings = tuple(sorted(self.findings, key=attrgetter("index")))
        keys = self._settled_keys(boundary)
        if not self.carried and not self.kept:
            rest = self.messages if self.start == 0 else self.messages[self.start :]
            return Paired(rest, None, boundary, boundary - self.start, findings, (), tuple(self.pending), keys)
        builder = Builder(self.wire, self.messages, self.start)
        touched = sorted(self.carried.keys() | self.kept.keys())
        for index in touched:
            if index < boundary:
                builder.rebuild(index, self.kept.get(index), self.carried.get(index))
        builder.copy_to(boundary)
        cut = len(builder.built)
        for index in touched:
            if index >= boundary:
                builder.rebuild(index, self.kept.get(index), self.carried.get(index))
        builder.copy_to(len(self.messages))
        displaced = tuple(sorted(self.displaced, key=attrgetter("index")))
        return Paired(builder.built, builder.origins, boundary, cut, findings, displaced, tuple(self.pending), keys)

    def _settled_keys(self, boundary: int) -> tuple[Key, ...]:
        """Return what the calls before `boundary` go by."""
        slots = [slot for turn in self.found.turns if turn.last < boundary for slot in turn.slots]
        return (*(slot.key for slot in slots), *(alias_key(self.wire, slot.call) for slot in slots if slot.call.alias))

    def _boundary(self) -> int:
        """Return the first index that what comes next may still change."""
        places = [self.found.end, *(reference.index for reference in self.found.waiting)]
        if self.tail_is_open:
            at = len(self.found.turns) - 1
            while self.found.turns[at].joined:
                at -= 1
            slots = {slot for turn in self.found.turns[at:] for slot in turn.slots}
            places.append(self.found.turns[at].first)
            places += [slot.given.index for slot in slots if slot.given is not None]
            places += [reference.index for reference, slot in (*self.found.copies, *self.found.beaten) if slot in slots]
        return min(places)


def is_sendable(text: str) -> bool:
    """Tell whether `text` can be written as UTF-8.

    >>> is_sendable("ok")
    True
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _indexes(turn: Turn) -> set[int]:
    """Return the messages that carry the results of `turn`."""
    return {slot.given.index for slot in turn.slots if slot.given is not None}


def _reads_in_place(wire: Wire, turn: Turn) -> bool:
    """Tell whether the results of `turn`, read one by one where they stand, answer the calls they were given to."""
    waiting = [slot for slot in turn.slots if slot.given is not None]
    for slot in sorted(waiting, key=_where):
        if slot.given is not None:
            calls = [(other.key, other.call) for other in waiting]
            if waiting[match_call(wire, slot.given.result, calls)] is not slot:
                return False
            waiting.remove(slot)
    return True


def _where(slot: Slot) -> tuple[int, int]:
    return (slot.given.index, slot.given.position) if slot.given is not None else (-1, -1)


def _count(found: Assignment) -> dict[int, int]:
    """Return how many results each message carries."""
    counts: dict[int, int] = {}
    references = [slot.given for turn in found.turns for slot in turn.slots if slot.given is not None]
    references += found.orphans
    references += [reference for reference, _ in (*found.copies, *found.beaten)]
    for reference in references:
        counts[reference.index] = counts.get(reference.index, 0) + 1
    return counts
