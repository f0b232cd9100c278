"""Models of providers: what their agents' messages are."""

from suture import AgenticMessage, ChatModelAgent, Message, ModelFailoverConfig, ModelRetryConfig
from suture.codecs import Converted, convert
from suture.errors import ModelError
from suture.models import AnthropicModel, LocalModel, Model, OpenAIChatModel, OpenAIResponsesModel, get_model


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
    failover = ModelFailoverConfig(models=[spare, LocalModel(threads=1)])
    return ChatModelAgent(model=OpenAIResponsesModel("gpt-5"), failover=failover)


def named() -> str:
    return str(ChatModelAgent(model="openai:gpt-5-mini").run_sync("hi").output)


def moved(history: list[Message]) -> list[str]:
    converted: Converted = convert(history, "message", "anthropic")
    return [f"{loss.name.value} {loss.what} {loss.index}" for loss in converted.losses]
