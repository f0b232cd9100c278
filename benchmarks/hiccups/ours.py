"""Suture: `ChatModelAgent`, nothing configured; with failover where the case has another model."""

from collections.abc import Callable
from typing import Any

from _contest import Case, contest

from suture import ChatModelAgent, ModelFailoverConfig
from suture.models import AnthropicModel, BedrockModel, GeminiModel, OpenAIChatModel, OpenAIResponsesModel

__all__ = ["make_model"]

_MODELS: dict[str, Any] = {
    "openai-chat": OpenAIChatModel,
    "openai-responses": OpenAIResponsesModel,
    "anthropic": AnthropicModel,
    "gemini": GeminiModel,
    "bedrock": BedrockModel,
}


def make_model(case: Case, name: str) -> Any:
    key = {} if case["wire"] == "bedrock" else {"api_key": "none"}
    address = f"{case['url']}/v1" if case["wire"].startswith("openai") else case["url"]
    return _MODELS[case["wire"]](name, base_url=address, streaming=case["streamed"], **key)


async def _ask(case: Case, pay: Callable[[], str]) -> str:
    other = case.get("other")
    failover = ModelFailoverConfig(models=[make_model(case, other)]) if other else None
    agent = ChatModelAgent(model=make_model(case, case["model"]), tools=[pay], failover=failover)
    if not case["streamed"]:
        return str((await agent.run("go")).output)
    async with agent.stream("go") as run:
        async for _ in run:
            pass
    return str((await run.result()).output)


if __name__ == "__main__":
    contest(_ask)
