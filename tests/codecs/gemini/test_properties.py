"""What holds for every history and for every reply, however broken."""

from contextlib import suppress
from typing import Any

import msgspec
import pytest
from google.genai import types
from hypothesis import assume, given
from hypothesis import strategies as st

import suture
from suture.codecs import Request, convert, decode, get_codec
from suture.errors import InputError, ModelError, StreamCutError
from suture.messages import (
    AgenticMessage,
    AssistantGenImage,
    AssistantGenText,
    FunctionToolCall,
    FunctionToolResult,
    Reasoning,
    UserInputAudio,
    UserInputFile,
    UserInputImage,
    UserInputText,
    UserInputVideo,
)
from tests.codecs.gemini.server import frame, write_reply, write_stream
from tests.histories import Step, write

CODEC = get_codec("gemini")
# Histories of an agent, broken in every way

ids = st.sampled_from(["a", "b", "c", "", "fn.read:0"])
names = st.sampled_from(["f", "g", ""])
arguments = st.sampled_from(["{}", '{"q": 1}', '{"q": ', "", "[]"])
calls = st.lists(st.tuples(ids, names, arguments), min_size=1, max_size=3)
results = st.tuples(ids, names, st.sampled_from(["real", "other", ""]))
steps = st.one_of(
    st.tuples(st.just("user"), st.sampled_from(["hello", "again"])),
    st.tuples(st.just("system"), st.just("Be brief.")),
    st.tuples(st.just("say"), st.sampled_from(["well", ""])),
    st.tuples(st.just("think"), st.just("so")),
    st.tuples(st.just("turn"), calls),
    st.tuples(st.just("turn"), calls),
    results.map(lambda result: ("result", *result)),
    results.map(lambda result: ("result", *result)),
    st.tuples(st.just("mixed"), st.lists(results, min_size=1, max_size=2), st.just("and")),
)
histories: st.SearchStrategy[list[Step]] = st.lists(steps, max_size=9)


@pytest.mark.parametrize("wire", ["message", "agentic"])
@given(history=histories)
def test_any_history_is_acceptable_to_gemini_once_it_is_written_and_repaired(wire: str, history: list[Step]):
    contents = CODEC.encode_request(Request(decode(write(wire, history), wire))).payload["contents"]
    fixed = suture.repair(contents, wire="gemini")
    assert not fixed.unresolved
    report = suture.check(fixed.messages, wire="gemini")
    assert report.acceptable, report


@given(history=histories)
def test_every_call_and_every_result_of_a_broken_history_is_sent(history: list[Step]):
    messages = write("agentic", history)
    contents = CODEC.encode_messages(messages).payload
    sent = [part for content in contents for part in content["parts"]]
    blocks = [block for message in messages for block in message.content_blocks]
    for kind, field in ((FunctionToolCall, "functionCall"), (FunctionToolResult, "functionResponse")):
        meant = [block.call_id for block in blocks if isinstance(block, kind)]
        assert [part[field].get("id", "") for part in sent if field in part] == meant


@given(history=histories)
def test_contents_are_written_as_they_were_but_for_ids(history: list[Step]):
    items = [declared(item) for item in write("gemini", history) if item["parts"]]
    once, losses = CODEC.encode_messages(CODEC.decode_messages(items))
    assume(not losses)
    assert CODEC.encode_messages(CODEC.decode_messages(once)) == (once, ())
    assert [declared(item) for item in once] == items


def declared(item: dict[str, Any]) -> dict[str, Any]:
    """Return a content without ids, without empty names, and without arguments that are an empty text."""
    return {**item, "parts": [{name: _declared(held) for name, held in part.items()} for part in item["parts"]]}


def _declared(held: Any) -> Any:
    if not isinstance(held, dict):
        return held
    named = {"name": held["name"]} if held.get("name") else {}
    rest = {name: value for name, value in held.items() if name not in {"id", "name"}}
    return {**named, **rest, **({"args": held["args"] or {}} if "args" in held else {})}


# Messages of Gemini's own kinds

words = st.text(min_size=1, max_size=5)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=5,
)
structs = st.dictionaries(words, values, max_size=3)
compact = structs.map(lambda struct: msgspec.json.encode(struct).decode())
signatures = st.sampled_from([{}, {"gemini": {"thoughtSignature": "c2ln"}}])
data = st.sampled_from(["AAAA", "+/+/"])


def media(kind: Any, mime_type: str) -> st.SearchStrategy[Any]:
    by_value = st.builds(lambda held: kind(base64_data=held, mime_type=mime_type), data)
    return by_value | st.just(kind(url="https://example.com/a", mime_type=mime_type))


shown = (
    media(UserInputImage, "image/png")
    | media(UserInputAudio, "audio/ogg")
    | media(UserInputVideo, "video/mp4")
    | media(UserInputFile, "application/pdf")
)
said = st.builds(UserInputText, words)
gave = st.builds(
    lambda call_id, text, beside, failed: FunctionToolResult(call_id, "f", [UserInputText(text), *beside], failed),
    words,
    st.text(max_size=5),
    st.lists(shown, max_size=2),
    st.booleans(),
)
made = (
    st.builds(lambda text, extra: AssistantGenText(text, extra=extra), words, signatures)
    | st.builds(
        lambda text, sign: Reasoning(text, sign, extension={"wire": "gemini"}), words, st.sampled_from(["", "c2ln"])
    )
    | st.builds(lambda i, args, extra: FunctionToolCall(i, "f", args, extra=extra), words, compact, signatures)
    | media(AssistantGenImage, "image/png")
)
questions = st.builds(
    lambda results, asked: AgenticMessage("user", [*results, *asked]),
    st.lists(gave, max_size=2),
    st.lists(said | shown, min_size=1, max_size=2),
)
replies = st.builds(lambda blocks: AgenticMessage("assistant", blocks), st.lists(made, min_size=1, max_size=4))
talks = st.lists(st.tuples(questions, replies), max_size=3).map(lambda pairs: [each for pair in pairs for each in pair])


@given(messages=talks)
def test_what_is_written_is_read_as_it_was(messages: list[AgenticMessage]):
    payload, losses = CODEC.encode_messages(messages)
    assert losses == ()
    assert CODEC.decode_messages(payload) == messages
    through_chat = convert(convert(messages, "agentic", "message").messages, "message", "gemini").messages
    assert [part for content in through_chat for part in content["parts"]] == [
        part for content in payload for part in content["parts"]
    ]
    for content in payload:
        types.Content.model_validate(content)


@given(message=replies)
def test_a_stream_says_the_same_as_a_plain_response(message: AgenticMessage):
    reader, framing = CODEC.reader(), CODEC.framing()
    sent = b"".join([frame(event) for event in write_stream(write_reply(message))])
    deltas = [delta for event in framing.feed(sent) for delta in reader.feed(event)]
    whole = CODEC.decode_reply(write_reply(message))
    assert reader.finish() == whole
    assert whole.content_blocks == message.content_blocks
    texts = [block.text for block in message.content_blocks if isinstance(block, AssistantGenText)]
    assert "".join([delta.text for delta in deltas]) == "".join(texts)


# What makes no sense

keys = st.sampled_from(
    [
        "candidates",
        "content",
        "parts",
        "text",
        "thought",
        "thoughtSignature",
        "functionCall",
        "functionResponse",
        "name",
        "id",
        "args",
        "response",
        "role",
        "finishReason",
        "index",
        "usageMetadata",
        "promptTokenCount",
        "inlineData",
        "data",
        "mimeType",
        "fileData",
        "fileUri",
        "executableCode",
        "toolCall",
        "partialArgs",
        "jsonPath",
        "stringValue",
        "willContinue",
        "logprobsResult",
        "chosenCandidates",
        "topCandidates",
        "promptFeedback",
        "error",
        "code",
        "message",
        "details",
        "finish_reason",
        "responseId",
    ]
)
nonsense: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "STOP", "$.a", "image/png", "model"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


def wrapped(parts: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": [parts]}, "finishReason": "STOP"}]}


events = st.dictionaries(keys, nonsense, max_size=5) | nonsense.map(wrapped)


OURS = (ModelError, StreamCutError)


@given(stream=st.lists(events, max_size=4))
def test_events_without_sense_raise_only_what_a_model_may_raise(stream: list[dict[str, Any]]):
    reader = CODEC.reader()
    with suppress(*OURS):
        for event in stream:
            reader.feed(event)
        reader.finish()


@given(payload=events)
def test_a_response_without_sense_raises_only_what_a_model_may_raise(payload: dict[str, Any]):
    with suppress(*OURS):
        CODEC.decode_reply(payload)


@given(items=st.lists(st.dictionaries(keys, nonsense, max_size=3) | nonsense.map(lambda part: {"parts": [part]})))
def test_contents_without_sense_are_refused_or_come_back(items: list[dict[str, Any]]):
    with suppress(InputError):
        once = CODEC.encode_messages(CODEC.decode_messages(items)).payload
        assert CODEC.encode_messages(CODEC.decode_messages(once)).payload == once
