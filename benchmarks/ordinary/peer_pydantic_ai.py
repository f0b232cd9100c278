"""pydantic-ai: `Agent`."""

import asyncio
import base64
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import openai
from pydantic_ai import (
    Agent,
    BinaryContent,
    DeferredToolRequests,
    DeferredToolResults,
    NativeOutput,
    Tool,
)
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest, UserPromptPart
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

PACKAGE, TITLE = "pydantic-ai-slim", "pydantic-ai"


def _model(name: str = "gpt-4o") -> OpenAIChatModel:
    return OpenAIChatModel(name)


def ask(text: str, model: str = "gpt-4o") -> str:
    return Agent(_model(model)).run_sync(text).output


def append(first: str, second: str) -> str:
    agent = Agent(_model())
    messages = agent.run_sync(first).all_messages()
    messages.append(ModelRequest(parts=[UserPromptPart(second)]))
    return agent.run_sync(message_history=messages).output


def join(first: str, second: str) -> str:
    agent = Agent(_model())
    messages = [*agent.run_sync(first).all_messages(), ModelRequest(parts=[UserPromptPart(second)])]
    return agent.run_sync(message_history=messages).output


def go_on(first: str, second: str, *, anthropic: bool = False) -> str:
    agent = Agent(AnthropicModel("claude-sonnet-4-5") if anthropic else _model())
    return agent.run_sync(second, message_history=agent.run_sync(first).all_messages()).output


def given(messages: Any, *, anthropic: bool = False) -> str:
    return (
        Agent(AnthropicModel("claude-sonnet-4-5") if anthropic else _model()).run_sync(message_history=messages).output
    )


def given_before(history: Any, text: str) -> str:
    return Agent(_model()).run_sync(text, message_history=history).output


def picture(text: str, png: str) -> str:
    return Agent(_model()).run_sync([text, BinaryContent(base64.b64decode(png), media_type="image/png")]).output


def use(function: Callable[..., Any]) -> str:
    return Agent(_model(), tools=[function]).run_sync("go").output


def draw(act: Callable[[], None], png: str, *, words: str = "") -> str:
    image = BinaryContent(base64.b64decode(png), media_type="image/png")

    def draw():  # noqa: ANN202
        """Draw it."""
        act()
        return [words, image] if words else image

    return Agent(_model(), tools=[draw]).run_sync("go").output


def structured(wanted: Any, *, anthropic: bool = False) -> Any:
    return (
        Agent(AnthropicModel("claude-sonnet-4-5") if anthropic else _model(), output_type=wanted).run_sync("go").output
    )


def structured_as_text(wanted: Any) -> Any:
    return Agent(_model(), output_type=NativeOutput(wanted)).run_sync("go").output


def own_client(times: int, *, loops: bool = False) -> list[str]:
    agent = Agent(OpenAIChatModel("gpt-4o", provider=OpenAIProvider(openai_client=openai.AsyncOpenAI())))
    if loops:
        return [asyncio.run(agent.run("go")).output for _ in range(times)]
    return [agent.run_sync("go").output for _ in range(times)]


def sync_client() -> str:
    client: Any = openai.OpenAI()
    return Agent(OpenAIChatModel("gpt-4o", provider=OpenAIProvider(openai_client=client))).run_sync("go").output


def runs(times: int) -> list[str]:
    agent = Agent(_model())
    return [agent.run_sync("go").output for _ in range(times)]


def inside_loop() -> str:
    async def cell() -> str:
        return Agent(_model()).run_sync("go").output

    return asyncio.run(cell())


def stream_in_plain_code() -> list[str]:
    return list(Agent(_model()).run_stream_sync("go").stream_text(delta=True, debounce_by=None))


def approve(function: Callable[..., Any]) -> str:
    tool = Tool(function, requires_approval=True)
    agent = Agent(_model(), tools=[tool], output_type=[str, DeferredToolRequests])
    result = agent.run_sync("go")
    answers = DeferredToolResults(approvals={call.tool_call_id: True for call in result.output.approvals})
    return agent.run_sync(message_history=result.all_messages(), deferred_tool_results=answers).output


def stream(timeout: float) -> str:
    async def follow() -> str:
        async with Agent(_model(), model_settings={"timeout": timeout}).run_stream("go") as run:
            return "".join([text async for text in run.stream_text(delta=True)])

    return asyncio.run(follow())


def extras(headers: dict[str, str], body: dict[str, Any]) -> str:
    settings = {"extra_headers": headers, "extra_body": body}
    return Agent(_model()).run_sync("go", model_settings=settings).output


def headers(headers: dict[str, str]) -> str:
    return Agent(_model(), model_settings={"extra_headers": headers}).run_sync("go").output


def timeout_of_a_run(seconds: float) -> str:
    return Agent(_model()).run_sync("go", model_settings={"timeout": seconds}).output


def limited(model: str, max_tokens: int, temperature: float) -> str:
    settings = {"max_tokens": max_tokens, "temperature": temperature}
    return Agent(_model(model), model_settings=settings).run_sync("go").output


def address(url: str) -> str:
    return Agent(OpenAIChatModel("gpt-4o", provider=OpenAIProvider(base_url=url))).run_sync("go").output


def key(key: str) -> str:
    return Agent(OpenAIChatModel("gpt-4o", provider=OpenAIProvider(api_key=key))).run_sync("go").output


def agent_in_a_tool() -> int:
    inner = Agent(_model())

    async def act() -> str:
        """Ask the other one."""
        return (await inner.run("help")).output

    return Agent(_model(), tools=[act]).run_sync("go").usage.total_tokens


def instructions(function: Callable[..., str]) -> str:
    return Agent(_model(), instructions=function).run_sync("go").output


def anthropic_ask(text: str) -> str:
    return Agent(AnthropicModel("claude-sonnet-4-5")).run_sync(text).output


def another_model(name: str) -> str:
    return Agent(_model()).run_sync("go", model=_model(name)).output


def saved(first: str, second: str) -> str:
    agent = Agent(_model())
    stored = agent.run_sync(first).all_messages_json()
    return agent.run_sync(second, message_history=ModelMessagesTypeAdapter.validate_json(stored)).output


def whole() -> str:
    return ask("go")


def copied(first: str, second: str) -> str:
    agent = Agent(_model())
    return agent.run_sync(second, message_history=deepcopy(agent.run_sync(first).all_messages())).output


def trimmed(first: str, second: str) -> str:
    agent = Agent(_model())
    return agent.run_sync(second, message_history=agent.run_sync(first).all_messages()[-1:]).output


def key_of_a_function(key: Callable[[], Any]) -> str:
    provider = OpenAIProvider(openai_client=openai.AsyncOpenAI(api_key=key))
    return Agent(OpenAIChatModel("gpt-4o", provider=provider)).run_sync("go").output
