"""`History`: the messages of a run as a value that can be extended without a copy.

Histories are views of one append-only log. Each shows its first `length` messages and never changes. Continuing the
longest one appends to the log; continuing a shorter one makes a new log.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import index as integer
from operator import is_
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar, cast, overload

from msgspec import Struct

from suture.errors import InputError
from suture.messages.message import M

T = TypeVar("T")


class Log(list[M]):
    """The append-only list of messages behind histories.

    `memo` is a cache for what other code knows about these messages, each under its own key. All histories on this log
    share it; a new log starts without it, and it is never stored. `whole` is the number of first messages that are
    known to be in order.
    """

    __slots__ = ("memo", "whole")

    def __init__(self, messages: Iterable[M] = ()) -> None:
        super().__init__(messages)
        self.memo: dict[Any, Any] = {}
        self.whole = 0

    def __reduce__(self) -> tuple[type["Log[M]"], tuple[list[M]]]:
        return Log, (list(self),)


class _Refused:
    """A method that lists have and this sequence has not."""

    # A `__getattr__` of the sequence would say the same, and slow down its every attribute.

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, sequence: Any, owner: "type[FixedSequence[Any]]") -> NoReturn:
        raise AttributeError(f"no {self.name} here: {owner.advice}", name=self.name, obj=sequence)


class FixedSequence(Sequence[M]):
    """A sequence that its reader cannot change; whoever tries is told what to do instead."""

    __slots__ = ()
    advice: ClassVar[str]
    """Why it does not change, and what to do instead."""

    if not TYPE_CHECKING:  # type checkers know that there are no such methods
        append, clear, extend, insert, pop, remove, reverse, sort = (_Refused() for _ in range(8))

        def __setitem__(self, *_: Any) -> None:
            raise TypeError(self.advice)

        __delitem__ = __setitem__


class History(FixedSequence[M]):
    """An immutable sequence of messages; `+` makes a longer one without copying the messages.

    It equals any list or tuple of the same messages. `log` is shared between histories: read it, if at all,
    only up to `length`. Any thread may continue any history.

    >>> first = History(["ask"])
    >>> second = first + ["answer"]
    >>> first == ["ask"], second == ["ask", "answer"]
    (True, True)
    >>> second
    <History of 2 messages>
    >>> second.append("thanks")
    Traceback (most recent call last):
        ...
    AttributeError: no append here: a History does not change; make a longer list, [*history, message]; \
in a hook, return replace(state, messages=[*state.messages, message])
    """

    __slots__ = ("length", "log")
    advice = (
        "a History does not change; make a longer list, [*history, message]; "
        "in a hook, return replace(state, messages=[*state.messages, message])"
    )

    def __init__(self, messages: Iterable[M] = ()) -> None:
        self.log: Log[M] = Log(_check_several(messages))
        self.length = len(self.log)

    @staticmethod
    def of(messages: Iterable[T]) -> "History[T]":
        """Return `messages` as a history; the same object if it is one.

        >>> History.of(["ask"])
        <History of 1 message>
        """
        return messages if isinstance(messages, History) else History(messages)

    def continue_with(self, messages: Iterable[M]) -> "History[M]":
        """Return a history with `messages` at the end; this one stays as it is.

        >>> len(History(["ask"]).continue_with(["answer", "thanks"]))
        3
        """
        kind, log, length = messages.__class__, self.log, self.length
        new: Any = messages if kind is list or kind is tuple else list(_check_several(messages))
        if len(new) == 1 and len(log) == length:  # a step's usual way
            log.append(new[0])
            if log[length] is new[0]:  # no other thread was faster
                return _make_view(log, length + 1)
        if len(log) == length:
            log.extend(new)
            if not all(map(is_, log[length:], new)):  # another thread was faster
                log = Log([*log[:length], *new])
        else:
            log = Log([*log[:length], *new])
        return _make_view(log, length + len(new))

    def follows(self, other: Sequence[M]) -> bool:
        """Return whether this history extends `other` or equals it: it has the same log, and is at least as long.

        >>> first = History(["ask"])
        >>> first.continue_with(["answer"]).follows(first), History(["ask"]).follows(first)
        (True, False)
        """
        return isinstance(other, History) and self.log is other.log and self.length >= other.length

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, index: int) -> M: ...
    @overload
    def __getitem__(self, index: slice) -> list[M]: ...
    def __getitem__(self, index: int | slice) -> M | list[M]:
        length = self.length
        if isinstance(index, slice):
            start, stop, step = index.indices(length)
            if step > 0:
                return self.log[start:stop:step]
            return [self.log[at] for at in range(start, stop, step)]
        place = integer(index)
        if place < 0:
            place += length
        if 0 <= place < length:
            return self.log[place]
        raise IndexError(f"no message {index} in a history of {length}")

    def __iter__(self) -> Iterator[M]:
        return islice(self.log, self.length)

    def __add__(self, other: Iterable[M]) -> "History[M]":
        return self.continue_with(other) if _is_sequence(other) else NotImplemented

    def __radd__(self, other: Iterable[M]) -> "History[M]":
        return History(other).continue_with(self) if _is_sequence(other) else NotImplemented

    def __eq__(self, other: object) -> bool:
        if isinstance(other, History):
            same = cast("History[Any]", other)
            return self.length == same.length and (self.log is same.log or self[:] == same[:])
        if isinstance(other, list | tuple):
            items = cast("Sequence[Any]", other)
            return self.length == len(items) and self[:] == list(items)
        return NotImplemented

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"<History of {self.length} message{'' if self.length == 1 else 's'}>"


class MessageList(list[M]):
    """The messages of a result: a list that is its user's own. While it begins as it came, it continues its history.

    >>> messages = MessageList(["ask", "answer"], History(["ask", "answer"]))
    >>> messages.append("thanks")
    >>> messages.take_history(), messages.take_history()
    (<History of 2 messages>, None)
    """

    __slots__ = ("_history",)

    def __init__(self, messages: Iterable[M], history: History[M] | None = None) -> None:
        super().__init__(messages)
        self._history = [] if history is None else [history]

    def take_history(self) -> History[M] | None:
        """Return the history that the list begins with, if it still does. Only once: two runs must not share a log."""
        try:
            history = self._history.pop()  # in one step, because threads may come at the same time
        except IndexError:
            return None
        return history if history.length and len(self) >= history.length and all(map(is_, self, history)) else None

    def __reduce__(self) -> tuple[type[list[M]], tuple[list[M]]]:
        return list, (list(self),)


_new: Any = object.__new__


def _make_view(log: Log[M], length: int) -> History[M]:
    made: History[M] = _new(History)
    made.log, made.length = log, length
    return made


def _is_sequence(thing: object) -> bool:
    return isinstance(thing, Sequence) and not isinstance(thing, str | bytes)


def _check_several(messages: Iterable[M]) -> Iterable[M]:
    """Return `messages`; raise `InputError` for a single message, or for a text."""
    if isinstance(messages, str | bytes | Mapping | Struct) or not isinstance(messages, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"expected a list of messages, found one {type(messages).__name__}")  # pyright: ignore[reportUnknownArgumentType]
    return messages
