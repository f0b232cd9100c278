"""What people see of `suture reduce`: tables, progress; and that nothing harmful gets to a terminal."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import GOOD, TIMEOUT, environment, run, run_on_terminal, write_json, write_lines
from tests.cli.reducing import LIMIT, LONG, files, output, rounds
from tests.cli.test_streaming import MEASURED, MEGABYTE
from tests.cli.test_terminal import COLOUR, EVIL, harmful, plain, without_rich

__all__ = ["without_rich"]  # a fixture


def test_a_plan_is_a_coloured_table(tmp_path: Path):
    done = run_on_terminal("reduce", *LIMIT, write_json(tmp_path / "h.json", LONG))
    assert done.status == 1
    assert COLOUR.search(done.out)
    told = " ".join(plain(done.out).split())
    assert "2 changes, 2 files" in told
    assert "what is done" in told
    assert "1 clear weather 100 -> 24 clear/call_0 call_0" in told


def test_a_history_with_nothing_to_do_is_told_in_a_line(tmp_path: Path):
    shown = plain(run_on_terminal("reduce", write_json(tmp_path / "h.json", GOOD)).out)
    assert shown == run("reduce", tmp_path / "h.json").out


def test_a_place_is_told_whole_however_long_it_is(tmp_path: Path):
    saved = tmp_path / ("x" * 100) / ("y" * 100)
    done = run_on_terminal("reduce", *LIMIT, "--plan", "--save-to", saved, write_json(tmp_path / "h.json", LONG))
    shown = [line.split()[-1] for line in plain(done.out).splitlines() if line.strip()]
    assert f"{saved}/clear/call_0" in "".join(shown)


def test_output_that_is_discarded_is_said_to_be_nowhere(tmp_path: Path):
    done = run_on_terminal("reduce", *LIMIT, "--plan", "--discard", write_json(tmp_path / "h.json", LONG))
    assert "nowhere" in done.out


def test_with_a_file_to_write_to_the_table_is_shown_with_what_was_written(tmp_path: Path):
    out, saved = tmp_path / "out.json", tmp_path / "saved"
    done = run_on_terminal("reduce", *LIMIT, "--save-to", saved, write_json(tmp_path / "h.json", LONG), "-o", out)
    shown = "".join(plain(done.out).splitlines())
    assert "what is done" in shown
    assert shown.endswith(f"2 files saved in {saved}; written to {out}")


def test_without_a_file_to_write_to_the_plan_goes_to_the_terminal_beside_the_history(tmp_path: Path):
    reader, writer = os.pipe()
    path = write_json(tmp_path / "h.json", LONG)
    done = run_on_terminal("reduce", *LIMIT, "--save-to", tmp_path / "saved", path, output=writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        assert len(json.loads(pipe.read())) == len(LONG)
    assert "what is done" in plain(done.out)


def test_without_rich_a_terminal_gets_plain_text(tmp_path: Path, without_rich: dict[str, str]):
    path = write_json(tmp_path / "h.json", LONG)
    assert run_on_terminal("reduce", *LIMIT, path, variables=without_rich).out == run("reduce", *LIMIT, path).out


def test_progress_on_many_conversations_is_drawn_on_the_terminal_and_taken_away(tmp_path: Path):
    done = run_on_terminal("reduce", write_lines(tmp_path / "h.jsonl", [GOOD] * 400))
    assert "100 conversations" in done.out
    assert done.out.endswith("400 conversations, 0 to reduce\n")


def test_progress_does_not_stand_in_the_way_of_plans(tmp_path: Path):
    path = write_lines(tmp_path / "h.jsonl", [GOOD] * 150 + [LONG] + [GOOD] * 150)
    shown = run_on_terminal("reduce", *LIMIT, path).out
    assert "100 conversations" in shown
    planned = next(line for line in shown.splitlines() if "line 151: " in line)
    assert plain(planned).split("\r")[-1].startswith("line 151: openai-chat: ")


def evil_history() -> list[dict[str, Any]]:
    """Return a history with terminal escapes wherever a history can have text."""
    made: list[dict[str, Any]] = [{"role": "user", "content": EVIL}]
    for number in range(3):
        function = {"name": f"f{EVIL}", "arguments": json.dumps({"a": EVIL})}
        call = {"id": f"id{number}{EVIL}\n  9  forged", "type": "function", "function": function}
        made.append({"role": "assistant", "content": EVIL, "tool_calls": [call]})
        made.append({"role": "tool", "tool_call_id": call["id"], "name": EVIL, "content": EVIL + output(number)})
    return made


@pytest.mark.parametrize("limit", [("--max-tokens", "10"), ("--max-length", "30")], ids=" ".join)
def test_escapes_in_a_history_never_reach_anybody(tmp_path: Path, limit: tuple[str, ...]):
    path, saved = write_json(tmp_path / "h.json", evil_history()), tmp_path / f"s{EVIL[:-1]}"
    kept = ("--save-to", saved, "--root", "x", "-o", tmp_path / f"o{EVIL[:-1]}")
    for options in ((), kept):
        for shown in (run_on_terminal("reduce", *limit, *options, path).out, run("reduce", *limit, *options, path).out):
            assert "gnp.exe" in shown
            assert harmful(shown) == set()
            assert "\x1b]0;" not in shown
            assert not any(line.startswith("  9  forged") for line in shown.splitlines())
    assert all(EVIL in content for content in files(saved).values())


def test_escapes_in_what_cannot_be_written_are_neutralised(tmp_path: Path):
    saved = tmp_path / f"s{EVIL[:-1]}"
    saved.write_text("a file")
    path = write_json(tmp_path / "h.json", evil_history())
    done = run("reduce", "--max-tokens", "10", "--save-to", saved, "--root", "x", path)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.removesuffix("\n").isprintable()


def test_json_on_a_terminal_has_escapes_only_as_json_writes_them(tmp_path: Path):
    path = write_json(tmp_path / "h.json", evil_history())
    for options in (("--json",), ("--save-to", tmp_path / "saved")):
        done = run_on_terminal("reduce", "--max-tokens", "10", *options, path)
        assert harmful(done.out) == set()
        json.loads(done.out.splitlines()[-1])


@pytest.mark.soak
@pytest.mark.parametrize("kept", [(), ("--save-to", "saved", "-o", "out.jsonl")], ids=["plan", "saved"])
def test_memory_is_bounded_by_the_largest_conversation(tmp_path: Path, kept: tuple[str, ...]):
    large = tmp_path / "log.jsonl"
    block = json.dumps(rounds(40_000, 40_000, 40)).encode() + b"\n"
    with large.open("wb") as file:
        for _ in range(30 * MEGABYTE // len(block) + 1):
            file.write(block)
    ended = subprocess.run(
        [sys.executable, "-c", MEASURED, "reduce", "--max-tokens", "10000", *kept, str(large)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        timeout=TIMEOUT,
        check=True,
        env=environment(),
    )
    status, grown = map(int, ended.stderr.split())
    print(f"reduce {' '.join(kept)}: {grown} MB more for a file of {large.stat().st_size // MEGABYTE} MB")
    assert status == (0 if kept else 1)
    assert grown < 25
