"""The HTTP client under the SDKs, one for each event loop: connections are kept while the loop lives, closed with it.

The loop itself holds it, for connections hold their loop: kept anywhere else, both would stay for good where a loop
was closed without `shutdown_asyncgens`. No redirect takes a key elsewhere, and no body is endless.
"""

import asyncio
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from suture.errors import ModelError
from suture.kernel import closing
from suture.models import provider

answers: ContextVar[list[Any] | None] = ContextVar("suture_answers", default=None)
"""Where responses are noted as they come, for an SDK that does not close them."""
_PIECE = 64 * 1024
_GZIP = ("gzip", "x-gzip", "deflate")
_ANY_GZIP = zlib.MAX_WBITS + 32
_CONNECTIONS = {"max_connections": 1000, "max_keepalive_connections": 100}


_ATTRIBUTE = "_suture_http"


class Held(NamedTuple):
    """A loop's client, what was made of it for whom, and what closes it when the loop ends."""

    client: Any
    made: WeakKeyDictionary[Any, Any]
    closer: AsyncGenerator[None]


async def held_by_loop() -> Held:
    """Return the HTTP client of the running loop."""
    loop = asyncio.get_running_loop()
    held: Held | None = vars(loop).get(_ATTRIBUTE)
    if held is None:
        client = _make()
        held = Held(client, WeakKeyDictionary(), _close_at_the_end(client))
        setattr(loop, _ATTRIBUTE, held)
        await anext(held.closer)
    return held


async def _close_at_the_end(client: Any) -> AsyncGenerator[None]:
    """Wait until the loop closes its generators, which it does before it ends."""
    try:
        yield
    finally:
        await client.aclose()
        vars(asyncio.get_running_loop()).pop(_ATTRIBUTE, None)


class _Unpacker:
    """Unpacks a body that comes compressed, piece by piece: a small one may hold a huge one."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._zlib = zlib.decompressobj(_ANY_GZIP)

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """Yield what `chunk` adds; raise `ModelError` for what is not compressed as it claims."""
        if self._encoding not in _GZIP:
            yield chunk
            return
        while not self._zlib.eof:
            try:
                piece = self._zlib.decompress(chunk, _PIECE)
            except zlib.error as error:
                raise ModelError(
                    f"the body is not the {self._encoding} that it claims: {error}", retryable=True
                ) from None
            chunk = self._zlib.unconsumed_tail
            if piece:
                yield piece
            elif not chunk:
                return


def _make() -> Any:
    from httpx2 import AsyncByteStream, AsyncClient, Limits  # noqa: PLC0415 - comes with the SDKs

    class Bounded(AsyncByteStream):
        """A body of which not everything is taken: an error is cut, a reply that is too long refused."""

        def __init__(self, whole: Any, encoding: str, *, is_error: bool) -> None:
            self._whole, self._is_error = whole, is_error
            self._unpacker = _Unpacker(encoding)

        async def __aiter__(self) -> AsyncIterator[bytes]:
            bound = provider.Bound(is_error=self._is_error)
            async with closing(aiter(self._whole)) as chunks:
                async for chunk in chunks:
                    try:
                        for piece in self._unpacker.pieces(chunk):
                            yield bound.take(piece)
                            if bound.reached:
                                return
                    except ModelError:
                        if not self._is_error:
                            raise
                        return  # what it says by its status counts

        async def aclose(self) -> None:
            await self._whole.aclose()

    async def bound(response: Any) -> None:
        encoding = response.headers.pop("content-encoding", "identity").strip().lower()
        response.stream = Bounded(response.stream, encoding, is_error=response.status_code >= 300)
        noted = answers.get()
        if noted is not None:
            noted.append(response)

    return AsyncClient(
        follow_redirects=False,
        limits=Limits(**_CONNECTIONS),
        headers={"accept-encoding": "gzip"},
        event_hooks={"response": [bound]},
    )


class LoopClients:
    """Makes a client, of the loop's HTTP client, when a loop first asks for one.

    >>> import asyncio
    >>> clients = LoopClients(lambda http: [http])
    >>> async def is_kept():
    ...     return await clients.get() is await clients.get()
    >>> asyncio.run(is_kept())
    True
    """

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make = make

    async def get(self) -> Any:
        """Return the client of the running loop."""
        held = await held_by_loop()
        if self not in held.made:
            held.made[self] = self._make(held.client)
        return held.made[self]
