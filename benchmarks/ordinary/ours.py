"""Suture: `ChatModelAgent`."""

import asyncio
from collections.abc import Callable, Sequence
from copy import deepcopy
from inspect import signature
from typing import Any

import openai

from suture import ChatModelAgent, ChatModelAgentMiddleware, Message, replace, tool
from suture.messages import ImagePart, from_json, to_json
from suture.models import AnthropicModel, OpenAIChatModel
from suture.stores import MemoryStore, SQLiteStore

PACKAGE, TITLE = "suture", "Suture"
MODEL = "openai:gpt-4o"


def _agent(**settings: Any) -> Any:  # the programs also ask an earlier release for what it has not
    return ChatModelAgent(**settings)


def _chat(**settings: Any) -> OpenAIChatModel:
    return OpenAIChatModel("gpt-4o", **settings)


def ask(text: str, model: str = MODEL) -> str:
    return _agent(model=model).run_sync(text).output


def append(first: str, second: str) -> str:
    agent = _agent(model=MODEL)
    messages = agent.run_sync(first).messages
    messages.append(Message.user(second))
    return agent.run_sync(messages).output


def join(first: str, second: str) -> str:
    agent = _agent(model=MODEL)
    return agent.run_sync([*agent.run_sync(first).messages, Message.user(second)]).output


def go_on(first: str, second: str, *, anthropic: bool = False) -> str:
    agent = _agent(model="anthropic:claude-sonnet-4-5" if anthropic else MODEL)
    return agent.run_sync(second, history=agent.run_sync(first).messages).output


def given(messages: Any, *, anthropic: bool = False) -> str:
    return _agent(model="anthropic:claude-sonnet-4-5" if anthropic else MODEL).run_sync(messages).output


def given_before(history: Any, text: str) -> str:
    return _agent(model=MODEL).run_sync(text, history=history).output


def picture(text: str, png: str) -> str:
    return _agent(model=MODEL).run_sync([text, ImagePart(base64_data=png, mime_type="image/png")]).output


def use(function: Callable[..., Any]) -> str:
    return _agent(model=MODEL, tools=[function]).run_sync("go").output


def draw(act: Callable[[], None], png: str, *, words: str = "") -> str:
    image = ImagePart(base64_data=png, mime_type="image/png")

    def draw():  # noqa: ANN202
        """Draw it."""
        act()
        return [words, image] if words else image

    return _agent(model=MODEL, tools=[draw]).run_sync("go").output


def structured(wanted: Any, *, anthropic: bool = False) -> Any:
    return _agent(model="anthropic:claude-sonnet-4-5" if anthropic else MODEL, output_type=wanted).run_sync("go").output


structured_as_text = structured


def own_client(times: int, *, loops: bool = False) -> list[str]:
    agent = _agent(model=_chat(client=openai.AsyncOpenAI()))
    if loops:
        return [asyncio.run(agent.run("go")).output for _ in range(times)]
    return [agent.run_sync("go").output for _ in range(times)]


def sync_client() -> str:
    return _agent(model=_chat(client=openai.OpenAI())).run_sync("go").output


def runs(times: int) -> list[str]:
    agent = _agent(model=MODEL)
    return [agent.run_sync("go").output for _ in range(times)]


def inside_loop() -> str:
    async def cell() -> str:
        return _agent(model=MODEL).run_sync("go").output

    return asyncio.run(cell())


def session(path: str, texts: Sequence[str]) -> str:
    agent = _agent(model=MODEL, checkpoint_store=SQLiteStore(path))
    return [agent.session("ann").run_sync(text).output for text in texts][-1]


def stream_in_plain_code() -> list[str]:
    with _agent(model=MODEL).stream("go") as run:
        return list(run.text())


def approve(function: Callable[..., Any]) -> str:
    agent = _agent(model=MODEL, tools=[tool(requires_approval=True)(function)])
    return agent.resume_sync(agent.run_sync("go"), True).output


def stream(timeout: float) -> str:
    async def follow() -> str:
        async with _agent(model=_chat(timeout=timeout)).stream("go") as run:
            return "".join([text async for text in run.text()])

    return asyncio.run(follow())


def extras(headers: dict[str, str], body: dict[str, Any]) -> str:
    options = {"extra_headers": headers, "extra_body": body}
    return _agent(model=MODEL).run_sync("go", options=options).output


def headers(headers: dict[str, str]) -> str:
    return _agent(model=_chat(headers=headers)).run_sync("go").output


def timeout_of_a_run(seconds: float) -> str:
    return _agent(model=MODEL).run_sync("go", options={"timeout": seconds}).output


def limited(model: str, max_tokens: int, temperature: float) -> str:
    options = {"max_tokens": max_tokens, "temperature": temperature}
    return _agent(model=f"openai:{model}").run_sync("go", options=options).output


def address(url: str) -> str:
    return _agent(model=_chat(base_url=url)).run_sync("go").output


def key(key: str) -> str:
    return _agent(model=_chat(api_key=key)).run_sync("go").output


def store_at(path: str) -> str:
    return _agent(model=MODEL, checkpoint_store=SQLiteStore(path)).run_sync("go", checkpoint_id="ann").output


def agent_in_a_tool() -> int:
    inner = _agent(model=MODEL, name="inner")

    async def act() -> str:
        """Ask the other one."""
        return (await inner.run("help")).output

    return _agent(model=MODEL, tools=[act]).run_sync("go").usage.total_tokens


def status_after_failure() -> str:
    async def look() -> str:
        session = _agent(model=MODEL, checkpoint_store=MemoryStore()).session("ann")
        try:
            await session.run("go")
        except Exception:  # noqa: BLE001
            return await session.status()
        return "did not fail"

    return asyncio.run(look())


def hook() -> list[str]:
    parameters = list(signature(ChatModelAgentMiddleware.wrap_tool_call).parameters.values())[1:]
    return [parameter.kind.name for parameter in parameters]


def instructions(function: Callable[..., str]) -> str:
    return _agent(model=MODEL, instruction=function).run_sync("go").output


def anthropic_ask(text: str) -> str:
    return _agent(model=AnthropicModel("claude-sonnet-4-5")).run_sync(text).output


def another_model(name: str) -> str:
    return replace(_agent(model=MODEL), model=f"openai:{name}").run_sync("go").output


def saved(first: str, second: str) -> str:
    agent = _agent(model=MODEL)
    stored = to_json(agent.run_sync(first).messages)
    return agent.run_sync(second, history=from_json(stored)).output


def whole() -> str:
    return _agent(model=MODEL).run_sync("go", streaming=False).output


def copied(first: str, second: str) -> str:
    agent = _agent(model=MODEL)
    return agent.run_sync(second, history=deepcopy(agent.run_sync(first).messages)).output


def trimmed(first: str, second: str) -> str:
    agent = _agent(model=MODEL)
    return agent.run_sync(second, history=agent.run_sync(first).messages[-1:]).output


def key_of_a_function(key: Callable[[], Any]) -> str:
    return _agent(model=_chat(client=openai.AsyncOpenAI(api_key=key))).run_sync("go").output
