"""pydantic-ai: `Agent`, with the model of each wire."""

from collections.abc import Callable
from typing import Any

import boto3
from _reader import Ran, Read, Reply
from anthropic import AsyncAnthropic
from botocore.config import Config
from google.genai import Client
from openai import AsyncOpenAI
from pydantic_ai import Agent, Tool
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.bedrock import BedrockConverseModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.bedrock import BedrockProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider

__all__ = ["READERS"]

_ANY = {"type": "object", "properties": {}, "additionalProperties": True}


def _openai(url: str) -> OpenAIProvider:
    return OpenAIProvider(openai_client=AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0))


def _anthropic(url: str) -> Model:
    client = AsyncAnthropic(base_url=url, api_key="none", max_retries=0)
    return AnthropicModel("m", provider=AnthropicProvider(anthropic_client=client))


def _google(url: str) -> Model:
    client = Client(api_key="none", http_options={"base_url": url})
    return GoogleModel("m", provider=GoogleProvider(client=client))


def _bedrock(url: str) -> Model:
    client = boto3.client("bedrock-runtime", endpoint_url=url, config=Config(retries={"total_max_attempts": 1}))
    return BedrockConverseModel("m", provider=BedrockProvider(bedrock_client=client))


def _tool(name: str, ran: Ran) -> Tool[None]:
    async def use(**arguments: Any) -> str:
        ran.append((name, arguments))
        return "well done"

    return Tool.from_schema(use, name=name, description="Do it.", json_schema=_ANY)


def _reader(make: Callable[[str], Model]) -> Read:
    async def read(reply: Reply, ran: Ran) -> str:
        agent = Agent(make(reply.url), tools=[_tool(name, ran) for name in reply.tools])
        async with agent.iter("hi") as run:
            async for node in run:
                if reply.streamed and Agent.is_model_request_node(node):
                    async with node.stream(run.ctx) as events:
                        async for _ in events:
                            pass
        first = next(message for message in run.result.all_messages() if isinstance(message, ModelResponse))
        return "".join(part.content for part in first.parts if isinstance(part, TextPart))

    return read


READERS: dict[str, Read] = {
    "openai-chat": _reader(lambda url: OpenAIChatModel("m", provider=_openai(url))),
    "openai-responses": _reader(lambda url: OpenAIResponsesModel("m", provider=_openai(url))),
    "anthropic": _reader(_anthropic),
    "gemini": _reader(_google),
    "bedrock": _reader(_bedrock),
}
