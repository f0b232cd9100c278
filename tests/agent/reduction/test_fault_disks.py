"""Disks that are full, that are forbidden, that are no directory: real ones, in processes of their own."""

import functools
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.agent.reduction import _machine
from tests.agent.reduction._backends import tree
from tests.agent.reduction._notices import END
from tests.agent.reduction._tooling import STREAMS, WHOLE

ROOT = Path(__file__).parents[3]
LIMIT, CHUNK = _machine.LIMIT, _machine.CHUNK
WORDS = {"full": "larger than the system lets this process write", "denied": "permission", "no directory": "directory"}
each_disk = pytest.mark.parametrize("disk", WORDS)
each_setting = pytest.mark.parametrize("on_error", ["raise", "continue"])


def machine(*arguments: str) -> dict[str, Any]:
    """Run the program and return what it saw."""
    command = [sys.executable, "-m", "tests.agent.reduction._machine", *arguments]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@functools.cache
def told(disk: str) -> dict[str, Any]:
    """Return what happened on a disk."""
    # Not below a directory of pytest's, which nobody else may enter.
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o755)
        seen = machine("faults", name, disk)
        directory.chmod(0o755)
        seen["files"] = [file for file in tree(directory) if file.startswith("files/")]
        return seen


@each_disk
@pytest.mark.parametrize("kind", WHOLE)
def test_a_result_that_cannot_be_written_stays_whole_and_the_run_fails(disk: str, kind: str):
    seen = told(disk)[f"{kind} raise"]
    assert seen["error"].startswith("OffloadError: the output of dump (c0) was not saved: ")
    assert WORDS[disk] in seen["error"]
    assert len(seen["error"]) < 1_000
    assert seen["calls"] == [["dump", "c0"]]
    assert (seen["whole"], seen["requests"]) == (True, 1)


@each_disk
@pytest.mark.parametrize("kind", WHOLE)
def test_a_result_that_cannot_be_written_stays_whole_and_the_run_goes_on_if_asked_for(disk: str, kind: str):
    seen = told(disk)[f"{kind} continue"]
    assert (seen["error"], seen["whole"], seen["requests"]) == ("", True, 2)
    assert set(seen["events"]) == {"tool_output_not_saved"}


@each_disk
@each_setting
@pytest.mark.parametrize("kind", STREAMS)
def test_a_stream_that_cannot_be_written_is_told_and_the_tool_runs_to_its_end(disk: str, kind: str, on_error: str):
    seen = told(disk)[f"{kind} {on_error}"]
    assert seen["ended"] == ["ended"]
    beginning = (
        f"{CHUNK[:LIMIT]}<persisted-output>\nOutput truncated after {LIMIT} bytes were streamed.  Failed to save"
    )
    assert seen["text"].startswith(beginning)
    assert WORDS[disk] in seen["text"]
    assert seen["text"].endswith(END)
    if on_error == "continue":
        assert (seen["error"], seen["requests"]) == ("", 2)
    else:
        assert (seen["calls"], seen["requests"]) == ([["dump", "c0"]], 1)


@each_disk
def test_nothing_half_written_is_left_on_the_disk(disk: str):
    assert told(disk)["files"] == []
