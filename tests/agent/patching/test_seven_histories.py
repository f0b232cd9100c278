"""The seven broken histories, however they come into a run, on each wire: what the model is sent is right."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest

import suture
from suture import ChatModelAgent, ChatModelAgentMiddleware, ChatModelAgentState, ModelContext, interrupt, replace
from suture.middleware import PatchToolCalls
from suture.stores import MemoryStore, SQLiteStore
from suture.testing import ScriptedModel
from tests.agent.patching.seven import CASES, Case, Damage
from tests.agent.patching.wiring import (
    assert_acceptable,
    assert_says,
    assert_sent,
    history,
    on_each_wire,
    one,
    sent,
)
from tests.shapes.notation import says, user
from tests.shapes.wires import read

each_case = pytest.mark.parametrize("case", CASES, ids=str)
REPLY = says("The moon is full.")
MORE = user("And now?")

UNPERSISTED: dict[str, Callable[[], tuple[list[ChatModelAgentMiddleware[Any]], bool]]] = {
    "fit alone": lambda: ([], False),
    "persist=False": lambda: ([PatchToolCalls(persist=False)], True),
}


class Asks(ChatModelAgentMiddleware[Any]):
    """Waits for an answer before the first model turn."""

    async def before_model_rewrite_state(self, state: ChatModelAgentState[Any], model_context: ModelContext) -> None:
        if model_context.turn == 1:
            await interrupt("May I go on?")


class Damages(ChatModelAgentMiddleware[Any]):
    """Breaks the history before the first model turn."""

    def __init__(self, damage: Damage) -> None:
        self.damage = damage

    def before_model_rewrite_state(
        self, state: ChatModelAgentState[Any], model_context: ModelContext
    ) -> ChatModelAgentState[Any]:
        if model_context.turn > 1:
            return state
        wire = model_context.wire
        return replace(state, messages=self.damage(list(state.messages), lambda step: one(wire, step)))


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    opened: Any = (
        nullcontext(MemoryStore()) if request.param == "memory" else closing(SQLiteStore(tmp_path / "runs.db"))
    )
    with opened as one_store:
        yield one_store


def test_the_table_holds_the_seven_histories_and_all_of_them_are_broken():
    assert sorted({case.name[0] for case in CASES}) == list("ABCDEFG")
    for case in CASES:
        for wire in ("message", "agentic", "openai-chat"):
            messages = history(wire, *case.broken)
            damaged = case.damage(history(wire, *case.whole), lambda step, wire=wire: one(wire, step))
            assert read(wire, damaged) == read(wire, messages)
            with pytest.raises(AssertionError):
                assert_acceptable(wire, messages)


# Entering as the input


@each_case
@on_each_wire
def test_as_input_the_model_is_sent_the_repaired_history_and_the_run_keeps_it(wire: str, case: Case):
    model = ScriptedModel([REPLY.text], wire)
    messages = history(wire, *case.broken)
    agent = ChatModelAgent(model=model, middlewares=[PatchToolCalls()])
    result = agent.run_sync(messages)
    assert_sent(model, *case.wanted)
    assert_says(wire, result.messages, *case.wanted, REPLY)
    assert messages == history(wire, *case.broken), "the caller's list is his own"


@each_case
@on_each_wire
def test_messages_that_were_right_are_sent_as_the_very_same_objects(wire: str, case: Case):
    model = ScriptedModel([REPLY.text], wire)
    messages = history(wire, *case.broken)
    ChatModelAgent(model=model, middlewares=[PatchToolCalls()]).run_sync(messages)
    own = {id(message) for message in messages}
    foreign = [message for message in sent(model) if id(message) not in own]
    given, wanted = read(wire, messages), read(wire, sent(model))
    assert read(wire, foreign) == [entry for entry in wanted if entry not in given]


@pytest.mark.parametrize("way", UNPERSISTED)
@each_case
@on_each_wire
def test_what_is_not_persisted_is_sent_right_and_the_run_keeps_the_broken_history(wire: str, case: Case, way: str):
    model = ScriptedModel([REPLY.text], wire)
    messages = history(wire, *case.broken)
    middlewares, repair = UNPERSISTED[way]()
    result = ChatModelAgent(model=model, middlewares=middlewares, repair=repair).run_sync(messages)
    assert_sent(model, *case.wanted)
    kept = list(result.messages)
    assert all(mine is theirs for mine, theirs in zip(kept, messages, strict=False))
    assert_says(wire, kept, *case.broken, REPLY)


@pytest.mark.parametrize("way", [*UNPERSISTED, "persist=True", "by default"])
@each_case
@on_each_wire
def test_a_history_that_a_run_left_is_right_in_the_next_run(wire: str, case: Case, way: str):
    model = ScriptedModel([REPLY.text, "Now it sets."], wire)
    settled = ([PatchToolCalls()] if way == "persist=True" else [], True)
    middlewares, repair = UNPERSISTED.get(way, lambda: settled)()
    agent = ChatModelAgent(model=model, middlewares=middlewares, repair=repair)
    first = agent.run_sync(history(wire, *case.broken))
    agent.run_sync([*first.messages, one(wire, MORE)])
    # A late result goes home in the second run as it did in the first, wherever it was left.
    assert_sent(model, *case.wanted, REPLY, MORE)


# Entering as a resumed checkpoint


@each_case
@on_each_wire
def test_a_resumed_checkpoint_is_sent_right(wire: str, case: Case, store: Any):
    async def use() -> None:
        model = ScriptedModel([REPLY.text], wire)
        agent = ChatModelAgent(model=model, middlewares=[Asks(), PatchToolCalls()], checkpoint_store=store)
        stopped = await agent.run(history(wire, *case.broken), checkpoint_id="c")
        assert (stopped.outcome, model.requests) == ("interrupted", [])
        assert suture.check(stopped.messages, wire=wire, profile="pairing", tail="keep").acceptable
        again = ChatModelAgent(model=model, middlewares=[Asks(), PatchToolCalls()], checkpoint_store=store)
        result = await again.resume("c", answers={stopped.interrupts[0].id: True})
        assert_sent(model, *case.wanted)
        assert_says(wire, result.messages, *case.wanted, REPLY)

    asyncio.run(use())


@pytest.mark.parametrize("way", UNPERSISTED)
@each_case
@on_each_wire
def test_a_resumed_checkpoint_is_sent_right_without_persisting_it(wire: str, case: Case, way: str):
    async def use() -> None:
        model = ScriptedModel([REPLY.text], wire)
        middlewares, repair = UNPERSISTED[way]()
        agent = ChatModelAgent(
            model=model, middlewares=[Asks(), *middlewares], repair=repair, checkpoint_store=MemoryStore()
        )
        stopped = await agent.run(history(wire, *case.broken), checkpoint_id="c")
        result = await agent.resume("c", answers={stopped.interrupts[0].id: True})
        assert_sent(model, *case.wanted)
        assert_says(wire, result.messages, *case.broken, REPLY)

    asyncio.run(use())


@each_case
@on_each_wire
def test_a_finished_checkpoint_goes_on_with_the_repaired_history(wire: str, case: Case, store: Any):
    async def use() -> None:
        model = ScriptedModel([REPLY.text, "Now it sets."], wire)
        agent = ChatModelAgent(model=model, middlewares=[PatchToolCalls()], checkpoint_store=store)
        await agent.run(history(wire, *case.broken), checkpoint_id="c")
        result = await agent.run("And now?", checkpoint_id="c")
        assert_sent(model, *case.wanted, REPLY, MORE)
        assert_says(wire, result.messages, *case.wanted, REPLY, MORE, says("Now it sets."))

    asyncio.run(use())


# Entering by another middleware's fault


@each_case
@on_each_wire
def test_what_a_later_middleware_breaks_is_mended_for_the_call_and_when_the_run_ends(wire: str, case: Case):
    model = ScriptedModel([REPLY.text], wire)
    agent = ChatModelAgent(model=model, middlewares=[PatchToolCalls(), Damages(case.damage)])
    result = agent.run_sync(history(wire, *case.whole))
    assert_sent(model, *case.wanted)
    assert_says(wire, result.messages, *case.wanted, REPLY)


@each_case
@on_each_wire
def test_what_an_earlier_middleware_breaks_is_mended_for_good(wire: str, case: Case):
    model = ScriptedModel([REPLY.text], wire)
    agent = ChatModelAgent(model=model, middlewares=[Damages(case.damage), PatchToolCalls()])
    result = agent.run_sync(history(wire, *case.whole))
    assert_sent(model, *case.wanted)
    assert_says(wire, result.messages, *case.wanted, REPLY)


@pytest.mark.parametrize("way", UNPERSISTED)
@each_case
@on_each_wire
def test_what_a_middleware_breaks_is_sent_right_without_persisting_it(wire: str, case: Case, way: str):
    model = ScriptedModel([REPLY.text], wire)
    middlewares, repair = UNPERSISTED[way]()
    agent = ChatModelAgent(model=model, middlewares=[Damages(case.damage), *middlewares], repair=repair)
    result = agent.run_sync(history(wire, *case.whole))
    assert_sent(model, *case.wanted)
    assert_says(wire, result.messages, *case.broken, REPLY)
