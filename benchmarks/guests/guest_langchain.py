"""LangChain's `create_agent` and deepagents' `create_deep_agent`, over a chat model of our own.

In the table a checkpointer keeps the thread. Where steps are measured there is none: it would cost more than all else.
"""

import os

os.environ["LANGSMITH_TRACING"] = os.environ["LANGSMITH_TRACING_V2"] = "false"
os.environ["LANGCHAIN_TRACING"] = os.environ["LANGCHAIN_TRACING_V2"] = "false"

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from _cases import PROMPT, TOOL, Step
from _guest import ANSWER, WITH, WITHOUT, Guest, Run, Script
from _judge import Message
from deepagents import create_deep_agent
from deepagents.middleware.patch_tool_calls import PatchToolCallsMiddleware as DeepAgentsPatch
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ClearToolUsesEdit, ContextEditingMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from suture.integrations.langchain import PatchToolCallsMiddleware, ToolReductionMiddleware
from suture.stores import MemoryBackend


class _Model(BaseChatModel):
    script: Any = None
    sent: Any = None

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        self.sent = messages
        return self.script.reply()


_model = _Model()
_config: Any = {"recursion_limit": 1_000_000, "configurable": {"thread_id": "1"}}


@tool
async def weather(city: str) -> str:
    """Say how the weather is."""
    return _model.script.run(city)


def _call(name: str, city: str) -> Any:
    return {"name": TOOL, "args": {"city": city}, "id": name, "type": "tool_call"}


def _write(place: int, step: Step) -> AnyMessage:
    name = f"message_{place}"  # as every message has one that was in a thread before
    match step:
        case ("user", text):
            return HumanMessage(text, id=name)
        case ("say", text):
            return AIMessage(text, id=name)
        case ("result", call, text):
            return ToolMessage(text, tool_call_id=call, name=TOOL, id=name)
        case (_, *calls):
            return AIMessage("", tool_calls=[_call(*each) for each in calls], id=name)
    raise AssertionError(step)


def _read(message: AnyMessage) -> Message:
    if isinstance(message, ToolMessage):
        return "tool", [("result", message.tool_call_id, message.text)]
    text = [("text", message.text)] if message.text else []
    if isinstance(message, AIMessage):
        return "assistant", [*text, *(("call", each["id"], each["name"]) for each in message.tool_calls)]
    return "user", text


def _received() -> list[Message]:
    return [_read(message) for message in _model.sent if message.type != "system"]


def _begin(make: Callable[..., Any], kind: str, script: Script, steps: Sequence[Step]) -> Run:
    def reply(message: AIMessage) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=message)])

    calls = [AIMessage("", tool_calls=[_call(f"new_{n}", f"city {n}")]) for n in range(script.steps)]
    script.replies = [*map(reply, calls), reply(AIMessage(ANSWER))]
    agent = make(_model, tools=[weather], middleware=_MIDDLEWARE[kind]())
    given = {"messages": [*(_write(place, step) for place, step in enumerate(steps)), HumanMessage(PROMPT)]}

    async def run() -> str:
        _model.script = script
        return (await agent.ainvoke(given, _config))["messages"][-1].content

    return run


class _Noop(AgentMiddleware):
    async def abefore_agent(self, state: Any, runtime: Any) -> None:
        return None

    def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        return handler(request)


_NEVER = 10**12
"""More tokens than there ever are."""
_MIDDLEWARE: dict[str, Callable[[], list[Any]]] = {
    WITHOUT: list,
    WITH: lambda: [PatchToolCallsMiddleware()],
    "both of ours": lambda: [
        PatchToolCallsMiddleware(),
        ToolReductionMiddleware(MemoryBackend(), max_tokens_for_clear=_NEVER),
    ],
    "ContextEditingMiddleware": lambda: [ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=_NEVER)])],
    "deepagents' patch": lambda: [DeepAgentsPatch()],
    "noop": lambda: [_Noop()],
}


def _with_thread(make: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return make(*args, **kwargs, checkpointer=InMemorySaver())


def _guest(title: str, package: str, make: Callable[..., Any]) -> Guest:
    begin = partial(_begin, make)
    return Guest(title=title, package=package, provider="Anthropic", begin=begin, received=_received)


GUESTS = (
    _guest("LangChain `create_agent`", "langchain", partial(_with_thread, create_agent)),
    # deepagents' own middleware of that name gives way to the one that is passed in.
    _guest("deepagents `create_deep_agent`", "deepagents", partial(_with_thread, create_deep_agent)),
)
MEASURED = (_guest("langchain", "langchain", create_agent), _guest("deepagents", "deepagents", create_deep_agent))
