"""Collects what the page shows of a history or a stored run, writes the page as one file, and serves it."""

import asyncio
import base64
import hashlib
import re
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from suture.agent import ChatModelAgent
from suture.errors import SutureError
from suture.kernel import journal
from suture.kernel.run_state import RunState
from suture.kernel.state import Execution
from suture.messages import TokenUsage, ToolResult
from suture.repair import repair
from suture.stores import Store, StoreError
from suture.tokens import CharacterCounter
from suture.wires import Wire, get_wire, sendable
from suture.wires.parts import Telling

LONGEST = 100_000
"""How many characters of one text are shown."""


class Call(msgspec.Struct):
    """A call of a turn on the time line."""

    name: str
    id: str
    start: int = 0
    end: int = 0
    outcome: str = ""


class Turn(msgspec.Struct):
    """A turn on the time line: the model's reply, then the calls it made. Times are milliseconds since 1970."""

    number: int
    start: int
    replied: int
    calls: list[Call]
    usage: dict[str, int] = {}
    retries: list[str] = []


class Rewrite(msgspec.Struct):
    """A change of existing messages by a repair, a reduction, a compaction, or a hook."""

    by: str
    time: int
    start: int
    before: list[dict[str, Any]]
    after: list[dict[str, Any]]


class Run(msgspec.Struct):
    """All that the page shows of one history or run."""

    name: str
    wire: str
    profile: str = ""
    agent: str = ""
    outcome: str = ""
    error: str = ""
    messages: list[dict[str, Any]] = []
    findings: list[dict[str, Any]] = []
    turns: list[Turn] = []
    rewrites: list[Rewrite] = []
    interrupts: list[dict[str, Any]] = []
    usage: dict[str, int] = {}
    records: int = 0


def show_history(
    messages: Sequence[Any], *, name: str = "history", wire: str | None = None, profile: Any = None
) -> Run:
    """Return what the page shows of a history: its messages, what a provider would refuse, and the repair.

    >>> show_history([{"role": "user", "content": "hi"}]).messages[0]["text"]
    'hi'
    """
    fixed = repair(messages, wire=wire, profile=profile)
    shape = get_wire(fixed.report.wire)
    shown = Run(name, shape.name, fixed.report.profile, messages=_messages(shape, messages))
    shown.findings = list(fixed.report.to_dict()["findings"])
    if fixed.changed:
        start, stop, after = journal.find_difference(messages, fixed.messages)
        before = _messages(shape, messages[start:stop])
        rewrite = Rewrite("suture.repair", 0, start, before, _messages(shape, after))
        shown.rewrites.append(rewrite)
    return shown


async def show_run(store: Store, name: str) -> Run:
    """Return what the page shows of a stored run: its turns with their times, and everything that was rewritten.

    Everything after a record that cannot be read is left out, and `error` says so.
    """
    try:
        records = await store.load(name)
    except StoreError as error:  # the other runs of the store can still be shown
        return Run(name, "", error=str(error))
    if not records:
        raise SutureError(f"there is no run {name!r} in this store")
    try:
        reader = _Reader(name, records)
    except Exception as error:  # noqa: BLE001 - as above, whatever the error is
        return Run(name, "", error=_fault(0, error), records=len(records))
    return reader.read()


_COUNTER = CharacterCounter()


def _messages(wire: Wire, messages: Sequence[Any]) -> list[dict[str, Any]]:
    return [_message(wire, message) for message in messages]


def _message(wire: Wire, message: Any) -> dict[str, Any]:
    """Return a message as the page shows it."""
    view = wire.view(message)
    telling = Telling(view.role)
    wire.tell(message, telling)
    words = telling.words()
    shown: dict[str, Any] = {"role": view.role, "text": _text("\n".join(words.texts[1:]))}
    if words.media:
        shown["media"] = words.media
    if view.calls:
        shown["calls"] = [
            {"id": call.id or "", "name": call.name, "arguments": _text(_plain(call.arguments))} for call in view.calls
        ]
    if view.results:
        texts = [(result, *wire.result_text(result)) for result in view.results]
        shown["results"] = [
            {"id": result.id or "", "name": result.name or "", "text": _text(text)} for result, text, _ in texts
        ]
    shown["tokens"] = _COUNTER.count(message)
    return shown


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()


def _text(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"


class _NoModel:
    """Stands in for the model of a run that is only read."""

    def __init__(self, wire: str) -> None:
        self.wire, self.profile = wire, "pairing"

    def stream(self, request: Any) -> AsyncIterator[Any]:
        raise NotImplementedError(request)


class _Reader:
    """Reads the records of a run in order, and collects what each of them did."""

    def __init__(self, name: str, records: Sequence[bytes]) -> None:
        self.records = records
        began = journal.decode_records(records[0], RunState().version)[0]
        wire = began.fields["wire"] if isinstance(began, journal.Began) else ""
        agent: ChatModelAgent[Any, Any] = ChatModelAgent(model=_NoModel(wire))
        self.run = Execution(agent.spec, RunState())
        self.run.checkpoint_id = name
        self.wire = get_wire(wire)
        self.shown = Run(name, wire, records=len(records))
        self.messages: list[Any] = []
        self.turn: Turn | None = None
        self.time = 0
        self.retries: list[str] = []
        self.by = ""

    def read(self) -> Run:
        shown, fault = self.shown, ""
        for number, data in enumerate(self.records):
            try:
                self._read(data)
            except Exception as error:  # noqa: BLE001 - whatever the error is, earlier records can be shown
                fault = _fault(number, error)
                break
        state = self.run.state
        shown.agent, shown.outcome, shown.error = state.agent, state.outcome, fault or state.error
        shown.messages, shown.usage = _messages(self.wire, self.messages), _usage(state.usage)
        known = repair(self.messages, wire=self.wire.name, profile="pairing", tail="keep").report
        shown.profile, shown.findings = known.profile, list(known.to_dict()["findings"])
        shown.interrupts = [
            {"id": key, "call_id": call_id, "info": _plain(state.infos[key][0]) if key in state.infos else ""}
            for key, call_id in state.waiting.items()
        ]
        return shown

    def _read(self, data: bytes) -> None:
        changes = journal.decode_records(data, self.run.state.version)
        written = next((change.time for change in reversed(changes) if isinstance(change, journal.Noted)), self.time)
        for change in changes:
            self._collect_before(change, written)
            journal.apply_record(self.run, change, self.messages)
            self._collect_after(change, written)
        self.time = written

    def _collect_before(self, change: journal.Record, time: int) -> None:
        """Collect what can only be seen before a change is applied."""
        if isinstance(change, journal.Noted) and change.what == "retry":
            self.retries.append(change.text)
        elif isinstance(change, journal.Noted) and change.what:
            self.by = change.text
        elif isinstance(change, journal.Spliced) and change.start < len(self.messages):
            old = self.messages[change.start : change.stop]
            new = [self.run.wire.load(item) for item in change.messages]
            before, after = _messages(self.wire, old), _messages(self.wire, new)
            if before and before[-1] in after:  # messages after it were added by the same record, not rewritten
                after = after[: len(after) - after[::-1].index(before[-1])]
            self.shown.rewrites.append(Rewrite(self.by, time, change.start, before, after))
        elif isinstance(change, journal.Answered) and self.turn is not None:
            for index, result in self.run.state.ended.items():
                self._end(index, "error" if result.is_error else "finished", time)

    def _collect_after(self, change: journal.Record, time: int) -> None:
        """Collect what a change has added, after it was applied."""
        if isinstance(change, journal.Changed) and change.fields.get("turn"):
            calls = self.run.wire.calls(self.messages[-1]) if self.messages else ()
            shown = [Call(call.name, call.id or "") for call in calls]
            number, usage = len(self.shown.turns) + 1, _usage(self.run.state.last_usage)
            self.turn = Turn(number, self.time or time, time, shown, usage, self.retries)
            self.retries = []
            self.shown.turns.append(self.turn)
        elif isinstance(change, journal.Put) and change.field == "started" and self.turn is not None:
            for index in change.entries:
                self.turn.calls[int(index)].start = time
        elif isinstance(change, journal.Put) and change.field == "ended":
            for index in change.entries:
                result: ToolResult = self.run.state.ended[int(index)]
                self._end(int(index), "error" if result.is_error else "finished", time)
        elif isinstance(change, journal.Put) and change.field == "causes":
            for index, cause in change.entries.items():
                self._end(int(index), str(cause), time)

    def _end(self, index: int, outcome: str, time: int) -> None:
        if self.turn is not None and index < len(self.turn.calls) and not self.turn.calls[index].end:
            call = self.turn.calls[index]
            call.end, call.outcome = time, outcome


def _fault(number: int, error: Exception) -> str:
    return f"record {number} cannot be read ({type(error).__name__}: {error})"


def _usage(usage: TokenUsage | None) -> dict[str, int]:
    if usage is None:
        return {}
    return {key: value for key, value in msgspec.to_builtins(usage).items() if isinstance(value, int) and value}


# --- the page -------------------------------------------------------------------------------------


def write_page(runs: Sequence[Run], *, names: Sequence[str] | None = None, live: bool = False) -> str:
    """Return a page with these runs in it, which a browser can show by itself.

    >>> page = write_page([Run("empty", "message")])
    >>> "<script>" in page, "http" in page.partition("<body>")[0].replace("http-equiv", "")
    (True, False)
    """
    template = files("suture.viewer").joinpath("page.html").read_text(encoding="utf-8")
    data = {"runs": runs, "names": names, "live": live}
    # A browser ends the block at the first "</script": with no "<" in it there is none.
    plain = _encode(data).decode().replace("<", "\\u003c")
    # The policy allows only our script and our style, by their hashes.
    parts = re.findall(r"<(style|script)>(.*?)</", template, re.DOTALL)
    digests = [(kind, base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()) for kind, text in parts]
    allowed = "; ".join(f"{kind}-src 'sha256-{digest}'" for kind, digest in digests)
    policy = f"default-src 'none'; base-uri 'none'; form-action 'none'; connect-src 'self'; {allowed}"
    return template.replace("__POLICY__", policy).replace("__DATA__", plain)


def _encode(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # a lone surrogate
        return msgspec.json.encode(sendable(msgspec.to_builtins(value)))


class _Server(ThreadingHTTPServer):
    """A server that ignores browsers that disconnect."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def serve(page: Callable[[], str], *, run: Callable[[str], Run] | None = None, port: int = 0) -> ThreadingHTTPServer:
    """Return a server of the page for browsers on this machine; with `run` they can request single runs by name.

    Pages of other sites cannot read it, because a request that names another host than this machine is refused.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                asked = urlsplit(self.path)
                if (self.headers.get("host") or "").partition(":")[0] not in ("127.0.0.1", "localhost"):
                    self._send(403, "text/plain", b"ask for 127.0.0.1")
                elif asked.path == "/":
                    self._send(200, "text/html; charset=utf-8", page().encode())
                elif asked.path == "/run" and run is not None:
                    shown = run(parse_qs(asked.query).get("name", [""])[0])
                    self._send(200, "application/json", _encode(shown))
                else:
                    self._send(404, "text/plain", b"there is only one page")
            except (SutureError, ValueError) as error:
                self._send(404, "text/plain", str(error).encode())

        def _send(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            headers = {"content-type": kind, "content-length": str(len(body)), "cache-control": "no-store"}
            for name, value in {**headers, "x-content-type-options": "nosniff"}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the library calls it
            """Log nothing."""

    return _Server(("127.0.0.1", port), Handler)


def serve_store(open_store: Callable[[], AbstractContextManager[Store]], *, port: int = 0) -> ThreadingHTTPServer:
    """Return a server of the runs in a store; the page follows them while they go on.

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
