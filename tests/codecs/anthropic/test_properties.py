"""What holds for every history: it comes back, and after a repair the API would accept it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import suture
from suture.codecs import Lost, convert, decode, get_codec
from suture.codecs.contents import origin_of
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
from tests.codecs.anthropic.server import frame, write_stream
from tests.histories import Step, write
from tests.repair.test_properties import numbered, steps
from tests.validators import anthropic_complaint

CODEC = get_codec("anthropic")
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


asked = st.lists(given_blocks | results, min_size=1, max_size=4).map(
    lambda content: {"role": "user", "content": content}
)
answered = st.lists(made_blocks | calls, min_size=1, max_size=4).map(
    lambda content: {"role": "assistant", "content": content}
)
histories = st.lists(asked | answered, max_size=6)


@given(history=histories)
def test_a_history_is_written_as_it_was_read(history: list[dict[str, Any]]):
    messages = CODEC.decode_messages(history)
    payload, losses = CODEC.encode_messages(messages)
    assert payload == history
    assert losses == ()
    assert CODEC.decode_messages(payload) == messages


@given(history=histories)
def test_a_history_survives_as_chat_messages(history: list[dict[str, Any]]):
    chat = convert(history, "anthropic", "message")
    back = decode(chat.messages, "message")
    blocks = [block for message in back for block in message.content_blocks]
    assert blocks == [block for message in CODEC.decode_messages(history) for block in message.content_blocks]


@given(blocks=st.lists(made_blocks | calls, max_size=6), reason=st.sampled_from(["end_turn", "max_tokens", "x"]))
def test_a_stream_says_what_the_plain_reply_says(blocks: list[dict[str, Any]], reason: str):
    body = {"content": blocks, "stop_reason": reason, "usage": {"input_tokens": 2, "output_tokens": 3}}
    reader, framing = CODEC.reader(), CODEC.framing()
    for event in write_stream(body):
        for framed in framing.feed(frame(event)):
            reader.feed(framed)
    assert reader.finish() == CODEC.decode_reply(body)


rules = st.tuples(st.just("system"), st.just("rules"))


@pytest.mark.parametrize("wire", ["message", "agentic"])
@given(history=st.lists(steps | rules, max_size=9).map(numbered))
def test_a_history_that_was_written_and_then_repaired_is_acceptable(wire: str, history: list[Step]):
    written = convert(write(wire, history), wire, "anthropic")
    repaired = suture.repair(written.messages, wire="anthropic")
    assert suture.check(repaired.messages, wire="anthropic").acceptable, str(repaired.report)
    assert anthropic_complaint(list(repaired.messages)) == ""
    assert {loss.name for loss in written.losses} <= {Lost.REASONING, Lost.EXTRA, Lost.SYSTEM, Lost.ARGUMENTS}


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
turns = st.builds(
    lambda said, called: AgenticMessage.assistant([*said, *called]),
    st.lists(st.sampled_from([block for block in spoken if block != AssistantGenText(" ")]), max_size=3),
    st.lists(native_calls, max_size=2),
)
unsigned = [block for block in spoken if not isinstance(block, Reasoning) or origin_of(block) != "anthropic"]
mixed = st.builds(AgenticMessage.assistant, st.lists(st.sampled_from(unsigned) | native_calls, max_size=4))
answers = st.builds(AgenticMessage.user, st.lists(st.sampled_from(shown) | native_results, max_size=4))


@pytest.mark.parametrize("wire", ["message", "agentic"])
@given(history=st.lists(turns | mixed | answers, max_size=7))
def test_a_history_of_any_blocks_that_was_written_and_then_repaired_is_acceptable(wire: str, history: list[Any]):
    written = convert(convert(history, "agentic", wire).messages, wire, "anthropic").messages
    repaired = suture.repair(written, wire="anthropic")
    left = {finding.problem for finding in suture.check(repaired.messages, wire="anthropic").findings}
    # The result of a server's tool cannot be given a use that is nowhere.
    assert left <= {"split-server-tool"}, str(repaired.report)
    said = [block for message in history for block in message.content_blocks]
    blocks = [block for message in repaired.messages for block in message["content"]]
    called = [block for block in blocks if block["type"] == "tool_use"]
    assert len(called) == sum(isinstance(block, FunctionToolCall) for block in said)
