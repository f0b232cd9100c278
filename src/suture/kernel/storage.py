"""Opening, reading, forking and compacting stored runs; and the lease that lets one process at a time write a run.

A lease has a heartbeat, so a process that dies loses it after a while, by the store's clock. A process on the same
machine need not wait for that: it sees that the holder is dead.
"""

import asyncio
import os
import socket
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from weakref import WeakValueDictionary
from zlib import crc32

from suture._aio import LOG, run_to_the_end
from suture.errors import ConfigError, ResumeError, RunBusyError
from suture.kernel.journal import Changed, Journal, Moved, encode_records, recall, replay
from suture.kernel.loop import as_history
from suture.kernel.run_state import VERSION, RunState, copy_state
from suture.kernel.state import Execution, Spec, new_run_id
from suture.messages import History

SECONDS = 30.0
"""For how many seconds a lease is valid without a heartbeat."""


_LONGEST_PAUSE = 0.25
"""How many seconds at most a waiter pauses before it tries to take the lease again."""
_FREED: "WeakValueDictionary[tuple[int, int, str], asyncio.Event]" = WeakValueDictionary()
"""The events that wake the waiters for a lease, by event loop, store and run."""


def can_lease(store: object) -> bool:
    """Return whether a store supports leases; a custom one need not."""
    return all(hasattr(store, name) for name in ("acquire", "renew", "release", "lease"))


class RunLease:
    """The lease of one run, held by this process until it is given back."""

    def __init__(self, store: Any, run: str, seconds: float = SECONDS) -> None:
        self.store, self.run, self.seconds = store, run, seconds
        self.owner = f"{_machine()}:{os.getpid()}:{_birth(os.getpid())}:{os.urandom(4).hex()}"
        self._beat: asyncio.TimerHandle | None = None
        self._renewal: asyncio.Task[None] | None = None

    async def take(self, *, waits: bool = False) -> None:
        """Take the lease; if somebody who is alive holds it, wait in the order of arrival, or raise `RunBusyError`."""
        pause, loop = 0.01, asyncio.get_running_loop()
        try:
            while not await self._ask(waits=waits):
                # A holder in this loop wakes us when it gives the lease back; for others, we have to ask the store.
                freed = _FREED.setdefault((id(loop), id(self.store), self.run), asyncio.Event())
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause * (1 + os.urandom(1)[0] / 256)):  # spreads load
                        await freed.wait()
                pause = min(pause * 2, _LONGEST_PAUSE)
        except ConfigError:  # an invalid id: nothing was taken
            raise
        except Exception:
            with suppress(Exception):  # a store that fails now has failed already, and that is raised
                await run_to_the_end(self._release())
            raise
        except BaseException:
            await run_to_the_end(self.give_back())
            raise
        self._schedule()

    async def _ask(self, *, waits: bool) -> bool:
        while not await self.store.acquire(self.run, self.owner, self.seconds, queue=waits):
            holder = await self.store.lease(self.run)
            if holder is not None and is_dead(holder.owner):
                LOG.info("the process that ran %r, or waited for it, is gone; its lease is taken over", self.run)
                await self.store.release(self.run, holder.owner)
            elif waits:
                return False
            elif holder is not None:
                raise RunBusyError(self.run, holder.owner, self.seconds)
        return True

    async def give_back(self) -> None:
        """Give the lease back, so that the next one need not wait for it to expire."""
        if self._beat is not None:
            self._beat.cancel()
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.wait([self._renewal])  # it may still take the lease, which must be given back, too
        try:
            await self._release()
        except Exception as error:  # noqa: BLE001 - it runs out by itself
            name = type(error).__name__
            LOG.warning("the lease of run %r was not given back, and runs out (%s: %s)", self.run, name, error)

    async def _release(self) -> None:
        try:
            await self.store.release(self.run, self.owner)
        finally:
            freed = _FREED.pop((id(asyncio.get_running_loop()), id(self.store), self.run), None)
            if freed is not None:
                freed.set()

    def _schedule(self) -> None:
        self._beat = asyncio.get_running_loop().call_later(self.seconds / 3, self._start_renewal)

    def _start_renewal(self) -> None:
        self._renewal = asyncio.get_running_loop().create_task(self._renew())

    async def _renew(self) -> None:
        try:
            held = await self.store.renew(self.run, self.owner, self.seconds)
            if not held:  # this process slept, or a clock jumped: if nobody else took it, nothing is lost
                held = await self.store.acquire(self.run, self.owner, self.seconds)
        except Exception as error:  # noqa: BLE001 - the next one may work; a lost lease is noticed by the next write
            LOG.warning("the lease of run %r was not renewed (%s: %s)", self.run, type(error).__name__, error)
            held = True
        if held:
            self._schedule()
        else:
            LOG.warning("the lease of run %r is lost; its next write will fail", self.run)


def _machine() -> str:
    """Return an id of this machine, since hosts may share a name; in a container, of machine and container."""
    for path in ("/etc/machine-id", "/proc/sys/kernel/random/boot_id"):  # the first one outlives a reboot
        with suppress(OSError), open(path, "rb") as file:  # noqa: PTH123 - `pathlib` loads much
            if name := file.read().strip():
                return f"{socket.gethostname()}-{crc32(name):08x}"
    return socket.gethostname()


def _birth(process: int) -> str:
    """Return when a process began, if the system says so, because process ids are reused."""
    with suppress(OSError, IndexError), open(f"/proc/{process}/stat") as stat:  # noqa: PTH123 - `pathlib` loads much
        return stat.read().rpartition(")")[2].split()[19]
    return ""


def is_dead(owner: str) -> bool:
    """Return whether the holder of a lease was a process on this machine that is gone."""
    host, process, birth, _ = (*owner.split(":"), "", "", "", "")[:4]
    if host != _machine() or not process.isdigit():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return birth != _birth(int(process))


# --- stored runs ----------------------------------------------------------------------------------


async def open_journal(run: Execution, store: Any, name: str, *, takes_lease: bool) -> bool:
    """Open a run's journal for writing, under a lease if the store supports them; return whether it had any records."""
    journal = Journal(run, store, name)
    if takes_lease:
        if run.lease is not None:  # a session has one already
            journal.lease = run.lease
        elif can_lease(store):
            lease = RunLease(store, name)
            await lease.take()
            journal.lease = lease
        run.opened = journal
    is_stored = await _read_journal(run, journal)
    run.journal = journal
    if is_stored:
        journal.take_over(run.history)
        if run.state.version != VERSION:
            journal.note(Moved(VERSION))
            run.state.version = VERSION
    return is_stored


async def _read_journal(run: Execution, journal: Journal) -> bool:
    """Replay a journal, except for what this process remembers of it; return whether it had any records."""
    store, name = journal.store, journal.name
    length, last, snapshot = recall(run, store, name) or (0, b"", None)
    if snapshot is not None:
        tail = await store.load(name, length - 1)
        if tail and tail[0] == last:
            run.restore(snapshot)
            journal.count, journal.last = length + len(tail) - 1, tail[-1]
            if len(tail) > 1:
                messages: list[Any] = list(run.history)
                replay(run, tail[1:], messages, length)
                run.history = as_history(run.history, messages)
            return True
    stored = await store.load(name, 0)
    messages: list[Any] = []
    given = run.state
    run.state = RunState()
    replay(run, stored, messages)
    run.history, journal.count = History(messages), len(stored)
    if stored:
        journal.last = stored[-1]
    else:
        run.state = given
    return bool(stored)


def is_inside(name: str, runs: Container[str]) -> bool:
    """Return whether a journal belongs to one of these runs: that of an agent inside it, or one of an engine.

    >>> is_inside("talk/0123456789abcdef.1.0.helper", ["talk"]), is_inside("talk/another", ["talk"])
    (True, False)
    """
    outer, _, place = name.rpartition("/")
    run_id, dot, _ = place.partition(".")
    is_nested = len(run_id) == 16 and dot and not run_id.strip("0123456789abcdef")
    return outer in runs and bool(is_nested or place in ("answers", "live"))


async def read_run(spec: Spec, name: str) -> Execution | None:
    """Return a stored run as it stands, without running it; `None` if there is none."""
    if spec.store is None:
        raise ConfigError("a stored run is read from a checkpoint_store, and the agent has none")
    run = Execution(spec, RunState(wire=spec.wire.name))
    run.checkpoint_id = name
    return run if await _read_journal(run, Journal(run, spec.store, name)) else None


async def find_run(spec: Spec, name: str, key: str) -> Execution | None:
    """Return the run of a conversation, current or ended, whose input had this key; `None` if there is none."""
    run = await read_run(spec, name)
    if run is None or spec.store is None or run.state.key == key:
        return run
    records, found = await spec.store.load(name, 0), None
    if any(key.encode() in record for record in records):
        for past, messages in _read_stages(spec, name, records):
            if past.state.key == key and past.state.outcome:
                found = copy_state(past.state), History(messages)
    if found is None:
        return None
    run.state, run.history = found
    return run


def _read_stages(spec: Spec, name: str, records: Sequence[bytes]) -> Iterator[tuple[Execution, list[Any]]]:
    """Yield a stored run and its messages as they were after each record."""
    run, messages = Execution(spec, RunState()), list[Any]()
    run.checkpoint_id = name
    for number, record in enumerate(records):
        replay(run, [record], messages, number)
        yield run, messages


class Checkpoint(NamedTuple):
    """A place in a stored run to go back to: its state after that many records."""

    position: int
    turn: int
    phase: str
    outcome: str
    """How the run had ended there; empty if it had not."""
    messages: int


async def read_checkpoints(spec: Spec, name: str) -> list[Checkpoint]:
    """Return the places of a stored run: one for each record after it got its input."""
    if spec.store is None:
        raise ConfigError("checkpoints are read from a checkpoint_store, and the agent has none")
    stages = enumerate(_read_stages(spec, name, await spec.store.load(name, 0)), 1)
    return [
        Checkpoint(number, run.state.turn, run.state.phase, run.state.outcome, len(messages))
        for number, (run, messages) in stages
        if run.state.entered
    ]


async def fork_run(spec: Spec, name: str, position: int, new_name: str) -> None:
    """Store a new run that continues from a checkpoint of another one, with its own id."""
    store: Any = spec.store
    if store is None or not hasattr(store, "fork"):
        raise ConfigError("a run is forked in a checkpoint_store that knows forks, such as SQLiteStore")
    if not isinstance(position, int) or position < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"a run is forked behind its first record: position is 1 or more, not {position!r}")
    run = Execution(spec, RunState())
    run.checkpoint_id = name
    replay(run, (await store.load(name, 0))[:position], [])
    new, begun = (new_name, new_run_id()), _begun_calls(run.state)
    forks: dict[str, tuple[str, str]] = {}
    for other in sorted(await store.runs(), key=len) if begun else ():  # an inner run comes after its outer one
        outer, _, place = other.rpartition("/")
        # If `name` is a fork itself, the run that began a call may be the one that it was forked from.
        around = new if place.startswith(begun) else forks.get(outer)
        if around is not None:
            forks[other] = f"{around[0]}/{around[1]}.{place.partition('.')[2]}", new_run_id()
            await _fork_journal(store, other, len(await store.load(other, 0)), *forks[other])
    await _fork_journal(store, name, position, *new)  # last, so that nobody resumes half a fork


async def _fork_journal(store: Any, name: str, position: int, new_name: str, run_id: str) -> None:
    """Fork one journal, for a run with its own id."""
    await store.fork(name, position, new_name)
    try:
        await store.append(new_name, position, [encode_records([Changed({"run_id": run_id, "driver": ""})])])
    except BaseException:
        await run_to_the_end(store.delete(new_name))  # it still has the run id of its origin
        raise


def _begun_calls(state: RunState) -> tuple[str, ...]:
    """Return the prefixes of the journals of agents whose calls have begun or wait, and have not ended."""
    asked = {tuple(address.split("/", 3)[1:3]) for address in state.asked}
    waiting = {int(index) for turn, index in asked if turn == str(state.turn) and index.isdecimal()}
    begun = {*state.started, *waiting} - set(state.ended)
    return tuple([f"{state.run_id}.{state.turn}.{index}." for index in begun])


async def compact_run(spec: Spec, name: str) -> None:
    """Replace the journal of a conversation whose last run has finished by one record with its final state."""
    store: Any = spec.store
    if store is None or not hasattr(store, "replace") or not can_lease(store):
        raise ConfigError(
            "a run is compacted in a checkpoint_store that knows `replace` and leases, such as SQLiteStore"
        )
    lease = RunLease(store, name)
    await lease.take()
    try:
        length = len(await store.load(name))
        run = await read_run(spec, name)
        if run is None or run.state.outcome != "finished":
            raise ResumeError(f"{name!r} has not finished: its journal is needed to go on with it")
        await store.replace(name, length, [Journal(run, store, "").write_whole()], owner=lease.owner)
        family = {name}
        for other in sorted(await store.runs(), key=len):
            if is_inside(other, family):  # the journals of agents inside are not needed once their calls have ended
                family.add(other)
                await store.delete(other)
    finally:
        await run_to_the_end(lease.give_back())
