"""A strict provider on this machine: Chat Completions, Responses, Messages, Gemini's API and Bedrock's Converse.

It refuses with a 400, in the provider's own form, what `strict_rules` says that it refuses, and else says its script.
Of Responses it keeps the conversation, and waits for the outputs of its calls. Nothing of a framework is imported here.
"""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any, cast

from tests.guests.strict_replies import BEDROCK, RESPONSES, Reply, read_api, refuse, stream, write
from tests.guests.strict_rules import JUDGES

Body = dict[str, Any]
Items = list[dict[str, Any]]


class Script:
    """One client's provider: says its `replies` one after the other, then "Done.", or what a function of the body says.

    `bodies` is what it accepted, `refused` why it did not, `histories` what the model saw: what was accepted, behind
    what the service keeps of the conversation. A stream waits at its first call until `goes_on` is set: its reader is
    to leave before that, and such a response is not kept.
    """

    def __init__(self, url: str, replies: Sequence[Reply] | Callable[[Body], Reply]) -> None:
        self.url = url
        self.bodies: list[Body] = []
        self.histories: list[Items] = []
        self.refused: list[str] = []
        self.goes_on = threading.Event()
        self.goes_on.set()
        self._replies = replies if callable(replies) else list(replies)
        self._kept: dict[str | None, Items] = {None: []}
        self._lock = threading.Lock()

    def answer(self, api: str, body: Body) -> tuple[int, Reply]:
        """Return the number of the reply and what it says; none, and why the request is refused."""
        field, judge = JUDGES[api]
        given: Any = body.get(field) or []
        items: Items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        before = body.get("previous_response_id")
        with self._lock:
            history = [*self._kept.get(before, ()), *items]
            unknown = [f"form: Previous response with id '{before}' not found."] if before not in self._kept else []
            if faults := unknown or judge(history):
                self.refused += faults
                return 0, faults[0].partition(": ")[2]
            self.bodies.append(body)
            self.histories.append(history)
            number = len(self.bodies)
            reply: Reply = "Done."
            if not callable(self._replies) and self._replies:
                reply = self._replies.pop(0)
        if callable(self._replies):
            reply = self._replies(body)  # may wait for something else to be asked
        if api == RESPONSES and self.goes_on.is_set():
            made = write(api, reply, number)
            self._kept[made["id"]] = [*history, *made["output"]]
        return number, reply


class StrictServer(ThreadingHTTPServer):
    """Serves any number of scripts, each below a path of its own."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.scripts: dict[str, Script] = {}
        self._numbers = count(1)

    def script(self, *replies: Reply, say: Callable[[Body], Reply] | None = None) -> Script:
        """Return a new script."""
        name = f"s{next(self._numbers)}"
        self.scripts[name] = Script(f"http://127.0.0.1:{self.server_address[1]}/{name}", say or replies)
        return self.scripts[name]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that has left."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        path = self.path.partition("?")[0]
        script = cast("StrictServer", self.server).scripts[path.split("/")[1]]
        api, streams = read_api(path)
        number, said = script.answer(api, body)
        if not number:
            refusal, headers = refuse(api, str(said))
            self._send(400, refusal, headers)
        elif body.get("stream", streams):
            with suppress(ConnectionError):
                self._stream(script, stream(api, said, number), api)
        else:
            self._send(200, write(api, said, number), {})

    def _send(self, status: int, body: Body, headers: dict[str, str]) -> None:
        answer = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": str(len(answer)), **headers}.items():
            self.send_header(name, value)
        self.send_header("connection", "close")  # so that nobody leaves one open who is done
        self.end_headers()
        self.wfile.write(answer)

    def _stream(self, script: Script, pieces: Sequence[bytes], api: str) -> None:
        self.send_response(200)
        kind = "application/vnd.amazon.eventstream" if api == BEDROCK else "text/event-stream"
        self.send_header("content-type", kind)
        self.send_header("transfer-encoding", "chunked")
        self.send_header("connection", "close")
        self.end_headers()
        for piece in pieces:
            if b"call_" in piece:
                script.goes_on.wait()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that the server has for it
        pass


@contextmanager
def strict_server() -> Iterator[StrictServer]:
    with StrictServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def strict_provider(*replies: Reply) -> Iterator[Script]:
    """Serve one script."""
    with strict_server() as server:
        yield server.script(*replies)
