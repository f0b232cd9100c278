"""Running blocking code beside the event loop, in threads that never hold the program up.

Not the event loop's own pool: that one has few threads, and a program waits for all of them when it ends. A
tool that hangs would then hang its program, whatever its timeout. A thread here is a daemon, and serves one call
or one stream from beginning to end, so that what must stay in its thread (an SQLite connection, say) does. Then it
rests for a while, since another call is cheaper than another thread.
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
Jobs: TypeAlias = "SimpleQueue[Callable[[], object] | None]"

_REST = 10.0
"""How many seconds a thread without work waits for more."""

_RESTING: deque[Jobs] = deque()
"""What leads to threads that have no work. Whoever takes one out has the thread to itself."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_RESTING.clear)  # threads do not follow into a forked process


def _serve(jobs: Jobs) -> None:
    while True:
        try:
            job = jobs.get(timeout=_REST)
        except Empty:
            try:
                _RESTING.remove(jobs)
            except ValueError:  # taken: more work will come
                continue
            return
        if job is None:
            _RESTING.append(jobs)
        else:
            job()
        # What was done must not be kept alive by a thread that rests.
        del job


def _thread() -> Jobs:
    try:
        return _RESTING.pop()
    except IndexError:
        jobs: Jobs = SimpleQueue()
        Thread(target=_serve, args=(jobs,), name="suture-tool", daemon=True).start()
        return jobs


async def in_thread(function: Callable[[], T]) -> T:
    """Run a function in a thread of its own, with the context variables of the caller.

    >>> import asyncio
    >>> from suture.tools._workers import in_thread
    >>> asyncio.run(in_thread(lambda: 1 + 1))
    2
    """
    worker = Worker()
    try:
        return await worker.run(function)
    finally:
        worker.stop()


class Worker:
    """One thread and one context for several calls, one after the other.

    >>> import asyncio
    >>> from threading import get_ident
    >>> async def twice():
    ...     worker = Worker()
    ...     idents = {await worker.run(get_ident), await worker.run(get_ident)}
    ...     worker.stop()
    ...     return len(idents)
    >>> asyncio.run(twice())
    1
    """

    __slots__ = ("_context", "_jobs", "busy")

    def __init__(self) -> None:
        self._context = copy_context()
        self._jobs = _thread()
        self.busy = False

    async def run(self, function: Callable[[], T]) -> T:
        """Run a function in the thread. If the waiting is cancelled, the function goes on: the thread is `busy`."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def tell(result: Any, error: BaseException | None) -> None:
            self.busy = False
            if future.done():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        def job() -> None:
            result, error = _outcome(function)
            # The loop may be gone by the time a call that nobody waits for ends.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(tell, result, error)

        self.busy = True
        self._jobs.put(partial(self._context.run, job))
        return await future

    def stop(self, last: Callable[[], object] | None = None) -> None:
        """Let the thread go once it is through, after `last`; nobody waits for it."""
        if last is not None:
            self._jobs.put(partial(self._context.run, last))
        self._jobs.put(None)


def _outcome(function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return function(), None
    except StopIteration as stop:
        # A future cannot carry it, and awaiting could not raise it.
        error = RuntimeError("the function raised StopIteration")
        error.__cause__ = stop
        return None, error
    except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
        return None, error
