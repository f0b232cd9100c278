"""The results that the wires of agents make of what a tool gave."""

from typing import Any

import pytest

import suture
from suture.messages import (
    AgenticMessage,
    AudioPart,
    Delta,
    FilePart,
    FunctionToolResult,
    ImagePart,
    Message,
    TextPart,
    ToolResult,
    ToolSearchPart,
    ToolSearchResult,
    UserInputText,
    VideoPart,
)
from suture.profiles import PROFILES, get_profile
from suture.wires import Call, get_chat_wire
from tests.wires.chat import AGENTIC, CALL, CHAT, CHAT_RESULTS, CHAT_WIRES, MESSAGE, PARTS, TOOLS, each_part

MEDIA = (ImagePart, AudioPart, VideoPart, FilePart)


def gave(*parts: Any, **fields: Any) -> ToolResult:
    return ToolResult(parts, **fields)


def test_a_result_of_texts_is_one_text():
    result = gave(TextPart("3 pages", index=0), TextPart("1 file", index=1))
    block = FunctionToolResult(
        "call_1", "search", (UserInputText("3 pages", index=0), UserInputText("1 file", index=1))
    )
    assert [wire.result(CALL, result) for wire in CHAT_WIRES] == [
        Message.tool("3 pages\n1 file", "call_1", "search"),
        AgenticMessage("user", (block,)),
        {"role": "tool", "tool_call_id": "call_1", "content": "3 pages\n1 file"},
    ]


def test_a_result_without_parts_is_an_empty_text():
    assert [wire.result(CALL, ToolResult()) for wire in CHAT_WIRES] == [
        Message.tool("", "call_1", "search"),
        AgenticMessage.tool_result("call_1", "search", ()),
        {"role": "tool", "tool_call_id": "call_1", "content": ""},
    ]


def test_a_failed_result_says_so_where_the_wire_can():
    result = gave(TextPart("no such page"), is_error=True)
    assert [wire.result(CALL, result) for wire in CHAT_WIRES] == [
        Message.tool("no such page", "call_1", "search", is_error=True),
        AgenticMessage.tool_result("call_1", "search", "no such page", is_error=True),
        {"role": "tool", "tool_call_id": "call_1", "content": "no such page"},
    ]


def test_what_is_attached_to_a_result_stays_on_the_native_wires():
    result = gave(TextPart("a"), extra={"took": 3})
    assert MESSAGE.result(CALL, result).extra == {"took": 3}
    assert AGENTIC.result(CALL, result).content_blocks[0].extra == {"took": 3}
    assert CHAT.result(CALL, result) == {"role": "tool", "tool_call_id": "call_1", "content": "a"}


def test_a_text_with_something_attached_stays_a_part():
    part = TextPart("a", extra={"origin": "cache"})
    assert MESSAGE.result(CALL, gave(part)).user_input_multi_content == (part,)


@each_part
def test_a_result_with_anything_but_text_keeps_its_parts(part: Any):
    parts = [TextPart("Look:"), part]
    made = MESSAGE.result(CALL, gave(*parts))
    if isinstance(part, TextPart):
        assert made.content == "Look:\n3 pages"
    else:
        assert made == Message.tool(parts, "call_1", "search")


def test_tools_that_were_found_are_a_block_of_their_own():
    part = ToolSearchPart(tools=TOOLS, extra={"origin": "cache", "took": 1})
    found = AGENTIC.result(CALL, gave(part, extra={"took": 3}))
    extra = {"origin": "cache", "took": 3}
    assert found == AgenticMessage("user", (ToolSearchResult("call_1", "search", TOOLS, extra=extra),))


@pytest.mark.parametrize(
    "result",
    [
        gave(ToolSearchPart(tools=TOOLS), is_error=True),
        gave(ToolSearchPart(tools=TOOLS), TextPart("and more")),
    ],
)
def test_tools_that_were_found_are_told_as_text_where_there_is_more_to_say(result: ToolResult):
    (block,) = AGENTIC.result(CALL, result).content_blocks
    assert block.content[0] == UserInputText('[{"name":"fetch","description":"Get a page."}]')
    assert block.is_error is result.is_error


@pytest.mark.parametrize("kind", CHAT_RESULTS)
def test_a_chat_result_is_a_list_where_there_are_media_and_else_a_text(kind: str):
    form = CHAT_RESULTS[kind]
    content = CHAT.result(CALL, gave(TextPart("Look:"), PARTS[kind]))["content"]
    if isinstance(form, str):
        assert content == f"Look:\n{form}"
    else:
        assert content == [{"type": "text", "text": "Look:"}, form]


def test_in_a_chat_result_with_media_the_rest_is_text():
    result = gave(PARTS["image"], PARTS["tools"], PARTS["file elsewhere"], AudioPart(), FilePart(name="b"))
    assert CHAT.result(CALL, result)["content"] == [
        CHAT_RESULTS["image"],
        {"type": "text", "text": CHAT_RESULTS["tools"]},
        {"type": "text", "text": "https://example.com/a.pdf"},
        {"type": "text", "text": "(audio)"},
        {"type": "text", "text": "b"},
    ]


def test_a_call_of_the_older_form_gets_an_answer_of_the_older_form():
    turn = {"role": "assistant", "content": None, "function_call": {"name": "search", "arguments": "{}"}}
    (call,) = CHAT.calls(turn)
    answer = CHAT.result(call, gave(TextPart("42")))
    assert answer == {"role": "function", "name": "search", "content": "42"}
    assert suture.check([CHAT.user("hi"), turn, answer], wire="openai-chat").acceptable


def test_a_call_of_a_custom_tool_gets_a_tool_message():
    turn = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "sh", "input": "ls"}}],
    }
    (call,) = CHAT.calls(turn)
    answer = CHAT.result(call, gave(TextPart("42")))
    assert answer == {"role": "tool", "tool_call_id": "a", "content": "42"}
    assert suture.check([CHAT.user("hi"), turn, answer], wire="openai-chat").acceptable


PAIRS = [(wire.name, name) for wire in CHAT_WIRES for name in PROFILES if get_profile(name).speaks_of(wire.name)]


@each_part
@pytest.mark.parametrize(("name", "profile"), PAIRS)
def test_a_result_of_any_kind_answers_its_call(name: str, profile: str, part: Any):
    wire = get_chat_wire(name)
    call = Call("a1B2c3D4e", "search", "{}")
    turn = wire.join([Delta("Let me see.", "so"), Delta(call_index=0, call_id=call.id, name=call.name, arguments="{}")])
    for result in (gave(part), gave(TextPart("Look:"), part, is_error=True)):
        history = [wire.user("go"), turn, wire.result(call, result)]
        found = {finding.problem for finding in suture.check(history, wire=name, profile=profile).findings}
        # Media that a provider does not take in a result can be shown after it: nothing else may be wrong.
        allowed = {"media-in-result", "tool-then-user"} if isinstance(part, MEDIA) else set[str]()
        assert found <= (allowed | {"thought-field"} if profile == "groq" else allowed)
        mended = suture.repair(history, wire=name, profile=profile).messages
        assert suture.check(mended, wire=name, profile=profile).acceptable
