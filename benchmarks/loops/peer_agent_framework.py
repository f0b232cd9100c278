"""agent-framework-core: `Agent` over a chat client of our own.

- The client is composed of the layers that its shipped clients have: function invocation, chat middleware,
  telemetry, base.
- Five chat middlewares and five function middlewares, classes with `process`: a decorated function is wrapped
  in such a class, at one more frame a call. They are given to the agent, as users do.
- Instrumentation is on by default (spans are made even where nothing exports them); it is switched off, and so
  is the user agent telemetry.
- No session and no history provider. Nothing repairs the history here: it has nothing of that kind that could
  be added to a run like this one.
- `max_iterations` is 40 by default, and is raised.
"""

import os

os.environ["ENABLE_INSTRUMENTATION"] = "false"
os.environ["AGENT_FRAMEWORK_USER_AGENT_DISABLED"] = "true"

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any

from _contest import ANSWER, NOOPS, Script, serve
from agent_framework import (
    Agent,
    BaseChatClient,
    ChatContext,
    ChatMiddleware,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationContext,
    FunctionInvocationLayer,
    FunctionMiddleware,
    Message,
    tool,
)
from agent_framework.observability import ChatTelemetryLayer


class _Around(ChatMiddleware):
    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        await call_next()


class _AroundTool(FunctionMiddleware):
    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        await call_next()


class _Client(FunctionInvocationLayer, ChatMiddlewareLayer, ChatTelemetryLayer, BaseChatClient):
    script: Script

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Any:
        return self._answer()

    async def _answer(self) -> ChatResponse:
        return self.script.reply()


_client = _Client(function_invocation_configuration={"max_iterations": 1_000_000})


@tool(approval_mode="never_require")
async def step(n: int) -> str:
    """Make one step."""
    return _client.script.run(n)


_noops = [*(_Around() for _ in range(NOOPS)), *(_AroundTool() for _ in range(NOOPS))]
_agents = {
    "noops": Agent(_client, name="bench", tools=[step], middleware=_noops),
    "bare": Agent(_client, name="bench", tools=[step]),
}


def _prepare(agent: Agent, script: Script) -> Any:
    def call(n: int) -> ChatResponse:
        content = Content.from_function_call(f"call_{n}", "step", arguments=json.dumps({"n": n}))
        return ChatResponse(messages=[Message("assistant", [content])])

    script.replies = [call(n) for n in range(script.steps)]
    script.replies.append(ChatResponse(messages=[Message("assistant", [ANSWER])]))

    async def run() -> str:
        _client.script = script
        return (await agent.run("go")).messages[-1].text

    return run


if __name__ == "__main__":
    variants = {name: partial(_prepare, agent) for name, agent in _agents.items()}
    serve("agent-framework", version("agent-framework-core"), variants)
