"""pydantic-ai: `Agent` with its own models, through the same SDKs.

- The reply is streamed, as ours is: someone reads all events. (Without a reader it would ask for the whole reply.)
- Between the first steps and the last ones the history is filled without asking: to run them all takes minutes.
- Its repair of the history is built in and always on, so nothing is added for that.
- Instrumentation is off by default and stays so; `request_limit` is 50 by default, and is switched off.
"""

import json
import sys
from functools import partial
from importlib.metadata import version
from typing import Any

from _contest import Script, sdk_client, serve
from pydantic_ai import Agent, ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart, UsageLimits
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.bedrock import BedrockConverseModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.bedrock import BedrockProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider

_MODELS: dict[str, tuple[Any, Any]] = {
    "openai-chat": (OpenAIChatModel, lambda client: OpenAIProvider(openai_client=client)),
    "openai-responses": (OpenAIResponsesModel, lambda client: OpenAIProvider(openai_client=client)),
    "anthropic": (AnthropicModel, lambda client: AnthropicProvider(anthropic_client=client)),
    "gemini": (GoogleModel, lambda client: GoogleProvider(client=client)),
    "bedrock": (BedrockConverseModel, lambda client: BedrockProvider(bedrock_client=client)),
}
_unlimited = UsageLimits(request_limit=None)


async def _read(_: Any, events: Any) -> None:
    async for _event in events:
        pass


def _prepare(wire: str, provider: Any, script: Script) -> Any:
    async def step(n: int, path: str) -> str:  # noqa: ARG001
        """Make one step."""
        return script.work(n)

    def make(steps: int) -> Any:
        agent = Agent(_MODELS[wire][0](f"steps-{steps}", provider=provider), tools=[step])
        return partial(agent.run, usage_limits=_unlimited, event_stream_handler=_read)

    begin, end = make(script.window + 1), make(script.steps)

    async def run() -> str:
        history = (await begin("go")).all_messages()[:-1]
        for call_id, arguments, result in script.skip():
            history.append(ModelResponse([ToolCallPart("step", json.dumps(arguments), call_id)]))
            history.append(ModelRequest([ToolReturnPart("step", result, call_id)]))
        output = (await end(message_history=history)).output
        script.stamp(script.steps)
        return output

    return run


if __name__ == "__main__":
    providers = {wire: provide(sdk_client(wire, sys.argv[1])) for wire, (_, provide) in _MODELS.items()}
    variants = {wire: partial(_prepare, wire, provider) for wire, provider in providers.items()}
    serve("pydantic-ai", version("pydantic-ai-slim"), variants)
