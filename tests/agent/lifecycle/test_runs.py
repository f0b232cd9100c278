"""A run is one task with one reader: read once, awaited often, ended with its block, and it leaves nothing behind."""

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any
from weakref import ref

import pytest

from suture import ChatModelAgent, ConfigError, Delta, Message, ModelRequest, Outcome, Run, interrupt, send_event, tool
from suture.events import Custom, MessageDelta, RunFinished, ToolDelta
from suture.stores import MemoryStore
from suture.testing import ScriptedModel
from tests.agent.lifecycle.recording import collect
from tests.agent.lifecycle.speech import MESSAGE

LIMIT = 256
MANY = 1000


class Talkative:
    """A model that says one letter after another, and counts them."""

    wire = "message"
    profile = "pairing"

    def __init__(self, count: int = MANY) -> None:
        self.count = count
        self.said = 0

    async def stream(self, request: ModelRequest[Message], /) -> AsyncIterator[Any]:
        for _ in range(self.count):
            self.said += 1
            yield Delta(text="x")
        yield Message.assistant("x" * self.count)


class Hanging:
    """A model that never answers, and says when it is asked and when it is stopped."""

    wire = "message"
    profile = "pairing"

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.stopped = asyncio.Event()

    async def stream(self, request: ModelRequest[Message], /) -> AsyncIterator[Any]:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped.set()
        yield Message.assistant("never")


async def settle() -> None:
    """Let every task run until it waits for something."""
    for _ in range(3 * MANY):
        await asyncio.sleep(0)


def others() -> set[asyncio.Task[Any]]:
    """Return the tasks that are there beside this one."""
    return {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}


def test_past_256_unread_events_the_model_waits_and_nothing_is_lost():
    async def main() -> None:
        model = Talkative()
        run = ChatModelAgent(model=model).stream("go")
        reader = aiter(run)
        events = [await anext(reader)]
        await settle()
        held = model.said
        assert LIMIT - 2 <= held <= LIMIT + 2
        events.extend([await anext(reader) for _ in range(100)])
        await settle()
        assert model.said == held + 100
        events.extend([event async for event in reader])
        assert [event.sequence for event in events] == list(range(len(events)))
        assert len([event for event in events if isinstance(event, MessageDelta)]) == MANY
        assert (await run.result()).output == "x" * MANY

    asyncio.run(main())


def test_a_tool_never_waits_for_the_reader_and_nothing_is_lost():
    async def main() -> None:
        done = asyncio.Event()

        @tool
        async def stream() -> AsyncIterator[str]:
            """Stream."""
            for number in range(MANY):
                yield f"{number} "
            done.set()

        model = ScriptedModel([MESSAGE.calls(("c1", "stream", "{}")), "done"])
        run = ChatModelAgent(model=model, tools=[stream]).stream("go")
        reader = aiter(run)
        events = [await anext(reader)]
        async with asyncio.timeout(60):
            await done.wait()
        events.extend([event async for event in reader])
        assert [event.sequence for event in events] == list(range(len(events)))
        assert len([event for event in events if isinstance(event, ToolDelta)]) == MANY

    asyncio.run(main())


def test_a_run_that_is_no_longer_read_can_still_be_awaited():
    async def main() -> None:
        run = ChatModelAgent(model=Talkative()).stream("go")
        async for event in run:
            if isinstance(event, MessageDelta):
                break
        async with asyncio.timeout(60):
            assert (await run.result()).output == "x" * MANY

    asyncio.run(main())


def test_a_run_that_is_read_slowly_can_be_awaited_beside_and_loses_nothing():
    async def main() -> None:
        run = ChatModelAgent(model=Talkative()).stream("go")
        reader = aiter(run)
        events = [await anext(reader)]
        awaiting = asyncio.create_task(_result(run))
        await settle()
        events.extend([event async for event in reader])
        assert [event.sequence for event in events] == list(range(len(events)))
        assert len([event for event in events if isinstance(event, MessageDelta)]) == MANY
        assert (await awaiting).output == "x" * MANY

    asyncio.run(main())


async def _result(run: Run[Any]) -> Any:
    return await run.result()


def test_a_read_that_times_out_loses_nothing_and_stops_nothing():
    async def main() -> None:
        go_on = asyncio.Event()

        async def wait(_messages: Any) -> str:
            await go_on.wait()
            return "done"

        run = ChatModelAgent(model=ScriptedModel([wait])).stream("go")
        reader = aiter(run)
        events = [await anext(reader), await anext(reader)]
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(reader), 0.001)
        go_on.set()
        events.extend([event async for event in reader])
        assert [event.sequence for event in events] == list(range(len(events)))
        assert isinstance(events[-1], RunFinished)
        assert (await run.result()).output == "done"

    asyncio.run(main())


def test_awaited_first_it_keeps_no_events_and_cannot_be_read_any_more():
    async def main() -> None:
        run = ChatModelAgent(model=Talkative()).stream("go")
        await run.result()
        with pytest.raises(ConfigError, match="awaited first"):
            async for _ in run:
                pass

    asyncio.run(main())


@pytest.mark.parametrize("first", ["nothing", "a block", "some events"])
def test_once_it_is_awaited_it_keeps_no_events_that_nobody_reads(first: str):
    class Data:
        """What an event carries."""

    sent: list[Any] = []

    @tool
    async def work() -> str:
        """Send events."""
        for _ in range(10):
            data = Data()
            sent.append(ref(data))
            send_event(Custom("data", data))
        return "worked"

    async def main() -> int:
        agent = ChatModelAgent(model=ScriptedModel([MESSAGE.calls(("c1", "work", "{}")), "done"]), tools=[work])
        run = agent.stream("go")
        if first == "a block":
            await run.__aenter__()
        elif first == "some events":
            async for _ in run:
                break
        assert (await run.result()).output == "done"
        gc.collect()
        return sum(1 for each in sent if each() is not None)

    assert asyncio.run(main()) == 0
    assert len(sent) == 10


def test_it_can_be_awaited_any_number_of_times_also_at_once():
    async def main() -> None:
        model = ScriptedModel(["done"])
        run = ChatModelAgent(model=model).stream("go")
        first, second = await asyncio.gather(_result(run), _result(run))
        assert first is second is await run.result() is run.final_result
        assert len(model.requests) == 1

    asyncio.run(main())


@pytest.mark.parametrize("ended", [True, False])
def test_it_can_be_iterated_only_once(ended: bool):
    async def main() -> None:
        run = ChatModelAgent(model=ScriptedModel(["done"])).stream("go")
        if ended:
            assert len([event async for event in run]) == 4
        else:
            await anext(aiter(run))
        with pytest.raises(ConfigError, match="once"):
            async for _ in run:
                pass
        assert (await run.result()).output == "done"

    asyncio.run(main())


def test_it_does_not_start_before_its_first_use():
    async def main() -> None:
        model = ScriptedModel(["done"])
        run = ChatModelAgent(model=model).stream("go")
        await settle()
        assert model.requests == []
        assert others() == set()
        assert run.final_result is None
        await run.result()

    asyncio.run(main())


@pytest.mark.parametrize("used", ["read", "awaited"])
def test_a_run_that_nobody_refers_to_is_cancelled(used: str):
    async def main() -> None:
        model = Hanging()
        run = ChatModelAgent(model=model).stream("go")
        if used == "read":
            await anext(aiter(run))
            await model.asked.wait()
        else:
            awaiting = asyncio.create_task(_result(run))
            await model.asked.wait()
            awaiting.cancel()
            await asyncio.gather(awaiting, return_exceptions=True)
            del awaiting
        del run
        gc.collect()
        async with asyncio.timeout(60):
            await model.stopped.wait()
        await settle()
        assert others() == set()

    asyncio.run(main())


def test_to_leave_the_loop_over_a_temporary_run_ends_it():
    async def main() -> None:
        model = Hanging()
        async for _ in ChatModelAgent(model=model).stream("go"):
            await model.asked.wait()
            break
        gc.collect()
        async with asyncio.timeout(60):
            await model.stopped.wait()
        await settle()
        assert others() == set()

    asyncio.run(main())


@pytest.mark.parametrize("fails", [True, False])
def test_leaving_the_block_ends_the_run(fails: bool):
    async def enter(model: Hanging, runs: list[Run[Any]]) -> None:
        async with ChatModelAgent(model=model).stream("go") as run:
            runs.append(run)
            await anext(aiter(run))
            await model.asked.wait()
            if fails:
                raise LookupError("mine")

    async def main() -> None:
        model, runs = Hanging(), []
        if fails:
            with pytest.raises(LookupError, match="mine"):
                await enter(model, runs)
        else:
            await enter(model, runs)
        assert model.stopped.is_set()
        assert runs[0].final_result.outcome is Outcome.CANCELLED
        assert others() == set()

    asyncio.run(main())


def test_leaving_the_block_of_a_run_that_has_ended_changes_nothing():
    async def main() -> None:
        async with ChatModelAgent(model=ScriptedModel(["done"])).stream("go") as run:
            result = await run.result()
        assert run.final_result is result
        assert result.outcome is Outcome.FINISHED

    asyncio.run(main())


def test_a_block_around_an_unused_run_costs_nothing():
    async def main() -> None:
        model = ScriptedModel(["done"])
        async with ChatModelAgent(model=model).stream("go"):
            pass
        assert model.requests == []
        assert others() == set()

    asyncio.run(main())


async def _hang() -> str:
    await asyncio.Event().wait()
    return "never"


@pytest.mark.parametrize(
    "end", ["finished", "failed", "interrupted", "cancelled", "cancelled in tools", "timeout", "nested", "left"]
)
def test_no_task_is_left_behind_however_a_run_ends(end: str):
    async def main() -> None:
        started = asyncio.Event()

        @tool
        async def wait() -> str:
            """Wait for ever."""
            started.set()
            return await _hang()

        @tool(timeout=0.001)
        async def slow() -> str:
            """Take too long."""
            return await _hang()

        @tool
        async def ask() -> str:
            """Ask."""
            return await interrupt("may I?")

        def calls(*names: str) -> Message:
            return MESSAGE.calls(*((f"c{number}", name, "{}") for number, name in enumerate(names)))

        inner = ChatModelAgent(name="inner", description="Helps.", model=ScriptedModel([calls("wait")]), tools=[wait])
        nested = MESSAGE.calls(("c1", "inner", '{"request": "x"}'), ("c2", "wait", "{}"))
        replies: dict[str, list[Any]] = {
            "finished": [calls("slow", "slow"), "done"],
            "failed": [calls("slow"), OSError("disk full")],
            "interrupted": [calls("ask", "slow")],
            "cancelled": [calls("wait")],
            "cancelled in tools": [calls("wait", "wait", "slow")],
            "timeout": [calls("slow"), "done"],
            "nested": [nested],
            "left": [calls("wait", "wait")],
        }
        agent = ChatModelAgent(
            model=ScriptedModel(replies[end]), tools=[wait, slow, ask, inner.as_tool()], checkpoint_store=MemoryStore()
        )
        run = agent.stream("go", checkpoint_id="one")
        if end == "left":
            async with run:
                await anext(aiter(run))
                await started.wait()
        elif end in {"cancelled", "cancelled in tools", "nested"}:
            reading = asyncio.create_task(collect(run))
            await started.wait()
            await run.cancel()
            await reading
        else:
            await asyncio.gather(collect(run), return_exceptions=True)
        assert run.final_result is not None
        await asyncio.sleep(0)
        assert others() == set()

    asyncio.run(main())
