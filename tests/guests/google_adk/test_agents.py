"""Agents of several kinds, and the ways to run them."""

import asyncio
from typing import Any

import pytest
from google.adk.agents import LlmAgent, ParallelAgent, SequentialAgent
from google.adk.agents.run_config import RunConfig
from google.adk.models.llm_request import LlmRequest
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService

from suture.integrations.google_adk import PatchToolCallsPlugin
from tests.guests.google_adk.recording import (
    AGENT,
    APP,
    SESSION,
    USER,
    Recorder,
    answers,
    asks,
    event,
    keep,
    run,
    runner,
    said,
    sent,
    stored,
    unknown,
)

# Releases before 2.13 say so of the way in which they describe a function to a model.
pytestmark = pytest.mark.filterwarnings("ignore:.EXPERIMENTAL. feature:UserWarning")

ASK = said("Pay Bo.", "user")
MENDED = [
    ("user", [("text", "Pay Bo.")]),
    ("model", [("call", "pay", "a")]),
    ("user", [("answer", "pay", "a", unknown("a")), ("text", "Go on.")]),
]


def test_run_without_async_sends_the_same():
    service, model = InMemorySessionService(), Recorder()
    asyncio.run(keep(service, [event(ASK), event(asks("a"))]))
    bank = runner(LlmAgent(name=AGENT, model=model), service, [PatchToolCallsPlugin()])
    [*_] = bank.run(user_id=USER, session_id=SESSION, new_message=said("Go on.", "user"))
    assert model.requests == [MENDED]


def test_a_stream_sends_the_same():
    async def main():
        service, model = InMemorySessionService(), Recorder()
        await keep(service, [event(ASK), event(asks("a"))])
        bank = runner(LlmAgent(name=AGENT, model=model), service, [PatchToolCallsPlugin()])
        events = await run(bank, run_config=RunConfig.model_validate({"streaming_mode": "sse"}))
        return model, [each.partial for each in events]

    model, partial = asyncio.run(main())
    assert model.requests == [MENDED]
    assert (model.streamed, partial) == ([True], [True, False])


@pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning")  # still what many write
def test_a_runner_takes_the_plugin_too():
    async def main():
        service, model = InMemorySessionService(), Recorder()
        await keep(service, [event(ASK), event(asks("a"))])
        agent = LlmAgent(name=AGENT, model=model)
        await run(Runner(app_name=APP, agent=agent, session_service=service, plugins=[PatchToolCallsPlugin()]))
        return model.requests

    assert asyncio.run(main()) == [MENDED]


def test_a_run_of_many_steps_changes_nothing_that_is_in_order():
    async def main(*plugins: Any):
        service = InMemorySessionService()
        await keep(service, [])

        def pay(to: str) -> str:
            """Pay somebody."""
            return f"paid {to}"

        model = Recorder(replies=[asks("a"), asks("b", "c"), said("Done."), asks("d")])
        bank = runner(LlmAgent(name=AGENT, model=model, tools=[pay]), service, plugins)
        await run(bank, "Pay Bo.")
        await run(bank, "Once more.")
        return model.requests, [each.author for each in await stored(service)]

    assert asyncio.run(main(PatchToolCallsPlugin())) == asyncio.run(main())


def test_an_agent_that_sees_only_its_turn_has_no_old_call():
    def forgetful(model: Recorder) -> LlmAgent:
        return LlmAgent(name=AGENT, model=model, include_contents="none")

    request = sent([event(ASK), event(asks("a"))], [PatchToolCallsPlugin()], forgetful)
    assert request == [("user", [("text", "Go on.")])]


def test_an_old_call_does_not_decide_which_agent_goes_on():
    """The answer to it is the last thing that an agent did, when the request to the model fails."""

    class Failing(Recorder):
        async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False):
            if not self.requests:
                self._requests.append([])
                raise OSError("no network")
            async for each in super().generate_content_async(llm_request, stream):
                yield each

    async def main():
        service, model, clerk = InMemorySessionService(), Failing(), Recorder()
        helper = LlmAgent(name="helper", model=clerk, description="Helps.")
        await keep(
            service,
            [
                event(ASK),
                event(asks("a"), "helper"),
                event(said("And?", "user"), invocation="later"),
                event(said("I see."), invocation="later"),
            ],
        )
        bank = runner(LlmAgent(name=AGENT, model=model, sub_agents=[helper]), service, [PatchToolCallsPlugin()])
        with pytest.raises(OSError, match="no network"):
            await run(bank)
        await run(bank)
        return len(model.requests), len(clerk.requests)

    assert asyncio.run(main()) == (2, 0)


def test_an_agent_is_told_of_another_ones_call_and_its_answer_in_words():
    def with_helper(model: Recorder) -> LlmAgent:
        return LlmAgent(name=AGENT, model=model, sub_agents=[LlmAgent(name="helper", model=Recorder())])

    events = [event(ASK), event(asks("a"), "helper"), event(said("I see."))]
    request = sent(events, [PatchToolCallsPlugin()], with_helper)
    words = "".join(text for _, atoms in request for kind, text, *_ in atoms if kind == "text")
    assert "[helper] called tool `pay`" in words
    assert f"[helper] `pay` tool returned result:\n<<<BEGIN_QUOTED_AGENT_CONTENT>>>\n{unknown('a')}" in words


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # ADK would rather have workflows than these agents
def test_agents_that_run_side_by_side_see_the_calls_of_their_own_branch():
    async def main():
        one, two, service = Recorder(), Recorder(), InMemorySessionService()
        both = ParallelAgent(name="both", sub_agents=[LlmAgent(name="one", model=one), LlmAgent(name="two", model=two)])
        events = [event(ASK), event(asks("a"), "one", branch="both.one"), event(asks("b"), "two", branch="both.two")]
        await keep(service, events)
        await run(runner(both, service, [PatchToolCallsPlugin()]))
        return one.requests[0], two.requests[0]

    one, two = asyncio.run(main())
    assert one == MENDED
    assert two[1] == ("model", [("call", "pay", "b")])
    assert two[2][1] == [("answer", "pay", "b", unknown("b")), ("text", "Go on.")]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # as above
def test_agents_that_run_one_after_the_other_each_get_what_they_can_send():
    async def main():
        one, two, service = Recorder(), Recorder(), InMemorySessionService()
        row = SequentialAgent(name="row", sub_agents=[LlmAgent(name="one", model=one), LlmAgent(name="two", model=two)])
        await keep(service, [event(ASK), event(asks("a", "b"), "two"), event(answers(a="paid"), "two")])
        await run(runner(row, service, [PatchToolCallsPlugin()]))
        return two.requests[0]

    _, turn, (role, atoms) = asyncio.run(main())
    assert turn == ("model", [("call", "pay", "a"), ("call", "pay", "b")])
    assert (role, atoms[:3]) == (
        "user",
        [("answer", "pay", "a", {"result": "paid"}), ("answer", "pay", "b", unknown("b")), ("text", "Go on.")],
    )
