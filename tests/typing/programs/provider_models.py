"""Models of providers: what their agents' messages are."""

from typing import Any, assert_type

from suture import (
    AgenticMessage,
    ChatModelAgent,
    Message,
    ModelFailoverConfig,
    ModelRetryConfig,
    RunResult,
    Session,
)
from suture.codecs import Converted, convert
from suture.errors import ModelError
from suture.kernel import SyncRun
from suture.models import AnthropicModel, LocalModel, Model, OpenAIChatModel, OpenAIResponsesModel, get_model
from suture.stores import MemoryStore


def chat(server: str) -> str:
    model = OpenAIChatModel("qwen3", base_url=server, api_key="none", timeout=30, options={"temperature": 0})
    agent = ChatModelAgent(model=model, model_retry_config=ModelRetryConfig(max_retries=2))
    try:
        messages = agent.run_sync("hi").messages
    except ModelError as error:
        return f"{error.provider} {error.status} {error.request_id} {error.retryable} {error.retry_after}"
    last: Message = messages[-1]
    return last.content


def blocks() -> int:
    model = AnthropicModel[AgenticMessage]("claude-sonnet-4-5", wire="agentic", options={"cache": True})
    last: AgenticMessage = ChatModelAgent(model=model).run_sync("hi").messages[-1]
    return len(last.content_blocks)


def others() -> ChatModelAgent:
    spare: Model[Message] = get_model("local")
    assert_type(get_model("ollama:qwen3").base_url, str | None)
    failover = ModelFailoverConfig(models=[spare, LocalModel(threads=1)])
    return ChatModelAgent(model=OpenAIResponsesModel("gpt-5"), failover=failover)


def named() -> str:
    result = ChatModelAgent(model="openai:gpt-5-mini").run_sync("hi")
    assert_type(result, RunResult[str, Message])
    return result.messages[-1].content + result.output


async def named_and_live() -> None:
    agent = ChatModelAgent(model="anthropic:claude-sonnet-4-5", output_type=list[int], checkpoint_store=MemoryStore())
    assert_type(agent, ChatModelAgent[list[int], Message])
    assert_type(agent.session("user-42"), Session[list[int], Message])
    async with agent.stream("hi") as run:
        assert_type((await run.result()).messages, list[Message])
        assert_type((await run.cancel()).messages, list[Message])
    with agent.stream("hi") as running:
        assert_type(running, SyncRun[list[int], Message])


def first(result: RunResult[str, AgenticMessage]) -> AgenticMessage:
    return result.messages[0]


def any_of_them(agent: ChatModelAgent[Any, Any]) -> list[Any]:
    return [agent.describe()]


def moved(history: list[Message]) -> list[str]:
    converted: Converted = convert(history, "message", "anthropic")
    return [f"{loss.name.value} {loss.what} {loss.index}" for loss in converted.losses]
