"""What Chat Completions cannot say is reported, by name and place."""

from typing import Any

import pytest

from suture.codecs import Lost, get_codec
from suture.messages import (
    AgenticMessage,
    AssistantGenAudio,
    AssistantGenImage,
    AssistantGenText,
    AssistantGenVideo,
    ContentBlock,
    FunctionToolCall,
    FunctionToolResult,
    MCPListToolsResult,
    MCPToolApprovalRequest,
    MCPToolApprovalResponse,
    MCPToolCall,
    MCPToolResult,
    Opaque,
    Reasoning,
    ResponseMeta,
    ServerToolCall,
    ServerToolResult,
    ToolInfo,
    ToolSearchResult,
    UserInputAudio,
    UserInputFile,
    UserInputImage,
    UserInputText,
)
from tests.codecs.openai_chat.samples import ADDRESS, PIXEL, kept

CODEC = get_codec("openai-chat")
PLACE = "content_blocks[1]"
FOREIGN = {"anthropic": {"citations": [1], "gone": None}, "mine": 7}

OF_THE_MODEL: dict[str, tuple[ContentBlock, list[tuple[Lost, str]], Any]] = {
    "another's thought": (Reasoning("Hm.", "s", extension={"wire": "gemini"}), [(Lost.REASONING, "")], "hi"),
    "nobody's thought": (Reasoning("Hm."), [(Lost.REASONING, "")], "hi"),
    "a tool that another runs": (ServerToolCall(call_id="s", name="web"), [(Lost.BLOCK, "server_tool_call")], "hi"),
    "what that gave": (ServerToolResult(call_id="s", name="web"), [(Lost.BLOCK, "server_tool_result")], "hi"),
    "a call of MCP": (MCPToolCall(call_id="m", name="f"), [(Lost.BLOCK, "mcp_tool_call")], "hi"),
    "a result of MCP": (MCPToolResult(call_id="m", name="f"), [(Lost.BLOCK, "mcp_tool_result")], "hi"),
    "the tools of MCP": (MCPListToolsResult(server_label="s"), [(Lost.BLOCK, "mcp_list_tools_result")], "hi"),
    "what MCP asks": (MCPToolApprovalRequest(id="a"), [(Lost.BLOCK, "mcp_tool_approval_request")], "hi"),
    "what nobody knows": (Opaque({"type": "hologram"}), [(Lost.BLOCK, "hologram")], "hi"),
    "another's block": (Opaque({"type": "gemini.block", "value": {}}), [(Lost.BLOCK, "gemini.block")], "hi"),
    "an image": (AssistantGenImage(url=ADDRESS), [(Lost.MEDIA, ADDRESS)], f"hi\n{ADDRESS}"),
    "a sound": (AssistantGenAudio(base64_data="A", mime_type="audio/wav"), [(Lost.MEDIA, "")], "hi\n(audio/wav)"),
    "a film": (AssistantGenVideo(base64_data="A"), [(Lost.MEDIA, "(media)")], "hi\n(media)"),
    "a file": (UserInputFile(name="a.pdf"), [(Lost.MEDIA, "a.pdf")], "hi\na.pdf"),
    "citations": (
        AssistantGenText(" there", extension={"citations": [1]}, extra=FOREIGN),
        [(Lost.FIELD, "citations of a text"), (Lost.FIELD, "anthropic citations"), (Lost.EXTRA, "extra 'mine'")],
        "hi there",
    ),
}
OF_THE_USER: dict[str, tuple[ContentBlock, list[tuple[Lost, str]], Any]] = {
    "a sound by address": (UserInputAudio(url=ADDRESS), [(Lost.MEDIA, ADDRESS)], f"hi\n{ADDRESS}"),
    "a file by address": (UserInputFile(url=ADDRESS), [(Lost.MEDIA, ADDRESS)], f"hi\n{ADDRESS}"),
    "no image at all": (UserInputImage(), [(Lost.MEDIA, "(media)")], "hi\n(media)"),
    "the type of an image": (
        UserInputImage(url=ADDRESS, mime_type="image/png"),
        [(Lost.DETAIL, "type image/png")],
        [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": ADDRESS}}],
    ),
    "what is attached": (
        UserInputText("there", extra=FOREIGN),
        [(Lost.FIELD, "anthropic citations"), (Lost.EXTRA, "extra 'mine'")],
        "hi\nthere",
    ),
    "an answer for MCP": (
        MCPToolApprovalResponse(approval_request_id="a", approve=True),
        [(Lost.BLOCK, "mcp_tool_approval_response")],
        "hi",
    ),
    "a call that is not the model's": (FunctionToolCall("c", "f"), [(Lost.BLOCK, "function_tool_call")], "hi"),
    "a kept call that is not the model's": (kept({"tool_call": {"id": "c"}}), [(Lost.BLOCK, "a call")], "hi"),
    "a thought that is not the model's": (Reasoning("Hm."), [(Lost.REASONING, "")], "hi"),
    "what nobody knows": (Opaque({"type": "hologram"}), [(Lost.BLOCK, "hologram")], "hi"),
}


def check(message: AgenticMessage, lost: list[tuple[Lost, str]], content: Any) -> None:
    payload, losses = CODEC.encode_messages([AgenticMessage.user("first"), message])
    assert [(loss.name, loss.index, loss.path) for loss in losses] == [(name, 1, PLACE) for name, _ in lost]
    assert [what for (_, what), loss in zip(lost, losses, strict=True) if what not in loss.what] == []
    assert payload[1]["content"] == content


@pytest.mark.parametrize(("block", "lost", "content"), OF_THE_MODEL.values(), ids=OF_THE_MODEL)
def test_what_the_model_made_elsewhere_is_told_or_reported(block: ContentBlock, lost: Any, content: Any):
    check(AgenticMessage.assistant([AssistantGenText("hi"), block]), lost, content)


@pytest.mark.parametrize(("block", "lost", "content"), OF_THE_USER.values(), ids=OF_THE_USER)
def test_what_the_user_gave_is_told_or_reported(block: ContentBlock, lost: Any, content: Any):
    check(AgenticMessage.user([UserInputText("hi"), block]), lost, content)


def test_a_system_message_is_text():
    image = UserInputImage(base64_data=PIXEL, mime_type="image/png")
    check(AgenticMessage("system", [UserInputText("hi"), image]), [(Lost.MEDIA, "(image/png)")], "hi\n(image/png)")


def test_what_is_lost_inside_a_result_is_told_by_its_place():
    content = [UserInputText("6."), UserInputAudio(url=ADDRESS), Opaque({"type": "hologram"})]
    block = FunctionToolResult("call_1", "f", content, is_error=True, extra={"mine": 7})
    payload, losses = CODEC.encode_messages([AgenticMessage("user", [block])])
    assert [(loss.name, loss.path) for loss in losses] == [
        (Lost.ERROR, "content_blocks[0]"),
        (Lost.MEDIA, "content_blocks[0].content[1]"),
        (Lost.BLOCK, "content_blocks[0].content[2]"),
        (Lost.EXTRA, "content_blocks[0]"),
    ]
    assert payload == [{"role": "tool", "tool_call_id": "call_1", "content": f"6.\n{ADDRESS}"}]


def test_tools_that_a_call_found_are_told_as_text():
    block = ToolSearchResult("call_1", "find", [ToolInfo("add", "Add.")])
    payload, losses = CODEC.encode_messages([AgenticMessage("user", [block])])
    told = '[{"name":"add","description":"Add."}]'
    assert payload == [{"role": "tool", "tool_call_id": "call_1", "content": told}]
    assert [loss.name for loss in losses] == [Lost.BLOCK]


def test_why_a_reply_ended_and_what_a_message_carries_is_reported():
    message = AgenticMessage(
        "assistant",
        [AssistantGenText("hi")],
        response_meta=ResponseMeta(finish_reason="stop"),
        extra={"gemini": {"role": "model"}, "mine": 7},
    )
    payload, losses = CODEC.encode_messages([message])
    assert payload == [{"role": "assistant", "content": "hi"}]
    assert [(loss.name, loss.index, loss.path) for loss in losses] == [
        (Lost.META, 0, "response_meta"),
        (Lost.FIELD, 0, ""),
        (Lost.EXTRA, 0, ""),
    ]


def test_what_a_text_of_the_models_carries_is_reported_in_a_user_message():
    said = AssistantGenText("hi", extension={"wire": "gemini", "citations": [1]})
    [loss] = CODEC.encode_messages([AgenticMessage("user", [said])]).losses
    assert (loss.name, loss.what) == (Lost.FIELD, "citations of a text")


def test_what_media_carry_is_reported_where_words_take_their_place():
    file = UserInputFile(url=ADDRESS, extra=FOREIGN)
    losses = CODEC.encode_messages([AgenticMessage("user", [file])]).losses
    assert [loss.name for loss in losses] == [Lost.MEDIA, Lost.FIELD, Lost.EXTRA]


def test_what_a_message_carries_that_is_nothing_but_results_is_reported():
    result = FunctionToolResult("a", "f", [UserInputText("1")])
    message = AgenticMessage("user", [result], extra={"openai-chat": {"name": "ann"}, "mine": 7})
    payload, losses = CODEC.encode_messages([message])
    assert payload == [{"role": "tool", "tool_call_id": "a", "content": "1"}]
    assert [loss.what for loss in losses] == ["openai-chat name", "extra 'mine'"]
