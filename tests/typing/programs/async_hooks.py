"""A middleware with every hook as an async function, typed for `AgenticMessage`; some answer nothing."""

import asyncio
from typing import Any, assert_type

from suture import (
    AgenticMessage,
    ChatModelAgent,
    ChatModelAgentContext,
    ChatModelAgentMiddleware,
    ChatModelAgentState,
    Model,
    ModelContext,
    ModelRequest,
    Outcome,
    Sink,
    ToolCallRequest,
    ToolContext,
    ToolResult,
    replace,
    tool,
)
from suture.messages import FunctionToolCall
from suture.middleware import (
    AskModel,
    CallTool,
    EnhancedInvokableEndpoint,
    EnhancedStreamableEndpoint,
    InvokableEndpoint,
    StreamableEndpoint,
)
from suture.testing import ScriptedModel


@tool
async def tides(port: str) -> str:
    """Look up the tides."""
    return f"06:12 in {port}"


class Counted:
    """A sink that counts the pieces of a stream."""

    def __init__(self, outer: Sink) -> None:
        self.outer = outer
        self.pieces = 0

    async def open(self) -> None:
        self.pieces = 0
        await self.outer.open()

    async def write(self, piece: ToolResult) -> None:
        self.pieces += 1
        await self.outer.write(piece)

    async def close(self) -> ToolResult:
        whole: ToolResult = await self.outer.close()
        return whole


class Watching(ChatModelAgentMiddleware[AgenticMessage]):
    def __init__(self) -> None:
        self.seen: list[str] = []

    async def before_agent(self, context: ChatModelAgentContext[AgenticMessage]) -> None:
        self.seen.append(context.instruction)

    async def before_model_rewrite_state(
        self, state: ChatModelAgentState[AgenticMessage], model_context: ModelContext
    ) -> ChatModelAgentState[AgenticMessage] | None:
        await asyncio.sleep(0)
        return None if len(state.messages) < 100 else state

    async def after_model_rewrite_state(
        self, state: ChatModelAgentState[AgenticMessage], model_context: ModelContext
    ) -> ChatModelAgentState[AgenticMessage]:
        return state

    async def wrap_model(self, model: Model[AgenticMessage], model_context: ModelContext) -> Model[AgenticMessage]:
        await asyncio.sleep(0)
        return model

    async def wrap_invokable_tool_call(self, endpoint: InvokableEndpoint, context: ToolContext) -> InvokableEndpoint:
        async def call(arguments: str, **options: Any) -> str:
            try:
                return await endpoint(arguments, **options)
            except OSError as error:
                return f"{context.name} failed: {error}"

        return call

    async def wrap_streamable_tool_call(self, endpoint: StreamableEndpoint, context: ToolContext) -> StreamableEndpoint:
        return endpoint

    async def wrap_enhanced_invokable_tool_call(
        self, endpoint: EnhancedInvokableEndpoint, context: ToolContext
    ) -> EnhancedInvokableEndpoint:
        return endpoint

    async def wrap_enhanced_streamable_tool_call(
        self, endpoint: EnhancedStreamableEndpoint, context: ToolContext
    ) -> EnhancedStreamableEndpoint:
        return endpoint

    async def wrap_model_call(self, request: ModelRequest[AgenticMessage], proceed: AskModel) -> AgenticMessage:
        reply: AgenticMessage = await proceed(replace(request, instruction=f"{request.instruction} Be brief."))
        return reply

    async def wrap_tool_call(self, call: ToolCallRequest, proceed: CallTool) -> ToolResult:
        self.seen.append(call.arguments)
        result = await proceed(replace(call, sink=Counted(call.sink)) if call.sink is not None else call)
        assert_type(result, ToolResult)
        return result

    async def after_agent(self, state: ChatModelAgentState[AgenticMessage], outcome: Outcome) -> None:
        self.seen.append(outcome)


async def main() -> None:
    watching = Watching()
    agent = ChatModelAgent(
        name="harbour",
        instruction="You know the harbours.",
        model=ScriptedModel(
            [AgenticMessage.assistant([FunctionToolCall("1", "tides", '{"port": "Dover"}')]), "At 06:12."],
            wire="agentic",
        ),
        tools=[tides],
        middlewares=[watching],
    )
    result = await agent.run("When?")
    assert result.output == "At 06:12."
    assert watching.seen == ["You know the harbours.", '{"port": "Dover"}', "finished"]


if __name__ == "__main__":
    asyncio.run(main())
