"""`after_agent` is called once, however a run ends, for each middleware whose `before_agent` completed."""

import asyncio
from typing import Any

import pytest

from suture import (
    Budget,
    BudgetExceeded,
    ChatModelAgent,
    ChatModelAgentMiddleware,
    MaxIterationsExceeded,
    Outcome,
    interrupt,
    send_event,
    tool,
)
from suture.events import Custom, RunFinished
from suture.stores import MemoryStore
from suture.testing import ScriptedModel
from tests.agent.lifecycle.recording import collect
from tests.agent.lifecycle.speech import MESSAGE, WIRES, Speech, wire_name

every_wire = pytest.mark.parametrize("speech", WIRES, ids=wire_name)


class Cleaning(ChatModelAgentMiddleware[Any]):
    """Keeps what `after_agent` was given."""

    def __init__(self) -> None:
        self.given: list[tuple[Outcome, list[Any]]] = []

    def after_agent(self, state: Any, outcome: Outcome) -> Any:
        self.given.append((outcome, list(state.messages)))


@tool
async def look() -> str:
    """Look."""
    return "seen"


@tool
async def ask() -> str:
    """Ask somebody."""
    return await interrupt("may I?")


def asked(speech: Speech, name: str = "look") -> Any:
    return speech.calls(("c1", name, "{}"))


@every_wire
def test_after_a_final_answer_it_gets_the_whole_history(speech: Speech):
    cleaning = Cleaning()
    model = ScriptedModel([asked(speech), "done"], speech.wire)
    asyncio.run(collect(ChatModelAgent(model=model, tools=[look], middlewares=[cleaning]).stream("go")))
    whole = [speech.user("go"), asked(speech), speech.result("c1", "look", "seen"), speech.says("done")]
    assert cleaning.given == [(Outcome.FINISHED, whole)]


@every_wire
def test_after_a_tool_that_returns_directly(speech: Speech):
    cleaning = Cleaning()
    model = ScriptedModel([asked(speech)], speech.wire)
    agent = ChatModelAgent(model=model, tools=[look], return_directly=["look"], middlewares=[cleaning])
    asyncio.run(collect(agent.stream("go")))
    whole = [speech.user("go"), asked(speech), speech.result("c1", "look", "seen")]
    assert cleaning.given == [(Outcome.FINISHED, whole)]


@every_wire
def test_after_a_model_that_failed(speech: Speech):
    cleaning = Cleaning()
    model = ScriptedModel([asked(speech), TimeoutError("slow")], speech.wire)
    with pytest.raises(TimeoutError, match="slow"):
        asyncio.run(collect(ChatModelAgent(model=model, tools=[look], middlewares=[cleaning]).stream("go")))
    whole = [speech.user("go"), asked(speech), speech.result("c1", "look", "seen")]
    assert cleaning.given == [(Outcome.FAILED, whole)]


@pytest.mark.parametrize(
    ("choices", "error"),
    [({"max_iterations": 1}, MaxIterationsExceeded), ({"budget": Budget(tool_calls=1)}, BudgetExceeded)],
)
def test_after_a_limit(choices: Any, error: type[Exception]):
    cleaning = Cleaning()
    model = ScriptedModel(lambda messages: MESSAGE.calls((f"c{len(messages)}", "look", "{}")))
    with pytest.raises(error):
        asyncio.run(collect(ChatModelAgent(model=model, tools=[look], middlewares=[cleaning], **choices).stream("go")))
    assert [outcome for outcome, _ in cleaning.given] == [Outcome.FAILED]


def test_after_an_interrupt_and_again_after_the_resume():
    cleaning = Cleaning()
    agent = ChatModelAgent(
        model=ScriptedModel([asked(MESSAGE, "ask"), "done"]),
        tools=[ask],
        middlewares=[cleaning],
        checkpoint_store=MemoryStore(),
    )

    async def main() -> None:
        _, result = await collect(agent.stream("go", checkpoint_id="one"))
        assert result.outcome is Outcome.INTERRUPTED
        assert [outcome for outcome, _ in cleaning.given] == [Outcome.INTERRUPTED]
        await collect(agent.stream(resume="one", answers={result.interrupts[0].id: "yes"}))

    asyncio.run(main())
    begun = [MESSAGE.user("go"), asked(MESSAGE, "ask")]
    assert cleaning.given == [
        (Outcome.INTERRUPTED, begun),
        (Outcome.FINISHED, [*begun, MESSAGE.result("c1", "ask", "yes"), MESSAGE.says("done")]),
    ]


@pytest.mark.parametrize("where", ["model", "tool"])
def test_after_a_cancellation_it_runs_to_its_end_even_if_cancelled_again(where: str):
    async def main() -> tuple[list[str], Any]:
        there, cleaning, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()
        steps: list[str] = []

        class Slow(ChatModelAgentMiddleware[Any]):
            async def after_agent(self, state: Any, outcome: Outcome) -> None:
                steps.append(f"begun: {outcome}")
                cleaning.set()
                await go_on.wait()
                steps.append("ended")

        async def hang(*_: Any) -> str:
            there.set()
            await asyncio.Event().wait()
            raise AssertionError

        @tool
        async def wait() -> str:
            """Wait."""
            return await hang()

        replies = [hang] if where == "model" else [asked(MESSAGE, "wait")]
        run = ChatModelAgent(model=ScriptedModel(replies), tools=[wait], middlewares=[Slow()]).stream("go")
        reading = asyncio.create_task(collect(run))
        await there.wait()
        first = asyncio.create_task(run.cancel())
        await cleaning.wait()
        second = asyncio.create_task(run.cancel())
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.gather(first, second, reading)
        return steps, run.final_result

    steps, result = asyncio.run(main())
    assert steps == ["begun: cancelled", "ended"]
    assert result.outcome is Outcome.CANCELLED


def test_only_those_are_called_whose_before_agent_completed_in_list_order():
    called: list[str] = []

    class Named(ChatModelAgentMiddleware[Any]):
        def __init__(self, name: str, *, fails: bool = False) -> None:
            self._name, self._fails = name, fails

        def before_agent(self, context: Any) -> Any:
            called.append(f"{self._name} before")
            if self._fails:
                raise RuntimeError("no")

        def after_agent(self, state: Any, outcome: Outcome) -> Any:
            called.append(f"{self._name} {outcome}")

    middlewares = [Named("a"), Named("b"), Named("c", fails=True), Named("d")]
    with pytest.raises(RuntimeError, match="no"):
        asyncio.run(collect(ChatModelAgent(model=ScriptedModel(["done"]), middlewares=middlewares).stream("go")))
    assert called == ["a before", "b before", "c before", "a failed", "b failed"]


@pytest.mark.parametrize("reply", ["done", TimeoutError("slow")], ids=["finished", "failed"])
def test_its_error_replaces_neither_the_outcome_nor_the_next_one(reply: Any):
    class Failing(ChatModelAgentMiddleware[Any]):
        async def after_agent(self, state: Any, outcome: Outcome) -> None:
            raise OSError("disk full")

    cleaning = Cleaning()
    run = ChatModelAgent(model=ScriptedModel([reply]), middlewares=[Failing(), cleaning]).stream

    async def main() -> Any:
        running = run("go")
        try:
            await running.result()
        except TimeoutError as error:
            assert str(error) == "slow"  # noqa: PT017 - whether it is raised depends on the reply
        return running.final_result

    result = asyncio.run(main())
    failed = isinstance(reply, Exception)
    assert result.outcome is (Outcome.FAILED if failed else Outcome.FINISHED)
    assert result.error is (reply if failed else None)
    assert [str(error) for error in result.cleanup_errors] == ["disk full"]
    assert len(cleaning.given) == 1


def test_it_may_send_events_and_the_last_event_is_still_that_the_run_finished():
    class Telling(ChatModelAgentMiddleware[Any]):
        def after_agent(self, state: Any, outcome: Outcome) -> Any:
            send_event(Custom("cleaned up", outcome.value))

    events, _ = asyncio.run(
        collect(ChatModelAgent(model=ScriptedModel(["done"]), middlewares=[Telling()]).stream("go"))
    )
    assert [type(event) for event in events[-2:]] == [Custom, RunFinished]


def test_it_cannot_interrupt():
    class Asking(ChatModelAgentMiddleware[Any]):
        async def after_agent(self, state: Any, outcome: Outcome) -> None:
            await interrupt("may I?")

    _, result = asyncio.run(collect(ChatModelAgent(model=ScriptedModel(["done"]), middlewares=[Asking()]).stream("go")))
    assert result.outcome is Outcome.FINISHED
    assert result.interrupts == ()
    assert len(result.cleanup_errors) == 1
    assert "interrupt" in str(result.cleanup_errors[0])
