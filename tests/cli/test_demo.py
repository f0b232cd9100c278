"""`make demo`: it runs, is readable, and its samples are what they claim to be."""

import json
import re
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


def demo(*arguments: str) -> str:
    ended = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo.py"), *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=True,
        env=environment(),
    )
    assert ended.stderr == ""
    assert "\x1b" not in ended.stdout
    return ended.stdout


def test_the_demo_shows_one_repair_whole_and_names_what_was_wrong_in_every_sample():
    shown = demo()
    assert len(shown.splitlines()) <= 70
    assert shown.count("\nbefore:\n") == shown.count("\nafter:\n") == 1
    lines = shown.splitlines()
    for path in SAMPLES:
        assert any(line.startswith(f"  {path.name}") and "dangling" in line for line in lines)
    conversations = sum(_conversations(path) for path in SAMPLES)
    told = next(line for line in lines if line.startswith(f"{conversations} broken histories on 7 wires, "))
    assert told.endswith("suture.check accepts every one of them now.")


def test_the_demo_shows_every_sample_before_and_after_if_it_is_asked_to():
    shown = demo("--whole")
    for path in SAMPLES:
        assert f"\n{path.name}" in shown
    conversations = sum(_conversations(path) for path in SAMPLES)
    assert shown.count("\nbefore:\n") == shown.count("\nafter:\n") == conversations


def test_the_demo_interrupts_an_agent_and_shows_what_the_model_was_sent():
    _, _, told = demo().partition("An agent is cancelled in the middle of a tool call")
    before, _, rest = told.partition("what the model was sent:\n")
    sent, _, after = rest.partition("the history afterwards:\n")
    assert [line[4:18].split() for line in before.splitlines()[3:5]] == [["0", "user"], ["1", "assistant"]]
    assert "neither result was among the messages yet" in before
    assert "2 calls without a result, so a 400" in before
    assert 'answers call_1  "06:12 in Dover"' in sent
    assert 'answers call_2  "Tool call forecast with id call_2 was stopped before it finished' in sent
    assert "I have no forecast" not in sent
    assert any(line.endswith('"High tide is at 06:12. I have no forecast."') for line in after.splitlines())


def test_the_demo_marks_arguments_that_are_cut_off_and_no_others():
    marked = [line for line in demo().splitlines() if "cut off⟩" in line]
    assert len(marked) == 1
    assert '"body": "Lokal, 19…⟨cut off⟩ as call_mail' in marked[0]
    before = re.findall(r"\nbefore:\n(.*?)\nafter:\n", demo("--whole"), re.DOTALL)
    assert "".join(before).count("⟨cut off⟩") == sum(_cuts(path) for path in SAMPLES) == 3


def test_the_demo_ends_with_where_to_go_on():
    last = demo().splitlines()[-1]
    named = re.findall(r"(?:examples|docs)/\w+\.\w+", last)
    assert named == ["examples/first_agent.py", "docs/agent.md", "docs/repair.md"]
    assert all((ROOT / path).exists() for path in named)


def test_help_explains_the_demo_and_does_not_run_it():
    shown = demo("--help")
    assert "--whole" in shown
    assert "before:" not in shown


def _conversations(path: Path) -> int:
    first = path.read_text(encoding="utf-8").splitlines()[0]
    many = path.suffix == ".jsonl" and "messages" in json.loads(first)
    return len(path.read_text(encoding="utf-8").splitlines()) if many else 1


def _cuts(path: Path) -> int:
    """Return how many calls of a sample have arguments that end too early."""
    text = path.read_text(encoding="utf-8")
    found = re.findall(r'"arguments": "((?:[^"\\]|\\.)*)"', text)
    return sum(not _is_json(json.loads(f'"{arguments}"')) for arguments in found if arguments.startswith("{"))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
