"""What providers demand, on Suture's own messages; and images between sibling results, on every wire."""

import re
from typing import Any

import pytest

import suture
from suture.messages import (
    AgenticMessage,
    AssistantGenText,
    FunctionToolCall,
    FunctionToolResult,
    ImagePart,
    Message,
    Reasoning,
    ReasoningPart,
    TextPart,
    ToolCall,
    UserInputImage,
    UserInputText,
)
from tests.shapes.holding import found, left_alone, mended, unmendable
from tests.shapes.notation import call, flat, result, says, turn, user
from tests.shapes.wires import WIRES, arguments_of, read, render

BOTH = pytest.mark.parametrize("wire", ["message", "agentic"])
GO = user("go")
LEGAL = {
    "openai-chat": r".{1,40}",
    "openai-responses": r".{1,64}",
    "anthropic": r"[a-zA-Z0-9_-]+",
    "bedrock": r"[a-zA-Z0-9_-]{1,64}",
    "mistral": r"[a-zA-Z0-9]{9}",
    "minimax": r"[a-zA-Z0-9_-]+",
}
IMAGES: dict[str, Any] = {
    "message": Message("user", user_input_multi_content=(ImagePart(url="https://example.com/a.png"),)),
    "agentic": AgenticMessage("user", (UserInputImage(url="https://example.com/a.png"),)),
    "openai-chat": {
        "role": "user",
        "content": [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}],
    },
    "openai-responses": {
        "role": "user",
        "content": [{"type": "input_image", "image_url": "https://example.com/a.png"}],
    },
    "anthropic": {
        "role": "user",
        "content": [{"type": "image", "source": {"type": "url", "url": "https://example.com/a"}}],
    },
    "gemini": {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]},
    "bedrock": {"role": "user", "content": [{"image": {"format": "png", "source": {"bytes": b"AAAA"}}}]},
}


@pytest.mark.parametrize("wire", WIRES)
def test_an_image_between_sibling_results_stands_behind_them_and_is_not_lost(wire: str):
    """F20."""
    asked, first, second = turn(call("x"), call("y")), result("x", "1"), result("y", "2")
    before = render(wire, [GO, asked, first]).messages
    messages = [*before, IMAGES[wire], *render(wire, [second, says("done")]).messages]
    if wire == "openai-responses":
        left_alone(messages, wire)
        return
    fixed = mended(messages, wire)
    events = [event[:2] for event in flat(read(wire, fixed.messages)) if event[0] in {"result", "failed"}]
    assert events == [("result", "x"), ("result", "y")]
    if wire in {"gemini", "bedrock"}:  # merged into one message, the image last
        key = "parts" if wire == "gemini" else "content"
        assert fixed.messages[2][key][-1] == IMAGES[wire][key][0]
    else:
        assert any(message is IMAGES[wire] for message in fixed.messages[-2:])


@BOTH
@pytest.mark.parametrize("profile", LEGAL)
def test_ids_are_renamed_on_both_sides_and_stay_distinct(profile: str, wire: str):
    """F34."""
    ids = ["functions.search:0" + "x" * 60, "functions.search:0" + "y" * 60]
    history = render(wire, [GO, turn(*map(call, ids)), *(result(id_, id_[-1]) for id_ in ids), says("done")]).messages
    fixed = mended(history, wire, profile=profile)
    events = flat(read(wire, fixed.messages))
    calls = [event[1] for event in events if event[0] == "call"]
    assert all(re.fullmatch(LEGAL[profile], id_) for id_ in calls)
    assert len(set(calls)) == 2
    assert [event[1:] for event in events if event[0] == "result"] == [(calls[0], "x"), (calls[1], "y")]


@BOTH
@pytest.mark.parametrize("profile", ["gemini", "kimi", "deepseek", "pairing"])
def test_ids_that_a_provider_does_not_look_at_are_kept(profile: str, wire: str):
    """F34, F30."""
    one = turn(call("functions.search:0"))
    answer = result("functions.search:0", "1")
    messages = render(wire, [GO, one, answer, one, answer, says("done")]).messages
    if profile in {"kimi", "deepseek"}:
        assert not [
            each for each in suture.check(messages, wire=wire, profile=profile).findings if "id" in each.problem
        ]
    else:
        left_alone(messages, wire, profile=profile)


@BOTH
@pytest.mark.parametrize("profile", [*LEGAL, "gemini", "deepseek", "kimi"])
def test_arguments_and_names_are_made_readable(profile: str, wire: str):
    """F39, F40."""
    bad = turn(call("aaaaaaaaa", "", '{"q": "par'))
    fixed = mended(render(wire, [GO, bad, result("aaaaaaaaa", "1"), says("done")]).messages, wire, profile=profile)
    assert arguments_of(wire, fixed.messages) == ["{}"]
    assert [event[2] for event in flat(read(wire, fixed.messages)) if event[0] == "call"] == ["unknown_tool"]
    assert {"bad-arguments", "missing-name"} <= {problem for problem, _ in found(fixed)}


@BOTH
@pytest.mark.parametrize("profile", ["anthropic", "bedrock", "minimax"])
def test_an_empty_error_result_is_given_a_text(profile: str, wire: str):
    """F41."""
    messages = render(wire, [GO, turn(call("x")), result("x", "", error=True), says("done")]).messages
    fixed = mended(messages, wire, profile=profile)
    assert flat(read(wire, fixed.messages))[2][2].strip()


@pytest.mark.parametrize("profile", ["anthropic", "bedrock"])
def test_blocks_are_put_in_the_order_that_a_provider_wants(profile: str):
    """F21, F23, F25."""
    history = [
        AgenticMessage.user("go"),
        AgenticMessage.assistant(
            [FunctionToolCall("x", "f", "{}"), AssistantGenText("late words"), FunctionToolCall("y", "f", "{}")]
        ),
        AgenticMessage("user", (UserInputText("by the way"), FunctionToolResult("x", "f", (UserInputText("1"),)))),
        AgenticMessage.tool_result("y", "f", "2"),
        AgenticMessage.assistant("done"),
    ]
    fixed = mended(history, "agentic", profile=profile)
    assert read("agentic", fixed.messages)[1] == (
        "assistant",
        (("text", "late words"), ("call", "x", "f"), ("call", "y", "f")),
    )
    assert flat(read("agentic", fixed.messages))[4:] == [
        ("result", "x", "1"),
        ("result", "y", "2"),
        ("text", "by the way"),
        ("text", "done"),
    ]


def test_for_minimax_text_is_split_off_from_results():
    """F22."""
    mixed = AgenticMessage("user", (FunctionToolResult("x", "f", (UserInputText("1"),)), UserInputText("next")))
    asked = AgenticMessage.assistant([FunctionToolCall("x", "f", "{}")])
    fixed = mended([AgenticMessage.user("go"), asked, mixed], "agentic", profile="minimax")
    assert read("agentic", fixed.messages)[2:] == [("user", (("result", "x", "1"),)), ("user", (("text", "next"),))]


@BOTH
def test_for_mistral_a_short_assistant_message_stands_between_a_result_and_the_user(wire: str):
    messages = render(wire, [GO, turn(call("aaaaaaaaa")), result("aaaaaaaaa", "1"), user("next")]).messages
    fixed = mended(messages, wire, profile="mistral")
    assert len(fixed.messages) == 5
    assert read(wire, fixed.messages)[3][0] == "assistant"
    assert found(fixed) == [("tool-then-user", 3)]


@BOTH
@pytest.mark.parametrize("profile", ["gemini", "bedrock"])
def test_a_history_that_starts_with_the_model_is_given_a_user_turn(profile: str, wire: str):
    """F29."""
    messages = render(wire, [turn(call("x")), result("x", "1"), says("done")]).messages
    fixed = mended(messages, wire, profile=profile)
    assert list(fixed.messages[1:]) == messages
    assert fixed.messages[0].role == "user"


@pytest.mark.parametrize("profile", ["openai-chat", "deepseek", "kimi"])
def test_media_in_results_is_shown_behind_them_where_a_tool_message_is_text(profile: str):
    """F20."""
    image = ImagePart(url="https://example.com/a.png")
    history = [
        Message.user("go"),
        Message.assistant("", [ToolCall("x", "f", "{}"), ToolCall("y", "f", "{}")]),
        Message.tool([TextPart("see"), image], "x", "f"),
        Message.tool("2", "y", "f"),
        Message.assistant("done"),
    ]
    fixed = mended(history, "message", profile=profile)
    assert [message.role for message in fixed.messages] == ["user", "assistant", "tool", "tool", "user", "assistant"]
    assert image in fixed.messages[4].user_input_multi_content
    assert not any(isinstance(part, ImagePart) for part in fixed.messages[2].user_input_multi_content)
    assert TextPart("see") in fixed.messages[2].user_input_multi_content
    left_alone(history, "message", profile="anthropic")


def test_a_signed_turn_is_not_touched_and_what_is_wrong_with_it_is_told():
    """F48."""
    signed = [Reasoning("hm", "c2ln"), FunctionToolCall("x", "f", "{}"), AssistantGenText("late words")]
    history = [AgenticMessage.user("go"), AgenticMessage.assistant(signed), AgenticMessage.tool_result("x", "f", "1")]
    assert unmendable(history, "agentic", "text-after-calls", profile="anthropic").messages is history

    thinking = Message(
        "assistant",
        assistant_gen_multi_content=(ReasoningPart("hm", "c2ln"),),
        tool_calls=(ToolCall("x", "f", '{"q'),),
    )
    history = [Message.user("go"), thinking, Message.tool("1", "x", "f")]
    assert unmendable(history, "message", "bad-arguments", profile="anthropic").messages is history


def test_in_a_signed_turn_only_ids_change():
    """F34, F48."""
    signed = AgenticMessage.assistant([Reasoning("hm", "c2ln"), FunctionToolCall("a.b", "f", "{}")])
    fixed = mended(
        [AgenticMessage.user("go"), signed, AgenticMessage.tool_result("a.b", "f", "1")], "agentic", profile="anthropic"
    )
    thought, asked = fixed.messages[1].content_blocks
    assert thought == Reasoning("hm", "c2ln")
    assert (asked.name, asked.arguments) == ("f", "{}")
    assert asked.call_id != "a.b"
    assert fixed.messages[2].content_blocks[0].call_id == asked.call_id


def test_what_a_message_carries_beside_is_kept_when_it_changes():
    """Unknown data, metadata and `extra` belong to the user."""
    asked = Message(
        "assistant", "hi", tool_calls=(ToolCall("a.b", "f", "{}", index=3, extra={"k": 1}),), extra={"m": 2}, name="bob"
    )
    fixed = mended([Message.user("go"), asked, Message.tool("1", "a.b", "f")], "message", profile="anthropic")
    changed = fixed.messages[1]
    assert (changed.content, changed.name, dict(changed.extra)) == ("hi", "bob", {"m": 2})
    assert (changed.tool_calls[0].index, dict(changed.tool_calls[0].extra)) == (3, {"k": 1})
