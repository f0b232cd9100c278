"""What the values accept, what they make of it, and that they stay as they are."""

import copy
import enum
import pickle
from types import MappingProxyType
from typing import Any

import pytest
from msgspec.structs import replace

from suture.errors import InputError
from suture.messages import (
    AgenticMessage,
    AssistantGenText,
    FrozenMap,
    FunctionToolCall,
    FunctionToolResult,
    ImagePart,
    LogProb,
    Message,
    Opaque,
    Reasoning,
    ResponseMeta,
    ServerToolCall,
    TextPart,
    TokenUsage,
    ToolArgument,
    ToolCall,
    ToolContext,
    ToolInfo,
    ToolResult,
    TopLogProb,
    UserInputImage,
    UserInputText,
    to_json,
)

FULL = Message(
    "assistant",
    "hi",
    assistant_gen_multi_content=(TextPart("a", index=0, extra={"k": [1]}),),
    tool_calls=(ToolCall("c1", "search", "{}", extra={"sig": "x"}),),
    response_meta=ResponseMeta(
        finish_reason="stop",
        usage=TokenUsage(prompt_tokens=3),
        logprobs=(LogProb("a", -1, bytes=(97,), top_logprobs=(TopLogProb("b", -2.5),)),),
        extension={"tier": "flex"},
    ),
    extra={"seen": {"deep": [1, 2]}},
)
FULL_AGENTIC = AgenticMessage(
    "user",
    (
        FunctionToolResult("c1", "search", (UserInputText("x"), UserInputImage(url="u")), is_error=True),
        ServerToolCall(name="web_search", arguments={"q": [1, {"a": None}]}),
        Opaque({"type": "hologram", "beam": 7}),
    ),
    extra={"seen": True},
)


def test_a_message_takes_its_role_and_content_by_position_and_the_rest_by_name():
    assert Message("user", "hi") == Message(role="user", content="hi")
    made: Any = Message
    with pytest.raises(TypeError):
        made("user", "hi", ())


def test_a_text_is_content_and_parts_are_multimodal_content():
    parts = (TextPart("look"), ImagePart(url="https://example.com/a.png", detail="low"))
    assert Message.user("look") == Message("user", "look")
    assert Message.user(parts) == Message("user", user_input_multi_content=parts)
    assert Message.tool(parts, "c1", "see") == Message(
        "tool", user_input_multi_content=parts, tool_call_id="c1", tool_name="see"
    )


def test_each_constructor_sets_its_role():
    made = [Message.system("a"), Message.user("a"), Message.assistant("a"), Message.tool("a", "c1")]
    assert [message.role for message in made] == ["system", "user", "assistant", "tool"]
    assert {message.content for message in made} == {"a"}


def test_a_tool_message_names_its_call_and_says_whether_it_failed():
    message = Message.tool("boom", "c1", "search", is_error=True)
    assert (message.tool_call_id, message.tool_name, message.is_error) == ("c1", "search", True)


def test_agentic_constructors_wrap_a_text_in_the_block_of_its_role():
    assert AgenticMessage.system("a").content_blocks == (UserInputText("a"),)
    assert AgenticMessage.user("a").content_blocks == (UserInputText("a"),)
    assert AgenticMessage.assistant("a").content_blocks == (AssistantGenText("a"),)


def test_an_agentic_tool_result_is_a_user_message_with_one_result_block():
    message = AgenticMessage.tool_result("c1", "search", [UserInputImage(url="u")], is_error=True)
    assert message.role == "user"
    assert message.content_blocks == (FunctionToolResult("c1", "search", (UserInputImage(url="u"),), is_error=True),)


def test_lists_become_tuples_and_mappings_become_read_only():
    calls: Any = [ToolCall("c1", "f")]
    extra = {"a": 1}
    message = Message("assistant", tool_calls=calls, extra=extra)
    calls.clear()
    extra.clear()
    assert message.tool_calls == (ToolCall("c1", "f"),)
    assert message.extra == {"a": 1}
    assert type(message.extra) is FrozenMap
    assert type(Message("user", extra=MappingProxyType({"a": 1})).extra) is FrozenMap


def test_a_member_of_a_string_enum_is_kept_as_the_text_it_is():
    class Who(enum.StrEnum):
        USER = "user"

    who: Any = Who.USER
    message = Message(who, who)
    assert type(message.role) is str
    assert type(message.content) is str
    assert message == Message("user", "user")


def test_a_log_probability_given_as_an_integer_is_kept_as_a_float():
    assert type(TopLogProb("a", -1).logprob) is float


def test_tool_values_keep_what_they_are_given():
    info = ToolInfo("f", "does f", {"type": "object"}, {"origin": "mcp"})
    assert (info.name, info.description, info.parameters, info.extra) == (
        "f",
        "does f",
        {"type": "object"},
        {"origin": "mcp"},
    )
    assert ToolInfo("f").parameters is None
    assert ToolInfo("f", parameters={}).parameters == {}
    assert ToolArgument("{").text == "{"
    assert (ToolContext("f", "c1").name, ToolContext("f", "c1").call_id) == ("f", "c1")
    result = ToolResult((TextPart("x"),), return_directly=True)
    assert (result.parts, result.is_error, result.return_directly) == ((TextPart("x"),), False, True)


@pytest.mark.parametrize(
    ("kind", "given", "complaint"),
    [
        (
            Message,
            ["robot"],
            "role: Message takes one of 'system', 'user', 'assistant', 'tool' here, not 'robot'",
        ),
        (Message, [["user"]], "role: Message takes one of .* not list"),
        (AgenticMessage, ["tool"], "role: AgenticMessage takes one of .* not 'tool'"),
        (Message, ["user", None], "content: Message takes a string here, not NoneType"),
        (Message, ["user", [TextPart("a")]], "content: Message takes a string here, not list"),
        (Message, ["user", b"a"], "content: Message takes a string here, not bytes"),
        (Message.user, [TextPart("a")], "user_input_multi_content: Message takes a sequence of TextPart"),
        (Message.user, [[{"type": "text"}]], r"user_input_multi_content\[0\]: Message takes .* not dict"),
        (Message.user, [[TextPart("a"), UserInputText("b")]], r"content\[1\]: .* not UserInputText"),
        (Message.assistant, ["", "c1"], "tool_calls: Message takes a sequence of ToolCall here, not str"),
        (Message.assistant, ["", [{"id": "c1"}]], r"tool_calls\[0\]: .* takes ToolCall here, not dict"),
        (ToolCall, ["c1", "f", {"a": 1}], "arguments: ToolCall takes a string here, not dict"),
        (ToolCall, ["c1", "f", "", None], "type: ToolCall takes a string here, not NoneType"),
        (AgenticMessage, ["user", [TextPart("a")]], r"content_blocks\[0\]: .* not TextPart"),
        (AgenticMessage.user, [[Message.user("a")]], r"content_blocks\[0\]: .* not Message"),
        (FunctionToolResult, ["c1", "f", "text"], "content: .* a sequence of UserInputText or"),
        (FunctionToolResult, ["c1", "f", [Reasoning("a")]], r"content\[0\]: .* not Reasoning"),
        (FunctionToolCall, [7], "call_id: FunctionToolCall takes a string here, not int"),
        (TopLogProb, ["a", "-1"], "logprob: TopLogProb takes a number here, not str"),
        (TopLogProb, ["a", -1, [True]], r"bytes\[0\]: TopLogProb takes int here, not bool"),
        (ToolInfo, ["f", "", "{}"], "parameters: ToolInfo takes a mapping here, not str"),
        (Opaque, [{"beam": 7}], "data: Opaque takes an object with a type of its own"),
        (Opaque, [{"type": "suture.opaque"}], "data: Opaque takes an object with a type of its own"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_with_the_field_and_what_it_takes(kind, given, complaint):
    with pytest.raises(InputError, match=complaint):
        kind(*given)


@pytest.mark.parametrize(
    ("kind", "given", "complaint"),
    [
        (Message, {"is_error": 1}, "is_error: Message takes a boolean here, not int"),
        (Message, {"response_meta": {}}, "response_meta: Message takes a ResponseMeta here, not dict"),
        (Message, {"extra": [("a", 1)]}, "extra: Message takes a mapping here, not list"),
        (AgenticMessage, {"extra": None}, "extra: AgenticMessage takes a mapping here, not NoneType"),
    ],
)
def test_a_field_given_by_name_is_refused_the_same_way(kind, given, complaint):
    with pytest.raises(InputError, match=complaint):
        kind("user", **given)


def test_a_boolean_is_no_integer_and_a_fraction_neither():
    wrong: Any = True
    with pytest.raises(InputError, match="index: TextPart takes an integer here, not bool"):
        TextPart("a", index=wrong)
    wrong = 1.5
    with pytest.raises(InputError, match="prompt_tokens: TokenUsage takes an integer here, not float"):
        TokenUsage(prompt_tokens=wrong)


def test_a_refusal_carries_its_path():
    wrong: Any = [ToolCall("a"), "b"]
    with pytest.raises(InputError) as caught:
        Message("assistant", tool_calls=wrong)
    assert caught.value.path == "tool_calls[1]"


@pytest.mark.parametrize("message", [FULL, FULL_AGENTIC])
def test_a_message_cannot_be_changed(message):
    for name in message.__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(message, name, getattr(message, name))
    with pytest.raises(TypeError):
        message.extra["new"] = 1


def test_a_text_equal_to_a_default_is_left_out_wherever_it_came_from():
    call = ToolCall("c1", type="functional"[:8])
    assert to_json([Message.assistant(tool_calls=[call])]) == to_json([Message.assistant(tool_calls=[ToolCall("c1")])])


@pytest.mark.parametrize("message", [FULL, FULL_AGENTIC])
def test_a_message_survives_pickling_and_deep_copying(message):
    for twin in (pickle.loads(pickle.dumps(message)), copy.deepcopy(message)):
        assert twin == message
        assert repr(twin) == repr(message)
        assert type(twin.extra) is FrozenMap


def test_a_deep_copy_shares_nothing_that_can_change():
    twin = copy.deepcopy(FULL)
    assert twin.extra["seen"]["deep"] is not FULL.extra["seen"]["deep"]


def test_replacing_a_field_checks_and_coerces_it_like_making_it():
    message = replace(FULL, tool_calls=[], extra={"b": 2})
    assert type(message.tool_calls) is tuple
    assert (message.tool_calls, message.content) == ((), "hi")
    assert type(message.extra) is FrozenMap
    with pytest.raises(InputError, match="content"):
        replace(FULL, content=None)


def test_the_two_message_types_are_never_equal():
    assert Message("user") != AgenticMessage("user")


def test_what_a_message_shows_of_itself_leaves_out_what_is_not_set():
    assert repr(Message.user("hi")) == "Message(role='user', content='hi')"


def test_an_opaque_block_shows_the_type_place_and_extra_that_its_data_has():
    block = Opaque({"type": "hologram", "index": 3, "extra": {"a": 1}})
    assert (block.type, block.index, block.extra) == ("hologram", 3, {"a": 1})
    bare = Opaque({"type": "hologram", "index": "third", "extra": None})
    assert (bare.index, bare.extra) == (None, {})


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ("no such page", (TextPart("no such page"),)),
        ("", (TextPart(""),)),
        (ImagePart(url="u"), (ImagePart(url="u"),)),
        (["a chart", ImagePart(url="u")], (TextPart("a chart"), ImagePart(url="u"))),
        (("a", TextPart("b")), (TextPart("a"), TextPart("b"))),
        ((), ()),
        ([TextPart("x")], (TextPart("x"),)),
    ],
)
def test_a_tools_result_takes_texts_for_parts_with_that_text(given: Any, parts: Any):
    result = ToolResult(given, is_error=True)
    assert result.parts == parts
    assert replace(result, is_error=False) == ToolResult(given)


@pytest.mark.parametrize("given", [7, [7], {"text": "x"}, None, b"x"])
def test_a_tools_result_takes_nothing_else(given: Any):
    with pytest.raises(InputError, match="parts"):
        ToolResult(given)


def test_the_speakers_name_goes_with_what_is_said():
    assert Message.user("hello", name="Ann") == Message("user", "hello", name="Ann")
    assert Message.user([ImagePart(url="u")], name="Ann").name == "Ann"
