"""Messages of Chat Completions, read and written."""

from copy import deepcopy
from typing import Any

import pytest
from openai.types.chat import ChatCompletionMessage

import suture
from suture.codecs import Lost, get_codec, to_agentic
from suture.errors import InputError
from suture.messages import (
    AgenticMessage,
    AssistantGenText,
    FunctionToolCall,
    FunctionToolResult,
    Message,
    Reasoning,
    UserInputImage,
    UserInputText,
    message_from_dict,
    message_to_dict,
)
from suture.profiles import get_profile
from tests.codecs.openai_chat.samples import (
    CALL,
    CALLED,
    IMAGE,
    MESSAGES,
    PIXEL,
    WORDS,
    answer,
    made,
    reply,
    result,
    thought,
)

CODEC = get_codec("openai-chat")
everything = pytest.mark.parametrize(("item", "message"), MESSAGES.values(), ids=MESSAGES)
PICTURE = UserInputImage(base64_data=PIXEL, mime_type="image/png")


def written(*messages: AgenticMessage, field: str = "") -> list[dict[str, Any]]:
    """Return what `messages` become, where nothing may be lost."""
    payload, losses = get_codec("openai-chat", field=field).encode_messages(messages)
    assert losses == ()
    return payload


@everything
def test_a_message_is_read(item: dict[str, Any], message: AgenticMessage):
    assert CODEC.decode_messages([item]) == [message]


@everything
def test_what_was_read_is_written_as_it_was(item: dict[str, Any], message: AgenticMessage):
    assert written(message) == [item]


@everything
def test_what_was_read_can_be_stored_and_is_then_written_as_it_was(item: dict[str, Any], message: AgenticMessage):
    assert written(message_from_dict(message_to_dict(message))) == [item]  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("item", [pytest.param(item, id=name) for name, (item, _) in MESSAGES.items()])
def test_reading_changes_nothing_of_the_users(item: dict[str, Any]):
    before = deepcopy(item)
    CODEC.encode_messages(CODEC.decode_messages([item]))
    assert item == before


DIFFERENCES: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "a field that is null": ([made("6.", refusal=None, audio=None, function_call=None)], [made("6.")]),
    "a user's content that is null": ([{"role": "user", "content": None}], [{"role": "user", "content": ""}]),
    "an empty text beside calls": ([made("", tool_calls=[CALL])], [made(None, tool_calls=[CALL])]),
    "no text at all": ([{"role": "assistant"}], [made("")]),
    "an empty list of calls": ([made("6.", tool_calls=[])], [made("6.")]),
    "the index of a call": ([made(tool_calls=[{**CALL, "index": 0}])], [made(tool_calls=[CALL])]),
    "a refusal among the parts": ([made([{"type": "refusal", "refusal": "No."}])], [made(refusal="No.")]),
    "arguments that are an object": (
        [made(tool_calls=[{**CALL, "function": {"name": "tides", "arguments": {"port": "Dover"}}}])],
        [made(tool_calls=[{**CALL, "function": {"name": "tides", "arguments": '{"port":"Dover"}'}}])],
    ),
    "a sound, which is kept by its id": (
        [made(audio={"id": "audio_1", "data": "AAAA", "expires_at": 7, "transcript": "Six."})],
        [made(audio={"id": "audio_1"})],
    ),
}


@pytest.mark.parametrize(("items", "again"), DIFFERENCES.values(), ids=DIFFERENCES)
def test_what_comes_back_differs_only_as_declared(items: list[dict[str, Any]], again: list[dict[str, Any]]):
    assert written(*CODEC.decode_messages(items)) == again
    assert written(*CODEC.decode_messages(again)) == again


def test_the_sdks_objects_are_read():
    said = ChatCompletionMessage.model_validate(
        {"role": "assistant", "content": None, "refusal": None, "tool_calls": [CALL]}
    )
    assert CODEC.decode_messages([said]) == [reply(CALLED)]


# What was not read here


def test_the_texts_of_one_message_become_one():
    texts = [UserInputText("a"), UserInputText("b")]
    assert written(AgenticMessage.user(texts), AgenticMessage("system", texts), result(*texts)) == [
        {"role": "user", "content": "a\nb"},
        {"role": "system", "content": "a\nb"},
        answer("a\nb"),
    ]


def test_texts_of_the_model_are_one_text_whatever_stood_between():
    blocks = [AssistantGenText("At "), AssistantGenText("six."), CALLED, AssistantGenText(" So.")]
    assert written(reply(*blocks)) == [made("At six. So.", tool_calls=[CALL])]


def test_results_are_messages_of_their_own_where_they_stand():
    block = FunctionToolResult("call_1", "tides", [UserInputText("06:12")])
    said = AgenticMessage("user", [UserInputText("So?"), block, UserInputText("Well?")])
    assert written(said) == [{"role": "user", "content": "So?"}, answer(), {"role": "user", "content": "Well?"}]
    assert written(reply(CALLED, block, WORDS)) == [made(tool_calls=[CALL]), answer(), made("At 06:12.")]


def test_what_the_models_message_carries_stays_on_it_though_a_result_follows():
    result = FunctionToolResult("a", "f", [UserInputText("1")])
    message = AgenticMessage("assistant", [AssistantGenText("hi"), result], extra={"openai-chat": {"x": 1}})
    assert CODEC.encode_messages([message]).payload == [
        {"role": "assistant", "content": "hi", "x": 1},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
    ]


@pytest.mark.parametrize("kind", [[], {}, 5])
def test_what_has_a_type_that_is_no_text_is_kept_whole(kind: Any):
    call = {"id": "a", "type": kind}
    part = {"type": kind, "role": "pilot"}
    items = [made(tool_calls=[call]), made([part]), {"role": "user", "content": [part]}, answer([part])]
    assert written(*CODEC.decode_messages(items)) == items


def test_media_stay_in_the_result_that_holds_them():
    assert written(result(UserInputText("a"), PICTURE)) == [answer([{"type": "text", "text": "a"}, IMAGE])]


def test_a_message_is_written_alike_whatever_stands_beside_it():
    history = [message for _, message in MESSAGES.values()]
    assert written(*history) == [item for message in history for item in written(message)]


@pytest.mark.parametrize("profile", ["openai-chat", "deepseek", "kimi"])
def test_a_history_with_media_in_its_results_is_acceptable_once_it_is_repaired(profile: str):
    calls = [FunctionToolCall(call_id, "look", "{}") for call_id in ("a", "b")]
    seen = [FunctionToolResult(call.call_id, "look", [PICTURE]) for call in calls]
    said = AgenticMessage("user", [seen[0], UserInputText("So?"), seen[1]])
    codec = get_codec("openai-chat", field=get_profile(profile).field)
    payload = codec.encode_messages([AgenticMessage.user("Look."), reply(*calls), said]).payload
    fixed = suture.repair(payload, wire="openai-chat", profile=profile)
    assert suture.check(fixed.messages, wire="openai-chat", profile=profile).acceptable
    assert [item["role"] for item in fixed.messages] == ["user", "assistant", "tool", "tool", "user", "user"]
    assert str(fixed.messages).count(PIXEL) == 2


def test_the_name_of_who_speaks_crosses_from_a_chat_message():
    assert written(to_agentic(Message("user", "hi", name="ann"))) == [{"role": "user", "content": "hi", "name": "ann"}]


def test_a_custom_call_crosses_as_a_chat_message():
    items = [made(tool_calls=[{"id": "c", "type": "custom", "custom": {"name": "shell", "input": "ls"}}])]
    (message,) = CODEC.decode_messages(items)
    (block,) = message.content_blocks
    assert isinstance(block, FunctionToolCall)
    assert written(message) == items


# A server that demands a thought


def test_a_demanded_field_holds_any_thought_and_repair_adds_it_beside_calls():
    signed = Reasoning("Hm.", extension={"wire": "anthropic"})
    history = [reply(signed, CALLED), result(), reply(CALLED), result(), reply(thought("Hm."), WORDS)]
    payload = written(*history, field="reasoning_content")
    assert payload == [
        made(tool_calls=[CALL], reasoning_content="Hm."),
        answer(""),
        made(tool_calls=[CALL]),
        answer(""),
        made("At 06:12.", reasoning_content="Hm."),
    ]
    fixed = suture.repair(payload, wire="openai-chat", profile="deepseek").messages
    assert fixed[2]["reasoning_content"] == ""
    assert suture.check(fixed, wire="openai-chat", profile="deepseek").acceptable


def test_a_demanded_field_takes_the_place_of_another():
    said = reply(thought("Hm.", field="reasoning"), CALLED)
    assert written(said, field="reasoning_content") == [made(tool_calls=[CALL], reasoning_content="Hm.")]


def test_a_demanded_field_cannot_hold_what_is_signed():
    codec = get_codec("openai-chat", field="reasoning_content")
    said = reply(Reasoning("Hm.", "c2ln", extension={"wire": "anthropic"}), CALLED)
    payload, losses = codec.encode_messages([said])
    assert payload == [made(tool_calls=[CALL], reasoning_content="Hm.")]
    assert [(loss.name, loss.what) for loss in losses] == [(Lost.FIELD, "the signature of a thought")]


# What cannot be read


@pytest.mark.parametrize(
    ("item", "path"),
    [
        ("hi", "role"),
        ({"content": "hi"}, "role"),
        ({"role": "pilot", "content": "hi"}, "role"),
        ({"role": ["user"], "content": "hi"}, "role"),
        ({"role": "user", "content": 7}, "content"),
        ({"role": "user", "content": ["hi"]}, "content[0]"),
        ({"role": "assistant", "content": {}}, "content"),
        ({"role": "assistant", "content": [7]}, "content[0]"),
        ({"role": "assistant", "tool_calls": {}}, "tool_calls"),
        ({"role": "assistant", "tool_calls": [CALL, 7]}, "tool_calls[1]"),
        ({"role": "tool", "tool_call_id": 7, "content": "6."}, "tool_call_id"),
    ],
)
def test_what_is_no_message_is_refused_by_its_place(item: Any, path: str):
    with pytest.raises(InputError) as caught:
        CODEC.read_messages([{"role": "user", "content": "hi"}, item])
    assert (caught.value.index, caught.value.path) == (1, path)
