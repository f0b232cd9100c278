"""Messages are joined from their pieces, and taken apart into them."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture.errors import InputError
from suture.messages import (
    AgenticMessage,
    AssistantGenText,
    Delta,
    FunctionToolCall,
    ImagePart,
    Message,
    Reasoning,
    ReasoningPart,
    ResponseMeta,
    TextPart,
    TokenUsage,
    ToolCall,
    ToolResult,
)
from suture.wires import Call, ChatWire
from tests.wires.chat import AGENTIC, CALL, CHAT, CHAT_WIRES, MESSAGE, chat_call, on_each_wire

USAGE = TokenUsage(prompt_tokens=900, completion_tokens=40, total_tokens=940)


TURN = [
    Delta(reasoning="Hm"),
    Delta(reasoning=", so."),
    Delta("Let me "),
    Delta("see."),
    Delta(call_index=1, call_id="b", name="g", arguments='{"q"'),
    Delta(call_index=0, call_id="a", name="f"),
    Delta(call_index=1, arguments=": 1}"),
    Delta(call_index=0, arguments="{}"),
    Delta(usage=USAGE),
]
WHOLE = [
    Message(
        "assistant",
        "Let me see.",
        reasoning_content="Hm, so.",
        tool_calls=(ToolCall("a", "f", "{}"), ToolCall("b", "g", '{"q": 1}')),
        response_meta=ResponseMeta(usage=USAGE),
    ),
    AgenticMessage(
        "assistant",
        (
            Reasoning("Hm, so."),
            AssistantGenText("Let me see."),
            FunctionToolCall("a", "f", "{}"),
            FunctionToolCall("b", "g", '{"q": 1}'),
        ),
        response_meta=ResponseMeta(usage=USAGE),
    ),
    {
        "role": "assistant",
        "content": "Let me see.",
        "reasoning_content": "Hm, so.",
        "tool_calls": [chat_call("a", "f", "{}"), chat_call("b", "g", '{"q": 1}')],
    },
]


@pytest.mark.parametrize(("wire", "whole"), [*zip(CHAT_WIRES, WHOLE, strict=True)], ids=["message", "agentic", "chat"])
def test_pieces_are_joined_to_one_message_with_the_calls_in_the_order_of_their_index(wire: ChatWire, whole: Any):
    assert wire.join(TURN) == whole


@on_each_wire
def test_the_pieces_of_a_message_are_its_reasoning_its_text_each_call_and_what_it_cost(wire: ChatWire):
    cost = [] if wire is CHAT else [Delta(usage=USAGE)]
    assert wire.deltas(wire.join(TURN)) == [
        Delta(reasoning="Hm, so."),
        Delta("Let me see."),
        Delta(call_index=0, call_id="a", name="f", arguments="{}"),
        Delta(call_index=1, call_id="b", name="g", arguments='{"q": 1}'),
        *cost,
    ]


@on_each_wire
@pytest.mark.parametrize("deltas", [[], [Delta()], [Delta(""), Delta(usage=USAGE)]])
def test_pieces_that_say_nothing_make_no_message(wire: ChatWire, deltas: list[Delta]):
    assert wire.join(deltas) is None


@on_each_wire
def test_arguments_that_broke_off_are_kept_as_they_are(wire: ChatWire):
    message = wire.join([Delta(call_index=4, call_id="a", name="f", arguments='{"q": "x')])
    assert wire.calls(message) == (Call("a", "f", '{"q": "x'),)


@on_each_wire
def test_a_call_that_repeats_its_id_and_name_is_one_call(wire: ChatWire):
    piece = Delta(call_index=0, call_id="a", name="f", arguments="{")
    assert wire.calls(wire.join([piece, msgspec.structs.replace(piece, arguments="}")])) == (Call("a", "f", "{}"),)


@on_each_wire
def test_the_last_word_on_what_a_reply_cost_counts(wire: ChatWire):
    message = wire.join([Delta("a", usage=TokenUsage(prompt_tokens=1)), Delta(usage=USAGE), Delta("b")])
    assert wire.usage(message) == (None if wire is CHAT else USAGE)
    assert wire.text(message) == "ab"


def test_a_chat_message_of_calls_alone_has_no_content():
    assert CHAT.join([Delta(call_index=0, call_id="call_1", name="search", arguments="{}")]) == {
        "role": "assistant",
        "content": None,
        "tool_calls": [chat_call()],
    }


def test_an_agentic_message_keeps_the_order_in_which_things_were_said():
    deltas = [
        Delta("First."),
        Delta(call_index=0, call_id="a", name="f"),
        Delta("Then.", "Hm."),
        Delta(" Yes."),
        Delta(call_index=1, call_id="b", name="g"),
    ]
    blocks = (
        AssistantGenText("First."),
        FunctionToolCall("a", "f"),
        Reasoning("Hm."),
        AssistantGenText("Then. Yes."),
        FunctionToolCall("b", "g"),
    )
    assert AGENTIC.join(deltas) == AgenticMessage("assistant", blocks)


def test_a_piece_of_a_call_must_say_of_which():
    fields: Any
    for fields in ({"call_id": "a"}, {"name": "f"}, {"arguments": "{}"}):
        with pytest.raises(InputError, match="call_index: a piece of a call says which"):
            Delta(**fields)


words = st.text(max_size=6)
spoken = st.text(min_size=1, max_size=6)
calls = st.lists(st.tuples(words, words, words), max_size=3)
costs = st.none() | st.builds(TokenUsage, prompt_tokens=st.integers(0, 99), cached_tokens=st.integers(0, 9))


def metered(usage: TokenUsage | None) -> ResponseMeta | None:
    return None if usage is None else ResponseMeta(usage=usage)


def says_something(text: str, thought: str, made: Sequence[Any]) -> bool:
    return bool(text or thought or made)


@given(words, words, calls, costs)
def test_a_message_is_joined_again_from_its_pieces(text: str, thought: str, made: Any, usage: TokenUsage | None):
    message = Message(
        "assistant",
        text,
        reasoning_content=thought,
        tool_calls=tuple(ToolCall(*call) for call in made),
        response_meta=metered(usage),
    )
    assert MESSAGE.join(MESSAGE.deltas(message)) == (message if says_something(text, thought, made) else None)


@given(words, words, calls)
def test_a_chat_message_is_joined_again_from_its_pieces(text: str, thought: str, made: Any):
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if thought:
        message["reasoning_content"] = thought
    if made:
        message["tool_calls"] = [chat_call(*call) for call in made]
    assert CHAT.join(CHAT.deltas(message)) == (message if says_something(text, thought, made) else None)


blocks = st.one_of(
    st.builds(AssistantGenText, spoken),
    st.builds(Reasoning, spoken),
    st.builds(FunctionToolCall, words, words, words),
)


@given(st.lists(blocks, max_size=5), costs)
def test_an_agentic_message_is_joined_again_from_its_pieces(said: list[Any], usage: TokenUsage | None):
    # Two texts, or two thoughts, that follow each other would be joined to one.
    apart = [
        block
        for before, block in zip([None, *said], said, strict=False)
        if isinstance(block, FunctionToolCall) or type(before) is not type(block)
    ]
    message = AgenticMessage("assistant", tuple(apart), response_meta=metered(usage))
    assert AGENTIC.join(AGENTIC.deltas(message)) == (message if apart else None)


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[Delta], list[tuple[str, str, str]]]:
    """Return the pieces of some calls, those of different calls in any order, and the calls."""
    made = draw(st.lists(st.tuples(spoken, spoken, st.lists(words, min_size=1, max_size=4)), min_size=1, max_size=3))
    queues = [
        [
            Delta(call_index=place, call_id=call_id, name=name, arguments=pieces[0]),
            *(Delta(call_index=place, arguments=piece) for piece in pieces[1:]),
        ]
        for place, (call_id, name, pieces) in enumerate(made)
    ]
    deltas: list[Delta] = []
    while any(queues):
        deltas.append(draw(st.sampled_from([queue for queue in queues if queue])).pop(0))
    return deltas, [(call_id, name, "".join(pieces)) for call_id, name, pieces in made]


@on_each_wire
@given(stream=streams())
def test_calls_are_put_together_in_whatever_order_their_pieces_come(wire: ChatWire, stream: Any):
    deltas, made = stream
    assert wire.calls(wire.join(deltas)) == tuple(Call(*call) for call in made)


@on_each_wire
def test_only_an_assistants_message_has_pieces(wire: ChatWire):
    for message in (wire.user("hi"), wire.result(CALL, ToolResult())):
        with pytest.raises(InputError, match="only an assistant's message has pieces, this one is the"):
            wire.deltas(message)


def test_the_texts_among_a_messages_parts_are_pieces_too():
    message = Message(
        "assistant",
        "a",
        reasoning_content="r",
        assistant_gen_multi_content=(ReasoningPart("s"), TextPart("b"), ImagePart(url="u")),
    )
    assert MESSAGE.deltas(message) == [Delta(reasoning="r"), Delta(reasoning="s"), Delta("a"), Delta("b")]


def test_arguments_that_are_no_text_become_one():
    old = {"role": "assistant", "function_call": {"name": "f", "arguments": {"q": 1}}}
    assert CHAT.deltas(old) == [Delta(call_index=0, name="f", arguments='{"q":1}')]
