"""When a model turn that failed is tried again, and after how many seconds.

`HICCUPS` is the rule where a program sets none: what the provider says may pass is asked twice more, as the providers'
own SDKs do. The agent's model turns and a summariser's answers go by the same functions.
"""

from math import isfinite
from typing import Any

from suture.errors import ConfigError, HistoryError, InputError, SutureError
from suture.kernel.config import ModelRetryConfig

_HOPELESS = (ConfigError, HistoryError, InputError)
"""Errors that would come again, because the request does not change by itself."""
_LONGEST_WAIT = 3600.0
"""If a provider demands a longer wait than this many seconds, the turn is not tried again."""
_LONGEST_HICCUP = 60.0
"""The same where the program has set no retries: nobody there expects to wait for long."""
_FIRST_WAIT, _FIRST_HICCUP = 0.1, 0.5
"""How many seconds to wait after the first attempt."""
_DOUBLED = 7
"""How many times a wait is doubled; then it is 100 times the first one."""


def spread(attempt: int, first: float) -> float:
    """Return `first` seconds, doubled with each attempt, plus up to half of that at random."""
    from random import random  # noqa: PLC0415 - only who waits pays for it

    wait = first * 2 ** (attempt - 1) if attempt <= _DOUBLED else first * 100
    return wait + random() * wait / 2  # noqa: S311 - spreads load, keeps no secret


def default_backoff(attempt: int) -> float:
    """Return how long to wait after attempt number `attempt`: 0.1 s, doubled each time, plus up to half at random.

    >>> 0.1 <= default_backoff(1) <= 0.15, 10 <= default_backoff(9) <= 15
    (True, True)
    """
    return spread(attempt, _FIRST_WAIT)


def hiccup_backoff(attempt: int) -> float:
    """Return how long to wait after a hiccup: 0.5 s, doubled each time, plus up to half at random.

    >>> 0.5 <= hiccup_backoff(1) <= 0.75, 1 <= hiccup_backoff(2) <= 1.5
    (True, True)
    """
    return spread(attempt, _FIRST_HICCUP)


HICCUPS = ModelRetryConfig(max_retries=2, backoff=hiccup_backoff)
"""What an agent does about failures that pass, unless its program says otherwise."""


def can_help(config: ModelRetryConfig, attempt: int, error: Exception) -> bool:
    """Return whether trying again can help, after attempt number `attempt` ended with `error`.

    Only who sets retries has errors of any kind tried again.

    >>> can_help(HICCUPS, 1, OSError("of the program")), can_help(ModelRetryConfig(), 1, OSError("of the program"))
    (False, True)
    """
    if isinstance(error, _HOPELESS):
        return False
    if config == HICCUPS:
        return attempt <= HICCUPS.max_retries and _is_hiccup(error)
    return bool(getattr(error, "retryable", True)) and demanded_wait(error) <= _LONGEST_WAIT


def _is_hiccup(error: Exception) -> bool:
    """Return whether an error may pass soon. What has ended another run was tried again there."""
    has_ended_a_run = isinstance(error, SutureError) and error.result is not None
    return bool(getattr(error, "retryable", False)) and not has_ended_a_run and demanded_wait(error) <= _LONGEST_HICCUP


def demanded_wait(error: Exception | None) -> float:
    """Return how many seconds an error asks to wait; 0 if that is not a sensible number.

    >>> from suture.errors import RateLimitError
    >>> demanded_wait(RateLimitError("too many requests", retry_after=2.0)), demanded_wait(OSError())
    (2.0, 0.0)
    """
    asked: Any = getattr(error, "retry_after", None)
    try:
        seconds = 0.0 if isinstance(asked, bool) or asked is None else float(asked)
    except (TypeError, ValueError):
        return 0.0
    return seconds if isfinite(seconds) else 0.0


def wait_after(config: ModelRetryConfig, attempt: int, error: Exception | None) -> float:
    """Return how many seconds to wait after an attempt: the backoff, or longer if the error demands it.

    >>> from suture.errors import RateLimitError
    >>> wait_after(HICCUPS, 1, RateLimitError("too many requests", retry_after=7.0))
    7.0
    """
    return max((config.backoff or default_backoff)(attempt), demanded_wait(error))
