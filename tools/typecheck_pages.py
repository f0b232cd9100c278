"""Check the pages' programs as a reader's own: `python -m tools.typecheck_pages FOLDER PYTHON`.

PYTHON has the built wheel installed, and beside it what the programs import. The programs of a page are one file in
FOLDER, at their own lines, checked by mypy and pyright; what these find is told as page:line. A mark exempts a block:
`no-run` and `guest` are parts of a program, `others` needs frameworks that `make lint` does not install.
"""

import asyncio
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.docs.pages import DOCS, ROOT, blocks, name

PARTLY_ANNOTATED = {
    # Their hooks and small functions stand as people first write them; tests/typing/programs has both ways in full.
    *("deploying", "durability", "from-eino", "middleware", "reduction", "repair", "tools", "wires"),
    # They subclass other frameworks' classes, whose signatures are long and not ours.
    *("guests/agent-framework", "guests/google-adk", "guests/langchain", "guests/openai-agents", "guests/others"),
    "guests/pydantic-ai",
}
"""The pages in `docs/` whose functions need no annotations."""
EXEMPT = ("guests/strands",)
"""The pages in `docs/` that are not checked: a stand-in for a model of strands' is no whole `Model` to a checker."""
MYPY = """[mypy]
strict = true
# A page's blocks may each have a `main`.
disable_error_code = no-redef
"""
LOOSE = """
disallow_untyped_defs = false
disallow_incomplete_defs = false
disallow_untyped_calls = false
"""
PYRIGHT = {"typeCheckingMode": "standard", "pythonVersion": "3.11", "reportRedeclaration": False}


def as_module(page: str) -> str:
    """Return the name of the module for a page's programs."""
    return re.sub(r"\W", "_", page)


def take_programs(page: Path) -> str:
    """Return the programs of a page, with empty lines for all that stands between them."""
    lines = [""] * (page.read_text(encoding="utf-8").count("\n") + 1)
    for block in blocks(page):
        if block.info == "python":
            body = block.body.splitlines()
            lines[block.line - 1 : block.line - 1 + len(body)] = body
    return "\n".join(lines)


def write_programs(pages: Iterable[Path], folder: Path) -> dict[str, str]:
    """Write the programs into a folder, with the checkers' settings; return the pages' names by the files' names."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.py"):
        old.unlink()
    files: dict[str, str] = {}
    for page in pages:
        program = take_programs(page)
        if program.strip():
            module = as_module(name(page))
            files[f"{module}.py"] = name(page)
            (folder / f"{module}.py").write_text(program, encoding="utf-8")
    partly = ",".join(f"{as_module(f'docs/{page}.md')}" for page in sorted(PARTLY_ANNOTATED))
    (folder / "mypy.ini").write_text(f"{MYPY}[mypy-{partly}]\n{LOOSE}", encoding="utf-8")
    (folder / "pyrightconfig.json").write_text(json.dumps(PYRIGHT), encoding="utf-8")
    return files


async def run(folder: Path, checker: str, *arguments: str) -> str:
    """Run a checker in the folder; return what it wrote."""
    command = (sys.executable, "-m", checker, *arguments)
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    said, failed = await process.communicate()
    if process.returncode not in (0, 1):  # 0: nothing was found; 1: something was
        raise SystemExit(f"{checker} did not check:\n{said.decode()}{failed.decode()}")
    return said.decode()


async def run_mypy(folder: Path, python: Path) -> Iterator[tuple[str, int, str]]:
    """Return what mypy finds: file, line, words."""
    said = await run(folder, "mypy", "--output=json", f"--python-executable={python}", ".")
    found = [json.loads(line) for line in said.splitlines() if line]  # one empty line if nothing was found
    return ((each["file"], each["line"], each["message"]) for each in found if each["severity"] == "error")


async def run_pyright(folder: Path, python: Path) -> Iterator[tuple[str, int, str]]:
    """Return what pyright finds: file, line, words."""
    found = json.loads(await run(folder, "pyright", "--outputjson", "--pythonpath", str(python)))["generalDiagnostics"]
    return (
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1, each["message"])
        for each in found
        if each["severity"] == "error"
    )


async def check(pages: Iterable[Path], folder: Path, python: Path) -> list[str]:
    """Return what is wrong with the programs of some pages, one line each."""
    files = write_programs(pages, folder)
    print(f"checking the programs of {len(files)} pages")
    both = await asyncio.gather(*(checker(folder, python) for checker in (run_mypy, run_pyright)))
    found = zip(("mypy", "pyright"), both, strict=True)
    return sorted(
        f"{files.get(file, file)}:{line}: {words} ({checker})" for checker, said in found for file, line, words in said
    )


def main(folder: str, python: str) -> int:
    exempt = {DOCS / f"{page}.md" for page in EXEMPT}
    pages = [ROOT / "README.md", *(page for page in sorted(DOCS.rglob("*.md")) if page not in exempt)]
    wrong = asyncio.run(check(pages, ROOT / folder, ROOT / python))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
