"""A program whose run is killed: when it is to summarise for the second time, or behind its n-th write.

Started with `python -m tests.agent.compaction._victim DATABASE [N]`.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from suture import ChatModelAgent, Compaction, tool
from suture.testing import ScriptedModel
from tests.agent.compaction.scenes import asking, long_text
from tests.agent.durability.victim import Deadly

TASK = "Look ten things up. The password is 4711."


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


class Prompts(list[str]):
    """What a summariser was asked, each at once in a file, too: it was paid for, whatever becomes of the program."""

    def __init__(self, file: Path) -> None:
        super().__init__(file.read_text().split("\0")[:-1] if file.exists() else ())
        self._file = file

    def append(self, prompt: str, /) -> None:
        super().append(prompt)
        with self._file.open("a") as file:
            file.write(prompt + "\0")


async def main() -> None:
    database, *deadline = sys.argv[1:]
    prompts = Prompts(Path(f"{database}.prompts"))
    with Deadly(Path(database), int(deadline[0]) if deadline else None) as store:
        agent, _ = make(store, prompts, dies=not deadline)
        await agent.run(TASK, checkpoint_id="k")


if __name__ == "__main__":
    asyncio.run(main())
