"""Who iterates a stream closes it, in the task that read it."""

import ast
from pathlib import Path

import pytest

import suture

HOME = Path(suture.__file__).parent
FILES = [
    path
    for room in ("kernel", "middleware", "agent", "testing")
    for path in sorted((HOME / room).rglob("*.py"))
]


def names_bound_by_closing(tree: ast.AST) -> set[str]:
    bound: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncWith):
            for item in node.items:
                call, name = item.context_expr, item.optional_vars
                closes = isinstance(call, ast.Call) and ast.unparse(call.func) in {"closing", "aclosing"}
                if closes and isinstance(name, ast.Name):
                    bound.add(name.id)
    return bound


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HOME)))
def test_every_stream_that_is_iterated_is_closed(path: Path) -> None:
    tree = ast.parse(path.read_text())
    bound = names_bound_by_closing(tree)
    open_loops = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.AsyncFor)
        and not (isinstance(node.iter, ast.Name) and (node.iter.id in bound or node.iter.id == "self"))
    ]
    assert open_loops == []
