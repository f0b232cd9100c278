"""What the LangChain guest says in the place of a missing result, and which texts of others say the same.

A placeholder says of one call that it has no result. The texts that are known here are those of deepagents, old and
new, and of LangChain's own model node, so that a real result takes their place, whoever made them.
"""

from collections.abc import Callable
from typing import Any, Literal

from suture.repair import AsksCause, Cause, Generator, label, takes_cause

__all__ = ["UNKNOWN", "Text", "is_known_placeholder", "make_generator"]

Text = Literal["cancelled", "neutral", "cause"]
"""Which texts: one for every cause, one that names no cause, or one for each cause."""

UNKNOWN = "unknown"
"""What a call without a name is called in deepagents' texts."""

_CANCELLED = "Tool call {name} with id {id} was cancelled - another message came in before it could be completed."
_NEUTRAL = (
    "Tool call {name} with id {id} did not complete - no result was recorded. "
    "It may have been cancelled or interrupted."
)
_MALFORMED = "Tool call {name} with id {id} could not be executed - arguments were malformed or truncated."
_BEGINNING, _BETWEEN = "Tool call ", " with id "
_ENDS = tuple(
    text.partition("{id}")[2].replace("cancelled", spelling)
    for text in (_CANCELLED, _NEUTRAL, _MALFORMED)
    for spelling in ("cancelled", "canceled")
)
_LONGEST = 600
"""How many characters a placeholder has at most: names and ids are short."""


def is_known_placeholder(text: str) -> bool:
    """Tell whether `text` only says that a call has no result.

    >>> is_known_placeholder("Tool call f with id a did not complete - no result was recorded. "
    ...     "It may have been cancelled or interrupted.")
    True
    >>> is_known_placeholder("42")
    False
    """
    if len(text) > _LONGEST or not text.startswith(_BEGINNING):
        return False
    end = next((end for end in _ENDS if text.endswith(end)), "")
    return bool(end) and _BETWEEN in text[len(_BEGINNING) : -len(end)]


def make_generator(text: Text, generator: Generator | None) -> AsksCause[str]:
    """Return what gives a placeholder its text: the caller's `generator`; where that says nothing, `text`.

    >>> make_generator("cancelled", None)("pay", "call_1", cause=Cause.UNKNOWN)
    'Tool call pay with id call_1 was cancelled - another message came in before it could be completed.'
    """
    ask: Callable[..., str] | None = generator
    with_cause = ask is not None and takes_cause(ask)

    def say(name: str, call_id: str, /, *, cause: Cause) -> str:
        said: Any = None
        if ask is not None:
            said = ask(name, call_id, cause=cause) if with_cause else ask(name, call_id)
        return said or _FIXED[text](name or UNKNOWN, call_id, cause)

    return say


def _one_for_all(name: str, call_id: str, cause: Cause) -> str:
    del cause
    return _filled(_CANCELLED, name, call_id)


def _without_cause(name: str, call_id: str, cause: Cause) -> str:
    return _filled(_MALFORMED if cause is Cause.MALFORMED else _NEUTRAL, name, call_id)


def _builtin(name: str, call_id: str, cause: Cause) -> str:
    """Say nothing: then Suture's own text for the cause is taken."""
    del name, call_id, cause
    return ""


def _filled(text: str, name: str, call_id: str) -> str:
    before, _, rest = text.partition("{name}")
    between, _, after = rest.partition("{id}")
    return f"{before}{label(name)}{between}{label(call_id)}{after}"


_FIXED: dict[str, Callable[[str, str, Cause], str]] = {
    "cancelled": _one_for_all,
    "neutral": _without_cause,
    "cause": _builtin,
}
