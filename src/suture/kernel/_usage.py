"""What a run costs."""

import msgspec

from suture.kernel._records import Spent
from suture.kernel._scope import Scope
from suture.messages import TokenUsage

__all__ = ["add_usage", "difference", "spend"]


def add_usage(old: TokenUsage, new: TokenUsage) -> TokenUsage:
    """Return the sum of two usages.

    >>> add_usage(TokenUsage(total_tokens=2), TokenUsage(total_tokens=3)).total_tokens
    5
    """
    total = new.total_tokens or new.prompt_tokens + new.completion_tokens
    sums = {name: getattr(old, name) + getattr(new, name) for name in TokenUsage.__struct_fields__}
    return TokenUsage(**{**sums, "total_tokens": old.total_tokens + total})


def difference(now: TokenUsage, before: TokenUsage) -> TokenUsage:
    """Return what was used since.

    >>> difference(TokenUsage(total_tokens=5), TokenUsage(total_tokens=3)).total_tokens
    2
    """
    return TokenUsage(**{name: getattr(now, name) - getattr(before, name) for name in TokenUsage.__struct_fields__})


def spend(scope: Scope, usage: TokenUsage) -> None:
    """Count what did not come with a reply of this run's: a rejected attempt, or an agent inside it."""
    scope.usage = add_usage(scope.usage, usage)
    if scope.journal is not None:
        scope.journal.note(Spent(msgspec.to_builtins(usage)))
