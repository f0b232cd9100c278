"""Truncation: results that are too long, each alone or together with those of its turn."""

import json
from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import msgspec

from suture.errors import ConfigError, InputError, OffloadError
from suture.language import Language
from suture.messages import Opaque, Part, TextPart, ToolResult
from suture.reduction.draft import Answer, Draft, Fate, Round, Saved, Terms
from suture.reduction.settings import ClearResult, ToolDetail, TruncResult
from suture.reduction.texts import (
    LONGEST_NOTICE,
    folded,
    free_path,
    is_truncated_text,
    offload_path,
    shorter_notice,
    truncated_text,
)
from suture.wires import plain

R = TypeVar("R", TruncResult, ClearResult)

_NOTICE = 256
"""About how much longer a notice is than what it shows of a text."""


# One result


async def decide_truncation(detail: ToolDetail, terms: Terms) -> TruncResult:
    """Decide what becomes of output that has just come: the tool's own handler does, or the default one."""
    settings, result = terms.settings, detail.tool_result
    handler = settings.config_of(detail.tool_context.name).trunc_handler
    if handler is not None:
        return await ask_handler("trunc_handler", handler, detail, terms, TruncResult)
    if result is None:
        raise ConfigError("ToolResult and StreamToolResult are both nil: there is nothing to truncate")
    if text_length(result.parts) <= settings.max_length_for_trunc:
        return TruncResult()
    return await _cut_and_save(detail, settings.max_length_for_trunc, terms)


async def _cut_and_save(detail: ToolDetail, limit: int, terms: Terms) -> TruncResult:
    """Return a result cut to about `limit` characters, with its whole to be saved; none if nothing gets shorter."""
    result = cast("ToolResult", detail.tool_result)
    path = await name_file("trunc", detail, terms)
    parts = cut(result.parts, limit, path, terms.settings.read_file_tool_name, terms.language)
    if all(one is other for one, other in zip(parts, result.parts, strict=True)):
        return TruncResult()
    return TruncResult(
        need_trunc=True,
        tool_result=msgspec.structs.replace(result, parts=parts),
        need_offload=True,
        offload_file_path=path,
        offload_content=content_of(result.parts),
    )


async def ask_handler(
    what: str, handler: Callable[[ToolDetail], Any], detail: ToolDetail, terms: Terms, kind: type[R]
) -> R:
    """Return what a tool's own handler decides; refuse what makes no sense, or cannot be saved.

    An error of the handler comes out as it is, with a note of whose it is.
    """
    name = detail.tool_context.name
    try:
        decided: Any = await terms.ask(handler, detail)
    except Exception as error:
        error.add_note(f"raised by the {what} of {name}")
        raise
    if not isinstance(decided, kind):
        raise ConfigError(f"the {what} of {name} must return a {kind.__name__}, not {type(decided).__name__}")
    phase, flag = ("truncation", "need_trunc") if isinstance(decided, TruncResult) else ("clear", "need_clear")
    if not getattr(decided, flag):
        return decided
    streams = detail.stream_tool_result is not None
    field = "stream_tool_result" if streams else "tool_result"
    instead = getattr(decided, field)
    if not (hasattr(instead, "__aiter__") if streams else isinstance(instead, ToolResult)):
        raise ConfigError(f"the {what} of {name} says {flag} and gives no {field}: {type(instead).__name__}")
    path = decided.offload_file_path
    if decided.need_offload and not terms.offloads(name):
        raise ConfigError(f"{phase}: no backend for offload (the {what} of {name} wants one)")
    if decided.need_offload and not path:
        raise ConfigError(f"the {what} of {name} says need_offload and gives no offload_file_path")
    if decided.need_offload and terms.is_taken(folded(path)):
        known = terms.known.find(detail.tool_context.call_id, decided.offload_content)
        if known is None or known.path != path:
            raise ConfigError(f"the {what} of {name} wants to save to {path!r}, which holds other output already")
    return decided


async def name_file(phase: str, detail: ToolDetail, terms: Terms) -> str:
    """Return where the output of a call is to be kept: where its path maker says, else under the root."""
    settings, context = terms.settings, detail.tool_context
    maker = settings.gen_trunc_offload_file_path if phase == "trunc" else settings.gen_clear_offload_file_path
    if maker is None:
        path = offload_path(terms.root, phase, context.call_id)
    else:
        try:
            path = await terms.ask(maker, detail)
        except ConfigError:
            raise
        except Exception as error:
            raise OffloadError([(context.name, context.call_id)], str(error) or type(error).__name__) from error
        if not isinstance(path, str) or not path:
            raise ConfigError(f"gen_{phase}_offload_file_path must return a path, not {path!r}")
    return free_path(path, terms.is_taken, terms.owner)


def text_length(parts: Sequence[Part]) -> int:
    """Return how many characters of text there are.

    >>> text_length([TextPart("abc"), TextPart("de")])
    5
    """
    return sum([len(part.text) for part in parts if isinstance(part, TextPart)])


def cut(parts: Sequence[Part], limit: int, path: str, tool: str, language: Language) -> tuple[Part, ...]:
    """Return `parts` with each long text replaced by a notice; each text has its share of the limit.

    A text whose notice would be no shorter stays as it is.

    >>> cut([TextPart("short"), TextPart("x" * 90)], 40, "/a", "read_file", "en")[0].text
    'short'
    """
    share = limit // sum(isinstance(part, TextPart) for part in parts)
    made: list[Part] = []
    for part in parts:
        if isinstance(part, TextPart) and len(part.text) > share:
            notice = truncated_text(part.text, share // 2, path, tool, language)
            made.append(msgspec.structs.replace(part, text=notice) if len(notice) < len(part.text) else part)
        else:
            made.append(part)
    return tuple(made)


def content_of(parts: Sequence[Part]) -> str:
    """Return what a file holds of a result: one text as it is, anything else as JSON.

    >>> content_of([TextPart("abc")])
    'abc'
    >>> print(content_of([TextPart("abc"), TextPart("de")]).replace(chr(9), " ").replace(chr(10), " "))
    [  {   "type": "text",   "text": "abc"  },  {   "type": "text",   "text": "de"  } ]
    """
    if not parts:
        return ""
    if len(parts) == 1 and isinstance(parts[0], TextPart):
        return parts[0].text
    return json.dumps([_plain_part(part) for part in parts], ensure_ascii=False, indent="\t", default=_describe)


def _plain_part(part: Part) -> Any:
    if not isinstance(part, Opaque):
        return msgspec.to_builtins(part, enc_hook=repr)
    try:
        return plain(part.data)
    except InputError:
        return part.data


def _describe(thing: Any) -> str:
    """Return what JSON has no form for: bytes as base64, an object in its own words."""
    return b64encode(thing).decode() if isinstance(thing, bytes) else repr(thing)


# A history


async def truncate(draft: Draft, rounds: Sequence[Round], *, again: bool = False) -> None:
    """Truncate the results that are too long, alone or with those beside them.

    `again`: each has been looked at when it came, if it came from a tool. So handlers are not asked once more.
    """
    for found in rounds:
        limits = _limits(draft, found)
        fates: list[Fate] = []
        for answer in found.answers:
            limit = limits.get(answer.place)
            if limit is not None:
                fate = await _truncate_answer(draft, answer, limit, again=again)
                fates += [fate] if fate is not None else []
        if fates:
            draft.write(found, fates)
            draft.fates.update({fate.answer.place: fate for fate in fates})


def _limits(draft: Draft, found: Round) -> dict[tuple[int, int], int]:
    """Return how long each result of a round may be, those that may be truncated at all."""
    settings = draft.settings
    lengths: dict[tuple[int, int], int] = {}
    free = settings.max_length_per_turn
    for answer in found.answers:
        length = text_length(draft.wire.result_parts(answer.result) or ())
        if not answer.synthetic and settings.truncates(answer.call.name):
            lengths[answer.place] = length
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


async def _truncate_answer(draft: Draft, answer: Answer, limit: int, *, again: bool) -> Fate | None:
    """Decide about one result that may have `limit` characters."""
    parts = draft.wire.result_parts(answer.result)
    if parts is None or text_length(parts) <= limit or draft.is_cleared(answer):
        return None
    saved, as_usual = draft.saved_of(answer), limit >= draft.settings.max_length_for_trunc
    if not _may_go(draft, answer, parts, saved, again=again, as_usual=as_usual):
        return None
    detail = draft.detail(answer, parts)
    if as_usual:
        decided = await decide_truncation(detail, draft.terms)
    elif saved is None:
        decided = await _cut_and_save(detail, limit, draft.terms)
    else:
        texts = sum(isinstance(part, TextPart) for part in parts)
        shorter = [
            msgspec.structs.replace(part, text=shorter_notice(part.text, limit // texts))
            if isinstance(part, TextPart)
            else part
            for part in parts
        ]
        result = msgspec.structs.replace(cast("ToolResult", detail.tool_result), parts=tuple(shorter))
        decided = TruncResult(need_trunc=True, tool_result=result)
    if not decided.need_trunc or decided.tool_result is None:
        return None
    frees = draft.weight(decided.tool_result.parts) < draft.weight(parts)
    return draft.fate(answer, "truncate", decided, saved) if frees else None


def _may_go(
    draft: Draft, answer: Answer, parts: Sequence[Part], saved: Saved | None, *, again: bool, as_usual: bool
) -> bool:
    """Tell whether a result that is too long may be truncated: it has not been, and its whole can be saved."""
    settings, name = draft.settings, answer.call.name
    handled = settings.config_of(name).trunc_handler is not None
    is_short = text_length(parts) <= settings.max_length_for_trunc + LONGEST_NOTICE
    if as_usual and ((again and handled) or (saved is not None and is_short)):
        return False
    if saved is None and is_short and is_truncated_text(draft.wire.result_text(answer.result)[0]):
        return False
    return handled or draft.outer.offloads(name)
