"""One writer at a time: the lease that a run holds on its journal while it runs.

It has a heartbeat, so a process that dies loses it when its time is up, by the store's clock. A process on the same
machine need not wait for that: it sees that the holder is dead.
"""

import asyncio
import os
import socket
from contextlib import suppress
from typing import Any
from weakref import WeakValueDictionary

from suture._aio import LOG, run_to_the_end
from suture.errors import RunBusyError

SECONDS = 30.0
"""For how long a lease holds without a heartbeat."""


_LONGEST_PAUSE = 0.25
"""For how many seconds at most whoever waits for a lease does not ask for it."""
_FREED: "WeakValueDictionary[tuple[int, int, str], asyncio.Event]" = WeakValueDictionary()
"""What wakes those of an event loop who wait for the lease of a run."""


def can_lease(store: object) -> bool:
    """Tell whether a store knows leases; one of your own need not."""
    return all(hasattr(store, name) for name in ("acquire", "renew", "release", "lease"))


class RunLease:
    """The lease of one run, held by this process until it is given back."""

    def __init__(self, store: Any, run: str, seconds: float = SECONDS) -> None:
        self.store, self.run, self.seconds = store, run, seconds
        self.owner = f"{socket.gethostname()}:{os.getpid()}:{_birth(os.getpid())}:{os.urandom(4).hex()}"
        self._beat: asyncio.TimerHandle | None = None
        self._renewal: asyncio.Task[None] | None = None

    async def take(self, *, waits: bool = False) -> None:
        """Take the lease; if somebody who is alive holds it, wait in the order of arrival, or raise `RunBusyError`."""
        pause, loop = 0.01, asyncio.get_running_loop()
        try:
            while not await self._ask(waits=waits):
                # Whoever gives it back in this loop says so; of other processes only the store knows.
                freed = _FREED.setdefault((id(loop), id(self.store), self.run), asyncio.Event())
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause * (1 + os.urandom(1)[0] / 256)):  # spreads load
                        await freed.wait()
                pause = min(pause * 2, _LONGEST_PAUSE)
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
        """Give the lease back, so that whoever comes next need not wait."""
        if self._beat is not None:
            self._beat.cancel()
        if self._renewal is not None:
            self._renewal.cancel()
        try:
            await self.store.release(self.run, self.owner)
        except Exception:  # noqa: BLE001 - it runs out by itself
            LOG.warning("the lease of run %r could not be given back; it runs out by itself", self.run, exc_info=True)
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
        except Exception:  # noqa: BLE001 - the next one may work; a lost lease is noticed by the next write
            LOG.warning("the lease of run %r was not renewed", self.run, exc_info=True)
            held = True
        if held:
            self._schedule()
        else:
            LOG.warning("the lease of run %r is lost; its next write will fail", self.run)


def _birth(process: int) -> str:
    """Return when a process began, where the system says so: ids of processes are used again."""
    with suppress(OSError, IndexError), open(f"/proc/{process}/stat") as stat:  # noqa: PTH123 - `pathlib` loads much
        return stat.read().rpartition(")")[2].split()[19]
    return ""


def is_dead(owner: str) -> bool:
    """Tell whether the holder of a lease is a process of this machine that is gone."""
    host, process, birth, _ = (*owner.split(":"), "", "", "", "")[:4]
    if host != socket.gethostname() or not process.isdigit():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return birth != _birth(int(process))
