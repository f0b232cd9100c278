"""Tokens: how many a message or a whole history has, counted or estimated.

`CharacterCounter` estimates and needs no package, `ExactCounter` uses a tokenizer, `UsageCounter` relies on what the
provider reported. `Tally` counts a growing history, each message once. Nothing here does I/O.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from operator import is_
from types import CoroutineType
from typing import Any, NamedTuple, Protocol, TypeGuard, runtime_checkable

from suture.errors import ConfigError, InputError
from suture.messages import History, TokenUsage, ToolInfo
from suture.wires import ChatWire, Wire, Words, argument_json, get_wire, recognise

__all__ = [
    "MEDIA_TOKENS",
    "CharacterCounter",
    "Counter",
    "ExactCounter",
    "Tally",
    "UsageCounter",
    "WholeCounter",
    "is_incremental",
]

MEDIA_TOKENS = 1_600
"""The tokens of an image, a sound, a film or a file: what providers charge for a full-size image.

Anthropic scales an image down until it takes up about 1,600 tokens; others charge less. A long film or document costs
more, which only the provider can tell (`UsageCounter`).
"""


@runtime_checkable
class Counter(Protocol):
    """Counts the tokens of one message: any object with this method.

    >>> class Letters:
    ...     def count(self, message):
    ...         return len(message["content"])
    >>> Tally("openai-chat", Letters()).total([{"role": "user", "content": "hello"}])
    5
    """

    def count(self, message: Any, /) -> int:
        """Return how many tokens `message` has."""
        ...


class WholeCounter(Protocol):
    """Counts the tokens of a whole history and the tools sent along: a function, plain or async.

    >>> def per_message(messages, tool_infos):
    ...     return 100 * len(messages)
    >>> is_incremental(per_message)
    False
    """

    def __call__(self, messages: Sequence[Any], tool_infos: Sequence[ToolInfo], /) -> int | Awaitable[int]:
        """Return how many tokens all of it has."""
        ...


class WordCounter(ABC):
    """A counter that counts the words of a message."""

    def count(self, message: Any, wire: Wire | str | None = None) -> int:
        """Return how many tokens `message` has; its wire is recognised if not given.

        >>> from suture.messages import ImagePart, Message, TextPart
        >>> photo = ImagePart(url="https://example.com/a.png")
        >>> CharacterCounter().count(Message.user([TextPart("Who is this?"), photo]))
        1604
        """
        candidates = [wire] if wire is not None else recognise([message])
        *others, last = [get_wire(each) if isinstance(each, str) else each for each in candidates]
        for candidate in others:
            with suppress(InputError):
                return self.count_words(candidate.words(message))
        return self.count_words(last.words(message))

    @abstractmethod
    def count_words(self, words: Words) -> int:
        """Return how many tokens a message with these words has."""

    @abstractmethod
    def count_text(self, text: str) -> int:
        """Return how many tokens `text` has."""


class CharacterCounter(WordCounter):
    """Estimates four characters per token, for role, text, reasoning, calls and results; media count a flat number.

    >>> CharacterCounter().count({"role": "user", "content": "What is the capital of France?"})
    9
    """

    def count_words(self, words: Words) -> int:
        """Return a quarter of the characters, plus one for each text, plus the tokens of the media.

        >>> CharacterCounter().count_words(Words(("user", "hello"), media=1))
        1602
        """
        texts, media = words
        return (sum(map(len, texts)) + len(texts)) // 4 + MEDIA_TOKENS * media

    def count_text(self, text: str) -> int:
        """Return the estimated tokens of `text`, rounded up.

        >>> CharacterCounter().count_text("hello")
        2
        """
        return (len(text) + 3) // 4

    def __repr__(self) -> str:
        return "CharacterCounter()"


_CHARACTERS = CharacterCounter()


class UsageCounter:
    """Uses the count that the provider reported with its last reply, and estimates only what came after it.

    A single message is always estimated: only `Tally` knows the report.

    >>> from suture.messages import Message, TokenUsage
    >>> history = [Message.user("hi"), Message.assistant("hello"), Message.user("x" * 400)]
    >>> tally = Tally("message", UsageCounter())
    >>> tally.total(history, usage=TokenUsage(prompt_tokens=900, completion_tokens=40))
    1041
    """

    def __init__(self, estimate: Counter = _CHARACTERS) -> None:
        if not is_incremental(estimate) or isinstance(estimate, UsageCounter):
            raise ConfigError(f"UsageCounter estimates with an object with count(message), not {_name_of(estimate)}")
        self.estimate: Counter = estimate

    def count(self, message: Any, wire: Wire | str | None = None) -> int:
        """Return the estimate for one message.

        >>> UsageCounter().count({"role": "user", "content": "x" * 400})
        101
        """
        return _with_wire(self.estimate, message, wire)

    def count_text(self, text: str) -> int:
        """Return the estimate for a text; four characters per token if the estimating counter only counts messages.

        >>> UsageCounter().count_text("hello")
        2
        """
        return getattr(self.estimate, "count_text", _CHARACTERS.count_text)(text)

    def __repr__(self) -> str:
        return f"UsageCounter({self.estimate!r})"


def is_incremental(counter: Any) -> TypeGuard[Counter]:
    """Return whether `counter` counts message by message; `False` for a function of the whole history.

    Raises `ConfigError` for anything else.

    >>> is_incremental(CharacterCounter()), is_incremental(lambda messages, tool_infos: 0)
    (True, False)
    """
    # Texts and lists have a method `count` too: this catches mistakes such as token_counter="o200k_base".
    if not isinstance(counter, type) and not isinstance(counter, Sequence):
        if callable(getattr(counter, "count", None)):
            return True
        if callable(counter):
            return False
    hint = "; make one: " + counter.__name__ + "()" if isinstance(counter, type) else ""
    raise ConfigError(
        "a token counter is an object with count(message), or a function of (messages, tool_infos), "
        f"not {_name_of(counter)}{hint}"
    )


def _with_wire(counter: Counter, message: Any, wire: Wire | str | None) -> int:
    """Return what `counter` gives for `message`; a `WordCounter` gets the wire, so that it need not recognise it."""
    if isinstance(counter, WordCounter) and type(counter).count is WordCounter.count:
        return counter.count(message, wire)
    return counter.count(message)


def _name_of(counter: Any) -> str:
    """Return the name of `counter` for an error: that of a function or class, or the type of an object."""
    own = getattr(counter, "__qualname__", None)
    return own if isinstance(own, str) else type(counter).__name__


_FRAME = 3
"""Tokens that a provider puts around each message."""

_PIECE = 100_000
"""How many characters are passed to the tokenizer at once, to bound the memory for token ids."""


class ExactCounter(WordCounter):
    """Counts with the tokenizer of a model family; the default is `o200k_base` (OpenAI's since GPT-4o).

    Needs the extra `tokens`. Text that spells a special token is counted as plain text. What no
    tokenizer knows is still estimated: three tokens around each message, and media.

    >>> counter = ExactCounter()
    >>> counter.count_text("hello world"), counter.count({"role": "user", "content": "hello world"})
    (2, 6)
    """

    def __init__(self, encoding: str = "o200k_base") -> None:
        from suture._extras import import_extra  # noqa: PLC0415 - only who counts exactly needs it

        splintr: Any = import_extra("splintr", "tokens")
        try:
            tokenizer: Any = splintr.Tokenizer.from_pretrained(encoding if isinstance(encoding, str) else "")  # pyright: ignore[reportUnnecessaryIsInstance]
        except ValueError as error:
            known = str(error).rpartition("Supported: ")[2]
            raise ConfigError(f"unknown encoding {encoding!r}; known: {known}") from None
        self.encoding = encoding
        self._encode: Any = tokenizer.encode_ordinary

    def count_words(self, words: Words) -> int:
        """Return the tokens of the texts, those around the message, and those of the media.

        >>> ExactCounter("cl100k_base").count_words(Words(("user", "hello world")))
        6
        """
        texts, media = words
        return sum(map(self.count_text, texts)) + _FRAME + MEDIA_TOKENS * media

    def count_text(self, text: str) -> int:
        """Return how many tokens `text` has.

        >>> ExactCounter().count_text("<|endoftext|>")
        7
        """
        return sum(map(self._tokens, _pieces(text)))

    def _tokens(self, text: str) -> int:
        try:
            return len(self._encode(text))
        except UnicodeEncodeError:  # a lone surrogate, which cannot be sent anyway
            return len(self._encode(text.encode(errors="replace").decode()))

    def __repr__(self) -> str:
        return f"ExactCounter({self.encoding!r})"


def _pieces(text: str) -> Iterator[str]:
    """Yield `text` in pieces, cut at white space if there is any: a token never spans the start of a word."""
    start = 0
    while start < len(text):
        end = start + _PIECE
        if end < len(text):
            middle = start + _PIECE // 2
            cut = max(text.rfind(" ", middle, end), text.rfind("\n", middle, end) + 1)
            end = cut if cut > middle else end
        yield text[start:end]
        start = end


class _Counted(NamedTuple):
    """A message that was counted. It is referenced here so that no other object gets its `id()`."""

    message: Any
    tokens: int
    is_reply: bool = False
    reported: int = 0
    """All input and output that the provider reported with it; 0 if it reported none."""


class Tally:
    """Counts one history after another, but each message only once: a counted message is known by its identity.

    Make one for each run, and do not share it. For a history that extends the previous one (`History.follows`), only
    the new messages are looked at. Messages that a history no longer holds are forgotten.

    >>> from suture.messages import History, Message
    >>> tally = Tally("message", CharacterCounter())
    >>> history = History([Message.user("x" * 400)])
    >>> tally.total(history), tally.total(history + [Message.user("y" * 40)])
    (101, 112)
    """

    def __init__(self, wire: Wire | str, counter: Counter) -> None:
        if not is_incremental(counter):
            raise ConfigError(
                f"{_name_of(counter)} counts whole histories, so there is nothing to tally; "
                "call it with (messages, tool_infos)"
            )
        self.wire: Wire = get_wire(wire) if isinstance(wire, str) else wire
        self.counter: Counter = counter
        self._by_report = isinstance(counter, UsageCounter)
        self._estimate = counter.estimate if isinstance(counter, UsageCounter) else counter
        self._known: dict[int, _Counted] = {}
        """The messages of the last history."""
        self._loose: dict[int, _Counted] = {}
        """Messages that were counted and may be in the next history."""
        self._tokens = self._reported = self._behind_report = 0
        """Tokens of all messages; those reported with the last reply that has a report; those of messages after it."""
        self._behind_reply: int | None = None
        """The estimate for the messages after the last reply; `None` before the first reply."""
        self._last: History[Any] | None = None
        self._tools: tuple[Any, ...] = ()
        self._instruction = ""
        self._tool_tokens = self._instruction_tokens = 0

    def total(
        self,
        history: Sequence[Any],
        tool_infos: Sequence[ToolInfo] = (),
        usage: TokenUsage | None = None,
        instruction: str = "",
    ) -> int:
        """Return how many tokens `history` has, together with the tools and the instruction sent along.

        With a `UsageCounter`, `usage` is what the provider reported with the last reply. It covers the tools and the
        messages up to that reply; those after it are estimated. Without `usage`, the last reply that carries a report
        is used; without any report, everything is estimated.

        >>> from suture.messages import Message, ToolInfo
        >>> Tally("message", CharacterCounter()).total([Message.user("hi")], [ToolInfo("search", "Search the docs.")])
        14
        """
        last = self._last
        if last is not None and isinstance(history, History) and history.follows(last):
            if history.length > last.length:
                self._add(history[last.length :])
        else:
            self._add(history, anew=True)
        self._last = history if isinstance(history, History) else None
        self._loose.clear()
        if self._by_report:
            told = _reported(usage)
            if told and self._behind_reply is not None:
                return told + self._behind_reply
            if self._reported:
                return self._reported + self._behind_report
        return self._tokens + self.of_rest(tool_infos, instruction)

    def of(self, message: Any) -> int:
        """Return how many tokens `message` has, even if it is not in a history yet.

        >>> Tally("openai-chat", CharacterCounter()).of({"role": "user", "content": "x" * 400})
        101
        """
        return self._counted(message).tokens

    def of_rest(self, tool_infos: Sequence[ToolInfo], instruction: str = "") -> int:
        """Return how many tokens are sent besides the messages; the same arguments as last time are not counted again.

        >>> Tally("message", CharacterCounter()).of_rest((), "Answer briefly.")
        3
        """
        if instruction is not self._instruction:
            self._instruction, self._instruction_tokens = instruction, _text_tokens(self._estimate, [instruction])
        held = self._tools
        if tool_infos is not held and not (len(tool_infos) == len(held) and all(map(is_, tool_infos, held))):
            self._tool_tokens = _text_tokens(self._estimate, [_tool_text(info) for info in tool_infos])
            self._tools = tuple(tool_infos)
        return self._tool_tokens + self._instruction_tokens

    def _add(self, messages: Iterable[Any], *, anew: bool = False) -> None:
        """Add messages, or (`anew`) replace them. If one of them cannot be counted, nothing changes."""
        counted = [self._counted(message) for message in messages]
        if anew:
            self._known, self._behind_reply = {}, None
            self._tokens = self._reported = self._behind_report = 0
        self._known.update((id(each.message), each) for each in counted)
        self._tokens += sum([each.tokens for each in counted])
        for each in counted if self._by_report else ():
            if each.is_reply:
                self._behind_reply = 0
            elif self._behind_reply is not None:
                self._behind_reply += each.tokens
            self._behind_report = 0 if each.reported else self._behind_report + each.tokens
            self._reported = each.reported or self._reported

    def _counted(self, message: Any) -> _Counted:
        found = self._known.get(id(message)) or self._loose.get(id(message))
        if found is not None:
            return found
        wire, counter = self.wire, self._estimate
        tokens = _checked(counter, lambda: _with_wire(counter, message, wire))
        is_reply = self._by_report and wire.made_by_model(message)
        usage = wire.usage(message) if is_reply and isinstance(wire, ChatWire) else None
        found = self._loose[id(message)] = _Counted(message, tokens, is_reply, _reported(usage))
        return found


def _reported(usage: TokenUsage | None) -> int:
    """Return all input and output that was reported; `prompt_tokens` includes what was cached."""
    if usage is None:
        return 0
    return usage.prompt_tokens + usage.completion_tokens or usage.total_tokens


def _tool_text(info: Any) -> str:
    """Return what a model sees of a tool, as compact JSON; `extra` is not sent."""
    if not isinstance(info, ToolInfo):
        return argument_json(info)
    said = {"name": info.name, "description": info.description, "parameters": info.parameters}
    return argument_json({name: value for name, value in said.items() if value})


def _text_tokens(counter: Any, texts: Sequence[str]) -> int:
    """Return the tokens of texts; four characters per token if the counter only counts messages."""
    if isinstance(counter, CharacterCounter) or not hasattr(counter, "count_text"):
        return sum(map(len, texts)) // 4
    return sum([_checked(counter, partial(counter.count_text, text)) for text in texts])


def _checked(counter: Any, count: Callable[[], Any]) -> int:
    """Return the result of `count`; refuse anything that is not a number of tokens."""
    try:
        tokens = count()
    except InputError:
        raise  # the message is at fault, and the error says how
    except Exception as error:
        raise ConfigError(f"the token counter {_name_of(counter)} failed: {type(error).__name__}: {error}") from error
    return check_count(counter, tokens)


def check_count(counter: Any, tokens: Any) -> int:
    """Return `tokens`, which `counter` gave; refuse anything that is not a number of tokens."""
    if type(tokens) is int and tokens >= 0:
        return tokens
    given = repr(tokens) if tokens is None or isinstance(tokens, int | float | str) else f"a {type(tokens).__name__}"
    if isinstance(tokens, CoroutineType):
        tokens.close()  # it will never be awaited
    raise ConfigError(f"the token counter {_name_of(counter)} gave {given}; expected an integer, 0 or more")
