"""The page as one file, and a server for this machine that follows a store."""

import asyncio
import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from urllib.parse import parse_qs, urlsplit

import msgspec

from suture.errors import SutureError
from suture.stores import Store
from suture.viewer.data import Run, show_run


def write_page(runs: Sequence[Run], *, names: Sequence[str] | None = None, live: bool = False) -> str:
    """Return the page with these runs in it; a browser needs nothing else.

    >>> page = write_page([Run("empty", "message")])
    >>> "<script>" in page, "http" in page.partition("<body>")[0].replace("http-equiv", "")
    (True, False)
    """
    template = files("suture.viewer").joinpath("page.html").read_text(encoding="utf-8")
    data = {"runs": runs, "names": names, "live": live}
    # A browser ends the block at the first "</script": with no "<" in it there is none.
    plain = msgspec.json.encode(data).decode().replace("<", "\\u003c")
    policy = f"default-src 'none'; base-uri 'none'; form-action 'none'; connect-src 'self'; {_hash_parts(template)}"
    return template.replace("__POLICY__", policy).replace("__DATA__", plain)


def _hash_parts(template: str) -> str:
    """Return which script and which style may act: ours, by their hashes."""
    parts = re.findall(r"<(style|script)>(.*?)</", template, re.DOTALL)
    digests = [(kind, base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()) for kind, text in parts]
    return "; ".join(f"{kind}-src 'sha256-{digest}'" for kind, digest in digests)


def serve(page: Callable[[], str], *, run: Callable[[str], Run] | None = None, port: int = 0) -> ThreadingHTTPServer:
    """Return a server of the page for browsers on this machine; where `run` is given, they ask it for runs by name.

    A page of another site cannot read it: a request that names any other host than this machine is refused.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            try:
                if (self.headers.get("host") or "").partition(":")[0] not in ("127.0.0.1", "localhost"):
                    self._send(403, "text/plain", b"ask for 127.0.0.1")
                elif asked.path == "/":
                    self._send(200, "text/html; charset=utf-8", page().encode())
                elif asked.path == "/run" and run is not None:
                    shown = run(parse_qs(asked.query).get("name", [""])[0])
                    self._send(200, "application/json", msgspec.json.encode(shown))
                else:
                    self._send(404, "text/plain", b"there is only one page")
            except SutureError as error:
                self._send(404, "text/plain", str(error).encode())

        def _send(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            headers = {"content-type": kind, "content-length": str(len(body)), "cache-control": "no-store"}
            for name, value in {**headers, "x-content-type-options": "nosniff"}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the library calls it
            """Say nothing."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def serve_store(open_store: Callable[[], AbstractContextManager[Store]], *, port: int = 0) -> ThreadingHTTPServer:
    """Return a server of the runs in a store, which the page follows while they go on.

    Each request opens the store anew, so it sees what other processes have written.
    """

    def run(name: str) -> Run:
        with open_store() as store:
            return asyncio.run(show_run(store, name))

    def page() -> str:
        with open_store() as store:
            names = asyncio.run(store.runs())
        if not names:
            raise SutureError("there is no run in this store yet")
        return write_page([run(names[0])], names=names, live=True)

    return serve(page, run=run, port=port)
