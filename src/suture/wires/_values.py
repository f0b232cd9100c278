"""What wires tell of messages, and what is asked of them: calls, results, views and edits."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from suture.messages import FrozenMap, Part

__all__ = [
    "GLANCE",
    "NO_EXTRA",
    "Call",
    "CallEdit",
    "Key",
    "Piece",
    "Record",
    "Result",
    "ResultEdit",
    "View",
    "key_of",
]

Key = Any
"""What a call and its result have in common: the id; a pair where the id alone would not do."""

GLANCE = 4096
"""How many messages a wire looks at in one `skip`."""

Record = tuple[int, tuple[Key, ...], tuple[Key, ...]]
"""(index, keys of the calls, keys of the results) of a message that carries any."""

NO_EXTRA: Mapping[str, Any] = FrozenMap()
"""What is attached to something that nothing is attached to."""


class Call(NamedTuple):
    """One tool call as a message carries it; an absent id or name is the empty string.

    >>> Call("call_1", "search", '{"q": "x"}').name
    'search'
    """

    id: str
    name: str
    arguments: Any = None
    kind: str = ""
    alias: str = ""
    """Another id that a result may mean it by."""


class Result(NamedTuple):
    """One tool result as a message carries it.

    >>> Result("call_1", "", "42").content
    '42'
    """

    id: str
    name: str
    content: Any = None
    kind: str = ""
    marked: bool = False
    failed: bool = False
    extra: Mapping[str, Any] = NO_EXTRA
    """What is attached to it, on a wire with marks."""


class View(NamedTuple):
    """What the engines need to know of one message.

    `role` is one of system, user, assistant, tool. `signed`: it holds signed or encrypted content, so
    only ids may change. `empty`: it carries nothing a provider could use. `loose`: it carries something
    beside its results, so it cannot be taken apart without remainder.

    >>> View("user").calls
    ()
    """

    role: str
    calls: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()
    signed: bool = False
    empty: bool = False
    loose: bool = False


class CallEdit(NamedTuple):
    """What is to change in one call; `None` leaves a field as it is.

    >>> CallEdit(id="a").name is None
    True
    """

    id: str | None = None
    name: str | None = None
    arguments: Any = None


class ResultEdit(NamedTuple):
    """What is to change in one result; `None` leaves a field as it is.

    `parts` are all of its content (`Wire.result_parts` has the form), and win over `text`. `extra` is added to what is
    attached to it, on wires where something can be.

    >>> ResultEdit(text="(no output)").id is None
    True
    """

    id: str | None = None
    name: str | None = None
    text: str | None = None
    parts: Sequence[Part] | None = None
    extra: Mapping[str, Any] | None = None


class Piece(NamedTuple):
    """One result on its way to its call: real (`message`, `position`) or to be made (`call`, `text`).

    >>> Piece(call=Call("a", "f"), text="…").message is None
    True
    """

    message: Any = None
    position: int = 0
    call: Call | None = None
    text: str = ""
    cause: str = ""


def key_of(id: str, name: str) -> Key:  # noqa: A002 - the domain's word
    """Return what pairs a call with its result; without an id that is the name.

    >>> key_of("a", "f"), key_of("", "f")
    ('a', ('', 'f'))
    """
    return id or ("", name)
