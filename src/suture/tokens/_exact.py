"""`ExactCounter`: a real tokenizer counts. The package that has it is an extra."""

from collections.abc import Iterator
from typing import Any

from suture.errors import ConfigError
from suture.tokens._counters import MEDIA_TOKENS, WordCounter
from suture.wires import Words

__all__ = ["ExactCounter"]

_FRAME = 3
"""Tokens that a provider puts around each message."""

_PIECE = 100_000
"""How many characters are given to the tokenizer at once: the ids of one piece are all that is held in memory."""


class ExactCounter(WordCounter):
    """Counts with the tokenizer of a model family, `o200k_base` (OpenAI's since GPT-4o) if no other is named.

    Needs `pip install 'suture[tokens]'`. Text that spells a special token is counted as the text it is. What no
    tokenizer can tell stays an estimate: three tokens around each message, and media.

    >>> counter = ExactCounter()
    >>> counter.count_text("hello world"), counter.count({"role": "user", "content": "hello world"})
    (2, 6)
    """

    def __init__(self, encoding: str = "o200k_base") -> None:
        try:
            from splintr import Tokenizer  # noqa: PLC0415 - an extra: only who counts exactly needs it
        except ImportError:
            raise ConfigError(
                "ExactCounter needs the package splintr-rs; install it: pip install 'suture[tokens]'"
            ) from None
        try:
            tokenizer: Any = Tokenizer.from_pretrained(encoding if isinstance(encoding, str) else "")  # pyright: ignore[reportUnnecessaryIsInstance]
        except ValueError as error:
            known = str(error).rpartition("Supported: ")[2]
            raise ConfigError(f"unknown encoding {encoding!r}; known: {known}") from None
        self.encoding = encoding
        self._encode: Any = tokenizer.encode_ordinary

    def count_words(self, words: Words) -> int:
        """Return the tokens of each text, those around the message, and what media count.

        >>> ExactCounter("cl100k_base").count_words(Words(("user", "hello world")))
        6
        """
        texts, media = words
        return sum(map(self.count_text, texts)) + _FRAME + MEDIA_TOKENS * media

    def count_text(self, text: str) -> int:
        """Return how many tokens `text` is.

        >>> ExactCounter().count_text("<|endoftext|>")
        7
        """
        if len(text) > _PIECE:
            return sum(map(self._tokens, _pieces(text)))
        return self._tokens(text)

    def _tokens(self, text: str) -> int:
        try:
            return len(self._encode(text))
        except UnicodeEncodeError:  # half a surrogate pair, which no provider could be sent
            return len(self._encode(text.encode(errors="replace").decode()))

    def __repr__(self) -> str:
        return f"ExactCounter({self.encoding!r})"


def _pieces(text: str) -> Iterator[str]:
    """Yield `text` in pieces, cut at white space if there is any: tokens do not reach across the start of a word."""
    start = 0
    while start < len(text):
        end = start + _PIECE
        if end < len(text):
            middle = start + _PIECE // 2
            cut = max(text.rfind(" ", middle, end), text.rfind("\n", middle, end) + 1)
            end = cut if cut > middle else end
        yield text[start:end]
        start = end
