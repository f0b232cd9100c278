"""Calls that a run may still answer: pydantic-ai's own ways to go on with them work as they do without Suture."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import Agent, CallDeferred, DeferredToolRequests, DeferredToolResults, ToolDenied
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart

from suture.integrations.pydantic_ai import PatchToolCalls
from tests.guests.pydantic_ai.recording import Recorder
from tests.guests.pydantic_ai.ways import WAYS, run
from tests.guests.pydantic_ai.written import WHEN, asks, gives, no, results, says, shape, user

every_way = pytest.mark.parametrize("way", WAYS)
SETTINGS: dict[str, list[PatchToolCalls]] = {"without": [], "with": [PatchToolCalls()]}
either = pytest.mark.parametrize("capabilities", SETTINGS.values(), ids=SETTINGS)


def office(model: Recorder, capabilities: list[Any]) -> Agent[None, Any]:
    """An agent with a plain tool, one that waits for approval, and one that somebody else runs."""
    agent: Agent[None, Any] = Agent(model, output_type=[str, DeferredToolRequests], capabilities=capabilities)

    @agent.tool_plain
    def search(q: str) -> str:
        return f"found {q}"

    @agent.tool_plain(requires_approval=True)
    def delete(path: str) -> str:
        return f"deleted {path}"

    @agent.tool_plain
    def phone(number: str) -> str:
        raise CallDeferred({"number": number})

    return agent


DELETE = ToolCallPart("delete", {"path": "x"}, "d")
SEARCH = ToolCallPart("search", {"q": "x"}, "s")
PHONE = ToolCallPart("phone", {"number": "1"}, "p")


def turn(*calls: ToolCallPart) -> ModelResponse:
    return ModelResponse(list(calls), timestamp=WHEN)


@either
@every_way
def test_a_run_without_a_prompt_runs_the_calls_at_the_end(capabilities: list[Any], way: str):
    model = Recorder()
    result = run(office(model, capabilities), None, way=way, message_history=[user("ask"), turn(SEARCH)])
    assert shape(model.sent) == [["ask"], ["s?"], ["s=found x"]]
    assert shape(result.all_messages()) == [["ask"], ["s?"], ["s=found x"], ["done"]]


APPROVALS: dict[str, tuple[Any, str]] = {
    "approved": (True, "d=deleted x"),
    "denied": (ToolDenied("not that one"), "d=not that one (denied)"),
}


@either
@every_way
@pytest.mark.parametrize(("verdict", "told"), APPROVALS.values(), ids=APPROVALS)
def test_a_call_that_waits_for_approval_gets_it(capabilities: list[Any], way: str, verdict: Any, told: str):
    model = Recorder(turn(SEARCH, DELETE))
    agent = office(model, capabilities)
    first = run(agent, "ask", way=way)
    approvals = DeferredToolResults(approvals={"d": verdict})
    run(agent, None, way=way, message_history=first.all_messages(), deferred_tool_results=approvals)
    assert shape(model.requests[-1]) == [["ask"], ["s?", "d?"], ["s=found x", told]]


@either
@every_way
def test_a_call_that_somebody_else_runs_gets_its_result_along_with_a_new_prompt(capabilities: list[Any], way: str):
    model = Recorder(turn(PHONE))
    agent = office(model, capabilities)
    first = run(agent, "ask", way=way)
    answers = DeferredToolResults(calls={"p": "nobody there"})
    run(agent, "next", way=way, message_history=first.all_messages(), deferred_tool_results=answers)
    assert shape(model.requests[-1]) == [["ask"], ["p?"], ["p=nobody there", "next"]]


@either
def test_a_call_gets_its_deferred_result_though_something_was_said_since(capabilities: list[Any]):
    model = Recorder()
    history = [user("ask"), turn(PHONE), user("still there?")]
    answers = DeferredToolResults(calls={"p": "nobody there"})
    run(office(model, capabilities), None, message_history=history, deferred_tool_results=answers)
    assert shape(model.sent) == [["ask"], ["p?"], ["p=nobody there", "still there?"]]


@either
@pytest.mark.parametrize("prompt", ["next", None])
def test_deferred_results_for_no_call_are_refused(capabilities: list[Any], prompt: str | None):
    with pytest.raises(UserError, match="does not contain"):
        run(
            office(Recorder(), capabilities),
            prompt,
            message_history=[user("ask")],
            deferred_tool_results=DeferredToolResults(calls={"p": "nobody there"}),
        )


def test_a_new_prompt_cancels_a_call_that_waits_for_approval():
    model = Recorder(turn(SEARCH, DELETE))
    agent = office(model, [PatchToolCalls(generator=no)])
    first = run(agent, "ask")
    run(agent, "next", message_history=first.all_messages())
    assert shape(model.requests[-1]) == [["ask"], ["s?", "d?"], ["s=found x", "d=no delete (interrupted)", "next"]]


BROKEN: list[ModelMessage] = [user("old"), asks("a"), user("stop"), says("ok"), results(gives("ghost", "42"))]
MENDED = [["old"], ["a?"], ["a=no search (interrupted)", "stop"], ["ok"]]


GOINGS_ON: dict[str, Callable[[], dict[str, Any]]] = {
    "s=found x": dict,
    "p=nobody there": lambda: {"deferred_tool_results": DeferredToolResults(calls={"p": "nobody there"})},
}


@every_way
@pytest.mark.parametrize(("told", "settings"), GOINGS_ON.items(), ids=GOINGS_ON)
def test_what_stands_before_an_open_call_is_mended(told: str, settings: Callable[[], dict[str, Any]], way: str):
    model = Recorder()
    agent = office(model, [PatchToolCalls(generator=no, orphans="drop")])
    call = SEARCH if told.startswith("s") else PHONE
    history = [*BROKEN, turn(call)]
    result = run(agent, None, way=way, message_history=history, **settings())
    assert shape(model.sent) == [*MENDED[:-1], ["ok", f"{told[0]}?"], [told]]
    assert shape(result.all_messages())[:3] == MENDED[:3]


def test_a_run_without_a_prompt_sends_a_request_at_the_end_with_all_its_calls_answered():
    model = Recorder()
    agent = office(model, [PatchToolCalls(generator=no)])
    run(agent, None, message_history=[user("ask"), turn(SEARCH, DELETE), results(gives("s", "found x"))])
    assert shape(model.sent) == [["ask"], ["s?", "d?"], ["s=found x", "d=no delete (interrupted)"]]


@either
def test_a_new_prompt_behind_a_turn_that_its_provider_paused_is_refused(capabilities: list[Any]):
    paused = ModelResponse([SEARCH], state="suspended", timestamp=WHEN)
    with pytest.raises(UserError, match="ends in a suspended response"):
        run(office(Recorder(), capabilities), "next", message_history=[user("ask"), paused])


def test_a_turn_that_its_provider_paused_goes_back_as_it_came():
    patch = PatchToolCalls(generator=no)
    paused = ModelResponse([SEARCH], state="suspended", timestamp=WHEN)
    whole = [user("ask"), paused]
    assert patch(whole) is whole
    *before, last = patch([*BROKEN[:3], paused])
    assert shape(before) == [["old"], ["a?"], ["a=no search (interrupted)"], ["stop"]]
    assert last is paused
