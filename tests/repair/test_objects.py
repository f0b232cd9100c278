"""Histories that hold objects as SDKs return them: they are repaired as dicts are, and as fast."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from anthropic.types import TextBlock, ToolUseBlock
from google.genai import types
from hypothesis import given, settings
from openai.types.chat import ChatCompletionMessage, ChatCompletionMessageFunctionToolCall
from openai.types.chat.chat_completion_message_function_tool_call import Function
from openai.types.responses import ResponseFunctionToolCall
from pydantic import BaseModel

import suture
from suture.wires import get_wire
from tests.histories import Step, write
from tests.repair.test_properties import spread_histories

WIRES = ("anthropic", "gemini", "openai-chat", "openai-responses")


class Thing(BaseModel, extra="allow"):
    """An object with any fields."""

    role: str | None = None
    content: Any = None


def as_object(value: Any) -> Any:
    """Return `value` with an object in the place of each dict, down to what is given to calls."""
    if isinstance(value, list):
        return [as_object(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = ("input", "args", "response")
    return Thing.model_construct(**{name: each if name in kept else as_object(each) for name, each in value.items()})


@pytest.mark.parametrize("wire", WIRES)
@given(history=spread_histories)
@settings(max_examples=30)
def test_objects_are_found_to_be_broken_just_where_dicts_are(wire: str, history: list[Step]):
    dicts = write(wire, history)
    objects = [as_object(message) for message in dicts]
    expected, found = suture.check(dicts, wire=wire), suture.check(objects, wire=wire)
    assert found.findings == expected.findings


def anthropic_step(number: int) -> list[Any]:
    call = ToolUseBlock(type="tool_use", id=f"toolu_{number}", name="f", input={"q": "x"})
    result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "42"}
    return [
        {"role": "assistant", "content": [TextBlock(type="text", text="So."), call]},
        {"role": "user", "content": [result]},
    ]


def chat_step(number: int) -> list[Any]:
    call_id = f"call_{number}"
    function = Function(name="f", arguments="{}")
    call = ChatCompletionMessageFunctionToolCall(id=call_id, type="function", function=function)
    return [
        ChatCompletionMessage(role="assistant", content=None, tool_calls=[call]),
        {"role": "tool", "tool_call_id": call_id, "content": "42"},
    ]


def responses_step(number: int) -> list[Any]:
    call_id = f"call_{number}"
    return [
        ResponseFunctionToolCall(type="function_call", call_id=call_id, name="f", arguments="{}", id=f"fc_{number}"),
        {"type": "function_call_output", "call_id": call_id, "output": "42"},
    ]


def gemini_step(number: int) -> list[Any]:
    call = types.Part(function_call=types.FunctionCall(id=f"c{number}", name="f", args={"q": "x"}))
    response = types.FunctionResponse(id=f"c{number}", name="f", response={"result": "42"})
    return [
        types.Content(role="model", parts=[call]),
        types.Content(role="user", parts=[types.Part(function_response=response)]),
    ]


STEPS = {
    "anthropic": (anthropic_step, {"role": "user", "content": "go"}),
    "openai-chat": (chat_step, {"role": "user", "content": "go"}),
    "openai-responses": (responses_step, {"role": "user", "content": "go"}),
    "gemini": (gemini_step, types.Content(role="user", parts=[types.Part(text="go")])),
}


def history(wire: str, count: int) -> list[Any]:
    step, first = STEPS[wire]
    return [first, *[message for number in range(count) for message in step(number)]]


@contextmanager
def count_views(wire: str) -> Iterator[list[int]]:
    """Count how often messages are looked at one by one."""
    views, code = [0], type(get_wire(wire)).view.__code__

    def note(frame: Any, event: str, _: object) -> None:
        views[0] += event == "call" and frame.f_code is code

    sys.setprofile(note)
    try:
        yield views
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("wire", WIRES)
def test_whole_objects_pass_at_a_glance(wire: str):
    messages = history(wire, 100)
    with count_views(wire) as views:
        assert suture.repair(messages, wire=wire).messages is messages
    assert views[0] < 10


@pytest.mark.parametrize("wire", WIRES)
def test_a_history_that_was_whole_is_looked_at_anew_when_an_object_in_it_was_changed(wire: str):
    messages = history(wire, 20)
    assert not suture.repair(messages, wire=wire).changed
    turn: Any = messages[21]
    if wire == "anthropic":
        turn["content"][1].id = "toolu_other"
    elif wire == "openai-chat":
        turn.tool_calls[0].id = "call_other"
    elif wire == "openai-responses":
        turn.call_id = "call_other"
    else:
        turn.parts[0].function_call.id = "other"
    assert suture.repair(messages, wire=wire).report.findings[0].index in {21, 22}


@pytest.mark.parametrize("wire", WIRES)
def test_a_repairer_that_is_given_objects_one_by_one_repairs_them_as_a_whole(wire: str):
    messages = history(wire, 5)
    del messages[4]
    repairer = suture.Repairer(wire=wire)
    for message in messages:
        repairer.extend([message])
    whole = suture.repair(messages, wire=wire)
    assert list(repairer.messages) == list(whole.messages)
    assert repairer.report.findings == whole.report.findings


@dataclass(frozen=True)
class Frozen:
    """A function as no SDK has it: it cannot be changed."""

    name: str
    arguments: str


def test_an_object_that_would_have_to_change_and_cannot_is_an_input_error():
    turn = {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": Frozen("f", "{")}]}
    messages = [{"role": "user", "content": "hi"}, turn, {"role": "user", "content": "stop"}]
    with pytest.raises(suture.InputError, match="a Frozen cannot be changed"):
        suture.repair(messages)
    repairer = suture.Repairer(messages[:1], wire="openai-chat")
    with pytest.raises(suture.InputError):
        repairer.extend(messages[1:])
    assert list(repairer.messages) == messages[:1]


def test_what_is_left_out_of_an_object_is_not_sent_by_its_sdk_either() -> None:
    """Some servers reply with an empty list of calls, which others refuse, and null as well."""
    said = {"role": "assistant", "content": "So.", "tool_calls": []}
    reply = ChatCompletionMessage.model_validate(said)
    history: list[Any] = [{"role": "user", "content": "q"}, reply]
    fixed = suture.repair(history)
    assert [finding.problem for finding in fixed.report.findings] == ["empty-calls"]
    assert fixed.messages[1].model_dump(exclude_unset=True) == {"role": "assistant", "content": "So."}
    assert reply.model_dump(exclude_unset=True) == said


def test_half_a_character_inside_of_an_object_is_replaced() -> None:
    block = ToolUseBlock(type="tool_use", id="x", name="f", input={"q": "caf\ud83d"})
    answer = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": "42"}]}
    given = [{"role": "user", "content": "go"}, {"role": "assistant", "content": [block]}, answer]
    fixed = suture.repair(given, wire="anthropic")
    assert fixed.messages[1]["content"][0].input == {"q": "caf\ufffd"}
    assert block.input == {"q": "caf\ud83d"}
