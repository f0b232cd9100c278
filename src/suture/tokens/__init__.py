"""Tokens: how many a message, or a whole history, is likely to take up.

`CharacterCounter` estimates and needs nothing, `ExactCounter` uses a tokenizer, `UsageCounter` goes by what the
provider reported. `Tally` counts a history that grows, each message once. Nothing here does I/O.
"""

from suture.tokens._counters import (
    MEDIA_TOKENS,
    CharacterCounter,
    Counter,
    UsageCounter,
    WholeCounter,
    is_incremental,
)
from suture.tokens._exact import ExactCounter
from suture.tokens._tally import Tally

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
