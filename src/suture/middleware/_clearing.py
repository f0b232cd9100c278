"""The history before a model turn: is there too much of it, and what becomes of it then."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

from suture.errors import OffloadError
from suture.messages import History, TokenUsage, ToolInfo
from suture.middleware._notebook import Notebook
from suture.middleware._offloading import ATTEMPTS, save_all
from suture.middleware.patch_tool_calls import is_recorded_placeholder
from suture.reduction import (
    Cleared,
    Draft,
    Meter,
    Plan,
    Settings,
    Steps,
    Writer,
    carry_through_async,
    clear,
    clearable,
    folded,
    rounds_of,
    truncate,
)
from suture.stores import PathTakenError
from suture.tokens import is_incremental
from suture.wires import Wire

__all__ = ["Question", "Reduced", "judge", "reduce_history"]


class Question:
    """What is known about a history when the question comes up whether it must be reduced."""

    __slots__ = ("clears", "force", "history", "shorten", "tokens", "tool_infos", "whole", "wire")

    def __init__(self, wire: Wire, history: History[Any], tool_infos: Sequence[ToolInfo]) -> None:
        self.wire, self.history, self.tool_infos = wire, history, tool_infos
        self.tokens = 0
        self.whole: Callable[..., Any] | None = None
        """A function that counts the whole history, in place of `tokens`."""
        self.shorten: int | None = None
        """Where the last turn is, if what came of it is too long."""
        self.clears = False
        """Whether there may be something to clear."""
        self.force = False
        """Whether to clear although there are not too many tokens."""


def judge(question: Question, settings: Settings, book: Notebook, usage: TokenUsage | None) -> Question:
    """Work out whether the history of `question` must be reduced; `usage` is what the provider last reported."""
    wire, history = question.wire, question.history
    question.shorten = _too_long_turn(settings, wire, history)
    counter = settings.token_counter
    if settings.clears_any and counter is not None and not is_incremental(counter):
        question.whole = cast("Callable[..., Any]", counter)
    elif settings.clears_any:
        question.tokens = book.tally(wire).total(history, question.tool_infos, usage)
    too_many = question.tokens > settings.max_tokens_for_clear and not book.is_quiet(history, question.tokens)
    question.clears = too_many or question.whole is not None or question.force
    return question


def _too_long_turn(settings: Settings, wire: Wire, history: History[Any]) -> int | None:
    """Return where the last turn is if one of its results is too long, or all of them are together."""
    if not settings.truncates_any:
        return None
    total, longest, count = 0, 0, 0
    for place in range(len(history) - 1, -1, -1):
        message = history[place]
        if wire.made_by_model(message):
            too_long = longest > settings.max_length_for_trunc
            return place if too_long or (count > 1 and total > settings.max_length_per_turn) else None
        length = sum(map(len, wire.words(message).texts))
        total, longest, count = total + length, max(longest, length), count + 1
    return None


def _uncounted(_: object) -> int:
    """Count nothing: the whole history is counted at once."""
    return 0


class Reduced(NamedTuple):
    """A history that was reduced, and the plan it went by."""

    history: History[Any]
    plan: Plan[Any]
    cleared: bool
    """Whether anything was cleared, and not only truncated."""


async def reduce_history(
    question: Question, settings: Settings, book: Notebook, backend_of: Callable[[str], Writer | None]
) -> Reduced | None:
    """Reduce a history and save what that takes out of it; `None` where there is nothing to do.

    Nothing has changed if saving fails.
    """
    for attempt in range(ATTEMPTS):
        done, plan, left = await carry_through_async(_plan(question, settings, book, backend_of))
        history = History(plan.messages) if plan.changed else question.history
        try:
            await save_all(plan.saves, backend_of)
        except PathTakenError as taken:
            if attempt == ATTEMPTS - 1:
                calls = [(save.name, save.call_id) for save in plan.saves if folded(save.path) == folded(taken.path)]
                raise OffloadError(calls, str(taken)) from taken
            book.reserve(taken.path)
            continue
        if left is not None:
            book.settle(history, done.draft.place(left))
            if done.missed:
                book.wait_for(done, settings.clear_at_least_tokens, question.history[left:], question.wire)
        if not plan.changed:
            return None
        book.keep(plan.ledger)
        return Reduced(history, plan, any(change.action != "truncate" for change in plan.changes))
    return None


def _plan(
    question: Question, settings: Settings, book: Notebook, backend_of: Callable[[str], Writer | None]
) -> Steps[tuple[Cleared, Plan[Any], int | None]]:
    """Plan both phases; beside the plan comes the first message that may still have something to clear.

    Where nothing is to be cleared only the last turn is looked at.
    """
    wire, history = question.wire, question.history
    count = book.tally(wire).of if question.whole is None else _uncounted
    draft = Draft(wire, history, book.terms(backend_of), count)
    meter = Meter(question.tokens, question.whole, question.tool_infos)
    before = tokens = yield from meter.now(draft)
    if question.shorten is not None:
        fresh = rounds_of(wire, history, question.shorten, is_recorded_placeholder)
        yield from truncate(draft, fresh, again=True)
        if draft.changes:
            tokens = yield from meter.now(draft)
    if not question.clears:
        return Cleared(draft, tokens), draft.plan(before, tokens), None
    rounds = rounds_of(wire, history, book.settled_in(history), is_recorded_placeholder)
    old = clearable(draft, rounds)
    done = yield from clear(draft, meter, tokens, old, force=question.force)
    keep = settings.clear_retention_suffix_limit
    kept = rounds[max(0, len(rounds) - keep) :]
    waiting = [*old[done.handled :], *kept]
    left = waiting[0].first if waiting else len(history)
    return done, done.draft.plan(before, done.tokens), left
