"""The standard streams, any of which a shell may have closed: Python then has `None` in its place."""

import sys
from typing import TextIO

__all__ = ["complain", "is_terminal"]


def is_terminal(stream: TextIO | None) -> bool:
    """Tell whether somebody looks at `stream`.

    >>> is_terminal(None)
    False
    """
    return stream is not None and stream.isatty()


def complain(line: str) -> None:
    """Write a line to standard error, if there is one; `print` would take standard output instead."""
    stream: TextIO | None = sys.stderr
    if stream is not None:
        print(line, file=stream, flush=True)
