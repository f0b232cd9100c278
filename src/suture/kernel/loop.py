"""The loop of a run: one plain coroutine over a port.

It reads no clock, makes no ids and sees no message. A small stored value, `Standing`, says where a run stands, and the
loop goes on from any such place. `port.py` runs the port in this process; a durable engine runs the very same loop with
the port's steps as activities::

    model ──> after ──> tools ──> gathered ──> model …
                │                     │
                └──────> end <────────┘
"""

from typing import Protocol

import msgspec


class Standing(msgspec.Struct, frozen=True, array_like=True):
    """Where a run stands.

    >>> len(msgspec.msgpack.encode(Standing("tools", 12))) < 20
    True
    """

    phase: str = "model"
    """What comes next: `model`, `after` (the hooks after a reply), `tools`, `gathered` (the hook after them), `end`."""
    turn: int = 0
    """How many model turns it has taken."""
    is_last: bool = False
    """Whether the turn is the last one it may take."""
    ends: bool = False
    """Whether the results of the turn end the run."""


class Port(Protocol):
    """What the loop asks for. Two of these have effects on the world: the model turn and the tool calls."""

    async def model_turn(self, at: Standing, /) -> bool:
        """Take a model turn: the hooks before it, the model. The reply is the last message then.

        Tell whether it was the last one that the run may take; raise the limit that is reached where there may be none.
        """
        ...

    async def after_model(self, at: Standing, /) -> str:
        """Run the hooks after a reply; tell what it asks for: `tools`, `model` (it was sent back), or `end`."""
        ...

    async def tool_calls(self, at: Standing, /) -> bool:
        """Run the calls of the reply and answer them; tell whether the run ends with that."""
        ...

    async def after_tools(self, at: Standing, /) -> None:
        """Run the hook after the calls."""
        ...


async def advance(at: Standing, port: Port) -> Standing:
    """Do what comes next and return where the run stands then. All calls of a turn are one step."""
    phase = at.phase
    if phase == "model":
        is_last = await port.model_turn(at)
        return Standing("after", at.turn + 1, is_last)
    if phase == "after":
        return Standing(await port.after_model(at), at.turn, at.is_last)
    if phase == "tools":
        ends = await port.tool_calls(at)
        return Standing("gathered", at.turn, at.is_last, ends)
    if phase == "gathered":
        await port.after_tools(at)
        return Standing("end" if at.ends else "model", at.turn, at.is_last, at.ends)
    return at


async def drive(at: Standing, port: Port) -> Standing:
    """Advance a run to its end."""
    while at.phase != "end":
        at = await advance(at, port)
    return at
