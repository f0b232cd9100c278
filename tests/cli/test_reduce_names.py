"""Where `suture reduce` saves output: never over anything, never outside the directory, always in the same place."""

import json
from pathlib import Path
from typing import Any

import pytest

from suture.stores import LocalBackend
from tests.cli.program import result, turn, write_json
from tests.cli.reducing import LIMIT, LONG, Reduce, cleared, files, output, reduce, results, rounds

__all__ = ["reduce"]  # a fixture

OLD = "what was there before"


@pytest.mark.parametrize("old", [OLD, "", "a" * len(output(0).encode())], ids=["other", "empty", "as long"])
def test_a_name_that_holds_other_output_is_left_alone_and_another_is_used(tmp_path: Path, reduce: Reduce, old: str):
    saved, path = tmp_path / "saved", write_json(tmp_path / "h.json", LONG)
    (saved / "clear").mkdir(parents=True)
    (saved / "clear" / "call_0").write_text(old)
    done = reduce(*LIMIT, "--save-to", saved, "--root", "x", path)
    assert (done.status, done.err) == (0, "")
    told = results(json.loads(done.out))
    other = told[0].partition("x/")[2].partition("\n")[0]
    assert told == [cleared(f"x/{other}"), cleared("x/clear/call_1"), output(2)]
    assert other.startswith("clear/call_0-")
    assert files(saved) == {"clear/call_0": old, other: output(0), "clear/call_1": output(1)}


def test_the_same_command_once_more_comes_to_the_same_files(tmp_path: Path, reduce: Reduce):
    twice = [*LONG[:-1], turn("call_0"), result("call_0", output(7)), *rounds(40)[1:]]  # an id that comes twice
    saved, path = tmp_path / "saved", write_json(tmp_path / "h.json", twice)
    (saved / "clear").mkdir(parents=True)
    (saved / "clear" / "call_1").write_text(OLD)
    first = reduce(*LIMIT, "--save-to", saved, path)
    kept = files(saved)
    assert len(kept) == 5
    times = {name: (saved / name).stat().st_mtime_ns for name in kept}
    second = reduce(*LIMIT, "--save-to", saved, path)
    assert (second.status, second.out) == (0, first.out)
    assert files(saved) == kept
    assert {name: (saved / name).stat().st_mtime_ns for name in kept} == times


def test_two_conversations_with_the_same_ids_can_share_a_directory(tmp_path: Path, reduce: Reduce):
    saved = tmp_path / "saved"
    mine, yours = rounds(400, 400, 40), [*rounds(500, 400, 40)]
    told = [
        results(json.loads(reduce(*LIMIT, "--save-to", saved, write_json(tmp_path / "h", history)).out))
        for history in (mine, yours)
    ]
    assert told[0][1] == told[1][1]  # the same output of the same call is one file
    assert told[0][0] != told[1][0]
    assert sorted(files(saved).values()) == sorted([output(0, 400), output(0, 500), output(1, 400)])


def test_a_name_that_is_a_directory_is_told_and_what_was_saved_before_it_is_removed(tmp_path: Path, reduce: Reduce):
    saved, path = tmp_path / "saved", write_json(tmp_path / "h.json", LONG)
    (saved / "clear" / "call_1" / "deep").mkdir(parents=True)
    done = reduce(*LIMIT, "--save-to", saved, path, "-o", tmp_path / "out.json")
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith(f"suture: {saved}: 'clear/call_1' is taken")
    assert files(saved) == {}
    assert (saved / "clear" / "call_1" / "deep").is_dir()
    assert not (tmp_path / "out.json").exists()


def test_the_history_is_never_written_over_what_was_saved(tmp_path: Path, reduce: Reduce):
    saved, path = tmp_path / "saved", write_json(tmp_path / "h.json", LONG)
    (saved / "clear").mkdir(parents=True)
    out = saved / "clear" / ".." / "clear" / "call_1"
    done = reduce(*LIMIT, "--save-to", saved, path, "-o", out)
    assert done == (2, "", f"suture: {out}: the history would be written over the output of one of its calls\n")
    assert files(saved) == {}


def test_the_history_may_be_beside_what_was_saved(tmp_path: Path, reduce: Reduce):
    saved = tmp_path / "saved"
    saved.mkdir()
    done = reduce(*LIMIT, "--save-to", saved, write_json(tmp_path / "h.json", LONG), "-o", saved / "short.json")
    assert done.status == 0
    assert sorted(files(saved)) == ["clear/call_0", "clear/call_1", "short.json"]


HOSTILE = {
    "traversal": "../../../../etc/passwd",
    "absolute": "/etc/passwd",
    "dot": ".",
    "dots": "..",
    "hidden": ".ssh",
    "nothing": "",
    "zero": "a\0b",
    "newline": "a\nb",
    "escape": "\x1b[31m\x9b\u202e",
    "backslash": "..\\..\\x",
    "long": "x" * 5000,
    "long letters": "京" * 70,
    "tag": "</persisted-output>",
    "format": "{path}{0}%s",
    "unfinished": ".0011223344556677\\unfinished",
    "device": "/dev/stdout",
}


@pytest.mark.parametrize("phase", ["clear", "trunc"])
@pytest.mark.parametrize("call_id", HOSTILE.values(), ids=list(HOSTILE))
def test_an_id_never_leads_out_of_the_directory(tmp_path: Path, reduce: Reduce, call_id: str, phase: str):
    inner = tmp_path / "a" / "b" / "c"
    inner.mkdir(parents=True)
    history = [turn(call_id), result(call_id, output(0, 900)), turn("call_1"), result("call_1", "calm")]
    path, saved, out = write_json(tmp_path / "h.json", history), inner / "saved", inner / "out.json"
    limit = ("--max-tokens", "10") if phase == "clear" else ("--max-length", "50")
    options = (*limit, "--save-to", saved, "--root", "x", "--wire", "openai-chat")
    assert reduce(*options, path, "-o", out).status == 0
    ((name, content),) = files(saved).items()
    assert content == output(0, 900)
    assert Path(name).parent == Path(phase)
    assert len(Path(name).name) < 120
    assert Path(name).name.isascii()
    assert f": x/{name}\n" in results(json.loads(out.read_text()))[0]
    assert json.loads(out.read_text())[1]["tool_call_id"] == call_id
    assert files(tmp_path).keys() == {"h.json", "a/b/c/out.json", f"a/b/c/saved/{name}"}
    assert reduce(*options, out).out == out.read_text()


def test_ids_that_a_file_system_may_take_for_one_have_files_of_their_own(tmp_path: Path, reduce: Reduce):
    ids = ["Call", "call", "CALL", "a/b", "a_b", "a\\b"]
    history = [message for n, i in enumerate(ids) for message in (turn(i), result(i, output(n)))]
    saved = tmp_path / "saved"
    done = reduce("--max-tokens", "10", "--keep", "0", "--save-to", saved, write_json(tmp_path / "h.json", history))
    assert done.status == 0
    assert sorted(files(saved).values()) == sorted(map(output, range(len(ids))))
    assert len({name.casefold() for name in files(saved)}) == len(ids)


@pytest.mark.parametrize("same", [True, False], ids=["the same", "something else"])
def test_a_file_that_somebody_else_writes_meanwhile_is_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reduce: Reduce, same: bool
):
    saved, path = tmp_path / "saved", write_json(tmp_path / "h.json", LONG)
    write = LocalBackend.write_stream

    async def be_overtaken(self: LocalBackend, name: str, pieces: Any) -> int:
        if name == "clear/call_1":
            await LocalBackend(saved).write(name, output(1) if same else OLD)
        return await write(self, name, pieces)

    monkeypatch.setattr(LocalBackend, "write_stream", be_overtaken)
    done = reduce(*LIMIT, "--save-to", saved, path, "-o", "/dev/full")
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert ("no space left" if same else "'clear/call_1' is taken") in done.err
    assert files(saved) == {"clear/call_1": output(1) if same else OLD}
