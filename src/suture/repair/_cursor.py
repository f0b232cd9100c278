"""Following a history as it grows: what was found in order is not looked at again."""

from typing import Any

from suture.messages import History
from suture.pairing import is_whole
from suture.wires import Wire

__all__ = ["is_in_order", "take_as_in_order"]


def is_in_order(wire: Wire, history: History[Any]) -> bool:
    """Tell whether each turn has just its results, right behind it; only what is new is looked at.

    How far it was found in order is kept with the history's log, so everybody who asks profits. Where results may
    stand anywhere (a set-like wire), order is for each profile to judge, and the answer is no.

    >>> from suture.messages import Message
    >>> from suture.wires import get_wire
    >>> history = History([Message.user("hi")])
    >>> is_in_order(get_wire("message"), history), history.log.whole
    (True, 1)
    """
    log, length = history.log, history.length
    start = log.whole
    if wire.set_like:
        return False
    if start == length:
        return True
    if start > length:
        start = 0
    if not is_whole(wire, log if len(log) == length else history, start):
        return False
    log.whole = max(log.whole, length)
    return True


def take_as_in_order(history: History[Any]) -> None:
    """Take it that `history` is in order, whatever a glance would say.

    >>> history = History(["…"])
    >>> take_as_in_order(history)
    >>> history.log.whole
    1
    """
    history.log.whole = max(history.log.whole, history.length)
