"""LangChain: `create_agent`, with `ChatOpenAI` and `ChatAnthropic`."""

from collections.abc import Callable
from typing import Any

from _reader import Ran, Read, Reply
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI

__all__ = ["READERS"]

_ANY = {"type": "object", "properties": {}, "additionalProperties": True}


def _openai(reply: Reply, **form: Any) -> BaseChatModel:
    url = f"{reply.url}/v1"
    return ChatOpenAI(model="m", base_url=url, api_key="none", max_retries=0, streaming=reply.streamed, **form)


def _anthropic(reply: Reply) -> BaseChatModel:
    return ChatAnthropic(
        model="m", base_url=reply.url, api_key="none", max_retries=0, streaming=reply.streamed, max_tokens=100
    )


def _tool(name: str, ran: Ran) -> StructuredTool:
    async def use(**arguments: Any) -> str:
        ran.append((name, arguments))
        return "well done"

    return StructuredTool.from_function(coroutine=use, name=name, description="Do it.", args_schema=_ANY)


def _reader(make: Callable[[Reply], BaseChatModel]) -> Read:
    async def read(reply: Reply, ran: Ran) -> str:
        agent = create_agent(make(reply), [_tool(name, ran) for name in reply.tools])
        result = await agent.ainvoke({"messages": [("user", "hi")]})
        return str(next(message.text for message in result["messages"] if isinstance(message, AIMessage)))

    return read


READERS: dict[str, Read] = {
    "openai-chat": _reader(_openai),
    "openai-responses": _reader(lambda reply: _openai(reply, use_responses_api=True)),
    "anthropic": _reader(_anthropic),
}
