"""Messages one by one, nothing arranged; what a repair makes of them; the system's place; and what cannot cross."""

from typing import Any

import pytest

import suture
from suture.codecs import Loss, Lost, Request, get_codec
from suture.messages import (
    AgenticMessage,
    AssistantGenImage,
    AssistantGenText,
    ContentBlock,
    FunctionToolCall,
    FunctionToolResult,
    MCPToolApprovalRequest,
    MCPToolCall,
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
    UserInputVideo,
)
from tests.codecs.anthropic.samples import ADDRESS, MARK, PIXEL

CODEC = get_codec("anthropic")
TEXT = {"type": "text", "text": "hi"}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}


def used(call_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "f", "input": {}}


def given(call_id: str, text: str = "42") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": text}


def again(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages that were read and written again; nothing is lost on the way."""
    payload, losses = CODEC.encode_messages(CODEC.decode_messages(items))
    assert losses == ()
    return payload


# The differences that the codec declares


def test_content_that_is_a_string_is_written_as_one_text_block():
    assert again([{"role": "user", "content": "hi"}]) == [{"role": "user", "content": [TEXT]}]


def test_a_result_that_is_one_plain_text_block_is_written_as_a_string():
    block = {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "42"}], "is_error": False}
    assert again([{"role": "user", "content": [block]}]) == [{"role": "user", "content": [given("a")]}]


def test_blocks_stay_in_their_order_and_messages_apart():
    items = [
        {"role": "assistant", "content": [used("a"), TEXT, used("b"), THOUGHT]},
        {"role": "user", "content": [TEXT, given("a"), {"type": "text", "text": " "}]},
        {"role": "user", "content": [given("b")]},
        {"role": "user", "content": [TEXT]},
    ]
    assert again(items) == items


def test_a_message_without_blocks_is_left_out():
    assert again([{"role": "user", "content": []}, {"role": "assistant", "content": ""}]) == []


def test_a_broken_history_stays_broken():
    items = [{"role": "user", "content": [given("z")]}, {"role": "assistant", "content": [used(""), used("")]}]
    assert again(items) == items


def test_fields_of_a_message_come_back():
    item = {"role": "user", "content": [TEXT], "cache": "x"}
    assert again([item]) == [item]


# What a repair makes of what was written


def repaired(history: list[AgenticMessage]) -> list[dict[str, Any]]:
    messages = suture.repair(CODEC.encode_messages(history).payload, wire="anthropic").messages
    assert suture.check(messages, wire="anthropic").acceptable
    return list(messages)


def test_results_that_came_one_by_one_stand_in_one_message_and_first():
    call_a, call_b = FunctionToolCall("a", "f", "{}"), FunctionToolCall("b", "f", "{}")
    results = [FunctionToolResult(name, "f", (UserInputText("42"),)) for name in "ab"]
    history = [
        AgenticMessage.assistant([call_a, call_b]),
        AgenticMessage.user([results[0]]),
        AgenticMessage.user([UserInputText("hi"), results[1]]),
    ]
    assert repaired(history) == [
        {"role": "assistant", "content": [used("a"), used("b")]},
        {"role": "user", "content": [given("a"), given("b"), TEXT]},
    ]


def test_what_is_said_behind_a_call_is_put_before_it():
    reply = AgenticMessage.assistant([FunctionToolCall("a", "f", "{}"), AssistantGenText("hi")])
    assert repaired([reply, AgenticMessage.tool_result("a", "f", "42")])[0]["content"] == [TEXT, used("a")]


def test_blank_text_goes():
    history = [AgenticMessage.user([UserInputText(" "), UserInputText("hi")]), AgenticMessage.assistant("\n")]
    assert repaired(history) == [{"role": "user", "content": [TEXT]}]


def test_blank_text_beside_a_signed_thought_goes():
    thought = Reasoning("hm", "c2ln", extension={"wire": "anthropic"})
    reply = AgenticMessage.assistant([thought, AssistantGenText("\n\n"), FunctionToolCall("a", "f", "{}")])
    messages = repaired([reply, AgenticMessage.tool_result("a", "f", "42")])
    assert messages[0]["content"] == [THOUGHT, used("a")]


def test_blank_text_in_a_result_goes():
    result = FunctionToolResult("a", "f", (UserInputText("hi"), UserInputText(""), UserInputText("hi")))
    messages = repaired([AgenticMessage.assistant([FunctionToolCall("a", "f", "{}")]), AgenticMessage.user([result])])
    assert messages[1]["content"][0]["content"] == [TEXT, TEXT]


def test_a_result_of_blank_texts_alone_is_empty():
    result = FunctionToolResult("a", "f", (UserInputText(" "), UserInputText("")))
    messages = repaired([AgenticMessage.assistant([FunctionToolCall("a", "f", "{}")]), AgenticMessage.user([result])])
    assert messages[1]["content"] == [given("a", "")]


@pytest.mark.parametrize("content", [(), (UserInputText(" "),), (UserInputText(""), UserInputText(""))])
def test_an_error_that_says_nothing_is_given_a_text(content: Any):
    result = FunctionToolResult("a", "f", content, is_error=True)
    messages = repaired([AgenticMessage.assistant([FunctionToolCall("a", "f", "{}")]), AgenticMessage.user([result])])
    assert messages[1]["content"] == [{**given("a", "(the tool failed without a message)"), "is_error": True}]


# The system


@pytest.mark.parametrize("place", [0, 1])
def test_a_system_message_among_the_messages_is_told_as_the_users_and_reported(place: int):
    history = [AgenticMessage.user("hi"), AgenticMessage.assistant("ok")]
    history.insert(place, AgenticMessage.system("Be brief."))
    payload, losses = CODEC.encode_messages(history)
    assert payload[place] == {"role": "user", "content": [{"type": "text", "text": "Be brief."}]}
    assert [(loss.name, loss.index) for loss in losses] == [(Lost.SYSTEM, place)]


def test_a_system_message_behind_the_users_stays_among_the_messages_of_a_request():
    history = [AgenticMessage.system("a"), AgenticMessage.user("hi"), AgenticMessage.system("b")]
    payload, losses = CODEC.encode_request(Request(history))
    assert payload["system"] == [{"type": "text", "text": "a"}]
    assert payload["messages"][1] == {"role": "user", "content": [{"type": "text", "text": "b"}]}
    assert [(loss.name, loss.index) for loss in losses] == [(Lost.SYSTEM, 2)]


@pytest.mark.parametrize("place", [0, 1])
def test_a_system_message_that_stood_among_the_messages_stands_there_again(place: int):
    inside = {"role": "system", "content": [{"type": "text", "text": "Be brief."}], "clear_at": "never"}
    items: list[dict[str, Any]] = [{"role": "user", "content": [TEXT]}]
    items.insert(place, inside)
    assert again(items) == items
    request = CODEC.decode_request({"system": "Be kind.", "messages": items})
    body = CODEC.encode_request(request).payload
    assert (body["system"], body["messages"]) == ([{"type": "text", "text": "Be kind."}], items)


def test_a_system_message_without_content_comes_back_without():
    items = [{"role": "user", "content": [TEXT]}, {"role": "system", "output_config": {"effort": "low"}}]
    assert again(items) == items


def test_a_request_holds_the_instruction_then_the_leading_system_messages():
    history = [
        AgenticMessage("system", [UserInputText("a", extra={"anthropic": MARK}), UserInputText(" ")]),
        AgenticMessage("system", [UserInputText("b"), UserInputImage(url=ADDRESS)]),
        AgenticMessage.user("hi"),
    ]
    payload, losses = CODEC.encode_request(Request(history, "first"))
    assert payload["system"] == [
        {"type": "text", "text": "first"},
        {"type": "text", "text": "a", **MARK},
        {"type": "text", "text": "b"},
        {"type": "text", "text": ADDRESS},
    ]
    assert [(loss.name, loss.index, loss.path) for loss in losses] == [(Lost.MEDIA, 1, "content_blocks[1]")]


# What cannot cross is named

FOUND = ToolSearchResult("a", "find", [ToolInfo("tides")])
LOST: list[tuple[ContentBlock, dict[str, Any] | None, list[tuple[Lost, str]]]] = [
    (Reasoning("hm", "s"), None, [(Lost.REASONING, "thought 'hm'")]),
    (ServerToolCall(call_id="a", name="web_search"), None, [(Lost.BLOCK, "a block of type server_tool_call")]),
    (
        ServerToolResult(call_id="a", extra={"openai-responses": {"type": "web_search_call"}}),
        None,
        [(Lost.BLOCK, "a block of type server_tool_result")],
    ),
    (MCPToolCall(call_id="a", arguments="{"), None, [(Lost.BLOCK, "a block of type mcp_tool_call")]),
    (MCPToolApprovalRequest(id="a"), None, [(Lost.BLOCK, "a block of type mcp_tool_approval_request")]),
    (
        Opaque({"type": "gemini.block", "value": {"executableCode": {}}}),
        None,
        [(Lost.BLOCK, "a block of type gemini.block")],
    ),
    (
        UserInputAudio(base64_data="AAAA", mime_type="audio/ogg"),
        {"type": "text", "text": "(audio/ogg)"},
        [(Lost.MEDIA, "audio (audio/ogg)")],
    ),
    (
        UserInputVideo(url=ADDRESS, extra={"mine": 1}),
        {"type": "text", "text": ADDRESS},
        [(Lost.MEDIA, f"video {ADDRESS}"), (Lost.EXTRA, "extra 'mine'")],
    ),
    (
        AssistantGenImage(base64_data=PIXEL, mime_type="image/png"),
        {"type": "text", "text": "(image/png)"},
        [(Lost.MEDIA, "image (image/png)")],
    ),
    (
        UserInputImage(base64_data="Qk0=", mime_type="image/bmp"),
        {"type": "text", "text": "(image/bmp)"},
        [(Lost.MEDIA, "image (image/bmp)")],
    ),
    (
        UserInputImage(url="gs://bucket/cat.png"),
        {"type": "text", "text": "gs://bucket/cat.png"},
        [(Lost.MEDIA, "image gs://bucket/cat.png")],
    ),
    (
        UserInputFile(base64_data="AAAA", mime_type="application/zip", name="a.zip"),
        {"type": "text", "text": "a.zip"},
        [(Lost.MEDIA, "file a.zip")],
    ),
    (
        UserInputFile(base64_data="/w==", mime_type="text/plain", name="a.txt"),
        {"type": "text", "text": "a.txt"},
        [(Lost.MEDIA, "file a.txt")],
    ),
    (
        UserInputFile(base64_data="c2l4?", mime_type="text/plain", name="b.txt"),
        {"type": "text", "text": "b.txt"},
        [(Lost.MEDIA, "file b.txt")],
    ),
    (
        UserInputFile(base64_data="YSxi", mime_type="text/csv"),
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a,b"}},
        [(Lost.DETAIL, "type text/csv")],
    ),
    (
        UserInputFile(url=ADDRESS, mime_type="image/png", name="a.png"),
        {"type": "image", "source": {"type": "url", "url": ADDRESS}},
        [(Lost.DETAIL, "file name a.png"), (Lost.DETAIL, "type image/png")],
    ),
    (
        UserInputImage(url=ADDRESS, detail="high"),
        {"type": "image", "source": {"type": "url", "url": ADDRESS}},
        [(Lost.DETAIL, "image detail high")],
    ),
    (
        AssistantGenText("hi", extension={"annotations": []}, extra={"openai-chat": {"refusal": "no", "x": None}}),
        TEXT,
        [(Lost.FIELD, "annotations of a text"), (Lost.FIELD, "openai-chat refusal")],
    ),
    (UserInputText("hi", extra={"mine": 1}), TEXT, [(Lost.EXTRA, "extra 'mine'")]),
    (
        FOUND,
        given("a", '[{"name":"tides"}]'),
        [(Lost.BLOCK, "the form of tools that were found; they are told as text")],
    ),
]


@pytest.mark.parametrize(("block", "made", "lost"), LOST, ids=[type(case[0]).__name__ for case in LOST])
def test_what_cannot_cross_is_named_with_its_place(block: Any, made: dict[str, Any] | None, lost: list[Any]):
    history = [AgenticMessage.user("?"), AgenticMessage("user", [UserInputText("hi"), block])]
    payload, losses = CODEC.encode_messages(history)
    assert payload[1]["content"] == [TEXT, *([made] if made else [])]
    assert losses == tuple(Loss(name, what, 1, "content_blocks[1]") for name, what in lost)


def test_what_is_lost_inside_a_result_is_named_with_its_place():
    result = FunctionToolResult("a", "f", (UserInputText("1"), UserInputAudio(url=ADDRESS)))
    payload, losses = CODEC.encode_messages([AgenticMessage.user([result])])
    assert payload[0]["content"][0]["content"] == [{"type": "text", "text": "1"}, {"type": "text", "text": ADDRESS}]
    assert losses == (Loss(Lost.MEDIA, f"audio {ADDRESS}", 0, "content_blocks[0].content[1]"),)


def test_why_a_reply_ended_is_not_said_in_a_request_and_reported():
    reply = AgenticMessage("assistant", [AssistantGenText("hi")], response_meta=ResponseMeta(finish_reason="stop"))
    _, losses = CODEC.encode_messages([AgenticMessage.user("?"), reply])
    assert losses == (Loss(Lost.META, "why the reply ended and what it cost", 1, "response_meta"),)


def test_data_on_a_message_is_reported():
    message = AgenticMessage("user", [UserInputText("hi")], extra={"mine": 1, "gemini": {"a": 1}})
    _, losses = CODEC.encode_messages([message])
    assert [(loss.name, loss.what) for loss in losses] == [(Lost.EXTRA, "extra 'mine'"), (Lost.FIELD, "gemini a")]


def test_a_reply_of_which_nothing_can_be_said_leaves_no_empty_message():
    history = [
        AgenticMessage.user("a"),
        AgenticMessage.assistant([Reasoning("hm", "s", extension={"wire": "gemini"})]),
        AgenticMessage.assistant([FunctionToolCall("b", "f", "{}")]),
    ]
    assert [item["role"] for item in CODEC.encode_messages(history).payload] == ["user", "assistant"]
