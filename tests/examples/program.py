"""How the examples are started: as a user starts them, in a process of their own."""

import subprocess
import sys
from pathlib import Path

from tests.cli.program import TIMEOUT, environment

EXAMPLES = Path(__file__).parents[2] / "examples"


def run_example(name: str, *arguments: str, typed: str = "", status: int = 0) -> str:
    """Run an example to its end and return what it printed; it must end with `status` and complain of nothing."""
    ended = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        input=typed,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
        env=environment(),
    )
    assert ended.stderr == ""
    assert ended.returncode == status, ended.stdout
    return ended.stdout
