"""Text of structured values: tool output that is JSON, told as text."""

from typing import Any

import msgspec

__all__ = ["json_text"]


def json_text(value: Any) -> str:
    """Return `value` as compact JSON text; what JSON cannot hold is told by its `repr`.

    >>> json_text({"a": [1, 2]})
    '{"a":[1,2]}'
    """
    return msgspec.json.encode(value, enc_hook=repr).decode()
