"""A provider on 127.0.0.1 that streams chunks of chat completions, and records what it was sent."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Streams(NamedTuple):
    """`answers` is used up from the front, each a list of chunks; `bodies` holds what arrived."""

    url: str
    answers: list[Sequence[dict[str, Any]]]
    bodies: list[dict[str, Any]]


@contextmanager
def streaming_provider(*answers: Sequence[dict[str, Any]]) -> Iterator[Streams]:
    """Serve until the block ends. Without answers that are left it says 503."""
    left, bodies = list(answers), list[dict[str, Any]]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            chunks = left.pop(0) if left else None
            events = [] if chunks is None else [*map(json.dumps, chunks), "[DONE]"]
            self.send_response(503 if chunks is None else 200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            for event in events:
                self.wfile.write(f"data: {event}\n\n".encode())

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that it has there
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield Streams(f"http://127.0.0.1:{server.server_port}", left, bodies)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def fragment(index: int, arguments: str, call_id: str | None = None, name: str | None = None) -> dict[str, Any]:
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return {"index": index, "function": function} | ({"id": call_id, "type": "function"} if call_id else {})


def usage(tokens: int) -> dict[str, Any]:
    counted = {"prompt_tokens": tokens, "completion_tokens": tokens, "total_tokens": 2 * tokens}
    return chunk() | {"choices": [], "usage": counted}
