"""What goes wrong: an upstream, a client, or the repair itself. The original is sent, and nothing is left behind."""

import asyncio
import gc
import http.client
import json
import logging
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from suture.proxy import Proxy, Route, Timing
from suture.proxy import app as proxy_app
from tests.proxy.serving import Reply, Request, proxy, upstream
from tests.proxy.test_traffic import BROKEN, KEY, PATHS, send

CHAT = PATHS["openai-chat"]


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (Reply([], framing="raw", then="close"), 502),
        (Reply([], framing="raw", then="reset"), 502),
        (Reply([b"garbage\r\n\r\n"], framing="raw", then="close"), 502),
        (Reply([b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n"], framing="raw", then="close"), 502),
        (Reply([], framing="raw", then="hang"), 504),
    ],
    ids=["closes", "resets", "answers garbage", "answers a bad length", "hangs"],
)
def test_an_upstream_that_fails_is_told_as_an_error(reply: Reply, status: int, caplog: pytest.LogCaptureFixture):
    with upstream(reply) as provider, caplog.at_level(logging.DEBUG):
        timing = Timing(idle=0.3) if status == 504 else Timing()
        with proxy(Proxy([Route(upstream=provider.url)], timing=timing)) as url:
            answer, body = send(url, f"{CHAT}?key={KEY}", BROKEN, authorization=KEY)
    assert (answer.status, json.loads(body)["error"]["type"]) == (status, "suture_proxy_error")
    assert KEY not in caplog.text + body.decode()
    assert len(provider.requests) == 1


@pytest.mark.parametrize("size", [10, 1 << 20])
def test_a_request_on_a_connection_that_the_upstream_is_closing_goes_out_on_another(size: int):
    body = json.dumps({"messages": [{"role": "user", "content": "x" * size}]}).encode()
    with upstream(Reply([b"data: a\n\n"], framing="chunked", then="leave")) as provider, proxy(provider.url) as url:
        answers = [send(url, CHAT, body) for _ in range(3)]
    assert [(answer.status, said) for answer, said in answers] == [(200, b"data: a\n\n")] * 3
    assert [request.body for request in provider.requests] == [body] * 3
    assert provider.connections == 3


def test_an_upstream_that_cannot_be_reached_is_told_as_an_error():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        with proxy(f"http://127.0.0.1:{closed.getsockname()[1]}") as url:
            answer, body = send(url, CHAT, BROKEN)
            assert answer.status == 502
            told = f"the upstream 127.0.0.1:{closed.getsockname()[1]} failed: ClientConnectorError"
            assert json.loads(body)["error"]["message"] == f"suture proxy: {told}"


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("then", ["close", "reset"])
def test_a_reply_that_is_cut_is_cut_for_the_client_too(framing: str, then: str):
    with upstream(Reply([b"data: a\n\n"], framing=framing, then=then)) as provider, proxy(provider.url) as url:
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            send(url, CHAT, BROKEN)
        assert send(url, "/health", method="GET")[0].status == 200


@pytest.mark.parametrize("path", [CHAT, "/v1/embeddings"], ids=["looked at", "passed"])
@pytest.mark.parametrize("piece", [[], [b"data: a\n\n"]], ids=["before the reply", "in the reply"])
def test_when_the_client_goes_away_the_upstream_is_closed(piece: list[bytes], path: str):
    framing = "chunked" if piece else "raw"
    with upstream(Reply(piece, framing=framing, then="hang")) as provider, proxy(provider.url) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}" % path.encode())
            while piece and b"data: a" not in client.recv(1000):
                pass
            while not provider.requests:
                threading.Event().wait(0.01)
        assert provider.gone.wait(5)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_when_repair_raises_at_any_of_its_calls_the_original_goes_on(monkeypatch: pytest.MonkeyPatch):
    """Each call that repair makes is made to raise in turn."""
    real, point, count = proxy_app.look_at, [0], [0]

    def broken(*given: Any) -> Any:
        count[0] = 0

        def trace(frame: Any, event: str, _: Any) -> None:
            if event == "call" and "suture" in frame.f_code.co_filename:
                count[0] += 1
                if count[0] == point[0]:
                    raise RuntimeError(KEY)

        sys.setprofile(trace)
        try:
            return real(*given)
        finally:
            sys.setprofile(None)

    monkeypatch.setattr(proxy_app, "look_at", broken)
    with upstream() as provider, proxy(provider.url) as url:
        send(url, CHAT, BROKEN)  # what is loaded and made once, is there from here on
        send(url, CHAT, BROKEN)
        repaired, calls = provider.requests[0].body, count[0]
        assert calls > 20
        for point[0] in range(1, calls + 1):
            assert send(url, CHAT, BROKEN)[0].status == 200
        sent = [request.body for request in provider.requests[2:]]
    assert {*sent} <= {BROKEN, repaired}  # what is raised where a generator is closed, Python ignores
    assert sent.count(BROKEN) > calls * 0.9


def test_when_repair_is_slow_the_original_goes_on(monkeypatch: pytest.MonkeyPatch):
    done = threading.Event()
    monkeypatch.setattr(proxy_app, "look_at", lambda *_: done.wait(30))
    with upstream() as provider, proxy(Proxy([Route(upstream=provider.url)], timing=Timing(repair=0.05))) as url:
        try:
            assert send(url, CHAT, BROKEN)[0].status == 200
            assert send(url, "/health", method="GET")[0].status == 200
        finally:
            done.set()
    assert provider.requests[0].body == BROKEN


def test_a_client_that_reads_slowly_holds_the_upstream_back():
    sent = [0]
    piece = b"x" * 65536

    class Pieces(list[bytes]):
        def __iter__(self) -> Any:
            for _ in range(2000):
                sent[0] += 1
                yield piece

    with upstream(Reply(Pieces(), framing="chunked")) as provider, proxy(provider.url) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}" % CHAT.encode())
            before = -1
            while sent[0] != before:
                before = sent[0]
                threading.Event().wait(0.3)
            assert 0 < sent[0] < 1000


@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.soak)])
def test_streams_at_once_do_not_wait_for_each_other(count: int):
    """While many replies hang, another request is answered."""

    def script(request: Request) -> Reply:
        return Reply([b"data: a\n\n"], framing="chunked", then="hang" if b"hang" in request.body else "")

    with upstream(script) as provider, proxy(provider.url) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        clients = [socket.create_connection((host, int(port))) for _ in range(count)]
        for client in clients:
            client.sendall(b'POST %b HTTP/1.1\r\nhost: x\r\ncontent-length: 6\r\n\r\n"hang"' % CHAT.encode())
        for client in clients:
            assert b"200" in client.recv(1000)
        assert send(url, CHAT, BROKEN)[1] == b"data: a\n\n"
        for client in clients:
            client.close()


def spend(count: int) -> tuple[int, int, int]:
    """Send good and bad requests; return what is open afterwards: file descriptors, tasks, and objects."""

    def script(request: Request) -> Reply:
        kinds = {b"1": Reply([b"x"], then="close"), b"2": Reply([], framing="raw", then="reset")}
        return kinds.get(request.header("x-kind") or b"", Reply([b"data: a\n\n"] * 3, framing="chunked"))

    left: list[int] = []
    logging.disable()  # pytest keeps what is logged
    with upstream(script) as provider:
        app = Proxy([Route(upstream=provider.url)])
        with proxy(app) as url:
            for number in range(count):
                with suppress(http.client.HTTPException, ConnectionError):
                    send(url, CHAT, BROKEN, x_kind=str(number % 7))
                provider.requests.clear()
            gc.collect()
            left = [len([*Path("/proc/self/fd").iterdir()]), len(gc.get_objects())]
    logging.disable(logging.NOTSET)
    return left[0], app.records.in_flight, left[1]  # the last one ends a moment after its client has all


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts what Linux tells")
@pytest.mark.soak
def test_nothing_is_left_of_ten_thousand_requests():
    spend(100)
    few, many = spend(200), spend(10_000)
    print(f"descriptors, requests, objects after 200 and 10,000 requests: {few}, {many}")
    assert many[0] <= few[0] + 5
    assert many[1] == 0
    assert many[2] <= few[2] * 1.02 + 1000


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts what Linux tells")
def test_nothing_is_left_of_a_few_requests():
    few, more = spend(30), spend(90)
    assert (more[0] <= few[0] + 3, more[1]) == (True, 0)


def test_the_application_ends_when_it_is_told_so():
    async def live() -> list[str]:
        said: list[str] = []
        asked = iter(["lifespan.startup", "lifespan.shutdown"])

        async def receive() -> dict[str, Any]:
            return {"type": next(asked)}

        async def send(message: dict[str, Any]) -> None:
            said.append(message["type"])

        await Proxy([Route(upstream="http://127.0.0.1:1")])({"type": "lifespan"}, receive, send)
        return said

    assert asyncio.run(live()) == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
