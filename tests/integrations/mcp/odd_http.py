"""An HTTP server in a thread that answers as an MCP server of an older revision, or as none."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Odd:
    """What the server is to do, and what it was sent."""

    def __init__(self) -> None:
        self.url = ""
        self.status = 200
        self.html = False
        self.call = b""
        """What calls are answered with, `%d` being the number of the call; `kind` is its content type."""
        self.kind = ""
        self.rest = b""
        """The events that follow where the stream of a call was cut."""
        self.call_status = 200
        self.number = 0
        self.notification_status = 202
        self.repeats = False
        """Whether all that is asked is refused, in words that hold the headers and the address."""
        self.session = 1
        """The session that is known; a request of another one gets 404."""
        self.headers: list[dict[str, str]] = []
        self.path = ""
        self.elsewhere = "/mcp"
        """Where other paths redirect to."""
        self.methods: list[str] = []

    def result(self, method: str) -> dict[str, Any]:
        if method == "initialize":
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "odd", "version": "1"},
            }
        if method == "tools/list":
            return {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
        return {"content": [{"type": "text", "text": f"session {self.session}"}]}

    def numbered(self, body: bytes) -> bytes:
        """Return what answers the last call."""
        return body.replace(b"%d", str(self.number).encode())

    def answer(self, request: dict[str, Any], session: str | None) -> tuple[int, bytes, str]:
        """Return the status, the body and the content type that answer a request."""
        method = request["method"]
        if self.html:
            return 200, b"<html>hello</html>", "text/html"
        if self.status != 200:
            return self.status, b"go away", "text/plain"
        if method == "server/discover":
            return 400, b"no session", "text/plain"
        if method != "initialize" and session != str(self.session):
            return 404, b"no such session", "text/plain"
        if "id" not in request:
            return self.notification_status, b"", "text/plain"
        if method == "tools/call" and self.kind:
            self.number = request["id"]
            return self.call_status, self.numbered(self.call), self.kind
        said = {"result": self.result(method)}
        if self.repeats:
            said = {"error": {"code": -32000, "message": f"no entry for {self.headers[-1]} at {self.path}"}}
        return 200, json.dumps({"jsonrpc": "2.0", "id": request["id"], **said}).encode(), "application/json"


@contextmanager
def odd_http() -> Iterator[Odd]:
    """Serve until the block ends."""
    odd = Odd()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            odd.headers.append(dict(self.headers))
            odd.methods.append(request["method"])
            odd.path = self.path
            if self.path.partition("?")[0] == "/mcp":
                self.reply(*odd.answer(request, self.headers["mcp-session-id"]))
            else:
                self.reply(307, b"", "text/plain")

        def do_GET(self) -> None:
            if self.headers["last-event-id"]:
                self.reply(200, odd.numbered(odd.rest), "text/event-stream")
            else:
                self.reply(405, b"", "text/plain")

        def do_DELETE(self) -> None:
            odd.methods.append("DELETE")
            self.reply(200, b"", "text/plain")

        def reply(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("mcp-session-id", str(odd.session))
            if status == 307:
                self.send_header("Location", odd.elsewhere)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that it has there
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    odd.url = f"http://127.0.0.1:{server.server_address[1]}/mcp"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield odd
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
