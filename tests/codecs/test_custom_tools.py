"""Calls of other kinds than functions, in the two formats of OpenAI: custom tools, shells, patches."""

import pytest

import suture
from suture.codecs import convert
from suture.messages import TextPart, ToolResult
from suture.wires import get_chat_wire

INPUTS = ["SELECT 1", "", '{"input": "x"}', "5"]


def chat(text: str) -> list[dict]:
    call = {"id": "c", "type": "custom", "custom": {"name": "sql", "input": text}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "1"},
    ]


def responses(text: str) -> list[dict]:
    return [
        {"type": "custom_tool_call", "call_id": "c", "name": "sql", "input": text},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "1"},
    ]


@pytest.mark.parametrize("text", INPUTS)
def test_a_custom_call_of_chat_is_one_in_responses(text: str):
    assert convert(chat(text), "openai-chat", "openai-responses") == (responses(text), ())


@pytest.mark.parametrize("text", INPUTS)
def test_a_custom_call_of_responses_is_one_in_chat(text: str):
    assert convert(responses(text), "openai-responses", "openai-chat") == (chat(text), ())


def test_what_responses_keeps_of_a_custom_call_is_reported_in_chat():
    [call, result] = responses("SELECT 1")
    losses = convert([{**call, "id": "ctc_1"}, result], "openai-responses", "openai-chat").losses
    assert "openai-responses id" in [loss.what for loss in losses]


@pytest.mark.parametrize("native", ["message", "agentic"])
@pytest.mark.parametrize(
    ("call", "output"),
    [
        ({"type": "custom_tool_call", "name": "sql", "input": "x"}, {"type": "custom_tool_call_output"}),
        ({"type": "shell_call", "action": {"commands": ["ls"]}}, {"type": "shell_call_output"}),
        ({"type": "local_shell_call", "action": {"type": "exec"}}, {"type": "local_shell_call_output"}),
        ({"type": "apply_patch_call", "operation": {"type": "delete_file"}}, {"type": "apply_patch_call_output"}),
    ],
)
def test_results_and_placeholders_have_the_form_of_their_call(call: dict, output: dict, native: str):
    [asked] = convert([{**call, "call_id": "c"}], "openai-responses", native).messages
    wire = get_chat_wire(native)
    [seen] = wire.calls(asked)
    answer = wire.result(seen, ToolResult((TextPart("1"),)))
    placeholder = suture.repair([asked, wire.user("stop")], wire=native).messages[1]
    for result in (answer, placeholder):
        items = convert([asked, result], native, "openai-responses").messages
        assert items[1]["type"] == output["type"]
        assert suture.check(items, wire="openai-responses").acceptable


def test_a_result_of_a_custom_call_is_an_ordinary_one_in_chat():
    [asked] = convert(chat("x")[:1], "openai-chat", "message").messages
    wire = get_chat_wire("message")
    [seen] = wire.calls(asked)
    answer = wire.result(seen, ToolResult((TextPart("1"),)))
    assert convert([asked, answer], "message", "openai-chat") == (chat("x"), ())
