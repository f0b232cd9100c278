"""Hooks can interrupt: before-hooks run again from the state before them, after-hooks keep the reply."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

import suture
from suture import AgentMiddleware, ChatModelAgentMiddleware, Message, ModelRetryConfig, ModelWrapper, Outcome, tool
from suture.events import Interrupted, MessageFinished, ModelStarted, RunFinished, ToolFinished
from tests.agent.durability.scenes import (
    WIRES,
    AnyStore,
    acceptable,
    journals,
    make,
    names,
    play,
    results,
    roles,
    said,
    seen,
    turn,
)


@tool
async def work() -> str:
    """Work."""
    return "worked"


class Note(ChatModelAgentMiddleware[Any]):
    """Adds a message before the model, once a turn, which shows how often the hook's change was kept."""

    def before_model_rewrite_state(self, state, model_context):
        return suture.replace(state, messages=[*state.messages, Message.user(f"note {model_context.turn}")])


class BeforeAgent(ChatModelAgentMiddleware[Any]):
    async def before_agent(self, context):
        answer = await suture.interrupt("before agent", state="kept")
        return suture.replace(context, instruction=f"{context.instruction} {answer}")


class BeforeModel(ChatModelAgentMiddleware[Any]):
    def __init__(self, *turns: int) -> None:
        self.turns = turns

    async def before_model_rewrite_state(self, state, model_context):
        if model_context.turn not in self.turns:
            return None
        answer = await suture.interrupt(f"before model {model_context.turn}")
        return suture.replace(state, messages=[*state.messages, Message.user(f"{answer}")])


class AfterModel(ChatModelAgentMiddleware[Any]):
    def __init__(self, *turns: int) -> None:
        self.turns = turns
        self.answers: list[Any] = []

    async def after_model_rewrite_state(self, state, model_context):
        if model_context.turn in self.turns:
            self.answers.append(await suture.interrupt(f"after model {model_context.turn}"))


class AroundModel(ChatModelAgentMiddleware[Any]):
    """Interrupts where it makes the wrapper, or where the wrapper is asked."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.answers: list[Any] = []

    async def wrap_model(self, model, model_context):
        if self.where == "hook":
            self.answers.append(await suture.interrupt("around model"))
            return model
        around = self

        class Asking(ModelWrapper[Any]):
            async def stream(self, request, /) -> AsyncIterator[Any]:
                if around.where == "before":
                    around.answers.append(await suture.interrupt("around model"))
                async for piece in super().stream(request):
                    yield piece
                if around.where == "after":
                    around.answers.append(await suture.interrupt("around model"))

        return Asking(model)


def test_before_agent_interrupts_and_its_change_holds_after_the_answer(store: AnyStore):
    agent, model = make(
        ["done"], middlewares=[BeforeAgent()], instruction="Be", max_iterations=1, checkpoint_store=store
    )

    async def scene():
        events, paused = await seen(agent.stream("go", checkpoint_id="k"))
        assert [type(event) for event in events[-2:]] == [Interrupted, RunFinished]
        (waiting,) = paused.interrupts
        assert (waiting.info, waiting.call_id, waiting.run_path) == ("before agent", "", ("a",))
        assert (roles(paused.messages), len(model.requests)) == (["user"], 0)
        done = await agent.resume("k", answers={waiting.id: "brief"})
        assert (done.output, roles(done.messages)) == ("done", ["user", "assistant"])
        assert [request.instruction for request in model.requests] == ["Be brief"]

    play(scene())


def test_the_answer_to_before_agent_holds_for_every_later_resume(store: AnyStore):
    @tool
    async def ask() -> str:
        """Ask."""
        return str(await suture.interrupt("tool"))

    agent, model = make(
        [turn(("c1", "ask")), "done"], ask, middlewares=[BeforeAgent()], instruction="Be", checkpoint_store=store
    )

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        paused = await agent.resume("k", answers={paused.interrupts[0].id: "brief"})
        # It runs again with each resume, and is not asked again what it was told.
        assert [waiting.info for waiting in paused.interrupts] == ["tool"]
        done = await agent.resume("k", answers={paused.interrupts[0].id: "yes"})
        assert done.output == "done"
        assert [request.instruction for request in model.requests] == ["Be brief", "Be brief"]

    play(scene())


@pytest.mark.parametrize("wire", WIRES)
def test_an_interrupt_before_the_model_runs_the_chain_again_from_the_state_before_it(store: AnyStore, wire: str):
    class Noting(ChatModelAgentMiddleware[Any]):
        def __init__(self) -> None:
            self.saw: list[int] = []

        def before_model_rewrite_state(self, state, model_context):
            self.saw.append(len(state.messages))
            note = suture.AgenticMessage.user("note") if wire == "agentic" else Message.user("note")
            return suture.replace(
                state,
                messages=[*state.messages, {"role": "user", "content": "note"} if wire == "openai-chat" else note],
            )

    class Asking(ChatModelAgentMiddleware[Any]):
        async def before_model_rewrite_state(self, state, model_context):
            if model_context.turn == 2:
                await suture.interrupt("?")

    noting = Noting()
    agent, model = make(
        [turn(("c1", "work"), wire=wire), "done"],
        work,
        wire=wire,
        middlewares=[noting, Asking()],
        max_iterations=2,
        checkpoint_store=store,
    )

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        assert (paused.outcome, len(model.requests)) == (Outcome.INTERRUPTED, 1)
        # What the chain did before it was interrupted does not last.
        assert roles(paused.messages) == ["user", "user", "assistant", "tool"]
        done = await agent.resume("k", answers={paused.interrupts[0].id: "yes"})
        assert done.output == "done"
        assert noting.saw == [1, 4, 4]
        assert roles(done.messages) == ["user", "user", "assistant", "tool", "user", "assistant"]
        assert acceptable(done.messages, wire)
        assert len(model.requests) == 2

    play(scene())


def test_the_answer_before_the_model_is_part_of_the_change(store: AnyStore):
    agent, model = make(["done"], middlewares=[Note(), BeforeModel(1), Note()], checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        done = await agent.resume("k", answers={paused.interrupts[0].id: "answer"})
        expected = ["go", "note 1", "answer", "note 1"]
        assert [said(message) for message in model.requests[0].messages] == expected
        assert [said(message) for message in done.messages] == [*expected, "done"]

    play(scene())


def test_two_hooks_of_one_chain_interrupt_one_after_the_other(store: AnyStore):
    agent, model = make(["done"], middlewares=[BeforeModel(1), BeforeModel(1)], checkpoint_store=store)

    async def scene():
        first = await agent.run("go", checkpoint_id="k")
        second = await agent.resume("k", answers={first.interrupts[0].id: "one"})
        assert second.outcome is Outcome.INTERRUPTED
        assert second.interrupts[0].id != first.interrupts[0].id
        done = await agent.resume("k", answers={second.interrupts[0].id: "two"})
        assert [said(message) for message in done.messages] == ["go", "one", "two", "done"]
        assert len(model.requests) == 1

    play(scene())


@pytest.mark.parametrize("wire", WIRES)
def test_an_interrupt_after_the_model_keeps_the_reply(store: AnyStore, wire: str):
    after = AfterModel(1, 2)
    agent, model = make(
        [turn(("c1", "work"), text="let me", wire=wire), "done"],
        work,
        wire=wire,
        middlewares=[after],
        max_iterations=2,
        checkpoint_store=store,
    )

    async def scene():
        first, paused = await seen(agent.stream("go", checkpoint_id="k"))
        assert paused.interrupts[0].info == "after model 1"
        assert roles(paused.messages) == ["user", "assistant"]
        assert names(first, ToolFinished) == []
        second, paused = await seen(agent.stream(resume="k", answers={paused.interrupts[0].id: "yes"}))
        assert paused.interrupts[0].info == "after model 2"
        assert roles(paused.messages) == ["user", "assistant", "tool", "assistant"]
        third, done = await seen(agent.stream(resume="k", answers={paused.interrupts[0].id: "also"}))
        assert (done.outcome, done.output) == (Outcome.FINISHED, "done")
        assert after.answers == ["yes", "also"]
        assert results(done.messages) == [("c1", "worked")]
        # Nothing was asked twice or told twice.
        assert len(model.requests) == 2
        told = names([*first, *second, *third], ModelStarted, MessageFinished, ToolFinished)
        assert [kind for kind, _ in told] == [
            "ModelStarted", "MessageFinished", "ToolFinished", "ModelStarted", "MessageFinished"
        ]  # fmt: skip
        assert acceptable(done.messages, wire)

    play(scene())


def test_what_an_after_hook_changed_before_a_later_one_interrupts_is_made_once(store: AnyStore):
    class Mark(ChatModelAgentMiddleware[Any]):
        def after_model_rewrite_state(self, state, model_context):
            *rest, last = state.messages
            return suture.replace(state, messages=[*rest, Message.user("marked"), last])

    agent, _ = make(["done"], middlewares=[Mark(), AfterModel(1)], checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        done = await agent.resume("k", answers={paused.interrupts[0].id: "yes"})
        assert [said(message) for message in done.messages] == ["go", "marked", "done"]
        assert done.output == "done"

    play(scene())


@pytest.mark.parametrize("where", ["hook", "before", "after"])
def test_an_interrupt_around_the_model_asks_the_model_again_and_is_never_retried(store: AnyStore, where: str):
    around = AroundModel(where)
    agent, model = make(
        lambda _: "done",
        middlewares=[around],
        max_iterations=1,
        model_retry_config=ModelRetryConfig(max_retries=3),
        checkpoint_store=store,
    )

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        (waiting,) = paused.interrupts
        assert waiting.info == "around model"
        assert roles(paused.messages) == ["user"]
        asked = len(model.requests)
        assert asked == (1 if where == "after" else 0)
        done = await agent.resume("k", answers={waiting.id: "yes"})
        assert (done.output, around.answers) == ("done", ["yes"])
        assert len(model.requests) == asked + 1

    play(scene())


@pytest.mark.parametrize("hook", ["before_chat_model", "after_chat_model"])
def test_hooks_of_the_older_form_interrupt(store: AnyStore, hook: str):
    answers: list[Any] = []

    async def ask(_: Any) -> None:
        answers.append(await suture.interrupt(hook))

    older = (
        AgentMiddleware(before_chat_model=ask) if hook == "before_chat_model" else AgentMiddleware(after_chat_model=ask)
    )
    agent, model = make(["done"], middlewares=[older], checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        done = await agent.resume("k", answers={paused.interrupts[0].id: "yes"})
        assert (done.output, answers, len(model.requests)) == ("done", ["yes"], 1)

    play(scene())


@pytest.mark.parametrize("middleware", [BeforeModel(1, 2, 3), AfterModel(1, 2, 3)], ids=["before", "after"])
def test_a_turn_that_was_interrupted_is_charged_once(store: AnyStore, middleware: Any):
    agent, model = make(
        [turn(("c1", "work")), turn(("c2", "work")), "done"],
        work,
        middlewares=[middleware],
        max_iterations=3,
        checkpoint_store=store,
    )

    async def scene():
        result = await agent.run("go", checkpoint_id="k")
        for _ in range(3):
            assert result.outcome is Outcome.INTERRUPTED
            result = await agent.resume("k", answers={result.interrupts[0].id: "yes"})
        assert (result.output, len(model.requests)) == ("done", 3)

    play(scene())


def test_turns_before_an_interrupt_still_count(store: AnyStore):
    agent, model = make(
        [turn(("c1", "work")), turn(("c2", "work")), turn(("c3", "work"))],
        work,
        middlewares=[BeforeModel(2)],
        max_iterations=2,
        checkpoint_store=store,
    )

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        with pytest.raises(suture.MaxIterationsExceeded):
            await agent.resume("k", answers={paused.interrupts[0].id: "yes"})
        assert len(model.requests) == 2

    play(scene())


@pytest.mark.parametrize("outcome", ["finished", "interrupted", "failed"])
def test_after_agent_cannot_interrupt_and_does_not_replace_the_outcome(store: AnyStore, outcome: str):
    class Late(ChatModelAgentMiddleware[Any]):
        async def after_agent(self, state, outcome):
            await suture.interrupt("too late")

    @tool
    async def act() -> str:
        """Act."""
        if outcome == "interrupted":
            await suture.interrupt("in time")
        if outcome == "failed":
            raise ValueError("broken")
        return "acted"

    agent, _ = make(
        [turn(("c1", "act")), "done"], act, middlewares=[Late()], tool_errors="raise", checkpoint_store=store
    )

    async def scene():
        run = agent.stream("go", checkpoint_id="k")
        if outcome == "failed":
            with pytest.raises(ValueError, match="broken"):
                await run.result()
        else:
            await run.result()
        result = run.final_result
        assert result is not None
        assert result.outcome == outcome
        assert [waiting.info for waiting in result.interrupts] == (["in time"] if outcome == "interrupted" else [])
        assert len(result.cleanup_errors) == 1
        if outcome == "interrupted":
            before = await journals(store)
            assert before
            with pytest.raises(suture.ResumeError):
                await agent.resume("k", answers={"a/1/0/after_agent/0": 1})
            assert await journals(store) == before

    play(scene())


def test_after_agent_runs_at_the_end_of_each_part_with_its_outcome(store: AnyStore):
    outcomes: list[tuple[str, int]] = []

    class Last(ChatModelAgentMiddleware[Any]):
        async def after_agent(self, state, outcome):
            outcomes.append((outcome.value, len(state.messages)))

    @tool
    async def ask() -> str:
        """Ask."""
        return str(await suture.interrupt("?"))

    agent, _ = make([turn(("c1", "ask")), "done"], ask, middlewares=[Last()], checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        assert outcomes == [("interrupted", 2)]
        await agent.resume("k", answers={paused.interrupts[0].id: "yes"})
        assert outcomes == [("interrupted", 2), ("finished", 4)]

    play(scene())
