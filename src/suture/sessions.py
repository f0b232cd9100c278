"""Sessions: conversations over many runs and processes, and recovery of what dead processes left behind."""

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Generic, Literal

from suture._aio import LOG, run_to_the_end
from suture._loops import run_blocking
from suture.errors import ConfigError, ResumeError, RunBusyError, SutureError
from suture.kernel import Outcome, Run, RunBlock, RunResult
from suture.kernel.input import NOTHING
from suture.kernel.lifecycle import read_result
from suture.kernel.run_state import Msg, Out
from suture.kernel.storage import RunLease, can_lease, find_run, is_dead, is_inside, read_run

Status = Literal["new", "running", "waiting", "finished", "failed", "stopped", "left"]
"""The status of a session or run; `left` means that a dead process left a run unfinished."""
STATUSES: Mapping[str, Status] = {
    Outcome.INTERRUPTED: "waiting",
    Outcome.FINISHED: "finished",
    Outcome.FAILED: "failed",
    Outcome.CANCELLED: "stopped",
}
"""The status of a run that has ended or waits, by its outcome."""


class Session(Generic[Out, Msg]):
    """A conversation with one agent, kept in its store; get it from `agent.session(id)`.

    >>> import asyncio
    >>> from suture import ChatModelAgent
    >>> from suture.stores import MemoryStore
    >>> from suture.testing import ScriptedModel
    >>> agent = ChatModelAgent(model=ScriptedModel(["hello", "well"]), checkpoint_store=MemoryStore())
    >>> async def talk():
    ...     await agent.session("user-42").run("hi")
    ...     return (await agent.session("user-42").run("how are you?")).output
    >>> asyncio.run(talk())
    'well'
    """

    def __init__(self, agent: Any, session_id: str, busy: Literal["wait", "refuse"] = "wait") -> None:
        if busy not in {"wait", "refuse"}:
            raise ConfigError(f"unknown busy {busy!r}; known: wait, refuse")
        self.agent, self.id, self.busy = agent, session_id, busy

    def __repr__(self) -> str:
        return f"<Session {self.id!r}>"

    async def run(self, input: Any = NOTHING, /, **options: Any) -> RunResult[Out, Msg]:  # noqa: A002 - the word for it
        """Start the conversation, continue it, or resume what a dead process left; return the result.

        An unfinished run is finished first. With a `key=`, an input that was run under that key before, however long
        ago, is not run again: its result is returned. Without an input, only an unfinished run is resumed.
        """
        run = None if input is NOTHING else self.agent.stream(input, checkpoint_id=self.id, **options)
        async with self._turn() as lease:
            left = await self._finish_what_was_left(lease, options)
            if run is None:
                return left or await self.result()
            key = options.get("key")
            known = await find_run(self.agent.spec, self.id, key) if key else None
            return read_result(known) if known is not None else await run.under(lease).result()

    def run_sync(self, input: Any = NOTHING, /, **options: Any) -> RunResult[Out, Msg]:  # noqa: A002 - as above
        """Do what `run` does from plain code, even inside a running event loop."""
        return run_blocking(self.run(input, **options))

    def stream(self, input: Any, /, **options: Any) -> RunBlock[Out, Msg]:  # noqa: A002 - the word for it
        """Give the live run of an input, once its turn has come: `async with session.stream("…") as run`.

        In plain code, `with session.stream("…") as run`. An input that was run under its `key=` before raises
        `ResumeError`: `run` with that key returns its result.
        """
        return _SessionBlock(self._stream(input, options))

    @asynccontextmanager
    async def _stream(self, input: Any, options: Mapping[str, Any]) -> AsyncGenerator[Run[Out, Msg]]:  # noqa: A002 - as above
        new = self.agent.stream(input, checkpoint_id=self.id, **options)
        async with self._turn() as lease:
            await self._finish_what_was_left(lease, options)
            key = options.get("key")
            if key and await find_run(self.agent.spec, self.id, key) is not None:
                raise ResumeError(f"the input with the key {key!r} was run already; session.run gives its result")
            async with new.under(lease) as run:
                yield run

    async def resume(
        self, answer: Any = NOTHING, /, *, answers: Mapping[str, Any] | None = None, **options: Any
    ) -> RunResult[Out, Msg]:
        """Answer what the session waits for, continue, and return the result."""
        async with self._turn() as lease:
            run = self.agent.stream(resume=self.id, answer=answer, answers=answers, **options)
            return await run.under(lease).result()

    def resume_sync(
        self, answer: Any = NOTHING, /, *, answers: Mapping[str, Any] | None = None, **options: Any
    ) -> RunResult[Out, Msg]:
        """Do what `resume` does from plain code, even inside a running event loop."""
        return run_blocking(self.resume(answer, answers=answers, **options))

    async def status(self) -> Status:
        """Return the status of the session; `failed` and `stopped` say how its last run ended."""
        run = await read_run(self.agent.spec, self.id)
        if run is None:
            return "new"
        if run.state.outcome:
            return STATUSES[run.state.outcome]
        lease = await self.agent.checkpoint_store.lease(self.id) if can_lease(self.agent.checkpoint_store) else None
        alive = lease is not None and not is_dead(lease.owner)
        return "running" if alive or run.state.driver else "left"

    async def result(self) -> RunResult[Out, Msg]:
        """Return the stored result of the last run; raise `ResumeError` if there is none."""
        run = await read_run(self.agent.spec, self.id)
        if run is None or not run.state.outcome:
            raise ResumeError(
                f"session {self.id!r} has no result yet; session.run(input) starts it, session.run() finishes what a "
                "dead process left"
            )
        return read_result(run)

    async def delete(self) -> None:
        """Delete the session and everything that is stored for it."""
        await self.agent.checkpoint_store.delete(self.id)

    @asynccontextmanager
    async def _turn(self) -> AsyncGenerator[RunLease]:
        """Hold the session's lease; if waiting is allowed, wait for it in the order of arrival, across processes."""
        if not can_lease(self.agent.checkpoint_store):
            raise ConfigError("a session needs an agent with a checkpoint_store that knows leases, such as SQLiteStore")
        lease = RunLease(self.agent.checkpoint_store, self.id)
        await lease.take(waits=self.busy == "wait")
        try:
            yield lease
        finally:
            await run_to_the_end(lease.give_back())

    async def _finish_what_was_left(self, lease: RunLease, options: Mapping[str, Any]) -> RunResult[Out, Msg] | None:
        """Resume a run that a dead process left, and return its result, if there was such a run."""
        run = await read_run(self.agent.spec, self.id)
        if run is None or run.state.outcome:
            return None
        known = {name: options[name] for name in ("deps", "options", "tool_options", "callbacks") if name in options}
        return await self.agent.stream(resume=self.id, **known).under(lease).result()


class _SessionBlock(RunBlock[Out, Msg]):
    """The block of a session's live run, which holds the session's turn."""

    def __init__(self, turn: AbstractAsyncContextManager[Run[Out, Msg]]) -> None:
        self._turn = turn

    async def __aenter__(self) -> Run[Out, Msg]:
        return await self._turn.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._turn.__aexit__(kind, error, trace)


async def recover(agents: Iterable[Any], store: Any, **options: Any) -> list[RunResult[Any, Any]]:
    """Resume every run of these agents in `store` whose process is gone; return the results.

    A finished call keeps its result. A call that started and did not finish runs again only if its tool is
    `idempotent`; otherwise the model is told that its outcome is unknown. Runs that wait for an answer or are alive
    are left alone. A run that fails is logged and does not stop the others.

    >>> import asyncio
    >>> from suture import ChatModelAgent
    >>> from suture.stores import MemoryStore
    >>> from suture.testing import ScriptedModel
    >>> store = MemoryStore()
    >>> asyncio.run(recover([ChatModelAgent(model=ScriptedModel([]), checkpoint_store=store)], store))
    []
    """
    by_name = {agent.name: agent for agent in agents}
    runs = await store.runs()
    known = set(runs)
    results: list[RunResult[Any, Any]] = []
    for run_id in runs:
        if is_inside(run_id, known):
            continue  # the run around it resumes it
        for agent in by_name.values():
            result = await _recover_one(agent, run_id, options)
            if result is not None:
                results.append(result)
                break
    return results


async def _recover_one(agent: Any, run_id: str, options: Mapping[str, Any]) -> RunResult[Any, Any] | None:
    try:
        run = await read_run(agent.spec, run_id)
        if run is None or run.state.agent != agent.name or run.state.outcome or run.state.driver:
            return None  # a workflow engine drives it, and recovers it
        LOG.info("recovering run %r of agent %s, turn %d", run_id, agent.name, run.state.turn)
        return await agent.resume(run_id, **options)
    except (RunBusyError, ResumeError):
        return None  # it is alive, has another wire, or has ended in the meantime
    except Exception:  # noqa: BLE001 - the others are to be recovered as well
        LOG.warning("run %r of agent %s could not be recovered", run_id, agent.name, exc_info=True)
    with suppress(SutureError):
        return await agent.session(run_id).result()
    return None  # it cannot be read
