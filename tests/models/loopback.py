"""A real HTTP server on loopback that says what it is told to say, byte for byte, and remembers what it was asked."""

import asyncio
import json
import socket
import struct
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Any, NamedTuple


class Asked(NamedTuple):
    """One request that came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def payload(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    """One response: its pieces are sent one by one.

    `then` says what becomes of the connection behind the last piece: the body is ended as it should be ("end"), the
    connection is cut ("cut") or reset ("reset"), nothing more comes ("hang"), or the last piece comes again and again
    ("endless"). After a body that ended well, the connection may close ("leave") or break ("break") when the next
    request comes on it.
    `after`, if given, is awaited before each piece but the first. With a `head` of its own the response is sent as raw
    bytes: that head, then the pieces, and "end" closes the connection.
    """

    pieces: Sequence[bytes] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})
    then: str = "end"
    after: Callable[[int], Any] | None = None
    head: bytes | None = None


def json_answer(body: Any, status: int = 200, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer([json.dumps(body).encode()], status, {"content-type": "application/json", **named})


class Loopback:
    """What the server is told, and what it saw."""

    def __init__(self, answers: Sequence[Answer] | Callable[[Asked], Answer]) -> None:
        self.answers = answers
        self.requests: list[Asked] = []
        self.came = asyncio.Event()
        """Set when a request has come."""
        self.left = asyncio.Event()
        """Set when a client leaves before its response was whole."""
        self.sent = 0
        """How many bytes of bodies went out."""
        self.url = ""
        self.connections = 0
        self.serving: set[asyncio.Task[Any]] = set()
        self.writers: set[asyncio.StreamWriter] = set()
        self.empty = asyncio.Event()
        """Set when no connection is left."""
        self.loop = asyncio.get_running_loop()

    def answer(self, asked: Asked) -> Answer:
        self.requests.append(asked)
        self.came.set()
        if callable(self.answers):
            return self.answers(asked)
        return self.answers[min(len(self.requests), len(self.answers)) - 1]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.serving.add(task)
        self.writers.add(writer)
        self.empty.clear()
        self.connections += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                asked = await _read(reader)
                if asked is None:
                    break
                answer = self.answer(asked)
                if not await self._say(answer, reader, writer):
                    break
                if answer.then in {"leave", "break"}:
                    await reader.read(1)
                    _cut(writer, resets=answer.then == "break")
                    break
        self.serving.discard(task)
        self.writers.discard(writer)
        if not self.writers:
            self.empty.set()
        with suppress(ConnectionError):
            writer.close()

    def hang_up(self) -> None:
        """Close all connections, from another thread, as a server does with idle ones."""
        asyncio.run_coroutine_threadsafe(self.abort(), self.loop).result()

    async def abort(self) -> None:
        """Close all connections, without waiting for the goodbye of clients that speak TLS."""
        for writer in list(self.writers):
            writer.transport.abort()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _say(self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Send one response; tell whether the connection can be used again."""
        raw = answer.head is not None
        writer.write(_head(answer) if answer.head is None else answer.head)
        try:
            place = 0
            while True:
                if place < len(answer.pieces):
                    piece = answer.pieces[place]
                elif answer.then == "endless" and answer.pieces:
                    piece = answer.pieces[-1]
                else:
                    break
                if answer.after is not None and place:
                    await answer.after(place)
                place += 1
                if piece:
                    writer.write(piece if raw else b"%x\r\n%s\r\n" % (len(piece), piece))
                    self.sent += len(piece)
                await writer.drain()
                if reader.at_eof():
                    self.left.set()
                    return False
                await asyncio.sleep(0)
            if answer.then == "hang":
                if not await reader.read(1):
                    self.left.set()
                return False
            if answer.then in {"cut", "reset"}:
                return _cut(writer, resets=answer.then == "reset")
            if raw:
                return False
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        except ConnectionError:
            self.left.set()
            raise
        return True


def _cut(writer: asyncio.StreamWriter, *, resets: bool) -> bool:
    """Close the connection, with a reset if asked for; it cannot be used again."""
    if resets:
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()
    return False


def _head(answer: Answer) -> bytes:
    lines = [f"HTTP/1.1 {answer.status} Whatever", "transfer-encoding: chunked"]
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


async def _read(reader: asyncio.StreamReader) -> Asked | None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *rest = head.decode().split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest if line)}
    if headers.get("expect") == "100-continue":
        return None
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    else:
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, path, headers, body)


@asynccontextmanager
async def loopback(
    answers: Sequence[Answer] | Callable[[Asked], Answer], *, port: int = 0, tls: SSLContext | None = None
) -> AsyncIterator[Loopback]:
    served = Loopback(answers)
    server = await asyncio.start_server(served.serve, "127.0.0.1", port, ssl=tls)
    served.url = f"http{'s' if tls else ''}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield served
    finally:
        server.close()
        if tls is not None:
            await served.abort()
        for task in served.serving:
            task.cancel()
        if served.serving:
            await asyncio.wait(served.serving)


@contextmanager
def serving(
    answers: Sequence[Answer] | Callable[[Asked], Answer], *, tls: SSLContext | None = None
) -> Iterator[Loopback]:
    """Serve in a thread, for programs without an event loop."""
    started, ready = list[tuple[Loopback, asyncio.AbstractEventLoop, asyncio.Event]](), threading.Event()

    async def serve() -> None:
        async with loopback(answers, tls=tls) as server:
            end = asyncio.Event()
            started.append((server, asyncio.get_running_loop(), end))
            ready.set()
            await end.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    ready.wait()
    [(server, loop, end)] = started
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join()
