"""The hot path: is every call answered where it should be? One pass over compact records, nothing retained.

This asks only for what is *sufficient*: whatever is out of the ordinary makes the answer no, and the slow
path (`_assign`, `_plan`) looks again.
"""

from collections.abc import Sequence
from typing import Any

from suture.wires import Wire

__all__ = ["CHUNK", "is_whole"]

CHUNK = 512
"""How many messages are scanned at a time."""


def is_whole(wire: Wire, messages: Sequence[Any], start: int = 0, *, set_like: bool = False) -> bool:
    """Tell whether each turn of `messages[start:]` has just its results, right behind it.

    >>> from suture.wires import get_wire
    >>> is_whole(get_wire("openai-chat"), [{"role": "tool", "tool_call_id": "a", "content": ""}])
    False
    """
    if set_like:
        return _is_whole_as_set(wire, messages, start)
    waiting: list[Any] = []
    next_place = -1
    total = len(messages)
    for begin in range(start, total, CHUNK):
        for index, calls, results in wire.scan(messages, begin, min(begin + CHUNK, total)):
            if calls:
                if waiting or results:
                    return False
                waiting = list(calls[::-1])
            else:
                if not waiting or index != next_place:
                    return False
                for key in results:
                    if waiting and waiting[-1] == key:
                        waiting.pop()
                    elif key in waiting:
                        waiting.remove(key)
                    else:
                        return False
                if waiting and wire.is_loose(messages[index], len(results)):
                    return False
            next_place = index + 1
    return not waiting


def _is_whole_as_set(wire: Wire, messages: Sequence[Any], start: int) -> bool:
    """Tell the same where results may stand anywhere after their calls."""
    waiting: set[Any] = set()
    total = len(messages)
    for begin in range(start, total, CHUNK):
        for _, calls, results in wire.scan(messages, begin, min(begin + CHUNK, total)):
            for key in calls:
                if key in waiting:
                    return False
                waiting.add(key)
            for key in results:
                if key not in waiting:
                    return False
                waiting.remove(key)
    return not waiting
