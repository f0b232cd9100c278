"""Print docs/guests/seven-histories.md: the seven histories through every guest's real agent, with Suture and without.

python benchmarks/guests/table.py > docs/guests/seven-histories.md
"""

import asyncio
import logging
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version

from _cases import CASES, Case
from _guest import MODULES, WITH, WITHOUT, Guest, Script
from _judge import PROVIDERS, WORDS, judge

_HEAD = """\
<!-- Made by benchmarks/guests/table.py. Change that, not this page. -->

# Seven histories

Each history goes through the real agent of each framework, or through a provider's own client, without Suture and with it. A fake
model records what it receives. A judge, which does not use Suture, compares that with the provider's rules and the history.
"""
_TABLE = """
## What the model receives
"""
_CELLS = """
## What the cells say
"""
_NOTES = """
With OpenAI's Responses a result may be anywhere after its call, so E is right there. If a framework's messages suit many
providers, Anthropic's rules apply, the strictest about ids; neighbours of one role do not count against it, because its own adapter
joins them.

## Releases
"""


def page() -> Iterator[str]:
    """Yield the lines of the page."""
    guests: list[Guest] = [guest for module in MODULES for guest in import_module(module).GUESTS]
    rows = [row for guest in guests for row in _rows(guest)]
    yield _HEAD
    yield "| | history |"
    yield "|---|---|"
    yield from (f"| {case.letter} | {case.what} |" for case in CASES)
    yield _TABLE
    yield f"| guest | rules of | Suture | {' | '.join(case.letter for case in CASES)} |"
    yield "|---" * (len(CASES) + 3) + "|"
    yield from rows
    yield _CELLS
    yield "| words | meaning |"
    yield "|---|---|"
    told = "\n".join(rows)
    yield from (f"| {words} | {meaning} |" for words, meaning in WORDS.items() if words.strip("… ") in told)
    yield _NOTES
    for package in sorted({guest.package for guest in guests}):
        yield f"- {package} {version(package)}"


def _rows(guest: Guest) -> Iterator[str]:
    for kind in (WITHOUT, WITH):
        cells = " | ".join(_cell(guest, case, kind) for case in CASES)
        yield f"| {guest.title} | {guest.provider} | {kind} | {cells} |"


def _cell(guest: Guest, case: Case, kind: str) -> str:
    try:
        asyncio.run(guest.begin(kind, Script(0), case.steps)())
    except Exception as error:  # noqa: BLE001
        return f"raises {type(error).__name__}"
    return judge(guest.received(), case, PROVIDERS[guest.provider])


if __name__ == "__main__":
    logging.disable()
    for line in page():
        print(line)
