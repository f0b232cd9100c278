"""Files and functions stay small enough to be read in one go, and modules say what they hold."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "suture"
FILES = sorted(PACKAGE.rglob("*.py"))

LONGEST_FILE = 600
LONGEST_FUNCTION = 50
NAMES_THAT_SAY_NOTHING = {"base", "common", "helpers", "manager", "utils"}


def relative(file: Path) -> str:
    return file.relative_to(PACKAGE).as_posix()


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
    return (function.end_lineno or function.lineno) - first + 1


@pytest.mark.parametrize("file", FILES, ids=relative)
def test_a_file_is_no_longer_than_600_lines(file: Path):
    assert len(file.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE


@pytest.mark.parametrize("file", FILES, ids=relative)
def test_a_function_is_no_longer_than_50_lines(file: Path):
    functions = [
        node
        for node in ast.walk(ast.parse(file.read_bytes()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert {node.name: length(node) for node in functions if length(node) > LONGEST_FUNCTION} == {}


def test_no_module_has_a_name_that_says_nothing():
    modules = [path for path in PACKAGE.rglob("*") if path.is_dir() or path.suffix == ".py"]
    named_for_nothing = [relative(path) for path in modules if path.stem.strip("_").lower() in NAMES_THAT_SAY_NOTHING]
    assert named_for_nothing == []
