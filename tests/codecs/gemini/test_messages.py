"""Contents: the ids of their calls and responses, the system's place, and what repair makes of a written history."""

from typing import Any

import pytest

import suture
from suture.codecs import CODECS, Loss, Lost, Request, convert, decode, get_codec
from suture.messages import (
    AgenticMessage,
    AssistantGenText,
    FunctionToolCall,
    FunctionToolResult,
    Message,
    Opaque,
    Reasoning,
    ResponseMeta,
    ToolCall,
    UserInputImage,
    UserInputText,
)
from tests.codecs.gemini.samples import PIXEL

CODEC = get_codec("gemini")
ASKED: dict[str, Any] = {"role": "user", "parts": [{"text": "When is high tide?"}]}


def called(name: str, call_id: str = "", **args: Any) -> dict[str, Any]:
    return {"functionCall": {**({"id": call_id} if call_id else {}), "name": name, "args": args}}


def given(name: str, text: str, call_id: str = "") -> dict[str, Any]:
    named = {"id": call_id} if call_id else {}
    return {"functionResponse": {**named, "name": name, "response": {"output": text}}}


def turn(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


def user(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts)}


def again(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return contents that were read and written again; nothing is lost on the way."""
    payload, losses = CODEC.encode_messages(CODEC.decode_messages(items))
    assert losses == ()
    return payload


def ids(items: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the kind and id of every call and result that contents hold."""
    return [
        (type(block).__name__, block.call_id)
        for message in CODEC.decode_messages(items)
        for block in message.content_blocks
        if isinstance(block, FunctionToolCall | FunctionToolResult)
    ]


# The differences that the codec declares


def test_names_in_snake_case_are_written_in_camel_case():
    parts = [{"function_call": {"id": "a", "name": "f", "args": {"my_port": 1}}, "thought_signature": "c2ln"}]
    written = {**called("f", "a", my_port=1), "thoughtSignature": "c2ln"}
    assert again([{"role": "model", "parts": parts}]) == [turn(written)]


@pytest.mark.parametrize("role", [None, "function", "tool"])
def test_a_content_of_any_other_role_is_the_users(role: str | None):
    assert again([{"role": role, "parts": [{"text": "hi"}]}]) == [user({"text": "hi"})]


def test_null_fields_are_left_out():
    part = {"text": "hi", "thought": None, "functionCall": None}
    assert again([{"role": "user", "parts": [part]}]) == [user({"text": "hi"})]


def test_the_texts_of_a_response_become_one_before_its_media():
    image = UserInputImage(base64_data=PIXEL, mime_type="image/png")
    result = FunctionToolResult("a", "f", [UserInputText("see"), image, UserInputText("there")])
    [content] = CODEC.encode_messages([AgenticMessage("user", [result])]).payload
    response = content["parts"][0]["functionResponse"]
    assert response["response"] == {"output": "see\nthere"}
    assert response["parts"] == [{"inlineData": {"mimeType": "image/png", "data": PIXEL}}]


def test_a_result_without_content_says_an_empty_text():
    [content] = CODEC.encode_messages([AgenticMessage("user", [FunctionToolResult("a", "f")])]).payload
    assert content["parts"] == [given("f", "", "a")]


def test_a_content_without_parts_is_left_out():
    assert again([ASKED, {"role": "model", "parts": []}]) == [ASKED]
    assert again([{"role": "user", "parts": None}]) == []


def test_fields_of_a_content_that_nobody_knows_come_back():
    content = {"role": "user", "parts": [{"text": "hi"}], "cacheMark": True}
    assert again([content]) == [content]
    assert [loss.what for loss in convert([content], "gemini", "anthropic").losses] == ["gemini cacheMark"]


# Ids


def test_calls_without_ids_get_one_each_and_their_responses_the_same():
    items = [
        ASKED,
        turn(called("f"), called("g"), called("f")),
        user(given("f", "1"), given("g", "2"), given("f", "3")),
    ]
    calls, results = ids(items)[:3], ids(items)[3:]
    assert [call_id for _, call_id in calls] == ["call_1_0", "call_1_1", "call_1_2"]
    assert [call_id for _, call_id in results] == ["call_1_0", "call_1_1", "call_1_2"]
    assert again(items)[1:] == [
        turn(called("f", "call_1_0"), called("g", "call_1_1"), called("f", "call_1_2")),
        user(given("f", "1", "call_1_0"), given("g", "2", "call_1_1"), given("f", "3", "call_1_2")),
    ]


def test_an_id_that_a_call_is_given_is_none_that_another_has():
    items = [
        turn(called("f"), called("g", "call_0_0")),
        user(given("g", "G", "call_0_0"), given("f", "F")),
    ]
    (_, first), (_, second), *answered = ids(items)
    assert first != second == "call_0_0"
    assert [call_id for _, call_id in answered] == [second, first]


def test_responses_without_ids_are_matched_by_name_before_order():
    items = [ASKED, turn(called("f"), called("g")), user(given("g", "2"), given("f", "1"))]
    assert ids(items)[2:] == [("FunctionToolResult", "call_1_1"), ("FunctionToolResult", "call_1_0")]


def test_a_response_without_an_id_is_not_given_to_a_call_that_has_one_while_another_waits():
    items = [ASKED, turn(called("f", "own"), called("f")), user(given("f", "1"), given("f", "2", "own"))]
    assert ids(items)[2:] == [("FunctionToolResult", "call_1_1"), ("FunctionToolResult", "own")]


def test_a_response_without_an_id_is_given_that_of_the_call_it_answers():
    items = [ASKED, turn(called("f", "own")), user(given("f", "1"))]
    assert ids(items)[1] == ("FunctionToolResult", "own")
    assert again(items) == [*items[:2], user(given("f", "1", "own"))]


def test_the_calls_of_a_turn_that_the_sdk_recorded_as_several_contents_keep_their_responses():
    """`Chat.send_message_stream` appends each chunk as a content of its own."""
    items = [ASKED, turn(called("f")), turn({"text": "and"}), turn(called("f")), user(given("f", "1"), given("f", "2"))]
    assert [call_id for _, call_id in ids(items)] == ["call_1_0", "call_3_0", "call_1_0", "call_3_0"]
    paired = convert(items, "gemini", "anthropic").messages[-1]["content"]
    assert [(block["tool_use_id"], block["content"]) for block in paired] == [("call_1_0", "1"), ("call_3_0", "2")]


def test_a_response_belongs_to_the_latest_turn():
    items = [ASKED, turn(called("f")), ASKED, turn(called("f")), user(given("f", "1"))]
    assert ids(items)[2] == ("FunctionToolResult", "call_3_0")


@pytest.mark.parametrize(
    "items",
    [
        [user(given("f", "1"))],
        [ASKED, turn(called("f")), user(given("g", "1"))],
        [ASKED, turn(called("f")), user(given("f", "1"), given("f", "2"))],
    ],
    ids=["no call", "another name", "one too many"],
)
def test_a_response_that_answers_no_call_is_given_to_nobody(items: list[dict[str, Any]]):
    assert ids(items)[-1] == ("FunctionToolResult", "")
    assert again(items)[-1]["parts"][-1] == items[-1]["parts"][-1]


def test_an_agent_that_speaks_chat_messages_sends_signed_calls_back_with_the_ids_of_their_results():
    sent = [{**called("f", port="Dover"), "thoughtSignature": "c2ln"}, called("f", port="Hull")]
    answer = {"candidates": [{"content": {"parts": sent}, "finishReason": "STOP"}], "responseId": "NyTx"}
    [reply] = convert([CODEC.decode_reply(answer)], "agentic", "message").messages
    assert [call.id for call in reply.tool_calls] == ["call_NyTx_0", "call_NyTx_1"]
    results = [Message.tool("05:40", "call_NyTx_1"), Message.tool("06:12", "call_NyTx_0")]
    assert repaired(decode([Message.user("When?"), reply, *results], "message")) == [
        user({"text": "When?"}),
        turn(
            {**called("f", "call_NyTx_0", port="Dover"), "thoughtSignature": "c2ln"},
            called("f", "call_NyTx_1", port="Hull"),
        ),
        user(given("f", "06:12", "call_NyTx_0"), given("f", "05:40", "call_NyTx_1")),
    ]


def test_other_providers_are_sent_the_id_that_a_call_was_given():
    items = [ASKED, turn(called("f")), user(given("f", "six"))]
    chat = convert(items, "gemini", "openai-chat").messages
    assert chat[1]["tool_calls"][0]["id"] == chat[2]["tool_call_id"] == "call_1_0"


# What is written of one message, and what repair makes of it


def repaired(messages: list[AgenticMessage]) -> list[dict[str, Any]]:
    """Return what is sent to Gemini: the written contents, repaired."""
    contents = suture.repair(CODEC.encode_messages(messages).payload, wire="gemini").messages
    assert suture.check(contents, wire="gemini").acceptable
    return list(contents)


def test_a_message_is_written_whatever_stands_beside_it():
    asks = AgenticMessage.assistant([FunctionToolCall("a", "f", "{}")])
    history = [
        AgenticMessage.user("hi"),
        AgenticMessage.user("there"),
        asks,
        AgenticMessage.tool_result("a", "", "1"),
        asks,
        AgenticMessage("user", [UserInputText("Look:"), FunctionToolResult("a", "", [UserInputText("2")])]),
        AgenticMessage.system("Be brief."),
    ]
    alone = [content for message in history for content in CODEC.encode_messages([message]).payload]
    assert CODEC.encode_messages(history).payload == alone
    assert len(alone) == len(history)
    assert alone[5]["parts"] == [
        {"text": "Look:"},
        {"functionResponse": {"id": "a", "response": {"output": "2"}}},
    ]


def test_repair_joins_neighbours_orders_a_content_and_names_results_after_their_calls():
    history = [
        AgenticMessage.user("When?"),
        AgenticMessage.user("In Dover."),
        AgenticMessage.assistant([FunctionToolCall("a", "f", "{}"), FunctionToolCall("b", "g", "{}")]),
        AgenticMessage.tool_result("a", "", "1"),
        AgenticMessage("user", [UserInputText("Look:"), FunctionToolResult("b", "", [UserInputText("2")])]),
        AgenticMessage.assistant("At"),
        AgenticMessage.assistant("06:12."),
    ]
    assert repaired(history) == [
        user({"text": "When?"}, {"text": "In Dover."}),
        turn(called("f", "a"), called("g", "b")),
        user(given("f", "1", "a"), given("g", "2", "b"), {"text": "Look:"}),
        turn({"text": "At"}, {"text": "06:12."}),
    ]


def test_each_result_of_an_id_that_calls_share_is_named_after_its_own_call():
    history = [
        AgenticMessage.user("When?"),
        AgenticMessage.assistant([FunctionToolCall("x", "f", "{}"), FunctionToolCall("x", "g", "{}")]),
        AgenticMessage.tool_result("x", "g", "2"),
        AgenticMessage.tool_result("x", "", "1"),
    ]
    assert repaired(history)[2] == user(given("f", "1", "x"), given("g", "2", "x"))


def test_results_that_are_messages_of_their_own_become_one_content():
    history = [
        Message.user("When?"),
        Message.assistant("See:", [ToolCall("a", "f", "{}"), ToolCall("b", "g", "{}")]),
        Message.tool("1", "a", "f"),
        Message.tool("no", "b", "g", is_error=True),
        Message.user("And?"),
    ]
    error = {"functionResponse": {"id": "b", "name": "g", "response": {"error": "no"}}}
    assert repaired(decode(history, "message")) == [
        user({"text": "When?"}),
        turn({"text": "See:"}, called("f", "a"), called("g", "b")),
        user(given("f", "1", "a"), error, {"text": "And?"}),
    ]


def test_a_broken_history_stays_broken():
    items = [ASKED, turn(called("f", "a")), user({"text": "stop"})]
    assert again(items) == items


def test_why_a_reply_ended_and_what_it_cost_is_reported():
    reply = AgenticMessage("assistant", [AssistantGenText("hi")], response_meta=ResponseMeta(finish_reason="stop"))
    losses = CODEC.encode_messages([AgenticMessage.user("hi"), reply]).losses
    assert losses == (Loss(Lost.META, "why the reply ended and what it cost", 1, "response_meta"),)


FOREIGN = Reasoning("hm", "sig", extension={"wire": "anthropic"})


@pytest.mark.parametrize(
    "blocks",
    [[FOREIGN], [Opaque({"type": "bedrock.block", "value": {}})]],
    ids=["thought", "unknown"],
)
def test_a_message_of_which_nothing_can_be_said_is_left_out(blocks: list[Any]):
    history = [AgenticMessage.user("hi"), AgenticMessage("assistant", blocks), AgenticMessage.user("there")]
    payload, losses = CODEC.encode_messages(history)
    assert payload == [user({"text": "hi"}), user({"text": "there"})]
    assert [loss.index for loss in losses] == [1]


@pytest.mark.parametrize("wire", [name for name in CODECS if name != "gemini"])
def test_a_call_without_arguments_loses_nothing_at_another_provider(wire: str):
    history = [{"role": "model", "parts": [{"functionCall": {"id": "a", "name": "now"}}]}]
    assert get_codec(wire).encode_messages(CODEC.decode_messages(history)).losses == ()


# The system


@pytest.mark.parametrize("place", [0, 1])
def test_a_system_message_among_contents_is_told_as_the_users(place: int):
    history = [AgenticMessage.user("hi")]
    history.insert(place, AgenticMessage.system("Be brief."))
    payload, losses = CODEC.encode_messages(history)
    assert payload[place] == user({"text": "Be brief."})
    assert losses == (Loss(Lost.SYSTEM, "that this message is the system's; it is sent as the user's", place),)


def test_what_is_lost_behind_the_system_messages_of_a_request_is_named_with_its_place():
    history = [AgenticMessage.system("Be kind."), AgenticMessage.user("hi"), AgenticMessage.system("Be brief.")]
    losses = CODEC.encode_request(Request(history)).losses
    assert losses == (Loss(Lost.SYSTEM, "that this message is the system's; it is sent as the user's", 2),)


def test_a_request_says_the_instruction_and_then_the_system_messages():
    messages = [AgenticMessage.system("Be kind."), AgenticMessage.user("hi")]
    payload, losses = CODEC.encode_request(Request(messages, "Be brief."))
    assert payload == {
        "contents": [user({"text": "hi"})],
        "systemInstruction": {"parts": [{"text": "Be brief."}, {"text": "Be kind."}]},
    }
    assert losses == ()


def test_media_and_calls_of_the_system_are_told_in_words_or_reported():
    image = UserInputImage(base64_data=PIXEL, mime_type="image/png")
    system = AgenticMessage("system", [image, FunctionToolCall("a", "f"), UserInputText("so")])
    payload, losses = CODEC.encode_request(Request([system]))
    assert payload["systemInstruction"] == {"parts": [{"text": "(image/png)"}, {"text": "so"}]}
    assert [(loss.name, loss.path) for loss in losses] == [
        (Lost.MEDIA, "content_blocks[0]"),
        (Lost.BLOCK, "content_blocks[1]"),
    ]


def test_a_system_that_says_nothing_is_left_out():
    assert CODEC.encode_request(Request([AgenticMessage("system"), AgenticMessage.user("hi")])).payload == {
        "contents": [user({"text": "hi"})]
    }
