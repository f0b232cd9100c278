"""Text about values: quoted, shortened, counted. Every room needs this, so it is written once."""

import re
from collections.abc import Iterable
from typing import Any

_UNSEEN = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
_FLOWING = "[^\n\t\u00a0\u2000-\u200a\u200c\u200d\u202f\u3000]+"
"""Matches each character but those that are harmless in a terminal though not printable: spaces, letter joiners."""

_SURROGATE = "[\ud800-\udfff]"
_SHORTEST_SECRET = 8
_LONG_SECRET = 16
_WORD_START, _WORD_END = r"(?<!\w)", r"(?![\w-])"


def shorten(text: str, limit: int) -> str:
    """Return `text`, cut to `limit` characters with an ellipsis at the end.

    >>> shorten("a long story", 7)
    'a long…'
    """
    return text if len(text) <= limit else text[: limit - 1] + "…"


def quote(value: Any, limit: int = 64) -> str:
    """Return the `repr` of a value, shortened.

    >>> quote("x" * 99, 8)
    "'xxxxxx…"
    """
    return shorten(repr(value), limit)


def mask(text: str, secrets: Iterable[str]) -> str:
    """Return `text` with `***` for each secret, even for one of which only the beginning is left.

    A secret under 8 characters may be an ordinary word, so it stays. One under 16 is masked where it is a whole word; a
    longer one anywhere, because nothing but itself looks like it. A beginning counts where a word ends.

    >>> mask("x: the key ollama-1 is refused, and so is ollama-12", ["x", "ollama-1"])
    'x: the key *** is refused, and so is ollama-12'
    """
    for secret in sorted(set(secrets), key=len, reverse=True):
        is_long = len(secret) >= _LONG_SECRET
        if is_long:
            text = text.replace(secret, "***")
        for length in range(len(secret), _SHORTEST_SECRET - 1, -1):
            if secret[:length] in text:
                text = re.sub(f"{'' if is_long else _WORD_START}{re.escape(secret[:length])}{_WORD_END}", "***", text)
    return text


def secrets_of_address(address: str) -> list[str]:
    """Return the name and the password in a URL, also as they are sent, and the values of its query.

    >>> secrets_of_address("https://me:secret@host/v1?key=x")
    ['me:secret', 'me', 'secret', 'bWU6c2VjcmV0', 'key=x', 'x']
    """
    from base64 import b64encode  # noqa: PLC0415 - only where there is an address
    from urllib.parse import parse_qsl, unquote, urlsplit  # noqa: PLC0415 - as above

    parts = urlsplit(address)
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    sent = b64encode(f"{user}:{password}".encode()).decode()
    held = [parts.netloc.rpartition("@")[0], user, password, sent, parts.query]
    return [*held, *[value for _, value in parse_qsl(parts.query)]]


def visible(text: str) -> str:
    r"""Return `text` on one line, with control characters as escapes, so that it is safe to print in a terminal.

    >>> visible("red \x1b[31m\nline")
    'red \\x1b[31m\\nline'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)


def replace_surrogates(text: str) -> str:
    r"""Return `text` with each lone surrogate (half a character) replaced by U+FFFD, since UTF-8 cannot encode it.

    >>> replace_surrogates("caf" + chr(0xD83D)) == "caf" + chr(0xFFFD)
    True
    """
    return text if text.isascii() else re.sub(_SURROGATE, "\ufffd", text)


def visible_lines(text: str) -> str:
    r"""Return `text` like `visible`, but keep line ends and spaces of all widths.

    >>> print(visible_lines("one\ntwo \x1b[31m"))
    one
    two \x1b[31m
    """
    return text if text.isprintable() else re.sub(_FLOWING, lambda found: visible(found[0]), text)


def escape_json(data: bytes) -> bytes:
    r"""Write the invisible characters of a line as JSON escapes, whether the line is valid JSON or not.

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
