"""LangChain: `create_agent` over `ChatOpenAI` and `ChatAnthropic`."""

import asyncio
import json
import os
from collections.abc import Callable, Sequence
from copy import deepcopy
from inspect import iscoroutinefunction, signature
from types import UnionType
from typing import Any, Union, get_origin

os.environ["LANGSMITH_TRACING"] = "false"

import openai
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware, dynamic_prompt
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, messages_from_dict, messages_to_dict
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

PACKAGE, TITLE = "langchain", "LangChain"


def _agent(model: Any = None, tools: Sequence[Any] = (), **settings: Any) -> Any:
    return create_agent(model or ChatOpenAI(model="gpt-4o"), list(tools), **settings)


def _text(result: Any) -> str:
    return result["messages"][-1].content


def _ask(agent: Any, text: str = "go") -> str:
    return _text(agent.invoke({"messages": [("user", text)]}))


def ask(text: str, model: str = "gpt-4o") -> str:
    return _ask(_agent(ChatOpenAI(model=model)), text)


def append(first: str, second: str) -> str:
    agent = _agent()
    messages = agent.invoke({"messages": [("user", first)]})["messages"]
    messages.append(HumanMessage(second))
    return _text(agent.invoke({"messages": messages}))


def join(first: str, second: str) -> str:
    agent = _agent()
    messages = agent.invoke({"messages": [("user", first)]})["messages"]
    return _text(agent.invoke({"messages": [*messages, HumanMessage(second)]}))


def go_on(first: str, second: str, *, anthropic: bool = False) -> str:
    agent = _agent(ChatAnthropic(model="claude-sonnet-4-5") if anthropic else None)
    messages = agent.invoke({"messages": [("user", first)]})["messages"]
    return _text(agent.invoke({"messages": [*messages, ("user", second)]}))


def given(messages: Any, *, anthropic: bool = False) -> str:
    agent = _agent(ChatAnthropic(model="claude-sonnet-4-5") if anthropic else None)
    return _text(agent.invoke({"messages": messages}))


def given_before(history: Any, text: str) -> str:
    return _text(_agent().invoke({"messages": [*history, ("user", text)]}))


def picture(text: str, png: str) -> str:
    image = {"type": "image", "base64": png, "mime_type": "image/png"}
    return _text(_agent().invoke({"messages": [HumanMessage([{"type": "text", "text": text}, image])]}))


def use(function: Callable[..., Any]) -> str:
    agent = _agent(tools=[function])
    if iscoroutinefunction(function):
        return _text(asyncio.run(agent.ainvoke({"messages": [("user", "go")]})))
    return _ask(agent)


def draw(act: Callable[[], None], png: str, *, words: str = "") -> str:
    image = {"type": "image", "base64": png, "mime_type": "image/png"}

    def draw():  # noqa: ANN202
        """Draw it."""
        act()
        return [{"type": "text", "text": words}, image] if words else [image]

    return _ask(_agent(tools=[draw]))


def structured(wanted: Any, *, anthropic: bool = False) -> Any:
    if get_origin(wanted) in (Union, UnionType):
        wanted = ToolStrategy(wanted)
    model = ChatAnthropic(model="claude-sonnet-4-5") if anthropic else None
    return _agent(model, response_format=wanted).invoke({"messages": [("user", "go")]})["structured_response"]


def structured_as_text(wanted: Any) -> Any:
    agent = _agent(response_format=ProviderStrategy(wanted))
    return agent.invoke({"messages": [("user", "go")]})["structured_response"]


def own_client(times: int, *, loops: bool = False) -> list[str]:
    model = ChatOpenAI(model="gpt-4o", async_client=openai.AsyncOpenAI().chat.completions)
    agent = _agent(model)
    if not loops:
        return [_ask(agent) for _ in range(times)]
    return [_text(asyncio.run(agent.ainvoke({"messages": [("user", "go")]}))) for _ in range(times)]


def sync_client() -> str:
    return _ask(_agent(ChatOpenAI(model="gpt-4o", client=openai.OpenAI().chat.completions)))


def runs(times: int) -> list[str]:
    agent = _agent()
    return [_ask(agent) for _ in range(times)]


def inside_loop() -> str:
    async def cell() -> str:
        return _ask(_agent())

    return asyncio.run(cell())


def session(path: str, texts: Sequence[str]) -> str:
    from langgraph.checkpoint.sqlite import SqliteSaver

    with SqliteSaver.from_conn_string(path) as saver:
        agent = _agent(checkpointer=saver)
        config = {"configurable": {"thread_id": "ann"}}
        return [_text(agent.invoke({"messages": [("user", text)]}, config)) for text in texts][-1]


def stream_in_plain_code() -> list[str]:
    pieces = _agent().stream({"messages": [("user", "go")]}, stream_mode="messages")
    return [message.content for message, _ in pieces if message.content]


def approve(function: Callable[..., Any]) -> str:
    ask_first = HumanInTheLoopMiddleware(interrupt_on={function.__name__: True})
    agent = _agent(tools=[tool(function)], middleware=[ask_first], checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "ann"}}
    agent.invoke({"messages": [("user", "go")]}, config)
    return _text(agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), config))


def stream(timeout: float) -> str:
    agent = _agent(ChatOpenAI(model="gpt-4o", timeout=timeout))
    pieces = agent.stream({"messages": [("user", "go")]}, stream_mode="messages")
    return "".join(message.content for message, _ in pieces)


def extras(headers: dict[str, str], body: dict[str, Any]) -> str:
    return _ask(_agent(ChatOpenAI(model="gpt-4o", default_headers=headers, extra_body=body)))


def headers(headers: dict[str, str]) -> str:
    return _ask(_agent(ChatOpenAI(model="gpt-4o", default_headers=headers)))


def timeout_of_a_run(seconds: float) -> str:
    return _ask(_agent(ChatOpenAI(model="gpt-4o").bind(timeout=seconds)))


def limited(model: str, max_tokens: int, temperature: float) -> str:
    return _ask(_agent(ChatOpenAI(model=model, max_tokens=max_tokens, temperature=temperature)))


def address(url: str) -> str:
    return _ask(_agent(ChatOpenAI(model="gpt-4o", base_url=url)))


def key(key: str) -> str:
    return _ask(_agent(ChatOpenAI(model="gpt-4o", api_key=key)))


def store_at(path: str) -> str:
    return session(path, ["go"])


def agent_in_a_tool() -> int:
    inner = _agent()

    def act() -> str:
        """Ask the other one."""
        return _ask(inner, "help")

    messages = _agent(tools=[act]).invoke({"messages": [("user", "go")]})["messages"]
    return sum(message.usage_metadata["total_tokens"] for message in messages if message.type == "ai")


def hook() -> list[str]:
    parameters = list(signature(AgentMiddleware.wrap_tool_call).parameters.values())[1:]
    return [parameter.kind.name for parameter in parameters]


def anthropic_ask(text: str) -> str:
    return _ask(_agent(ChatAnthropic(model="claude-sonnet-4-5")), text)


def saved(first: str, second: str) -> str:
    agent = _agent()
    messages = agent.invoke({"messages": [("user", first)]})["messages"]
    stored = json.dumps(messages_to_dict(messages))
    return _text(agent.invoke({"messages": [*messages_from_dict(json.loads(stored)), ("user", second)]}))


def whole() -> str:
    return ask("go")


def copied(first: str, second: str) -> str:
    agent = _agent()
    messages = deepcopy(agent.invoke({"messages": [("user", first)]})["messages"])
    return _text(agent.invoke({"messages": [*messages, ("user", second)]}))


def trimmed(first: str, second: str) -> str:
    agent = _agent()
    messages = agent.invoke({"messages": [("user", first)]})["messages"][-1:]
    return _text(agent.invoke({"messages": [*messages, ("user", second)]}))


def instructions(function: Callable[..., str]) -> str:
    return _ask(_agent(middleware=[dynamic_prompt(lambda _request: function())]))


def key_of_a_function(key: Callable[[], Any]) -> str:
    agent = _agent(ChatOpenAI(model="gpt-4o", api_key=key))
    return _text(asyncio.run(agent.ainvoke({"messages": [("user", "go")]})))
