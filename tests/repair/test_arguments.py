"""Arguments that are not an object: what can be kept is kept, what is cut off becomes empty."""

import pytest

import suture


def chat(arguments: object) -> list[dict[str, object]]:
    """Return a whole group of chat messages with these arguments."""
    function = {"name": "f", "arguments": arguments}
    return [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "a", "content": "42"},
    ]


def blocks(arguments: object) -> list[dict[str, object]]:
    """Return a whole group of Anthropic messages with these arguments."""
    return [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": arguments}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "42"}]},
    ]


@pytest.mark.parametrize(("given", "expected"), [({"q": 1}, '{"q":1}'), ('{"q": ', "{}"), ("", "{}"), (None, "{}")])
def test_chat_arguments_end_as_the_text_of_an_object(given: object, expected: str) -> None:
    """An object where text belongs is not lost: it is written as text."""
    fixed = suture.repair(chat(given))
    assert fixed.messages == chat(expected)
    assert [finding.problem for finding in fixed.report.findings] == ["bad-arguments"]


@pytest.mark.parametrize(("given", "expected"), [('{"q": 1}', {"q": 1}), ('{"q": ', {}), (7, {}), (None, {})])
def test_block_arguments_end_as_an_object(given: object, expected: object) -> None:
    """The text of an object where an object belongs is not lost: it is read."""
    fixed = suture.repair(blocks(given), wire="anthropic")
    assert fixed.messages == blocks(expected)
    assert [finding.problem for finding in fixed.report.findings] == ["bad-arguments"]


def test_a_cache_point_behind_a_call_is_no_text() -> None:
    """It marks a place and stays there."""
    messages = [
        {"role": "user", "content": [{"text": "go"}]},
        {
            "role": "assistant",
            "content": [
                {"text": "looking"},
                {"toolUse": {"toolUseId": "a", "name": "f", "input": {}}},
                {"cachePoint": {"type": "default"}},
            ],
        },
        {"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": [{"text": "42"}]}}]},
    ]
    assert suture.repair(messages, wire="bedrock").messages is messages


class Words(str):
    """A string of the user's own."""

    __slots__ = ()


def test_arguments_in_a_string_type_of_the_users_own_are_read_as_any_text() -> None:
    whole = chat(Words('{"q": 1}'))
    assert suture.repair(whole).messages is whole
    assert suture.repair(chat(Words('{"q": '))).messages == chat("{}")
    assert suture.repair(blocks(Words('{"q": 1}'))).messages == blocks({"q": 1})
