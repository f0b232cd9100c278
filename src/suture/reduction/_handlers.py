"""What is done to one result: by the tool's own handler, or by the default one.

Both phases come down to the same question, asked of one call at a time: what takes its place, and what is saved
where? `Terms` is what the answer depends on besides the call.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from suture.errors import ConfigError, InputError, OffloadError
from suture.language import Language
from suture.messages import Opaque, Part, TextPart, ToolResult
from suture.reduction._paths import folded, free_path, offload_path
from suture.reduction._settings import Settings
from suture.reduction._steps import Steps, ask
from suture.reduction._texts import cleared_text, persisted_text, shorter_notice, truncated_text
from suture.reduction._values import ClearResult, Ledger, PathMaker, Saved, ToolDetail, TruncResult
from suture.tokens import CharacterCounter
from suture.wires import plain

__all__ = [
    "Terms",
    "clear_one",
    "content_of",
    "cut",
    "offload_place",
    "shorten",
    "text_length",
    "text_measure",
    "truncate_one",
]


class Terms(NamedTuple):
    """What reducing one result depends on, besides the result."""

    settings: Settings
    root: str
    language: Language
    offloads: Callable[[str], bool]
    """Whether output of a tool can be saved."""
    taken: set[str]
    """Paths that hold something already, folded."""
    ledger: Ledger
    """What earlier plans saved, on a wire whose messages cannot say so."""
    measure: Callable[[str], int]
    """How many tokens a text takes up."""


def text_measure(settings: Settings) -> Callable[[str], int]:
    """Return how the tokens of a single text are counted: by the counter, if it can, else characters / 4.

    >>> text_measure(Settings())("12345678")
    2
    """
    return getattr(settings.token_counter, "count_text", CharacterCounter().count_text)


def truncate_one(detail: ToolDetail, terms: Terms) -> Steps[TruncResult]:
    """Decide about output that has just come."""
    name = detail.tool_context.name
    handler = terms.settings.config_of(name).trunc_handler
    if handler is None:
        return (yield from _default_truncation(detail, terms))
    decided = yield from _asked("trunc_handler", handler, detail)
    if not isinstance(decided, TruncResult):
        raise ConfigError(f"the trunc_handler of {name} must return a TruncResult, not {type(decided).__name__}")
    streams = detail.stream_tool_result is not None
    wanted = decided.stream_tool_result if streams else decided.tool_result
    if decided.need_trunc and not (hasattr(wanted, "__aiter__") if streams else isinstance(wanted, ToolResult)):
        field = "stream_tool_result" if streams else "tool_result"
        raise ConfigError(f"the trunc_handler of {name} says need_trunc and gives no {field}: {type(wanted).__name__}")
    _check_offload("truncation", "trunc_handler", decided, detail, terms)
    return decided


def _default_truncation(detail: ToolDetail, terms: Terms) -> Steps[TruncResult]:
    settings, result = terms.settings, detail.tool_result
    if result is None:
        raise ConfigError("ToolResult and StreamToolResult are both nil: there is nothing to truncate")
    if text_length(result.parts) <= settings.max_length_for_trunc:
        return TruncResult()
    path = yield from offload_place("trunc", detail, terms)
    parts = cut(result.parts, settings.max_length_for_trunc, path, settings.read_file_tool_name, terms.language)
    if all(one is other for one, other in zip(parts, result.parts, strict=True)):
        return TruncResult()
    return TruncResult(
        need_trunc=True,
        tool_result=msgspec.structs.replace(result, parts=parts),
        need_offload=True,
        offload_file_path=path,
        offload_content=content_of(result.parts),
    )


def clear_one(detail: ToolDetail, saved: Saved | None, terms: Terms) -> Steps[ClearResult]:
    """Decide about an old result; `saved` is where its whole output is already."""
    name = detail.tool_context.name
    handler = terms.settings.config_of(name).clear_handler
    if handler is None:
        return (yield from _default_clearing(detail, saved, terms))
    decided = yield from _asked("clear_handler", handler, detail)
    if not isinstance(decided, ClearResult):
        raise ConfigError(f"the clear_handler of {name} must return a ClearResult, not {type(decided).__name__}")
    wanted: object = decided.tool_result
    if decided.need_clear and not isinstance(wanted, ToolResult):
        raise ConfigError(
            f"the clear_handler of {name} says need_clear and gives no tool_result: {type(wanted).__name__}"
        )
    _check_offload("clear", "clear_handler", decided, detail, terms)
    return decided


def _default_clearing(detail: ToolDetail, saved: Saved | None, terms: Terms) -> Steps[ClearResult]:
    """Put a placeholder in the place of each text, unless it would take up more; all that is no text stays."""
    settings, result = terms.settings, cast("ToolResult", detail.tool_result)
    texts = [part.text for part in result.parts if isinstance(part, TextPart)]
    if not texts:
        return ClearResult()
    name = detail.tool_context.name
    offloads = saved is None and terms.offloads(name)
    path = saved.path if saved is not None else ""
    if offloads:
        path = yield from offload_place("clear", detail, terms)
    tool, language = settings.read_file_tool_name, terms.language
    stand_in = persisted_text(path, tool, language) if path else cleared_text(language)
    if sum(map(terms.measure, texts)) <= terms.measure(stand_in) * len(texts):
        return ClearResult()
    parts = [
        msgspec.structs.replace(part, text=stand_in) if isinstance(part, TextPart) else part for part in result.parts
    ]
    return ClearResult(
        need_clear=True,
        tool_result=msgspec.structs.replace(result, parts=parts),
        need_offload=offloads,
        offload_file_path=path if offloads else "",
        offload_content=content_of(result.parts) if offloads else "",
    )


def _asked(what: str, handler: Callable[[ToolDetail], Any], detail: ToolDetail) -> Steps[Any]:
    """Ask a tool's own handler; its error comes out as it is, with a note of whose it is."""
    try:
        return (yield from ask(handler, detail))
    except Exception as error:
        error.add_note(f"raised by the {what} of {detail.tool_context.name}")
        raise


def offload_place(phase: str, detail: ToolDetail, terms: Terms) -> Steps[str]:
    """Return where the output of a call is to be kept: where its path maker says, else under the root."""
    settings = terms.settings
    maker: PathMaker | None = (
        settings.gen_trunc_offload_file_path if phase == "trunc" else settings.gen_clear_offload_file_path
    )
    if maker is None:
        path = offload_path(terms.root, phase, detail.tool_context.call_id)
    else:
        try:
            path = yield from ask(maker, detail)
        except ConfigError:
            raise
        except Exception as error:
            context = detail.tool_context
            raise OffloadError([(context.name, context.call_id)], str(error) or type(error).__name__) from error
        if not isinstance(path, str) or not path:
            raise ConfigError(f"gen_{phase}_offload_file_path must return a path, not {path!r}")
    return free_path(path, terms.taken)


def _check_offload(
    phase: str, handler: str, decided: TruncResult | ClearResult, detail: ToolDetail, terms: Terms
) -> None:
    """Refuse what a handler wants saved and cannot be."""
    needed = decided.need_trunc if isinstance(decided, TruncResult) else decided.need_clear
    if not (needed and decided.need_offload):
        return
    name, path = detail.tool_context.name, decided.offload_file_path
    if not terms.offloads(name):
        raise ConfigError(f"{phase}: no backend for offload (the {handler} of {name} wants one)")
    if not path:
        raise ConfigError(f"the {handler} of {name} says need_offload and gives no offload_file_path")
    known = terms.ledger.find(detail.tool_context.call_id, decided.offload_content)
    if folded(path) in terms.taken and not (known is not None and known.path == path):
        raise ConfigError(f"the {handler} of {name} wants to save to {path!r}, which holds other output already")


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
    texts = sum(isinstance(part, TextPart) for part in parts)
    share = limit // texts
    made: list[Part] = []
    for part in parts:
        notice = None
        if isinstance(part, TextPart) and len(part.text) > share:
            notice = truncated_text(part.text, share // 2, path, tool, language)
            notice = notice if len(notice) < len(part.text) else None
        made.append(part if notice is None else msgspec.structs.replace(part, text=notice))
    return tuple(made)


def shorten(parts: Sequence[Part], limit: int) -> list[Part]:
    """Return `parts`, which were cut before, showing no more than `limit` characters."""
    texts = sum(isinstance(part, TextPart) for part in parts)
    return [
        msgspec.structs.replace(part, text=shorter_notice(part.text, limit // texts))
        if isinstance(part, TextPart)
        else part
        for part in parts
    ]


def content_of(parts: Sequence[Part]) -> str:
    """Return what a file holds of a result: one text as it is, anything else as JSON.

    >>> content_of([TextPart("abc")])
    'abc'
    >>> print(content_of([TextPart("abc"), TextPart("de")]).replace(chr(9), "  "))
    [
      {
        "type": "text",
        "text": "abc"
      },
      {
        "type": "text",
        "text": "de"
      }
    ]
    """
    if not parts:
        return ""
    if len(parts) == 1 and isinstance(parts[0], TextPart):
        return parts[0].text
    return json.dumps([_plain_part(part) for part in parts], ensure_ascii=False, indent="\t", default=_told)


def _plain_part(part: Part) -> Any:
    if not isinstance(part, Opaque):
        return msgspec.to_builtins(part, enc_hook=repr)
    try:
        return plain(part.data)
    except InputError:
        return part.data


def _told(thing: Any) -> str:
    """Return what JSON has no form for: bytes as base64, an object in its own words."""
    return b64encode(thing).decode() if isinstance(thing, bytes) else repr(thing)
