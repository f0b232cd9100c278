"""Asynchronous code: optional awaitables, contexts, streams, work that must finish, and threads.

Blocking code runs in our own threads, not in the event loop's pool. That pool has few threads, and a program waits
for all of them when it ends, so a tool that hangs would hang its program. A thread here is a daemon. It serves one
call or one stream from beginning to end, so that whatever must stay in one thread (an SQLite connection) does. Then
it waits a while for more work, because reusing a thread is cheaper than starting one.
"""

import asyncio
import logging
import os
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from threading import Lock, Thread
from types import coroutine
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias, TypeVar, cast

if TYPE_CHECKING:
    from queue import SimpleQueue

T = TypeVar("T")
Jobs: TypeAlias = "SimpleQueue[Callable[[], object] | None]"

LOG = logging.getLogger("suture")
_IDLE = 10.0
"""How many seconds an idle thread waits for more work."""
_MOST_THREADS = 256
"""How many threads there may be; further calls wait for a free one."""


async def close(stream: Any) -> None:
    """Close a stream after an error. If closing fails too, that is logged and does not replace the first error."""
    end = getattr(stream, "aclose", None)
    if end is not None:
        try:
            await end()
        except Exception:
            LOG.warning("a stream failed to close", exc_info=True)


class closing(Generic[T]):  # noqa: N801 - used like `contextlib.aclosing`
    """Close a stream at the end of a block, in the task that read it; do nothing if it has no way to close."""

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


async def settle(value: T | Awaitable[T]) -> T:
    """Return `value`, awaited if it can be: hooks may be `async` or plain."""
    return await cast("Awaitable[T]", value) if hasattr(value, "__await__") else cast("T", value)


@coroutine
def in_context(work: Coroutine[Any, Any, T], context: Context) -> Generator[Any, Any, T]:
    """Await `work` in place, without a task, in `context`; context variables that it sets do not leak to the caller."""
    step, value = work.send, None
    while True:
        try:
            asked = context.run(step, value)
        except StopIteration as end:
            return end.value
        try:
            step, value = work.send, (yield asked)
        except GeneratorExit:
            context.run(work.close)
            raise
        except BaseException as error:  # noqa: BLE001 - it is the work's to handle
            step, value = work.throw, error


async def wait_to_the_end(future: "asyncio.Future[T]") -> T:
    """Wait for `future`. If this task is cancelled meanwhile, the cancellation takes effect where it next waits."""
    cancelled, task = await _outwait(future), asyncio.current_task()
    if cancelled is not None and task is not None:
        # `cancel` raises it again. It must not count twice, or `asyncio.timeout` would not recognise its own.
        task.uncancel()
        task.cancel()
    return future.result()


async def run_to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Await `work` to its end, even if this task is cancelled meanwhile; the cancellation is raised afterwards."""
    task = asyncio.get_running_loop().create_task(work, context=copy_context())
    cancelled = await _outwait(task)
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # marks it as retrieved, or asyncio would log it
        raise cancelled
    return task.result()


async def _outwait(future: "asyncio.Future[Any]") -> asyncio.CancelledError | None:
    """Wait for `future`, however often this task is cancelled meanwhile, and return the last cancellation."""
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait((future,))
        except asyncio.CancelledError as error:
            cancelled = error
    return cancelled


def uncancel() -> None:
    """Let this task go on after a cancellation that has been handled."""
    task = asyncio.current_task()
    while task is not None and task.cancelling():
        task.uncancel()


class _Threads:
    """The threads of this process: the idle ones, and the calls that wait for one."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.idle: deque[Jobs] = deque()
        self.waiting: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[Jobs]]] = deque()
        self.count = 0

    async def take(self) -> Jobs:
        """Return the queue of an idle or new thread; wait if there are too many threads."""
        from queue import SimpleQueue  # noqa: PLC0415 - only who needs threads pays for it

        with self.lock:
            if self.idle:
                return self.idle.pop()
            if self.count < _MOST_THREADS and self._start(jobs := SimpleQueue()):
                return jobs
            loop = asyncio.get_running_loop()
            future: asyncio.Future[Jobs] = loop.create_future()
            self.waiting.append((loop, future))
        return await future

    def _start(self, jobs: Jobs) -> bool:
        try:
            Thread(target=self._serve, args=(jobs,), name="suture-tool", daemon=True).start()
        except RuntimeError:  # the system has no more threads
            if not self.count:
                raise
            return False
        self.count += 1
        return True

    def free(self, jobs: Jobs) -> None:
        """Hand the thread to a waiting call, or mark it as idle."""
        with self.lock:
            while self.waiting:
                loop, future = self.waiting.popleft()
                if future.done():  # the waiting call was cancelled
                    continue
                with suppress(RuntimeError):  # that loop was closed
                    loop.call_soon_threadsafe(self._give, future, jobs)
                    return
            self.idle.append(jobs)

    def _give(self, future: "asyncio.Future[Jobs]", jobs: Jobs) -> None:
        if future.done():  # the waiting call was cancelled
            self.free(jobs)
        else:
            future.set_result(jobs)

    def _serve(self, jobs: Jobs) -> None:
        from queue import Empty  # noqa: PLC0415 - as above

        while True:
            try:
                job = jobs.get(timeout=_IDLE)
            except Empty:
                with self.lock:
                    if jobs not in self.idle:  # taken: more work will come
                        continue
                    self.idle.remove(jobs)
                    self.count -= 1
                    return
            if job is None:
                self.free(jobs)
            else:
                job()
            # An idle thread must not keep its last job alive.
            del job


_THREADS = _Threads()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_THREADS.__init__)  # a forked process has no threads but its first


async def run_in_thread(function: Callable[[], T]) -> T:
    """Run a function in a thread, with the context variables of the caller."""
    async with Worker() as worker:
        return await worker.run(function)


class Worker:
    """One thread and one context for several calls, one after the other.

    >>> from threading import get_ident
    >>> async def twice():
    ...     async with Worker() as worker:
    ...         return len({await worker.run(get_ident), await worker.run(get_ident)})
    >>> asyncio.run(twice())
    1
    """

    __slots__ = ("_context", "_jobs", "busy")

    def __init__(self) -> None:
        self._context = copy_context()
        self._jobs: Jobs | None = None
        self.busy = False

    async def __aenter__(self) -> Self:
        self._jobs = await _THREADS.take()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop()

    async def run(self, function: Callable[[], T]) -> T:
        """Run a function in the thread. If the caller is cancelled, the function goes on, and the thread is `busy`."""
        if self._jobs is None:
            raise RuntimeError("use a worker as `async with Worker() as worker`")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def end(result: Any, error: BaseException | None) -> None:
            self.busy = False
            if future.done():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        def job() -> None:
            result, error = _call(function)
            # If nobody waits for the call any more, the loop may be closed when it ends.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(end, result, error)

        self.busy = True
        self._jobs.put(partial(self._context.run, job))
        return await future

    def stop(self, last: Callable[[], object] | None = None) -> None:
        """Release the thread once its work is done and `last` was called, without waiting for that."""
        jobs, self._jobs = self._jobs, None
        if jobs is not None:
            if last is not None:
                jobs.put(partial(self._context.run, last))
            jobs.put(None)


def _call(function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return function(), None
    except StopIteration as stop:
        # A future cannot carry it, and awaiting could not raise it.
        error = RuntimeError("the function raised StopIteration")
        error.__cause__ = stop
        return None, error
    except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
        return None, error
