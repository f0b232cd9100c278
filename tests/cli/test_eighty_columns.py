"""What a person sees in a terminal of 80 columns, and what a pipe gets: captures of one session with many commands.

The captures are `tests/cli/captures/*.txt`. After a change that is meant, write them anew with
`SUTURE_WRITE_CAPTURES=1 pytest tests/cli/test_eighty_columns.py`, and read the difference.
"""

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from suture.cli.main import _COMMANDS
from tests.cli.chat.terminal import Tmux
from tests.cli.program import COMMAND, DANGLING, GOOD, STOP, USER, result, run, turn, without, write_json, write_lines
from tests.cli.test_doctor import CLAUDE

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")

CAPTURES = Path(__file__).with_name("captures")
PROGRAM = """\
import json, os, sys
from suture.cli import main

for arguments, variables in json.load(sys.stdin):
    print("$", *(f"{name}={value}" for name, value in variables.items()), "suture", *arguments, flush=True)
    before = dict(os.environ)
    os.environ.update(variables)
    print(f"[{main(arguments)}]", flush=True)
    os.environ.clear()
    os.environ.update(before)
"""
"""Runs one command after the other in one process, on the terminal that it was started in."""

COMMANDS = [
    "check good.json",
    "check broken.json",
    "check logs good.json",
    "check -q broken.json",
    "check torn.jsonl",
    "check mixed.jsonl",
    "check --keep-going mixed.jsonl",
    "check missing.json",
    "check missing.json broken.json",
    "check session.jsonl",
    "view torn.jsonl -o page.html",
    "check --json broken.json",
    "repair logs",
    "repair --in-place logs",
    "repair --diff broken.json",
    "repair -q broken.json -o repaired.json",
    "repair crossed.json -o repaired.json",
    "repair torn.jsonl -o repaired.jsonl",
    "reduce --plan --max-tokens 5 --keep 0 good.json",
    "view broken.json -o page.html",
    "doctor session.jsonl",
    "doctor good.json",
    "chekc good.json",
    "check --profle mistral good.json",
    "check --wire antropic good.json",
]
COLOURS = [
    (["check", "broken.json"], {"NO_COLOR": "1"}),
    (["check", "broken.json", "--color", "never"], {}),
    (["check", "broken.json", "--color", "always"], {"NO_COLOR": "1"}),
    (["repair", "--diff", "broken.json"], {}),
    (["repair", "--diff", "broken.json", "--color", "never"], {}),
]
"""What is looked at with its colours."""


def fill(folder: Path) -> Path:
    """Write histories, good and broken, into a folder."""
    (folder / "logs" / "old").mkdir(parents=True)
    write_json(folder / "good.json", GOOD)
    write_json(folder / "broken.json", DANGLING)
    write_json(folder / "logs" / "a.json", GOOD)
    write_json(folder / "logs" / "old" / "b.json", DANGLING)
    crossed = [USER, turn("call_1", "call_2"), STOP, result("call_2"), result("call_9", "lost")]
    write_json(folder / "crossed.json", crossed)
    write_lines(folder / "session.jsonl", CLAUDE)
    torn = write_lines(folder / "torn.jsonl", GOOD)
    torn.write_bytes(torn.read_bytes() + b'{"role": "user", "content": "And no')
    lines = [json.dumps(GOOD), "{not json}", '"a text"', json.dumps(DANGLING)]
    (folder / "mixed.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


class Session(NamedTuple):
    """What a terminal of 80 columns shows after all commands: as it is seen, with lines joined, and with colours."""

    seen: str
    joined: str
    coloured: str


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """Run all commands in one terminal, one after the other."""
    folder = fill(tmp_path_factory.mktemp("work"))
    helped = [["--help"], *([command, "--help"] for command in _COMMANDS)]
    commands = [*((command.split(), {}) for command in COMMANDS), *((each, {}) for each in helped), *COLOURS]
    asked = write_json(tmp_path_factory.mktemp("asked") / "commands", commands)
    program = f"{shlex.join([sys.executable, '-c', PROGRAM])} < {shlex.quote(str(asked))}"
    terminal = Tmux(["sh", "-c", program], folder, {"PYTHONPATH": os.pathsep.join(sys.path)}, columns=80)
    try:
        assert terminal.wait() == 0
        return Session(terminal.rows(), terminal.screen(), terminal.rows("-e"))
    finally:
        terminal.close()


def between(text: str, first: str, following: str) -> str:
    """Return the part of a text from one command up to another."""
    return text[text.index(f"$ {first}\n") : text.index(f"$ {following}\n")]


def compare_with_capture(name: str, text: str) -> None:
    """Compare a text with a capture, or write it anew where that was asked for."""
    path = CAPTURES / f"{name}.txt"
    if "SUTURE_WRITE_CAPTURES" in os.environ:
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_commands_look_as_captured_at_eighty_columns(session: Session):
    compare_with_capture("terminal", session.seen[: session.seen.index("$ suture --help\n")])


def test_a_pipe_gets_the_same_as_plain_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(fill(tmp_path))
    parts: list[str] = []
    for command in COMMANDS:
        done = run(*command.split())
        parts.append(f"$ suture {command}\n{done.out}{done.err}[{done.status}]\n")
    compare_with_capture("pipe", "".join(parts))


def test_no_line_of_any_help_is_wider_than_eighty_columns(session: Session):
    rows, lines = (between(text, "suture --help", "NO_COLOR=1 suture check broken.json") for text in session[:2])
    assert rows == lines
    assert rows.count("usage: suture") == 1 + len(_COMMANDS)


def test_colours_follow_the_option_the_variables_and_the_terminal(session: Session):
    shown = re.split(r"(?m)^\$ .*\n", session.coloured)[-len(COLOURS) :]
    green = [bool(re.search(r"\x1b\[(?:\d+;)*32m", text)) for text in shown]
    assert green == [False, False, True, True, False]
    assert '\x1b[32m+ "role": "tool",' in shown[3]
    assert '\n+ "role": "tool",' in shown[4]


LONG = "call_1_an_id_as_long_as_some_gateways_write_them_0123456789"


@pytest.mark.parametrize("columns", [40, 80, 500])
@pytest.mark.parametrize("installed", [True, False], ids=["with rich", "without rich"])
@pytest.mark.parametrize("command", ["check long.json", "repair long.json -o repaired.json", "doctor session.jsonl"])
def test_reports_fold_at_the_width_of_the_terminal(tmp_path: Path, columns: int, installed: bool, command: str):
    write_json(tmp_path / "long.json", [USER, turn(LONG, arguments="{"), STOP, result("call_2", "lost")])
    write_lines(tmp_path / "session.jsonl", CLAUDE)
    variables = {"PYTHONPATH": os.pathsep.join(sys.path)} if installed else without("rich", tmp_path / "hidden")
    terminal = Tmux([*COMMAND, *command.split()], tmp_path, variables, columns=columns)
    try:
        assert terminal.wait() == (0 if "repair" in command else 1)
        rows, lines = terminal.rows(), terminal.screen()
    finally:
        terminal.close()
    assert rows == lines, "a line is wider than the terminal, which broke it anywhere"
    told = "".join(lines.split())
    assert installed or "Everytoolcallhasaresult." in told  # the columns of a table take it apart
    assert installed or "doctor" in command or LONG in told
    assert installed or columns < 500 or max(map(len, lines.splitlines())) > 100


@pytest.fixture
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tmux]:
    """Yield a shell in a terminal, in which `suture` is the command."""
    name: str = request.param
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "suture"
    command.write_text(f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    variables = {"PATH": path, "PS1": "> ", "PYTHONPATH": os.pathsep.join(sys.path), "HOME": str(tmp_path)}
    quiet = {"bash": ["--norc", "--noprofile"], "zsh": ["-f"], "fish": ["--no-config"]}[name]
    terminal = Tmux([name, *quiet], tmp_path, variables, columns=80)
    yield terminal
    terminal.close()


@pytest.mark.parametrize(
    ("shell", "load"),
    [
        ("bash", 'eval "$(suture completion bash)"'),
        ("zsh", 'autoload -U compinit; compinit -u; eval "$(suture completion zsh)"'),
        ("fish", "suture completion fish | source"),
    ],
    indirect=["shell"],
    ids=["bash", "zsh", "fish"],
)
def test_a_shell_completes_commands_and_options(shell: Tmux, load: str):
    shell.enter(f"{load}; echo loa''ded")
    shell.see("loaded")
    shell.type("suture rep\t")
    shell.see("suture repair")
    shell.type("--in-\t")
    shell.see("suture repair --in-place")
