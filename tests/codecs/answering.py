"""A server on this machine that answers as a provider does, for its real SDK to talk to."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any


@contextmanager
def answering(sdk: Any, client: str, body: bytes, kind: str) -> Iterator[tuple[Any, list[dict[str, Any]]]]:
    """Yield a client of `sdk` whose requests are answered with `body`, and the requests that came."""
    asked: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the parent's
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            address = f"http://127.0.0.1:{server.server_port}"
            http = sdk.DefaultHttpxClient(trust_env=False)
            make = getattr(sdk, client)
            with make(api_key="no-key", base_url=address, max_retries=0, http_client=http) as made:
                yield made, asked
        finally:
            server.shutdown()
            thread.join()
