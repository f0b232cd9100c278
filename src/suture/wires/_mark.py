"""Marks that native messages carry in `extra`, and the notes that stand for what was moved away."""

from suture.language import Language

__all__ = ["MARK", "media_note"]

MARK = "_suture_placeholder"
"""The key in `extra` of a result that Suture made; its value is the cause."""


def media_note(count: int, language: Language) -> str:
    """Return the text that stands in a result for media shown after the group.

    >>> media_note(1, "en")
    '(1 media part of this result is shown after the tool results)'
    """
    if language == "zh":
        return f"(此结果中的 {count} 个媒体部分显示在工具结果之后)"
    subject = "1 media part of this result is" if count == 1 else f"{count} media parts of this result are"
    return f"({subject} shown after the tool results)"
