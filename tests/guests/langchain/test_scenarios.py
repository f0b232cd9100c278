"""What a strict provider says to LangChain's own models: with Suture in place, and without it."""

import asyncio
from collections.abc import Callable
from typing import Any

import anthropic
import openai
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import SecretStr

from suture.integrations.langchain import PatchToolCallsMiddleware
from suture.repair import Report
from tests.guests.strict_provider import StrictProvider, strict_provider

Refused = (openai.BadRequestError, anthropic.BadRequestError)
KEY = SecretStr("none")
THREAD: Any = {"configurable": {"thread_id": "harbour"}}
BOTH: Any = [("call_1", "pay", {"eur": 5}), ("call_2", "fail", {})]


def model(api: str, server: StrictProvider, **more: Any) -> Any:
    if api == "messages":
        return ChatAnthropic(
            model_name="claude", api_key=KEY, base_url=server.url, timeout=9, stop=None, max_retries=0, **more
        )
    return ChatOpenAI(
        model="gpt",
        api_key=KEY,
        base_url=f"{server.url}/v1",
        max_retries=0,
        use_responses_api=api == "responses",
        **more,
    )


def said(text: str) -> Any:
    return {"messages": [HumanMessage(text)]}


paid: list[int] = []


@tool
def pay(eur: int) -> str:
    """Pay."""
    paid.append(eur)
    return f"paid {eur}"


@tool
def fail() -> str:
    """Fail."""
    raise ConnectionError


@tool
async def hang() -> str:
    """Hang until somebody ends it."""
    await asyncio.sleep(60)
    return "never"


def parallel_one_raises(agent: Any) -> None:
    with pytest.raises(ConnectionError):
        agent.invoke(said("Pay."), THREAD)
    agent.invoke(said("And?"), THREAD)


def interrupted_in_mid_call(agent: Any) -> None:
    async def main() -> None:
        running = asyncio.create_task(agent.ainvoke(said("Pay."), THREAD))
        while (await agent.aget_state(THREAD)).next != ("tools",):  # noqa: ASYNC110 - nothing tells when it hangs
            await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await agent.ainvoke(said("And?"), THREAD)

    asyncio.run(main())


def pending_then_talk(agent: Any) -> None:
    agent.invoke(said("Pay."), THREAD)
    agent.invoke(said("And the tide?"), THREAD)


def forked(agent: Any) -> None:
    with pytest.raises(ConnectionError):
        agent.invoke(said("Pay."), THREAD)
    fork = agent.update_state(THREAD, {"messages": [HumanMessage("Stop.")]}, as_node="__start__")
    agent.invoke(said("And?"), fork)


def recursion_limit(agent: Any) -> None:
    hooks = sum("before_agent" in node for node in agent.nodes)
    with pytest.raises(Exception, match="recursion"):
        agent.invoke(said("Pay."), {**THREAD, "recursion_limit": 1 + hooks})
    agent.invoke(said("And?"), THREAD)


def history_of_another(agent: Any) -> None:
    """Ids that another provider gave: one with signs, one that is too long, one that is empty."""
    calls: Any = [
        {"id": call_id, "name": "pay", "args": {"eur": n}}
        for n, call_id in enumerate(("functions.pay:0", "call_" + "x" * 80, ""))
    ]
    results = [ToolMessage("paid", tool_call_id=call["id"]) for call in calls]
    turns = [
        message
        for pair in zip([AIMessage("", tool_calls=[call]) for call in calls], results, strict=True)
        for message in pair
    ]
    agent.invoke({"messages": [HumanMessage("Pay."), *turns, HumanMessage("And?")]}, THREAD)


class Cutting(AgentMiddleware[Any, Any, Any]):
    """Sends the last message alone, and so cuts results from their calls."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request.override(messages=request.messages[-1:]))


def cut_apart(agent: Any) -> None:
    agent.invoke(said("Pay."), THREAD)
    agent.invoke(said("And?"), THREAD)


class Scenario:
    def __init__(self, run: Callable[[Any], None], *replies: Any, middleware: tuple[Any, ...] = ()) -> None:
        self.run, self.replies, self.middleware = run, replies, middleware


HANG: Any = [("call_1", "pay", {"eur": 5}), ("call_2", "hang", {})]
ASK = HumanInTheLoopMiddleware(interrupt_on={"pay": True})
SCENARIOS = {
    "a. interrupted in mid call": Scenario(interrupted_in_mid_call, HANG),
    "c. pending, then talk": Scenario(pending_then_talk, [("call_1", "pay", {"eur": 5})], middleware=(ASK,)),
    "d. parallel, one raises": Scenario(parallel_one_raises, BOTH),
    "f. ids of another provider": Scenario(history_of_another),
    "i. another middleware cuts": Scenario(cut_apart, [("call_1", "pay", {"eur": 5})], middleware=(Cutting(),)),
    "j. fork": Scenario(forked, BOTH),
    "j. recursion limit": Scenario(recursion_limit, [("call_1", "pay", {"eur": 5})]),
}
every = pytest.mark.parametrize("name", SCENARIOS)
each_api = pytest.mark.parametrize("api", ["chat", "responses", "messages"])


def played(name: str, api: str, middleware: list[Any], *, last: bool = False) -> StrictProvider:
    scenario = SCENARIOS[name]
    paid.clear()
    others = list(scenario.middleware)
    with strict_provider(*scenario.replies) as server:
        stack = [*others, *middleware] if last else [*middleware, *others]
        agent = create_agent(model(api, server), [pay, fail, hang], middleware=stack, checkpointer=InMemorySaver())
        scenario.run(agent)
        return server


@every
@each_api
def test_without_suture_the_provider_refuses(name: str, api: str):
    if name.startswith("f.") and api == "messages":
        pytest.skip("langchain-anthropic renames such ids itself")
    with pytest.raises(Refused):
        played(name, api, [])


@every
@each_api
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
def test_with_suture_it_accepts_and_is_told_what_was_done(name: str, api: str, last: bool):
    heard: list[Report] = []
    server = played(name, api, [PatchToolCallsMiddleware(on_repair=heard.append)], last=last)
    assert server.refused == []
    assert heard
    if paid and "cut" not in name:
        assert f"paid {paid[0]}" in str(server.bodies[-1])
        assert len(paid) == 1


@each_api
def test_a_healthy_run_sends_the_same_bytes_and_nothing_is_heard(api: str):
    heard: list[Report] = []
    sent: list[Any] = []
    for middleware in ([], [PatchToolCallsMiddleware(on_repair=heard.append)]):
        with strict_provider([("call_1", "pay", {"eur": 5})], "Paid.") as server:
            agent = create_agent(model(api, server), [pay], middleware=middleware, checkpointer=InMemorySaver())
            agent.invoke(said("Pay."), THREAD)
            agent.invoke(said("Thanks."), THREAD)
            sent.append(server.bodies)
    assert sent[0] == sent[1]
    assert heard == []


FAMILIES = ("chat", "responses", "messages")


@pytest.mark.parametrize("target", FAMILIES)
@pytest.mark.parametrize("source", FAMILIES)
def test_a_broken_thread_of_one_provider_goes_on_with_another(source: str, target: str):
    saver = InMemorySaver()
    for middleware in ([], [PatchToolCallsMiddleware()]):
        with strict_provider(BOTH) as server, strict_provider() as other:
            first = create_agent(model(source, server), [pay, fail], middleware=middleware, checkpointer=saver)
            thread: Any = {"configurable": {"thread_id": f"with {len(middleware)}"}}
            with pytest.raises(ConnectionError):
                first.invoke(said("Pay."), thread)
            second = create_agent(model(target, other), [pay, fail], middleware=middleware, checkpointer=saver)
            if middleware:
                second.invoke(said("And?"), thread)
                assert "paid 5" in str(other.bodies)
            else:
                with pytest.raises(Refused):
                    second.invoke(said("And?"), thread)


def test_a_conversation_that_the_service_keeps_goes_on():
    """LangChain has the list, so it is repaired there."""
    for middleware in ([], [PatchToolCallsMiddleware()]):
        with strict_provider(BOTH) as server:
            agent = create_agent(
                model("responses", server, use_previous_response_id=True),
                [pay, fail],
                middleware=middleware,
                checkpointer=InMemorySaver(),
            )
            with pytest.raises(ConnectionError):
                agent.invoke(said("Pay."), THREAD)
            if middleware:
                agent.invoke(said("And?"), THREAD)
            else:
                with pytest.raises(Refused):
                    agent.invoke(said("And?"), THREAD)
