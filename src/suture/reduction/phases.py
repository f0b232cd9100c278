"""The two phases: long results are truncated, and old ones are cleared if a history has too many tokens."""

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeVar, cast

import msgspec
from msgspec.structs import replace

from suture.errors import ConfigError, InputError, OffloadError
from suture.language import Language
from suture.messages import Opaque, Part, TextPart, ToolArgument, ToolInfo, ToolResult
from suture.reduction import texts
from suture.reduction.draft import Answer, Draft, Fate, Round, Saved, Terms, rounds_of, texts_of
from suture.reduction.settings import ClearResult, ToolDetail, TruncResult
from suture.tokens import check_count
from suture.wires import plain

R = TypeVar("R", TruncResult, ClearResult)

_NOTICE = 256
"""About how many characters a notice has besides what it shows of a text."""


# One result


async def decide_truncation(detail: ToolDetail, terms: Terms) -> TruncResult:
    """Decide about new output, with the tool's own handler or the default one."""
    settings, result = terms.settings, detail.tool_result
    handler = settings.config_of(detail.tool_context.name).trunc_handler
    if handler is not None:
        return await _ask_handler("trunc_handler", handler, detail, terms, TruncResult)
    if result is None:
        raise ConfigError("ToolResult and StreamToolResult are both nil: there is nothing to truncate")
    if text_length(result.parts) <= settings.max_length_for_trunc:
        return TruncResult()
    return await _cut_and_save(detail, settings.max_length_for_trunc, terms)


async def _cut_and_save(detail: ToolDetail, limit: int, terms: Terms) -> TruncResult:
    """Return a result cut to about `limit` characters, and the whole to save; no change if it would not be shorter."""
    result = cast("ToolResult", detail.tool_result)
    path = await name_file("trunc", detail, terms)
    parts = cut(result.parts, limit, path, terms.settings.read_file_tool_name, terms.language)
    if all(one is other for one, other in zip(parts, result.parts, strict=True)):
        return TruncResult()
    return TruncResult(
        need_trunc=True,
        tool_result=replace(result, parts=parts),
        need_offload=True,
        offload_file_path=path,
        offload_content=content_of(result.parts),
    )


async def _clear_by_default(detail: ToolDetail, saved: Saved | None, terms: Terms) -> ClearResult:
    """Replace all texts by notices, if these are shorter in total; other parts stay."""
    settings, result = terms.settings, cast("ToolResult", detail.tool_result)
    found = [part.text for part in result.parts if isinstance(part, TextPart)]
    if not found:
        return ClearResult()
    offloads = saved is None and terms.offloads(detail.tool_context.name)
    path = saved.path if saved is not None else ""
    if offloads:
        path = await name_file("clear", detail, terms)
    tool, language, measure = settings.read_file_tool_name, terms.language, settings.measure
    placeholder = texts.persisted_text(path, tool, language) if path else texts.cleared_text(language)
    if sum(map(measure, found)) <= measure(placeholder) * len(found):
        return ClearResult()
    return ClearResult(
        need_clear=True,
        tool_result=replace(result, parts=_with_texts(result.parts, lambda _: placeholder)),
        need_offload=offloads,
        offload_file_path=path if offloads else "",
        offload_content=content_of(result.parts) if offloads else "",
    )


async def _ask_handler(
    what: str, handler: Callable[[ToolDetail], Any], detail: ToolDetail, terms: Terms, kind: type[R]
) -> R:
    """Return the decision of a tool's own handler; refuse one that is invalid or cannot be saved.

    An error of the handler is raised unchanged, with a note that names the tool.
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
    types: dict[str, Any] = {"offload_file_path": str, "offload_content": str} if decided.need_offload else {}
    for field, wanted in {**types, **({"tool_argument": ToolArgument | None} if kind is ClearResult else {})}.items():
        if not isinstance(found := getattr(decided, field), wanted):
            raise ConfigError(f"the {what} of {name} gives no {field}, but {type(found).__name__}")
    path = decided.offload_file_path
    if decided.need_offload and not terms.offloads(name):
        raise ConfigError(f"{phase}: no backend for offload (the {what} of {name} wants one)")
    if decided.need_offload and not path:
        raise ConfigError(f"the {what} of {name} says need_offload and gives no offload_file_path")
    if decided.need_offload and terms.is_taken(texts.folded(path)):
        known = terms.known.find(detail.tool_context.call_id, decided.offload_content)
        if known is None or known.path != path:
            raise ConfigError(f"the {what} of {name} wants to save to {path!r}, which holds other output already")
    return decided


async def name_file(phase: str, detail: ToolDetail, terms: Terms) -> str:
    """Return the path for the output of a call: from its path maker, else under the root."""
    settings, context = terms.settings, detail.tool_context
    maker = settings.gen_trunc_offload_file_path if phase == "trunc" else settings.gen_clear_offload_file_path
    if maker is None:
        path = texts.offload_path(terms.root, phase, context.call_id)
    else:
        try:
            path = await terms.ask(maker, detail)
        except ConfigError:
            raise
        except Exception as error:
            raise OffloadError([(context.name, context.call_id)], str(error) or type(error).__name__) from error
        if not isinstance(path, str) or not path:
            raise ConfigError(f"gen_{phase}_offload_file_path must return a path, not {path!r}")
    return texts.free_path(path, terms.is_taken, terms.owner)


def name_by_content(root: str, detail: ToolDetail) -> str:
    """Return a path for a cleared result without a ledger: it contains a digest, so no other output has the same."""
    content = content_of(cast("ToolResult", detail.tool_result).parts)
    return f"{texts.offload_path(root, 'clear', detail.tool_context.call_id)}-{texts.digest_of(content, 12)}"


def text_length(parts: Sequence[Part]) -> int:
    """Return how many characters of text the parts have.

    >>> text_length([TextPart("abc"), TextPart("de")])
    5
    """
    return sum([len(part.text) for part in parts if isinstance(part, TextPart)])


def cut(parts: Sequence[Part], limit: int, path: str, tool: str, language: Language) -> tuple[Part, ...]:
    """Return `parts` with each long text replaced by a notice; each text has its share of the limit.

    A text whose notice would not be shorter stays unchanged.

    >>> cut([TextPart("short"), TextPart("x" * 90)], 40, "/a", "read_file", "en")[0].text
    'short'
    """
    share = limit // sum(isinstance(part, TextPart) for part in parts)

    def shorten(text: str) -> str:
        if len(text) <= share:
            return text
        return min(text, texts.truncated_text(text, share // 2, path, tool, language), key=len)

    return _with_texts(parts, shorten)


def _with_texts(parts: Sequence[Part], change: Callable[[str], str]) -> tuple[Part, ...]:
    """Return parts with their texts changed; a part whose text stays is the same object."""
    made = list(parts)
    for place, part in enumerate(parts):
        if isinstance(part, TextPart) and (text := change(part.text)) != part.text:
            made[place] = replace(part, text=text)
    return tuple(made)


def content_of(parts: Sequence[Part]) -> str:
    """Return the content of the file for a result: a single text unchanged, anything else as JSON.

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
    try:
        return plain(part.data) if isinstance(part, Opaque) else msgspec.to_builtins(part, enc_hook=repr)
    except InputError:
        return cast("Opaque", part).data


def _describe(thing: Any) -> str:
    """Return the text for a value without a JSON form: bytes as base64, an object as its `str`."""
    return b64encode(thing).decode() if isinstance(thing, bytes) else repr(thing)


# Truncating a history


async def truncate(draft: Draft, rounds: Sequence[Round], *, again: bool = False) -> None:
    """Truncate the results that are too long, alone or together with parallel ones.

    `again`: results of tools were handled when they came, so handlers are not asked again.
    """
    for found in rounds:
        limits = _limits(draft, found)
        made = [
            await _truncate_answer(draft, answer, limits[answer.place], again=again)
            for answer in found.answers
            if answer.place in limits
        ]
        if fates := [fate for fate in made if fate is not None]:
            draft.write(found, fates)
            draft.fates.update({fate.answer.place: fate for fate in fates})


def _limits(draft: Draft, found: Round) -> dict[tuple[int, int], int]:
    """Return the greatest length of each result of a round that may be truncated."""
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
    """Return the greatest length for each such that all together are within the budget; `None` if they already are.

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
    settings, name, parts = draft.settings, answer.call.name, draft.wire.result_parts(answer.result)
    if parts is None or text_length(parts) <= limit or draft.is_cleared(answer):
        return None
    saved, as_usual = draft.saved_of(answer), limit >= settings.max_length_for_trunc
    handled = settings.config_of(name).trunc_handler is not None
    is_short = text_length(parts) <= settings.max_length_for_trunc + texts.LONGEST_NOTICE
    if as_usual and ((again and handled) or (saved is not None and is_short)):
        return None
    if saved is None and is_short and any(map(texts.is_truncated_text, texts_of(draft.wire, answer.result))):
        return None
    if not handled and not draft.terms.offloads(name):
        return None
    detail = draft.detail(answer, parts)
    if as_usual:
        decided = await decide_truncation(detail, draft.terms)
    elif saved is None:
        decided = await _cut_and_save(detail, limit, draft.terms)
    else:
        share = limit // sum(isinstance(part, TextPart) for part in parts)
        shorter = _with_texts(parts, lambda text: texts.shorter_notice(text, share))
        result = replace(cast("ToolResult", detail.tool_result), parts=shorter)
        decided = TruncResult(need_trunc=True, tool_result=result)
    if not decided.need_trunc or decided.tool_result is None:
        return None
    frees = draft.weight(decided.tool_result.parts) < draft.weight(parts)
    return draft.fate(answer, "truncate", decided, saved) if frees else None


# Clearing a history


class Meter(NamedTuple):
    """Counts tokens message by message, or (`whole`) of the whole history at once."""

    total: int
    whole: Callable[[Sequence[Any], Sequence[ToolInfo]], Any] | None = None
    tool_infos: Sequence[ToolInfo] = ()

    async def read(self, draft: Draft) -> int:
        """Return how many tokens the draft has."""
        if self.whole is None:
            return self.total - draft.freed
        return check_count(self.whole, await draft.terms.ask(self.whole, draft.current(), self.tool_infos))


class Cleared(NamedTuple):
    """The outcome of clearing: the draft to continue with, and how many tokens it has."""

    draft: Draft
    tokens: int
    waiting: Sequence[Round]
    """The rounds in which there may still be something to clear."""
    missed: int = 0
    """How many tokens would have been freed, if that was too little."""


async def clear(draft: Draft, meter: Meter, tokens: int, rounds: Sequence[Round], *, force: bool = False) -> Cleared:
    """Clear old results, oldest first, if the history has too many tokens, or (`force`) anyway.

    The latest rounds are left alone, and those already cleared. The draft, which has `tokens` tokens, does not change
    if clearing does not free enough.
    """
    settings, before, handled = draft.settings, tokens, 0
    latest = max(0, len(rounds) - settings.clear_retention_suffix_limit)
    old = [found for found in rounds[:latest] if not draft.is_done(found)]
    waiting = [*old, *rounds[latest:]]
    if not settings.clears_any or not (force or tokens > settings.max_tokens_for_clear):
        return Cleared(draft, before, waiting)
    trial, floor = draft.fork(), settings.clear_down_to_tokens
    for found in old:
        if floor is not None and tokens <= floor:
            break
        handled += 1
        await _clear_round(trial, found)
        if floor is not None:
            tokens = await meter.read(trial)
    if trial.log == draft.log:
        _mark_asked(draft, old[:handled])
        return Cleared(draft, before, waiting[handled:])
    tokens = await meter.read(trial)
    freed, least = before - tokens, settings.clear_at_least_tokens
    if least and freed < least:  # if 0, a handler's decision is applied even if the result gets longer
        return Cleared(draft, before, waiting, freed)
    return Cleared(trial, tokens, waiting[handled:])


def _mark_asked(draft: Draft, rounds: Sequence[Round]) -> None:
    """Mark rounds of which a handler or the rewriter wants nothing cleared, so that they are not asked again.

    Other rounds are not marked, since a mark changes the history.
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
    shares = Counter(answer.message for answer in found.answers)
    if any(len(wire.view(messages[index]).results) != count for index, count in shares.items()):
        return  # a message that also has results of other turns: it is not clear what may be removed
    turn = messages[found.first : found.last + 1]
    responses = [messages[index] for index in found.touched if index > found.last]
    instead = await draft.terms.ask(rewriter, turn[0] if len(turn) == 1 else turn, responses)
    if isinstance(instead, str | bytes) or not isinstance(instead, Sequence):
        raise ConfigError(
            "clear_message_rewriter must return a list of messages ([] removes the round), "
            f"not {type(instead).__name__}"
        )
    for answer in found.answers:
        draft.take_back(answer, None)
    # A rewriter gets a turn of several messages as a list, and may return that list among its messages.
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
        saved = draft.saved_of(answer) or draft.terms.known.find(answer.call.id, content_of(parts))
        handler, detail = draft.settings.config_of(name).clear_handler, draft.detail(answer, parts)
        if handler is not None:
            decided = await _ask_handler("clear_handler", handler, detail, draft.terms, ClearResult)
        else:
            truncated = draft.fates.get(answer.place)
            if saved is None and truncated is not None:
                saved = truncated.saved
            decided = await _clear_by_default(detail, saved, draft.terms)
            instead = decided.tool_result
            if truncated is not None and instead and draft.weight(instead.parts) >= draft.weight(truncated.parts):
                continue  # truncated, it is as short as it would be if cleared
        if decided.need_clear:
            fates.append(draft.fate(answer, "clear", decided, saved))
    return fates
