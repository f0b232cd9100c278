"""langchain: `create_agent` over a chat model of our own.

- The model implements `_agenerate`, the least that a chat model must. Binding tools to it gives it back as it
  is, without the wrapper that a shipped model gets. Its calls hold parsed arguments: parsing is the
  providers' packages' work here, and no part of the loop.
- Five `AgentMiddleware` with `awrap_model_call` and `awrap_tool_call`. Wrapping is its cheap idiom: a
  `before_model` would be a node of the graph, which costs more. (Tracing off or not, `create_agent` has langsmith
  start a task and go to a thread and back, twice, for each wrapper of each call. So the cost of a step depends on
  how busy the machine is, and rises over the first runs, until the threads are there.)
- No checkpointer. It has no repair of the history that could be added; its model node itself looks through the
  whole history for invalid calls before each turn.
- Tracing is off unless the environment says otherwise; here the environment is overruled.
- `create_agent` sets a recursion limit of 9,999, and it is raised.
"""

import os

os.environ["LANGSMITH_TRACING"] = os.environ["LANGSMITH_TRACING_V2"] = "false"
os.environ["LANGCHAIN_TRACING"] = os.environ["LANGCHAIN_TRACING_V2"] = "false"

from collections.abc import Awaitable, Callable
from functools import partial
from importlib.metadata import version
from typing import Any

from _contest import ANSWER, NOOPS, Script, serve
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool


class _Noop(AgentMiddleware):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    @property
    def name(self) -> str:  # two of one name are refused
        return f"noop-{self.number}"

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        return await handler(request)

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        return await handler(request)


class _Model(BaseChatModel):
    script: Any = None

    @property
    def _llm_type(self) -> str:
        return "bench"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return self.script.reply()


_model = _Model()


@tool
async def step(n: int) -> str:
    """Make one step."""
    return _model.script.run(n)


_agents: dict[str, Any] = {
    "noops": create_agent(_model, tools=[step], middleware=[_Noop(number) for number in range(NOOPS)]),
    "bare": create_agent(_model, tools=[step]),
}
_config: Any = {"recursion_limit": 1_000_000}


def _prepare(agent: Any, script: Script) -> Any:
    def reply(message: AIMessage) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=message)])

    def call(n: int) -> ChatResult:
        calls = [{"name": "step", "args": {"n": n}, "id": f"call_{n}", "type": "tool_call"}]
        return reply(AIMessage(content="", tool_calls=calls))

    script.replies = [call(n) for n in range(script.steps)]
    script.replies.append(reply(AIMessage(content=ANSWER)))
    given = {"messages": [{"role": "user", "content": "go"}]}

    async def run() -> object:
        _model.script = script
        return (await agent.ainvoke(given, _config))["messages"][-1].content

    return run


if __name__ == "__main__":
    variants = {name: partial(_prepare, agent) for name, agent in _agents.items()}
    serve("langchain", version("langchain"), variants)
