"""The SDK's own models, against a server on this machine: what they post is what their providers accept."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, function_tool
from openai import AsyncOpenAI

from suture.integrations.openai_agents import PatchedSession, PatchToolCalls
from tests.guests.openai_agents.running import Shelf, arun
from tests.guests.openai_agents.test_seven_histories import HISTORIES
from tests.guests.openai_agents.written import Item, user
from tests.models.loopback import json_answer, loopback
from tests.shapes.validators import chat, responses

MESSAGE = {"role": "assistant", "content": "done"}
COMPLETION = {
    "id": "chatcmpl_1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": MESSAGE}],
}
OUTPUT = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "done", "annotations": []}],
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "status": "completed",
    "output": [OUTPUT],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}
Complains = Callable[[Sequence[Any]], list[str]]
Begin = Callable[[Agent[Any], list[Item]], Awaitable[Any]]
every_model = pytest.mark.parametrize(
    ("model", "answer", "field", "complains"),
    [
        pytest.param(OpenAIResponsesModel, RESPONSE, "input", responses, id="Responses"),
        pytest.param(OpenAIChatCompletionsModel, COMPLETION, "messages", chat, id="Chat Completions"),
    ],
)


async def refused(model: Any, answer: Any, field: str, complains: Complains, begin: Begin) -> dict[str, list[str]]:
    """Run an agent on the model with each history; return what its provider would say, where it would refuse."""
    said: dict[str, list[str]] = {}
    async with (
        loopback([json_answer(answer)]) as server,
        AsyncOpenAI(api_key="none", base_url=server.url, max_retries=0) as client,
    ):
        agent = Agent(name="assistant", model=model(model="m", openai_client=client))
        for name, history in HISTORIES.items():
            await begin(agent, history)
            said[name] = complains(server.requests[-1].payload[field])
    return {name: complaint for name, complaint in said.items() if complaint}


@every_model
def test_what_is_posted_through_the_filter_is_accepted(model: Any, answer: Any, field: str, complains: Complains):
    patch = PatchToolCalls()

    def begin(agent: Agent[Any], history: list[Item]) -> Awaitable[Any]:
        return arun(agent, [*history, user("next")], model_filter=patch)

    assert asyncio.run(refused(model, answer, field, complains, begin)) == {}


@every_model
def test_what_is_posted_of_a_patched_session_is_accepted(model: Any, answer: Any, field: str, complains: Complains):
    def begin(agent: Agent[Any], history: list[Item]) -> Awaitable[Any]:
        return arun(agent, "next", session=PatchedSession(Shelf(history)))

    assert asyncio.run(refused(model, answer, field, complains, begin)) == {}


@every_model
def test_what_is_posted_without_suture_is_refused(model: Any, answer: Any, field: str, complains: Complains):
    def begin(agent: Agent[Any], history: list[Item]) -> Awaitable[Any]:
        return arun(agent, [*history, user("next")])

    broken = {"a call at the end", "a call without a result", "a result without a call", "half answered"}
    strict = set[str]() if field == "input" else {"a late result"}
    assert {*asyncio.run(refused(model, answer, field, complains, begin))} == broken | strict


def completion(message: dict[str, Any]) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": None, **message}}
    return {**COMPLETION, "choices": [choice]}


def asking(call_id: str) -> dict[str, Any]:
    function = {"name": "search", "arguments": "{}"}
    return completion({"tool_calls": [{"id": call_id, "type": "function", "function": function}]})


@function_tool
def search() -> str:
    """Search."""
    return "found"


def test_items_that_all_have_the_id_that_the_sdk_makes_up_are_left_alone():
    """It gives that one to whatever a Chat Completions model says, and cannot do without it."""

    async def bodies(**choices: Any) -> list[Any]:
        replies = [asking("a"), completion({"content": "One."}), asking("b"), completion({"content": "Two."})]
        async with (
            loopback([json_answer(each) for each in replies]) as server,
            AsyncOpenAI(api_key="none", base_url=server.url, max_retries=0) as client,
        ):
            model = OpenAIChatCompletionsModel(model="m", openai_client=client)
            agent = Agent(name="assistant", model=model, tools=[search])
            first = await arun(agent, "first", **choices)
            await arun(agent, [*first.to_input_list(), user("second")], **choices)
        return [request.payload["messages"] for request in server.requests]

    without, through = asyncio.run(bodies()), asyncio.run(bodies(model_filter=PatchToolCalls()))
    assert through == without
    assert len(through[-1]) == 7
