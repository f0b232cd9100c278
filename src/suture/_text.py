"""Words about values: quoted, shortened, counted. What every room needs, written once."""

import re
from typing import Any

_UNSEEN = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
_FLOWING = "[^\n\t\u00a0\u2000-\u200a\u200c\u200d\u202f\u3000]+"
"""All but the characters that are no letters and do a terminal no harm: spaces, and joiners of letters."""

_SURROGATE = "[\ud800-\udfff]"


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


def replace_surrogates(text: str) -> str:
    r"""Return `text` with each lone surrogate, half of a character, replaced by U+FFFD: UTF-8 cannot carry one.

    >>> replace_surrogates("caf" + chr(0xD83D)) == "caf" + chr(0xFFFD)
    True
    """
    return text if text.isascii() else re.sub(_SURROGATE, "\ufffd", text)


def visible_lines(text: str) -> str:
    r"""Do as `visible`, but leave line ends and spaces of all widths as they are.

    >>> print(visible_lines("one\ntwo \x1b[31m"))
    one
    two \x1b[31m
    """
    return text if text.isprintable() else re.sub(_FLOWING, lambda found: visible(found[0]), text)


def escape_json(data: bytes) -> bytes:
    r"""Write the characters of a JSON text, or of a line that is none, that nobody could see as escapes.

    >>> escape_json('["\x9b31m"]'.encode()), escape_json(b"\xff")
    (b'["\\u009b31m"]', b'\\xff')
    """
    text = data.decode(errors="backslashreplace")
    return re.sub(_UNSEEN, lambda found: f"\\u{ord(found[0]):04x}", text).encode()


def shorten_line(text: str, width: int) -> str:
    """Return `text` on one line of at most `width` characters, all of them visible.

    >>> shorten_line("The weather in  Kyoto is fine", 16)
    'The weather in…'
    """
    shown = visible(" ".join(text[: 4 * width].split()))
    if len(shown) <= width and len(text) <= 4 * width:
        return shown
    return shown[: width - 1].rstrip() + "…"


def plural(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> plural(1, "message"), plural(2, "message")
    ('1 message', '2 messages')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
