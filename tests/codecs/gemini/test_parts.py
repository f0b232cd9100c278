"""Every kind of part, from and into Gemini's contents."""

import copy
from typing import Any

import pytest
from google.genai import types

from suture.codecs import Lost, convert, get_codec
from suture.errors import InputError
from suture.messages import (
    AgenticMessage,
    AssistantGenText,
    ContentBlock,
    FunctionToolCall,
    FunctionToolResult,
    MCPToolCall,
    Opaque,
    Reasoning,
    ServerToolCall,
    ToolInfo,
    ToolSearchResult,
    UserInputFile,
    UserInputImage,
    UserInputText,
    UserInputVideo,
)
from tests.codecs.gemini.samples import FILE, GIVEN, MADE, PIXEL, SIGNED, result

CODEC = get_codec("gemini")
SAMPLES = [("user", *pair) for pair in GIVEN.values()] + [("model", *pair) for pair in MADE.values()]
both_ways = pytest.mark.parametrize(
    ("role", "part", "native"), SAMPLES, ids=[*(f"given {name}" for name in GIVEN), *(f"made {name}" for name in MADE)]
)
ROLES: dict[str, Any] = {"user": "user", "model": "assistant"}


@both_ways
def test_a_part_is_read_as_the_native_block(role: str, part: dict[str, Any], native: ContentBlock):
    assert CODEC.decode_messages([{"role": role, "parts": [part]}]) == [AgenticMessage(ROLES[role], [native])]


@both_ways
def test_a_native_block_is_written_as_it_was_read(role: str, part: dict[str, Any], native: ContentBlock):
    written = CODEC.encode_messages([AgenticMessage(ROLES[role], [native])])
    assert written == ([{"role": role, "parts": [part]}], ())


@pytest.mark.parametrize(("role", "part"), [sample[:2] for sample in SAMPLES if sample[1] != {"text": ""}])
def test_a_part_stays_the_same_on_its_way_through_chat_messages(role: str, part: dict[str, Any]):
    chat = convert([{"role": role, "parts": [part]}], "gemini", "message")
    assert chat.losses == ()
    assert convert(chat.messages, "message", "gemini").messages == [{"role": role, "parts": [part]}]


@pytest.mark.parametrize(("role", "part"), [sample[:2] for sample in SAMPLES])
def test_reading_and_writing_change_nothing_of_the_users(role: str, part: dict[str, Any]):
    item = {"role": role, "parts": [part]}
    before = copy.deepcopy(item)
    message = CODEC.decode_messages([item])[0]
    kept = copy.deepcopy(message)
    payload = CODEC.encode_messages([message]).payload
    payload[0]["parts"][0]["added"] = True
    assert item == before
    assert message == kept


KNOWN_TO_THE_SDK = {
    name: (role, part)
    for role, parts in (("user", GIVEN), ("model", MADE))
    for name, (part, _) in parts.items()
    if "hologram" not in str(part)
}


@pytest.mark.parametrize(("role", "part"), KNOWN_TO_THE_SDK.values(), ids=KNOWN_TO_THE_SDK)
def test_the_sdks_object_and_its_dump_are_read_like_the_json(role: str, part: dict[str, Any]):
    item = {"role": role, "parts": [part]}
    content = types.Content.model_validate(item)
    expected = CODEC.encode_messages(CODEC.decode_messages([item])).payload
    for given in (content, content.model_dump(exclude_unset=True)):
        assert CODEC.encode_messages(CODEC.decode_messages([given])).payload == expected


def test_the_sdks_base64_is_read_as_everybody_writes_it():
    content = types.Content(parts=[types.Part.from_bytes(data=b"\xfb\xff\xfe", mime_type="image/png")])
    [block] = CODEC.decode_messages([content])[0].content_blocks
    assert block == UserInputImage(base64_data="+//+", mime_type="image/png")


@pytest.mark.parametrize(
    ("native", "part"),
    [
        (UserInputImage(url=f"data:image/gif;base64,{PIXEL}"), ("inlineData", "image/gif")),
        (UserInputImage(base64_data=PIXEL), ("inlineData", "image/png")),
        (UserInputFile(url=FILE, mime_type="text/plain"), ("fileData", "text/plain")),
        (UserInputVideo(url=FILE, mime_type="video/mp4"), ("fileData", "video/mp4")),
    ],
)
def test_media_are_written_by_value_or_by_address(native: ContentBlock, part: tuple[str, str]):
    payload, losses = CODEC.encode_messages([AgenticMessage.user([native])])
    [(field, inner)] = payload[0]["parts"][0].items()
    assert (field, inner["mimeType"]) == part
    assert losses == ()


def test_a_struct_that_was_shortened_meanwhile_is_told_as_text():
    shortened = result(UserInputText('{"high":[" (cut)'), output=None)
    [content] = CODEC.encode_messages([AgenticMessage("user", [shortened])]).payload
    assert content["parts"][0]["functionResponse"]["response"] == {"output": '{"high":[" (cut)'}


def test_a_result_that_became_an_error_is_told_as_one():
    failed = result(UserInputText("late"), is_error=True, output="result")
    [content] = CODEC.encode_messages([AgenticMessage("user", [failed])]).payload
    assert content["parts"][0]["functionResponse"]["response"] == {"error": "late"}


def test_arguments_that_came_later_are_written_though_the_call_had_none():
    call = FunctionToolCall("a", "tides", '{"port": 1}', extra={"gemini": {"functionCall": {"args": None}}})
    [content] = CODEC.encode_messages([AgenticMessage.assistant([call])]).payload
    assert content["parts"] == [{"functionCall": {"id": "a", "name": "tides", "args": {"port": 1}}}]


LOST: dict[str, tuple[ContentBlock, list[dict[str, Any]], list[tuple[Lost, str]]]] = {
    "thought of another provider": (
        Reasoning("hm", "sig", extension={"wire": "anthropic"}),
        [],
        [(Lost.REASONING, "thought 'hm'")],
    ),
    "thought of nobody": (Reasoning("hm"), [], [(Lost.REASONING, "thought 'hm'")]),
    "a tool that another provider ran": (
        ServerToolCall("x", "web_search", arguments={}, extra={"anthropic": {"type": "server_tool_use"}}),
        [],
        [(Lost.BLOCK, "a block of type server_tool_call")],
    ),
    "a tool of an MCP server": (MCPToolCall("x", "tides"), [], [(Lost.BLOCK, "a block of type mcp_tool_call")]),
    "a part of another wire": (
        Opaque({"type": "anthropic.block", "value": {}}),
        [],
        [(Lost.BLOCK, "a block of type anthropic.block")],
    ),
    "arguments that are no object": (
        FunctionToolCall("a", "tides", '{"port": '),
        [{"functionCall": {"id": "a", "name": "tides", "args": {}}}],
        [(Lost.ARGUMENTS, "arguments '{\"port\": '")],
    ),
    "annotations": (
        AssistantGenText("six", extension={"annotations": []}),
        [{"text": "six"}],
        [(Lost.FIELD, "annotations of a text")],
    ),
    "a field of another provider": (
        UserInputText("hi", extra={"anthropic": {"cache_control": {}}, "mine": 1}),
        [{"text": "hi"}],
        [(Lost.FIELD, "anthropic cache_control"), (Lost.EXTRA, "extra 'mine'")],
    ),
    "a field on a call": (
        FunctionToolCall("a", "f", extra={"mine": 1}),
        [{"functionCall": {"id": "a", "name": "f", "args": {}}}],
        [(Lost.EXTRA, "extra 'mine'")],
    ),
    "how closely to look": (
        UserInputImage(base64_data=PIXEL, mime_type="image/png", detail="high"),
        [{"inlineData": {"mimeType": "image/png", "data": PIXEL}}],
        [(Lost.DETAIL, "image detail high")],
    ),
    "the name of a file": (
        UserInputFile(url=FILE, name="tide.pdf"),
        [{"fileData": {"fileUri": FILE}}],
        [(Lost.DETAIL, "file name tide.pdf")],
    ),
    "what kind of media it is": (
        UserInputVideo(url=FILE),
        [{"fileData": {"fileUri": FILE}}],
        [(Lost.DETAIL, f"that {FILE} is video; give its mime_type")],
    ),
    "media without data": (UserInputImage(), [{"text": "(media)"}], [(Lost.MEDIA, "image (media)")]),
    "tools that were found": (
        ToolSearchResult("a", "find", [ToolInfo("tides")]),
        [{"functionResponse": {"id": "a", "name": "find", "response": {"output": '[{"name":"tides"}]'}}}],
        [(Lost.BLOCK, "the form of tools that were found; they are told as text")],
    ),
}


@pytest.mark.parametrize(("block", "parts", "lost"), LOST.values(), ids=LOST)
def test_what_cannot_be_said_is_named_with_its_place(block: ContentBlock, parts: Any, lost: list[tuple[Lost, str]]):
    message = AgenticMessage("assistant", [AssistantGenText("so"), block])
    payload, losses = CODEC.encode_messages([AgenticMessage.user("hi"), message])
    assert payload[1:] == [{"role": "model", "parts": [{"text": "so"}, *parts]}]
    assert [(loss.name, loss.what) for loss in losses] == lost
    assert {(loss.index, loss.path.split(".")[0]) for loss in losses} == {(1, "content_blocks[1]")}


def test_what_is_lost_inside_a_result_is_named_with_its_place():
    foreign = Opaque({"type": "bedrock.block", "value": {}})
    payload, [loss] = CODEC.encode_messages([AgenticMessage("user", [result(UserInputText("a"), foreign)])])
    assert payload[0]["parts"][0]["functionResponse"]["response"] == {"output": "a"}
    assert (loss.name, loss.index, loss.path) == (Lost.BLOCK, 0, "content_blocks[0].content[1]")


def test_fields_that_only_gemini_knows_are_named_where_another_provider_is_told():
    losses = convert([{"role": "model", "parts": [MADE["signed call"][0]]}], "gemini", "openai-chat").losses
    assert [(loss.name, loss.what) for loss in losses] == [(Lost.FIELD, "gemini thoughtSignature")]


WRONG: dict[str, tuple[Any, str]] = {
    "no content": (7, "message 0: expected a message, found int"),
    "a role that nobody has": ({"role": "system", "parts": []}, "message 0, role: unknown role 'system'"),
    "a role that is no text": ({"role": [], "parts": []}, "message 0, role: unknown role []"),
    "parts that are no list": ({"parts": {"text": "hi"}}, "message 0, parts: expected a list, found dict"),
    "a part that is a text": ({"parts": ["hi"]}, "message 0, parts[0]: expected an object, found str"),
    "a text that is none": ({"parts": [{"text": 7}]}, "message 0, parts[0].text: UserInputText takes a string"),
    "a thought that is no text": ({"parts": [{"text": 7, "thought": True}]}, "message 0, parts[0].text: Reasoning"),
    "a call that is a text": (
        {"parts": [{"functionCall": "f"}]},
        "parts[0].functionCall: expected an object, found str",
    ),
    "a name that is no text": ({"parts": [{"functionCall": {"name": 7}}]}, "parts[0].name: FunctionToolCall takes"),
    "an id that is no text": ({"parts": [{"functionCall": {"id": 7}}]}, "parts[0].call_id: FunctionToolCall takes"),
    "a response that is a text": (
        {"parts": [{"functionResponse": {"response": "six"}}]},
        "parts[0].functionResponse.response: expected an object, found str",
    ),
    "media that are no list": (
        {"parts": [{"functionResponse": {"parts": 7}}]},
        "parts[0].functionResponse.parts: expected a list, found int",
    ),
    "an address that is no text": (
        {"parts": [{"fileData": {"fileUri": 7, "mimeType": "image/png"}}]},
        "parts[0].url: UserInputImage takes a string",
    ),
}


@pytest.mark.parametrize(("item", "said"), WRONG.values(), ids=WRONG)
def test_what_is_no_content_is_refused_with_its_place(item: Any, said: str):
    with pytest.raises(InputError) as caught:
        CODEC.decode_messages([item])
    assert said in str(caught.value)


@pytest.mark.parametrize("items", [{"parts": []}, "hi", None])
def test_what_is_no_list_of_contents_is_refused(items: Any):
    with pytest.raises(InputError, match="expected a list of messages"):
        CODEC.decode_messages(items)


def test_a_signature_that_is_not_text_is_refused_on_a_thought():
    with pytest.raises(InputError, match="signature"):
        CODEC.decode_messages([{"role": "model", "parts": [{"text": "hm", "thought": True, "thoughtSignature": 7}]}])


def test_a_signature_stays_on_its_own_part():
    second = {"functionCall": {"id": "b", "name": "f", "args": {}}}
    first = {"functionCall": {"id": "a", "name": "f", "args": {}}, **SIGNED}
    item = {"role": "model", "parts": [{"text": "so"}, first, second, {"text": "", **SIGNED}]}
    assert CODEC.encode_messages(CODEC.decode_messages([item])).payload == [item]


def test_a_result_is_a_result_in_a_content_of_the_model_as_well():
    part = {"functionResponse": {"id": "a", "name": "f", "response": {"output": "six"}}}
    [message] = CODEC.decode_messages([{"role": "model", "parts": [part]}])
    assert message.content_blocks == (FunctionToolResult("a", "f", [UserInputText("six")]),)
    assert CODEC.encode_messages([message]).payload == [{"role": "model", "parts": [part]}]
