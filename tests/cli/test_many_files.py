"""Several files at once, lines that cannot be read, and what stays byte for byte."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.program import DANGLING, GOOD, TIMEOUT, environment, read_lines, run, write_json, write_lines

SPACED = (json.dumps({"messages": GOOD, "n": 1.50}, indent=None, separators=(" , ", " : ")) + "\r\n").encode()
"""A line that no program of ours would write."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a good file, a broken one below, and one that is no history by its name."""
    (tmp_path / "below").mkdir()
    write_json(tmp_path / "good.json", GOOD)
    write_json(tmp_path / "below" / "broken.json", DANGLING)
    (tmp_path / "notes.txt").write_text("no JSON", encoding="utf-8")
    return tmp_path


def test_files_folders_and_patterns_are_checked_together(folder: Path):
    for asked in ([folder], [folder / "good.json", folder / "below"], [str(folder / "**" / "*.json")]):
        done = run("check", *asked)
        assert done.status == 1
        assert f"{folder / 'below' / 'broken.json'}: openai-chat" in done.out
        assert done.out.splitlines()[-1] == "2 conversations: 1 acceptable, 1 with findings"


def test_json_of_several_files_says_which(folder: Path):
    found = read_lines(run("check", "--json", folder).out)
    assert {Path(record["file"]).name: record["report"]["acceptable"] for record in found} == {
        "good.json": True,
        "broken.json": False,
    }


def test_what_is_not_there_is_said(folder: Path):
    cases = (
        ("*.jsonl", "nothing matches it"),
        ("below/none", "no such file"),
        ("n" * 300, "name too long"),
        (".", None),
    )
    for asked, said in cases:
        done = run("check", str(folder / asked))
        assert (said is None) or (done.status == 2 and said in done.err)
    empty = folder / "empty"
    empty.mkdir()
    assert "no .json or .jsonl file" in run("check", empty).err


def test_several_files_are_repaired_in_place_or_into_a_folder(folder: Path, tmp_path: Path):
    good = (folder / "good.json").read_bytes()
    out = tmp_path / "out"
    out.mkdir()
    assert run("repair", folder / "good.json", folder / "below", "-o", out).status == 0
    assert (out / "good.json").read_bytes() == good + b"\n"
    assert run("check", out).status == 0
    assert run("repair", "--in-place", folder / "good.json", folder / "below").status == 0
    assert run("check", folder / "below").status == 0
    assert (folder / "good.json").read_bytes() == good


def test_a_file_that_cannot_be_read_does_not_stop_the_others(folder: Path):
    bad, broken = folder / "a.json", folder / "below" / "broken.json"
    write_json(bad, {"no": "history"})
    for asked in (["check", bad, broken], ["repair", "--in-place", folder / "none.json", bad, broken]):
        done = run(*asked)
        assert done.status == 2
        assert f"{bad}: an object without messages" in done.err
    assert run("check", broken).status == 0
    assert json.loads(bad.read_bytes()) == {"no": "history"}


def test_the_report_has_every_conversation_of_several_files(folder: Path, tmp_path: Path):
    good, broken, report = folder / "good.json", folder / "below" / "broken.json", tmp_path / "report.jsonl"
    done = run("repair", "--in-place", "--report", report, broken, folder / "none.json", good)
    told = read_lines(report.read_text(encoding="utf-8"))
    assert [(each["file"], each["changed"]) for each in told] == [(str(broken), True), (str(good), False)]
    assert done.status == 2


@pytest.mark.parametrize(
    "asked", [["repair", "--in-place", "--report"], ["convert", "--to", "anthropic", "--losses"], ["view", "-o"]]
)
def test_nothing_else_is_written_over_a_history(asked: list[str], folder: Path):
    good, broken = folder / "good.json", folder / "below" / "broken.json"
    before = good.read_bytes(), broken.read_bytes()
    done = run(*asked, good, good, *([broken] if asked[0] == "repair" else []))
    assert (done.status, "would be written over the history" in done.err) == (2, True)
    assert (good.read_bytes(), broken.read_bytes()) == before


def test_hidden_files_of_a_folder_are_left_out(folder: Path):
    (folder / ".venv").mkdir()
    write_json(folder / ".venv" / "package.json", {"no": "history"})
    assert run("check", folder).out.splitlines()[-1].startswith("2 conversations")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser can read everything")
@pytest.mark.parametrize("rights", [0o300, 0o400], ids=["whose names nobody may read", "whose files nobody may read"])
def test_a_folder_that_cannot_be_read_is_said(rights: int, folder: Path):
    below = folder / "below"
    below.chmod(rights)
    try:
        done = run("check", folder)
    finally:
        below.chmod(0o700)
    assert (done.status, done.out) == (2, "1 conversation: 1 acceptable, 0 with findings\n")
    assert f"suture: {below}" in done.err
    assert "permission denied" in done.err


@pytest.mark.parametrize("command", [["repair"], ["convert", "--to", "anthropic"], ["view"]])
def test_what_goes_to_dev_stdout_goes_where_standard_output_goes(command: list[str], folder: Path):
    log = folder / "log"
    with log.open("wb") as out:
        out.write(b"before\n")
        out.flush()
        asked = [sys.executable, "-m", "suture", *command, folder / "good.json", "-o", "/dev/stdout"]
        subprocess.run(asked, stdout=out, check=True, timeout=TIMEOUT, env=environment())
        out.write(b"after\n")
    lines = log.read_bytes().splitlines()
    assert (lines[0], lines[-1]) == (b"before", b"after")
    assert len(lines) > 2


def test_several_files_need_a_place_to_go(folder: Path):
    assert "--in-place" in run("repair", folder).err
    assert run("repair", "--in-place", "-").status == 2
    (folder / "below" / "good.json").write_bytes(b"[]")
    assert "two files of one name" in run("repair", folder, "-o", folder / "below").err


def test_lines_that_need_no_repair_stay_byte_for_byte(tmp_path: Path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(SPACED + json.dumps(DANGLING).encode() + b"\n" + SPACED)
    done = run("repair", path, "-o", tmp_path / "out.jsonl")
    assert done.status == 0
    lines = (tmp_path / "out.jsonl").read_bytes().splitlines(keepends=True)
    assert (lines[0], lines[2]) == (SPACED, SPACED)
    assert len(json.loads(lines[1])) == len(DANGLING) + 1


def test_messages_that_nothing_changed_keep_their_lines(tmp_path: Path):
    lines = [json.dumps(message, separators=(" , ", " : ")).encode() + b"\n" for message in DANGLING]
    path, out = tmp_path / "talk.jsonl", tmp_path / "out.jsonl"
    path.write_bytes(b"".join(lines))
    assert run("repair", path, "-o", out).status == 0
    written = out.read_bytes().splitlines(keepends=True)
    assert [line for line in written if line in lines] == lines
    assert len(written) == len(lines) + 1


def test_a_good_document_comes_back_as_it_was():
    data = json.dumps(GOOD, indent=3).encode() + b"\n"
    assert run("repair", "-", stdin=data).out.encode() == data


@pytest.mark.parametrize("history", ["messages", "conversations"])
def test_a_last_line_that_a_crash_has_cut_off_is_left_out_and_said(tmp_path: Path, history: str):
    path = write_lines(tmp_path / "talk.jsonl", GOOD if history == "messages" else [GOOD, GOOD])
    whole = path.read_bytes()
    with path.open("ab") as file:
        file.write(b'{"role": "user", "content": "And no')
    checked = run("check", path)
    assert (checked.status, "only its beginning was written" in checked.err) == (0, True)
    done = run("repair", path, "-o", tmp_path / "out.jsonl")
    assert (done.status, "only its beginning was written" in done.err) == (0, True)
    assert (tmp_path / "out.jsonl").read_bytes() == whole


def test_a_bad_line_ends_it_unless_it_is_to_go_on(tmp_path: Path):
    path, out = tmp_path / "log.jsonl", tmp_path / "out.jsonl"
    bad = [b"{not json}\n", b'"a text"\n', b'{"role": "user", "content": "alone"}\n']
    path.write_bytes(json.dumps(GOOD).encode() + b"\n" + b"".join(bad) + json.dumps(DANGLING).encode() + b"\n")
    assert run("check", path).err.startswith(f"suture: {path}, line 2")
    checked = run("check", "--keep-going", path)
    assert checked.status == 2
    assert [line.split(": ")[1] for line in checked.err.splitlines()] == [
        f"{path}, line {number}{', column 2' if number == 2 else ''}" for number in (2, 3, 4)
    ]
    assert "2 conversations: 1 acceptable, 1 with findings" in checked.out
    assert run("repair", "--keep-going", path, "-o", out).status == 2
    assert out.read_bytes().splitlines(keepends=True)[1:4] == bad


@pytest.mark.parametrize(
    ("first", "rest"), [(b"cut off}]", []), (b"cut off}]", GOOD), (b"cut off}]", [GOOD, GOOD]), (b"null", [GOOD, GOOD])]
)
def test_a_first_line_that_cannot_be_read_does_not_end_it_either(first: bytes, rest: list[object], tmp_path: Path):
    path, out = tmp_path / "log.jsonl", tmp_path / "out.jsonl"
    path.write_bytes(b"\n".join([first, *[json.dumps(each).encode() for each in rest]]) + b"\n")
    assert run("check", path).status == 2
    done = run("check", "--keep-going", path)
    assert (done.status, done.err.count("line 1")) == (2, 1)
    assert run("repair", "--keep-going", path, "-o", out).status == 2
    assert out.read_bytes() == path.read_bytes()


def test_a_conversation_that_is_refused_is_a_bad_line_too(tmp_path: Path):
    path, out = tmp_path / "log.jsonl", tmp_path / "out.jsonl"
    bad = [b'{"version": 3}\n', b'[{"role": "robot", "content": "?"}]\n', b'[{"role": "user"}, null]\n']
    good = [json.dumps(DANGLING).encode() + b"\n", json.dumps(GOOD).encode() + b"\n"]
    path.write_bytes(b"{not json}\n" + bad[0] + good[0] + bad[1] + bad[2] + good[1])
    assert run("check", path).err.startswith(f"suture: {path}, line 1, column 2")
    checked = run("check", "--keep-going", path)
    assert checked.status == 2
    assert [line.split(": ")[1] for line in checked.err.splitlines()] == [
        *(f"{path}, line 1, column 2", f"{path}, line 2"),
        *(f"{path}, line 4, message 0", f"{path}, line 5, message 1"),
    ]
    assert "2 conversations: 1 acceptable, 1 with findings" in checked.out
    done = run("repair", "--keep-going", path, "-o", out)
    assert (done.status, "2 conversations, 1 changed" in done.out) == (2, True)
    written = out.read_bytes().splitlines(keepends=True)
    assert [written[at] for at in (0, 1, 3, 4, 5)] == [b"{not json}\n", *bad, good[1]]
    assert len(json.loads(written[2])) == len(DANGLING) + 1


def test_repaired_lines_come_out_while_more_are_going_in():
    with subprocess.Popen(
        [sys.executable, "-m", "suture", "repair", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(3):  # the first line alone could be a document that goes on
            process.stdin.write(json.dumps(DANGLING).encode() + b"\n")
        process.stdin.flush()
        assert len(json.loads(process.stdout.readline())) == len(DANGLING) + 1
        process.stdin.close()
        assert process.wait(TIMEOUT) == 0


def test_a_diff_shows_what_would_change_and_changes_nothing(tmp_path: Path):
    path = write_json(tmp_path / "h.json", DANGLING)
    before = path.read_bytes()
    done = run("repair", "--diff", path)
    assert done.status == 1
    assert done.out.startswith(f"--- a/{path}\n+++ b/{path}\n@@")
    assert '+ "tool_call_id": "call_1",' in done.out.splitlines()
    assert not [line for line in done.out.splitlines() if line.startswith("-") and not line.startswith("---")]
    assert path.read_bytes() == before
    good = write_json(tmp_path / "good.json", GOOD)
    assert run("repair", "--diff", good) == (0, "", "")
    out = tmp_path / "out.json"
    for target in (["--in-place"], ["-o", str(out)]):
        assert run("repair", "--diff", *target, path) == done
    assert path.read_bytes() == before
    assert not out.exists()


def test_quiet_shows_errors_only(tmp_path: Path):
    path = write_json(tmp_path / "h.json", DANGLING)
    assert run("check", "-q", path) == (1, "", "")
    assert run("repair", "-q", path, "-o", tmp_path / "out.json") == (0, "", "")


def test_colours_come_when_they_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = write_json(tmp_path / "h.json", DANGLING)
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)

    def colours(*arguments: str, **variables: str) -> bool:
        command = [sys.executable, "-m", "suture", "check", *arguments, str(path)]
        ended = subprocess.run(command, capture_output=True, env={**environment(), **variables}, check=False)
        return b"\x1b[" in ended.stdout

    assert not colours()
    assert colours("--color", "always")
    assert colours(FORCE_COLOR="1")
    assert not colours("--color", "never", FORCE_COLOR="1")


def test_a_mistyped_word_has_a_suggestion():
    assert "did you mean check?" in run("chekc").err
    assert "did you mean --profile?" in run("check", "--profle", "-").err
    assert "did you mean anthropic?" in run("check", "--wire", "antropic", "-").err


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["fix"], "invalid choice: 'fix' (choose from"),
        (["convert", "--to", "claude"], "invalid choice: 'claude' (choose from"),
        (["--nonsense"], "unrecognized arguments: --nonsense (see suture --help)"),
        (["view", "--run", "runs.db"], "unrecognized arguments: --run (see suture view --help)"),
    ],
)
def test_only_what_fits_there_is_suggested(asked: list[str], said: str):
    refused = run(*asked).err
    assert said in refused
    assert "did you mean" not in refused


def test_help_of_a_command_is_its_own():
    assert run("help", "check").out == run("check", "--help").out
    assert "suture chat" not in run("check", "--help").out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command_and_its_options(shell: str):
    script = run("completion", shell).out
    for word in ("check", "repair", "view", "in-place", "keep-going"):
        assert word in script


def test_a_full_disk_is_told_by_commands_that_print():
    with Path("/dev/full").open("wb") as full:
        asked = [sys.executable, "-m", "suture", "completion", "fish"]
        done = subprocess.run(
            asked, stdout=full, stderr=subprocess.PIPE, timeout=TIMEOUT, env=environment(), check=False
        )
    told = b"suture: standard output: cannot be written: no space left on device\n"
    assert (done.returncode, done.stderr) == (2, told)


def test_bash_completes_what_was_begun():
    script = run("completion", "bash").out
    asked = f'{script}\nCOMP_WORDS=(suture repair --in); COMP_CWORD=2; _suture; echo "${{COMPREPLY[@]}}"'
    ended = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
    assert ended.stdout == "--in-place\n"
