"""`suture repair`: what it writes, and that it leaves everything else alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from suture.messages import Message, ToolCall, from_json, to_json
from tests.cli.program import (
    DANGLING,
    GOOD,
    STOP,
    UNMENDABLE,
    USER,
    read_lines,
    result,
    run,
    turn,
    write_json,
    write_lines,
)

PLACEHOLDER = "Tool call weather with id call_1 was canceled - another message came in before it could be completed."
MENDED = [USER, turn("call_1"), result("call_1", PLACEHOLDER), STOP]


def test_the_repaired_history_goes_to_standard_output_and_nothing_else_does(tmp_path: Path):
    done = run("repair", write_json(tmp_path / "h.json", DANGLING))
    assert (done.status, done.err) == (0, "")
    assert json.loads(done.out) == MENDED


def test_a_history_that_is_fine_comes_back_with_0(tmp_path: Path):
    done = run("repair", write_json(tmp_path / "h.json", GOOD))
    assert (done.status, json.loads(done.out), done.err) == (0, GOOD, "")


def test_what_is_repaired_is_accepted_by_check(tmp_path: Path):
    out = tmp_path / "out.json"
    assert run("repair", write_json(tmp_path / "h.json", DANGLING), "-o", out).status == 0
    assert run("check", out).status == 0


@pytest.mark.parametrize("key", ["messages", "input", "contents"])
def test_an_object_keeps_its_other_fields_and_their_order(tmp_path: Path, key: str):
    holder = {"zeta": [1, {"b": 2, "a": 1}], key: DANGLING, "alpha": None}
    done = run("repair", "--wire", "openai-chat", write_json(tmp_path / "h.json", holder))
    assert done.out == json.dumps({**holder, key: MENDED}, separators=(",", ":")) + "\n"


def test_a_pretty_document_stays_pretty_and_keeps_its_letters(tmp_path: Path):
    holder = {"title": "京都 °C é", "messages": DANGLING}
    done = run("repair", write_json(tmp_path / "h.json", holder, indent=4))
    assert done.out == json.dumps({**holder, "messages": MENDED}, indent=2, ensure_ascii=False) + "\n"


def test_json_lines_keep_one_conversation_a_line(tmp_path: Path):
    path = write_lines(tmp_path / "h.jsonl", [{"id": 1, "messages": DANGLING}, GOOD, {"id": 3, "messages": GOOD}])
    done = run("repair", path)
    assert read_lines(done.out) == [{"id": 1, "messages": MENDED}, GOOD, {"id": 3, "messages": GOOD}]


def test_json_lines_keep_one_message_a_line(tmp_path: Path):
    assert read_lines(run("repair", write_lines(tmp_path / "h.jsonl", DANGLING)).out) == MENDED


def test_blank_lines_and_a_byte_order_mark_do_no_harm():
    lines = [json.dumps(message).encode() for message in DANGLING]
    done = run("repair", "-", stdin=b"\xef\xbb\xbf\n" + b"\r\n  \n\n".join(lines) + b"\n\n")
    assert (done.status, read_lines(done.out)) == (0, MENDED)


def test_numbers_keep_their_value(tmp_path: Path):
    numbers = '{"big":123456789012345678901234567890,"one":1.0,"tiny":5e-324,"deep":[0.1,-0.0,1e22]}'
    path = tmp_path / "h.json"
    path.write_text(f'{{"messages":{json.dumps(DANGLING)},"meta":{numbers}}}', encoding="utf-8")
    assert json.loads(run("repair", path).out)["meta"] == json.loads(numbers)
    assert "123456789012345678901234567890" in run("repair", path).out


def test_the_report_file_has_one_object_a_conversation(tmp_path: Path):
    path = write_lines(tmp_path / "h.jsonl", [GOOD, DANGLING])
    report = tmp_path / "report.jsonl"
    assert run("repair", path, "--report", report, "-o", tmp_path / "out.jsonl").status == 0
    first, second = read_lines(report.read_text(encoding="utf-8"))
    assert (first["line"], first["changed"], first["report"]["findings"]) == (1, False, [])
    assert (second["line"], second["changed"]) == (2, True)
    assert [finding["problem"] for finding in second["report"]["findings"]] == ["dangling"]


def test_the_report_can_go_to_standard_output_if_the_history_does_not(tmp_path: Path):
    path = write_json(tmp_path / "h.json", DANGLING)
    done = run("repair", path, "-o", tmp_path / "out.json", "--report", "-")
    (only,) = read_lines(done.out)
    assert only["changed"] is True


def test_a_displaced_result_is_told_by_its_length_and_never_by_its_content(tmp_path: Path):
    history = [USER, turn("call_1"), result("call_1", "a secret"), result("call_1", "another")]
    report = tmp_path / "report.json"
    run("repair", write_json(tmp_path / "h.json", history), "--report", report, "-o", tmp_path / "out.json")
    assert json.loads(report.read_text())["report"]["displaced"][0]["length"] == len("a secret")
    assert "secret" not in report.read_text()


def test_calls_at_the_end_are_left_open_if_that_is_asked(tmp_path: Path):
    path = write_json(tmp_path / "h.json", [USER, turn("call_1")])
    report = tmp_path / "report.json"
    done = run("repair", "--tail", "keep", "--report", report, path)
    assert json.loads(done.out) == [USER, turn("call_1")]
    assert json.loads(report.read_text())["pending"][0]["call_id"] == "call_1"


@pytest.mark.parametrize(("orphans", "kept"), [("text", True), ("drop", False)])
def test_a_result_without_a_call_is_kept_as_text_or_dropped(tmp_path: Path, orphans: str, kept: bool):
    path = write_json(tmp_path / "h.json", [USER, result("call_9", "31 °C"), STOP])
    done = run("repair", "--orphans", orphans, path)
    assert ("31 °C" in done.out) is kept
    assert [message["role"] for message in json.loads(done.out)] == ["user", *["user"] * kept, "user"]


def test_texts_are_put_in_the_language_that_is_asked(tmp_path: Path):
    done = run("repair", "--language", "zh", write_json(tmp_path / "h.json", DANGLING))
    assert "工具调用 weather" in done.out


def test_what_cannot_be_mended_ends_with_1_is_told_on_one_line_and_is_still_written(tmp_path: Path):
    path = write_json(tmp_path / "h.json", UNMENDABLE)
    done = run("repair", "--profile", "bedrock", "--wire", "bedrock", write_json(path, _bedrock(UNMENDABLE)))
    assert done.status == 1
    assert done.err.count("\n") == 1
    assert done.err.startswith(f"suture: {path}, message 1: not repaired: illegal-name; ")
    assert json.loads(done.out) == _bedrock(UNMENDABLE)


def _bedrock(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    call = {"toolUseId": "toolu_1", "name": "get weather!", "input": {}}
    told = {"toolUseId": "toolu_1", "content": [{"text": "sunny"}]}
    return [
        {"role": "user", "content": [{"text": history[0]["content"]}]},
        {"role": "assistant", "content": [{"toolUse": call}]},
        {"role": "user", "content": [{"toolResult": told}]},
    ]


def test_an_envelope_of_suture_s_own_messages_comes_back_as_one(tmp_path: Path):
    before = [Message.user("hi"), Message.assistant(tool_calls=[ToolCall("a", "f", "{}")]), Message.user("stop")]
    path = tmp_path / "h.json"
    path.write_bytes(to_json(before))
    done = run("repair", path)
    after = from_json(done.out)
    assert [message.role for message in after] == ["user", "assistant", "tool", "user"]
    assert [after[0], after[1], after[3]] == before
    assert json.loads(done.out)["schema"] == 1


def test_a_native_message_that_is_not_touched_is_written_as_it_stood(tmp_path: Path):
    spoken = {"kind": "message", "content": "", "role": "user", "name": "", "extra": {"z": 1.0, "a": 2}}
    call = {"id": "a", "name": "f", "arguments": "{}", "type": "function"}
    history = [spoken, {"kind": "message", "role": "assistant", "tool_calls": [call]}, spoken]
    done = run("repair", write_json(tmp_path / "h.json", history))
    after = json.loads(done.out)
    assert len(after) == 4
    assert [json.dumps(after[place]) for place in (0, 1, 3)] == [json.dumps(message) for message in history]


def test_a_file_in_a_pipe_gets_plain_text_about_what_was_done(tmp_path: Path):
    out = tmp_path / "out.json"
    done = run("repair", write_json(tmp_path / "h.json", DANGLING), "-o", out)
    assert done.out.startswith("openai-chat, profile openai-chat: 1 finding\n")
    assert done.out.endswith(f"\n1 conversation, 1 changed; written to {out}\n")
    assert "\x1b" not in done.out
