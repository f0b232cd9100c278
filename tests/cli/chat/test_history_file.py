"""The file that a chat is kept in: read at the start, whole at any time, and nobody else's."""

import json
import os
import select
import shutil
import signal
import stat
from pathlib import Path
from typing import Any

import pytest

from suture.messages import AgenticMessage, Message, from_json, to_json
from tests.cli.chat.harbour import Harbour
from tests.cli.chat.terminal import Tmux
from tests.cli.program import GOOD, TIMEOUT, run, write_json

KEPT = ("--history", "talk.json")
CALL = {"id": "call_1", "name": "tides", "arguments": '{"port": "Dover"}'}
DANGLING: list[dict[str, Any]] = [
    {"kind": "message", "role": "user", "content": "tide"},
    {"kind": "message", "role": "assistant", "tool_calls": [CALL]},
]


def test_a_conversation_goes_on_where_it_was(harbour: Harbour):
    assert harbour.pipe("tide\n", *KEPT).status == 0
    done = harbour.pipe("what happened\n", *KEPT)
    assert done.out == "I was told: 06:12 in Dover\n"
    assert [role for role, _ in harbour.kept()] == ["user", "assistant", "tool", "assistant", "user", "assistant"]


def test_a_tool_that_goes_to_another_directory_does_not_take_the_file_along(harbour: Harbour):
    harbour.tools = "harbour:wander"
    done = harbour.pipe("wander\nhello\n", *KEPT)
    assert (done.status, done.out) == (0, "One moment.\nIt says: away\nYou said: hello\n")
    assert [role for role, _ in harbour.kept()] == ["user", "assistant", "tool", "assistant", "user", "assistant"]


def test_the_file_is_what_to_json_writes(harbour: Harbour):
    harbour.pipe("tide\n", *KEPT)
    stored = harbour.history.read_bytes()
    assert to_json(from_json(stored)) == stored.removesuffix(b"\n")


def test_a_terminal_tells_what_is_in_the_file(harbour: Harbour):
    harbour.pipe("tide\n", *KEPT)
    with harbour.terminal(*KEPT) as terminal:
        assert terminal.screen().startswith("harbour:model, 9 tools, 4 messages in talk.json.")
        assert terminal.say("what happened") == "I was told: 06:12 in Dover"


def test_a_process_that_is_killed_in_a_tool_leaves_a_file_from_which_the_next_goes_on(harbour: Harbour):
    with harbour.terminal(*KEPT) as terminal:
        terminal.say("hello")
        terminal.enter("hold")
        terminal.see("-> hold")
        os.kill(terminal.pid, signal.SIGKILL)
        terminal.wait()
    assert harbour.kept()[2:] == [("user", "hold"), ("assistant", "One moment.")]
    assert len(from_json(harbour.history.read_bytes())) == 4
    with harbour.terminal(*KEPT) as terminal:
        shown = terminal.say("what happened")
        assert shown.startswith("  (PatchToolCalls changed the history: 5 -> 6 messages)\nI was told: Tool call hold")
    assert run("check", harbour.history).status == 0


def test_a_process_that_is_killed_while_it_speaks_leaves_what_it_was_asked(harbour: Harbour):
    with harbour.terminal(*KEPT) as terminal:
        terminal.say("hello")
        terminal.enter("slow")
        terminal.see("Half of it")
        os.kill(terminal.pid, signal.SIGKILL)
        terminal.wait()
    assert harbour.kept()[2:] == [("user", "slow")]
    assert run("check", harbour.history).status == 0


@pytest.mark.parametrize(("said", "seen"), [("slow", "Half of it"), ("hold", "-> hold")])
@pytest.mark.parametrize(("sent", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_to_end_ends_the_turn_and_keeps_what_was_said(
    harbour: Harbour, sent: int, status: int, said: str, seen: str
):
    with harbour.terminal(*KEPT) as terminal:
        terminal.enter(said)
        terminal.see(seen)
        os.kill(terminal.pid, sent)
        assert terminal.wait() == status
    assert harbour.kept()[1] == ("assistant", "Half of it" if said == "slow" else "One moment.")
    assert run("check", harbour.history).status == 0


def test_sigterm_at_the_prompt_ends_it(harbour: Harbour):
    with harbour.terminal(*KEPT) as terminal:
        terminal.say("hello")
        os.kill(terminal.pid, signal.SIGTERM)
        assert terminal.wait() == 143
    assert len(harbour.kept()) == 2


@pytest.mark.skipif(not shutil.which("tmux"), reason="it takes a window")
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="nobody tells when a process ends")
@pytest.mark.parametrize("kept", [KEPT, ()], ids=["kept", "not kept"])
def test_a_window_that_is_closed_ends_the_turn_and_keeps_what_was_said(harbour: Harbour, kept: tuple[str, ...]):
    scratch = harbour.directory / "scratch"
    scratch.mkdir()
    terminal = Tmux([*harbour.command(*kept)], harbour.directory, {"TMPDIR": str(scratch)})
    try:
        terminal.see("you>")
        terminal.enter("slow")
        terminal.see("Half of it")
        process = os.pidfd_open(terminal.pid)
    finally:
        terminal.close()
    assert select.select([process], [], [], TIMEOUT)[0]
    os.close(process)
    assert list(scratch.iterdir()) == []
    assert harbour.history.exists() == bool(kept)
    assert not kept or harbour.kept() == [("user", "slow"), ("assistant", "Half of it")]


def test_a_broken_history_is_mended(harbour: Harbour):
    harbour.write(DANGLING)
    done = harbour.pipe("what happened\n", *KEPT)
    assert done.out.startswith("I was told: Tool call tides with id call_1 was canceled")
    assert "(PatchToolCalls changed the history: 3 -> 4 messages)" in done.err
    assert run("check", harbour.history).status == 0


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{"messages": [{"role": "tool", "tool_call_id": "a", "content": "x"}]}', "holds openai-chat messages"),
        (b'[{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}]', "holds anthropic messages"),
        (b'[{"role": "user", "parts": [{"text": "hi"}]}]', "holds gemini messages"),
        (b'[{"role": "user", "content": "hi"}]', "holds messages of another provider"),
        (to_json([AgenticMessage.user("hi")]), "holds agentic messages"),
        (to_json([Message.user("hi"), AgenticMessage.user("hi")]), "holds message and agentic messages"),
    ],
)
def test_messages_of_another_wire_are_refused_with_what_helps(harbour: Harbour, content: bytes, told: str):
    harbour.history.write_bytes(content)
    done = harbour.pipe("hello\n", *KEPT)
    helps = "make them message messages first: suture convert --to message"
    assert done == (2, "", f"suture: talk.json: {told}; {helps}\n")
    assert harbour.history.read_bytes() == content


def test_messages_of_another_wire_go_on_once_they_are_converted(harbour: Harbour):
    source = write_json(harbour.directory / "chat.json", GOOD)
    assert run("convert", "--to", "message", source, "-o", harbour.history).status == 0
    assert harbour.pipe("what happened\n", *KEPT).out == "I was told: sunny\n"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"{", "talk.json, line 1, column 2: the JSON ends before it is complete"),
        (b"null", "talk.json: expected a list of messages, or an object that holds one, found null"),
        (b'{"schema": 9, "messages": [{"kind": "message", "role": "user"}]}', "schema version 9"),
        (b'[{"kind": "message", "role": "pirate"}]', "talk.json, message 0, role: "),
        (b"[]\n[]\n", "talk.json: holds 2 conversations; a chat continues one"),
    ],
)
def test_a_file_that_is_no_history_is_refused_and_left_alone(harbour: Harbour, content: bytes, told: str):
    harbour.history.write_bytes(content)
    done = harbour.pipe("hello\n", *KEPT)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert told in done.err
    assert harbour.history.read_bytes() == content


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("-", "suture: --history -: a history is kept in a file, not in a stream\n"),
        (".", "suture: .: is no file that a history can be kept in\n"),
        ("gate", "suture: gate: is no file that a history can be kept in\n"),
        ("no/such/place.json", "suture: no/such/place.json: cannot be written: no such file or directory\n"),
        ("harbour.py/talk.json", "suture: harbour.py/talk.json: cannot be read: not a directory\n"),
    ],
)
def test_a_place_where_nothing_can_be_kept_is_refused_at_the_start(harbour: Harbour, path: str, told: str):
    assert harbour.pipe("hello\n", "--history", path) == (2, "", told)


@pytest.mark.parametrize("content", [b"", b"[]", b'{"schema": 1, "messages": []}'])
def test_a_file_with_nothing_in_it_is_a_beginning(harbour: Harbour, content: bytes):
    harbour.history.write_bytes(content)
    assert harbour.pipe("hello\n", *KEPT).status == 0
    assert len(harbour.kept()) == 2


def test_a_chat_in_which_nothing_was_said_makes_no_file(harbour: Harbour):
    before = sorted(harbour.directory.iterdir())
    assert harbour.pipe("/history\n", *KEPT).status == 0
    assert sorted(path for path in harbour.directory.iterdir() if path.name != "__pycache__") == before


def test_a_new_file_is_private_and_one_that_was_there_keeps_its_rights(harbour: Harbour):
    harbour.pipe("hello\n", *KEPT)
    assert stat.S_IMODE(harbour.history.stat().st_mode) == 0o600
    harbour.history.chmod(0o640)
    harbour.pipe("hello\n", *KEPT)
    assert stat.S_IMODE(harbour.history.stat().st_mode) == 0o640


def test_a_link_stays_a_link(harbour: Harbour, tmp_path: Path):
    target = tmp_path / "target.json"
    target.write_bytes(b"[]")
    harbour.history.symlink_to(target)
    harbour.pipe("hello\n", *KEPT)
    assert harbour.history.is_symlink()
    assert len(json.loads(target.read_bytes())["messages"]) == 2


def test_the_file_is_replaced_in_one_step_and_nothing_is_left_beside_it(harbour: Harbour):
    harbour.pipe("hello\n", *KEPT)
    with harbour.history.open("rb") as old:
        before = old.read()
        harbour.pipe("tide\n", *KEPT)
        old.seek(0)
        assert old.read() == before
    assert not list(harbour.directory.glob(".suture-*"))


def test_a_file_that_another_program_changed_meanwhile_is_left_alone(harbour: Harbour):
    other = to_json([Message.user("somebody else's")])
    with harbour.terminal(*KEPT) as terminal:
        terminal.say("hello")
        harbour.history.write_bytes(other)
        assert terminal.say("hello again").startswith(
            "You said: hello again\nsuture: talk.json: was changed by another"
        )
        assert harbour.history.read_bytes() == other


def test_a_turn_whose_history_cannot_be_written_is_answered_all_the_same(harbour: Harbour):
    place = harbour.directory / "place"
    place.mkdir()
    with harbour.terminal("--history", "place/talk.json") as terminal:
        place.rmdir()
        shown = terminal.say("hello")
        assert shown.startswith(
            "You said: hello\nsuture: place/talk.json: cannot be written: no such file or directory"
        )
        place.mkdir()
        terminal.say("and now")
    assert len(from_json((place / "talk.json").read_bytes())) == 4


def test_long_output_is_kept_beside_the_history_and_can_be_read_back(harbour: Harbour):
    harbour.pipe("log\n", *KEPT)
    (saved,) = [path for path in (harbour.directory / "talk.json.outputs").rglob("*") if path.is_file()]
    assert saved.read_text() == "x" * 60_000
    assert len(harbour.kept()[2][1]) < 51_000


def test_old_output_leaves_a_history_that_is_too_long(harbour: Harbour):
    done = harbour.pipe("log\nlog\n", *KEPT, "--max-tokens", "1000")
    assert "(ToolReduction changed the history: 7 -> 7 messages)" in done.err
    first, second = [text for role, text in harbour.kept() if role == "tool"]
    assert "Tool result saved to" in first
    assert len(first) < 200
    assert len(second) > 50_000


def test_without_a_history_nothing_is_left_behind(harbour: Harbour, tmp_path: Path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    assert harbour.pipe_apart("log\n", TMPDIR=str(scratch)).status == 0
    assert list(scratch.iterdir()) == []


def test_an_agentic_model_keeps_agentic_messages(harbour: Harbour):
    done = harbour.pipe("hello\n/undo\nhello\n/check\n", *KEPT, "--model", "harbour:agentic")
    assert done.out.startswith('I am agentic.\ntaken back: "hello" and 1 message after it\nI am agentic.\nagentic, ')
    assert [message["kind"] for message in harbour.messages()] == ["agentic", "agentic"]
