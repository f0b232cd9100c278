"""A failure that passes, wherever it comes in a run: what was asked, what is kept, and who stops the wait."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from suture import (
    Budget,
    ChatModelAgent,
    ChatModelAgentMiddleware,
    Compaction,
    Message,
    ModelRequest,
    ModelRetryConfig,
    Outcome,
    RunResult,
    ToolCall,
    tool,
)
from suture.errors import ModelServerError, RateLimitError, RetryExhausted
from suture.events import MessageDelta, MessageFinished, ModelStarted, RetryScheduled
from suture.kernel import ModelFailoverConfig, retries
from suture.stores import MemoryStore, SQLiteStore
from suture.testing import ScriptedModel

SLOW = 50.0
"""Seconds that a provider demands: nobody may wait for them here."""


def busy(wait: float | None = None) -> ModelServerError:
    return ModelServerError("overloaded", status=503, retry_after=wait)


def call(name: str, arguments: str = "{}") -> Message:
    return Message.assistant(tool_calls=[ToolCall("c1", name, arguments)])


def fails_first(*replies: Any, wait: float | None = None, times: int = 1) -> ScriptedModel[Any]:
    """Return a model that fails before each of its replies."""
    return ScriptedModel([each for reply in replies for each in (*(busy(wait) for _ in range(times)), reply)])


ran: list[str] = []


@tool
def look() -> str:
    """Look."""
    ran.append("look")
    return "seen"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch):
    ran.clear()
    monkeypatch.setattr(retries, "_FIRST_HICCUP", 0.0)


# What does not count


def test_attempts_are_no_turns_and_hooks_see_a_turn_once_and_each_attempt():
    class Counts(ChatModelAgentMiddleware[Any]):
        turns, attempts = 0, 0

        def before_model_rewrite_state(self, state: Any, model_context: Any) -> None:
            self.turns += 1

        async def wrap_model_call(self, request: ModelRequest[Any], proceed: Any) -> Any:
            self.attempts += 1
            return await proceed(request)

    counts = Counts()
    model = fails_first(call("look"), "done", times=2)
    agent = ChatModelAgent(
        model=model, tools=[look], middlewares=[counts], max_iterations=2, budget=Budget(tool_calls=1)
    )
    assert agent.run_sync("go").output == "done"
    assert (counts.turns, counts.attempts, ran) == (2, 6, ["look"])


def test_what_a_cut_stream_said_is_taken_back_and_does_not_come_into_the_history():
    async def scene() -> tuple[list[Any], RunResult[Any]]:
        model = CutOnce(["half of it"])
        async with ChatModelAgent(model=model).stream("go") as run:
            events = [event async for event in run]
        return events, await run.result()

    events, result = asyncio.run(scene())
    taken_back = {event.message_id for event in events if isinstance(event, RetryScheduled)}
    told = [event for event in events if isinstance(event, MessageDelta) and event.message_id not in taken_back]
    assert "".join(event.delta.text for event in told) == "whole"
    assert len(taken_back) == 1
    assert [event.attempt for event in events if isinstance(event, ModelStarted)] == [1, 2]
    assert [event.text for event in events if isinstance(event, MessageFinished)] == ["whole"]
    assert [message.content for message in result.messages] == ["go", "whole"]


class CutOnce(ScriptedModel[Any]):
    """A model whose first stream is cut."""

    def __init__(self, replies: Any, error: Exception | None = None) -> None:
        self._first = ScriptedModel(replies, chunk_size=2, cut_after=2, error=error or busy())
        super().__init__(["whole"], chunk_size=2)

    async def stream(self, request: ModelRequest[Any], /) -> AsyncIterator[Any]:
        model = super() if self._first.requests else self._first
        async for piece in model.stream(request):
            yield piece


def test_an_answer_of_the_wrong_form_is_asked_for_again_beside_failures():
    model = fails_first("no number", "42", times=2)
    assert ChatModelAgent(model=model, output_type=int).run_sync("go").output == 42
    assert len(model.requests) == 6


def test_a_step_of_a_run_and_a_conversation_try_again():
    async def scene() -> tuple[Any, Any, Any]:
        store = MemoryStore()
        model = fails_first(call("look"), "done", "and on", times=2)
        agent = ChatModelAgent(model=model, tools=[look], checkpoint_store=store)
        standing = await agent.advance("k", "go")
        while standing.phase != "end":
            standing = await agent.advance("k")
        said = [(await agent.session("talk").run(text)).output for text in ("more",)]
        return standing, said, len(model.requests)

    standing, said, requests = asyncio.run(scene())
    assert (standing.turn, said, requests, ran) == (2, ["and on"], 9, ["look"])


# Agents inside agents


def test_an_agent_that_fails_as_a_tool_has_tried_and_its_call_is_told_so():
    asked = ScriptedModel(lambda _: busy())
    inner = ChatModelAgent(name="inner", description="Works.", model=asked)
    model = ScriptedModel([call("inner", '{"request": "go"}'), lambda messages: messages[-1].content])
    output = ChatModelAgent(model=model, tools=[inner.as_tool()]).run_sync("go").output
    assert "overloaded (status 503); 3 attempts failed" in output
    assert (len(asked.requests), len(model.requests)) == (3, 2)


@pytest.mark.parametrize("place", ["hook", "wrapper", "model"])
def test_what_an_inner_agent_gave_up_is_not_tried_again_by_the_outer_one(place: str):
    asked = ScriptedModel(lambda _: busy())
    inner = ChatModelAgent(name="inner", model=asked)

    class Asks(ChatModelAgentMiddleware[Any]):
        async def before_model_rewrite_state(self, state: Any, model_context: Any) -> None:
            if place == "hook":
                await inner.run("go")

        async def wrap_model_call(self, request: ModelRequest[Any], proceed: Any) -> Any:
            return Message.assistant((await inner.run("go")).output) if place == "wrapper" else await proceed(request)

    class Delegates:
        wire, profile = "message", "pairing"

        async def stream(self, request: ModelRequest[Any], /) -> AsyncIterator[Any]:
            yield Message.assistant((await inner.run("go")).output)

    agent = ChatModelAgent(model=Delegates() if place == "model" else ScriptedModel(["done"]), middlewares=[Asks()])
    with pytest.raises(ModelServerError, match=r"; 3 attempts failed$"):
        agent.run_sync("go")
    assert len(asked.requests) == 3


# The summariser

LONG = [Message.user("word " * 200) if place % 2 == 0 else Message.assistant("word " * 200) for place in range(12)]


def test_a_summariser_that_fails_twice_still_gives_its_summary():
    summarizer = ScriptedModel(lambda _: busy() if len(summarizer.requests) < 3 else "They spoke of words.")
    model = ScriptedModel(["done"])
    compaction = Compaction(2000, 1200, summarizer, keep_user_tokens=100)
    ChatModelAgent(model=model, middlewares=[compaction]).run_sync([*LONG, Message.user("go")])
    assert any("They spoke of words." in str(message.content) for message in model.requests[0].messages)
    prompts = [request.messages[0].content for request in summarizer.requests]
    assert prompts[0] == prompts[1] == prompts[2]
    assert len(set(prompts)) == len(prompts) - 2


def test_a_summariser_that_goes_on_failing_costs_three_requests_and_not_the_run():
    asked = ScriptedModel(lambda _: busy())
    inner = ChatModelAgent(name="summarizer", model=asked)

    async def summarize(prompt: str) -> str:
        return str((await inner.run(prompt)).output)

    by_itself = ScriptedModel(lambda _: busy())
    for summarizer, model in ((summarize, asked), (by_itself, by_itself)):
        compaction = Compaction(2000, 1200, summarizer, keep_user_tokens=100)
        agent = ChatModelAgent(model=ScriptedModel(["done"]), middlewares=[compaction])
        assert agent.run_sync([*LONG, Message.user("go")]).output == "done"
        assert len(model.requests) == 3


# Who stops the wait


def stop_while_it_waits(model: Any, stop: Callable[[Any], Any], **settings: Any) -> RunResult[Any]:
    """Run until the agent waits before it asks again, stop it there, and return the result."""

    async def scene() -> RunResult[Any]:
        agent = ChatModelAgent(model=model, tools=[look], **settings)
        async with asyncio.timeout(SLOW / 2), agent.stream("go") as run:
            async for event in run:
                if isinstance(event, RetryScheduled):
                    return await stop(run)
        raise AssertionError("it never waited")

    return asyncio.run(scene())


def test_a_cancel_ends_the_wait_and_nothing_is_asked_again():
    model = fails_first(call("look"), "done", wait=SLOW)
    result = stop_while_it_waits(model, lambda run: run.cancel())
    assert (result.outcome, len(model.requests)) == (Outcome.CANCELLED, 1)
    assert [message.role for message in result.messages] == ["user"]


def test_what_was_taken_back_is_not_kept_when_the_wait_is_cancelled():
    model = CutOnce(["half of it"], busy(SLOW))
    result = stop_while_it_waits(model, lambda run: run.cancel())
    assert [message.content for message in result.messages] == ["go"]


def test_a_cancel_after_the_model_lets_the_turn_end_and_runs_no_tool(monkeypatch: pytest.MonkeyPatch):
    gate = asyncio.Event()

    async def sleep(_: float) -> None:
        await gate.wait()

    async def stop(run: Any) -> RunResult[Any]:
        cancelling = asyncio.ensure_future(run.cancel(at="after_model"))
        asyncio.get_running_loop().call_soon(gate.set)
        return await cancelling

    monkeypatch.setattr("suture.kernel.model_call.asyncio.sleep", sleep)
    model = fails_first(call("look"), "done", wait=SLOW)
    result = stop_while_it_waits(model, stop)
    assert (result.outcome, len(model.requests), ran) == (Outcome.CANCELLED, 2, [])
    assert [message.role for message in result.messages] == ["user", "assistant", "tool"]


def test_a_cancel_after_the_model_that_waits_no_longer_stops_at_once():
    model = fails_first(call("look"), "done", wait=SLOW)
    result = stop_while_it_waits(model, lambda run: run.cancel(at="after_model", timeout=0.01))
    assert (result.outcome, len(model.requests)) == (Outcome.CANCELLED, 1)


def test_a_timeout_around_a_run_ends_the_wait():
    model = fails_first("done", wait=SLOW)

    async def scene() -> None:
        async with asyncio.timeout(0.01):
            await ChatModelAgent(model=model).run("go")

    with pytest.raises(TimeoutError):
        asyncio.run(scene())
    assert len(model.requests) == 1


def test_another_model_is_not_asked_after_a_cancel():
    model, other = fails_first("done", wait=SLOW), ScriptedModel(["done"])
    failover = ModelFailoverConfig(models=[other])
    result = stop_while_it_waits(model, lambda run: run.cancel(), failover=failover)
    assert (result.outcome, len(other.requests)) == (Outcome.CANCELLED, 0)


PROGRAM = f"""
import logging, signal, sys
from suture import ChatModelAgent, Message, ToolCall, tool
from suture.errors import RateLimitError
from suture.stores import SQLiteStore
from suture.testing import ScriptedModel

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started us may ignore it

@tool
def work() -> str:
    open(sys.argv[1] + "/effects", "a").write("worked ")
    return "worked"

call = Message.assistant(tool_calls=[ToolCall("c1", "work", "{{}}")])
model = ScriptedModel([RateLimitError("slow", retry_after=0), call, RateLimitError("slow", retry_after={SLOW})])
agent = ChatModelAgent(model=model, tools=[work], checkpoint_store=SQLiteStore(sys.argv[1] + "/runs.db"))
logging.basicConfig(stream=sys.stdout, level=logging.INFO)
try:
    agent.run_sync("go", checkpoint_id="k")
except KeyboardInterrupt:
    print("interrupted", len(model.requests), flush=True)
"""


def wait_and_end(directory: Path, how: signal.Signals) -> str:
    """Run the program until it waits with its tool done, and end it; return the rest of what it says."""
    command = [sys.executable, "-c", PROGRAM, str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        while f"the next in {SLOW}" not in (line := program.stdout.readline()):
            assert line, "it ended"
        program.send_signal(how)
        return program.communicate(timeout=SLOW / 2)[0]


def test_ctrl_c_ends_the_wait_of_a_blocking_run(tmp_path: Path):
    assert wait_and_end(tmp_path, signal.SIGINT) == "interrupted 3\n"


def test_a_process_that_is_killed_while_it_waits_is_followed_by_another(tmp_path: Path):
    wait_and_end(tmp_path, signal.SIGKILL)

    @tool
    def work() -> str:
        raise AssertionError("it ran already")

    async def scene() -> RunResult[Any]:
        with SQLiteStore(tmp_path / "runs.db") as store:
            agent = ChatModelAgent(model=fails_first("done", times=2), tools=[work], checkpoint_store=store)
            return await agent.resume("k")

    result = asyncio.run(scene())
    assert (result.output, (tmp_path / "effects").read_text()) == ("done", "worked ")
    assert [message.role for message in result.messages] == ["user", "assistant", "tool", "assistant"]


# What the program sets


def test_a_tools_own_retries_are_the_programs_and_count_on_top():
    asked = ScriptedModel(lambda _: busy())
    inner = ChatModelAgent(name="inner", model=asked)

    @tool(retry=1)
    async def ask() -> str:
        """Ask."""
        return str((await inner.run("go")).output)

    ChatModelAgent(model=ScriptedModel([call("ask"), "done"]), tools=[ask]).run_sync("go")
    assert len(asked.requests) == 6


def test_a_config_of_the_programs_own_retries_what_an_inner_agent_gave_up():
    asked = ScriptedModel(lambda _: RateLimitError("slow"))
    inner = ChatModelAgent(name="inner", model=asked, model_retry_config=None)

    class Asks(ChatModelAgentMiddleware[Any]):
        async def wrap_model_call(self, request: ModelRequest[Any], proceed: Any) -> Any:
            return Message.assistant((await inner.run("go")).output)

    config = ModelRetryConfig(max_retries=1, backoff=lambda _: 0)
    agent = ChatModelAgent(model=ScriptedModel([]), middlewares=[Asks()], model_retry_config=config)
    with pytest.raises(RetryExhausted, match="2 attempts failed"):
        agent.run_sync("go")
    assert len(asked.requests) == 2
