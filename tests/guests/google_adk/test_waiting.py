"""What somebody may still answer stays open: tools that take long, people who were asked, agents that have a task."""

import asyncio
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.sessions import InMemorySessionService
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.genai import types

from suture.integrations.google_adk import PatchToolCallsPlugin
from tests.guests.google_adk.recording import (
    AGENT,
    Recorder,
    answers,
    asks,
    canceled,
    drops_open_calls,
    event,
    keep,
    run,
    runner,
    said,
    sent,
    stored,
    told,
    unknown,
)

# Releases before 2.13 say so of the way in which they describe a function to a model.
pytestmark = pytest.mark.filterwarnings("ignore:.EXPERIMENTAL. feature:UserWarning")

ASK = said("Pay Bo.", "user")


def calls(name: str, call_id: str, **args: Any) -> types.Content:
    call = types.FunctionCall(id=call_id, name=name, args=args)
    return types.Content(role="model", parts=[types.Part(function_call=call)])


def talk(agent: LlmAgent, *messages: str | types.Content) -> list[Any]:
    """Return the session after these messages."""

    async def main():
        service = InMemorySessionService()
        await keep(service, [])
        bank = runner(agent, service, [PatchToolCallsPlugin()])
        for message in messages:
            await run(bank, message)
        return await stored(service)

    return asyncio.run(main())


def approve(to: str) -> None:
    """Have a payment approved."""


def test_a_tool_that_takes_long_is_open_in_the_session_and_unknown_to_the_model():
    model = Recorder(replies=[asks("a", name="approve")])
    events = talk(LlmAgent(name=AGENT, model=model, tools=[LongRunningFunctionTool(approve)]), "Pay Bo.", "How is it?")
    assert [each.author for each in events] == ["user", AGENT, "user", AGENT]
    assert model.requests[1] == [
        ("user", [("text", "Pay Bo.")]),
        ("model", [("call", "approve", "a")]),
        ("user", [("answer", "approve", "a", unknown("a", "approve")), ("text", "How is it?")]),
    ]


def test_its_answer_is_taken_when_it_comes():
    model = Recorder(replies=[asks("a", name="approve"), said("Not yet."), said("It is."), said("Bye.")])
    agent = LlmAgent(name=AGENT, model=model, tools=[LongRunningFunctionTool(approve)])
    talk(agent, "Pay Bo.", "How is it?", answers("approve", a="approved"), "Thanks.")
    real = ("answer", "approve", "a", {"result": "approved"})
    assert model.requests[2][2] == ("user", [real])
    assert model.requests[3][2] == ("user", [real, ("text", "How is it?")])


def test_a_call_beside_one_that_takes_long_is_answered():
    events = [event(ASK), event(asks("a", "b"), long_running_tool_ids={"b"})]
    assert sent(events, [PatchToolCallsPlugin()])[2] == (
        "user",
        [("answer", "pay", "a", canceled("a")), ("answer", "pay", "b", unknown("b")), ("text", "Go on.")],
    )


def test_a_person_who_was_asked_can_still_confirm():
    paid: list[str] = []

    def pay(to: str) -> str:
        """Pay somebody."""
        paid.append(to)
        return f"paid {to}"

    async def main():
        model, service = Recorder(replies=[asks("a"), said("Wait.")]), InMemorySessionService()
        await keep(service, [])
        agent = LlmAgent(name=AGENT, model=model, tools=[FunctionTool(pay, require_confirmation=True)])
        bank = runner(agent, service, [PatchToolCallsPlugin()])
        await run(bank, "Pay Bo.")
        await run(bank, "One moment.")
        before = await stored(service)
        [request] = [call for each in before for call in each.get_function_calls() if call.id != "a"]
        confirmed = types.FunctionResponse(id=request.id, name=request.name, response={"confirmed": True})
        await run(bank, types.Content(role="user", parts=[types.Part(function_response=confirmed)]))
        return before, model.requests[-1]

    before, request = asyncio.run(main())
    assert [each.author for each in before] == ["user", AGENT, AGENT, AGENT, "user", AGENT]
    assert paid == ["Bo"]
    assert request[2] == ("user", [("answer", "pay", "a", {"result": "paid Bo"})])


@drops_open_calls
@pytest.mark.parametrize("name", ["adk_request_confirmation", "adk_request_credential", "adk_request_input", "wait"])
@pytest.mark.parametrize(("call_id", "is_told"), [("a", False), ("b", True)])
def test_a_call_during_which_a_person_was_asked_is_not_said_to_be_over(name: str, call_id: str, is_told: bool):
    """ADK runs it again when the answer comes; until then it does not tell the model of it."""
    takes_long = {"i"} if name == "wait" else None  # older sessions do not say so of what ADK asks
    asked = event(calls(name, "i"), "clerk", branch="clerk@a", long_running_tool_ids=takes_long)
    request = sent([event(ASK), event(calls("clerk", call_id)), asked], [PatchToolCallsPlugin()])
    assert [atom[3] for _, atoms in request for atom in atoms if atom[0] == "answer"] == (
        [canceled(call_id, "clerk")] if is_told else []
    )


def bank_with_a_task(coordinator: Recorder, clerk: Recorder, *tools: Any) -> LlmAgent:
    payer = LlmAgent(name="payer", model=clerk, mode="task", description="Pays.", tools=list(tools))
    return LlmAgent(name=AGENT, model=coordinator, sub_agents=[payer])


def test_an_agent_that_has_a_task_goes_on_with_it():
    clerk = Recorder(replies=[said("From which account?"), calls("finish_task", "f", result="paid")])
    coordinator = Recorder(replies=[calls("payer", "d", request="Pay Bo."), said("Done.")])
    events = talk(bank_with_a_task(coordinator, clerk), "Pay Bo.", "The first.")
    assert told(events[-1].content) == ("model", [("text", "Done.")])
    assert clerk.requests[1][-1] == ("user", [("text", "The first.")])
    assert coordinator.requests[1][2] == ("user", [("answer", "payer", "d", {"result": "paid"})])


def test_a_task_that_was_given_and_not_begun_is_begun():
    async def main():
        clerk = Recorder(replies=[calls("finish_task", "f", result="paid")])
        coordinator, service = Recorder(), InMemorySessionService()
        await keep(service, [event(ASK), event(calls("payer", "d", request="Pay Bo."))])
        await run(runner(bank_with_a_task(coordinator, clerk), service, [PatchToolCallsPlugin()]))
        return coordinator.requests

    [request] = asyncio.run(main())
    assert request[2] == ("user", [("answer", "payer", "d", {"result": "paid"})])


def test_a_call_that_was_lost_within_a_task_is_answered_and_the_task_goes_on():
    def pay(to: str) -> str:
        """Pay somebody."""
        raise OSError(f"the bank of {to} is closed")

    async def main():
        clerk = Recorder(replies=[asks("a"), calls("finish_task", "f", result="given up")])
        coordinator, service = Recorder(replies=[calls("payer", "d", request="Pay Bo.")]), InMemorySessionService()
        await keep(service, [])
        bank = runner(bank_with_a_task(coordinator, clerk, pay), service, [PatchToolCallsPlugin()])
        with pytest.raises(OSError, match="the bank of Bo is closed"):
            await run(bank, "Pay Bo.")
        await run(bank, "Never mind.")
        return coordinator.requests, clerk.requests

    coordinator, clerk = asyncio.run(main())
    assert clerk[1][1:] == [
        ("model", [("call", "pay", "a")]),
        ("user", [("answer", "pay", "a", canceled("a")), ("text", "Never mind.")]),
    ]
    assert coordinator[1][2] == ("user", [("answer", "payer", "d", {"result": "given up"})])


@drops_open_calls
@pytest.mark.parametrize(("scope", "is_told"), [("a", False), ("b", True)])
def test_a_call_that_gave_a_task_to_an_agent_that_is_gone_is_not_said_to_be_over(scope: str, is_told: bool):
    at_work = event(said("From where?"), "gone", branch=f"gone@{scope}", isolation_scope=scope)
    request = sent([event(ASK), event(calls("gone", "a")), at_work], [PatchToolCallsPlugin()])
    assert [atom[3] for _, atoms in request for atom in atoms if atom[0] == "answer"] == (
        [canceled("a", "gone")] if is_told else []
    )
