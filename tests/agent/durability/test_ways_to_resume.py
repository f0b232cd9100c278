"""A run is resumed by its id or its result, from a store or from memory, with one answer or several."""

import asyncio
from typing import Any, cast

import pytest

import suture
from suture import ChatModelAgent, ConfigError, InputError, Message, Outcome, ResumeError, tool
from suture.stores import MemoryStore
from suture.testing import ScriptedModel
from tests.agent.durability.scenes import acceptable, make, play, results, turn


class Desk:
    """A tool that asks, and what it was answered."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, Any]] = []

        @tool
        async def ask(n: int) -> str:
            """Ask."""
            answer = await suture.interrupt({"n": n})
            self.answers.append((n, answer))
            return f"{n}: {answer}"

        self.ask = ask


def asks(*numbers: int) -> Any:
    return turn(*[(f"c{n}", "ask", {"n": n}) for n in numbers])


stored = pytest.mark.parametrize("has_store", [True, False], ids=["store", "memory"])


def desk_agent(has_store: bool, *numbers: int) -> tuple[Desk, ChatModelAgent[Any], dict[str, Any]]:
    """Return a desk, its agent, and what a run of it is given."""
    desk = Desk()
    settings: dict[str, Any] = {"checkpoint_store": MemoryStore()} if has_store else {}
    agent, _ = make(lambda messages: asks(*numbers) if len(messages) == 1 else "done", desk.ask, **settings)
    return desk, agent, {"checkpoint_id": "k"} if has_store else {}


@stored
def test_one_answer_is_for_the_one_thing_that_is_waited_for(has_store: bool):
    desk, agent, options = desk_agent(has_store, 1)

    async def scene():
        paused = await agent.run("go", **options)
        done = await agent.resume(paused, {"a": "mapping is an answer like any other"})
        assert done.output == "done"
        assert desk.answers == [(1, {"a": "mapping is an answer like any other"})]

    play(scene())


@stored
def test_one_answer_for_several_things_is_refused_and_they_still_wait(has_store: bool):
    desk, agent, options = desk_agent(has_store, 1, 2)

    async def scene():
        paused = await agent.run("go", **options)
        with pytest.raises(ResumeError, match="a/1/0/tool/0, a/1/1/tool/0"):
            await agent.resume(paused, "yes")
        done = await agent.resume(paused, answers={"c1": "yes", "c2": "no"})
        assert (done.output, desk.answers) == ("done", [(1, "yes"), (2, "no")])

    play(scene())


@stored
def test_answers_are_given_by_call_id_and_by_interrupt_id_and_one_by_one(has_store: bool):
    desk, agent, options = desk_agent(has_store, 1, 2, 3)

    async def scene():
        paused = await agent.run("go", **options)
        paused = await agent.resume(paused, answers={"c2": "b", paused.interrupts[2].id: "c"})
        assert paused.outcome is Outcome.INTERRUPTED
        assert [waiting.call_id for waiting in paused.interrupts] == ["c1"]
        done = await agent.resume(paused, "a")
        assert [text for _, text in results(done.messages)] == ["1: a", "2: b", "3: c"]
        assert desk.answers == [(2, "b"), (3, "c"), (1, "a")]

    play(scene())


@stored
def test_a_call_that_asks_twice_at_once_is_answered_by_interrupt_ids(has_store: bool):
    @tool
    async def both() -> str:
        """Ask twice."""
        return " ".join(await asyncio.gather(suture.interrupt("one"), suture.interrupt("two")))

    agent, _ = make([turn(("c1", "both")), "done"], both, checkpoint_store=MemoryStore() if has_store else None)

    async def scene():
        result = await agent.run("go", **({"checkpoint_id": "k"} if has_store else {}))
        said = {"one": "1", "two": "2"}
        while result.outcome is Outcome.INTERRUPTED:
            result = await agent.resume(result, answers={each.id: said[each.info] for each in result.interrupts})
        assert results(result.messages) == [("c1", "1 2")]

    play(scene())


def test_resuming_a_result_from_memory_twice_forks_it():
    desk, agent, _ = desk_agent(False, 1)

    async def scene():
        paused = await agent.run("go")
        yes, no = await agent.resume(paused, "yes"), await agent.resume(paused, "no")
        assert [results(each.messages) for each in (yes, no)] == [[("c1", "1: yes")], [("c1", "1: no")]]
        assert desk.answers == [(1, "yes"), (1, "no")]
        assert len(paused.messages) == 2
        assert yes.run_id == no.run_id == paused.run_id

    play(scene())


def test_forks_do_not_share_values_or_sessions():
    @tool
    async def note(n: int) -> str:
        """Keep what was said."""
        answer = await suture.interrupt(n)
        run = suture.current_run()
        run.values["said"] = [*run.values.get("said", []), answer]
        run.session["said"] = [*run.session.get("said", []), answer]
        return str(run.values["said"])

    agent, _ = make(
        lambda messages: turn((f"c{len(messages)}", "note", {"n": 1})) if len(messages) < 5 else "done", note
    )

    async def scene():
        first = await agent.run("go")
        second = await agent.resume(first, "a")
        for said in ("b", "c"):
            done = await agent.resume(second, said)
            assert done.session["said"] == ["a", said]
            assert results(done.messages)[-1][1] == str(["a", said])

    play(scene())


def test_deps_are_given_again_when_a_run_is_resumed_from_memory():
    @tool
    async def use(ctx: suture.RunContext[str]) -> str:
        """Use what the run was given."""
        await suture.interrupt("?")
        return ctx.deps

    agent, _ = make([turn(("c1", "use")), "done"], use)

    async def scene():
        paused = await agent.run("go", deps="first")
        done = await agent.resume(paused, True, deps="second")
        assert results(done.messages) == [("c1", "second")]

    play(scene())


@pytest.mark.parametrize("depth", [1, 2])
def test_agents_inside_agents_are_resumed_from_memory_where_they_stood(depth: int):
    desk = Desk()
    before: list[str] = []

    @tool
    async def work() -> str:
        """Work, once."""
        before.append("work")
        return "worked"

    replies: list[Any] = [turn(("w", "work")), asks(1, 2), "inner done"]
    models = [ScriptedModel(replies)]
    agent = ChatModelAgent(name="inner", description="Asks.", model=models[0], tools=[work, desk.ask])
    for level in range(depth):
        models.append(ScriptedModel([turn(("o", agent.name, {"request": "go"})), "done"]))
        agent = ChatModelAgent(
            name=f"outer{level}", description="Passes on.", model=models[-1], tools=[agent.as_tool()]
        )

    async def scene():
        paused = await agent.run("go")
        assert [waiting.call_id for waiting in paused.interrupts] == ["c1", "c2"]
        paused = await agent.resume(paused, answers={paused.interrupts[0].id: "one"})
        assert [waiting.call_id for waiting in paused.interrupts] == ["c2"]
        done = await agent.resume(paused, "two")
        assert (done.output, desk.answers, before) == ("done", [(1, "one"), (2, "two")], ["work"])
        # Nobody was asked twice.
        assert [len(model.requests) for model in models] == [3, *[2] * depth]
        assert results(done.messages) == [("o", "done" if depth == 2 else "inner done")]
        assert acceptable(done.messages)

    play(scene())


@stored
def test_an_agent_inside_that_has_finished_does_not_run_again_where_its_call_does(has_store: bool):
    ran: list[str] = []

    @tool
    async def work() -> str:
        """Work."""
        ran.append("work")
        return "worked"

    class Confirms(suture.ChatModelAgentMiddleware[Any]):
        async def wrap_tool_call(self, call: Any, proceed: Any) -> Any:
            result = await proceed(call)
            await suture.interrupt(f"take {result.text!r}?")
            return result

    def inside(messages: Any) -> Any:
        return turn(("i1", "work", {})) if len(messages) == 1 else "inner done"

    inner, _ = make(inside, work, name="inner", description="works")
    script = [turn(("c1", "inner", {"request": "go"})), turn(("c2", "inner", {"request": "go"})), "done"]
    settings: dict[str, Any] = {"checkpoint_store": MemoryStore()} if has_store else {}
    agent, _ = make(script, inner.as_tool(), middlewares=[Confirms()], **settings)

    async def scene():
        paused = await agent.run("go", **({"checkpoint_id": "k"} if has_store else {}))
        again = await agent.resume(paused, True)
        assert again.snapshot is None or list(again.snapshot.nested) == ["a/2/0/inner"]  # the first is not kept
        assert (await agent.resume(again, True)).output == "done"
        assert ran == ["work", "work"]  # once for each call

    play(scene())


def test_two_forks_of_a_nested_run_do_not_meet():
    desk = Desk()
    inner = ChatModelAgent(
        name="inner",
        description="Asks.",
        model=ScriptedModel(lambda messages: asks(1) if len(messages) == 1 else "inner done"),
        tools=[desk.ask],
    )
    agent, _ = make(
        lambda messages: turn(("o", "inner", {"request": "go"})) if len(messages) == 1 else "done", inner.as_tool()
    )

    async def scene():
        paused = await agent.run("go")
        for answer in ("yes", "no"):
            assert (await agent.resume(paused, answer)).output == "done"
        assert desk.answers == [(1, "yes"), (1, "no")]

    play(scene())


@stored
def test_a_cancelled_run_goes_on_from_its_result(has_store: bool):
    began = asyncio.Event()

    @tool
    async def stall() -> str:
        """Never end."""
        began.set()
        await asyncio.Event().wait()
        return "never"

    agent, _ = make([turn(("c1", "stall")), "done"], stall, checkpoint_store=MemoryStore() if has_store else None)

    async def scene():
        async with agent.stream("go", **({"checkpoint_id": "k"} if has_store else {})) as run:
            await began.wait()
            stopped = await run.cancel()
        done = await agent.resume(stopped)
        assert (stopped.outcome, done.output) == (Outcome.CANCELLED, "done")
        assert results(done.messages) == results(stopped.messages)

    play(scene())


@stored
def test_a_failed_run_goes_on_from_its_result(has_store: bool):
    agent, _ = make([ConnectionError("down"), "done"], checkpoint_store=MemoryStore() if has_store else None)

    async def scene():
        run = agent.stream("go", **({"checkpoint_id": "k"} if has_store else {}))
        with pytest.raises(ConnectionError):
            await run.result()
        assert run.final_result is not None
        assert (await agent.resume(run.final_result)).output == "done"

    play(scene())


@stored
def test_two_answers_to_one_question_are_refused_and_it_still_waits(has_store: bool):
    desk, agent, options = desk_agent(has_store, 1)

    async def scene():
        paused = await agent.run("go", **options)
        with pytest.raises(ResumeError, match="answered twice"):
            await agent.resume(paused, answers={"c1": "yes", paused.interrupts[0].id: "no"})
        assert (await agent.resume(paused, "yes")).output == "done"
        assert desk.answers == [(1, "yes")]

    play(scene())


@stored
@pytest.mark.parametrize("nested", [False, True])
def test_a_run_that_is_interrupted_in_before_agent_goes_on_from_its_result(has_store: bool, nested: bool):
    class Asks(suture.ChatModelAgentMiddleware[Any]):
        async def before_agent(self, context: Any) -> Any:
            return suture.replace(context, instruction=await suture.interrupt("which?"))

    store = MemoryStore() if has_store else None
    agent, model = make(["done"], middlewares=[Asks()], name="asking", description="asks", checkpoint_store=store)
    if nested:
        agent, _ = make([turn(("c1", "asking", {"request": "go"})), "done"], agent.as_tool(), checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", **({"checkpoint_id": "k"} if has_store else {}))
        assert paused.outcome is Outcome.INTERRUPTED
        assert (await agent.resume(paused, "this one")).output == "done"
        assert [(request.instruction, len(request.messages)) for request in model.requests] == [("this one", 1)]

    play(scene())


@stored
def test_a_run_that_failed_in_before_agent_goes_on_from_its_result(has_store: bool):
    faults = [OSError("not yet")]

    class Fails(suture.ChatModelAgentMiddleware[Any]):
        def before_agent(self, context: Any) -> None:
            if faults:
                raise faults.pop()

    agent, _ = make(["done"], middlewares=[Fails()], checkpoint_store=MemoryStore() if has_store else None)

    async def scene():
        run = agent.stream("go", **({"checkpoint_id": "k"} if has_store else {}))
        with pytest.raises(OSError, match="not yet"):
            await run.result()
        assert run.final_result is not None
        assert (await agent.resume(run.final_result)).output == "done"

    play(scene())


@stored
def test_a_finished_run_is_not_resumed(has_store: bool):
    agent, _ = make(["done"], checkpoint_store=MemoryStore() if has_store else None)

    async def scene():
        done = await agent.run("go", **({"checkpoint_id": "k"} if has_store else {}))
        with pytest.raises(ResumeError, match="finished"):
            await agent.resume(done)

    play(scene())


def test_a_run_begins_with_an_input_or_with_what_it_resumes():
    agent, _ = make(["done"])
    with pytest.raises(InputError, match="say something, or leave the input out and give what is to go on"):
        agent.stream()
    with pytest.raises(ConfigError, match="one of the two"):
        agent.stream(resume="k", history=[Message.user("go")])
    with pytest.raises(ConfigError, match="one of the two"):
        agent.stream("go", resume="k")
    with pytest.raises(ConfigError, match="result or its checkpoint_id, not by int"):
        agent.stream(resume=cast("Any", 7))


@stored
def test_a_run_cancelled_before_its_first_step_has_the_whole_conversation(has_store: bool):
    store = MemoryStore()
    agent, model = make(["one", "two"], checkpoint_store=store)

    async def scene():
        first = await agent.run("first", checkpoint_id="k")
        options: dict[str, Any] = {"checkpoint_id": "k"} if has_store else {"history": first.messages}
        stopped = await agent.stream("second", **options).cancel()
        assert stopped.outcome is Outcome.CANCELLED
        assert [message.content for message in stopped.messages] == ["first", "one", "second"]
        if has_store:  # what was said is stored
            await agent.run("third", checkpoint_id="k")
            said = [message.content for message in model.requests[-1].messages]
            assert said == ["first", "one", "second", "third"]

    play(scene())


def test_a_resume_cancelled_before_its_first_step_has_the_whole_conversation():
    desk, agent, options = desk_agent(True, 1)

    async def scene():
        paused = await agent.run("go", **options)
        stopped = await agent.stream(resume="k", answer="yes").cancel()
        assert len(stopped.messages) == len(paused.messages) + 1
        assert acceptable(stopped.messages)
        assert (await agent.resume("k", "yes")).output == "done"
        assert desk.answers == [(1, "yes")]

    play(scene())


def test_a_wrong_checkpoint_id_is_one_error_and_no_word_about_a_lease_that_nobody_took(
    caplog: pytest.LogCaptureFixture,
):
    agent, _ = make(["done"], checkpoint_store=MemoryStore())
    with pytest.raises(ConfigError, match="not empty"):
        agent.run_sync("go", checkpoint_id="")
    assert not caplog.records
