"""The pure rooms touch nothing but their arguments: by what they import, by what they call, and when run."""

import ast
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
ROOMS = (
    "_text",
    "errors",
    "language",
    "messages",
    "wires",
    "profiles",
    "providers",
    "repair",
    "reduction",
    "codecs",
    "tokens",
)
EFFECTFUL_BUILTINS = {"__import__", "breakpoint", "compile", "eval", "exec", "input", "open", "print"}


def pure_contract() -> dict[str, list[str]]:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = config["tool"]["importlinter"]["contracts"]
    return next(contract for contract in contracts if contract["id"] == "pure")


def pure_files() -> list[Path]:
    modules = [SOURCE / "suture" / f"{room}.py" for room in ROOMS]
    packages = [file for room in ROOMS for file in (SOURCE / "suture" / room).rglob("*.py")]
    return sorted([*(file for file in modules if file.exists()), *packages])


def relative(file: Path) -> str:
    return file.relative_to(SOURCE).as_posix()


def imported_packages(tree: ast.AST) -> Iterator[str]:
    """Yield the top-level name of everything imported, wherever the import statement stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


def called_builtins(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


def test_the_import_contract_covers_every_pure_room():
    assert sorted(pure_contract()["source_modules"]) == sorted(f"suture.{room}" for room in ROOMS)


@pytest.mark.parametrize("file", pure_files(), ids=relative)
def test_a_pure_room_imports_nothing_that_has_effects(file: Path):
    forbidden = set(pure_contract()["forbidden_modules"])
    assert {"asyncio", "os", "random", "socket", "subprocess", "time"} <= forbidden
    assert forbidden & set(imported_packages(ast.parse(file.read_bytes()))) == set()


@pytest.mark.parametrize("file", pure_files(), ids=relative)
def test_a_pure_room_calls_no_builtin_that_has_effects(file: Path):
    assert EFFECTFUL_BUILTINS & set(called_builtins(ast.parse(file.read_bytes()))) == set()


WATCHED_RUN = """
import json, sys
import suture

def history():
    call = {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": '{"q": "x"'}}
    return [
        {"role": "user", "content": "Look it up."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_0", "content": "an answer to nothing"},
        {"role": "user", "content": "Never mind."},
    ]

def run():
    suture.check(history())
    return suture.repair(history()).changed

run()  # whatever is imported on first use has been imported now
seen, armed = [], True
WATCHED = ("ctypes.", "os.", "shutil.", "socket.", "sqlite3.", "subprocess.", "tempfile.", "urllib.")

def watch(event, arguments):
    if armed and (event == "open" or event.startswith(WATCHED)):
        seen.append(event)

sys.addaudithook(watch)
CONTROL
changed = run()
armed = False
print(json.dumps({"changed": changed, "seen": seen}))
"""


def watched_run(control: str = "") -> dict[str, object]:
    """Repair and check a broken history in a fresh process that notes every audit event with effects."""
    script = WATCHED_RUN.replace("CONTROL", control)
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_repair_and_check_open_no_file_no_socket_and_no_process():
    assert watched_run() == {"changed": True, "seen": []}


def test_the_watch_would_have_noticed_an_opened_file():
    assert watched_run(control="open(sys.executable, 'rb').close()") == {"changed": True, "seen": ["open"]}
