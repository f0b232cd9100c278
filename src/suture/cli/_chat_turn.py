"""A turn of a chat, in an event loop that has a thread of its own: it goes on while somebody types.

The main thread has the terminal and the signals. That is where `readline` can be interrupted and puts the terminal in
order again.
"""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future
from threading import Event, Thread
from typing import Any

from suture.cli._chat_show import Show
from suture.kernel import Run, RunResult

__all__ = ["Background", "Turn"]

_GRACE = 5.0
"""How many seconds are waited for what still runs when the program ends."""


class Background:
    """An event loop in a thread of its own.

    >>> async def work():
    ...     return 42
    >>> background = Background()
    >>> background.begin(work()).result()
    42
    >>> background.close()
    """

    def __init__(self) -> None:
        self._ready = Event()
        self._thread = Thread(target=lambda: asyncio.run(self._serve()), name="suture-chat", daemon=True)
        self._thread.start()
        self._ready.wait()

    def begin(self, work: Coroutine[Any, Any, Any]) -> "Future[Any]":
        """Start some work there."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def close(self) -> None:
        """End the loop and all that runs in it."""
        self.loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(_GRACE)

    async def _serve(self) -> None:
        self.loop, self._closing = asyncio.get_running_loop(), asyncio.Event()
        self._ready.set()
        await self._closing.wait()


class Turn:
    """One run, shown as it goes on. It can be asked from any thread to stop.

    >>> from suture import ChatModelAgent
    >>> from suture.testing import ScriptedModel
    >>> import sys
    >>> background, agent = Background(), ChatModelAgent(model=ScriptedModel(["hello"]))
    >>> turn = Turn(agent.run("hi"), Show(sys.stdout, sys.stdout), background.loop)
    >>> background.begin(turn.go()).result()
    hello
    <RunResult: finished, 2 messages>
    >>> background.close()
    """

    def __init__(self, run: Run[Any], show: Show, loop: asyncio.AbstractEventLoop) -> None:
        self._run, self._show, self._loop = run, show, loop
        self._is_asked = False
        self._stopping: asyncio.Task[RunResult[Any]] | None = None

    async def go(self) -> RunResult[Any] | None:
        """Run to the end, whatever it is; raise only what could not be shown."""
        try:
            async with self._run as run:
                if self._is_asked:
                    self._cancel()
                async for event in run:
                    self._show.event(event)
        except Exception as error:
            if self._run.result is None or self._run.result.error is not error:
                raise
        if self._stopping is not None:
            await self._stopping
        return self._run.result

    def stop(self) -> None:
        """Ask for the end of the run; what was said so far stays."""
        self._is_asked = True
        self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._stopping is None:
            self._stopping = asyncio.ensure_future(self._run.cancel())
