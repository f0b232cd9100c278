"""Cancels and other ends of a run that come rarely, and at a bad moment."""

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from suture import ChatModelAgent, ChatModelAgentMiddleware, Message, ModelFailoverConfig, ModelRetryConfig, tool
from suture.events import RunFinished, ToolFinished
from suture.testing import ScriptedModel
from tests.agent.durability.small_tools import calls


def stubborn(error: type[Exception]) -> Any:
    """A model that makes an error of its cancellation."""

    class Stubborn:
        wire, profile = "message", "pairing"
        asked = 0

        def __init__(self) -> None:
            self.begun = asyncio.Event()

        async def stream(self, request: Any) -> AsyncIterator[Any]:
            del request
            self.asked += 1
            self.begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise error("stopped") from None
            yield Message.assistant("never")

    return Stubborn()


def test_after_a_cancel_no_model_is_asked_again():
    first, second = stubborn(ConnectionError), stubborn(ConnectionError)
    agent: Any = ChatModelAgent(
        model=first,
        model_retry_config=ModelRetryConfig(backoff=lambda _: 0),
        failover=ModelFailoverConfig(models=[second]),
    )

    async def scene() -> Any:
        async with agent.stream("go") as run:
            await first.begun.wait()
            return await run.cancel()

    assert asyncio.run(asyncio.wait_for(scene(), 120)).outcome.value == "cancelled"
    assert (first.asked, second.asked) == (1, 0)


def test_after_a_cancel_no_tool_is_run_again_and_no_other_begins():
    ran: list[str] = []
    begun = asyncio.Event()

    @tool(retry=1)
    async def swallows() -> str:
        """Swallow the cancellation."""
        ran.append("swallows")
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ConnectionError("stopped") from None
        return ""

    @tool
    async def other() -> str:
        """Come later."""
        ran.append("other")
        return ""

    asked = calls(("1", "swallows", "{}"), ("2", "other", "{}"))
    agent = ChatModelAgent(model=ScriptedModel([asked]), tools=[swallows, other], sequential=True)

    async def scene() -> Any:
        async with agent.stream("go") as run:
            await begun.wait()
            return await run.cancel()

    assert asyncio.run(asyncio.wait_for(scene(), 120)).outcome.value == "cancelled"
    assert ran == ["swallows"]


def test_cleaning_up_is_one_task_with_time_limits_of_its_own():
    class Cleans(ChatModelAgentMiddleware[Any]):
        async def after_agent(self, state: Any, outcome: Any) -> None:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()

    result = ChatModelAgent(model=ScriptedModel(["done"]), middlewares=[Cleans()]).run_sync("go")
    assert [type(error) for error in result.cleanup_errors] == [TimeoutError]


class Bang(BaseException):
    """Something that is no error."""


def test_a_run_that_a_tool_blows_up_still_ends_for_whoever_reads_it():
    @tool
    async def bang() -> str:
        """Blow up."""
        raise Bang("boom")

    async def scene() -> Any:
        agent = ChatModelAgent(model=ScriptedModel([calls(("1", "bang", "{}"))]), tools=[bang])
        run, events = agent.stream("go"), list[Any]()
        with pytest.raises(Bang):  # noqa: PT012 - reading raises at the end
            async for event in run:
                events.append(event)
        return run, events

    run, events = asyncio.run(asyncio.wait_for(scene(), 120))
    assert isinstance(events[-1], RunFinished)
    assert run.final_result.outcome.value == "failed"


def test_something_of_the_tools_own_that_was_cancelled_is_the_tools_error():
    @tool
    async def work() -> str:
        """Await what was cancelled."""
        task = asyncio.ensure_future(asyncio.Event().wait())
        task.cancel()
        await task
        return ""

    result = ChatModelAgent(model=ScriptedModel([calls(("1", "work", "{}")), "done"]), tools=[work]).run_sync("go")
    assert (result.output, result.messages[2].is_error) == ("done", True)


def test_a_result_that_ends_the_run_is_told_even_if_the_run_is_cancelled_first():
    begun = asyncio.Event()

    @tool(return_directly=True)
    async def answer() -> str:
        """Answer."""
        return "the answer"

    @tool
    async def waits() -> str:
        """Wait."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    async def scene() -> list[str]:
        model = ScriptedModel([calls(("1", "answer", "{}"), ("2", "waits", "{}"))])
        async with ChatModelAgent(model=model, tools=[answer, waits]).stream("go") as run:
            await begun.wait()
            await run.cancel()
            return [event.name async for event in run if isinstance(event, ToolFinished)]

    assert asyncio.run(asyncio.wait_for(scene(), 120)) == ["answer"]


def test_a_cancel_that_a_model_makes_an_error_of_is_still_a_cancel():
    model = stubborn(ConnectionError)
    agent: Any = ChatModelAgent(model=model)

    async def scene() -> Any:
        async with agent.stream("go") as run:
            await model.begun.wait()
            return await run.cancel()

    result = asyncio.run(asyncio.wait_for(scene(), 120))
    assert (result.outcome.value, result.error) == ("cancelled", None)


def test_a_thread_that_was_given_up_is_not_run_beside_itself():
    begun: list[str] = []
    go_on = threading.Event()

    @tool(timeout=0.05, retry=2)
    def slow() -> str:
        """Take long."""
        begun.append("slow")
        go_on.wait(20)
        return ""

    result = ChatModelAgent(model=ScriptedModel([calls(("1", "slow", "{}")), "done"]), tools=[slow]).run_sync("go")
    go_on.set()
    assert begun == ["slow"]
    assert "may still be running" in result.messages[2].content
