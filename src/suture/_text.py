"""Words about values: quoted, shortened, counted. What every room needs, written once."""

from typing import Any

__all__ = ["plural", "quote", "shorten", "visible"]


def shorten(text: str, limit: int) -> str:
    """Return `text`, cut to `limit` characters with an ellipsis at the end.

    >>> shorten("a long story", 7)
    'a long…'
    """
    return text if len(text) <= limit else text[: limit - 1] + "…"


def quote(value: Any, limit: int = 64) -> str:
    """Return a value as it is written in Python, shortened.

    >>> quote("x" * 99, 8)
    "'xxxxxx…"
    """
    return shorten(repr(value), limit)


def visible(text: str) -> str:
    r"""Return `text` on one line, with control characters as escapes: a terminal does nothing but show it.

    >>> visible("red \x1b[31m\nline")
    'red \\x1b[31m\\nline'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)


def plural(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> plural(1, "message"), plural(2, "message")
    ('1 message', '2 messages')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
