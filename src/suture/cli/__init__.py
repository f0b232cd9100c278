"""The command line: a module for each command or group of commands, and what they share.

A command reads conversations one by one (`files`), hands each to the engine, and passes the result to a screen or an
output (`output`). Nothing here knows how a history is repaired or reduced. `chat`, `worker`, `proxy` and `run` need
extra packages; with `rich` installed, terminals get colours and tables.
"""

from suture.cli.main import main

__all__ = ["main"]
