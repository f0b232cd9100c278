"""Talks with real agents, in threads that are kept, and the savers and tools that tests of broken runs need."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from tests.guests.langchain.recording import RecordingModel

BUILDERS: dict[str, Callable[..., Any]] = {"create_agent": create_agent, "create_deep_agent": create_deep_agent}
each_builder = pytest.mark.parametrize("builder", BUILDERS)
each_manner = pytest.mark.parametrize("manner", ["sync", "async"])
each_builder_and_manner = pytest.mark.parametrize(
    ("builder", "manner"),
    [
        ("create_agent", "sync"),
        ("create_deep_agent", "async"),
        pytest.param("create_agent", "async", marks=pytest.mark.soak),
        pytest.param("create_deep_agent", "sync", marks=pytest.mark.soak),
    ],
)
"""Each builder and each manner; the soak has them all."""
LONG = 30
"""Seconds after which something that must happen has not happened."""


class Talk:
    """One thread of an agent."""

    def __init__(
        self,
        builder: str,
        replies: Sequence[Any] = (),
        *,
        middleware: Sequence[AgentMiddleware[Any, Any, Any]] = (),
        tools: Sequence[BaseTool] = (),
        saver: Any = None,
        manner: str = "sync",
        model: Any = None,
        **more: Any,
    ) -> None:
        self.model: Any = RecordingModel(replies=list(replies)) if model is None else model
        self.saver = InMemorySaver() if saver is None else saver
        self.manner = manner
        self.agent: Any = BUILDERS[builder](
            model=self.model, tools=list(tools), middleware=list(middleware), checkpointer=self.saver, **more
        )
        self.config: Any = {"configurable": {"thread_id": "talk"}}

    def say(self, *messages: Any) -> list[AnyMessage]:
        """Give the agent something new, as a text or as messages; returns the history that it gives back."""
        given = {"messages": [HumanMessage(each) if isinstance(each, str) else each for each in messages]}
        if self.manner == "async":
            return asyncio.run(self.agent.ainvoke(given, self.config))["messages"]
        return self.agent.invoke(given, self.config)["messages"]

    async def asay(self, *messages: Any) -> list[AnyMessage]:
        """Do as `say` does, in the loop that is running."""
        given = {"messages": [HumanMessage(each) if isinstance(each, str) else each for each in messages]}
        return (await self.agent.ainvoke(given, self.config))["messages"]

    def put(self, *messages: BaseMessage, **values: Any) -> None:
        """Write into the thread's state, as a program does that keeps its own history."""
        self.agent.update_state(self.config, {"messages": list(messages), **values}, as_node="model")

    @property
    def received(self) -> list[BaseMessage]:
        """What the model was sent last."""
        return self.model.sent[-1]

    @property
    def kept(self) -> list[AnyMessage]:
        """The thread's history."""
        return self.agent.get_state(self.config).values["messages"]


def _tells(writes: Sequence[tuple[str, Any]]) -> bool:
    """Tell whether a result of a tool is among what a saver is to write."""
    for _, value in writes:
        if any(isinstance(each, ToolMessage) for each in (value if isinstance(value, list) else [value])):
            return True
    return False


class _Watched:
    """A saver that says when a tool's result is written."""

    written: threading.Event

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        super().put_writes(config, writes, task_id, task_path)  # pyright: ignore[reportAttributeAccessIssue]
        if _tells(writes):
            self.written.set()

    async def aput_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        await super().aput_writes(config, writes, task_id, task_path)  # pyright: ignore[reportAttributeAccessIssue]
        if _tells(writes):
            self.written.set()


class WatchedMemory(_Watched, InMemorySaver):
    """Keeps threads in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()


class WatchedSqlite(_Watched, SqliteSaver):
    """Keeps threads in a file."""

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        self.written = threading.Event()


class WatchedAsyncSqlite(_Watched, AsyncSqliteSaver):
    """Keeps threads in a file, in a loop."""

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        self.written = threading.Event()


class Shop:
    """Two tools: `pay` takes money and returns; `ship` fails, or never returns, once pay's result is written."""

    def __init__(self, saver: _Watched, failure: BaseException | None = None) -> None:
        self.paid: list[str] = []
        self.shipping = threading.Event()
        """Set when pay's result is written and `ship` is still at work."""
        self.saver = saver
        self.failure = failure

    def sync_tools(self) -> list[BaseTool]:
        @tool
        def pay() -> str:
            """Pay."""
            return self._pay()

        @tool
        def ship() -> str:
            """Ship."""
            return self._ship()

        return [pay, ship]

    def async_tools(self) -> list[BaseTool]:
        @tool
        async def pay() -> str:
            """Pay."""
            return self._pay()

        @tool
        async def ship() -> str:
            """Ship."""
            await asyncio.to_thread(self.saver.written.wait, LONG)
            if self.failure is None:
                self.shipping.set()
                await asyncio.Event().wait()
            return self._ship()

        return [pay, ship]

    def _pay(self) -> str:
        self.paid.append("1 euro")
        return f"paid {len(self.paid)} euro, receipt 4711"

    def _ship(self) -> str:
        assert self.saver.written.wait(LONG)
        self.shipping.set()
        if self.failure is None:
            threading.Event().wait()
        assert self.failure is not None
        raise self.failure
