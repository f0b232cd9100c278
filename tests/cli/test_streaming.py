"""How much is read, and how much is held: JSON Lines stream, and one document has a limit."""

import json
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from tests.cli.program import DANGLING, GOOD, TIMEOUT, Done, environment, read_lines, run, write_json, write_lines
from tests.cli.test_doctor import CLAUDE

MEASURED = """
import re, sys
from suture.cli import main

def peak():
    with open("/proc/self/status") as status:
        return int(re.search(r"VmHWM:\\s+(\\d+) kB", status.read())[1])

start = peak()
status = main(sys.argv[1:])
print(status, (peak() - start) // 1024, file=sys.stderr)
"""
"""The greatest use of memory by the program itself; `getrusage` counts that of the process which started it, too."""
MEGABYTE = 1024 * 1024


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return 60 MB of small conversations, some of them broken."""
    path = tmp_path_factory.mktemp("large") / "log.jsonl"
    padding = {"role": "user", "content": "x" * 16_000}
    lines = [json.dumps({"messages": [padding, *history]}) for history in (GOOD, GOOD, DANGLING)]
    block = ("\n".join(lines) + "\n").encode()
    with path.open("wb") as file:
        for _ in range(60 * MEGABYTE // len(block) + 1):
            file.write(block)
    return path


@pytest.mark.soak
@pytest.mark.parametrize("command", [("check",), ("repair", "-o", "out.jsonl"), ("repair",)], ids=" ".join)
def test_memory_is_bounded_by_the_largest_conversation(large: Path, tmp_path: Path, command: tuple[str, ...]):
    """What comes out may be spooled up to 8 MB in memory; the rest is what one conversation needs."""
    with (tmp_path / "stdout").open("wb") as out:
        ended = subprocess.run(
            [sys.executable, "-c", MEASURED, *command, str(large)],
            stdout=out,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            timeout=TIMEOUT,
            check=True,
            env=environment(),
        )
    status, grown = map(int, ended.stderr.split())
    print(f"{' '.join(command)}: {grown} MB more for a file of {large.stat().st_size // MEGABYTE} MB")
    assert status == (1 if command == ("check",) else 0)
    assert grown < 25


@pytest.mark.parametrize("broken", [False, True], ids=["good", "broken"])
@pytest.mark.parametrize("form", ["one line", "many lines", "a message a line"])
def test_a_large_conversation_is_held_once_as_bytes_and_once_as_values(tmp_path: Path, form: str, broken: bool):
    text = {"role": "user", "content": "x" * 8000}
    messages = [text] * (32 * MEGABYTE // 8000) + (DANGLING if broken else GOOD)
    path = tmp_path / "h.json"
    if form == "a message a line":
        write_lines(path, messages)
    else:
        write_json(path, messages, indent=2 if form == "many lines" else None)
    ended = subprocess.run(
        [sys.executable, "-c", MEASURED, "repair", str(path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=TIMEOUT,
        check=True,
        env=environment(),
    )
    status, grown = map(int, ended.stderr.split())
    print(f"{grown} MB more")
    assert status == 0
    assert grown < 2.6 * 32 + 10


LIMITED = """
import importlib, re, resource, sys
from suture.cli import main
importlib.import_module("suture.cli." + ("doctor" if sys.argv[2] == "doctor" else "repair"))
with open("/proc/self/status") as status:
    used = int(re.search(r"VmSize:\\s+(\\d+) kB", status.read())[1]) * 1024
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[1]) * 1024 * 1024,) * 2)
sys.exit(main(sys.argv[2:]))
"""
"""Runs the command with so many megabytes more than it has after its imports."""


def run_limited(megabytes: int, *arguments: str | Path) -> Done:
    ended = subprocess.run(
        [sys.executable, "-c", LIMITED, str(megabytes), *map(str, arguments)],
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
        env=environment(),
    )
    return Done(ended.returncode, ended.stdout.decode(), ended.stderr.decode())


WIDE = [{"role": "user", "content": "x" * 14 * MEGABYTE + "\U0001f30a"}, *DANGLING[1:]]
"""Takes 14 MB in a file; in memory each letter takes as much as the last one."""


@pytest.mark.parametrize("megabytes", [6, 20, 60])
@pytest.mark.parametrize("indent", [None, 1], ids=["one line", "many lines"])
@pytest.mark.parametrize("command", ["check", "repair"])
def test_too_little_memory_is_told_with_what_is_too_large_and_what_helps(
    tmp_path: Path, megabytes: int, indent: int | None, command: str
):
    """It does for a part of the bytes, for all of them, or for nothing that they stand for."""
    path = write_json(tmp_path / "h.json", WIDE, indent=indent)
    done = run_limited(megabytes, command, path)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith(f"suture: {path}: there is not enough memory for a conversation of ")
    assert "give it more; several conversations are read one by one as JSON Lines, with one a line" in done.err


def test_too_little_memory_for_one_line_names_the_line_and_the_lines_before_are_repaired(tmp_path: Path):
    path = write_lines(tmp_path / "h.jsonl", [GOOD, GOOD, WIDE, GOOD])
    done = run_limited(20, "repair", path)
    assert (done.status, read_lines(done.out), done.err.count("\n")) == (2, [GOOD, GOOD], 1)
    assert done.err.startswith(f"suture: {path}, line 3: there is not enough memory for one of its conversations")


def test_of_several_files_the_one_that_is_too_large_does_not_stop_the_others(tmp_path: Path):
    large, small = write_json(tmp_path / "a.json", WIDE), write_json(tmp_path / "b.json", GOOD)
    done = run_limited(20, "check", large, small)
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert done.err.startswith(f"suture: {large}: there is not enough memory")
    assert done.out == "1 conversation: 1 acceptable, 0 with findings\n"


@pytest.mark.parametrize("megabytes", [6, 20, 60])
def test_too_little_memory_for_a_session_is_told(tmp_path: Path, megabytes: int):
    path = write_json(tmp_path / "session.jsonl", {**CLAUDE[0], "message": WIDE[0]})
    done = run_limited(megabytes, "doctor", path)
    assert done == (2, "", f"suture: {path}: there is not enough memory for it: give it more\n")


def test_a_document_above_the_limit_is_refused(tmp_path: Path):
    path = write_json(tmp_path / "h.json", GOOD, indent=2)
    size = path.stat().st_size
    assert run("check", "--max-bytes", str(size), path).status == 0
    assert run("check", "--max-bytes", str(10**30), path).status == 0
    done = run("check", "--max-bytes", str(size - 1), path)
    assert done == (2, "", f"suture: {path}: larger than --max-bytes {size - 1}\n")


def test_a_document_above_the_limit_is_refused_in_a_pipe_too():
    data = json.dumps(GOOD, indent=2).encode()
    done = run("repair", "--max-bytes", "100", "-", stdin=data)
    assert done == (2, "", "suture: standard input: larger than --max-bytes 100\n")


def test_a_document_above_the_limit_is_not_read_whole():
    with subprocess.Popen(
        [sys.executable, "-m", "suture", "check", "--max-bytes", "100000", "-"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        env=environment(),
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        assert _write_until_nobody_reads(process.stdin) < 400_000
        assert process.stderr.read() == b"suture: standard input: larger than --max-bytes 100000\n"
        assert process.wait(TIMEOUT) == 2


def _write_until_nobody_reads(pipe: IO[bytes]) -> int:
    """Return how many bytes of a document without end were taken: what was read, and what the pipe held."""
    written = pipe.write(b"[\n")
    try:
        while True:
            written += pipe.write(b" " * 10_000)
    except BrokenPipeError:
        return written


def test_the_limit_holds_for_a_document_on_one_line(tmp_path: Path):
    path = write_json(tmp_path / "h.json", GOOD)
    size = path.stat().st_size
    assert run("check", "--max-bytes", str(size), path).status == 0
    done = run("check", "--max-bytes", str(size - 1), path)
    assert done == (2, "", f"suture: {path}, line 1: larger than --max-bytes {size - 1}\n")


def test_the_limit_holds_for_a_line_and_not_for_the_file(tmp_path: Path):
    path = write_lines(tmp_path / "h.jsonl", [GOOD] * 20)
    longest = len(json.dumps(GOOD))
    assert path.stat().st_size > 10 * longest
    assert run("check", "--max-bytes", str(longest), path).status == 0


def test_lines_with_carriage_returns_are_measured_without_them(tmp_path: Path):
    path = tmp_path / "h.jsonl"
    path.write_bytes(f"{json.dumps(GOOD)}\r\n".encode() * 3)
    done = run("check", "--json", "--max-bytes", str(len(json.dumps(GOOD))), path)
    assert [record["line"] for record in read_lines(done.out)] == [1, 2, 3]


FORMS = [
    pytest.param(json.dumps(GOOD), [1], id="an array on one line"),
    pytest.param(json.dumps(GOOD, indent=1), [1], id="an array over several lines"),
    pytest.param("\n\n" + json.dumps(GOOD, indent=1), [3], id="a document after blank lines"),
    pytest.param("[\n" + ",\n".join(map(json.dumps, GOOD)) + "\n]\n", [1], id="an array with a message a line"),
    pytest.param(json.dumps({"messages": GOOD}), [1], id="an object on one line"),
    pytest.param('{"messages":\n' + json.dumps(GOOD) + "}", [1], id="an object over several lines"),
    pytest.param("\n".join(map(json.dumps, GOOD)), [1], id="one message a line"),
    pytest.param(f"{json.dumps(GOOD)}\n\n{json.dumps({'input': []})}", [1, 3], id="one conversation a line"),
    pytest.param("[]\n{}".replace("{}", json.dumps({"messages": GOOD})), [1, 2], id="an empty conversation first"),
    pytest.param(json.dumps(GOOD[0]), [1], id="a single message"),
]


@pytest.mark.parametrize(("text", "lines"), FORMS)
def test_the_form_of_a_file_is_told_from_its_first_line(text: str, lines: list[int]):
    done = run("check", "--json", "-", stdin=text.encode())
    assert done.err == ""
    assert [record["line"] for record in read_lines(done.out)] == lines
    assert all(record["report"]["acceptable"] for record in read_lines(done.out))
