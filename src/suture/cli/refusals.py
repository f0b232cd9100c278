"""What a command refuses, as the one line that a user sees, and what it writes to the standard streams."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO

from suture.errors import SutureError

_LONGEST_PLACE = 160


class Refusal(Exception):
    """Why a command cannot do its work, and where (outermost place first): the one line that the user sees.

    >>> str(Refusal("expected a string", "content").within("log.json", "message 3"))
    'log.json, message 3, content: expected a string'
    """

    def __init__(self, reason: str, *places: str) -> None:
        super().__init__(reason, *places)
        self.reason = reason
        self.places = tuple(place for place in places if place)

    def within(self, *places: str) -> "Refusal":
        """Return the same refusal with more places around it."""
        return type(self)(self.reason, *places, *self.places)

    def __str__(self) -> str:
        places = [
            place if len(place) <= _LONGEST_PLACE else f"{place[: _LONGEST_PLACE // 2]}…{place[-_LONGEST_PLACE // 4 :]}"
            for place in self.places
        ]
        return ": ".join(part for part in (", ".join(places), self.reason) if part)


class Unwritten(Refusal):
    """Nothing more can be shown, so not even a chat goes on."""


def describe_error(error: BaseException) -> str:
    """Return what an error says, with the name of its type unless it is one of Suture's.

    >>> describe_error(ValueError("the gauge is broken")), describe_error(SutureError("no such tool"))
    ('ValueError: the gauge is broken', 'no such tool')
    """
    text = str(error)
    if isinstance(error, SutureError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


@contextmanager
def refusing(*places: str, verb: str = "") -> Generator[None]:
    """Turn Suture's errors inside the block into a `Refusal`, and with a `verb` the system's: "cannot be read"."""
    try:
        yield
    except BrokenPipeError:
        raise
    except SutureError as error:
        raise Refusal(str(error), *places) from None
    except (OSError, ValueError) as error:
        if not verb:
            raise
        reason = error.strerror if isinstance(error, OSError) else None
        raise Refusal(f"cannot be {verb}: {(reason or str(error)).lower()}", *places) from None


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether `stream` is a terminal; it is `None` if a shell closed it.

    >>> is_terminal(None)
    False
    """
    return stream is not None and stream.isatty()


def show(stream: TextIO | None, text: str) -> None:
    """Write a text at once to standard output or standard error, unless a shell closed it."""
    if stream is not None:
        with writing(stream):
            stream.write(text)
            stream.flush()


@contextmanager
def writing(stream: TextIO | None) -> Generator[None]:
    """Turn an error of standard output or standard error inside the block into an `Unwritten`."""
    try:
        with refusing("standard error" if stream is sys.stderr else "standard output", verb="written"):
            yield
    except Refusal as refusal:
        raise Unwritten(refusal.reason, *refusal.places) from None


def complain(line: str) -> None:
    """Write a line to standard error, if there is one; `print` would fall back to standard output."""
    stream: TextIO | None = sys.stderr
    if stream is not None:
        print(line, file=stream, flush=True)
