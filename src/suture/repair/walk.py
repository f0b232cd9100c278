"""The walk of one history through the engine.

A history is walked from left to right. What is acceptable at a glance passes by. If something is unusual, only that
group gets the thorough look (pairing, then fit), together with the groups that its results refer to, which an index
of the calls finds. If too much would have to be walked again, the whole history gets the thorough look once.
"""

import sys
from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Sequence
from operator import attrgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from suture.errors import ConfigError
from suture.profiles import Profile
from suture.repair.fit import Fit
from suture.repair.ids import CallIndex
from suture.repair.pairing import OutsideError, Parts, Record
from suture.repair.rebuild import Paired, PairOptions, Place, find_speaker, pair
from suture.repair.report import Displaced, Finding, Pending, Report
from suture.wires import Demands, View, Wire
from suture.wires.fields import outline

_FEW = 1_000
"""How many messages may be walked again, however short the history is."""


class _TooMuchError(Exception):
    """A single look at everything is cheaper than continuing part by part."""


class _Cluster(Struct, eq=False):
    """Parts of a history that are looked at together, and their pairing."""

    ranges: list[range]
    paired: Paired | None = None

    @property
    def start(self) -> int:
        return self.ranges[0].start

    def find(self, start: int) -> range:
        """Return the part that begins at `start`."""
        return next(part for part in self.ranges if part.start == start)


def make_demands(profile: Profile, rules: Collection[str], items: dict[str, None], used: dict[str, None]) -> Demands:
    """Return what a glance must know about a profile; it adds to `items` and `used` the ids that pass."""
    form = profile.ids
    return Demands(
        problems=frozenset(rules),
        accepts_name=profile.accepts_name,
        field=profile.field if "missing-field" in rules else "",
        adjacent=profile.adjacent,
        items=items,
        match_id=bool if form is None else form.match,
        limit=sys.maxsize if form is None or form.limit is None else form.limit,
        used=used if form is not None and form.scope == "history" else None,
    )


class Walk:
    """The walk of one history through the engine: its output and findings so far.

    Everything before `boundary` is settled, unless a later result refers to it.
    """

    def __init__(self, wire: Wire, profile: Profile, options: PairOptions, raw: list[Any]) -> None:
        self.wire, self.profile, self.options, self.raw = wire, profile, options, raw
        self._set_like = wire.set_like and not profile.adjacent
        self._plain = raw
        """What a glance reads: the messages, or their outlines once one of them held SDK objects."""
        self._index = CallIndex(wire, raw)
        self._view = self._index.view
        self._clusters: dict[int, _Cluster] = {}
        """The clusters that got the thorough look, by the start of each of their parts."""
        self._starts: list[int] = []
        """The starts of these parts, in order."""
        self._once = False
        """Whether the history is complete."""
        self._reset()
        self.glances = wire.glances(self.fit.rules, fits=profile.has_fit)

    def _reset(self) -> None:
        self.fit = Fit(self.wire, self.profile, self.options.language, self._starts_with_user)
        self.demands = make_demands(
            self.profile, self.fit.rules, self.fit.items, self.fit.ids.used if self.fit.ids else {}
        )
        self._found: list[Finding] = []
        self.displaced: list[Displaced] = []
        self.pending: tuple[Pending, ...] = ()
        self._answered: list[Place] = []
        self._rebuilt = False
        self._repeated = 0
        """How many messages were walked again."""
        self._points: list[tuple[int, Any]] = []
        """Places since the boundary that the walk can return to."""
        self._passed = 0
        """How far everything has passed a glance, apart from the clusters."""
        self._settle(0)

    def _starts_with_user(self) -> bool:
        """Return whether what was handed in begins with somebody else than the model."""
        roles = (self._view(index).role for index in range(len(self.raw)))
        return next((role for role in roles if role != "system"), "assistant") != "assistant"

    @property
    def out(self) -> list[Any]:
        """The repaired history."""
        return self.fit.out

    @property
    def changed(self) -> bool:
        """Whether the repaired history differs from what was handed in."""
        return self._rebuilt or self.fit.changed

    def findings(self) -> list[Finding]:
        """Return all findings in order of messages; for the same message, those of pairing come before those of fit."""
        return sorted([*self._found, *self.fit.findings], key=attrgetter("index"))

    def report(self) -> Report:
        """Return the report."""
        return Report(
            wire=self.wire.name,
            profile=self.profile.name,
            findings=tuple(self.findings()),
            displaced=tuple(sorted(self.displaced, key=attrgetter("index"))),
        )

    def has_call(self, place: Place) -> bool:
        """Return whether there is a call at this place of the input."""
        index, position = place
        return 0 <= index < len(self.raw) and 0 <= position < len(self._view(index).calls)

    def run(self) -> None:
        """Walk the whole history once."""
        self._once = True
        self._walk(len(self.raw))
        waiting = {(each.index, each.position) for each in self.pending}
        unused = self.options.causes.keys() - set(self._answered) - waiting
        if unused:
            raise ConfigError(f"causes name a call at {min(unused)} that is not there or has a result")

    def go_on(self) -> None:
        """Walk the new messages; those after the last closed place are walked again when more come."""
        if self._plain is not self.raw:
            self._plain[self.boundary :] = map(outline, self.raw[self.boundary :])
        self._index.views.clear()  # otherwise it would grow with the history
        self._forget(self.boundary)
        self._take_back(self._settled)
        self._walk()

    def _walk(self, closed: int | None = None) -> None:
        """Walk everything after the boundary; later messages cannot change anything before `closed`."""
        self._repeated = 0
        try:
            self._walk_parts(self._closed_place(self.boundary) if closed is None else closed)
        except _TooMuchError:
            self.look_at_everything(self._closed_place(0) if closed is None else closed)
        self.fit.finish()

    def _walk_parts(self, closed: int) -> None:
        """Walk everything after the boundary part by part, and settle what is closed."""
        if not self.glances and not self.boundary:
            raise _TooMuchError  # if nothing passes a glance, going part by part only costs time
        end, self._points = len(self.raw), []
        place, _ = self._advance(self.boundary, closed)
        reached, glanced = self._advance(place, end)
        if place == closed and glanced and self.fit.last != "assistant":
            closed = end  # a turn with all its results
        self._points.append((reached, self._mark()))
        recent = [self._clusters[start] for start in self._starts[bisect_left(self._starts, self.boundary) :]]
        for cluster in recent:
            if cluster.ranges[-1].stop == end and cluster.paired and cluster.paired.open_place is not None:
                closed = min(closed, cluster.paired.open_place)
        for cluster in reversed(recent):
            if cluster.start < closed < cluster.ranges[-1].stop:
                closed = cluster.start
        at = bisect_right(self._points, closed, key=lambda point: point[0]) - 1
        self.boundary, self._settled = self._points[at]

    def _settle(self, place: int) -> None:
        self.boundary, self._settled = place, self._mark()

    def _mark(self) -> tuple[Any, ...]:
        return self.fit.mark(), len(self._found), len(self.displaced), len(self._answered), self._rebuilt

    def _take_back(self, point: tuple[Any, ...]) -> None:
        fitted, found, displaced, answered, self._rebuilt = point
        self.fit.take_back(fitted)
        del self._found[found:], self.displaced[displaced:], self._answered[answered:]
        self.pending = ()

    def _advance(self, start: int, stop: int) -> tuple[int, bool]:
        """Walk `raw[start:stop]`, or further if it cannot be cut there; return the end, and if a glance was enough."""
        place, glanced = start, True
        while place < stop:
            self._points.append((place, self._mark()))
            seen = self._glance(place, stop)
            if self._once and seen - place == len(self.raw):
                self.fit.out = self.raw  # an unchanged history is not copied
            elif seen > place:
                self.fit.pass_by(self.raw, place, seen)
            else:
                seen, glanced = self._visit(place), False
            place = seen
        return place, glanced

    def _glance(self, start: int, stop: int) -> int:
        """Return how far a glance accepts everything, without splitting adjacent messages of the model."""
        if start in self._clusters or not self.glances or (start and not self.fit.begun):
            return start
        at = bisect_right(self._starts, start)
        stop = min([stop, *self._starts[at : at + 1]])
        if start < self._passed and self.fit.demands_nothing:  # what comes before does not matter
            return min(self._passed, stop)
        if self.fit.last == "assistant" and (view := self._view(start)).role != "assistant":
            self.fit.end_reply(goes_on=bool(view.results))  # the thorough look may begin after another speaker
        self.demands.last, self.demands.stop = self.fit.last, stop
        point = self.fit.mark()
        seen = before = min(self.wire.glance(self._plain, start, self.demands), stop)
        if seen < stop and self._outlines(seen):
            self.fit.take_back(point)
            seen = before = min(self.wire.glance(self._plain, start, self.demands), stop)
        if start < seen < stop and self._view(seen).role == "assistant":
            while before > start and self._view(before - 1).role == "assistant":
                before -= 1
        if before == seen:
            self._passed = max(self._passed, seen)
            return seen
        self.fit.take_back(point)
        self.demands.stop = before
        return min(self.wire.glance(self._plain, start, self.demands), before) if before > start else start

    def _outlines(self, place: int) -> bool:
        """Return whether a glance has ended at SDK objects; from then on it reads outlines of all messages."""
        if self._plain is not self.raw or not self.wire.has_fields:
            return False
        if all(outline(message) is message for message in self.raw[place : place + 2]):
            return False
        self._plain = self._index.plain = list(map(outline, self.raw))
        return True

    # The thorough look

    def _visit(self, place: int) -> int:
        """Take the thorough look at the group at `place` and all that belongs to it; return where to continue."""
        cluster = self._clusters.get(place)
        if cluster is None:
            last = place
            if self._view(place).results:  # no call waits for it, so it may belong to what the model says next
                while last < len(self.raw) - 1 and self._view(last).role != "assistant":
                    last += 1
            cluster = self._include([], place, last)
        while cluster.paired is None:
            if cluster.start < place:
                return self._go_back(cluster.start, place)
            try:
                cluster.paired = self._pair(cluster.ranges)
                self._take(cluster.paired)
            except OutsideError as error:
                cost, self._index.cost = self._index.cost, 0
                self._repeat(cost + sum(map(len, cluster.ranges)))
                cluster = self._include(cluster.ranges, error.place, error.last)
        part = cluster.find(place)
        self._feed(cluster.paired, [item for item in cluster.paired.items if item.index in part], part.stop)
        return part.stop

    def _pair(self, ranges: list[range]) -> Paired:
        """Pair these parts of the history; raise `OutsideError` if more of it is needed."""
        parts = Parts(ranges, self._index)
        paired = pair(self.wire, self.raw, self.options, parts, set_like=self._set_like)
        for part in ranges:
            said = [item.view.role for item in paired.items if item.index in part][-1:]
            ends = part.stop == len(self.raw) or said != ["assistant"]
            if not ends and self._view(part.stop).role == "assistant":  # nothing separates them any more
                parts.want(part.stop)
        return paired

    def _include(self, ranges: list[range], place: int, last: int) -> _Cluster:
        """Return one cluster of these parts, the groups from `place` to `last`, and the clusters of those."""
        start, end = place, last + 1
        if ranges or self._view(place).results:
            while start and not self._is_boundary(start):
                start -= 1
        while end < len(self.raw) and not self._is_boundary(end):
            end += 1
        ranges = [*ranges, range(start, end)]
        for begin in reversed(self._starts[: bisect_left(self._starts, end)]):
            if self._clusters[begin].find(begin).stop <= start:
                break
            ranges += self._clusters[begin].ranges
        cluster = _Cluster([])
        for part in sorted(ranges, key=attrgetter("start")):
            if self._clusters.pop(part.start, None):
                del self._starts[bisect_left(self._starts, part.start)]
            if cluster.ranges and part.start <= cluster.ranges[-1].stop:
                part = range(cluster.ranges[-1].start, max(cluster.ranges.pop().stop, part.stop))  # noqa: PLW2901
            cluster.ranges.append(part)
        for part in cluster.ranges:
            self._clusters[part.start] = cluster
            insort(self._starts, part.start)
            self._index.note(part)
        return cluster

    def _go_back(self, start: int, place: int) -> int:
        """Take back everything since `start` and all clusters that reach beyond it; return where to continue."""
        clusters, starts = self._clusters, self._starts
        while (first := min([clusters[begin].start for begin in starts[bisect_left(starts, start) :]])) < start:
            start = first
        self._repeat(place - start)
        is_settled = start < self.boundary
        start = 0 if is_settled else start
        for begin in starts[bisect_left(starts, start) :]:
            clusters[begin].paired = None
        if is_settled:
            self._reset()
            return start
        stop, point = self._points.pop()
        while self._points and self._points[-1][0] >= start:
            stop, point = self._points.pop()
        self._take_back(point)
        if start < stop:
            self.fit.pass_back(self.raw, self._points[-1][0], start, stop, self._plain)
        return start

    def _repeat(self, count: int) -> None:
        """Count messages that are walked again; at some point a single look at everything is cheaper."""
        self._repeated += count
        if self._repeated > len(self.raw) + _FEW:
            raise _TooMuchError

    def _forget(self, start: int) -> None:
        """Forget the clusters from `start` on, because new messages may belong to them."""
        for begin in self._starts[bisect_left(self._starts, start) :]:
            del self._clusters[begin]
        del self._starts[bisect_left(self._starts, start) :]
        self._passed = min(self._passed, start)

    def look_at_everything(self, closed: int) -> None:
        """Take the thorough look at the whole history, and settle everything before `closed`."""
        self._forget(0)
        self._reset()
        self._index.note(range(len(self.raw)))
        paired = pair(self.wire, self.raw, self.options, set_like=self._set_like)
        closed = closed if paired.open_place is None else min(closed, paired.open_place)
        while (earlier := self._before_group(paired, closed)) < closed:
            closed = earlier
        cut = bisect_left(paired.items, closed, key=attrgetter("index"))
        self._take(paired, range(closed))
        self._feed(paired, paired.items[:cut], closed)
        self._settle(closed)
        self._take(paired, range(closed, len(self.raw)))
        self._feed(paired, paired.items[cut:], len(self.raw))

    def _before_group(self, paired: Paired, closed: int) -> int:
        """Return a place at or before `closed` that splits neither a group nor adjacent messages of the model."""
        for group in reversed(paired.groups):
            items = group.turn if self._set_like else (*group.turn, *group.results)
            begins = min(group.begins, items[0].index)
            if begins < closed <= max([item.index for item in items]):
                closed = begins
        cut = bisect_left(paired.items, closed, key=attrgetter("index"))
        while cut and paired.items[cut - 1].view.role == "assistant":
            cut -= 1
            closed = paired.items[cut].index
        return closed

    def _take(self, paired: Paired, part: range | None = None) -> None:
        """Take over the findings of pairing, for the whole input or a part of it."""
        self._rebuilt = self._rebuilt or paired.changed
        self._answered += paired.answered
        findings = paired.findings if part is None else [found for found in paired.findings if found.index in part]
        self._found += [finding.cite(self.fit.rules.get(finding.problem)) for finding in findings]
        self.displaced += [one for one in paired.displaced if part is None or one.index in part]

    def _feed(self, paired: Paired, items: Sequence[Record], stop: int) -> None:
        """Fit some of the paired messages, up to a place of the input."""
        self.fit.feed(items, paired.groups)
        if paired.pending and stop == len(self.raw):  # with the ids and names that they have in the output
            waiting = [one for group in paired.groups if group.pending for one in group.pairs if one.answer is None]
            calls = [self.wire.view(one.call.message).calls[one.position] for one in waiting]
            self.pending = tuple(
                replace(pending, call_id=call.id, name=call.name)
                for pending, call in zip(paired.pending, calls, strict=True)
            )

    # Where groups begin and end

    def _is_boundary(self, index: int) -> bool:
        """Return whether a new group may begin at `index`: it is not a result, and no model's message precedes it."""
        if self._view(index).results:
            return False
        return self._view(index - 1).role != "assistant"

    def _closed_place(self, floor: int) -> int:
        """Return the last place, at least `floor`, before which later messages cannot change anything."""
        place = len(self.raw)
        while place > floor:
            last = place
            while last > floor and self._is_silent(self._view(last - 1)):
                last -= 1
            if last == floor:
                break
            view = self._view(last - 1)
            if view.role != "assistant" and not view.results:
                break
            place = last - 1
            while place > floor and not self._is_boundary(place):
                place -= 1
            if any(find_speaker(self._view(at)) for at in range(place, last)):
                break  # the cause of a missing result depends on who speaks next
        return place

    @staticmethod
    def _is_silent(view: View) -> bool:
        return view.role == "system" or (view.role == "assistant" and view.silent)
