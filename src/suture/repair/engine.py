"""`repair` and `check`: resolve the options, walk the history, and report what was done."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypedDict, TypeVar, Unpack, overload

import msgspec

from suture.errors import AmbiguousWireError, ConfigError
from suture.language import resolve_language
from suture.messages import AnyMessage, M
from suture.profiles import Profile, default_profile, get_profile
from suture.repair.rebuild import PairOptions, Place
from suture.repair.report import Finding, Pending, Report
from suture.repair.texts import Cause
from suture.repair.walk import Walk
from suture.wires import Wire, check_list, get_wire, recognise

R_co = TypeVar("R_co", covariant=True)
KnownM = TypeVar("KnownM", bound=AnyMessage | Mapping[str, Any])


class Asks(Protocol[R_co]):
    """A generator of placeholder texts."""

    def __call__(self, name: str, call_id: str, /) -> R_co:
        """Return the text."""
        ...


class AsksCause(Protocol[R_co]):
    """A generator of placeholder texts that also gets the cause."""

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

    messages: list[M]
    """The history, as a list that is yours; the same list that was passed in if nothing had to change."""
    changed: bool
    report: Report
    pending: tuple[Pending, ...] = ()
    """Calls at the end that wait for their results (only with `tail="keep"`)."""

    @property
    def unresolved(self) -> tuple[Finding, ...]:
        """The findings that no operation could repair. Unless it is empty, the provider will refuse the history."""
        return self.report.unresolved

    def __repr__(self) -> str:
        """Show numbers of messages and findings, but no content of messages."""
        found, pending = len(self.report.findings), len(self.pending)
        return f"<Repaired: {len(self.messages)} messages, changed={self.changed}, {found} findings, {pending} pending>"


@overload
def repair(
    messages: Sequence[KnownM],
    *,
    wire: str | Wire | None = None,
    profile: str | Profile | None = None,
    **choices: Unpack["Choices"],
) -> Repaired[KnownM]: ...
@overload
def repair(
    messages: list[object],  # what mypy takes a list of dicts with different values for
    *,
    wire: str | Wire | None = None,
    profile: str | Profile | None = None,
    **choices: Unpack["Choices"],
) -> Repaired[Any]: ...
@overload
def repair(
    messages: Sequence[M],
    *,
    wire: str | Wire | None = None,
    profile: str | Profile | None = None,
    **choices: Unpack["Choices"],
) -> Repaired[M]: ...
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
    """Make a history acceptable to its provider, and report what was done.

    Nothing is mutated: a message that needs no change comes back as the same object, a whole history as the same list.

    Args:
        messages: the history, in the form of any wire; dicts and SDK objects may be mixed.
        wire: the form of the messages: a name or a custom `Wire`; recognised if not given.
        profile: the rules to apply: a name or a custom `Profile`; by default the provider's, for native ones `pairing`.
        tail: `cancel` answers calls at the end that have no result; `keep` leaves them in `pending`.
        orphans: `text` keeps a result without a call as user text; `drop` removes it.
        generator: `(name, call_id)` or `(name, call_id, cause=…)` to the text of a placeholder; an empty
            text means the built-in one. Its errors are raised to you, and then nothing has changed.
        cause: why results are missing, if the history does not show it; for example `unknown` after a crash.
        causes: the causes for single calls: `{(index of the message, position of the call in it): Cause}`.
        is_placeholder: returns whether a result's text is only a placeholder.
        language: language of the texts, `en` or `zh`; by default the current one.

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
    """Report what a provider would refuse in a history, without changing it.

    Native messages are encoded first, because that is what the provider would get.

    >>> report = check([{"role": "tool", "tool_call_id": "a", "content": "42"}])
    >>> report.acceptable, report.findings[0].problem
    (False, 'orphan')
    """
    encoded = _encode(messages, wire, profile)
    payload, origins, wire, profile = encoded or (messages, None, wire, profile)
    report = run_repair(payload, wire, profile, make_options(tail=tail)).report
    findings = report.findings
    if origins is not None:
        findings = tuple([msgspec.structs.replace(found, index=origins[found.index]) for found in findings])
    return msgspec.structs.replace(report, findings=findings, displaced=())


def _encode(
    messages: Sequence[Any], wire: str | Wire | None, profile: str | Profile | None
) -> tuple[list[Any], list[int], str, Profile] | None:
    """Return native messages as the provider of `profile` would get them, and the index that each came from."""
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


class Choices(TypedDict, total=False):
    """The options of `repair` besides wire and profile."""

    tail: Literal["cancel", "keep"]
    orphans: Literal["text", "drop"]
    generator: Generator | None
    cause: Cause | str | None
    causes: Causes | None
    is_placeholder: Callable[[str], bool] | None
    language: str | None


def make_options(**choices: Unpack[Choices]) -> PairOptions:
    """Check the options of a call; raise `ConfigError` if one is unknown.

    >>> make_options(tail="drop")
    Traceback (most recent call last):
        ...
    suture.errors.ConfigError: unknown tail 'drop'; known: cancel, keep
    """
    made: dict[str, Any] = dict(choices)
    for name, known in (("tail", ("cancel", "keep")), ("orphans", ("text", "drop"))):
        if made.get(name, known[0]) not in known:
            raise ConfigError(f"unknown {name} {made[name]!r}; known: {', '.join(known)}")
    for name in ("generator", "is_placeholder"):
        function = made.get(name)
        if function is not None and not callable(function):
            raise ConfigError(f"{name} must be a function, found {type(function).__name__}")
    made["language"] = resolve_language(made.get("language"))
    made["generator"] = _with_cause(made.get("generator"))
    made["cause"] = None if made.get("cause") is None else _cause(made["cause"])
    made["causes"] = _causes(made.get("causes"))
    return PairOptions(**made)


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
            f"profile {wanted.name} has no rules for {names} messages, only for {', '.join(wanted.wires)}"
        )
    return walks


def run_repair(
    messages: Sequence[Any], wire: str | Wire | None, profile: str | Profile | None, options: PairOptions
) -> Repaired[Any]:
    """Repair a history like `repair`, with options that were checked before."""
    walks = make_walks(messages, wire, profile, options)
    for walk in walks:
        walk.run()
    only = agreed(walks)
    unchanged = messages if isinstance(messages, list) else list(messages)
    return Repaired(
        messages=only.out if only.changed else unchanged,
        changed=only.changed,
        report=only.report(),
        pending=only.pending,
    )


def agreed(walks: Sequence[Walk]) -> Walk:
    """Return the walk that counts; if messages may be of several wires, their walks must agree."""
    first, *others = walks
    if any(first.out != other.out for other in others):
        raise AmbiguousWireError(tuple(walk.wire.name for walk in walks))
    return first


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
    """Return whether a generator takes the cause besides name and id.

    >>> takes_cause(lambda name, call_id, cause: ""), takes_cause(lambda name, call_id: "")
    (True, False)
    """
    from inspect import Parameter, signature  # noqa: PLC0415 - only those who bring a generator pay for it

    try:
        parameters = dict(signature(generator).parameters)
    except (TypeError, ValueError):
        return False
    return "cause" in parameters or any(item.kind is Parameter.VAR_KEYWORD for item in parameters.values())
