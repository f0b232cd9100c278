"""The OpenAI Agents SDK: `Runner`, with its two models."""

import json
from collections.abc import Callable
from typing import Any

from _reader import Ran, Read, Reply
from agents import Agent, FunctionTool, ItemHelpers, Model, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner
from openai import AsyncOpenAI
from openai.types.responses import ResponseOutputMessage

__all__ = ["READERS"]

_ANY = {"type": "object", "properties": {}, "additionalProperties": True}


def _client(url: str) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


def _tool(name: str, ran: Ran) -> FunctionTool:
    async def use(_context: Any, arguments: str) -> str:
        ran.append((name, json.loads(arguments or "{}")))
        return "well done"

    return FunctionTool(name, "Do it.", _ANY, use, strict_json_schema=False)


def _reader(make: Callable[[str], Model]) -> Read:
    async def read(reply: Reply, ran: Ran) -> str:
        agent = Agent(name="a", model=make(reply.url), tools=[_tool(name, ran) for name in reply.tools])
        if reply.streamed:
            result: Any = Runner.run_streamed(agent, "hi")
            async for _ in result.stream_events():
                pass
        else:
            result = await Runner.run(agent, "hi")
        if len(result.raw_responses) == 1:
            return str(result.final_output)
        said = [item for item in result.raw_responses[0].output if isinstance(item, ResponseOutputMessage)]
        return "".join(ItemHelpers.extract_last_text(item) or "" for item in said)

    return read


READERS: dict[str, Read] = {
    "openai-chat": _reader(lambda url: OpenAIChatCompletionsModel("m", openai_client=_client(url))),
    "openai-responses": _reader(lambda url: OpenAIResponsesModel("m", openai_client=_client(url))),
}
