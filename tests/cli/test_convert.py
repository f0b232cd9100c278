"""`suture convert`: what a file says is read as what it is, and nothing of it goes without a word."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from suture.cli import main
from suture.codecs import Lost
from suture.wires import WIRES
from tests.cli.program import USER, Done, read_lines, run

SAMPLES = Path(__file__).parents[2] / "examples" / "samples"
PAIRS = [pytest.param(source, target, id=f"{source} to {target}") for source, target in product(WIRES, WIRES)]
HI = {"role": "user", "content": "hi"}
PARTS = {"role": "user", "parts": [{"text": "hi"}]}
SAID = [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
OWN = {"kind": "message", "role": "user", "content": "hi"}


def convert(value: Any, *options: str) -> Done:
    return run("convert", *options, "-", stdin=json.dumps(value).encode())


def test_a_request_is_read_by_the_field_that_holds_its_messages():
    done = convert({"instructions": "Be brief.", "input": [HI]}, "--to", "anthropic")
    assert (done.status, done.err) == (0, "")
    made = json.loads(done.out)
    assert made["messages"] == SAID
    assert "Be brief." in json.dumps(made["system"])


@pytest.mark.parametrize("key", ["input", "contents"])
def test_messages_in_another_format_s_field_are_kept_and_the_fields_beside_them_told(key: str):
    done = convert({key: [HI], "temperature": 1}, "--from", "openai-chat", "--to", "anthropic")
    assert json.loads(done.out) == SAID
    assert (done.status, done.err) == (1, "suture: standard input: lost: option: temperature\n")


def test_messages_that_only_one_format_has_are_read_in_any_field(tmp_path: Path):
    losses = tmp_path / "lost.jsonl"
    done = convert({"messages": [PARTS], "topic": "tides"}, "--to", "anthropic", "--losses", str(losses))
    assert json.loads(done.out) == SAID
    assert [loss["what"] for record in read_lines(losses.read_text()) for loss in record["losses"]] == ["topic"]
    assert convert({"messages": [PARTS]}, "--to", "anthropic").status == 0


def test_a_second_list_never_takes_the_place_of_the_messages():
    done = convert({"messages": [HI], "input": [USER]}, "--from", "openai-chat", "--to", "openai-responses")
    assert json.loads(done.out) == {"input": [HI]}
    assert (done.status, done.err) == (1, "suture: standard input: lost: option: input\n")


@pytest.mark.parametrize(
    "beside",
    [{"system": "Be brief."}, {"stop_sequences": ["X"]}, {"tools": [{"type": "function", "function": {"name": "f"}}]}],
    ids=["system", "option", "tool"],
)
def test_a_request_that_formats_read_differently_is_asked_about(beside: dict[str, Any]):
    done = convert({"messages": [HI], "max_tokens": 5, **beside}, "--to", "gemini")
    told = "suture: standard input: this could be any of openai-chat, anthropic; say which with --from\n"
    assert done == (2, "", told)


def test_a_request_that_says_the_same_in_all_formats_is_converted():
    done = convert({"stream": True, "messages": [HI], "max_tokens": 5}, "--to", "gemini")
    assert done.status == 0
    assert json.loads(done.out) == {"stream": True, "contents": [PARTS], "generationConfig": {"maxOutputTokens": 5}}


def test_a_format_that_cannot_read_the_request_is_not_asked_about():
    tool = {"name": "tides", "input_schema": {"type": "object"}}
    done = convert({"messages": [HI], "tools": [tool]}, "--to", "gemini")
    assert done.status == 0
    assert json.loads(done.out)["tools"][0]["functionDeclarations"][0]["name"] == "tides"


def test_a_request_that_no_format_can_read_is_refused():
    done = convert({"messages": [HI], "tools": 5}, "--to", "gemini")
    assert (done.status, done.out) == (2, "")
    assert "tools" in done.err


@pytest.mark.parametrize("target", ["anthropic", "agentic", "message"])
def test_what_stands_beside_native_messages_is_told(target: str):
    done = convert({"schema": 1, "messages": [OWN], "metadata": {"user": 7}}, "--to", target)
    assert (done.status, done.err) == (1, "suture: standard input: lost: option: metadata\n")
    assert "hi" in done.out
    assert convert({"schema": 1, "messages": [OWN]}, "--to", target).status == 0


def test_an_empty_history_stays_one():
    assert convert({"schema": 1, "messages": []}, "--to", "anthropic") == (0, "[]\n", "")
    assert convert([], "--to", "message") == (0, "[]\n", "")
    assert json.loads(convert({"contents": [], "stream": True}, "--to", "openai-chat").out) == {
        "messages": [],
        "stream": True,
    }


def test_messages_of_no_format_are_told_with_the_option_that_this_command_has():
    done = convert([HI, PARTS], "--to", "message")
    assert (done.status, done.out) == (2, "")
    assert done.err.endswith("(openai-chat, openai-responses, anthropic); say which with --from\n")


def test_settings_that_only_their_own_provider_knows_do_not_cross(tmp_path: Path):
    body = {"model": "gpt-5", "n": 2, "logit_bias": {"13": 1}, "temperature": 0, "stream": True, "max_tokens": 9}
    given, moved, losses = tmp_path / "given.json", tmp_path / "moved.json", tmp_path / "losses.jsonl"
    given.write_text(json.dumps({**body, "messages": [{"role": "user", "content": "x"}]}))
    files = [str(given), "-o", str(moved), "--losses", str(losses)]
    assert main(["convert", "--from", "openai-chat", "--to", "anthropic", *files]) == 1
    converted = json.loads(moved.read_text())
    assert set(converted) == {"messages", "temperature", "stream", "max_tokens"}
    named = {loss["what"] for loss in json.loads(losses.read_text())["losses"]}
    assert named == {"model", "n", "logit_bias"}
    assert main(["convert", "--from", "openai-chat", "--to", "openai-chat", str(given), "-o", str(moved)]) == 0
    assert json.loads(moved.read_text()) == json.loads(given.read_text())


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


def test_a_message_without_parts_stays_in_its_own_form_with_what_it_has_besides():
    history = '[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[],"note":1}]\n'
    done = run("convert", "--from", "gemini", "--to", "gemini", "-", stdin=history.encode())
    assert (done.status, done.out) == (0, history)
