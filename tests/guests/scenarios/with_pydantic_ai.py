"""pydantic-ai's `Agent`, in a program that keeps the messages of its runs, also of those that did not end."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, Tool, ToolDenied, capture_run_messages
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.bedrock import BedrockConverseModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.bedrock import BedrockProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider

from suture.integrations.pydantic_ai import PatchToolCalls
from tests.guests.pydantic_ai.written import write
from tests.guests.scenarios.clients import anthropic_client, bedrock_client, close, google_client, openai_client
from tests.guests.scenarios.talking import Setting
from tests.histories import Step


def model(api: str, url: str) -> tuple[Any, Any]:
    """Return a model and its client."""
    if api == "messages":
        client = anthropic_client(url)
        return AnthropicModel("claude", provider=AnthropicProvider(anthropic_client=client)), client
    if api == "gemini":
        client = google_client(url)
        return GoogleModel("gemini-3-pro", provider=GoogleProvider(client=client)), client
    if api == "bedrock":
        client = bedrock_client(url)
        return BedrockConverseModel("anthropic.claude", provider=BedrockProvider(bedrock_client=client)), client
    client = openai_client(url)
    kind = OpenAIChatModel if api == "chat" else OpenAIResponsesModel
    return kind("gpt", provider=OpenAIProvider(openai_client=client)), client


def cut(messages: list[ModelMessage]) -> list[ModelMessage]:
    """Keep the last message alone."""
    return messages[-1:]


class PydanticTalk:
    """A conversation whose messages the program keeps."""

    apis = ("chat", "responses", "messages", "gemini", "bedrock")

    def __init__(self, setting: Setting, **more: Any) -> None:
        self.setting = setting
        made, self.client = model(setting.api, setting.url)
        capabilities: list[Any] = [ProcessHistory(cut)] if setting.cuts else []
        if setting.ours:
            capabilities.append(PatchToolCalls(**setting.options))
        tools = [Tool(each, requires_approval=setting.asks and each.__name__ == "pay") for each in setting.shop.tools()]
        output: Any = [str, DeferredToolRequests] if setting.asks else str
        self.agent: Agent[None, Any] = Agent(
            made, **{"output_type": output, **more}, tools=tools, capabilities=capabilities
        )
        self.file = setting.folder / "messages.json" if setting.folder else None
        self.messages: list[ModelMessage] = []
        if self.file and self.file.exists():
            self.messages = ModelMessagesTypeAdapter.validate_json(self.file.read_bytes())
        self.waiting: list[ModelMessage] = []

    async def _run(self, prompt: str | None, **given: Any) -> Any:
        with capture_run_messages() as captured:
            try:
                async with self.agent.iter(prompt, **given) as run:
                    async for _ in run:
                        if self.file:
                            self.file.write_bytes(ModelMessagesTypeAdapter.dump_json(run.all_messages()))
            finally:
                self.messages = list(captured)
        return run.result.output if run.result else None

    async def say(self, text: str, history: Sequence[Step] = ()) -> Any:
        output = await self._run(text, message_history=self.messages or write(history))
        if isinstance(output, DeferredToolRequests):
            self.waiting = self.messages
        return output

    async def events(self, text: str) -> AsyncGenerator[Any, None]:
        with capture_run_messages() as captured:
            try:
                async with self.agent.run_stream_events(text, message_history=self.messages) as stream:
                    async for event in stream:
                        yield event
            finally:
                self.messages = list(captured)

    async def decide(self, *, approve: bool) -> Any:
        verdict = True if approve else ToolDenied()
        approvals = DeferredToolResults(approvals={"call_1": verdict})
        return await self._run(None, message_history=self.waiting, deferred_tool_results=approvals)

    async def settle(self) -> None: ...

    async def close(self) -> None:
        await close(self.client)
