"""Streams of Responses: recorded ones, cut ones, and ones that make no sense."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture.codecs import get_codec
from suture.errors import ModelError, StreamCutError, SutureError
from suture.messages import AgenticMessage, Delta, FunctionToolCall, TokenUsage
from tests.codecs.openai_responses.samples import GIVEN, MADE, WIRE
from tests.codecs.openai_responses.server import frame, make_body, write_stream
from tests.codecs.recordings import Exchange, recordings

codec = get_codec(WIRE)
RECORDED = [
    pytest.param(exchange, id=f"{name}-{place}")
    for name, exchanges in recordings(WIRE)
    for place, exchange in enumerate(exchanges)
]
[DONE_MARK] = codec.framing().feed(b"data: [DONE]\n\n")
ADDED, DONE = "response.output_item.added", "response.output_item.done"
CALL = {"type": "function_call", "id": "fc_9f", "call_id": "a", "name": "f", "arguments": ""}
USAGE = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
BODIES = {name: make_body(*items, usage=USAGE) for name, (items, _) in MADE.items()}


def read(events: Iterable[Any]) -> tuple[list[Delta], AgenticMessage]:
    reader = codec.reader()
    deltas = [delta for event in events for delta in reader.feed(event)]
    return deltas, reader.finish()


def said(deltas: Iterable[Delta]) -> tuple[str, str, dict[int, tuple[str, str, str]]]:
    """Return the text, the thought and the calls (id, name, arguments) that these pieces make."""
    text, thought = [], []
    calls: dict[int, tuple[str, str, str]] = {}
    for delta in deltas:
        text.append(delta.text)
        thought.append(delta.reasoning)
        if delta.call_index is not None:
            before = calls.get(delta.call_index, ("", "", ""))
            pieces = (delta.call_id, delta.name, delta.arguments)
            calls[delta.call_index] = (before[0] + pieces[0], before[1] + pieces[1], before[2] + pieces[2])
    return "".join(text), "".join(thought), calls


def shown(message: AgenticMessage) -> tuple[str, str, dict[int, tuple[str, str, str]]]:
    """Return the same of a whole message."""
    blocks: Sequence[Any] = message.content_blocks
    calls = [block for block in blocks if isinstance(block, FunctionToolCall)]
    return (
        "".join(block.text for block in blocks if type(block).__name__ == "AssistantGenText"),
        "".join(block.text for block in blocks if type(block).__name__ == "Reasoning"),
        {place: (call.call_id, call.name, call.arguments) for place, call in enumerate(calls)},
    )


def recorded_events(exchange: Exchange) -> list[dict[str, Any]]:
    lines = exchange.body.decode().splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


def declared(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item as it is written again: without likelihoods that nobody asked for."""
    if item["type"] != "message":
        return item
    return {**item, "content": [_without_logprobs(part) for part in item["content"]]}


def _without_logprobs(part: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name != "logprobs"}


@pytest.mark.parametrize("exchange", RECORDED)
def test_a_recorded_stream_is_read_as_it_was_told(exchange: Exchange):
    events = codec.framing().feed(exchange.body)
    assert events == recorded_events(exchange)
    deltas, message = read(events)
    told = events[-1]["response"]
    assert message == codec.decode_reply(told)
    assert said(deltas) == shown(message)
    assert codec.encode_messages([message]).payload == [declared(item) for item in told["output"]]
    assert message.response_meta is not None
    assert message.response_meta.usage == TokenUsage(
        prompt_tokens=told["usage"]["input_tokens"],
        completion_tokens=told["usage"]["output_tokens"],
        total_tokens=told["usage"]["total_tokens"],
        cached_tokens=told["usage"]["input_tokens_details"]["cached_tokens"],
        reasoning_tokens=told["usage"]["output_tokens_details"]["reasoning_tokens"],
    )
    assert [delta.usage for delta in deltas if delta.usage] == [message.response_meta.usage]


@pytest.mark.parametrize("exchange", RECORDED)
def test_a_recorded_stream_that_is_cut_at_any_byte_is_cut(exchange: Exchange):
    whole, _ = read(recorded_events(exchange))
    framing, reader = codec.framing(), codec.reader()
    deltas: list[Delta] = []
    for place in range(len(exchange.body)):
        deltas += [delta for event in framing.feed(exchange.body[place : place + 1]) for delta in reader.feed(event)]
        assert deltas == whole[: len(deltas)]
        if place < len(exchange.body.rstrip()):
            with pytest.raises(StreamCutError):
                reader.finish()
    assert deltas == whole
    assert reader.finish() == read(recorded_events(exchange))[1]


@pytest.mark.parametrize("name", BODIES)
def test_a_stream_says_what_a_plain_reply_says(name: str):
    deltas, streamed = read(codec.framing().feed(b"".join(map(frame, write_stream(BODIES[name])))))
    assert streamed == codec.decode_reply(BODIES[name])
    assert said(deltas) == shown(MADE[name][1])


@pytest.mark.parametrize("name", BODIES)
def test_where_the_end_does_not_repeat_the_output_it_is_put_together(name: str):
    *events, end = write_stream(BODIES[name])
    whole = read([*events, end])
    bare = {**end, "response": {**end["response"], "output": []}}
    assert read([*events, bare]) == whole


def test_where_items_are_not_said_to_be_whole_they_are_put_together_of_their_pieces():
    for name in ("a cut call", "two texts of one message", "a refusal", "a custom tool", "reasoning in several parts"):
        *events, end = write_stream(BODIES[name])
        left = [event for event in events if event["type"] != DONE]
        bare = {"type": "response.incomplete", "response": {**end["response"], "output": []}}
        _, streamed = read([*left, bare])
        assert streamed.content_blocks == codec.decode_reply(end["response"]).content_blocks


@pytest.mark.parametrize("name", BODIES)
def test_where_no_pieces_come_what_is_whole_is_said_at_once(name: str):
    events = write_stream(BODIES[name])
    for kinds in ({ADDED, DONE}, {DONE}):
        left = [event for event in events if event["type"] in {*kinds, "response.completed"}]
        deltas, streamed = read(left)
        assert said(deltas) == shown(MADE[name][1])
        assert streamed == read(events)[1]


def test_calls_that_come_at_once_are_told_apart_by_their_place():
    events = [
        {"type": ADDED, "output_index": 0, "item": {"type": "reasoning", "summary": []}},
        {"type": ADDED, "output_index": 1, "item": CALL},
        {"type": ADDED, "output_index": 2, "item": {**CALL, "call_id": "b"}},
        {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '{"x":'},
        {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": "{}"},
        {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "1}"},
        {"type": "response.completed", "response": {}},
    ]
    deltas, message = read(events)
    assert said(deltas)[2] == {0: ("a", "f", "{}"), 1: ("b", "f", '{"x":1}')}
    assert shown(message)[2] == said(deltas)[2]


@pytest.mark.parametrize("name", BODIES)
def test_items_that_are_not_numbered_are_known_by_their_ids(name: str):
    events = write_stream(BODIES[name])
    for event in events:
        place = event.pop("output_index", 0)
        event.pop("content_index", 0)
        if "item" in event:
            event["item"] = {"id": f"x_{place}", **event["item"]}
        if "item_id" in event:
            event["item_id"] = event["item_id"] or f"x_{place}"
    deltas, message = read(events)
    assert said(deltas) == shown(message) == shown(MADE[name][1])


def test_parts_that_come_out_of_order_are_put_in_theirs():
    item = {"type": "message", "role": "assistant", "content": []}
    said_last = {"type": "response.output_text.delta", "output_index": 0, "content_index": 1, "delta": "b"}
    events = [
        {"type": ADDED, "output_index": 0, "item": item},
        said_last,
        {**said_last, "content_index": 0, "delta": "a"},
    ]
    _, message = read([*events, {"type": "response.completed", "response": {}}])
    assert shown(message)[0] == "ab"


def test_input_of_a_custom_tool_comes_as_pieces_of_its_arguments():
    item = {"type": "custom_tool_call", "call_id": "a", "name": "sql", "input": 'say "é"\n'}
    events = [{"type": ADDED, "output_index": 0, "item": {**item, "input": ""}}]
    events += [
        {"type": "response.custom_tool_call_input.delta", "output_index": 0, "delta": piece} for piece in item["input"]
    ]
    events += [{"type": DONE, "output_index": 0, "item": item}, {"type": "response.completed", "response": {}}]
    deltas, message = read(events)
    assert said(deltas) == shown(message)
    assert json.loads(said(deltas)[2][0][2]) == {"input": item["input"]}


@pytest.mark.parametrize("kind", ["response.incomplete", "response.completed"])
def test_the_end_says_whether_the_reply_is_whole(kind: str):
    response = {"output": [], "incomplete_details": {"reason": "max_output_tokens"}}
    _, message = read([{"type": kind, "response": response}])
    assert message.response_meta is not None
    assert message.response_meta.finish_reason == {"response.incomplete": "length"}.get(kind, "stop")


def test_what_is_not_known_or_comes_after_the_end_is_passed_over():
    end = {"type": "response.completed", "response": {"output": [CALL]}}
    events = [{"type": "response.in_progress"}, {"type": "keepalive"}, end, {"type": ADDED}, end]
    assert len(read(events)[1].content_blocks) == 1


@pytest.mark.parametrize(
    "events",
    [
        [{}],
        [{"type": 7}],
        [{"type": ADDED}],
        [{"type": ADDED, "output_index": 0}],
        [{"type": ADDED, "output_index": 0, "item": []}],
        [{"type": ADDED, "output_index": 0, "item": {"type": None}}],
        [{"type": ADDED, "output_index": True, "item": CALL}],
        [{"type": ADDED, "output_index": None, "item": CALL}],
        [{"type": ADDED, "output_index": 0, "item": {**CALL, "name": 7}}],
        [
            {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{}"},
            {"type": "response.completed", "response": {}},
        ],
        [
            {"type": ADDED, "output_index": 0, "item": CALL},
            {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": None},
        ],
        [
            {"type": ADDED, "output_index": 0, "item": {"type": "message", "role": "assistant", "content": []}},
            {"type": "response.output_text.delta", "output_index": 0, "content_index": "0", "delta": "x"},
        ],
        [{"type": "response.completed"}],
        [{"type": "response.completed", "response": {"usage": 7}}],
        [{"type": "response.completed", "response": {"output": 7}}],
        [{"type": "response.completed", "response": {"output": [7]}}],
    ],
)
def test_events_that_make_no_sense_are_a_failure_that_may_pass(events: list[Any]):
    with pytest.raises(ModelError) as failed:
        read(events)
    assert failed.value.retryable
    assert failed.value.provider == WIRE


anything = st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from([0.5, "", "x", [], [7], {}, {"type": "x"}])
EVENTS = [event for body in BODIES.values() for event in write_stream(body)]
ITEMS = [item for items, _ in MADE.values() for item in items] + [item for item, _ in GIVEN.values()]


def spoilt(data: st.DataObject, value: Any) -> Any:
    """Return `value` with something in it replaced, or left out."""
    if not isinstance(value, dict | list) or not value or data.draw(st.integers(0, 4)) == 0:
        return data.draw(anything)
    if isinstance(value, list):
        place = data.draw(st.integers(0, len(value) - 1))
        return [*value[:place], spoilt(data, value[place]), *value[place + 1 :]]
    name = data.draw(st.sampled_from(sorted(value)))
    if data.draw(st.integers(0, 4)) == 0:
        return {key: held for key, held in value.items() if key != name}
    return {**value, name: spoilt(data, value[name])}


@given(data=st.data(), name=st.sampled_from(sorted(BODIES)))
def test_whatever_is_sent_is_read_or_refused_as_a_failure(data: st.DataObject, name: str):
    told = write_stream(BODIES[name])
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(told) - 1))
        event = spoilt(data, told[place])
        told[place] = event if isinstance(event, dict) else data.draw(st.sampled_from(EVENTS))
    reader = codec.reader()
    try:
        for event in told:
            reader.feed(event)
        assert reader.finish().role == "assistant"
    except (ModelError, StreamCutError):
        pass


@given(data=st.data(), told=st.lists(st.sampled_from(ITEMS), min_size=1, max_size=3))
def test_whatever_is_handed_in_as_history_is_read_and_written_or_refused(data: st.DataObject, told: list[Any]):
    try:
        messages = codec.decode_messages([*told, spoilt(data, told[-1])])
        codec.encode_messages(messages)
    except SutureError:
        pass


THOUGHT_ITEM = {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}
SAID_ITEM = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Hi."}]}
SKIPPED: dict[str, list[dict[str, Any]]] = {
    # vllm#31761: the end of an item counts as the beginning of the next.
    "counted twice": [
        {"type": ADDED, "output_index": 0, "item": {**THOUGHT_ITEM, "content": []}},
        {"type": "response.reasoning_text.delta", "output_index": 0, "item_id": "rs_1", "delta": "hm"},
        {"type": DONE, "output_index": 1, "item": THOUGHT_ITEM},
        {"type": ADDED, "output_index": 1, "item": {**SAID_ITEM, "content": []}},
        {"type": "response.output_text.delta", "output_index": 1, "item_id": "msg_1", "delta": "Hi."},
        {"type": DONE, "output_index": 2, "item": SAID_ITEM},
    ],
    # vllm-project/agentic-api#66: the message does not begin.
    "never begun": [
        {"type": ADDED, "output_index": 0, "item": {**THOUGHT_ITEM, "content": []}},
        {"type": "response.reasoning_text.delta", "output_index": 0, "item_id": "rs_1", "delta": "hm"},
        {"type": DONE, "output_index": 0, "item": THOUGHT_ITEM},
        {"type": "response.output_text.delta", "output_index": 1, "item_id": "msg_1", "delta": "Hi."},
        {"type": DONE, "output_index": 1, "item": SAID_ITEM},
    ],
    # vllm#23218: each event has another id, or an empty one.
    "ids that change": [
        {"type": ADDED, "output_index": 0, "item": {**THOUGHT_ITEM, "id": "a", "content": []}},
        {"type": "response.reasoning_text.delta", "output_index": 0, "item_id": "", "delta": "hm"},
        {"type": DONE, "output_index": 0, "item": {**THOUGHT_ITEM, "id": "b"}},
        {"type": ADDED, "output_index": 1, "item": {**SAID_ITEM, "id": "", "content": []}},
        {"type": "response.output_text.delta", "output_index": 1, "item_id": "c", "delta": "Hi."},
        {"type": DONE, "output_index": 1, "item": {**SAID_ITEM, "id": "d"}},
    ],
    # llm-rosetta#56: pieces of no item.
    "pieces alone": [
        {"type": "response.reasoning_text.delta", "delta": "hm"},
        {"type": "response.output_text.delta", "delta": "Hi"},
        {"type": "response.output_text.delta", "delta": "."},
    ],
    "the end alone": [],
}


@pytest.mark.parametrize("repeats", [True, False])
@pytest.mark.parametrize("name", SKIPPED)
def test_items_that_a_server_counts_wrongly_are_read(name: str, repeats: bool):
    if not (SKIPPED[name] or repeats):
        return
    output = [THOUGHT_ITEM, SAID_ITEM] if repeats else []
    end = {"type": "response.completed", "response": {"status": "completed", "output": output, "usage": USAGE}}
    deltas, message = read([*SKIPPED[name], end])
    assert said(deltas)[:2] == ("Hi.", "hm") == shown(message)[:2]


@pytest.mark.parametrize(
    "end",
    [{"type": "response.done", "response": {"output": []}}, DONE_MARK, {"type": "response.completed", "response": {}}],
)
def test_a_response_may_end_in_other_ways(end: dict[str, Any]):
    deltas, message = read([*SKIPPED["counted twice"], end])
    assert said(deltas)[:2] == ("Hi.", "hm") == shown(message)[:2]


def test_the_mark_of_the_end_alone_is_no_response():
    with pytest.raises(StreamCutError):
        read([DONE_MARK])
