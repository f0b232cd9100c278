"""Another program of the benchmark, in an environment of its own, that answers questions: one JSON object a line."""

import json
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, cast

__all__ = ["Failed", "Program", "guests_python", "peer_python"]

_ROOT = Path(__file__).parents[1]


class Failed(Exception):
    """A program could not do what it was asked for."""


class Program:
    """A program that waits to be asked. Its first line says which version of what it is."""

    def __init__(self, name: str, python: Path | str, program: Path, stack: ExitStack, *arguments: str) -> None:
        self.name = name
        process = subprocess.Popen(
            [str(python), str(program), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._process = stack.enter_context(process)
        self.version: str = self._read()["version"]

    def ask(self, **question: Any) -> dict[str, Any]:
        """Ask, and wait for the answer."""
        writer = cast("IO[str]", self._process.stdin)
        try:
            print(json.dumps(question), file=writer, flush=True)
        except BrokenPipeError:
            raise Failed(f"{self.name} fails; its own words are above") from None
        return self._read()

    def _read(self) -> dict[str, Any]:
        line = cast("IO[str]", self._process.stdout).readline()
        if not line:
            raise Failed(f"{self.name} fails; its own words are above")
        return json.loads(line)


def peer_python(name: str) -> Path | None:
    """Return the interpreter of a peer's environment, which `make bench` makes; `None` where it is not there."""
    return _python(f".venv-bench-{name}")


def guests_python() -> Path | None:
    """Return the interpreter of the environment that holds the frameworks that Suture is a guest in, if it is there."""
    return _python(".venv-guests")


def _python(environment: str) -> Path | None:
    python = _ROOT / environment / "bin" / "python"
    return python if python.exists() else None
