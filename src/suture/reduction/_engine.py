"""`plan`: both phases over a whole history, made into one plan. Nothing here has effects."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from suture.errors import AmbiguousWireError, ConfigError
from suture.language import resolve_language
from suture.messages import M, ToolInfo
from suture.reduction._clear import Meter, clear, clearable
from suture.reduction._draft import Draft
from suture.reduction._handlers import Terms, text_measure
from suture.reduction._paths import folded
from suture.reduction._plan import Plan
from suture.reduction._rounds import rounds_of
from suture.reduction._settings import Settings
from suture.reduction._steps import Steps, carry_through
from suture.reduction._truncate import truncate
from suture.reduction._values import NOTHING, Ledger
from suture.tokens import CharacterCounter, Tally, is_incremental
from suture.wires import Wire, get_wire, recognise

__all__ = ["plan"]


def plan(
    messages: Sequence[M],
    settings: Settings | None = None,
    *,
    wire: str | None = None,
    offload: bool = True,
    language: str | None = None,
    ledger: Ledger = NOTHING,
    tool_infos: Sequence[ToolInfo] = (),
    **changes: Any,
) -> Plan[M]:
    r"""Plan how a history is reduced: long results truncated, and old ones cleared if there are too many tokens.

    Nothing is changed or written: save `plan.saves`, then use `plan.messages`.

    Args:
        messages: the history, in any wire's form.
        settings: how to reduce; or give single settings by name. wire: recognised if not given.
        offload: whether what leaves the history will be saved; if not, nothing is truncated.
        language: of the notices, `en` or `zh`; the one in force if not given.
        ledger: `plan.ledger` of the time before, on a wire whose messages cannot be marked.
        tool_infos: the tools that are sent along; they count.

    >>> from suture.messages import Message, ToolCall
    >>> rounds = [[Message.assistant(tool_calls=[ToolCall(f"call_{n}", "read")]), Message.tool("x" * 900, f"call_{n}")]
    ...     for n in range(3)]
    >>> made = plan([message for pair in rounds for message in pair], max_tokens_for_clear=400)
    >>> made.tokens_before, made.tokens_after, [save.path for save in made.saves]
    (687, 285, ['/clear/call_0', '/clear/call_1'])
    >>> made.apply()[1].content
    '<persisted-output>Tool result saved to: /clear/call_0\nUse read_file to view</persisted-output>'
    """
    chosen = _settings(settings, changes)
    _check_ledger(ledger)
    names = recognise(messages) if wire is None else (get_wire(wire).name,)
    made: list[Plan[M]] = []
    for name in names:
        terms = Terms(
            settings=chosen,
            root=chosen.root_dir or "",
            language=resolve_language(language),
            offloads=lambda tool: offload or chosen.config_of(tool).backend is not None,  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
            taken={folded(saved.path) for saved in ledger.saved},
            ledger=ledger,
            measure=text_measure(chosen),
        )
        made.append(carry_through(_whole_plan(get_wire(name), messages, terms, tool_infos)))
    if all(other.messages == made[0].messages for other in made):
        return made[0]
    raise AmbiguousWireError(names)


def _check_ledger(ledger: Any) -> None:
    if not isinstance(ledger, Ledger):
        raise ConfigError(f"ledger must be a Ledger, not {type(ledger).__name__}; Ledger.of makes one of plain data")


def _settings(given: Settings | None, changes: Mapping[str, Any]) -> Settings:
    known = [field.name for field in dataclasses.fields(Settings)]
    unknown = ", ".join(sorted(changes.keys() - known))
    if unknown:
        raise ConfigError(f"unknown setting {unknown}; known: {', '.join(known)}")
    return Settings(**changes) if given is None else dataclasses.replace(given, **changes)


def _whole_plan(wire: Wire, messages: Sequence[Any], terms: Terms, tool_infos: Sequence[ToolInfo]) -> Steps[Plan[Any]]:
    counter = (terms.settings.token_counter if terms.settings.clears_any else None) or CharacterCounter()
    whole = None if is_incremental(counter) else cast("Callable[..., Any]", counter)
    tally = Tally(wire, cast("Any", CharacterCounter() if whole is not None else counter))
    draft = Draft(wire, messages, terms, tally.of)
    rounds = rounds_of(wire, messages)
    meter = Meter(tally.total(messages, tool_infos), whole, tool_infos)
    total = tokens = yield from meter.now(draft)
    for answer in [answer for found in rounds for answer in found.answers]:
        draft.terms.taken.update(map(folded, draft.paths_named_in(answer)))
    yield from truncate(draft, rounds)
    if draft.changes:
        tokens = yield from meter.now(draft)
    done = yield from clear(draft, meter, tokens, clearable(draft, rounds))
    return done.draft.plan(total, done.tokens)
