"""pydantic-ai: `Agent`, nothing configured but the provider's address."""

from collections.abc import Callable
from typing import Any

from _contest import Case, contest
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.bedrock import BedrockConverseModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.bedrock import BedrockProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider


def _model(case: Case) -> Any:
    name, url = case["model"], case["url"]
    match case["wire"]:
        case "openai-chat":
            return OpenAIChatModel(name, provider=OpenAIProvider(base_url=f"{url}/v1", api_key="none"))
        case "openai-responses":
            return OpenAIResponsesModel(name, provider=OpenAIProvider(base_url=f"{url}/v1", api_key="none"))
        case "anthropic":
            return AnthropicModel(name, provider=AnthropicProvider(base_url=url, api_key="none"))
        case "gemini":
            return GoogleModel(name, provider=GoogleProvider(base_url=url, api_key="none"))
        case _:
            return BedrockConverseModel(name, provider=BedrockProvider(base_url=url, region_name="us-east-1"))


async def _read(_: Any, events: Any) -> None:
    async for _event in events:
        pass


async def _ask(case: Case, pay: Callable[[], str]) -> str:
    agent: Any = Agent(_model(case), tools=[pay])
    return (await agent.run("go", event_stream_handler=_read if case["streamed"] else None)).output


if __name__ == "__main__":
    contest(_ask)
