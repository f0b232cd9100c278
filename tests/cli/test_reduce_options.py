"""Every option of `suture reduce`: what it changes, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from suture.tokens import ExactCounter
from tests.cli.program import ANSWER, USER, run_apart, without, write_json
from tests.cli.program import result as answer
from tests.cli.reducing import Reduce, cleared, files, output, plans, reduce, results, rounds, tokens

__all__ = ["reduce"]  # a fixture

LONG = rounds(400, 400, 400, 400)
BEFORE = tokens(LONG)
ALL = [f"call_{number}" for number in range(4)]


def planned(reduce: Reduce, history: list[Any], folder: Path, *options: str) -> list[tuple[str, str]]:
    """Return the calls whose output a plan takes out, with what it does to each."""
    (plan,) = plans(reduce("--json", *options, write_json(folder / "h.json", history)))
    return [(change["action"], change["call_id"]) for change in plan["changes"]]


def cleared_calls(reduce: Reduce, folder: Path, *options: str) -> list[str]:
    return [call for _, call in planned(reduce, LONG, folder, *options)]


def test_old_output_is_cleared_if_there_are_more_tokens_than_the_limit_and_not_at_it(tmp_path: Path, reduce: Reduce):
    assert cleared_calls(reduce, tmp_path, "--max-tokens", str(BEFORE)) == []
    assert cleared_calls(reduce, tmp_path, "--max-tokens", str(BEFORE - 1)) == ALL[:3]


def test_the_oldest_output_goes_until_few_enough_tokens_are_left(tmp_path: Path, reduce: Reduce):
    freed = tokens([LONG[2]]) - tokens([answer("call_0", cleared("clear/call_0"))])
    for floor, gone in ((BEFORE - freed, ALL[:1]), (BEFORE - freed - 1, ALL[:2]), (0, ALL[:3])):
        assert cleared_calls(reduce, tmp_path, "--max-tokens", "100", "--down-to", str(floor)) == gone


def test_nothing_is_cleared_unless_it_frees_enough(tmp_path: Path, reduce: Reduce):
    freed = 3 * (tokens([LONG[2]]) - tokens([answer("call_0", cleared("clear/call_0"))]))
    assert cleared_calls(reduce, tmp_path, "--max-tokens", "100", "--at-least", str(freed)) == ALL[:3]
    assert cleared_calls(reduce, tmp_path, "--max-tokens", "100", "--at-least", str(freed + 1)) == []


@pytest.mark.parametrize(("keep", "gone"), [("0", ALL), ("1", ALL[:3]), ("3", ALL[:1]), ("9", [])])
def test_the_last_rounds_are_kept(tmp_path: Path, reduce: Reduce, keep: str, gone: list[str]):
    assert cleared_calls(reduce, tmp_path, "--max-tokens", "100", "--keep", keep) == gone


def test_output_longer_than_the_limit_is_truncated_if_that_makes_it_smaller(tmp_path: Path, reduce: Reduce):
    history = rounds(1000, 1001, 1500)  # a notice shows 1,000 characters and has about 150 of its own
    assert planned(reduce, history, tmp_path, "--max-length", "1000") == [("truncate", "call_2")]
    assert planned(reduce, history, tmp_path, "--max-length", "1500") == []
    assert len(planned(reduce, history, tmp_path, "--max-length", "500")) == 3


def test_truncated_output_keeps_its_beginning_and_its_end_and_is_saved_whole(tmp_path: Path, reduce: Reduce):
    saved = tmp_path / "saved"
    path = write_json(tmp_path / "h.json", rounds(2000))
    done = reduce("--max-length", "100", "--save-to", saved, "--root", "/there", path)
    whole = output(0, 2000)
    notice = (
        "<persisted-output>\nOutput too large (2000). Full output saved to: /there/trunc/call_0\n"
        f"Preview (first 50):\n{whole[:50]}\n\nPreview (last 50):\n{whole[-50:]}\n\n"
        "Use read_file to view\n</persisted-output>"
    )
    assert results(json.loads(done.out)) == [notice]
    assert files(saved) == {"trunc/call_0": whole}


def test_parallel_output_is_truncated_if_it_is_too_long_together(tmp_path: Path, reduce: Reduce):
    calls = [call for n in range(3) for call in rounds(*[0] * n, 900)[-3]["tool_calls"]]
    history = [USER, {"role": "assistant", "tool_calls": calls}]
    history += [answer(f"call_{n}", output(n, length)) for n, length in enumerate((900, 900, 100))]
    assert planned(reduce, history, tmp_path, "--max-length-per-turn", "1900") == []
    gone = [("truncate", "call_0"), ("truncate", "call_1")]
    assert planned(reduce, history, tmp_path, "--max-length-per-turn", "1700") == gone


def named(history: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    """Return the history with another tool in each round."""
    text = json.dumps(history)
    for name in names:
        text = text.replace('"weather"', json.dumps(name), 1)
    return json.loads(text)


def test_output_of_excluded_tools_is_neither_cleared_nor_truncated(tmp_path: Path, reduce: Reduce):
    history = named(rounds(900, 900, 900, 900), "a", "b", "c", "d")
    found = planned(reduce, history, tmp_path, "--max-tokens", "10", "--exclude", "b", "--exclude", "a")
    assert found == [("clear", "call_2")]
    found = planned(reduce, history, tmp_path, "--max-length", "500", "--exclude", "c")
    assert found == [("truncate", "call_0"), ("truncate", "call_1"), ("truncate", "call_3")]


def test_each_of_the_two_can_be_left_out(tmp_path: Path, reduce: Reduce):
    history, limits = rounds(900, 40, 900), ("--max-tokens", "10", "--max-length", "500")
    assert planned(reduce, history, tmp_path, *limits, "--skip-truncation", "--skip-clear") == []
    assert planned(reduce, history, tmp_path, *limits, "--skip-truncation") == [("clear", "call_0")]
    truncated = [("truncate", "call_0"), ("truncate", "call_2")]
    assert planned(reduce, history, tmp_path, *limits, "--skip-clear") == truncated


@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
def test_tokens_are_counted_exactly_by_an_encoding(tmp_path: Path, reduce: Reduce, encoding: str):
    (plan,) = plans(reduce("--json", "--tokenizer", encoding, write_json(tmp_path / "h.json", LONG)))
    assert plan["tokens_before"] == sum(map(ExactCounter(encoding).count, LONG)) != BEFORE
    (plan,) = plans(reduce("--json", "--tokenizer", "characters", write_json(tmp_path / "h.json", LONG)))
    assert plan["tokens_before"] == BEFORE


def test_an_encoding_that_nobody_knows_is_refused_with_those_that_are_known(tmp_path: Path, reduce: Reduce):
    done = reduce("--tokenizer", "klingon", write_json(tmp_path / "h.json", LONG))
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("suture: unknown encoding 'klingon'; known: ")
    assert "o200k_base" in done.err


def test_a_tokenizer_that_is_not_installed_is_told_with_how_to_install_it(tmp_path: Path):
    path = write_json(tmp_path / "h.json", LONG)
    done = run_apart(
        "reduce", "--tokenizer", "o200k_base", path, PYTHONPATH=without("splintr", tmp_path / "hidden")["PYTHONPATH"]
    )
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert "(extra tokens), and splintr is not installed: " in done.err


def test_the_model_is_told_the_tool_and_the_directory_that_it_knows(tmp_path: Path, reduce: Reduce):
    saved = tmp_path / "saved"
    options = ("--max-tokens", "100", "--save-to", saved, "--root", "/mnt/outputs/", "--read-tool", "open")
    done = reduce(*options, write_json(tmp_path / "h.json", LONG))
    assert results(json.loads(done.out))[0] == cleared("/mnt/outputs/clear/call_0", "open")
    assert sorted(files(saved)) == ["clear/call_0", "clear/call_1", "clear/call_2"]


def test_the_tool_that_reads_is_never_truncated(tmp_path: Path, reduce: Reduce):
    history = named(rounds(900), "open")
    assert planned(reduce, history, tmp_path, "--max-length", "100") == [("truncate", "call_0")]
    assert planned(reduce, history, tmp_path, "--max-length", "100", "--read-tool", "open") == []


def test_texts_are_put_in_the_language_that_is_asked(tmp_path: Path, reduce: Reduce):
    options = ("--max-tokens", "100", "--save-to", tmp_path / "s", "--root", "", "--language", "zh")
    done = reduce(*options, write_json(tmp_path / "h.json", LONG))
    assert "clear/call_0" in results(json.loads(done.out))[0]
    assert "使用 read_file 进行查看" in results(json.loads(done.out))[0]


def test_the_wire_can_be_told(tmp_path: Path, reduce: Reduce):
    ambiguous = [USER, {"role": "assistant", "content": [{"type": "text", "text": " "}]}]
    for wire in ("anthropic", "openai-chat"):
        (plan,) = plans(reduce("--json", "--wire", wire, write_json(tmp_path / "h.json", ambiguous)))
        assert plan["wire"] == wire


LIMITS = ("--max-tokens", "--down-to", "--at-least", "--keep", "--max-length", "--max-length-per-turn")


@pytest.mark.parametrize("option", LIMITS)
@pytest.mark.parametrize("value", ["-1", "many", "1.5", "", "0x10", "9" * 5000])
def test_a_limit_is_a_number_that_is_0_or_more(tmp_path: Path, reduce: Reduce, option: str, value: str):
    done = reduce(f"{option}={value}", write_json(tmp_path / "h.json", LONG))
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith(f"suture: argument {option}: expected a number, 0 or more, found '{value[:20]}")


WRONG = [
    pytest.param(("-o", "out.json"), "give --save-to DIR to save old output, or --discard", id="no place"),
    pytest.param(("-o", "-"), "give --save-to DIR to save old output, or --discard", id="no place, piped"),
    pytest.param(("--save-to", "s", "--discard"), "--discard: not allowed with argument --save-to", id="both"),
    pytest.param(("--save-to", "s", "--json"), "cannot both go to standard output; give -o", id="two on one stream"),
    pytest.param(("--discard", "--json", "-o", "-"), "cannot both go to standard output; give -o", id="and piped"),
    pytest.param(("--save-to", ""), "--save-to: the directory of a LocalBackend is", id="a directory without a name"),
    pytest.param(("--save-to", "a\x1bb"), r"a\x1bb: cannot stand in a notice", id="a directory with an escape"),
    pytest.param(("--root", "a\nb"), r"a\nb: cannot stand in a notice", id="a root of two lines"),
    pytest.param(("--root", "x" * 1001), "cannot stand in a notice", id="a root without end"),
    pytest.param(("--read-tool", ""), "--read-tool: expected the name of a tool", id="no tool"),
    pytest.param(("--read-tool", "a\nb"), "--read-tool: expected the name of a tool", id="a tool of two lines"),
    pytest.param(("--language", "fr"), "--language: invalid choice: 'fr'", id="a language"),
    pytest.param(("--wire", "morse"), "--wire: invalid choice: 'morse'", id="a wire"),
    pytest.param(("--max-tok", "5"), "unrecognized arguments", id="half an option"),
    pytest.param(("--profile", "openai-chat"), "unrecognized arguments", id="an option of another command"),
]


@pytest.mark.parametrize(("options", "told"), WRONG)
def test_what_makes_no_sense_is_refused_on_one_line_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reduce: Reduce, options: tuple[str, ...], told: str
):
    monkeypatch.chdir(tmp_path)
    path = write_json(tmp_path / "h.json", LONG)
    done = reduce("--max-tokens", "10", *options, path)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("suture: ")
    assert done.err.removesuffix("\n").isprintable()
    assert told in done.err
    assert list(tmp_path.iterdir()) == [path]


def test_a_directory_with_an_escape_can_be_used_if_the_model_is_told_another_name(tmp_path: Path, reduce: Reduce):
    saved, path = tmp_path / "a\x1b[31mb", write_json(tmp_path / "h.json", [*rounds(400, 40), ANSWER])
    done = reduce("--max-tokens", "10", "--save-to", saved, "--root", "x", path, "-o", tmp_path / "out.json")
    assert (done.status, "\x1b" in done.out) == (0, False)
    assert files(saved) == {"clear/call_0": output(0)}


def test_a_whole_history_is_brought_under_a_limit_without_a_model(tmp_path: Path, reduce: Reduce):
    messages = rounds(*[400] * 30)
    history = write_json(tmp_path / "long.json", messages)
    short, kept = tmp_path / "short.json", tmp_path / "kept"
    done = reduce("--compact", "600", "--save-to", str(kept), "-o", str(short), str(history))
    assert done.status == 0, done.err
    written = json.loads(short.read_text(encoding="utf-8"))
    assert tokens(written) <= 600
    assert "conversation-summary" in str(written)
    assert files(kept)


def test_what_cannot_be_brought_under_a_limit_is_named(tmp_path: Path, reduce: Reduce):
    done = reduce("--compact", "3", str(write_json(tmp_path / "long.json", rounds(400))))
    assert done.status == 2
    assert "cannot be cut" in done.err


def test_where_the_words_of_users_are_too_many_to_be_discarded_it_is_said_what_helps(tmp_path: Path, reduce: Reduce):
    history = write_json(tmp_path / "long.json", [message for _ in range(300) for message in (USER, ANSWER)])
    done = reduce("--compact", "500", "--discard", "-o", str(tmp_path / "short.json"), str(history))
    assert (done.status, "with --save-to more can be taken out" in done.err) == (2, True)
    assert (
        reduce("--compact", "500", "--save-to", tmp_path / "kept", "-o", tmp_path / "short.json", history).status == 0
    )
