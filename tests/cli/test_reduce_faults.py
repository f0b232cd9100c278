"""`suture reduce` does all of it or nothing: what goes wrong is one line, and no file is left behind or lost."""

import json
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from suture.cli.files import open_source
from suture.errors import ConfigError, InputError
from suture.reduction import plan
from tests.cli.program import COMMAND, GOOD, TIMEOUT, Done, environment, run, write_json, write_lines
from tests.cli.reducing import LIMIT, LONG, Reduce, cleared, files, output, reduce, results, rounds
from tests.cli.test_wrong_types import SAMPLES, WRONG, changed, places

__all__ = ["reduce"]  # a fixture

OLD = "what was there before"


def in_shell(line: str, *arguments: str | Path) -> Done:
    """Run the command as a shell does; `$0` is the interpreter and `$@` are the arguments."""
    ended = subprocess.run(
        ["/bin/sh", "-c", line, COMMAND[0], "reduce", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
        env=environment(),
    )
    return Done(ended.returncode, ended.stdout, ended.stderr)


# --- the directory ----------------------------------------------------------------------------


def test_a_directory_that_is_a_file_is_told_and_stays_one(tmp_path: Path, reduce: Reduce):
    place, path = tmp_path / "saved", write_json(tmp_path / "h.json", LONG)
    place.write_text(OLD)
    for options in ((*LIMIT, "-o", tmp_path / "out.json"), (*LIMIT, "--plan"), ()):
        done = reduce("--save-to", place, *options, path)
        assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
        assert done.err.startswith(f"suture: {place}: is not a directory")
    assert place.read_text() == OLD
    assert sorted(tmp_path.iterdir()) == [path, place]


def test_a_directory_below_a_file_is_told(tmp_path: Path, reduce: Reduce):
    (tmp_path / "file").write_text(OLD)
    done = reduce(*LIMIT, "--save-to", tmp_path / "file" / "saved", write_json(tmp_path / "h.json", LONG))
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith(f"suture: {tmp_path / 'file' / 'saved'}: is not a directory")


def test_a_directory_that_is_a_link_is_not_followed(tmp_path: Path, reduce: Reduce):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "saved").symlink_to(tmp_path / "elsewhere")
    done = reduce(*LIMIT, "--save-to", tmp_path / "saved", write_json(tmp_path / "h.json", LONG))
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert "symbolic link" in done.err
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_link_inside_the_directory_is_not_followed(tmp_path: Path, reduce: Reduce):
    saved, elsewhere = tmp_path / "saved", tmp_path / "elsewhere"
    elsewhere.mkdir()
    saved.mkdir()
    (saved / "clear").symlink_to(elsewhere)
    done = reduce(*LIMIT, "--save-to", saved, write_json(tmp_path / "h.json", LONG))
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert list(elsewhere.iterdir()) == []


AS_SOMEBODY_ELSE = """
import asyncio.runners, concurrent.futures.thread, os, sys
import suture.cli.reduce
from suture.cli import main
if os.getuid() == 0:  # who may write anywhere
    os.setgroups([])
    os.setegid(65534)
    os.seteuid(65534)
sys.exit(main(sys.argv[1:]))
"""


def test_a_directory_that_cannot_be_written_is_told_and_nothing_is_written():
    with TemporaryDirectory() as folder:
        saved, out, path = Path(folder, "saved"), Path(folder, "out"), write_json(Path(folder, "h.json"), LONG)
        for place, mode in ((Path(folder), 0o755), (saved, 0o555), (out, 0o777), (path, 0o644)):
            if place in (saved, out):
                place.mkdir()
            place.chmod(mode)
        arguments = ["reduce", *LIMIT, "--save-to", saved, path, "-o", out / "h.json"]
        ended = subprocess.run(
            [sys.executable, "-c", AS_SOMEBODY_ELSE, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
            env=environment(),
        )
        assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1), ended.stderr
        assert ended.stderr.startswith(f"suture: {saved}: 'clear/call_0' ")
        assert "no permission" in ended.stderr
        assert list(saved.iterdir()) + list(out.iterdir()) == []


# --- the output -------------------------------------------------------------------------------


def test_a_place_that_cannot_be_written_is_told_before_anything_is_saved(tmp_path: Path, reduce: Reduce):
    path, saved = write_json(tmp_path / "h.json", LONG), tmp_path / "saved"
    for place, reason in ((tmp_path, "is a directory"), (tmp_path / "no" / "x.json", "no such file or directory")):
        done = reduce(*LIMIT, "--save-to", saved, path, "-o", place)
        assert done == (2, "", f"suture: {place}: cannot be written: {reason}\n")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("there", [False, True], ids=["new", "old"])
def test_a_history_that_cannot_be_written_takes_the_files_with_it(tmp_path: Path, reduce: Reduce, there: bool):
    path, saved = write_json(tmp_path / "h.json", LONG), tmp_path / "deep" / "er" / "saved"
    if there:
        (saved / "clear").mkdir(parents=True)
        (saved / "clear" / "call_1").write_text(output(1), encoding="utf-8")  # saved by an earlier command
        (saved / "mine").write_text(OLD)
    done = reduce(*LIMIT, "--save-to", saved, path, "-o", "/dev/full")
    assert done == (2, "", "suture: /dev/full: cannot be written: no space left on device\n")
    if there:
        assert files(saved) == {"clear/call_1": output(1), "mine": OLD}
    else:
        assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_behind_standard_output_takes_the_files_with_it(tmp_path: Path):
    path, saved = write_json(tmp_path / "h.json", LONG), tmp_path / "saved"
    done = in_shell('"$0" -m suture "$@" > /dev/full', *LIMIT, "--save-to", saved, path)
    assert done == (2, "", "suture: standard output: cannot be written: no space left on device\n")
    assert list(tmp_path.iterdir()) == [path]


def test_a_closed_standard_output_takes_the_files_with_it(tmp_path: Path):
    path, saved = write_json(tmp_path / "h.json", LONG), tmp_path / "saved"
    done = in_shell('"$0" -m suture "$@" >&-', *LIMIT, "--save-to", saved, path)
    assert done == (2, "", "suture: standard output: is closed\n")
    assert list(tmp_path.iterdir()) == [path]


def test_a_history_that_is_in_its_place_keeps_its_files_even_if_that_cannot_be_told(tmp_path: Path):
    path, saved, out = write_json(tmp_path / "h.json", LONG), tmp_path / "saved", tmp_path / "out.json"
    done = in_shell('"$0" -m suture "$@" > /dev/full', *LIMIT, "--save-to", saved, path, "-o", out)
    assert done == (2, "", "suture: standard output: cannot be written: no space left on device\n")
    assert results(json.loads(out.read_text()))[0] == cleared(f"{saved}/clear/call_0")
    assert sorted(files(saved)) == ["clear/call_0", "clear/call_1"]


def test_a_disk_that_is_full_while_output_is_saved_leaves_nothing_behind(tmp_path: Path):
    path, saved, out = write_json(tmp_path / "h.json", rounds(400, 400_000, 40)), tmp_path / "saved", tmp_path / "out"
    out.write_text(OLD)
    limits = ("--max-tokens", "150", "--skip-truncation")
    done = in_shell('ulimit -f 64; "$0" -m suture "$@"', *limits, "--save-to", saved, path, "-o", out)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith(f"suture: {saved}: 'clear/call_1' ")
    assert "the file would be larger" in done.err
    assert out.read_text() == OLD
    assert sorted(tmp_path.iterdir()) == [path, out]


def test_a_reader_that_leaves_takes_the_files_with_it(tmp_path: Path):
    path = write_lines(tmp_path / "h.jsonl", [rounds(9000, 9000, 40)] * 20 + [GOOD * 2000])
    command = [*COMMAND, "reduce", *LIMIT, "--save-to", str(tmp_path / "saved"), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(TIMEOUT) == 141
    assert list(tmp_path.iterdir()) == [path]


# --- the input --------------------------------------------------------------------------------


def test_an_error_in_the_last_line_leaves_everything_as_it_was(tmp_path: Path, reduce: Reduce):
    path, saved, out = write_lines(tmp_path / "h.jsonl", [LONG, LONG, [None]]), tmp_path / "saved", tmp_path / "out"
    out.write_text(OLD)
    done = reduce(*LIMIT, "--save-to", saved, path, "-o", out)
    assert done == (2, "", f"suture: {path}, line 3, message 0: expected a message, found null\n")
    assert out.read_text() == OLD
    assert sorted(tmp_path.iterdir()) == [path, out]


def test_messages_of_another_wire_than_was_told_are_refused_with_the_message(tmp_path: Path, reduce: Reduce):
    path = write_json(tmp_path / "h.json", LONG)
    done = reduce("--wire", "gemini", *LIMIT, "--save-to", tmp_path / "saved", path)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith(f"suture: {path}, message 0")
    assert list(tmp_path.iterdir()) == [path]


def test_messages_of_more_than_one_meaning_are_reduced_if_all_meanings_come_to_the_same(tmp_path: Path, reduce: Reduce):
    ambiguous = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [{"type": "text", "text": " "}]}]
    done = reduce("--max-tokens", "0", "--discard", write_json(tmp_path / "h.json", ambiguous))
    assert (done.status, json.loads(done.out), done.err) == (0, ambiguous, "")


@pytest.mark.parametrize("told", [False, True], ids=["recognised", "told"])
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_a_wrong_type_at_any_place_is_refused_or_left_alone(path: Path, told: bool):
    wire = path.name.partition(".")[0] if told else None
    faults: list[str] = []
    with open_source(str(path)) as source:
        conversation = next(iter(source))
    for way in places(conversation.stored):
        for new in WRONG:
            twin = conversation._replace(stored=changed(conversation.stored, way, new))
            try:
                taken, found = twin.take(wire)
                made = plan(taken, wire=found, max_tokens_for_clear=0, clear_retention_suffix_limit=0)
                twin.encode(twin.give(taken, made.messages))
            except (InputError, ConfigError, RecursionError):
                pass
            except Exception as error:  # noqa: BLE001 - that is what is looked for
                faults.append(f"{json.dumps(new)} at {way}: {type(error).__name__}: {error}")
    assert faults == []


# --- signals ----------------------------------------------------------------------------------

LINE = json.dumps(rounds(4000, 4000, 40)).encode() + b"\n"


def _hear_interrupts() -> None:
    """A shell that runs us in the background has us ignore them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def half_way(*arguments: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the command until it has saved the output of some conversations, of an input that has not ended."""
    with subprocess.Popen(
        [*COMMAND, "reduce", *LIMIT, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        preexec_fn=_hear_interrupts,  # noqa: PLW1509 - the tests start no threads
    ) as process:
        assert process.stdin is not None
        for _ in range(30):  # a pipe holds 64 KB: when this is through, all but the last lines were taken
            process.stdin.write(LINE)
        process.stdin.flush()
        yield process


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_command_leaves_nothing_behind_and_says_nothing(tmp_path: Path, sent: int, status: int):
    target, saved = tmp_path / "out.jsonl", tmp_path / "saved"
    target.write_text(OLD)
    with half_way("--save-to", saved, "-", "-o", target) as process:
        assert len(list(saved.iterdir())) > 10  # it was in the middle of its work
        process.send_signal(sent)
        assert process.wait(TIMEOUT) == status
        assert process.stderr is not None
        assert process.stdout is not None
        assert (process.stdout.read(), process.stderr.read()) == (b"", b"")
    assert list(tmp_path.iterdir()) == [target]
    assert target.read_text() == OLD


IN_THE_END_OF_A_LOOP = """
import asyncio.selector_events as events, sys
from suture.cli.main import main
real = events.BaseSelectorEventLoop._close_self_pipe
def once(loop):
    events.BaseSelectorEventLoop._close_self_pipe = real
    loop._csock.close()
    loop._ssock.close()
    loop._ssock = None
    raise KeyboardInterrupt
events.BaseSelectorEventLoop._close_self_pipe = once
sys.exit(main())
"""

BEFORE_A_LOOP_ENDS_ITS_STREAMS = """
import asyncio.base_events as events, sys
from suture.cli.main import main
real = events.BaseEventLoop.run_until_complete
def once(loop, work):
    if getattr(work, "__name__", "") == "shutdown_asyncgens":
        events.BaseEventLoop.run_until_complete = real
        raise KeyboardInterrupt
    return real(loop, work)
events.BaseEventLoop.run_until_complete = once
sys.exit(main())
"""


@pytest.mark.parametrize("program", [IN_THE_END_OF_A_LOOP, BEFORE_A_LOOP_ENDS_ITS_STREAMS])
def test_an_interrupt_in_the_end_of_an_event_loop_says_nothing(tmp_path: Path, program: str):
    history = tmp_path / "history.jsonl"
    history.write_bytes(LINE)
    command = [sys.executable, "-c", program, "reduce", *LIMIT, "--save-to", tmp_path / "saved", history]
    ended = subprocess.run(command, capture_output=True, env=environment(), timeout=TIMEOUT, check=False)
    assert (ended.returncode, ended.stderr) == (130, b"")


def test_a_killed_command_leaves_the_history_as_it_was_and_can_be_run_again(tmp_path: Path):
    target, saved = tmp_path / "out.jsonl", tmp_path / "saved"
    target.write_text(OLD)
    with half_way("--save-to", saved, "-", "-o", target) as process:
        process.send_signal(signal.SIGKILL)
        assert process.wait(TIMEOUT) == -signal.SIGKILL
    assert target.read_text() == OLD
    done = run("reduce", *LIMIT, "--save-to", saved, "-", "-o", target, stdin=LINE * 30)
    assert done.status == 0
    whole = {name for name in files(saved) if not name.endswith("\\unfinished")}
    assert whole == {f"line-{line}/clear/call_{n}" for line in range(1, 31) for n in (0, 1)}


def test_a_signal_right_behind_the_last_step_takes_no_file_away(tmp_path: Path):
    """The history is in its place when the signal comes: what it speaks of must be there, too."""
    path, saved, out = write_json(tmp_path / "h.json", LONG), tmp_path / "saved", tmp_path / "out.json"
    script = (
        "import os, signal, sys\n"
        "from suture.cli import main\n"
        "put = os.replace\n"
        "def replace(*where):\n"
        "    put(*where)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "os.replace = replace\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    arguments = ["reduce", *LIMIT, "--save-to", str(saved), str(path), "-o", str(out)]
    ended = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
        env=environment(),
        preexec_fn=_hear_interrupts,
    )
    assert ended.returncode == 130
    assert results(json.loads(out.read_text()))[0] == cleared(f"{saved}/clear/call_0")
    assert sorted(files(saved)) == ["clear/call_0", "clear/call_1"]
    assert stat.S_ISREG(out.stat().st_mode)
