"""Small ways to await: a value that may be awaitable, a coroutine in a context of its own, one that must finish."""

import asyncio
from collections.abc import Awaitable, Coroutine, Generator
from contextlib import suppress
from contextvars import Context, copy_context
from types import coroutine
from typing import Any, Generic, TypeVar, cast

__all__ = ["close", "closing", "in_context", "settled", "uninterrupted"]

T = TypeVar("T")


async def close(stream: Any) -> None:
    """Close a stream because of an error; one of its own on the way does not take that error's place."""
    end = getattr(stream, "aclose", None)
    if end is not None:
        with suppress(Exception):
            await end()


class closing(Generic[T]):  # noqa: N801 - used like `contextlib.aclosing`
    """Close a stream when we are done with it, in the task that read it. One that cannot be closed is left alone."""

    __slots__ = ("_stream",)

    def __init__(self, stream: T) -> None:
        self._stream = stream

    async def __aenter__(self) -> T:
        return self._stream

    async def __aexit__(self, kind: object, *_: object) -> None:
        end = getattr(self._stream, "aclose", None)
        if kind is not None:
            await close(self._stream)
        elif end is not None:
            await end()


async def settled(value: T | Awaitable[T]) -> T:
    """Return `value`, awaited if need be: hooks may be `async` or plain."""
    return await cast("Awaitable[T]", value) if hasattr(value, "__await__") else cast("T", value)


@coroutine
def in_context(work: Coroutine[Any, Any, T], context: Context) -> Generator[Any, Any, T]:
    """Await `work` in place, without a task, in a context of its own: what it sets there dies with it."""
    step, given = work.send, None
    while True:
        try:
            asked = context.run(step, given)
        except StopIteration as end:
            return end.value
        try:
            step, given = work.send, (yield asked)
        except GeneratorExit:
            context.run(work.close)
            raise
        except BaseException as error:  # noqa: BLE001 - it is the work's to handle
            step, given = work.throw, error


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Await `work` to its end, even if we are cancelled meanwhile; the cancellation is raised afterwards."""
    task = asyncio.get_running_loop().create_task(work, context=copy_context())
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # it is told by the cancellation; asking keeps it from being called unretrieved
        raise cancelled
    return task.result()
