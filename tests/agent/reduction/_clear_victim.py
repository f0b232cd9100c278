"""A program whose run clears its history and is killed while it saves, or behind an append to its journal.

Started with `python -m tests.agent.reduction._clear_victim WIRE DIRECTORY WHERE K`: it kills itself before or behind
the K-th write of its backend, or behind the K-th append of its store.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from suture import ChatModelAgent, interrupt, tool
from suture.stores import LocalBackend, SQLiteStore
from suture.testing import ScriptedModel
from tests.agent.durability.scenes import roles
from tests.agent.durability.scenes import said as text_of
from tests.agent.durability.victim import Deadly
from tests.agent.reduction._clear_scenes import asks, files, message, reads, reducing
from tests.reduction.rounds import long, read
from tests.shapes.notation import call, turn

LABELS = ("a", "b", "c", "d")


@tool(idempotent=True)
async def look(label: str) -> str:
    """Look something up."""
    return long(label)


@tool
async def ask(label: str) -> str:
    """Ask somebody."""
    return str(await interrupt(label))


def script(wire: str, labels: Sequence[str], pause: str = "") -> Any:
    """Return what looks all labels up, one a turn; asks somebody before `pause`; reads what `read PATH` names."""
    wanted: list[Any] = []
    for label in labels:
        if label == pause:
            wanted.append(message(wire, turn(call("asked", "ask", {"label": label}))))
        wanted.append(asks(wire, label))

    def reply(messages: Sequence[Any]) -> Any:
        if (last := text_of(messages[-1])).startswith("read ") and not read(wire, messages[-1:]):
            return reads(wire, last.removeprefix("read "))
        number = roles(messages).count("assistant")
        return wanted[number] if number < len(wanted) else "done"

    return reply


def cast(
    wire: str, backend: Any, store: Any, labels: Sequence[str] = LABELS, pause: str = "", **choices: Any
) -> tuple[ChatModelAgent[Any], ScriptedModel[Any]]:
    """Return an agent that looks all labels up and keeps one round, and its model."""
    model: ScriptedModel[Any] = ScriptedModel(script(wire, labels, pause), wire=wire)
    reduction = reducing(backend, **{"root_dir": None, **choices})
    agent = ChatModelAgent(
        name="a", model=model, tools=[look, ask], middlewares=[reduction], checkpoint_store=store, max_iterations=30
    )
    return agent, model


async def originals(wire: str, messages: Sequence[Any], backend: Any) -> dict[str, str]:
    """Return what each result said before it was cleared; fail where its file is gone."""
    kept = await files(backend)
    found: dict[str, str] = {}
    for one in read(wire, messages):
        path = one.text.partition("Tool result saved to: ")[2].partition("\n")[0]
        found[one.id] = kept[path] if path else one.text
    return found


class DeadlyBackend(LocalBackend):
    """A backend that kills its process before or behind a write."""

    def __init__(self, directory: Path, where: str, deadline: int) -> None:
        super().__init__(directory)
        self.where, self.deadline, self.count = where, deadline, 0

    async def write(self, path: str, content: str | bytes) -> None:
        """Write, and die if it was the last one."""
        self.count += 1
        last = self.count == self.deadline
        if last and self.where == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        await super().write(path, content)
        if last and self.where == "behind":
            os.kill(os.getpid(), signal.SIGKILL)


async def main(wire: str, directory: Path, where: str, deadline: int) -> None:
    """Run until it dies, or until the end."""
    journal = directory / "runs.db"
    store = Deadly(journal, deadline) if where == "append" else SQLiteStore(journal)
    backend = DeadlyBackend(directory / "outputs", where, deadline)
    agent, _ = cast(wire, backend, store)
    await agent.run("go", checkpoint_id="k")
    os.write(1, b"ended\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
