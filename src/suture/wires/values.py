"""The values that wires return and take: calls, results, views, edits, and the demands of a glance."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import isfinite
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec import field as new

from suture.messages import FrozenMap, Part
from suture.messages.values import is_sendable

Key = Any
"""What links a call and its result: the id, or a pair if the id alone is not enough."""

CALL, RESULT, TEXT, THINKING, MEDIA, OTHER = "call", "result", "text", "thinking", "media", "other"
"""The kinds of blocks, on any wire."""

MARK = "_suture_placeholder"
"""The key in `extra` of a result that Suture made; its value is the cause."""

KIND = "suture.kind"
"""The key in `extra` of a call that is not a function call, and of its result; its value is the kind of call."""

ITEM = "item"
"""The key for the other fields of a message item of the model, on wires where such items are kept apart.

It is in the `extra` of the native message, so that a reply of one text stays just that text; for a second such
item, in the `extra` of its first block.
"""

_LARGE, _DEEP = 2**63, 40
"""The bounds of what a glance accepts: the largest integer, and the levels of nesting."""

NO_EXTRA: Mapping[str, Any] = FrozenMap()
"""The `extra` of something without any."""


class Call(NamedTuple):
    """One tool call of a message; an absent id or name is the empty string."""

    id: str
    name: str
    arguments: Any = None
    kind: str = ""
    alias: str = ""
    """Another id that a result may use for it."""


class Result(NamedTuple):
    """One tool result of a message."""

    id: str
    name: str
    content: Any = None
    kind: str = ""
    marked: bool = False
    failed: bool = False
    extra: Mapping[str, Any] = NO_EXTRA
    """The `extra` attached to it, on a wire with marks."""


class View(NamedTuple):
    """What the engines need to know of one message.

    `role` is one of system, user, assistant, tool. `signed`: it holds signed or encrypted content, so
    only ids may change. `empty`: it has nothing that a provider could use. `loose`: it has other content
    besides its results, which must be kept when they move. `blank`: the provider takes it, but it says
    nothing.
    """

    role: str
    calls: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()
    signed: bool = False
    empty: bool = False
    loose: bool = False
    blank: bool = False

    @property
    def silent(self) -> bool:
        """Whether neither user nor model says anything in it."""
        return self.empty or self.blank


class CallEdit(Struct, frozen=True):
    """A change to one call; `None` leaves a field as it is."""

    id: str | None = None
    name: str | None = None
    arguments: Any = None


class ResultEdit(Struct, frozen=True):
    """A change to one result; `None` leaves a field as it is.

    `parts` are its whole new content (in the form of `Wire.result_parts`) and take precedence over `text`. `extra` is
    added to its `extra`, on wires with marks.
    """

    id: str | None = None
    name: str | None = None
    text: str | None = None
    parts: Sequence[Part] | None = None
    extra: Mapping[str, Any] | None = None


class Piece(Struct, frozen=True):
    """One result to be placed after its call: a real one (`message`, `position`) or a new one (`call`, `text`)."""

    message: Any = None
    position: int = 0
    call: Call | None = None
    text: str = ""
    cause: str = ""


class Demands(Struct, eq=False, kw_only=True):
    """What a glance must know about a profile: the ids and names that it accepts, and its other demands.

    >>> Demands().accepts("call_1", "search")
    True
    """

    problems: frozenset[str] = frozenset()
    match_id: Callable[[str], Any] = bool
    limit: int = sys.maxsize
    used: dict[str, None] | None = None
    """The ids so far, if each may be used only once in a request; a glance adds those that it accepts."""
    accepts_name: Callable[[str], bool] = bool
    field: str = ""
    adjacent: bool = False
    """Whether the results of a turn must come before the next turn, even on a wire that does not demand it."""
    items: dict[str, None] = new(default_factory=dict[str, None])
    """The ids of the items so far."""
    names: set[Any] = new(default_factory=set[Any])
    """The names that are known to be accepted."""
    last: str = ""
    """The role of the previous message; `results` if it holds some."""
    stop: int | None = None
    """The index at which a glance ends."""
    identifiers: bool = False
    """Whether any Python identifier is accepted as an id."""

    def __post_init__(self) -> None:
        self.identifiers = bool(self.match_id("toolu_01") and self.match_id("_aZ9"))

    def accepts(self, call_id: Any, name: Any) -> bool:
        """Return whether a call may have this id and name, as far as one call can tell."""
        if call_id.__class__ is not str or (name not in self.names and not self.learns(name)):
            return False
        if len(call_id) > self.limit or (self.used is not None and call_id in self.used):
            return False
        if self.identifiers and call_id.isidentifier() and call_id.isascii():
            return True  # by far the most common case
        return bool(call_id and self.match_id(call_id)) and (call_id.isascii() or is_sendable(call_id))

    def learns(self, name: Any) -> bool:
        """Return whether a call may have this name, and remember it if so."""
        if name.__class__ is not str or not name or not is_sendable(name):
            return False
        if not self.accepts_name(name):
            return False
        self.names.add(name)
        return True

    def use(self, call_ids: Iterable[str]) -> None:
        """Note the ids of a group that was accepted."""
        if self.used is not None:
            self.used.update(dict.fromkeys(call_ids))


def iterate(messages: Sequence[Any], start: int, stop: int | None = None) -> Iterator[Any]:
    """Return an iterator over `messages[start:stop]` that copies nothing of a list."""
    if not isinstance(messages, list):
        return iter(messages[start:stop])
    rest: Any = iter(messages)
    rest.__setstate__(start)
    return rest if stop is None or stop >= len(messages) else islice(rest, stop - start)


def is_plain_text(text: Any) -> bool:
    """Return whether `text` is a text that can be sent."""
    return text.__class__ is str and (text.isascii() or is_sendable(text))


def says_something(text: Any) -> bool:
    """Return whether `text` is a text that is not blank and can be sent."""
    return text.__class__ is str and text.strip() != "" and (text.isascii() or is_sendable(text))


def is_plain_object(value: Any) -> bool:
    """Return whether `value` is an object that JSON can carry, as far as a glance can tell."""
    if value.__class__ is not dict:
        return False
    for key in value:
        if key.__class__ is not str or not key.isascii():
            return False
        item = value[key]
        kind = item.__class__
        if kind is str:
            if not item.isascii() and not is_sendable(item):
                return False
        elif kind is int:
            if not -_LARGE < item < _LARGE:
                return False
        elif not _is_plain(item, 0):
            return False
    return True


def _is_plain(value: Any, depth: int) -> bool:
    kind = value.__class__
    if kind is int:
        return -_LARGE < value < _LARGE
    if value is None or kind is bool:
        return True
    if kind is str:
        return value.isascii() or is_sendable(value)
    if kind is float:
        return isfinite(value)
    if depth == _DEEP:
        return False
    if kind is dict:
        keys = all(key.__class__ is str and key.isascii() for key in value)
        return keys and all(_is_plain(item, depth + 1) for item in value.values())
    return kind is list and all(_is_plain(item, depth + 1) for item in value)


def are_texts(blocks: Sequence[Any]) -> bool:
    """Return whether `blocks` all are one-key blocks of text that is not blank and can be sent; `False` for none."""
    for block in blocks:
        text = block["text"]
        if text.__class__ is not str or not text.strip() or not (text.isascii() or is_sendable(text)):
            return False
        if len(block) != 1 or block.__class__ is not dict:
            return False
    return bool(blocks)


class Turns(NamedTuple):
    """How a glance reads messages whose roles alternate: the names of roles and fields, and the tests of blocks."""

    model: str
    user: str
    role: str
    blocks: str
    read_calls: Callable[[list[Any], Demands], list[Any] | None]
    """Returns the calls among the blocks of a model's message; `None` if it needs a second look."""
    are_answered: Callable[[list[Any], Any, Demands], bool]
    """Returns whether a message holds the results of these calls, in order, and nothing that needs a second look."""
    are_texts: Callable[[list[Any]], bool] = are_texts
    """Returns whether the blocks of a user's message are texts that can be sent."""
    lone: bool = False
    """Whether a plain text may replace its block, and user messages may follow each other."""
    foreign: frozenset[str] = frozenset()
    """Fields that only messages of other wires have."""


def glance_at_turns(messages: Sequence[Any], start: int, demands: Demands, turns: Turns) -> int:
    """Return how far roles alternate, and every turn has its results in the next message, at a glance."""
    place, (model, user, role, field, read_calls, are_answered, say, lone, foreign) = start, turns
    is_open = not demands.last and "model-first" not in demands.problems  # it does not matter who spoke before
    rest = iterate(messages, start, demands.stop)
    try:
        first = messages[start]
        goes_on = is_open and (first if first.__class__ is dict else first.__dict__)[role] == model
        expected = model if goes_on or demands.last in {"user", "results"} else user
        for message in rest:
            fields = message if message.__class__ is dict else message.__dict__
            speaker, blocks = fields[role], fields[field]
            if speaker != expected and not (lone and speaker == user):
                break
            if foreign and len(fields) != 2 and not foreign.isdisjoint(fields):
                break
            is_text = lone and blocks.__class__ is str
            if not (says_something(blocks) if is_text else blocks.__class__ is list):
                break
            if speaker == user:
                if not is_text and not say(blocks):
                    break
                expected = model
            elif is_text:
                expected = user
            else:
                calls = read_calls(blocks, demands)
                if calls is None or (calls and not are_answered(calls, next(rest, None), demands)):
                    break
                if calls:
                    place += 1
                else:
                    expected = user
            place += 1
    except (KeyError, TypeError, AttributeError):  # a field has an unexpected type: that needs a second look
        pass
    return place
