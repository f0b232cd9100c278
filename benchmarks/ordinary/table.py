"""Print docs/ordinary-measured.md: small ordinary programs in Suture and in four frameworks, nothing configured.

python benchmarks/ordinary/table.py                      # what `make ordinary` does
python benchmarks/ordinary/table.py --json FILE          # the results as data too
python benchmarks/ordinary/table.py --ours PYTHON        # Suture by another interpreter, PYTHONPATH included
python benchmarks/ordinary/table.py --only ours --case "a `Path`"
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from _framework import ABSENT, FAILS, REFUSED, WORKS

FRAMEWORKS = {
    "ours": ("Suture", "suture"),
    "peer_pydantic_ai": ("pydantic-ai", "pydantic-ai-slim"),
    "peer_langchain": ("LangChain", "langchain"),
    "peer_openai_agents": ("OpenAI Agents SDK", "openai-agents"),
    "peer_strands": ("Strands", "strands-agents"),
}
"""A file for each: what it is called, and the distribution whose release counts."""

Cell = tuple[str, str]
Rows = dict[tuple[str, str], dict[str, Cell]]
_HERE = Path(__file__).parent


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--ours", default=sys.executable, metavar="PYTHON", help="the interpreter that has Suture")
    parser.add_argument("--peers", default=sys.executable, metavar="PYTHON", help="the interpreter that has the others")
    parser.add_argument(
        "--only", nargs="+", choices=FRAMEWORKS, default=list(FRAMEWORKS), help="some of the frameworks"
    )
    parser.add_argument("--case", default="", metavar="WORDS", help="only the cases with these words")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results here")
    parser.add_argument("--beside", type=Path, metavar="FILE", help="take the other frameworks from an earlier --json")
    given = parser.parse_args(arguments)
    rows: Rows = {}
    releases: dict[str, str] = {}
    if given.beside:
        earlier = json.loads(given.beside.read_text(encoding="utf-8"))
        releases.update(earlier["releases"])
        for chapter, what, cells in earlier["rows"]:
            rows[chapter, what] = {name: (cell[0], cell[1]) for name, cell in cells.items()}
    for name in given.only:
        python = given.ours if name == "ours" else given.peers
        releases[name] = _release(python, FRAMEWORKS[name][1])
        for chapter, what, kind, words in _results(python, name, given.case):
            rows.setdefault((chapter, what), {})[name] = (kind, words)
    if given.json:
        data = [[chapter, what, cells] for (chapter, what), cells in rows.items()]
        given.json.write_text(json.dumps({"releases": releases, "rows": data}, indent=1), encoding="utf-8")
    print(_HEAD.rstrip())
    for line in table(rows, releases):
        print(line)
    return 0


def _release(python: str, distribution: str) -> str:
    code = f"from importlib.metadata import version; print(version({distribution!r}))"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def _results(python: str, name: str, case: str) -> Iterator[tuple[str, str, str, str]]:
    """Run a framework's programs in its own interpreter, and yield their results."""
    command = [python, str(_HERE / "_framework.py"), name, case]
    run = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONHASHSEED": "0"}
    )
    if run.returncode:
        sys.exit(f"{name}: {run.stderr[-2000:]}")
    yield from map(json.loads, run.stdout.splitlines())


def table(rows: Rows, releases: dict[str, str]) -> Iterator[str]:
    """Yield the lines of the tables, a chapter each, and the releases."""
    names = [name for name in FRAMEWORKS if name in releases]
    chapter = ""
    for (title, what), cells in rows.items():
        if title != chapter:
            chapter = title
            yield from ("", f"## {title}", "", f"| | {' | '.join(FRAMEWORKS[name][0] for name in names)} |")
            yield "|---" * (len(names) + 1) + "|"
        yield f"| {_escaped(what)} | {' | '.join(_cell(cells.get(name)) for name in names)} |"
    yield from (
        "",
        "## How many",
        "",
        f"| of {len(rows)} programs | {' | '.join(FRAMEWORKS[name][0] for name in names)} |",
    )
    yield "|---" * (len(names) + 1) + "|"
    for kind in (WORKS, REFUSED, FAILS, ABSENT):
        counts = [sum(cells.get(name, (ABSENT,))[0] == kind for cells in rows.values()) for name in names]
        yield f"| {_NAMES[kind]} | {' | '.join(map(str, counts))} |"
    if names[0] == "ours" and len(names) > 1:
        yield from _missing(rows, names)
    yield from ("", "## Releases", "")
    yield from (f"- {FRAMEWORKS[name][1]} {releases[name]}" for name in names)


_HEAD = """\
<!-- Made by benchmarks/ordinary/table.py. Change that, not this page. -->

# Ordinary things, measured

Each row is one small program, written in each framework in its nearest ordinary way, with nothing configured, and run against a
server on this machine that speaks Chat Completions and Anthropic's Messages. What counts is what the server was sent, what came
back, and how often a tool ran; a program may not touch another. `make ordinary` makes this page; the programs are in
`benchmarks/ordinary/`. [Ordinary things](ordinary.md) shows how each is written.

| cell | meaning |
|---|---|
| works | the program did what it says |
| refused | an error before anything was sent or done; its class |
| **fails** | anything else; the error's class, or what is wrong |
| – | the framework has no such form, or none was tried |
"""
_NAMES = {WORKS: "works", REFUSED: "refused", FAILS: "fails", ABSENT: "no such form"}


def _missing(rows: Rows, names: Sequence[str]) -> Iterator[str]:
    """Yield what works in another framework and not in the first one, with the reason where there is one."""
    yield from ("", f"## Where another works, and {FRAMEWORKS[names[0]][0]} does not", "")
    lacking = {
        what: [FRAMEWORKS[name][0] for name in names[1:] if cells.get(name, (ABSENT,))[0] == WORKS]
        for (_, what), cells in rows.items()
        if cells[names[0]][0] != WORKS
    }
    found = [(what, others) for what, others in lacking.items() if others]
    for what, others in found:
        yield f"- {_escaped(what)}: {', '.join(others)}. {_REASONS.get(what, '')}".rstrip()
    if not found:
        yield "Nowhere."


_REASONS = {
    "an argument too many": "The model is told which: a misspelt one that has a default would be dropped in silence.",
    "an address in the code, the key in the environment": "A key goes only to the address that it belongs to; the error says that it was not sent.",
    "a sync client of the SDK": "The agent is asynchronous inside; the asynchronous client works in plain code too.",
}
"""Why it is so on purpose."""


def _cell(cell: Cell | None) -> str:
    kind, words = cell or (ABSENT, "")
    if not words:
        return kind
    shown = words if len(words) <= 60 else f"{words[:57]}…"
    return f"{kind}: {_escaped(shown)}" if kind == REFUSED else f"**fails**: {_escaped(shown)}"


def _escaped(text: str) -> str:
    if "`" in text:
        return text.replace("|", "\\|")
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


if __name__ == "__main__":
    sys.exit(main())
