"""What holds for every history: it comes back, and after a repair the API would accept it."""

import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suture
from suture.codecs import Lost, convert, decode, get_codec
from suture.messages import (
    AgenticMessage,
    AssistantGenImage,
    AssistantGenText,
    FunctionToolCall,
    FunctionToolResult,
    Opaque,
    Reasoning,
    UserInputAudio,
    UserInputText,
)
from tests.codecs.anthropic.samples import GIVEN, MADE
from tests.histories import Step, write
from tests.repair.test_properties import numbered, steps
from tests.validators import anthropic_complaint

CODEC = get_codec("anthropic")
pytestmark = pytest.mark.properties
thorough = settings(max_examples=int(os.environ.get("SUTURE_EXAMPLES", "80")), deadline=None)

words = st.text(min_size=1, max_size=12).filter(lambda text: text.strip())
arguments = st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=4) | st.none(), max_size=3)
calls = st.builds(
    lambda call_id, name, given: {"type": "tool_use", "id": call_id, "name": name, "input": given},
    st.text(max_size=4),
    st.text(max_size=4),
    arguments,
)
said = st.builds(lambda text: {"type": "text", "text": text}, words)
given_blocks = said | st.sampled_from([block for block, _ in GIVEN.values() if block["type"] != "tool_result"])
made_blocks = said | st.sampled_from([block for block, _ in MADE.values() if block["type"] != "tool_use"])
results = st.sampled_from([block for block, _ in GIVEN.values() if block["type"] == "tool_result"])


@st.composite
def items(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Return messages in the form that the codec writes: results first, calls last, results in one message."""
    made: list[dict[str, Any]] = []
    for role in draw(st.lists(st.sampled_from(["user", "carrier", "assistant"]), max_size=6)):
        if role == "assistant":
            content = [*draw(st.lists(made_blocks, max_size=3)), *draw(st.lists(calls, max_size=2))]
        elif role == "carrier" and not (made and made[-1]["content"][0]["type"] == "tool_result"):
            content = [*draw(st.lists(results, min_size=1, max_size=2)), *draw(st.lists(given_blocks, max_size=2))]
        else:
            content = draw(st.lists(given_blocks, min_size=1, max_size=3))
        if content:
            made.append({"role": "assistant" if role == "assistant" else "user", "content": content})
    return made


@given(history=items())
@thorough
def test_a_history_is_written_as_it_was_read(history: list[dict[str, Any]]):
    messages = CODEC.decode_messages(history)
    payload, losses = CODEC.encode_messages(messages)
    assert payload == history
    assert losses == ()
    assert CODEC.decode_messages(payload) == messages


@given(history=items())
@thorough
def test_a_history_survives_as_chat_messages(history: list[dict[str, Any]]):
    chat = convert(history, "anthropic", "message")
    back = decode(chat.messages, "message")
    blocks = [block for message in back for block in message.content_blocks]
    assert blocks == [block for message in CODEC.decode_messages(history) for block in message.content_blocks]


@given(blocks=st.lists(made_blocks | calls, max_size=6), reason=st.sampled_from(["end_turn", "max_tokens", "x"]))
@thorough
def test_a_stream_says_what_the_plain_reply_says(blocks: list[dict[str, Any]], reason: str):
    body = {"content": blocks, "stop_reason": reason, "usage": {"input_tokens": 2, "output_tokens": 3}}
    message = CODEC.decode_reply(body)
    reader, framing = CODEC.reader(), CODEC.framing()
    for event in CODEC.encode_stream(message).payload:
        for framed in framing.feed(CODEC.frame(event)):
            reader.feed(framed)
    assert reader.finish() == message


rules = st.tuples(st.just("system"), st.just("rules"))


@pytest.mark.parametrize("wire", ["message", "agentic"])
@given(history=st.lists(steps | rules, max_size=9).map(numbered))
@thorough
def test_a_history_that_was_mended_for_the_api_is_acceptable_to_it(wire: str, history: list[Step]):
    native = suture.repair(write(wire, history), wire=wire, profile="anthropic")
    made = convert(native.messages, wire, "anthropic")
    report = suture.check(made.messages, wire="anthropic", profile="anthropic")
    assert report.acceptable, str(report)
    assert anthropic_complaint(made.messages) == ""
    assert {loss.name for loss in made.losses} <= {Lost.REASONING, Lost.EXTRA, Lost.SYSTEM}


OWN = {"wire": "anthropic"}
spoken = [
    AssistantGenText("so"),
    AssistantGenText(" "),
    Reasoning("hm", "c2ln", extension=OWN),
    Reasoning("hm", "c2ln", extension={"wire": "gemini"}),
    Reasoning(extension={**OWN, "data": "ZW5j"}),
    AssistantGenImage(url="https://example.com/a"),
    Opaque({"type": "gemini.block", "value": {}}),
    *(native for _, native in MADE.values() if not isinstance(native, FunctionToolCall)),
]
shown = [
    UserInputText("here"),
    UserInputText(""),
    UserInputAudio(url="https://example.com/a"),
    Opaque({"type": "gemini.block", "value": {}}),
    *(native for _, native in GIVEN.values() if not isinstance(native, FunctionToolResult)),
]
native_calls = st.builds(
    FunctionToolCall, st.sampled_from("ab"), st.just("f"), st.sampled_from(["{}", '{"q', '{"q": 1}'])
)
native_results = st.builds(
    FunctionToolResult,
    st.sampled_from("ab"),
    st.just("f"),
    st.lists(st.sampled_from(shown), max_size=2).map(tuple),
    st.booleans(),
)
turns = st.builds(AgenticMessage.assistant, st.lists(st.sampled_from(spoken) | native_calls, max_size=4))
answers = st.builds(AgenticMessage.user, st.lists(st.sampled_from(shown) | native_results, max_size=4))


@pytest.mark.parametrize("wire", ["message", "agentic"])
@given(history=st.lists(turns | answers, max_size=7))
@thorough
def test_a_history_of_any_blocks_that_was_mended_for_the_api_is_acceptable_to_it(wire: str, history: list[Any]):
    native = suture.repair(convert(history, "agentic", wire).messages, wire=wire, profile="anthropic")
    made = convert(native.messages, wire, "anthropic")
    report = suture.check(made.messages, wire="anthropic", profile="anthropic")
    assert report.acceptable, str(report)
    said = [block for message in decode(native.messages, wire) for block in message.content_blocks]
    written = [block for message in made.messages for block in message["content"]]
    for kind, form in ((FunctionToolCall, "tool_use"), (FunctionToolResult, "tool_result")):
        assert sum(isinstance(block, kind) for block in said) == sum(block["type"] == form for block in written)


@pytest.mark.parametrize("wire", ["message", "agentic"])
def test_text_that_a_chat_model_said_behind_its_call_is_put_before_it(wire: str):
    blocks = [FunctionToolCall("a", "f", "{}"), AssistantGenText("see")]
    history = [AgenticMessage.assistant(blocks), AgenticMessage.tool_result("a", "f", [UserInputText("1")])]
    native = convert(history, "agentic", wire).messages
    mended = suture.repair(native, wire=wire, profile="anthropic").messages
    made = convert(mended, wire, "anthropic").messages
    assert suture.check(made, wire="anthropic", profile="anthropic").acceptable
    assert [block["type"] for block in made[0]["content"]] == ["text", "tool_use"]
