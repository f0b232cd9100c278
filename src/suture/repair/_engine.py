"""`repair` and `check`: resolve what was asked, pair, fit, and say what was done. The only door to the engine."""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

import msgspec

from suture.errors import AmbiguousWireError, ConfigError
from suture.language import Language, resolve_language
from suture.messages import M
from suture.pairing import Cause, Displaced, Finding, PairOptions, Pending, Report, pair
from suture.profiles import Profile, Rule, default_profile, get_profile
from suture.repair._fit import Fitter
from suture.wires import Wire, check_list, get_wire, recognise

__all__ = [
    "Asks",
    "AsksCause",
    "Causes",
    "Generator",
    "Options",
    "Plan",
    "Repaired",
    "attach",
    "candidates",
    "check",
    "make_options",
    "renamed",
    "repair",
    "takes_cause",
]

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
Causes = Mapping[tuple[int, int], Cause | str]


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


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The choices of one call, checked and made explicit.

    >>> make_options(language="en").tail
    'cancel'
    """

    language: Language
    tail: str = "cancel"
    orphans: str = "text"
    generator: Callable[[str, str, Cause, tuple[int, int]], str] | None = None
    causes: dict[tuple[int, int], Cause] = msgspec.field(default_factory=dict[tuple[int, int], Cause])
    is_placeholder: Callable[[str], bool] | None = None


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A wire, a profile that speaks of it, and options: all that the engine needs besides messages.

    >>> plan = Plan(wire=get_wire("message"), profile=get_profile("pairing"), options=make_options())
    >>> plan.pair_options().set_like
    False
    """

    wire: Wire
    profile: Profile
    options: Options

    def pair_options(self) -> PairOptions:
        """Return the options as pairing takes them."""
        options = self.options
        return PairOptions(
            tail=options.tail,
            orphans=options.orphans,
            language=options.language,
            generator=options.generator,
            causes=options.causes,
            is_placeholder=options.is_placeholder,
            set_like=self.wire.set_like and not self.profile.adjacent,
        )

    def run(self, messages: Sequence[Any]) -> Repaired[Any]:
        """Repair `messages`."""
        paired = pair(self.wire, messages, self.pair_options())
        fitted: Sequence[Any] = paired.messages
        changed = paired.origins is not None
        pending = paired.pending
        findings = attach(paired.findings, self.profile.rules_for(self.wire.name))
        if self.profile.has_fit:
            fitter = Fitter(self.wire, self.profile, self.options.language)
            fitter.pending = frozenset(call.index for call in paired.pending)
            origins = range(len(fitted)) if paired.origins is None else paired.origins
            for message, origin in zip(fitted, origins, strict=True):
                fitter.feed(message, origin)
            out = fitter.finish()
            pending = renamed(pending, fitter)
            findings = sorted([*findings, *fitter.findings], key=attrgetter("index"))
            if fitter.changed:
                fitted, changed = out, True
        return Repaired(
            messages=fitted,
            changed=changed,
            report=self.report(findings, paired.displaced),
            pending=pending,
        )

    def report(self, findings: Sequence[Finding], displaced: Sequence[Displaced]) -> Report:
        """Return a report that names this wire and profile."""
        return Report(
            wire=self.wire.name,
            profile=self.profile.name,
            findings=tuple(findings),
            displaced=tuple(displaced),
        )


def repair(  # noqa: PLR0913 - each a choice of the caller's, by name
    messages: Sequence[M],
    *,
    wire: str | None = None,
    profile: str | Profile | None = None,
    tail: Literal["cancel", "keep"] = "cancel",
    orphans: Literal["text", "drop"] = "text",
    generator: Generator | None = None,
    causes: Causes | None = None,
    is_placeholder: Callable[[str], bool] | None = None,
    language: str | None = None,
) -> Repaired[M]:
    """Make a history acceptable to its provider, and say what was done.

    Nothing of yours is mutated: a message that needs no change comes back as the same object, a history that
    needs none as the same list.

    Args:
        messages: the history, in any wire's form; dicts and SDK objects may be mixed.
        wire: the form of the messages; recognised if not given.
        profile: whose rules hold, by name or a `Profile` of your own; the wire's own provider's if not given, `pairing`
            for native messages.
        tail: `cancel` answers calls at the end that have no result; `keep` leaves them in `pending`.
        orphans: `text` keeps a result without a call as user text; `drop` removes it.
        generator: `(name, call_id)` or `(name, call_id, cause=…)` to the text of a placeholder; an empty
            text means the built-in one. Its error is yours, and nothing has changed then.
        causes: why results are missing, where you know: `{(index of the turn, number of the call): Cause}`.
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
        causes=causes,
        is_placeholder=is_placeholder,
        language=language,
    )
    return _run(messages, wire, profile, options)


def check(
    messages: Sequence[Any],
    *,
    wire: str | None = None,
    profile: str | Profile | None = None,
    tail: Literal["cancel", "keep"] = "cancel",
) -> Report:
    """Say what a provider would refuse in a history. Nothing is changed.

    >>> report = check([{"role": "tool", "tool_call_id": "a", "content": "42"}])
    >>> report.acceptable, report.findings[0].problem
    (False, 'orphan')
    """
    report = _run(messages, wire, profile, make_options(tail=tail)).report
    return msgspec.structs.replace(report, displaced=())


def make_options(
    *,
    tail: str = "cancel",
    orphans: str = "text",
    generator: Generator | None = None,
    causes: Causes | None = None,
    is_placeholder: Callable[[str], bool] | None = None,
    language: str | None = None,
) -> Options:
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
    return Options(
        language=resolve_language(language),
        tail=tail,
        orphans=orphans,
        generator=_with_cause(generator),
        causes=_causes(causes),
        is_placeholder=is_placeholder,
    )


def candidates(
    messages: Sequence[Any], wire: str | None, profile: str | Profile | None, options: Options
) -> list[Plan]:
    """Return the plans that fit what was asked: one for each wire that these messages may be of."""
    check_list(messages)
    wanted = get_profile(profile) if profile is not None else None
    names = recognise(messages) if wire is None else (get_wire(wire).name,)
    plans = [
        Plan(wire=get_wire(name), profile=wanted or default_profile(name), options=options)
        for name in names
        if wanted is None or wanted.speaks_of(name)
    ]
    if not plans and wanted is not None:
        raise ConfigError(
            f"profile {wanted.name} does not speak of {' or '.join(names)} messages; it knows {', '.join(wanted.wires)}"
        )
    return plans


def renamed(pending: tuple[Pending, ...], fitter: Fitter) -> tuple[Pending, ...]:
    """Return the pending calls with the ids and names that they go by in the output."""
    calls = fitter.open_calls()[-len(pending) :] if pending else []
    return tuple(
        msgspec.structs.replace(item, call_id=call_id, name=name)
        for item, (call_id, name) in zip(pending, calls, strict=True)
    )


def attach(findings: Sequence[Finding], rules: Mapping[str, Rule]) -> list[Finding]:
    """Return what pairing found with the profile's rule for each."""
    told: list[Finding] = []
    for finding in findings:
        rule = rules.get(finding.problem)
        if rule is not None:
            finding = msgspec.structs.replace(finding, rule=rule.id, says=rule.says, source=rule.source)  # noqa: PLW2901
        told.append(finding)
    return told


def _run(messages: Sequence[Any], wire: str | None, profile: str | Profile | None, options: Options) -> Repaired[Any]:
    plans = candidates(messages, wire, profile, options)
    first, *others = [plan.run(messages) for plan in plans]
    for other in others:
        if first.messages is not other.messages and list(first.messages) != list(other.messages):
            raise AmbiguousWireError(tuple(plan.wire.name for plan in plans))
    return first


def _known(what: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ConfigError(f"unknown {what} {value!r}; known: {', '.join(known)}")


def _causes(causes: Causes | None) -> dict[tuple[int, int], Cause]:
    if causes is not None and not isinstance(causes, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"causes must map (turn, call) to a cause, found {type(causes).__name__}")
    for place in causes or ():
        numbers: Any = place
        if not isinstance(numbers, tuple) or [type(number) for number in numbers] != [int, int]:  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            raise ConfigError(f"a cause is given for (index of the turn, number of the call), found {place!r}")
    try:
        return {place: Cause(cause) for place, cause in (causes or {}).items()}
    except ValueError as error:
        raise ConfigError(f"unknown cause: {error}; known: {', '.join(Cause)}") from None


def _with_cause(generator: Generator | None) -> Callable[[str, str, Cause, tuple[int, int]], str] | None:
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
