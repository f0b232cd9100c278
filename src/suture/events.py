"""The events of a run, as one tagged union: enough to draw the whole run.

Every event carries the agent's name, the run path (the names of the agents around it, outermost first), the
run's id, a sequence number without gaps, and the time. What a run does next never depends on an event.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from suture.messages import Delta, TokenUsage, ToolResult

__all__ = [
    "AnyEvent",
    "Custom",
    "Event",
    "HistoryRewritten",
    "Interrupt",
    "Interrupted",
    "MessageDelta",
    "MessageFinished",
    "ModelStarted",
    "RetryScheduled",
    "RunFinished",
    "RunStarted",
    "ToolDelta",
    "ToolFinished",
    "ToolRetried",
    "ToolStarted",
    "ToolWaiting",
]


class Event(Struct, frozen=True, kw_only=True, tag_field="type", repr_omit_defaults=True):
    """The fields of every event. The run fills them in, for custom events too.

    >>> Custom("progress", {"done": 3}).name
    'progress'
    """

    agent: str = ""
    run_path: tuple[str, ...] = ()
    """The names of the agents around it and its own, outermost first."""
    run_id: str = ""
    sequence: int = 0
    """Counts the events of one stream, from 0, without gaps."""
    time: float = 0.0
    """Seconds since the epoch."""


class RunStarted(Event, frozen=True, kw_only=True, tag="run_started"):
    """A run began, or was resumed from a checkpoint.

    >>> RunStarted(messages=3, resumed=True).resumed
    True
    """

    messages: int = 0
    """The length of the history."""
    resumed: bool = False
    checkpoint_id: str | None = None


class ModelStarted(Event, frozen=True, kw_only=True, tag="model_started"):
    """A model is asked; `message_id` is the id of its reply.

    >>> ModelStarted(turn=1, attempt=1, message_id="writer/1.1").turn
    1
    """

    turn: int
    attempt: int = 1
    message_id: str = ""
    model: str = ""


class MessageDelta(Event, frozen=True, kw_only=True, tag="message_delta"):
    """A piece of a message that is being streamed.

    >>> MessageDelta(turn=1, message_id="writer/1.1", delta=Delta(text="Hel")).text
    'Hel'
    """

    turn: int
    message_id: str = ""
    delta: Delta

    @property
    def text(self) -> str:
        """The text in this piece; empty if it is something else."""
        return self.delta.text


class MessageFinished(Event, frozen=True, kw_only=True, tag="message_finished"):
    """A model's message is complete: `message` is the object that enters the history.

    >>> MessageFinished(turn=1, message="…").turn
    1
    """

    turn: int
    message_id: str = ""
    message: Any
    text: str = ""
    usage: TokenUsage | None = None


class _ToolEvent(Event, frozen=True, kw_only=True):
    turn: int
    index: int
    call_id: str
    name: str


class ToolStarted(_ToolEvent, frozen=True, kw_only=True, tag="tool_started"):
    """A tool call begins; `arguments` is the JSON text that the model wrote.

    >>> ToolStarted(turn=1, index=0, call_id="call_1", name="search", arguments="{}").name
    'search'
    """

    arguments: str = ""


class ToolWaiting(_ToolEvent, frozen=True, kw_only=True, tag="tool_waiting"):
    """A tool call waits for an approval or an answer. It counts as not begun, and will start from the top.

    >>> ToolWaiting(turn=1, index=0, call_id="call_1", name="pay", arguments="{}").name
    'pay'
    """

    arguments: str = ""


class ToolRetried(_ToolEvent, frozen=True, kw_only=True, tag="tool_retried"):
    """A wrapper runs a streaming tool again: discard the pieces of this call so far.

    >>> ToolRetried(turn=1, index=0, call_id="call_1", name="tail").call_id
    'call_1'
    """


class ToolDelta(_ToolEvent, frozen=True, kw_only=True, tag="tool_delta"):
    """A piece of the result of a streaming tool.

    >>> ToolDelta(turn=1, index=0, call_id="call_1", name="tail", result=ToolResult()).call_id
    'call_1'
    """

    result: ToolResult


class ToolFinished(_ToolEvent, frozen=True, kw_only=True, tag="tool_finished"):
    """A tool call has its result; the message that carries it into the history will have this `message_id`.

    >>> ToolFinished(turn=1, index=0, call_id="call_1", name="search", result=ToolResult()).return_directly
    False
    """

    result: ToolResult
    text: str = ""
    message_id: str = ""
    return_directly: bool = False


class HistoryRewritten(Event, frozen=True, kw_only=True, tag="history_rewritten"):
    """The history changed: by which middleware, the lengths before and after, and a report as plain data.

    `by` is `"convert"` for messages that were handed in on another wire; `report["losses"]` says what was lost.

    >>> HistoryRewritten(turn=2, by="PatchToolCalls", before=4, after=5).after
    5
    """

    turn: int
    by: str
    before: int
    after: int
    report: Mapping[str, Any] | None = None


class RetryScheduled(Event, frozen=True, kw_only=True, tag="retry_scheduled"):
    """The model is asked again: discard everything that came under `message_id`.

    >>> RetryScheduled(turn=1, attempt=1, message_id="writer/1.1", error="overloaded", delay=0.1).attempt
    1
    """

    turn: int
    attempt: int
    message_id: str
    error: str = ""
    """The error of the attempt; empty if its output was rejected."""
    reason: Any = None
    """Why its output does not count: what `should_retry` said, or that a wrapper asks again, under the same id."""
    delay: float = 0.0
    failover: str = ""
    """The model that takes over, if another one does."""


class Interrupt(Struct, frozen=True, kw_only=True):
    """Something a run waits for. Its id is its address: answer it with `agent.resume(checkpoint, answers={id: data})`.

    >>> Interrupt(id="writer/1/0/tool/0", info="Send it?").info
    'Send it?'
    """

    id: str
    info: Any
    run_path: tuple[str, ...] = ()
    call_id: str = ""
    name: str = ""
    """The tool that waits, if a tool does."""


class Interrupted(Event, frozen=True, kw_only=True, tag="interrupted"):
    """The run stopped to wait for these. Its checkpoint, if it has one, is already written.

    >>> Interrupted(interrupts=(Interrupt(id="a", info="?"),)).interrupts[0].id
    'a'
    """

    interrupts: tuple[Interrupt, ...]
    checkpoint_id: str | None = None


class RunFinished(Event, frozen=True, kw_only=True, tag="run_finished"):
    """The last event of a run: finished, failed, interrupted or cancelled.

    >>> RunFinished(outcome="finished", text="done").outcome
    'finished'
    """

    outcome: str
    text: str = ""
    error: str = ""
    usage: TokenUsage = TokenUsage()


class Custom(Event, frozen=True, tag="custom"):
    """An event of your own, sent with `send_event`; `data` is anything you like.

    >>> Custom("progress", {"done": 3})
    Custom('progress', {'done': 3})
    """

    name: str
    data: Any = None

    def __repr__(self) -> str:
        """Show the name and the data, not what the run filled in."""
        return f"Custom({self.name!r}, {self.data!r})"


AnyEvent: TypeAlias = (
    RunStarted
    | ModelStarted
    | MessageDelta
    | MessageFinished
    | ToolStarted
    | ToolWaiting
    | ToolRetried
    | ToolDelta
    | ToolFinished
    | HistoryRewritten
    | RetryScheduled
    | Interrupted
    | RunFinished
    | Custom
)
"""Any event of a run."""
