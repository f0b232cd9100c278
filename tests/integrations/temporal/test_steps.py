"""The steps that an engine repeats and runs beside each other: what is stored decides, and the first writer wins."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from suture import Budget, ChatModelAgent, Message, RunContext, ToolCall, tool
from suture.errors import ModelServerError
from suture.events import Custom, RunFinished, ToolFinished
from suture.kernel.engine import Place, Step
from suture.kernel.input import Intake
from suture.kernel.lifecycle import read_result
from suture.kernel.storage import read_run
from suture.stores import MemoryStore
from suture.testing import ScriptedModel
from tests.agent.durability.victim import Effects
from tests.integrations.temporal.crew import make_agent, reply

NAME = "job"
UNKNOWN = "may or may not have run"


class Crew:
    """An agent with a run that several processes do the steps of."""

    def __init__(self, directory: Path, script: str, **settings: Any) -> None:
        self.agent = make_agent(directory, store=MemoryStore(), **settings)
        self.effects = Effects(directory / "effects")
        self.script = script

    def place(self, *, is_stopped: Callable[[], bool] = lambda: False) -> Place:
        """Return another process."""
        return Place(self.agent.spec, is_stopped=is_stopped)

    async def begin(self) -> Step:
        """Store the run and take its first turn."""
        await self.place().begin(NAME, Intake([Message.user(self.script)]), "test")
        return await self.place().advance(NAME)

    async def finish(self) -> Any:
        """Do what is left, each step in a process of its own; return the result."""
        while not (step := await self.place().advance(NAME)).outcome:
            await asyncio.gather(*(self.place().call(NAME, step.standing.turn, plan.index) for plan in step.calls))
        return await self.result()

    async def result(self) -> Any:
        run = await read_run(self.agent.spec, NAME)
        assert run is not None
        return read_result(run)


async def until(reached: Callable[[], bool]) -> None:
    """Let the other tasks go on until they have come so far."""
    for _ in range(100_000):
        if reached():
            return
        await asyncio.sleep(0)
    raise AssertionError("they never came so far")


def replies(result: Any) -> list[str]:
    return [str(message.content) for message in result.messages if message.role == "tool"]


def test_a_call_whose_end_was_lost_is_unknown_and_what_the_first_attempt_says_later_is_refused(tmp_path: Path):
    gate = asyncio.Event()

    @tool
    async def wait(ctx: RunContext[Any]) -> str:
        """Wait."""
        ctx.deps.append(ctx.idempotency_key)
        await gate.wait()
        return "late"

    async def scene() -> Any:
        crew, ran = Crew(tmp_path, "wait", tools=[wait]), []
        await crew.begin()
        zombie = Place(crew.agent.spec, ran)
        first = asyncio.create_task(zombie.call(NAME, 1, 0))
        await until(lambda: bool(ran))
        await Place(crew.agent.spec, ran).call(NAME, 1, 0)
        gate.set()
        await first
        return ran, await crew.finish()

    ran, result = asyncio.run(scene())
    assert len(ran) == 1
    assert len(replies(result)) == 1
    assert UNKNOWN in replies(result)[0]
    assert result.output == "done"


def test_an_idempotent_call_runs_again_and_both_attempts_have_one_key(tmp_path: Path):
    async def scene() -> Any:
        crew = Crew(tmp_path, "fetch")
        await crew.begin()
        first = asyncio.create_task(crew.place().call(NAME, 1, 0))
        await until(lambda: bool(crew.effects.all()))
        await crew.place().call(NAME, 1, 0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        return crew.effects.all(), await crew.finish()

    keys, result = asyncio.run(scene())
    assert len(keys) == 2
    assert len(set(keys)) == 1
    assert replies(result) == ["fetched"]


def test_a_process_that_ends_while_it_waits_for_another_attempt_leaves_the_turn_to_the_next(tmp_path: Path):
    def say(messages: Any) -> Any:
        if len(model.requests) < 2:
            raise ModelServerError("busy", status=503, retry_after=50.0)
        return reply(messages)

    async def scene() -> Any:
        crew = Crew(tmp_path, "post", model=model)
        await crew.place().begin(NAME, Intake([Message.user(crew.script)]), "test")
        first = asyncio.create_task(crew.place().advance(NAME))
        await until(lambda: bool(model.requests))
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        return await crew.finish(), crew.effects.all()

    model: ScriptedModel[Any] = ScriptedModel(say)
    result, effects = asyncio.run(scene())
    assert (result.output, len(effects), len(model.requests)) == ("done", 1, 3)


def test_a_step_that_is_repeated_changes_nothing(tmp_path: Path):
    async def scene() -> Any:
        crew = Crew(tmp_path, "post post")
        steps = [await crew.begin(), await crew.place().advance(NAME)]
        for _ in range(2):
            await asyncio.gather(*(crew.place().call(NAME, 1, index) for index in (0, 1)))
        ends = [await crew.place().advance(NAME) for _ in range(2)]
        await crew.place().call(NAME, 1, 0)
        return steps, ends, crew.effects.all(), await crew.result()

    steps, ends, effects, result = asyncio.run(scene())
    assert steps[0] == steps[1]
    assert ends[0] == ends[1]
    assert ends[0].outcome == "finished"
    assert len(effects) == 2
    assert len(result.messages) == 5


def test_of_two_processes_that_take_the_same_turn_one_is_refused(tmp_path: Path):
    async def scene() -> Any:
        crew = Crew(tmp_path, "post")
        await crew.place().begin(NAME, Intake([Message.user("post")]), "test")
        done = await asyncio.gather(*(crew.place().advance(NAME) for _ in range(3)), return_exceptions=True)
        return done, await crew.finish()

    done, result = asyncio.run(scene())
    assert sum(isinstance(each, Step) for each in done) == 1
    assert [message.role for message in result.messages] == ["user", "assistant", "tool", "assistant"]


def test_a_stopped_run_answers_its_calls_and_nobody_starts_one_later(tmp_path: Path):
    async def scene() -> Any:
        crew = Crew(tmp_path, "post hang")
        await crew.begin()
        hanging = asyncio.create_task(crew.place().call(NAME, 1, 1))
        await until(lambda: bool(crew.effects.all()))
        step = await crew.place().stop(NAME)
        await crew.place().call(NAME, 1, 0)
        hanging.cancel()
        await asyncio.wait([hanging])
        return step, crew.effects.all(), await crew.result()

    step, effects, result = asyncio.run(scene())
    assert step.outcome == "cancelled"
    assert len(effects) == 1
    assert len(replies(result)) == 2
    assert UNKNOWN in replies(result)[1]


def test_a_call_that_is_cancelled_with_its_run_says_so(tmp_path: Path):
    async def scene() -> Any:
        crew = Crew(tmp_path, "hang")
        await crew.begin()
        hanging = asyncio.create_task(crew.place(is_stopped=lambda: True).call(NAME, 1, 0))
        await until(lambda: bool(crew.effects.all()))
        hanging.cancel()
        await hanging
        await crew.place().stop(NAME)
        return await crew.result()

    assert UNKNOWN not in replies(asyncio.run(scene()))[0]


def test_calls_that_the_budget_does_not_pay_for_are_refused_in_whatever_process(tmp_path: Path):
    async def scene() -> Any:
        crew = Crew(tmp_path, "post post post", budget=Budget(tool_calls=2), on_max_iterations="answer")
        await crew.begin()
        return await crew.finish(), crew.effects.all()

    result, effects = asyncio.run(scene())
    assert len(effects) == 2
    assert "budget" in replies(result)[2]


def test_values_of_parallel_calls_are_merged_in_call_order(tmp_path: Path):
    @tool
    async def mark(ctx: RunContext[Any]) -> str:
        """Set a value."""
        ctx.values["last"] = ctx.call_id
        return "marked"

    async def scene() -> Any:
        crew = Crew(tmp_path, "mark mark", tools=[mark])
        await crew.begin()
        for index in (1, 0):
            await crew.place().call(NAME, 1, index)
        await crew.finish()
        run = await read_run(crew.agent.spec, NAME)
        assert run is not None
        return {key: kept.value for key, kept in run.state.values.items()}

    assert asyncio.run(scene()) == {"last": "c0.1"}


def test_an_agent_inside_a_call_goes_on_from_its_own_journal(tmp_path: Path):
    def say(messages: Any) -> Any:
        done = sum(message.role == "tool" for message in messages)
        names = ["post", "fetch"]
        return Message.assistant(tool_calls=[ToolCall(f"i{done}", names[done], "{}")]) if done < 2 else "inner done"

    async def scene() -> Any:
        crew = Crew(tmp_path, "inner")
        tools = {each.name: each for each in crew.agent.spec.tools}
        inner = ChatModelAgent(
            name="inner", description="Works.", model=ScriptedModel(say), tools=[tools["post"], tools["fetch"]]
        )
        call = ToolCall("c1", "inner", '{"request": "go"}')
        outer = ScriptedModel(lambda ms: "done" if len(ms) > 1 else Message.assistant(tool_calls=[call]))
        crew.agent = ChatModelAgent(model=outer, tools=[inner.as_tool()], checkpoint_store=crew.agent.checkpoint_store)
        await crew.begin()
        first = asyncio.create_task(crew.place().call(NAME, 1, 0))
        await until(lambda: len(crew.effects.all()) == 2)
        first.cancel()
        await asyncio.wait([first])
        return await crew.finish(), crew.effects.all()

    result, effects = asyncio.run(scene())
    assert replies(result) == ["inner done"]
    assert len(effects) == 3  # posted once; fetched twice, as it may be
    assert len(set(effects)) == 2


def test_what_a_step_gives_back_is_small(tmp_path: Path):
    async def scene() -> Any:
        return await Crew(tmp_path, " ".join(["read"] * 20)).begin()

    step = asyncio.run(scene())
    assert len(step.calls) == 20
    assert len(msgspec.json.encode(step)) <= 300 + 100 * 20


def test_an_event_that_cannot_be_written_takes_no_other_with_it(tmp_path: Path):
    @tool
    async def tell(ctx: RunContext[Any]) -> str:
        """Tell what cannot be written, and half a character."""
        ctx.send(Custom("huge", {"number": 2**70}))
        ctx.send(Custom("half", {"text": "caf\ud83d"}))
        return "told"

    async def scene() -> list[Any]:
        crew = Crew(tmp_path, "tell", tools=[tell])
        await crew.place().begin(NAME, Intake([Message.user("tell")]), "test", live=True)
        await crew.place().advance(NAME)
        await crew.finish()
        return (await crew.place().read_events(NAME))[0]

    events = asyncio.run(scene())
    assert [event.data for event in events if isinstance(event, Custom)] == [{"text": "caf\ufffd"}]
    assert [event.result.text for event in events if isinstance(event, ToolFinished)] == ["told"]
    assert isinstance(events[-1], RunFinished)
