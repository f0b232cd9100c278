"""An SDK's client for each event loop: it holds the loop's connections, so no other loop can use it."""

from collections.abc import Callable
from typing import Any

from suture.models._http import held_by_loop

__all__ = ["LoopClients"]


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
