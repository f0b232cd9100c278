"""Clearing: old results leave a history that has too many tokens, oldest first, and never again."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

from msgspec.structs import replace

from suture.errors import ConfigError
from suture.messages import ToolInfo
from suture.reduction._draft import Draft, Fate, is_cleared
from suture.reduction._handlers import clear_one, content_of
from suture.reduction._rounds import Answer, Round, is_done, rounds_of
from suture.reduction._steps import Steps, ask
from suture.reduction._values import ClearResult

__all__ = ["Cleared", "Meter", "clear", "clearable"]


class Meter(NamedTuple):
    """How tokens are counted: message by message, or (`whole`) the history at once."""

    total: int
    whole: Callable[[Sequence[Any], Sequence[ToolInfo]], Any] | None = None
    tool_infos: Sequence[ToolInfo] = ()

    def now(self, draft: Draft) -> Steps[int]:
        """Return how many tokens the draft has."""
        if self.whole is None:
            return self.total - draft.freed
        tokens = yield from ask(self.whole, draft.current(), self.tool_infos)
        if type(tokens) is not int or tokens < 0:
            name = getattr(self.whole, "__qualname__", type(self.whole).__name__)
            raise ConfigError(f"the token counter {name} gave {tokens!r}; a number of tokens is an integer from 0 on")
        return tokens


class Cleared(NamedTuple):
    """What came of clearing: the draft to go on with, and how many tokens it has."""

    draft: Draft
    tokens: int
    handled: int = 0
    """How many of the rounds were gone through."""
    missed: int = 0
    """What would have been freed, where that was too little to do anything."""


def clear(draft: Draft, meter: Meter, tokens: int, rounds: Sequence[Round], *, force: bool = False) -> Steps[Cleared]:
    """Clear old results, oldest first, where the history has too many tokens.

    The draft is as it was if clearing does not pay. `tokens` is how many it has. `force`: clear also where these are
    not too many. `rounds` are those that may be cleared.
    """
    settings, before = draft.terms.settings, tokens
    if not settings.clears_any or not (force or tokens > settings.max_tokens_for_clear):
        return Cleared(draft, before)
    floor = settings.clear_down_to_tokens
    trial, handled = draft.fork(), 0
    for found in rounds:
        if floor is not None and tokens <= floor:
            break
        handled += 1
        yield from _clear_round(trial, found)
        if floor is not None:
            tokens = yield from meter.now(trial)
    if trial.changes == draft.changes:
        return Cleared(draft, before, handled)
    tokens = yield from meter.now(trial)
    if before - tokens < settings.clear_at_least_tokens:
        return Cleared(draft, before, 0, before - tokens)
    return Cleared(trial, tokens, handled)


def clearable(draft: Draft, rounds: Sequence[Round]) -> list[Round]:
    """Return the rounds that may be cleared: not the latest ones, and not those that have been."""
    keep = draft.terms.settings.clear_retention_suffix_limit
    old = rounds[: max(0, len(rounds) - keep)]
    return [found for found in old if not is_done(draft.wire, draft.messages, found, draft.ledger)]


def _clear_round(draft: Draft, found: Round) -> Steps[None]:
    rewriter = draft.terms.settings.clear_message_rewriter
    if rewriter is None:
        fates = yield from _clear_answers(draft, found)
        draft.write(found, fates, done=True)
        return
    wire, messages = draft.wire, draft.messages
    if any(len(wire.view(messages[index]).results) != count for index, count in found.shares.items()):
        return  # a message with the results of other turns, too: nobody can say what may go
    turn = messages[found.first : found.last + 1]
    responses = [messages[index] for index in found.results]
    instead = yield from ask(rewriter, turn[0] if len(turn) == 1 else turn, responses)
    if isinstance(instead, str | bytes) or not isinstance(instead, Sequence):
        raise ConfigError(
            "clear_message_rewriter must return a list of messages ([] removes the round), "
            f"not {type(instead).__name__}"
        )
    instead = _flat(cast("Sequence[Any]", instead))
    for answer in found.answers:
        draft.take_back(answer, None)
    inner = Draft(wire, instead, draft.terms, draft.count)
    for each in rounds_of(wire, instead):
        fates = yield from _clear_answers(inner, each)
        inner.write(each, fates, done=True)
    draft.rewrite(found, inner.current())
    draft.saves += inner.saves
    draft.saved += inner.saved
    draft.digests += inner.digests
    draft.changes += [replace(change, index=found.first) for change in inner.changes]


def _flat(messages: Sequence[Any]) -> list[Any]:
    """Return messages; a turn of several, which a rewriter is given as a list, may stand among them as it is."""
    return [item for each in messages for item in (cast("list[Any]", each) if isinstance(each, list) else [each])]


def _clear_answers(draft: Draft, found: Round) -> Steps[list[Fate]]:
    """Decide about each result of a round."""
    fates: list[Fate] = []
    for answer in found.answers:
        if answer.synthetic or not draft.terms.settings.clears(answer.call.name):
            continue
        parts = draft.wire.result_parts(answer.result)
        if parts is None or is_cleared(draft, answer):
            continue
        saved = draft.saved_of(answer) or draft.ledger.find(answer.call.id, content_of(parts))
        as_usual = draft.terms.settings.config_of(answer.call.name).clear_handler is None
        if saved is None and as_usual:
            saved = draft.to_be_saved(answer)
        decided = yield from clear_one(draft.detail(answer, parts), saved, draft.terms)
        if decided.need_clear and not (as_usual and _is_no_less(draft, answer, decided)):
            draft.take_back(answer, saved)
            fates.append(draft.fate(answer, "clear", decided, saved))
    return fates


def _is_no_less(draft: Draft, answer: Answer, decided: ClearResult) -> bool:
    """Tell whether a result that is to be truncated is as short so as it would be cleared."""
    fate = draft.fates.get((answer.message, answer.position))
    if fate is None or decided.tool_result is None:
        return False
    return draft.weight(decided.tool_result.parts) >= draft.weight(fate.parts)
