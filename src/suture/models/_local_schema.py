"""How large a schema may be that a local model is held to: its engine takes minutes over a large one."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

__all__ = ["is_small"]

_TEXT = 20_000
"""How many characters it may have, about."""
_CHOICES = 200
"""How many values it may name, in all its enums together."""
_DEPTH = 30
"""How deep it may be nested."""


def is_small(schema: Any) -> bool:
    """Tell whether a schema can be made a grammar of in a moment.

    >>> is_small({"enum": ["red", "green"]}), is_small({"enum": list(range(1000))})
    (True, False)
    """
    text, choices = _TEXT, _CHOICES
    left: list[tuple[Any, int]] = [(schema, 0)]
    while left:
        value, depth = left.pop()
        text -= len(value) + 2 if isinstance(value, str) else 2
        if isinstance(value, Mapping):
            held = cast("Mapping[str, Any]", value)
            found = held.get("enum")
            choices -= len(cast("Sequence[Any]", found)) if isinstance(found, list | tuple) else "const" in held
            left += [(item, depth + 1) for pair in held.items() for item in pair]
        elif isinstance(value, list | tuple):
            left += [(item, depth + 1) for item in cast("Sequence[Any]", value)]
        if text < 0 or choices < 0 or depth > _DEPTH:
            return False
    return True
