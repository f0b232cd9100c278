"""`Repairer`: the same as `repair`, for a history that grows. What is settled is not looked at again.

Only the open end (the last turn with its results, and a result that may still meet its call) is worked out again
when something is added. A result that speaks of an earlier turn sends the whole history through once more.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, Generic, Literal, overload

from suture.errors import AmbiguousWireError, InputError
from suture.messages import M
from suture.pairing import Displaced, Finding, OutsideError, Paired, Pending, Report, pair
from suture.profiles import Profile
from suture.repair._engine import Causes, Generator, Plan, attach, candidates, make_options, renamed
from suture.repair._fit import Fitter
from suture.wires import Key, narrow

__all__ = ["Repairer"]


class Repairer(Generic[M]):
    """Repairs a history as it grows, in time linear in what is new and in the open end, however long the history.

    It takes the options of `repair`, and has its results: `messages` (a view that grows along), `changed`,
    `report`, `pending`, `unresolved`. If an earlier message changed, call `reset`; messages mutated in place
    are not noticed.

    >>> repairer = Repairer(wire="openai-chat")
    >>> call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    >>> _ = repairer.extend([{"role": "assistant", "tool_calls": [call]}])
    >>> _ = repairer.extend([{"role": "user", "content": "stop"}])
    >>> [message["role"] for message in repairer.messages]
    ['assistant', 'tool', 'user']
    """

    def __init__(  # noqa: PLR0913 - the choices of `repair`
        self,
        messages: Iterable[M] | tuple[()] = (),
        *,
        wire: str | None = None,
        profile: str | Profile | None = None,
        tail: Literal["cancel", "keep"] = "cancel",
        orphans: Literal["text", "drop"] = "text",
        generator: Generator | None = None,
        causes: Causes | None = None,
        is_placeholder: Callable[[str], bool] | None = None,
        language: str | None = None,
    ) -> None:
        self._options = make_options(
            tail=tail,
            orphans=orphans,
            generator=generator,
            causes=causes,
            is_placeholder=is_placeholder,
            language=language,
        )
        self._asked = (wire, profile)
        self.reset(messages)

    def reset(self, messages: Iterable[M] = ()) -> None:
        """Forget everything and start again with `messages`."""
        self._raw: list[M] = []
        self._growing = self._begun(())
        self.extend(messages)

    def _begun(self, messages: Sequence[M]) -> "list[_Growing]":
        """Return a repair, with nothing in it yet, for each wire that a history with `messages` may be of."""
        return [_Growing(plan, self._raw) for plan in candidates(messages, *self._asked, self._options)]

    def extend(self, new: Iterable[M]) -> "Repairer[M]":
        """Add messages at the end. If one of them is malformed, or the generator fails, nothing has changed."""
        if isinstance(new, str | bytes | Mapping) or not isinstance(new, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"expected a list of messages, found {type(new).__name__}")  # pyright: ignore[reportUnknownArgumentType]
        added = list(new)
        start = len(self._raw)
        self._raw.extend(added)
        try:
            growing = self._growing if start else self._begun(added)
            names = narrow([one.plan.wire.name for one in growing], self._raw, start)
            growing = [one for one in growing if one.plan.wire.name in names]
            steps = [(one, one.prepare(start)) for one in growing]
        except BaseException:
            del self._raw[start:]
            raise
        try:
            for one, paired in steps:
                one.apply(paired)
        except BaseException:
            self.reset(self._raw[:start])
            raise
        self._growing = growing
        return self

    @property
    def messages(self) -> Sequence[M]:
        """The repaired history, as a view that grows along."""
        return _Window(self._only.out)

    @property
    def changed(self) -> bool:
        """Whether the repaired history differs from what was handed in."""
        return self._only.has_changed()

    @property
    def report(self) -> Report:
        """What was found, and what was done."""
        only = self._only
        return only.plan.report(only.findings(), [*only.displaced, *only.tail_displaced])

    @property
    def pending(self) -> tuple[Pending, ...]:
        """Calls at the tail that wait for their results (only with `tail="keep"`)."""
        return self._only.pending

    @property
    def unresolved(self) -> tuple[Finding, ...]:
        """What no operation could mend."""
        return self._only.unresolved()

    @property
    def _only(self) -> "_Growing":
        """The one repair that counts: where the messages may be of several wires, they must agree."""
        first, *others = self._growing
        if any(first.out != other.out for other in others):
            raise AmbiguousWireError(tuple(growing.plan.wire.name for growing in self._growing))
        return first


class _Growing:
    """The state of one repair: what is settled, and the open end."""

    def __init__(self, plan: Plan, raw: list[Any]) -> None:
        self.plan, self.raw = plan, raw
        self.out: list[Any] = []
        self.tail_displaced: list[Displaced] = []
        self.pending: tuple[Pending, ...] = ()
        self._rules = plan.profile.rules_for(plan.wire.name)
        self._pair_options = plan.pair_options()
        self._fits = plan.profile.has_fit
        self._start_again()

    def _start_again(self) -> None:
        self.displaced: list[Displaced] = []
        self._settled = 0
        self._boundary = 0
        self._known: set[Key] = set()
        self._fitter = Fitter(self.plan.wire, self.plan.profile, self.plan.options.language)
        self._found: tuple[list[Finding], list[Finding]] = ([], [])
        self._tail_found: tuple[list[Finding], list[Finding]] = ([], [])
        self._mended = False
        """Whether anything settled was mended."""
        self._unmended: list[Finding] = []
        """What is settled and could not be mended."""

    def has_changed(self) -> bool:
        """Tell whether what comes out differs from what went in."""
        return self._mended or any(finding.mended for found in self._tail_found for finding in found)

    def unresolved(self) -> tuple[Finding, ...]:
        """Return what no operation could mend."""
        tail = [finding for found in self._tail_found for finding in found if not finding.mended]
        return tuple(sorted([*self._unmended, *tail], key=attrgetter("index")))

    def _settle(self, kind: int, findings: Sequence[Finding]) -> None:
        self._found[kind].extend(findings)
        for finding in findings:
            if finding.mended:
                self._mended = True
            else:
                self._unmended.append(finding)

    def findings(self) -> list[Finding]:
        """Return all findings, pairing's before fit's where they speak of one message."""
        (paired, fitted), (tail_paired, tail_fitted) = self._found, self._tail_found
        return sorted([*paired, *tail_paired, *fitted, *tail_fitted], key=attrgetter("index"))

    def prepare(self, start: int) -> tuple[Paired, bool]:
        """Pair the open end with what is new from `start` on; also say whether that took the whole history."""
        if self._fits:
            for index in range(start, len(self.raw)):
                self.plan.wire.view(self.raw[index], index)
        wire, options = self.plan.wire, self._pair_options
        try:
            return pair(wire, self.raw, options, self._boundary, self._known, track=True), False
        except OutsideError:
            return pair(wire, self.raw, options, track=True), True

    def apply(self, step: tuple[Paired, bool]) -> None:
        """Take over what `prepare` found."""
        paired, from_start = step
        if from_start:
            self._start_again()
        findings = attach(paired.findings, self._rules)
        self._settle(0, [finding for finding in findings if finding.index < paired.boundary])
        tail_paired = [finding for finding in findings if finding.index >= paired.boundary]
        self.displaced.extend(item for item in paired.displaced if item.index < paired.boundary)
        self.tail_displaced = [item for item in paired.displaced if item.index >= paired.boundary]
        self.pending = paired.pending
        settled, tail, tail_fitted = self._fit(paired)
        self.out[self._settled :] = settled
        self._settled += len(settled)
        self.out += tail
        self._tail_found = (tail_paired, tail_fitted)
        self._boundary = paired.boundary
        self._known.update(paired.keys)

    def _fit(self, paired: Paired) -> tuple[list[Any], list[Any], list[Finding]]:
        """Return what is settled, what is not, and what was found about the latter."""
        if not self._fits:
            return list(paired.messages[: paired.cut]), list(paired.messages[paired.cut :]), []
        origins = range(self._boundary, len(self.raw)) if paired.origins is None else paired.origins
        pairs = list(zip(paired.messages, origins, strict=True))
        for message, origin in islice(pairs, paired.cut):
            self._fitter.feed(message, origin)
        settled, found = self._fitter.take()
        self._settle(1, found)
        end = self._fitter.fork()
        end.pending = frozenset(call.index for call in paired.pending)
        for message, origin in islice(pairs, paired.cut, None):
            end.feed(message, origin)
        tail = end.finish()
        self.pending = renamed(paired.pending, end)
        return settled, tail, end.findings


class _Window(Sequence[M], Generic[M]):
    """A read-only view of a list that goes on growing."""

    __slots__ = ("_items",)

    def __init__(self, items: list[M]) -> None:
        self._items = items

    @overload
    def __getitem__(self, index: int) -> M: ...
    @overload
    def __getitem__(self, index: slice) -> list[M]: ...
    def __getitem__(self, index: int | slice) -> M | list[M]:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[M]:
        return iter(self._items)

    def __eq__(self, other: object) -> bool:
        return list(self._items) == list(other) if isinstance(other, Sequence) else NotImplemented  # pyright: ignore[reportUnknownArgumentType]

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"<view of {len(self._items)} messages>"
