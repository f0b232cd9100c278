"""Programs that use a store in a process of their own, and are spoken with through pipes."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PRELUDE = """
import asyncio, os, sys
from suture.errors import SutureError
from suture.stores import PostgresStore, SQLiteStore, StoreConflictError, StoreError

path = sys.argv[1]

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

def hear():
    line = sys.stdin.readline()
    if not line:
        os._exit(3)  # the test has gone
    return line.strip()

def batch(run, first, number):
    # What append `number` writes: one to three records, each of which says where it belongs.
    size = number % 3 + 1
    return [f"{run} {first + part} {number} {part}/{size}".encode() * (number % 5 * 40 + 1) for part in range(size)]
"""


@contextmanager
def program(script: str, path: Path | str) -> Iterator[subprocess.Popen[str]]:
    """Run `script` with the path of a store; kill it in the end, whatever happened."""
    command = [sys.executable, "-W", "error", "-c", PRELUDE + script, str(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, bufsize=1) as process:
        try:
            yield process
        finally:
            process.kill()


def hear(process: subprocess.Popen[str]) -> str:
    """Return the next line that the program says."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, f"the program ended: {process.stderr.read() if process.stderr else ''}"
    return line.strip()


def tell(process: subprocess.Popen[str], line: str = "go") -> None:
    """Say a line to the program."""
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def finished(process: subprocess.Popen[str]) -> list[str]:
    """Wait for the end of the program and return the lines it said since."""
    said, complaints = process.communicate(timeout=120)
    assert process.returncode == 0, complaints
    assert complaints == ""
    return said.splitlines()


def run(script: str, path: Path | str) -> list[str]:
    """Run `script` to its end and return the lines it said."""
    with program(script, path) as process:
        return finished(process)
