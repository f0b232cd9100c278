"""Generic classes without their message type, as the documentation writes them: any message will do."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from suture import (
    ChatModelAgent,
    ChatModelAgentContext,
    ChatModelAgentMiddleware,
    ChatModelAgentState,
    Message,
    Model,
    ModelContext,
    ModelRequest,
    ModelWrapper,
    Repaired,
    RetryContext,
    RetryDecision,
    Run,
    RunResult,
    repair,
    replace,
)
from suture.testing import ScriptedModel


class Whisper(ModelWrapper):
    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        async for item in self.inner.stream(replace(request, instruction="Whisper.")):
            yield item


class Named(ChatModelAgentMiddleware):
    def __init__(self, name: str) -> None:
        self.name = name

    def before_agent(self, context: ChatModelAgentContext) -> ChatModelAgentContext:
        return replace(context, instruction=f"You are {self.name}.")

    def before_model_rewrite_state(self, state: ChatModelAgentState, model_context: ModelContext) -> None:
        print(self.name, len(state.messages))

    def wrap_model(self, model: Model, model_context: ModelContext) -> Model:
        return Whisper(model)


def again(context: RetryContext) -> RetryDecision:
    return RetryDecision(retry=context.error is not None, backoff=0)


def make(*names: str) -> ChatModelAgent:
    return ChatModelAgent(model=ScriptedModel(["hello"]), middlewares=[Named(name) for name in names])


async def finished(run: Run) -> RunResult:
    return await run.result()


def changed(fixed: Repaired) -> bool:
    return fixed.changed


def main() -> None:
    result = asyncio.run(finished(make("Ada", "Grace").stream("hi")))
    assert result.output == "hello"
    assert not changed(repair([Message.user("hi")]))
    assert again(RetryContext(attempt=1, messages=[], error=TimeoutError())).retry


if __name__ == "__main__":
    main()
