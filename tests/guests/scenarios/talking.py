"""What a scenario needs of a framework: an agent with a shop's tools, and a conversation with it that is kept."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from suture.repair import Report
from tests.histories import Step


class Shop:
    """Tools: one pays, one fails, one hangs. `paid` is what was paid, `hanging` is set when the last is at work."""

    def __init__(self) -> None:
        self.paid: list[int] = []
        self.hanging = asyncio.Event()

    def tools(self) -> list[Callable[..., Any]]:
        async def pay(eur: int) -> str:
            """Pay an amount."""
            self.paid.append(eur)
            return f"paid {eur}"

        async def fail() -> str:
            """Fail."""
            raise ConnectionError("the line is dead")

        async def hang() -> str:
            """Hang until somebody ends it."""
            self.hanging.set()
            await asyncio.Event().wait()
            return "never"

        return [pay, fail, hang]


@dataclass
class Setting:
    """What an agent is made with: whether Suture is there, and what else stands around the shop's tools."""

    api: str
    url: str
    ours: bool
    shop: Shop = field(default_factory=Shop)
    heard: list[Report] = field(default_factory=list)
    asks: bool = False
    """A person must approve of payments."""
    cuts: bool = False
    """Something of the framework's own sends the last message alone."""
    folder: Path | None = None
    """Where conversations outlive the process."""

    @property
    def options(self) -> dict[str, Any]:
        """The options of the guest."""
        return {"on_repair": self.heard.append}


class Talk(Protocol):
    """One conversation with an agent."""

    async def say(self, text: str, history: Sequence[Step] = ()) -> str:
        """Say something, behind `history` if the conversation is new; return the answer."""
        ...

    def events(self, text: str) -> AsyncGenerator[Any, None]:
        """Say something, and yield what comes back as it comes."""
        ...

    async def decide(self, *, approve: bool) -> str:
        """Approve of the payment that waits, or refuse it; return the answer."""
        ...

    async def settle(self) -> None:
        """Wait until what tools have given so far is where the framework keeps it."""
        ...

    async def close(self) -> None:
        """Give back what the agent holds."""
        ...


async def end(running: asyncio.Task[Any]) -> None:
    """Cancel a task, and wait until it has ended."""
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
