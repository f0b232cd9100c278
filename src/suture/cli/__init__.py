"""The command line: `suture check`, `repair`, `reduce`, `convert` and `chat`, and what shows a history to a person.

A command reads conversations one by one (`files`), hands each to the engine, and lets a screen or an output (`output`)
have what came of it. Nothing here knows how a history is repaired or reduced. All but `chat` need the standard library
only; with `rich` installed, what is shown on a terminal is nicer.
"""

from suture.cli.main import main

__all__ = ["main"]
