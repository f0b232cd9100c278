"""`Run`: one run of an agent, to be awaited, iterated, or cancelled. The work is one task, started on first use."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from os import urandom
from typing import Any, Generic, Literal

import msgspec

from suture.errors import ConfigError, SutureError
from suture.events import AnyEvent, Event, MessageDelta, MessageFinished
from suture.kernel._awaiting import uninterrupted
from suture.kernel._begin import Begin, begin
from suture.kernel._buffer import Buffer, Emitter
from suture.kernel._contexts import Outcome
from suture.kernel._finish import finish
from suture.kernel._interrupt import InterruptSignal, Waiting
from suture.kernel._loop import loop
from suture.kernel._result import RunResult
from suture.kernel._scope import FRAME, Frame, SafePoint, Scope
from suture.messages import History, M

__all__ = ["Run", "new_run_id"]

_POINTS = ("now", "after_model", "after_tools")


def new_run_id() -> str:
    """Return an id that no other run has."""
    return urandom(8).hex()


class _Work:
    """What a run's task and its handle share. The task does not know the handle, so that may be collected."""

    def __init__(self, scope: Scope, start: Begin) -> None:
        self.scope, self.start = scope, start
        self.task: asyncio.Task[None] | None = None
        self.buffer: Buffer | None = None
        self.result: RunResult[Any] | None = None
        self.error: BaseException | None = None
        self.is_over = False
        """Whether the loop has come to its end: a cancellation has nothing left to stop."""
        self.escalated = False
        self.has_begun = False

    def begin(self, *, listens: bool) -> "asyncio.Task[None]":
        """Start the task if it has not been; `listens`: somebody will read the events."""
        if self.task is None:
            scope = self.scope
            if listens and scope.emitter is None:
                self.buffer = Buffer()
                scope.emitter = Emitter(self.buffer, scope.spec.name, scope.path, scope.run_id)
            self.task = asyncio.get_running_loop().create_task(self.drive(), name=f"suture:{scope.address}")
        return self.task

    async def drive(self) -> None:
        """Run to the end; what came of it is in `result` and `error`. The events always come to an end."""
        self.has_begun = True
        FRAME.set(Frame(self.scope, 0, "run", "run"))
        try:
            outcome, error, waiting = await self._go()
            self.is_over = True
            result, self.error = await finish(self.scope, outcome, error, waiting)
            self.result = msgspec.structs.replace(result, escalated=self.escalated) if self.escalated else result
            if isinstance(self.error, SutureError):
                self.error.result = self.result
        finally:
            self.is_over = True
            if self.buffer is not None:
                self.buffer.close()

    async def _go(self) -> tuple[Outcome, BaseException | None, tuple[Waiting, ...]]:
        scope = self.scope
        try:
            if "now" in scope.stop_at:
                scope.history = History(self.start.messages)
                return Outcome.CANCELLED, None, ()  # before its first step
            await loop(scope, await begin(scope, self.start))
        except InterruptSignal as signal:
            return Outcome.CANCELLED if scope.stop_at else Outcome.INTERRUPTED, None, signal.waiting
        except SafePoint:
            return Outcome.CANCELLED, None, ()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            while task is not None and task.cancelling():
                task.uncancel()
            return Outcome.CANCELLED, None, ()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as failure:  # noqa: BLE001 - told to whoever awaits the run
            if "now" in scope.stop_at and isinstance(failure, Exception):
                return Outcome.CANCELLED, None, ()  # somebody made an error of the cancellation
            return Outcome.FAILED, failure, ()
        return Outcome.FINISHED, None, ()

    def stop(self, at: str, *, recursive: bool) -> None:
        """Ask for an end at a point; a run inside this one is asked, too, if `recursive`."""
        if at == "now":
            self.scope.stop_at.add("now")
            if self.has_begun and self.task is not None and not self.is_over:
                self.task.cancel()
            return
        self.scope.stop_at.add(at)
        if recursive:
            self.scope.inner_stop_at.add(at)
            for child in tuple(self.scope.children):
                child.stop(at, recursive=True)


class Run(Generic[M]):
    """One run of an agent.

    `await` it for its `RunResult`; iterate it for its events; or `async for text in run.text()`. In an
    `async with` block, leaving the block ends it. It starts on first use, can be iterated once and awaited any
    number of times. Awaited first, it keeps no events. A run that nobody refers to any more is cancelled.

    >>> import asyncio
    >>> from suture import ChatModelAgent
    >>> from suture.testing import ScriptedModel
    >>> async def main():
    ...     return (await ChatModelAgent(name="greeter", model=ScriptedModel(["hello"])).run("hi")).output
    >>> asyncio.run(main())
    'hello'
    """

    def __init__(self, scope: Scope, start: Begin) -> None:
        self.work = _Work(scope, start)
        self._iterated = False

    @property
    def run_id(self) -> str:
        """The id of the run; events carry it."""
        return self.work.scope.run_id

    @property
    def result(self) -> RunResult[M] | None:
        """What there is, once the run has ended, also after an exception; `None` before."""
        return self.work.result

    def __await__(self) -> Generator[Any, None, RunResult[M]]:
        return self._wait().__await__()

    async def __aenter__(self) -> "Run[M]":
        self.work.begin(listens=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end()

    def __aiter__(self) -> "AsyncIterator[AnyEvent]":
        work = self.work
        if self._iterated:
            raise ConfigError("a run can be iterated once")
        work.begin(listens=True)
        if work.buffer is None:
            raise ConfigError("this run was awaited first and kept no events; iterate it before awaiting it")
        self._iterated = True
        return _Events(self)

    async def text(self) -> AsyncGenerator[str, None]:
        """Yield what the model says as it says it; not what agents inside the run say."""
        streamed = ""
        async for event in self:
            if event.run_path != self.work.scope.path:
                continue
            if isinstance(event, MessageDelta) and event.text:
                streamed = event.message_id
                yield event.text
            elif isinstance(event, MessageFinished) and event.message_id != streamed and event.text:
                yield event.text

    async def cancel(
        self,
        at: Literal["now", "after_model", "after_tools"] = "now",
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - how long to be patient, not how long to work
        recursive: bool = False,
    ) -> RunResult[M]:
        """Stop the run and return what there is of it.

        Args:
            at: `now`; `after_model`, once a model turn that asked for tools is over; `after_tools`, once a turn's
                tool calls are over. A final answer is never cancelled. Asked for several points, the first
                that is reached counts.
            timeout: for how many seconds to wait for the point; then it is stopped at once.
            recursive: whether agents that run inside this one as tools stop at their own points, too.
        """
        if at not in _POINTS:
            raise ConfigError(f"a run is cancelled at one of {', '.join(_POINTS)}, not {at!r}")
        work = self.work
        if work.task is None:
            at = "now"
        work.begin(listens=False)
        work.stop(at, recursive=recursive)
        if work.buffer is not None:
            work.buffer.lift()
        if timeout is not None and work.task is not None and not work.task.done():
            await asyncio.wait([work.task], timeout=timeout)
            if not work.is_over:
                work.escalated = True
                work.stop("now", recursive=recursive)
        return await uninterrupted(self._ended())

    async def _ended(self) -> RunResult[M]:
        work = self.work
        if work.task is None:
            raise AssertionError  # pragma: no cover - it was started
        if not work.task.done():
            await asyncio.wait([work.task])
        if work.result is None:
            work.task.result()
            raise AssertionError  # pragma: no cover - the line above says why
        return work.result

    async def _wait(self) -> RunResult[M]:
        work = self.work
        work.begin(listens=False)
        if work.buffer is not None:
            work.buffer.lift()
        try:
            result = await self._ended()
        except asyncio.CancelledError:
            await self._end()
            raise
        if work.error is not None:
            raise work.error
        return result

    async def _end(self) -> None:
        work = self.work
        if work.task is not None and not work.task.done():
            work.stop("now", recursive=True)
            if work.buffer is not None:
                work.buffer.lift()
            await uninterrupted(self._ended())

    def __del__(self) -> None:
        task = self.work.task if hasattr(self, "work") else None
        if task is not None and not task.done():
            loop = task.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(task.cancel)


class _Events:
    """The events of a run, one by one; a failure of the run is raised after the last."""

    def __init__(self, run: Run[Any]) -> None:
        self._run = run

    def __aiter__(self) -> "_Events":
        return self

    async def __anext__(self) -> Any:
        work = self._run.work
        event: Event | None = await work.buffer.next() if work.buffer is not None else None
        if event is not None:
            return event
        if work.error is not None:
            raise work.error
        raise StopAsyncIteration
