"""How far a command is with a file of many conversations: on a terminal's standard error, gone at the end.

Nothing is drawn before there were many, nor more often than the eye can follow. Whoever prints asks for a
pause, so that the bar never stands in the way.
"""

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from suture.cli._read import Source
from suture.cli._streams import is_terminal

__all__ = ["Progress", "progress_on"]

MANY = 100
"""From how many conversations on there is something to wait for."""

_INTERVAL = 0.1


class Progress(ABC):
    """Counts conversations, and may show it."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.count = 0
        self._drawn_at = 0.0
        self._shown = False

    def step(self) -> None:
        """Count one conversation."""
        self.count += 1
        if self.count >= MANY and monotonic() - self._drawn_at >= _INTERVAL:
            self.draw()
            self._drawn_at, self._shown = monotonic(), True

    @contextmanager
    def paused(self) -> Generator[None]:
        """Leave the terminal to others inside the block."""
        self.close()
        yield

    def close(self) -> None:
        """Take away what is shown."""
        if self._shown:
            self.erase()
            self._shown, self._drawn_at = False, 0.0

    @property
    def told(self) -> str:
        """The count in words."""
        return f"{self.count} conversations"

    @abstractmethod
    def draw(self) -> None:
        """Show the state."""

    @abstractmethod
    def erase(self) -> None:
        """Take it away."""


class _Silent(Progress):
    """Shows nothing: in a pipe."""

    def draw(self) -> None:
        """Do nothing."""

    def erase(self) -> None:
        """Do nothing."""


class _Line(Progress):
    """One line of text, drawn over and over."""

    def draw(self) -> None:
        """Write the line over the last one."""
        size = self.source.size
        part = f", {100 * self.source.position // size} %" if size else ""
        print(f"\r{self.told}{part}", end="", file=sys.stderr, flush=True)

    def erase(self) -> None:
        """Write blanks over it."""
        print(f"\r{' ' * (len(self.told) + 8)}\r", end="", file=sys.stderr, flush=True)


class _Bar(Progress):
    """A bar, drawn by `rich`."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn
        from rich.progress import Progress as Drawn

        columns = [TextColumn("{task.description}"), BarColumn(), TaskProgressColumn()]
        self._console = Console(file=sys.stderr)
        self._make = lambda: Drawn(*columns, console=self._console, transient=True, auto_refresh=False)
        self._bar: Any = None

    def draw(self) -> None:
        """Draw the bar, or draw it again."""
        if self._bar is None:
            self._bar = self._make()
            self._bar.add_task(self.told, total=self.source.size)
            self._bar.start()
        self._bar.update(0, completed=self.source.position, description=self.told, refresh=True)

    def erase(self) -> None:
        """Take the bar away."""
        self._bar.stop()
        self._bar = None


@contextmanager
def progress_on(source: Source) -> Generator[Progress]:
    """Return what shows the progress on `source` here, and take it away at the end."""
    progress = _choose(source)
    try:
        yield progress
    finally:
        progress.close()


def _choose(source: Source) -> Progress:
    if not is_terminal(sys.stderr) or os.environ.get("TERM") == "dumb":
        return _Silent(source)
    try:
        return _Bar(source)
    except ImportError:
        return _Line(source)
