"""Small ways to await: optional awaitables, contexts, streams, work that must finish, and threads.

Blocking code runs in threads of our own, not in the event loop's pool: that one has few threads, and a program waits
for all of them when it ends, so a tool that hangs would hang its program. A thread here is a daemon and serves one
call or one stream from beginning to end, so that what must stay in its thread (an SQLite connection) does. Then it
waits a while for more work, since another call is cheaper than another thread.
"""

import asyncio
import logging
import os
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from threading import Event, Lock, Thread
from types import coroutine
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias, TypeVar, cast

if TYPE_CHECKING:
    from queue import SimpleQueue

T = TypeVar("T")
Jobs: TypeAlias = "SimpleQueue[Callable[[], object] | None]"

LOG = logging.getLogger("suture")
_IDLE = 10.0
"""How many seconds a thread without work waits for more."""
_MOST_THREADS = 256
"""How many threads there may be; a call beyond them waits for one."""


async def close(stream: Any) -> None:
    """Close a stream after an error; an error of its own while closing is logged, and does not replace the first."""
    end = getattr(stream, "aclose", None)
    if end is not None:
        try:
            await end()
        except Exception:
            LOG.warning("a stream failed to close", exc_info=True)


class closing(Generic[T]):  # noqa: N801 - used like `contextlib.aclosing`
    """Close a stream at the end of a block, in the task that read it. One that cannot be closed is left alone."""

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
    """Await `work` in place, without a task, in a context of its own: what it sets there dies with it."""
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
        # Once more, but not counted twice: `asyncio.timeout` would not know its own.
        task.uncancel()
        task.cancel()
    return future.result()


async def run_to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Await `work` to its end, even if this task is cancelled meanwhile; the cancellation is raised afterwards."""
    task = asyncio.get_running_loop().create_task(work, context=copy_context())
    cancelled = await _outwait(task)
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # asking keeps it from being called unretrieved
        raise cancelled
    return task.result()


async def _outwait(future: "asyncio.Future[Any]") -> asyncio.CancelledError | None:
    """Wait for `future` however often this task is cancelled meanwhile; return the last cancellation."""
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait((future,))
        except asyncio.CancelledError as error:
            cancelled = error
    return cancelled


def uncancel() -> None:
    """Let this task go on after a cancellation that is dealt with."""
    task = asyncio.current_task()
    while task is not None and task.cancelling():
        task.uncancel()


class _Threads:
    """The threads of this process: those without work, and who waits for one."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.idle: deque[Jobs] = deque()
        self.waiting: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[Jobs]]] = deque()
        self.count = 0

    async def take(self) -> Jobs:
        """Return what leads to a thread that has no work; wait for one where there are too many."""
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
        """Hand the thread to whoever waits for one, or let it rest."""
        with self.lock:
            while self.waiting:
                loop, future = self.waiting.popleft()
                with suppress(RuntimeError):  # that loop is closed
                    loop.call_soon_threadsafe(self._give, future, jobs)
                    return
            self.idle.append(jobs)

    def _give(self, future: "asyncio.Future[Jobs]", jobs: Jobs) -> None:
        if future.done():  # whoever waited was cancelled
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
            # A thread that rests must not keep alive what it did.
            del job


_THREADS = _Threads()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_THREADS.__init__)  # threads do not follow into a forked process


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
        """Run a function in the thread. If the waiting is cancelled, the function goes on: the thread is `busy`."""
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
            # The loop may be gone by the time a call that nobody waits for ends.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(end, result, error)

        self.busy = True
        self._jobs.put(partial(self._context.run, job))
        return await future

    def stop(self, last: Callable[[], object] | None = None) -> None:
        """Let the thread go once it is through, after `last`; nobody waits for it."""
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


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Await `work` from plain code, in an event loop of its own; inside a running loop, in a thread."""
    if asyncio._get_running_loop() is None:  # noqa: SLF001 - the public way raises, and what the run raises would show it
        return asyncio.run(work)
    outer, loop = asyncio.current_task(), asyncio.new_event_loop()
    asked = outer.cancelling() if outer is not None else 0
    outcome: list[Any] = []
    tasks: list[asyncio.Task[T]] = []
    claim, done = Lock(), Event()

    async def main() -> T:
        tasks.append(cast("asyncio.Task[T]", asyncio.current_task()))
        return await work

    def in_thread() -> None:
        if not claim.acquire(blocking=False):  # stopped before it began
            work.close()
            loop.close()
            return
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                outcome.append((runner.run(main()), None))
        except BaseException as error:  # noqa: BLE001 - raised again where it was asked for
            outcome.append((None, error))
        done.set()

    try:  # Ctrl-C may come at any moment, also while the thread is being started
        Thread(target=copy_context().run, args=(in_thread,), name="suture-run-sync").start()
        while not done.wait(0.1):
            # The loop around us cannot cancel us while we wait here; its Ctrl-C only marks our task.
            if outer is not None and outer.cancelling() > asked:
                _cancel(loop, tasks)
                done.wait()
    except KeyboardInterrupt:
        if not claim.acquire(blocking=False):
            _cancel(loop, tasks)
            done.wait()
        raise
    value, error = outcome[0]
    if error is not None:
        raise error
    return value


def _cancel(loop: asyncio.AbstractEventLoop, tasks: Sequence["asyncio.Task[Any]"]) -> None:
    """Cancel the first task of a loop that runs in another thread, also one that has not begun."""

    def cancel() -> None:
        for task in tasks or asyncio.all_tasks(loop):
            task.cancel()

    with suppress(RuntimeError):  # it is closed: the work is done
        loop.call_soon_threadsafe(cancel)
