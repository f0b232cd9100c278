"""Helpers for async code: optional awaitables, contexts, streams, work that must finish, and threads.

Blocking code runs in our own threads, not in the event loop's pool. That pool has few threads, and a program waits
for all of them when it ends, so a tool that hangs would hang its program. A thread here is a daemon. It serves one
call or one stream from beginning to end, so that whatever must stay in one thread (an SQLite connection) does. Then
it waits a while for more work, because reusing a thread is cheaper than starting one.
"""

import asyncio
import atexit
import logging
import os
import sys
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterable
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from threading import Event, Lock, Thread
from time import monotonic
from types import coroutine
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias, TypeVar, cast
from weakref import WeakSet

if TYPE_CHECKING:
    from queue import SimpleQueue

T = TypeVar("T")
Jobs: TypeAlias = "SimpleQueue[Callable[[], object] | None]"

LOG = logging.getLogger("suture")
_IDLE = 10.0
"""How many seconds an idle thread waits for more work."""
_MOST_THREADS = 256
"""How many threads there may be; further calls wait for a free one."""
_IDLE_LOOP = 60.0
"""How many seconds an event loop that is not needed any more stays open."""
_MOST_LOOPS = 64
"""How many idle event loops there may be: more than the threads of a usual server."""


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


# --- from plain code ------------------------------------------------------------------------------


async def until_the_loop_ends(end: Callable[[], Awaitable[object]]) -> AsyncGenerator[None]:
    """Call `end` when the loop closes its async generators, which it does before it ends; `anext` begins it."""
    try:
        yield
    finally:
        await end()


async def of_the_loop(name: str, make: Callable[[], T], end: Callable[[T], Awaitable[object]]) -> T:
    """Return what the running loop holds by this name; if there is nothing, what `make` returns, which ends with it.

    The loop itself holds it, because connections hold their loop: kept anywhere else, both would leak if a loop was
    closed without `shutdown_asyncgens`.
    """
    things = vars(asyncio.get_running_loop())
    if name not in things:
        thing = make()

        async def let_go() -> None:
            things.pop(name, None)
            await end(thing)

        closer = until_the_loop_ends(let_go)
        things[name] = thing, closer
        await anext(closer)
    return things[name][0]


class _Loops:
    """The event loops of plain code. They stand still between two calls, and their connections stay open.

    - A loop belongs to no thread. A call takes the one that was used last, or a new one, and runs it in its own thread.
      So short-lived threads share connections, and a thread that ends leaves nothing behind.
    - Nothing of a call is left in a loop that is `idle`: no task, no async generator. After Ctrl-C, and if a call did
      not come to its end, the loop is closed: nobody knows where it was interrupted.
    - A process that forks has no idle loops at that moment, because parent and child would share their selectors and
      connections. Loops of other threads do not run on in the child.
    - `asyncio.get_event_loop` of the program never returns one of them.
    """

    def __init__(self) -> None:
        self.idle: deque[tuple[asyncio.Runner, float]] = deque()
        """The loops, and since when each of them is idle, in this order."""
        self.is_forking = self.is_ending = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Await `work` in this thread."""
        runner, is_clean = self.take(), False

        async def main() -> T:
            nonlocal is_clean
            begun, (begin, end) = WeakSet[Any](), sys.get_asyncgen_hooks()

            def note(made: AsyncGenerator[Any, Any]) -> None:
                begun.add(made)
                if begin is not None:
                    begin(made)

            sys.set_asyncgen_hooks(note, end)
            await asyncio.sleep(0)  # first notice what came while the loop stood still, such as a closed connection
            try:
                return await work
            finally:
                await _clear(begun)
                is_clean = True

        try:
            return runner.run(main(), context=copy_context())
        except (KeyboardInterrupt, SystemExit):
            is_clean = False
            raise
        finally:
            if is_clean and not self.is_forking and not self.is_ending:
                self.keep(runner)
            else:
                runner.close()
            work.close()  # if it has not begun

    def take(self) -> asyncio.Runner:
        """Return the loop that was used last, or a new one."""
        while self.idle:
            with suppress(IndexError):
                runner = self.idle.pop()[0]
                if not runner.get_loop().is_closed():  # the program may close whichever loops it finds
                    return runner
        return asyncio.Runner(loop_factory=asyncio.new_event_loop)

    def keep(self, runner: asyncio.Runner) -> None:
        """Keep a loop for the next call; close one that was not needed for long, or is too many."""
        now = monotonic()
        self.idle.append((runner, now))
        with suppress(IndexError):
            oldest, since = self.idle.popleft()
            if now - since > _IDLE_LOOP or len(self.idle) >= _MOST_LOOPS:
                _close_idle(oldest)
            else:
                self.idle.appendleft((oldest, since))

    def close(self, *, waits: bool = False) -> None:
        """Close the idle loops; `waits`: for the threads in which they looked up addresses, too."""
        while self.idle:
            with suppress(IndexError):
                _close_idle(self.idle.pop()[0], waits=waits)

    def end(self) -> None:
        """Close the idle loops, and keep none any more."""
        self.is_ending = True
        self.close()

    def before_fork(self) -> None:
        """Close the idle loops, in another thread if a loop runs in this one."""
        self.is_forking = True
        close = partial(self.close, waits=True)  # a process with threads should not fork
        if asyncio._get_running_loop() is None:  # noqa: SLF001 - as in `run_blocking`
            close()
        elif self.idle:
            helper = Thread(target=close, name="suture-run-sync")
            helper.start()
            helper.join()

    def after_fork(self) -> None:
        """Keep loops again."""
        self.is_forking = False


def _close_idle(runner: asyncio.Runner, *, waits: bool = False) -> None:
    """Close a loop in which nothing runs; `waits`: for threads that its last call may have left, too."""
    loop = runner.get_loop()
    if loop.is_closed():
        return
    try:
        loop.run_until_complete(loop.shutdown_asyncgens())
        if waits:
            loop.run_until_complete(loop.shutdown_default_executor())
    except Exception:
        LOG.warning("the connections of an event loop failed to close", exc_info=True)
    finally:
        loop.close()


async def _clear(begun: Iterable[Any]) -> None:
    """End the tasks and the async generators that a call left behind, as `asyncio.run` does."""
    loop = asyncio.get_running_loop()
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
    left = [made for made in begun if getattr(made, "ag_code", None) is not until_the_loop_ends.__code__]
    ends = await asyncio.gather(*[made.aclose() for made in left], return_exceptions=True)
    failures = [task.exception() for task in tasks if not task.cancelled()] + ends
    for failure in failures:
        if isinstance(failure, Exception):
            said = "an exception in a task or an async generator that a run left behind"
            loop.call_exception_handler({"message": said, "exception": failure})


_LOOPS = _Loops()
atexit.register(_LOOPS.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_LOOPS.before_fork, after_in_parent=_LOOPS.after_fork, after_in_child=_LOOPS.after_fork)


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Await `work` from plain code, in a loop that is kept for the next call; in a thread if a loop runs here."""
    if asyncio._get_running_loop() is None:  # noqa: SLF001 - the public way raises, and what the run raises would show it
        return _LOOPS.run(work)
    try:
        with LoopThread() as loop:
            return loop.call(work)
    finally:
        work.close()  # if it has not begun


class LoopThread:
    """An event loop in a thread of its own, for plain code that waits for one thing after another there.

    >>> with LoopThread() as loop:
    ...     loop.call(asyncio.sleep(0, "done"))
    'done'
    """

    def __init__(self) -> None:
        self._is_ready, self._is_over = Event(), Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._main: asyncio.Task[None] | None = None
        self._is_left = False
        self._failure: BaseException | None = None

    def __enter__(self) -> Self:
        try:  # Ctrl-C may come at any moment, even while the thread starts
            Thread(target=copy_context().run, args=(self._serve,), name="suture-run-sync").start()
            self._is_ready.wait()
        except BaseException:
            self._leave()
            raise
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()
        self._is_over.wait()

    @property
    def is_ending(self) -> bool:
        """Whether the loop is being closed because something in it failed."""
        return self._main is not None and self._main.cancelling() > 0

    def _leave(self) -> None:
        self._is_left = True  # first: a loop that has no `_end` yet looks at this once it has
        if self._loop is not None and self._end is not None:
            with suppress(RuntimeError):  # the loop was closed just now
                self._loop.call_soon_threadsafe(self._end.set)

    def _serve(self) -> None:
        async def main() -> None:
            self._main, self._loop, self._end = _find_task(), asyncio.get_running_loop(), asyncio.Event()
            self._is_ready.set()
            if not self._is_left:
                await self._end.wait()

        try:
            _LOOPS.run(main())
        except BaseException as error:  # noqa: BLE001 - raised where the loop is used
            self._failure = error
        self._is_over.set()
        self._is_ready.set()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Await `work` in the loop, and return its result or raise its error; Ctrl-C cancels it."""
        outer, made = _find_task(), _Call(work, self)
        asked = outer.cancelling() if outer is not None else 0
        try:
            self._ask(made.begin)
            while not self._wait(made.done):
                # The outer loop cannot cancel us while we block here; its Ctrl-C only marks our task.
                if outer is not None and outer.cancelling() > asked:
                    asked = outer.cancelling()
                    self._ask(made.cancel)
        except KeyboardInterrupt:
            self._ask(made.cancel)
            while not self._wait(made.done):
                pass
            raise
        finally:
            if made.task is None:
                work.close()
        if self._failure is not None:
            raise self._failure  # such as a `SystemExit` in some task, which ended the loop
        if made.task is None:
            raise RuntimeError("the event loop of this block has ended")
        return made.task.result()

    def _ask(self, step: Callable[[], object]) -> None:
        """Call `step` in the loop's thread, unless that is gone: another block may use the loop then."""
        if self._loop is not None and not self._is_left and not self._is_over.is_set():
            with suppress(RuntimeError):  # the loop was closed just now
                self._loop.call_soon_threadsafe(step)

    def _wait(self, done: Event) -> bool:
        """Wait a little, and return whether there is nothing more to wait for."""
        return self._is_left or self._is_over.is_set() or done.wait(0.1) or self._is_over.is_set()

    def iterate(self, items: AsyncIterator[T]) -> Generator[T, None, None]:
        """Yield the items of an async iterator; it is closed at the end."""

        async def step() -> T:
            return await anext(items, _NO_MORE)

        try:
            while (item := self.call(step())) is not _NO_MORE:
                yield item
        finally:
            if not self._is_left:
                self.call(close(items))


class _Call(Generic[T]):
    """One thing that plain code waits for; all but `done` is for the loop's own thread."""

    def __init__(self, work: Coroutine[Any, Any, T], thread: LoopThread) -> None:
        self._work, self._thread = work, thread
        self.task: asyncio.Task[T] | None = None
        self.done = Event()

    def begin(self) -> None:
        self.task = asyncio.get_running_loop().create_task(self._work)
        self.task.add_done_callback(self._finish)

    def _finish(self, task: "asyncio.Task[T]") -> None:
        if not task.cancelled():
            task.exception()  # marks it as retrieved, or asyncio would log it if nobody waits any more
        if not self._thread.is_ending:  # else it is known soon why the loop ends
            self.done.set()

    def cancel(self) -> None:
        if self.task is not None:
            self.task.cancel()
        else:  # Ctrl-C came before it was to begin
            self.done.set()


_NO_MORE: Any = object()


def _find_task() -> "asyncio.Task[Any] | None":
    """Return the task that runs here, if there is one."""
    return asyncio.current_task() if asyncio._get_running_loop() is not None else None  # noqa: SLF001 - as above
