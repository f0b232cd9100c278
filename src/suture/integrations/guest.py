"""The code that all guests share: their options, the repair of one request, and the report of a repair.

Each request is repaired by itself. A history that cannot be read is sent as it is, so that the provider says what is
wrong with it.
"""

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from inspect import iscoroutinefunction
from typing import Any, Literal, TypedDict, Unpack

from msgspec import Struct
from msgspec.structs import replace

from suture.errors import ConfigError, InputError
from suture.profiles import Profile, get_profile
from suture.repair import Cause, Finding, Generator, PairOptions, Repaired, Report, make_options, run_repair, visible
from suture.wires import Wire

__all__ = ["GuestOptions", "Options", "announce", "repair_history", "repair_request"]

_LOG = logging.getLogger("suture.integrations")
_LISTED = 20
"""How many findings a log line lists."""
Trace = Callable[[str, Mapping[str, Any]], object]
"""Adds an event with a name and attributes to a framework's own trace."""


class Options(TypedDict, total=False):
    """The options that every guest takes.

    >>> options: Options = {"cause": "interrupted", "on_repair": print}
    """

    profile: str | Profile | None
    """The profile of requests; by default that of the provider that is called."""
    cause: Cause | str | None
    """Why results are missing, if the framework's own record does not say; by default `unknown`. A program that knows
    that its user interrupted the run says `interrupted`."""
    orphans: Literal["text", "drop"]
    """`text` keeps a result without a call as user text; `drop` removes it."""
    generator: Generator | None
    """`(name, call_id)` or `(name, call_id, cause=…)` to the text of a placeholder; an empty text means the built-in
    one. It is called again for each request."""
    is_placeholder: Callable[[str], bool] | None
    """Returns whether the text of a result is that of a placeholder."""
    language: str | None
    """The language of the texts, `en` or `zh`; by default the one in force."""
    on_repair: Callable[[Report], object] | None
    """Called with the report of each repaired request; if it raises, that is logged, and the request is sent."""


class GuestOptions(Struct, frozen=True, kw_only=True):
    """The options of one guest, checked.

    >>> GuestOptions.of("suture.integrations.openai", orphans="keep")
    Traceback (most recent call last):
        ...
    suture.errors.ConfigError: unknown orphans 'keep'; known: text, drop
    """

    guest: str
    """The name of the guest, for the log."""
    profile: Profile | None = None
    choices: PairOptions = PairOptions()
    """The options of a repair."""
    on_repair: Callable[[Report], object] | None = None
    trace: Trace | None = None

    @classmethod
    def of(cls, guest: str, *, infers_cause: bool = False, **options: Unpack[Options]) -> "GuestOptions":
        """Check the options of a guest; raise `ConfigError` if one is wrong.

        `infers_cause`: if nothing says why a result is missing, infer it from what follows, as `suture.repair` does.
        """
        unknown = options.keys() - Options.__annotations__.keys()
        if unknown:
            known = ", ".join(sorted(Options.__annotations__))
            raise TypeError(f"{guest} got an unexpected keyword argument {min(unknown)!r}; the options are {known}")
        for name in ("generator", "is_placeholder", "on_repair"):
            if iscoroutinefunction(options.get(name)):
                raise ConfigError(f"{name} must be a plain function: a request may be made without an event loop")
        chosen: dict[str, Any] = {"cause": None, **options}
        profile, on_repair = chosen.pop("profile", None), chosen.pop("on_repair", None)
        if on_repair is not None and not callable(on_repair):
            raise ConfigError(f"on_repair must be a function, found {type(on_repair).__name__}")
        if chosen["cause"] is None and not infers_cause:
            chosen["cause"] = Cause.UNKNOWN
        profile = None if profile is None else get_profile(profile)
        return cls(guest=guest, profile=profile, choices=make_options(**chosen), on_repair=on_repair)

    def treating(self, is_filler: Callable[[str], bool]) -> "GuestOptions":
        """Return options that also treat texts accepted by `is_filler` as placeholders."""
        own = self.choices.is_placeholder

        def stands_for_none(text: str) -> bool:
            return is_filler(text) or (own is not None and own(text))

        return replace(self, choices=replace(self.choices, is_placeholder=stands_for_none))


def repair_request(
    messages: Sequence[Any],
    wire: str | Wire,
    options: GuestOptions,
    *,
    profile: str | Profile | None = None,
    kept: Sequence[Any] = (),
    **choices: Any,
) -> Sequence[Any]:
    """Return messages that the provider accepts: the same object, if it accepts `messages` as they are.

    `kept` comes before the messages and stands for what the service keeps of the conversation; it is not sent.
    `choices` replace options for this request.

    >>> heard: list[Report] = []
    >>> options = GuestOptions.of("doctest", on_repair=heard.append)
    >>> repair_request([{"role": "tool", "tool_call_id": "a", "content": "42"}], "openai-chat", options)[0]["role"]
    'user'
    >>> [finding.problem for finding in heard[0].findings]
    ['orphan']
    """
    if not messages and not kept:
        return messages
    known = [*kept, *messages] if kept else messages
    repaired = repair_history(known, wire, options, profile=profile, kept=len(kept), **choices)
    if repaired is None or not repaired.changed:
        return messages
    own = {id(message) for message in kept}
    return [message for message in repaired.messages if id(message) not in own]


def repair_history(
    messages: Sequence[Any],
    wire: str | Wire,
    options: GuestOptions,
    *,
    profile: str | Profile | None = None,
    kept: int = 0,
    **choices: Any,
) -> Repaired[Any] | None:
    """Repair a history, and announce the repair if there was one; return `None` if the history cannot be read.

    >>> repair_history(["hi"], "openai-chat", GuestOptions.of("doctest")) is None
    True
    """
    try:
        chosen = replace(options.choices, **choices) if choices else options.choices
        repaired = run_repair(messages, wire, profile or options.profile, chosen)
    except (InputError, RecursionError) as error:
        index = error.index if isinstance(error, InputError) else None
        where = "" if index is None else f" at message {index - kept}"
        _LOG.warning("%s: a history cannot be read%s; it is left as it is", options.guest, where)
        return None
    if repaired.changed or repaired.unresolved:
        announce(_shift_indices(repaired.report, kept), options)
    return repaired


def _shift_indices(report: Report, kept: int) -> Report:
    """Return a report whose indices count from the first message of the request; kept messages come before 0."""
    if not kept:
        return report
    findings = [replace(finding, index=finding.index - kept) for finding in report.findings]
    displaced = [replace(each, index=each.index - kept) for each in report.displaced]
    return replace(report, findings=tuple(findings), displaced=tuple(displaced))


def announce(report: Report, options: GuestOptions) -> None:
    """Report a repair to the log, to the current trace, and to the caller's `on_repair`.

    >>> announce(Report(wire="openai-chat", profile="openai-chat"), GuestOptions.of("doctest"))
    """
    found = report.findings
    if _LOG.isEnabledFor(logging.INFO):
        said = "; ".join(map(_format_finding, found[:_LISTED])) + (
            f"; and {len(found) - _LISTED} more" * (len(found) > _LISTED)
        )
        _LOG.info("%s repaired a request: %s", options.guest, said, extra={"report": report.to_dict()})
    attributes = {
        "suture.guest": options.guest,
        "suture.wire": report.wire,
        "suture.profile": report.profile,
        "suture.findings": len(found),
        "suture.problems": [finding.problem for finding in found[:_LISTED]],
        "suture.done": [finding.done for finding in found[:_LISTED]],
        "suture.call_ids": [visible(finding.call_id) for finding in found[:_LISTED]],
    }
    for tell in (_trace_span, options.trace):
        if tell is not None:
            try:
                tell("suture.repair", attributes)
            except Exception:  # noqa: BLE001 - an error in a trace must not end a run
                _LOG.exception("%s: a repair could not be traced", options.guest)
    if options.on_repair is not None:
        try:
            options.on_repair(report)
        except Exception:  # noqa: BLE001 - nor must one in a callback
            _LOG.exception("%s: on_repair failed", options.guest)


def _format_finding(finding: Finding) -> str:
    call = "".join([f" {visible(word)}" for word in (finding.name, finding.call_id) if word])
    return f"message {finding.index}: {finding.problem}{call}: {visible(finding.done) or 'not repaired'}"


def _trace_span(name: str, attributes: Mapping[str, Any]) -> None:
    """Add an event to OpenTelemetry's current span, if the program uses that; Logfire's spans are of this kind, too."""
    tracing: Any = sys.modules.get("opentelemetry.trace")
    if tracing is not None:
        span = tracing.get_current_span()
        if span.is_recording():
            span.add_event(name, attributes)
