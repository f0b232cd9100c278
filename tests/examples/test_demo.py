"""`make demo`: a stranger sees a 400 and its repair, a killed agent that goes on, and a log that fits no context."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.program import EXAMPLES

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def shown() -> str:
    """Return what the demo prints where the terminal has few letters."""
    ended = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / "demo.py")],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONIOENCODING": "ascii", "PATH": ""},
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


def test_it_fits_80_columns(shown: str):
    assert max(map(len, shown.splitlines())) < 80


def test_the_provider_refuses_the_broken_history_and_accepts_the_repaired_one(shown: str):
    assert re.findall(r"^   (\d{3})  ", shown, re.MULTILINE) == ["400", "200"]
    assert "did not have response messages: call_1" in shown
    assert "Tool call tides with id call_1 was canceled" in shown


def test_the_agent_is_killed_goes_on_in_another_process_and_pays_once(shown: str):
    assert "kill -9" in shown
    assert "it may or" in shown
    assert "payments that were made: 1\n" in shown


def test_no_request_is_larger_than_the_context_and_the_log_is_kept(shown: str):
    (largest,) = re.findall(r"the largest of ([\d,]+) tokens", shown)
    assert 1_000 < int(largest.replace(",", "")) < 8_000
    assert "the whole log is still there to be read: yes\n" in shown


def test_it_ends_with_where_to_go_on(shown: str):
    named = re.findall(r"docs/[\w-]+\.\w+", shown)
    assert named == ["docs/first-agent.md", "docs/four-hundred.md"]
    assert all((ROOT / path).exists() for path in named)
