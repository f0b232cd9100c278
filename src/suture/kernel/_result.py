"""`RunResult`: what came of a run, however it ended."""

from collections.abc import Mapping, Sequence
from typing import Any, Generic

import msgspec

from suture.events import Interrupt
from suture.kernel._contexts import Outcome
from suture.messages import FrozenMap, M, TokenUsage

__all__ = ["RunResult"]


class RunResult(msgspec.Struct, Generic[M], frozen=True, kw_only=True):
    """What came of a run.

    >>> RunResult(output="done", messages=[], outcome=Outcome.FINISHED).output
    'done'
    """

    output: Any
    """The final text, or the value that `output_type` asked for; `None` if there is none."""
    messages: Sequence[M]
    """The whole history: what went in, what was said, and every result."""
    outcome: Outcome
    usage: TokenUsage = TokenUsage()
    interrupts: tuple[Interrupt, ...] = ()
    """What the run waits for, if it was interrupted."""
    run_id: str = ""
    checkpoint_id: str | None = None
    session: Mapping[str, Any] = FrozenMap()
    """The session values at the end."""
    message_ids: tuple[str, ...] = ()
    """For each message the id that events gave it; empty for what went in."""
    error: BaseException | None = None
    """What the run failed with."""
    escalated: bool = False
    """Whether a cancellation that waited for a safe point ran out of patience."""
    cleanup_errors: tuple[Exception, ...] = ()
    """What `after_agent` hooks failed with; it never replaces the outcome."""

    def __repr__(self) -> str:
        """Show how it ended and how much there is; never what the messages say."""
        waits = f", waits for {', '.join(item.id for item in self.interrupts)}" if self.interrupts else ""
        return f"<RunResult: {self.outcome.value}, {len(self.messages)} messages{waits}>"
