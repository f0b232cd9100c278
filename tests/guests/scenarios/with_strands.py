"""strands' `Agent`, which keeps its own messages, or has a session of files."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from strands import Agent, Plugin, tool
from strands.agent import NullConversationManager
from strands.hooks import BeforeToolCallEvent
from strands.middleware import InvokeModelStage
from strands.models.anthropic import AnthropicModel
from strands.models.bedrock import BedrockModel
from strands.models.gemini import GeminiModel
from strands.models.openai import OpenAIModel
from strands.models.openai_responses import OpenAIResponsesModel
from strands.session import FileSessionManager

from suture.integrations.strands import PatchToolCalls
from tests.guests.scenarios.clients import BOTO_CONFIG, boto_session, close, google_client, openai_client
from tests.guests.scenarios.talking import Setting
from tests.histories import Step, write


def model(api: str, url: str) -> tuple[Any, Any]:
    """Return a model, and the client that is to be closed."""
    if api == "bedrock":
        given: Any = {"boto_session": boto_session(), "boto_client_config": BOTO_CONFIG, "endpoint_url": url}
        made: Any = BedrockModel(model_id="anthropic.claude", **given)
        return made, made.client
    if api == "messages":
        made = AnthropicModel(
            model_id="claude", max_tokens=9, client_args={"api_key": "none", "base_url": url, "max_retries": 0}
        )
        return made, made.client
    if api == "gemini":
        client: Any = google_client(url)
        return GeminiModel(client=client, model_id="gemini-3-pro"), client
    if api == "responses":
        given = {"api_key": "none", "base_url": f"{url}/v1", "max_retries": 0}
        return OpenAIResponsesModel(model_id="gpt", client_args=given), None
    client = openai_client(url)
    return OpenAIModel(client=client, model_id="gpt"), client


class Asking(Plugin):
    """Asks a person before each payment."""

    @property
    def name(self) -> str:
        return "asking"

    def init_agent(self, agent: Agent) -> None:
        agent.add_hook(self._ask, BeforeToolCallEvent)

    def _ask(self, event: BeforeToolCallEvent) -> None:
        if event.tool_use["name"] == "pay" and event.interrupt("approval", reason="pay?") != "yes":
            event.cancel_tool = "The payment was refused."


class Cutting(Plugin):
    """Sends the last message alone."""

    @property
    def name(self) -> str:
        return "cutting"

    def init_agent(self, agent: Agent) -> None:
        agent.add_middleware(InvokeModelStage, self._cut)

    async def _cut(self, context: Any, next_fn: Any) -> AsyncGenerator[Any, None]:
        async with aclosing(next_fn(context.replace(messages=context.messages[-1:]))) as events:
            async for event in events:
                yield event


class StrandsTalk:
    """An agent, which is one conversation."""

    apis = ("bedrock", "chat", "responses", "messages", "gemini")

    def __init__(self, setting: Setting, **more: Any) -> None:
        self.setting = setting
        made, self.client = model(setting.api, setting.url)
        plugins: list[Any] = [Asking()] if setting.asks else []
        plugins += [Cutting()] if setting.cuts else []
        plugins += [PatchToolCalls(**setting.options)] if setting.ours else []
        kept: dict[str, Any] = {"conversation_manager": NullConversationManager()}
        if setting.folder:
            kept["session_manager"] = FileSessionManager("talk", storage_dir=str(setting.folder))
        tools: list[Any] = [tool(each) for each in setting.shop.tools()]
        self.agent = Agent(made, tools=tools, plugins=plugins, callback_handler=None, **kept, **more)
        self.waiting: Any = ()

    async def say(self, text: str, history: Sequence[Step] = ()) -> str:
        for message in write("bedrock", history):
            for block in message["content"]:
                block.get("toolResult", {})["status"] = "success"  # strands' own messages always say so
            self.agent.messages.append(message)
        return await self._answer(text)

    async def _answer(self, given: Any) -> str:
        result = await self.agent.invoke_async(given)
        self.waiting = result.interrupts or ()
        return str(result).strip()

    async def events(self, text: str) -> AsyncGenerator[Any, None]:
        async with aclosing(self.agent.stream_async(text)) as events:  # pyright: ignore[reportArgumentType]
            async for event in events:
                yield event

    async def decide(self, *, approve: bool) -> str:
        [asked] = self.waiting
        response = {"interruptId": asked.id, "response": "yes" if approve else "no"}
        return await self._answer([{"interruptResponse": response}])

    async def settle(self) -> None: ...

    async def close(self) -> None:
        if self.client is not None:
            await close(self.client)
