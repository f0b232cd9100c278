"""What a message says and which calls it makes, on each wire, and what the objects of the openai package stand for."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessage, ChatCompletionMessageFunctionToolCall
from openai.types.chat.chat_completion_message_function_tool_call import Function

from suture.errors import InputError
from suture.messages import (
    AgenticMessage,
    AssistantGenImage,
    AssistantGenText,
    Delta,
    FunctionToolCall,
    MCPToolResult,
    Message,
    Reasoning,
    ServerToolCall,
    TextPart,
    ToolCall,
    ToolSearchResult,
    UserInputImage,
    UserInputText,
)
from suture.wires import ChatWire
from tests.messages.test_round_trips import values_of
from tests.wires.chat import AGENTIC, CALL, CHAT, CHAT_RESULTS, MESSAGE, NATIVE, PARTS, TOOLS, chat_call, json_values

# What a message says


TEXTS = [
    (MESSAGE, Message.system("a"), "a"),
    (MESSAGE, Message.user("a"), "a"),
    (MESSAGE, Message.user([TextPart("a"), PARTS["image"], TextPart("b")]), "a\nb"),
    (MESSAGE, Message("assistant", "a", reasoning_content="r"), "a"),
    (MESSAGE, Message("assistant", "a", assistant_gen_multi_content=(TextPart("b"), PARTS["image"])), "ab"),
    (MESSAGE, Message("assistant", assistant_gen_multi_content=(
        TextPart("a", index=0), TextPart("b", index=1), TextPart("c", index=3))), "abc"),
    (MESSAGE, Message.assistant(tool_calls=[ToolCall("a", "f")]), ""),
    (MESSAGE, Message.tool("a", "call_1"), "a"),
    (MESSAGE, Message.tool([TextPart("a"), PARTS["image"], PARTS["unknown"]], "x"), 'a\n{"type":"hologram","beam":7}'),
    (AGENTIC, AgenticMessage.system("a"), "a"),
    (AGENTIC, AgenticMessage.user([UserInputText("a"), UserInputImage(url="u"), UserInputText("b")]), "a\nb"),
    (
        AGENTIC,
        AgenticMessage.assistant(
            [
                Reasoning("r"),
                AssistantGenText("a"),
                AssistantGenImage(url="u"),
                ServerToolCall(call_id="s", name="web"),
                AssistantGenText(""),
                FunctionToolCall("c", "f"),
                AssistantGenText("b"),
                MCPToolResult(content="m"),
            ]
        ),
        "ab",
    ),
    (AGENTIC, AgenticMessage.tool_result("c", "f", [UserInputText("a"), UserInputText("b")]), "a\nb"),
    (AGENTIC, AgenticMessage("user", (ToolSearchResult("c", "f", TOOLS), UserInputText("b"))),
     '[{"name":"fetch","description":"Get a page."}]\nb'),
    (CHAT, {"role": "developer", "content": "a"}, "a"),
    (CHAT, {"role": "user", "content": "a"}, "a"),
    (CHAT, {"role": "user", "content": [{"type": "text", "text": "a"}, CHAT_RESULTS["image"]]}, "a"),
    (CHAT, {"role": "assistant", "content": None, "tool_calls": [chat_call()]}, ""),
    (CHAT, {"role": "assistant", "tool_calls": [chat_call()]}, ""),
    (CHAT, {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}, "no"),
    (CHAT, {"role": "assistant", "content": None, "refusal": "no"}, "no"),
    (CHAT, {"role": "assistant", "content": None, "audio": {"id": "x", "transcript": "a"}}, "a"),
    (CHAT, {"role": "assistant", "content": None, "audio": {"id": "x"}}, ""),
    (CHAT, {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "a"}] * 2}, "a\na"),
    (CHAT, {"role": "function", "name": "f", "content": "a"}, "a"),
    (CHAT, ChatCompletionMessage(role="assistant", content="a"), "a"),
    (CHAT, ChatCompletionMessage(role="assistant", refusal="no"), "no"),
]  # fmt: skip


@pytest.mark.parametrize(("wire", "message", "text"), TEXTS)
def test_a_message_says(wire: ChatWire, message: Any, text: str):
    assert wire.text(message) == text


@given(values_of(Message))
def test_any_message_can_be_asked_what_it_says_calls_and_cost(message: Message):
    assert isinstance(MESSAGE.text(message), str)
    assert MESSAGE.calls(message) == MESSAGE.view(message).calls
    assert MESSAGE.usage(message) == (message.response_meta and message.response_meta.usage)


@given(values_of(AgenticMessage))
def test_any_agentic_message_can_be_asked_what_it_says_calls_and_cost(message: AgenticMessage):
    assert isinstance(AGENTIC.text(message), str)
    assert AGENTIC.calls(message) == AGENTIC.view(message).calls
    assert AGENTIC.usage(message) == (message.response_meta and message.response_meta.usage)


chat_fields = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool", "function", "developer", "other"])},
    optional={
        "content": json_values | st.lists(st.dictionaries(st.sampled_from(["type", "text"]), json_values)),
        "refusal": json_values,
        "audio": json_values,
        "tool_calls": json_values,
    },
)


@given(chat_fields)
def test_whatever_stands_in_a_chat_message_can_be_asked_what_it_says(message: dict[str, Any]):
    assert isinstance(CHAT.text(message), str)


@pytest.mark.parametrize("wire", NATIVE, ids=lambda wire: wire.name)
@pytest.mark.parametrize("other", [{"role": "user", "content": "a"}, None, "a"])
def test_the_native_wires_refuse_what_is_no_message_of_theirs(wire: ChatWire, other: Any):
    theirs = AgenticMessage.user("a") if wire is MESSAGE else Message.user("a")
    for message in (other, theirs):
        for ask in (wire.text, wire.calls, wire.deltas, wire.dump):
            with pytest.raises(InputError, match=f"found {type(message).__name__}"):
                ask(message)


# Calls


CHAT_TURNS = [
    {"role": "assistant", "content": "a"},
    {"role": "assistant", "content": None, "tool_calls": None, "function_call": None},
    {"role": "assistant", "content": None, "tool_calls": []},
    {"role": "assistant", "content": None, "tool_calls": [chat_call(), chat_call("b", "g", '{"q": 1}')]},
    {"role": "assistant", "content": None, "tool_calls": (chat_call(),)},
    {"role": "assistant", "content": None, "tool_calls": [chat_call(arguments='{"q": "é"}')]},
    {"role": "assistant", "content": None, "tool_calls": [{"id": None, "function": {"name": None}}]},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "type": "function"}]},
    {"role": "assistant", "content": None, "tool_calls": [{**chat_call(), "function": {"arguments": {"q": 1}}}]},
    {"role": "assistant", "tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "sh", "input": "ls"}}]},
    {"role": "assistant", "tool_calls": [{**chat_call(), "type": "custom", "custom": {"name": "sh", "input": "ls"}}]},
    {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
    {"role": "assistant", "tool_calls": [chat_call()], "function_call": {"name": "f", "arguments": "{}"}},
    {"role": "user", "content": "a", "tool_calls": [chat_call()]},
    {"role": "tool", "tool_call_id": "a", "content": "a"},
]


@pytest.mark.parametrize("message", CHAT_TURNS)
def test_the_calls_of_a_chat_message_are_those_that_the_engines_see(message: dict[str, Any]):
    assert CHAT.calls(message) == CHAT.view(message).calls


@pytest.mark.parametrize(
    "made",
    [7, {"id": "a"}, [None], ["a"], [{"id": 7, "type": "function"}], [{**chat_call(), "function": "f"}]],
)
def test_malformed_calls_are_refused_as_the_engines_refuse_them(made: Any):
    message = {"role": "assistant", "content": None, "tool_calls": made}
    with pytest.raises(InputError) as seen:
        CHAT.view(message)
    with pytest.raises(InputError) as called:
        CHAT.calls(message)
    assert str(called.value) == str(seen.value)


# The objects of the openai package


SDK_MESSAGE = ChatCompletionMessage(
    role="assistant",
    content=None,
    tool_calls=[
        ChatCompletionMessageFunctionToolCall(
            id="call_1", type="function", function=Function(name="search", arguments="{}")
        )
    ],
)
SDK_DICT = {"role": "assistant", "content": None, "tool_calls": [chat_call()]}


def test_an_object_of_the_sdk_has_calls_and_pieces():
    assert CHAT.calls(SDK_MESSAGE) == (CALL,)
    assert CHAT.deltas(SDK_MESSAGE) == [Delta(call_index=0, call_id="call_1", name="search", arguments="{}")]
    assert CHAT.usage(SDK_MESSAGE) is None


def test_an_object_of_the_sdk_is_stored_as_the_dict_it_stands_for():
    assert CHAT.dump(SDK_MESSAGE) == SDK_DICT


def test_what_a_server_added_to_the_sdks_object_is_stored_too():
    received = ChatCompletionMessage.construct(
        role="assistant", content="a", reasoning_content="r", details=[{"n": 1}], annotations=7
    )
    assert CHAT.dump(received) == {
        "role": "assistant",
        "content": "a",
        "reasoning_content": "r",
        "details": [{"n": 1}],
        "annotations": 7,
    }


def test_objects_of_the_sdk_inside_a_dict_are_stored_as_dicts():
    message = {"role": "assistant", "content": None, "tool_calls": SDK_MESSAGE.tool_calls}
    assert CHAT.dump(message) == SDK_DICT
    assert message["tool_calls"] is SDK_MESSAGE.tool_calls


def test_other_objects_are_stored_by_their_public_attributes():
    function = SimpleNamespace(name="search", arguments="{}", _cache=object())
    call = SimpleNamespace(id="call_1", type="function", function=function)
    assert CHAT.dump(SimpleNamespace(role="assistant", content=None, tool_calls=[call])) == SDK_DICT
