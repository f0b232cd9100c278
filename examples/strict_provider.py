"""A provider on this machine: it answers as OpenAI's Chat Completions API does, and refuses what that refuses.

The checks know nothing of Suture: each call must be followed by its results, and each result must follow its call.
What the model says is up to `reply`, a function of the messages.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
    "The following tool_call_ids did not have response messages: {}"
)
UNASKED = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."


def find_fault(messages: Sequence[dict[str, Any]]) -> str | None:
    """Return what the API says of messages that it refuses."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return UNASKED
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            break
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
    return UNANSWERED.format(", ".join(waiting)) if waiting else None


@contextmanager
def serve(reply: Callable[[list[dict[str, Any]]], dict[str, Any]]) -> Iterator[str]:
    """Serve the API on a free port of this machine, and give its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            fault = find_fault(request["messages"])
            if fault:
                self._send(400, "application/json", {"error": {"message": fault, "type": "invalid_request_error"}})
                return
            message = {"role": "assistant", "content": None, **reply(request["messages"])}
            reason = "tool_calls" if message.get("tool_calls") else "stop"
            head = {"id": "chatcmpl-1", "created": 0, "model": request["model"]}
            if request.get("stream"):
                choice = {"index": 0, "delta": message, "finish_reason": reason}
                self._send(200, "text/event-stream", {**head, "object": "chat.completion.chunk", "choices": [choice]})
            else:
                choice = {"index": 0, "message": message, "finish_reason": reason}
                self._send(200, "application/json", {**head, "object": "chat.completion", "choices": [choice]})

        def _send(self, status: int, kind: str, body: dict[str, Any]) -> None:
            data = json.dumps(body)
            content = (f"data: {data}\n\ndata: [DONE]\n\n" if kind == "text/event-stream" else data).encode()
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the library calls it
            """Say nothing: the caller tells what it was answered."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
