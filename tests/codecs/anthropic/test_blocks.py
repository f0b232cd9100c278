"""Every kind of block, from and into the Messages API."""

import copy
from typing import Any

import pytest
from anthropic.types import Message as SDKMessage

from suture.codecs import Lost, convert, encode, get_codec
from suture.errors import InputError
from suture.messages import (
    AgenticMessage,
    AssistantGenText,
    ContentBlock,
    FunctionToolCall,
    FunctionToolResult,
    Reasoning,
    UserInputFile,
    UserInputImage,
    UserInputText,
)
from tests.codecs.anthropic.samples import ADDRESS, GIVEN, MADE, PDF, PIXEL

CODEC = get_codec("anthropic")
SAMPLES = [("user", *pair) for pair in GIVEN.values()] + [("assistant", *pair) for pair in MADE.values()]
NAMES = [*(f"given {name}" for name in GIVEN), *(f"made {name}" for name in MADE)]
both_ways = pytest.mark.parametrize(("role", "block", "native"), SAMPLES, ids=NAMES)
each = pytest.mark.parametrize(("role", "block"), [sample[:2] for sample in SAMPLES], ids=NAMES)


@both_ways
def test_a_block_is_read_as_the_native_one(role: Any, block: dict[str, Any], native: ContentBlock):
    assert CODEC.decode_messages([{"role": role, "content": [block]}]) == [AgenticMessage(role, [native])]


@both_ways
def test_a_native_block_is_written_as_it_was_read(role: Any, block: dict[str, Any], native: ContentBlock):
    written = CODEC.encode_messages([AgenticMessage(role, [native])])
    assert written == ([{"role": role, "content": [block]}], ())


@each
def test_a_block_stays_the_same_on_its_way_through_chat_messages(role: Any, block: dict[str, Any]):
    chat = convert([{"role": role, "content": [block]}], "anthropic", "message")
    assert chat.losses == ()
    assert convert(chat.messages, "message", "anthropic").messages == [{"role": role, "content": [block]}]


@each
def test_reading_and_writing_change_nothing_of_the_users(role: Any, block: dict[str, Any]):
    item = {"role": role, "content": [block]}
    before = copy.deepcopy(item)
    message = CODEC.decode_messages([item])[0]
    kept = copy.deepcopy(message)
    payload = CODEC.encode_messages([message]).payload
    payload[0]["content"][0]["added"] = True
    assert item == before
    assert message == kept


@pytest.mark.parametrize(
    ("native", "block"),
    [
        (UserInputImage(url=f"data:image/gif;base64,{PIXEL}"), ("image", "base64", "image/gif")),
        (UserInputImage(base64_data=PIXEL, mime_type="image/jpg"), ("image", "base64", "image/jpeg")),
        (UserInputImage(base64_data=PIXEL), ("image", "base64", "image/png")),
        (UserInputImage(base64_data="/9j/4AAQ"), ("image", "base64", "image/jpeg")),
        (UserInputFile(base64_data=PDF), ("document", "base64", "application/pdf")),
        (UserInputFile(base64_data=PIXEL, mime_type="image/png"), ("image", "base64", "image/png")),
        (UserInputFile(url=ADDRESS, mime_type="image/png"), ("image", "url", None)),
        (UserInputFile(url=ADDRESS), ("document", "url", None)),
        (UserInputFile(url="data:text/plain;charset=utf-8;base64,c2l4"), ("document", "text", "text/plain")),
    ],
)
def test_media_are_written_in_the_form_that_their_type_has(native: ContentBlock, block: tuple[Any, ...]):
    made = CODEC.encode_messages([AgenticMessage.user([native])]).payload[0]["content"][0]
    assert (made["type"], made["source"]["type"], made["source"].get("media_type")) == block


def test_calls_of_a_cut_stream_keep_their_raw_arguments():
    block = {"type": "tool_use", "id": "a", "name": "f", "input": '{"port": "Do'}
    [message] = CODEC.decode_messages([{"role": "assistant", "content": [block]}])
    assert message.content_blocks == (FunctionToolCall("a", "f", '{"port": "Do'),)


def test_arguments_that_are_no_object_are_written_as_an_empty_one_and_reported():
    reply = AgenticMessage.assistant([FunctionToolCall("a", "f", '{"port": "Do'), FunctionToolCall("b", "f", "")])
    payload, losses = CODEC.encode_messages([AgenticMessage.user("?"), reply])
    assert [block["input"] for block in payload[1]["content"]] == [{}, {}]
    assert [(loss.name, loss.index, loss.path) for loss in losses] == [
        (Lost.ARGUMENTS, 1, "content_blocks[0].arguments")
    ]


def test_what_the_sdk_returns_is_read_like_the_dicts_it_stands_for():
    body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [MADE["thinking"][0], MADE["text"][0], MADE["call"][0], MADE["server call"][0]],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 2},
    }
    response = SDKMessage.model_validate(body)
    in_a_dict = {"role": "assistant", "content": response.content}
    whole, blocks = CODEC.decode_messages([response, in_a_dict])
    assert whole.content_blocks == blocks.content_blocks
    assert whole == CODEC.decode_reply(body)
    assert [type(block).__name__ for block in blocks.content_blocks] == [
        "Reasoning",
        "AssistantGenText",
        "FunctionToolCall",
        "ServerToolCall",
    ]


def test_what_the_sdk_parsed_out_of_a_text_is_not_sent_back():
    block = {"type": "text", "text": "{}", "parsed_output": {"a": 1}}
    [message] = CODEC.decode_messages([{"role": "assistant", "content": [block]}])
    assert message.content_blocks == (AssistantGenText("{}"),)


def test_a_result_is_named_after_the_call_that_came_before_it():
    def call(name: str):
        return {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": name, "input": {}}]}

    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "1"}]}
    messages = CODEC.decode_messages([result, call("first"), result, call("second"), result])
    results = [messages[place].content_blocks[0] for place in (0, 2, 4)]
    assert [result.name for result in results if isinstance(result, FunctionToolResult)] == ["", "first", "second"]


@pytest.mark.parametrize("origin", ["openai-responses", "gemini", ""])
def test_thought_that_another_provider_signed_is_left_out_and_reported(origin: str):
    thought = Reasoning("hm", "sig", extension={"wire": origin} if origin else {})
    payload, losses = CODEC.encode_messages([AgenticMessage.assistant([thought, AssistantGenText("yes")])])
    assert payload == [{"role": "assistant", "content": [{"type": "text", "text": "yes"}]}]
    assert [(loss.name, loss.index, loss.path) for loss in losses] == [(Lost.REASONING, 0, "content_blocks[0]")]


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (
            {"role": "tool", "content": "x"},
            "message 1, role: unknown role 'tool'; expected user or assistant or system",
        ),
        ({"role": "user", "content": 7}, "message 1, content: expected a list, found int"),
        ({"role": "user", "content": ["x"]}, "message 1, content[0]: expected an object, found str"),
        ({"role": "user", "content": [{"text": "x"}]}, "message 1, content[0].type: expected a type, found nothing"),
        (
            {"role": "user", "content": [{"type": "text", "text": 7}]},
            "message 1, content[0].text: expected a string, found int",
        ),
        (
            {"role": "user", "content": [{"type": "image", "source": "x"}]},
            "message 1, content[0].source: expected an object, found str",
        ),
        (
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [{"type": 1}]}]},
            "message 1, content[0].content[0].type: expected a string, found int",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(item: Any, said: str):
    with pytest.raises(InputError) as caught:
        CODEC.decode_messages([{"role": "user", "content": "hi"}, item])
    assert str(caught.value) == said


def test_a_thing_that_is_no_message_is_refused_with_its_place():
    with pytest.raises(InputError, match="message 0: expected a message, found str"):
        CODEC.decode_messages(["hi"])


def test_a_result_of_several_texts_is_written_as_a_list():
    held = FunctionToolResult("a", "f", (UserInputText("1"), UserInputText("2")))
    made = encode([AgenticMessage.user([held])], "anthropic").messages
    assert made[0]["content"][0]["content"] == [{"type": "text", "text": "1"}, {"type": "text", "text": "2"}]
