"""What a function gave, as what an endpoint gives: text, or a `ToolResult`."""

from collections.abc import Callable
from typing import Any, cast, get_args

import msgspec

from suture.messages import Part, TextPart, ToolResult

_PARTS: tuple[type, ...] = get_args(Part)
_RICH = (ToolResult, *_PARTS)


def _plain_form(value: Any) -> Any:
    """Return a form that JSON can carry, for what msgspec does not know: models of pydantic, and mappings."""
    dump: Callable[..., Any] | None = getattr(value, "model_dump", None)
    if dump is None or isinstance(value, type):
        raise TypeError(f"{type(value).__name__} has no JSON form")
    return dump(mode="json")


_encode = msgspec.json.Encoder(enc_hook=_plain_form).encode


def as_text(value: Any, tool: str) -> str:
    """Turn what a plain tool gave into text: text as it is, nothing into no text, the rest into JSON.

    >>> from suture.tools._results import as_text
    >>> as_text("found", "search"), as_text(None, "search"), as_text({"pages": [1, 2]}, "search")
    ('found', '', '{"pages":[1,2]}')
    """
    if type(value) is str:
        return value
    if value is None:
        return ""
    if isinstance(value, str):
        return str.__str__(value)
    rich: object = value
    if isinstance(value, list | tuple):
        rich = next(iter(cast("list[object]", value)), None)
    if isinstance(rich, _RICH):
        raise TypeError(
            f"tool {tool!r} gave a {type(rich).__name__} but does not say so; annotate it -> ToolResult "
            "(a stream: -> AsyncIterator[ToolResult]), or make it with kind="
        )
    try:
        return _encode(value).decode()
    except (TypeError, ValueError, RecursionError) as error:
        kind = type(cast("object", value)).__name__
        raise TypeError(
            f"tool {tool!r} gave a {kind} that JSON cannot carry ({error}); return text or plain values"
        ) from error


def as_result(value: Any, tool: str) -> ToolResult:
    """Turn what an enhanced tool gave into a `ToolResult`.

    >>> from suture.messages import TextPart
    >>> from suture.tools._results import as_result
    >>> as_result("found", "search") == as_result([TextPart("found")], "search")
    True
    """
    if isinstance(value, ToolResult):
        return value
    if value is None:
        return ToolResult()
    if isinstance(value, str):
        return ToolResult((TextPart(str.__str__(value)),))
    parts: tuple[Any, ...] = tuple(cast("list[Any]", value)) if isinstance(value, list | tuple) else (value,)
    for part in parts:
        if not isinstance(part, _PARTS):
            raise TypeError(
                f"tool {tool!r} gave a {type(part).__name__}; an enhanced tool gives a ToolResult, a part, "
                "a list of parts, or text"
            )
    return ToolResult(parts)
