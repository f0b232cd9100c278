"""Write docs/compatibility-measured.md: which environments Suture's extras go into, and what runs there.

python benchmarks/compat/table.py PAGE      # what `make compat` does
python benchmarks/compat/table.py PAGE --pyproject FILE --resolve-only   # for the extras of another commit

It ends with 1 if something does not go together that `_clashes.py` does not name, if something named there does, if a
program failed, or if `uv lock` does.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from _clashes import read_clashes
from _environments import ROOT, run_all
from _judging import compare
from _matrix import resolve_all
from _page import write_page
from _requirements import read_project
from _resolving import find_lock_error, show


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("page", type=Path, help="where to write the page")
    parser.add_argument("--pyproject", type=Path, default=ROOT / "pyproject.toml", help="where the extras are read")
    parser.add_argument("--resolve-only", action="store_true", help="make no environments")
    given = parser.parse_args(arguments)
    project, known = read_project(given.pyproject), read_clashes()
    matrix = resolve_all(project)
    runs = [] if given.resolve_only else list(run_all(project, matrix))
    given.page.write_text("\n".join(write_page(project, matrix, known, runs)) + "\n", encoding="utf-8")
    verdict = compare([*matrix.pairs, *matrix.beside], known)
    wrong = [f"[{extra}] and {beside} do not go together, and no clash says so" for extra, beside in verdict.new]
    wrong += [f"[{extra}] and {beside} go together: the clash is gone" for extra, beside in verdict.vanished]
    wrong += [f"{run.title}: {name}: {error}" for run in runs for name, error in run.failed.items()]
    if error := find_lock_error(ROOT):
        wrong.append(f"uv lock fails: {error}")
    for line in wrong:
        show(line)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
