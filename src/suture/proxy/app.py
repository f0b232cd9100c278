"""The ASGI application: takes a request, has its history repaired, passes it on, and the reply back as it comes.

A request that needs no repair goes on byte for byte, and so does one that cannot be read, or whose repair fails or is
slow. A reply always does.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Any, NamedTuple
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec
from yarl import URL

from suture._aio import run_in_thread
from suture.providers.places import Place, find_place
from suture.proxy.learning import Lessons
from suture.proxy.records import Records
from suture.proxy.requests import Reading, Rules, Unreadable, look_at
from suture.proxy.routes import Route, find_route, rules_of

__all__ = ["Proxy", "Timing"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

_HOPS = frozenset(
    (b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te")
) | {b"trailer", b"transfer-encoding", b"upgrade"}
"""Headers of one connection, which end here."""
_SEALS = frozenset((b"content-md5", b"content-digest", b"digest", b"signature", b"x-amz-content-sha256"))
"""Headers that vouch for the bytes of a body: then these cannot be changed."""
_AUTOMATIC = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
"""What the client library would add."""
_MOST_LOOKS = 64
"""How many bodies may be looked at at once; what comes on top goes on as it is."""
_PIECE = 1 << 18
_LONGEST_ERROR = 1 << 18


class Timing(NamedTuple):
    """How long things may take, and how large a body may be that is looked at."""

    connect: float = 30.0
    idle: float = 600.0
    """How many seconds an upstream may say nothing."""
    repair: float = 5.0
    """How many seconds a look at a request may take; then it goes on as it is."""
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
    """An ASGI application that repairs the histories in the requests which it passes on.

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
        """Answer one request, as ASGI has it."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            self.records.in_flight += 1
            try:
                await self._answer(scope, receive, send)
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

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        path = (scope.get("raw_path") or scope["path"].encode()).partition(b"?")[0].decode("latin-1")
        own = {"/health": self._health, "/metrics": self.records.text}.get(path)
        if own is not None and scope["method"] in {"GET", "HEAD"}:
            await _say(send, 200, own().encode(), b"text/plain; version=0.0.4; charset=utf-8")
            return
        route = find_route(self.routes, path)
        headers: Headers = scope["headers"]
        if route is None:
            await _refuse(send, 404, "no upstream takes this path")
            return
        if any(name == b"upgrade" and b"websocket" in value.lower() for name, value in headers):
            await _refuse(send, 426, "the proxy speaks HTTP only")
            return
        looks = scope["method"] == "POST" and not any(name in _SEALS for name, _ in headers)
        place = find_place(path) if looks else None
        exchange = Exchange(scope["method"], path, scope["query_string"], route, headers, place, started)
        await self._forward(exchange, receive, send)

    async def _forward(self, exchange: Exchange, receive: Receive, send: Send) -> None:
        """Pass a request on, repaired where that is needed, and its reply back."""
        body, more = await _read_body(receive, self._limit(exchange), exchange.headers)
        if body is None:
            return
        reading = None if more else await self._look(exchange, body)
        if more:
            content: Any = _stream(body, receive)
        else:
            content = body if reading is None or reading.body is None else reading.body
        task = asyncio.current_task()
        watch = None if more else asyncio.ensure_future(_leave(receive))
        if watch is not None and task is not None:
            watch.add_done_callback(lambda done: None if done.cancelled() else task.cancel())
        status = 0
        try:
            status = await self._exchange(exchange, content, reading, send)
        except asyncio.CancelledError:
            if watch is None or not watch.done():
                raise
            self.records.count("failures_total", kind="client-gone")
        finally:
            if watch is not None:
                watch.cancel()
            self._note(exchange, reading, status)

    async def _exchange(self, exchange: Exchange, content: Any, reading: Reading | None, send: Send) -> int:
        """Send a request and pass its reply back; return its status."""
        begun = False
        try:
            async with self._request(exchange, content) as reply:
                if reading is not None and self.lessons is not None and reply.status in {400, 413, 422}:
                    return await self._retry(exchange, content, reading, reply, send)
                begun = True
                await _pass_back(reply, await _begin(reply, reading, send))
                return reply.status
        except (aiohttp.ClientError, OSError, ValueError) as error:
            slow = isinstance(error, TimeoutError)
            self.records.failed("upstream-timeout" if slow else "upstream", error)
            if not begun:
                await _refuse(send, 504 if slow else 502, f"the upstream failed: {type(error).__name__}")
            return 0  # a reply that has begun is left unfinished, so that the client sees that it is

    def _request(self, exchange: Exchange, content: Any) -> Any:
        client = self._client
        if client is None:
            client = self._client = _open_client(self.timing)
        headers = [
            (name.decode("latin-1"), _text(value))
            for name, value in _without_hops(exchange.headers)
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
        )

    # --- the repair -------------------------------------------------------------------------------

    def _limit(self, exchange: Exchange) -> int:
        return self.timing.max_body if exchange.place is not None else 0

    async def _look(self, exchange: Exchange, body: bytes, rules: Rules | None = None) -> Reading | None:
        """Look at a body in a thread; nothing comes of it where that fails, takes too long, or there is none."""
        place = exchange.place
        if place is None or not body:
            return None
        if self._looks >= _MOST_LOOKS:
            self.records.failed("busy")
            return None
        started, self._looks = time.perf_counter(), self._looks + 1

        def choose(model: str) -> Rules:
            return self._rules(exchange.route, place, model) if rules is None else rules

        work = partial(look_at, body, exchange.path, place, choose, self.timing.max_body)
        looking = asyncio.ensure_future(run_in_thread(work))
        looking.add_done_callback(self._looked)
        try:
            async with asyncio.timeout(self.timing.repair):
                return await asyncio.shield(looking)
        except TimeoutError as error:
            self.records.failed("slow-repair", error)
        except Unreadable as error:
            self.records.failed("unreadable", error)
        except Exception as error:  # noqa: BLE001 - whatever it is, the original goes on
            self.records.failed("repair", error)
        finally:
            self.records.time("repair_seconds", started)
        return None

    def _looked(self, looking: "asyncio.Future[Reading]") -> None:
        self._looks -= 1
        if not looking.cancelled():
            looking.exception()  # heard by whoever waited, if anybody still did

    def _rules(self, route: Route, place: Place, model: str) -> Rules:
        profile = route.profile
        if profile is None or not profile.speaks_of(place.wire):
            profile = rules_of(route.host, model, place.wire)
        rules = Rules(profile, route.reduction, language=self.language)
        return rules if self.lessons is None else self.lessons.apply(rules, route.host, model, place.wire)

    async def _retry(
        self, exchange: Exchange, content: bytes, reading: Reading, refusal: aiohttp.ClientResponse, send: Send
    ) -> int:
        """Repair what was refused by the stricter rule, and send it once more; pass the refusal back if that fails."""
        assert self.lessons is not None  # noqa: S101
        assert exchange.place is not None  # noqa: S101
        said = await refusal.content.read(_LONGEST_ERROR)
        rest = refusal.content
        rules = self._rules(exchange.route, exchange.place, reading.model)
        lesson = self.lessons.read(said, rules, exchange.place.wire, refusal.status, len(content))
        again = None if lesson is None else await self._look(exchange, content, lesson.rules)
        if lesson is not None and again is not None and again.body is not None:
            self.records.count("retried_requests_total", lesson=lesson.name)
            with suppress(aiohttp.ClientError, OSError):
                async with self._request(exchange, again.body) as reply:
                    if reply.status < 400:
                        self.lessons.keep(lesson, exchange.route.host, reading.model, exchange.place.wire)
                        await _pass_back(reply, await _begin(reply, again, send))
                        return reply.status
        write = await _begin(refusal, reading, send)
        await write(said)
        await _pass_back(refusal, write) if not rest.at_eof() else await write(b"", more=False)
        return refusal.status

    # --- what is told -----------------------------------------------------------------------------

    def _note(self, exchange: Exchange, reading: Reading | None, status: int) -> None:
        wire = exchange.place.wire if exchange.place is not None else "other"
        self.records.time("request_seconds", exchange.started)
        self.records.count("requests_total", wire=wire, status=f"{status // 100}xx" if status else "none")
        if reading is None:
            return
        if reading.overflows:
            self.records.failed("overflow")
        self.records.found(reading.reports)
        if reading.body is not None:
            self.records.count("reduced_requests_total" if reading.reduced else "repaired_requests_total", wire=wire)
        if reading.reports or reading.body is not None:
            self.records.write(
                upstream=exchange.route.host,
                path=exchange.path,
                model=reading.model,
                status=status,
                seconds=round(time.perf_counter() - exchange.started, 3),
                changed=reading.body is not None,
                reduced=reading.reduced or None,
                reports=[report.to_dict() for report in reading.reports],
            )

    def _health(self) -> str:
        return "".join(f"{route.prefix or '/'} -> {route.upstream}\n" for route in self.routes)


# --- bodies ---------------------------------------------------------------------------------------


async def _read_body(receive: Receive, limit: int, headers: Headers) -> tuple[bytes | None, bool]:
    """Return the body and whether more of it follows, because it is over the limit; nothing if the client is gone."""
    told = next((value for name, value in headers if name == b"content-length"), b"")
    if told.isdigit() and int(told) > limit:
        return b"", True
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None, False
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        if not message.get("more_body", False):
            return b"".join(pieces), False
        if size > limit:
            return b"".join(pieces), True


async def _stream(first: bytes, receive: Receive) -> AsyncIterator[bytes]:
    """Yield a body as it comes."""
    if first:
        yield first
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionResetError
        more = message.get("more_body", False)
        if message.get("body"):
            yield message["body"]


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    """Yield a large body in pieces, so that the loop can do other things between them."""
    for start in range(0, len(data), _PIECE):
        yield data[start : start + _PIECE]


async def _leave(receive: Receive) -> None:
    """Wait until the client goes away."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _begin(reply: aiohttp.ClientResponse, reading: Reading | None, send: Send) -> Any:
    """Send the head of a reply; return what sends its body."""
    headers = _without_hops([(name.lower(), value) for name, value in reply.raw_headers])
    if reply.status in {204, 304}:
        headers = [(name, value) for name, value in headers if name != b"content-length"]
    if reading is not None:
        mended = sum(finding.mended for report in reading.reports for finding in report.findings)
        headers.append((b"x-suture-repaired", b"%d" % (mended if reading.body is not None else 0)))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})

    async def write(body: bytes, *, more: bool = True) -> None:
        await send({"type": "http.response.body", "body": body, "more_body": more})

    return write


async def _pass_back(reply: aiohttp.ClientResponse, write: Any) -> None:
    """Pass the body of a reply back as it comes."""
    async for piece in reply.content.iter_any():
        await write(piece)
    await write(b"", more=False)


def _without_hops(headers: Headers) -> Headers:
    """Return the headers that are for the other end."""
    named = {part.strip().lower() for name, value in headers if name == b"connection" for part in value.split(b",")}
    gone = _HOPS | named
    return [(name, value) for name, value in headers if name not in gone]


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _open_client(timing: Timing) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=15),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=timing.connect, sock_read=timing.idle),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        max_line_size=1 << 16,
        max_field_size=1 << 16,
    )


@cache
def _proxy_for(scheme: str, host: str) -> str | None:
    """Return the proxy that the environment names for an upstream."""
    return None if proxy_bypass(host) else getproxies().get(scheme)


# --- replies of our own ---------------------------------------------------------------------------


async def _refuse(send: Send, status: int, reason: str) -> None:
    """Answer with an error in the form that all SDKs read."""
    told = {"type": "error", "error": {"type": "suture_proxy_error", "message": f"suture proxy: {reason}"}}
    await _say(send, status, msgspec.json.encode(told), b"application/json")


async def _say(send: Send, status: int, body: bytes, kind: bytes) -> None:
    headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
