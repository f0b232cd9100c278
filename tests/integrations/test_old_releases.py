"""A guest that finds a release of its framework that is too old says so, however that release is broken."""

import ast
import os
import re
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest

ROOM = Path(__file__).parents[2] / "src" / "suture" / "integrations"
GUESTS = {
    "langchain": ("langchain", "langchain"),
    "pydantic_ai": ("pydantic-ai", "pydantic_ai"),
    "openai_agents": ("openai-agents", "agents"),
    "google_adk": ("google-adk", "google.adk"),
    "strands": ("strands", "strands"),
    "agent_framework": ("agent-framework", "agent_framework"),
}
"""By module: the extra, and the framework's package."""


def bound(extra: str) -> tuple[str, str]:
    """Return the framework that an extra installs, and its lowest release."""
    [wanted] = [each for each in requires("suture") or () if re.search(rf"extra == ['\"]{extra}['\"]", each)]
    named = re.match(r"([\w.-]+)>=([\d.]+)", wanted)
    assert named is not None
    return named[1], named[2]


def modules(guest: str, package: str) -> set[str]:
    """Return the modules of the framework that the guest imports."""
    path = ROOM / guest
    files = sorted(path.glob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    named = [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    return {name for name in named if f"{name}.".startswith(f"{package}.")}


@pytest.mark.parametrize("flaw", ["without its modules", "without its names", "without what it needs itself"])
@pytest.mark.parametrize("guest", GUESTS)
def test_an_old_release_is_named_with_the_lowest_that_is_supported(guest: str, flaw: str, tmp_path: Path):
    extra, package = GUESTS[guest]
    framework, needed = bound(extra)
    for module in {package, *(modules(guest, package) if flaw == "without its names" else ())}:
        folder = tmp_path.joinpath(*module.split("."))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").write_text("import a_stranger\n" * (flaw == "without what it needs itself"))
    about = tmp_path / f"{framework.replace('-', '_')}-0.0.9.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {framework}\nVersion: 0.0.9\n")

    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    ran = subprocess.run(
        [sys.executable, "-c", f"from suture.integrations.{guest} import *"],
        capture_output=True, text=True, encoding="utf-8", env={**os.environ, "PYTHONPATH": paths}, check=False,
    )  # fmt: skip
    error = ran.stderr.strip().rpartition("\n")[2]
    assert error.startswith("suture.errors.ConfigError: ")
    assert f" {framework}>={needed} (extra {extra}), and {framework} 0.0.9 is installed" in error
