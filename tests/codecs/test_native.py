"""`Message` from and into `AgenticMessage`: nothing is lost either way."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import suture
from suture.codecs import convert, from_agentic, to_agentic
from suture.messages import (
    AgenticMessage,
    AssistantGenImage,
    AssistantGenText,
    AudioPart,
    FilePart,
    FunctionToolCall,
    FunctionToolResult,
    ImagePart,
    Message,
    Opaque,
    Reasoning,
    ReasoningPart,
    ResponseMeta,
    ServerToolCall,
    ServerToolResult,
    TextPart,
    TokenUsage,
    ToolCall,
    ToolInfo,
    ToolSearchPart,
    UserInputImage,
    UserInputText,
)

META = ResponseMeta(finish_reason="stop", usage=TokenUsage(prompt_tokens=3, total_tokens=3))
MESSAGES = {
    "system": Message.system("Be brief."),
    "user text": Message.user("hi"),
    "nothing said": Message("user"),
    "user parts": Message.user([TextPart("look"), ImagePart(url="https://example.com/a.png", detail="high")]),
    "reply": Message("assistant", "done", response_meta=META, extra={"mine": 1}),
    "reply with calls": Message.assistant("see", [ToolCall("a", "f", "{}"), ToolCall("b", "g", '{"x"')]),
    "reply with thought": Message("assistant", "yes", reasoning_content="hm"),
    "reply with signed thought": Message(
        "assistant",
        "yes",
        assistant_gen_multi_content=[ReasoningPart("hm", "sig", extra={"extension": {"wire": "anthropic"}})],
        tool_calls=[ToolCall("a", "f", "{}", extra={"gemini": {"thoughtSignature": "s"}})],
    ),
    "made media": Message("assistant", "see", assistant_gen_multi_content=[ImagePart(base64_data="AAAA")]),
    "unknown part": Message("assistant", assistant_gen_multi_content=[Opaque({"type": "hologram", "beam": 7})]),
    "custom call": Message.assistant(tool_calls=[ToolCall("a", "f", "raw", "custom")]),
    "result": Message("tool", "42", tool_call_id="a", tool_name="f", extra={"note": 1}),
    "failed result": Message.tool("no", "a", "f", is_error=True),
    "result in parts": Message.tool([TextPart("see"), FilePart(url="https://example.com/a", name="a")], "a"),
    "tools found": Message.tool([ToolSearchPart([ToolInfo("g")])], "a", "find"),
    "named user": Message("user", "hi", name="ann"),
    "fields of another role": Message("user", "hi", tool_call_id="a", reasoning_content="hm"),
    "calls and parts of another role": Message(
        "user",
        "hi",
        assistant_gen_multi_content=[TextPart("q"), Opaque({"type": "hologram", "beam": 7})],
        tool_calls=[ToolCall("a", "f", "{}", extra={"mine": {"x": [1]}})],
    ),
    "data of the user's": Message("user", "hi", extra={"message": {"tool_call_id": "b"}, "kind": "custom"}),
    "data of the user's in a result": Message("tool", "42", tool_call_id="a", extra={"message": {"tool_call_id": "b"}}),
    "data of the user's in a call": Message.assistant(tool_calls=[ToolCall("a", "f", "{}", extra={"kind": "x"})]),
}
BLOCKS = {
    "text, call, text": [AssistantGenText("a"), FunctionToolCall("1", "f", "{}"), AssistantGenText("b")],
    "two texts": [AssistantGenText("a"), AssistantGenText("b")],
    "an empty text": [AssistantGenText("")],
    "calls before text": [FunctionToolCall("1", "f", "{}"), AssistantGenText("a")],
    "two thoughts": [Reasoning("a", "s", extension={"wire": "anthropic"}), Reasoning("b"), AssistantGenText("c")],
    "thought behind text": [AssistantGenText("a"), Reasoning("b", extension={"wire": "openai-chat"})],
    "citations": [AssistantGenText("a", extension={"citations": [1]}, extra={"anthropic": {"x": 1}})],
    "server tools": [
        ServerToolCall(call_id="s", name="web_search", arguments={"q": 1}),
        ServerToolResult(call_id="s", name="web_search", content=[1]),
        AssistantGenText("a"),
    ],
    "image": [AssistantGenImage(base64_data="AAAA", mime_type="image/png"), AssistantGenText("a")],
    "nothing": [],
}


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
def test_a_message_comes_back_from_blocks_as_it_was(message: Message):
    assert from_agentic(to_agentic(message)) == [message]


@pytest.mark.parametrize("blocks", BLOCKS.values(), ids=BLOCKS)
def test_a_reply_of_blocks_comes_back_in_its_order(blocks):
    message = AgenticMessage("assistant", blocks, response_meta=META, extra={"mine": 1})
    [chat] = from_agentic(message)
    assert to_agentic(chat) == message


atoms = st.sampled_from([block for blocks in BLOCKS.values() for block in blocks])


@given(st.lists(atoms, max_size=6))
def test_any_order_of_blocks_comes_back(blocks):
    message = AgenticMessage("assistant", blocks)
    [chat] = from_agentic(message)
    assert to_agentic(chat) == message


def test_the_text_of_a_reply_with_signed_thought_and_calls_is_its_content():
    reply = AgenticMessage(
        "assistant",
        [
            Reasoning("hm", "sig", extension={"wire": "anthropic"}),
            AssistantGenText("Let me see."),
            FunctionToolCall("a", "f", "{}"),
        ],
    )
    [chat] = from_agentic(reply)
    assert chat.content == "Let me see."
    [thought] = chat.assistant_gen_multi_content
    assert isinstance(thought, ReasoningPart)
    assert thought.signature == "sig"


def test_a_user_message_with_two_results_and_a_text_becomes_three_messages():
    message = AgenticMessage(
        "user",
        [
            FunctionToolResult("a", "f", [UserInputText("1")]),
            FunctionToolResult("b", "g", [UserInputImage(base64_data="AAAA")]),
            UserInputText("And now?"),
        ],
    )
    made = from_agentic(message)
    assert [(one.role, one.tool_call_id, one.content) for one in made] == [
        ("tool", "a", "1"),
        ("tool", "b", ""),
        ("user", "", "And now?"),
    ]


def test_a_reply_that_holds_its_results_becomes_a_message_for_each_step():
    """Stores of user interfaces keep a whole turn so; the call would be told to have no result."""
    call, text = FunctionToolCall("a", "f", "{}"), AssistantGenText("so")
    reply = AgenticMessage("assistant", [call, FunctionToolResult("a", "f", [UserInputText("42")]), text])
    made = from_agentic(reply)
    assert [(message.role, message.content) for message in made] == [
        ("assistant", ""),
        ("tool", "42"),
        ("assistant", "so"),
    ]
    assert suture.repair(made).messages is made


@pytest.mark.parametrize("role", ["system", "user"])
def test_an_empty_text_comes_back(role):
    message = AgenticMessage(role, [UserInputText("")])
    assert [to_agentic(made) for made in from_agentic(message)] == [message]


def test_a_text_beside_parts_comes_back_as_the_first_of_them():
    sound = AudioPart(base64_data="AAAA")
    message = Message("user", "listen", user_input_multi_content=[sound])
    assert from_agentic(to_agentic(message)) == [Message.user([TextPart("listen"), sound])]


def test_a_wire_is_converted_into_itself_without_a_change():
    history = list(MESSAGES.values())
    assert convert(history, "message", "message").messages == history


NO_FIELDS: dict[str, Any] = {
    "the id of another call": {"tool_call_id": "b"},
    "whose message it is": {"role": "assistant"},
    "a field that there is not": {"hologram": 7},
    "a field of another shape": {"name": 5},
    "a text": "name",
    "nothing": None,
}


@pytest.mark.parametrize("held", NO_FIELDS.values(), ids=NO_FIELDS)
def test_a_result_is_never_given_to_another_call_by_what_it_carries(held: Any):
    result = FunctionToolResult("a", "f", [UserInputText("42")], extra={"suture.message": held})
    message = AgenticMessage("user", [result])
    [made] = from_agentic(message)
    assert (made.role, made.tool_call_id, made.name) == ("tool", "a", "")
    assert to_agentic(made) == message


@pytest.mark.parametrize("kind", [5, None, ["custom"]])
def test_a_kind_of_call_that_is_no_text_stays_where_it_is(kind: Any):
    message = AgenticMessage.assistant([FunctionToolCall("a", "f", "{}", extra={"suture.kind": kind})])
    [made] = from_agentic(message)
    assert made.tool_calls[0].type == "function"
    assert to_agentic(made) == message
