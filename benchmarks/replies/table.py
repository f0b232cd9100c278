"""Print docs/replies-measured.md: replies that model servers really send, read by Suture and by three frameworks.

python benchmarks/replies/table.py --peers PYTHON   # what `make replies` does
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parents[2]))

from tests.models.loopback import loopback, serving
from tests.replies.row import Reading, Row, Servers, differences, read_rows, shown_differences
from tests.replies.trial import read

PEERS = {
    "peer_pydantic_ai": ("pydantic-ai", "pydantic-ai-slim"),
    "peer_langchain": ("LangChain", "langchain"),
    "peer_openai_agents": ("OpenAI Agents SDK", "openai-agents"),
}
"""A file for each: what it is called, and the distribution whose release counts."""
OURS = "ours"
_HERE = Path(__file__).parent

Verdicts = dict[int, list[str]]
"""What is wrong with what was read, for each row that could be."""


class Measured(NamedTuple):
    """Everything that the page says."""

    rows: Sequence[Row]
    whole: Verdicts
    """Suture, with all that a row says: ids, counts, reasons and kinds of errors too."""
    shown: dict[str, Verdicts]
    """Every framework, with what its user sees: the text, the calls that ran, and what an error says."""
    releases: dict[str, str]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peers", default=sys.executable, metavar="PYTHON", help="the interpreter that has the others")
    parser.add_argument(
        "--wrong", action="store_true", help="print what each framework makes of its wrong rows instead"
    )
    given = parser.parse_args(arguments)
    measured = measure(given.peers)
    print("\n".join(wrong(measured) if given.wrong else page(measured)))
    return 0


def measure(python: str) -> Measured:
    rows = read_rows()
    os.environ.update(AWS_ACCESS_KEY_ID="none", AWS_SECRET_ACCESS_KEY="none", AWS_DEFAULT_REGION="us-east-1")
    ours, asked = asyncio.run(_read_ours(rows))
    shown = {OURS: {number: shown_differences(rows[number], ours[number], asked[number]) for number in ours}}
    releases = {}
    for name, (_, distribution) in PEERS.items():
        shown[name] = _read_theirs(python, name, rows)
        releases[name] = _release(python, distribution)
    return Measured(rows, {number: differences(rows[number], ours[number]) for number in ours}, shown, releases)


async def _read_ours(rows: Sequence[Row]) -> tuple[dict[int, Reading], dict[int, int]]:
    servers = Servers(rows)
    async with loopback(servers) as server:
        found = {
            number: await read(row, f"{server.url}/{OURS}/{number}", streaming=row.streamed)
            for number, row in enumerate(rows)
        }
    return found, {number: servers.asked[OURS, number] for number in found}


def _read_theirs(python: str, name: str, rows: Sequence[Row]) -> Verdicts:
    servers = Servers(rows)
    with serving(servers) as server:
        replies = [
            [number, row.wire, f"{server.url}/{name}/{number}", row.streamed, row.tools]
            for number, row in enumerate(rows)
        ]
        command = [python, str(_HERE / "_reader.py"), name]
        run = subprocess.run(command, input=json.dumps(replies), capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(f"{name}: {run.stderr[-2000:]}")
    found: Verdicts = {}
    for line in run.stdout.splitlines():
        number, text, ran, error = json.loads(line)
        reading = Reading(text, ran=[(tool, arguments) for tool, arguments in ran], error=error)
        found[number] = shown_differences(rows[number], reading, servers.asked[name, number])
    return found


def _release(python: str, distribution: str) -> str:
    code = f"from importlib.metadata import version; print(version({distribution!r}))"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def page(measured: Measured) -> Iterator[str]:
    """Yield the lines of the page."""
    yield _HEAD.rstrip()
    names = [OURS, *PEERS]
    titles = ["Suture", *(f"{PEERS[name][0]} {measured.releases[name]}" for name in PEERS)]
    yield f"\n| server | replies | Suture, all that a row says | {' | '.join(titles)} |"
    yield "|---|" + "---:|" * (2 + len(names))
    makes = sorted({row.make for row in measured.rows})
    for make in makes:
        yield _line(make, [number for number, row in enumerate(measured.rows) if row.make == make], measured)
    yield _line("**all**", list(range(len(measured.rows))), measured)
    for name in PEERS:
        better = [
            measured.rows[number].name
            for number, found in measured.shown[name].items()
            if not found and measured.shown[OURS][number]
        ]
        told = "none" if not better else ", ".join(f"`{row}`" for row in better)
        yield f"\nRead rightly by {PEERS[name][0]} and not by Suture: {told}."


def _line(title: str, numbers: Sequence[int], measured: Measured) -> str:
    cells = [str(sum(not measured.whole[number] for number in numbers))]
    for verdicts in measured.shown.values():
        known = [number for number in numbers if number in verdicts]
        right = sum(not verdicts[number] for number in known)
        cells.append("–" if not known else str(right) if len(known) == len(numbers) else f"{right} of {len(known)}")
    return f"| {title} | {len(numbers)} | {' | '.join(cells)} |"


def wrong(measured: Measured) -> Iterator[str]:
    """Yield what each framework makes of the rows that it does not read rightly."""
    for name, verdicts in (("ours, all that a row says", measured.whole), *measured.shown.items()):
        counts = Counter(bool(found) for found in verdicts.values())
        yield f"# {name}: {counts[False]} right, {counts[True]} wrong"
        for number, found in verdicts.items():
            yield from (f"- {measured.rows[number].name}: {difference}" for difference in found)


_HEAD = """\
<!-- Made by benchmarks/replies/table.py. Change that, not this page. -->

# Replies, measured

Each [reply that a server really sends](replies.md) is served byte for byte by a server on this machine, and read by an agent
with nothing configured: whole or streamed, as it was sent, with tools of the names that it calls. Attempts after the first are
turned off, so that one reply is judged. `make replies` makes this page; the programs are in `benchmarks/replies/`.

The second column of numbers judges all that a row says: text, calls, ids, the reason it ended, token counts, and what an error is
and says. The others judge what the user of any framework sees: the text, the tools that ran and their arguments, and whether an
error says what the server did. A model's malformed call counts as read if it is told, or asked again. A dash: the framework has no
model of its own for this form, or it was not installed; "of" counts the replies of forms that it has. Most replies were reported
because some program failed on them, so the numbers say nothing of how often that happens.
"""

if __name__ == "__main__":
    raise SystemExit(main())
