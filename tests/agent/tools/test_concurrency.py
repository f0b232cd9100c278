"""Calls of one turn run side by side, or one after another; sync tools in threads."""

import asyncio
import threading
from contextvars import ContextVar
from typing import Any

import pytest

from suture import ChatModelAgent, ChatModelAgentMiddleware, ToolsConfig, tool
from tests.agent.tools.calling import calls, message, model_that, on_each_wire, run, texts

WHO: ContextVar[str] = ContextVar("WHO", default="nobody")


@on_each_wire
def test_sync_tools_run_in_threads_at_the_same_time(wire: str):
    """Each waits for the other: one after another, both would wait in vain."""
    both = threading.Barrier(2, timeout=10)

    @tool
    def meet(name: str) -> str:
        """Meet another."""
        both.wait()
        return f"{name} met in {threading.current_thread() is not threading.main_thread()}"

    model = model_that(("meet", {"name": "one"}), ("meet", {"name": "two"}), wire=wire)
    run(model, meet)
    assert texts(model) == ["one met in True", "two met in True"]


def test_async_tools_run_at_the_same_time_and_results_stand_in_call_order():
    ended: list[str] = []

    @tool
    async def wait(turns: int) -> str:
        """Take some turns."""
        for _ in range(turns):
            await asyncio.sleep(0)
        ended.append(str(turns))
        return str(turns)

    model = model_that(("wait", {"turns": 30}), ("wait", {"turns": 20}), ("wait", {"turns": 10}))
    run(model, wait)
    assert ended == ["10", "20", "30"]
    assert texts(model) == ["30", "20", "10"]


@pytest.mark.parametrize("how", ["agent", "configuration"])
@on_each_wire
def test_one_after_another_if_asked_for(wire: str, how: str):
    seen: list[str] = []

    @tool
    async def wait(name: str) -> str:
        """Take some turns."""
        seen.append(f"{name} began")
        for _ in range(3):
            await asyncio.sleep(0)
        seen.append(f"{name} ended")
        return name

    model = model_that(("wait", {"name": "one"}), ("wait", {"name": "two"}), wire=wire)
    if how == "agent":
        run(model, wait, sequential=True)
    else:
        asyncio.run(_awaited(ChatModelAgent(model=model, tools=ToolsConfig(tools=[wait], sequential=True))))
    assert seen == ["one began", "one ended", "two began", "two ended"]


async def _awaited(agent: ChatModelAgent[Any]) -> None:
    await agent.run("hi")


class Names(ChatModelAgentMiddleware[Any]):
    def before_agent(self, context: Any) -> None:
        WHO.set("a hook")


@tool
def asked() -> str:
    """Tell who is there."""
    return WHO.get()


@tool(thread=False)
def asked_in_place() -> str:
    """Tell who is there."""
    return f"{WHO.get()} in {threading.current_thread() is not threading.main_thread()}"


@tool
async def asked_async() -> str:
    """Tell who is there."""
    return WHO.get()


def test_tools_of_all_sorts_see_the_context_that_a_hook_set():
    model = model_that(("asked", {}), ("asked_in_place", {}), ("asked_async", {}))
    run(model, asked, asked_in_place, asked_async, middlewares=[Names()])
    assert texts(model) == ["a hook", "a hook in False", "a hook"]


def test_a_tool_sees_the_context_of_whoever_made_the_run():
    WHO.set("the caller")
    try:
        model = model_that(("asked", {}))
        run(model, asked)
        assert texts(model) == ["the caller"]
    finally:
        WHO.set("nobody")


@pytest.mark.parametrize("in_thread", [True, False])
def test_what_a_call_sets_in_the_context_dies_with_it(in_thread: bool):
    @tool(thread=in_thread)
    def rename(name: str) -> str:
        """Set another name."""
        before = WHO.get()
        WHO.set(name)
        return f"{before} to {WHO.get()}"

    again = message("message", calls(("rename", {"name": "three"})))
    model = model_that(("rename", {"name": "one"}), ("rename", {"name": "two"}), then=[again, "ok"])
    run(model, rename, sequential=True)
    assert texts(model) == ["nobody to one", "nobody to two", "nobody to three"]
    assert WHO.get() == "nobody"


def test_runs_of_one_agent_go_on_at_once():
    async def use() -> None:
        both = asyncio.Barrier(2)

        @tool
        async def meet() -> str:
            """Meet the other run."""
            await both.wait()
            return "met"

        def replies(messages: Any) -> Any:
            return "ok" if len(messages) > 1 else message("message", calls(("meet", {})))

        from suture.testing import ScriptedModel

        agent = ChatModelAgent(model=ScriptedModel(replies), tools=[meet])
        one, other = await asyncio.gather(agent.run("one"), agent.run("other"))
        assert [m.content for m in one.messages] == ["one", "", "met", "ok"]
        assert [m.content for m in other.messages] == ["other", "", "met", "ok"]

    asyncio.run(use())
