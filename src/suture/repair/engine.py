"""`repair` and `check`: resolve what was asked, pair, fit, and say what was done.

There is one path. A history is walked from left to right. What is acceptable at a glance passes by; where something is
unusual, the thorough look (pairing, then fit) is taken at that group only; for a late result, from its call's group on.
If a result may speak of a call anywhere, the thorough look is taken once at the whole history.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

import msgspec

from suture.errors import AmbiguousWireError, ConfigError
from suture.language import resolve_language
from suture.messages import M
from suture.profiles import Profile, default_profile, get_profile
from suture.repair.fit import Fit
from suture.repair.pairing import OutsideError, look
from suture.repair.rebuild import Item, Paired, PairOptions, Place, pair
from suture.repair.report import Displaced, Finding, Pending, Report
from suture.repair.texts import Cause
from suture.wires import Demands, Key, View, Wire, check_list, get_wire, recognise

R_co = TypeVar("R_co", covariant=True)


class Asks(Protocol[R_co]):
    """A generator of placeholder texts."""

    def __call__(self, name: str, call_id: str, /) -> R_co:
        """Return the text."""
        ...


class AsksCause(Protocol[R_co]):
    """A generator of placeholder texts that is also told the cause."""

    def __call__(self, name: str, call_id: str, /, *, cause: Cause) -> R_co:
        """Return the text."""
        ...


Generator: TypeAlias = Asks[str] | AsksCause[str]
Causes = Mapping[Place, Cause | str]


class Repaired(msgspec.Struct, Generic[M], frozen=True, kw_only=True):
    """A repaired history and what was done to it.

    >>> from suture import repair
    >>> repair([{"role": "user", "content": "hi"}]).changed
    False
    """

    messages: Sequence[M]
    """The history: the very list that was handed in, if nothing had to change."""
    changed: bool
    report: Report
    pending: tuple[Pending, ...] = ()
    """Calls at the tail that wait for their results (only with `tail="keep"`)."""

    @property
    def unresolved(self) -> tuple[Finding, ...]:
        """What no operation could mend; a provider will refuse the history while it is not empty."""
        return self.report.unresolved

    def __repr__(self) -> str:
        """Show how much there is and what became of it; never what the messages say."""
        found, pending = len(self.report.findings), len(self.pending)
        return f"<Repaired: {len(self.messages)} messages, changed={self.changed}, {found} findings, {pending} pending>"


class Walk:
    """One history on its way through the engine: what came out so far, and what was found.

    What lies before `boundary` is settled, unless a result speaks of it that is still to come.
    """

    def __init__(self, wire: Wire, profile: Profile, options: PairOptions, raw: list[Any]) -> None:
        self.wire, self.profile, self.options, self.raw = wire, profile, options, raw
        self.rules = profile.rules_for(wire)
        self._set_like = wire.set_like and not profile.adjacent
        self._glances = wire.glances(fits=profile.has_fit)
        self.boundary = 0
        self._first_role: str | None = None
        self._repeated = 0
        """How many messages were walked again for results that were late."""
        self._reset()

    def _reset(self) -> None:
        self.fit = Fit(self.wire, self.profile, self.options.language)
        ids, profile = self.fit.ids, self.profile
        once = ids is not None and ids.form.scope == "history"
        self._demands = Demands(
            problems=frozenset(self.rules),
            match_id=ids.form.match if ids is not None else None,
            limit=ids.form.limit if ids is not None else None,
            used=ids.used if ids is not None and once else None,
            accepts_name=profile.accepts_name,
            field=profile.field if "missing-field" in self.rules else "",
            items=self.fit.items,
        )
        self._found: list[Finding] = []
        self.displaced: list[Displaced] = []
        self.pending: tuple[Pending, ...] = ()
        self._answered: list[Place] = []
        self._rebuilt = False
        self._settled = self._mark()

    @property
    def out(self) -> list[Any]:
        """The repaired history."""
        return self.fit.out

    @property
    def changed(self) -> bool:
        """Whether the repaired history differs from what was handed in."""
        return self._rebuilt or self.fit.changed

    def findings(self) -> list[Finding]:
        """Return all findings, pairing's before fit's where they speak of one message."""
        return sorted([*self._found, *self.fit.findings], key=attrgetter("index"))

    def report(self) -> Report:
        """Return what was found, and what was done."""
        return Report(
            wire=self.wire.name,
            profile=self.profile.name,
            findings=tuple(self.findings()),
            displaced=tuple(sorted(self.displaced, key=attrgetter("index"))),
        )

    def run(self) -> None:
        """Walk all that is there, once."""
        self._note_beginning()
        try:
            self._advance(0, len(self.raw))
        except OutsideError:
            self._look_at_everything(len(self.raw))
        self.fit.finish()
        unused = self.options.causes.keys() - set(self._answered)
        if unused:
            raise ConfigError(f"causes name a call at {min(unused)} that is not there or has a result")

    def go_on(self) -> None:
        """Walk what is new; what follows the last closed place is walked again when more comes."""
        self._note_beginning()
        self._take_back(self._settled)
        closed = self._closed_place()
        try:
            self._advance(self.boundary, closed)
            self._settle(closed)
            if self._advance(closed, len(self.raw)) and self.fit.last != "assistant":
                self._settle(len(self.raw))  # a turn with all its results
        except OutsideError:
            self._look_at_everything(self._closed_place(0))
        self.fit.finish()

    def _note_beginning(self) -> None:
        """Tell fit whether somebody else than the model spoke first."""
        if self._first_role is None:
            roles = (self._view(index).role for index in range(len(self.raw)))
            self._first_role = next((role for role in roles if role != "system"), None)
        self.fit.starts_with_user = self._first_role not in {None, "assistant"}

    def _settle(self, place: int) -> None:
        self.boundary, self._settled = place, self._mark()

    def _mark(self) -> tuple[Any, ...]:
        return self.fit.mark(), len(self._found), len(self.displaced), len(self._answered), self._rebuilt

    def _take_back(self, point: tuple[Any, ...]) -> None:
        fitted, found, displaced, answered, self._rebuilt = point
        self.fit.take_back(fitted)
        del self._found[found:], self.displaced[displaced:], self._answered[answered:]
        self.pending = ()

    def _advance(self, start: int, stop: int) -> bool:
        """Walk `raw[start:stop]`; return whether a glance was enough."""
        raw, glanced = self.raw, True
        if not self._glances and not start and stop == len(raw):
            raise OutsideError  # without a glance, windows would only cost
        place, points = start, list[tuple[int, Any]]()
        while place < stop:
            points.append((place, self._mark()))
            if self._glances and (not place or self.fit.begun):
                seen = self._glance(place, stop)
                if seen > place:
                    self.fit.pass_by(raw, place, seen)
                    place = seen
                    continue
            glanced = False
            paired, place = self._pair_window(points, place, stop)
            self._take(paired)
        return glanced

    def _pair_window(self, points: list[tuple[int, Any]], start: int, stop: int) -> tuple[Paired, int]:
        """Pair the group at `start`, from the group of its call on if a result there is late; return where it ends."""
        end = self._window_end(start, stop)
        while True:
            try:
                paired = pair(self.wire, self.raw, self.options, start, end, set_like=self._set_like, local=True)
            except OutsideError as error:
                start = self._go_back(points, start, error.key)
                continue
            roles = {item.view.role for item in paired.items[-1:]}
            if end == len(self.raw) or "assistant" not in roles or self._view(end).role != "assistant":
                return paired, end
            if end == stop:
                raise OutsideError
            self._repeat(end - start)  # all that kept what the model said apart from what it says next has gone
            end = self._window_end(end, stop)

    def _repeat(self, count: int) -> None:
        """Count messages that are walked once more; there comes a point where one look at everything costs less."""
        self._repeated += count
        if self._repeated > len(self.raw):
            raise OutsideError

    def _go_back(self, points: list[tuple[int, Any]], place: int, key: Key) -> int:
        """Take back all since the group before `place` that has a call of this key; return where that begins."""
        floor, begin = points[0][0], place - 1
        while begin >= floor and key not in map(self.wire.key, self._view(begin).calls):
            begin -= 1
        while begin > floor and not self._is_boundary(begin):
            begin -= 1
        if key is None or begin < floor:
            raise OutsideError
        while points[-1][0] > begin:
            points.pop()
        since, point = points[-1]
        self._repeat(place - since)
        self._take_back(point)
        if since < begin:
            if self._glance(since, begin) < begin:
                raise OutsideError
            self.fit.pass_by(self.raw, since, begin)
        return begin

    def _glance(self, start: int, stop: int) -> int:
        """Return how far all is acceptable at a glance, without half of what the model said in one go."""
        self._demands.last, self._demands.stop = self.fit.last, stop
        point = self.fit.mark_ids()
        seen = before = min(self.wire.glance(self.raw, start, self._demands), stop)
        if start < seen < stop and self._view(seen).role == "assistant":
            while before > start and self._view(before - 1).role == "assistant":
                before -= 1
        if before == seen:
            return seen
        self.fit.take_back_ids(point)
        self._demands.stop = before
        return min(self.wire.glance(self.raw, start, self._demands), before) if before > start else start

    def _look_at_everything(self, closed: int) -> None:
        """Take the thorough look at the whole history, and settle what lies before `closed`."""
        self._reset()
        self._note_beginning()
        paired = pair(self.wire, self.raw, self.options, set_like=self._set_like)
        closed = closed if paired.open_place is None else min(closed, paired.open_place)
        while (earlier := self._before_group(paired, closed)) < closed:
            closed = earlier
        cut = bisect_left(paired.items, closed, key=attrgetter("index"))
        self._take(paired, paired.items[:cut], range(closed))
        self._settle(closed)
        self._take(paired, paired.items[cut:], range(closed, len(self.raw)))

    def _before_group(self, paired: Paired, closed: int) -> int:
        """Return a place, at or before `closed`, that cuts no group in two, nor what the model said in one go."""
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

    def _take(self, paired: Paired, items: Sequence[Item] | None = None, part: range | None = None) -> None:
        """Take over what pairing made: all of it, or some items and what was found in that part of the input."""
        self._rebuilt = self._rebuilt or paired.changed
        self._answered += paired.answered
        findings = paired.findings if part is None else [found for found in paired.findings if found.index in part]
        displaced = paired.displaced if part is None else [one for one in paired.displaced if one.index in part]
        self._found += self._with_rules(findings)
        self.displaced += displaced
        self.fit.feed(paired.items if items is None else items, paired.groups)
        if paired.pending:
            self.pending = self._renamed(paired)

    def _renamed(self, paired: Paired) -> tuple[Pending, ...]:
        """Return the pending calls with the ids and names that they go by in the output."""
        waiting = [one for group in paired.groups if group.pending for one in group.pairs if one.answer is None]
        calls = [self.wire.view(one.call.message).calls[one.position] for one in waiting]
        return tuple(
            msgspec.structs.replace(pending, call_id=call.id, name=call.name)
            for pending, call in zip(paired.pending, calls, strict=True)
        )

    def _with_rules(self, findings: Sequence[Finding]) -> list[Finding]:
        """Return what pairing found with the profile's rule for each."""
        rules = [(finding, self.rules.get(finding.problem)) for finding in findings]
        return [finding if rule is None else finding.cite(rule.id, rule.says, rule.source) for finding, rule in rules]

    def _is_boundary(self, index: int) -> bool:
        """Tell whether a new group may begin at `index`: no result stands there, and no model's message before it."""
        if self._view(index).results:
            return False
        return self._view(index - 1).role != "assistant"

    def _says_nothing(self, index: int) -> bool:
        """Tell whether nobody speaks at `index`: who comes next decides why a call before it has no result."""
        view = self._view(index)
        return view.role == "system" or (view.role == "assistant" and view.empty)

    def _view(self, index: int) -> View:
        return look(self.wire, self.raw[index], index)[1]

    def _window_end(self, start: int, stop: int) -> int:
        """Return where the group ends that begins at `start`."""
        end = start + 1
        while end < stop and not self._is_boundary(end):
            end += 1
        return end

    def _closed_place(self, floor: int | None = None) -> int:
        """Return the last place that nothing which may still come could change."""
        end, floor = len(self.raw), self.boundary if floor is None else floor
        last = end
        while last > floor and self._says_nothing(last - 1):
            last -= 1
        if last == floor:
            return end
        view = self._view(last - 1)
        if view.role != "assistant" and not view.results:
            return end
        place = last - 1
        while place > floor and not self._is_boundary(place):
            place -= 1
        return place


def repair(  # noqa: PLR0913 - each a choice of the caller's, by name
    messages: Sequence[M],
    *,
    wire: str | Wire | None = None,
    profile: str | Profile | None = None,
    tail: Literal["cancel", "keep"] = "cancel",
    orphans: Literal["text", "drop"] = "text",
    generator: Generator | None = None,
    cause: Cause | str | None = None,
    causes: Causes | None = None,
    is_placeholder: Callable[[str], bool] | None = None,
    language: str | None = None,
) -> Repaired[M]:
    """Make a history acceptable to its provider, and say what was done.

    Nothing of yours is mutated: what needs no change comes back as the same object, a whole history as the same list.

    Args:
        messages: the history, in any wire's form; dicts and SDK objects may be mixed.
        wire: the form of the messages, by name or a `Wire` of your own; recognised if not given.
        profile: whose rules hold, by name or a `Profile` of your own; by default the provider's, natively `pairing`.
        tail: `cancel` answers calls at the end that have no result; `keep` leaves them in `pending`.
        orphans: `text` keeps a result without a call as user text; `drop` removes it.
        generator: `(name, call_id)` or `(name, call_id, cause=…)` to the text of a placeholder; an empty
            text means the built-in one. Its error is yours, and nothing has changed then.
        cause: why results are missing, where nothing in the history tells; `unknown` after a crash, say.
        causes: why single results are missing: `{(index of the message, position of the call in it): Cause}`.
        is_placeholder: tells from a result's text whether it only stands for a real one.
        language: of the texts, `en` or `zh`; the one in force if not given.

    >>> fixed = repair([
    ...     {"role": "assistant", "tool_calls": [
    ...         {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": "{}"}}]},
    ...     {"role": "user", "content": "never mind"},
    ... ])
    >>> [message["role"] for message in fixed.messages]
    ['assistant', 'tool', 'user']
    >>> fixed.messages[1]["content"]
    'Tool call search with id call_1 was canceled - another message came in before it could be completed.'
    """
    options = make_options(
        tail=tail,
        orphans=orphans,
        generator=generator,
        cause=cause,
        causes=causes,
        is_placeholder=is_placeholder,
        language=language,
    )
    return run_repair(messages, wire, profile, options)


def check(
    messages: Sequence[Any],
    *,
    wire: str | Wire | None = None,
    profile: str | Profile | None = None,
    tail: Literal["cancel", "keep"] = "cancel",
) -> Report:
    """Say what a provider would refuse in a history. Nothing is changed.

    Native messages are judged as the provider would get them: they are encoded first.

    >>> report = check([{"role": "tool", "tool_call_id": "a", "content": "42"}])
    >>> report.acceptable, report.findings[0].problem
    (False, 'orphan')
    """
    encoded = _encode(messages, wire, profile)
    if encoded is not None:
        payload, origins, target, judge = encoded
        report = run_repair(payload, target, judge, make_options(tail=tail)).report
        findings = [msgspec.structs.replace(found, index=origins[found.index]) for found in report.findings]
        return msgspec.structs.replace(report, findings=tuple(findings), displaced=())
    report = run_repair(messages, wire, profile, make_options(tail=tail)).report
    return msgspec.structs.replace(report, displaced=())


def _encode(
    messages: Sequence[Any], wire: str | Wire | None, profile: str | Profile | None
) -> tuple[list[Any], list[int], str, Profile] | None:
    """Return native messages as the provider of `profile` would get them, and where each came from."""
    if profile is None:
        return None
    judge = get_profile(profile)
    names = recognise(messages) if wire is None else (wire if isinstance(wire, str) else wire.name,)
    if len(names) != 1 or judge.speaks_of(names[0]) or not get_wire(names[0]).native:
        return None
    from suture.codecs import Losses, decode, get_codec  # noqa: PLC0415 - only native messages pay for it

    codec, native = get_codec(judge.wires[0], field=judge.field), decode(messages, names[0])
    payload: list[Any] = []
    origins: list[int] = []
    for index in range(codec.leading_system(native), len(native)):
        made = codec.write_message(native[index], Losses())
        payload += made
        origins += [index] * len(made)
    return payload, origins, judge.wires[0], judge


def make_options(
    *,
    tail: str = "cancel",
    orphans: str = "text",
    generator: Generator | None = None,
    cause: Cause | str | None = None,
    causes: Causes | None = None,
    is_placeholder: Callable[[str], bool] | None = None,
    language: str | None = None,
) -> PairOptions:
    """Check the choices of a call; raise `ConfigError` where one is unknown.

    >>> make_options(tail="drop")
    Traceback (most recent call last):
        ...
    suture.errors.ConfigError: unknown tail 'drop'; known: cancel, keep
    """
    _known("tail", tail, ("cancel", "keep"))
    _known("orphans", orphans, ("text", "drop"))
    for name, function in (("generator", generator), ("is_placeholder", is_placeholder)):
        if function is not None and not callable(function):
            raise ConfigError(f"{name} must be a function, found {type(function).__name__}")
    return PairOptions(
        language=resolve_language(language),
        tail=tail,
        orphans=orphans,
        generator=_with_cause(generator),
        cause=None if cause is None else _cause(cause),
        causes=_causes(causes),
        is_placeholder=is_placeholder,
    )


def make_walks(
    messages: Sequence[Any], wire: str | Wire | None, profile: str | Profile | None, options: PairOptions
) -> list[Walk]:
    """Return a walk for each wire that these messages may be of."""
    check_list(messages)
    wanted = get_profile(profile) if profile is not None else None
    if isinstance(wire, Wire):
        wires = [wire]
    else:
        wires = [get_wire(name) for name in (recognise(messages) if wire is None else (wire,))]
    raw = messages if isinstance(messages, list) else list(messages)
    walks = [
        Walk(each, wanted or default_profile(each.name), options, raw)
        for each in wires
        if wanted is None or wanted.speaks_of(each.name) or isinstance(wire, Wire)
    ]
    if not walks and wanted is not None:
        names = " or ".join(each.name for each in wires)
        raise ConfigError(
            f"profile {wanted.name} does not speak of {names} messages; it knows {', '.join(wanted.wires)}"
        )
    return walks


def run_repair(
    messages: Sequence[Any], wire: str | Wire | None, profile: str | Profile | None, options: PairOptions
) -> Repaired[Any]:
    """Repair a history by options that were checked before, as `repair` does."""
    walks = make_walks(messages, wire, profile, options)
    for walk in walks:
        walk.run()
    only = agreed(walks)
    return Repaired(
        messages=only.out if only.changed else messages,
        changed=only.changed,
        report=only.report(),
        pending=only.pending,
    )


def agreed(walks: Sequence[Walk]) -> Walk:
    """Return the walk that counts: where messages may be of several wires, these must agree."""
    first, *others = walks
    if any(first.out != other.out for other in others):
        raise AmbiguousWireError(tuple(walk.wire.name for walk in walks))
    return first


def is_whole(wire: Wire, messages: Sequence[Any], start: int = 0) -> bool:
    """Tell whether, at a glance, each turn of `messages[start:]` has just its results, right behind it.

    >>> is_whole(get_wire("openai-chat"), [{"role": "tool", "tool_call_id": "a", "content": ""}])
    False
    """
    demands, place = Demands(), start
    while place < len(messages):
        seen = wire.glance(messages, place, demands)
        if seen == place:
            return False
        place = seen
    return True


def _known(what: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ConfigError(f"unknown {what} {value!r}; known: {', '.join(known)}")


def _cause(cause: Cause | str) -> Cause:
    try:
        return Cause(cause)
    except ValueError as error:
        raise ConfigError(f"unknown cause: {error}; known: {', '.join(Cause)}") from None


def _causes(causes: Causes | None) -> dict[Place, Cause]:
    if causes is not None and not isinstance(causes, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"causes must map (message, call) to a cause, found {type(causes).__name__}")
    for place in causes or ():
        numbers: Any = place
        if not isinstance(numbers, tuple) or [type(number) for number in numbers] != [int, int]:  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            raise ConfigError(f"a cause is given for (index of the message, position of the call), found {place!r}")
    return {place: _cause(cause) for place, cause in (causes or {}).items()}


def _with_cause(generator: Generator | None) -> Callable[[str, str, Cause, Place], str] | None:
    if generator is None:
        return None
    ask: Callable[..., str] = generator
    if takes_cause(ask):
        return lambda name, call_id, cause, _: ask(name, call_id, cause=cause)
    return lambda name, call_id, cause, _: ask(name, call_id)  # noqa: ARG005 - it does not ask


def takes_cause(generator: Callable[..., Any]) -> bool:
    """Tell whether a generator asks for the cause beside name and id.

    >>> takes_cause(lambda name, call_id, cause: ""), takes_cause(lambda name, call_id: "")
    (True, False)
    """
    from inspect import Parameter, signature  # noqa: PLC0415 - only those who bring a generator pay for it

    try:
        parameters = dict(signature(generator).parameters)
    except (TypeError, ValueError):
        return False
    return "cause" in parameters or any(item.kind is Parameter.VAR_KEYWORD for item in parameters.values())
