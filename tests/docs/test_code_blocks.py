"""Every example on the pages runs and prints what the page shows.

A `text` block right behind a `python` block is what that block prints; without one it must print nothing.
In a `console` block the lines behind `$ command` are its output. `$ cat FILE` also makes the file, where
there is none yet: the page shows what is in it. A line that is only `…` stands for any number of lines.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import suture
from tests.docs.pages import ROOT, RUN, Block, blocks, name
from tests.docs.running import run_python
from tests.models.local.asking import needs_model

PYTHON = [
    pytest.param(page, marks=needs_model if any('model="local"' in block.body for block in found) else ())
    for page in RUN
    if (found := [block for block in blocks(page) if block.info == "python"])
]
CONSOLE = [page for page in RUN if any(block.info == "console" for block in blocks(page))]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run the examples in a directory of their own, with the samples that a clone has."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    yield
    suture.set_language("en")


@pytest.mark.parametrize("page", PYTHON, ids=name)
def test_the_python_examples_of_a_page_run_in_order_and_print_what_it_shows(page: Path):
    run_python(page)


def test_a_python_block_is_run_or_says_that_it_is_not():
    infos = {block.info for page in RUN for block in blocks(page) if block.language == "python"}
    assert infos <= {"python", "python no-run", "python guest"}  # the last is run in tests/guests


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block, with the output that is shown for it."""
    for part in re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def make_files(block: Block) -> None:
    for command, output in commands(block):
        shown = re.fullmatch(r"cat ([\w.-]+)", command)
        if shown and not Path(shown[1]).exists():
            Path(shown[1]).write_text(output, encoding="utf-8")


def run_session(block: Block) -> list[str]:
    """Run the commands of a block in one shell, each with the exit status of the one before in `$?`."""
    mark = "-- end of a command --"
    script = "exec 2>&1\n" + "".join(
        f"{command}\n__status=$?; echo '{mark}'; (exit $__status)\n" for command, _ in commands(block)
    )
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        ["sh", "-c", script],
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return ended.stdout.split(f"{mark}\n")[:-1]


def matches(output: str, shown: str) -> bool:
    pattern = "".join(
        r"(?:.*\n)*" if line == "…\n" else re.escape(line) for line in shown.rstrip("\n").splitlines(keepends=True)
    )
    return re.fullmatch(pattern, output.rstrip("\n")) is not None


@pytest.mark.parametrize("page", CONSOLE, ids=name)
def test_the_commands_of_a_page_print_what_it_shows(page: Path):
    for block in blocks(page):
        if block.info != "console":
            continue
        make_files(block)
        shown = list(commands(block))
        printed = run_session(block)
        assert len(printed) == len(shown)
        for (command, expected), output in zip(shown, printed, strict=True):
            if not matches(output, expected):
                assert output == expected, f"{name(page)}, line {block.line}: $ {command}"


def test_an_output_that_differs_is_noticed():
    assert matches("a\nb\n", "a\nb\n")
    assert matches("a\nb\nc\nd\n", "a\n…\nd\n")
    assert not matches("a\nb\n", "a\n")
    assert not matches("a\nb\nc\n", "a\n…\nd\n")
