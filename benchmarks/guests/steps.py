"""Run the agents of one framework, as often and as long as the parent asks: `python benchmarks/guests/steps.py MODULE`.

A variant is `title|kind|messages`: which guest, what is in its agent, and how long the history is that it goes on with.
"""

import logging
import sys
from functools import partial
from importlib import import_module
from importlib.metadata import version
from typing import Any

from _cases import long_history
from _guest import Guest, Script, serve


class _Variants(dict[str, Any]):
    def __init__(self, guests: dict[str, Guest]) -> None:
        super().__init__()
        self._guests = guests

    def __missing__(self, variant: str) -> Any:
        title, kind, messages = variant.split("|")
        prepare = partial(_prepare, self._guests[title], kind, long_history(int(messages)) if int(messages) else ())
        self[variant] = prepare
        return prepare


def _prepare(guest: Guest, kind: str, steps: Any, script: Script) -> Any:
    return guest.begin(kind, script, steps)


def _main(module: str) -> None:
    logging.disable()
    guests: dict[str, Guest] = {guest.title: guest for guest in import_module(module).MEASURED}
    releases = dict.fromkeys(f"{guest.package} {version(guest.package)}" for guest in guests.values())
    serve(module, ", ".join(releases), _Variants(guests))


if __name__ == "__main__":
    _main(sys.argv[1])
