"""The project's pages, taken apart: code blocks, what is shown as their output, tables and links."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
RUN = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
"""The pages whose code is run; those of the guests are run where these are installed, in tests/guests."""

_FENCE = re.compile(r"^(?P<fence>`{3,})(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=fence)[ ]*$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[[^\]\n]+\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(?P<text>.+?) *$", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block: its info string, its text, its first line, and what stands between it and the one before."""

    info: str
    body: str
    line: int
    gap: str

    @property
    def language(self) -> str:
        return self.info.partition(" ")[0]


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    end = 0
    for found in _FENCE.finditer(text):
        line = text.count("\n", 0, found.start("body")) + 1
        yield Block(found["info"].strip(), found["body"], line, text[end : found.start()])
        end = found.end()


def prose(page: Path) -> str:
    """Return a page without its fenced blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def links(page: Path) -> list[str]:
    return [found["target"] for found in _LINK.finditer(prose(page))]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as they are made from the text on GitHub."""
    texts = [found["text"].lower() for found in _HEADING.finditer(prose(page))]
    return {re.sub(r"[^\w\- ]", "", text).replace(" ", "-") for text in texts}


def table(page: Path, first_column: str) -> list[list[str]]:
    """Return the rows of the table whose head begins with `first_column`, without its head."""
    rows: list[list[str]] = []
    inside = False
    for line in prose(page).splitlines():
        if not line.startswith("|"):
            inside = False
            continue
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if cells[0] == first_column:
            inside = True
        elif inside and not set(cells[0]) <= {"-", ":"}:
            rows.append(cells)
    assert rows, f"{name(page)} has no table that begins with {first_column!r}"
    return rows


def code(cell: str) -> str:
    """Return what stands between backticks in a cell."""
    found = re.search(r"`([^`]+)`", cell)
    assert found, f"no code in {cell!r}"
    return found[1]


def named(page: Path, first_column: str) -> list[str]:
    """Return what the first column of a table names."""
    return [word for row in table(page, first_column) for word in re.findall("`([^`]+)`", row[0])]
