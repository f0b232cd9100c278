"""`suture convert` between all wires, on the samples that a clone has."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from suture.cli import main
from suture.codecs import Lost
from suture.wires import WIRES

SAMPLES = Path(__file__).parents[2] / "examples" / "samples"
PAIRS = [pytest.param(source, target, id=f"{source} to {target}") for source, target in product(WIRES, WIRES)]


def sample(wire: str) -> Path:
    [path] = SAMPLES.glob(f"{wire}.json*")
    return path


def conversations(path: Path) -> list[Any]:
    """Return what stands in a file: one document, or one conversation a line."""
    text = path.read_text(encoding="utf-8")
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_repaired_sample_is_acceptable_in_every_other_form(source: str, target: str, tmp_path: Path):
    mended, moved, again = tmp_path / "mended.json", tmp_path / "moved.json", tmp_path / "again.json"
    assert main(["repair", "--wire", source, str(sample(source)), "-o", str(mended)]) == 0
    status = main(["convert", "--from", source, "--to", target, str(mended), "-o", str(moved)])
    assert status in {0, 1}
    # What another provider would still refuse (an id, an order) is what repair is for.
    assert main(["repair", "--wire", target, str(moved), "-o", str(again)]) == 0
    assert main(["check", "--wire", target, str(again)]) == 0


@pytest.mark.parametrize("wire", WIRES)
def test_a_repaired_sample_loses_nothing_in_its_own_form(wire: str, tmp_path: Path):
    mended, moved = tmp_path / "mended.json", tmp_path / "moved.json"
    assert main(["repair", "--wire", wire, str(sample(wire)), "-o", str(mended)]) == 0
    status = main(["convert", "--from", wire, "--to", wire, str(mended), "-o", str(moved)])
    assert status == (1 if wire == "openai-responses" else 0)  # a sample of that has reasoning that is only an id
    assert conversations(moved)


def test_what_is_lost_is_named_for_people_and_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    asks = {"type": "tool_use", "id": "toolu_1", "name": "tides", "input": {}}
    fails = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "no line", "is_error": True}
    history = [
        {"role": "user", "content": "High tide?"},
        {"role": "assistant", "content": [thought, asks]},
        {"role": "user", "content": [fails]},
    ]
    given, moved, losses = tmp_path / "given.json", tmp_path / "moved.json", tmp_path / "losses.jsonl"
    given.write_text(json.dumps(history))
    arguments = ["--to", "openai-chat", str(given), "-o", str(moved), "--losses", str(losses)]
    assert main(["convert", *arguments]) == 1
    told = capsys.readouterr().err
    [record] = [json.loads(line) for line in losses.read_text().splitlines()]
    found = {(loss["name"], loss["index"]) for loss in record["losses"]}
    assert found == {(Lost.REASONING.value, 1), (Lost.ERROR.value, 2)}
    assert "lost: message 1, content_blocks[0]: reasoning" in told
    [converted] = conversations(moved)
    assert converted[1]["tool_calls"][0]["id"] == converted[2]["tool_call_id"] == "toolu_1"


def test_a_system_message_is_kept_outside_where_the_other_form_has_it_there(tmp_path: Path):
    given, moved = tmp_path / "given.json", tmp_path / "moved.json"
    given.write_text('[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]')
    assert main(["convert", "--from", "openai-chat", "--to", "anthropic", str(given), "-o", str(moved)]) == 0
    assert conversations(moved) == [
        {
            "system": [{"type": "text", "text": "Be brief."}],
            "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        }
    ]


def test_a_call_without_its_result_stays_one(tmp_path: Path):
    call = {"id": "call_1", "type": "function", "function": {"name": "tides", "arguments": "{}"}}
    history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    given, moved = tmp_path / "given.json", tmp_path / "moved.json"
    given.write_text(json.dumps(history))
    assert main(["convert", "--to", "bedrock", str(given), "-o", str(moved)]) == 0
    [converted] = conversations(moved)
    assert [message["role"] for message in converted] == ["user", "assistant"]
    assert converted[1]["content"] == [{"toolUse": {"toolUseId": "call_1", "name": "tides", "input": {}}}]


def test_one_message_a_line_stays_one_message_a_line(tmp_path: Path):
    given, moved = tmp_path / "given.jsonl", tmp_path / "moved.jsonl"
    given.write_text('{"role": "user", "content": "hi"}\n{"role": "assistant", "content": "hello"}\n')
    assert main(["convert", "--to", "gemini", str(given), "-o", str(moved)]) == 0
    assert [json.loads(line)["role"] for line in moved.read_text().splitlines()] == ["user", "model"]
