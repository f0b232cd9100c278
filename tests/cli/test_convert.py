"""`suture convert`: what a file says is read as what it is, and nothing of it goes without a word."""

import json
from pathlib import Path
from typing import Any

import pytest

from suture.cli import main
from tests.cli.program import USER, Done, read_lines, run

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
