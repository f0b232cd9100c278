"""The program that asks: its request as it comes, whether it is still there, and what it is told."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

import aiohttp
import msgspec

from suture.proxy.requests import Reading

__all__ = ["Client", "Headers", "Receive", "Send", "without_hops"]

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

_CONNECTION = (b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade")
_HOPS = frozenset((*_CONNECTION, b"proxy-authenticate", b"proxy-authorization", b"proxy-connection"))
"""Headers of one connection, which end here."""


class Client:
    """One request of a program, over ASGI. If the program leaves, the task that answers is cancelled."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._task = asyncio.current_task()
        self._waiting: asyncio.Future[None] | None = None
        self.begun = self.gone = False

    async def read(self, limit: int, headers: Headers) -> tuple[bytes, bool]:
        """Return the body, and whether more of it follows, because it is over the limit."""
        told = next((value for name, value in headers if name == b"content-length"), b"")
        if told.isdigit() and int(told) > limit:
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
        """Yield a body as it comes, and then watch."""
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
        """Watch whether the program leaves; its request has been read."""
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
        """Send the head of a reply."""
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
            self.stop()  # what comes now is the server's word that all was sent
        await self._send({"type": "http.response.body", "body": body, "more_body": more})

    async def say(self, status: int, body: bytes, kind: bytes) -> None:
        """Send a reply of our own."""
        headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
        self.begun = True
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self.write(body, more=False)

    async def refuse(self, status: int, reason: str) -> None:
        """Send an error in the form that all SDKs read."""
        told = {"type": "error", "error": {"type": "suture_proxy_error", "message": f"suture proxy: {reason}"}}
        await self.say(status, msgspec.json.encode(told), b"application/json")


def without_hops(headers: Headers) -> Headers:
    """Return the headers that are for the other end.

    >>> without_hops([(b"connection", b"x-mine"), (b"x-mine", b"1"), (b"accept", b"*/*")])
    [(b'accept', b'*/*')]
    """
    named = {part.strip().lower() for name, value in headers if name == b"connection" for part in value.split(b",")}
    gone = _HOPS | named
    return [(name, value) for name, value in headers if name not in gone]
