"""Truncation over a history: results that are too long, each alone or together with those of its turn."""

from collections.abc import Sequence
from typing import cast

from msgspec.structs import replace

from suture.messages import Part, ToolResult
from suture.reduction._draft import Draft, Fate, is_cleared
from suture.reduction._handlers import content_of, cut, offload_place, shorten, text_length, truncate_one
from suture.reduction._rounds import Answer, Round
from suture.reduction._steps import Steps
from suture.reduction._texts import LONGEST_NOTICE, is_truncated_text
from suture.reduction._values import Saved, ToolDetail, TruncResult

__all__ = ["truncate", "water_level"]

_NOTICE = 256
"""About how much longer a notice is than what it shows of a text."""


def truncate(draft: Draft, rounds: Sequence[Round], *, again: bool = False) -> Steps[None]:
    """Truncate the results that are too long, alone or with those beside them.

    `again`: each has been looked at when it came, if it came from a tool. So handlers are not asked once more.
    """
    for found in rounds:
        limits = _limits(draft, found)
        fates: list[Fate] = []
        for answer in found.answers:
            limit = limits.get((answer.message, answer.position))
            if limit is not None:
                fate = yield from _truncate_answer(draft, answer, limit, again=again)
                fates += [fate] if fate is not None else []
        if fates:
            draft.write(found, fates)
            draft.fates.update({(fate.answer.message, fate.answer.position): fate for fate in fates})


def _limits(draft: Draft, found: Round) -> dict[tuple[int, int], int]:
    """Return how long each result of a round may be, those that may be truncated at all."""
    settings = draft.terms.settings
    lengths: dict[tuple[int, int], int] = {}
    free = settings.max_length_per_turn
    for answer in found.answers:
        length = text_length(draft.wire.result_parts(answer.result) or ())
        if not answer.synthetic and settings.truncates(answer.call.name):
            lengths[answer.message, answer.position] = length
        else:
            free = max(0, free - length)
    alone = settings.max_length_for_trunc
    if len(found.answers) < 2:
        return dict.fromkeys(lengths, alone)
    level = water_level([min(length, alone) for length in lengths.values()], free)
    return dict.fromkeys(lengths, alone if level is None else min(alone, max(0, level - _NOTICE)))


def water_level(lengths: Sequence[int], budget: int) -> int | None:
    """Return how long each may be so that all together are within the budget; `None` where they are.

    >>> water_level([10, 100, 100], 90), water_level([10, 20], 90)
    (40, None)
    """
    left, waiting = budget, len(lengths)
    for length in sorted(lengths):
        if length * waiting > left:
            return left // waiting
        left, waiting = left - length, waiting - 1
    return None


def _truncate_answer(draft: Draft, answer: Answer, limit: int, *, again: bool) -> Steps[Fate | None]:
    """Decide about one result that may have `limit` characters."""
    parts = draft.wire.result_parts(answer.result)
    if parts is None or text_length(parts) <= limit or is_cleared(draft, answer):
        return None
    settings, saved = draft.terms.settings, draft.saved_of(answer)
    as_usual = limit >= settings.max_length_for_trunc
    if not _may_go(draft, answer, parts, saved, again=again, as_usual=as_usual):
        return None
    detail = draft.detail(answer, parts)
    if saved is not None and not as_usual:
        decided = TruncResult(need_trunc=True, tool_result=_with(detail, shorten(parts, limit)))
    elif as_usual:
        decided = yield from truncate_one(detail, draft.terms)
    else:
        path = yield from offload_place("trunc", detail, draft.terms)
        shorter = cut(parts, limit, path, settings.read_file_tool_name, draft.terms.language)
        decided = TruncResult(
            need_trunc=True,
            tool_result=_with(detail, shorter),
            need_offload=True,
            offload_file_path=path,
            offload_content=content_of(parts),
        )
    if not decided.need_trunc or decided.tool_result is None:
        return None
    frees = draft.weight(decided.tool_result.parts) < draft.weight(parts)
    return draft.fate(answer, "truncate", decided, saved) if frees else None


def _may_go(
    draft: Draft, answer: Answer, parts: Sequence[Part], saved: Saved | None, *, again: bool, as_usual: bool
) -> bool:
    """Tell whether a result that is too long may be truncated: it has not been, and its whole can be saved."""
    settings, name = draft.terms.settings, answer.call.name
    handled = settings.config_of(name).trunc_handler is not None
    told = text_length(parts) <= settings.max_length_for_trunc + LONGEST_NOTICE
    if as_usual and ((again and handled) or (saved is not None and told)):
        return False
    if saved is None and told and is_truncated_text(draft.wire.result_text(answer.result)[0]):
        return False
    return handled or draft.terms.offloads(name)


def _with(detail: ToolDetail, parts: Sequence[Part]) -> ToolResult:
    return replace(cast("ToolResult", detail.tool_result), parts=tuple(parts))
