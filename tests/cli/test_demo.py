"""`make demo`: it runs, is readable, and its samples are what they claim to be."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import suture
from suture.cli import open_source, read_conversations
from suture.wires import WIRES
from tests.cli.program import TIMEOUT, environment, run

ROOT = Path(__file__).parents[2]
SAMPLES = sorted((ROOT / "examples" / "samples").iterdir())


def test_there_is_a_sample_of_every_wire():
    assert sorted(path.name.partition(".")[0] for path in SAMPLES) == sorted(WIRES)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_a_sample_is_recognised_as_its_wire_and_is_broken_in_several_ways(path: Path):
    problems: set[str] = set()
    with open_source(str(path)) as source:
        for conversation in read_conversations(source):
            messages, wire = conversation.take(None)
            report = suture.check(messages, wire=wire)
            assert report.wire == path.name.partition(".")[0]
            problems |= {finding.problem for finding in report.findings}
    assert len(problems) >= 2


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_a_repaired_sample_is_accepted(path: Path, tmp_path: Path):
    out = tmp_path / path.name
    assert run("repair", path, "-o", out).status == 0
    assert run("check", out).status == 0


def test_the_demo_shows_every_sample_before_and_after_and_ends_well():
    ended = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo.py")],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=True,
        env=environment(),
    )
    assert ended.stderr == ""
    assert "\x1b" not in ended.stdout
    for path in SAMPLES:
        assert path.name in ended.stdout
    conversations = sum(_conversations(path) for path in SAMPLES)
    assert ended.stdout.count("\nbefore:\n") == ended.stdout.count("\nafter:\n") == conversations
    assert ended.stdout.splitlines()[-1].startswith(f"{conversations} broken histories on 7 wires, ")
    assert ended.stdout.splitlines()[-1].endswith("suture.check accepts every one of them now.")


def _conversations(path: Path) -> int:
    first = path.read_text(encoding="utf-8").splitlines()[0]
    many = path.suffix == ".jsonl" and "messages" in json.loads(first)
    return len(path.read_text(encoding="utf-8").splitlines()) if many else 1
