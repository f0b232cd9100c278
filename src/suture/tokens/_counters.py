"""Counters: how many tokens one message takes up; and the estimate that needs nothing but the message."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Sequence
from typing import Any, Protocol, TypeGuard, runtime_checkable

from suture.errors import ConfigError, InputError
from suture.messages import ToolInfo
from suture.wires import Wire, Words, get_wire, recognise

__all__ = [
    "MEDIA_TOKENS",
    "CharacterCounter",
    "Counter",
    "UsageCounter",
    "WholeCounter",
    "WordCounter",
    "is_incremental",
    "name_of",
    "with_wire",
    "words_of",
]

MEDIA_TOKENS = 1_600
"""What an image, a sound, a film or a file counts: what providers charge for a full-size image.

Anthropic scales an image down until it takes up about 1,600 tokens; others charge less. A long film or document costs
more, which only the provider can tell (`UsageCounter`).
"""


@runtime_checkable
class Counter(Protocol):
    """Counts the tokens of one message. Any object with this method will do.

    >>> from suture.tokens import Tally
    >>> class Letters:
    ...     def count(self, message):
    ...         return len(message["content"])
    >>> Tally("openai-chat", Letters()).total([{"role": "user", "content": "hello"}])
    5
    """

    def count(self, message: Any, /) -> int:
        """Return how many tokens `message` takes up."""
        ...


class WholeCounter(Protocol):
    """Counts the tokens of a whole history and the tools sent along: a function, plain or async.

    >>> def per_message(messages, tool_infos):
    ...     return 100 * len(messages)
    >>> is_incremental(per_message)
    False
    """

    def __call__(self, messages: Sequence[Any], tool_infos: Sequence[ToolInfo], /) -> int | Awaitable[int]:
        """Return how many tokens all of it takes up."""
        ...


class WordCounter(ABC):
    """A counter that goes by the words of a message."""

    def count(self, message: Any, wire: Wire | str | None = None) -> int:
        """Return how many tokens `message` takes up; its wire is recognised if not given.

        >>> from suture.messages import ImagePart, Message, TextPart
        >>> photo = ImagePart(url="https://example.com/a.png")
        >>> CharacterCounter().count(Message.user([TextPart("Who is this?"), photo]))
        1604
        """
        return self.count_words(words_of(message, wire))

    @abstractmethod
    def count_words(self, words: Words) -> int:
        """Return how many tokens a message with these words takes up."""

    @abstractmethod
    def count_text(self, text: str) -> int:
        """Return how many tokens `text` takes up."""


class CharacterCounter(WordCounter):
    """Estimates four characters a token: of the role, what is said and thought, calls and results; media are flat.

    >>> CharacterCounter().count({"role": "user", "content": "What is the capital of France?"})
    9
    """

    def count_words(self, words: Words) -> int:
        """Return a quarter of the characters, one more for each text, and what media count.

        >>> CharacterCounter().count_words(Words(("user", "hello"), media=1))
        1602
        """
        texts, media = words
        return (sum(map(len, texts)) + len(texts)) // 4 + MEDIA_TOKENS * media

    def count_text(self, text: str) -> int:
        """Return how many tokens `text` is likely to take up, rounded up.

        >>> CharacterCounter().count_text("hello")
        2
        """
        return (len(text) + 3) // 4

    def __repr__(self) -> str:
        return "CharacterCounter()"


_CHARACTERS = CharacterCounter()


class UsageCounter:
    """Goes by what the provider reported with its last reply, and estimates only what came after it.

    A single message can only be estimated: it is `Tally` that knows the report.

    >>> from suture.messages import Message, TokenUsage
    >>> from suture.tokens import Tally
    >>> history = [Message.user("hi"), Message.assistant("hello"), Message.user("x" * 400)]
    >>> tally = Tally("message", UsageCounter())
    >>> tally.total(history, usage=TokenUsage(prompt_tokens=900, completion_tokens=40))
    1041
    """

    def __init__(self, estimate: Counter = _CHARACTERS) -> None:
        if not is_incremental(estimate) or isinstance(estimate, UsageCounter):
            raise ConfigError(f"UsageCounter estimates with an object with count(message), not {name_of(estimate)}")
        self.estimate: Counter = estimate

    def count(self, message: Any, wire: Wire | str | None = None) -> int:
        """Return the estimate of one message.

        >>> UsageCounter().count({"role": "user", "content": "x" * 400})
        101
        """
        return with_wire(self.estimate, message, wire)

    def count_text(self, text: str) -> int:
        """Return the estimate of a text; four characters a token, if the estimating counter knows only messages.

        >>> UsageCounter().count_text("hello")
        2
        """
        return getattr(self.estimate, "count_text", _CHARACTERS.count_text)(text)

    def __repr__(self) -> str:
        return f"UsageCounter({self.estimate!r})"


def is_incremental(counter: Any) -> TypeGuard[Counter]:
    """Tell whether `counter` counts message by message; `False` of a function that wants the whole history.

    Raises `ConfigError` for what is neither.

    >>> is_incremental(CharacterCounter()), is_incremental(lambda messages, tool_infos: 0)
    (True, False)
    """
    # Texts and lists have a method `count`, too: a slip such as token_counter="o200k_base" is found here.
    if not isinstance(counter, type) and not isinstance(counter, Sequence):
        if callable(getattr(counter, "count", None)):
            return True
        if callable(counter):
            return False
    hint = "; make one: " + counter.__name__ + "()" if isinstance(counter, type) else ""
    raise ConfigError(
        "a token counter is an object with count(message), or a function of (messages, tool_infos), "
        f"not {name_of(counter)}{hint}"
    )


def with_wire(counter: Counter, message: Any, wire: Wire | str | None) -> int:
    """Return what `counter` gives for `message`; one that goes by the words need not recognise the wire."""
    if isinstance(counter, WordCounter) and type(counter).count is WordCounter.count:
        return counter.count_words(words_of(message, wire))
    return counter.count(message)


def words_of(message: Any, wire: Wire | str | None) -> Words:
    """Return the words of `message`, of the first wire that can view it if none is given."""
    if isinstance(wire, str):
        wire = get_wire(wire)
    if wire is not None:
        return wire.words(message)
    *others, last = map(get_wire, recognise([message]))
    for candidate in others:
        try:
            return candidate.words(message)
        except InputError:
            continue
    return last.words(message)


def name_of(counter: Any) -> str:
    """Return how an error calls `counter`: a function or a class by its name, an object by its type."""
    own = getattr(counter, "__qualname__", None)
    return own if isinstance(own, str) else type(counter).__name__
