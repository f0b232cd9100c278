"""A provider on 127.0.0.1, for Chat Completions and Anthropic's Messages, that answers by a script.

It remembers every request and every connection. What a program did is judged by that.
"""

import json
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from struct import pack
from threading import Event, Thread
from typing import Any

__all__ = ["Answer", "Call", "Json", "Provider", "Reply", "Request", "unreachable"]

Json = dict[str, Any]
_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


@dataclass(frozen=True)
class Call:
    """A tool call; `arguments` is its JSON, as the model writes it."""

    name: str
    arguments: str
    id: str = "call_1"


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the provider answers: its texts and calls, or an error, or a broken connection."""

    texts: Sequence[str] = ()
    calls: Sequence[Call] = ()
    pause: float = 0.0
    """Seconds before each text."""
    silent: bool = False
    """Whether nothing more comes after the texts, and the connection stays open."""
    status: int = 200
    error: str = ""
    reset: bool = False
    """Whether the connection is reset instead of an answer."""


Answer = Callable[[Json, int], Reply]
"""Gives the reply to a request: its body, and how many were answered before."""


@dataclass(frozen=True)
class Request:
    """What the provider was sent."""

    path: str
    headers: dict[str, str]
    body: Json

    @property
    def messages(self) -> list[Json]:
        return self.body["messages"]

    @property
    def words(self) -> str:
        """The messages as one text, to look for what must be among them."""
        return json.dumps(self.messages, ensure_ascii=False)


class Provider:
    """The server; `url` is its address, without `/v1`."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.requests: list[Request] = []
        self.connections = 0
        self.over = Event()
        provider = self

        class Handler(_Handler):
            def setup(self) -> None:
                provider.connections += 1
                self.provider = provider
                super().setup()

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        Thread(target=self._server.serve_forever, daemon=True).start()


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
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        number = len(self.provider.requests)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.provider.requests.append(Request(self.path, headers, body))
        reply = self.provider.answer(body, number)
        whole, pieces = (_message, _events) if self.path.endswith("/messages") else (_completion, _chunks)
        if reply.reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pack("ii", 1, 0))
            self.close_connection = True
            self.connection.close()
        elif reply.status != 200:
            self._send(reply.status, {"type": "error", "error": {"type": "error", "message": reply.error}})
        elif body.get("stream"):
            self._stream(pieces(reply, body["model"]), reply)
        else:
            time.sleep(reply.pause * len(reply.texts))
            if reply.silent:
                self.provider.over.wait(60)
            self._send(200, whole(reply, body["model"]))

    def _send(self, status: int, body: Json) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: Iterator[Json | None], reply: Reply) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in events:
            if event is None:
                if reply.silent:
                    self.provider.over.wait(60)
                continue
            if _is_text(event):
                time.sleep(reply.pause)
            name = f"event: {event['type']}\n" if "type" in event else ""
            self._chunk(f"{name}data: {json.dumps(event)}\n\n")
        if not self.path.endswith("/messages"):
            self._chunk("data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()


def _is_text(event: Json) -> bool:
    choices = event.get("choices") or [{}]
    return bool(choices[0].get("delta", {}).get("content")) or event.get("delta", {}).get("type") == "text_delta"


# --- Chat Completions: whole, and as a stream; None stands where the texts end


def _chat_calls(reply: Reply) -> list[Json]:
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in reply.calls
    ]


def _completion(reply: Reply, model: str) -> Json:
    message: Json = {"role": "assistant", "content": "".join(reply.texts) or None}
    if reply.calls:
        message["tool_calls"] = _chat_calls(reply)
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if reply.calls else "stop"}
    head = {"id": "chat_1", "object": "chat.completion", "created": 1, "model": model}
    return {**head, "choices": [choice], "usage": _USAGE}


def _chunks(reply: Reply, model: str) -> Iterator[Json | None]:
    head = {"id": "chat_1", "object": "chat.completion.chunk", "created": 1, "model": model}

    def chunk(delta: Json, finish: str | None = None) -> Json:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    yield from (chunk({"content": text}) for text in reply.texts)
    yield None
    yield from (chunk({"tool_calls": [{"index": index, **call}]}) for index, call in enumerate(_chat_calls(reply)))
    yield chunk({}, "tool_calls" if reply.calls else "stop")
    yield {**head, "choices": [], "usage": _USAGE}


# --- Anthropic's Messages


def _message(reply: Reply, model: str) -> Json:
    content: list[Json] = [{"type": "text", "text": "".join(reply.texts)}] if reply.texts else []
    content += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}
        for call in reply.calls
    ]
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "stop_sequence": None}
    usage = {"input_tokens": 10, "output_tokens": 5}
    return {**head, "content": content, "stop_reason": "tool_use" if reply.calls else "end_turn", "usage": usage}


def _events(reply: Reply, model: str) -> Iterator[Json | None]:
    message = _message(reply, model)
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            yield {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}
            deltas = [{"type": "text_delta", "text": text} for text in reply.texts]
        else:
            yield {"type": "content_block_start", "index": index, "content_block": {**block, "input": {}}}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield None
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}}
    yield {"type": "message_stop"}


def unreachable() -> tuple[str, list[socket.socket]]:
    """Return the address of a host that drops what it is sent, as a firewall does, and the sockets to keep for it."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    sockets = [listener]
    for _ in range(3):  # with its queue full, the kernel answers no further SYN
        waiting = socket.socket()
        waiting.setblocking(False)
        waiting.connect_ex(listener.getsockname())
        sockets.append(waiting)
    return f"http://127.0.0.1:{listener.getsockname()[1]}", sockets
