"""The seven broken histories in a real agent: what its model is sent without Suture, and with it."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from agents import Agent, function_tool

from suture.integrations.openai_agents import PatchedSession, PatchToolCalls
from tests.guests.openai_agents.running import WAYS, Shelf, in_memory, run, scripted, sent, stored
from tests.guests.openai_agents.scripted import function_call
from tests.guests.openai_agents.written import Item, asks, gives, renamed, says, shape, unknown, user

HISTORIES: dict[str, list[Item]] = {
    "a call at the end": [user("ask"), asks("a")],
    "a call without a result": [user("ask"), asks("a"), user("stop"), says("ok")],
    "a result without a call": [user("ask"), gives("ghost"), says("ok")],
    "a result twice": [user("ask"), asks("a"), gives("a"), gives("a"), says("ok")],
    "two results": [user("ask"), asks("a"), gives("a", "41"), gives("a", "42"), says("ok")],
    "a late result": [user("ask"), asks("a"), user("stop"), says("ok"), gives("a"), says("well")],
    "an id used again": [user("ask"), asks("a"), gives("a"), says("ok"), asks("a"), user("stop"), says("well")],
    "half answered": [user("ask"), asks("a"), asks("b"), gives("b"), says("ok")],
}
LIST = {
    "a call at the end": ["ask", "a?", "next"],
    "a call without a result": ["ask", "a?", "stop", "ok", "next"],
    "a result without a call": ["ask", "ghost=42", "ok", "next"],
    "a result twice": ["ask", "a?", "a=42", "ok", "next"],
    "two results": ["ask", "a?", "a=42", "ok", "next"],
    "a late result": ["ask", "a?", "stop", "ok", "a=42", "well", "next"],
    "an id used again": ["ask", "a?", "a=42", "ok", "stop", "well", "next"],
    "half answered": ["ask", "a?", "b?", "b=42", "ok", "next"],
}
"""What the SDK sends of a list: a second call with an id is lost, all else stays as it is, but for a second result."""
SESSION = LIST | {
    "a call at the end": ["ask", "next"],
    "a call without a result": ["ask", "stop", "ok", "next"],
    "half answered": ["ask", "b?", "b=42", "ok", "next"],
}
"""What it sends of a session: there it drops calls without results, too."""
WITH = {
    "a call at the end": ["ask", "a?", unknown("a"), "next"],
    "a call without a result": ["ask", "a?", unknown("a"), "stop", "ok", "next"],
    "a result without a call": ["ask", "(retold)", "ok", "next"],
    "a result twice": ["ask", "a?", "a=42", "ok", "next"],
    "two results": ["ask", "a?", "a=42", "ok", "next"],
    "a late result": ["ask", "a?", "a=42", "stop", "ok", "well", "next"],
    "an id used again": ["ask", "a?", "a=42", "ok", "new?", unknown("new"), "stop", "well", "next"],
    "half answered": ["ask", "a?", "b?", unknown("a"), "b=42", "ok", "next"],
}

every_history = pytest.mark.parametrize("name", HISTORIES)
every_way = pytest.mark.parametrize("way", WAYS)
Makes = Callable[[Sequence[Item]], Any]
every_session = pytest.mark.parametrize("make", [in_memory, Shelf], ids=["SQLiteSession", "a session of one's own"])


@function_tool
def search() -> str:
    """Search."""
    return "found"


def answering() -> tuple[Agent[Any], Any]:
    model = scripted()
    return Agent(name="assistant", model=model), model


@every_way
@every_history
def test_what_a_model_is_sent_of_a_list_without_suture(name: str, way: str):
    agent, model = answering()
    run(agent, [*HISTORIES[name], user("next")], way)
    assert shape(sent(model)) == LIST[name]


@every_session
@every_history
def test_what_a_model_is_sent_of_a_session_without_suture(name: str, make: Makes):
    agent, model = answering()
    run(agent, "next", session=make(HISTORIES[name]))
    assert shape(sent(model)) == SESSION[name]


@every_way
@every_history
def test_what_a_model_is_sent_of_a_list_through_the_filter(name: str, way: str):
    agent, model = answering()
    run(agent, [*HISTORIES[name], user("next")], way, model_filter=PatchToolCalls())
    assert shape(sent(model), renamed(sent(model))) == WITH[name]


@every_way
@every_session
@every_history
def test_what_a_model_is_sent_of_a_patched_session(name: str, make: Makes, way: str):
    agent, model = answering()
    run(agent, "next", way, session=PatchedSession(make(HISTORIES[name])))
    assert shape(sent(model), renamed(sent(model))) == WITH[name]


@every_history
def test_both_together_send_the_same_as_either(name: str):
    agent, model = answering()
    run(agent, "next", session=PatchedSession(Shelf(HISTORIES[name])), model_filter=PatchToolCalls())
    assert shape(sent(model), renamed(sent(model))) == WITH[name]


@every_history
def test_the_filter_leaves_the_callers_list_and_the_run_alone(name: str):
    given = [*HISTORIES[name], user("next")]
    before = copy.deepcopy(given)
    agent, _ = answering()
    result = run(agent, given, model_filter=PatchToolCalls())
    assert given == before
    assert result.to_input_list()[:-1] == before


@every_session
@every_history
def test_a_session_stores_what_the_run_brought_and_nothing_else(name: str, make: Makes):
    session = make(HISTORIES[name])
    agent, _ = answering()
    run(agent, "next", session=PatchedSession(session), model_filter=PatchToolCalls())
    kept = stored(session)
    assert kept[:-2] == HISTORIES[name]
    assert shape(kept[-2:]) == ["next", "done"]


@every_history
def test_the_next_run_of_a_session_begins_with_the_same(name: str):
    """So that a prompt cache holds."""
    session = PatchedSession(Shelf(HISTORIES[name]))
    requests: list[list[Item]] = []
    for text in ("next", "more"):
        agent, model = answering()
        run(agent, text, session=session)
        requests.append(sent(model))
    once, twice = requests
    assert twice[: len(once)] == once
    assert shape(twice[len(once) :]) == ["done", "more"]


@every_history
def test_each_step_of_a_run_begins_with_the_same(name: str):
    calls = ([function_call("search", {}, call_id=call_id)] for call_id in ("x", "y"))
    model = scripted(*calls)
    agent = Agent(name="assistant", model=model, tools=[search])
    run(agent, [*HISTORIES[name], user("next")], model_filter=PatchToolCalls())
    first, second, third = (sent(model, step) for step in range(3))
    assert second[: len(first)] == first
    assert third[: len(second)] == second
    assert shape(third[len(first) :]) == ["x?", "x=found", "y?", "y=found"]
