"""`Run`: a live run of an agent, which can be iterated, awaited or cancelled. Its work is one task.

In plain code a `SyncRun` is the same `Run`, in an event loop of another thread, so that it goes on between two events.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Generic, Literal, TypeAlias
from weakref import ref

import msgspec

from suture._aio import run_to_the_end, uncancel
from suture._loops import LoopThread
from suture.errors import ComponentCancelledError, ConfigError, SutureError
from suture.events import AnyEvent, Event, MessageDelta, MessageFinished
from suture.kernel.input import Intake
from suture.kernel.lifecycle import Begin, begin, finish, load
from suture.kernel.loop import LocalPort, Port, Standing, drive
from suture.kernel.middleware import Outcome
from suture.kernel.run_state import InterruptSignal, Msg, Out, RunResult, SafePoint, Waiting, subtract_usage
from suture.kernel.state import (
    Buffer,
    Emitter,
    Execution,
    Frame,
    Spec,
    current_frame,
    get_frame,
    is_cancelled,
    set_frame,
)
from suture.repair import Cause

Go: TypeAlias = Callable[[Standing, Port], Awaitable[Standing]]
_POINTS = ("now", "after_model", "after_tools")
_DEEPEST = 64
"""How deep agents may be nested."""


class Work:
    """What a run's task and its handle share. The task has no reference to the handle, which can be collected."""

    def __init__(self, run: Execution, start: Begin, go: Go = drive, port: Port | None = None) -> None:
        self.run, self.start = run, start
        self.go, self.port = go, port or LocalPort(run)
        """How far the loop goes (to the end, or one step), and the port that does the steps."""
        self.standing = Standing()
        self.task: asyncio.Task[None] | None = None
        self.buffer: Buffer | None = None
        self.result: RunResult[Any, Any] | None = None
        self.is_over = False
        """Whether the loop has ended, so that there is nothing left to cancel."""
        self.outcome = Outcome.CANCELLED
        """How the run ended, once it is over."""
        self.waiting: tuple[Waiting, ...] = ()
        """The interrupts that the run waits for, once it is interrupted."""
        self.escalated = False
        self.has_begun = False
        self.around: Execution | None = None
        """The run inside which this one was begun, as a tool or by the code of one: it pays for this one."""

    def begin(self, *, listens: bool) -> "asyncio.Task[None]":
        """Start the task if it was not started; `listens`: somebody will read the events."""
        if self.task is None:
            run, frame = self.run, get_frame(None)
            self.around = frame.run if frame is not None else None
            run.depth = self.around.depth + 1 if self.around is not None else 1
            if run.depth > _DEEPEST:
                raise ConfigError(f"{_DEEPEST} agents run inside each other; does one run itself without end?")
            if listens and run.emitter is None:
                self.buffer = Buffer()
                run.emitter = Emitter(self.buffer, run.spec.name, run.path, run.state.run_id)
            self.task = asyncio.get_running_loop().create_task(self._go(), name=f"suture:{run.address}")
        return self.task

    async def _go(self) -> None:
        """Run to the end and put the outcome into `result`. The event stream always ends."""
        self.has_begun = True
        set_frame(Frame(self.run, 0, "run", "run"))
        try:
            ending = await self._drive()
            if ending is None:
                return
            self.is_over, self.outcome, self.waiting = True, ending[0], ending[2]
            result = await finish(self.run, *ending)
            self.result = msgspec.structs.replace(result, escalated=True) if self.escalated else result
            if isinstance(result.error, SutureError):
                result.error.result = self.result
        finally:
            self.is_over, self.run.depth = True, 0
            if self.around is not None:
                self._charge(self.around)
            if self.run.opened is not None:
                await run_to_the_end(self.run.opened.close())
            if self.buffer is not None:
                self.buffer.close()

    def _charge(self, around: Execution) -> None:
        """Count what this run has used, since it was begun or resumed, for the run around it."""
        used = subtract_usage(self.run.state.usage, self.run.usage_before)
        if used.total_tokens:
            around.spend(used)

    async def _drive(self) -> tuple[Outcome, BaseException | None, tuple[Waiting, ...]] | None:
        """Drive the loop; return how the run ends, or `None` if it continues after the one step that was asked for."""
        run = self.run
        try:
            if "now" in run.stop_at or (run.stop_at and run.outer is None):  # before its first step
                await load(run, self.start, takes_answers=False)
                return Outcome.CANCELLED, None, ()
            self.standing = at = await begin(run, self.start)
            self.standing = await self.go(at, self.port)
            if self.standing.phase != "end":
                if run.journal is not None:
                    run.journal.sign()
                    await run.journal.flush()
                    run.journal.remember()
                return None
        except InterruptSignal as signal:
            return Outcome.CANCELLED if run.stop_at else Outcome.INTERRUPTED, None, signal.waiting
        except SafePoint:
            return Outcome.CANCELLED, None, ()
        except asyncio.CancelledError as error:
            failure = None
            if not is_cancelled(run):
                said = "a function of the agent's settings cancelled its own work, though nobody cancelled the run"
                failure = ComponentCancelledError(said)
                failure.__cause__ = error
            uncancel()
            return Outcome.CANCELLED if failure is None else Outcome.FAILED, failure, ()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as failure:  # noqa: BLE001 - whoever awaits the run is told
            if "now" in run.stop_at and isinstance(failure, Exception):
                return Outcome.CANCELLED, None, ()  # some code turned the cancellation into an error
            return Outcome.FAILED, failure, ()
        return Outcome.FINISHED, None, ()

    def stop(self, at: str, *, recursive: bool) -> None:
        """Ask the run, and if `recursive` the runs inside it, to end at a point."""
        run = self.run
        run.stop_at.add(at)
        if at == "now":
            if self.has_begun and self.task is not None and not self.is_over:
                self.task.cancel()
        elif recursive:
            run.inner_stop_at.add(at)
            for child in tuple(run.children):
                child.stop(at, recursive=True)
        if self.buffer is not None:
            self.buffer.lift()

    @property
    def is_around(self) -> bool:
        """Whether the calling code runs inside this run."""
        frame = get_frame(None)
        inside = frame.run if frame is not None else None
        while inside is not None and inside is not self.run:
            inside = inside.outer
        return inside is not None and self.task is not None and not self.task.done()

    async def end(self) -> RunResult[Any, Any]:
        """Wait for the end and return the result."""
        task = self.begin(listens=False)
        if not task.done():
            await asyncio.wait([task])
        if self.result is None:
            task.result()
            raise AssertionError  # pragma: no cover - the line above says why
        return self.result


class RunBlock(Generic[Out, Msg]):
    """Gives a live run for a block: `async with` in async code a `Run`, `with` in plain code a `SyncRun`."""

    _thread: LoopThread | None = None

    async def __aenter__(self) -> "Run[Out, Msg]":
        raise NotImplementedError

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        raise NotImplementedError

    def __enter__(self) -> "SyncRun[Out, Msg]":
        if self._thread is not None:
            raise ConfigError("a run has one block; stream again for another run")
        thread = LoopThread()
        thread.__enter__()
        try:
            run = SyncRun(thread.call(self.__aenter__()), thread)
        except BaseException:  # Ctrl-C may come when the run has begun already
            try:
                with suppress(Exception):
                    thread.call(self.__aexit__(None, None, None))
            finally:
                thread.__exit__()
            raise
        self._thread = thread
        return run

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is not None:
            try:
                self._thread.call(self.__aexit__(kind, error, trace))
            finally:
                self._thread.__exit__()


class SyncRun(Generic[Out, Msg]):
    """A live run in plain code; `with agent.stream(…) as run` gives it. It has what `Run` has, without `await`.

    >>> from suture import ChatModelAgent
    >>> from suture.testing import ScriptedModel
    >>> with ChatModelAgent(model=ScriptedModel(["hello"])).stream("hi") as run:
    ...     print(list(run.text()), run.result().output)
    ['hello'] hello
    """

    def __init__(self, run: "Run[Out, Msg]", thread: LoopThread) -> None:
        self._run, self._thread = run, thread

    @property
    def run_id(self) -> str:
        """The id of the run; events carry it."""
        return self._run.run_id

    @property
    def final_result(self) -> RunResult[Out, Msg] | None:
        """The result once the run has ended, even with an exception; `None` before."""
        return self._run.final_result

    def result(self) -> RunResult[Out, Msg]:
        """Wait for the end of the run and return its result; raise the error that it failed with."""
        return self._thread.call(self._run.result())

    def __iter__(self) -> Iterator[AnyEvent]:
        return self._thread.iterate(aiter(self._run))

    def text(self) -> Iterator[str]:
        """Yield the model's text as it comes, without that of agents inside the run."""
        return self._thread.iterate(self._run.text())

    def cancel(
        self,
        at: Literal["now", "after_model", "after_tools"] = "now",
        *,
        timeout: float | None = None,
        recursive: bool = False,
    ) -> RunResult[Any, Msg]:
        """Stop the run and return the result so far, as `Run.cancel` does; it may be called from another thread."""
        return self._thread.call(self._run.cancel(at, timeout=timeout, recursive=recursive))

    def __repr__(self) -> str:
        return repr(self._run).replace("<Run", "<SyncRun", 1)


class Run(RunBlock[Out, Msg]):
    """A live run of an agent; `agent.stream(…)` returns it. In plain code, `with` gives the same run as a `SyncRun`.

    Iterate it for its events, or `async for text in run.text()`. `await run.result()` returns its `RunResult`, at any
    time; from then on unread events are dropped. Leaving an `async with` block ends the run. It starts on first use and
    can be iterated once. A run without any reference to it is cancelled.

    >>> import asyncio
    >>> from suture import ChatModelAgent
    >>> from suture.testing import ScriptedModel
    >>> async def main():
    ...     async with ChatModelAgent(model=ScriptedModel(["hello"])).stream("hi") as run:
    ...         return [text async for text in run.text()]
    >>> asyncio.run(main())
    ['hello']
    """

    def __init__(self, work: Work) -> None:
        self._work = work
        self._reader: ref[_Events] | None = None

    @property
    def run_id(self) -> str:
        """The id of the run; events carry it."""
        return self._work.run.state.run_id

    @property
    def final_result(self) -> RunResult[Out, Msg] | None:
        """The result once the run has ended, even with an exception; `None` before."""
        return self._work.result

    async def result(self) -> RunResult[Out, Msg]:
        """Wait for the end of the run and return its result; raise the error that it failed with."""
        work = self._work
        if work.is_around:
            raise ConfigError("a run cannot wait for its own end: it would never come")
        work.begin(listens=False)
        if work.buffer is not None:
            work.buffer.lift(keep=self._reader is not None and self._reader() is not None)
        try:
            result = await work.end()
        except asyncio.CancelledError:
            await self._end()
            raise
        if result.error is not None:
            raise result.error
        return result

    def __enter__(self) -> SyncRun[Out, Msg]:
        if self._work.task is not None:
            raise ConfigError("this run has begun in an event loop; go on there, with `async with`")
        return super().__enter__()

    async def __aenter__(self) -> "Run[Out, Msg]":
        self._work.begin(listens=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end()

    def __aiter__(self) -> "AsyncIterator[AnyEvent]":
        work = self._work
        if self._reader is not None:
            raise ConfigError("a run can be iterated once")
        work.begin(listens=True)
        if work.buffer is None or work.buffer.dropped:
            raise ConfigError("this run was awaited first and kept no events; iterate it before awaiting it")
        events = _Events(self)
        self._reader = ref(events)
        return events

    async def text(self) -> AsyncGenerator[str, None]:
        """Yield the model's text as it comes, without that of agents inside the run."""
        streamed = ""
        async for event in self:
            if event.run_path != self._work.run.path:
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
    ) -> RunResult[Any, Msg]:
        """Stop the run and return the result so far.

        Called from inside the run, it returns at once with the result so far; the run ends at the point.

        Args:
            at: `now`; `after_model`, once a model turn that asked for tools is over; `after_tools`, once a turn's
                tool calls are over. A final answer is never cancelled. Of several points, the first one reached counts.
            timeout: how many seconds to wait for the point; after that the run is stopped at once.
            recursive: whether agents that run inside this one as tools stop at their own points, too.
        """
        if at not in _POINTS:
            raise ConfigError(f"a run is cancelled at one of {', '.join(_POINTS)}, not {at!r}")
        work = self._work
        task = work.begin(listens=False)
        work.stop(at, recursive=recursive)
        if work.is_around:
            run = work.run
            return RunResult(
                output=None, messages=list(run.history), outcome=work.outcome, usage=run.state.usage, run_id=self.run_id
            )
        if timeout is not None and not task.done():
            await asyncio.wait([task], timeout=timeout)
            if not work.is_over:
                work.escalated = True
                work.stop("now", recursive=recursive)
        return await run_to_the_end(work.end())

    def under(self, lease: Any) -> "Run[Out, Msg]":
        """Let the run, which must not have begun, write under a lease that the caller takes and gives back."""
        self._work.run.lease = lease
        return self

    async def _end(self) -> None:
        work = self._work
        if work.task is not None and not work.task.done():
            work.stop("now", recursive=True)
            if not work.is_around:
                await run_to_the_end(work.end())

    def __del__(self) -> None:
        work = getattr(self, "_work", None)
        task = work.task if work is not None else None
        if task is not None and not task.done():
            loop = task.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(task.cancel)

    def __repr__(self) -> str:
        result = self._work.result
        ended = (
            result.outcome.value if result is not None else "running" if self._work.task is not None else "not begun"
        )
        return f"<Run {self.run_id}: {ended}>"


class _Events:
    """Iterates over the events of a run; if the run failed, its error is raised after the last one."""

    def __init__(self, run: Run[Any, Any]) -> None:
        self._run = run

    def __aiter__(self) -> "_Events":
        return self

    async def __anext__(self) -> Any:
        work = self._run._work  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - its other half
        event: Event | None = await work.buffer.next() if work.buffer is not None else None
        if event is not None:
            return event
        if work.result is not None and work.result.error is not None:
            raise work.result.error
        raise StopAsyncIteration


async def run_nested(spec: Spec, messages: Sequence[Any], *, forwards_events: bool) -> Any:
    """Run an agent for the current tool call; return its output.

    With a checkpoint it has its own journal next to the outer one, so that finished work is never repeated.
    """
    frame = current_frame(f"agent {spec.name!r} as a tool")
    outer = frame.run
    count = frame.count(spec.name)
    which = f"{spec.name}.{count}" if count else spec.name  # a wrapper may call its tool twice
    spec = msgspec.structs.replace(spec, redact=spec.redact or outer.spec.redact)
    inner = Execution.new(spec, outer.language, outer=outer, streaming=outer.state.streaming)
    inner.address, inner.path = f"{outer.address}/{frame.place}/{which}", (*outer.path, spec.name)
    inner.stop_at, inner.inner_stop_at = set(outer.inner_stop_at), set(outer.inner_stop_at)
    inner.deps, inner.tool_options = outer.deps, outer.tool_options
    if forwards_events and outer.emitter is not None:
        inner.emitter = Emitter(outer.emitter.buffer, spec.name, inner.path, inner.state.run_id)
    start = Begin(Intake(messages), answers=outer.state.answers, nested=True)
    if outer.journal is not None:
        inner.spec = msgspec.structs.replace(spec, store=outer.journal.store)
        place = frame.place.replace("/", ".")
        inner.checkpoint_id = f"{outer.checkpoint_id}/{outer.state.run_id}.{place}.{which}"
    else:
        start = msgspec.structs.replace(start, snapshot=inner.root.snapshots.pop(inner.address, None))
    work = Work(inner, start)
    run: Run[Any, Any] = Run(work)
    outer.children.add(work)
    frame.agents_inside += 1
    try:
        result = await run.result()
    finally:
        frame.agents_inside -= 1
        outer.children.discard(work)
        frame.unstoppable = frame.unstoppable or Cause.UNKNOWN in inner.state.causes.values()
        if outer.journal is not None and inner.journal is not None and inner.journal.broken is not None:
            outer.journal.broken = inner.journal.broken
    if result.outcome is Outcome.INTERRUPTED:
        raise InterruptSignal(work.waiting)
    if result.outcome is Outcome.CANCELLED:
        raise asyncio.CancelledError
    return result.output
