"""What somebody types, or what comes through a pipe: one message at a time."""

import sys
from contextlib import suppress
from typing import Any

from suture.cli._refusal import Refusal
from suture.cli._streams import is_terminal

__all__ = ["Lines"]

_PROMPT, _GOES_ON = "you> ", "...> "


class Lines:
    r"""Messages from standard input. A line that ends in an odd number of backslashes goes on in the next.

    >>> Lines.joined(["one\\", "two"]), Lines.joined(["C:\\\\"])
    ('one\ntwo', 'C:\\\\')
    """

    def __init__(self) -> None:
        stream: Any = sys.stdin
        if stream is None:  # so it is, where a shell closed it
            raise Refusal("is closed", "standard input")
        self.is_typed = is_terminal(stream)
        self._edits = self.is_typed and is_terminal(sys.stdout)
        self._readline: Any = None
        self._is_reading = False
        self._left_behind = False
        self._presses = 0
        if self._edits:
            with suppress(ImportError):
                import readline

                readline.parse_and_bind("set enable-bracketed-paste on")  # so that lines that are pasted stay together
                self._readline = readline

    @staticmethod
    def joined(lines: list[str]) -> str:
        """Return lines, each of which goes on in the next, as one text."""
        return "\n".join([*[line[:-1] for line in lines[:-1]], *lines[-1:]])

    def next(self) -> str | None:
        """Return the next message; `None` at the end. Raise `UnicodeError` for what is no text."""
        lines: list[str] = []
        while True:
            self._left_behind = bool(lines)
            line = self.ask(_GOES_ON if lines else _PROMPT)
            if line is None:
                return self.joined([*lines, ""]).removesuffix("\n") if lines else None
            self._presses = 0
            lines.append(line)
            if not _goes_on(line):
                return self.joined(lines)

    def ask(self, prompt: str) -> str | None:
        """Return one line; `None` at the end. The prompt is shown only to somebody who types."""
        self._is_reading = True
        try:
            line = self._edited(prompt) if self._edits else self._plain(prompt)
        finally:
            self._is_reading = False
        if line is not None:
            line.encode()  # what a terminal sends that is no UTF-8 is let through as surrogates
        return line

    def interrupt(self) -> None:
        """Take note of what a Ctrl-C finds half typed, and raise `KeyboardInterrupt`."""
        if self._readline is not None and self._is_reading and self._readline.get_line_buffer():
            self._left_behind = True
        raise KeyboardInterrupt

    def clear(self) -> bool:
        """Begin a new line after a Ctrl-C; tell whether it was the second in a row with nothing typed."""
        print(file=sys.stdout if self._edits else sys.stderr, flush=True)
        self._presses = 0 if self._left_behind else self._presses + 1
        self._left_behind = False
        return self._presses > 1

    @property
    def may_leave(self) -> bool:
        """Whether one more Ctrl-C leaves."""
        return self._presses == 1

    def _edited(self, prompt: str) -> str | None:
        try:
            return input(prompt)
        except EOFError:
            print(flush=True)
            return None

    def _plain(self, prompt: str) -> str | None:
        if self.is_typed and is_terminal(sys.stderr):
            print(prompt, end="", file=sys.stderr, flush=True)
        line = sys.stdin.buffer.readline()
        return line.decode().rstrip("\r\n") if line else None


def _goes_on(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1
