"""What is seen of a turn while it goes on: the words as they come, and a line for each thing that happens beside."""

import re
from shutil import get_terminal_size
from typing import Any, TextIO

from suture.cli._visible import shorten, visible
from suture.events import (
    AnyEvent,
    HistoryRewritten,
    MessageDelta,
    MessageFinished,
    RetryScheduled,
    ToolFinished,
    ToolStarted,
)

__all__ = ["Show", "flowing"]

_HIDDEN = re.compile("[^\n\t\u00a0\u2000-\u200a\u200c\u200d\u202f\u3000]+")
"""All but the characters that are no letters and do a terminal no harm: spaces, and joiners of letters."""


def flowing(text: str) -> str:
    r"""Return a text of many lines as it may be printed: as `visible`, but its lines and spaces stay.

    >>> print(flowing("one\ntwo \x1b[31m"))
    one
    two \x1b[31m
    """
    return text if text.isprintable() else _HIDDEN.sub(lambda found: visible(found[0]), text)


class Show:
    """Writes words to `out`, and lines about what happens beside to `notes`: the same, on a terminal.

    >>> import sys
    >>> show = Show(sys.stdout, sys.stdout)
    >>> show.say("At 06:"), show.note("<- tides 06:12")
    At 06:
      <- tides 06:12
    (None, None)
    """

    def __init__(self, out: TextIO | None, notes: TextIO | None) -> None:
        self._out, self._notes = out, notes
        self._in_line = False
        self._held = ""
        """The first half of a line end, whose other half is still to come."""
        self._streamed = ""

    def event(self, event: AnyEvent) -> None:
        """Show what an event tells, if it is of interest to somebody who waits for an answer."""
        outermost = len(event.run_path) < 2
        indent = "  " * len(event.run_path)
        if isinstance(event, MessageDelta) and outermost:
            self._streamed = event.message_id
            self.say(event.text)
        elif isinstance(event, MessageFinished) and outermost:
            self._finish(event)
        elif isinstance(event, ToolStarted):
            self.note(f"-> {event.name} {event.arguments}", indent)
        elif isinstance(event, ToolFinished):
            self.note(f"<- {event.name}{' failed:' if event.result.is_error else ''} {event.text}", indent)
        elif isinstance(event, RetryScheduled):
            self.note(f"(trying again in {event.delay:.1f} s: {event.error or event.reason})", indent)
        elif isinstance(event, HistoryRewritten):
            self.note(f"({event.middleware} changed the history: {event.before} -> {event.after} messages)", indent)

    def say(self, text: str) -> None:
        """Write words; a line may go on."""
        text = f"{self._held}{text}".replace("\r\n", "\n")
        self._held = "\r" if text.endswith("\r") else ""
        text = text.removesuffix("\r") if self._held else text
        if text:
            _write(self._out, flowing(text))
            self._in_line = not text.endswith("\n")

    def end_line(self) -> None:
        """Let what follows begin in a line of its own."""
        if self._held:
            self._held = ""
            _write(self._out, visible("\r"))
            self._in_line = True
        if self._in_line:
            _write(self._out, "\n")
            self._in_line = False

    def note(self, text: str, indent: str = "  ") -> None:
        """Write one line, shortened to what fits."""
        self.end_line()
        _write(self._notes, f"{indent}{shorten(text, _width(indent))}\n")

    def question(self, text: str, indent: str = "  ") -> None:
        """Write all of a text that somebody is to decide about, in as many lines as it takes, each indented."""
        self.end_line()
        width = _width(indent)
        for line in map(visible, text.split("\n")):
            for start in range(0, len(line) or 1, width):
                _write(self._notes, f"{indent}{line[start : start + width]}\n")

    def _finish(self, event: MessageFinished) -> None:
        if event.message_id != self._streamed:
            self.say(event.text)
        self.end_line()
        meta: Any = getattr(event.message, "response_meta", None)
        if meta is not None and meta.finish_reason == "length":
            self.note("(cut off: the reply reached its limit of tokens)")


def _width(indent: str) -> int:
    return max(get_terminal_size((100, 24)).columns - len(indent) - 1, 20)


def _write(stream: TextIO | None, text: str) -> None:
    if stream is not None:  # it is none where a shell closed it
        stream.write(text)
        stream.flush()
