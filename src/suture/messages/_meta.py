"""What a provider says about a reply beside the reply itself."""

from collections.abc import Mapping
from typing import Any

from suture.messages._frozen import EMPTY
from suture.messages._value import Value

__all__ = ["LogProb", "ResponseMeta", "TokenUsage", "TopLogProb"]


class TokenUsage(Value, kw_only=True):
    """How many tokens a reply cost.

    `prompt_tokens` counts all input; `cached_tokens` of it were read from the prompt cache, and
    `cache_write_tokens` written to it. `completion_tokens` counts all output; `reasoning_tokens` of it are
    thought.

    >>> from suture.messages import TokenUsage
    >>> TokenUsage(prompt_tokens=900, completion_tokens=40, total_tokens=940, cached_tokens=800)
    TokenUsage(prompt_tokens=900, completion_tokens=40, total_tokens=940, cached_tokens=800)
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0


class TopLogProb(Value):
    """A token that could have stood here, its log probability, and its UTF-8 bytes where they are known."""

    token: str
    logprob: float
    bytes: tuple[int, ...] | None = None


class LogProb(TopLogProb):
    """A token of the reply, with the likeliest tokens at its place."""

    top_logprobs: tuple[TopLogProb, ...] = ()


class ResponseMeta(Value, kw_only=True):
    """Why a reply ended, what it cost, how likely its tokens were; `extension` is one provider's own data.

    >>> from suture.messages import ResponseMeta
    >>> ResponseMeta(finish_reason="stop", extension={"service_tier": "flex"}).extension["service_tier"]
    'flex'
    """

    finish_reason: str = ""
    usage: TokenUsage | None = None
    logprobs: tuple[LogProb, ...] | None = None
    extension: Mapping[str, Any] = EMPTY
