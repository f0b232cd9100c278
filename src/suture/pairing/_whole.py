"""The hot path: is every call answered where it should be? One pass, nothing retained.

This asks only for what is *sufficient*: whatever is out of the ordinary makes the answer no, and the slow
path (`_assign`, `_plan`) looks again.
"""

from collections.abc import Sequence
from typing import Any

from suture.wires import Wire

__all__ = ["CHUNK", "is_whole"]

CHUNK = 64
"""How many messages are scanned at a time, where a glance is not enough."""


def is_whole(wire: Wire, messages: Sequence[Any], start: int = 0, *, set_like: bool = False) -> bool:
    """Tell whether each turn of `messages[start:]` has just its results, right behind it.

    >>> from suture.wires import get_wire
    >>> is_whole(get_wire("openai-chat"), [{"role": "tool", "tool_call_id": "a", "content": ""}])
    False
    """
    if set_like:
        return _is_whole_as_set(wire, messages, start)
    waiting: Sequence[Any] = ()
    next_place = -1
    begin, total = start, len(messages)
    while begin < total:
        if not waiting:
            seen = wire.skip(messages, begin)
            if seen > begin:
                begin = seen
                continue
        stop = min(begin + CHUNK, total)
        for index, calls, results in wire.scan(messages, begin, stop):
            if calls:
                if waiting or results:
                    return False
                waiting = calls
            elif index != next_place or not waiting:
                return False
            elif results == waiting:
                waiting = ()
            else:
                left = _without(waiting, results)
                if left is None or (left and wire.is_loose(messages[index], len(results))):
                    return False
                waiting = left
            next_place = index + 1
        begin = stop
    return not waiting


def _without(waiting: Sequence[Any], results: Sequence[Any]) -> list[Any] | None:
    """Return what still waits after `results`, last first; `None` where one of them was not waited for."""
    left = waiting if isinstance(waiting, list) else list(waiting[::-1])
    for key in results:
        if left and left[-1] == key:
            left.pop()
        elif key in left and key.__class__ is str:  # without an id, only the order can be trusted at a glance
            left.remove(key)
        else:
            return None
    return left


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
                if key not in waiting or (key.__class__ is not str and "" in key):
                    return False  # without an id, only a second look can tell whose it is
                waiting.remove(key)
    return not waiting
