"""What passes through the proxy: unchanged unless a rule is broken, and then nothing but the history."""

import gzip
import http.client
import json
import random
from contextlib import closing
from typing import Any

import pytest

from suture.providers import find_place
from suture.proxy import Proxy, Records, Route
from suture.proxy.requests import Rules, look_at, rules_of
from tests.corpus import ROOT, needs_corpus, recorded_requests
from tests.histories import write
from tests.proxy.serving import Reply, proxy, upstream

PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/gemini-3:generateContent",
}
FIELDS = {"openai-responses": "input", "gemini": "contents"}
KEY = "sk-very-secret-1234567890"
BROKEN = (
    b'{"temperature": 1.10, "messages": [{"role":"user","content":"caf\\u00e9", "x": 1E2},\n'
    b'{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}], '
    b'"model": "gpt-5"}'
)


def send(url: str, path: str, body: bytes = b"", method: str = "POST", **headers: str) -> tuple[Any, bytes]:
    client = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
    told = {"content-type": "application/json", **{name.replace("_", "-"): each for name, each in headers.items()}}
    with closing(client):
        client.request(method, path, body, told)
        with client.getresponse() as reply:
            return reply, reply.read()


def valid_history(wire: str, dice: random.Random) -> list[Any]:
    steps: list[Any] = [("user", "go\u2028on")]
    most = 3 if wire.startswith("openai") else 1  # elsewhere the results of a turn are one message, which no step is
    for turn in range(dice.randrange(6)):
        calls = [(f"call_{turn}_{n}", "f", '{"x": 1}') for n in range(dice.randint(1, most))]
        steps += [("turn", calls), *[("result", name, "f", f"r{dice.random()}") for name, *_ in calls]]
        if dice.random() < 0.5:
            steps += [("say", "well"), ("user", "more")]
    return write(wire, steps)


def as_written(value: Any, dice: random.Random) -> bytes:
    """Return JSON in one of the ways that programs write it."""
    return json.dumps(value, ensure_ascii=dice.random() < 0.5, indent=dice.choice([None, 1])).encode()


@pytest.mark.parametrize("wire", PATHS)
def test_a_valid_request_goes_on_byte_for_byte(wire: str):
    dice = random.Random(wire)
    with upstream() as provider, proxy(provider.url) as url:
        for _ in range(10):
            body = as_written({"model": "m", FIELDS.get(wire, "messages"): valid_history(wire, dice)}, dice)
            reply, _ = send(url, PATHS[wire], body)
            assert provider.requests[-1].body == body
            assert reply.getheader("x-suture-repaired") == "0"


@pytest.mark.soak
@pytest.mark.parametrize("wire", PATHS)
def test_a_thousand_valid_requests_are_left_alone(wire: str):
    place = find_place(PATHS[wire])
    assert place is not None
    dice = random.Random(wire)
    for _ in range(1000):
        body = as_written({"model": "m", place.field: valid_history(wire, dice)}, dice)
        assert look_at(body, PATHS[wire], place, lambda model: Rules(rules_of("h", model, wire))).body is None


@needs_corpus
def test_every_recorded_request_that_was_accepted_goes_on_byte_for_byte():
    seen = 0
    for _, wire, messages, status in recorded_requests():
        if status != 200 or wire not in PATHS:
            continue
        place = find_place(PATHS[wire])
        assert place is not None
        body = json.dumps({"model": "m", place.field: messages}).encode()
        assert look_at(body, PATHS[wire], place, lambda model, w=wire: Rules(rules_of("h", model, w))).body is None
        seen += 1
    assert seen > 30


def test_only_the_broken_part_of_a_history_is_written_anew():
    with upstream() as provider, proxy(provider.url) as url:
        reply, _ = send(url, PATHS["openai-chat"], BROKEN)
    sent = provider.requests[0].body
    assert b'{"role":"user","content":"caf\\u00e9", "x": 1E2}' in sent
    assert sent.startswith(b'{"temperature":1.10,')
    assert [message["role"] for message in json.loads(sent)["messages"]] == ["user", "assistant", "tool"]
    assert reply.getheader("x-suture-repaired") == "1"
    assert provider.requests[0].header("content-length") == str(len(sent)).encode()


def test_a_compressed_request_is_read_and_compressed_again():
    with upstream() as provider, proxy(provider.url) as url:
        send(url, PATHS["openai-chat"], gzip.compress(BROKEN), content_encoding="gzip")
        sound = gzip.compress(b'{"messages":[{"role":"user","content":"hi"}]}')
        send(url, PATHS["openai-chat"], sound, content_encoding="gzip")
    repaired, same = provider.requests
    assert json.loads(gzip.decompress(repaired.body))["messages"][-1]["role"] == "tool"
    assert repaired.header("content-encoding") == b"gzip"
    assert same.body == sound


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"[1]",
        b'{"messages": 5}',
        b'{"messages": [7]}',
        b'{"messages": [{"role": "user", "content": NaN}]}',
        b'{"messages": ' + b"[" * 5000 + b"]" * 5000 + b"}",
        b"\x1f\x8bgarbage",
        b"\xff\xfe",
    ],
    ids=range(9),
)
def test_what_cannot_be_read_goes_on_as_it_is(body: bytes):
    with upstream() as provider, proxy(provider.url) as url:
        reply, _ = send(url, PATHS["openai-chat"], body)
    assert (reply.status, provider.requests[0].body) == (200, body)


def test_half_a_character_is_replaced():
    body = b'{"messages": [{"role": "user", "content": "caf\\ud83d"}], "user": "\\ud83d"}'
    with upstream() as provider, proxy(provider.url) as url:
        send(url, PATHS["openai-chat"], body)
    assert json.loads(provider.requests[0].body) == {
        "messages": [{"role": "user", "content": "caf\ufffd"}],
        "user": "\ufffd",
    }


def test_a_body_that_somebody_vouched_for_is_not_touched():
    with upstream() as provider, proxy(provider.url) as url:
        send(url, PATHS["openai-chat"], BROKEN, content_md5="x")
    assert provider.requests[0].body == BROKEN


def test_a_body_over_the_limit_is_passed_on_as_it_comes():
    from suture.proxy import Timing

    with upstream() as provider:
        app = Proxy([Route(upstream=provider.url)], timing=Timing(max_body=50))
        with proxy(app) as url:
            reply, _ = send(url, PATHS["openai-chat"], BROKEN)
    assert provider.requests[0].body == BROKEN
    assert reply.getheader("x-suture-repaired") is None


def test_what_continues_a_conversation_that_the_service_keeps_has_no_orphans():
    output = {"type": "function_call_output", "call_id": "call_1", "output": "42"}
    body = json.dumps({"model": "m", "previous_response_id": "resp_1", "input": [output]}).encode()
    with upstream() as provider, proxy(provider.url) as url:
        send(url, PATHS["openai-responses"], body)
    assert provider.requests[0].body == body


def test_what_needs_no_repair_in_a_batch_keeps_its_bytes():
    sound = b'{"custom_id" :"a\\u0041", "params":{"temperature":1E0,"messages":[{"role":"user","content":"x" }]}}'
    broken = BROKEN.replace(
        b'"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]', b"%b"
    )
    broken %= b'"content":[{"type":"tool_use","id":"a","name":"f","input":{"n":1E2}}]'
    with upstream() as provider, proxy(provider.url) as url:
        send(
            url,
            "/v1/messages/batches",
            b'{"n": 1E2, "requests": [null, ' + sound + b',\n {"params": ' + broken + b"}]}",
        )
    assert sound in provider.requests[0].body
    for piece in (b'"n":1E2', b'"temperature":1.10', b'"content":"caf\\u00e9", "x": 1E2}', b'"input":{"n":1E2}'):
        assert piece in provider.requests[0].body


def test_each_request_of_a_batch_is_repaired():
    use = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    broken = {"model": "m", "messages": [{"role": "user", "content": "go"}, {"role": "assistant", "content": [use]}]}
    sound = {"model": "m", "messages": [{"role": "user", "content": "go"}]}
    body = {"requests": [{"custom_id": "1", "params": broken}, {"custom_id": "2", "params": sound}]}
    with upstream() as provider, proxy(provider.url) as url:
        send(url, "/v1/messages/batches", json.dumps(body).encode())
    first, second = json.loads(provider.requests[0].body)["requests"]
    assert [len(first["params"]["messages"]), second["params"]] == [3, sound]


def test_headers_reach_the_other_end_and_none_is_added_or_lost():
    given = [(b"server", b"them"), (b"date", b"now"), (b"set-cookie", b"a=1"), (b"set-cookie", b"b=2")]
    reply = Reply(headers=[*given, (b"x-request-id", b"r1"), (b"connection", b"x-hop"), (b"x-hop", b"1")])
    with upstream(reply) as provider, proxy(provider.url) as url:
        answer, _ = send(
            url, "/v1/models", method="GET", x_api_key=KEY, user_agent="me", connection="te", te="trailers"
        )
    assert sorted(provider.requests[0].headers) == [
        (b"accept-encoding", b"identity"),
        (b"content-length", b"0"),
        (b"content-type", b"application/json"),
        (b"host", provider.url.removeprefix("http://").encode()),
        (b"user-agent", b"me"),
        (b"x-api-key", KEY.encode()),
    ]
    assert [(name.encode(), value.encode()) for name, value in answer.getheaders()] == [
        *given,
        (b"x-request-id", b"r1"),
        (b"content-length", b"2"),
    ]


def test_paths_and_queries_are_not_touched():
    with upstream() as provider, proxy(Proxy([Route(upstream=provider.url + "/api/v1", prefix="/a")])) as url:
        send(url, "/a/v1/x%2Fy/../z?q=%20&q=+", method="GET")
        refused, _ = send(url, "/b/v1", method="GET")
    assert provider.requests[0].target == "/api/v1/x%2Fy/../z?q=%20&q=+"
    assert refused.status == 404


def test_many_requests_share_a_connection():
    with upstream() as provider, proxy(provider.url) as url:
        client = http.client.HTTPConnection(url.removeprefix("http://"))
        for _ in range(5):
            client.request("POST", PATHS["openai-chat"], BROKEN)
            client.getresponse().read()
        client.close()
    assert (len(provider.requests), provider.connections) == (5, 1)


def cut_everywhere(stream: bytes, step: int) -> None:
    pieces: list[list[bytes]] = [[stream[:at], stream[at:]] if at else [stream] for at in range(0, len(stream), step)]
    waiting = iter(pieces)
    with upstream(lambda _: Reply(next(waiting), framing="chunked")) as provider, proxy(provider.url) as url:
        for _ in pieces:
            assert send(url, PATHS["openai-chat"], b"{}")[1] == stream


def recorded_streams() -> list[bytes]:
    found: list[bytes] = []
    for path in sorted(ROOT.glob("recordings/*/*.json")):
        for exchange in json.loads(path.read_text(encoding="utf-8"))["interactions"]:
            body = exchange["response"].get("body")
            if isinstance(body, str) and "data: " in body:
                found.append(body.encode())
    return found


@needs_corpus
def test_a_recorded_stream_is_passed_back_byte_for_byte():
    stream = min(recorded_streams(), key=len)
    cut_everywhere(stream, max(1, len(stream) // 10))


@needs_corpus
@pytest.mark.soak
def test_recorded_streams_cut_at_every_byte_are_passed_back_byte_for_byte():
    for stream in recorded_streams():
        cut_everywhere(stream[:2000], 1)


def test_a_request_with_half_a_character_is_reported_too(tmp_path: Any):
    report = tmp_path / "report.jsonl"
    with upstream() as provider:
        app = Proxy([Route(upstream=provider.url)], records=Records(str(report)))
        with proxy(app) as url:
            send(url, "/v1/chat/completions", BROKEN.replace(b"gpt-5", b"gpt-\\ud83d"))
    assert json.loads(report.read_text())["model"] == "gpt-\ufffd"


def test_the_report_says_what_was_done_and_nothing_of_what_was_said(tmp_path: Any):
    report = tmp_path / "report.jsonl"
    body = BROKEN.replace(b"caf", KEY.encode())
    with upstream() as provider:
        app = Proxy([Route(upstream=provider.url)], records=Records(str(report)))
        with proxy(app) as url:
            send(url, f"{PATHS['openai-chat']}?key={KEY}", body, authorization=f"Bearer {KEY}")
            send(url, PATHS["openai-chat"], b'{"messages": []}')
            _, told = send(url, "/metrics", method="GET")
    [line] = map(json.loads, report.read_text().splitlines())
    assert (line["model"], line["status"], line["changed"]) == ("gpt-5", 200, True)
    assert [finding["rule"] for finding in line["reports"][0]["findings"]] == ["openai-chat.answered"]
    assert KEY not in report.read_text()
    assert oct(report.stat().st_mode)[-3:] == "600"
    assert b'suture_findings_total{rule="openai-chat.answered"} 1' in told
    assert b'suture_requests_total{wire="openai-chat",status="2xx"} 2' in told


@pytest.mark.parametrize("method", ["HEAD", "GET", "DELETE"])
@pytest.mark.parametrize(
    ("head", "status"),
    [("200 OK\r\ncontent-length: 5", 200), ("204 No Content", 204), ("304 X\r\ncontent-length: 5", 304)],
)
def test_replies_without_a_body_end(method: str, head: str, status: int):
    body = b"hello" if status == 200 and method != "HEAD" else b""
    reply = Reply([f"HTTP/1.1 {head}\r\n\r\n".encode() + body], framing="raw")
    with upstream(reply) as provider, proxy(provider.url) as url:
        answers = [send(url, "/v1/x", method=method) for _ in range(2)]
    assert [(answer.status, read) for answer, read in answers] == [(status, body)] * 2


def test_a_compressed_reply_is_passed_back_as_it_is():
    data = gzip.compress(b"data: a\n\n")
    reply = Reply([data[:7], data[7:]], headers=[(b"content-encoding", b"gzip")], framing="chunked")
    with upstream(reply) as provider, proxy(provider.url) as url:
        answer, read = send(url, PATHS["anthropic"], b'{"messages": []}', accept_encoding="gzip")
    assert (read, answer.getheader("content-encoding")) == (data, "gzip")
    assert provider.requests[0].header("accept-encoding") == b"gzip"


def test_a_websocket_is_told_to_use_http():
    with upstream() as provider, proxy(provider.url) as url:
        answer, _ = send(url, "/v1/responses", method="GET", connection="upgrade", upgrade="websocket")
    assert (answer.status, provider.requests) == (426, [])
