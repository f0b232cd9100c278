"""Items of Responses from and into native messages."""

from typing import Any, cast

import pytest
from msgspec.structs import replace

from suture.codecs import Lost, get_codec
from suture.errors import InputError
from suture.messages import (
    AgenticMessage,
    AssistantGenAudio,
    AssistantGenImage,
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
    ToolInfo,
    ToolSearchResult,
    UserInputAudio,
    UserInputFile,
    UserInputImage,
    UserInputText,
    UserInputVideo,
)
from tests.codecs.openai_responses.marks import part, says
from tests.codecs.openai_responses.samples import CALLED, GIVEN, MADE, PARTS, WIRE, kept

codec = get_codec(WIRE)
USER = {"role": "user", "content": "and?"}
ASK = AgenticMessage.user("and?")


def items_of(messages: list[AgenticMessage]) -> Any:
    return codec.encode_messages(messages).payload


def losses_of(*blocks: Any, role: Any = "user") -> list[tuple[Lost, str, int | None, str]]:
    found = codec.encode_messages([ASK, AgenticMessage(role, blocks)]).losses
    return [(loss.name, loss.what, loss.index, loss.path) for loss in found]


@pytest.mark.parametrize("name", PARTS)
def test_a_part_of_a_message_is_a_block_and_comes_back(name: str):
    part, block = PARTS[name]
    items = [{"role": "user", "content": [part, {"type": "input_text", "text": "and?"}]}]
    messages = [AgenticMessage("user", [block, UserInputText("and?")])]
    assert codec.decode_messages(items) == messages
    assert codec.encode_messages(messages) == (items, ())


@pytest.mark.parametrize("name", MADE)
def test_what_the_model_made_is_one_message_and_comes_back(name: str):
    items, message = MADE[name]
    messages = [ASK, message, ASK]
    assert codec.decode_messages([USER, *items, USER]) == messages
    assert codec.encode_messages(messages) == ([USER, *items, USER], ())


@pytest.mark.parametrize("name", GIVEN)
def test_what_the_model_is_given_is_a_message_each_and_comes_back(name: str):
    item, message = GIVEN[name]
    assert codec.decode_messages([USER, item, USER]) == [ASK, message, ASK]
    assert codec.encode_messages([ASK, message, ASK]) == ([USER, item, USER], ())


def test_nothing_that_is_handed_in_is_changed():
    given = [item for items, _ in MADE.values() for item in items]
    before = repr(given)
    items_of(codec.decode_messages(given))
    assert repr(given) == before


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (
            {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"role": "user", "content": "hi"},
        ),
        (
            {"role": "assistant", "content": "hi"},
            says("hi"),
        ),
        (
            {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "42"}]},
            {"type": "function_call_output", "call_id": "a", "output": "42"},
        ),
        ({"id": "msg_9f"}, {"type": "item_reference", "id": "msg_9f"}),
        ({**CALLED, "status": None}, CALLED),
        ({**CALLED, "parsed_arguments": {}}, CALLED),
        ({**CALLED, "arguments": {"a": 1}}, {**CALLED, "arguments": '{"a":1}'}),
        (
            {"type": "function_call_output", "output": "42"},
            {"type": "function_call_output", "call_id": "", "output": "42"},
        ),
        (
            {"type": "reasoning", "encrypted_content": "gAAA", "status": "completed"},
            {"type": "reasoning", "encrypted_content": "gAAA", "summary": []},
        ),
        (
            {"id": "msg_9f", "role": "assistant", "content": "hi"},
            {
                "type": "message",
                "id": "msg_9f",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "hi", "annotations": []}],
            },
        ),
    ],
)
def test_what_the_codec_declares_is_written_in_its_own_way(given: dict[str, Any], written: dict[str, Any]):
    assert items_of(codec.decode_messages([given])) == [written]


@pytest.mark.parametrize("content", ["", [], [{"type": "output_text", "text": ""}]])
def test_an_assistant_message_that_says_nothing_is_left_out(content: Any):
    messages = codec.decode_messages([USER, {"role": "assistant", "content": content}, CALLED])
    assert codec.encode_messages(messages) == ([USER, CALLED], ())


def test_what_an_empty_message_has_beside_its_content_is_nobody_elses():
    empty = {"type": "message", "id": "msg_9f", "role": "assistant", "content": []}
    assert items_of(codec.decode_messages([USER, empty, says("so")])) == [USER, says("so")]


def test_a_result_is_named_after_its_call():
    output = {"type": "function_call_output", "call_id": "a", "output": "42"}
    _, result = codec.decode_messages([CALLED, output])
    assert result == AgenticMessage.tool_result("a", "f", "42")


@pytest.mark.parametrize(
    ("call", "output"),
    [
        ("a call", {"type": "function_call_output", "call_id": "a", "output": "stopped"}),
        ("a custom tool", {"type": "custom_tool_call_output", "call_id": "a", "output": "stopped"}),
        ("the local shell", {"type": "local_shell_call_output", "id": "a", "output": "stopped"}),
        (
            "the shell",
            {
                "type": "shell_call_output",
                "call_id": "a",
                "output": [{"stdout": "", "stderr": "stopped", "outcome": {"type": "exit", "exit_code": 1}}],
            },
        ),
        ("a patch", {"type": "apply_patch_call_output", "call_id": "a", "status": "failed", "output": "stopped"}),
    ],
)
def test_a_result_has_the_form_that_its_call_wants(call: str, output: dict[str, Any]):
    items, asks = MADE[call]
    result = AgenticMessage.tool_result("a", "x", "stopped", is_error=True)
    assert items_of([asks, result]) == [*items, output]


def test_output_of_the_shell_that_is_no_list_is_what_it_printed():
    _, asks = MADE["the shell"]
    *_, output = items_of([asks, AgenticMessage.tool_result("a", "shell", "a.txt")])
    assert output["output"] == [{"stdout": "a.txt", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]


@pytest.mark.parametrize("arguments", ['{"query":1}', "[]", '{"input":7}', '{"input":'])
def test_arguments_of_a_custom_tool_that_hold_no_input_are_the_input(arguments: str):
    call = FunctionToolCall("a", "sql", arguments, extra=kept(type="custom_tool_call"))
    assert items_of([AgenticMessage.assistant([call])])[0]["input"] == arguments


def test_results_and_text_of_one_message_are_items_in_their_order():
    result = FunctionToolResult("a", "f", [UserInputText("42")])
    message = AgenticMessage("user", [UserInputText("x"), result, UserInputText("y"), UserInputText("z")])
    parts = [{"type": "input_text", "text": "y"}, {"type": "input_text", "text": "z"}]
    assert items_of([message]) == [
        {"role": "user", "content": "x"},
        {"type": "function_call_output", "call_id": "a", "output": "42"},
        {"role": "user", "content": parts},
    ]


def test_what_a_message_has_beside_its_content_stands_once():
    result = FunctionToolResult("a", "f", [UserInputText("42")])
    blocks = [UserInputText("x"), result, UserInputText("y")]
    first, _, last = items_of([AgenticMessage("user", blocks, extra=kept(role="developer"))])
    assert first == {"role": "developer", "content": "x"}
    assert last == {"role": "user", "content": "y"}


def test_what_a_message_of_the_models_has_beside_its_content_stays_with_it():
    items, asks = MADE["two messages of the service"]
    first, second = asks.content_blocks
    assert items_of([replace(asks, content_blocks=(second,))]) == [items[1]]
    call = FunctionToolCall("a", "f", "{}")
    added = replace(asks, content_blocks=(call, first, second, call, AssistantGenText("c")))
    assert items_of([added]) == [CALLED, *items, CALLED, says("c")]


def test_a_result_takes_the_form_of_the_call_it_answers_now():
    result = FunctionToolResult("a", "f", [UserInputText("42")], extra=kept(type="custom_tool_call_output"))
    messages = [AgenticMessage.assistant([FunctionToolCall("a", "f", "{}")]), AgenticMessage("user", [result])]
    assert items_of(messages) == [CALLED, {"type": "function_call_output", "call_id": "a", "output": "42"}]


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (UserInputImage(base64_data="iVBO"), {"type": "input_image", "image_url": "data:image/png;base64,iVBO"}),
        (AssistantGenImage(base64_data="iVBO"), {"type": "input_image", "image_url": "data:image/png;base64,iVBO"}),
        (AssistantGenText("hi"), {"type": "input_text", "text": "hi"}),
    ],
)
def test_what_has_another_form_natively_is_written_all_the_same(block: Any, part: dict[str, Any]):
    written = codec.encode_messages([AgenticMessage("user", [block, UserInputText("x")])])
    assert written == ([{"role": "user", "content": [part, {"type": "input_text", "text": "x"}]}], ())


FOREIGN = {"anthropic": {"type": "server_tool_use"}}
NO_FORM: list[tuple[str, Any, Lost, str]] = [
    ("assistant", Reasoning("hm", "sig", extension={"wire": "anthropic"}), Lost.REASONING, "thought 'hm'"),
    ("assistant", Reasoning("hm"), Lost.REASONING, "thought 'hm'"),
    ("assistant", ServerToolCall(call_id="s", extra=FOREIGN), Lost.BLOCK, "a block of type server_tool_call"),
    ("assistant", ServerToolResult(call_id="s"), Lost.BLOCK, "a block of type server_tool_result"),
    ("assistant", MCPToolCall(call_id="m"), Lost.BLOCK, "a block of type mcp_tool_call"),
    ("assistant", MCPToolResult(call_id="m"), Lost.BLOCK, "a block of type mcp_tool_result"),
    ("assistant", Opaque({"type": "gemini.block", "value": {}}), Lost.BLOCK, "a block of type gemini.block"),
]


@pytest.mark.parametrize(("role", "block", "name", "what"), NO_FORM)
def test_what_only_another_provider_can_read_is_left_out_and_reported(role: Any, block: Any, name: Lost, what: str):
    message = AgenticMessage(role, [block, AssistantGenText("so")])
    written = codec.encode_messages([ASK, message])
    assert written.payload == [USER, says("so")]
    assert [(loss.name, loss.what, loss.index, loss.path) for loss in written.losses] == [
        (name, what, 1, "content_blocks[0]")
    ]


IN_WORDS: list[tuple[str, Any, str]] = [
    ("user", UserInputAudio(url="https://example.com/a.ogg"), "https://example.com/a.ogg"),
    ("user", UserInputVideo(base64_data="AAAA", mime_type="video/mp4"), "(video/mp4)"),
    ("user", UserInputImage(), "(media)"),
    ("user", UserInputFile(name="a.pdf"), "a.pdf"),
    ("assistant", AssistantGenImage(base64_data="iVBO", mime_type="image/png"), "(image/png)"),
    ("assistant", AssistantGenAudio(url="https://example.com/a.ogg"), "https://example.com/a.ogg"),
]


@pytest.mark.parametrize(("role", "block", "words"), IN_WORDS)
def test_media_that_have_no_place_are_told_in_words_and_reported(role: Any, block: Any, words: str):
    written = codec.encode_messages([AgenticMessage(role, [block])])
    assert written.payload == [says(words) if role == "assistant" else {"role": role, "content": words}]
    assert [loss.name for loss in written.losses] == [Lost.MEDIA]


def test_media_in_output_that_is_text_alone_are_told_in_words_and_reported():
    _, asks = MADE["the local shell"]
    result = FunctionToolResult("a", "x", [UserInputText("see"), UserInputImage(url="https://example.com/a.png")])
    written = codec.encode_messages([asks, AgenticMessage("user", [result])])
    assert written.payload[1]["output"] == "see\nhttps://example.com/a.png"
    assert [(loss.name, loss.path) for loss in written.losses] == [(Lost.MEDIA, "content_blocks[0].content[1]")]


def test_an_unknown_part_of_output_that_is_text_alone_is_reported():
    _, asks = MADE["a patch"]
    result = AgenticMessage("user", [FunctionToolResult("a", "x", [part({"type": "hologram"})])])
    written = codec.encode_messages([asks, result])
    assert written.payload[1] == {
        "type": "apply_patch_call_output",
        "call_id": "a",
        "status": "completed",
        "output": "",
    }
    assert [(loss.name, loss.what) for loss in written.losses] == [(Lost.BLOCK, "a part of type hologram")]


def test_tools_that_were_found_are_told_as_text_and_reported():
    found = ToolSearchResult("a", "find", [ToolInfo("tides", "Look up the tide.")])
    written = codec.encode_messages([AgenticMessage("user", [found])])
    assert written.payload == [
        {
            "type": "function_call_output",
            "call_id": "a",
            "output": '[{"name":"tides","description":"Look up the tide."}]',
        }
    ]
    assert [loss.name for loss in written.losses] == [Lost.BLOCK]


def test_smaller_losses_are_named_with_their_place():
    assert losses_of(FunctionToolResult("a", "f", (), is_error=True)) == [
        (Lost.ERROR, "the error flag of a", 1, "content_blocks[0]")
    ]
    assert losses_of(UserInputFile(url="https://example.com/a", name="a", mime_type="text/plain")) == [
        (Lost.DETAIL, "file name 'a'", 1, "content_blocks[0]"),
        (Lost.DETAIL, "media type text/plain", 1, "content_blocks[0]"),
    ]
    assert losses_of(UserInputImage(url="https://example.com/a", base64_data="iVBO")) == [
        (Lost.DETAIL, "address https://example.com/a", 1, "content_blocks[0]")
    ]
    call, given = MADE["a search of files"][1].content_blocks
    assert losses_of(call, replace(cast("ServerToolResult", given), extra={"mine": 1}), role="assistant") == [
        (Lost.EXTRA, "extra 'mine'", 1, "content_blocks[1]")
    ]
    assert losses_of(AssistantGenText("a", extension={"citations": []}), role="assistant") == [
        (Lost.FIELD, "citations of a text", 1, "content_blocks[0]")
    ]
    assert losses_of(UserInputText("a", extra={"anthropic": {"cache_control": {}}, "mine": 1})) == [
        (Lost.FIELD, "anthropic cache_control", 1, "content_blocks[0]"),
        (Lost.EXTRA, "extra 'mine'", 1, "content_blocks[0]"),
    ]
    assert losses_of(FunctionToolCall("a", "shell", "[]", extra=kept(type="shell_call")), role="assistant") == [
        (Lost.ARGUMENTS, "arguments '[]'", 1, "content_blocks[0].arguments")
    ]


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_what_a_message_carries_beside_its_blocks_is_reported(role: Any):
    message = AgenticMessage(role, [UserInputText("hi")], response_meta=ResponseMeta(), extra={"mine": 1})
    found = codec.encode_messages([ASK, message]).losses
    assert [(loss.name, loss.index) for loss in found] == [(Lost.META, 1), (Lost.EXTRA, 1)]


@pytest.mark.parametrize(
    ("item", "told"),
    [
        (7, "message 1: expected an object, found int"),
        ({"type": 7}, "message 1, type: expected a string, found int"),
        ({"role": "tool", "content": "x"}, "message 1, role: an item has a type or a role"),
        ({"content": "x"}, "message 1, role: an item has a type or a role"),
        ({"role": "user", "content": 7}, "message 1, content: expected a list, found int"),
        ({"role": "user", "content": [{"text": "hi"}]}, "message 1, content[0].type: expected a type"),
        (
            {"role": "user", "content": [{"type": "input_text", "text": 7}]},
            "message 1, content[0].text: expected a string, found int",
        ),
        ({**CALLED, "call_id": 7}, "message 1, call_id: expected a string, found int"),
        ({**CALLED, "id": 7}, "message 1, id: expected a string, found int"),
        ({"type": "mcp_approval_response", "approve": "yes"}, "message 1, approve: MCPToolApprovalResponse takes"),
    ],
)
def test_what_is_no_item_is_refused_with_its_place(item: Any, told: str):
    with pytest.raises(InputError) as refused:
        codec.decode_messages([USER, item])
    assert str(refused.value).startswith(told)
