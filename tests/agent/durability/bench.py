"""Tools that a cancel can meet while they are under way."""

import asyncio
from typing import Any

from suture import tool
from tests.agent.durability.scenes import turn


class Bench:
    """Tools that say when they are under way, and wait to be let go."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.cleaned: list[str] = []
        self.began, self.go, self.first = asyncio.Event(), asyncio.Event(), asyncio.Event()
        bench = self

        @tool
        async def quick() -> str:
            """End at once."""
            bench.ran.append("quick")
            bench.first.set()
            return "quick result"

        @tool
        async def slow() -> str:
            """Wait."""
            bench.ran.append("slow")
            bench.began.set()
            try:
                await bench.go.wait()
            finally:
                bench.cleaned.append("slow")
            bench.ran.append("slow's effect")
            return "slow result"

        self.quick, self.slow = quick, slow

    async def under_way(self) -> None:
        await self.began.wait()
        await self.first.wait()


def both(wire: str = "message") -> Any:
    return turn(("c1", "quick"), ("c2", "slow"), wire=wire)
