"""The ordinary programs are judged by what was sent, what came back and how often a tool ran."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "ordinary"
MODULES = [file.stem for file in FOLDER.glob("_*.py")]


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    for module in MODULES:
        monkeypatch.delitem(sys.modules, module, raising=False)


def cases() -> list[Any]:
    return [case for _, chapter in import_module("_chapters").CHAPTERS for case in chapter]


def case_of(what: str) -> Any:
    return next(case for case in cases() if case.what == what)


def facts(**seen: Any) -> Any:
    return import_module("_case").Facts(**seen)


def request(*messages: dict[str, Any], **body: Any) -> Any:
    return import_module("_server").Request("/v1/chat/completions", {}, {"messages": list(messages), **body})


def test_every_case_is_a_row_of_its_own_and_has_a_program_of_ours():
    rows = [(title, case.what) for title, chapter in import_module("_chapters").CHAPTERS for case in chapter]
    programs = {line.split("(")[0].removeprefix("def ") for line in (FOLDER / "ours.py").read_text().splitlines()}
    assert len(set(rows)) == len(rows)
    assert {case.program for case in cases()} - programs == {"structured_as_text"}


@pytest.mark.parametrize(
    ("seen", "wrong"),
    [
        ({"value": "done", "ran": [5]}, ""),
        ({"value": "done", "ran": ["5"]}, "the tool got '5'"),
        ({"value": "done", "ran": [5.0]}, "the tool got 5.0"),
        ({"value": "done", "ran": [5, 5]}, "the tool ran 2 times"),
        ({"value": "done", "ran": []}, "the tool never ran"),
        ({"value": None, "ran": [5]}, "gave None"),
    ],
)
def test_an_argument_must_reach_the_tool_once_with_its_value_and_its_type(seen: dict[str, Any], wrong: str):
    assert case_of('`"5"` for an `int`').judge(facts(**seen)) == wrong


def test_a_result_that_is_told_as_an_error_fails_though_the_program_went_on():
    ran = case_of("a dict with a `Path`")
    asked = request({"role": "user", "content": "go"})
    good = request({"role": "tool", "content": '{"path":"/srv/data"}'})
    bad = request({"role": "tool", "content": "TypeError: JSON cannot carry /srv/data"})
    assert ran.judge(facts(requests=[asked, good], ran=[None])) == ""
    assert ran.judge(facts(requests=[asked, bad], ran=[None])) == "told as failed, though it ran"
    assert ran.judge(facts(requests=[asked, good], ran=[None, None])) == "the tool ran 2 times"


def test_a_message_that_was_appended_must_arrive_last():
    appended = case_of("append to the result's messages, and go on")
    ann = {"role": "user", "content": "My name is Ann."}
    hello = {"role": "assistant", "content": "ok"}
    name = {"role": "user", "content": "What is my name?"}
    assert appended.judge(facts(value="ok", requests=[request(ann, hello, name)])) == ""
    assert appended.judge(facts(value="ok", requests=[request(ann, hello)])) == "lost: 'What is my name?'"
    assert appended.judge(facts(value="ok", requests=[request(name, ann)])) == "in another order"


def test_a_refusal_is_an_error_before_anything_was_sent_or_done_and_no_accident():
    assert facts(error=ValueError("no")).refused(0)
    assert facts(error=ValueError("no"), requests=[request()]).refused(1)
    assert not facts(error=ValueError("no"), requests=[request()]).refused(0)
    assert not facts(error=ValueError("no"), ran=[1]).refused(0)
    assert not facts(error=AttributeError("no")).refused(0)
    assert not facts().refused(0)


def test_an_answer_is_written_as_the_schema_of_the_request_wants_it():
    answering = import_module("_answers").answering

    def reply(value: Any, **body: Any) -> Any:
        return answering(value)(body, 0)

    wrapped = {"type": "object", "properties": {"value": {"type": "array"}}, "required": ["value"]}
    form = {"json_schema": {"schema": wrapped}}
    other = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
    tools = [{"function": {"name": name, "parameters": schema}} for name, schema in (("a", wrapped), ("b", other))]
    assert json.loads(reply([1], response_format=form).texts[0]) == {"value": [1]}
    assert reply([1], response_format={"json_schema": {"schema": {"type": "array"}}}).texts == ["[1]"]
    assert [(call.name, call.arguments) for call in reply({"number": 1}, tools=tools).calls] == [("b", '{"number": 1}')]
    assert reply("Which one?", tools=tools).texts == ["Which one?"]


def test_a_program_runs_in_a_process_of_its_own_and_is_judged():
    command = [sys.executable, str(FOLDER / "_framework.py"), "ours", "go on with the history and a text"]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert [json.loads(line) for line in run.stdout.splitlines()] == [
        ["Conversations", "go on with the history and a text", "works", ""]
    ]
