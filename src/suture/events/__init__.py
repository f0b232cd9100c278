"""What happens in a run, as one tagged union: enough to draw the whole run from it.

Every event carries the agent's name, the run path (the names of the agents around it, outermost first), the
run's id, a sequence number without gaps, and the time. Control (who ends a run, what runs next) never
depends on an event.
"""

from suture.events._events import (
    AnyEvent,
    Custom,
    Event,
    HistoryRewritten,
    Interrupt,
    Interrupted,
    MessageDelta,
    MessageFinished,
    ModelStarted,
    RetryScheduled,
    RunFinished,
    RunStarted,
    ToolDelta,
    ToolFinished,
    ToolStarted,
)

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
    "ToolStarted",
]
