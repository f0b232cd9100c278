"""Items of Responses from and into native messages."""

from typing import Any, cast

import pytest
from msgspec.structs import replace

import suture
from suture.codecs import Lost, Request, get_codec
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
def test_an_assistant_message_that_says_nothing_is_left_out_by_a_repair(content: Any):
    messages = codec.decode_messages([USER, {"role": "assistant", "content": content}, USER])
    fixed = suture.repair(items_of(messages), wire=WIRE)
    assert (fixed.messages, fixed.unresolved) == ([USER, USER], ())


def test_what_an_empty_message_has_beside_its_content_is_nobody_elses():
    empty = {"type": "message", "id": "msg_9f", "role": "assistant", "content": []}
    assert items_of(codec.decode_messages([USER, empty, says("so")])) == [USER, says("so")]


def test_a_result_is_named_after_its_call():
    output = {"type": "function_call_output", "call_id": "a", "output": "42"}
    _, result = codec.decode_messages([CALLED, output])
    assert result == AgenticMessage.tool_result("a", "f", "42")


def answer(*content: Any, kind: str, is_error: bool = False) -> AgenticMessage:
    """Return a result of a call of the kind `kind`."""
    return AgenticMessage("user", [FunctionToolResult("a", "x", content, is_error, extra=kept(kind))])


@pytest.mark.parametrize(
    "output",
    [
        {"type": "custom_tool_call_output", "call_id": "a", "output": "stopped"},
        {"type": "local_shell_call_output", "id": "a", "output": "stopped"},
        {
            "type": "shell_call_output",
            "call_id": "a",
            "output": [{"stdout": "", "stderr": "stopped", "outcome": {"type": "exit", "exit_code": 1}}],
        },
        {"type": "apply_patch_call_output", "call_id": "a", "status": "failed", "output": "stopped"},
    ],
)
def test_a_result_has_the_form_that_its_type_wants(output: dict[str, Any]):
    assert items_of(
        [
            answer(
                UserInputText("stopped"),
                kind=output["type"].removesuffix("_call_output").removesuffix("_tool"),
                is_error=True,
            )
        ]
    ) == [output]


def test_output_of_the_shell_that_is_no_list_is_what_it_printed():
    [output] = items_of([answer(UserInputText("a.txt"), kind="shell")])
    assert output["output"] == [{"stdout": "a.txt", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]


@pytest.mark.parametrize("arguments", ['{"query":1}', "[]", '{"input":7}', '{"input":'])
def test_arguments_of_a_custom_tool_that_hold_no_input_are_the_input(arguments: str):
    call = FunctionToolCall("a", "sql", arguments, extra=kept("custom", type="custom_tool_call"))
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
    content = [UserInputText("see"), UserInputImage(url="https://example.com/a.png")]
    written = codec.encode_messages([answer(*content, kind="local_shell")])
    assert written.payload[0]["output"] == "see\nhttps://example.com/a.png"
    assert [(loss.name, loss.path) for loss in written.losses] == [(Lost.MEDIA, "content_blocks[0].content[1]")]


def test_an_unknown_part_of_output_that_is_text_alone_is_reported():
    written = codec.encode_messages([answer(part({"type": "hologram"}), kind="apply_patch")])
    [output] = written.payload
    assert output == {"type": "apply_patch_call_output", "call_id": "a", "status": "completed", "output": ""}
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
        (Lost.DETAIL, "file name a", 1, "content_blocks[0]"),
        (Lost.DETAIL, "type text/plain", 1, "content_blocks[0]"),
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
    assert losses_of(FunctionToolCall("a", "shell", "[]", extra=kept("shell")), role="assistant") == [
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


# Item ids

THOUGHT = {"type": "reasoning", "id": "rs_9f", "summary": [], "encrypted_content": "gAAA"}
CALL = {"type": "function_call", "id": "fc_9f", "call_id": "a", "name": "f", "arguments": "{}"}
SAID = {**says("so"), "id": "msg_9f", "status": "completed"}
SAID["content"][0]["annotations"] = []
SEARCH = {"type": "web_search_call", "id": "ws_9f", "status": "completed", "action": {"type": "search"}}


def without(item: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in names}


def without_reasoning(message: AgenticMessage) -> AgenticMessage:
    left = [block for block in message.content_blocks if not isinstance(block, Reasoning)]
    return replace(message, content_blocks=left)


@pytest.mark.parametrize("items", [[THOUGHT, CALL, SAID], [CALL, SAID, SEARCH]])
def test_ids_stay_where_the_reasoning_stands_or_there_was_none(items: list[Any]):
    assert codec.encode_messages(codec.decode_messages(items)) == (items, ())


def test_what_was_made_after_reasoning_that_is_gone_has_no_id():
    [message] = codec.decode_messages([THOUGHT, CALL, SAID])
    written = codec.encode_messages([without_reasoning(message)])
    assert written == ([without(CALL, "id"), without(SAID, "id", "status")], ())


def test_what_is_nothing_without_its_id_is_left_out_with_its_reasoning_and_reported():
    [message] = codec.decode_messages([THOUGHT, SEARCH, CALL])
    items, losses = codec.encode_messages([without_reasoning(message)])
    assert items == [without(CALL, "id")]
    assert [(loss.name, loss.what, loss.index, loss.path) for loss in losses] == [
        (Lost.BLOCK, "web_search_call ws_9f", 0, "content_blocks[0]")
    ]


@pytest.mark.parametrize("item", [SAID, SEARCH])
def test_an_item_id_is_sent_once_after_a_repair(item: dict[str, Any]):
    items = [USER, item, USER, item]
    assert items_of(codec.decode_messages(items)) == items
    assert suture.check(suture.repair(items, wire=WIRE).messages, wire=WIRE).acceptable


def test_where_nothing_is_stored_messages_calls_and_reasoning_go_without_ids():
    messages = codec.decode_messages([THOUGHT, CALL, SAID, SEARCH])
    written = get_codec(WIRE, store=False).encode_messages(messages)
    bare = [without(THOUGHT, "id"), without(CALL, "id"), without(SAID, "id", "status"), SEARCH]
    assert written == (bare, ())
    assert codec.encode_request(Request(messages, options={"store": False})).payload["input"] == bare
    assert codec.encode_request(Request(messages, options={"store": True})).payload["input"][0] == THOUGHT


def test_where_nothing_is_stored_reasoning_that_is_only_an_id_is_left_out_and_reported():
    messages = codec.decode_messages([without(THOUGHT, "encrypted_content"), CALL])
    items, losses = get_codec(WIRE, store=False).encode_messages(messages)
    assert items == [without(CALL, "id")]
    assert [(loss.name, loss.what, loss.path) for loss in losses] == [
        (Lost.REASONING, "thought rs_9f", "content_blocks[0]")
    ]
