"""Responses, whole and streamed: both say the same, and nothing but Suture's errors comes out."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture.codecs import get_codec
from suture.errors import (
    ContextLengthError,
    ModelAuthError,
    ModelError,
    ModelReplyError,
    ModelRequestError,
    ModelServerError,
    ModelTimeoutError,
    RateLimitError,
    StreamCutError,
    SutureError,
)
from suture.messages import (
    AgenticMessage,
    AssistantGenImage,
    AssistantGenText,
    Delta,
    FunctionToolCall,
    Reasoning,
    ResponseMeta,
    ServerToolCall,
    ServerToolResult,
    TokenUsage,
)
from tests.codecs.bedrock.pieces import BLOCKS, DATA, WIRE, json_values, opaque, replies
from tests.codecs.bedrock.sdk import parsed_events, parsed_reply
from tests.codecs.bedrock.server import frame, write_reply, write_stream

codec = get_codec(WIRE)
USAGE = {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}


def body(*content: Any, stop: str = "end_turn", **more: Any) -> dict[str, Any]:
    return {"output": {"message": {"role": "assistant", "content": list(content)}}, "stopReason": stop, **more}


def read(events: list[dict[str, Any]]) -> tuple[list[Delta], AgenticMessage]:
    reader = codec.reader()
    deltas = [delta for event in events for delta in reader.feed(event)]
    return deltas, reader.finish()


# Whole responses


@pytest.mark.parametrize(
    ("word", "finish", "own"),
    [
        ("end_turn", "stop", "end_turn"),
        ("stop_sequence", "stop", "stop_sequence"),
        ("tool_use", "tool_calls", "tool_use"),
        ("max_tokens", "length", "max_tokens"),
        ("model_context_window_exceeded", "length", "model_context_window_exceeded"),
        ("content_filtered", "content_filter", "content_filtered"),
        ("guardrail_intervened", "content_filter", "guardrail_intervened"),
        ("something_new", "something_new", None),
    ],
)
def test_why_a_reply_ended_is_told_in_one_vocabulary(word: str, finish: str, own: str | None):
    meta = codec.decode_reply(body({"text": "hi"}, stop=word)).response_meta
    assert meta is not None
    assert meta.finish_reason == finish
    assert meta.extension.get("finish_reason") == own


USAGES: dict[str, tuple[dict[str, Any], TokenUsage]] = {
    "plain": (USAGE, TokenUsage(prompt_tokens=3, completion_tokens=4, total_tokens=7)),
    "cached": (
        {**USAGE, "totalTokens": 37, "cacheReadInputTokens": 10, "cacheWriteInputTokens": 20},
        TokenUsage(prompt_tokens=33, completion_tokens=4, total_tokens=37, cached_tokens=10, cache_write_tokens=20),
    ),
    "details": (
        {**USAGE, "cacheReadInputTokens": 0, "cacheDetails": []},
        TokenUsage(prompt_tokens=3, completion_tokens=4, total_tokens=7),
    ),
    "no total": (
        {"inputTokens": 3, "outputTokens": 4, "serverToolUsage": {}},
        TokenUsage(prompt_tokens=3, completion_tokens=4, total_tokens=7),
    ),
}


@pytest.mark.parametrize(("usage", "counted"), USAGES.values(), ids=USAGES)
def test_what_a_reply_cost_counts_all_input(usage: dict[str, Any], counted: TokenUsage):
    meta = codec.decode_reply(body({"text": "hi"}, usage=usage)).response_meta
    assert meta is not None
    assert meta.usage == counted
    assert meta.extension["usage"] == usage


def test_what_else_a_response_says_is_kept():
    said = body({"text": "hi"}, metrics={"latencyMs": 9}, trace={"guardrail": {}}, serviceTier={"type": "flex"})
    said["output"]["message"]["mood"] = "good"
    message = codec.decode_reply(said)
    assert message.extra == {WIRE: {"mood": "good"}}
    assert message.response_meta is not None
    assert message.response_meta.extension == {
        "finish_reason": "end_turn",
        "metrics": {"latencyMs": 9},
        "trace": {"guardrail": {}},
        "serviceTier": {"type": "flex"},
    }
    assert read(write_stream(said))[1] == message


def test_a_response_of_boto3s_has_its_id_and_its_bytes_as_text():
    said = body({"image": {"format": "png", "source": {"bytes": DATA}}}, usage=USAGE, metrics={"latencyMs": 9})
    parsed = parsed_reply(json.dumps(said).encode())
    assert parsed["output"]["message"]["content"][0]["image"]["source"]["bytes"] == b"data"
    message = codec.decode_reply(parsed)
    assert message.content_blocks == (AssistantGenImage(base64_data=DATA, mime_type="image/png"),)
    assert message.response_meta is not None
    assert message.response_meta.extension["id"] == "req_1"


REPLIES = {name: block for name, (role, block, _) in BLOCKS.items() if role == "assistant"}


@pytest.mark.parametrize("name", REPLIES)
def test_a_block_of_a_reply_is_the_same_whole_and_streamed(name: str):
    said = body({"text": "so"}, REPLIES[name], {"text": "then"})
    message = codec.decode_reply(said)
    assert message.content_blocks[1] == BLOCKS[name][2]
    assert read(write_stream(said))[1] == message


@given(replies, st.sampled_from(["end_turn", "stop_sequence", "max_tokens"]), st.booleans())
def test_a_reply_is_the_same_whole_and_streamed(reply: AgenticMessage, stop: str, counted: bool):
    more = {"usage": USAGE, "metrics": {"latencyMs": 9}} if counted else {}
    said = {**write_reply(reply), "stopReason": stop, **more}
    message = codec.decode_reply(said)
    assert message.content_blocks == reply.content_blocks
    deltas, streamed = read(write_stream(said))
    assert streamed == message
    assert "".join(delta.text for delta in deltas) == "".join(
        block.text for block in message.content_blocks if isinstance(block, AssistantGenText)
    )


# Streams


def start(index: int, **block: Any) -> dict[str, Any]:
    return {"contentBlockStart": {"contentBlockIndex": index, "start": block}}


def delta(index: int, **piece: Any) -> dict[str, Any]:
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": piece, "p": "abc"}}


def stop(index: int) -> dict[str, Any]:
    return {"contentBlockStop": {"contentBlockIndex": index}}


BEGIN = {"messageStart": {"role": "assistant", "p": "ab"}}
END = {"messageStop": {"stopReason": "tool_use", "p": "a"}}
TOLD = {"metadata": {"usage": USAGE, "metrics": {"latencyMs": 9}, "p": "abcd"}}
CALL = {"toolUseId": "a", "name": "f"}


def test_a_stream_is_told_piece_by_piece_and_then_as_a_whole():
    events = [
        BEGIN,
        delta(0, reasoningContent={"text": "h"}),
        delta(0, reasoningContent={"text": "m"}),
        delta(0, reasoningContent={"signature": "si"}),
        delta(0, reasoningContent={"signature": "g"}),
        stop(0),
        delta(1, text="Let me "),
        delta(1, text=""),
        delta(1, text="see."),
        stop(1),
        start(2, toolUse=CALL),
        start(3, toolUse={"toolUseId": "b", "name": "g"}),
        delta(2, toolUse={"input": '{"q": '}),
        delta(3, toolUse={"input": ""}),
        delta(2, toolUse={"input": "1}"}),
        stop(2),
        stop(3),
        END,
        TOLD,
    ]
    usage = TokenUsage(prompt_tokens=3, completion_tokens=4, total_tokens=7)
    deltas, message = read(events)
    assert deltas == [
        Delta(reasoning="h"),
        Delta(reasoning="m"),
        Delta("Let me "),
        Delta("see."),
        Delta(call_index=0, call_id="a", name="f"),
        Delta(call_index=1, call_id="b", name="g"),
        Delta(call_index=0, arguments='{"q": '),
        Delta(call_index=0, arguments="1}"),
        Delta(usage=usage),
    ]
    told = {"metrics": {"latencyMs": 9}, "finish_reason": "tool_use", "usage": USAGE}
    meta = ResponseMeta(finish_reason="tool_calls", usage=usage, extension=told)
    blocks = (
        Reasoning("hm", "sig", extension={"wire": WIRE}),
        AssistantGenText("Let me see."),
        FunctionToolCall("a", "f", '{"q":1}'),
        FunctionToolCall("b", "g", "{}"),
    )
    assert message == AgenticMessage("assistant", blocks, response_meta=meta)


def test_arguments_that_were_cut_by_length_stay_as_they_came():
    events = [
        start(0, toolUse=CALL),
        delta(0, toolUse={"input": '{"q": "par'}),
        {"messageStop": {"stopReason": "max_tokens"}},
    ]
    _, message = read(events)
    assert message.content_blocks == (FunctionToolCall("a", "f", '{"q": "par'),)
    assert message.response_meta is not None
    assert message.response_meta.finish_reason == "length"


def test_arguments_that_are_no_object_stay_as_they_came():
    _, message = read([start(0, toolUse=CALL), delta(0, toolUse={"input": '"q"'}), END])
    assert message.content_blocks == (FunctionToolCall("a", "f", '"q"'),)


def test_bytes_in_pieces_are_put_together():
    events = [
        delta(0, reasoningContent={"redactedContent": b"da"}),
        delta(0, reasoningContent={"redactedContent": b"ta"}),
        start(1, image={"format": "png"}),
        delta(1, image={"source": {"bytes": b"da"}}),
        delta(1, image={"source": {"bytes": b"ta"}}),
        END,
    ]
    assert read(events)[1].content_blocks == (
        Reasoning(signature=DATA, extension={"wire": WIRE, "redacted": True}),
        AssistantGenImage(base64_data=DATA, mime_type="image/png"),
    )


def test_citations_that_come_with_a_text_are_kept_with_it():
    cited = {"title": "d", "location": {"documentChar": {"documentIndex": 0, "start": 0, "end": 3}}}
    deltas, message = read([delta(0, text="green"), delta(0, citation=cited), delta(1, citation=cited), END])
    assert deltas == [Delta("green")]
    assert message.content_blocks == (
        AssistantGenText("green", extension={"wire": WIRE, "citations": [cited]}),
        opaque({"citationsContent": {"citations": [cited]}}),
    )


def test_tools_that_the_service_ran_are_no_calls_of_the_programs():
    kind = "nova_code_interpreter_result"
    events = [
        start(0, toolUse={**CALL, "type": "server_tool_use"}),
        delta(0, toolUse={"input": '{"code": "1"}'}),
        start(1, toolResult={"toolUseId": "a", "type": kind, "status": "success"}),
        delta(1, toolResult=[{"json": {"stdOut": "1"}}]),
        start(2, toolUse={"toolUseId": "b", "name": "g"}),
        END,
    ]
    deltas, message = read(events)
    assert deltas == [Delta(call_index=0, call_id="b", name="g")]
    assert message.content_blocks == (
        ServerToolCall(call_id="a", name="f", arguments={"code": "1"}, extra={WIRE: {"type": "server_tool_use"}}),
        ServerToolResult(
            call_id="a", content=[{"json": {"stdOut": "1"}}], extra={WIRE: {"type": kind, "status": "success"}}
        ),
        FunctionToolCall("b", "g", "{}"),
    )


def test_what_nobody_knows_in_a_stream_is_passed_over_and_a_block_kept_whole():
    events = [
        {"heartbeat": {"beat": 1}},
        delta(0, text="hi"),
        delta(0, hologram={"beam": 7}),
        start(1, hologram={"beam": 7}),
        stop(1),
        start(2),
        delta(2, text="ho"),
        start(3),
        stop(3),
        stop(9),
        END,
    ]
    blocks = (AssistantGenText("hi"), opaque({"hologram": {"beam": 7}}), AssistantGenText("ho"))
    assert read(events)[1].content_blocks == blocks


def test_a_stream_whose_end_was_not_said_is_cut():
    reader = codec.reader()
    for event in (BEGIN, delta(0, text="hi"), stop(0), TOLD):
        reader.feed(event)
    with pytest.raises(StreamCutError, match="ended before the reply did"):
        reader.finish()


def test_what_boto3_makes_of_frames_is_read():
    said = body(
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "sig"}}},
        {"reasoningContent": {"redactedContent": DATA}},
        {"citationsContent": {"content": [{"text": "green"}], "citations": [{"title": "d"}]}},
        {"image": {"format": "png", "source": {"bytes": DATA}}},
        {"toolUse": {"toolUseId": "a", "name": "f", "input": {"q": 1}}},
        stop="stop_sequence",
        usage={**USAGE, "cacheReadInputTokens": 2},
        metrics={"latencyMs": 9},
    )
    events = parsed_events(*map(frame, write_stream(said)))
    bytes_of_boto3 = {"reasoningContent": {"redactedContent": b"data"}}
    assert {"contentBlockDelta": {"delta": bytes_of_boto3, "contentBlockIndex": 1}} in events
    assert read(events)[1] == codec.decode_reply(said)


def test_the_bytes_of_a_stream_are_left_to_boto3():
    with pytest.raises(NotImplementedError, match="boto3"):
        codec.framing()


# Failures

FAILURES = {
    "throttlingException": RateLimitError,
    "serviceUnavailableException": ModelServerError,
    "internalServerException": ModelServerError,
    "modelStreamErrorException": ModelServerError,
    "somethingNewException": ModelServerError,
    "validationException": ModelRequestError,
    "modelTimeoutException": ModelTimeoutError,
    "accessDeniedException": ModelAuthError,
    "InternalError": ModelServerError,
    "ServiceUnavailable": ModelServerError,
}


@pytest.mark.parametrize(("kind", "error"), FAILURES.items())
def test_an_exception_in_a_stream_is_the_error_it_means(kind: str, error: type[ModelError]):
    with pytest.raises(ModelError) as caught:
        codec.reader().feed({kind: {"message": "no"}})
    assert type(caught.value) is error
    assert (caught.value.provider, caught.value.code, caught.value.reason) == (WIRE, kind, "no")


@pytest.mark.parametrize(
    "told",
    [
        "Input is too long for requested model.",
        "The model returned the following errors: prompt is too long: 200049 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000",
    ],
)
def test_a_request_that_is_too_long_is_told_apart(told: str):
    with pytest.raises(ContextLengthError):
        codec.reader().feed({"validationException": {"message": told}})


def test_an_error_says_what_the_model_behind_said():
    told = {"message": "try again", "originalMessage": "overloaded", "originalStatusCode": 529}
    with pytest.raises(ModelServerError) as caught:
        codec.reader().feed({"modelStreamErrorException": told})
    assert (caught.value.status, caught.value.reason) == (529, "try again: overloaded")


BODIES: dict[str, tuple[dict[str, Any], type[ModelError]]] = {
    "error of the service": ({"message": "no"}, ModelServerError),
    "error with its type": ({"__type": "com.amazon#ThrottlingException", "message": "slow"}, RateLimitError),
    "error of boto3's": ({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, ModelAuthError),
    "nothing": ({}, ModelError),
    "no message": ({"output": {}}, ModelError),
    "no content": ({"output": {"message": {"role": "assistant"}}}, ModelError),
    "text that is none": (body({"text": 7}), ModelError),
    "usage that is none": (body(usage=3), ModelError),
    "reason that is none": ({**body(), "stopReason": 7}, ModelError),
}


@pytest.mark.parametrize(("payload", "error"), BODIES.values(), ids=BODIES)
def test_a_body_that_is_no_reply_is_refused(payload: dict[str, Any], error: type[ModelError]):
    with pytest.raises(ModelError) as caught:
        codec.decode_reply(payload)
    assert type(caught.value) is error
    assert caught.value.provider == WIRE


def test_a_body_that_is_nested_too_deeply_is_refused():
    deep: Any = {}
    for _ in range(5000):
        deep = {"a": deep}
    for feed in (codec.decode_reply, codec.reader().feed):
        with pytest.raises(ModelError, match="nested"):
            feed({"output": deep, "metadata": deep})


NONSENSE: dict[str, list[dict[str, Any]]] = {
    "no object": [{"contentBlockDelta": 7}],
    "no index": [{"contentBlockDelta": {"delta": {"text": "x"}}}],
    "index that is none": [{"contentBlockDelta": {"contentBlockIndex": True, "delta": {"text": "x"}}}],
    "index below zero": [{"contentBlockStop": {"contentBlockIndex": -1}}],
    "no delta": [{"contentBlockDelta": {"contentBlockIndex": 0}}],
    "text that is none": [delta(0, text=7)],
    "call that never began": [delta(0, toolUse={"input": "{}"})],
    "call that began as nothing": [start(0), delta(0, toolUse={"input": "{}"})],
    "result that never began": [delta(0, toolResult=[])],
    "image that never began": [delta(0, image={"source": {"bytes": DATA}})],
    "call without a name": [start(0, toolUse={"toolUseId": "a"})],
    "call that is none": [start(0, toolUse=7)],
    "two beginnings": [start(0, toolUse=CALL), start(0, toolUse=CALL)],
    "two kinds at once": [start(0, toolUse=CALL, image={"format": "png"})],
    "text in a call": [start(0, toolUse=CALL), delta(0, text="x")],
    "thought in a text": [delta(0, text="x"), delta(0, reasoningContent={"text": "x"})],
    "more of what has ended": [delta(0, text="x"), stop(0), delta(0, text="y")],
    "more behind the end": [END, delta(0, text="y")],
    "block behind the end": [END, start(0, toolUse=CALL)],
    "arguments that are none": [start(0, toolUse=CALL), delta(0, toolUse={"input": {}})],
    "result that is none": [start(0, toolResult={"toolUseId": "a"}), delta(0, toolResult={})],
    "end without a reason": [{"messageStop": {}}],
    "usage that is none": [{"metadata": {"usage": 3}}],
}


@pytest.mark.parametrize("events", NONSENSE.values(), ids=NONSENSE)
def test_events_that_make_no_sense_are_refused_and_may_be_tried_again(events: list[dict[str, Any]]):
    reader = codec.reader()
    for event in events[:-1]:
        reader.feed(event)
    with pytest.raises(ModelError, match="makes no sense") as caught:
        reader.feed(events[-1])
    assert caught.value.retryable


def test_bytes_that_are_no_base64_are_refused_where_they_must_be_joined():
    reader = codec.reader()
    for event in (
        delta(0, reasoningContent={"redactedContent": "a"}),
        delta(0, reasoningContent={"redactedContent": "b"}),
    ):
        reader.feed(event)
    reader.feed(END)
    with pytest.raises(ModelError, match="no base64"):
        reader.finish()


KINDS = ("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata")
FIELDS = (
    "contentBlockIndex",
    "start",
    "delta",
    "text",
    "toolUse",
    "toolResult",
    "reasoningContent",
    "image",
    "citation",
)
shapes = st.recursive(
    json_values | st.sampled_from([0, 1, "a", CALL, {"format": "png"}, USAGE]),
    lambda inner: st.dictionaries(
        st.sampled_from([*FIELDS, "input", "source", "usage", "stopReason"]), inner, max_size=3
    ),
    max_leaves=8,
)
arbitrary = st.dictionaries(st.sampled_from(KINDS) | st.text(max_size=5), shapes, min_size=1, max_size=1)
likely = st.one_of(
    st.builds(start, st.integers(0, 2), toolUse=st.just(CALL)),
    st.builds(start, st.integers(0, 2), image=shapes),
    st.builds(delta, st.integers(0, 2), text=st.just("x")),
    st.builds(delta, st.integers(0, 2), reasoningContent=shapes),
    st.builds(delta, st.integers(0, 2), citation=shapes),
    st.builds(delta, st.integers(0, 2), image=shapes),
    st.builds(delta, st.integers(0, 2), toolUse=st.fixed_dictionaries({"input": st.sampled_from(["{}", "{", "7"])})),
    st.just(END),
    st.builds(lambda held: {"metadata": held}, shapes),
)


@given(st.lists(arbitrary | likely, max_size=8))
def test_whatever_is_fed_only_sutures_errors_come_out(events: list[dict[str, Any]]):
    reader = codec.reader()
    try:
        for event in events:
            assert all(isinstance(one, Delta) for one in reader.feed(event))
        assert reader.finish().role == "assistant"
    except SutureError:
        pass


@given(st.dictionaries(st.sampled_from(["output", "usage", "stopReason", "x"]), shapes) | shapes.map(body))
def test_whatever_body_comes_only_sutures_errors_come_out(payload: dict[str, Any]):
    with suppress(ModelError):
        assert codec.decode_reply(payload).role == "assistant"


@pytest.mark.parametrize("word", ["malformed_tool_use", "malformed_model_output"])
def test_what_the_service_could_not_read_is_a_slip_of_the_models(word: str):
    said = body({"text": "hi"}, stop=word)
    with pytest.raises(ModelReplyError, match=word) as caught:
        codec.decode_reply(said)
    assert caught.value.retryable
    with pytest.raises(ModelReplyError, match=word):
        read(write_stream(said))
