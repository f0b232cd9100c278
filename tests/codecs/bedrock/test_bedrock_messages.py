"""Each block of Converse's both ways, one message at a time; what does not cross is named."""

from typing import Any

import pytest
from hypothesis import given

import suture
from suture.codecs import Loss, Lost, get_codec
from suture.errors import InputError
from suture.messages import (
    AgenticMessage,
    AssistantGenText,
    FunctionToolCall,
    FunctionToolResult,
    MCPToolCall,
    MCPToolResult,
    Opaque,
    Reasoning,
    ResponseMeta,
    ServerToolCall,
    ServerToolResult,
    TokenUsage,
    ToolInfo,
    ToolSearchResult,
    UserInputAudio,
    UserInputFile,
    UserInputImage,
    UserInputText,
    UserInputVideo,
)
from tests.codecs.bedrock.pieces import BLOCKS, DATA, WIRE, conversations, opaque

codec = get_codec(WIRE)


@pytest.mark.parametrize(("role", "block", "native"), BLOCKS.values(), ids=BLOCKS)
def test_a_block_is_read_as_ours_and_written_as_it_was(role: Any, block: dict[str, Any], native: Any):
    message = {"role": role, "content": [block]}
    assert codec.decode_messages([message]) == [AgenticMessage(role, (native,))]
    assert codec.encode_messages([AgenticMessage(role, (native,))]) == ([message], ())


@given(conversations)
def test_what_is_written_is_read_as_it_was(messages: list[AgenticMessage]):
    payload, losses = codec.encode_messages(messages)
    assert losses == ()
    named = [
        AgenticMessage(message.role, message.content_blocks, extra=message.extra)
        for message in codec.decode_messages(payload)
    ]
    assert [_unnamed(message) for message in named] == messages


def _unnamed(message: AgenticMessage) -> AgenticMessage:
    """Return `message` with the names taken off its results, which have them from calls with the same id."""
    blocks = [
        FunctionToolResult(block.call_id, "", block.content, block.is_error, extra=block.extra)
        if isinstance(block, FunctionToolResult)
        else block
        for block in message.content_blocks
    ]
    return AgenticMessage(message.role, blocks)


def test_bytes_that_boto3_has_are_read_as_their_base64():
    blocks = [
        {"image": {"format": "png", "source": {"bytes": b"data"}}},
        {"reasoningContent": {"redactedContent": b"data"}},
        {"guardContent": {"image": {"format": "png", "source": {"bytes": bytearray(b"data")}}}},
    ]
    items = [{"role": "user", "content": blocks}]
    assert codec.decode_messages(items)[0].content_blocks == (
        UserInputImage(base64_data=DATA, mime_type="image/png"),
        Reasoning(signature=DATA, extension={"wire": WIRE, "redacted": True}),
        opaque({"guardContent": {"image": {"format": "png", "source": {"bytes": DATA}}}}),
    )
    assert items == [{"role": "user", "content": blocks}]


def test_a_result_has_the_name_of_the_call_before_it():
    use = {"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}
    result = {"toolResult": {"toolUseId": "a", "content": []}}
    read = codec.decode_messages([{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}])
    assert read[1].content_blocks == (FunctionToolResult("a", "f"),)


def test_a_call_that_the_service_answered_in_the_same_message_is_not_the_programs():
    use = {"toolUse": {"toolUseId": "a", "name": "nova_grounding", "input": {"q": 1}}}
    result = {
        "toolResult": {
            "toolUseId": "a",
            "content": [{"text": "x"}],
            "status": "success",
            "type": "nova_grounding_result",
        }
    }
    message = {"role": "assistant", "content": [use, result, {"text": "so"}]}
    [read] = codec.decode_messages([message])
    assert read.content_blocks == (
        ServerToolCall(call_id="a", name="nova_grounding", arguments={"q": 1}, extra={WIRE: {"type": None}}),
        ServerToolResult(
            call_id="a", content=[{"text": "x"}], extra={WIRE: {"status": "success", "type": "nova_grounding_result"}}
        ),
        AssistantGenText("so"),
    )
    assert codec.encode_messages([read]) == ([message], ())


def test_a_result_without_a_type_in_a_models_message_stays_the_programs():
    message = {"role": "assistant", "content": [{"toolResult": {"toolUseId": "a", "content": [{"text": "real"}]}}]}
    [read] = codec.decode_messages([message])
    assert read.content_blocks == (FunctionToolResult("a", "", [UserInputText("real")]),)
    assert codec.encode_messages([read]) == ([message], ())


def test_fields_of_a_message_that_nobody_knows_come_back():
    message = {"role": "user", "content": [{"text": "hi"}], "name": "Ann"}
    [read] = codec.decode_messages([message])
    assert read.extra == {WIRE: {"name": "Ann"}}
    assert codec.encode_messages([read]) == ([message], ())


def test_a_field_that_is_null_says_nothing():
    use = {"toolUseId": "a", "name": "f", "input": None, "type": None}
    [read] = codec.decode_messages([{"role": "assistant", "content": [{"toolUse": use}], "name": None}])
    assert read == AgenticMessage.assistant([FunctionToolCall("a", "f", "{}")])


def test_a_system_message_in_the_middle_keeps_its_role_where_it_was_read_with_it():
    items = [
        {"role": "user", "content": [{"text": "hi"}]},
        {"role": "system", "content": [{"toolAddition": {"tool": {"type": "tool_reference", "name": "f"}}}]},
    ]
    read = codec.decode_messages(items)
    assert read[1].role == "system"
    assert codec.encode_messages(read) == (items, ())
    assert codec.encode_messages(read[1:]) == (items[1:], ())


# One message at a time


def test_a_message_is_written_as_it_stands_and_repair_arranges_the_list():
    messages = [
        AgenticMessage.assistant("well"),
        AgenticMessage.assistant([FunctionToolCall("a", "f", "{}"), AssistantGenText("and")]),
        AgenticMessage.assistant([AssistantGenText("also"), FunctionToolCall("b", "f"), AssistantGenText(" ")]),
        AgenticMessage.user("wait"),
        AgenticMessage.tool_result("a", "f", "1"),
        AgenticMessage("user", (FunctionToolResult("b", "f", is_error=True),)),
        AgenticMessage.user(" "),
    ]
    payload, losses = codec.encode_messages(messages)
    call, result = {"name": "f", "input": {}}, {"toolUseId": "b", "content": [], "status": "error"}
    assert losses == ()
    assert payload == [
        {"role": "assistant", "content": [{"text": "well"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "a", **call}}, {"text": "and"}]},
        {"role": "assistant", "content": [{"text": "also"}, {"toolUse": {"toolUseId": "b", **call}}, {"text": " "}]},
        {"role": "user", "content": [{"text": "wait"}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": [{"text": "1"}]}}]},
        {"role": "user", "content": [{"toolResult": result}]},
        {"role": "user", "content": [{"text": " "}]},
    ]
    assert payload == [one for message in messages for one in codec.encode_messages([message]).payload]
    fixed = suture.repair(payload, wire=WIRE)
    assert suture.check(fixed.messages, wire=WIRE).acceptable
    assert "(the tool failed without a message)" in str(fixed.messages)


def test_a_message_of_which_nothing_is_left_is_left_out():
    assert codec.encode_messages([AgenticMessage("user", ())]) == ([], ())


def test_a_result_that_failed_since_it_was_read_says_so():
    result = FunctionToolResult("a", "f", (UserInputText("no"),), is_error=True, extra={WIRE: {"status": "success"}})
    [message] = codec.encode_messages([AgenticMessage("user", (result,))]).payload
    assert message["content"][0]["toolResult"]["status"] == "error"


def test_json_in_a_result_that_was_cut_since_it_was_read_is_text():
    result = FunctionToolResult("a", "f", (UserInputText('{"a": ', extra={WIRE: {"json": True}}),))
    [message] = codec.encode_messages([AgenticMessage("user", (result,))]).payload
    assert message["content"][0]["toolResult"]["content"] == [{"text": '{"a": '}]


def document(name: str) -> UserInputFile:
    return UserInputFile(base64_data=DATA, mime_type="application/pdf", name=name)


def test_documents_get_names_that_converse_allows():
    names = ["report.pdf", "report", "Jo's  notes #2.md", "", "分.pdf", "a" * 201]
    payload, losses = codec.encode_messages([AgenticMessage.user([document(name) for name in names])])
    written = [block["document"]["name"] for block in payload[0]["content"]]
    assert written == ["report", "report", "Jo s notes 2", "document", "document", "a" * 200]
    changed = ["report.pdf", "Jo's  notes #2.md", "分.pdf", "a" * 80]
    assert losses == tuple(
        Loss(Lost.DETAIL, f"file name {name!r}", 0, f"content_blocks[{place}]")
        for name, place in zip(changed, (0, 2, 4, 5), strict=True)
    )


# What does not cross

HERE = "content_blocks[0]"
TEXT = {"text": "x"}
# name: (our block, what becomes of it, what is reported)
LOSSES: dict[str, tuple[Any, dict[str, Any] | None, list[tuple[Lost, str, str]]]] = {
    "thought of another provider": (
        Reasoning("hm", "s", extension={"wire": "anthropic"}),
        None,
        [(Lost.REASONING, "thought 'hm'", HERE)],
    ),
    "thought of nobody known": (Reasoning("hm", "s"), None, [(Lost.REASONING, "thought 'hm'", HERE)]),
    "image elsewhere": (
        UserInputImage(url="https://example.com/a.png"),
        {"text": "https://example.com/a.png"},
        [(Lost.MEDIA, "image https://example.com/a.png", HERE)],
    ),
    "image of a type that it does not know": (
        UserInputImage(base64_data=DATA, mime_type="image/tiff"),
        {"text": "(image/tiff)"},
        [(Lost.MEDIA, "image (image/tiff)", HERE)],
    ),
    "how closely to look": (
        UserInputImage(base64_data=DATA, mime_type="image/jpg", detail="high"),
        {"image": {"format": "jpeg", "source": {"bytes": DATA}}},
        [(Lost.DETAIL, "image detail high", HERE)],
    ),
    "file of another text type": (
        UserInputFile(url=f"data:text/x-python;charset=utf-8;base64,{DATA}", name="a.py"),
        {"document": {"format": "txt", "name": "a", "source": {"bytes": DATA}}},
        [(Lost.DETAIL, "that a file is text/x-python", HERE), (Lost.DETAIL, "file name 'a.py'", HERE)],
    ),
    "sound in a result": (
        FunctionToolResult("a", "f", [UserInputAudio(base64_data=DATA, mime_type="audio/wav")]),
        {"toolResult": {"toolUseId": "a", "content": [{"text": "(audio/wav)"}]}},
        [(Lost.MEDIA, "audio (audio/wav)", f"{HERE}.content[0]")],
    ),
    "film elsewhere in a result": (
        FunctionToolResult("a", "f", [UserInputText("see"), UserInputVideo(url="https://example.com/a.mp4")]),
        {"toolResult": {"toolUseId": "a", "content": [{"text": "see"}, {"text": "https://example.com/a.mp4"}]}},
        [(Lost.MEDIA, "video https://example.com/a.mp4", f"{HERE}.content[1]")],
    ),
    "block of another provider": (
        Opaque({"type": "gemini.block", "value": {}}),
        None,
        [(Lost.BLOCK, "a block of type gemini.block", HERE)],
    ),
    "tool that another provider ran": (
        ServerToolCall(call_id="s", name="web_search", extra={"anthropic": {"type": "server_tool_use"}}),
        None,
        [(Lost.BLOCK, "a block of type server_tool_call", HERE)],
    ),
    "result of a tool that another provider ran": (
        ServerToolResult(call_id="s", name="web_search", content=[]),
        None,
        [(Lost.BLOCK, "a block of type server_tool_result", HERE)],
    ),
    "call of an MCP server": (
        MCPToolCall(call_id="m", name="f", server_label="docs"),
        None,
        [(Lost.BLOCK, "a block of type mcp_tool_call", HERE)],
    ),
    "result of an MCP server": (
        MCPToolResult(call_id="m", server_label="docs"),
        None,
        [(Lost.BLOCK, "a block of type mcp_tool_result", HERE)],
    ),
    "tools that were found": (
        ToolSearchResult("a", "find", [ToolInfo("f", "F.")]),
        {"toolResult": {"toolUseId": "a", "content": [{"text": '[{"name":"f","description":"F."}]'}]}},
        [(Lost.BLOCK, "the form of tools that were found; they are told as text", HERE)],
    ),
    "arguments that are no object": (
        FunctionToolCall("a", "f", '{"q": '),
        {"toolUse": {"toolUseId": "a", "name": "f", "input": {}}},
        [(Lost.ARGUMENTS, "arguments '{\"q\": '", HERE)],
    ),
    "cache mark of another provider": (
        UserInputText("x", extra={"anthropic": {"cache_control": {"type": "ephemeral"}}}),
        TEXT,
        [(Lost.FIELD, "anthropic cache_control", HERE)],
    ),
    "somebody's own data": (
        FunctionToolCall("a", "f", "{}", extra={"mine": 1}),
        {"toolUse": {"toolUseId": "a", "name": "f", "input": {}}},
        [(Lost.EXTRA, "extra 'mine'", HERE)],
    ),
    "citations of another provider": (
        AssistantGenText("x", extension={"wire": "openai-responses", "annotations": [1]}),
        TEXT,
        [(Lost.FIELD, "annotations of a text", HERE)],
    ),
}


@pytest.mark.parametrize(("block", "written", "reported"), LOSSES.values(), ids=LOSSES)
def test_what_has_no_form_is_told_in_words_or_left_out_and_named(
    block: Any, written: dict[str, Any] | None, reported: list[tuple[Lost, str, str]]
):
    messages = [AgenticMessage.user("first"), AgenticMessage("assistant", (block,))]
    payload, losses = codec.encode_messages(messages)
    assert payload[1:] == ([{"role": "assistant", "content": [written]}] if written else [])
    assert losses == tuple(Loss(name, what, 1, path) for name, what, path in reported)


def test_why_a_reply_ended_is_not_said_in_a_request():
    meta = ResponseMeta(finish_reason="stop", usage=TokenUsage(prompt_tokens=1))
    messages = [AgenticMessage.user("hi"), AgenticMessage("assistant", (AssistantGenText("ho"),), response_meta=meta)]
    payload, losses = codec.encode_messages(messages)
    assert payload[1] == {"role": "assistant", "content": [{"text": "ho"}]}
    assert losses == (Loss(Lost.META, "why the reply ended and what it cost", 1, "response_meta"),)


def test_a_system_message_in_the_list_is_the_users():
    messages = [AgenticMessage.system("Be brief."), AgenticMessage.user("hi"), AgenticMessage.system("Now long.")]
    payload, losses = codec.encode_messages(messages)
    assert payload == [{"role": "user", "content": [{"text": text}]} for text in ("Be brief.", "hi", "Now long.")]
    assert [(loss.name, loss.index) for loss in losses] == [(Lost.SYSTEM, 0), (Lost.SYSTEM, 2)]


# What cannot be read

BAD: dict[str, tuple[Any, str]] = {
    "no object": (7, "message 0"),
    "another role": ({"role": "tool", "content": []}, "message 0, role: unknown role 'tool'"),
    "text for content": ({"role": "user", "content": "hi"}, "message 0, content: expected a list, found str"),
    "no list": ({"role": "user", "content": "hi"}, "message 0, content: expected a list, found str"),
    "block that is none": ({"role": "user", "content": ["hi"]}, "content[0]: expected an object, found str"),
    "text that is none": ({"role": "user", "content": [{"text": 7}]}, "content[0].text: expected a string, found int"),
    "call that is none": ({"role": "user", "content": [{"toolUse": 7}]}, "content[0].toolUse: expected an object"),
    "id that is none": (
        {"role": "user", "content": [{"toolUse": {"toolUseId": 7}}]},
        "content[0].toolUse.toolUseId: expected a string, found int",
    ),
    "result that is text": (
        {"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": "x"}}]},
        "content[0].toolResult.content: expected a list, found str",
    ),
    "block of another wire": (
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        "content[0].type: a block with a type belongs to another wire",
    ),
}


@pytest.mark.parametrize(("item", "told"), BAD.values(), ids=BAD)
def test_what_is_no_message_is_refused_and_the_place_is_named(item: Any, told: str):
    with pytest.raises(InputError) as caught:
        codec.decode_messages([item])
    assert told in str(caught.value)
