"""A proxy and an upstream, each a real server on loopback in a thread of its own."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from suture.proxy import Proxy, Route
from suture.proxy.server import _Server, address_of, bind


@dataclass
class Request:
    method: str
    target: str
    headers: list[tuple[bytes, bytes]]
    body: bytes

    def header(self, name: str) -> bytes | None:
        return next((value for key, value in self.headers if key.lower() == name.encode()), None)


@dataclass
class Reply:
    """What an upstream sends: pieces that are written one after the other, then perhaps a fault."""

    pieces: list[bytes] = field(default_factory=lambda: [b"{}"])
    status: bytes = b"200 OK"
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    framing: str = "length"
    """`length`, `chunked`, or `raw`: the pieces are all that is written."""
    then: str = ""
    """`hang`, `close` or `reset` before the reply is whole; `leave`: close when the next request begins to come."""


Script = Callable[[Request], Reply]


class Upstream:
    """Answers by a script, and keeps what it got."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[Request] = []
        self.gone = threading.Event()
        """Set when a client left while a reply was hanging."""
        self.connections = 0
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while request := await _read_request(reader):
                self.requests.append(request)
                reply = self.script(request)
                await self._write(reply, writer)
                if reply.then == "leave":
                    await reader.read(1)
                    return
                if reply.then == "hang":
                    await reader.read()
                    self.gone.set()
                if reply.then == "reset":
                    writer.transport.abort()
                if reply.then:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            self.gone.set()
        except asyncio.CancelledError:  # the server ends
            pass
        finally:
            writer.close()

    async def _write(self, reply: Reply, writer: asyncio.StreamWriter) -> None:
        if reply.framing != "raw":
            told = [(b"transfer-encoding", b"chunked")]
            if reply.framing == "length":
                told = [
                    (b"content-length", b"%d" % (sum(map(len, reply.pieces)) + 9 * (reply.then not in ("", "leave"))))
                ]
            lines = [b"HTTP/1.1 " + reply.status, *[name + b": " + value for name, value in reply.headers + told]]
            writer.write(b"\r\n".join(lines) + b"\r\n\r\n")
        for piece in reply.pieces:
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if reply.framing == "chunked" else piece)
            await writer.drain()
            await asyncio.sleep(0)
        if reply.framing == "chunked" and reply.then in ("", "leave"):
            writer.write(b"0\r\n\r\n")
        await writer.drain()


async def _read_request(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head[:-4].split(b"\r\n")
    method, target, _ = first.decode("latin-1").split(" ")
    headers = [(name.lower(), value) for name, _, value in (line.partition(b": ") for line in lines)]
    known = dict(headers)
    body = b""
    if known.get(b"transfer-encoding") == b"chunked":
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readexactly(2)
    else:
        body = await reader.readexactly(int(known.get(b"content-length", 0)))
    return Request(method, target, headers, body)


@contextmanager
def in_thread(main: Callable[[Callable[[], object], asyncio.Event], Any]) -> Iterator[None]:
    """Run a coroutine in a thread until the block ends; it says when it is ready, and is told when to stop."""
    ready = threading.Event()
    found: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def run() -> None:
        stop = asyncio.Event()
        found.append((asyncio.get_running_loop(), stop))
        await main(ready.set, stop)

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    assert ready.wait(30)
    try:
        yield
    finally:
        loop, stop = found[0]
        loop.call_soon_threadsafe(stop.set)
        thread.join()


@contextmanager
def upstream(script: Script | Reply | None = None) -> Iterator[Upstream]:
    made = Upstream(script if callable(script) else lambda _: script or Reply())

    async def main(ready: Callable[[], object], stop: asyncio.Event) -> None:
        server = await asyncio.start_server(made.serve, "127.0.0.1", 0, limit=1 << 24)
        made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ready()
        await stop.wait()
        server.close()

    with in_thread(main):
        yield made


@contextmanager
def proxy(target: str | Proxy) -> Iterator[str]:
    """Serve a proxy to an upstream; yield its address."""
    app = target if isinstance(target, Proxy) else Proxy([Route(upstream=target)])
    found = bind("127.0.0.1", 0)

    async def main(ready: Callable[[], object], stop: asyncio.Event) -> None:
        server = _Server(app, ready)
        serving = asyncio.ensure_future(server.serve(sockets=[found]))
        await stop.wait()
        server.stop()
        await serving

    with in_thread(main):
        yield address_of(found)
