"""Text from a history as it may be printed: nothing in it reaches the terminal but letters."""

import re

__all__ = ["ascii_json", "shorten", "visible"]

_UNSEEN = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def visible(text: str) -> str:
    r"""Return `text` with every control, format and surrogate character spelled out.

    >>> print(visible("a\x1b[31mb"))
    a\x1b[31mb
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _spelled(letter) for letter in text)


def shorten(text: str, width: int) -> str:
    """Return `text` on one line of at most `width` characters, safe to print.

    >>> shorten("The weather in  Kyoto is fine", 16)
    'The weather in…'
    """
    words = " ".join(text[: 4 * width].split())
    shown = visible(words)
    if len(shown) <= width and len(text) <= 4 * width:
        return shown
    return shown[: width - 1].rstrip() + "…"


def ascii_json(data: bytes) -> bytes:
    r"""Return JSON with the unseen characters that it may hold as they are written as escapes.

    >>> ascii_json('["\x9b31m"]'.encode())
    b'["\\u009b31m"]'
    """
    if data.isascii() and b"\x7f" not in data:
        return data
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", data.decode()).encode()


def _spelled(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
