"""docs/compatibility-measured.md, of what was resolved and what was run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from _judging import Cell, Lower, Pair
from _matrix import Matrix
from _requirements import PLAIN, SDKS, Project, package
from _resolving import PYTHON
from _runs import Run

_TOGETHER = "opentelemetry-"
"""Packages that are released together are one line."""


def write_page(project: Project, matrix: Matrix, known: Mapping[Pair, str], runs: Sequence[Run]) -> Iterator[str]:
    """Yield the lines of the page."""
    yield _HEAD.rstrip().format(python=PYTHON)
    yield from _clashes(matrix, known)
    yield from _versions(project, matrix)
    yield from _lower(project, matrix)
    yield from _runs(runs)


def _clashes(matrix: Matrix, known: Mapping[Pair, str]) -> Iterator[str]:
    extras, products = [[cell for cell in cells if cell.fate != "kept"] for cells in (matrix.pairs, matrix.beside)]
    yield f"\n**Of {len(matrix.pairs)} pairs of extras, {_but(len(matrix.pairs), len(extras))} install together. Of"
    yield f"{len(matrix.beside)} extras beside products, {_but(len(matrix.beside), len(products))} keep the product at its"
    yield "newest release.**"
    if not extras and not products:
        return
    yield "\n## What does not go together\n"
    yield "| extra | beside | what you get without a pin | with the newest pinned | why |"
    yield "|---|---|---|---|---|"
    sdks = {_extra(extra) for extra in (PLAIN, *SDKS)}
    rows: dict[tuple[str, ...], list[str]] = {}
    for cell in (*extras, *products):
        pinned = cell.reason or f"resolves, with {_list(cell.lower)}"
        given = f"{package(cell.beside)} {cell.versions[package(cell.beside)]}" if cell.versions else "an error"
        row = (_extra(cell.extra), given, pinned, known.get(cell.pair, "not known yet"))
        rows.setdefault(row, []).append(cell.beside)
    for (extra, given, pinned, why), beside in sorted(rows.items(), key=lambda row: row[0][0] not in sdks):
        yield f"| {extra} | {', '.join(f'`{each}`' for each in beside)} | {given} | {pinned} | {why} |"
    if {row[0] for row in rows} - sdks:
        yield _FRAMEWORKS.rstrip()


def _but(number: int, wrong: int) -> str:
    return f"all but {wrong}" if wrong else f"all {number}"


def _versions(project: Project, matrix: Matrix) -> Iterator[str]:
    yield _VERSIONS.rstrip()
    names = [extra for extra in SDKS if extra in project.extras]
    own = {extra: project.packages(extra)[0] for extra in names}
    heads = [f"`[{extra}]`: {own[extra]} {matrix.extras[extra][own[extra]]}" for extra in names]
    yield f"\n| product | {' | '.join(heads)} | the other extras |"
    yield "|---" * (len(names) + 2) + "|"
    cells = {cell.pair: cell for cell in matrix.beside}
    for product, versions in matrix.products.items():
        told = [_version(cells[extra, product], own[extra], matrix.extras[extra][own[extra]]) for extra in names]
        clashing = [
            _extra(extra)
            for extra in (PLAIN, *project.extras)
            if extra not in names and cells[extra, product].fate != "kept"
        ]
        others = f"not {', '.join(clashing)}" if clashing else "all"
        yield f"| `{product}` {versions[package(product)]} | {' | '.join(told)} | {others} |"


def _version(cell: Cell, sdk: str, newest: str) -> str:
    """Say which version of an SDK a product leaves; one that is not the newest is bold."""
    if cell.fate != "kept":
        return "not unpinned" if not cell.reason else "not together"
    return newest if cell.versions[sdk] == newest else f"**{cell.versions[sdk]}**"


def _lower(project: Project, matrix: Matrix) -> Iterator[str]:
    rows: dict[tuple[str, str], list[str]] = {}
    for cell in (*matrix.pairs, *matrix.beside):
        in_column = project.packages(cell.extra)[:1] if cell.extra in SDKS and cell.beside in matrix.products else ()
        for lower in dict.fromkeys(_family(each) for each in cell.lower if cell.fate == "kept"):
            if lower.package not in in_column:
                rows.setdefault((_extra(cell.extra), _list([lower])), []).append(f"`{cell.beside}`")
    if not rows:
        return
    yield _LOWER.rstrip()
    yield "\n| extra | beside | what is lower than without the other |"
    yield "|---|---|---|"
    merged: dict[tuple[str, str], list[str]] = {}
    for (extra, lower), beside in rows.items():
        merged.setdefault((extra, ", ".join(beside)), []).append(lower)
    for (extra, beside), lower in merged.items():
        yield f"| {extra} | {beside} | {', '.join(lower)} |"


def _family(lower: Lower) -> Lower:
    """Return the package that stands for those which are released together with it."""
    name = f"{_TOGETHER}api"
    if lower.package.startswith(_TOGETHER) and lower.package != name:
        return Lower("what comes with opentelemetry-api", "", "")
    return lower


def _list(lower: Iterable[Lower]) -> str:
    told = [f"{each.package} {each.together} instead of {each.alone}" if each.alone else each.package for each in lower]
    return ", ".join(told) or "all at their newest"


def _extra(extra: str) -> str:
    return f"`[{extra}]`" if extra else "none"


def _runs(runs: Sequence[Run]) -> Iterator[str]:
    if not runs:
        return
    yield _RUNS.rstrip()
    yield "\n| environment | versions | ran | result |"
    yield "|---|---|---|---|"
    for run in runs:
        yield f"| {run.title} | {run.shown_versions} | {run.shown_checks} | {run.shown_result} |"


_HEAD = """\
<!-- Made by benchmarks/compat/table.py. Change that, not this page. -->

# Beside other packages, measured

An extra goes into an environment that is there already. What becomes of it? `uv` resolves, for Python {python}, every pair of
Suture's extras, and every extra beside the newest release of each product: first the product alone, then with the extra
and nothing pinned. A product that came out lower is resolved again, pinned to its newest release. `make compat` makes this
page, and fails if something does not go together that `benchmarks/compat/_clashes.py` does not name, or the reverse.
"""
_FRAMEWORKS = """
An extra with a framework's name is that framework: where two frameworks clash, they do without Suture, too.
"""
_VERSIONS = """
## Which SDK you get beside a product

The head of a column has the newest release of the SDK. Bold: the product, or what it needs, does not take that one yet, so
the SDK is lower; Suture works with it.
"""
_LOWER = """
## What else is lower

The product keeps its newest release here, and so does Suture's extra, but for what this table says.
"""
_RUNS = """
## What was run

Each environment is made by `uv`, with the SDK at the lowest release that the extra allows, or at the newest of a major
version; the last ones are products, with the extras `openai`, `anthropic`, `google` and `mcp` put beside them. Against a
server on the loopback run: the programs of the README; for each SDK an agent with a tool over the provider's model, streamed,
also with a client of the SDK; `wrap`, plain and streamed, synchronous and not; an MCP server; and Suture in the framework.
"""
