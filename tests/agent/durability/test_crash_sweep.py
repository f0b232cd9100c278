"""A run of 20 calls is killed before and behind every write to its journal, on real stores, and always recovered."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agent.durability import crashes

ROOT = Path(__file__).parents[3]


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return where the journals are: the path of a file, or the address of a server."""
    return str(tmp_path / "runs.db") if request.param == "SQLite" else request.getfixturevalue("postgres").conninfo


def sweep(place: str, directory: Path, *points: int) -> int:
    """Kill the run at these points, or at all there are; return at how many."""
    command = [sys.executable, "-m", crashes.__name__, place, str(directory), *map(str, points)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return int(ended.stdout)


def test_a_run_that_is_killed_beside_a_write_is_recovered_and_nothing_happens_twice(place: str, tmp_path: Path):
    assert sweep(place, tmp_path, 0, 7, 22) == 3


@pytest.mark.soak
def test_a_run_that_is_killed_beside_any_write_is_recovered(place: str, tmp_path: Path, covered: Callable[[str], None]):
    count = sweep(place, tmp_path)
    assert count > 2 * crashes.COUNT
    covered(
        f"a run of 20 calls was killed at {count} points, before and behind each write to {place.partition(':')[0]}"
    )
