"""`RunResult`: what came of a run, however it ended."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic

import msgspec

from suture._text import plural
from suture.events import Interrupt
from suture.kernel.middleware import Outcome
from suture.messages import FrozenMap, TokenUsage

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Out = TypeVar("Out", default=str)
else:
    from typing import TypeVar

    Out = TypeVar("Out")


class RunResult(msgspec.Struct, Generic[Out], frozen=True, kw_only=True):
    """What came of a run.

    >>> RunResult(output="done", messages=[], outcome=Outcome.FINISHED).output
    'done'
    """

    output: Out
    """The final text, or the value that `output_type` asked for; `None` if there is none."""
    messages: Sequence[Any]
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
    snapshot: Any = None
    """Where a run without a store stands, for `agent.resume(result)`."""

    def __repr__(self) -> str:
        """Show how it ended and how much there is; never what the messages say."""
        waits = f", waits for {', '.join(item.id for item in self.interrupts)}" if self.interrupts else ""
        return f"<RunResult: {self.outcome.value}, {plural(len(self.messages), 'message')}{waits}>"
