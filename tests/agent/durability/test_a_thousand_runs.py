"""A thousand runs of one agent at once, interrupted and cancelled anywhere, have nothing to do with each other."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

import suture
from suture import ChatModelAgent, ChatModelAgentMiddleware, Outcome, Run, RunResult, tool
from suture.events import Custom, Event, Interrupted, RunFinished, ToolFinished, ToolStarted
from suture.stores import MemoryStore, SQLiteStore
from suture.testing import ScriptedModel
from tests.agent.durability.scenes import WIRES, acceptable, check_stream, play, results, roles, said, turn


class Crowd:
    """One agent for everybody. The question is the number of the run, and all it does follows from that."""

    def __init__(self, wire: str, store: Any) -> None:
        self.wire = wire
        self.effects: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.strangers: list[Any] = []
        model = ScriptedModel(self._reply, wire=wire, chunk_size=7)
        inner = ChatModelAgent(
            name="inner",
            description="Inner.",
            model=ScriptedModel(self._reply, wire=wire),
            tools=self._tools(),
            middlewares=[_Own(self)],
        )
        self.agent = ChatModelAgent(
            name="a",
            model=model,
            tools=[*self._tools(), inner.as_tool()],
            middlewares=[_Own(self)],
            checkpoint_store=store,
        )

    def own(self, number: str, place: str) -> None:
        """Check that the values here are this run's; set them where there are none."""
        run = suture.current_run()
        for mapping in (run.values, run.session, run.cache):
            value = mapping.setdefault("number", number)
            if value != number:
                self.strangers.append((place, number, value))

    async def _reply(self, messages: Any) -> Any:
        number, depth = said(messages[0]).split()
        chance = random.Random(f"{number} {depth} {len(messages)}")
        for _ in range(chance.randrange(3)):
            await asyncio.sleep(0)
        turns = roles(messages).count("assistant")
        if said(messages[-1]) == "next" or turns >= (3 if depth == "0" else 1):
            return f"answer {number}"
        names = ["work", "work", "ask", "stream", "inner" if depth == "0" else "work"]
        calls: list[tuple[Any, ...]] = []
        for index in range(chance.randrange(1, 4)):
            name = chance.choice(names)
            call_id = f"{number}-{depth}-{len(messages)}-{index}"
            arguments = {"request": f"{number} {call_id}"} if name == "inner" else {"number": number, "me": call_id}
            calls.append((call_id, name, arguments))
        return turn(*calls, text=f"turn {turns} of {number}", wire=self.wire)

    def _tools(self) -> list[Any]:
        async def effect(number: str, me: str) -> str:
            self.own(number, me)
            for _ in range(random.Random(me).randrange(4)):
                await asyncio.sleep(0)
            self.own(number, me)
            suture.send_event(Custom("effect", me))
            self.effects[me] += 1
            return f"did {me}"

        @tool
        async def work(number: str, me: str) -> str:
            """Work."""
            return await effect(number, me)

        @tool
        async def ask(number: str, me: str) -> str:
            """Ask, then work."""
            if await suture.interrupt({"of": number}, state=number) != number:
                self.strangers.append((me, number, "answer"))
            state, found = suture.interrupt_state()
            if found and state != number:
                self.strangers.append((me, number, state))
            return await effect(number, me)

        @tool
        async def stream(number: str, me: str) -> AsyncIterator[str]:
            """Work, in pieces."""
            yield (await effect(number, me))[:3]
            await asyncio.sleep(0)
            yield f" {me}"

        return [work, ask, stream]

    async def live(self, number: int, seed: int) -> None:
        """Ask a question, and see it through whatever happens on the way."""
        chance = random.Random(f"{seed} {number}")
        name = f"run {number}"
        result = await self.watched(self.agent.stream(f"{number} 0", checkpoint_id=name), number, chance)
        for _ in range(40):
            if result.outcome is Outcome.FINISHED:
                break
            if result.outcome is Outcome.CANCELLED and chance.random() < 0.3:
                result = await self.watched(self.agent.stream("next", checkpoint_id=name), number, chance)
                continue
            waiting = [interrupt for interrupt in result.interrupts if chance.random() < 0.7]
            assert all(interrupt.info == {"of": str(number)} for interrupt in result.interrupts)
            answers = {interrupt.id: str(number) for interrupt in waiting}
            result = await self.watched(self.agent.stream(resume=name, answers=answers), number, chance)
        assert result.outcome is Outcome.FINISHED
        assert result.output == f"answer {number}"
        assert result.session["number"] == str(number)
        assert said(result.messages[0]) == f"{number} 0"

    async def watched(self, run: Run[Any], number: int, chance: random.Random) -> RunResult[Any]:
        """Read all events of a run, cancel it somewhere or not, and check what it gave."""
        deadline = chance.choice([None, None, chance.randrange(1, 40)])
        point = chance.choice(["now", "now", "after_model", "after_tools"])
        events: list[Event] = []
        cancelling: asyncio.Task[RunResult[Any]] | None = None
        async for event in run:
            events.append(event)
            if len(events) == deadline:
                cancelling = asyncio.ensure_future(run.cancel(cast("Any", point), recursive=chance.random() < 0.5))
        result = await run.result()
        if cancelling is not None:
            assert await cancelling is result
        self.check(events, result, number)
        return result

    def check(self, events: list[Event], result: RunResult[Any], number: int) -> None:
        """Check that no event is lost, doubled or another's, and that the messages are acceptable."""
        check_stream(events)
        last = events[-1]
        assert isinstance(last, RunFinished)
        assert last.outcome == result.outcome
        self.outcomes[last.outcome] += 1
        assert {event.run_path[0] for event in events} == {"a"}
        assert len({event.run_id for event in events if event.run_path == ("a",)}) == 1
        finished = Counter(event.call_id for event in events if isinstance(event, ToolFinished))
        assert set(finished.values()) <= {1}
        started = {event.call_id for event in events if isinstance(event, ToolStarted)}
        assert all(call.startswith(f"{number}-") for call in started | set(finished))
        effects = [event.data for event in events if isinstance(event, Custom)]
        assert all(me.startswith(f"{number}-") for me in effects)
        paused = [event for event in events if isinstance(event, Interrupted) and event.run_path == ("a",)]
        assert len(paused) == (result.outcome is Outcome.INTERRUPTED)
        if result.outcome is Outcome.INTERRUPTED:
            # What waits is open, and nothing else is wrong.
            assert not suture.repair(list(result.messages), wire=self.wire, tail="keep").changed
        else:
            assert acceptable(result.messages, self.wire)
        for call, text in results(result.messages):
            if text.startswith("did"):
                assert self.effects[call] == 1


class _Own(ChatModelAgentMiddleware[Any]):
    """Checks in every hook that it is at home."""

    def __init__(self, crowd: Crowd) -> None:
        self.crowd = crowd

    def _look(self, messages: Any, place: str) -> None:
        first = said(messages[0])
        if first != "next":
            self.crowd.own(first.split()[0], place)

    def before_agent(self, context):
        self._look(context.messages, "before_agent")

    async def before_model_rewrite_state(self, state, model_context):
        await asyncio.sleep(0)
        self._look(state.messages, "before_model")

    async def after_model_rewrite_state(self, state, model_context):
        await asyncio.sleep(0)
        self._look(state.messages, "after_model")

    async def wrap_tool_call(self, call, proceed):
        self.crowd.own(call.call_id.split("-")[0], "wrap_tool_call")
        return await proceed(call)

    async def after_agent(self, state, outcome):
        await asyncio.sleep(0)
        self._look(state.messages, "after_agent")


async def crowd_of(size: int, crowd: Crowd, seed: int) -> None:
    troubles: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, trouble: troubles.append(trouble))
    await asyncio.gather(*(crowd.live(number, seed) for number in range(size)))
    assert (crowd.strangers, troubles) == ([], [])
    assert [me for me, count in crowd.effects.items() if count != 1] == []
    for outcome in ("finished", "interrupted", "cancelled"):
        assert crowd.outcomes[outcome] > size // 10, "the crowd is too tame to show anything"
    assert crowd.outcomes["failed"] == 0


def test_the_check_for_strangers_bites():
    crowd = Crowd("message", MemoryStore())

    @tool
    async def lie() -> str:
        """Claim to be another run."""
        crowd.own("8", "lie")
        return "lied"

    model = ScriptedModel([turn(("7-0", "lie")), "done"])
    agent = ChatModelAgent(name="a", model=model, tools=[lie], middlewares=[_Own(crowd)])

    async def scene():
        await agent.run("7 0")
        assert crowd.strangers == [("lie", "8", "7")] * 3

    play(scene())


def test_a_hundred_runs_at_once():
    play(crowd_of(100, Crowd("message", MemoryStore()), seed=1), patience=300)


@pytest.mark.parametrize("wire", WIRES)
def test_thirty_runs_at_once_on_one_file(tmp_path: Path, wire: str):
    with SQLiteStore(tmp_path / "runs.db") as store:
        play(crowd_of(30, Crowd(wire, store), seed=2), patience=300)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3, 6))
@pytest.mark.parametrize("wire", WIRES)
def test_a_thousand_runs_at_once_again_and_again(seed: int, wire: str):
    play(crowd_of(1000, Crowd(wire, MemoryStore()), seed=seed), patience=300)
