"""`Repairer` and `Follower`: like `repair`, but for a growing history, whose settled part is not read again."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import is_
from typing import Any, Generic, Unpack, cast, overload

from msgspec.structs import replace

from suture.errors import ConfigError, InputError
from suture.messages import History, M
from suture.messages.history import FixedSequence
from suture.profiles import Profile, default_profile, get_profile
from suture.repair.engine import Causes, Choices, Repaired, agreed, make_options, make_walks
from suture.repair.report import Finding, Pending, Report
from suture.repair.walk import Walk, make_demands
from suture.wires import Demands, Wire, get_wire, narrow


class Repairer(Generic[M]):
    """Repairs a history as it grows, in time linear in the new messages and the open end, however long the history is.

    It takes the options of `repair` and has its results: `messages` (a view that grows with the history), `changed`,
    `report`, `pending`, `unresolved`. If an earlier message changed, call `reset`; messages mutated in place
    are not noticed.

    >>> repairer = Repairer(wire="openai-chat")
    >>> call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    >>> _ = repairer.extend([{"role": "assistant", "tool_calls": [call]}])
    >>> _ = repairer.extend([{"role": "user", "content": "stop"}])
    >>> [message["role"] for message in repairer.messages]
    ['assistant', 'tool', 'user']
    """

    def __init__(
        self,
        messages: Iterable[M] | tuple[()] = (),
        *,
        wire: str | Wire | None = None,
        profile: str | Profile | None = None,
        **choices: Unpack[Choices],
    ) -> None:
        self._options = make_options(**choices)
        self._asked = (wire, profile)
        self._start(messages)

    def reset(self, messages: Iterable[M] = (), *, causes: Causes | None = None) -> None:
        """Forget everything, causes too, and start again with `messages`. If that fails, nothing has changed."""
        before = dict(vars(self))
        try:
            self._options = replace(self._options, causes={})
            self._start(messages, causes)
        except BaseException:
            vars(self).update(before)
            raise

    def _start(self, messages: Iterable[M], causes: Causes | None = None) -> None:
        self._raw: list[M] = []
        self._walks = make_walks(self._raw, *self._asked, self._options)
        self.extend(messages, causes=causes)

    def extend(self, new: Iterable[M], *, causes: Causes | None = None) -> "Repairer[M]":
        """Add messages at the end, and `causes` for calls without results, by their places in the whole history.

        If a message is malformed, a cause names no call, or the generator fails, nothing has changed.
        """
        if isinstance(new, str | bytes | Mapping) or not isinstance(new, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"expected a list of messages, found {type(new).__name__}")  # pyright: ignore[reportUnknownArgumentType]
        added, options = list(new), self._options
        if not added and not causes:
            return self
        start = len(self._raw)
        self._raw += added
        try:
            if causes:
                known = {**options.causes, **make_options(causes=causes).causes}
                self._options = replace(options, causes=known)
                for walk in self._walks:
                    walk.options = self._options
            names_settled = any(index < walk.boundary for walk in self._walks for index, _ in causes or ())
            # Now the wire can be recognised; or a settled call has another cause.
            if names_settled or (start == 0 and self._raw and self._asked[0] is None):
                self._walks = make_walks(self._raw, *self._asked, self._options)
            names = narrow([walk.wire.name for walk in self._walks], self._raw, start) if len(self._walks) > 1 else ()
            walks = [walk for walk in self._walks if not names or walk.wire.name in names]
            for place in causes or ():
                if not any(walk.has_call(place) for walk in walks):
                    raise ConfigError(f"causes name a call at {place} that is not there")  # noqa: TRY301 - undone below
            for walk in walks:
                walk.go_on()
        except BaseException:
            old, self._options = self._raw[:start], options
            self._start(old)
            raise
        self._walks = walks
        return self

    @property
    def messages(self) -> Sequence[M]:
        """The repaired history, as a view that grows with it."""
        return _Window(self)

    @property
    def changed(self) -> bool:
        """Whether the repaired history differs from the original."""
        return self.walk.changed

    @property
    def report(self) -> Report:
        """The findings, and what was done."""
        return self.walk.report()

    @property
    def pending(self) -> tuple[Pending, ...]:
        """Calls at the end that wait for their results (only with `tail="keep"`)."""
        return self.walk.pending

    @property
    def unresolved(self) -> tuple[Finding, ...]:
        """The findings that no operation could repair."""
        return tuple([finding for finding in self.walk.findings() if not finding.mended])

    @property
    def walk(self) -> Walk:
        """The walk that counts."""
        return agreed(self._walks) if len(self._walks) > 1 else self._walks[0]


class _Window(FixedSequence[M], Generic[M]):
    """A read-only view of a repairer's messages."""

    __slots__ = ("_repairer",)
    advice = "this is a view of a repairer's messages; give it new ones: repairer.extend([message])"

    def __init__(self, repairer: Repairer[M]) -> None:
        self._repairer = repairer

    @property
    def _items(self) -> list[M]:
        return self._repairer.walk.out

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


class Follower:
    """Returns for each state of a growing history what its provider accepts: the history itself, if possible.

    >>> from suture.messages import History, Message
    >>> history = History([Message.user("hi")])
    >>> Follower(wire="message").follow(history).messages is history
    True
    """

    def __init__(self, wire: str, profile: str | Profile | None = None, **options: Any) -> None:
        self._wire, self._profile = get_wire(wire), default_profile(wire) if profile is None else get_profile(profile)
        self._make: Callable[..., Repairer[Any]] = partial(Repairer, wire=wire, profile=self._profile, **options)
        self._repairer: Repairer[Any] | None = None
        """The repairer, made when a glance is not enough."""
        rules = self._profile.rules_for(self._wire)
        self._demands = make_demands(self._profile, rules, {}, {})
        self._history = self._repaired = self._sent = History[Any]()
        """The last history, the part of it that the repairer has, and what was sent instead."""
        self._clean = self._wire.glances(rules, fits=self._profile.has_fit)
        """Whether everything was in order so far, so that a glance at new messages may be enough."""
        self._last = ""

    def follow(self, history: History[Any]) -> Repaired[Any]:
        """Return the form of `history` that may be sent; only new messages are read, if possible at a glance."""
        if self.passes(history):
            history.log.memo[Follower] = self
            report = Report(wire=self._wire.name, profile=self._profile.name)
            return Repaired(messages=cast("Any", history), changed=False, report=report)
        repairer = self._repairer
        if repairer is not None and history.follows(self._repaired):
            repairer.extend(history[self._repaired.length :])
        else:
            repairer = self._repairer = self._make(history)
        self._history = self._repaired = history
        walk, report, self._clean = repairer.walk, repairer.report, False
        self._demands = walk.demands
        if history.length and walk.glances and not (walk.changed or report.findings or walk.pending):
            self._look_back(history)
            self._clean = self._last != "assistant" and walk.boundary == history.length
        if self._clean:
            history.log.memo[Follower] = self
        messages = self._send(repairer.messages) if walk.changed else history
        return Repaired(messages=cast("Any", messages), changed=walk.changed, report=report, pending=walk.pending)

    def passes(self, history: History[Any]) -> bool:
        """Return whether `history` extends one that was acceptable, and its new messages pass a glance."""
        before = self._history
        if history is before:
            return self._clean
        start, length = before.length, history.length
        if not self._clean or start > length or (start and history.log is not before.log):
            return False
        if start < length:
            demands = self._demands
            demands.last, demands.stop = self._last, length
            if self._wire.glance(history.log, start, demands) < length:
                self._clean = False
                return False
            self._look_back(history)
        self._history, self._clean = history, self._last != "assistant"
        return self._clean

    def _look_back(self, history: History[Any]) -> None:
        """Remember who spoke last."""
        wire, last = self._wire, history.log[history.length - 1]
        if wire.alternates:
            view = wire.view(last)
            self._last = "results" if view.results else view.role
        else:
            self._last = "assistant" if wire.made_by_model(last) else ""

    def _send(self, messages: Sequence[Any]) -> History[Any]:
        """Return `messages` as a history that extends the last one, so that it shares the memo of its log."""
        sent = self._sent
        if sent.length > len(messages) or not all(map(is_, sent, messages)):
            sent = History()
        self._sent = sent.continue_with(messages[sent.length :])
        return self._sent


def is_whole(wire: Wire, messages: Sequence[Any], start: int = 0, demands: Demands | None = None) -> bool:
    """Return whether a glance finds each turn of `messages[start:]` directly followed by just its results.

    >>> from suture.wires import get_wire
    >>> is_whole(get_wire("openai-chat"), [{"role": "tool", "tool_call_id": "a", "content": ""}])
    False
    """
    demands, place = demands or Demands(), start
    while place < len(messages):
        seen = wire.glance(messages, place, demands)
        if seen == place:
            return False
        place = seen
    return True


def is_in_order(wire: Wire, history: History[Any]) -> bool:
    """Return whether each turn is directly followed by just its results; only messages not checked before are read.

    >>> from suture.messages import History, Message
    >>> from suture.wires import get_wire
    >>> is_in_order(get_wire("message"), History([Message.user("hi")]))
    True
    """
    log, length = history.log, history.length
    start = log.whole
    if start == length:
        return True
    follower = log.memo.get(Follower)
    if follower is None or not follower.passes(history):  # it demands more
        demands = log.memo.get(is_in_order) or log.memo.setdefault(is_in_order, Demands())
        if not is_whole(wire, log if len(log) == length else history, start if start < length else 0, demands):
            return False
    log.whole = max(log.whole, length)
    return True


def take_as_in_order(history: History[Any]) -> None:
    """Note in the log that `history` is in order."""
    history.log.whole = max(history.log.whole, history.length)
