"""Contents as Gemini accepts them: their neighbours, their calls and responses, the system's place."""

import time
from typing import Any

import pytest

import suture
from suture.codecs import Loss, Lost, Request, convert, get_codec
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
from suture.providers.gemini.read import Calls
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
    parts = [{"function_call": {"name": "f", "args": {"my_port": 1}}, "thought_signature": "c2ln"}]
    written = {"functionCall": {"name": "f", "args": {"my_port": 1}}, "thoughtSignature": "c2ln"}
    assert again([{"role": "model", "parts": parts}]) == [turn(written)]


@pytest.mark.parametrize("role", [None, "function", "tool"])
def test_a_content_of_any_other_role_is_the_users(role: str | None):
    assert again([{"role": role, "parts": [{"text": "hi"}]}]) == [user({"text": "hi"})]


def test_null_fields_are_left_out():
    part = {"text": "hi", "thought": None, "functionCall": None}
    assert again([{"role": "user", "parts": [part]}]) == [user({"text": "hi"})]


def test_neighbouring_contents_of_one_role_become_one():
    items = [ASKED, user({"text": "In Dover."}), turn({"text": "At"}), turn({"text": "06:12."})]
    assert again(items) == [user(*ASKED["parts"], {"text": "In Dover."}), turn({"text": "At"}, {"text": "06:12."})]


def test_a_response_stands_before_what_else_its_content_holds():
    items = [ASKED, turn(called("f", "a")), user({"text": "Look:"}, given("f", "six", "a"))]
    assert again(items)[2] == user(given("f", "six", "a"), {"text": "Look:"})


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


def test_a_content_without_parts_stays_one():
    assert again([ASKED, {"role": "model", "parts": []}]) == [ASKED, turn()]
    assert again([{"role": "user", "parts": None}]) == [user()]


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
    assert again(items) == items


def test_an_id_that_is_given_is_none_that_another_call_has():
    items = [
        {
            "role": "model",
            "parts": [{"functionCall": {"name": "f"}}, {"functionCall": {"id": "call_0_0", "name": "g"}}],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "call_0_0", "name": "g", "response": {"output": "G"}}},
                {"functionResponse": {"name": "f", "response": {"output": "F"}}},
            ],
        },
    ]
    messages = CODEC.decode_messages(items)
    blocks: list[Any] = [block for message in messages for block in message.content_blocks]
    first, second, *answered = [block.call_id for block in blocks]
    assert first != second == "call_0_0"
    assert answered == [second, first]
    assert CODEC.encode_messages(messages) == (items, ())


def test_the_responses_of_many_calls_are_matched_in_linear_time():
    count, calls = 100_000, Calls()
    calls.begin("0")
    start = time.perf_counter()
    for place in range(count):
        calls.open({"id": str(place), "name": "f"})
    for place in reversed(range(count)):
        assert calls.answer({"id": str(place), "name": "f"}) == str(place)
    assert time.perf_counter() - start < 60  # a second; looking through all calls for each takes many minutes


def test_responses_without_ids_are_matched_by_name_before_order():
    items = [ASKED, turn(called("f"), called("g")), user(given("g", "2"), given("f", "1"))]
    assert ids(items)[2:] == [("FunctionToolResult", "call_1_1"), ("FunctionToolResult", "call_1_0")]


def test_a_response_without_an_id_is_not_given_to_a_call_that_has_one_while_another_waits():
    items = [ASKED, turn(called("f", "own"), called("f")), user(given("f", "1"), given("f", "2", "own"))]
    assert ids(items)[2:] == [("FunctionToolResult", "call_1_1"), ("FunctionToolResult", "own")]
    assert again(items) == items


def test_a_response_without_an_id_answers_a_call_that_has_one():
    items = [ASKED, turn(called("f", "own")), user(given("f", "1"))]
    assert ids(items)[1] == ("FunctionToolResult", "own")
    assert again(items) == items


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
    assert again(items) == items


def test_an_id_that_was_given_is_never_sent_to_gemini_nor_with_its_response():
    call = CODEC.decode_messages([turn(called("f"))])[0]
    answered = AgenticMessage.tool_result("call_0_0", "f", "six")
    assert CODEC.encode_messages([call, answered]).payload == [turn(called("f")), user(given("f", "six"))]


def test_an_agent_that_speaks_chat_messages_sends_a_signed_call_back_as_it_came():
    sent = {**called("f", port="Dover"), "thoughtSignature": "c2ln"}
    answer = {"candidates": [{"content": {"parts": [sent]}, "finishReason": "STOP"}], "responseId": "NyTx"}
    [reply] = convert([CODEC.decode_reply(answer)], "agentic", "message").messages
    assert [call.id for call in reply.tool_calls] == ["call_NyTx_0"]
    history = [Message.user("When?"), reply, Message.tool("06:12", "call_NyTx_0", "f")]
    contents = convert(history, "message", "gemini").messages
    assert contents == [user({"text": "When?"}), turn(sent), user(given("f", "06:12"))]
    assert suture.check(contents, wire="gemini", profile="gemini").acceptable


def test_other_providers_are_sent_the_id_that_was_given():
    items = [ASKED, turn(called("f")), user(given("f", "six"))]
    chat = convert(items, "gemini", "openai-chat").messages
    assert chat[1]["tool_calls"][0]["id"] == chat[2]["tool_call_id"] == "call_1_0"


def test_a_result_carries_the_name_of_the_call_before_it_with_its_id():
    steps = [
        AgenticMessage.assistant([FunctionToolCall("a", "f", "{}")]),
        AgenticMessage.tool_result("a", "", "1"),
        AgenticMessage.assistant([FunctionToolCall("a", "g", "{}")]),
        AgenticMessage.tool_result("a", "", "2"),
    ]
    payload = CODEC.encode_messages(steps).payload
    assert [content["parts"][0]["functionResponse"]["name"] for content in payload[1::2]] == ["f", "g"]


# Histories of an agent


def test_results_that_are_messages_of_their_own_become_one_content():
    history = [
        Message.user("When?"),
        Message.assistant("See:", [ToolCall("a", "f", "{}"), ToolCall("b", "g", "{}")]),
        Message.tool("1", "a", "f"),
        Message.tool("no", "b", "g", is_error=True),
        Message.user("And?"),
    ]
    contents = convert(history, "message", "gemini").messages
    error = {"functionResponse": {"id": "b", "name": "g", "response": {"error": "no"}}}
    assert contents == [
        user({"text": "When?"}),
        turn({"text": "See:"}, called("f", "a"), called("g", "b")),
        user(given("f", "1", "a"), error, {"text": "And?"}),
    ]
    assert suture.check(contents, wire="gemini", profile="gemini").acceptable


def test_a_broken_history_stays_broken():
    items = [ASKED, turn(called("f", "a")), user({"text": "stop"})]
    assert again(items) == items


FOREIGN = Reasoning("hm", "sig", extension={"wire": "anthropic"})


@pytest.mark.parametrize(
    "blocks",
    [[FOREIGN], [FOREIGN, AssistantGenText(" ")], [Opaque({"type": "bedrock.block", "value": {}})]],
    ids=["thought", "thought and blank text", "unknown"],
)
def test_a_message_of_which_nothing_can_be_said_is_left_out(blocks: list[Any]):
    history = [AgenticMessage.user("hi"), AgenticMessage("assistant", blocks), AgenticMessage.user("there")]
    payload, losses = CODEC.encode_messages(history)
    assert payload == [user({"text": "hi"}, {"text": "there"})]
    assert [loss.index for loss in losses] == [1]


def test_why_a_reply_ended_and_what_it_cost_is_reported():
    reply = AgenticMessage("assistant", [AssistantGenText("hi")], response_meta=ResponseMeta(finish_reason="stop"))
    losses = CODEC.encode_messages([AgenticMessage.user("hi"), reply]).losses
    assert losses == (Loss(Lost.META, "why the reply ended and what it cost", 1, "response_meta"),)


# The system


def test_a_system_message_at_the_beginning_has_no_place_among_contents():
    payload, losses = CODEC.encode_messages([AgenticMessage.system("Be brief."), AgenticMessage.user("hi")])
    assert payload == [user({"text": "hi"})]
    assert losses == (Loss(Lost.SYSTEM, "the system message at the beginning; a request has a place for it", 0),)


def test_a_system_message_in_the_middle_is_told_as_the_users():
    history = [AgenticMessage.user("hi"), AgenticMessage.assistant("yes?"), AgenticMessage.system("Be brief.")]
    payload, losses = CODEC.encode_messages(history)
    assert payload[2] == user({"text": "Be brief."})
    assert losses == (Loss(Lost.SYSTEM, "that the system says this", 2),)


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
