"""The language that Suture writes in: a default for the process, and an override for a block of code.

Engines take `language=`; only the public entry points call `current_language()`.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, get_args

from suture.errors import ConfigError

__all__ = ["Language", "current_language", "resolve_language", "set_language", "using_language"]

Language = Literal["en", "zh"]

_default: list[Language] = ["en"]
_override: ContextVar[Language | None] = ContextVar("suture_language", default=None)


def resolve_language(language: str | None) -> Language:
    """Return `language`, or the current one for `None`; raise `ConfigError` if it is unknown.

    >>> resolve_language("zh")
    'zh'
    """
    if language is None:
        return current_language()
    for known in get_args(Language):
        if language == known:
            return known
    raise ConfigError(f"unknown language {language!r}; known: {', '.join(get_args(Language))}")


def current_language() -> Language:
    """Return the current language: that of the innermost `using_language`, else the default.

    >>> current_language()
    'en'
    """
    return _override.get() or _default[0]


def set_language(language: str) -> None:
    """Set the language of the whole process.

    >>> set_language("en")
    >>> set_language("fr")
    Traceback (most recent call last):
        ...
    suture.errors.ConfigError: unknown language 'fr'; known: en, zh
    """
    _default[0] = resolve_language(language)


@contextmanager
def using_language(language: str) -> Generator[None, None, None]:
    """Use `language` inside the block, in this thread or task only.

    >>> with using_language("zh"):
    ...     current_language()
    'zh'
    """
    token = _override.set(resolve_language(language))
    try:
        yield
    finally:
        _override.reset(token)
