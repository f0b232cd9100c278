"""The events of a run on their way to its one reader, and who sends those of a model call and of a tool call.

Nothing is lost: events wait until they are read. Past `LIMIT` unread ones whoever can wait (a model's stream)
waits; a tool never does. Tools that run in threads may put events, too.
"""

import asyncio
from collections import deque
from threading import get_ident
from time import time
from typing import Any, TypeVar

import msgspec

from suture import events
from suture.messages import ToolResult

LIMIT = 256
"""How many events may be unread before a model's stream waits for the reader."""

E = TypeVar("E", bound=events.Event)


class Buffer:
    """A queue with one reader."""

    __slots__ = ("_loop", "_reader", "_thread", "_waiting", "closed", "dropped", "items", "lifted", "sequence")

    def __init__(self) -> None:
        self.items: deque[events.Event] = deque()
        self.closed = False
        self.lifted = False
        """Whether nobody waits for the reader any more: somebody awaits the run instead of reading on."""
        self.dropped = False
        """Whether nobody will read the events."""
        self.sequence = 0
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        self._reader: asyncio.Future[None] | None = None
        self._waiting: set[asyncio.Future[None]] = set()

    def put(self, event: events.Event) -> None:
        """Add an event; its number is given here. After the last one nothing is added."""
        if self.closed or self.dropped:
            return
        if get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self.put, event)
            return
        msgspec.structs.force_setattr(event, "sequence", self.sequence)
        self.sequence += 1
        self.items.append(event)
        self._wake(self._reader)

    def close(self) -> None:
        """Say that no more events will come."""
        self.closed = True
        self._wake(self._reader)

    def lift(self, *, keep: bool = True) -> None:
        """Stop waiting for the reader; without one (`keep=False`) keep no events either."""
        self.lifted = True
        if not keep:
            self.dropped = True
            self.items.clear()
        self._wake_all()

    async def next(self) -> events.Event | None:
        """Return the next event; `None` after the last."""
        while not self.items:
            if self.closed:
                return None
            self._reader = self._loop.create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        event = self.items.popleft()
        if self._waiting and len(self.items) <= LIMIT:
            self._wake_all()
        return event

    async def wait_for_room(self) -> None:
        """Wait until the reader has caught up."""
        while len(self.items) > LIMIT and not self.lifted:
            room: asyncio.Future[None] = self._loop.create_future()
            self._waiting.add(room)
            try:
                await room
            finally:
                self._waiting.discard(room)

    def _wake_all(self) -> None:
        for room in self._waiting:
            self._wake(room)

    @staticmethod
    def _wake(future: "asyncio.Future[None] | None") -> None:
        if future is not None and not future.done():
            future.set_result(None)


class Emitter:
    """Puts the events of one run into a buffer, with that run's name and path on them."""

    __slots__ = ("agent", "buffer", "path", "run_id")

    def __init__(self, buffer: Buffer, agent: str, path: tuple[str, ...], run_id: str) -> None:
        self.buffer, self.agent, self.path, self.run_id = buffer, agent, path, run_id

    def send(self, kind: type[E], **fields: Any) -> None:
        """Make an event and put it."""
        self.buffer.put(kind(agent=self.agent, run_path=self.path, run_id=self.run_id, time=time(), **fields))

    def forward(self, event: events.Event) -> None:
        """Put an event that somebody else made."""
        self.buffer.put(
            msgspec.structs.replace(event, agent=self.agent, run_path=self.path, run_id=self.run_id, time=time())
        )


class ToolSender:
    """Sends the events of one tool call."""

    __slots__ = ("arguments", "frame", "has_started", "shown")

    def __init__(self, frame: Any, arguments: str, *, settled: ToolResult | None = None) -> None:
        self.frame, self.arguments = frame, arguments
        self.has_started = settled is not None
        """A call that is settled was begun by another process."""
        self.shown = settled
        """The result as it was where a middleware of the list sends it; the call's own if not given."""

    def _send(self, kind: type[events.Event], **fields: Any) -> None:
        frame = self.frame
        if frame.run.emitter is not None:
            frame.run.emitter.send(
                kind, turn=frame.turn, index=frame.spot, call_id=frame.call_id, name=frame.tool, **fields
            )

    def started(self) -> None:
        """Send that the call begins, once."""
        if not self.has_started:
            self.has_started = True
            self._send(events.ToolStarted, arguments=self.frame.run.spec.shown(self.arguments))

    def waits(self) -> None:
        """Send that the call waits for an answer."""
        self._send(events.ToolWaiting, arguments=self.frame.run.spec.shown(self.arguments))

    async def piece(self, result: ToolResult) -> None:
        """Send a piece of a streamed result, if pieces are wanted; a tool never waits for the reader."""
        if self.frame.run.state.streaming:
            self._send(events.ToolDelta, result=self.frame.run.spec.shown(result))

    def retried(self) -> None:
        """Send that the pieces so far are void."""
        self._send(events.ToolRetried)

    def finished(self, result: ToolResult, *, directly: bool) -> None:
        """Send the whole result; a call that a wrapper answered begins with it."""
        run = self.frame.run
        if self.shown is None and not self.has_started and run.spec.stack.sends_tool_events:
            return  # it never came to the place that sends
        self.started()
        result = run.spec.shown(self.shown or result)
        message_id = f"{run.address}/{self.frame.place}"
        self._send(
            events.ToolFinished, result=result, text=result.text, message_id=message_id, return_directly=directly
        )
