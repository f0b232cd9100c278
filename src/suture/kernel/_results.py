"""Results: made, put together from pieces, and what they mean for the run."""

from collections.abc import Sequence
from typing import Any, TypeGuard

from suture.kernel._scope import Scope
from suture.messages import FrozenMap, TextPart, ToolResult

__all__ = ["ends_run", "error_result", "join_results", "text_result"]


def text_result(text: str) -> ToolResult:
    """Return a result that is one text."""
    return ToolResult((TextPart(text),))


def error_result(text: str) -> ToolResult:
    """Return a result that says what went wrong."""
    return ToolResult((TextPart(text),), is_error=True)


def join_results(pieces: Sequence[ToolResult]) -> ToolResult:
    """Return one result made of pieces: a text that goes on in the next piece is one, and any piece's word is all's."""
    if len(pieces) == 1:
        return pieces[0]
    parts: list[Any] = []
    extra: dict[str, Any] = {}
    for piece in pieces:
        extra.update(piece.extra)
        rest = piece.parts
        if parts and rest and _is_plain_text(parts[-1]) and _is_plain_text(rest[0]):
            parts[-1] = TextPart(parts[-1].text + rest[0].text)
            rest = rest[1:]
        parts.extend(rest)
    return ToolResult(
        tuple(parts),
        is_error=any(piece.is_error for piece in pieces),
        return_directly=any(piece.return_directly for piece in pieces),
        extra=FrozenMap(extra),
    )


def ends_run(scope: Scope, name: str, result: ToolResult) -> bool:
    """Tell whether the result of this tool ends the run: an error does not, unless it says so itself."""
    if result.return_directly:
        return True
    tool = scope.tools.get(name)
    return not result.is_error and (name in scope.return_directly or (tool is not None and tool.return_directly))


def _is_plain_text(part: Any) -> TypeGuard[TextPart]:
    return type(part) is TextPart and not part.extra
