"""Who iterates a stream closes it, in the task that read it."""

import ast
from pathlib import Path

import pytest

import suture

HOME = Path(suture.__file__).parent
ROOMS = ("kernel", "models", "middleware", "agent", "integrations", "testing")
FILES = [path for room in ROOMS for path in sorted((HOME / room).rglob("*.py"))]


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


def names_closed_on_failure(tree: ast.AST) -> set[str]:
    """Streams that are read to their end, or closed by a handler: `except …: await close(stream)`."""
    calls = [
        node.value
        for handler in ast.walk(tree)
        if isinstance(handler, ast.ExceptHandler)
        for node in ast.walk(handler)
        if isinstance(node, ast.Await) and isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "close"
    ]
    return {ast.unparse(call.args[0]) for call in calls}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HOME)))
def test_every_stream_that_is_iterated_is_closed(path: Path) -> None:
    tree = ast.parse(path.read_text())
    bound = names_bound_by_closing(tree) | names_closed_on_failure(tree)
    open_loops = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.AsyncFor)
        and not (isinstance(node.iter, ast.Name) and (node.iter.id in bound or node.iter.id == "self"))
    ]
    assert open_loops == []
