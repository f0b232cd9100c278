"""Recorded exchanges with OpenAI and five servers that speak like it."""

import json
from typing import Any

import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk

from suture.codecs import get_codec
from suture.errors import StreamCutError
from suture.messages import AgenticMessage, AssistantGenText, Delta, FunctionToolCall
from tests.codecs.recordings import Exchange, recordings
from tests.corpus import conversations, needs_corpus

CODEC = get_codec("openai-chat")
FOLDERS = ("openai-chat", "openai-compatible-chat")
LOOPS = [(name, found) for folder in FOLDERS for name, found in recordings(folder)]
EXCHANGES = [
    pytest.param(exchange, id=f"{name}-{number}") for name, found in LOOPS for number, exchange in enumerate(found)
]
pytestmark = needs_corpus
every = pytest.mark.parametrize("exchange", EXCHANGES)


def read(data: bytes, size: int) -> tuple[AgenticMessage, list[Delta]]:
    """Return what a stream says that comes in pieces of `size` bytes."""
    framing, reader = CODEC.framing(), CODEC.reader()
    deltas: list[Delta] = []
    for start in range(0, len(data), size):
        for event in framing.feed(data[start : start + size]):
            deltas += reader.feed(event)
    return reader.finish(), deltas


def chunks(data: bytes) -> list[dict[str, Any]]:
    """Return the chunks in a recorded body, taken apart by hand."""
    lines = [line.removeprefix("data: ") for line in data.decode().splitlines() if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


@every
def test_a_recorded_request_is_read_and_written_as_it_was(exchange: Exchange):
    assert CODEC.encode_request(CODEC.decode_request(exchange.request)) == (exchange.request, ())


@every
def test_a_recorded_stream_says_what_the_sdk_reads_in_it(exchange: Exchange):
    state = ChatCompletionStreamState()
    for chunk in chunks(exchange.body):
        state.handle_chunk(ChatCompletionChunk.construct(**chunk))
    whole = state.current_completion_snapshot
    said = whole.choices[0].message
    message, deltas = read(exchange.body, 7)
    texts = [block.text for block in message.content_blocks if isinstance(block, AssistantGenText)]
    calls = [block for block in message.content_blocks if isinstance(block, FunctionToolCall)]
    assert "".join(texts) == (said.content or "") == "".join(delta.text for delta in deltas)
    assert [(call.call_id, call.name, call.arguments) for call in calls] == [
        (call.id, call.function.name, call.function.arguments) for call in said.tool_calls or ()
    ]
    assert len(texts) + len(calls) == len(message.content_blocks) > 0
    meta = message.response_meta
    assert meta is not None
    assert meta.finish_reason == ("tool_calls" if calls else whole.choices[0].finish_reason)
    assert (meta.extension["id"], meta.extension["model"]) == (whole.id, whole.model)


@every
def test_a_recorded_stream_says_what_it_cost(exchange: Exchange):
    (*_, told) = (chunk["usage"] for chunk in chunks(exchange.body) if chunk.get("usage"))
    message, deltas = read(exchange.body, len(exchange.body))
    usage = message.response_meta and message.response_meta.usage
    assert usage is not None
    counted = (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens)
    assert counted == tuple(told[name] for name in ("prompt_tokens", "completion_tokens", "total_tokens"))
    assert deltas[-1] == Delta(usage=usage)


@every
def test_a_stream_that_is_cut_anywhere_says_so_and_told_only_what_came(exchange: Exchange):
    _, whole = read(exchange.body, len(exchange.body))
    framing, reader = CODEC.framing(), CODEC.reader()
    told: list[Delta] = []
    ended = cuts = 0
    for byte in range(len(exchange.body)):
        for event in framing.feed(exchange.body[byte : byte + 1]):
            told += reader.feed(event)
            ended = ended or any(choice["finish_reason"] for choice in event["choices"])
        assert told == whole[: len(told)]
        if ended:
            reader.finish()
        else:
            cuts += 1
            with pytest.raises(StreamCutError):
                reader.finish()
    assert told == whole
    assert cuts > len(exchange.body) / 3


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
@every
def test_the_pieces_in_which_the_bytes_come_do_not_matter(exchange: Exchange, size: int):
    assert read(exchange.body, size) == read(exchange.body, len(exchange.body))


LOOPED = [pytest.param(first, second, id=name) for name, (first, *rest) in LOOPS for second in rest]


@pytest.mark.parametrize(("first", "second"), LOOPED)
def test_what_was_read_is_sent_back_as_the_recorded_loop_did(first: Exchange, second: Exchange):
    message, _ = read(first.body, 100)
    (said,) = CODEC.encode_messages([message]).payload
    sent = next(item for item in second.request["messages"] if item["role"] == "assistant")
    for call in (*said["tool_calls"], *sent["tool_calls"]):
        # The program that was recorded wrote the arguments anew.
        call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    assert said == sent


def test_real_histories_are_read_and_written_as_they_were():
    histories = [found["messages"] for found in conversations("tau-bench")]
    assert len(histories) == 100
    for history in histories:
        assert CODEC.encode_messages(CODEC.decode_messages(history)) == (history, ())


def test_there_is_something_recorded():
    assert len(EXCHANGES) == 20
    assert len(LOOPED) == 5
