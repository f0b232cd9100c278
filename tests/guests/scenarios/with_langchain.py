"""LangChain's `create_agent` and deepagents' `create_deep_agent`, in threads that a checkpointer keeps."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import Any

from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command
from pydantic import SecretStr

from suture.integrations.langchain import PatchToolCallsMiddleware
from tests.guests.langchain.wire_messages import write
from tests.guests.scenarios.talking import Setting
from tests.histories import Step

KEY = SecretStr("none")


def model(api: str, url: str, **more: Any) -> Any:
    if api == "messages":
        more |= {"timeout": 60, "stop": None, "max_retries": 0}
        return ChatAnthropic(model_name="claude", api_key=KEY, base_url=url, **more)
    if api == "gemini":
        return ChatGoogleGenerativeAI(model="gemini-3-pro", google_api_key=KEY, base_url=url, max_retries=1, **more)
    more["use_responses_api"] = api == "responses"
    return ChatOpenAI(model="gpt", api_key=KEY, base_url=f"{url}/v1", max_retries=0, **more)


class Cutting(AgentMiddleware[Any, Any, Any]):
    """Sends the last message alone, and so cuts results from their calls."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request.override(messages=request.messages[-1:]))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request.override(messages=request.messages[-1:]))


class LangChainTalk:
    """A thread of an agent."""

    apis = ("chat", "responses", "messages", "gemini")
    build: Callable[..., Any] = staticmethod(create_agent)

    def __init__(self, setting: Setting, thread: str = "harbour", **more: Any) -> None:
        self.setting = setting
        self.model = model(setting.api, setting.url)
        self.config: Any = {"configurable": {"thread_id": thread}}
        self.middleware: list[Any] = [PatchToolCallsMiddleware(**setting.options)] if setting.ours else []
        if setting.asks:
            self.middleware.append(HumanInTheLoopMiddleware(interrupt_on={"pay": True}))
        if setting.cuts:
            self.middleware.append(Cutting())
        self.saver: Any = InMemorySaver()
        self._held = AsyncExitStack()
        self.more = more
        self._agent: Any = None

    async def agent(self) -> Any:
        if self._agent is None:
            if self.setting.folder is not None:
                file = str(self.setting.folder / "threads.db")
                self.saver = await self._held.enter_async_context(AsyncSqliteSaver.from_conn_string(file))
            tools = [tool(each) for each in self.setting.shop.tools()]
            kept = {"model": self.model, "middleware": self.middleware, "checkpointer": self.saver, **self.more}
            self._agent = self.build(tools=tools, **kept)
        return self._agent

    async def say(self, text: str, history: Sequence[Step] = ()) -> str:
        given = {"messages": [*write(history), HumanMessage(text)]}
        durable = {"durability": "sync"} if self.setting.folder else {}
        state = await (await self.agent()).ainvoke(given, self.config, **durable)
        return state["messages"][-1].text

    async def events(self, text: str) -> AsyncGenerator[Any, None]:
        given = {"messages": [HumanMessage(text)]}
        running = (await self.agent()).astream(given, self.config, stream_mode=["messages", "updates"])
        async with aclosing(running) as events:
            async for event in events:
                yield event

    async def decide(self, *, approve: bool) -> str:
        decisions = [{"type": "approve"} if approve else {"type": "reject"}]
        state = await (await self.agent()).ainvoke(Command(resume={"decisions": decisions}), self.config)
        return state["messages"][-1].text

    async def settle(self) -> None:
        while not getattr(await self.saver.aget_tuple(self.config), "pending_writes", None):  # noqa: ASYNC110
            await asyncio.sleep(0)  # a saver tells nobody when it has stored something

    async def close(self) -> None:
        await self._held.aclose()
        if self.setting.api != "gemini":  # which closes its own
            await getattr(
                self.model, "_async_client" if self.setting.api == "messages" else "root_async_client"
            ).close()


class DeepAgentsTalk(LangChainTalk):
    """A thread of a deep agent."""

    apis = ("messages",)
    build = staticmethod(create_deep_agent)
