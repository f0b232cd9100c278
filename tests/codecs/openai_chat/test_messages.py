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
    ADDRESS,
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
    "media in a result": (
        [answer([{"type": "text", "text": "6."}, IMAGE])],
        [answer("6.\n(image/png)"), {"role": "user", "content": [IMAGE]}],
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


def test_texts_of_the_models_go_on_unless_something_stood_between():
    blocks = [AssistantGenText("At "), AssistantGenText("six."), CALLED, AssistantGenText("So.")]
    assert written(reply(*blocks)) == [made("At six.\nSo.", tool_calls=[CALL])]


def test_results_stand_before_what_the_user_says_with_them():
    block = FunctionToolResult("call_1", "tides", [UserInputText("06:12")])
    message = AgenticMessage("user", [UserInputText("So?"), block])
    assert written(message) == [answer(), {"role": "user", "content": "So?"}]


def test_a_result_in_the_models_message_is_not_lost():
    block = FunctionToolResult("call_1", "tides", [UserInputText("06:12")])
    assert written(reply(CALLED, block)) == [made(tool_calls=[CALL]), answer()]


def test_what_the_models_message_carries_stays_on_it_though_a_result_follows():
    result = FunctionToolResult("a", "f", [UserInputText("1")])
    message = AgenticMessage("assistant", [AssistantGenText("hi"), result], extra={"openai-chat": {"x": 1}})
    assert CODEC.encode_messages([message]).payload == [
        {"role": "assistant", "content": "hi", "x": 1},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
    ]


def test_a_call_whose_type_is_no_text_is_kept_whole():
    for kind in ([], {}, 5):
        item = {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "type": kind}]}
        messages = CODEC.decode_messages([item])
        assert CODEC.encode_messages(messages) == ([item], ())


def test_media_of_a_run_of_results_are_shown_after_the_last():
    other = FunctionToolResult("call_2", "tides", [UserInputImage(url=ADDRESS)])
    history = [
        result(UserInputText("a"), PICTURE),
        AgenticMessage("user", [other, UserInputText("So?")]),
        result(PICTURE),
        AgenticMessage.assistant("Yes."),
    ]
    shown = {"type": "image_url", "image_url": {"url": ADDRESS}}
    assert written(*history) == [
        answer("a\n(image/png)"),
        {"role": "tool", "tool_call_id": "call_2", "content": ADDRESS},
        {"role": "user", "content": [IMAGE, shown]},
        {"role": "user", "content": "So?"},
        answer("(image/png)"),
        {"role": "user", "content": [IMAGE]},
        made("Yes."),
    ]


def test_media_of_the_last_results_are_shown_at_the_end():
    assert written(result(PICTURE)) == [answer("(image/png)"), {"role": "user", "content": [IMAGE]}]


@pytest.mark.parametrize("profile", ["openai-chat", "deepseek", "kimi"])
def test_a_history_with_media_in_its_results_is_acceptable_repaired_or_not(profile: str):
    calls = [FunctionToolCall(call_id, "look", "{}") for call_id in ("a", "b")]
    seen = [AgenticMessage("user", [FunctionToolResult(call.call_id, "look", [PICTURE])]) for call in calls]
    history = [AgenticMessage.user("Look."), reply(*calls), *seen, AgenticMessage.user("So?")]
    codec = get_codec("openai-chat", field=get_profile(profile).field)
    for messages in (history, suture.repair(history, wire="agentic", profile=profile).messages):
        payload = codec.encode_messages(messages).payload
        assert suture.check(payload, wire="openai-chat", profile=profile).acceptable
        assert str(payload).count(PIXEL) == 2


def test_the_name_of_who_speaks_crosses_from_a_chat_message():
    assert written(to_agentic(Message("user", "hi", name="ann"))) == [{"role": "user", "content": "hi", "name": "ann"}]


def test_a_custom_call_crosses_as_a_chat_message():
    items = [made(tool_calls=[{"id": "c", "type": "custom", "custom": {"name": "shell", "input": "ls"}}])]
    (message,) = CODEC.decode_messages(items)
    (block,) = message.content_blocks
    assert isinstance(block, FunctionToolCall)
    assert written(message) == items


# A server that demands a thought


def test_a_demanded_field_holds_any_thought_and_is_there_beside_calls():
    signed = Reasoning("Hm.", extension={"wire": "anthropic"})
    history = [reply(signed, CALLED), reply(CALLED), reply(WORDS), reply(thought("Hm."), WORDS)]
    assert written(*history, field="reasoning_content") == [
        made(tool_calls=[CALL], reasoning_content="Hm."),
        made(tool_calls=[CALL], reasoning_content=""),
        made("At 06:12."),
        made("At 06:12.", reasoning_content="Hm."),
    ]


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
