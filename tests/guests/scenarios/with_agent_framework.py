"""agent-framework's `Agent`, with its own clients of OpenAI's: Responses, which keeps conversations, and Chat."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from agent_framework import Agent, ChatMiddleware, FileHistoryProvider, InMemoryHistoryProvider, Message, tool
from agent_framework_openai import OpenAIChatClient, OpenAIChatCompletionClient

from suture.integrations.agent_framework import wrap
from tests.guests.agent_framework.talking import write
from tests.guests.scenarios.talking import Setting
from tests.histories import Step


class Cutting(ChatMiddleware):
    """Sends the last message alone."""

    async def process(self, context: Any, call_next: Any) -> None:
        context.messages = context.messages[-1:]
        await call_next()


class FrameworkTalk:
    """A session of an agent."""

    apis = ("chat", "responses")

    def __init__(self, setting: Setting, name: str = "talk", **more: Any) -> None:
        self.setting = setting
        kind: Any = OpenAIChatCompletionClient if setting.api == "chat" else OpenAIChatClient
        self.client = kind(model="gpt", api_key="none", base_url=f"{setting.url}/v1")
        made = wrap(self.client, **setting.options) if setting.ours else self.client
        tools = [
            tool(each, approval_mode="always_require" if setting.asks and each.__name__ == "pay" else "never_require")
            for each in setting.shop.tools()
        ]
        if setting.folder:
            more["context_providers"] = [FileHistoryProvider(setting.folder)]
        elif setting.api == "chat":
            more["context_providers"] = [InMemoryHistoryProvider()]
        middleware = [Cutting()] if setting.cuts else []
        self.agent: Agent[Any] = Agent(client=made, tools=tools, middleware=middleware, **more)
        self.session = self.agent.create_session(session_id=name)
        self.waiting: Any = ()

    async def say(self, text: str, history: Sequence[Step] = ()) -> str:
        return await self._answer([*write(history), Message("user", [text])])

    async def _answer(self, messages: Any) -> str:
        response = await self.agent.run(messages, session=self.session)
        self.waiting = response.user_input_requests or self.waiting
        return response.text

    async def events(self, text: str) -> AsyncGenerator[Any, None]:
        async for event in self.agent.run(text, session=self.session, stream=True):
            yield event

    async def decide(self, *, approve: bool) -> str:
        [asked] = self.waiting
        return await self._answer([Message("user", [asked.to_function_approval_response(approved=approve)])])

    async def settle(self) -> None: ...

    async def close(self) -> None:
        await self.client.client.close()
