"""`suture check`: what it prints, and how it ends."""

import json
from pathlib import Path

import pytest

from suture.messages import AgenticMessage, FunctionToolCall, Message, ToolCall, to_json
from tests.cli.program import ANSWER, DANGLING, GOOD, USER, read_lines, run, run_apart, turn, write_json, write_lines


def test_an_acceptable_history_ends_with_0_and_says_so(tmp_path: Path):
    done = run("check", write_json(tmp_path / "h.json", GOOD))
    assert done == (0, "openai-chat, profile openai-chat: acceptable\n", "")


def test_a_finding_ends_with_1_and_names_the_message_the_problem_the_rule_and_its_source(tmp_path: Path):
    done = run("check", write_json(tmp_path / "h.json", DANGLING))
    assert (done.status, done.err) == (1, "")
    row = next(line for line in done.out.splitlines() if "dangling" in line)
    assert row.split() == ["1", "dangling", "call_1", "openai-chat.answered", "answered:", "interrupted"]
    assert "openai-chat.answered: Every tool call has a result. [400: " in done.out


def test_the_file_is_not_changed(tmp_path: Path):
    path = write_json(tmp_path / "h.json", DANGLING, indent=4)
    before = path.read_bytes()
    run("check", path)
    assert path.read_bytes() == before


def test_standard_input_is_read_from_a_pipe():
    assert run("check", "-", stdin=json.dumps(DANGLING).encode()).status == 1
    assert run("check", "-", stdin=json.dumps(GOOD).encode()).status == 0


def test_json_is_one_object_a_conversation_with_its_line(tmp_path: Path):
    path = tmp_path / "h.jsonl"
    path.write_text(f"{json.dumps(GOOD)}\n\n{json.dumps({'messages': DANGLING})}\n", encoding="utf-8")
    done = run("check", "--json", path)
    first, second = read_lines(done.out)
    assert done.status == 1
    assert (first["line"], first["report"]["acceptable"]) == (1, True)
    assert (second["line"], second["report"]["acceptable"]) == (3, False)
    assert second["report"]["findings"][0]["problem"] == "dangling"


def test_only_conversations_with_findings_are_shown_and_all_are_counted(tmp_path: Path):
    done = run("check", write_lines(tmp_path / "h.jsonl", [GOOD, GOOD, DANGLING]))
    assert done.status == 1
    assert done.out.startswith("line 3: openai-chat, profile openai-chat: 1 finding\n")
    assert done.out.endswith("\n3 conversations: 2 acceptable, 1 with findings\n")


def test_one_message_a_line_is_one_conversation(tmp_path: Path):
    done = run("check", "--json", write_lines(tmp_path / "h.jsonl", DANGLING))
    (only,) = read_lines(done.out)
    assert only["report"]["findings"][0]["index"] == 1


@pytest.mark.parametrize(("tail", "status"), [("cancel", 1), ("keep", 0)])
def test_an_open_tail_is_accepted_only_if_it_is_to_be_kept(tmp_path: Path, tail: str, status: int):
    path = write_json(tmp_path / "h.json", [USER, turn("call_1")])
    assert run("check", "--tail", tail, path).status == status


def test_a_profile_brings_its_own_rules(tmp_path: Path):
    path = write_json(tmp_path / "h.json", GOOD)
    assert run("check", path).status == 0
    done = run("check", "--profile", "mistral", path)
    assert done.status == 1
    assert "openai-chat, profile mistral: " in done.out
    assert "mistral.id-form" in done.out


def test_a_wire_is_taken_from_the_command_line(tmp_path: Path):
    path = write_json(tmp_path / "h.json", [USER, ANSWER])
    assert run("check", "--wire", "anthropic", path).out == "anthropic, profile anthropic: acceptable\n"


NATIVE = [
    pytest.param([Message.user("hi"), Message.assistant(tool_calls=[ToolCall("a", "f", "{}")])], id="message"),
    pytest.param(
        [AgenticMessage.user("hi"), AgenticMessage.assistant([FunctionToolCall("a", "f", "{}")])], id="agentic"
    ),
]


@pytest.mark.parametrize("messages", NATIVE)
def test_suture_s_own_messages_are_recognised_in_their_envelope(tmp_path: Path, messages: list, request):
    path = tmp_path / "h.json"
    path.write_bytes(to_json(messages))
    done = run("check", path)
    assert done.status == 1
    assert done.out.startswith(f"{request.node.callspec.id}, profile pairing: 1 finding\n")


def test_a_native_wire_reads_messages_that_do_not_say_their_kind(tmp_path: Path):
    call = {"id": "a", "name": "f", "arguments": "{}"}
    path = write_json(tmp_path / "h.json", [{"role": "assistant", "tool_calls": [call]}])
    done = run("check", "--wire", "message", path)
    assert done.out.startswith("message, profile pairing: 1 finding\n")


def test_the_version_is_printed():
    done = run("--version")
    assert (done.status, done.out.split()[0], done.err) == (0, "suture", "")
    assert run("-V") == done


@pytest.mark.parametrize("command", ["check", "repair", "reduce", "convert", "chat", "worker"])
def test_the_help_of_a_command_has_its_own_exit_statuses_and_examples(command: str):
    done = run(command, "--help")
    assert (done.status, done.err) == (0, "")
    assert "exit status:\n  0" in done.out
    examples = done.out.partition("examples:\n")[2].splitlines()
    assert examples
    assert all(line.startswith(f"  suture {command}") for line in examples)


def test_without_a_command_the_help_is_shown():
    assert (done := run()).status == 2
    assert done.out == run("--help").out
    assert "suture repair conversation.json -o repaired.json" in done.out


WRONG = [
    pytest.param(["mend", "x"], "invalid choice: 'mend'", id="an unknown command"),
    pytest.param(["check", "--wire", "telegraph", "x"], "invalid choice: 'telegraph'", id="an unknown wire"),
    pytest.param(["check", "--profile", "acme", "x"], "invalid choice: 'acme'", id="an unknown profile"),
    pytest.param(["check", "--max-bytes", "-5", "x"], "above 0", id="a negative size"),
    pytest.param(["check", "--max-bytes", "many", "x"], "found 'many'", id="a size that is no number"),
    pytest.param(["view", "--port", "65536", "x"], "0 to 65535, found '65536'", id="a port that there is not"),
    pytest.param(["check", "--frobnicate", "x"], "--frobnicate", id="an unknown option"),
    pytest.param(["repair", "--report", "-", "x"], "give -o", id="two things to standard output"),
]


@pytest.mark.parametrize(("arguments", "told"), WRONG)
def test_a_wrong_command_line_is_one_line_and_2(arguments: list[str], told: str):
    done = run(*arguments)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("suture: ")
    assert told in done.err


def test_the_package_is_run_as_the_command_and_calls_itself_so():
    ended = run_apart("check", "--help")
    assert (ended.status, ended.out.split()[:3]) == (0, ["usage:", "suture", "check"])
