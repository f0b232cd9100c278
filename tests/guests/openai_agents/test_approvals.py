"""Runs that wait for approval: they still wait, and go on, with Suture as without it."""

import asyncio
import json
from typing import Any

import pytest
from agents import Agent, RunState, SQLiteSession, Usage, function_tool

from suture.integrations.openai_agents import PatchedSession, PatchToolCalls
from tests.guests.openai_agents.running import arun, sent
from tests.guests.openai_agents.scripted import ScriptedModel, assistant_message, function_call
from tests.guests.openai_agents.written import asks, shape, unknown, user
from tests.guests.releases import since

REJECTED = "Tool execution was not approved."
with_and_without = pytest.mark.parametrize("patched", [False, True], ids=["without Suture", "with Suture"])
in_memory_or_as_json = pytest.mark.parametrize("as_json", [False, True], ids=["in memory", "as JSON"])
every_way = pytest.mark.parametrize("way", ["run", "run_streamed"])


class Faulty(SQLiteSession):
    """A session whose next write goes wrong: before anything is stored, or when all of it is."""

    goes_wrong = ""

    async def add_items(self, items: list[Any]) -> None:
        wrong, self.goes_wrong = self.goes_wrong, ""
        if wrong == "before":
            raise OSError("the disk is full")
        await super().add_items(items)
        if wrong == "behind":
            raise OSError("the connection was lost")


class Office:
    """An agent whose tool needs approval, its session, and all that happened."""

    def __init__(self, *, patched: bool, as_json: bool, replies: int = 1, way: str = "run") -> None:
        self.deleted: list[str] = []

        @function_tool(needs_approval=True)
        def delete(name: str) -> str:
            """Delete a file."""
            self.deleted.append(name)
            return f"{name} is gone"

        asked = [function_call("delete", {"name": each}, call_id=each) for each in ("a", "b")]
        self.model = ScriptedModel([asked, *([assistant_message("done")] for _ in range(replies))])
        self.agent = Agent(name="assistant", model=self.model, tools=[delete])
        self.store = Faulty("conversation")
        self.session = PatchedSession(self.store) if patched else self.store
        self.filter = PatchToolCalls() if patched else None
        self.as_json, self.way = as_json, way

    async def run(self, given: Any) -> Any:
        return await arun(self.agent, given, self.way, model_filter=self.filter, session=self.session)

    async def state(self, result: Any) -> RunState[Any]:
        """Return the state of an interrupted run, as another process would have it if that is asked for."""
        return await self.again(result.to_state())

    async def again(self, state: RunState[Any]) -> RunState[Any]:
        if not self.as_json:
            return state
        return await RunState.from_json(self.agent, json.loads(json.dumps(state.to_json())))

    async def stored(self) -> list[str]:
        return shape(await self.store.get_items())


@every_way
@with_and_without
@in_memory_or_as_json
def test_a_call_that_waits_is_run_when_it_is_approved(patched: bool, as_json: bool, way: str):
    async def main() -> None:
        office = Office(patched=patched, as_json=as_json, way=way)
        paused = await office.run("tidy up")
        assert await office.stored() == ["tidy up", "a?", "b?"]
        state = await office.state(paused)
        kept, gone = state.get_interruptions()
        state.approve(kept)
        state.reject(gone)
        ended = await office.run(state)
        assert (ended.final_output, office.deleted) == ("done", ["a"])
        assert shape(sent(office.model)) == ["tidy up", "a?", "b?", "a=a is gone", f"b={REJECTED}"]
        assert await office.stored() == [*shape(sent(office.model)), "done"]

    asyncio.run(main())


@with_and_without
@in_memory_or_as_json
def test_one_call_can_be_decided_while_another_waits(patched: bool, as_json: bool):
    async def main() -> None:
        office = Office(patched=patched, as_json=as_json)
        state = await office.state(await office.run("tidy up"))
        state.approve(state.get_interruptions()[0])
        paused = await office.run(state)
        assert office.deleted == ["a"]
        state = await office.state(paused)
        (waiting,) = state.get_interruptions()
        state.approve(waiting)
        await office.run(state)
        assert office.deleted == ["a", "b"]
        assert shape(sent(office.model)) == ["tidy up", "a?", "b?", "a=a is gone", "b=b is gone"]

    asyncio.run(main())


@in_memory_or_as_json
def test_a_message_may_come_in_while_calls_wait_and_they_still_run(as_json: bool):
    async def main() -> None:
        office = Office(patched=True, as_json=as_json, replies=3)
        paused = await office.run("tidy up")
        await office.run("what is the time?")
        waiting = [unknown(each, "delete") for each in ("a", "b")]
        assert shape(sent(office.model)) == ["tidy up", "a?", "b?", *waiting, "what is the time?"]
        state = await office.state(paused)
        for each in state.get_interruptions():
            state.approve(each)
        await office.run(state)
        assert sorted(office.deleted) == ["a", "b"]
        await office.run("well?")
        late = ["a=a is gone", "b=b is gone"]
        assert shape(sent(office.model))[:6] == ["tidy up", "a?", "b?", *late, "what is the time?"]

    asyncio.run(main())


def test_without_suture_the_model_never_learns_that_it_asked():
    async def main() -> None:
        office = Office(patched=False, as_json=False, replies=2)
        await office.run("tidy up")
        await office.run("what is the time?")
        assert shape(sent(office.model)) == ["tidy up", "what is the time?"]

    asyncio.run(main())


@with_and_without
@in_memory_or_as_json
@pytest.mark.parametrize("usage", [Usage(requests=1), Usage()], ids=["usage is told", "it is not"])
@pytest.mark.parametrize(
    "when", [pytest.param("before", marks=since("openai-agents", "0.22.1", "results stored again")), "behind"]
)
def test_a_resumed_run_whose_result_could_not_be_stored_can_be_resumed_again(
    when: str, usage: Usage, patched: bool, as_json: bool
):
    """Nothing runs twice and nothing is stored twice: the SDK finds the end of the store as it left it."""

    async def main() -> None:
        office = Office(patched=patched, as_json=as_json)
        office.model.usage = usage
        state = await office.state(await office.run("tidy up"))
        for each in state.get_interruptions():
            state.approve(each)
        office.store.goes_wrong = when
        with pytest.raises(OSError, match=r"disk|connection"):
            await office.run(state)
        assert sorted(office.deleted) == ["a", "b"]
        await office.run(await office.again(state))
        assert sorted(office.deleted) == ["a", "b"]
        assert await office.stored() == ["tidy up", "a?", "b?", "a=a is gone", "b=b is gone", "done"]

    asyncio.run(main())


@with_and_without
def test_a_broken_history_is_behind_a_call_that_waits(patched: bool):
    async def main() -> None:
        office = Office(patched=patched, as_json=True)
        broken: list[Any] = [user("hi"), asks("x", "delete")]
        await office.store.add_items(broken)
        state = await office.state(await office.run("tidy up"))
        for each in state.get_interruptions():
            state.approve(each)
        office.store.goes_wrong = "behind"
        with pytest.raises(OSError, match="connection"):
            await office.run(state)
        await office.run(await office.again(state))
        assert sorted(office.deleted) == ["a", "b"]
        answered = ["x?", unknown("x", "delete")] if patched else []
        rest = ["tidy up", "a?", "b?", "a=a is gone", "b=b is gone"]
        assert shape(sent(office.model)) == ["hi", *answered, *rest]

    asyncio.run(main())


@with_and_without
def test_of_an_input_list_the_sdk_itself_drops_open_calls_when_a_run_is_resumed(patched: bool):
    """Nobody is asked before that; a patched session keeps them."""

    async def main() -> None:
        office = Office(patched=patched, as_json=True)
        given = [user("hi"), asks("x"), user("tidy up")]
        paused = await arun(office.agent, given, model_filter=office.filter)
        first = ["hi", "x?", *([unknown("x")] if patched else []), "tidy up"]
        assert shape(sent(office.model)) == first
        state = await office.state(paused)
        for each in state.get_interruptions():
            state.approve(each)
        await arun(office.agent, state, model_filter=office.filter)
        assert shape(sent(office.model)) == ["hi", "tidy up", "a?", "b?", "a=a is gone", "b=b is gone"]

    asyncio.run(main())
