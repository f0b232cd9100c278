"""A program whose run is killed while its history is being summarised, behind the first answer of the summariser.

Started with `python -m tests.agent.compaction._victim DATABASE`.
"""

import asyncio
import os
import signal
import sys
from typing import Any

from suture import ChatModelAgent, Compaction, tool
from suture.stores import SQLiteStore
from suture.testing import ScriptedModel
from tests.agent.compaction.scenes import asking, long_text


@tool(idempotent=True)
async def look(label: str) -> str:
    """Look something up."""
    return long_text(label)


def make(store: Any, prompts: list[str], *, dies: bool = False) -> tuple[ChatModelAgent[Any], ScriptedModel[Any]]:
    """Return an agent that looks ten things up, and its model; `dies`: when it is to summarise for the second time."""

    def summarize(prompt: str) -> str:
        prompts.append(prompt)
        if dies and len(prompts) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return f"Summary number {len(prompts)}."

    model: ScriptedModel[Any] = ScriptedModel(asking(10, words=60))
    compaction = Compaction(700, 200, summarize, keep_recent_rounds=1)
    agent = ChatModelAgent(model=model, tools=[look], middlewares=[compaction], checkpoint_store=store)
    return agent, model


async def main() -> None:
    with SQLiteStore(sys.argv[1]) as store:
        agent, _ = make(store, [], dies=True)
        await agent.run("Look ten things up.", checkpoint_id="k")


if __name__ == "__main__":
    asyncio.run(main())
