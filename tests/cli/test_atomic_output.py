"""Output is there whole or not at all, whatever happens while it is made."""

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.program import COMMAND, DANGLING, GOOD, TIMEOUT, environment, run, run_apart, write_json, write_lines
from tests.cli.test_doctor import CLAUDE

OLD = b"what was there before"
LINE = json.dumps([{"role": "user", "content": "x" * 10_000}, *GOOD]).encode() + b"\n"


def _hear_interrupts() -> None:
    """A shell that runs us in the background has us ignore them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def half_way(*arguments: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the command until it has read, and so repaired, megabytes of an input that has not ended."""
    with subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        preexec_fn=_hear_interrupts,  # noqa: PLW1509 - the tests start no threads
    ) as process:
        assert process.stdin is not None
        for _ in range(400):  # a pipe holds 64 KB: when this is through, all but the last lines were taken
            process.stdin.write(LINE)
        process.stdin.flush()
        yield process


def test_a_killed_process_leaves_the_target_as_it_was(tmp_path: Path):
    target = tmp_path / "out.jsonl"
    target.write_bytes(OLD)
    with half_way("repair", "-", "-o", target) as process:
        (part,) = set(tmp_path.iterdir()) - {target}
        process.send_signal(signal.SIGKILL)
        assert process.wait(TIMEOUT) == -signal.SIGKILL
        assert target.read_bytes() == OLD
        assert part.stat().st_size > 1_000_000  # it was in the middle of its work


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_process_leaves_nothing_behind_and_says_nothing(tmp_path: Path, sent: int, status: int):
    target, report = tmp_path / "out.jsonl", tmp_path / "report.jsonl"
    target.write_bytes(OLD)
    with half_way("repair", "-", "-o", target, "--report", report) as process:
        process.send_signal(sent)
        assert process.wait(TIMEOUT) == status
        assert process.stderr is not None
        assert process.stdout is not None
        assert (process.stdout.read(), process.stderr.read()) == (b"", b"")
    assert list(tmp_path.iterdir()) == [target]
    assert target.read_bytes() == OLD


def test_an_error_in_the_last_line_leaves_the_targets_as_they_were(tmp_path: Path):
    path = write_lines(tmp_path / "h.jsonl", [DANGLING] * 50 + [[None]])
    target, report = tmp_path / "out.jsonl", tmp_path / "report.jsonl"
    target.write_bytes(OLD)
    report.write_bytes(OLD)
    done = run("repair", path, "-o", target, "--report", report)
    assert (done.status, done.out) == (2, "")
    assert ", line 51, message 0: " in done.err
    assert (target.read_bytes(), report.read_bytes()) == (OLD, OLD)
    assert sorted(tmp_path.iterdir()) == sorted([path, target, report])


def test_the_output_may_be_the_input(tmp_path: Path):
    path = write_lines(tmp_path / "h.jsonl", [DANGLING] * 300)
    assert run("repair", path, "-o", path).status == 0
    done = run("check", path)
    assert done.out == "300 conversations: 300 acceptable, 0 with findings\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_to_the_target_stays_a_link(tmp_path: Path):
    target, link = tmp_path / "real" / "out.json", tmp_path / "link.json"
    target.parent.mkdir()
    target.write_bytes(OLD)
    link.symlink_to(target)
    assert run("repair", write_json(tmp_path / "h.json", GOOD), "-o", link).status == 0
    assert link.is_symlink()
    assert json.loads(target.read_text()) == GOOD


def test_a_file_that_is_replaced_keeps_its_rights(tmp_path: Path):
    target = tmp_path / "out.json"
    target.write_bytes(OLD)
    target.chmod(0o640)
    run("repair", write_json(tmp_path / "h.json", GOOD), "-o", target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_new_file_has_the_rights_of_any_new_file(tmp_path: Path):
    path, target = write_json(tmp_path / "h.json", GOOD), tmp_path / "out.json"
    run("repair", path, "-o", target)
    assert stat.S_IMODE(target.stat().st_mode) == stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("option", ["-o", "--report"])
def test_a_place_that_cannot_be_written_is_told_before_anything_is_written(tmp_path: Path, option: str):
    path = write_json(tmp_path / "h.json", GOOD)
    places = [(tmp_path / "no" / "x.json", "no such file or directory")]
    for place, reason in [*places, (tmp_path, "is a directory")] if option == "--report" else places:
        done = run("repair", path, option, place)
        assert done == (2, "", f"suture: {place}: cannot be written: {reason}\n")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("others", [["-o", "same.json", "--report", "same.json"], ["--report", "h.json"]])
def test_the_report_is_never_written_over_the_history(tmp_path: Path, others: list[str]):
    path = write_json(tmp_path / "h.json", GOOD)
    placed = [str(tmp_path / name) if name.endswith(".json") else name for name in others]
    done = run("repair", path, *placed)
    assert (done.status, done.out) == (2, "")
    assert "the report would be written over the history" in done.err
    assert json.loads(path.read_text()) == GOOD


def test_a_device_is_written_as_it_is(tmp_path: Path):
    done = run_apart(
        "repair", write_json(tmp_path / "h.json", GOOD), "-o", "/dev/stdout", "--report", tmp_path / "r.json"
    )
    assert json.loads(done.out.splitlines()[0]) == GOOD
    assert stat.S_ISLNK(os.lstat("/dev/stdout").st_mode)


def test_a_full_disk_is_told_on_one_line(tmp_path: Path):
    path = write_json(tmp_path / "h.json", GOOD)
    for arguments in (["repair", path, "-o", "/dev/full"], ["repair", path], ["check", path]):
        with open("/dev/full", "wb") as full:  # noqa: PTH123 - it is no file
            ended = subprocess.run(
                [*COMMAND, *map(str, arguments)],
                stdout=full,
                stderr=subprocess.PIPE,
                timeout=TIMEOUT,
                check=False,
                env=environment(),
            )
        assert ended.returncode == 2
        assert ended.stderr.count(b"\n") == 1
        assert ended.stderr.endswith(b"cannot be written: no space left on device\n")


@pytest.mark.parametrize("unbuffered", ["1", None])
@pytest.mark.parametrize(
    "command",
    [
        [],
        ["--help"],
        ["--version"],
        ["check", "--help"],
        ["help", "repair"],
        ["completion", "bash"],
        ["check", "--color", "always", "h.json"],
        ["repair", "--diff", "--color", "always", "h.json"],
        ["repair", "--color", "always", "h.json", "-o", "out.json"],
        ["view", "h.json"],
        ["chat", "--model", "harbour:model"],
        ["doctor", "h.jsonl"],
    ],
    ids=" ".join,
)
def test_whatever_cannot_reach_standard_output_is_told(tmp_path: Path, command: list[str], unbuffered: str | None):
    """How a write fails depends on how much Python keeps back, and on who writes: argparse, `rich`, the chat."""
    write_json(tmp_path / "h.json", DANGLING)
    write_lines(tmp_path / "h.jsonl", CLAUDE)
    model = 'from suture.testing import ScriptedModel\nmodel = ScriptedModel(lambda _: "High tide is at six.")\n'
    (tmp_path / "harbour.py").write_text(model, encoding="utf-8")
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - it is no file
        ended = subprocess.run(
            [*COMMAND, *command],
            input=b"When is high tide?\n",
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=TIMEOUT,
            check=False,
            cwd=tmp_path,
            env=environment(PYTHONUNBUFFERED=unbuffered),
        )
    told = b"suture: standard output: cannot be written: no space left on device\n"
    assert (ended.returncode, ended.stderr) == (2, told)
    assert not (tmp_path / "out.json").exists()


def test_a_reader_that_leaves_ends_it_quietly(tmp_path: Path):
    path = write_lines(tmp_path / "h.jsonl", [DANGLING] * 500)
    for command in ("check", "repair"):
        with subprocess.Popen(
            [*COMMAND, command, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            assert process.stderr.read() == b""
            assert process.wait(TIMEOUT) == 141


def test_help_into_a_closed_pipe_ends_quietly():
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(
        [sys.executable, "-m", "suture", "--help"],
        stdout=writer,
        stderr=subprocess.PIPE,
        timeout=TIMEOUT,
        check=False,
        env=environment(),
    )
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (141, b"")
