"""All cases, chapter by chapter."""

import _answers
import _arguments
import _conversations
import _exchanges
import _functions
import _results
from _case import Case

__all__ = ["CHAPTERS"]

CHAPTERS: list[tuple[str, tuple[Case, ...]]] = [
    (chapter.TITLE, chapter.CASES)
    for chapter in (_conversations, _functions, _arguments, _results, _answers, _exchanges)
]
