"""Calls that share an id: each result belongs to its own, in order."""

import pytest

from suture.codecs import CODECS, convert, decode, encode
from suture.messages import AgenticMessage, FunctionToolCall, FunctionToolResult, UserInputText

NAMING = [wire for wire in CODECS if wire not in {"openai-chat", "gemini"}]
"""The wires in which a result is named as its call; in the others it has a name of its own, or none."""


def calls(*named: str) -> AgenticMessage:
    return AgenticMessage("assistant", [FunctionToolCall("x", name, "{}") for name in named])


def results(*said: str, name: str = "") -> AgenticMessage:
    return AgenticMessage("user", [FunctionToolResult("x", name, [UserInputText(text)]) for text in said])


def named(messages: list[AgenticMessage]) -> list[tuple[str, str]]:
    results = [
        block for message in messages for block in message.content_blocks if isinstance(block, FunctionToolResult)
    ]
    return [
        (block.name, "".join(held.text for held in block.content if isinstance(held, UserInputText)))
        for block in results
    ]


HISTORIES = {
    "in one message": ([calls("f", "g"), results("1", "2")], [("f", "1"), ("g", "2")]),
    "in messages of their own": ([calls("f", "g"), results("1"), results("2")], [("f", "1"), ("g", "2")]),
    "of calls in two messages": ([calls("f"), calls("g"), results("1", "2")], [("f", "1"), ("g", "2")]),
    "in two turns": (
        [calls("f", "g"), results("1", "2"), calls("h", "i"), results("3", "4")],
        [("f", "1"), ("g", "2"), ("h", "3"), ("i", "4")],
    ),
    "of a turn after one that has no result": (
        [calls("f", "g"), AgenticMessage.user("go on"), calls("h"), results("3")],
        [("h", "3")],
    ),
    "with one too many": ([calls("f", "g"), results("1", "2", "3")], [("f", "1"), ("g", "2"), ("g", "3")]),
}


@pytest.mark.parametrize("wire", NAMING)
@pytest.mark.parametrize(("history", "expected"), HISTORIES.values(), ids=HISTORIES)
def test_each_result_has_the_name_of_its_own_call(
    history: list[AgenticMessage], expected: list[tuple[str, str]], wire: str
):
    assert named(decode(encode(history, wire).messages, wire)) == expected


def test_each_output_of_responses_is_of_the_type_of_its_own_call():
    items = [
        {"type": "function_call", "call_id": "x", "name": "f", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "x", "name": "g", "input": "ls"},
        {"type": "function_call_output", "call_id": "x", "output": "1"},
        {"type": "custom_tool_call_output", "call_id": "x", "output": "2"},
    ]
    assert convert(items, "openai-responses", "openai-responses").messages == items
