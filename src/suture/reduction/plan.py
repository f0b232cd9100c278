"""Plans: the new history, what must be saved first, and how many tokens that frees. Pure, printable, plain data."""

import dataclasses
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Generic, TypeVar, cast

import msgspec

from suture._text import plural
from suture.errors import AmbiguousWireError, ConfigError
from suture.language import Language, resolve_language
from suture.messages import M, ToolInfo
from suture.reduction.draft import Change, Draft, Ledger, Register, Round, Save, Terms, rounds_of
from suture.reduction.phases import Cleared, Meter, clear, truncate
from suture.reduction.settings import Settings
from suture.repair import label, visible
from suture.tokens import CharacterCounter, Tally, is_incremental
from suture.wires import Wire, get_wire, recognise

T = TypeVar("T")


class Plan(msgspec.Struct, Generic[M], frozen=True, kw_only=True):
    """The plan for reducing a history. Save `saves` first, then use `messages`, so that nothing is lost.

    >>> from suture.reduction import plan
    >>> made = plan([{"role": "user", "content": "hi"}])
    >>> made.changed, made.apply()
    (False, [{'role': 'user', 'content': 'hi'}])
    """

    messages: Sequence[M]
    """The history with the plan applied; the same list that was passed in if nothing changes and nothing is marked."""
    wire: str = ""
    changes: tuple[Change, ...] = ()
    saves: tuple[Save, ...] = ()
    tokens_before: int = 0
    tokens_after: int = 0
    ledger: Ledger = Ledger()
    """The ledger to pass next time, on a wire whose messages cannot be marked."""

    @property
    def changed(self) -> bool:
        """Whether anything is to be done."""
        return bool(self.changes)

    @property
    def tokens_freed(self) -> int:
        """How many tokens the plan frees."""
        return self.tokens_before - self.tokens_after

    def apply(self) -> Sequence[M]:
        """Return the history with the plan applied; the original does not change."""
        return self.messages

    def to_dict(self, *, content: bool = False) -> dict[str, Any]:
        """Return the plan as plain data, with the content of its saves only if `content` is set."""
        saves = [
            {"path": save.path, "call_id": save.call_id, "name": save.name, "length": len(save.content)}
            | ({"content": save.content} if content else {})
            for save in self.saves
        ]
        return {
            "wire": self.wire,
            "changed": self.changed,
            "tokens_before": self.tokens_before,
            "tokens_after": self.tokens_after,
            "changes": msgspec.to_builtins(self.changes),
            "saves": saves,
        }

    def to_json(self, *, content: bool = False) -> str:
        """Return the plan as JSON text."""
        return msgspec.json.encode(self.to_dict(content=content)).decode()

    def __str__(self) -> str:
        """Return a table that a person can read."""
        head = f"{self.wire}: {self.tokens_before} tokens"
        if not self.changes:
            return f"{head}, nothing to do"
        lines = [
            f"{head} -> {self.tokens_after}, {plural(len(self.changes), 'change')}, {plural(len(self.saves), 'file')}"
        ]
        rows = [("#", "action", "tool", "call", "tokens", "saved to")]
        rows += [
            (
                str(item.index),
                item.action,
                label(item.name),
                label(item.call_id),
                f"{item.tokens_before} -> {item.tokens_after}",
                visible(item.path) or "-",
            )
            for item in self.changes
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            lines.append("  ".join(["", *cells]).rstrip())
        return "\n".join(lines)

    def __repr__(self) -> str:
        """Show numbers of changes and tokens, but no content of messages."""
        return f"<Plan: {len(self.changes)} changes, {self.tokens_before} -> {self.tokens_after} tokens>"


def plan(
    messages: Sequence[M],
    settings: Settings | None = None,
    *,
    wire: str | None = None,
    offload: bool = True,
    language: str | None = None,
    ledger: Ledger | None = None,
    tool_infos: Sequence[ToolInfo] = (),
    **changes: Any,
) -> Plan[M]:
    r"""Plan how to reduce a history: truncate long results, and clear old ones if there are too many tokens.

    Nothing is changed or written: save `plan.saves`, then use `plan.messages`.

    Args:
        messages: the history, in any wire's form.
        settings: how to reduce; or pass single settings by name. wire: recognised if not given.
        offload: whether `plan.saves` will be saved; if not, nothing is truncated.
        language: language of the notices, `en` or `zh`; by default the current one.
        ledger: `plan.ledger` of the previous plan, on a wire whose messages cannot be marked.
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
    if ledger is not None and not isinstance(ledger, Ledger):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"ledger must be a Ledger, not {type(ledger).__name__}; Ledger.of makes one of plain data")
    fields = [field.name for field in dataclasses.fields(Settings)]
    if unknown := ", ".join(sorted(changes.keys() - fields)):
        raise ConfigError(f"unknown setting {unknown}; known: {', '.join(fields)}")
    chosen = Settings(**changes) if settings is None else dataclasses.replace(settings, **changes)
    known = ledger or Ledger()
    names = recognise(messages) if wire is None else (get_wire(wire).name,)
    terms = make_terms(chosen, known, resolve_language(language), offload=offload)
    made: list[Plan[M]] = [complete(_make_plan(get_wire(name), messages, terms, known, tool_infos)) for name in names]
    if all(other.messages == made[0].messages for other in made):
        return made[0]
    raise AmbiguousWireError(names)


def make_terms(settings: Settings, ledger: Ledger, language: Language, *, offload: bool) -> Terms:
    """Return the terms of a plan outside of any run."""

    def offloads(tool: str) -> bool:
        return offload or settings.config_of(tool).backend is not None

    known = Register(ledger)
    is_taken = known.by_path.__contains__
    return Terms(settings, settings.root_dir or "", language, offloads, is_taken, ask_plainly, known)


async def ask_plainly(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of the user's; refuse an async one."""
    answer = function(*arguments)
    if not hasattr(answer, "__await__"):
        return answer
    getattr(answer, "close", int)()
    name = getattr(function, "__qualname__", repr(function))
    raise ConfigError(f"{name} is async; only ToolReduction, inside an agent, can await it")


def complete(work: Coroutine[Any, Any, T]) -> T:
    """Run `work`, which never waits because no function of the user's is async here, and return its result."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("a plan waited for something")


async def _make_plan(
    wire: Wire, messages: Sequence[Any], terms: Terms, ledger: Ledger, tool_infos: Sequence[ToolInfo]
) -> Plan[Any]:
    counter = (terms.settings.token_counter if terms.settings.clears_any else None) or CharacterCounter()
    whole = None if is_incremental(counter) else cast("Callable[..., Any]", counter)
    tally = Tally(wire, cast("Any", CharacterCounter() if whole is not None else counter))
    draft, rounds = Draft(wire, messages, terms, tally.of), rounds_of(wire, messages)
    draft.keep_names(rounds)
    meter = Meter(tally.total(messages, tool_infos), whole, tool_infos)
    made, done = await reduce(draft, meter, rounds, rounds)
    if wire.marks:
        return made
    saved = (*ledger.saved, *done.draft.saves.values())
    return msgspec.structs.replace(made, ledger=Ledger(saved, ledger.rounds.union(done.draft.digests)))


async def reduce(
    draft: Draft,
    meter: Meter,
    new: Sequence[Round],
    old: Sequence[Round],
    *,
    again: bool = False,
    force: bool = False,
) -> tuple[Plan[Any], Cleared]:
    """Plan both phases: truncate the results of `new`, then clear those of `old`; see `truncate` and `clear`."""
    before = tokens = await meter.read(draft)
    await truncate(draft, new, again=again)
    if draft.log:
        tokens = await meter.read(draft)
    done = await clear(draft, meter, tokens, old, force=force)
    changes = sorted([change for change, _ in done.draft.log], key=lambda change: change.index)
    made = Plan[Any](
        messages=done.draft.current() if done.draft.cells else draft.messages,
        wire=draft.wire.name,
        changes=tuple(changes),
        saves=tuple(done.draft.saves),
        tokens_before=before,
        tokens_after=done.tokens if changes else before,
    )
    return made, done
