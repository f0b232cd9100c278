"""The import contracts in pyproject.toml hold, and they bite."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINT_IMPORTS = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"

VIOLATIONS = [
    pytest.param("wires/__init__.py", "import suture.repair", id="a wire that knows the repair"),
    pytest.param("codecs/__init__.py", "import suture.profiles", id="a room that knows its sibling"),
    pytest.param("providers/anthropic/wire.py", "import suture.providers.gemini", id="a provider that knows another"),
    pytest.param("repair/__init__.py", "import time", id="a repair that reads the clock"),
    pytest.param("messages/__init__.py", "import openai", id="a value that knows a vendor"),
    pytest.param("wires/__init__.py", "def f():\n    import os", id="a pure room that hides an import"),
    pytest.param("attic.py", "", id="a room without a place in the layers"),
]


def check_contracts(source: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter with the project's contracts on the package below `source`."""
    script = f"import sys; sys.path.insert(0, {str(source)!r}); {LINT_IMPORTS}"
    return subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_package_keeps_every_contract():
    result = check_contracts(ROOT / "src")
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(("file", "line"), VIOLATIONS)
def test_a_violation_breaks_a_contract(tmp_path: Path, file: str, line: str):
    shutil.copytree(ROOT / "src" / "suture", tmp_path / "suture", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "suture" / file).open("a", encoding="utf-8") as module:
        module.write(f"\n{line}\n")
    result = check_contracts(tmp_path)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "BROKEN" in result.stdout, result.stdout + result.stderr
