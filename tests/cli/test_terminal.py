"""What people see on a terminal: colours, tables, what changed, progress; and that nothing harmful gets there."""

import json
import os
import re
import shlex
from pathlib import Path

import pytest

from tests.cli.program import (
    COMMAND,
    DANGLING,
    GOOD,
    STOP,
    USER,
    result,
    run,
    run_on_terminal,
    turn,
    without,
    write_json,
    write_lines,
)

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
EVIL = "\x1b]0;owned\x07\x1b[31m\x9b31m\x7f\u202egnp.exe\x00"


def plain(shown: str) -> str:
    return ESCAPE.sub("", shown)


@pytest.fixture
def without_rich(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which `rich` cannot be imported."""
    return without("rich", tmp_path / "hidden")


def test_findings_are_a_coloured_table_with_the_rule_and_its_source(tmp_path: Path):
    done = run_on_terminal("check", write_json(tmp_path / "h.json", DANGLING))
    assert done.status == 1
    assert COLOUR.search(done.out)
    told = " ".join(plain(done.out).split())
    assert "what was wrong" in told
    assert "dangling" in told
    assert "Every tool call has a result." in told
    assert "openai-chat.answered [400: " in told
    assert "answered: interrupted" in told


def test_an_acceptable_history_is_told_in_a_line(tmp_path: Path):
    done = run_on_terminal("check", write_json(tmp_path / "h.json", GOOD))
    assert plain(done.out) == "openai-chat, profile openai-chat: acceptable\n"


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_no_colours_where_none_are_wanted(tmp_path: Path, variables: dict[str, str]):
    path = write_json(tmp_path / "h.json", DANGLING)
    shown = run_on_terminal("check", path, variables=variables).out
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", shown)
    assert "dangling" in shown
    assert re.search(r"\x1b\[[0-9;]*3[0-7]", run_on_terminal("check", path).out)


def test_a_repair_is_shown_with_what_went_and_what_came_instead(tmp_path: Path):
    history = [USER, turn("call_1", "call_2"), STOP, result("call_2"), result("call_9", "lost")]
    out = tmp_path / "out.json"
    done = run_on_terminal("repair", write_json(tmp_path / "h.json", history), "-o", out)
    lines = plain(done.out).splitlines()
    assert [line.split()[:3] for line in lines[lines.index("what changed") + 1 : -1]] == [
        ["0", "user", '"What'],
        ["1", "assistant", "calls"],
        ["+", "2", "tool"],
        ["+", "3", "tool"],
        ["4", "user", '"Never'],
        ["-", "3", "tool"],
        ["-", "4", "tool"],
        ["+", "5", "user"],
    ]
    assert lines[-1] == f"1 conversation, 1 changed; written to {out}"


def test_a_long_history_is_shown_only_where_something_changed(tmp_path: Path):
    history = DANGLING + GOOD * 30 + DANGLING
    done = run_on_terminal("repair", write_json(tmp_path / "h.json", history), "-o", tmp_path / "out.json")
    lines = plain(done.out).splitlines()
    shown = lines[lines.index("what changed") + 1 : -1]
    assert [line.split()[0] for line in shown] == ["0", "1", "+", "3", "4", "…", "124", "125", "+", "127"]


def test_without_a_file_to_write_to_the_findings_go_to_the_terminal_beside_the_history(tmp_path: Path):
    reader, writer = os.pipe()
    done = run_on_terminal("repair", write_json(tmp_path / "h.json", DANGLING), output=writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        assert len(json.loads(pipe.read())) == 4
    assert "dangling" in done.out
    assert "what changed" not in plain(done.out).splitlines()


def test_without_rich_a_terminal_gets_plain_text(tmp_path: Path, without_rich: dict[str, str]):
    path = write_json(tmp_path / "h.json", DANGLING)
    wide = {**without_rich, "COLUMNS": "200"}
    assert run_on_terminal("check", path, variables=wide).out == run("check", path).out
    done = run_on_terminal("repair", path, "-o", tmp_path / "out.json", variables=without_rich)
    assert "\x1b" not in done.out
    assert "  +   2  tool" in done.out.partition("what changed:\n")[2]


@pytest.mark.parametrize("columns", ["", "0", "-1", "many"])
def test_a_terminal_that_does_not_say_how_wide_it_is_counts_as_80_columns_wide(
    tmp_path: Path, without_rich: dict[str, str], columns: str
):
    path = write_json(tmp_path / "h.json", DANGLING)
    shown = run_on_terminal("check", path, variables={**without_rich, "COLUMNS": columns}).out
    assert 70 < max(map(len, shown.splitlines())) <= 80


def test_a_terminal_that_knows_only_ascii_is_served_too(tmp_path: Path):
    history = [{"role": "user", "content": "京都 " * 50}, *DANGLING[1:]]
    path = write_json(tmp_path / "h.json", history)
    done = run_on_terminal("repair", path, "-o", tmp_path / "ö.json", variables={"PYTHONIOENCODING": "ascii"})
    assert done.status == 0
    assert done.out.isascii()
    assert r'"\u4eac\u90fd' in done.out


def test_progress_on_many_conversations_is_drawn_on_the_terminal_and_taken_away(tmp_path: Path):
    path = write_lines(tmp_path / "h.jsonl", [GOOD] * 400)
    done = run_on_terminal("check", path)
    assert "\r100 conversations, 25 %" in done.out
    assert "\x1b[K" in done.out
    assert plain(done.out).split("\r")[-1] == "400 conversations: 400 acceptable, 0 with findings\n"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("one-line.json", [r"\d MB read, 5\d %", "16 MB read", "16 MB read: 2,000 messages"]),
        ("many-lines.json", [r"\d MB read, 5\d %", "16 MB read", "16 MB read: 2,000 messages"]),
        ("messages.jsonl", [r"1,\d\d\d messages, \d\d %", "16 MB read: 2,000 messages"]),
    ],
)
def test_progress_on_one_large_conversation_is_drawn_and_taken_away(tmp_path: Path, name: str, shown: list[str]):
    messages = [{"role": "user", "content": "x" * 8000}] * 2000
    if name.endswith("l"):
        path = write_lines(tmp_path / name, messages)
    else:
        path = write_json(tmp_path / name, messages, indent=None if name.startswith("one") else 1)
    done = run_on_terminal("check", path)
    assert re.search(r".*".join(rf"\r{text}\x1b\[K" for text in shown), done.out, re.DOTALL), done.out
    assert plain(done.out).split("\r")[-1] == "openai-chat, profile openai-chat: acceptable\n"


def test_progress_in_a_pipe_of_unknown_length_says_how_much_was_read(tmp_path: Path):
    path = write_json(tmp_path / "h.json", [{"role": "user", "content": "x" * 12_000_000}])
    terminal = shlex.join([*COMMAND, "check", "-"])
    done = run_on_terminal("-c", f"cat {shlex.quote(str(path))} | {terminal}", command=["sh"])
    assert re.search(r"\r\d+ MB read\x1b\[K", done.out)
    assert "%" not in done.out


def test_progress_is_taken_away_before_an_error(tmp_path: Path):
    path = write_lines(tmp_path / "h.jsonl", [*[GOOD] * 150, [None]])
    done = run_on_terminal("check", path)
    assert "100 conversations" in done.out
    assert plain(done.out).split("\r")[-1].startswith("suture: ")


def test_progress_does_not_stand_in_the_way_of_a_history_on_the_same_terminal(tmp_path: Path):
    done = run_on_terminal("repair", write_lines(tmp_path / "h.jsonl", [GOOD] * 300))
    assert "100 conversations" in done.out
    written = [plain(line).split("\r")[-1] for line in done.out.split("\n")[:300]]
    assert [json.loads(line) for line in written] == [GOOD] * 300


@pytest.mark.parametrize("name", ["large.json", "large.jsonl"])
def test_a_pipe_sees_nothing_of_progress_on_one_large_conversation(tmp_path: Path, name: str):
    write = write_lines if name.endswith("l") else write_json
    done = run("check", write(tmp_path / name, [{"role": "user", "content": "x" * 8000}] * 2000))
    assert done == (0, "openai-chat, profile openai-chat: acceptable\n", "")


def test_progress_does_not_stand_in_the_way_of_findings(tmp_path: Path):
    path = write_lines(tmp_path / "h.jsonl", [GOOD] * 150 + [DANGLING] + [GOOD] * 150)
    shown = run_on_terminal("check", path).out
    assert "100 conversations" in shown
    finding = next(line for line in shown.splitlines() if "line 151" in line)
    assert plain(finding).split("\r")[-1] == "line 151: openai-chat, profile openai-chat: 1 finding"


@pytest.mark.parametrize("count", [3, 400])
def test_a_pipe_sees_nothing_of_progress(tmp_path: Path, count: int):
    done = run("check", write_lines(tmp_path / "h.jsonl", [GOOD] * count))
    assert done == (0, f"{count} conversations: {count} acceptable, 0 with findings\n", "")


def test_few_conversations_need_no_progress(tmp_path: Path):
    done = run_on_terminal("check", write_lines(tmp_path / "h.jsonl", [GOOD] * 20))
    assert done.out == "20 conversations: 20 acceptable, 0 with findings\n"


def evil_history() -> list[dict]:
    """Return a history with terminal escapes wherever a history can have text."""
    function = {"name": f"f{EVIL}", "arguments": f'{{"a": "{EVIL}"'}
    call = {"id": f"id{EVIL}", "type": "function", "function": function}
    other = {"id": f"other{EVIL}", "type": "function", "function": function}
    return [
        {"role": "user", "content": EVIL},
        {"role": "assistant", "content": EVIL, "tool_calls": [call, other]},
        {"role": "user", "content": EVIL},
        {"role": "tool", "tool_call_id": f"id{EVIL}", "name": EVIL, "content": EVIL},
        {"role": "tool", "tool_call_id": f"id{EVIL}", "name": EVIL, "content": f"again {EVIL}"},
        {"role": "tool", "tool_call_id": f"lost{EVIL}", "content": EVIL},
    ]


def harmful(shown: str) -> set[str]:
    """Return the control characters in `shown` that are not the terminal's own colours and line ends."""
    return {letter for letter in plain(shown) if not letter.isprintable()} - {"\n", "\r"}


@pytest.mark.parametrize("profile", ["openai-chat", "mistral"])
def test_escapes_in_a_history_never_reach_a_terminal(tmp_path: Path, profile: str):
    path = write_json(tmp_path / "h.json", evil_history())
    for command in (("check",), ("repair", "-o", tmp_path / "out.json"), ("repair",)):
        shown = run_on_terminal(*command, "--profile", profile, path).out
        assert "gnp.exe" in shown
        assert harmful(shown) == set()
        assert "\x1b]0;" not in shown


@pytest.mark.parametrize("profile", ["openai-chat", "mistral"])
def test_escapes_in_a_history_never_reach_plain_text(tmp_path: Path, profile: str):
    path = write_json(tmp_path / "h.json", evil_history())
    for command in (("check",), ("repair", "-o", tmp_path / "out.json")):
        shown = run(*command, "--profile", profile, path).out
        assert "gnp.exe" in shown
        assert "\x1b" not in shown
        assert harmful(shown) == set()


def test_json_on_a_terminal_has_escapes_only_as_json_writes_them(tmp_path: Path):
    path = write_json(tmp_path / "h.json", [{"role": "user", "content": EVIL}])
    done = run_on_terminal("repair", path)
    assert harmful(done.out) == set()
    assert json.loads(done.out.splitlines()[0]) == [{"role": "user", "content": EVIL}]


def test_lines_that_cannot_be_read_are_copied_to_a_terminal_without_harm(tmp_path: Path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(
        b"".join(line + b"\n" for line in (json.dumps(GOOD).encode(), b"\x1b[31m red", b"caf\xe9 \x9b31m"))
    )
    done = run_on_terminal("repair", "--keep-going", path)
    assert done.status == 2
    assert done.out.splitlines()[1:3] == ["\\u001b[31m red", "caf\\xe9 \\x9b31m"]
