"""Waiting for boto3, which knows no asyncio: in a thread that can be woken, on a connection that can be closed."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Thread, local
from typing import Any, TypeVar

from suture.models._provider import Bound

__all__ = ["Waiter", "watch"]

T = TypeVar("T")
_here = local()
"""Whose thread this is."""


class Waiter:
    """A thread that does one thing after the other. It ends when it is told to, and keeps no program from ending.

    >>> async def wait():
    ...     waiter = Waiter()
    ...     try:
    ...         return await waiter.do(lambda: "done")
    ...     finally:
    ...         waiter.end()
    >>> asyncio.run(wait())
    'done'
    """

    def __init__(self) -> None:
        self.connection: Any = None
        """What the thread waits on, if a client that is watched is asked."""
        self._work: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        Thread(target=self._run, name="suture-bedrock", daemon=True).start()

    async def do(self, work: Callable[[], T], undo: Callable[[T], None] | None = None) -> T:
        """Return what `work` returns. Where nobody waits any more, the thread is woken, and `undo` gets what comes."""
        done: Future[T] = Future()
        self._work.put((done, work))
        try:
            return await asyncio.wrap_future(done)
        except asyncio.CancelledError:
            if undo is not None:
                done.add_done_callback(partial(_undone, undo))
            if not done.done():
                _shut(self.connection)
            raise

    def end(self) -> None:
        """Let the thread end when it is done with what it does."""
        self._work.put(None)

    def _run(self) -> None:
        _here.waiter = self
        while (given := self._work.get()) is not None:
            done, work = given
            if not done.set_running_or_notify_cancel():
                continue
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
                done.set_exception(error)
            else:
                done.set_result(result)
            del given, done, work


def watch(client: Any) -> Any:
    """Return the client, which now says on which connection it waits, takes no endless body and follows no redirect."""
    kinds: dict[str, Any] = client._endpoint.http_session._pool_classes_by_scheme  # noqa: SLF001 - there is no other way
    for scheme, pool in kinds.items():
        kinds[scheme] = type(pool.__name__, (pool,), {"ConnectionCls": _watched(pool.ConnectionCls)})
    return client


def _watched(kind: Any) -> Any:
    class Watched(kind):
        def request(self, *given: Any, **named: Any) -> Any:
            waiter = getattr(_here, "waiter", None)
            if waiter is not None:
                waiter.connection = self
            above: Any = super()
            return above.request(*given, **named)

        def getresponse(self) -> Any:
            above: Any = super()
            response: Any = above.getresponse()
            response.stream = partial(_bounded, response.stream, is_error=response.status >= 300)
            response.get_redirect_location = lambda: None
            return response

    return Watched


def _bounded(stream: Callable[..., Iterator[bytes]], *given: Any, is_error: bool, **named: Any) -> Iterator[bytes]:
    bound = Bound(is_error=is_error)
    for chunk in stream(*given, **named):
        yield bound.take(chunk)
        if bound.reached:
            return


def _undone(undo: Callable[[Any], None], done: "Future[Any]") -> None:
    with suppress(Exception):
        undo(done.result())


def _shut(connection: Any) -> None:
    """Wake whoever waits on a connection."""
    with suppress(OSError, AttributeError):
        connection.sock.shutdown(socket.SHUT_RDWR)
