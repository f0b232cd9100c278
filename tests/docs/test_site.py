"""The site has a page of every module that users import from, and leads to every page of docs/."""

import ast
import re
from pathlib import Path

from tests.docs.pages import DOCS, ROOT

SOURCE = ROOT / "src" / "suture"
INNER = {"suture.agent", "suture.cli", "suture.codecs", "suture.kernel", "suture.language", "suture.providers"} | {
    "suture.integrations",
    "suture.integrations.clients",
    "suture.integrations.compaction",
    "suture.integrations.guest",
    "suture.repair",
    "suture.sessions",
}
"""Modules whose public names are those of `suture`, or that no user imports from."""


def shown_modules() -> set[str]:
    tree = ast.parse((ROOT / "tools" / "site.py").read_text(encoding="utf-8"))
    (names,) = [
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "MODULES"
    ]
    return set(ast.literal_eval(names))


def has_names(file: Path) -> bool:
    return bool(re.search(r"^ *__all__ = ", file.read_text(encoding="utf-8"), re.MULTILINE))


def test_every_public_module_has_a_page():
    files = [
        *SOURCE.glob("*.py"),
        *SOURCE.glob("*/__init__.py"),
        *SOURCE.glob("integrations/*.py"),
        *SOURCE.glob("integrations/*/__init__.py"),
    ]
    parts = [file.relative_to(SOURCE.parent).with_suffix("").parts for file in files if has_names(file)]
    public = {".".join(each[:-1] if each[-1] == "__init__" else each) for each in parts}
    assert shown_modules() == public - INNER


def test_every_page_stands_in_the_navigation():
    listed = set(re.findall(r"^ +- ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    root = {"index.md", "security.md", "contributing.md", "changelog.md"}
    assert listed - root == {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
