"""The pieces of a streaming function, whichever way it makes them."""

import inspect
from collections.abc import AsyncGenerator, Callable, Iterator
from functools import partial
from typing import Any, cast

from suture.tools._workers import Worker

_END = object()


async def pieces_of(call: Callable[[], Any], *, threaded: bool) -> AsyncGenerator[Any, None]:
    """Yield what a call streams: from an iterator, an async one, or one that is awaited first.

    Anything else that the call gives is one piece. What is iterated is closed in the end, in the thread it ran in.

    >>> import asyncio
    >>> from suture.tools._streams import pieces_of
    >>> async def collect():
    ...     return [piece async for piece in pieces_of(lambda: iter("abc"), threaded=True)]
    >>> asyncio.run(collect())
    ['a', 'b', 'c']
    """
    worker = Worker() if threaded else None
    close: Callable[[], Any] | None = None
    try:
        source: Any = await worker.run(call) if worker else call()
        if inspect.isawaitable(source):
            source = await source
        if hasattr(source, "__aiter__"):
            source = aiter(source)
            close = getattr(source, "aclose", None)
            async for piece in source:
                yield piece
        elif isinstance(source, Iterator):
            close = getattr(cast("Any", source), "close", None)
            step = partial(next, cast("Iterator[Any]", source), _END)
            while (piece := await worker.run(step) if worker else step()) is not _END:
                yield piece
        else:
            yield source
    finally:
        await _end(worker, close)


async def _end(worker: Worker | None, close: Callable[[], Any] | None) -> None:
    """Close what was iterated, and let its thread end."""
    if worker and worker.busy:
        # Given up in the midst of a step, which nothing can stop: the thread itself closes up after it.
        worker.stop(close)
        return
    try:
        if close:
            closing = await worker.run(close) if worker else close()
            if inspect.isawaitable(closing):
                await closing
    finally:
        if worker:
            worker.stop()
