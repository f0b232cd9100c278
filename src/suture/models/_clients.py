"""An SDK's client for each event loop: it holds the loop's connections, so no other loop can use it."""

import asyncio
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from suture.models._http import http_client

__all__ = ["LoopClients"]


class LoopClients:
    """Makes a client, of the loop's HTTP client, when a loop first asks for one.

    >>> clients = LoopClients(lambda http: [http])
    >>> async def is_kept():
    ...     return await clients.get() is await clients.get()
    >>> asyncio.run(is_kept())
    True
    """

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make = make
        self._held: WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = WeakKeyDictionary()

    async def get(self) -> Any:
        """Return the client of the running loop."""
        loop = asyncio.get_running_loop()
        client = self._held.get(loop)
        if client is None:
            client = self._held[loop] = self._make(await http_client(self))
        return client

    def forget(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let go of the client of a loop that ends."""
        self._held.pop(loop, None)
