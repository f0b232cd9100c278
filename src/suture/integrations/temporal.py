"""Temporal keeps runs going: a workflow runs the loop of `suture.kernel.loop`, and its steps are activities.

The history of a conversation stays in the agent's store. The workflow only knows the run's name and where it stands, so
its size does not depend on the messages. docs/temporal.md has the guarantees. ::

    worker = make_worker(agent, client, deps=…)                 # as many processes as you like, on one store
    durable = DurableAgent(agent, client)                       # anywhere else, with the same store
    result = await durable.run("Book the flight", id="job-7")
    result = await durable.resume("job-7", True)                # the answer to what it asked
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import msgspec

from suture._aio import uncancel
from suture._extras import check_extra
from suture.agent import ChatModelAgent
from suture.errors import ResumeError
from suture.events import AnyEvent, RunFinished
from suture.kernel import RunResult
from suture.kernel.engine import CallEnd, Place, Step
from suture.kernel.input import NOTHING, read_input
from suture.kernel.lifecycle import read_result
from suture.kernel.loop import Standing, drive
from suture.sessions import STATUSES, Status

try:
    from temporalio import activity, workflow
    from temporalio.client import Client, WorkflowUpdateFailedError
    from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
    from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception
    from temporalio.service import RPCError, RPCStatusCode
    from temporalio.worker import Worker
    from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
finally:
    check_extra("temporal", "temporalio")

__all__ = ["AgentWorkflow", "DurableAgent", "DurableRun", "make_worker"]

DRIVER = "temporal"
_LONGEST = timedelta(days=1)
"""How long a step may take if its tool has no timeout; a dead worker is noticed by its missing heartbeat."""
LARGEST = 800_000
"""The bytes of a workflow's history after which it continues in a new execution, for runs that start now."""
_THROTTLE = timedelta(seconds=2)
"""The shortest time between heartbeats; a cancellation arrives with the answer to one."""
_POLL = 0.1
_POLLS_BEFORE_CHECK = 20
"""After how many polls without an event a reader checks whether there will be any."""


class Start(msgspec.Struct, frozen=True, array_like=True):
    """The argument of a workflow."""

    run: str
    heartbeat: float
    standing: Standing = Standing()
    """Unused; it keeps its place for workflows that are running already."""
    answers: tuple[int, ...] = ()
    """Answers that were given and not yet used."""
    largest: int = 800_000
    """The bytes of a history after which the workflow continues as new; stored, because a replay must use the same."""


# --- the workflow ---------------------------------------------------------------------------------


@workflow.defn(name="suture", sandboxed=True)
class AgentWorkflow:
    """One run of an agent; it holds where the run stands, but no messages.

    It implements the steps of the loop: each is an activity that some worker does.
    """

    def __init__(self) -> None:
        self._start = Start("", 0.0)
        self._step = Step(Standing())
        """The last step."""
        self._status: str = "running"
        self._answers: list[int] = []
        self._replies: dict[int, str] = {}
        """By number of an answer: an empty text, or why it was refused."""
        self._leaves = False
        """Whether this execution is ending."""

    @workflow.run
    async def run(self, given: list[Any]) -> str:
        """Drive the run to its end; return its outcome."""
        self._start = start = msgspec.convert(given, Start)
        self._answers[:0] = start.answers
        try:
            await drive(Standing(), self)
        except _Renewal:
            self._leaves = True
            await workflow.wait_condition(workflow.all_handlers_finished)
            workflow.continue_as_new(msgspec.to_builtins(msgspec.structs.replace(start, answers=tuple(self._answers))))
        except (asyncio.CancelledError, ActivityError) as error:
            if not is_cancelled_exception(error):
                raise
            uncancel()
            self._step = await self._do("stop", 0, kind=Step)
        self._status, self._leaves = self._step.outcome, True
        await workflow.wait_condition(workflow.all_handlers_finished)
        return self._status

    @workflow.query
    def status(self) -> str:
        """Return `running`, `waiting`, or how the run ended."""
        return self._status

    @workflow.update
    async def answer(self, number: int) -> str:
        """Use the answers in the store under `number`; return an empty text, or why they were refused."""
        if number not in self._replies and number not in self._answers:
            self._answers.append(number)
        await workflow.wait_condition(lambda: number in self._replies or self._leaves)
        unused = "" if self._status == "running" else "the run ended before this answer was used"
        return self._replies.get(number, unused)  # a run that continues in the next execution uses it there

    @workflow.update
    async def settle(self) -> str:
        """Wait until the run has ended or waits for an answer; return its status."""
        await workflow.wait_condition(lambda: self._leaves or (self._status != "running" and not self._answers))
        return self._status

    async def model_turn(self, at: Standing, /) -> Standing:
        """Do the next step, which the store knows, unless this execution is long enough."""
        info = workflow.info()
        if info.is_continue_as_new_suggested() or info.get_current_history_size() > self._start.largest:
            raise _Renewal
        self._step = await self._advance()
        return msgspec.structs.replace(self._step.standing, phase="after")

    async def after_model(self, at: Standing, /) -> Standing:
        """Choose the next phase by the result of the model step."""
        return msgspec.structs.replace(at, phase="end" if self._step.outcome else self._step.standing.phase)

    async def tool_calls(self, at: Standing, /) -> Standing:
        """Make the remaining calls; their results are in the store."""
        todo = self._step.calls
        calls = [partial(self._do, "call", plan.seconds, at.turn, plan.index, kind=CallEnd) for plan in todo]
        if self._step.in_order:
            for call in calls:
                if (await call()).stops:
                    break
        else:
            for end in await asyncio.gather(*[call() for call in calls], return_exceptions=True):
                if isinstance(end, BaseException):
                    raise end  # all of them are over
        return msgspec.structs.replace(at, phase="gathered")

    async def after_tools(self, at: Standing, /) -> Standing:
        """Do nothing, because the next step does this first."""
        return msgspec.structs.replace(at, phase="model")

    async def _advance(self) -> Step:
        """Do the next step; if it waits for an answer, wait for that and continue."""
        answers: list[int] = []
        while True:
            step: Step = await self._do("advance", 0, *answers, kind=Step)
            for number in answers:
                self._replies[number] = step.refused
            if step.outcome != "interrupted":
                return step
            self._status = "waiting"
            await workflow.wait_condition(lambda: bool(self._answers))
            self._status, answers = "running", [self._answers.pop(0)]

    async def _do(self, name: str, seconds: float, *given: Any, kind: Any) -> Any:
        """Do one activity, however often it must be repeated; a cancellation waits until it has stopped.

        `seconds` is the timeout of its tool, 0 if that has none. In a short activity, a dead worker is noticed sooner.
        """
        heartbeat = min(self._start.heartbeat, max(seconds, 1.0)) if seconds else self._start.heartbeat
        reply = await workflow.execute_activity(
            name,
            [self._start.run, *given],
            start_to_close_timeout=timedelta(seconds=seconds + 60) if seconds else _LONGEST,
            heartbeat_timeout=timedelta(seconds=heartbeat),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )
        result = msgspec.convert(reply, kind)
        task = asyncio.current_task()
        if task is not None and task.cancelling() and not getattr(result, "outcome", ""):
            raise asyncio.CancelledError  # the cancellation came while the step ended
        return result


class _Renewal(Exception):
    """The history of this execution is long enough."""


# --- the worker -----------------------------------------------------------------------------------


def make_worker(
    agent: ChatModelAgent[Any, Any], client: Client, *, task_queue: str = "", deps: Any = None, **options: Any
) -> Worker:
    """Return a Temporal worker that does the steps of this agent's runs.

    Args:
        agent: has a `checkpoint_store` that all workers and clients share.
        client: connected to Temporal.
        task_queue: by default `suture-` and the agent's name.
        deps: the `RunContext.deps` of tools and hooks, for all runs of this worker.
        options: for `temporalio.worker.Worker`.
    """
    place = Place(agent.spec, deps, _is_stopped)
    passed = SandboxRestrictions.default.with_passthrough_modules("suture", "msgspec")
    settings: dict[str, Any] = {
        "workflow_runner": SandboxedWorkflowRunner(restrictions=passed),
        "max_heartbeat_throttle_interval": _THROTTLE,
        "graceful_shutdown_timeout": timedelta(seconds=5),
        "sticky_queue_schedule_to_start_timeout": timedelta(seconds=3),  # how soon workflows of a dead worker go on
        "identity": f"{os.getpid()}@{socket.gethostname()[:16]}",  # short, because the history has it ten times a turn
        **options,
    }
    return Worker(
        client,
        task_queue=task_queue or _queue(agent),
        workflows=[AgentWorkflow],
        activities=[_make_activity(place.advance), _make_activity(place.call), _make_activity(place.stop)],
        **settings,
    )


def _queue(agent: ChatModelAgent[Any, Any]) -> str:
    return f"suture-{agent.name}"


def _is_stopped() -> bool:
    """Return whether the activity was cancelled because its workflow was."""
    details = activity.cancellation_details()
    return details is not None and details.cancel_requested


def _make_activity(work: Callable[..., Awaitable[Step | CallEnd]]) -> Callable[..., Any]:
    """Return a step as an activity. Its arguments and its result are small; everything else is in the store."""

    @activity.defn(name=work.__name__)
    async def step(given: list[Any]) -> list[Any]:
        beats = asyncio.get_running_loop().create_task(_beat())
        try:
            end = await work(*given)
        finally:
            beats.cancel()
        if _is_stopped() and not getattr(end, "outcome", ""):
            raise asyncio.CancelledError  # the result is stored
        return msgspec.to_builtins(end)

    return step


async def _beat() -> None:
    """Send heartbeats during a step; a worker that stops sending them counts as dead."""
    timeout = activity.info().heartbeat_timeout or timedelta(seconds=30)
    while True:
        activity.heartbeat()
        await asyncio.sleep(min(timeout.total_seconds() / 3, _THROTTLE.total_seconds()))


# --- the client -----------------------------------------------------------------------------------


class DurableAgent:
    """An agent whose runs Temporal keeps going.

    Args:
        agent: has the store that the workers use; inputs and answers are written there.
        client: connected to Temporal.
        task_queue: that of the workers.
        heartbeat: after how many seconds without a heartbeat a worker counts as dead, and its step is repeated; for a
            call whose tool has a shorter `timeout`, that counts.
    """

    def __init__(
        self, agent: ChatModelAgent[Any, Any], client: Client, *, task_queue: str = "", heartbeat: float = 30.0
    ) -> None:
        self.agent, self.client, self.heartbeat = agent, client, heartbeat
        self.task_queue = task_queue or _queue(agent)
        self.place = Place(agent.spec)

    async def start(
        self,
        input: Any = NOTHING,  # noqa: A002 - the word for it
        /,
        *,
        id: str,  # noqa: A002 - as everywhere else
        key: str = "",
        history: Sequence[Any] | RunResult[Any, Any] = (),
        session: Mapping[str, Any] | None = None,
        live: bool = False,
        language: str | None = None,
    ) -> "DurableRun":
        """Start a run, or continue the conversation `id`; return the run without waiting.

        With a `key`, the same input runs once, however often this is called. `live` keeps the events for `events()`.
        """
        intake = read_input(self.agent.spec.wire, input, history)
        fields = {"key": key, "live": live, "session": dict(session or {})}
        await self.place.begin(id, intake, DRIVER, language=language or self.agent.language, **fields)
        return await self.attach(id)

    async def attach(self, id: str, /) -> "DurableRun":  # noqa: A002
        """Return a stored run; if it has no workflow, because that never started or was lost, start one."""
        run = await self.place.read(id)
        if run.state.driver == DRIVER and run.state.outcome in ("", "interrupted"):
            await self.client.start_workflow(
                AgentWorkflow.run,
                msgspec.to_builtins(Start(id, self.heartbeat, largest=LARGEST)),
                id=id,
                task_queue=self.task_queue,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            )
        return DurableRun(self, id)

    async def run(self, input: Any = NOTHING, /, *, id: str, **options: Any) -> RunResult[Any, Any]:  # noqa: A002
        """Run until it has ended or waits for an answer; return the result. Takes what `start` takes."""
        return await (await self.start(input, id=id, **options)).result()

    async def resume(
        self,
        id: str,  # noqa: A002
        answer: Any = NOTHING,
        /,
        *,
        answers: Mapping[str, Any] | None = None,
    ) -> RunResult[Any, Any]:
        """Answer what a run waits for, wait for its next stop, and return the result."""
        run = await self.attach(id)
        await run.answer(answer, answers=answers)
        return await run.result()


async def _ask(question: Awaitable[Any]) -> Any:
    """Return the answer of a workflow, or `None` if it has ended; the store knows the rest."""
    try:
        return await question
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
    except WorkflowUpdateFailedError as error:
        if not isinstance(error.cause, ApplicationError) or error.cause.type != "AcceptedUpdateCompletedWorkflow":
            raise


class DurableRun:
    """One run that Temporal keeps going."""

    def __init__(self, durable: DurableAgent, name: str) -> None:
        self.id = name
        self._durable = durable
        self._handle: Any = durable.client.get_workflow_handle(name)

    async def status(self) -> Status:
        """Return the status of the run."""
        run = await self._durable.place.read(self.id)
        return STATUSES.get(run.state.outcome, "running")

    async def result(self) -> RunResult[Any, Any]:
        """Wait until the run has ended or waits for an answer; return the result, or raise the run's error."""
        while await _ask(self._handle.execute_update(AgentWorkflow.settle)) == "running":
            pass  # it continues in another execution
        run = await self._durable.place.read(self.id)
        if not run.state.outcome:
            raise ResumeError(f"no workflow runs {self.id!r} any more; `attach` starts one that goes on with it")
        result = read_result(run)
        if result.error is not None:
            raise result.error
        return result

    async def answer(self, answer: Any = NOTHING, /, *, answers: Mapping[str, Any] | None = None) -> None:
        """Answer what the run waits for, by interrupt id or call id; `answer` is for a run with one interrupt."""
        number = await self._durable.place.write_answers(self.id, answer, answers or {})
        refused = await self._handle.execute_update(AgentWorkflow.answer, number, id=f"answer-{number}")
        if refused:
            raise ResumeError(refused)

    async def cancel(self) -> RunResult[Any, Any]:
        """Stop the run: its tools are cancelled, and unfinished calls get placeholders; return the result."""
        await _ask(self._handle.cancel())
        await _ask(self._handle.result())
        return read_result(await self._durable.place.read(self.id))

    async def events(self) -> AsyncIterator[AnyEvent]:
        """Yield the events of a `live` run from its beginning, as they come, until it has ended or waits.

        If a worker dies, the last events may be missing, so a reader that gets none checks the status of the run.
        """
        first = sequence = silent = 0
        is_over = False
        while True:
            events, first = await self._durable.place.read_events(self.id, first)
            for event in events:
                yield msgspec.structs.replace(event, sequence=sequence)
                sequence += 1
                if isinstance(event, RunFinished) and len(event.run_path) == 1:
                    return
            silent = 0 if events else silent + 1
            if silent and silent % _POLLS_BEFORE_CHECK == 0:
                if is_over:
                    return
                is_over = await self.status() != "running"
            if not events:
                await asyncio.sleep(_POLL)
