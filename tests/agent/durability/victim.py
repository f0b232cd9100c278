"""A program whose runs have effects in a file and are killed.

Started with `python -m tests.agent.durability.victim SCENE WIRE DIRECTORY`. Every effect of a tool is one line of the
file `effects`. What the program says on its output tells the test how far it is; it then waits to be killed.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import suture
from suture import ChatModelAgent, ChatModelAgentMiddleware, tool
from suture.events import Interrupted, ToolFinished
from suture.stores import MemoryStore, SQLiteStore
from suture.testing import ScriptedModel
from tests.agent.durability.scenes import roles, said, turn

Calls = Sequence[Sequence[tuple[Any, ...]]]

SCRIPTS: Mapping[str, Calls] = {
    "model": [[("c1", "post", {"n": 1})]],
    "parallel": [[("c1", "post", {"n": 1}), ("c2", "slow", {"n": 2})]],
    "idempotent": [[("c1", "post", {"n": 1}), ("c2", "fetch", {"n": 2})]],
    "between": [[("c1", "post", {"n": 1}), ("c2", "post", {"n": 2})]],
    "nested": [[("o1", "inner", {"request": "go"})]],
    "paused": [[("c1", "post", {"n": 1}), ("c2", "ask", {"n": 2})]],
    "long": [
        [("c1", "post", {"n": 1}), ("c2", "post", {"n": 2})],
        [("c1", "post", {"n": 3}), ("c2", "post", {"n": 4})],
    ],
    "deep": [[("o1", "inner", {"request": "go"}), ("c3", "post", {"n": 3})], [("c1", "post", {"n": 4})]],
}
INNER: Mapping[str, Calls] = {
    "nested": [[("c1", "post", {"n": 1}), ("c2", "slow", {"n": 2})]],
    "deep": [[("c1", "post", {"n": 1}), ("c2", "post", {"n": 2})]],
}

HALTS = {"model": ["asked"], "between": ["between"]}


class Effects:
    """A file with a line for each effect; lines outlive a killed process."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, line: str) -> None:
        """Have an effect."""
        file = os.open(self.path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        os.write(file, f"{line}\n".encode())
        os.close(file)

    def all(self) -> list[str]:
        """Return all effects so far, in order of their names."""
        return sorted(self.path.read_text().splitlines()) if self.path.exists() else []


class Cast:
    """The agent of a scene. It halts at the named places; without any, it runs through."""

    def __init__(self, scene: str, wire: str, store: Any, effects: Any, halts: Sequence[str] = ()) -> None:
        self.scene, self.wire, self.halts = scene, wire, halts
        self.inner_model = ScriptedModel(self._script(INNER.get(scene, [])), wire=wire)
        self.model = ScriptedModel(self._script(SCRIPTS[scene], "asked"), wire=wire)
        tools = self._tools(effects)
        inner = ChatModelAgent(name="inner", description="Inner.", model=self.inner_model, tools=tools)
        self.agent = ChatModelAgent(
            name="a",
            model=self.model,
            tools=[*tools, inner.as_tool()],
            middlewares=[_Between(self)],
            checkpoint_store=store,
        )

    async def halt(self, place: str) -> None:
        """Say where it is, and wait to be killed."""
        if place in self.halts:
            say(place)
            await asyncio.Event().wait()

    def _script(self, script: Calls, place: str = "") -> Any:
        async def reply(messages: Any) -> Any:
            if said(messages[-1]) == "next":
                return "answered"
            number = roles(messages).count("assistant")
            if number:
                await self.halt(place)
            return turn(*script[number], wire=self.wire) if number < len(script) else "done"

        return reply

    def _tools(self, effects: Any) -> list[Any]:
        @tool
        async def post(n: int) -> str:
            """Have an effect, and end."""
            effects.add(f"post {n}")
            return f"posted {n}"

        @tool
        async def slow(n: int) -> str:
            """Have an effect, and never end."""
            effects.add(f"slow {n}")
            await self.halt("slow")
            return f"slow {n}"

        @tool(idempotent=True)
        async def fetch(n: int) -> str:
            """Have an effect that may come twice."""
            effects.add(f"fetch {n}")
            await self.halt("slow")
            return f"fetched {n}"

        @tool
        async def ask(n: int) -> str:
            """Have an effect once it may."""
            answer = await suture.interrupt(n)
            effects.add(f"ask {n} {answer}")
            return f"asked {n} {answer}"

        return [post, slow, fetch, ask]


class _Between(ChatModelAgentMiddleware[Any]):
    def __init__(self, cast: Cast) -> None:
        self.cast = cast

    async def before_model_rewrite_state(self, state, model_context):
        if model_context.turn == 2:
            await self.cast.halt("between")


class Deadly(SQLiteStore):
    """A store that kills its process right behind the given append."""

    def __init__(self, path: Path, deadline: int | None) -> None:
        super().__init__(path)
        self.deadline = deadline
        self.count = self.open = 0
        self.idle = asyncio.Event()

    async def append(self, run: str, first: int, records: Sequence[bytes], **options: Any) -> None:
        """Append, and die if it was the last one."""
        self.open += 1
        self.idle.clear()
        await super().append(run, first, records, **options)
        self.open -= 1
        if not self.open:
            self.idle.set()
        self.count += 1
        if self.count == self.deadline:
            os.kill(os.getpid(), signal.SIGKILL)


class Snapshots(MemoryStore):
    """A store that keeps, behind each append, what a killed process would have left."""

    def __init__(self, effects: Any) -> None:
        super().__init__()
        self.effects = effects
        self.taken: list[tuple[dict[str, list[bytes]], list[str]]] = []

    async def append(self, run: str, first: int, records: Sequence[bytes], **options: Any) -> None:
        """Append, and keep what there is now."""
        await super().append(run, first, records, **options)
        self.taken.append(({name: await self.load(name) for name in await self.runs()}, self.effects.all()))

    async def restore(self, journals: Mapping[str, list[bytes]]) -> MemoryStore:
        """Return a store as it was then."""
        store = MemoryStore()
        for run, journal in journals.items():
            await store.append(run, 0, journal)
        return store


class Counted:
    """Effects in memory."""

    def __init__(self, lines: Sequence[str] = ()) -> None:
        self.lines = list(lines)

    def add(self, line: str) -> None:
        """Have an effect."""
        self.lines.append(line)

    def all(self) -> list[str]:
        """Return all effects so far, in order of their names."""
        return sorted(self.lines)


def say(line: str) -> None:
    """Tell the test something."""
    os.write(1, f"{line}\n".encode())


async def main(scene: str, wire: str, directory: Path) -> None:
    """Run the scene until it halts, or until the end."""
    store = Deadly(directory / "runs.db", None)
    cast = Cast(scene, wire, store, Effects(directory / "effects"), HALTS.get(scene, ["slow"]))
    async for event in cast.agent.stream("go", checkpoint_id="k"):
        if isinstance(event, ToolFinished):
            # The result is journalled the moment it is finished; let that moment pass.
            for _ in range(50):
                await asyncio.sleep(0)
            await store.idle.wait()
            say(f"finished {event.call_id}")
        if isinstance(event, Interrupted):
            say(f"waits {event.interrupts[0].id}")
            await asyncio.Event().wait()
    say("ended")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
