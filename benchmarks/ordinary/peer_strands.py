"""Strands Agents: `Agent` over `OpenAIModel` and `AnthropicModel`."""

import asyncio
import base64
import json
from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import openai
from strands import Agent, tool
from strands.models.anthropic import AnthropicModel
from strands.models.openai import OpenAIModel
from strands.session.file_session_manager import FileSessionManager

PACKAGE, TITLE = "strands-agents", "Strands"


def _agent(model: Any = None, tools: Sequence[Any] = (), **settings: Any) -> Agent:
    return Agent(model=model or OpenAIModel(model_id="gpt-4o"), tools=list(tools), callback_handler=None, **settings)


def _text(result: Any) -> str:
    return str(result).removesuffix("\n")


def ask(text: str, model: str = "gpt-4o") -> str:
    return _text(_agent(OpenAIModel(model_id=model))(text))


def append(first: str, second: str) -> str:
    agent = _agent()
    agent(first)
    messages = agent.messages
    messages.append({"role": "user", "content": [{"text": second}]})
    return _text(_agent(messages=messages)())


def join(first: str, second: str) -> str:
    agent = _agent()
    agent(first)
    return _text(_agent(messages=[*agent.messages, {"role": "user", "content": [{"text": second}]}])())


def _claude() -> AnthropicModel:
    return AnthropicModel(model_id="claude-sonnet-4-5", max_tokens=100)


def go_on(first: str, second: str, *, anthropic: bool = False) -> str:
    agent = _agent(_claude() if anthropic else None)
    agent(first)
    return _text(agent(second))


def given(messages: Any, *, anthropic: bool = False) -> str:
    return _text(_agent(_claude() if anthropic else None)(messages))


def given_before(history: Any, text: str) -> str:
    return _text(_agent(messages=history)(text))


def picture(text: str, png: str) -> str:
    image = {"image": {"format": "png", "source": {"bytes": base64.b64decode(png)}}}
    return _text(_agent()([{"text": text}, image]))


def use(function: Callable[..., Any]) -> str:
    return _text(_agent(tools=[tool(function)])("go"))


def draw(act: Callable[[], None], png: str, *, words: str = "") -> str:
    image = {"image": {"format": "png", "source": {"bytes": base64.b64decode(png)}}}

    @tool
    def draw() -> dict[str, Any]:
        """Draw it."""
        act()
        return {"status": "success", "content": [{"text": words}, image] if words else [image]}

    return _text(_agent(tools=[draw])("go"))


def structured(wanted: Any, *, anthropic: bool = False) -> Any:
    return _agent(_claude() if anthropic else None, structured_output_model=wanted)("go").structured_output


def own_client(times: int, *, loops: bool = False) -> list[str]:
    agent = _agent(OpenAIModel(client=openai.AsyncOpenAI(), model_id="gpt-4o"))
    if loops:
        return [_text(asyncio.run(agent.invoke_async("go"))) for _ in range(times)]
    return [_text(agent("go")) for _ in range(times)]


def sync_client() -> str:
    return _text(_agent(OpenAIModel(client=openai.OpenAI(), model_id="gpt-4o"))("go"))


def runs(times: int) -> list[str]:
    agent = _agent()
    return [_text(agent("go")) for _ in range(times)]


def inside_loop() -> str:
    async def cell() -> str:
        return _text(_agent()("go"))

    return asyncio.run(cell())


def session(path: str, texts: Sequence[str]) -> str:
    def stored() -> Agent:
        return _agent(session_manager=FileSessionManager(session_id="ann", storage_dir=str(Path(path).parent)))

    return [_text(stored()(text)) for text in texts][-1]


def stream(timeout: float) -> str:
    return _text(_agent(OpenAIModel(client_args={"timeout": timeout}, model_id="gpt-4o"))("go"))


def extras(headers: dict[str, str], body: dict[str, Any]) -> str:
    params = {"extra_headers": headers, "extra_body": body}
    return _text(_agent(OpenAIModel(model_id="gpt-4o", params=params))("go"))


def headers(headers: dict[str, str]) -> str:
    return _text(_agent(OpenAIModel(client_args={"default_headers": headers}, model_id="gpt-4o"))("go"))


def timeout_of_a_run(seconds: float) -> str:
    return _text(_agent(OpenAIModel(model_id="gpt-4o", params={"timeout": seconds}))("go"))


def limited(model: str, max_tokens: int, temperature: float) -> str:
    params = {"max_tokens": max_tokens, "temperature": temperature}
    return _text(_agent(OpenAIModel(model_id=model, params=params))("go"))


def address(url: str) -> str:
    return _text(_agent(OpenAIModel(client_args={"base_url": url}, model_id="gpt-4o"))("go"))


def key(key: str) -> str:
    return _text(_agent(OpenAIModel(client_args={"api_key": key}, model_id="gpt-4o"))("go"))


def store_at(path: str) -> str:
    return session(path, ["go"])


def agent_in_a_tool() -> int:
    inner = _agent()

    def act() -> str:
        """Ask the other one."""
        return _text(inner("help"))

    return _agent(tools=[tool(act)])("go").metrics.accumulated_usage["totalTokens"]


def anthropic_ask(text: str) -> str:
    return _text(_agent(_claude())(text))


def stream_in_plain_code() -> list[str]:
    pieces: list[str] = []
    agent = Agent(
        model=OpenAIModel(model_id="gpt-4o"), callback_handler=lambda **event: pieces.append(event.get("data", ""))
    )
    agent("go")
    return [piece for piece in pieces if piece]


def saved(first: str, second: str) -> str:
    agent = _agent()
    agent(first)
    stored = json.dumps(agent.messages)
    return _text(_agent(messages=json.loads(stored))(second))


def whole() -> str:
    return _text(_agent(OpenAIModel(model_id="gpt-4o", stream=False))("go"))


def copied(first: str, second: str) -> str:
    agent = _agent()
    agent(first)
    return _text(_agent(messages=deepcopy(agent.messages))(second))


def trimmed(first: str, second: str) -> str:
    agent = _agent()
    agent(first)
    return _text(_agent(messages=agent.messages[-1:])(second))


def key_of_a_function(key: Callable[[], Any]) -> str:
    return _text(_agent(OpenAIModel(client_args={"api_key": key}, model_id="gpt-4o"))("go"))
