"""Event loops: those of plain code, and what a loop holds until it ends."""

import asyncio
import atexit
import os
import sys
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from threading import Event, Thread
from time import monotonic
from typing import Any, Generic, Self, TypeVar
from weakref import WeakSet

from suture._aio import LOG, close
from suture.errors import ConfigError

T = TypeVar("T")

_IDLE = 60.0
"""How many seconds an event loop that is not needed any more stays open."""
_MOST = 64
"""How many idle event loops there may be: more than the threads of a usual server."""


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

            def note(generator: AsyncGenerator[Any, Any]) -> None:
                begun.add(generator)
                if begin is not None:
                    begin(generator)

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
            if now - since > _IDLE or len(self.idle) >= _MOST:
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
    except Exception:  # noqa: BLE001 - it is logged
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
    left = [each for each in begun if getattr(each, "ag_code", None) is not until_the_loop_ends.__code__]
    ends = await asyncio.gather(*[each.aclose() for each in left], return_exceptions=True)
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
        outer, call = _find_task(), _Call(work, self)
        cancellations = outer.cancelling() if outer is not None else 0
        try:
            self._ask(call.begin)
            while not self._wait(call.done):
                # The outer loop cannot cancel us while we block here; its Ctrl-C only marks our task.
                if outer is not None and outer.cancelling() > cancellations:
                    cancellations = outer.cancelling()
                    self._ask(call.cancel)
        except KeyboardInterrupt:
            self._ask(call.cancel)
            while not self._wait(call.done):
                pass
            raise
        finally:
            if call.task is None:
                work.close()
        if self._failure is not None:
            raise self._failure  # such as a `SystemExit` in some task, which ended the loop
        if call.task is None:
            raise ConfigError("this block has ended, and its event loop with it; call inside of the `with` block")
        return call.task.result()

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
