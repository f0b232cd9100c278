"""A reply is the same message with the same text: whole, or streamed and cut into pieces at any bytes."""

import json
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture.codecs import convert, encode, get_codec
from suture.messages import (
    AgenticMessage,
    AssistantGenText,
    FunctionToolCall,
    Reasoning,
    message_from_dict,
    message_to_dict,
)
from suture.wires import get_chat_wire
from tests.models.providers import WIRES, WRITERS, reply

words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=12)
SIGNATURE = "c2lnbmVk"


def blocks(wire: str) -> st.SearchStrategy[Any]:
    """Return the blocks that a reply of this wire may have, in any order but for its calls."""
    thought = st.builds(lambda text: Reasoning(text, SIGNATURE, extension={"wire": wire}), words)
    if wire == "openai-chat":
        thought = st.builds(lambda text: Reasoning(text, extension={"wire": wire}), words)
    elif wire == "openai-responses":
        thought = st.builds(lambda: Reasoning("", SIGNATURE, extension={"wire": wire, "id": "rs_1"}))
    texts = [st.builds(AssistantGenText, words)]
    if wire == "gemini":
        texts.append(
            st.builds(lambda text: AssistantGenText(text, extra={wire: {"thoughtSignature": SIGNATURE}}), words)
        )
    if wire == "anthropic":
        note = {"type": "char_location", "cited_text": "x", "start_char_index": 0, "end_char_index": 1}
        texts.append(st.builds(lambda text: AssistantGenText(text, extra={wire: {"citations": [note]}}), words))
    said = st.lists(st.one_of(thought, *texts), max_size=5)
    if wire == "openai-chat":  # one thought, then one text
        said = st.tuples(thought, *texts).map(list)
    calls = st.lists(st.builds(lambda x: FunctionToolCall("", "f", json.dumps({"x": x})), words), max_size=2)
    return st.tuples(said, calls).map(lambda pair: [*pair[0], *_numbered(pair[1])])


def _numbered(calls: list[FunctionToolCall]) -> list[FunctionToolCall]:
    return [msgspec.structs.replace(call, call_id=f"call_{place}") for place, call in enumerate(calls)]


def events_of(wire: str, body: dict[str, Any], cuts: list[int]) -> list[Any]:
    """Return the events of a stream that says `body`, whose bytes come in pieces."""
    writer = WRITERS[wire]
    events = [*writer.write_stream(body)]
    if wire == "bedrock":  # boto3 takes its bytes apart
        return events
    sent = b"".join(map(writer.frame, events))
    framing = get_codec(wire).framing()
    places = [0, *sorted(cut % (len(sent) + 1) for cut in cuts), len(sent)]
    pieces = [sent[start:stop] for start, stop in pairwise(places)]
    return [*(event for piece in pieces for event in framing.feed(piece)), *framing.finish()]


@pytest.mark.parametrize("wire", WIRES)
@given(data=st.data(), cuts=st.lists(st.integers(0, 10_000), max_size=40))
def test_a_reply_is_the_same_however_it_comes_and_is_kept(wire: str, data: st.DataObject, cuts: list[int]):
    said = data.draw(blocks(wire))
    asks = any(isinstance(block, FunctionToolCall) for block in said)
    body = WRITERS[wire].write_reply(reply(*said, finish="tool_calls" if asks else "stop"))
    codec = get_codec(wire)
    whole, reader = codec.decode_reply(body), codec.reader()
    deltas = [delta for event in events_of(wire, body, cuts) for delta in reader.feed(event)]
    streamed = reader.finish()
    if wire != "gemini":  # there neighbouring texts of a stream are one
        assert streamed == whole
    text = "".join(block.text for block in said if isinstance(block, AssistantGenText))
    assert "".join(delta.text for delta in deltas) == text
    for message in (whole, streamed):
        for kind in ("message", "agentic"):
            _holds(message, kind, wire, text)


def _holds(message: AgenticMessage, kind: str, wire: str, text: str) -> None:
    """Check that a message has this text, and has it still when it was stored and is sent again."""
    [made] = encode([message], kind).messages
    assert get_chat_wire(kind).text(made) == text
    assert kind == "agentic" or made.content == text
    stored = message_from_dict(msgspec.json.decode(msgspec.json.encode(message_to_dict(made))))
    sent = convert([stored], kind, wire).messages
    assert sent == get_codec(wire).encode_messages([message]).payload
    again = get_codec(wire).decode_messages(sent)
    assert "".join(get_chat_wire("agentic").text(each) for each in again) == text
