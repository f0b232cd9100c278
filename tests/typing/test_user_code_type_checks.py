"""What users write passes pyright and mypy, both strict, and runs; what is wrong is refused where it is wrong.

`programs/` holds what users write. In `wrong/` every line that must be refused says so: `# wrong: why`.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
PROGRAMS = sorted(HERE.glob("programs/*.py"))
WRONG = sorted(HERE.glob("wrong/*.py"))
MARK = re.compile(r"# wrong: \S")

Findings = dict[str, list[str]]
"""What a checker said, by `folder/file.py:line`."""


def run_checker(checker: str, *arguments: str, folder: Path) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", checker, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    # 0: nothing was found; 1: something was. Anything else, or something on stderr, means that it did not check.
    assert (ran.returncode in {0, 1}, ran.stderr) == (True, ""), ran.stdout + ran.stderr
    return ran.stdout


def pyright(folder: Path) -> list[tuple[str, int, str]]:
    settings = {"include": ["programs", "wrong"], "typeCheckingMode": "strict", "pythonVersion": "3.11"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    said = json.loads(run_checker("pyright", "--outputjson", "--pythonpath", sys.executable, folder=folder))
    assert said["summary"]["filesAnalyzed"] == len(PROGRAMS) + len(WRONG)
    return [
        (Path(each["file"]).relative_to(folder).as_posix(), each["range"]["start"]["line"] + 1, each["message"])
        for each in said["generalDiagnostics"]
    ]


def mypy(folder: Path) -> list[tuple[str, int, str]]:
    options = ("--strict", "--python-version=3.11", "--config-file=", "--explicit-package-bases", "--output=json")
    said = run_checker("mypy", *options, "programs", "wrong", folder=folder)
    found: list[dict[str, Any]] = [json.loads(line) for line in said.splitlines()]
    return [
        (Path(each["file"]).as_posix(), each["line"], each["message"]) for each in found if each["severity"] == "error"
    ]


@pytest.fixture(scope="session", params=[pyright, mypy])
def findings(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Findings:
    """What a checker says about all files, in a folder of their own: as a user's project, with Suture installed."""
    folder = tmp_path_factory.mktemp("project").resolve()
    for name in ("programs", "wrong"):
        shutil.copytree(HERE / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    check: Callable[[Path], list[tuple[str, int, str]]] = request.param
    found: Findings = {}
    for file, line, message in check(folder):
        found.setdefault(f"{file}:{line}", []).append(message)
    return found


def test_what_users_write_checks(findings: Findings):
    assert {place: said for place, said in findings.items() if place.startswith("programs/")} == {}


def test_what_is_wrong_is_refused_at_its_line_and_nowhere_else(findings: Findings):
    marked = {
        f"wrong/{file.name}:{number}": line.strip()
        for file in WRONG
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if MARK.search(line)
    }
    refused = {place: said for place, said in findings.items() if place.startswith("wrong/")}
    assert len(marked) > 100
    assert {place: line for place, line in marked.items() if place not in refused} == {}
    assert {place: said for place, said in refused.items() if place not in marked} == {}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_what_users_write_runs(program: Path, tmp_path: Path):
    ran = subprocess.run(
        [sys.executable, "-W", "error", program], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert (ran.returncode, ran.stderr) == (0, "")
