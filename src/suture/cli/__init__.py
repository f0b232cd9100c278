"""The command line: the `suture` command, and the screen that shows histories, reports and plans.

A command reads conversations one by one (`files`), passes each to the engine, and sends the outcome to a screen or an
output (`output`). Nothing here knows how a history is repaired or reduced. With `rich` installed, a terminal shows
colours and tables.
"""

from suture.cli.main import main

__all__ = ["main"]
