"""The values that go into wires and come out of them: calls, results, views and edits."""

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
"""What a call and its result share: the id, or a pair if the id alone is not enough."""

CALL, RESULT, TEXT, THINKING, MEDIA, OTHER = "call", "result", "text", "thinking", "media", "other"
"""The kinds of blocks, on any wire."""

MARK = "_suture_placeholder"
"""The key in `extra` of a result that Suture made; its value is the cause."""

KIND = "suture.kind"
"""The key in `extra` of a call that is not of a function, and of its result; its value is the kind of call."""

ITEM = "item"
"""The key for the other fields of a message item, on wires where one reply may have several such items.

They are kept in the `extra` of the native message, so that the block of a single text has none; those of a further
item, in the `extra` of its first block.
"""

ASIDE = "aside"
"""The key in the `extension` of a text that a model said beside its answer, such as the commentary of Responses."""

_LARGE, _DEEP = 2**63, 40
"""The limits of what a glance accepts: integers are smaller, and nesting is less deep."""

NO_EXTRA: Mapping[str, Any] = FrozenMap()
"""The extra data of a message or result that has none."""


class Call(NamedTuple):
    """One tool call in a message; a missing id or name is an empty text."""

    id: str
    name: str
    arguments: Any = None
    kind: str = ""
    alias: str = ""
    """Another id by which a result may refer to it."""


class Result(NamedTuple):
    """One tool result in a message."""

    id: str
    name: str
    content: Any = None
    kind: str = ""
    marked: bool = False
    failed: bool = False
    extra: Mapping[str, Any] = NO_EXTRA
    """Its extra data, on a wire with marks."""


class View(NamedTuple):
    """What pairing and fit need to know about one message.

    `role` is system, user, assistant or tool. `signed`: it holds signed or encrypted content, so only ids may change.
    `empty`: it holds nothing that a provider could use. `loose`: it holds something beside its results, which remains
    if these are taken out. `blank`: the provider accepts it, but it has no words.
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
        """Whether it says nothing."""
        return self.empty or self.blank


class CallEdit(Struct, frozen=True):
    """What is to change in one call; `None` leaves a field as it is."""

    id: str | None = None
    name: str | None = None
    arguments: Any = None


class ResultEdit(Struct, frozen=True):
    """What is to change in one result; `None` leaves a field as it is.

    `parts` replace all of its content (in the form of `Wire.result_parts`), and win over `text`. `extra` is added to
    its extra data, on wires with marks.
    """

    id: str | None = None
    name: str | None = None
    text: str | None = None
    parts: Sequence[Part] | None = None
    extra: Mapping[str, Any] | None = None


class Piece(Struct, frozen=True):
    """One result to be put after its call: a real one (`message`, `position`) or a new one (`call`, `text`)."""

    message: Any = None
    position: int = 0
    call: Call | None = None
    text: str = ""
    cause: str = ""


class Demands(Struct, eq=False, kw_only=True):
    """What a glance must know of a profile: which ids and names it accepts, and what else it demands.

    >>> Demands().accepts("call_1", "search")
    True
    """

    problems: frozenset[str] = frozenset()
    match_id: Callable[[str], Any] = bool
    limit: int = sys.maxsize
    used: dict[str, None] | None = None
    """The ids so far, if an id may be used only once in a request; a glance adds those that it accepts."""
    accepts_name: Callable[[str], bool] = bool
    field: str = ""
    adjacent: bool = False
    """Whether the results of a turn must come before the next turn, even on a wire that does not demand it."""
    items: dict[str, None] = new(default_factory=dict[str, None])
    """The ids of items so far."""
    names: set[Any] = new(default_factory=set[Any])
    """The names that are known to be accepted."""
    last: str = ""
    """The role of the message before, or `results` if it holds some."""
    stop: int | None = None
    """The index at which a glance ends."""
    identifiers: bool = False
    """Whether every ASCII identifier is accepted as an id."""

    def __post_init__(self) -> None:
        self.identifiers = bool(self.match_id("toolu_01") and self.match_id("_aZ9"))

    def accepts(self, call_id: Any, name: Any) -> bool:
        """Return whether a call may have this id and name, as far as one call can show."""
        if call_id.__class__ is not str or (name not in self.names and not self.learns(name)):
            return False
        if len(call_id) > self.limit or (self.used is not None and call_id in self.used):
            return False
        if self.identifiers and call_id.isidentifier() and call_id.isascii():
            return True  # by far the usual case
        return bool(call_id and self.match_id(call_id)) and (call_id.isascii() or is_sendable(call_id))

    def learns(self, name: Any) -> bool:
        """Return whether a call may have a new name; remember it if so."""
        if name.__class__ is not str or not name or not is_sendable(name):
            return False
        if not self.accepts_name(name):
            return False
        self.names.add(name)
        return True

    def use(self, call_ids: Iterable[str]) -> None:
        """Remember the ids of a group that was accepted."""
        if self.used is not None:
            self.used.update(dict.fromkeys(call_ids))


def iterate(messages: Sequence[Any], start: int, stop: int | None = None) -> Iterator[Any]:
    """Return an iterator over `messages[start:stop]` that does not copy a list."""
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
    """Return whether `value` is an object that JSON can hold, as far as a glance can tell."""
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
    """Return whether all blocks have only a text, which is not blank and can be sent; `False` for no blocks."""
    for block in blocks:
        text = block["text"]
        if text.__class__ is not str or not text.strip() or not (text.isascii() or is_sendable(text)):
            return False
        if len(block) != 1 or block.__class__ is not dict:
            return False
    return bool(blocks)


class Turns(NamedTuple):
    """How a glance reads messages whose roles alternate: the names of roles and fields, and readers of blocks."""

    model: str
    user: str
    role: str
    blocks: str
    read_calls: Callable[[list[Any], Demands], list[Any] | None]
    """Returns the calls among the blocks of a message of the model; `None` if it needs a second look."""
    are_answered: Callable[[list[Any], Any, Demands], bool]
    """Returns whether a message holds the results of these calls, in order, and needs no second look."""
    are_texts: Callable[[list[Any]], bool] = are_texts
    """Returns whether the blocks of a user message are texts that can be sent."""
    lone: bool = False
    """Whether content may be a plain text, and user messages may be neighbours."""
    foreign: frozenset[str] = frozenset()
    """The fields that only messages of other wires have."""


def glance_at_turns(messages: Sequence[Any], start: int, demands: Demands, turns: Turns) -> int:
    """Return the index up to which roles alternate and each turn has its results in the next message, at a glance."""
    place, (model, user, role, field, read_calls, are_answered, say, lone, foreign) = start, turns
    is_open = not demands.last and "model-first" not in demands.problems  # any role may come first
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
    except (KeyError, TypeError, AttributeError):  # a field is not as expected: that needs a second look
        pass
    return place
