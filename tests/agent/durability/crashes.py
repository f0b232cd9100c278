"""A run of 20 calls that is killed before and behind every write to its journal, and recovered by another process.

`python -m tests.agent.durability.crashes STORE DIRECTORY [POINT…]`. STORE is the path of a SQLite file or the address
of a PostgreSQL server. Each process is forked from this one, which has opened nothing. Prints how many points there
were; ends with the first that went wrong.
"""

import asyncio
import os
import signal
import sys
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from suture import ChatModelAgent, Outcome, RunContext, recover, tool
from suture.kernel.storage import read_run
from suture.stores import PostgresStore, SQLiteStore
from suture.testing import ScriptedModel
from tests.agent.durability.scenes import UNKNOWN, acceptable, results, roles, turn
from tests.agent.durability.victim import Calls, Effects

NAME = "job"
OUTER = [
    ["post 1", "post 2", "fetch 3", "post 4"],
    ["inner 5", "post 9"],
    ["ask 10", "post 11", "pay 12"],
    ["log 13", "fetch 14", "log 15"],
    ["post 16"],
    ["fetch 17", "post 18", "log 19", "post 20"],
]
INNER = [["post 6", "fetch 7"], ["log 8"]]
COUNT = sum(map(len, [*OUTER, *INNER]))
REPLIES = {"post": "posted", "fetch": "fetched", "log": "one two", "ask": "yes", "pay": "paid", "inner": "done"}


def script(turns: Sequence[Sequence[str]]) -> Any:
    """Return what a model says that takes these turns."""
    calls: Calls = [[_call(*word.split()) for word in words] for words in turns]

    def reply(messages: Any) -> Any:
        taken = roles(messages).count("assistant")
        return turn(*calls[taken]) if taken < len(calls) else "done"

    return ScriptedModel(reply, chunk_size=3)


def _call(name: str, number: str) -> tuple[str, str, dict[str, str]]:
    return f"c{number}", name, {"request": "go"} if name == "inner" else {}


def make_agent(store: Any, effects: Effects) -> ChatModelAgent[str]:
    """Return the agent, whose tools leave a line with the id of their call; those of the inner agent as well."""

    async def act(ctx: RunContext[Any], reply: str) -> str:
        effects.add(ctx.call_id)
        await asyncio.sleep(0)  # so that others are written between the effect and its end
        return reply

    @tool
    async def post(ctx: RunContext[Any]) -> str:
        """Have an effect that must not happen twice."""
        return await act(ctx, "posted")

    @tool(requires_approval=True)
    async def pay(ctx: RunContext[Any]) -> str:
        """Have an effect that somebody has approved."""
        return await act(ctx, "paid")

    @tool(idempotent=True)
    async def fetch(ctx: RunContext[Any]) -> str:
        """Have an effect that may happen twice."""
        return await act(ctx, "fetched")

    @tool
    async def ask(ctx: RunContext[Any]) -> str:
        """Have an effect once there is an answer."""
        return await act(ctx, await ctx.interrupt("May I?"))

    @tool
    async def log(ctx: RunContext[Any]) -> AsyncIterator[str]:
        """Have an effect between two pieces of output."""
        yield "one "
        yield await act(ctx, "two")

    tools = [post, pay, fetch, ask, log]
    inner = ChatModelAgent(name="inner", description="Works.", model=script(INNER), tools=tools)
    return ChatModelAgent(name="crew", model=script(OUTER), tools=[*tools, inner.as_tool()], checkpoint_store=store)


async def go_on(agent: ChatModelAgent[str]) -> Any:
    """Start the run, recover it, or answer it, until it has come to its end; return its result."""
    session = agent.session(NAME)
    if await session.status() == "new":
        await session.run("go")
    await recover([agent], agent.checkpoint_store)
    while (result := await session.result()).outcome is Outcome.INTERRUPTED:
        await session.resume(answers={each.id: "yes" if each.name == "ask" else True for each in result.interrupts})
    return result


class Sweep:
    """One store and one file of effects for each point at which the run is killed."""

    def __init__(self, target: str, directory: Path) -> None:
        self.target, self.directory = target, directory

    def visit(self, point: int) -> bool:
        """Kill the run at a point, recover it, and check what is left; tell whether it came so far."""
        ended = _in_process(lambda: self._run(point))
        if ended == -signal.SIGKILL:
            ended = _in_process(lambda: self._recover(point))
            assert ended == 0, f"point {point} went wrong"
            return True
        assert ended == 0, f"the run failed at point {point}"
        return False

    def _open(self, point: int) -> Any:
        if self.target.startswith("postgresql:"):
            return PostgresStore(self.target, schema=f"{self.directory.name} {point}")
        return SQLiteStore(f"{self.target}.{point}")

    def _effects(self, point: int) -> Effects:
        return Effects(self.directory / f"effects.{point}")

    async def _run(self, point: int) -> None:
        """Run until the process is killed: before write number 0, behind it, before number 1, and so on."""
        store, count = self._open(point), 0
        write = store.append

        async def append(*arguments: Any, **options: Any) -> None:
            nonlocal count
            number, count = count, count + 1
            if point == 2 * number:
                os.kill(os.getpid(), signal.SIGKILL)
            await write(*arguments, **options)
            if point == 2 * number + 1:
                os.kill(os.getpid(), signal.SIGKILL)

        store.append = append
        with store:
            await go_on(make_agent(store, self._effects(point)))

    async def _recover(self, point: int) -> None:
        effects = self._effects(point)
        with self._open(point) as store:
            agent = make_agent(store, effects)
            ended, before = await _read_ended(agent), Counter(effects.all())
            result = await go_on(agent)
            inner = await _read_inner(agent)
        after = Counter(effects.all())
        assert (result.outcome, result.output) == (Outcome.FINISHED, "done")
        assert acceptable(result.messages)
        assert [call for call, _ in results(result.messages)] == [
            f"c{word.split()[1]}" for each in OUTER for word in each
        ]
        replies = {**results_of(result.messages), **inner}
        for word in [word for each in [*OUTER, *INNER] for word in each]:
            name, number = word.split()
            call = f"c{number}"
            if name != "fetch":
                assert after[call] <= 1, f"{call} happened twice"
            if call in ended:
                assert after[call] == before[call], f"{call} had ended and ran again"
            if replies[call] != UNKNOWN.format(name, call):
                assert replies[call] == REPLIES[name], f"{call}: {replies[call]}"
                assert after[call] or name == "inner", f"{call} is told as done"
            else:
                assert name in ("post", "log", "ask", "pay"), f"{call} may run again"
                assert call not in ended, f"the result of {call} is lost"


def results_of(messages: Any) -> dict[str, str]:
    return dict(results(messages))


async def _read_ended(agent: ChatModelAgent[str]) -> set[str]:
    """Return the calls whose ends are stored."""
    run = await read_run(agent.spec, NAME)
    if run is None:
        return set()
    ended = results_of(run.history).keys() | await _read_inner(agent)
    return {*ended, *(call.id for index, call in enumerate(run.last_calls()) if index in run.state.ended)}


async def _read_inner(agent: ChatModelAgent[str]) -> dict[str, str]:
    """Return the results of the inner agent's calls."""
    store: Any = agent.checkpoint_store
    found: dict[str, str] = {}
    for name in await store.runs():
        run = await read_run(agent.spec, name) if name != NAME else None
        if run is not None:
            found |= results_of(run.history)
    return found


def _in_process(work: Callable[[], Coroutine[Any, Any, None]]) -> int:
    """Do something in a process of its own; return its exit code, negative if it was killed."""
    child = os.fork()
    if not child:
        try:
            asyncio.run(work())
        except BaseException:  # noqa: BLE001 - all that is left of it is its exit code
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(target: str, directory: str, *points: str) -> None:
    """Visit the given points, or one after another until the run comes to its end."""
    sweep = Sweep(target, Path(directory))
    assert COUNT == 20
    if points:
        assert all(sweep.visit(int(point)) for point in points)
        print(len(points))
        return
    point = 0
    while sweep.visit(point):
        point += 1
    print(point)


if __name__ == "__main__":
    main(*sys.argv[1:])
