"""pydantic-ai: `Agent` over a model of our own.

- The model implements `request`. It is no `FunctionModel`, which would also count the tokens of every message.
- Five capabilities with `wrap_model_request` and `wrap_tool_execute`: what comes nearest to a middleware.
- Its repair of the history is built in and always on, so nothing is added for that.
- Instrumentation is off by default and stays so; logfire is not installed.
- `request_limit` is 50 by default, and is switched off.
"""

import json
from functools import partial
from importlib.metadata import version
from typing import Any

from _contest import ANSWER, NOOPS, Script, serve
from pydantic_ai import Agent, ModelResponse, TextPart, ToolCallPart, UsageLimits
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models import Model


class _Noop(AbstractCapability[None]):
    async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> Any:
        return await handler(request_context)

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        return await handler(args)


class _Model(Model):
    script: Script

    @property
    def model_name(self) -> str:
        return "bench"

    @property
    def system(self) -> str:
        return "bench"

    async def request(self, messages: Any, model_settings: Any, model_request_parameters: Any) -> ModelResponse:
        return self.script.reply()


_model = _Model()
_unlimited = UsageLimits(request_limit=None)


async def step(n: int) -> str:
    """Make one step."""
    return _model.script.run(n)


_agents: dict[str, Agent] = {
    "noops": Agent(_model, tools=[step], capabilities=[_Noop() for _ in range(NOOPS)]),
    "bare": Agent(_model, tools=[step]),
}


def _prepare(agent: Agent, script: Script) -> Any:
    def call(n: int) -> ModelResponse:
        return ModelResponse(parts=[ToolCallPart("step", json.dumps({"n": n}), f"call_{n}")])

    script.replies = [call(n) for n in range(script.steps)]
    script.replies.append(ModelResponse(parts=[TextPart(ANSWER)]))

    async def run() -> str:
        _model.script = script
        return (await agent.run("go", usage_limits=_unlimited)).output

    return run


if __name__ == "__main__":
    variants = {name: partial(_prepare, agent) for name, agent in _agents.items()}
    serve("pydantic-ai", version("pydantic-ai-slim"), variants)
