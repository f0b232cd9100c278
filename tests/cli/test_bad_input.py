"""Input that cannot be used: one line that says what and where, status 2, and nothing written. Never a traceback."""

import errno
import json
import os
import subprocess
from pathlib import Path

import pytest

from suture.cli import main
from tests.cli.program import COMMAND, GOOD, TIMEOUT, USER, Done, environment, run, write_json

HI = '{"role":"user","content":"hi"}'
LEVELS = 1_000_000  # more than any stack holds: from Python 3.14 on, only its size limits what C code may nest
DEEP = "[" * LEVELS + "]" * LEVELS


def case(name: str, data: str | bytes, told: str):
    return pytest.param(data if isinstance(data, bytes) else data.encode(), told, id=name)


NOT_JSON = [
    case("text", "hello", ", line 1, column 1: not JSON: expecting value"),
    case("a terminal escape", "\x1b[31mhello", ", line 1, column 1: not JSON: expecting value"),
    case("zeros", b"\0\0\0", ", line 1, column 1: not JSON: expecting value"),
    case("a document and more", "[] []", ", line 1, column 4: not JSON: extra data"),
    case("a missing comma", f"[\n{HI}\n{HI}\n]", ", line 3, column 1: not JSON: expecting ',' delimiter"),
    case("a cut document", f"[{HI},", "the JSON ends before it is complete"),
    case("a cut string", '[{"role":"us', ", line 1, column 13: the JSON ends before it is complete"),
    case("a cut pretty document", f"[\n{HI},\n{{", ", line 3, column 2: the JSON ends before it is complete"),
    case("a broken line", f"[{HI}]\n[{HI}]\noops\n", ", line 3, column 1: not JSON: expecting value"),
    case(
        "bytes that are no text", b'[{"role":"user",\n"content":"\xff"}]', ", line 2, byte 12: byte 0xff is not UTF-8"
    ),
    case("another encoding", f"[{HI}]".encode("utf-16"), ", line 1, byte 1: byte 0xff is not UTF-8"),
    case("nothing", "", ": there is nothing in it"),
    case("blank lines", "\n \r\n\n", ": there is nothing in it"),
]

NO_VALUES = [
    case(
        "a number out of range", '[{"role":"user","content":"hi","n":1e999}]', ", message 0, n: a number out of range"
    ),
    case("a negative one", f'{{"messages":[{HI}],"n":-1e999}}', ", n: a number out of range"),
    case("an endless integer", f'[{{"role":"user","n":{"9" * 5000}}}]', ", message 0, n: a number out of range"),
    case("NaN", '[{"role":"user","n":NaN}]', ", message 0, n: NaN and Infinity are not JSON"),
    case("Infinity", f'{{"messages":[{HI}],"n":[-Infinity]}}', ", n[0]: NaN and Infinity are not JSON"),
    case("a million levels", DEEP, ": nested too deeply"),
    case("a million levels in a message", f'[{{"role":"user","content":{DEEP}}}]', ": nested too deeply"),
    case("a million levels of objects", '[{"a":' + '{"a":' * LEVELS + "1" + "}" * LEVELS + "}]", ": nested too deeply"),
    case("a million levels in a line", f"{HI}\n{DEEP}", ", line 2: nested too deeply"),
    case(
        "300 levels in a content",
        f'[{{"role":"user","content":[{{"type":"text","x":{"[" * 300}{"]" * 300}}}]}}]',
        ": nested more than 200 levels deep",
    ),
]

NO_CONVERSATIONS = [
    case("a number", "12", ": expected a list of messages, or an object that holds one, found int"),
    case("a string", '"x"', ": expected a list of messages, or an object that holds one, found str"),
    case("null", "null", ": expected a list of messages, or an object that holds one, found null"),
    case("an object of something else", '{"a":1}', ": an object without messages, input or contents"),
    case("messages that are null", '{"messages":null}', ", messages: expected a list of messages, found null"),
    case("messages that are an object", '{"messages":{}}', ", messages: expected a list of messages, found object"),
    case("input that is a text", '{"input":"hi"}', ", input: expected a list of messages, found str"),
    case("one message over several lines", f"{{\n{HI[1:]}", ": expected a list of messages, found a single message"),
    case(
        "a conversation among messages",
        f"{HI}\n[{HI}]",
        ", line 2: expected a message, as in line 1, found a conversation",
    ),
    case("null among messages", f"{HI}\n\nnull", ", line 3: expected a message, as in line 1, found null"),
    case(
        "a message among conversations",
        f"[{HI}]\n{HI}",
        ", line 2: expected a conversation, as in line 1, found a single message",
    ),
    case(
        "null among conversations",
        f"[{HI}]\nnull",
        ", line 2: expected a list of messages, or an object that holds one, found null",
    ),
]

NO_MESSAGES = [
    case("a null message", "[null]", ", message 0: expected a message, found null"),
    case("a number as a message", f"[{HI},3]", ", message 1: expected a message, found int"),
    case("a list as a message", f"[{HI},[]]", ", message 1: expected a message, found list"),
    case(
        "an unknown role",
        f'[{HI},{{"role":"wizard","content":"x"}}]',
        ", message 1: unknown role 'wizard'; expected one of ",
    ),
    case(
        "an unknown role in a line",
        f'{HI}\n{{"role":"wizard","content":"x"}}',
        ", line 2, message 1: unknown role 'wizard'; ",
    ),
    case(
        "an unknown role in a conversation",
        f'[{HI}]\n[{{"role":"wizard"}}]',
        ", line 2, message 0: unknown role 'wizard'; ",
    ),
    case("escapes in a role", '[{"role":"\\u001b[31m\\u009b","content":"x"}]', r"unknown role '\x1b[31m\x9b'; "),
    case("a type of a wrong type", '[{"type":["x"]}]', ", message 0: "),
    case("a content of a wrong type", '[{"role":"user","content":5}]', ", message 0"),
    case(
        "calls of a wrong type",
        '[{"role":"assistant","tool_calls":5}]',
        ", message 0, tool_calls: expected a list, found int",
    ),
    case(
        "a call of a wrong type",
        '[{"role":"assistant","tool_calls":[5]}]',
        ", message 0, tool_calls[0]: expected an object, found int",
    ),
    case(
        "an id of a wrong type",
        '[{"role":"tool","tool_call_id":5,"content":"x"}]',
        ", message 0, tool_call_id: expected a string, found int",
    ),
    case(
        "a block's id of a wrong type",
        '[{"role":"assistant","content":[{"type":"tool_use","id":5,"name":"f","input":{}}]}]',
        ", message 0, ",
    ),
    case(
        "parts of a wrong type",
        '{"contents":[{"role":"user","parts":5}]}',
        ", message 0, parts: expected a list, found int",
    ),
    case(
        "a native content of a wrong type",
        '[{"kind":"message","role":"user","content":5}]',
        ", message 0, content: ",
    ),
    case("a native message with a role of its own", '[{"kind":"message","role":"wizard"}]', ", message 0, role: "),
    case(
        "null among native messages",
        '[{"kind":"message","role":"user"},null]',
        ", message 1: expected a message, found null",
    ),
    case(
        "both native kinds",
        '[{"kind":"message","role":"user"},{"kind":"agentic","role":"user"}]',
        ", message 1: expected a Message",
    ),
    case(
        "an envelope from the future",
        '{"schema":2,"messages":[{"kind":"message","role":"user"}]}',
        ", schema: these have schema version 2",
    ),
]

BAD = NOT_JSON + NO_VALUES + NO_CONVERSATIONS + NO_MESSAGES


def is_one_true_line(err: str, name: str, told: str) -> bool:
    plain = err.removesuffix("\n")
    return plain.isprintable() and plain.startswith(f"suture: {name}") and told in plain and "internal" not in plain


@pytest.mark.parametrize(("data", "told"), BAD)
def test_a_bad_file_is_refused_on_one_line_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes, told: str
):
    path, out, report = tmp_path / "bad.json", tmp_path / "out.json", tmp_path / "report.json"
    path.write_bytes(data)
    status = main(["repair", str(path), "-o", str(out), "--report", str(report)])
    printed = capsys.readouterr()
    assert (status, printed.out) == (2, "")
    assert is_one_true_line(printed.err, str(path), told), printed.err
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("data", "told"), BAD)
def test_bad_standard_input_is_refused_on_one_line_and_nothing_is_written(data: bytes, told: str):
    done = run("check", "-", stdin=data)
    assert (done.status, done.out) == (2, "")
    assert is_one_true_line(done.err, "standard input", told), done.err


HALVES = [
    pytest.param('[{"role":"user","content":"a\\ud800b"}]', '[{"role":"user","content":"a\ufffdb"}]', id="a text"),
    pytest.param(
        f'{HI}\n{{"role":"user","content":"x","n":["\\udc00",12345678901234567890123]}}',
        f'{HI}\n{{"role":"user","content":"x","n":["\ufffd",12345678901234567890123]}}',
        id="a field of a line",
    ),
    pytest.param('{"messages":[],"\\udfff":1}', '{"messages":[],"\ufffd":1}', id="a key beside the messages"),
    pytest.param(
        '[{"kind":"message","role":"user","content":"\\ud800"}]',
        '[{"kind":"message","role":"user","content":"\ufffd"}]',
        id="a native text",
    ),
]


@pytest.mark.parametrize("command", [["repair"], ["reduce", "--discard", "-o", "-"]], ids=["repair", "reduce"])
@pytest.mark.parametrize(("data", "written"), HALVES)
def test_half_a_surrogate_pair_is_replaced(command: list[str], data: str, written: str):
    assert run(*command, "-", stdin=data.encode()) == (0, f"{written}\n", "")


def test_half_a_surrogate_pair_is_replaced_in_another_wire_too():
    converted = run("convert", "--to", "gemini", "-", stdin=b'[{"role":"user","content":"a\\ud800b"}]')
    assert converted == (0, '[{"role":"user","parts":[{"text":"a\ufffdb"}]}]\n', "")


def test_half_a_surrogate_pair_is_a_finding():
    done = run("check", "--json", "-", stdin=b'[{"role":"user","content":"a\\ud800b"}]')
    assert done.status == 1
    assert [found["problem"] for found in json.loads(done.out)["report"]["findings"]] == ["lone-surrogate"]


def test_a_repair_to_standard_output_has_written_the_lines_before_the_bad_one():
    good = f"{json.dumps(GOOD)}\n" * 4
    done = run("repair", "-", stdin=f"{good}[null]\n".encode())
    assert done == (2, good, "suture: standard input, line 5, message 0: expected a message, found null\n")


def test_a_file_that_is_not_there_is_told(tmp_path: Path):
    path = tmp_path / "none.json"
    assert run("check", path) == (2, "", f"suture: {path}: cannot be read: no such file or directory\n")


def test_a_directory_is_told(tmp_path: Path):
    assert run("repair", tmp_path) == (2, "", f"suture: {tmp_path}: there is no .json or .jsonl file below it\n")


def test_a_file_without_permission_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def refuse(*_: object, **__: object):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("builtins.open", refuse)  # a superuser, who may run the tests, is never refused
    assert main(["check", str(tmp_path / "h.json")]) == 2
    assert capsys.readouterr().err == f"suture: {tmp_path / 'h.json'}: cannot be read: permission denied\n"


def test_a_file_that_fails_while_it_is_read_is_told():
    done = run("check", "/proc/self/mem")
    assert done == (2, "", "suture: /proc/self/mem: cannot be read: input/output error\n")


def test_a_name_with_escapes_is_neutralised(tmp_path: Path):
    done = run("check", tmp_path / "a\x1b[31m\nb.json")
    assert done.err == f"suture: {tmp_path}/a\\x1b[31m\\nb.json: cannot be read: no such file or directory\n"


def test_a_closed_standard_input_is_told():
    assert run_in_shell("check - <&-") == (2, "", "suture: standard input: is closed\n")


@pytest.mark.parametrize("command", ["check", "repair"])
def test_a_closed_standard_output_is_told(tmp_path: Path, command: str):
    path = write_json(tmp_path / "h.json", GOOD)
    done = run_in_shell(f"{command} {path} >&-")
    assert (done.status, done.err) == (2, "suture: standard output: is closed\n")


def test_with_a_closed_standard_error_nothing_is_told_elsewhere(tmp_path: Path):
    path = write_json(tmp_path / "h.json", [None])
    assert run_in_shell(f"check {path} 2>&-") == (2, "", "")
    assert json.loads(run_in_shell(f"repair {write_json(path, GOOD)} 2>&-").out) == GOOD


def test_a_profile_that_does_not_speak_of_the_messages_is_told_with_the_line(tmp_path: Path):
    path = tmp_path / "h.jsonl"
    contents = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    path.write_text(f"{json.dumps(GOOD)}\n{json.dumps(contents)}\n", encoding="utf-8")
    done = run("check", "--profile", "mistral", path)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith(f"suture: {path}, line 2: profile mistral has no rules for gemini messages")


def test_messages_of_more_than_one_meaning_are_refused_with_the_option_that_helps(tmp_path: Path):
    ambiguous = [USER, {"role": "assistant", "content": [{"type": "text", "text": " "}]}]
    done = run("repair", write_json(tmp_path / "h.json", ambiguous))
    assert done.status == 2
    assert done.err.count("\n") == 1
    assert "say which with --wire" in done.err


def test_an_error_of_our_own_is_still_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def fail(*_: object, **__: object):
        raise LookupError("the\nengine")

    monkeypatch.setattr("suture.cli.repair.check", fail)
    assert main(["check", str(write_json(tmp_path / "h.json", GOOD))]) == 2
    assert capsys.readouterr().err == "suture: internal error: LookupError: the\\nengine; please report\n"


def test_too_little_memory_for_anything_else_is_still_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def fail(*_: object):
        raise MemoryError

    monkeypatch.setattr("suture.cli.doctor.go_through", fail)
    assert main(["doctor"]) == 2
    assert capsys.readouterr().err == "suture: there is not enough memory for this: give it more\n"


def run_in_shell(line: str) -> Done:
    """Run the command as a shell does, with its redirections."""
    ended = subprocess.run(
        ["/bin/sh", "-c", f'"$0" -m suture {line}', COMMAND[0]],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
        env=environment(),
    )
    return Done(ended.returncode, ended.stdout, ended.stderr)
