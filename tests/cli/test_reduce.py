"""`suture reduce`: what it prints, what it writes, what it saves, and that it leaves everything else alone."""

import json
import stat
from pathlib import Path

import pytest

from tests.cli.program import ANSWER, GOOD, USER, read_lines, result, run, turn, write_json, write_lines
from tests.cli.reducing import LIMIT, LONG, Reduce, cleared, files, output, plans, reduce, results, rounds, tokens

__all__ = ["reduce"]  # a fixture

CLEARED = [cleared("clear/call_0"), cleared("clear/call_1"), output(2)]
SHORTENED = [{**message, "content": text} for message, text in zip(LONG[2::2], CLEARED, strict=True)]
REDUCED = [USER, LONG[1], SHORTENED[0], LONG[3], SHORTENED[1], LONG[5], SHORTENED[2], ANSWER]
BEFORE, AFTER = tokens(LONG), tokens(REDUCED)


# --- the plan ---------------------------------------------------------------------------------


def test_a_history_with_nothing_to_do_ends_with_0_and_says_so(tmp_path: Path):
    done = run("reduce", write_json(tmp_path / "h.json", LONG))
    assert done == (0, f"openai-chat: {BEFORE} tokens, nothing to do\n", "")


def test_a_plan_ends_with_1_and_says_what_goes_what_that_frees_and_where_it_would_be(tmp_path: Path):
    path = write_json(tmp_path / "h.json", LONG)
    done = run("reduce", *LIMIT, path)
    assert (done.status, done.err) == (1, "")
    head, columns, *rows = done.out.splitlines()
    assert head == f"openai-chat: {BEFORE} tokens -> {AFTER}, 2 changes, 2 files"
    assert columns.split() == ["#", "action", "tool", "call", "tokens", "saved", "to"]
    assert [row.split() for row in rows] == [
        ["1", "clear", "weather", "call_0", "100", "->", "24", "clear/call_0"],
        ["3", "clear", "weather", "call_1", "100", "->", "24", "clear/call_1"],
    ]


@pytest.mark.parametrize("others", [(), ("--save-to", "saved"), ("--save-to", "saved", "-o", "out.json")], ids=str)
def test_a_plan_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reduce: Reduce, others: tuple[str, ...]
):
    monkeypatch.chdir(tmp_path)
    path = write_json(tmp_path / "h.json", LONG, indent=4)
    before = path.read_bytes()
    assert reduce(*LIMIT, "--plan", *others, path).status == 1
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == before


def test_a_plan_names_the_files_that_are_then_written(tmp_path: Path, reduce: Reduce):
    path, saved = write_json(tmp_path / "h.json", LONG), tmp_path / "saved"
    (plan,) = plans(reduce(*LIMIT, "--save-to", saved, "--plan", "--json", path))
    reduce(*LIMIT, "--save-to", saved, path)
    assert [save["path"] for save in plan["saves"]] == [f"{saved}/{name}" for name in files(saved)]


def test_json_is_one_object_a_conversation_with_its_line_and_no_content(tmp_path: Path, reduce: Reduce):
    path = tmp_path / "h.jsonl"
    path.write_text(f"{json.dumps(GOOD)}\n\n{json.dumps({'messages': LONG})}\n", encoding="utf-8")
    done = reduce(*LIMIT, "--json", path)
    first, second = read_lines(done.out)
    assert done.status == 1
    assert (first["line"], first["plan"]["changed"]) == (1, False)
    assert (second["line"], second["plan"]["changed"], second["plan"]["tokens_before"]) == (3, True, BEFORE)
    assert second["plan"]["saves"] == [
        {"path": f"line-3/clear/call_{n}", "call_id": f"call_{n}", "name": "weather", "length": 400} for n in (0, 1)
    ]
    assert output(0)[:20] not in done.out


def test_only_conversations_with_something_to_do_are_shown_and_all_are_counted(tmp_path: Path, reduce: Reduce):
    done = reduce(*LIMIT, write_lines(tmp_path / "h.jsonl", [GOOD, LONG, GOOD]))
    assert done.status == 1
    after = BEFORE - 2 * (tokens([LONG[2]]) - tokens([result("call_0", cleared("line-2/clear/call_0"))]))
    assert done.out.startswith(f"line 2: openai-chat: {BEFORE} tokens -> {after}, 2 changes, 2 files\n")
    others = 2 * tokens(GOOD)
    assert done.out.splitlines()[-1] == f"3 conversations, 1 to reduce, {BEFORE + others} -> {after + others} tokens"


def test_a_file_of_conversations_with_nothing_to_do_is_told_in_a_line(tmp_path: Path, reduce: Reduce):
    done = reduce(write_lines(tmp_path / "h.jsonl", [GOOD, LONG]))
    assert done == (0, "2 conversations, 0 to reduce\n", "")


# --- what is written --------------------------------------------------------------------------


def test_output_is_saved_and_the_history_goes_to_standard_output_and_nothing_else_does(tmp_path: Path):
    saved = tmp_path / "saved"
    done = run("reduce", *LIMIT, "--save-to", saved, write_json(tmp_path / "h.json", LONG))
    assert (done.status, done.err) == (0, "")
    after = json.loads(done.out)
    assert results(after) == [cleared(f"{saved}/clear/call_0"), cleared(f"{saved}/clear/call_1"), output(2)]
    assert files(saved) == {"clear/call_0": output(0), "clear/call_1": output(1)}
    assert [m for m in after if m["role"] != "tool"] == [m for m in LONG if m["role"] != "tool"]


def test_with_a_file_to_write_to_standard_output_tells_what_was_done(tmp_path: Path, reduce: Reduce):
    saved, out = tmp_path / "saved", tmp_path / "out.json"
    done = reduce(*LIMIT, "--save-to", saved, "--root", "", write_json(tmp_path / "h.json", LONG), "-o", out)
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(f"openai-chat: {BEFORE} tokens -> {AFTER}, 2 changes, 2 files\n")
    assert done.out.splitlines()[-1] == (
        f"1 conversation, 1 changed, {BEFORE} -> {AFTER} tokens; 2 files saved in {saved}; written to {out}"
    )
    assert results(json.loads(out.read_text())) == CLEARED


def test_with_a_file_to_write_to_what_was_done_can_be_had_as_json(tmp_path: Path, reduce: Reduce):
    saved, out = tmp_path / "saved", tmp_path / "out.json"
    path = write_json(tmp_path / "h.json", LONG)
    (plan,) = plans(reduce(*LIMIT, "--save-to", saved, "--json", path, "-o", out))
    assert [change["path"] for change in plan["changes"]] == [f"{saved}/clear/call_{n}" for n in (0, 1)]
    assert len(files(saved)) == 2
    assert out.exists()


def test_only_the_user_can_read_what_is_saved(tmp_path: Path, reduce: Reduce):
    saved = tmp_path / "a" / "saved"
    reduce(*LIMIT, "--save-to", saved, write_json(tmp_path / "h.json", LONG))
    for path in (tmp_path / "a", saved, saved / "clear"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE((saved / "clear" / "call_0").stat().st_mode) == 0o600


def test_a_history_with_nothing_to_do_is_written_and_no_directory_is_made(tmp_path: Path, reduce: Reduce):
    done = reduce("--save-to", tmp_path / "saved", write_json(tmp_path / "h.json", LONG))
    assert (done.status, json.loads(done.out), done.err) == (0, LONG, "")
    assert not (tmp_path / "saved").exists()


def test_the_output_may_be_the_input(tmp_path: Path, reduce: Reduce):
    path, saved = write_json(tmp_path / "h.json", LONG), tmp_path / "saved"
    assert reduce(*LIMIT, "--save-to", saved, "--root", "", path, "-o", path).status == 0
    assert results(json.loads(path.read_text())) == CLEARED


def test_standard_input_and_standard_output_are_used_in_a_pipe(tmp_path: Path):
    done = run("reduce", *LIMIT, "--save-to", tmp_path / "saved", "--root", "", "-", "-o", "-", stdin=_bytes(LONG))
    assert (done.status, results(json.loads(done.out))) == (0, CLEARED)


def _bytes(history: list[dict]) -> bytes:
    return json.dumps(history).encode()


def test_a_directory_is_told_to_the_model_as_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reduce: Reduce
):
    monkeypatch.chdir(tmp_path)
    done = reduce(*LIMIT, "--save-to", "some/where/", write_json(tmp_path / "h.json", LONG))
    assert results(json.loads(done.out))[0] == cleared("some/where/clear/call_0")
    assert (tmp_path / "some" / "where" / "clear" / "call_0").exists()


def test_discarded_output_is_cleared_for_good_and_nothing_is_truncated(tmp_path: Path, reduce: Reduce):
    path = write_json(tmp_path / "h.json", LONG)
    done = reduce(*LIMIT, "--max-length", "100", "--discard", path)
    assert (done.status, done.err) == (0, "")
    gone = "[Old tool result content cleared]"
    assert results(json.loads(done.out)) == [gone, gone, output(2)]
    assert list(tmp_path.iterdir()) == [path]


def test_a_plan_to_discard_saves_nothing(tmp_path: Path, reduce: Reduce):
    (plan,) = plans(reduce(*LIMIT, "--discard", "--plan", "--json", write_json(tmp_path / "h.json", LONG)))
    assert ([change["path"] for change in plan["changes"]], plan["saves"]) == (["", ""], [])


# --- containers -------------------------------------------------------------------------------

INTO = (*LIMIT, "--root", "", "--save-to")


def test_json_lines_keep_one_conversation_a_line_and_each_has_a_directory_of_its_own(tmp_path: Path, reduce: Reduce):
    saved, other = tmp_path / "s", rounds(600, 300)
    path = tmp_path / "h.jsonl"
    values = [{"id": 1, "messages": LONG}, GOOD, other]
    path.write_text("\n\n".join(json.dumps(value) for value in values), encoding="utf-8")
    done = reduce(*INTO, saved, path, "-o", tmp_path / "out.jsonl")
    first, second, third = read_lines((tmp_path / "out.jsonl").read_text())
    assert (first["id"], results(first["messages"])[0]) == (1, cleared("line-1/clear/call_0"))
    assert second == GOOD
    assert results(third) == [cleared("line-5/clear/call_0"), output(1, 300)]
    assert files(saved) == {
        "line-1/clear/call_0": output(0),
        "line-1/clear/call_1": output(1),
        "line-5/clear/call_0": output(0, 600),
    }
    assert done.out.splitlines()[-1].startswith("3 conversations, 2 changed, ")


def test_fields_that_nobody_knows_stay_with_a_result_whose_text_goes(tmp_path: Path, reduce: Reduce):
    marked = {**result("call_0", output(0)), "cache_control": {"type": "ephemeral"}, "x": [1.0]}
    history = [USER, turn("call_0"), marked, turn("call_1"), result("call_1", "calm"), ANSWER]
    done = reduce("--max-tokens", "50", "--root", "", "--save-to", tmp_path / "s", write_json(tmp_path / "h", history))
    assert json.loads(done.out)[2] == {**marked, "content": cleared("clear/call_0")}
