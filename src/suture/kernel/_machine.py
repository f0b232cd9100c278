"""The loop as a pure state machine: given where a run stands, what comes next. It has no effects and waits for nothing.

::

    model ──reply──> after ──hooks──> route ──an answer──> done
      ^                                 └──calls──> tools ──results──> gathered ──it ends the run──> done
      └────────────────────────────────────────────────────────────────────┘
"""

from enum import StrEnum
from typing import NamedTuple

__all__ = ["Phase", "Position", "Step", "next_step"]


class Phase(StrEnum):
    """What a run waits for."""

    MODEL = "model"
    """A model's reply."""
    AFTER = "after"
    """The hooks after it."""
    ROUTE = "route"
    """A look at what the reply asks for."""
    TOOLS = "tools"
    """The results of its calls."""
    GATHERED = "gathered"
    """The hook after them."""
    DONE = "done"


class Step(StrEnum):
    """What to do next."""

    MODEL = "model"
    LAST_MODEL = "last model"
    """One more model turn, without tools, to end with an answer."""
    AFTER = "after"
    ROUTE = "route"
    TOOLS = "tools"
    GATHERED = "gathered"
    LIMIT = "limit"
    END = "end"


class Position(NamedTuple):
    """Where a run stands.

    >>> Position().replied().phase
    <Phase.AFTER: 'after'>
    """

    turns: int = 0
    """How many model turns it has taken."""
    phase: Phase = Phase.MODEL
    is_last: bool = False
    """Whether the turn at hand is the last one it may take."""
    ends: bool = False
    """Whether the results of the turn at hand end the run."""

    def replied(self, *, is_last: bool = False) -> "Position":
        """Return the position after a model's reply."""
        return Position(self.turns + 1, Phase.AFTER, is_last)

    def settled(self) -> "Position":
        """Return the position after the hooks that follow a reply."""
        return Position(self.turns, Phase.ROUTE, self.is_last)

    def routed(self, *, calls: bool) -> "Position":
        """Return the position after a look at the reply."""
        return Position(self.turns, Phase.TOOLS if calls else Phase.DONE, self.is_last)

    def asked_again(self) -> "Position":
        """Return the position after an answer was sent back to be corrected."""
        return Position(self.turns, Phase.MODEL, self.is_last)

    def answered(self, *, ends: bool) -> "Position":
        """Return the position after a turn's calls are answered."""
        return Position(self.turns, Phase.GATHERED, self.is_last, ends)

    def gathered(self) -> "Position":
        """Return the position after the hook that follows the calls."""
        return Position(self.turns, Phase.DONE if self.ends else Phase.MODEL, self.is_last, self.ends)


_STEPS = {
    Phase.AFTER: Step.AFTER,
    Phase.ROUTE: Step.ROUTE,
    Phase.TOOLS: Step.TOOLS,
    Phase.GATHERED: Step.GATHERED,
    Phase.DONE: Step.END,
}


def next_step(position: Position, limit: int, *, used_up: bool, answers_at_limit: bool) -> Step:
    """Return what comes next.

    >>> next_step(Position(turns=20), 20, used_up=False, answers_at_limit=False)
    <Step.LIMIT: 'limit'>
    """
    if position.phase is Phase.MODEL:
        if position.turns < limit and not used_up:
            return Step.MODEL
        return Step.LAST_MODEL if answers_at_limit and not position.is_last else Step.LIMIT
    return _STEPS[position.phase]
