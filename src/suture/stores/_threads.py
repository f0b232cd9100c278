"""Blocking work beside the event loop, and waiting for it to its end."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

__all__ = ["in_thread", "to_its_end"]

_Result = TypeVar("_Result")


def in_thread(work: Callable[[], _Result]) -> "asyncio.Future[_Result]":
    """Start `work` in a thread.

    No task of its own: one that is left over when the event loop ends would be cancelled with the others.

    >>> async def main():
    ...     return await in_thread(lambda: 6 * 7)
    >>> asyncio.run(main())
    42
    """
    return asyncio.get_running_loop().run_in_executor(None, work)


async def to_its_end(future: "asyncio.Future[_Result]") -> _Result:
    """Wait for `future`. If this task is cancelled meanwhile, that takes effect afterwards, where it next waits.

    >>> async def main():
    ...     return await to_its_end(in_thread(lambda: 6 * 7))
    >>> asyncio.run(main())
    42
    """
    cancelled = False
    while not future.done():
        try:
            await asyncio.wait((future,))
        except asyncio.CancelledError:
            cancelled = True
    task = asyncio.current_task()
    if cancelled and task is not None:
        # Once more, but not counted twice: `asyncio.timeout` would not know its own.
        task.uncancel()
        task.cancel()
    return future.result()
