"""Servers that say nonsense, or too much of it: a clear error each time, and never more memory than is allowed."""

import asyncio
import gzip
import json
import tracemalloc
from typing import Any

import pytest

from suture.codecs import replies
from suture.errors import ModelConnectionError, ModelError, ModelServerError, StreamCutError
from suture.models import http
from tests.models.loopback import Answer, loopback
from tests.models.providers import (
    HELLO,
    WIRES,
    call_reply,
    error_body,
    frame,
    frames,
    make_model,
    stream_headers,
    text_reply,
    whole,
)

pytestmark = pytest.mark.usefixtures("surroundings")
OURS = (ModelError, StreamCutError)


async def fails(wire: str, answer: Answer, **settings: Any) -> ModelError | StreamCutError:
    async with loopback([answer]) as server:
        model = make_model(wire, server.url, timeout=30, **settings)
        with pytest.raises(OURS) as caught:
            [item async for item in model.stream(HELLO)]
    error = caught.value
    assert isinstance(error, OURS)
    assert str(error)
    assert len(str(error)) < 1000
    assert error.__cause__ is None
    return error


def stream_of(wire: str, *pieces: bytes) -> Answer:
    return Answer(pieces, headers=stream_headers(wire))


def event_of(wire: str, event: Any) -> bytes:
    """Return an event that may be of any type."""
    if wire == "bedrock":
        return frame(wire, {"contentBlockDelta": event})
    return b"data: %s\n\n" % _json(event)


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


NONSENSE: dict[str, Any] = {
    "a number": 1,
    "a list": [1, 2],
    "null": None,
    "a text": "hello",
    "an empty object": {},
    "an object of wrong types": {
        "type": 3,
        "choices": 4,
        "candidates": {"a": 1},
        "delta": 5,
        "contentBlockIndex": "x",
        "usage": "much",
    },
    "lists of wrong types": {
        "choices": [None, 3],
        "candidates": [None, 3],
        "delta": [1],
        "contentBlockIndex": [1],
        "type": ["x"],
    },
    "a choice of wrong types": {
        "choices": [{"index": "x", "delta": {"tool_calls": [3, {"index": "y", "function": 4}], "content": 7}}],
        "candidates": [{"content": {"parts": [3, {"text": 4}, {"functionCall": 5}]}, "finishReason": 7}],
        "type": "content_block_delta",
        "index": {},
        "delta": {"type": "text_delta", "text": 5},
    },
    "an item of wrong types": {"type": "response.output_item.done", "output_index": [], "item": 7},
    "a response of wrong types": {"type": "response.completed", "response": {"output": [3, {"type": 4}], "usage": 5}},
    "deep": [[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]],
}


@pytest.mark.parametrize("wire", WIRES)
def test_an_event_that_makes_no_sense_is_an_error_of_ours(wire: str):
    async def run() -> None:
        for event in NONSENSE.values():
            await fails(wire, stream_of(wire, event_of(wire, event)))

    asyncio.run(run())


@pytest.mark.parametrize("wire", WIRES)
def test_a_body_that_is_no_stream_is_an_error_of_ours(wire: str):
    events = frames(wire, text_reply())

    async def run() -> None:
        for pieces in (
            [b""],
            [b"data: {\n\n"],
            [b"\xff\xfe\x00garbage\n\n"],
            [b"data: \xff\xfe\n\n"],
            [b"<html><body>Welcome</body></html>\n"],
            [b'data: "%s"\n\n' % (b"[" * 50_000)],
            [b"data: " + b"[" * 50_000 + b"\n\n"],
            [b"\x00\x00\x00\x10\x00\x00\x00\x00" + b"x" * 40],
            [events[0], b"\x00" * 64, b"\n\n"],
        ):
            await fails(wire, stream_of(wire, *pieces))
        await fails(wire, Answer([b"<html>Welcome</html>"], headers={"content-type": "text/html"}))

    asyncio.run(run())


@pytest.mark.parametrize("wire", WIRES)
def test_a_whole_reply_that_makes_no_sense_is_an_error_of_ours(wire: str):
    bodies = [
        b"",
        b"null",
        b"3",
        b"[]",
        b"{}",
        b"<html>",
        b"[" * 50_000,
        _json({"choices": 3, "output": 4, "content": 5, "candidates": 6}),
        _json({"choices": [3], "output": [4], "content": [5], "candidates": [6]}),
        _json({"choices": [{"message": 3}], "output": {"message": 4}, "candidates": [{"content": 4}]}),
    ]

    async def run() -> None:
        for body in bodies:
            answer = Answer([body], headers={"content-type": "application/json"})
            await fails(wire, answer, streaming=False)

    asyncio.run(run())


@pytest.mark.parametrize("wire", WIRES)
def test_a_response_that_is_no_http_is_an_error_of_ours(wire: str):
    head = b"HTTP/1.1 200 OK\r\ncontent-type: " + stream_headers(wire)["content-type"].encode() + b"\r\n"
    event = frames(wire, text_reply())[0]

    async def run() -> None:
        for answer in (
            Answer(head=b""),
            Answer(head=b"not http at all\r\n\r\n"),
            Answer(head=head),
            Answer(head=head + b"\r\n"),
            Answer([event], head=head + b"content-length: 100000\r\n\r\n"),
            Answer([event], head=head + b"content-length: nonsense\r\n\r\n"),
            Answer([event], head=head + b"transfer-encoding: chunked\r\n\r\n"),
            Answer([b"x: " + b"y" * 1000 + b"\r\n"] * 1000, head=head, then="hang"),
        ):
            await fails(wire, answer)

    asyncio.run(run())


@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire != "bedrock"])
def test_a_body_that_is_compressed_is_read_and_one_that_only_claims_it_is_an_error(wire: str):
    packed = {**stream_headers(wire), "content-encoding": "gzip"}
    body = gzip.compress(b"".join(frames(wire, text_reply())))

    async def run() -> tuple[str, ModelError | StreamCutError]:
        pieces = [body[place : place + 5] for place in range(0, len(body), 5)]
        async with loopback([Answer(pieces, headers=packed)]) as server:
            model = make_model(wire, server.url)
            said = [item async for item in model.stream(HELLO)]
            assert server.requests[0].headers["accept-encoding"] == "gzip"
        await fails(wire, Answer([b"not gzip at all"], headers=packed))
        failed = Answer([b"not gzip at all"], 500, {"content-encoding": "gzip"})
        return said[-1].content, await fails(wire, failed)

    text, error = asyncio.run(run())
    assert text == "The sea is calm."
    assert isinstance(error, ModelServerError)


@pytest.mark.parametrize("wire", WIRES)
def test_an_error_in_the_middle_of_a_stream_has_its_kind(wire: str):
    said = "Overloaded, try later."
    event: dict[str, Any] = error_body(wire, said, "overloaded_error")
    if wire == "bedrock":
        event = {"serviceUnavailableException": {"message": said}}
    elif wire == "openai-responses":
        event = {"type": "error", "message": said, "code": "server_error", "sequence_number": 3}
    elif wire == "gemini":
        event = {"error": {"code": 503, "message": said, "status": "UNAVAILABLE"}}
    elif wire == "openai-chat":
        event = {"error": {"message": said, "type": "server_error", "code": "server_error"}}
    events = frames(wire, text_reply())
    error = asyncio.run(fails(wire, stream_of(wire, events[0], frame(wire, event))))
    assert isinstance(error, ModelServerError)
    assert error.retryable
    assert said in str(error)


@pytest.mark.parametrize("wire", ["openai-chat", "openai-responses", "anthropic"])
def test_a_web_page_in_place_of_a_stream_points_to_the_address(wire: str):
    page = Answer([b"<html>Welcome</html>"], headers={"content-type": "text/html; charset=utf-8"})
    error = asyncio.run(fails(wire, page))
    assert "check base_url" in str(error)
    assert not error.retryable


@pytest.mark.parametrize("wire", ["openai-chat", "openai-responses", "anthropic"])
@pytest.mark.parametrize(
    "body",
    [
        b"upstream connect error",
        b"<!DOCTYPE html>upstream connect error",
        b'{"detail": "upstream connect error"}',
        b'{"message": "upstream connect error", "code": 50300}',
        b'[{"error": {"code": 503, "message": "upstream connect error"}}]',
    ],
)
def test_what_comes_in_place_of_a_stream_is_told(wire: str, body: bytes):
    error = asyncio.run(fails(wire, Answer([body])))
    assert "upstream connect error" in str(error)
    assert error.retryable


def test_a_reply_that_the_server_broke_off_stays_its_error_whatever_else_the_body_says():
    choice = {"index": 0, "finish_reason": "error", "message": {"role": "assistant", "content": ""}}
    error = asyncio.run(fails("openai-chat", Answer([_json({"choices": [choice], "message": "see the log"})])))
    assert isinstance(error, ModelServerError)


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic"])
def test_an_error_that_comes_as_json_in_place_of_a_stream_is_told(wire: str):
    body = _json(error_body(wire, "Out of credits.", "billing"))
    error = asyncio.run(fails(wire, Answer([body], headers={"content-type": "application/json"})))
    assert "Out of credits." in str(error)


def test_a_character_that_is_split_between_two_events_costs_no_more_than_itself():
    events = [
        rb'data: {"choices": [{"index": 0, "delta": {"content": "%s"}}]}' % half for half in (rb"a\ud83d", rb"\ude00b")
    ]
    end = b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n'

    async def run() -> Any:
        async with loopback([Answer([b"\n\n".join([*events, end])])]) as server:
            return [item async for item in make_model("openai-chat", server.url).stream(HELLO)]

    assert asyncio.run(run())[-1].content == "a\ufffd\ufffdb"


def test_a_reply_that_is_too_long_names_the_provider(monkeypatch: pytest.MonkeyPatch):
    limit(monkeypatch)
    long = whole("gemini", text_reply("x" * 400_000))
    error = asyncio.run(fails("gemini", long, streaming=False))
    assert str(error) == "gemini: the reply has more than 300000 bytes"


# Too much


def limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_REPLY", 300_000)
    monkeypatch.setattr(http, "MAX_ERROR", 50_000)
    monkeypatch.setattr(replies, "MAX_EVENT", 100_000)


async def floods(wire: str, answer: Answer, **settings: Any) -> tuple[int, int, ModelError | StreamCutError]:
    """Return how much a server got rid of, how much memory that took, and what became of it."""
    async with loopback([answer]) as server:
        model = make_model(wire, server.url, timeout=30, **settings)
        with pytest.raises(OURS):  # what is made once is made before
            [item async for item in make_model(wire, "http://127.0.0.1:1").stream(HELLO)]
        tracemalloc.start()
        with pytest.raises(OURS) as caught:
            [item async for item in model.stream(HELLO)]
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        await asyncio.wait_for(server.left.wait(), 60)
        error = caught.value
        assert isinstance(error, OURS)
        return server.sent, peak, error


ENDLESS = {
    "events": lambda wire: [frames(wire, text_reply("x" * 5000))[1]],
    "one line": lambda wire: [b"data: " if wire != "bedrock" else b"\x00" * 4, b"x" * 5000],
    "blank lines": lambda _: [b"\n" * 5000],
    "comments": lambda _: [b": ping\n\n" * 500],
}


@pytest.mark.parametrize("kind", list(ENDLESS))
@pytest.mark.parametrize("wire", WIRES)
def test_an_endless_stream_is_given_up(wire: str, kind: str, monkeypatch: pytest.MonkeyPatch):
    limit(monkeypatch)
    pieces = ENDLESS[kind](wire)
    answer = Answer(pieces, headers=stream_headers(wire), then="endless")
    sent, peak, error = asyncio.run(floods(wire, answer))
    assert sent < 12_000_000  # what is read, and what lies between the two in buffers
    assert peak < 12_000_000
    assert not isinstance(error, ModelConnectionError)


@pytest.mark.parametrize("status", [500, 400])
@pytest.mark.parametrize("wire", WIRES)
def test_an_endless_error_is_cut(wire: str, status: int, monkeypatch: pytest.MonkeyPatch):
    limit(monkeypatch)
    answer = Answer([b"It failed. ", b"x" * 5000], status, {"content-type": "text/plain"}, then="endless")
    sent, peak, error = asyncio.run(floods(wire, answer))
    assert sent < 12_000_000
    assert peak < 12_000_000
    assert isinstance(error, ModelError)
    assert error.status == status
    assert len(str(error)) < 1000


@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire != "bedrock"])
@pytest.mark.parametrize("status", [200, 500])
def test_a_small_body_that_unpacks_to_a_huge_one_is_given_up(wire: str, status: int, monkeypatch: pytest.MonkeyPatch):
    limit(monkeypatch)
    bomb = gzip.compress(b"data: " + b"x" * 60_000_000)
    assert len(bomb) < 100_000

    async def run() -> tuple[int, ModelError | StreamCutError]:
        answer = Answer([bomb], status, {**stream_headers(wire), "content-encoding": "gzip"})
        async with loopback([answer]) as server:
            model = make_model(wire, server.url, timeout=30, streaming=status == 200)
            with pytest.raises(OURS):
                [item async for item in make_model(wire, "http://127.0.0.1:1").stream(HELLO)]
            tracemalloc.start()
            with pytest.raises(OURS) as caught:
                [item async for item in model.stream(HELLO)]
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            error = caught.value
            assert isinstance(error, OURS)
            return peak, error

    peak, error = asyncio.run(run())
    assert peak < 15_000_000
    assert status == 200 or isinstance(error, ModelServerError)


@pytest.mark.parametrize("wire", WIRES)
def test_a_whole_reply_that_never_ends_is_given_up(wire: str, monkeypatch: pytest.MonkeyPatch):
    limit(monkeypatch)
    answer = Answer([b'{"a": "', b"x" * 5000], headers={"content-type": "application/json"}, then="endless")
    sent, peak, error = asyncio.run(floods(wire, answer, streaming=False))
    assert sent < 12_000_000
    assert peak < 12_000_000
    assert "300000 bytes" in str(error)


def test_a_reply_below_the_limits_is_whole(monkeypatch: pytest.MonkeyPatch):
    limit(monkeypatch)

    async def run(wire: str) -> str:
        async with loopback([whole(wire, text_reply("x" * 90_000))]) as server:
            model = make_model(wire, server.url, streaming=False)
            return [item async for item in model.stream(HELLO)][-1].content

    assert {len(asyncio.run(run(wire))) for wire in WIRES} == {90_000}


@pytest.mark.parametrize("wire", ["openai-chat", "openai-responses", "anthropic"])
def test_a_server_that_does_not_stream_although_it_is_asked_is_heard_all_the_same(wire: str):
    said = call_reply(("call_1", "tides", '{"port": "Dover"}'), text="Let me see.")

    async def main() -> Any:
        async with loopback([whole(wire, said)]) as server:
            return [item async for item in make_model(wire, server.url).stream(HELLO)][-1]

    message = asyncio.run(main())
    assert message.content == "Let me see."
    assert [(call.name, json.loads(call.arguments)) for call in message.tool_calls] == [("tides", {"port": "Dover"})]
