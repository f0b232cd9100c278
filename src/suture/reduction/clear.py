"""Clearing: old results leave a history that has too many tokens, oldest first, and never again."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple, cast

from msgspec.structs import replace

from suture.errors import ConfigError
from suture.messages import TextPart, ToolInfo, ToolResult
from suture.reduction.draft import Draft, Fate, Round, Saved, Terms, rounds_of
from suture.reduction.settings import ClearResult, ToolDetail
from suture.reduction.texts import cleared_text, persisted_text
from suture.reduction.truncate import ask_handler, content_of, name_file

# One result


async def _clear_by_default(detail: ToolDetail, saved: Saved | None, terms: Terms) -> ClearResult:
    """Put a placeholder in the place of each text, unless it would take up more; all that is no text stays."""
    settings, result = terms.settings, cast("ToolResult", detail.tool_result)
    texts = [part.text for part in result.parts if isinstance(part, TextPart)]
    if not texts:
        return ClearResult()
    offloads = saved is None and terms.offloads(detail.tool_context.name)
    path = saved.path if saved is not None else ""
    if offloads:
        path = await name_file("clear", detail, terms)
    tool, language, measure = settings.read_file_tool_name, terms.language, settings.measure
    placeholder = persisted_text(path, tool, language) if path else cleared_text(language)
    if sum(map(measure, texts)) <= measure(placeholder) * len(texts):
        return ClearResult()
    parts = [replace(part, text=placeholder) if isinstance(part, TextPart) else part for part in result.parts]
    return ClearResult(
        need_clear=True,
        tool_result=replace(result, parts=parts),
        need_offload=offloads,
        offload_file_path=path if offloads else "",
        offload_content=content_of(result.parts) if offloads else "",
    )


# A history


class Meter(NamedTuple):
    """How tokens are counted: message by message, or (`whole`) the history at once."""

    total: int
    whole: Callable[[Sequence[Any], Sequence[ToolInfo]], Any] | None = None
    tool_infos: Sequence[ToolInfo] = ()

    async def read(self, draft: Draft) -> int:
        """Return how many tokens the draft has."""
        if self.whole is None:
            return self.total - draft.freed
        tokens = await draft.outer.ask(self.whole, draft.current(), self.tool_infos)
        if type(tokens) is not int or tokens < 0:
            name = getattr(self.whole, "__qualname__", type(self.whole).__name__)
            raise ConfigError(f"the token counter {name} gave {tokens!r}; expected an integer, 0 or more")
        return tokens


class Cleared(NamedTuple):
    """What came of clearing: the draft to go on with, and how many tokens it has."""

    draft: Draft
    tokens: int
    handled: int = 0
    """How many of the rounds were gone through."""
    missed: int = 0
    """What would have been freed, where that was too little to do anything."""


async def clear(draft: Draft, meter: Meter, tokens: int, rounds: Sequence[Round], *, force: bool = False) -> Cleared:
    """Clear old results, oldest first, where the history has too many tokens.

    The draft is as it was if clearing does not pay. `tokens` is how many it has. `force`: clear also where these are
    not too many. `rounds` are those that may be cleared.
    """
    settings, before = draft.settings, tokens
    if not settings.clears_any or not (force or tokens > settings.max_tokens_for_clear):
        return Cleared(draft, before)
    floor = settings.clear_down_to_tokens
    trial, handled = draft.fork(), 0
    for found in rounds:
        if floor is not None and tokens <= floor:
            break
        handled += 1
        await _clear_round(trial, found)
        if floor is not None:
            tokens = await meter.read(trial)
    if trial.changes == draft.changes:
        _mark_asked(draft, rounds[:handled])
        return Cleared(draft, before, handled)
    tokens = await meter.read(trial)
    freed, least = before - tokens, settings.clear_at_least_tokens
    if least and freed < least:  # 0: what a handler decided stands, also if it is longer
        return Cleared(draft, before, 0, freed)
    return Cleared(trial, tokens, handled)


def clearable(draft: Draft, rounds: Sequence[Round]) -> list[Round]:
    """Return the rounds that may be cleared: not the latest ones, and not those that have been."""
    old = rounds[: max(0, len(rounds) - draft.settings.clear_retention_suffix_limit)]
    return [found for found in old if not draft.is_done(found)]


def _mark_asked(draft: Draft, rounds: Sequence[Round]) -> None:
    """Mark rounds of which a handler, or the rewriter, wants nothing cleared: they are not asked again.

    Others are not marked for nothing: a mark changes the history.
    """
    settings = draft.settings
    for found in rounds:
        asked = settings.clear_message_rewriter is not None or any(
            settings.clears(answer.call.name) and settings.config_of(answer.call.name).clear_handler is not None
            for answer in found.answers
            if not answer.synthetic
        )
        if asked:
            draft.write(found, (), done=True)


async def _clear_round(draft: Draft, found: Round) -> None:
    rewriter = draft.settings.clear_message_rewriter
    if rewriter is None:
        draft.write(found, await _clear_answers(draft, found), done=True)
        return
    wire, messages = draft.wire, draft.messages
    if any(len(wire.view(messages[index]).results) != count for index, count in found.shares.items()):
        return  # a message with the results of other turns, too: nobody can say what may go
    turn = messages[found.first : found.last + 1]
    responses = [messages[index] for index in found.touched if index > found.last]
    instead = await draft.outer.ask(rewriter, turn[0] if len(turn) == 1 else turn, responses)
    if isinstance(instead, str | bytes) or not isinstance(instead, Sequence):
        raise ConfigError(
            "clear_message_rewriter must return a list of messages ([] removes the round), "
            f"not {type(instead).__name__}"
        )
    for answer in found.answers:
        draft.take_back(answer, None)
    # A turn of several messages, which a rewriter is given as a list, may stand among them as it is.
    given: list[Any] = [each if isinstance(each, list) else [each] for each in cast("Sequence[Any]", instead)]
    inner = Draft(wire, list(chain.from_iterable(given)), draft.terms, draft.count)
    for each in rounds_of(wire, inner.messages):
        inner.write(each, await _clear_answers(inner, each), done=True)
    draft.rewrite(found, inner)


async def _clear_answers(draft: Draft, found: Round) -> list[Fate]:
    """Decide about each result of a round."""
    fates: list[Fate] = []
    for answer in found.answers:
        name = answer.call.name
        parts = draft.wire.result_parts(answer.result)
        if answer.synthetic or not draft.settings.clears(name) or parts is None or draft.is_cleared(answer):
            continue
        saved = draft.saved_of(answer) or draft.outer.known.find(answer.call.id, content_of(parts))
        handler, detail = draft.settings.config_of(name).clear_handler, draft.detail(answer, parts)
        if handler is not None:
            decided = await ask_handler("clear_handler", handler, detail, draft.terms, ClearResult)
        else:
            truncated = draft.fates.get(answer.place)
            if saved is None and truncated is not None:
                saved = truncated.saved
            decided = await _clear_by_default(detail, saved, draft.terms)
            instead = decided.tool_result
            if truncated is not None and instead and draft.weight(instead.parts) >= draft.weight(truncated.parts):
                continue  # it is as short truncated as it would be cleared
        if decided.need_clear:
            draft.take_back(answer, saved)
            fates.append(draft.fate(answer, "clear", decided, saved))
    return fates
