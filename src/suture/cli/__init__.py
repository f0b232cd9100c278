"""The command line: `suture check`, `repair`, `reduce`, `convert` and `chat`, and what shows a history to a person.

A command reads conversations one by one (`_read`), hands each to the engine, and lets a screen (`_screen`)
or an output (`_write`) have what came of it. Nothing here knows how a history is mended or reduced. Standard library
only; with `rich` installed, what is shown on a terminal is nicer.
"""

from suture.cli._main import main
from suture.cli._outline import Line, compare, outline
from suture.cli._read import open_source, read_conversations
from suture.cli._screen import Screen, screen_for

__all__ = [
    "Line",
    "Screen",
    "compare",
    "main",
    "open_source",
    "outline",
    "read_conversations",
    "screen_for",
]
