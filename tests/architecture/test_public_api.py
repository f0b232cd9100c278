"""What the package offers is written down, sorted, resolvable and explained, and its examples run."""

import ast
import doctest
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import suture
from suture import errors
from tests.guest_modules import is_guest

SOURCE = Path(__file__).parents[2] / "src"
ROOMS = sorted(init.parent.name for init in (SOURCE / "suture").glob("*/__init__.py"))
PUBLIC: list[str] = vars(suture)["__all__"]


def module_name(file: Path) -> str:
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# A `__main__` is a program: importing it would run it. `_mcp_line_1` needs a release of mcp that is not installed.
# A guest's module needs its framework: see tests/guests.
MODULES = sorted(
    module_name(file)
    for file in SOURCE.rglob("*.py")
    if file.stem not in {"__main__", "_mcp_line_1"} and not is_guest(module_name(file))
)


def in_order(names: list[str]) -> list[str]:
    """Sort names as ruff sorts `__all__`: constants, then classes, then the rest."""
    return sorted(names, key=lambda name: (not (len(name) > 1 and name.isupper()), not name[0].isupper(), name))


def written_names(init: Path) -> list[str] | None:
    """Return the literal that a module assigns to `__all__`, if it assigns one."""
    for node in ast.parse(init.read_bytes()).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        if node_value := getattr(node, "value", None):
            for target in targets:
                if isinstance(target, ast.Name) and target.id == "__all__":
                    return list(ast.literal_eval(node_value))
    return None


def own_docstring(thing: object) -> str:
    """Return what was written for this very thing; a dataclass's generated signature does not count."""
    doc = vars(thing).get("__doc__") if inspect.isclass(thing) else getattr(thing, "__doc__", None)
    if not doc or (inspect.isclass(thing) and doc.startswith(f"{thing.__name__}(")):
        return ""
    return doc.strip()


def is_documentable(thing: object) -> bool:
    return inspect.isclass(thing) or inspect.isroutine(thing) or inspect.ismodule(thing)


def test_the_public_names_are_sorted_and_unique():
    assert in_order(list(set(PUBLIC))) == PUBLIC


def test_type_checkers_are_shown_what_is_offered_and_its_home():
    tree = ast.parse((SOURCE / "suture" / "__init__.py").read_bytes())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    shown = {
        alias.name: importlib.import_module(str(node.module))
        for node in imports
        for alias in node.names
        if alias.name == alias.asname and node.module != "suture"
    }
    shown |= dict.fromkeys(errors.__all__, errors)  # all of these are imported at once
    assert sorted(shown) == PUBLIC
    assert [name for name, home in shown.items() if getattr(suture, name) is not getattr(home, name)] == []
    rooms = [alias.asname for node in imports if node.module == "suture" for alias in node.names if alias.asname]
    script = "import suture, types; print([type(getattr(suture, room)) is types.ModuleType for room in {}])"
    seen = subprocess.run([sys.executable, "-c", script.format(rooms)], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == str([True] * len(rooms))
    assert "codecs" in rooms


def test_dir_shows_every_public_name():
    assert set(PUBLIC) <= set(dir(suture))


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_resolves(name: str):
    assert getattr(suture, name) is getattr(suture, name)


@pytest.mark.parametrize("name", sorted({*PUBLIC} & {*ROOMS}))
def test_a_public_name_that_is_also_a_room_is_never_hidden_by_the_room(name: str):
    script = f"import importlib, suture; importlib.import_module('suture.{name}'); print(type(suture.{name}))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    assert "module" not in result.stdout


def test_a_name_that_is_not_offered_raises_attribute_error():
    missing = "no_such_name"
    with pytest.raises(AttributeError, match=missing):
        getattr(suture, missing)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_class_or_function_has_a_docstring(name: str):
    thing = getattr(suture, name)
    assert not is_documentable(thing) or own_docstring(thing)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_lists_its_names_literally_sorted_and_unique(room: str):
    names = written_names(SOURCE / "suture" / room / "__init__.py")
    assert names is not None
    assert names == in_order(list(set(names)))


@pytest.mark.parametrize("room", ROOMS)
def test_every_name_that_a_room_lists_resolves(room: str):
    door = importlib.import_module(f"suture.{room}")
    assert [name for name in door.__all__ if not hasattr(door, name)] == []


@pytest.mark.parametrize("name", PUBLIC)
def test_the_examples_of_a_public_name_run(name: str):
    thing = getattr(suture, name)
    if not is_documentable(thing):
        return
    module = thing if inspect.ismodule(thing) else sys.modules[thing.__module__]
    globs = {**vars(module), "suture": suture}
    runner = doctest.DocTestRunner()
    for example in doctest.DocTestFinder().find(thing, name, module=module, globs=globs):
        runner.run(example)
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_in_a_module_run(module: str):
    assert doctest.testmod(importlib.import_module(module)).failed == 0
