"""Five providers on 127.0.0.1 that ask for a payment once, and have hiccups.

What fails stands in the model's name, `hiccup_KIND_TURN_TIMES_ID`: in which way, in which turn, how often.
"""

import json
import re
import socket
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from struct import pack
from threading import Lock, Thread
from typing import Any
from zlib import crc32

__all__ = ["KINDS", "Provider"]

Json = dict[str, Any]
STATUSES = ("408", "429", "500", "503", "529")
STREAMED = ("overload", "cut")
KINDS = (*STATUSES, "closed", "reset", *STREAMED)
"""How a request fails; the last two only where there is a stream."""
_MARKS = (b'"tool_call_id"', b'"function_call_output"', b'"tool_result"', b'"functionResponse"', b'"toolResult"')
_NAME = re.compile(rb"hiccup_([a-z0-9]+)_(\d+)_(\d+)_([a-z0-9]+)")
_BUSY = "Overloaded, try later."


def _chat(calls: bool) -> tuple[Json, list[Json], Json]:  # noqa: FBT001 - and so below
    function = {"name": "pay", "arguments": "{}"}
    said: Json = {"role": "assistant", "content": None if calls else "done"}
    if calls:
        said["tool_calls"] = [{"index": 0, "id": "call_1", "type": "function", "function": function}]
    head = {"id": "chat_1", "created": 1, "model": "m"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    finish = "tool_calls" if calls else "stop"
    body = {"object": "chat.completion", "choices": [{"index": 0, "message": said, "finish_reason": finish}]}
    events = [
        {**head, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}
        for delta, end in ((said, None), ({}, finish))
    ]
    return {**head, **body, "usage": usage}, events, {"error": {"message": _BUSY, "type": "server_error", "code": 503}}


def _responses(calls: bool) -> tuple[Json, list[Json], Json]:  # noqa: FBT001
    item: Json = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    item["content"] = [{"type": "output_text", "text": "done", "annotations": []}]
    if calls:
        item = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "pay", "arguments": "{}"}
        item["status"] = "completed"
    body = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed"}
    body |= {"output": [item], "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    body["usage"] = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, **details}
    begun = {**item, "arguments": ""} if calls else {**item, "content": []}
    kind, delta = ("function_call_arguments", "{}") if calls else ("output_text", "done")
    place = {"output_index": 0, "item_id": item["id"], "content_index": 0, "logprobs": []}
    events: list[Json] = [
        {"type": "response.created", "response": {**body, "status": "in_progress", "output": [], "usage": None}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**begun, "status": "in_progress"}},
        {"type": f"response.{kind}.delta", "delta": delta, **place},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": body},
    ]
    numbered = [{**event, "sequence_number": number} for number, event in enumerate(events)]
    failed = {"type": "error", "message": _BUSY, "code": "server_is_overloaded", "param": None, "sequence_number": 9}
    return body, numbered, failed


def _messages(calls: bool) -> tuple[Json, list[Json], Json]:  # noqa: FBT001
    block: Json = {"type": "text", "text": "done"}
    if calls:
        block = {"type": "tool_use", "id": "call_1", "name": "pay", "input": {}}
    body: Json = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [block]}
    reason = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    body |= {**reason, "usage": {"input_tokens": 1, "output_tokens": 1}}
    delta = {"type": "input_json_delta", "partial_json": "{}"} if calls else {"type": "text_delta", "text": "done"}
    events: list[Json] = [
        {"type": "message_start", "message": {**body, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": block if calls else {**block, "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": reason, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    return body, events, {"type": "error", "error": {"type": "overloaded_error", "message": _BUSY}}


def _gemini(calls: bool) -> tuple[Json, list[Json], Json]:  # noqa: FBT001
    part = {"functionCall": {"id": "call_1", "name": "pay", "args": {}}} if calls else {"text": "done"}
    candidate = {"index": 0, "content": {"role": "model", "parts": [part]}}
    usage = {"usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}}
    body = {"candidates": [{**candidate, "finishReason": "STOP"}], "modelVersion": "m", **usage}
    failed = {"error": {"code": 503, "message": _BUSY, "status": "UNAVAILABLE"}}
    first = {"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": ""}]}}]}
    return body, [first, body], failed


def _converse(calls: bool) -> tuple[Json, list[Json], Json]:  # noqa: FBT001
    use = {"toolUseId": "call_1", "name": "pay"}
    block = {"toolUse": {**use, "input": {}}} if calls else {"text": "done"}
    usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
    reason = {"stopReason": "tool_use" if calls else "end_turn"}
    body = {"output": {"message": {"role": "assistant", "content": [block]}}, **reason, "usage": usage}
    start = [{"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": use}}}] if calls else []
    delta = {"toolUse": {"input": "{}"}} if calls else {"text": "done"}
    events: list[Json] = [
        {"messageStart": {"role": "assistant"}},
        *start,
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": delta}},
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"messageStop": reason},
        {"metadata": {"usage": usage, "metrics": {"latencyMs": 1}}},
    ]
    return {**body, "metrics": {"latencyMs": 1}}, events, {"serviceUnavailableException": {"message": _BUSY}}


_PROVIDERS: dict[str, Any] = {
    "chat/completions": _chat,
    "responses": _responses,
    "messages": _messages,
    "generateContent": _gemini,
    "streamGenerateContent": _gemini,
    "converse": _converse,
    "converse-stream": _converse,
}


def _line(event: Json) -> bytes:
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()


def _frame(event: Json) -> bytes:
    [(kind, payload)] = event.items()
    sort = "exception" if kind.endswith("Exception") else "event"
    about = {":message-type": sort, f":{sort}-type": kind, ":content-type": "application/json"}
    headers = b"".join(
        pack(">B", len(name)) + name.encode() + pack(">BH", 7, len(value)) + value.encode()
        for name, value in about.items()
    )
    data = json.dumps(payload).encode()
    prelude = pack(">II", 16 + len(headers) + len(data), len(headers))
    whole = prelude + pack(">I", crc32(prelude)) + headers + data
    return whole + pack(">I", crc32(whole))


class Provider:
    """The server, and how many requests it had by id of the case."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.lock = Lock()
        provider = self

        class Handler(_Handler):
            def setup(self) -> None:
                self.provider = provider
                super().setup()

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def fails(self, body: bytes) -> str:
        """Return how this request fails; nothing if it does not."""
        found = _NAME.search(body)
        if found is None:
            return "404"
        kind, turn, times, case = (part.decode() for part in found.groups())
        with self.lock:
            self.requests[case] += 1
            if _turn(body) != int(turn) or self.failed[case] >= int(times):
                return ""
            self.failed[case] += 1
            return kind


def _turn(body: bytes) -> int:
    return 1 + any(mark in body for mark in _MARKS)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that went away is no error here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    provider: Provider

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        path = self.path.partition("?")[0]
        kind = self.provider.fails(path.encode() + body)
        way = re.split(r"[/:]", path)[-1]
        whole, events, busy = _PROVIDERS["chat/completions" if way == "completions" else way](_turn(body) == 1)
        if kind.isdigit():
            self._send(int(kind), "application/json", json.dumps({"error": {"message": _BUSY}, **busy}).encode())
        elif kind in {"closed", "reset"}:
            self._cut(resets=kind == "reset")
        elif json.loads(body).get("stream") or way.startswith("stream") or way.endswith("-stream"):
            self._stream(kind, events, busy, _frame if way == "converse-stream" else _line)
        else:
            self._send(200, "application/json", json.dumps(whole).encode())

    def _send(self, status: int, sort: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", sort)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, kind: str, events: list[Json], busy: Json, write: Any) -> None:
        told = {"": events, "overload": [*events[:1], busy], "cut": events[:1]}[kind]
        data = b"".join(map(write, told))
        if kind == "" and "chat.completion.chunk" in str(events[0]):
            data += b"data: [DONE]\n\n"
        self.send_response(200)
        sort = "application/vnd.amazon.eventstream" if write is _frame else "text/event-stream"
        self.send_header("content-type", sort)
        self.send_header("content-length", str(len(data) + (100 if kind == "cut" else 0)))
        self.end_headers()
        self.wfile.write(data)
        if kind == "cut":
            self.wfile.flush()
            self._cut(resets=False)

    def _cut(self, *, resets: bool) -> None:
        if resets:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pack("ii", 1, 0))
        else:
            self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True
        self.connection.close()
