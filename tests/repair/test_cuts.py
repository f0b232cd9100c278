"""Where a history may be cut."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import suture
from suture.codecs import get_codec
from suture.wires import get_wire
from tests.histories import Step, write
from tests.repair.test_properties import numbered, steps

WIRES = ["message", "agentic", "openai-chat", "openai-responses", "anthropic", "gemini", "bedrock"]


def problems(messages: Any, wire: str) -> list[str]:
    report = suture.check(messages, wire=wire, profile="pairing", tail="keep")
    return sorted(finding.problem for finding in report.findings)


@pytest.mark.parametrize("wire", WIRES)
@given(history=st.lists(steps, max_size=8).map(numbered))
def test_both_sides_of_a_cut_have_no_fault_that_the_whole_has_not(wire: str, history: list[Step]):
    messages = suture.repair(write(wire, history), wire=wire, profile="pairing").messages
    for place in suture.cuts(messages, wire=wire):
        assert problems(messages[:place], wire) == []
        assert problems(messages[place:], wire) == []


def test_the_two_ends_are_places():
    assert suture.cuts([], wire="message") == [0]
    assert suture.cuts([suture.Message.user("hi")]) == [0, 1]


def test_parallel_calls_and_their_results_stay_together():
    calls = [suture.ToolCall(name, "f", "{}") for name in "ab"]
    history = [
        suture.Message.user("go"),
        suture.Message.assistant(tool_calls=calls),
        suture.Message.tool("1", "a"),
        suture.Message.tool("2", "b"),
        suture.Message.assistant("done"),
    ]
    assert suture.cuts(history) == [0, 1, 4, 5]


def test_a_late_result_keeps_all_that_stands_before_it_together():
    call = suture.Message.assistant(tool_calls=[suture.ToolCall("a", "f", "{}")])
    history = [call, suture.Message.user("well?"), suture.Message.tool("1", "a"), suture.Message.user("ah")]
    assert suture.cuts(history) == [0, 3, 4]


def test_a_history_may_be_cut_before_what_the_provider_compacted_itself():
    sealed = {"type": "compaction", "id": "cmp_1", "encrypted_content": "x"}
    history = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "first"},
        sealed,
        {"role": "assistant", "content": "then"},
    ]
    assert suture.cuts(history) == [0, 1, 2, 4]
    kept = get_codec("openai-responses").decode_messages(history)
    assert [get_wire("agentic").compacted_by(message) for message in kept] == ["", "openai-responses"]


def test_a_reasoning_item_is_not_parted_from_what_follows_it():
    history = [
        {"role": "user", "content": "go"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
        {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "y"},
        {"role": "assistant", "content": "done"},
    ]
    assert suture.cuts(history) == [0, 1, 4, 6]


@pytest.mark.parametrize("wrong", [None, 7, {"messages": []}, "hi", iter(())])
def test_what_is_no_list_of_messages_is_refused(wrong: Any):
    with pytest.raises(suture.InputError, match="expected a list of messages"):
        suture.cuts(wrong, "openai-chat")
