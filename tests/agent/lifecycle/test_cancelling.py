"""Cancelling: from inside a run, before its first step, and what was cancelled by nobody."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from suture import (
    Callbacks,
    ChatModelAgent,
    ChatModelAgentMiddleware,
    Component,
    ConfigError,
    ModelFailoverConfig,
    ModelRequest,
    ModelRetryConfig,
    Outcome,
    Run,
    check,
    interrupt,
    replace,
    tool,
)
from suture.errors import ComponentCancelledError
from suture.events import RetryScheduled
from suture.stores import MemoryStore
from suture.testing import ScriptedModel
from tests.agent.lifecycle.recording import collect
from tests.agent.lifecycle.speech import MESSAGE


@tool
async def look() -> str:
    """Look."""
    return "seen"


@tool
async def ask() -> str:
    """Ask."""
    return str(await interrupt("may I?"))


def only(hook: str, function: Any) -> ChatModelAgentMiddleware[Any]:
    return type("Only", (ChatModelAgentMiddleware,), {hook: staticmethod(function)})()


def calls(*names: str) -> Any:
    return MESSAGE.calls(*((f"c{number}", name, "{}") for number, name in enumerate(names, 1)))


# From inside the run


@pytest.mark.parametrize("at", ["now", "after_model", "after_tools"])
@pytest.mark.parametrize("place", ["tool", "before_model", "after_model", "wrap_tool_call", "callback"])
def test_a_run_that_is_cancelled_from_inside_ends_at_the_point_and_nothing_hangs(place: str, at: Any):
    runs: list[Run[Any]] = []
    returned: list[Any] = []

    async def stop(*_: Any) -> None:
        if not returned:
            returned.append(await runs[0].cancel(at))

    @tool
    async def work() -> str:
        """Work, and perhaps stop the run."""
        if place == "tool":
            await stop()
        return "worked"

    async def wrap(call: Any, proceed: Any) -> Any:
        result = await proceed(call)
        await stop()
        return result

    middlewares = {
        "before_model": [only("before_model_rewrite_state", stop)],
        "after_model": [only("after_model_rewrite_state", stop)],
        "wrap_tool_call": [only("wrap_tool_call", wrap)],
    }

    async def main() -> Any:
        agent = ChatModelAgent(
            model=ScriptedModel([calls("work"), calls("work"), "done"]),
            tools=[work],
            middlewares=middlewares.get(place, []),
            callbacks=Callbacks(on_start=stop, kinds=frozenset({"tool"})) if place == "callback" else None,
        )
        runs.append(agent.stream("go"))
        async with asyncio.timeout(60):
            return await runs[0].result()

    result = asyncio.run(main())
    assert result.outcome is Outcome.CANCELLED
    assert returned[0].outcome is Outcome.CANCELLED
    assert returned[0].messages[0] == MESSAGE.user("go")
    assert check(result.messages).acceptable
    if at == "after_tools" and place != "before_model":
        assert result.messages[2] == MESSAGE.result("c1", "work", "worked")


@pytest.mark.parametrize("at", ["now", "after_model", "after_tools"])
def test_a_run_that_is_cancelled_while_it_cleans_up_has_ended_already_and_nothing_hangs(at: Any):
    runs: list[Run[Any]] = []
    returned: list[Any] = []

    async def stop(*_: Any) -> None:
        returned.append((await runs[0].cancel(at)).outcome)

    async def main() -> Any:
        agent = ChatModelAgent(model=ScriptedModel(["done"]), middlewares=[only("after_agent", stop)])
        runs.append(agent.stream("go"))
        async with asyncio.timeout(60):
            return await runs[0].result()

    assert asyncio.run(main()).outcome is Outcome.FINISHED
    assert returned == [Outcome.FINISHED]


def test_a_run_cannot_wait_for_its_own_end():
    runs: list[Run[Any]] = []

    @tool
    async def work() -> str:
        """Wait for the run that it is part of."""
        return str(await runs[0].result())

    async def main() -> Any:
        runs.append(ChatModelAgent(model=ScriptedModel([calls("work"), "done"]), tools=[work]).stream("go"))
        async with asyncio.timeout(60):
            return await runs[0].result()

    with pytest.raises(ConfigError, match="its own end"):
        asyncio.run(main())


# Before the first step


@pytest.mark.parametrize("how", ["cancel", "leave the block"])
def test_a_conversation_that_is_cancelled_before_it_goes_on_has_its_whole_history(how: str):
    async def end(run: Run[Any]) -> Any:
        if how == "cancel":
            return await run.cancel()
        async with run:
            pass
        return run.final_result

    async def main() -> None:
        agent = ChatModelAgent(model=ScriptedModel([calls("ask"), "done"]), tools=[ask], checkpoint_store=MemoryStore())
        first = await agent.run("go", checkpoint_id="one")
        resumed = await end(agent.stream(resume="one", answer="yes"))
        assert resumed.outcome is Outcome.CANCELLED
        assert resumed.messages[:2] == list(first.messages)
        more = await end(agent.stream("and?", checkpoint_id="one"))
        assert more.outcome is Outcome.CANCELLED
        assert more.messages[:2] == list(first.messages)
        assert more.messages[-1] == MESSAGE.user("and?")
        assert check(more.messages).acceptable

    asyncio.run(main())


# What nobody cancelled


async def cancelled_by_itself() -> None:
    """Await something that somebody else gave up, such as a shared request."""
    task = asyncio.ensure_future(asyncio.Event().wait())
    await asyncio.sleep(0)
    task.cancel()
    await task


class GivesUp:
    """A model whose own work is cancelled, so many times."""

    wire, profile = "message", "pairing"

    def __init__(self, times: int) -> None:
        self.times = times

    async def stream(self, request: ModelRequest[Any], /) -> AsyncIterator[Any]:
        del request
        self.times -= 1
        if self.times >= 0:
            await cancelled_by_itself()
        yield MESSAGE.says("done")


def test_a_model_whose_own_work_was_cancelled_has_failed():
    with pytest.raises(ComponentCancelledError, match="nobody cancelled the run") as raised:
        ChatModelAgent(model=GivesUp(1), model_retry_config=None).run_sync("go")
    assert isinstance(raised.value.__cause__, asyncio.CancelledError)


@pytest.mark.parametrize("policy", ["retry", "failover"])
def test_and_is_tried_again_or_another_one_is_asked(policy: str):
    retry = ModelRetryConfig(max_retries=1, backoff=lambda _attempt: 0) if policy == "retry" else None
    failover = ModelFailoverConfig(models=[ScriptedModel(["done"])]) if policy == "failover" else None
    agent = ChatModelAgent(model=GivesUp(1), model_retry_config=retry, failover=failover)
    events, result = asyncio.run(collect(agent.stream("go")))
    assert (result.outcome, result.output) == (Outcome.FINISHED, "done")
    assert len([event for event in events if isinstance(event, RetryScheduled)]) == 1


@pytest.mark.parametrize(
    "hook", ["before_agent", "before_model_rewrite_state", "after_model_rewrite_state", "wrap_model_call"]
)
def test_a_hook_whose_own_work_was_cancelled_has_failed(hook: str):
    async def give_up(*_: Any) -> None:
        await cancelled_by_itself()

    run = ChatModelAgent(model=ScriptedModel(["done"]), middlewares=[only(hook, give_up)]).stream("go")
    with pytest.raises(ComponentCancelledError, match="nobody cancelled the run"):
        asyncio.run(run_to_end(run))
    assert run.final_result is not None
    assert run.final_result.outcome is Outcome.FAILED


def test_a_tool_whose_own_work_was_cancelled_has_failed_behind_what_it_had_said():
    @tool
    async def work() -> AsyncIterator[str]:
        """Say something, then give up."""
        yield "begun"
        raise asyncio.CancelledError("given up")

    agent = ChatModelAgent(model=ScriptedModel([calls("work"), "done"]), tools=[work])
    assert agent.run_sync("go").messages[2].content == "begun\nCancelledError: given up"
    agent = ChatModelAgent(model=ScriptedModel([calls("work"), "done"]), tools=[work], tool_errors="raise")
    with pytest.raises(ComponentCancelledError, match="work cancelled its own work"):
        agent.run_sync("go")


def test_a_hook_that_cleans_up_and_whose_own_work_was_cancelled_keeps_no_other_from_it():
    async def give_up(*_: Any) -> None:
        await cancelled_by_itself()

    cleaned: list[Outcome] = []
    hooks = [only("after_agent", give_up), only("after_agent", lambda _state, outcome: cleaned.append(outcome))]
    result = ChatModelAgent(model=ScriptedModel(["done"]), middlewares=hooks).run_sync("go")
    assert result.outcome is Outcome.FINISHED
    assert [type(error) for error in result.cleanup_errors] == [ComponentCancelledError]
    assert cleaned == [Outcome.FINISHED]


async def run_to_end(run: Run[Any]) -> Any:
    return await run.result()


def test_a_tool_that_swallows_its_cancellation_cannot_hold_a_cancel_for_longer_than_it_works():
    async def main() -> Any:
        begun, go_on = asyncio.Event(), asyncio.Event()

        @tool
        async def stubborn() -> str:
            """Go on, whatever happens."""
            begun.set()
            while not go_on.is_set():
                try:
                    await go_on.wait()
                except asyncio.CancelledError:
                    go_on.set()
            return "finished all the same"

        run = ChatModelAgent(model=ScriptedModel([calls("stubborn"), "done"]), tools=[stubborn]).stream("go")
        reading = asyncio.create_task(collect(run))
        await begun.wait()
        result = await run.cancel("after_tools", timeout=0)
        await reading
        return result

    result = asyncio.run(main())
    assert result.outcome is Outcome.CANCELLED
    assert result.escalated
    assert result.messages[2] == MESSAGE.result("c1", "stubborn", "finished all the same")


@pytest.mark.parametrize("way", ["as a tool", "in a tool"])
def test_an_agent_that_runs_itself_without_end_is_stopped(way: str):
    agents: list[ChatModelAgent[Any]] = []

    @tool(name="inner")
    async def again(request: str) -> str:
        """Ask the same agent again."""
        del request
        return (await agents[0].run("go")).output

    def begin(context: Any) -> Any:
        return replace(context, tools=(agents[0].as_tool() if way == "as a tool" else again,))

    model = ScriptedModel(lambda _messages: MESSAGE.calls(("c1", "inner", '{"request": "go"}')))
    agents.append(
        ChatModelAgent(name="inner", description="Helps.", model=model, middlewares=[only("before_agent", begin)])
    )

    async def main() -> None:
        async with asyncio.timeout(20):
            await agents[0].run("go")

    with pytest.raises(ConfigError, match="inside each other"):
        asyncio.run(main())
    assert len(model.requests) < 100


PROGRAM = """
import asyncio, signal
from suture import ChatModelAgent, Message, ToolCall, tool
from suture.testing import ScriptedModel

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started us may ignore it

@tool
async def work() -> str:
    print("begins", flush=True)
    signal.raise_signal(signal.SIGINT)
    await asyncio.wait_for(asyncio.Event().wait(), 10)

call = Message.assistant(tool_calls=[ToolCall("c1", "work", "{}")])
agent = ChatModelAgent(model=ScriptedModel([call, call, "done"]), tools=[work])

async def main():
    agent.run_sync("go")

try:
    START
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize(
    "start",
    ["asyncio.run(main())", "asyncio.new_event_loop().run_until_complete(main())", "agent.run_sync('go')"],
    ids=["under asyncio.run", "in a notebook", "without a loop"],
)
def test_ctrl_c_stops_a_blocking_run_inside_a_running_loop_or_outside(start: str):
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("START", start)], capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.stdout.split() == ["begins", "interrupted"], ran.stderr


def test_ctrl_c_while_a_blocking_run_is_being_started_stops_it(monkeypatch: pytest.MonkeyPatch):
    threads: list[threading.Thread] = []

    class Interrupted(threading.Thread):
        def start(self) -> None:
            threads.append(self)
            super().start()
            raise KeyboardInterrupt

    monkeypatch.setattr("suture._loops.Thread", Interrupted)

    @tool
    async def work() -> str:
        """Work until it is stopped."""
        await asyncio.Event().wait()
        return "done"

    async def main() -> None:
        with pytest.raises(KeyboardInterrupt):
            ChatModelAgent(model=ScriptedModel([calls("work"), "done"]), tools=[work]).run_sync("go")
        threads[0].join(20)
        assert not threads[0].is_alive()

    asyncio.run(main())


@pytest.mark.parametrize("function", ["should_retry", "should_failover", "get_failover_model", "input_builder"])
def test_a_function_of_the_settings_whose_own_work_was_cancelled_has_failed(function: str):
    async def give_up(*_: Any) -> None:
        await cancelled_by_itself()

    choices: dict[str, Any] = {"input_builder": give_up}
    if function == "should_retry":
        choices = {"model_retry_config": ModelRetryConfig(should_retry=give_up)}
    elif function != "input_builder":
        given: dict[str, Any] = {function: give_up}
        choices = {"failover": ModelFailoverConfig(models=[ScriptedModel(["done"])], **given)}
    run = ChatModelAgent(model=ScriptedModel([OSError("disk full")]), **choices).stream("go")
    with pytest.raises(ComponentCancelledError, match="nobody cancelled the run"):
        asyncio.run(run_to_end(run))
    assert run.final_result is not None
    assert (run.final_result.outcome, run.final_result.messages) == (Outcome.FAILED, [MESSAGE.user("go")])


@pytest.mark.parametrize("kind", ["agent", "model", "tool"])
@pytest.mark.parametrize("moment", ["on_start", "on_end"])
def test_a_callback_whose_own_work_was_cancelled_changes_nothing(kind: str, moment: str):
    failed: list[str] = []

    async def give_up(about: Component, _value: Any) -> None:
        failed.append(about.kind)
        await cancelled_by_itself()

    given: dict[str, Any] = {moment: give_up}
    callbacks = Callbacks(**given, kinds=frozenset({kind}))
    model = ScriptedModel([calls("look"), "done"])
    result = ChatModelAgent(model=model, tools=[look], callbacks=callbacks).run_sync("go")
    assert (result.outcome, result.output) == (Outcome.FINISHED, "done")
    assert result.messages[2].content == "seen"
    assert set(failed) == {kind}
