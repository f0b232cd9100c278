"""`Tally`: how many tokens a history has, as it grows. Each message is counted once."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import is_
from types import CoroutineType
from typing import Any, NamedTuple

from suture.errors import ConfigError, InputError
from suture.messages import History, TokenUsage, ToolInfo
from suture.tokens._counters import CharacterCounter, Counter, UsageCounter, is_incremental, name_of, with_wire
from suture.wires import ChatWire, Wire, argument_json, get_wire

__all__ = ["Tally"]


class _Counted(NamedTuple):
    """A message that was counted. It is held, so that its identity stays its own."""

    message: Any
    tokens: int
    is_reply: bool = False
    reported: int = 0
    """What the provider reported with it, all input and output; 0 if it did not."""


class _Sum(NamedTuple):
    """What a history adds up to."""

    tokens: int = 0
    behind_reply: int | None = None
    """The estimate of what stands behind the last reply; `None` before the first."""
    reported: int = 0
    """What was reported with the last reply that carries a report."""
    behind_report: int = 0
    """The estimate of what stands behind that one."""

    def plus(self, each: _Counted) -> "_Sum":
        """Return the sum with one message more."""
        tokens, behind, reported, behind_report = self
        if each.is_reply:
            behind = 0
        elif behind is not None:
            behind += each.tokens
        if each.reported:
            return _Sum(tokens + each.tokens, behind, each.reported, 0)
        return _Sum(tokens + each.tokens, behind, reported, behind_report + each.tokens)


class Tally:
    """Counts one history after another, each message once: what was counted is known by its identity.

    Make one for each run, and do not share it. A history that grew out of the one before (`History.follows`) costs no
    more than what is new in it, whatever its length. What a history no longer holds is forgotten.

    >>> from suture.messages import History, Message
    >>> tally = Tally("message", CharacterCounter())
    >>> history = History([Message.user("x" * 400)])
    >>> tally.total(history), tally.total(history.append(Message.user("y" * 40)))
    (101, 112)
    """

    def __init__(self, wire: Wire | str, counter: Counter) -> None:
        if not is_incremental(counter):
            raise ConfigError(
                f"{name_of(counter)} counts whole histories, so there is nothing to tally; "
                "call it with (messages, tool_infos)"
            )
        self.wire: Wire = get_wire(wire) if isinstance(wire, str) else wire
        self.counter: Counter = counter
        self._by_report = isinstance(counter, UsageCounter)
        self._estimate = counter.estimate if isinstance(counter, UsageCounter) else counter
        self._known: dict[int, _Counted] = {}
        """The messages of the last history."""
        self._loose: dict[int, _Counted] = {}
        """Messages that were counted and may stand in the next history."""
        self._sum = _Sum()
        self._last: History[Any] | None = None
        self._tools: tuple[Any, ...] = ()
        self._tool_tokens = 0

    def total(
        self, history: Sequence[Any], tool_infos: Sequence[ToolInfo] = (), usage: TokenUsage | None = None
    ) -> int:
        """Return how many tokens `history` has, together with the tools sent along.

        With a `UsageCounter`, `usage` is what the provider reported with the last reply. It covers the tools and all up
        to that reply; what stands behind is estimated. Without it, the last reply that carries a report is used, and
        without any, all is estimated.

        >>> from suture.messages import Message, ToolInfo
        >>> Tally("message", CharacterCounter()).total([Message.user("hi")], [ToolInfo("search", "Search the docs.")])
        14
        """
        last = self._last
        if last is not None and isinstance(history, History) and history.follows(last):
            if history.length > last.length:
                self._grow(history[last.length :])
        else:
            self._begin(history)
        self._last = history if isinstance(history, History) else None
        self._loose.clear()
        found = self._sum
        if self._by_report:
            told = _reported(usage)
            if told and found.behind_reply is not None:
                return told + found.behind_reply
            if found.reported:
                return found.reported + found.behind_report
        return found.tokens + self._of_tools(tool_infos)

    def of(self, message: Any) -> int:
        """Return how many tokens `message` has, also if it is in no history yet.

        >>> Tally("openai-chat", CharacterCounter()).of({"role": "user", "content": "x" * 400})
        101
        """
        return self._counted(message).tokens

    def _grow(self, new: Iterable[Any]) -> None:
        """Add messages. Nothing has changed if one of them cannot be counted."""
        counted = [self._counted(message) for message in new]
        self._known.update((id(each.message), each) for each in counted)
        self._sum = self._added(self._sum, counted)

    def _begin(self, history: Iterable[Any]) -> None:
        """Take another history; what was counted before and is in it is not counted again."""
        counted = [self._counted(message) for message in history]
        self._known = {id(each.message): each for each in counted}
        self._sum = self._added(_Sum(), counted)

    def _added(self, found: _Sum, counted: Sequence[_Counted]) -> _Sum:
        if not self._by_report:
            return _Sum(found.tokens + sum([each.tokens for each in counted]))
        for each in counted:
            found = found.plus(each)
        return found

    def _counted(self, message: Any) -> _Counted:
        found = self._known.get(id(message)) or self._loose.get(id(message))
        if found is not None:
            return found
        counted = self._loose[id(message)] = self._count(message)
        return counted

    def _count(self, message: Any) -> _Counted:
        wire, counter = self.wire, self._estimate
        tokens = _checked(counter, lambda: with_wire(counter, message, wire))
        if not self._by_report:
            return _Counted(message, tokens)
        if not isinstance(wire, ChatWire):
            return _Counted(message, tokens, wire.made_by_model(message))
        is_reply = wire.is_reply(message)
        return _Counted(message, tokens, is_reply, _reported(wire.usage(message)) if is_reply else 0)

    def _of_tools(self, tool_infos: Sequence[ToolInfo]) -> int:
        held = self._tools
        if tool_infos is not held and not (len(tool_infos) == len(held) and all(map(is_, tool_infos, held))):
            self._tool_tokens = _text_tokens(self._estimate, [_tool_text(info) for info in tool_infos])
            self._tools = tuple(tool_infos)
        return self._tool_tokens


def _reported(usage: TokenUsage | None) -> int:
    """Return all input and output that was reported; `prompt_tokens` has what was cached in it."""
    if usage is None:
        return 0
    return usage.prompt_tokens + usage.completion_tokens or usage.total_tokens


def _tool_text(info: Any) -> str:
    """Return what a model is told of a tool, as compact JSON; what else is attached to it is not sent."""
    if not isinstance(info, ToolInfo):
        return argument_json(info)
    said = {"name": info.name, "description": info.description, "parameters": info.parameters}
    return argument_json({name: value for name, value in said.items() if value})


def _text_tokens(counter: Any, texts: Sequence[str]) -> int:
    """Return what texts count; four characters a token, if the counter knows only messages."""
    if isinstance(counter, CharacterCounter) or not hasattr(counter, "count_text"):
        return sum(map(len, texts)) // 4
    return sum([_checked(counter, partial(counter.count_text, text)) for text in texts])


def _checked(counter: Any, count: Callable[[], Any]) -> int:
    """Return what `count` gives; refuse what is no number of tokens."""
    try:
        tokens = count()
    except InputError:
        raise  # it is the message that is wrong, and this says how
    except Exception as error:
        raise ConfigError(f"the token counter {name_of(counter)} failed: {type(error).__name__}: {error}") from error
    if type(tokens) is int and tokens >= 0:
        return tokens
    given = repr(tokens) if tokens is None or isinstance(tokens, int | float | str) else f"a {type(tokens).__name__}"
    if isinstance(tokens, CoroutineType):
        tokens.close()  # nobody will await it
    raise ConfigError(f"the token counter {name_of(counter)} gave {given}; a number of tokens is an integer from 0 on")
