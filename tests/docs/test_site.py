"""The site has a page of every module that users import from, and leads to every page of docs/."""

import ast
import re
from pathlib import Path

from tests.docs.pages import DOCS, ROOT

SOURCE = ROOT / "src" / "suture"
INNER = {"suture.agent", "suture.cli", "suture.kernel", "suture.language", "suture.providers"} | {
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


def documented_names() -> set[str]:
    """Return the classes, functions and values of the package that have a docstring, which the site shows."""
    found: set[str] = set()
    for file in SOURCE.rglob("*.py"):
        body = ast.parse(file.read_text(encoding="utf-8")).body
        body = [inner for node in body for inner in (node.body if isinstance(node, ast.If) else [node])]
        for node, following in zip(body, [*body[1:], None], strict=True):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found |= {node.name} if ast.get_docstring(node) else set()
            elif isinstance(following, ast.Expr) and isinstance(node, ast.Assign | ast.AnnAssign):
                found |= {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
    return found


def test_every_public_name_has_an_entry():
    shown = documented_names()
    for module in shown_modules():
        path = SOURCE.parent.joinpath(*module.split("."))
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                names = [each.value for each in ast.walk(node.value) if isinstance(each, ast.Constant)]
                assert not [name for name in names if name not in shown], module
