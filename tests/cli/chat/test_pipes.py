"""`suture chat` between pipes: lines in, answers out, and an exit status for a script."""

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cli.chat.harbour import EVIL, Harbour
from tests.cli.program import TIMEOUT, environment, run


def _hear_interrupts() -> None:
    """A shell that runs us in the background has us ignore them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def piped(harbour: Harbour, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        harbour.command("--history", "talk.json", *options),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=harbour.directory,
        env=environment(),
        preexec_fn=_hear_interrupts,  # noqa: PLW1509 - the tests start no threads
    ) as process:
        yield process
        process.kill()


def type_line(process: subprocess.Popen[bytes], text: str) -> None:
    assert process.stdin
    process.stdin.write(f"{text}\n".encode())
    process.stdin.flush()


def read_to(process: subprocess.Popen[bytes], end: str) -> str:
    assert process.stdout
    shown = b""
    while not shown.endswith(end.encode()):
        piece = os.read(process.stdout.fileno(), 1)
        assert piece, f"waited for {end!r}, saw {shown!r}"
        shown += piece
    return shown.decode()


def test_answers_go_out_and_what_happens_beside_goes_to_standard_error(harbour: Harbour):
    done = harbour.pipe("tide\nhello\n")
    assert done.out == "One moment.\nIt says: 06:12 in Dover\nYou said: hello\n"
    assert done.err == '  -> tides {"port": "Dover"}\n  <- tides 06:12 in Dover\n'
    assert done.status == 0


def test_nothing_in_is_nothing_out(harbour: Harbour):
    assert harbour.pipe("") == (0, "", "")
    assert harbour.pipe("\n   \n\n") == (0, "", "")


def test_the_last_line_needs_no_end(harbour: Harbour):
    for typed in ("hello", "hello\\", "hello\r\n"):
        harbour.pipe(typed, "--history", "talk.json")
    assert [text for role, text in harbour.kept() if role == "user"] == ["hello"] * 3


def test_a_line_that_ends_in_a_backslash_goes_on(harbour: Harbour):
    assert harbour.pipe("one\\\ntwo\n").out == "You said: one\ntwo\n"
    assert harbour.pipe("C:\\\\\ntwo\n").out == "You said: C:\\\\\nYou said: two\n"


def test_the_exit_status_is_that_of_the_last_turn(harbour: Harbour):
    failed = harbour.pipe("hello\nbroken\nfail\n")
    assert failed.status == 1
    assert harbour.pipe("fail\nhello\n").status == 0
    assert harbour.pipe("fail\n/check\n").status == 1


def test_an_error_is_one_line(harbour: Harbour):
    done = harbour.pipe("fail\n", "--history", "talk.json")
    told = "\\x1b]0;owned\\x07\\x1b[31m\\x9b31m\\x7f\\u202egnp.exe\\x00"
    assert done == (1, "", f"suture: ValueError: the model fell into the water {told}\n")
    assert harbour.kept() == [("user", "fail")]


def test_other_attempts_are_told(harbour: Harbour):
    done = harbour.pipe("flaky\n")
    assert re.fullmatch(r"  \(trying again in 0\.[5-8] s: ModelConnectionError: the line is down\)\n", done.err)
    assert (done.status, done.out) == (0, "You said: flaky\n")


@pytest.mark.parametrize(
    ("tool", "told"),
    [
        ("leave", "the tool ended with exit code 3"),
        ("leave_at_once", "the tool ended: goodbye"),
        ("interrupt", "it tried to end the program (KeyboardInterrupt)"),
    ],
)
def test_a_tool_that_would_end_the_program_has_failed_and_the_chat_goes_on(harbour: Harbour, tool: str, told: str):
    done = harbour.pipe(f"{tool}\nhello\n", "--tools", "harbour:rude", "--history", "talk.json")
    assert done.status == 0
    assert f"RuntimeError: {told}\nYou said: hello\n" in done.out
    assert "Traceback" not in done.err
    assert [role for role, _ in harbour.kept()] == ["user", "assistant", "tool", "assistant", "user", "assistant"]


@pytest.mark.parametrize(("said", "told"), [("quit", "SystemExit: 4"), ("kill", "KeyboardInterrupt")])
def test_a_model_that_would_end_the_program_has_failed_and_the_chat_goes_on(harbour: Harbour, said: str, told: str):
    done = harbour.pipe(f"{said}\nhello\n", "--history", "talk.json")
    assert done == (0, "You said: hello\n", f"suture: RuntimeError: it tried to end the program ({told})\n")
    assert harbour.kept() == [("user", said), ("user", "hello"), ("assistant", "You said: hello")]


@pytest.mark.parametrize("said", ["half a letter", "halve", "break_in_half", "halved call"])
def test_half_a_letter_is_replaced_and_the_chat_goes_on(harbour: Harbour, said: str):
    done = harbour.pipe(f"{said}\nhello\n", "--tools", "harbour:rude", "--history", "talk.json")
    assert (done.status, "suture:" in done.err) == (0, False)
    assert "\N{REPLACEMENT CHARACTER}" in done.out
    assert "\N{REPLACEMENT CHARACTER}" in "".join(text for _, text in harbour.kept())
    assert harbour.kept()[-1] == ("assistant", "You said: hello")
    assert run("check", harbour.history).status == 0


def test_nobody_can_be_asked_for_approval(harbour: Harbour):
    done = harbour.pipe("buy\nhello\n")
    assert "it was rejected.\nReason: nobody was there to ask\n" in done.out
    assert done.out.endswith("You said: hello\n")


def test_what_is_no_text_is_told_and_not_sent(harbour: Harbour):
    done = harbour.pipe(b"hello\n\xff\xfe\n", "--history", "talk.json")
    assert done == (1, "You said: hello\n", "suture: that is not UTF-8, and was not sent\n")
    assert len(harbour.kept()) == 2
    assert harbour.pipe(b"\xff\nhello\n").status == 0


def test_any_letters_pass(harbour: Harbour):
    text = "京都 👨‍💻 naïve\u00a0space\u3000wide"
    assert harbour.pipe(f"{text}\n").out == f"You said: {text}\n"
    assert harbour.pipe_apart("京都\n", PYTHONIOENCODING="ascii").out == "You said: \\u4eac\\u90fd\n"


@pytest.mark.parametrize("said", ["evil", "evil tool", "evil call", f"echo {EVIL[:-1]}"])
def test_escapes_pass_to_nobody(harbour: Harbour, said: str):
    done = harbour.pipe(f"{said}\n/history\n")
    assert "gnp.exe" in done.out
    assert {letter for letter in done.out + done.err if not letter.isprintable()} == {"\n"}


def test_sigint_stops_the_turn_and_the_next_line_is_answered(harbour: Harbour):
    with piped(harbour) as process:
        type_line(process, "slow")
        read_to(process, "Half of it")
        process.send_signal(signal.SIGINT)
        type_line(process, "hello")
        assert read_to(process, "hello\n") == "\nYou said: hello\n"
        assert process.stdin
        process.stdin.close()
        assert process.wait(TIMEOUT) == 0
    assert harbour.kept() == [
        ("user", "slow"),
        ("assistant", "Half of it"),
        ("user", "hello"),
        ("assistant", "You said: hello"),
    ]


def test_a_last_turn_that_was_stopped_is_told_to_a_script(harbour: Harbour):
    with piped(harbour) as process:
        type_line(process, "slow")
        assert process.stdin
        process.stdin.close()
        read_to(process, "Half of it")
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT) == 130


def test_sigint_between_turns_ends_it(harbour: Harbour):
    with piped(harbour) as process:
        type_line(process, "hello")
        type_line(process, "/check")
        read_to(process, "acceptable\n")
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT) == 130
        assert process.stderr
        assert process.stderr.read() == b""
    assert harbour.kept()[-1] == ("assistant", "You said: hello")


def test_a_reader_who_goes_away_ends_it_and_what_was_said_is_kept(harbour: Harbour):
    with piped(harbour) as process:
        type_line(process, "slow")
        read_to(process, "Half of it")
        assert process.stdout
        process.stdout.close()
        harbour.open("gate")
        assert process.wait(TIMEOUT) == 141
    assert harbour.kept()[0] == ("user", "slow")
    assert harbour.kept()[1][1].startswith("Half of it")
    assert run("check", harbour.history).status == 0


def test_closed_streams_are_told_or_borne(harbour: Harbour):
    command = shlex.join(harbour.command())

    def shell(script: str) -> tuple[int, str, str]:
        done = subprocess.run(
            ["sh", "-c", script],
            cwd=harbour.directory,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
            env=environment(),
        )
        return done.returncode, done.stdout, done.stderr

    assert shell(f"{command} <&-") == (2, "", "suture: standard input: is closed\n")
    assert shell(f"echo hello | {command} --history talk.json >&-") == (0, "", "")
    assert shell(f"echo tide | {command} 2>&-") == (0, "One moment.\nIt says: 06:12 in Dover\n", "")
    assert harbour.kept() == [("user", "hello"), ("assistant", "You said: hello")]
