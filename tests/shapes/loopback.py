"""A provider on 127.0.0.1 that records the bodies it is sent and answers what it was told to."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Provider:
    """`answers` is used up from the front; `bodies` holds what arrived."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.answers: list[dict[str, Any]] = []
        self.bodies: list[dict[str, Any]] = []


@contextmanager
def provider() -> Iterator[Provider]:
    """Serve until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.server.provider.bodies.append(json.loads(body))  # pyright: ignore[reportAttributeAccessIssue]
            answer = json.dumps(self.server.provider.answers.pop(0)).encode()  # pyright: ignore[reportAttributeAccessIssue]
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.provider = Provider(f"http://127.0.0.1:{server.server_port}")  # pyright: ignore[reportAttributeAccessIssue]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server.provider  # pyright: ignore[reportAttributeAccessIssue]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# --- what a provider answers ------------------------------------------------------------------


def chat_answer(**message: Any) -> dict[str, Any]:
    reply = {"role": "assistant", "content": None, "refusal": None, **message}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "logprobs": None, "message": reply}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def responses_answer(*output: Any) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def anthropic_answer(*content: Any) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(content),
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def gemini_answer(*parts: Any) -> dict[str, Any]:
    return {"candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": list(parts)}}]}
