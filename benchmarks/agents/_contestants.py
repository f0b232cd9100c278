"""The contestants, each a process that waits to be asked for a run."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from _measure import say

from agents._contest import WINDOW

__all__ = ["OURS", "Contestant", "Failed", "Sample", "contestants"]

OURS = "ours"
_HERE = Path(__file__).parent
_ROOT = _HERE.parents[1]
_PEERS = ("agent-framework", "langchain", "pydantic-ai")


class Failed(Exception):
    """A contestant could not do what it was asked for."""


class Sample(NamedTuple):
    """CPU seconds of a step: of all of them, of the first ones, of the last ones."""

    step: float
    first: float
    last: float


class Contestant:
    """A program that runs an agent for so many steps."""

    def __init__(self, name: str, python: Path | str, program: str, stack: ExitStack) -> None:
        self.name = name
        command = [str(python), str(_HERE / program)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._process = stack.enter_context(process)
        self.version: str = self._read()["version"]

    def run(self, variant: str, steps: int) -> Sample:
        writer = cast("IO[str]", self._process.stdin)
        print(json.dumps({"variant": variant, "steps": steps}), file=writer, flush=True)
        answer = self._read()
        return Sample(answer["step"], answer["first"], answer["last"])

    def _read(self) -> dict[str, Any]:
        line = cast("IO[str]", self._process.stdout).readline()
        if not line:
            raise Failed(f"{self.name} fails; its own words are above")
        return json.loads(line)


@contextmanager
def contestants() -> Iterator[tuple[dict[str, Contestant], list[str]]]:
    """Start all contestants; give also what is to be said of those that could not start."""
    with ExitStack() as stack:
        running = {
            name: Contestant(name, sys.executable, program, stack)
            for name, program in ((OURS, "ours.py"), ("hand-written", "hand_written.py"))
        }
        absent: list[str] = []
        for name in _PEERS:
            python = _ROOT / f".venv-bench-{name}" / "bin" / "python"
            say(f"starting {name}")
            if not python.exists():
                absent.append(f"{name}: not installed")
                continue
            try:
                peer = Contestant(name, python, f"peer_{name.replace('-', '_')}.py", stack)
                for variant in ("noops", "bare"):
                    peer.run(variant, WINDOW)
            except Failed:  # what is installed is the newest release, which may not be what was written for
                absent.append(f"{name}: fails; its own words are on standard error")
            else:
                running[name] = peer
        yield running, absent
