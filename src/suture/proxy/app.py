"""The ASGI application: repairs the history in a request, forwards the request, and streams the reply back.

A request that needs no repair is forwarded byte for byte, and so is one that cannot be read, or whose repair fails or
takes too long. Replies always are.
"""

import asyncio
import logging
import os
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, MutableMapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache, partial
from typing import Any, NamedTuple
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec
from yarl import URL

from suture._aio import run_in_thread
from suture.errors import ConfigError
from suture.providers import Place, find_place
from suture.proxy.learning import Lessons
from suture.proxy.requests import Reading, Route, Rules, Unreadable, find_route, look_at, rules_of
from suture.wires import sendable

Scope = MutableMapping[str, Any]

_SIGNATURES = frozenset((b"content-md5", b"content-digest", b"digest", b"signature", b"x-amz-content-sha256"))
"""Headers that sign a body, which then cannot be changed."""
_AUTOMATIC = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
"""Headers that the client library would add."""
_MOST_AT_ONCE = 64
"""How many bodies may be examined at once; further ones are forwarded as they are."""
_PIECE = 1 << 18
_LONGEST_ERROR = 1 << 18
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

_CONNECTION = (b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade")
_HOP_HEADERS = frozenset((*_CONNECTION, b"proxy-authenticate", b"proxy-authorization", b"proxy-connection"))
"""Headers that belong to one connection and are not forwarded."""
_LOG = logging.getLogger("suture.proxy")
_HELP = {
    "requests_total": "Requests that were answered, by wire and class of status.",
    "repaired_requests_total": "Requests whose history was repaired, by wire.",
    "findings_total": "What was found in histories, by rule.",
    "reduced_requests_total": "Requests whose history was shortened, by wire.",
    "retried_requests_total": "Requests that were repaired by a stricter rule and sent once more, by lesson.",
    "failures_total": "What went wrong, by kind; a failed repair sends the original.",
    "request_seconds": "How long requests took.",
    "repair_seconds": "How long looks at requests took.",
}


# --- the program that asks ------------------------------------------------------------------------


class Client:
    """One request of a program, over ASGI. If the program disconnects, the task that answers is cancelled."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._task = asyncio.current_task()
        self._waiting: asyncio.Future[None] | None = None
        self.begun = self.gone = False

    async def read(self, limit: int, headers: Headers) -> tuple[bytes, bool]:
        """Return the body, or its beginning and `True` if it is over the limit."""
        length = next((value for name, value in headers if name == b"content-length"), b"")
        if length.isdigit() and int(length) > limit:
            return b"", True
        pieces: list[bytes] = []
        more, size = True, 0
        while more and size <= limit:
            message = await self._receive()
            self.gone = message["type"] == "http.disconnect"
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            more = message.get("more_body", False)
        return b"".join(pieces), more

    async def stream(self, first: bytes) -> AsyncIterator[bytes]:
        """Yield the body as it comes, and then watch for a disconnect."""
        if first:
            yield first
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ConnectionResetError
            more = message.get("more_body", False)
            if message.get("body"):
                yield message["body"]
        self.watch()

    def watch(self) -> None:
        """Watch for a disconnect, once the request has been read."""
        self._waiting = asyncio.ensure_future(self._wait())

    async def _wait(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.gone = True
        if self._task is not None:
            self._task.cancel()

    def stop(self) -> None:
        """Stop watching."""
        if self._waiting is not None:
            self._waiting.cancel()

    async def begin(self, reply: aiohttp.ClientResponse, reading: Reading | None) -> None:
        """Send the status and the headers of a reply."""
        headers = without_hops([(name.lower(), value) for name, value in reply.raw_headers])
        if reply.status in {204, 304}:
            headers = [(name, value) for name, value in headers if name != b"content-length"]
        if reading is not None:
            headers.append((b"x-suture-repaired", b"%d" % reading.repaired))
        self.begun = True
        await self._send({"type": "http.response.start", "status": reply.status, "headers": headers})

    async def write(self, body: bytes, *, more: bool = True) -> None:
        """Send a piece of a reply's body."""
        if not more:
            self.stop()  # from here on, a disconnect only means that all was sent
        await self._send({"type": "http.response.body", "body": body, "more_body": more})

    async def say(self, status: int, body: bytes, kind: bytes) -> None:
        """Send a reply of the proxy's own."""
        headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
        self.begun = True
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self.write(body, more=False)

    async def refuse(self, status: int, reason: str) -> None:
        """Send an error in the form that all SDKs read."""
        body = {"type": "error", "error": {"type": "suture_proxy_error", "message": f"suture proxy: {reason}"}}
        await self.say(status, msgspec.json.encode(body), b"application/json")


def without_hops(headers: Headers) -> Headers:
    """Return the headers without those that belong to one connection.

    >>> without_hops([(b"connection", b"x-mine"), (b"x-mine", b"1"), (b"accept", b"*/*")])
    [(b'accept', b'*/*')]
    """
    named = {part.strip().lower() for name, value in headers if name == b"connection" for part in value.split(b",")}
    gone = _HOP_HEADERS | named
    return [(name, value) for name, value in headers if name not in gone]


# --- metrics and the report -----------------------------------------------------------------------


class Records:
    """Counts requests and failures, and writes the report.

    >>> records = Records()
    >>> records.count("failures_total", kind="repair")
    >>> [line for line in records.text().splitlines() if "kind=" in line]
    ['suture_failures_total{kind="repair"} 1']
    """

    def __init__(self, report: str | None = None) -> None:
        self._counts: dict[str, Counter[tuple[tuple[str, str], ...]]] = {name: Counter() for name in _HELP}
        self._seconds: Counter[str] = Counter()
        self.in_flight = 0
        self._file: int | None = None
        if report is not None:
            try:
                self._file = os.open(report, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            except OSError as error:
                raise ConfigError(f"the report cannot be written to {report}: {error.strerror}") from None

    def close(self) -> None:
        """Close the report."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def count(self, name: str, **labels: str) -> None:
        """Add one to a counter."""
        self._counts[name][tuple(labels.items())] += 1

    def time(self, name: str, started: float) -> None:
        """Add one to a counter, and the seconds since `started` to its sum."""
        self._counts[name][()] += 1
        self._seconds[name] += time.perf_counter() - started  # pyright: ignore[reportArgumentType]

    def write(self, **facts: Any) -> None:
        """Write a line to the report: the time, and the facts that are not empty."""
        if self._file is None:
            return
        kept = {name: value for name, value in facts.items() if value not in (None, "", (), [])}
        line = msgspec.json.encode(sendable({"time": round(time.time(), 3), **kept})) + b"\n"
        try:
            os.write(self._file, line)
        except OSError:
            self.count("failures_total", kind="report")

    def failed(self, kind: str, error: BaseException | None = None) -> None:
        """Count a failure, and log the type of its error; never its message, which may quote the request."""
        self.count("failures_total", kind=kind)
        _LOG.warning("failure: %s%s", kind, "" if error is None else f" ({type(error).__name__})")

    def text(self) -> str:
        """Return the metrics in Prometheus' format."""
        lines = ["# HELP suture_requests_in_flight Requests that are being answered."]
        lines += ["# TYPE suture_requests_in_flight gauge", f"suture_requests_in_flight {self.in_flight}"]
        for name, about in _HELP.items():
            timed = name.endswith("_seconds")
            lines += [f"# HELP suture_{name} {about}", f"# TYPE suture_{name} {'summary' if timed else 'counter'}"]
            for labels, number in sorted(self._counts[name].items()):
                shown = ",".join(f'{label}="{_escape(value)}"' for label, value in labels)
                lines.append(f"suture_{name}{'_count' if timed else ''}{f'{{{shown}}}' if shown else ''} {number}")
            if timed:
                lines.append(f"suture_{name}_sum {self._seconds[name]:.6f}")
        return "\n".join(lines) + "\n"


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


# --- the application ------------------------------------------------------------------------------


class Timing(NamedTuple):
    """How long things may take, and how large a body may be to be examined."""

    connect: float = 30.0
    idle: float = 600.0
    """How many seconds an upstream may be silent."""
    repair: float = 5.0
    """How many seconds a repair may take; after that the request is forwarded as it is."""
    max_body: int = 64 * 1024 * 1024


class Exchange(NamedTuple):
    """A request on its way."""

    method: str
    path: str
    query: bytes
    route: Route
    headers: Headers
    place: Place | None
    started: float


class Proxy:
    """An ASGI application that repairs the histories in the requests it forwards.

    >>> app = Proxy([Route(upstream="https://api.openai.com")])
    >>> app.records.text().splitlines()[-1]
    'suture_repair_seconds_sum 0.000000'
    """

    def __init__(
        self,
        routes: Sequence[Route],
        *,
        records: Records | None = None,
        lessons: Lessons | None = None,
        timing: Timing | None = None,
        language: str | None = None,
    ) -> None:
        self.routes, self.lessons, self.language = tuple(routes), lessons, language
        self.records, self.timing = records or Records(), timing or Timing()
        self._client: aiohttp.ClientSession | None = None
        self._looks = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, according to ASGI."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            self.records.in_flight += 1
            try:
                await self._answer(scope, Client(receive, send))
            finally:
                self.records.in_flight -= 1

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return
            await send({"type": "lifespan.startup.complete"})

    async def close(self) -> None:
        """Close the connections to the upstreams."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    # --- one request ------------------------------------------------------------------------------

    async def _answer(self, scope: Scope, client: Client) -> None:
        started = time.perf_counter()
        path = (scope.get("raw_path") or scope["path"].encode()).partition(b"?")[0].decode("latin-1")
        own = {"/health": self._list_routes, "/metrics": self.records.text}.get(path)
        route = find_route(self.routes, path)
        headers: Headers = scope["headers"]
        if own is not None and scope["method"] in {"GET", "HEAD"}:
            await client.say(200, own().encode(), b"text/plain; version=0.0.4; charset=utf-8")
        elif route is None:
            await client.refuse(404, "no upstream takes this path")
        elif any(name == b"upgrade" and b"websocket" in value.lower() for name, value in headers):
            await client.refuse(426, "it speaks HTTP only")
        else:
            looks = scope["method"] == "POST" and not any(name in _SIGNATURES for name, _ in headers)
            place = find_place(path) if looks else None
            await self._forward(
                Exchange(scope["method"], path, scope["query_string"], route, headers, place, started), client
            )

    async def _forward(self, exchange: Exchange, client: Client) -> None:
        """Forward a request, repaired if necessary, and return its reply to the program."""
        body, more = await client.read(self.timing.max_body if exchange.place else 0, exchange.headers)
        if client.gone:
            return
        reading, status = None, 0
        try:
            if more:
                content: Any = client.stream(body)
            else:
                client.watch()
                reading = await self._look(exchange, body)
                content = body if reading is None or reading.body is None else reading.body
            status, reading = await self._exchange(exchange, content, reading, client)
        except asyncio.CancelledError:
            if not client.gone:
                raise
            self.records.count("failures_total", kind="client-gone")
        finally:
            client.stop()
            self._record(exchange, reading, status)

    async def _exchange(
        self, exchange: Exchange, content: Any, reading: Reading | None, client: Client
    ) -> tuple[int, Reading | None]:
        """Send a request and stream its reply back; return the status and the reading of what was sent."""
        async with AsyncExitStack() as stack:
            try:
                reply = await stack.enter_async_context(self._request(exchange, content))
                said = b""
                if reading is not None and self.lessons is not None and reply.status in {400, 413, 422}:
                    reply, reading, said = await self._learn(exchange, content, reading, reply, self.lessons, stack)
                await client.begin(reply, reading)
                if said:
                    await client.write(said)
                async for piece in reply.content.iter_any():
                    await client.write(piece)
                await client.write(b"", more=False)
                return reply.status, reading
            except (aiohttp.ClientError, OSError, ValueError) as error:
                slow = isinstance(error, TimeoutError)
                self.records.failed("upstream-timeout" if slow else "upstream", error)
                if not client.begun:
                    await client.refuse(
                        504 if slow else 502, f"the upstream {exchange.route.host} failed: {type(error).__name__}"
                    )
                return 0, reading  # a reply that has begun stays unfinished, so that the client notices

    @asynccontextmanager
    async def _request(self, exchange: Exchange, content: Any) -> AsyncGenerator[aiohttp.ClientResponse]:
        """Send a request, again if it went out on a kept connection that the upstream was closing; yield the reply.

        Each time a connection leaves the pool, so at last there is a new one.
        """
        while True:
            kept: list[bool] = []
            try:
                reply = await self._send(exchange, content, kept)
                break
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                if not kept or not isinstance(content, bytes):
                    raise
        async with reply:
            yield reply

    def _send(self, exchange: Exchange, content: Any, kept: list[bool]) -> Any:
        """Send a request; `kept` gets an entry if its connection was used before."""
        client = self._client
        if client is None:
            client = self._client = _open_client(self.timing)
        headers = [
            (name.decode("latin-1"), _text(value))
            for name, value in without_hops(exchange.headers)
            if name not in {b"host", b"content-length", b"expect"}
        ]
        if isinstance(content, bytes):
            sized = bool(content) or any(name == b"content-length" for name, _ in exchange.headers)
            length = str(len(content)) if sized else None
            content = content if len(content) < _PIECE else _pieces(content)
        else:
            length = next((_text(value) for name, value in exchange.headers if name == b"content-length"), None)
        if length is not None:
            headers.append(("content-length", length))
        query = f"?{exchange.query.decode('latin-1')}" if exchange.query else ""
        url = URL(exchange.route.target(exchange.path) + query, encoded=True)
        return client.request(
            exchange.method,
            url,
            headers=headers,
            data=content or None,
            allow_redirects=False,
            skip_auto_headers=_AUTOMATIC,
            proxy=_proxy_for(url.scheme, url.host or ""),
            trace_request_ctx=kept,
        )

    # --- the repair -------------------------------------------------------------------------------

    async def _look(self, exchange: Exchange, body: bytes, rules: Rules | None = None) -> Reading | None:
        """Examine a body in a thread; return `None` if that fails, takes too long, or there is nothing to examine."""
        place = exchange.place
        if place is None or not body:
            return None
        if self._looks >= _MOST_AT_ONCE:
            self.records.failed("busy")
            return None
        started, self._looks = time.perf_counter(), self._looks + 1

        def choose(model: str) -> Rules:
            return self._rules(exchange.route, place, model) if rules is None else rules

        work = partial(look_at, body, exchange.path, place, choose, self.timing.max_body)
        looking = asyncio.ensure_future(run_in_thread(work))
        looking.add_done_callback(self._end_look)
        try:
            async with asyncio.timeout(self.timing.repair):
                return await asyncio.shield(looking)
        except TimeoutError as error:
            self.records.failed("slow-repair", error)
        except Unreadable as error:
            self.records.failed("unreadable", error)
        except Exception as error:  # noqa: BLE001 - the original is sent in any case
            self.records.failed("repair", error)
        finally:
            self.records.time("repair_seconds", started)
        return None

    def _end_look(self, looking: "asyncio.Future[Reading]") -> None:
        self._looks -= 1
        if not looking.cancelled():
            looking.exception()  # marks it as retrieved, or asyncio would log it

    def _rules(self, route: Route, place: Place, model: str) -> Rules:
        profile = route.profile
        if profile is None or not profile.speaks_of(place.wire):
            profile = rules_of(route.host, model, place.wire)
        rules = Rules(profile, route.reduction, language=self.language)
        return rules if self.lessons is None else self.lessons.apply(rules, route.host, model, place.wire)

    async def _learn(
        self,
        exchange: Exchange,
        content: bytes,
        reading: Reading,
        refusal: aiohttp.ClientResponse,
        lessons: Lessons,
        stack: AsyncExitStack,
    ) -> tuple[aiohttp.ClientResponse, Reading, bytes]:
        """Repair a refused request by the stricter rule that the refusal teaches, and send it once more.

        Return the reply to pass back, the reading of what was sent, and the part of the reply that was read already.
        """
        said = b""
        while len(said) < _LONGEST_ERROR and (piece := await refusal.content.readany()):
            said += piece
        place = exchange.place or Place("", "")
        named = (exchange.route.host, reading.model, place.wire)
        lesson = lessons.read(
            said, self._rules(exchange.route, place, reading.model), place.wire, refusal.status, len(content)
        )
        again = None if lesson is None else await self._look(exchange, content, lesson.rules)
        if lesson is not None and again is not None and again.body is not None:
            self.records.count("retried_requests_total", lesson=lesson.name)
            try:
                reply = await stack.enter_async_context(self._request(exchange, again.body))
            except (aiohttp.ClientError, OSError):
                return refusal, reading, said
            if reply.status < 400:
                try:
                    lessons.keep(lesson, *named)
                except OSError as error:
                    self.records.failed("learning", error)
                if reading.body is not None:  # it includes the first repair
                    reports = (*reading.reports, *again.reports)
                    again = again._replace(reports=reports, reduced=reading.reduced or again.reduced)
                return reply, again, b""
        return refusal, reading, said

    # --- records ----------------------------------------------------------------------------------

    def _record(self, exchange: Exchange, reading: Reading | None, status: int) -> None:
        wire = exchange.place.wire if exchange.place is not None else "other"
        self.records.time("request_seconds", exchange.started)
        self.records.count("requests_total", wire=wire, status=f"{status // 100}xx" if status else "none")
        if reading is None:
            return
        if reading.overflows:
            self.records.failed("overflow")
        for finding in [finding for report in reading.reports for finding in report.findings]:
            self.records.count("findings_total", rule=finding.rule or finding.problem)
        if reading.body is not None:
            self.records.count("reduced_requests_total" if reading.reduced else "repaired_requests_total", wire=wire)
        if reading.reports or reading.body is not None:
            self.records.write(
                upstream=exchange.route.host,
                route=exchange.route.prefix,
                model=reading.model,
                status=status,
                seconds=round(time.perf_counter() - exchange.started, 3),
                changed=reading.body is not None,
                reduced=reading.reduced or None,
                reports=[report.to_dict() for report in reading.reports],
            )

    def _list_routes(self) -> str:
        return "".join(f"{route.prefix or '/'} -> {route.upstream}\n" for route in self.routes)


# --- the upstream -------------------------------------------------------------------------------


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    """Yield a large body in pieces, so that the event loop can do other work in between."""
    for start in range(0, len(data), _PIECE):
        yield data[start : start + _PIECE]


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


async def _note_kept(_: aiohttp.ClientSession, context: Any, __: object) -> None:
    context.trace_request_ctx.append(True)


def _open_client(timing: Timing) -> aiohttp.ClientSession:
    trace = aiohttp.TraceConfig()
    trace.on_connection_reuseconn.append(_note_kept)
    return aiohttp.ClientSession(
        trace_configs=[trace],
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=15),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=timing.connect, sock_read=timing.idle),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        max_line_size=1 << 16,
        max_field_size=1 << 16,
    )


@cache
def _proxy_for(scheme: str, host: str) -> str | None:
    """Return the network proxy that the environment sets for an upstream."""
    return None if proxy_bypass(host) else getproxies().get(scheme)
