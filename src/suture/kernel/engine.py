"""The steps of a stored run, for a workflow engine that drives runs in several processes.

The engine runs `loop.py` with these steps as its activities, and may repeat each of them: the stored state decides
what is left to do. `Place.advance` has one writer at a time; the store refuses a second one. The calls of a turn are
written in parallel: each record of a call has a key, and the first writer of a key wins. So a call that started and
did not end runs again only if its tool is idempotent; otherwise the model is told that its outcome is unknown.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from os import urandom
from typing import Any

import msgspec

from suture._aio import LOG, run_to_the_end, uncancel
from suture.errors import ConfigError, ResumeError, RunError
from suture.events import AnyEvent, MessageFinished
from suture.kernel import lifecycle, storage, tool_call
from suture.kernel.input import Intake
from suture.kernel.journal import Journal, Signed, encode_records
from suture.kernel.lifecycle import Begin
from suture.kernel.loop import LocalPort, Port, Standing, advance
from suture.kernel.run import Work
from suture.kernel.run_state import InterruptSignal, RunState, SafePoint
from suture.kernel.state import Buffer, Emitter, Execution, Frame, Spec, set_frame
from suture.kernel.tool_call import is_over
from suture.kernel.values import decode_value, encode_value
from suture.language import resolve_language
from suture.repair import Cause
from suture.wires import Call, sendable

_BATCH = 0.05
"""How many seconds events are collected before they are written."""
_MOST_JOINED = 256
_EVENTS = msgspec.msgpack.Decoder(list[AnyEvent])
_JOIN = Begin(resumes=True, joins=True)


class Plan(msgspec.Struct, frozen=True, array_like=True):
    """A call for the engine to run."""

    index: int
    seconds: float = 0
    """How many seconds all attempts together may take; 0 if its tool sets no limit."""


class Step(msgspec.Struct, frozen=True, array_like=True):
    """What an engine learns about a run: where it stands, which calls to run, or how it ended.

    >>> len(msgspec.json.encode(Step(Standing("tools", 12), (Plan(0, 30.0), Plan(1))))) < 80
    True
    """

    standing: Standing
    calls: tuple[Plan, ...] = ()
    outcome: str = ""
    in_order: bool = False
    """Whether the calls must run one after another."""
    refused: str = ""
    """Why the answers were refused."""


class CallEnd(msgspec.Struct, frozen=True, array_like=True):
    """What an engine learns about a call that has ended or waits for an answer."""

    stops: bool = False
    """Whether no further call may begin: this one waits, or its error ends the run."""


class Place:
    """One process of an engine: the agent, the deps of its tools, and the runs that it has joined."""

    def __init__(self, spec: Spec, deps: Any = None, is_stopped: Callable[[], bool] = lambda: False) -> None:
        if spec.store is None or not hasattr(spec.store, "claim"):
            raise ConfigError("an engine needs an agent with a checkpoint_store that knows claims, such as SQLiteStore")
        self.spec, self.deps = spec, deps
        self.store: Any = spec.store
        self.is_stopped = is_stopped
        """Whether a cancellation is meant for the run; otherwise this process is ending and the step is repeated."""
        self._seats: OrderedDict[str, dict[str, Any]] = OrderedDict()
        """What this process keeps of the runs that it has joined: instruction and tools after the hooks, and caches."""

    # The steps

    async def advance(self, name: str, answers: int | None = None) -> Step:
        """Continue a run until it needs calls to be run or an answer, or has ended.

        Raises if the store cannot be written; then the step must be repeated.
        """
        run = await self._load(name)
        state = run.state
        if state.outcome and (answers is None or state.outcome != "interrupted"):
            return self._step(run)
        if answers is not None:
            record = (await self.store.load(f"{name}/answers", answers))[0]
            read = {key: decode_value(value) for key, value in msgspec.msgpack.decode(record).items()}
            try:
                await lifecycle.load(run, msgspec.structs.replace(_JOIN, answers=read))
            except ResumeError as error:
                return msgspec.structs.replace(self._step(run), refused=str(error)[:150])
        port = StepPort(run, _read_calls)
        return await self._work(Work(run, _JOIN, port.go_on, port))

    async def stop(self, name: str) -> Step:
        """End a run as cancelled; a process that still runs one of its calls finds the call's keys taken."""
        run = await self._load(name)
        if run.state.outcome not in ("", "interrupted"):
            return self._step(run)
        calls = run.last_calls() if run.state.phase in ("after", "tools") else ()
        for index in range(len(calls)):
            if not is_over(run, index):  # takes its keys, so that no process starts or ends it any more
                key, mark = _call_key(run, index), encode_records([Signed(urandom(6).hex())])
                first = await self.store.claim(run.checkpoint_id or "", f"{key}/start", mark)
                run.journal = CallJournal(run, self.store, key, again=True)
                run.put("causes", {index: Cause.STOPPED if first.record == mark else Cause.UNKNOWN})
                await run.journal.flush("end")
        if calls:
            run = await self._load(name)
        return await self._work(Work(run, _JOIN, _halt))

    async def call(self, name: str, turn: int, index: int) -> CallEnd:
        """Run one call of a turn unless it has run already; its outcome is stored when this returns."""
        run = await self._load(name)
        state, calls = run.state, run.last_calls()
        if state.turn != turn or state.phase != "tools" or state.outcome or index >= len(calls):
            return CallEnd()
        if is_over(run, index):
            return CallEnd(bool(state.error))
        set_frame(Frame(run, 0, "run", "run"))
        async with self._live(run):
            failure: Exception | None = None
            if not run.has_joined:
                try:
                    await lifecycle.before_agent(run, resumed=True)
                    self._sit(run)
                except Exception as error:  # noqa: BLE001 - it ends the run, as it does where the run begins
                    failure = error
            tool_call.refuse_calls(run, calls)
            return await self._call(run, calls, index, failure)

    async def _call(self, run: Execution, calls: Sequence[Call], index: int, failure: Exception | None) -> CallEnd:
        tool = run.tools.get(calls[index].name)
        again = tool is None or tool.idempotent
        run_journal = run.journal
        journal = run.journal = CallJournal(run, self.store, _call_key(run, index), again=again)
        for record in run_journal.take_noted():  # a newer release continues the run
            journal.note(record)
        try:
            if index in run.state.started and not again:
                raise CallTaken  # noqa: TRY301 - as if the store had said so just now
            ending: Any = failure
            if failure is None:
                await tool_call.write_beginning(run, tool_call.begin_calls(run, calls, [index]))
                ending = await tool_call.run_call(run, calls[index], index)
            if isinstance(ending, Exception):
                failure = ending
                await journal.fail(run, index, failure)
            elif ending is not None:
                lifecycle.note_waiting(run, ending)
                run.put("waiting", {item.interrupt.id: item.interrupt.call_id for item in ending})
        except CallTaken:
            run.put("causes", {index: Cause.UNKNOWN})
        except asyncio.CancelledError:
            if not self.is_stopped():
                raise
            uncancel()
            tool_call.give_up(run, calls, [index])
        if journal.broken is not None:
            raise journal.broken
        await run_to_the_end(journal.flush("end"))
        if journal.lost:
            run = await self._load(run.checkpoint_id or "")
        return CallEnd(failure is not None or bool(run.state.error) or not is_over(run, index))

    # What the client writes

    async def begin(self, name: str, intake: Intake, driver: str, **fields: Any) -> str:
        """Store a run with its input, so that an engine can drive it, and return its id.

        The same input under the same key is stored once, so a client that is not sure whether it was may repeat this.
        """
        known = await storage.find_run(self.spec, name, fields["key"]) if fields.get("key") else None
        if known is not None:
            return known.state.run_id
        language = resolve_language(fields.pop("language", None))
        run = Execution.new(self.spec, language, driver=driver, **fields)
        run.checkpoint_id = name
        try:
            await lifecycle.load(run, Begin(intake))
            lifecycle.tell_losses(run, intake)
            for kept in ("live", "answers"):
                await self.store.delete(f"{name}/{kept}")
            await run.journal.flush()
        finally:
            if run.opened is not None:
                await run_to_the_end(run.opened.close())
        return run.state.run_id

    async def read(self, name: str) -> Execution:
        """Return a stored run, for reading only."""
        run = await storage.read_run(self.spec, name)
        if run is None:
            raise ResumeError(f"there is no run {name!r} in this store")
        return run

    async def write_answers(self, name: str, answer: Any, given: Mapping[str, Any]) -> int:
        """Store answers; return the number under which a step finds them.

        Raises `ResumeError` for an answer that the run does not wait for.
        """
        run = await self.read(name)
        answers = lifecycle.address_answers(run, Begin(answer=answer, answers=given))
        lifecycle.check_answers(run, answers)
        record = msgspec.msgpack.encode({key: encode_value(value) for key, value in answers.items()})
        return (await self.store.claim(f"{name}/answers", urandom(8).hex(), record)).number

    async def read_events(self, name: str, first: int = 0) -> tuple[list[AnyEvent], int]:
        """Return the events written since record `first`, and the number of the next record."""
        records = await self.store.load(f"{name}/live", first)
        events = [each for record in records for each in _EVENTS.decode(record)]
        return _with_messages(events, self.spec.wire.load), first + len(records)

    # Inside

    async def _load(self, name: str) -> Execution:
        """Return a run as it is stored, with what this process has kept for it."""
        run = Execution(self.spec, RunState(wire=self.spec.wire.name))
        run.checkpoint_id, run.deps = name, self.deps
        await lifecycle.load(run, _JOIN)
        run.journal.remember()
        seat = self._seats.get(run.state.run_id)
        if seat is not None and run.state.entered:
            self._seats.move_to_end(run.state.run_id)
            run.has_joined = True
            for field, value in seat.items():
                if field != "tool_infos" or run.state.tool_infos is None:
                    setattr(run, field, value)
        return run

    def _sit(self, run: Execution) -> None:
        names = ("instruction", "tools", "return_directly", "reached", "tool_infos", "cache", "fits", "model")
        self._seats[run.state.run_id] = {name: getattr(run, name) for name in names}
        if len(self._seats) > _MOST_JOINED:
            self._seats.popitem(last=False)

    async def _work(self, work: Work) -> Step:
        """Do a step to its end; a cancellation that is not meant for the run leaves the run where it was."""
        run = work.run
        async with self._live(run):
            task = work.begin(listens=False)
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError:
                if not self.is_stopped():
                    run.journal.broken = RunError("this process ends; another one goes on with the run")
                work.stop("now", recursive=True)
                await run_to_the_end(asyncio.wait([task]))
                if not self.is_stopped():
                    task.exception()
                    raise
                uncancel()
            task.result()
        if run.journal.broken is not None:
            raise run.journal.broken
        if not run.has_joined and run.state.entered:
            self._sit(run)
        if run.state.outcome and run.state.outcome != "interrupted":
            self._seats.pop(run.state.run_id, None)
        return self._step(run)

    def _step(self, run: Execution) -> Step:
        state, plans = run.state, list[Plan]()
        if state.phase == "tools" and not state.outcome:
            for index, call in enumerate(run.last_calls()):
                tool = run.tools.get(call.name)
                seconds = tool.timeout * (tool.retry + 1) if tool is not None and tool.timeout is not None else 0
                if not is_over(run, index):
                    plans.append(Plan(index, seconds))
        at = Standing(state.phase, state.turn, state.is_last, state.ends)
        return Step(at, tuple(plans), state.outcome, run.spec.sequential)

    @asynccontextmanager
    async def _live(self, run: Execution) -> AsyncGenerator[None]:
        """Write the events of a step for a reader in another process."""
        if not run.state.live:
            yield
            return
        buffer = Buffer()
        buffer.lift()
        run.emitter = Emitter(buffer, run.spec.name, run.path, run.state.run_id)
        pump = asyncio.get_running_loop().create_task(self._write_events(f"{run.checkpoint_id}/live", buffer))
        try:
            yield
        finally:
            buffer.close()
            await run_to_the_end(asyncio.wait([pump]))
            if pump.exception() is not None:
                LOG.warning("events of run %r could not be written", run.checkpoint_id, exc_info=pump.exception())

    async def _write_events(self, name: str, buffer: Buffer) -> None:
        wire = self.spec.wire
        while (event := await buffer.next()) is not None:
            if not buffer.closed:
                await asyncio.sleep(_BATCH)
            events = [event, *buffer.items]
            buffer.items.clear()
            plain = _with_messages(events, lambda held: wire.dump(held) if wire.claims(held) is not False else held)
            await self.store.claim(name, urandom(8).hex(), _encode_events(plain))


def _encode_events(events: Sequence[Any]) -> bytes:
    """Return events as they are stored: lone surrogates are replaced, and what cannot be written is left out."""
    with suppress(Exception):
        return msgspec.msgpack.encode(events, enc_hook=str)
    written: list[msgspec.Raw] = []
    for event in events:
        try:
            plain = sendable(msgspec.to_builtins(event, enc_hook=str, builtin_types=(bytes,)))
            written.append(msgspec.Raw(msgspec.msgpack.encode(plain)))
        except Exception:  # noqa: BLE001 - whatever a tool has sent
            LOG.warning("an event could not be written", exc_info=True)
    return msgspec.msgpack.encode(written)


def _with_messages(events: Sequence[Any], change: Callable[[Any], Any]) -> list[Any]:
    """Return events with `change` applied to the messages in them."""
    return [
        msgspec.structs.replace(each, message=change(each.message)) if isinstance(each, MessageFinished) else each
        for each in events
    ]


async def _halt(*_: object) -> Standing:
    raise SafePoint


def _call_key(run: Execution, index: int) -> str:
    """Return the key of a call's records; it is a new one each time, because a call that waited starts again."""
    state = run.state
    return f"{state.runs}/{state.turn}/{index}/{state.resumes}"


class StepPort(LocalPort):
    """The loop's port inside a step: the calls of a turn run elsewhere."""

    async def go_on(self, at: Standing, port: Port, /) -> Standing:
        """Put the results of the last turn into the history and take the next turn; stop when calls must be run."""
        first, run = at.turn, self.run
        while at.phase != "end":
            goes_on = at.phase != "tools" or run.state.waiting or run.state.error
            if not goes_on and any(not is_over(run, index) for index in range(len(run.last_calls()))):
                break  # there are calls to run
            at = await advance(at, port)
            if at.phase == "model" and at.turn > first:
                break
        return at


async def _read_calls(run: Execution, _: Sequence[Call]) -> None:
    """Raise what the calls that ran elsewhere left behind: an error that ends the run, or interrupts."""
    waiting = lifecycle.read_waiting(run)
    if run.state.error:
        raise RunError(run.state.error)
    if waiting:
        raise InterruptSignal(waiting)


class CallTaken(BaseException):
    """Another attempt has started this call, and its outcome is unknown."""


class CallJournal(Journal):
    """Writes one call, in parallel with others: its start and end have keys, and the first writer of a key wins."""

    def __init__(self, run: Execution, store: Any, key: str, *, again: bool) -> None:
        super().__init__(run, store, run.checkpoint_id or "")
        self.take_over(run.history)
        self.claims, self.key, self.again = store, key, again
        self.lost = False
        """Whether another writer has written the end of the call."""

    async def fail(self, run: Execution, index: int, failure: Exception) -> None:
        """Store that a call's error ends the run, unless another writer has written the end of the call."""
        if not is_over(run, index):
            run.put("causes", {index: Cause.UNKNOWN})
        await self.flush("end")
        if not self.lost:
            run.update(error=run.error_text(failure))
            await self.flush("failure")

    async def flush(self, step: str = "") -> None:
        """Write what was noted, under the key of the step. If the start is taken, raise `CallTaken`."""
        if step == "wait":
            return  # it is written together with what the call waits for
        async with self._lock:
            noted = self.take_noted()
            if self.broken is not None or not noted:
                return
            writer = urandom(6).hex()
            record = encode_records([Signed(writer), *noted])
            try:
                entry = await self.claims.claim(self.name, f"{self.key}/{step or writer}", record)
            except Exception as error:
                self.broken = error
                raise
            if entry.record != record:
                if step == "start" and not self.again:
                    raise CallTaken
                self.lost = self.lost or step == "end"
