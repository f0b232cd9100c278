"""What wires say of messages, and what is asked of them: calls, results, views and edits."""

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
"""What a call and its result have in common: the id; a pair where the id alone would not do."""

CALL, RESULT, TEXT, THINKING, MEDIA, OTHER = "call", "result", "text", "thinking", "media", "other"
"""What a block of a message can be, on any wire."""

MARK = "_suture_placeholder"
"""The key in `extra` of a result that Suture made; its value is the cause."""

KIND = "suture.kind"
"""The key in `extra` of a call that is no function's, and of its result; its value is the kind of call."""

ITEM = "item"
"""What an item of the model's that is a message has beside its content, where such items are kept apart.

It is kept in the `extra` of the native message, so that a reply that is one text is nothing else; of a second such
item, in that of its first block.
"""

_LARGE, _DEEP = 2**63, 40
"""What a glance takes for granted: integers below, and levels of nesting."""

NO_EXTRA: Mapping[str, Any] = FrozenMap()
"""What is attached to something that nothing is attached to."""


class Call(NamedTuple):
    """One tool call as a message carries it; an absent id or name is the empty string."""

    id: str
    name: str
    arguments: Any = None
    kind: str = ""
    alias: str = ""
    """Another id that a result may mean it by."""


class Result(NamedTuple):
    """One tool result as a message carries it."""

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
    beside its results, so it cannot be taken apart without remainder. `blank`: the provider takes it, but it says
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
        """Whether nobody speaks in it."""
        return self.empty or self.blank


class CallEdit(Struct, frozen=True):
    """What is to change in one call; `None` leaves a field as it is."""

    id: str | None = None
    name: str | None = None
    arguments: Any = None


class ResultEdit(Struct, frozen=True):
    """What is to change in one result; `None` leaves a field as it is.

    `parts` are all of its content (`Wire.result_parts` has the form), and win over `text`. `extra` is added to what is
    attached to it, on wires where something can be.
    """

    id: str | None = None
    name: str | None = None
    text: str | None = None
    parts: Sequence[Part] | None = None
    extra: Mapping[str, Any] | None = None


class Piece(Struct, frozen=True):
    """One result on its way to its call: real (`message`, `position`) or to be made (`call`, `text`)."""

    message: Any = None
    position: int = 0
    call: Call | None = None
    text: str = ""
    cause: str = ""


class Demands(Struct, eq=False, kw_only=True):
    """What a glance must know of a profile: what ids and names it takes, and what else it asks for.

    >>> Demands().accepts("call_1", "search")
    True
    """

    problems: frozenset[str] = frozenset()
    match_id: Callable[[str], Any] = bool
    limit: int = sys.maxsize
    used: dict[str, None] | None = None
    """The ids that have gone by, where an id is used once in a request; a glance adds those that it accepts."""
    accepts_name: Callable[[str], bool] = bool
    field: str = ""
    adjacent: bool = False
    """Whether the results of a turn come before the next turn, also on a wire that does not ask for it."""
    items: dict[str, None] = new(default_factory=dict[str, None])
    """The ids of items that have gone by."""
    names: set[Any] = new(default_factory=set[Any])
    """The names that were found to be accepted."""
    last: str = ""
    """The role of the message before, `results` where it holds some."""
    stop: int | None = None
    """Where a glance ends."""
    identifiers: bool = False
    """Whether any identifier may be an id."""

    def __post_init__(self) -> None:
        self.identifiers = bool(self.match_id("toolu_01") and self.match_id("_aZ9"))

    def accepts(self, call_id: Any, name: Any) -> bool:
        """Return whether a call may go by this id and name, as far as one call can tell."""
        if call_id.__class__ is not str or (name not in self.names and not self.learns(name)):
            return False
        if len(call_id) > self.limit or (self.used is not None and call_id in self.used):
            return False
        if self.identifiers and call_id.isidentifier() and call_id.isascii():
            return True  # by far the usual case
        return bool(call_id and self.match_id(call_id)) and (call_id.isascii() or is_sendable(call_id))

    def learns(self, name: Any) -> bool:
        """Return whether a call may go by a name that was not met before."""
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
    """Return whether blocks of one key are texts that say something and can be sent; none are not."""
    for block in blocks:
        text = block["text"]
        if text.__class__ is not str or not text.strip() or not (text.isascii() or is_sendable(text)):
            return False
        if len(block) != 1 or block.__class__ is not dict:
            return False
    return bool(blocks)


class Turns(NamedTuple):
    """How a glance reads messages whose roles alternate: what roles and fields are called, and what blocks say."""

    model: str
    user: str
    role: str
    blocks: str
    read_calls: Callable[[list[Any], Demands], list[Any] | None]
    """The calls among the blocks of a message of the model's; `None` if it needs a second look."""
    are_answered: Callable[[list[Any], Any, Demands], bool]
    """Whether a message holds the results of these calls, in order, and nothing that needs a second look."""
    are_texts: Callable[[list[Any]], bool] = are_texts
    """Whether the blocks of a message of the user's are texts that can be sent."""
    lone: bool = False
    """Whether a text may stand for its block, and messages of the user's beside each other."""
    foreign: frozenset[str] = frozenset()
    """The fields that only messages of other wires have."""


def glance_at_turns(messages: Sequence[Any], start: int, demands: Demands, turns: Turns) -> int:
    """Return how far roles alternate, and every turn has its results in the next message, at a glance."""
    place, (model, user, role, field, read_calls, are_answered, say, lone, foreign) = start, turns
    is_open = not demands.last and "model-first" not in demands.problems  # nobody asks who spoke before
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
    except (KeyError, TypeError, AttributeError):  # a field is not what it should be: that needs a second look
        pass
    return place
