"""What only threads of LangGraph have: forks, limits, tasks of sub-agents, a change of provider."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anthropic
import openai
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    SummarizationMiddleware,
)
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_google_genai.chat_models import ChatGoogleGenerativeAIError
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from suture.integrations.langchain import PatchToolCallsMiddleware, ToolReductionMiddleware
from suture.stores import MemoryBackend
from tests.guests.langchain.talks import WatchedMemory
from tests.guests.scenarios.playing import FAIL, PAY
from tests.guests.scenarios.talking import Setting
from tests.guests.scenarios.with_langchain import Cutting, DeepAgentsTalk, LangChainTalk, model
from tests.guests.strict_provider import Script, StrictServer
from tests.guests.strict_replies import Reply

Refused = (openai.BadRequestError, anthropic.BadRequestError, ChatGoogleGenerativeAIError)
APIS = LangChainTalk.apis
Play = Callable[[Any], Awaitable[Any]]


def talk(
    play: Play, script: Script, *, ours: bool, kind: Any = LangChainTalk, api: str = "messages", **more: Any
) -> Any:
    async def main() -> Any:
        made = kind(Setting(api, script.url, ours), **more)
        try:
            return await play(made)
        finally:
            await made.close()

    return asyncio.run(main())


async def forked(made: LangChainTalk) -> None:
    """A tool raised; the program writes a message into the thread, as if the user had, and goes on from there."""
    with pytest.raises(ConnectionError):
        await made.say("Pay.")
    agent = await made.agent()
    fork = await agent.aupdate_state(made.config, {"messages": [HumanMessage("Stop.")]}, as_node="__start__")
    await agent.ainvoke({"messages": [HumanMessage("And?")]}, fork)


async def limited(made: LangChainTalk) -> None:
    """The run is over its limit of steps before the tool runs."""
    agent = await made.agent()
    hooks = sum("before_agent" in node for node in agent.nodes)
    with pytest.raises(Exception, match="recursion"):
        await agent.ainvoke({"messages": [HumanMessage("Pay.")]}, {**made.config, "recursion_limit": 1 + hooks})
    await made.say("And?")


@pytest.mark.parametrize("api", ["chat", "messages"])
@pytest.mark.parametrize("play", [forked, limited])
def test_a_thread_that_was_forked_or_over_its_limit_goes_on(play: Play, api: str, strict: StrictServer):
    with pytest.raises(Refused):
        talk(play, strict.script([PAY, FAIL]), ours=False, api=api)
    script = strict.script([PAY, FAIL])
    talk(play, script, ours=True, api=api)
    assert script.refused == []
    assert ("paid 5" in str(script.bodies[-1])) is (play is forked)


def test_a_deep_agent_keeps_what_was_paid_when_its_thread_is_forked(strict: StrictServer):
    for ours in (False, True):
        script = strict.script([PAY, FAIL])
        talk(forked, script, ours=ours, kind=DeepAgentsTalk)
        assert ("paid 5" in str(script.bodies[-1])) is ours


@pytest.mark.parametrize("kind", [LangChainTalk, DeepAgentsTalk])
def test_a_replay_sends_what_was_sent(kind: Any, strict: StrictServer):
    async def replayed(made: LangChainTalk) -> None:
        await made.say("Pay.")
        agent = await made.agent()
        states = [state async for state in agent.aget_state_history(made.config) if state.next == ("model",)]
        await agent.ainvoke(None, states[0].config)

    for ours in (False, True):
        script = strict.script([PAY])
        talk(replayed, script, ours=ours, kind=kind)
        assert script.bodies[-1] == script.bodies[-2]


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_ids_that_are_empty_are_made_up(api: str, strict: StrictServer):
    history = [
        HumanMessage("Pay."),
        AIMessage("", tool_calls=[{"id": "", "name": "pay", "args": {"eur": 5}}]),
        ToolMessage("paid 5", tool_call_id=""),
        HumanMessage("And?"),
    ]

    async def given(made: LangChainTalk) -> None:
        await (await made.agent()).ainvoke({"messages": history}, made.config)

    with pytest.raises(Refused):
        talk(given, strict.script(), ours=False, api=api)
    script = strict.script()
    talk(given, script, ours=True, api=api)
    assert "paid 5" in str(script.bodies)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("place", ["first", "last"])
def test_any_place_among_the_middlewares_is_right(place: str, api: str, strict: StrictServer):
    script = strict.script([PAY])
    patch: list[Any] = [PatchToolCallsMiddleware()]
    middleware = [*patch, Cutting()] if place == "first" else [Cutting(), *patch]
    talk(lambda made: made.say("Pay."), script, ours=False, api=api, middleware=middleware)
    assert script.refused == []
    assert "paid 5" in str(script.bodies[-1])


@pytest.mark.parametrize("target", APIS)
@pytest.mark.parametrize("source", APIS)
def test_a_broken_thread_of_one_provider_goes_on_with_another(source: str, target: str, strict: StrictServer):
    for ours in (False, True):
        saver = InMemorySaver()

        async def broken(made: LangChainTalk) -> None:
            with pytest.raises(ConnectionError):
                await made.say("Pay.")

        talk(broken, strict.script([PAY, FAIL]), ours=ours, api=source, checkpointer=saver)
        script = strict.script()
        if ours:
            talk(lambda made: made.say("And?"), script, ours=True, api=target, checkpointer=saver)
            assert "paid 5" in str(script.bodies)
        else:
            with pytest.raises(Refused):
                talk(lambda made: made.say("And?"), script, ours=False, api=target, checkpointer=saver)


def test_a_conversation_that_the_service_keeps_goes_on(strict: StrictServer):
    """LangChain has the list, so it is repaired there."""

    async def play(made: LangChainTalk) -> None:
        with pytest.raises(ConnectionError):
            await made.say("Pay.")
        await made.say("And?")

    for ours in (False, True):
        script = strict.script([PAY, FAIL])
        kept = model("responses", script.url, use_previous_response_id=True)
        if ours:
            talk(play, script, ours=True, api="responses", model=kept)
            assert script.bodies[-1]["previous_response_id"] == "resp_1"
        else:
            with pytest.raises(Refused):
                talk(play, script, ours=False, api="responses", model=kept)


@pytest.mark.parametrize("kind", [LangChainTalk, DeepAgentsTalk])
def test_an_answer_with_a_call_that_was_cut_off_stays_the_answer(kind: Any, strict: StrictServer):
    """LangChain answers such a call itself, before the next request, but sends the arguments as they are."""
    cut: Any = ("call_1", "pay", '{"eur": ')

    async def play(made: LangChainTalk) -> None:
        assert await made.say("Tide?") == "High tide is at 06:12."
        assert await made.say("And?") == "Done."

    with pytest.raises(Refused):
        talk(play, strict.script(["High tide is at 06:12.", cut]), ours=False, kind=kind, api="chat")
    script = strict.script(["High tide is at 06:12.", cut])
    talk(play, script, ours=True, kind=kind, api="chat")
    assert script.refused == []


class Answer(BaseModel):
    text: str


def test_a_structured_answer_comes_of_a_broken_thread(strict: StrictServer):
    async def play(made: LangChainTalk) -> Any:
        with pytest.raises(ConnectionError):
            await made.say("Pay.")
        state = await (await made.agent()).ainvoke({"messages": [HumanMessage("And?")]}, made.config)
        return state["structured_response"]

    replies: list[Reply] = [[PAY, FAIL], [("call_9", "Answer", {"text": "Paid."})]]
    with pytest.raises(Refused):
        talk(play, strict.script(*replies), ours=False, response_format=Answer)
    assert talk(play, strict.script(*replies), ours=True, response_format=Answer) == Answer(text="Paid.")


def test_a_task_that_a_sub_agent_finished_is_found_again(strict: StrictServer):
    """Two tasks at once; one is done and its result is written when a tool of the other raises."""
    for ours in (False, True):
        saver = WatchedMemory()

        def say(body: dict[str, Any], saver: WatchedMemory = saver) -> Reply:
            messages = str(body["messages"])
            if "Count the money." in messages and "Sink." not in messages:
                return "There are 5 euro."
            if "Sink." in messages and "Count the money." not in messages:
                assert saver.written.wait(30)
                return [("call_3", "fail", {})]
            if "And?" in messages:
                return "Done."
            task = {"subagent_type": "general-purpose"}
            tasks = ("Count the money.", "Sink.")
            return [(f"call_{n}", "task", {**task, "description": each}) for n, each in enumerate(tasks)]

        async def play(made: LangChainTalk) -> None:
            with pytest.raises(ConnectionError):
                await made.say("Go.")
            assert await made.say("And?") == "Done."

        script = strict.script(say=say)
        talk(play, script, ours=ours, kind=DeepAgentsTalk, checkpointer=saver)
        assert ("There are 5 euro." in str(script.bodies[-1])) is ours


@tool
def logbook() -> str:
    """Read the logbook."""
    return "\n".join(f"{number}: all quiet, nothing to report" for number in range(8_000))


def other(name: str, url: str) -> list[Any]:
    if name == "a summary":
        return [SummarizationMiddleware(model("messages", url), trigger=("messages", 6), keep=("messages", 2))]
    if name == "clearing":
        return [ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=1_000, keep=1)])]
    return []


@pytest.mark.parametrize("place", ["first", "last"])
@pytest.mark.parametrize("name", ["nothing else", "a summary", "clearing"])
def test_output_of_300_kb_is_shortened_and_read_back(name: str, place: str, strict: StrictServer):
    paths: list[str] = []

    def say(body: dict[str, Any]) -> Reply:
        text = str(body["messages"])
        if "saved to: " in text:
            paths.append(text.partition("saved to: ")[2].split("\\n")[0])
        turn = len(script.bodies)
        if "tools" not in body:
            return f"A summary; output is at {paths[0]}."
        if turn <= 4:
            return [(f"call_{turn}", "logbook", {})]
        if "7990: all quiet" not in text:
            return [(f"call_{turn}", "read_file", {"file_path": paths[0], "offset": 7_985, "limit": 10})]
        return "Done."

    script = strict.script(say=say)
    ours: list[Any] = [PatchToolCallsMiddleware(), ToolReductionMiddleware(MemoryBackend(), max_length_for_trunc=2_000)]
    others = other(name, script.url)
    stack = [*ours, *others] if place == "first" else [*others, *ours]
    agent = create_agent(model("messages", script.url), [logbook], middleware=stack, checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "harbour"}}
    assert agent.invoke({"messages": [HumanMessage("Read.")]}, thread)["messages"][-1].text == "Done."
    assert script.refused == []
    assert max(len(str(body)) for body in script.bodies) < 40_000
    assert "7990: all quiet" in str(script.bodies[-1])


def test_fifty_threads_at_once_are_each_answered_and_none_is_mixed_up(strict: StrictServer):
    """One agent and one middleware; every other thread is broken."""

    def say(body: dict[str, Any]) -> str:
        return f"You said: {body['messages'][-1]['content']}"

    seen: list[int] = []
    for middleware in ([], [PatchToolCallsMiddleware()]):
        script = strict.script(say=say)
        agent = create_agent(model("chat", script.url), middleware=middleware, checkpointer=InMemorySaver())

        def one(number: int, agent: Any = agent) -> bool:
            calls: Any = [{"id": f"call_{number}", "name": "pay", "args": {}}]
            broken = [HumanMessage("Pay."), AIMessage("", tool_calls=calls)] if number % 2 else []
            thread: Any = {"configurable": {"thread_id": str(number)}}
            try:
                state = agent.invoke({"messages": [*broken, HumanMessage(f"I am {number}.")]}, thread)
            except openai.BadRequestError:
                return False
            assert state["messages"][-1].text == f"You said: I am {number}."
            assert {*re.findall(r"call_\d+", str(state["messages"]))} == {f"call_{number}" for _ in broken}
            return True

        with ThreadPoolExecutor(50) as pool:
            seen.append(sum(pool.map(one, range(50))))
    assert seen == [25, 50]
