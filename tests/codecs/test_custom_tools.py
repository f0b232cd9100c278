"""Custom tools, which are called with any text, between the two formats of OpenAI."""

import pytest

from suture.codecs import convert

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
    converted = convert(responses(text), "openai-responses", "openai-chat")
    assert converted.messages == chat(text)
    assert [loss.what for loss in converted.losses] == ["openai-responses type"]  # that of the result


def test_what_responses_keeps_of_a_custom_call_is_reported_in_chat():
    [call, result] = responses("SELECT 1")
    losses = convert([{**call, "id": "ctc_1"}, result], "openai-responses", "openai-chat").losses
    assert "openai-responses id" in [loss.what for loss in losses]
