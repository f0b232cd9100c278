"""Text of structured values: tool output that is JSON, told as text."""

from typing import Any

import msgspec

from suture.wires._fields import get, word

__all__ = ["json_text", "json_words", "says_nothing"]


_TEXTS = ("text", "output_text", "input_text")


def says_nothing(content: Any) -> bool:
    """Tell whether content is absent, empty, or nothing but empty texts.

    >>> says_nothing(None), says_nothing([{"type": "text", "text": ""}]), says_nothing("hi")
    (True, True, False)
    """
    if not content or isinstance(content, str):
        return not content
    return all(word(part, "type") in _TEXTS and not get(part, "text") for part in content)


def json_text(value: Any) -> str:
    """Return `value` as compact JSON text; what JSON cannot hold is told by its `repr`.

    >>> json_text({"a": [1, 2]})
    '{"a":[1,2]}'
    """
    return msgspec.json.encode(value, enc_hook=repr).decode()


def json_words(value: Any) -> str:
    """Return `value` as compact JSON text; where JSON cannot hold it at all, as its `repr`. Never raises.

    >>> json_words({"a": [1, 2]}), json_words([chr(0xD800)]).isascii()
    ('{"a":[1,2]}', True)
    """
    try:
        return json_text(value)
    except (TypeError, ValueError, RecursionError):  # a lone surrogate, a strange key, a cycle
        try:
            return repr(value)
        except RecursionError:
            return f"({type(value).__name__})"
